"""The report of a fitted model: its measurements, its tokens and its mistakes."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.utils import check_consistent_length, check_scalar
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .. import __version__
from .._classifier import ClsAttentionClassifier
from .._types import Array
from .._validation import encode_labels
from ..comparison import (
    Comparison,
    FittedModel,
    Model,
    ModelResult,
    code_test_labels,
    default_models,
    equal_bins,
    fit_and_measure,
    measure,
    shared_texts,
)
from ..text._context_vectorizer import CHARACTER_PREFIX
from ._explain import explain
from ._label_issues import label_issues
from ._report_page import report_html, wilson_interval
from .explanation import Explanation
from .feature_origins import split_pipeline, without_name_warnings
from .important_tokens import (
    ClassTokens,
    ReadDocuments,
    class_tokens,
    named_classifier,
    read_documents,
)
from .pages import framed

Codes = NDArray[np.intp]

_TITLE = "Model report"
_N_BINS = 10
_N_LABELS = 15
_EXCERPT = 140  # characters
_DEPENDENCIES = "scikit-learn", "numpy", "scipy", "torch"


@dataclass(frozen=True, eq=False)
class DataSummary:
    """The texts of a report; unknown facts about training texts are None."""

    source: str  # a description; may be empty
    classes: list[Any]
    train_sizes: list[int] | None  # (n_classes,) training texts of each class
    test_sizes: list[int]  # (n_classes,)
    n_train: int | None
    n_test: int  # with those of unknown classes
    n_unknown: int  # test texts of classes that are not in training
    n_tokens: int  # in the model's vocabulary
    n_empty: int  # test texts without any of them
    notes: list[str]  # caveats about the numbers


@dataclass(frozen=True, eq=False)
class Calibration:
    """A model's accuracy by confidence, the probability of the predicted class."""

    name: str  # of the model
    # A row for each of ten bins of equally many texts, up to ties: the lowest and the highest
    # confidence, `start` and `end`, the number of `texts`, their mean `confidence`, the share that
    # is `right`, and Wilson's 95% interval of it, from `low` to `high`.
    bins: pd.DataFrame
    histogram: list[int]  # (10,), numbers of texts in bins of equal width


@dataclass(frozen=True, eq=False)
class Mistakes:
    """Test texts that the model gets wrong."""

    n_all: int
    # The most confident ones, a row each: the position `index`, the class `true`, and of our model
    # and the baseline (columns `baseline_...`) the class `predicted`, its `probability`, and that
    # of the true class, `true_probability`.
    shown: pd.DataFrame
    explanation: Explanation | None  # of our predictions for these; None without


