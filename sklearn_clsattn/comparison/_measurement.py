"""Tune, fit and score one model."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from sklearn_clsattn._validation import codes_of
from sklearn_clsattn.comparison._baselines import Kind, Model
from sklearn_clsattn.metrics import expected_calibration_error

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

N_FOLDS = 3


@dataclass(frozen=True)
class ModelResult:
    """The measurements of one model; seconds are of one run, without vectorizing texts.

    Parameters
    ----------
    name : str
        The model's name.
    kind : {"ours", "baseline", "floor"}
        The model's role; a floor is what any model must beat.
    accuracy, macro_f1 : float
        On the test texts.
    log_loss : float or None
        On the test texts whose class is in training; None for a model without probabilities.
    calibration_error : float or None
        The expected calibration error: the mean gap between the confidence in predicted classes
        and the share of them that is right, over 15 bins of equal width from 0 to 1. None for a
        model without probabilities.
    fit_seconds, predict_seconds : float or None
        Of one fit on all training texts, with tuned parameters where these were tuned, and of
        predicting the class of all test texts; None where that was not measured.
    tuning_seconds : float or None
        Of the search before that fit; None where nothing was tuned.
    tuned : dict
        The parameters that the search chose.
    """

    name: str
    kind: Kind
    accuracy: float
    macro_f1: float
    log_loss: float | None
    calibration_error: float | None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    tuning_seconds: float | None = None
    tuned: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Entrant:
    """A fitted model, its predictions for the test texts, and its measurements.

    Parameters
    ----------
    result : ModelResult
        Its measurements.
    estimator : estimator
        The fitted model.
    predicted : ndarray of shape (n_test,)
        The predicted classes, as positions among the classes of the comparison.
    proba : ndarray of shape (n_test, n_classes), or None
        The probabilities in double precision; None for a model without them.
    """

    result: ModelResult
    estimator: Any
    predicted: Codes
    proba: Array | None


def measure(
    model: Model,
    X: Any,
    y: Codes,
    X_test: Any,
    y_test: Codes,
    *,
    classes: list[Any],
    tune: bool,
    random_state: int | None,
    step: Callable[[Literal["tuning", "fitting"]], None],
) -> tuple[Entrant, list[str]]:
    """Tune, fit and score one model; return it, with a note if a fit did not converge."""
    estimator = _with_coded_weights(clone(model.estimator), classes)
    _warm_up(estimator, X, y)
    tuning_seconds = None
    tuned: dict[str, Any] = {}
    unconverged = []
    if tune and model.grid:
        step("tuning")
        folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=random_state)
        # Not refitted by the search, so that the last fit is timed, and can warn, on its own.
        search = GridSearchCV(
            estimator, model.grid, scoring="accuracy", cv=folds, refit=False, error_score="raise"
        )
        start = time.perf_counter()
        with _convergence_warnings() as caught:
            search.fit(X, y)
        tuning_seconds = time.perf_counter() - start
        tuned = search.best_params_
        estimator.set_params(**tuned)
        if caught:
            unconverged.append("in some fits of its tuning")

    step("fitting")
    start = time.perf_counter()
    with _convergence_warnings() as caught:
        estimator.fit(X, y)
    fit_seconds = time.perf_counter() - start
    if caught:
        unconverged.append("in its final fit" if tuned else "in the iterations it has by default")
    entrant = score(
        *(model.name, model.kind, estimator, X_test, y_test, list(range(len(classes)))),
        fit_seconds=fit_seconds,
        tuning_seconds=tuning_seconds,
        tuned=tuned,
    )
    if not unconverged:
        return entrant, []
    return entrant, [f"{model.name} did not converge {' and '.join(unconverged)}."]


def score(
    name: str, kind: Kind, estimator: Any, documents: Any, y: Codes, classes: list[Any], **more: Any
) -> Entrant:
    """Return a fitted model's predictions for documents, with time and quality."""
    start = time.perf_counter()
    labels = estimator.predict(documents)
    seconds = time.perf_counter() - start
    predicted, proba = codes_of(labels, classes), None
    if hasattr(estimator, "predict_proba"):
        proba = np.zeros((len(y), len(classes)))
        given = np.asarray(estimator.predict_proba(documents), dtype=np.float64)
        # Rows of float32 do not add up to exactly 1 in double precision.
        given = given / given.sum(axis=1, keepdims=True)
        proba[:, codes_of(estimator.classes_, classes)] = given
    measures = quality(y, predicted, proba)
    result = ModelResult(name, kind, **measures, **{"predict_seconds": seconds, **more})
    return Entrant(result, estimator, predicted, proba)


