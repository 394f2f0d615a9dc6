"""Comparison of the attention classifier with baselines on the same texts, and calibration."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer
from sklearn.svm import LinearSVC
from sklearn.utils import check_scalar
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    column_or_1d,
)

from ._sklearn import _check_sample_weight
from ._text_classifier import TextClassifier
from ._transformer import TokenImportanceTransformer
from ._validation import encode_labels
from .text import TokenVectorizer

__all__ = ["Comparison", "Model", "ModelResult", "compare", "expected_calibration_error"]

Codes = NDArray[np.intp]
Texts = NDArray[np.object_]
Kind = Literal["ours", "baseline", "floor"]

# The values of C that the tuned baseline chooses from.
BASELINE_CS = (1.0, 10.0, 100.0)
TUNED = "LogisticRegression, tuned"
DEFAULTS = "LogisticRegression, defaults"


@dataclass(frozen=True)
class Model:
    """A model to compare, before it is fitted.

    Parameters
    ----------
    name : str
        The name in tables.
    estimator : estimator
        An unfitted classifier of texts. A clone is fitted, never the estimator itself.
    kind : {"ours", "baseline", "floor"}
        The role. A floor is a result that any model should beat; it is never marked as best.
    """

    name: str
    estimator: Any
    kind: Kind = "baseline"


@dataclass(frozen=True)
class ModelResult:
    """The measurements of one model on the test texts.

    Parameters
    ----------
    name, kind : str
        As in :class:`Model`.
    accuracy, macro_f1 : float
        On all test texts.
    log_loss, calibration_error : float or None
        None for a model without probabilities. Log loss covers texts whose class is in training.
    fit_seconds, predict_seconds : float or None
        For all training and all test texts, including vectorizing; None if not measured.
    """

    name: str
    kind: Kind
    accuracy: float
    macro_f1: float
    log_loss: float | None
    calibration_error: float | None
    fit_seconds: float | None = None
    predict_seconds: float | None = None


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted model with its measurements and its predictions for the test texts."""

    result: ModelResult
    estimator: Any
    predicted: Codes  # (n_test,), positions of the predicted classes
    proba: NDArray[np.float64] | None  # (n_test, n_classes), None for a model without them


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """A comparison of models on the same texts: the fitted models and their measurements.

    Parameters
    ----------
    entrants : list
        For each model, in the given order: its `result`, the fitted `estimator`, and for the test
        texts the `predicted` class positions and the probabilities `proba`, or None.
    classes : list
        The classes of the training labels.
    n_train, n_test : int
        Numbers of texts.
    notes : list of str
        Caveats about the numbers, such as models that did not converge.
    """

    entrants: list[FittedModel]
    classes: list[Any]
    n_train: int
    n_test: int
    notes: list[str]

    @property
    def models(self) -> list[ModelResult]:
        """The measurements of each model."""
        return [entrant.result for entrant in self.entrants]

    def to_frame(self) -> pd.DataFrame:
        """Return the measurements, one row per model, with the model names as index."""
        return pd.DataFrame([asdict(model) for model in self.models]).set_index("name")

    def __repr__(self) -> str:
        reached = ", ".join(f"{model.name} {model.accuracy:.3f}" for model in self.models)
        return f"<Comparison on {self.n_test:,} test texts: accuracy {reached}>"


