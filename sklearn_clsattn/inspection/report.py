"""The report of a fitted model: its measurements, its tokens and its mistakes."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    Entrant,
    Model,
    ModelResult,
    code_test_labels,
    default_models,
    equal_bins,
    measure,
    score,
    shared_texts,
)
from ..text._context_vectorizer import CHARACTER_PREFIX
from ._explain import explain
from ._label_issues import label_issues
from ._report_page import report_html, wilson_interval
from .explanation import Explanation
from .feature_origins import split_pipeline, without_name_warnings
from .important_tokens import ClassTokens, class_tokens, named_classifier, read_documents
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
    histogram: list[int]  # (10,) numbers of texts in bins of equal width


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
    """Documents, and positions of their classes, -1 for unknown ones."""

    documents: Any
    y: Codes  # (n_documents,)

    def texts(self) -> NDArray[np.object_] | None:
        """Return the documents as an array of texts; None if they are not texts."""
        if getattr(self.documents, "ndim", 1) != 1:
            return None
        texts = np.array([*self.documents, None], dtype=object)[:-1]  # one dimension in any case
        return texts if all(isinstance(text, str) for text in texts) else None

    def sizes(self, n_classes: int) -> list[int]:
        """Return the number of documents of each class."""
        return np.bincount(self.y[self.y >= 0], minlength=n_classes).tolist()


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
    >>> from sklearn_clsattn.text import make_text_classifier
    >>> texts, y = make_token_classification(n_samples=300, as_text=True, random_state=0)
    >>> report = ModelReport.from_estimator(
    ...     make_text_classifier(), texts[200:], y[200:], X_train=texts[:200], y_train=y[:200]
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
        if (X_train is None) != (y_train is None):
            raise ValueError("X_train and y_train belong together: pass both or neither")
        classifier = split_pipeline(estimator)[1]
        if classifier.multilabel_:
            raise ValueError("ModelReport supports one label per document, got a model of several.")
        fits = X_train is not None and not hasattr(classifier, "classes_")
        train_labels: Any = None
        if X_train is not None:
            X_train, train_labels = _indexable(X_train, y_train)
        if fits:
            classes = np.unique(train_labels).tolist()
        else:
            check_is_fitted(classifier)
            classes = classifier.classes_.tolist()
        if train_labels is not None and (strange := set(train_labels.tolist()) ^ set(classes)):
            raise ValueError(
                "X_train and y_train must be the data that the estimator was fitted on, but the "
                f"classes differ in {', '.join(sorted(map(repr, strange))[:5])}"
            )
        X_test, labels = _indexable(X_test, y_test)
        y, notes = code_test_labels(labels, classes)
        test, train = _Documents(X_test, y), None
        if train_labels is not None:
            train = _Documents(X_train, encode_labels(train_labels, classes))
        estimator, entrants, more = _measured(estimator, train, test, classes, fits, progress)
        of_test = read_documents(estimator, X_test)
        read = of_test if train is None else read_documents(estimator, X_train)
        names, n_classes = named_classifier(estimator)[1], len(classes)
        first, *others = entrants
        # The first baseline is the tuned one.
        baseline = next((one for one in others if one.result.kind == "baseline"), None)
        compared: dict[str, Any] = {"": first}  # these have probabilities
        if baseline is not None:
            compared["baseline_"] = baseline
        data = DataSummary(
            source=source,
            classes=classes,
            train_sizes=None if train is None else train.sizes(n_classes),
            test_sizes=test.sizes(n_classes),
            n_train=None if train is None else len(train.y),
            n_test=len(y),
            n_unknown=int(np.count_nonzero(y < 0)),
            n_tokens=sum(CHARACTER_PREFIX not in str(name) for name in names),
            n_empty=int(np.count_nonzero(np.diff(of_test.X.indptr) == 0)),
            notes=notes + more,
        )
        versions = [f"sklearn-clsattn {__version__}", f"Python {platform.python_version()}"]
        versions += [f"{name} {version(name)}" for name in _DEPENDENCIES]
        return cls(
            title=title,
            data=data,
            models=[entrant.result for entrant in entrants],
            baseline=None if baseline is None else baseline.result.name,
            differences=_differences(first, others, y),
            calibration=[calibration(one.result.name, one.proba, y) for one in compared.values()],
            confusion=confusion_matrix(y, first.predicted, labels=[*range(n_classes), -1])[:, :-1],
            tokens=class_tokens(read, n_top=n_top),
            mistakes=_mistakes(estimator, test, compared, classes, n_mistakes),
            labels=_labels_to_look_at(estimator, train, classes),
            made={"Model": str(estimator), **(made or {}), "Versions": ", ".join(versions)},
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
        named = [f"{model.name} {model.accuracy:.3f}" for model in self.models[1:]]
        return (
            f"<ModelReport: {self.data.n_test:,} test texts, accuracy "
            f"{self.models[0].accuracy:.3f} ({', '.join(named)})>"
        )


def _measured(
    estimator: Any,
    train: _Documents | None,
    test: _Documents,
    classes: list[Any],
    fits: bool,
    progress: Callable[[ModelResult], None] | None,
) -> tuple[Any, list[Entrant], list[str]]:
    """Return the fitted estimator, all models with ours first, and notes on them."""
    entrants, notes = list[Entrant](), list[str]()

    def enter(entrant: Entrant, more: Sequence[str] = ()) -> None:
        entrants.append(entrant)
        notes.extend(more)
        if progress is not None:
            progress(entrant.result)

    name, X, y = type(split_pipeline(estimator)[1]).__name__, test.documents, test.y
    if fits and train is not None:
        ours = Model(name, estimator, "ours")
        enter(*measure(ours, train.documents, np.array(classes)[train.y], X, y))
        estimator = entrants[0].estimator
    # Raise what `explain` raises before anything else is measured.
    explain(estimator, X[:1], places=False)
    if not fits:
        enter(score(name, "ours", estimator, X, y, classes))
    if train is None:
        known, codes = y[y >= 0], list(range(len(classes)))
        vote = DummyClassifier(strategy="prior").fit(known[:, None], known)
        name = "majority class of the test texts"
        enter(score(name, "floor", vote, X, y, codes, predict_seconds=None))
        notes.append("Training texts were not given: tokens are those of the test texts.")
        return estimator, entrants, notes
    for one, of_train, of_test in _baselines(estimator, train, test):
        enter(*measure(one, of_train, np.array(classes)[train.y], of_test, y))
    texts, test_texts = train.texts(), test.texts()
    if texts is None or test_texts is None:
        notes.append("The logistic regressions use the columns that the classifier uses.")
    else:
        notes += shared_texts(texts, test_texts)
    return estimator, entrants, notes


def _indexable(documents: Any, labels: ArrayLike | None) -> tuple[Any, NDArray[Any]]:
    """Return documents that can be indexed by row and their labels, of shape (n_documents,)."""
    if isinstance(documents, str):
        raise ValueError("expected a sequence of documents, got one text: pass [text]")
    if not hasattr(documents, "shape") and not hasattr(documents, "__iter__"):
        raise ValueError(f"expected a sequence of documents, got {documents!r}: pass a list")
    if sp.issparse(documents):
        documents = sp.csr_array(documents)  # other formats cannot be indexed by row
    elif not hasattr(documents, "shape"):
        # An array, as of texts, one dimension in any case.
        documents = np.array([*documents, None], dtype=object)[:-1]
    if not documents.shape[0]:
        raise ValueError("there are no documents: pass at least one")
    check_consistent_length(documents, labels)
    return documents, column_or_1d(labels)


def _baselines(
    estimator: Any, train: _Documents, test: _Documents
) -> Iterator[tuple[Model, Any, Any]]:
    """Yield the models to compare with, and what they are to fit on and to predict for."""
    _, tuned, defaults, *_, floor = default_models(len(train.y))
    texts, test_texts = train.texts(), test.texts()
    if texts is not None and test_texts is not None:
        yield from ((one, texts, test_texts) for one in (tuned, defaults, floor))
        return
    steps, _ = split_pipeline(estimator)
    X, X_test = train.documents, test.documents
    for _, step in steps:
        X, X_test = step.transform(X), step.transform(X_test)
    X, X_test = (sp.csr_array(one, dtype=np.float64) for one in (X, X_test))
    for one in (tuned, defaults):
        scale, logistic = one.estimator[1:]
        if not np.array_equal(X.data, np.round(X.data)):
            # Weights that are no counts: those above 1, such as a ContextVectorizer's, are scaled.
            scale = TfidfTransformer() if X.max() > 1 else "passthrough"
        yield replace(one, estimator=make_pipeline(scale, logistic)), X, X_test
    yield floor, X, X_test


def calibration(name: str, proba: Array, y: Codes) -> Calibration:
    """Return the accuracy of predictions, `proba` (n_texts, n_classes), by their confidence."""
    edges = np.linspace(1.0 / proba.shape[1], 1.0, _N_BINS + 1)
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    histogram = np.bincount(edges[1:-1].searchsorted(confidence), minlength=_N_BINS)
    predictions = pd.DataFrame({"confidence": confidence, "right": right})
    in_bins = predictions.groupby(equal_bins(confidence, _N_BINS))
    of_bins = in_bins["confidence"]
    columns = {"start": of_bins.min(), "end": of_bins.max(), "texts": in_bins.size()}
    bins = pd.DataFrame(columns).join(in_bins.mean()).reset_index(drop=True)
    n_right = in_bins["right"].sum()
    intervals = [wilson_interval(*pair) for pair in zip(n_right, bins["texts"], strict=True)]
    bins[["low", "high"]] = intervals
    return Calibration(name, bins, histogram.tolist())


def _differences(ours: Entrant, others: list[Entrant], y: Codes) -> pd.DataFrame:
    """Return our accuracy less that of each other model, as `ModelReport` documents."""
    rows = []
    for other in others:
        by_text = (ours.predicted == y).astype(np.float64) - (other.predicted == y)
        only_ours, only_other = int((by_text > 0).sum()), int((by_text < 0).sum())
        apart = only_ours + only_other
        p_value = float(binomtest(only_ours, apart).pvalue) if apart else 1.0
        error = float(by_text.std() / np.sqrt(len(by_text)))
        rows.append((other.result.name, by_text.mean(), error, only_ours, only_other, p_value))
    columns = ["other", "accuracy", "standard_error", "only_ours", "only_other", "p_value"]
    return pd.DataFrame(rows, columns=columns).set_index("other")


def _mistakes(
    estimator: Any, test: _Documents, compared: dict[str, Any], classes: list[Any], n_shown: int
) -> Mistakes:
    """Return the most confident mistakes, with the predictions of all models in `compared`."""
    ours, y = compared[""], test.y
    wrong = np.flatnonzero((y >= 0) & (ours.predicted != y))
    # Ties are in the order of the texts.
    order = np.argsort(-ours.proba[wrong].max(axis=1), kind="stable")
    positions = wrong[order[:n_shown]]
    # Not of a type for strings: labels may hold lone surrogates.
    labels = pd.Series(classes, dtype=object)
    columns: dict[str, Any] = {"index": positions, "true": labels[y[positions]].array}
    for prefix, entrant in compared.items():
        predicted = entrant.predicted[positions]
        columns[f"{prefix}predicted"] = labels[predicted].array
        columns[f"{prefix}probability"] = entrant.proba[positions, predicted]
        columns[f"{prefix}true_probability"] = entrant.proba[positions, y[positions]]
    explanation = None
    if len(positions):
        rows = getattr(test.documents, "iloc", test.documents)
        explanation = explain(estimator, rows[positions.tolist()], y_true=columns["true"])
        explanation = replace(explanation, index=positions)
    return Mistakes(len(wrong), pd.DataFrame(columns), explanation)


def _labels_to_look_at(
    estimator: Any, train: _Documents | None, classes: list[Any]
) -> pd.DataFrame | None:
    """Return the training texts whose labels the others contradict most, if these are known."""
    if train is None or not isinstance(split_pipeline(estimator)[1], ClsAttentionClassifier):
        return None
    labels = np.array([*classes, None], dtype=object)[:-1][train.y]
    with without_name_warnings():
        try:
            issues = label_issues(estimator, train.documents, labels)
        except ValueError:  # the fit had weights
            return None
    issues = issues[issues["margin"] < 0].head(_N_LABELS)
    texts = train.texts()
    excerpts: list[Any] = [None] * len(issues)
    if texts is not None:
        words = (" ".join(text.split()) for text in texts[issues["document"]])
        excerpts = [one if len(one) <= _EXCERPT else f"{one[:_EXCERPT]}…" for one in words]
    return issues.assign(excerpt=pd.Series(excerpts, index=issues.index, dtype=object))
