"""Which selections no attention scores can make, and why: cycles of token pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csgraph

from ._documents import entry_rows, listed
from ._pairs import Selection, TokenPairs

_TOKENS_NAMED = 8
_CYCLE_STARTS = 32

Integers = NDArray[np.intp]


class InfeasibleSelectionError(ValueError):
    """No direction of ``<cls>`` makes this selection.

    Parameters
    ----------
    message : str
        What is wrong, with names.
    reason : {"cycle", "dimension"}, default="cycle"
        "cycle": the selection orders some tokens in a cycle, so no scores make it, whatever
        the embeddings. "dimension": some scores make it, but none of the form E p, because the
        embeddings are linearly dependent.
    components : sequence of ndarray, default=()
        For "cycle", the tokens of every strongly connected component of the graph s -> s' that
        has more than one, the largest first: tokens in one component can each be reached from
        the other, so all of them lie on cycles.
    documents : ndarray, default=None
        The documents that order two tokens of one component. None is no document.
    cycle : sequence of int, default=()
        A short cycle: each token has to score higher than the next, the last higher than the
        first.
    cycle_documents : sequence of int, default=()
        For each token of `cycle`, a document that selects it over the next one.

    Attributes
    ----------
    reason, components, documents, cycle, cycle_documents
        As given.
    tokens : ndarray
        The tokens of all components, ascending.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str = "cycle",
        components: Sequence[Integers] = (),
        documents: Integers | None = None,
        cycle: Sequence[int] = (),
        cycle_documents: Sequence[int] = (),
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.components = list(components)
        self.tokens: Integers = np.sort(
            np.concatenate([*components, np.empty(0, dtype=np.intp)]).astype(np.intp)
        )
        self.documents = np.empty(0, dtype=np.intp) if documents is None else documents
        self.cycle = list(cycle)
        self.cycle_documents = list(cycle_documents)


def strong_components(pairs: TokenPairs) -> tuple[Integers, NDArray[np.bool_]]:
    """Return each token's component, and which pairs lie within one: those on a cycle."""
    _, labels = csgraph.connected_components(pairs.graph(), directed=True, connection="strong")
    labels = labels.astype(np.intp)
    return labels, labels[pairs.better] == labels[pairs.worse]


def explain_cycles(
    selection: Selection,
    pairs: TokenPairs,
    labels: Integers,
    within: NDArray[np.bool_],
    feature_names: Any = None,
) -> InfeasibleSelectionError:
    """Return the error that names the tokens and documents that make a selection impossible."""
    cyclic = pairs.subset(within)
    members = np.unique(np.concatenate([cyclic.better, cyclic.worse]))
    order = np.argsort(labels[members], kind="stable")
    bounds = np.flatnonzero(np.diff(labels[members][order])) + 1
    components = sorted(
        np.split(members[order], bounds), key=lambda tokens: (-len(tokens), tokens[0])
    )
    documents = _documents_touched(selection, labels)
    cycle = _short_cycle(cyclic)
    ahead = [*cycle[1:], cycle[0]]
    cycle_documents = [
        _document_of(selection, better, worse) for better, worse in zip(cycle, ahead, strict=True)
    ]

    def name(token: int) -> str:
        return f"token {token}" if feature_names is None else repr(str(feature_names[token]))

    links = listed(
        [
            f"{name(better)} over {name(worse)} (document {document})"
            for better, worse, document in zip(cycle, ahead, cycle_documents, strict=True)
        ],
        _TOKENS_NAMED,
    )
    several = f"{len(components)} components of tokens" if len(components) > 1 else "one component"
    message = (
        f"No attention scores make this selection: it selects {links}, which is a cycle. In "
        f"all, {len(members)} tokens lie on such cycles, in {several} ("
        f"{listed([name(int(token)) for token in components[0]], _TOKENS_NAMED)}); "
        f"{len(documents)} documents take part "
        f"({listed(documents)}). Change what "
        "they select, or keep only the pairs between components with "
        "on_infeasible='across_components'."
    )
    return InfeasibleSelectionError(
        message,
        components=components,
        documents=documents,
        cycle=cycle,
        cycle_documents=cycle_documents,
    )


def _documents_touched(selection: Selection, labels: Integers) -> Integers:
    """Return the documents that order two tokens of one component."""
    n_components = int(labels.max()) + 1

    def keys(rows: Any) -> NDArray[np.int64]:
        return np.asarray(entry_rows(rows) * n_components + labels[rows.indices])

    chosen, passed_over = np.sort(keys(selection.selected)), keys(selection.unselected)
    places = np.searchsorted(chosen, passed_over)
    places[places == len(chosen)] = 0
    shared = passed_over[chosen[places] == passed_over]
    return np.flatnonzero(np.bincount(shared // n_components)).astype(np.intp)


def _short_cycle(cyclic: TokenPairs) -> list[int]:
    """Return a cycle of pairs that all lie on cycles: the shortest of those tried."""
    graph = cyclic.graph()
    # Two documents that order the same two tokens the other way round: the usual case.
    forth = cyclic.better.astype(np.int64) * cyclic.n_tokens + cyclic.worse
    back = cyclic.worse.astype(np.int64) * cyclic.n_tokens + cyclic.better
    both = np.flatnonzero(np.isin(back, forth))
    if len(both):
        return [int(cyclic.better[both[0]]), int(cyclic.worse[both[0]])]
    best: list[int] = []
    tried = np.unique(np.linspace(0, len(cyclic) - 1, _CYCLE_STARTS).astype(np.intp))
    for edge in tried.tolist():
        start, goal = int(cyclic.worse[edge]), int(cyclic.better[edge])
        _, before = csgraph.breadth_first_order(graph, start, directed=True)
        path = [goal]
        while path[-1] != start:
            path.append(int(before[path[-1]]))
        # goal -> start is the edge itself, then the path from start leads back to goal.
        cycle = [goal, *path[:0:-1]]
        if not best or len(cycle) < len(best):
            best = cycle
    return best


def _document_of(selection: Selection, better: int, worse: int) -> int:
    """Return the first document that selects one token and has the other unselected."""

    def having(rows: Any, token: int) -> NDArray[Any]:
        return np.searchsorted(rows.indptr, np.flatnonzero(rows.indices == token), side="right") - 1

    selecting, passing_over = (
        having(selection.selected, better),
        having(selection.unselected, worse),
    )
    return int(np.intersect1d(selecting, passing_over, assume_unique=True)[0])