@dataclass(frozen=True, eq=False)
class _Documents:
    """Documents with their classes."""

    X: Any
    y: Codes  # (n_documents,), positions among the classes, -1 for unknown ones
    classes: list[Any]

    @cached_property
    def texts(self) -> NDArray[np.object_] | None:
        """The documents as an array of texts; None if they are not texts."""
        if getattr(self.X, "ndim", 1) != 1:
            return None
        texts = _object_array(self.X)
        return texts if all(isinstance(text, str) for text in texts) else None

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of documents of known classes, (n_documents,)."""
        return np.array(self.classes)[self.y]

    @property
    def class_sizes(self) -> list[int]:
        """The number of documents of each class."""
        return np.bincount(self.y[self.y >= 0], minlength=len(self.classes)).tolist()


@dataclass(frozen=True, eq=False, repr=False)
class ModelReport:
    """A fitted model's measurements on test texts, its important tokens, and its mistakes.

    Create it with :meth:`from_estimator`. It is plain data, which can be pickled. `to_html` returns
    one page without scripts that needs no network; notebooks show this page.

    Parameters
    ----------
    title : str
        Title of the page.
    data : DataSummary
        The texts: `classes`, `n_train`, `n_test`, `n_tokens`, `notes` and so on.
    models : list of ModelResult
        The reported model first, then the baselines and the majority class.
    baseline : str or None
        Name of the baseline in all comparisons: the logistic regression whose C is chosen by
        validation on the training documents. None if there is none.
    differences : DataFrame
        One row per other model: the reported model's `accuracy` minus that of the other, the
        `standard_error`, the numbers of texts that `only_ours` or `only_other` predicts correctly,
        and the `p_value` of McNemar's exact test.
    calibration : list of Calibration
        For the reported model, then the baseline: `name`, `bins` (a data frame) and `histogram`.
    confusion : ndarray of shape (n_classes + 1, n_classes)
        Numbers of texts by true class (the last row: classes that are not in training) and
        predicted class.
    tokens : list of ClassTokens
        The most important tokens of each class.
    mistakes : Mistakes
        The number of mistakes (`n_all`), the most confident ones (`shown`, a data frame), and their
        `explanation`.
    labels : DataFrame or None
        Training labels to check, as returned by :func:`label_issues`. None if training texts are
        unknown or had weights.
    made : dict of str to str
        How the report was made.

    Examples
    --------
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.inspection import ModelReport
    >>> from sklearn_clsattn import TextClassifier
    >>> texts, y = make_token_classification(n_samples=300, as_text=True, random_state=0)
    >>> report = ModelReport.from_estimator(
    ...     TextClassifier(), texts[200:], y[200:], X_train=texts[:200], y_train=y[:200]
    ... )
    >>> [model.name for model in report.models][:2]
    ['ClsAttentionClassifier', 'LogisticRegression, tuned']
    >>> report.to_html().startswith("<!doctype html>")
    True
    """

    title: str
    data: DataSummary
    models: list[ModelResult]
    baseline: str | None
    differences: pd.DataFrame
    calibration: list[Calibration]
    confusion: NDArray[Any]
    tokens: list[ClassTokens]
    mistakes: Mistakes
    labels: pd.DataFrame | None
    made: dict[str, str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X_test: Any,
        y_test: ArrayLike,
        *,
        X_train: Any = None,
        y_train: ArrayLike | None = None,
        n_top: int = 10,
        n_mistakes: int = 10,
        title: str = _TITLE,
        source: str = "",
        made: Mapping[str, str] | None = None,
        progress: Callable[[ModelResult], None] | None = None,
    ) -> Self:
        """Report on a model; fit it first if it is not fitted.

        Parameters
        ----------
        estimator : Pipeline, or classifier of this package
            A Pipeline from texts that ends in a classifier of this package, a fitted search over
            one, or a classifier. An unfitted one is cloned, fitted on the training data, and timed.
        X_test : sequence or matrix of length n_test
            Its input: texts, or a document-term matrix.
        y_test : array-like of shape (n_test,)
            The classes.
        X_train, y_train : sequence or matrix of length n_train, and array-like, default=None
            The training data. They are also used to fit baselines: for texts, logistic regression
            with TF-IDF of words and pairs; for other input, logistic regression on the same
            columns; both with C chosen by validation, and with scikit-learn's defaults.
            Without training data, important tokens are computed on the test texts.
        n_top : int, default=10
            Number of most important tokens to show for each class.
        n_mistakes : int, default=10
            Number of mistakes to show.
        title : str, default="Model report"
            Title of the page.
        source : str, default=""
            A description of where the texts come from.
        made : mapping of str to str, default=None
            Further facts about how the report was made, such as a command.
        progress : callable, default=None
            Called with the :class:`~sklearn_clsattn.comparison.ModelResult` of each model.

        Returns
        -------
        report : ModelReport
            The report.
        """
        for name, number in {"n_top": n_top, "n_mistakes": n_mistakes}.items():
            check_scalar(number, name, Integral, min_val=0)
        # 1) The documents and their classes.
        train, test, label_notes = _labelled_documents(estimator, X_train, y_train, X_test, y_test)
        # 2) All models, this one first.
        comparison = _compare(estimator, train, test, progress)
        ours = comparison.entrants[0]
        baselines = [one for one in comparison.entrants if one.result.kind == "baseline"]
        tuned = baselines[0] if baselines else None
        shown_models = [ours, *baselines[:1]]
        # 3) What this model says of the documents.
        read_test = read_documents(ours.estimator, test.X)
        read = read_test if train is None else read_documents(ours.estimator, train.X)
        return cls(
            title=title,
            data=_data_summary(
                source, train, test, read_test, ours.estimator, label_notes + comparison.notes
            ),
            models=comparison.models,
            baseline=None if tuned is None else tuned.result.name,
            differences=_differences(comparison, test.y),
            calibration=[calibration(one.result.name, one.proba, test.y) for one in shown_models],
            confusion=_confusion(ours, test),
            tokens=class_tokens(read, n_top=n_top),
            mistakes=_mistakes(test, ours, tuned, n_mistakes),
            labels=_labels_to_check(ours.estimator, train),
            made={"Model": str(ours.estimator), **(made or {}), "Versions": _versions()},
        )

    def to_html(self, *, fragment: bool = False) -> str:
        """Return the report as an HTML page without scripts that needs no network.

        Parameters
        ----------
        fragment : bool, default=False
            Whether to return an element for another page instead of a complete page.

        Returns
        -------
        html : str
            The HTML; write it as UTF-8.
        """
        return report_html(self, fragment=fragment)

    def _repr_html_(self) -> str:
        return framed(self.to_html(), repr(self), 6000)

    def __repr__(self) -> str:
        ours, *others = self.models
        reached = ", ".join(f"{model.name} {model.accuracy:.3f}" for model in others)
        return (
            f"<ModelReport: {self.data.n_test:,} test texts, accuracy {ours.accuracy:.3f} "
            f"({reached})>"
        )


def _labelled_documents(
    estimator: Any, X_train: Any, y_train: ArrayLike | None, X_test: Any, y_test: ArrayLike
) -> tuple[_Documents | None, _Documents, list[str]]:
    """Return the training documents, if any, the test documents, and notes on the labels."""
    if (X_train is None) != (y_train is None):
        raise ValueError("X_train and y_train belong together: pass both or neither")
    classifier = split_pipeline(estimator)[1]
    if classifier.multilabel_:
        raise ValueError("ModelReport supports one label per document, got a model of several.")
    train_labels: Any = None
    if X_train is not None:
        X_train, train_labels = _indexable(X_train, y_train)
    if train_labels is not None and not hasattr(classifier, "classes_"):
        classes = np.unique(train_labels).tolist()
    else:
        check_is_fitted(classifier)
        classes = classifier.classes_.tolist()
    train = None
    if train_labels is not None:
        if strange := set(train_labels.tolist()) ^ set(classes):
            raise ValueError(
                "X_train and y_train must be the data that the estimator was fitted on, but the "
                f"classes differ in {', '.join(sorted(map(repr, strange))[:5])}"
            )
        train = _Documents(X_train, encode_labels(train_labels, classes), classes)
    X_test, test_labels = _indexable(X_test, y_test)
    codes, notes = code_test_labels(test_labels, classes)
    return train, _Documents(X_test, codes, classes), notes


def _indexable(documents: Any, labels: ArrayLike | None) -> tuple[Any, NDArray[Any]]:
    """Return documents that can be indexed by row and their labels, of shape (n_documents,)."""
    if isinstance(documents, str):
        raise ValueError("expected a sequence of documents, got one text: pass [text]")
    if not hasattr(documents, "shape") and not hasattr(documents, "__iter__"):
        raise ValueError(f"expected a sequence of documents, got {documents!r}: pass a list")
    if sp.issparse(documents):
        documents = sp.csr_array(documents)  # other formats cannot be indexed by row
    elif not hasattr(documents, "shape"):
        documents = _object_array(documents)
    if not documents.shape[0]:
        raise ValueError("there are no documents: pass at least one")
    check_consistent_length(documents, labels)
    return documents, column_or_1d(labels)


def _object_array(items: Any) -> NDArray[np.object_]:
    """Return items as an array of one dimension, whatever they are."""
    return np.array([*items, None], dtype=object)[:-1]


def _compare(
    estimator: Any,
    train: _Documents | None,
    test: _Documents,
    progress: Callable[[ModelResult], None] | None,
) -> Comparison:
    """Return the comparison of the reported model, which comes first, with baselines."""
    fitted_models: list[FittedModel] = []
    notes: list[str] = []
    for fitted, fit_notes in _measured_models(estimator, train, test):
        fitted_models.append(fitted)
        notes += fit_notes
        if progress is not None:
            progress(fitted.result)
    n_train = 0
    if train is None:
        notes.append("Training texts were not given: tokens are those of the test texts.")
    else:
        n_train = len(train.y)
        if train.texts is None or test.texts is None:
            notes.append("The logistic regressions use the columns that the classifier uses.")
        else:
            notes += shared_texts(train.texts, test.texts)
    return Comparison(fitted_models, test.classes, n_train, len(test.y), notes)


def _measured_models(
    estimator: Any, train: _Documents | None, test: _Documents
) -> Iterator[tuple[FittedModel, list[str]]]:
    """Yield the reported model, the baselines and the majority class, with notes on their fits."""
    classifier = split_pipeline(estimator)[1]
    name = type(classifier).__name__
    # 1) The reported model. What `explain` raises is raised before the baselines are fitted.
    if train is not None and not hasattr(classifier, "classes_"):
        ours = Model(name, estimator, "ours")
        fitted, notes = fit_and_measure(ours, train.X, train.labels, test.X, test.y)
        yield fitted, notes
        estimator = fitted.estimator
        explain(estimator, test.X[:1], places=False)
    else:
        explain(estimator, test.X[:1], places=False)
        yield measure(name, "ours", estimator, test.X, test.y, test.classes), []
    # 2) Models fitted on the training documents.
    if train is None:
        yield _majority_class(test), []
        return
    baselines, X, X_test = _baselines(estimator, train, test)
    for model in baselines:
        yield fit_and_measure(model, X, train.labels, X_test, test.y)


def _majority_class(test: _Documents) -> FittedModel:
    """Return the prediction of the most frequent class of the test documents."""
    codes = test.y[test.y >= 0]
    vote = DummyClassifier(strategy="prior").fit(codes[:, None], codes)
    every_code = list(range(len(test.classes)))
    name = "majority class of the test texts"
    fitted = measure(name, "floor", vote, test.X, test.y, every_code)
    return replace(fitted, result=replace(fitted.result, predict_seconds=None))


def _baselines(estimator: Any, train: _Documents, test: _Documents) -> tuple[list[Model], Any, Any]:
    """Return the baselines and the majority class, and their training and test inputs."""
    _, tuned, defaults, *_, floor = default_models(len(train.y))
    if train.texts is not None and test.texts is not None:
        return [tuned, defaults, floor], train.texts, test.texts
    # For other documents, logistic regressions on the columns that the classifier uses.
    X = train.X
    X_test = test.X
    for _, step in split_pipeline(estimator)[0]:
        X = step.transform(X)
        X_test = step.transform(X_test)
    X = sp.csr_array(X, dtype=np.float64)
    X_test = sp.csr_array(X_test, dtype=np.float64)
    is_counts = np.array_equal(X.data, np.round(X.data))
    models = []
    for model in (tuned, defaults):
        scale, logistic = model.estimator[1:]
        if not is_counts:
            # Weights above 1, such as a ContextVectorizer's, are scaled.
            scale = TfidfTransformer() if X.max() > 1 else "passthrough"
        models.append(replace(model, estimator=make_pipeline(scale, logistic)))
    return [*models, floor], X, X_test


def _data_summary(
    source: str,
    train: _Documents | None,
    test: _Documents,
    read_test: ReadDocuments,
    estimator: Any,
    notes: list[str],
) -> DataSummary:
    """Return the numbers of texts and tokens."""
    _, names = named_classifier(estimator)
    n_known_tokens = np.diff(read_test.X.indptr)
    return DataSummary(
        source=source,
        classes=test.classes,
        train_sizes=None if train is None else train.class_sizes,
        test_sizes=test.class_sizes,
        n_train=None if train is None else len(train.y),
        n_test=len(test.y),
        n_unknown=int(np.count_nonzero(test.y < 0)),
        n_tokens=sum(CHARACTER_PREFIX not in str(name) for name in names),
        n_empty=int(np.count_nonzero(n_known_tokens == 0)),
        notes=notes,
    )


def _versions() -> str:
    """Return the versions of this package and of those that it depends on."""
    versions = [f"sklearn-clsattn {__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {version(name)}" for name in _DEPENDENCIES]
    return ", ".join(versions)


def calibration(name: str, proba: Array | None, y: Codes) -> Calibration:
    """Return the accuracy of predictions, `proba` (n_texts, n_classes), by their confidence."""
    assert proba is not None
    confidence = proba.max(axis=1)
    is_correct = proba.argmax(axis=1) == y
    # 1) The numbers of texts in bins of equal width.
    edges = np.linspace(1.0 / proba.shape[1], 1.0, _N_BINS + 1)
    histogram = np.bincount(edges[1:-1].searchsorted(confidence), minlength=_N_BINS)
    # 2) Accuracy and confidence in bins of equally many texts.
    predictions = pd.DataFrame({"confidence": confidence, "right": is_correct})
    by_bin = predictions.groupby(equal_bins(confidence, _N_BINS))
    ranges = by_bin["confidence"].agg(["min", "max"])
    bins = pd.DataFrame({"start": ranges["min"], "end": ranges["max"], "texts": by_bin.size()})
    bins = bins.join(by_bin.mean()).reset_index(drop=True)
    n_correct = by_bin["right"].sum()
    bins[["low", "high"]] = list(map(wilson_interval, n_correct, bins["texts"]))
    return Calibration(name, bins, histogram.tolist())


def _confusion(ours: FittedModel, test: _Documents) -> NDArray[Any]:
    """Return the confusion matrix (n_classes + 1, n_classes), unknown classes last."""
    codes = [*range(len(test.classes)), -1]
    square = confusion_matrix(test.y, ours.predicted, labels=codes)
    return square[:, :-1]  # no model predicts an unknown class


def _differences(comparison: Comparison, y: Codes) -> pd.DataFrame:
    """Return our accuracy less that of each other model, as `ModelReport` documents."""
    ours, *others = comparison.entrants
    is_correct = ours.predicted == y
    rows = []
    for other in others:
        other_correct = other.predicted == y
        n_only_ours = int(np.count_nonzero(is_correct & ~other_correct))
        n_only_other = int(np.count_nonzero(other_correct & ~is_correct))
        n_apart = n_only_ours + n_only_other
        by_text = is_correct.astype(np.float64) - other_correct
        rows.append(
            {
                "other": other.result.name,
                "accuracy": by_text.mean(),
                "standard_error": float(by_text.std() / np.sqrt(len(by_text))),
                "only_ours": n_only_ours,
                "only_other": n_only_other,
                "p_value": float(binomtest(n_only_ours, n_apart).pvalue) if n_apart else 1.0,
            }
        )
    return pd.DataFrame(rows).set_index("other")


def _mistakes(
    test: _Documents, ours: FittedModel, baseline: FittedModel | None, n_shown: int
) -> Mistakes:
    """Return the most confident mistakes, with the predictions of both models."""
    # 1) The mistakes, the most confident first; ties are in the order of the texts.
    assert ours.proba is not None
    wrong = np.flatnonzero((test.y >= 0) & (ours.predicted != test.y))
    order = np.argsort(-ours.proba[wrong].max(axis=1), kind="stable")
    positions = wrong[order[:n_shown]]
    true = test.y[positions]
    # 2) The predictions for them.
    # Labels are not of a type for strings, because they may hold lone surrogates.
    labels = pd.Series(test.classes, dtype=object)
    columns: dict[str, Any] = {"index": positions, "true": labels[true].array}
    columns |= _predictions(ours, positions, true, labels, "")
    if baseline is not None:
        columns |= _predictions(baseline, positions, true, labels, "baseline_")
    # 3) The explanations of our predictions.
    explanation = None
    if len(positions):
        rows = getattr(test.X, "iloc", test.X)[positions.tolist()]
        explanation = explain(ours.estimator, rows, y_true=columns["true"])
        explanation = replace(explanation, index=positions)
    return Mistakes(len(wrong), pd.DataFrame(columns), explanation)


def _predictions(
    model: FittedModel, positions: Codes, true: Codes, labels: pd.Series[Any], prefix: str
) -> dict[str, Any]:
    """Return a model's predictions for the texts at some positions, as columns of mistakes."""
    assert model.proba is not None
    predicted = model.predicted[positions]
    return {
        f"{prefix}predicted": labels[predicted].array,
        f"{prefix}probability": model.proba[positions, predicted],
        f"{prefix}true_probability": model.proba[positions, true],
    }


def _labels_to_check(estimator: Any, train: _Documents | None) -> pd.DataFrame | None:
    """Return the training texts whose labels the others contradict most; None without texts."""
    if train is None or not isinstance(split_pipeline(estimator)[1], ClsAttentionClassifier):
        return None
    labels = _object_array(train.classes)[train.y]
    with without_name_warnings():
        try:
            issues = label_issues(estimator, train.X, labels)
        except ValueError:  # the fit had weights
            return None
    issues = issues[issues["margin"] < 0].head(_N_LABELS)
    excerpts: list[str | None] = [None] * len(issues)
    if train.texts is not None:
        excerpts = [_excerpt(text) for text in train.texts[issues["document"]]]
    return issues.assign(excerpt=pd.Series(excerpts, index=issues.index, dtype=object))


def _excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _EXCERPT else f"{line[:_EXCERPT]}…"
