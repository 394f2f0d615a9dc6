"""What a model report holds: plain data, which the page and ``to_dict`` show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..explanation import Explanation


@dataclass(frozen=True)
class Spread:
    """How numbers are spread over texts.

    Parameters
    ----------
    low, median, high : float
        5%, half and 95% of the texts have at most so many.
    highest : float
        The highest number.
    """

    low: float
    median: float
    high: float
    highest: float


@dataclass(frozen=True)
class DataSummary:
    """The texts that a report is about.

    Parameters
    ----------
    source : str
        Where they come from, in words; may be empty.
    classes : list
        The classes of the model.
    train_sizes : list of int of length n_classes, or None
        Training texts of each class; None where they are not known.
    test_sizes : list of int of length n_classes
        Test texts of each class.
    n_train : int or None
        Training texts; None where they are not known.
    n_test : int
        Test texts, those of unknown classes included.
    n_unknown : int
        Test texts whose class training has not.
    n_tokens : int
        Tokens that the model knows.
    n_empty : int
        Test texts without any of them.
    train_words, test_words : Spread or None
        Words between white space in a text; None where documents are no texts.
    test_tokens : Spread
        Different tokens of a test text that the model knows.
    notes : list of str
        What a reader of the numbers must know.
    """

    source: str
    classes: list[Any]
    train_sizes: list[int] | None
    test_sizes: list[int]
    n_train: int | None
    n_test: int
    n_unknown: int
    n_tokens: int
    n_empty: int
    train_words: Spread | None
    test_words: Spread | None
    test_tokens: Spread
    notes: list[str]


@dataclass(frozen=True)
class SelectedToken:
    """A token that attention selects.

    Parameters
    ----------
    token : str
        Its name.
    selected, texts : int
        In how many texts it has the highest attention score, and in how many it is.
    label : object
        The class that its value speaks for most.
    """

    token: str
    selected: int
    texts: int
    label: Any


@dataclass(frozen=True)
class Concentration:
    """The share of attention that the most attended tokens of a text have together, on average.

    Parameters
    ----------
    n_tokens : int
        How many of them.
    share : float
        Of the attention among the tokens of a text.
    even_share : float
        The same if all attention scores were equal.
    """

    n_tokens: int
    share: float
    even_share: float


@dataclass(frozen=True)
class Selection:
    """Which tokens attention selects, and how concentrated it is.

    Parameters
    ----------
    texts : {"training", "test"}
        On which texts this was counted.
    n_texts : int
        How many of them have a token that the model knows.
    n_selected : int
        How many different tokens are selected in one of them or more.
    tokens : list of SelectedToken
        Those selected most often.
    concentration : list of Concentration
        For the most attended token, the 3 and the 10 most attended.
    evenly_over, even_evenly_over : float or None
        The median text's attention is as concentrated as if spread evenly over so many tokens
        (the exponential of its entropy); and the same if all scores were equal.
    cls_share : float or None
        The share that ``<cls>`` keeps, on average; None for a model without it.
    """

    texts: str
    n_texts: int
    n_selected: int
    tokens: list[SelectedToken]
    concentration: list[Concentration]
    evenly_over: float | None
    even_evenly_over: float | None
    cls_share: float | None


@dataclass(frozen=True, eq=False)
class Case:
    """One test text worth reading.

    Parameters
    ----------
    index : int
        Its place among the test texts, from 0.
    true, predicted : object
        Its class, and the one that we predict.
    probability, true_probability : float
        Our probabilities of these two, the predicted and the true one.
    baseline_predicted : object
        What the baseline predicts; None without one.
    baseline_probability, baseline_true_probability : float or None
        Its probabilities of what it predicts and of the true class.
    explanation : Explanation
        Ours, of this one text.
    """

    index: int
    true: Any
    predicted: Any
    probability: float
    true_probability: float
    baseline_predicted: Any
    baseline_probability: float | None
    baseline_true_probability: float | None
    explanation: Explanation


@dataclass(frozen=True, eq=False)
class Cases:
    """Test texts of one kind.

    Parameters
    ----------
    n_all : int
        How many there are.
    shown : list of Case
        The most telling ones.
    """

    n_all: int
    shown: list[Case]
