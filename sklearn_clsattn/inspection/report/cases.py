"""Single texts in a model report: which ones to show, with explanations of our predictions."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...comparison import Entrant
from .._explain import explain
from .data import Case, Cases, Prediction
from .inputs import Inputs, take

Array = NDArray[np.float64]


def telling_cases(
    inputs: Inputs, baseline: Entrant | None, n_mistakes: int, n_disagreements: int
) -> tuple[Cases, Cases, Cases]:
    """Return our most confident mistakes, and the texts that only one of both models has right."""
    ours, y = inputs.entrants[0], inputs.y
    known, texts = y >= 0, np.arange(len(y))
    right = ours.predicted == y
    picked = [_worst(known & ~right, _of(ours).max(axis=1), n_mistakes)]
    if baseline is None:
        picked += [(0, [])] * 2
    else:
        theirs = baseline.predicted == y
        gap = _of(ours)[texts, y] - _of(baseline)[texts, y]
        picked.append(_worst(known & right & ~theirs, gap, n_disagreements))
        picked.append(_worst(known & theirs & ~right, -gap, n_disagreements))
    cases = _explained(inputs, baseline, sorted({place for _, some in picked for place in some}))
    mistakes, ours_right, baseline_right = (
        Cases(n_all, [cases[place] for place in some]) for n_all, some in picked
    )
    return mistakes, ours_right, baseline_right


def _worst(meant: NDArray[np.bool_], size: Array, n: int) -> tuple[int, list[int]]:
    """Return the number of texts `meant`, and the positions of the `n` with the largest `size`."""
    places = np.flatnonzero(meant)
    order = np.argsort(-size[places], kind="stable")  # ties in the order of the texts
    return len(places), places[order[:n]].tolist()


def _explained(inputs: Inputs, baseline: Entrant | None, places: list[int]) -> dict[int, Case]:
    """Return the texts at some positions with explanations, computed in one call."""
    if not places:
        return {}
    classes = inputs.classes
    labels = np.empty(len(places), dtype=object)
    labels[:] = [classes[inputs.y[place]] for place in places]
    explanation = explain(inputs.estimator, take(inputs.documents, places), y_true=labels)

    def prediction(entrant: Entrant, place: int) -> Prediction:
        proba, predicted = _of(entrant)[place], entrant.predicted[place]
        return Prediction(
            classes[predicted], float(proba[predicted]), float(proba[inputs.y[place]])
        )

    return {
        place: Case(
            index=place,
            true=label,
            ours=prediction(inputs.entrants[0], place),
            baseline=None if baseline is None else prediction(baseline, place),
            explanation=replace(one, index=np.array([place])),
        )
        for place, label, one in zip(places, labels, explanation, strict=True)
    }


def _of(entrant: Entrant) -> Array:
    """Return the probabilities (n_test, n_classes) of a model that has some."""
    assert entrant.proba is not None
    return entrant.proba
