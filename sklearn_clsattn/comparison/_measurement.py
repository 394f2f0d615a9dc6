"""Tune, fit and score one model of a comparison, measured as all others are."""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from sklearn_clsattn.comparison._baselines import Model

N_FOLDS = 3


@dataclass(frozen=True)
class ModelResult:
    """What one model reached; seconds are of one run, and exclude vectorising.

    Parameters
    ----------
    name : str
        The model's name.
    kind : {"ours", "baseline", "floor"}
        What the model is there for.
    accuracy, macro_f1 : float
        On the test texts.
    log_loss : float or None
        On the test texts; None for a model that has no probabilities.
    fit_seconds, predict_seconds : float
        Of one fit on all training texts, with tuned parameters where these were tuned, and of
        predicting the class of all test texts.
    tuning_seconds : float or None
        Of the search before that fit; None where nothing was tuned.
    tuned : dict
        The parameters that the search chose.
    """

    name: str
    kind: Literal["ours", "baseline", "floor"]
    accuracy: float
    macro_f1: float
    log_loss: float | None
    fit_seconds: float
    predict_seconds: float
    tuning_seconds: float | None = None
    tuned: dict[str, Any] = field(default_factory=dict)


def measure(
    model: Model,
    X: Any,
    y: NDArray[np.intp],
    X_test: Any,
    y_test: NDArray[np.intp],
    *,
    tune: bool,
    random_state: int | None,
    step: Callable[[Literal["tuning", "fitting"]], None],
) -> tuple[ModelResult, Any, str]:
    """Tune, fit and score one model.

    Parameters
    ----------
    model : Model
        The model.
    X, X_test : csr_matrix of shape (n_train, n_tokens) and (n_test, n_tokens)
        Token counts to fit on and to measure on.
    y, y_test : ndarray of shape (n_train,) and (n_test,)
        Classes as numbers from 0; test classes that training has not are -1.
    tune : bool
        Whether to search the model's grid first.
    random_state : int or None
        Seed of the folds.
    step : callable
        Called when tuning and fitting start.

    Returns
    -------
    result : ModelResult
        The measurements.
    estimator : estimator
        The fitted model.
    unconverged : str
        Which of the fits did not converge, in words; empty if all did.
    """
    estimator = clone(model.estimator)
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

    start = time.perf_counter()
    predicted = estimator.predict(X_test)
    predict_seconds = time.perf_counter() - start
    proba = probabilities(estimator, X_test) if hasattr(estimator, "predict_proba") else None
    result = ModelResult(
        name=model.name,
        kind=model.kind,
        **quality(y_test, predicted, proba),
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        tuning_seconds=tuning_seconds,
        tuned=tuned,
    )
    return result, estimator, " and ".join(unconverged)


def probabilities(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Return a model's probabilities in double precision, where their rows add up to 1.

    Parameters
    ----------
    estimator : estimator
        A fitted model that has ``predict_proba``.
    X : object
        What it takes.

    Returns
    -------
    proba : ndarray of shape (n_documents, n_classes)
        The probabilities, put right where rows of float32 do not quite add up to 1.
    """
    proba = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    return np.asarray(proba / proba.sum(axis=1, keepdims=True))


def quality(
    y_test: NDArray[np.intp], predicted: NDArray[np.intp], proba: NDArray[np.float64] | None
) -> dict[str, Any]:
    """Return how good predictions are.

    Parameters
    ----------
    y_test : ndarray of shape (n_test,)
        Classes as numbers from 0; those that training has not are -1.
    predicted : ndarray of shape (n_test,)
        The predicted classes.
    proba : ndarray of shape (n_test, n_classes), or None
        The probabilities, where the model has any.

    Returns
    -------
    quality : dict
        With `accuracy`, `macro_f1`, and `log_loss`, which leaves out classes that training has
        not, and is None without probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_clsattn.comparison._measurement import quality
    >>> quality(np.array([0, 1]), np.array([0, 0]), np.array([[0.5, 0.5], [0.5, 0.5]]))
    {'accuracy': 0.5, 'macro_f1': 0.333..., 'log_loss': 0.693...}
    """
    loss = None
    if proba is not None:
        seen = y_test >= 0
        loss = float(log_loss(y_test[seen], proba[seen], labels=np.arange(proba.shape[1])))
    return {
        "accuracy": float(accuracy_score(y_test, predicted)),
        "macro_f1": float(f1_score(y_test, predicted, average="macro", zero_division=0.0)),
        "log_loss": loss,
    }


def _warm_up(estimator: Any, X: Any, y: NDArray[np.intp]) -> None:
    """Fit a copy on a few texts of each class, so that libraries load before anything is timed."""
    order = np.argsort(y, kind="stable")
    starts = np.searchsorted(y[order], np.arange(y.max() + 1))
    few = np.unique(np.concatenate([order[start : start + 3] for start in starts]))
    # What goes wrong here also goes wrong, and is heard of, in the fit that counts.
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        clone(estimator).fit(X[few], y[few])


@contextmanager
def _convergence_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Gather warnings of models that did not converge; pass all others on."""
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


def check_folds(classes: NDArray[Any], y: NDArray[np.intp]) -> None:
    """Refuse to tune where a class is too small for every fold to have it.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The classes.
    y : ndarray of shape (n_train,)
        Classes of the training texts, as numbers from 0.

    Raises
    ------
    ValueError
        If a class has fewer texts than there are folds.
    """
    sizes = np.bincount(y)
    if sizes.min() < N_FOLDS:
        raise ValueError(
            f"tuning by {N_FOLDS}-fold cross-validation needs {N_FOLDS} training texts of each "
            f"class; class {classes.tolist()[int(sizes.argmin())]!r} has {sizes.min()}"
        )
