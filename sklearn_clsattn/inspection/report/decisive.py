"""What decisions hang on, and training labels to look at, for a model report."""

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from ..._classifier import ClsAttentionClassifier
from .._explain import explain
from .._label_issues import label_issues
from ..minimal.minimal_set import MinimalSet
from ..minimal.minimal_sets import MinimalSets
from ..removal import without_name_warnings
from .data import Hinge, Hinges, LabelIssue, LabelIssues
from .inputs import Inputs, take, texts_of

N_EXAMINED = 100  # test texts, at most, whose smallest changes are looked for
# Words of a text take an integer programme for each class, tokens none.
_MOST_CLASSES = 10
_N_HINGES = 8
_N_LABELS = 15
_TIME_LIMIT = 5.0
# The last of each bin of sizes; beyond them is one more.
_BINS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50)
# Characters on either side of a word.
_AROUND = 45
_EXCERPT = 140


def hinges(inputs: Inputs) -> Hinges | None:
    """Return how many words, or tokens, decisions of evenly spaced texts hang on, if known."""
    n = len(inputs.y)
    places = np.unique(np.linspace(0, n - 1, min(n, N_EXAMINED)).round().astype(int)).tolist()
    explanation = explain(inputs.estimator, take(inputs.documents, places), removal=False)
    if explanation.model is None:
        return None
    unit, sets = "token", explanation.counterfactual(time_limit=_TIME_LIMIT)
    if len(inputs.classes) <= _MOST_CLASSES:
        # There are no words in a matrix, nor with a tokenizer of one's own.
        with suppress(ValueError):
            sets = explanation.counterfactual("words", time_limit=_TIME_LIMIT)
            unit = "word"
    sizes = sets.sizes
    found = sizes[~np.isnan(sizes)]
    last = max(1, int(found.max(initial=1)))
    bins = [end for end in _BINS if end < last] + [last]
    starts = [1, *(end + 1 for end in bins[:-1])]
    return Hinges(
        unit=unit,
        n_examined=len(places),
        bins=list(zip(starts, bins, strict=True)),
        texts=[
            int(((found >= start) & (found <= end)).sum())
            for start, end in zip(starts, bins, strict=True)
        ],
        n_never=int(np.isnan(sizes).sum()),
        median=float(np.median(found)) if len(found) else None,
        n_proved=int(sum(one.is_minimal for one in sets)),
        shown=[_hinge(sets, at, place) for at, place in enumerate(places) if sets[at].size == 1][
            :_N_HINGES
        ],
    )


def _hinge(sets: MinimalSets, at: int, place: int) -> Hinge:
    one: MinimalSet = sets[at]
    before, word, after = "", one.tokens[0], ""
    for text, marks in zip(sets.explanation[at].texts[0], one.marks, strict=False):
        if len(marks):
            start, stop = marks[0].tolist()
            before = _cut(text.text[:start], at_start=True)
            word, after = text.text[start:stop], _cut(text.text[stop:], at_start=False)
            break
    return Hinge(
        index=place,
        label=one.before,
        other=one.after,
        before=before,
        word=word,
        after=after,
        probability=float(one.probabilities[0]),
        without=float(one.probabilities[-1]),
    )


def _cut(text: str, *, at_start: bool) -> str:
    """Return the end, or the start, of a text on one line."""
    if at_start:
        short = " ".join(text[-_AROUND:].split()) + (" " if text[-1:].isspace() else "")
        return f"…{short}" if len(text) > _AROUND else short
    short = (" " if text[:1].isspace() else "") + " ".join(text[:_AROUND].split())
    return f"{short}…" if len(text) > _AROUND else short


def labels_to_look_at(inputs: Inputs) -> LabelIssues | None:
    """Return the training texts whose labels the others contradict most, if these are known."""
    classifier, X, y = inputs.classifier, inputs.X_train, inputs.y_train
    if X is None or y is None or not isinstance(classifier, ClsAttentionClassifier):
        return None
    with without_name_warnings():
        try:
            issues = label_issues(classifier, X, classifier.classes_[y])
        except ValueError:  # the fit had weights
            return None
    against = issues[issues["margin"] < 0]
    texts = texts_of(inputs.train_documents)
    names = ("document", "label", "suggested", "probability")
    columns = [against[name].head(_N_LABELS).tolist() for name in names]
    return LabelIssues(
        n_train=len(y),
        shown=[
            LabelIssue(
                index=index,
                label=label,
                suggested=suggested,
                probability=probability,
                excerpt=None if texts is None else _excerpt(texts, index),
            )
            for index, label, suggested, probability in zip(*columns, strict=True)
        ],
    )


def _excerpt(texts: NDArray[np.object_], at: int) -> str:
    text = " ".join(str(texts[at]).split())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