def compare(
    train_texts: Sequence[str] | NDArray[Any],
    train_labels: ArrayLike,
    test_texts: Sequence[str] | NDArray[Any],
    test_labels: ArrayLike,
    *,
    models: Sequence[Model] | None = None,
    progress: Callable[[int, int, ModelResult], None] | None = None,
) -> Comparison:
    """Fit models on the same texts and measure them on test texts.

    Parameters
    ----------
    train_texts, test_texts : sequence of str of length n_train and n_test
        The texts for fitting and for measuring.
    train_labels, test_labels : array-like of shape (n_train,) and (n_test,)
        Their classes, of any type that can be sorted.
    models : sequence of Model, default=None
        By default this package's classifier; a logistic regression on TF-IDF of words and pairs
        (sublinear, C chosen from 1, 10 and 100 by validation on the training texts); linear
        classifiers with scikit-learn's default parameters; and the majority class.
    progress : callable, default=None
        Called after each model with the number of models done, the number of all models, and a
        :class:`ModelResult`.

    Returns
    -------
    comparison : Comparison
        The fitted models and their measurements.

    Notes
    -----
    Times run from texts to a fitted model and to predictions, without loading libraries.

    Examples
    --------
    >>> from sklearn_clsattn.comparison import compare
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> texts, y = make_token_classification(n_samples=300, as_text=True, random_state=0)
    >>> comparison = compare(texts[:200], y[:200], texts[200:], y[200:])
    >>> comparison.models[0].name, comparison.models[0].accuracy > 0.8
    ('ClsAttentionClassifier', True)
    """
    # 1) the texts, their classes and the models
    train_texts, train_labels = _checked_texts(train_texts, train_labels, "training")
    test_texts, test_labels = _checked_texts(test_texts, test_labels, "test")
    models = default_models(len(train_texts)) if models is None else list(models)
    if not models:
        raise ValueError("there are no models to compare: pass at least one")
    classes = np.unique(train_labels).tolist()
    if len(classes) < 2:
        raise ValueError(f"all training labels are {classes[0]!r}: expected at least two classes")
    y_test, notes = code_test_labels(test_labels, classes)
    notes += shared_texts(train_texts, test_texts)
    # 2) a fit of each model
    fitted_models: list[FittedModel] = []
    for model in models:
        fitted, fit_notes = fit_and_measure(model, train_texts, train_labels, test_texts, y_test)
        fitted_models.append(fitted)
        notes += fit_notes
        if progress is not None:
            progress(len(fitted_models), len(models), fitted.result)
    return Comparison(fitted_models, classes, len(train_texts), len(test_texts), notes)


def expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    n_bins: int = 10,
    strategy: Literal["quantile", "uniform"] = "quantile",
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the mean gap between the confidence and the accuracy of predictions.

    The confidence is the probability of the most probable class.

    Parameters
    ----------
    y_true : array-like of shape (n_documents,)
        The true labels. A label that is not in `labels` counts as predicted wrong.
    y_proba : array-like of shape (n_documents, n_classes) or (n_documents,)
        Probabilities of the classes, as from ``predict_proba``, or of the second of two classes.
    labels : array-like of shape (n_classes,), default=None
        The classes in the order of the columns, ``estimator.classes_``. By default the sorted
        labels in `y_true`.
    n_bins : int, default=10
        Number of bins.
    strategy : {"quantile", "uniform"}, default="quantile"
        With "quantile", bins have equally many documents, or equal weights, up to ties: documents
        with the same confidence are in one bin. With "uniform", bins of confidence have equal
        widths, from 0 to 1, and may be empty.
    sample_weight : array-like of shape (n_documents,), default=None
        Non-negative weights, not all 0.

    Returns
    -------
    error : float
        From 0 (confidence equals accuracy in each bin) to 1.

    Notes
    -----
    With n documents, and bins B with accuracy acc and mean confidence conf [1]_, it is

    .. math:: \sum_B \frac{|B|}{n} \, |\mathrm{acc}(B) - \mathrm{conf}(B)| .

    Small bins have large gaps by chance, so compare models on equally many bins and the same
    documents. Bins of equal width have few documents where the model is seldom so confident.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On Calibration of Modern Neural
       Networks. Proceedings of ICML 2017, arXiv:1706.04599.

    Examples
    --------
    >>> from sklearn_clsattn.comparison import expected_calibration_error
    >>> round(expected_calibration_error([0, 1, 1, 1], [0.1, 0.9, 0.9, 0.1]), 2)
    0.15
    >>> proba = [0.6, 0.7, 0.8, 0.9]
    >>> round(expected_calibration_error([1, 1, 0, 1], proba, n_bins=2), 2)
    0.35
    >>> expected_calibration_error(["a", "b"], [[1, 0], [0, 1]])
    0.0
    """
    # 1) labels, probabilities and weights
    check_scalar(n_bins, "n_bins", Integral, min_val=1)
    if strategy not in ("quantile", "uniform"):
        raise ValueError(f"strategy must be 'quantile' or 'uniform', got {strategy!r}.")
    y = column_or_1d(y_true)
    proba = check_array(y_proba, ensure_2d=False, dtype=np.float64, input_name="y_proba")
    check_consistent_length(y, proba)
    if proba.ndim == 1:
        proba = np.column_stack([1.0 - proba, proba])
    if proba.min() < 0 or not np.allclose(proba.sum(axis=1), 1, atol=1e-4):
        raise ValueError("y_proba must be probabilities from 0 to 1, in rows that sum to 1.")
    classes = np.unique(y) if labels is None else np.asarray(labels)
    if classes.shape != (proba.shape[1],):
        raise ValueError(
            f"y_proba has {proba.shape[1]} columns, but there are {classes.size} labels: pass "
            "labels=estimator.classes_."
        )
    weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    # 2) the bins of confidence
    confidence = proba.max(axis=1)
    is_correct = proba.argmax(axis=1) == encode_labels(y, classes)
    if strategy == "quantile":
        bins = equal_bins(confidence, n_bins, weights)
    else:
        edges = np.linspace(0, 1, n_bins + 1)
        bins = np.searchsorted(edges[1:-1], confidence)
    # 3) the gap between accuracy and confidence in each, times its weight
    gaps = np.bincount(bins, weights * (is_correct - confidence))
    return float(np.abs(gaps).sum() / weights.sum())


def equal_bins(
    confidence: NDArray[np.float64], n_bins: int, weights: NDArray[np.float64] | None = None
) -> Codes:
    """Return the bin of each confidence, (n_documents,): bins of equal weight, up to ties."""
    if weights is None:
        weights = np.ones(len(confidence))
    order = np.argsort(confidence, kind="stable")
    total_weight = np.cumsum(weights[order])
    # A bin ends at the least confidence up to which its part of the weight is reached.
    targets = total_weight[-1] * np.arange(1, n_bins) / n_bins
    ends = np.searchsorted(total_weight, targets * (1 - 1e-12))  # in spite of rounding
    return np.searchsorted(confidence[order][ends], confidence)


def default_models(n_train: int = 0, min_df: int | Literal["auto"] = "auto") -> list[Model]:
    """Return this package's classifier, a tuned baseline, others with defaults, the majority class.

    The tuned logistic regression is the baseline to beat. C is chosen by five-fold cross-validation
    for fewer than 2,000 texts, else on one fifth of the texts, which is held out.

    Words and pairs in fewer than `min_df` of the `n_train` texts are dropped; "auto" is 1 for
    fewer than 5,000 texts, else 2.
    """
    minimum: Any = min_df
    if min_df == "auto":
        minimum = 1 if n_train < 5000 else 2

    def from_counts(*steps: Any) -> Any:
        """Return a pipeline of a vectorizer of words and pairs and some steps."""
        return make_pipeline(TokenVectorizer(ngram_range=(1, 2), min_df=minimum), *steps)

    search = logistic_regression_search(n_train)
    log_odds = TokenImportanceTransformer("log_odds")
    estimators = {
        TUNED: from_counts(TfidfTransformer(sublinear_tf=True), search),
        DEFAULTS: from_counts(TfidfTransformer(), LogisticRegression()),
        "LogisticRegression, counts": from_counts(LogisticRegression()),
        "MultinomialNB": from_counts(MultinomialNB()),
        "NB-SVM (log-odds + LR)": from_counts(Binarizer(), log_odds, LogisticRegression()),
        "LinearSVC, TF-IDF": from_counts(TfidfTransformer(), LinearSVC(random_state=0)),
    }
    models = [Model("ClsAttentionClassifier", TextClassifier(min_df=min_df), kind="ours")]
    for name, estimator in estimators.items():
        models.append(Model(name, estimator))
    # "prior" predicts the most frequent class, and has a meaningful log loss.
    models.append(Model("majority class", DummyClassifier(strategy="prior"), kind="floor"))
    return models


def logistic_regression_search(n_train: int) -> GridSearchCV:
    """Return a logistic regression that chooses C by validation on its `n_train` documents."""
    folds = ValidationFolds(n_used=5 if n_train < 2000 else 1)
    # Large C need more iterations than the default of 100.
    return GridSearchCV(LogisticRegression(max_iter=1000), {"C": list(BASELINE_CS)}, cv=folds)


class ValidationFolds:
    """Stratified random fifths of the documents, of which the first `n_used` are held out in turn.

    Every class stays in training: the only document of a class is never held out. scikit-learn's
    own stratified folds fail or warn where a class has fewer documents than there are folds.
    """

    def __init__(self, n_used: int) -> None:
        self.n_used = n_used

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[Codes, Codes]]:
        """Yield the positions of training and held-out documents."""
        # 1) the documents that may be held out, in random order
        _, codes, sizes = np.unique(y, return_inverse=True, return_counts=True)
        everything = np.arange(len(codes))
        can_leave = np.random.default_rng(0).permutation(everything[sizes[codes] > 1])
        if not len(can_leave):
            yield everything, everything
            return
        # 2) every fifth of them, class by class
        by_class = can_leave[np.argsort(codes[can_leave], kind="stable")]
        for first in range(min(self.n_used, len(by_class))):
            held_out = np.sort(by_class[first::5])
            yield np.setdiff1d(everything, held_out), held_out

    def get_n_splits(self, X: Any, y: Any, groups: Any = None) -> int:
        """Return the number of times that documents are held out."""
        return len(list(self.split(X, y)))


def fit_and_measure(
    model: Model, X: Any, y: NDArray[Any], X_test: Any, y_test: Codes
) -> tuple[FittedModel, list[str]]:
    """Return a fitted and measured clone of a model, and a note if its fit did not converge."""
    # 1) the fit, timed
    estimator = clone(model.estimator)
    _warm_up(estimator, X, y)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        estimator.fit(X, y)
    fit_seconds = time.perf_counter() - start
    # 2) warnings: one becomes a note, all others are issued again
    notes = []
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            notes = [f"{model.name} did not converge within its maximum number of iterations."]
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    classes = np.unique(y).tolist()
    fitted = measure(model.name, model.kind, estimator, X_test, y_test, classes, fit_seconds)
    return fitted, notes


def measure(
    name: str,
    kind: Kind,
    estimator: Any,
    X: Any,
    y: Codes,
    classes: list[Any],
    fit_seconds: float | None = None,
) -> FittedModel:
    """Return a fitted estimator with its predictions for X and its measurements."""
    # 1) predictions, timed
    start = time.perf_counter()
    labels = estimator.predict(X)
    predict_seconds = time.perf_counter() - start
    predicted = encode_labels(labels, classes)
    # 2) the measures of probabilities, if there are any
    proba = None
    loss = None
    calibration_error = None
    if hasattr(estimator, "predict_proba"):
        proba = _class_probabilities(estimator, X, classes)
        codes = np.arange(len(classes))
        is_seen = y >= 0  # classes that are in training
        loss = float(log_loss(y[is_seen], proba[is_seen], labels=codes))
        calibration_error = expected_calibration_error(y, proba, labels=codes)
    # 3) the measures of classes
    result = ModelResult(
        name,
        kind,
        accuracy=float(accuracy_score(y, predicted)),
        macro_f1=float(f1_score(y, predicted, average="macro", zero_division=0.0)),
        log_loss=loss,
        calibration_error=calibration_error,
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
    )
    return FittedModel(result, estimator, predicted, proba)


def _class_probabilities(estimator: Any, X: Any, classes: list[Any]) -> NDArray[np.float64]:
    """Return the probabilities (n_documents, n_classes) in the order of all classes."""
    predicted = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    # Rows of float32 do not sum to exactly 1 in double precision.
    predicted = predicted / predicted.sum(axis=1, keepdims=True)
    proba = np.zeros((len(predicted), len(classes)))
    proba[:, encode_labels(estimator.classes_, classes)] = predicted
    return proba


def shared_texts(train_texts: NDArray[Any], test_texts: NDArray[Any]) -> list[str]:
    """Return a note on the number of test texts that are also in training, if there are any."""
    n_shared = len(set(train_texts.tolist()).intersection(test_texts.tolist()))
    if not n_shared:
        return []
    return [f"{n_shared:,} distinct test texts are also in the training set."]


def code_test_labels(test_labels: NDArray[Any], classes: list[Any]) -> tuple[Codes, list[str]]:
    """Return the test labels' positions among the classes, and notes on those without one."""
    y_test = encode_labels(test_labels, classes)
    is_unseen = y_test < 0
    if not is_unseen.any():
        return y_test, []
    unseen = sorted({repr(label) for label in test_labels[is_unseen].tolist()})
    names = ", ".join(unseen[:5])
    if is_unseen.all():
        few = ", ".join(map(repr, classes[:5]))
        raise ValueError(
            f"no test label occurs in training: test labels are {names}, training labels {few}"
        )
    note = (
        f"{is_unseen.sum():,} of {len(y_test):,} test texts have labels that are not in training "
        f"({names}): no model can predict these, and log loss excludes them."
    )
    return y_test, [note]


