"""Compute the smallest changes of documents: the questions, checked and answered one by one."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax
from sklearn.utils import check_scalar

from ..terms import DecisionTerms
from .addition import added_logs, fewest_added
from .lead import attention_logs, checked, mean, means, of_class, present_class
from .minimal_set import MinimalSet
from .minimal_sets import MinimalSets
from .removal_of_tokens import Found, fewest_removed
from .removal_of_words import Removal, Words, fewest_words, words_of
from .sufficiency import fewest_sufficient

Array = NDArray[np.float64]

CHANGES = ("tokens", "words", "add")


def counterfactuals(
    explanation: DecisionTerms, change: str, to: Any, probability: float | None, time_limit: float
) -> MinimalSets:
    """Return the smallest changes, with the parameters of `Explanation.counterfactual`."""
    checked(explanation, "a counterfactual")
    if change not in CHANGES:
        raise ValueError(f"change must be one of {', '.join(map(repr, CHANGES))}, got {change!r}")
    number = _class_number(explanation, to)
    if probability is not None and to is not None:
        raise ValueError("pass to (a class to reach) or probability (to cross), not both")
    threshold, probability = _threshold(explanation, probability)
    check_scalar(time_limit, "time_limit", Real, min_val=0, include_boundaries="neither")
    sets = []
    for one in explanation:
        if change == "add":
            found = fewest_added(one, number, threshold)
            sets.append(_added(one, found, number, threshold))
        elif change == "words":
            words = words_of(one)
            found = fewest_words(one, words, number, threshold, time_limit)
            sets.append(_without_words(one, found, words, number, threshold))
        else:
            found = fewest_removed(one, number, threshold, time_limit)
            sets.append(_without_tokens(one, found, number, threshold))
    return MinimalSets(explanation, tuple(sets), probability)


def sufficient_sets(
    explanation: DecisionTerms, probability: float | None, smallest: bool, time_limit: float
) -> MinimalSets:
    """Return the smallest guarantees, with the parameters of `Explanation.sufficient`."""
    checked(explanation, "a sufficient set")
    threshold, probability = _threshold(explanation, probability)
    check_scalar(time_limit, "time_limit", Real, min_val=0, include_boundaries="neither")
    sets = []
    for one in explanation:
        found = fewest_sufficient(one, threshold, smallest=smallest, time_limit=time_limit)
        present = present_class(one, threshold)
        lead = of_class(one, present, threshold)
        chosen = found.numbers
        sets.append(
            MinimalSet(
                document=int(one.index[0]),
                change="keep",
                found=found.chosen is not None,
                tokens=tuple(str(name) for name in one.tokens[chosen]),
                entries=chosen,
                at_least=found.at_least,
                before=one.classes.tolist()[present],
                after=one.classes.tolist()[present],
                leads=lead.lowest(chosen),
                probabilities=np.full(len(chosen) + 1, np.nan),
                marks=_token_marks(one, chosen),
            )
        )
    return MinimalSets(explanation, tuple(sets), probability)


def _class_number(explanation: DecisionTerms, to: Any) -> int | None:
    if to is None:
        return None
    labels = explanation.classes.tolist()
    if np.ndim(to) != 0 or to not in labels:
        raise ValueError(f"to must be None or one of the classes {labels}, got {to!r}")
    return labels.index(to)


def _threshold(explanation: DecisionTerms, probability: float | None) -> tuple[float, float | None]:
    """Return the log-odds of the explained one of two classes at a probability, and this."""
    if probability is None:
        threshold = explanation.threshold
        return threshold, float(expit(threshold)) if threshold else None
    if len(explanation.classes) > 2:
        raise ValueError("probability is for two classes alone; pass to, a class to reach")
    check_scalar(
        probability, "probability", Real, min_val=0, max_val=1, include_boundaries="neither"
    )
    return float(logit(probability)), probability


def _added(one: DecisionTerms, found: Found, to: int | None, threshold: float) -> MinimalSet:
    model, columns = one.model, found.numbers
    assert model is not None
    start = mean(*attention_logs(one), one.values)
    steps = list(means(*start, added_logs(one)[columns], model.values[columns]))
    names = tuple(str(name) for name in model.names[columns])
    return _set("add", one, found, names, steps, to, threshold, ())


def _without_tokens(
    one: DecisionTerms, found: Found, to: int | None, threshold: float
) -> MinimalSet:
    removed = found.numbers
    logs, cls_log = attention_logs(one)
    left = mean(np.delete(logs, removed), cls_log, np.delete(one.values, removed, axis=0))
    # From the last one removed on, as those before may have all of the attention.
    steps = list(means(*left, logs[removed[::-1]], one.values[removed[::-1]]))[::-1]
    names = tuple(str(name) for name in one.tokens[removed])
    return _set("tokens", one, found, names, steps, to, threshold, _token_marks(one, removed))


def _without_words(
    one: DecisionTerms, found: Found, words: Words, to: int | None, threshold: float
) -> MinimalSet:
    removed = found.numbers
    removal = Removal(one, words)
    logs, cls_log = attention_logs(one)
    gone, steps = np.zeros(len(words.names), dtype=bool), []
    for word in (None, *removed):
        if word is not None:
            gone[word] = True
        with np.errstate(divide="ignore"):
            steps.append(mean(logs + np.log(removal.weights(gone)), cls_log, one.values)[1])
    names = tuple(words.names[word] for word in removed)
    marks = tuple(
        places[np.isin(places[:, 2], removed)][:, :2] if len(places) else places[:, :2]
        for places in words.places
    )
    return _set("words", one, found, names, steps, to, threshold, marks)


def _set(
    change: str,
    one: DecisionTerms,
    found: Found,
    names: tuple[str, ...],
    means_after: Sequence[Array],
    to: int | None,
    threshold: float,
    marks: tuple[NDArray[np.intp], ...],
) -> MinimalSet:
    """Return an answer with the decisions after each of its steps."""
    present = present_class(one, threshold)
    steps = one.intercept + np.stack(means_after)
    if len(one.classes) == 2:
        explained = one.classes.tolist().index(one.targets.tolist()[0])
        side = 1.0 if explained == present else -1.0
        leads = side * (steps[:, 0] - threshold)
        probabilities = expit(side * steps[:, 0])
        after = present if leads[-1] > 0 else 1 - present
    else:
        others = np.arange(len(one.classes)) != present
        leads = steps[:, present] - steps[:, others].max(axis=1)
        probabilities = softmax(steps, axis=1)[:, present]
        after = int(steps[-1].argmax()) if len(names) else present
        if to is not None and len(names):
            after = to
    if not names:
        after = present
    return MinimalSet(
        document=int(one.index[0]),
        change=change,
        found=found.chosen is not None,
        tokens=names,
        entries=found.numbers,
        at_least=found.at_least,
        before=one.classes.tolist()[present],
        after=one.classes.tolist()[after],
        leads=leads,
        probabilities=probabilities,
        marks=marks,
    )


def _token_marks(one: DecisionTerms, chosen: NDArray[np.intp]) -> tuple[NDArray[np.intp], ...]:
    """Return for each text of a document where chosen tokens start and stop, (n_marks, 2)."""
    marks = []
    for text in one.texts[0]:
        if text.words is None or text.occurrences is None:
            marks.append(np.zeros((0, 2), dtype=np.intp))
            continue
        first, length, _ = text.occurrences[np.isin(text.occurrences[:, 2], chosen)].T
        last = first + np.maximum(length, 1) - 1
        places = np.stack([text.words[first, 0], text.words[last, 1]], axis=1)
        marks.append(np.unique(places, axis=0).astype(np.intp).reshape(-1, 2))
    return tuple(marks)
