"""The numbers of a report, from the predictions of models."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import confusion_matrix

from ..._classifier import ClsAttentionClassifier
from ...comparison import Entrant
from .._explain import explain
from .._label_issues import label_issues
from ..explanation import Explanation
from ..feature_origins import without_name_warnings
from .predictions import Codes, Predictions, take, texts_of

Array = NDArray[np.float64]

_N_BINS = 10
# With fewer texts, a bin's accuracy is too uncertain, and the bin is joined with its neighbour.
_LEAST_IN_BIN = 20
_N_LABELS = 15
_EXCERPT = 140  # characters


@dataclass(frozen=True, eq=False)
class DataSummary:
    """The texts of a report; what is not known of training texts is None."""

    source: str  # where they come from, in words; may be empty
    classes: list[Any]
    train_sizes: list[int] | None  # (n_classes,) training texts of each class
    test_sizes: list[int]  # (n_classes,)
    n_train: int | None
    n_test: int  # with those of unknown classes
    n_unknown: int  # test texts of classes that are not in training
    n_tokens: int  # in the model's vocabulary
    n_empty: int  # test texts without any of them
    # Quantiles 5%, 50%, 95% and 100% over texts, of the number of words between white space, which
    # a token matrix has not, and of distinct tokens of the vocabulary.
    train_words: list[float] | None
    test_words: list[float] | None
    test_tokens: list[float]
    notes: list[str]  # caveats about the numbers


@dataclass(frozen=True, eq=False)
class Calibration:
    """A model's accuracy by confidence, the probability of the predicted class."""

    name: str  # of the model
    # A row a bin, of at least 20 texts where there are so many: `start` and `end`, the number of
    # `texts`, their mean `confidence`, the share that is `right`, and Wilson's 95% interval of it,
    # from `low` to `high`.
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


def data_summary(given: Predictions, source: str) -> DataSummary:
    """Return the summary of the documents, which come from `source`."""
    n_tokens, train = np.diff(given.X.indptr), given.y_train

    def sizes(y: Codes) -> list[int]:
        return np.bincount(y[y >= 0], minlength=len(given.classes)).tolist()

    return DataSummary(
        source=source,
        classes=given.classes,
        train_sizes=None if train is None else sizes(train),
        test_sizes=sizes(given.y),
        n_train=None if train is None else len(train),
        n_test=len(given.y),
        n_unknown=int(np.count_nonzero(given.y < 0)),
        n_tokens=given.X.shape[1],
        n_empty=int(np.count_nonzero(n_tokens == 0)),
        train_words=_words(given.train_documents),
        test_words=_words(given.documents),
        test_tokens=_spread(n_tokens),
        notes=given.notes,
    )


def _words(documents: Any) -> list[float] | None:
    """Return the spread of the numbers of words; None if documents are not texts."""
    texts = texts_of(documents)
    return None if texts is None else _spread(np.array([len(text.split()) for text in texts]))


def _spread(numbers: NDArray[np.intp]) -> list[float]:
    return np.quantile(numbers, [0.05, 0.5, 0.95, 1.0], method="inverted_cdf").tolist()


def calibration(name: str, proba: Array, y: Codes, *, least: int = _LEAST_IN_BIN) -> Calibration:
    """Return the accuracy of predictions, `proba` (n_texts, n_classes), by their confidence."""
    edges = np.linspace(1.0 / proba.shape[1], 1.0, _N_BINS + 1)
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    histogram = np.bincount(edges[1:-1].searchsorted(confidence), minlength=_N_BINS)
    joined, total = [edges[0]], 0
    for edge, n in zip(edges[1:], histogram, strict=True):
        total += n
        if total >= max(least, 1):
            joined.append(edge)
            total = 0
    # The remaining texts join the last bin.
    joined = [*joined[: max(1, len(joined) - 1)], edges[-1]]
    numbers = np.searchsorted(joined[1:-1], confidence)
    predictions = pd.DataFrame({"confidence": confidence, "right": right}).groupby(numbers)
    bins = predictions.mean()
    bins.insert(0, "texts", predictions.size())
    bins.insert(0, "end", joined[1:])
    bins.insert(0, "start", joined[:-1])
    n_right = predictions["right"].sum()
    intervals = [wilson_interval(*pair) for pair in zip(n_right, bins["texts"], strict=True)]
    bins[["low", "high"]] = intervals
    return Calibration(name, bins, histogram.tolist())