def quality(y: Codes, predicted: Codes, proba: Array | None) -> dict[str, Any]:
    """Return accuracy, macro F1, log loss and calibration error of predictions (n_test,)."""
    loss = error = None
    if proba is not None:
        seen = y >= 0
        loss = float(log_loss(y[seen], proba[seen], labels=np.arange(proba.shape[1])))
        error = expected_calibration_error(y, proba, labels=np.arange(proba.shape[1]))
    return {
        "accuracy": float(accuracy_score(y, predicted)),
        "macro_f1": float(f1_score(y, predicted, average="macro", zero_division=0.0)),
        "log_loss": loss,
        "calibration_error": error,
    }


def binned(values: Array, edges: list[float]) -> Codes:
    """Return the bin (n_values,) of each value; edges belong to the bin below."""
    inside = np.clip(values, edges[0], edges[-1])
    return np.asarray(pd.cut(inside, edges, labels=False, include_lowest=True), dtype=np.intp)


def shown_measure(
    models: Sequence[ModelResult],
    missing: str,
    name: str,
    form: str,
    best_of: Callable[[list[float]], float],
) -> list[tuple[str, bool]]:
    """Return a measure of each model as text, and whether it is the best of several."""
    values = [getattr(model, name) for model in models]
    pairs = list(zip(values, models, strict=True))
    ranked = [value for value, model in pairs if value is not None and model.kind != "floor"]
    best = format(best_of(ranked), form) if len(ranked) > 1 else None
    texts = [missing if value is None else format(value, form) for value in values]
    return [
        (text, text == best and model.kind != "floor")
        for text, model in zip(texts, models, strict=True)
    ]


def check_folds(classes: list[Any], y: Codes) -> None:
    """Raise ValueError if a class is too small to be in every fold of tuning."""
    sizes = np.bincount(y)
    if sizes.min() < N_FOLDS:
        raise ValueError(
            f"tuning by {N_FOLDS}-fold cross-validation needs {N_FOLDS} training texts of each "
            f"class; class {classes[int(sizes.argmin())]!r} has {sizes.min()}"
        )


def _with_coded_weights(estimator: Any, classes: list[Any]) -> Any:
    """Return an estimator with class weights keyed by the classes' codes, not their labels."""
    for name, weights in estimator.get_params().items():
        if name.rpartition("__")[2] == "class_weight" and isinstance(weights, dict):
            strange = [label for label in weights if label not in classes]
            if strange:
                raise ValueError(f"class_weight has {strange[0]!r}, which is no class: {classes}")
            coded = {classes.index(label): weight for label, weight in weights.items()}
            estimator.set_params(**{name: coded})
    return estimator


def _warm_up(estimator: Any, X: Any, y: Codes) -> None:
    """Fit a copy on three texts of each class, so that libraries load before anything is timed."""
    few = pd.Series(y).groupby(y).head(3).index.to_numpy()
    # Errors and warnings here also occur, and are reported, in the fit that is measured.
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        clone(estimator).fit(X[few], y[few])


@contextmanager
def _convergence_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect warnings of models that did not converge; pass all others on."""
    convergence: list[warnings.WarningMessage] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        yield convergence
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            convergence.append(warning)
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
