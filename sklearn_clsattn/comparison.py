"""Comparison of this package's classifier with baselines on the same texts."""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import Binarizer
from sklearn.svm import LinearSVC
from sklearn.utils.validation import column_or_1d

from ._text_classifier import TextClassifier
from ._transformer import TokenImportanceTransformer
from ._types import Array
from ._validation import encode_labels
from .text import TokenVectorizer

__all__ = ["compare"]

_N_BINS = 10  # of confidence
# The default of 100 iterations is not always enough.
_LOGISTIC = LogisticRegression(max_iter=1000)


def compare(
    train_texts: Sequence[str] | NDArray[Any],
    train_labels: ArrayLike,
    test_texts: Sequence[str] | NDArray[Any],
    test_labels: ArrayLike,
    *,
    models: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Fit models on the same texts and measure them on test texts.

    Parameters
    ----------
    train_texts, test_texts : sequence of str of length n_train and n_test
        The texts for fitting and for measuring.
    train_labels, test_labels : array-like of shape (n_train,) and (n_test,)
        Their classes.
    models : mapping of str to estimator, default=None
        The names of the models, and unfitted classifiers of texts, of which clones are fitted. By
        default this package's classifier; logistic regressions on TF-IDF of words and pairs, and
        of words, pairs and characters (sublinear, C chosen from 1, 10 and 100 by validation on the
        training texts); logistic regression, a linear SVM, naive Bayes and NB-SVM with
        scikit-learn's default parameters, but up to 1,000 iterations; and the majority class.

    Returns
    -------
    measures : DataFrame
        One row per model. `accuracy`, and `p_value`: how probable so large a difference in accuracy
        from the first model is by chance alone [1]_, NaN for the first. `macro_f1`. `log_loss` (of
        the texts whose class is in training) and `calibration_error` [2]_ (the mean gap between the
        probability of the predicted class and the accuracy, in ten bins of equally many texts, up
        to ties; from 0 to 1), NaN for a model without probabilities. `fit_seconds` and
        `predict_seconds`, from texts to a fitted model and to predictions.

    Warns
    -----
    UserWarning
        If test texts are also in training, or test labels are not.

    References
    ----------
    .. [1] Q. McNemar (1947). Note on the Sampling Error of the Difference Between Correlated
       Proportions or Percentages. Psychometrika 12. The test is exact here, a binomial one.
    .. [2] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On Calibration of Modern Neural
       Networks. Proceedings of ICML 2017, arXiv:1706.04599.

    Examples
    --------
    >>> from sklearn_clsattn.comparison import compare
    >>> from sklearn_clsattn.datasets import load_requests
    >>> texts, y = load_requests(return_X_y=True)
    >>> measures = compare(texts[:200], y[:200], texts[200:300], y[200:300])
    >>> bool(measures.loc["TextClassifier", "accuracy"] > 0.8)
    True
    """
    if models is None:
        models = {"TextClassifier": TextClassifier(), **text_baselines(train_labels)}
    warn_of_shared_texts(train_texts, test_texts)
    warn_of_unknown_labels(test_labels, column_or_1d(train_labels))
    measured = {}
    for name, _, measures in fitted_models(
        models, train_texts, train_labels, test_texts, test_labels
    ):
        measured[name] = measures
    return measures_table(measured)


def text_baselines(labels: ArrayLike) -> dict[str, Any]:
    """Return classifiers of texts to compare with for training labels, by name."""
    min_df = 1 if len(column_or_1d(labels)) < 5000 else 2  # as in a TextClassifier
    counter = TokenVectorizer(ngram_range=(1, 2), min_df=min_df)
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    both = make_union(words, characters)
    return {
        "LogisticRegression with characters, tuned": make_pipeline(both, _tuned(labels)),
        **baselines(labels, counter, sublinear_tf=True),
    }


def baselines(labels: ArrayLike, vectorizer: Any, *, sublinear_tf: bool = False) -> dict[str, Any]:
    """Return classifiers to compare with for training labels, by name, the tuned one first.

    All but the majority class read what the vectorizer counts. The tuned logistic regression is the
    baseline to beat; its C is chosen by validation on the training documents.
    """
    # 1) what follows the vectorizer in each
    tf_idf = TfidfTransformer(sublinear_tf=sublinear_tf)
    log_odds = TokenImportanceTransformer("log_odds")
    steps: dict[str, list[Any]] = {
        "LogisticRegression, tuned": [tf_idf, _tuned(labels)],
        "LogisticRegression, defaults": [TfidfTransformer(), _LOGISTIC],
        "MultinomialNB": [MultinomialNB()],
        "NB-SVM (log-odds + LR)": [Binarizer(), log_odds, _LOGISTIC],
        "LinearSVC, TF-IDF": [TfidfTransformer(), LinearSVC(random_state=0)],
    }
    # 2) pipelines
    models: dict[str, Any]
    models = {name: make_pipeline(vectorizer, *after) for name, after in steps.items()}
    # "prior" predicts the most frequent class, and has a meaningful log loss.
    models["majority class"] = DummyClassifier(strategy="prior")
    return models


def _tuned(labels: ArrayLike) -> GridSearchCV:
    """Return a logistic regression whose C is chosen by validation on training documents."""
    return GridSearchCV(_LOGISTIC, {"C": [1, 10, 100]}, cv=validation_folds(labels))


def validation_folds(labels: ArrayLike) -> StratifiedKFold | ShuffleSplit:
    """Return five folds of training documents with these labels, or one of 2,000 or more."""
    class_sizes = np.unique(column_or_1d(labels), return_counts=True)[1]
    if class_sizes.sum() < 2000:
        return StratifiedKFold(min(5, class_sizes.max()), shuffle=True, random_state=0)
    return ShuffleSplit(n_splits=1, test_size=0.2, random_state=0)


class Measured(NamedTuple):
    """What was measured of a fitted model on test documents.

    measures : by name
    is_right : whether the predicted class is the document's, of shape (n_documents,)
    """

    measures: dict[str, float]
    is_right: NDArray[np.bool_]


def measures_table(measured: Mapping[str, Measured]) -> pd.DataFrame:
    """Return a row of measures for each model, with p values of differences from the first."""
    first, *_ = measured.values()
    rows = {name: of_model.measures for name, of_model in measured.items()}
    table = pd.DataFrame.from_dict(rows, orient="index")
    p_values = [_p_value(first.is_right, of_model.is_right) for of_model in measured.values()]
    table.insert(1, "p_value", [float("nan"), *p_values[1:]])
    return table


def probability_text(probability: float) -> str:
    """Return a probability with four decimals; a small one is not shown as 0."""
    return "<0.0001" if probability < 0.00005 else f"{probability:.4f}"


def _p_value(is_right: NDArray[np.bool_], other_is_right: NDArray[np.bool_]) -> float:
    """Return McNemar's exact p value of two models that are right on these documents."""
    alone = int((is_right & ~other_is_right).sum())
    other_alone = int((other_is_right & ~is_right).sum())
    n_different = alone + other_alone
    return float(binomtest(alone, n_different).pvalue) if n_different else 1.0


def fitted_models(
    models: Mapping[str, Any], X: Any, y: ArrayLike, X_test: Any, y_test: ArrayLike
) -> Iterator[tuple[str, Any, Measured]]:
    """Yield the name, a fitted clone and the measures of each model."""
    import torch  # noqa: F401 - loading it is no part of a fit

    labels = column_or_1d(y)
    test_labels = column_or_1d(y_test)
    for name, model in models.items():
        fitted = clone(model)
        start = time.perf_counter()
        fitted.fit(X, labels)
        fit_seconds = time.perf_counter() - start
        yield name, fitted, measure(fitted, X_test, test_labels, fit_seconds)


def measure(model: Any, X: Any, y: NDArray[Any], fit_seconds: float = float("nan")) -> Measured:
    """Return the measures of a fitted model on documents of the labels y, (n_documents,)."""
    # 1) the measures of predicted classes
    start = time.perf_counter()
    predicted = model.predict(X)
    predict_seconds = time.perf_counter() - start
    measures = {
        "accuracy": accuracy_score(y, predicted),
        "macro_f1": f1_score(y, predicted, average="macro", zero_division=0.0),
        "log_loss": float("nan"),
        "calibration_error": float("nan"),
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
    }
    # 2) the measures of probabilities, if there are any
    if hasattr(model, "predict_proba"):
        proba = model.predict_proba(X)
        classes = model.classes_
        is_known = encode_labels(y, classes) >= 0
        measures["log_loss"] = log_loss(y[is_known], proba[is_known], labels=classes)
        measures["calibration_error"] = calibration_error(y, proba, classes)
    return Measured(measures, np.asarray(predicted == y))


def calibration_error(y: NDArray[Any], proba: Array, classes: NDArray[Any]) -> float:
    """Return the expected calibration error of probabilities, (n_documents, n_classes).

    A label of y, (n_documents,), that is none of the classes, (n_classes,), is predicted wrong.
    """
    # 1) the upper ends of all bins of confidence but the last
    confidence = proba.max(axis=1)
    n = len(confidence)
    n_up_to_end = -(-n * np.arange(1, _N_BINS) // _N_BINS)  # rounded up
    ends = np.sort(confidence)[n_up_to_end - 1]
    # 2) the gap between accuracy and confidence in each bin, times its share of the documents
    bins = np.searchsorted(ends, confidence)
    is_correct = proba.argmax(axis=1) == encode_labels(y, classes)
    gaps = np.bincount(bins, is_correct - confidence)
    return float(np.abs(gaps).sum() / n)


def warn_of_shared_texts(train_texts: Any, test_texts: Any) -> None:
    """Warn if test texts are also in training."""
    n_shared = len(set(train_texts).intersection(test_texts))
    if n_shared:
        warnings.warn(
            f"{n_shared:,} distinct test texts are also in the training set.", stacklevel=3
        )


def warn_of_unknown_labels(test_labels: ArrayLike, classes: ArrayLike) -> None:
    """Warn if test labels are not among the classes of training."""
    labels = column_or_1d(test_labels)
    is_unknown = encode_labels(labels, classes) < 0
    if is_unknown.any():
        unknown = np.unique(labels[is_unknown]).tolist()
        names = ", ".join(map(repr, unknown[:5]))
        warnings.warn(
            f"{is_unknown.sum():,} of {len(labels):,} test documents have labels that are not in "
            f"training ({names}): no model can predict these, and log loss excludes them.",
            stacklevel=3,
        )