def wilson_interval(n_right: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95% interval of the share `n_right` / `n`."""
    interval = binomtest(n_right, n).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def differences(given: Predictions) -> pd.DataFrame:
    """Return our accuracy less that of each other model, as `ModelReport` documents."""
    ours, *others = given.entrants
    rows = []
    for other in others:
        by_text = (ours.predicted == given.y).astype(np.float64) - (other.predicted == given.y)
        only_ours, only_other = int((by_text > 0).sum()), int((by_text < 0).sum())
        apart = only_ours + only_other
        p_value = float(binomtest(only_ours, apart).pvalue) if apart else 1.0
        error = float(by_text.std() / np.sqrt(len(by_text)))
        rows.append((other.result.name, by_text.mean(), error, only_ours, only_other, p_value))
    columns = ["other", "accuracy", "standard_error", "only_ours", "only_other", "p_value"]
    return pd.DataFrame(rows, columns=columns).set_index("other")


def confusions(y: Codes, predicted: Codes, n_classes: int) -> NDArray[np.intp]:
    """Count texts by true class `y`, -1 in the last row, and prediction, (n_classes + 1, n)."""
    counts = confusion_matrix(y, predicted, labels=np.arange(-1, n_classes))[:, 1:]
    return np.roll(counts, -1, axis=0)


def mistakes(given: Predictions, n_shown: int) -> Mistakes:
    """Return our most confident mistakes, with explanations."""
    ours, y, classes = given.entrants[0], given.y, given.classes
    assert ours.proba is not None
    wrong = np.flatnonzero((y >= 0) & (ours.predicted != y))
    # Ties are in the order of the texts.
    order = np.argsort(-ours.proba[wrong].max(axis=1), kind="stable")
    positions = wrong[order[:n_shown]]

    def labels(codes: Codes) -> pd.Series:
        # Not of a type for strings: labels may hold lone surrogates.
        return pd.Series([classes[code] for code in codes], dtype=object)

    def predictions(entrant: Entrant, prefix: str) -> dict[str, Any]:
        assert entrant.proba is not None
        predicted = entrant.predicted[positions]
        return {
            f"{prefix}predicted": labels(predicted),
            f"{prefix}probability": entrant.proba[positions, predicted],
            f"{prefix}true_probability": entrant.proba[positions, y[positions]],
        }

    columns = {"index": positions, "true": labels(y[positions]), **predictions(ours, "")}
    if given.baseline is not None:
        columns |= predictions(given.baseline, "baseline_")
    explanation = None
    if len(positions):
        documents = take(given.documents, positions.tolist())
        explanation = explain(given.estimator, documents, y_true=columns["true"])
        explanation = replace(explanation, index=positions)
    return Mistakes(len(wrong), pd.DataFrame(columns), explanation)


def labels_to_look_at(given: Predictions) -> pd.DataFrame | None:
    """Return the training texts whose labels the others contradict most, if these are known."""
    classifier, X, y = given.classifier, given.X_train, given.y_train
    if X is None or y is None or not isinstance(classifier, ClsAttentionClassifier):
        return None
    with without_name_warnings():
        try:
            issues = label_issues(classifier, X, classifier.classes_[y])
        except ValueError:  # the fit had weights
            return None
    issues = issues[issues["margin"] < 0].head(_N_LABELS)
    texts = texts_of(given.train_documents)
    excerpts = [None if texts is None else _excerpt(texts[at]) for at in issues["document"]]
    return issues.assign(excerpt=pd.Series(excerpts, index=issues.index, dtype=object))


def _excerpt(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