class Measure(NamedTuple):
    """A column of a table of models."""

    heading: str
    field: str  # of ModelResult
    form: str
    best: Callable[[list[float]], float]  # min or max


QUALITY_MEASURES = (
    Measure("accuracy", "accuracy", ".4f", max),
    Measure("macro F1", "macro_f1", ".4f", max),
    Measure("log loss", "log_loss", ".4f", min),
)


class Cell(NamedTuple):
    """A number of a table of models, as text."""

    text: str
    is_best: bool


def result_table(
    models: Sequence[ModelResult], measures: Sequence[Measure], missing: str
) -> list[list[Cell]]:
    """Return the table of models (rows) and measures (columns), with `missing` for None."""
    columns = [_column(models, measure, missing) for measure in measures]
    rows = []
    for number in range(len(models)):
        rows.append([column[number] for column in columns])
    return rows


def _column(models: Sequence[ModelResult], measure: Measure, missing: str) -> list[Cell]:
    """Return a measure of each model; floors cannot be the best, nor a model alone."""
    # 1) the best, as it is shown: models that look equal are equally good
    ranked = []
    for model in models:
        value = getattr(model, measure.field)
        if model.kind != "floor" and value is not None:
            ranked.append(value)
    best = format(measure.best(ranked), measure.form) if len(ranked) > 1 else None
    # 2) the cells
    cells = []
    for model in models:
        value = getattr(model, measure.field)
        text = missing if value is None else format(value, measure.form)
        cells.append(Cell(text, model.kind != "floor" and text == best))
    return cells


def _checked_texts(texts: Any, labels: ArrayLike, which: str) -> tuple[Texts, NDArray[Any]]:
    """Return the `which` texts and labels as arrays of shape (n_texts,), or raise ValueError."""
    texts = np.asarray(texts, dtype=object)
    labels = np.asarray(labels)
    if texts.ndim != 1 or not len(texts) or labels.shape != texts.shape:
        raise ValueError(
            f"expected {which} texts and one label for each, got texts of shape {texts.shape} and "
            f"labels of shape {labels.shape}"
        )
    return texts, labels


def _warm_up(estimator: Any, X: Any, y: NDArray[Any]) -> None:
    """Fit a copy on three texts of each class, so that libraries load before anything is timed."""
    few = pd.Series(y).groupby(y).head(3).index.to_numpy()  # positions
    # Errors and warnings here also occur, and are reported, in the fit that is measured.
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        clone(estimator).fit(X[few], y[few])
