r"""What the occurrences of words say about their documents' classes, summed by place.

An occurrence o of n-gram s in document i counts :math:`v_o = (1 + \ln c_{is}) / c_{is}`, speaks for
class k by :math:`v_o r_{sk}^{(-i)}`, the n-gram's log-odds by all other documents, and adds
:math:`v_o e^{\pi_s}` to the attention mass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from .._core.leave_one_out import leave_one_out_log_odds, same_documents
from .._core.statistics import CorpusStatistics, class_log_odds, token_scaling
from ._places import N_CELLS, Places

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """Sums over occurrences by document and place, and what belongs to the documents."""

    numerators: list[Any]  # by output, CSR (n_documents, n_places), times twice the <cls> weight
    masses: Any  # CSR (n_documents, n_places)
    # (n_places, 3): the numbers whose sum is a place's score, of the start, of the end and of the
    # word before; `n_scores` where there is none.
    parts: NDArray[np.intp]
    n_scores: int
    codes: NDArray[np.intp]
    weights: Array  # of the documents
    intercepts: Array  # (n_outputs,), those that depend on the class weights alone
    cls_weight: float  # attention mass of <cls>


def gather_evidence(
    counts: Any,
    documents: NDArray[Any],
    columns: Sequence[NDArray[Any]],
    places: Places,
    n_previous: int,
    codes: NDArray[np.intp],
    weights: Array,
    *,
    n_classes: int,
    limit: float,
) -> Evidence:
    """Return the evidence of documents of positive weight, as many as `limit` allows.

    `counts` is canonical CSR; `documents` and each of `columns` are (n_tokens,), -1 for n-grams
    that are no column. Documents with equal counts are taken together or not at all, in an order by
    their counts alone, until entries times outputs reach `limit`.
    """
    bag = sparse.csr_array(counts, dtype=np.float64)
    bag.data = 1.0 + np.log(bag.data)
    statistics = CorpusStatistics.of(bag, codes, n_classes, weights)
    scaling = token_scaling(statistics, scaling="log_odds", attend_cls=True)
    assert scaling.totals is not None
    n_outputs = scaling.totals.n_outputs

    groups = same_documents(bag)
    chosen = _within_limit(groups, np.diff(bag.indptr), weights, limit / n_outputs)
    rows = np.flatnonzero(chosen)
    bag, repeats, groups = bag[rows], counts[rows].data, groups[rows]
    factors = bag.data / repeats
    odds = np.empty((bag.nnz, n_outputs))
    for _, entries, block in leave_one_out_log_odds(
        bag, codes[rows], weights[rows], scaling.totals, groups
    ):
        odds[entries] = block
    odds *= (2.0 * scaling.cls_weight * factors)[:, None]
    mass = factors * np.exp(scaling.starting_scores)[bag.indices]

    row_of = np.full(len(chosen), -1)
    row_of[rows] = np.arange(len(rows))
    row, column, place = _occurrences(row_of[documents], columns, places, n_previous)
    per_row = np.diff(bag.indptr)
    keys = np.repeat(np.arange(len(rows)), per_row) * np.int64(bag.shape[1]) + bag.indices
    entry = np.searchsorted(keys, row * np.int64(bag.shape[1]) + column)
    code, places_seen = pd.factorize(place)
    code = code.astype(np.int32)
    indptr = np.append(0, np.cumsum(np.bincount(row, minlength=len(rows)))).astype(np.int32)
    shape = (len(rows), len(places_seen))

    def by_place(values: Array) -> Any:
        return sparse.csr_array((values[entry], code, indptr), shape=shape)

    n_positions = len(columns) * N_CELLS
    rest, previous = np.divmod(places_seen, n_previous + 1)
    start, end = np.divmod(rest, N_CELLS)
    end += start // N_CELLS * N_CELLS
    parts = np.stack([start, n_positions + end, 2 * n_positions + previous]).T
    return Evidence(
        [by_place(odds[:, k]) for k in range(n_outputs)],
        by_place(mass),
        parts,
        2 * n_positions + n_previous,
        codes[rows],
        weights[rows],
        class_log_odds(statistics.class_weights),
        scaling.cls_weight,
    )


def _within_limit(
    groups: NDArray[np.intp], sizes: NDArray[Any], weights: Array, limit: float
) -> NDArray[np.bool_]:
    """Return which documents (n_documents,) to read: groups in a random order until `limit`."""
    positive = weights > 0
    entries = np.zeros(groups.max(initial=-1) + 1)
    entries[groups[positive]] = sizes[positive]
    # Groups are numbered by their contents, so that the order of the documents has no influence.
    order = np.random.default_rng(0).permutation(len(entries))
    before = np.empty_like(entries)
    before[order] = np.cumsum(entries[order]) - entries[order]
    return np.asarray(positive & (before < limit)[groups])


def _occurrences(
    rows: NDArray[np.intp], columns: Sequence[NDArray[Any]], places: Places, n_previous: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return row, column and code of the place of all occurrences in rows from 0 on, by row."""
    at = np.flatnonzero(rows >= 0)
    column = np.stack([column[at] for column in columns], axis=1)
    cells = places.from_start[at].astype(np.intp) * N_CELLS + places.from_end[at]
    previous = np.where(places.previous[at] < 0, n_previous, places.previous[at])
    first = cells * (n_previous + 1) + previous
    place = first[:, None] + np.arange(len(columns)) * (N_CELLS**2 * (n_previous + 1))
    found = column >= 0
    return np.repeat(rows[at], found.sum(axis=1)), column[found], place[found]
