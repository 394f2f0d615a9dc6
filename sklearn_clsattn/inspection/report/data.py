"""The content of a model report, as plain data."""

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from ...comparison import ClassTokens, ModelResult
from ..explanation import Explanation


@dataclass(frozen=True)
class Spread:
    """Quantiles and the maximum of a number over texts."""

    low: float  # the 5% quantile
    median: float
    high: float  # the 95% quantile
    highest: float


@dataclass(frozen=True)
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
    train_words: Spread | None  # words between white space in a text; None for a token matrix
    test_words: Spread | None
    test_tokens: Spread  # distinct tokens of the vocabulary in a test text
    notes: list[str]  # caveats about the numbers


@dataclass(frozen=True)
class Difference:
    """Our accuracy less another model's, on the same texts."""

    other: str  # the other model
    accuracy: float  # ours less its
    standard_error: float  # of the paired difference
    only_ours: int  # texts that only our model predicts right, as McNemar's test counts them
    only_other: int
    p_value: float  # of McNemar's exact test


@dataclass(frozen=True)
class CalibrationCurve:
    """Accuracy by confidence, the probability of the predicted class."""

    name: str  # the model
    edges: list[float]  # (n_bins + 1,) of the joined bins
    texts: list[int]  # (n_bins,) numbers of texts
    confidence: list[float]  # (n_bins,) means
    accuracy: list[float]  # (n_bins,)
    low: list[float]  # (n_bins,) ends of Wilson's 95% interval of the accuracy
    high: list[float]
    histogram: list[int]  # (10,) numbers of texts in the bins of equal width


@dataclass(frozen=True)
class Confusion:
    """Numbers of texts by true and predicted class."""

    counts: list[list[int]]  # (n_classes, n_classes)
    unknown: list[int]  # (n_classes,) predictions for texts of classes that are not in training


@dataclass(frozen=True)
class SelectedToken:
    """A token that attention selects."""

    token: str
    selected: int  # texts in which it has the highest attention score
    texts: int  # texts that have it
    label: Any  # the class with the highest of its values


@dataclass(frozen=True)
class Concentration:
    """The mean share of attention of a text's most attended tokens together."""

    n_tokens: int
    share: float  # of the attention among the tokens of a text
    even_share: float  # the same if all attention scores were equal


@dataclass(frozen=True)
class Selection:
    """Which tokens attention selects, and how concentrated it is."""

    texts: str  # "training" or "test"
    n_texts: int  # those with a token of the vocabulary
    n_selected: int  # distinct tokens selected in any of them
    tokens: list[SelectedToken]  # those selected most often
    concentration: list[Concentration]  # of the 1, 3 and 10 most attended tokens
    evenly_over: float | None  # the exponential of the median entropy of attention
    even_evenly_over: float | None  # the same if all attention scores were equal
    cls_share: float | None  # mean share of ``<cls>``; None for a model without it


@dataclass(frozen=True)
class Prediction:
    """A model's prediction for one text."""

    label: Any
    probability: float  # of the predicted class
    true_probability: float  # of the true class


@dataclass(frozen=True, eq=False)
class Case:
    """One test text that the report shows."""

    index: int  # its position among the test texts
    true: Any
    ours: Prediction
    baseline: Prediction | None
    explanation: Explanation  # of our prediction for this text alone


@dataclass(frozen=True, eq=False)
class Cases:
    """Test texts of one kind."""

    n_all: int
    shown: list[Case]  # the most informative ones


@dataclass(frozen=True)
class Hinge:
    """A test text whose prediction hangs on one word."""

    index: int  # its position among the test texts
    label: Any  # predicted
    other: Any  # predicted without the word
    before: str  # what stands before the word, where it stands first
    word: str
    after: str
    probability: float  # of the predicted class
    without: float  # the same without the word


@dataclass(frozen=True)
class Hinges:
    """On how many words, or tokens, decisions hang: the fewest that change them if removed."""

    unit: str  # "word" or "token"
    n_examined: int  # test texts
    bins: list[tuple[int, int]]  # (n_bins,) first and last numbers of words
    texts: list[int]  # (n_bins,) numbers of texts
    n_never: int  # texts whose prediction no removal changes, or none that was found
    median: float | None
    n_proved: int  # texts for which fewer are proved not to do
    shown: list[Hinge]  # some that hang on one


@dataclass(frozen=True)
class LabelIssue:
    """A training text whose label the other texts contradict, by an estimate."""

    index: int  # its position among the training texts
    label: Any
    suggested: Any  # the most probable class by the model without it
    probability: float  # of the label, by the model without it
    excerpt: str | None


@dataclass(frozen=True)
class LabelIssues:
    """Training texts with labels to look at."""

    n_train: int
    shown: list[LabelIssue]  # the first of all, ranked; no count of wrong labels


@dataclass(frozen=True, eq=False, repr=False)
class ReportData:
    """The fields of a report, which :class:`.ModelReport` documents."""

    title: str
    data: DataSummary
    models: list[ModelResult]
    baseline: str | None
    differences: list[Difference]
    calibration: list[CalibrationCurve]
    confusion: Confusion
    tokens: list[ClassTokens]
    selection: Selection
    mistakes: Cases
    ours_right: Cases
    baseline_right: Cases
    hinges: Hinges | None
    labels: LabelIssues | None
    made: dict[str, str]


def plain(value: Any) -> Any:
    """Return a value of a report as dictionaries, lists and values that JSON can hold."""
    if isinstance(value, Explanation):
        explained = value.to_dict()
        (document,) = explained.pop("documents")
        return plain({**explained, **document})
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
