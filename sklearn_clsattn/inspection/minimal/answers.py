"""Compute the smallest changes of documents: the questions, checked and answered one by one."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax
from sklearn.utils import check_scalar

from ..terms import DecisionTerms
from .addition import fewest_added
from .margin import (
    added_logs,
    attention_logs,
    margin_of,
    mean,
    means,
    present_class,
    with_cls,
)
from .minimal_set import MinimalSet
from .minimal_sets import MinimalSets
from .removal import Found, fewest_removed
from .sufficiency import fewest_sufficient
from .units import Units, tokens_of, words_of

Array = NDArray[np.float64]

_CHANGES = ("tokens", "words", "add")


def counterfactuals(
    explanation: DecisionTerms, change: str, to: Any, probability: float | None, time_limit: float
) -> MinimalSets:
    """Return the smallest changes, with the parameters of `Explanation.counterfactual`."""
    _check(explanation, "a counterfactual", time_limit)
    if change not in _CHANGES:
        raise ValueError(f"change must be one of {', '.join(map(repr, _CHANGES))}, got {change!r}")
    labels, number = explanation.classes.tolist(), None
    if to is not None:
        if np.ndim(to) != 0 or to not in labels:
            raise ValueError(f"to must be None or one of the classes {labels}, got {to!r}")
        if probability is not None:
            raise ValueError("pass to (a class to reach) or probability (to cross), not both")
        number = labels.index(to)
    threshold, probability = _threshold(explanation, probability)
    sets = []
    for one in explanation:
        present = present_class(one, threshold)
        marks: tuple[NDArray[np.intp], ...] = ()
        if change == "add":
            found = fewest_added(one, number, threshold)
            steps = _steps_of_addition(one, found.numbers)
            assert one.model is not None
            names = one.model.names[found.numbers]
        else:
            units = words_of(one) if change == "words" else tokens_of(one)
            found = fewest_removed(units, number, threshold, time_limit)
            steps = _steps_of_removal(units, found.numbers)
            names = units.names[found.numbers]
            marks = units.marks(found.numbers)
        margins, probabilities, after = _effects(one, np.stack(steps), present, threshold)
        if not len(names):
            after = present
        elif number is not None:
            after = number
        labelled = labels[present], labels[after]
        sets.append(_set(one, change, found, names, marks, labelled, margins, probabilities))
    return MinimalSets(explanation, tuple(sets), probability)


def sufficient_sets(
    explanation: DecisionTerms, probability: float | None, smallest: bool, time_limit: float
) -> MinimalSets:
    """Return the smallest guarantees, with the parameters of `Explanation.sufficient`."""
    _check(explanation, "a sufficient set", time_limit)
    threshold, probability = _threshold(explanation, probability)
    sets = []
    for one in explanation:
        found = fewest_sufficient(one, threshold, smallest=smallest, time_limit=time_limit)
        present, units = present_class(one, threshold), tokens_of(one)
        names, marks = units.names[found.numbers], units.marks(found.numbers)
        margins = margin_of(one, present, threshold).lowest(found.numbers)
        labelled = (explanation.classes.tolist()[present],) * 2
        unknown = np.full(len(margins), np.nan)
        sets.append(_set(one, "keep", found, names, marks, labelled, margins, unknown))
    return MinimalSets(explanation, tuple(sets), probability)


def _check(many: DecisionTerms, question: str, time_limit: float) -> None:
    """Raise ValueError unless an explanation has what exact answers need."""
    if many.model is None:
        raise ValueError(
            f"{question} is exact for one layer of attention alone; this model has two"
        )
    if len(many.classes) > 2 and len(many.targets) < len(many.classes):
        raise ValueError(
            f"{question} compares classes, but only {many.targets.tolist()[0]!r} was explained: "
            "explain without target"
        )
    check_scalar(time_limit, "time_limit", Real, min_val=0, include_boundaries="neither")


def _threshold(explanation: DecisionTerms, probability: float | None) -> tuple[float, float | None]:
    """Return the log-odds of the explained one of two classes at a probability, and this."""
    if probability is None:
        return 0.0, None
    if len(explanation.classes) > 2:
        raise ValueError("probability is for two classes alone; pass to, a class to reach")
    check_scalar(
        probability, "probability", Real, min_val=0, max_val=1, include_boundaries="neither"
    )
    return float(logit(probability)), probability


def _steps_of_removal(units: Units, removed: NDArray[np.intp]) -> list[Array]:
    """Return the decisions without any, the first, the first two, ... of some units."""
    one = units.document
    logs, values = attention_logs(one), with_cls(one.values)
    if units.are_tokens:
        # From the last one removed on, as those before may have all of the attention.
        left = mean(np.delete(logs, removed), np.delete(values, removed, axis=0))
        steps = list(means(*left, logs[removed[::-1]], values[removed[::-1]]))[::-1]
        return [one.intercept + step for step in steps]
    gone, steps = np.zeros(len(units.names), dtype=bool), []
    for n_removed in range(len(removed) + 1):
        gone[removed[:n_removed]] = True
        with np.errstate(divide="ignore"):
            left_logs = logs + np.log(np.append(units.weights(gone), 1.0))
        steps.append(one.intercept + mean(left_logs, values)[1])
    return steps


def _steps_of_addition(one: DecisionTerms, columns: NDArray[np.intp]) -> list[Array]:
    """Return the decisions with none, the first, the first two, ... of some tokens added."""
    assert one.model is not None
    start = mean(attention_logs(one), with_cls(one.values))
    steps = means(*start, added_logs(one)[columns], one.model.values[columns])
    return [one.intercept + step for step in steps]


def _effects(
    one: DecisionTerms, decisions: Array, present: int, threshold: float
) -> tuple[Array, Array, int]:
    """Return the present class's margins and probabilities after each step, and the last class."""
    if len(one.classes) == 2:
        explained = one.classes.tolist().index(one.targets.tolist()[0])
        side = 1.0 if explained == present else -1.0
        margins = side * (decisions[:, 0] - threshold)
        after = present if margins[-1] > 0 else 1 - present
        return margins, expit(side * decisions[:, 0]), after
    others = np.arange(len(one.classes)) != present
    margins = decisions[:, present] - decisions[:, others].max(axis=1)
    return margins, softmax(decisions, axis=1)[:, present], int(decisions[-1].argmax())


def _set(
    one: DecisionTerms,
    change: str,
    found: Found,
    names: NDArray[np.object_],
    marks: tuple[NDArray[np.intp], ...],
    labels: tuple[Any, Any],
    margins: Array,
    probabilities: Array,
) -> MinimalSet:
    document, is_found, tokens = int(one.index[0]), found.chosen is not None, tuple(map(str, names))
    what = (document, change, is_found, tokens, found.numbers, found.at_least)
    return MinimalSet(*what, *labels, margins, probabilities, marks)
