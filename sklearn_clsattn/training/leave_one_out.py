r"""What naive Bayes says of each document's class, by the statistics of all other documents.

With totals :math:`p_{sk}` of token s in class k, smoothed, the token's log-odds for class k are
:math:`r_{sk} = \log p_{sk} - \log \sum_{j \ne k} p_{sj} - \text{const}_k`
(:class:`.statistics.TokenTotals`). The document itself is in these totals, so that a rare token
always speaks for the classes of the documents it stands in. Without document i, which weighs
:math:`\omega_i` and is of class :math:`y_i`,

.. math::

    r^{(-i)}_{sk} = \log (p_{sk} - \delta_{isk})
        - \log \sum_{j \ne k} (p_{sj} - \delta_{isj}) - \text{const}_k, \qquad
    \delta_{isk} = u\, \omega_i [y_i = k]\, c_{is} / T_i

with the unit u of the totals; the constants are those of all documents.

Documents with the same bags are left out together: a copy of a document tells its class as well as
the document itself does, and a weight of 2 stays the same as the document twice. Near-copies and
documents of one group (:mod:`.folds`) are left out together, too.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from .._bags import Bags
from .._matrices import BLOCK_ENTRIES, row_blocks, row_sums, safe_divide
from .._targets import Targets, group_sums
from .._threads import in_threads
from .._types import Array, Numbers
from .loss import AttentionLoss
from .products import as_tensor
from .statistics import Scaling, TokenTotals

_SMALLEST_SHARE = 1e-9  # of a total that is left without a document
_SMALLEST_MASS = 1e-300  # of a document, which then has no tokens
_ROUNDING = 1e-12  # of sums that are added up in another order


class Grouped(NamedTuple):
    """Documents of groups with different bags, which are left out together.

    rows : (n_grouped,), among all documents
    groups : (n_grouped,), the group of each
    by_class, weights : (n_grouped, n_classes) and (n_grouped,), each one's own weight
    """

    rows: Numbers
    groups: Numbers
    by_class: Array
    weights: Array


class Evidence:
    """The naive Bayes evidence for documents, each without itself and its copies.

    `loss` is the sum of their losses. What people state of tokens (:mod:`.trusted_words`) is
    evidence as well, the second of `n_kinds`, if they do. `by_class`, (n_documents, n_classes), and
    `weights`, (n_documents,), are left out with each of the bags (:func:`left_out`), and the others
    of their group with those of `grouped`. `numerators` are sums over a document's tokens,
    `outputs` these divided by the attention mass at the start, both (n_kinds, n_documents,
    n_outputs).
    """

    def __init__(
        self,
        loss: AttentionLoss,
        bags: Bags,
        by_class: Array,
        weights: Array,
        scaling: Scaling,
        grouped: Grouped | None = None,
    ) -> None:
        assert scaling.totals is not None
        self._loss = loss
        sums = evidence_without(bags, by_class, weights, scaling.totals)
        if grouped is not None:
            sums[grouped.rows] = evidence_without_groups(bags, grouped, scaling.totals)
        kinds = [sums]
        if scaling.totals.stated is not None:
            kinds.append(bags.dot(scaling.totals.stated))
        self.numerators = as_tensor(np.array(kinds) * scaling.unit, loss.device)
        attention = np.exp(scaling.starting_scores, dtype=np.float64)
        by_token = torch.from_numpy(attention[:, None]).to(loss.device, loss.dtype)
        token_mass = loss.products.sum_over_tokens(by_token).to(torch.float64)
        mass = token_mass + scaling.cls_weight
        self.outputs = self.numerators / mass.clamp(min=_SMALLEST_MASS)

    def sums(self, x: Array) -> tuple[float, Array, Array]:
        """Return the loss of multiples of the evidence plus intercepts, gradient and Hessian.

        x is (n_kinds + n_outputs,).
        """
        numbers = torch.from_numpy(x).to(self.outputs.device)
        multiples, intercepts = numbers.tensor_split([len(self.outputs)])
        outputs = _sum_of_multiples(multiples, self.outputs) + intercepts
        value, by_output = self._loss.output_loss(outputs)
        by_multiple = self.outputs.flatten(1) @ by_output.flatten()
        by_intercept = by_output.sum(dim=0)
        gradient = torch.cat([by_multiple, by_intercept])
        hessian = self._loss.output_loss.hessian(outputs, self.outputs)
        return value, gradient.cpu().numpy(), hessian.cpu().numpy()

    def loss_with(self, multiples: Array) -> AttentionLoss:
        """Return the loss with multiples of the evidence, (n_kinds,), in it."""
        factors = torch.from_numpy(multiples).to(self.numerators.device)
        return self._loss.with_evidence(_sum_of_multiples(factors, self.numerators))


def _sum_of_multiples(multiples: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
    """Return the sum of multiples, (n_kinds,), of evidence, (n_kinds, n_documents, n_outputs)."""
    return (multiples @ kinds.flatten(1)).view(kinds.shape[1:])


def left_out(targets: Targets, weights: Array, copies: Numbers) -> tuple[Array, Array]:
    """Return the weights that are left out with each document: its own, and its copies'.

    The first is (n_documents, n_classes), by class, the second (n_documents,), of all classes.
    """
    n_different = int(copies.max(initial=-1)) + 1
    weights_by_class = targets.shares() * weights[:, None]
    by_class = group_sums(weights_by_class, copies, n_different)
    of_all_classes = group_sums(weights, copies, n_different)
    return by_class[copies], of_all_classes[copies]


def evidence_without(bags: Bags, by_class: Array, weights: Array, totals: TokenTotals) -> Array:
    """Return the sums of entries times leave-one-out log-odds, (n_documents, n_outputs).

    `by_class` and `weights` are :func:`left_out`. The totals may be those of more documents.
    """
    n_outputs = totals.n_outputs
    # 1) documents with copies of several classes: they are computed entry by entry
    whole = (1.0 - _ROUNDING) * weights[:, None]
    is_part = (by_class > 0) & (by_class < whole)
    is_mixed = is_part.any(axis=1)
    # 2) the sums with the log-odds of all documents
    log_odds = np.ascontiguousarray(totals.log_odds().T)
    sums = np.stack([bags.dot(log_odds[k]) for k in range(n_outputs)])
    # 3) what leaving documents out changes
    unmixed_weights = np.where(is_mixed, 0.0, weights)
    added_by_entry = safe_divide(totals.unit, bags.totals())  # by an entry of 1, to the totals
    dtype = np.float32 if bags.dtype == np.float32 else np.float64
    lost_per_entry = (unmixed_weights * added_by_entry).astype(dtype)
    changes = _Changes(sums, by_class, lost_per_entry, totals)
    # The tables of several outputs take memory too, so blocks are half as large.
    n_entries = BLOCK_ENTRIES // min(n_outputs, 2) + 1
    in_threads(
        lambda block: changes.add(block[0], bags.block_matrix(block[1])),
        bags.unit_blocks(n_entries),
    )
    # 4) the sums of the documents of step 1
    mixed = np.flatnonzero(is_mixed)
    if len(mixed):
        alone = Grouped(mixed, np.arange(len(mixed)), by_class[mixed], weights[mixed])
        sums[:, mixed] = evidence_without_groups(bags, alone, totals).T
    return np.ascontiguousarray(sums.T)


class _Changes:
    """What leaving documents out changes in their `sums` of log-odds, (n_outputs, n_documents).

    `lost_per_entry`, (n_documents,), are what an entry of 1 loses of the totals. The copies of a
    document are all of a class, or none is: so every output's log-odds lose something above or
    below the fraction, and one logarithm is enough.
    """

    def __init__(
        self, sums: Array, by_class: Array, lost_per_entry: NDArray[Any], totals: TokenTotals
    ) -> None:
        self._sums = sums
        self._is_of_class = by_class[:, totals.first :] > 0
        self._lost_per_entry = lost_per_entry
        self._factors = totals.factors
        self._n_tokens = len(totals.smoothed)
        # Of every output: the tokens' totals in the other classes, then in its own.
        of_others = totals.rest[:, totals.first :].T
        of_class = totals.smoothed[:, totals.first :].T
        dtype = lost_per_entry.dtype
        self._tables = np.hstack([of_others, of_class], dtype=dtype, casting="same_kind")

    def add(self, rows: slice, X: Any) -> None:
        """Add the changes of some documents, a CSR matrix of their entries."""
        lengths = np.diff(X.indptr)
        left_out_of_totals = np.repeat(self._lost_per_entry[rows], lengths)
        left_out_of_totals *= X.data
        weighted = X.data if self._factors is None else X.data * self._factors[X.indices]
        for k, table in enumerate(self._tables):
            # 1) the share of each total that is left without the document
            is_of_class = self._is_of_class[rows, k]
            first_columns = np.where(is_of_class, self._n_tokens, 0)
            columns = np.repeat(first_columns, lengths)
            columns += X.indices
            kept = np.take(table, columns, mode="clip")  # checks no bounds
            np.divide(left_out_of_totals, kept, out=kept)
            np.subtract(1.0, kept, out=kept)
            np.maximum(kept, _SMALLEST_SHARE, out=kept)
            # 2) the changes of the sums of log-odds
            np.log(kept, out=kept)
            kept *= weighted
            changes = row_sums(kept, X.indptr)
            self._sums[k, rows] += np.where(is_of_class, changes, -changes)


def evidence_without_groups(bags: Bags, grouped: Grouped, totals: TokenTotals) -> Array:
    """Return the sums of entries times log-odds without each one's group, (n_grouped, n_outputs).

    `bags` are those of all documents.
    """
    # 1) whole groups, in blocks of so many entries
    order = np.argsort(grouped.groups, kind="stable")
    group_starts = np.flatnonzero(np.diff(grouped.groups[order], prepend=-1))
    sizes = bags.estimated_lengths()[grouped.rows[order]]
    block_size = BLOCK_ENTRIES // totals.n_outputs + 1
    blocks = np.cumsum(sizes)[group_starts] // block_size
    is_new_block = np.diff(blocks) > 0
    # 2) the sums of each block
    sums = np.empty((len(order), totals.n_outputs))
    for some in np.split(order, group_starts[1:][is_new_block]):
        X = bags[grouped.rows[some]].matrix()
        own = grouped.by_class[some], grouped.weights[some]
        odds = log_odds_without_groups(X, grouped.groups[some], *own, totals)
        sums[some] = row_sums(odds * X.data[:, None], X.indptr)
    return sums


def log_odds_without_groups(
    X: Any, groups: Numbers, by_class: Array, weights: Array, totals: TokenTotals
) -> Array:
    """Return the log-odds of a CSR matrix's entries without the rows' groups, of every output.

    `by_class`, (n_rows, n_classes), and `weights`, (n_rows,), are each row's own.
    """
    # 1) what an entry of 1 adds to totals: of all classes, then of each output's class
    own = np.vstack([weights, by_class[:, totals.first :].T])
    own *= safe_divide(totals.unit, Bags(X).totals())
    # 2) what groups of several rows add, whose entries of one token have the same number
    is_in_several = (np.bincount(groups) > 1)[groups]
    in_several = np.flatnonzero(is_in_several)
    several = X[in_several]
    group_of_entries = np.repeat(groups[in_several], np.diff(several.indptr))
    numbers, _ = pd.factorize(group_of_entries * X.shape[1] + several.indices)
    added = _added_by_entries(several, own[:, in_several])
    added_by_groups = np.stack([np.bincount(numbers, by_entry)[numbers] for by_entry in added])
    bounds = np.append(0, np.cumsum(np.where(is_in_several, np.diff(X.indptr), 0)))
    # 3) the log-odds without these, block by block
    log_odds = np.empty((X.indptr[-1], totals.n_outputs))

    def fill(block: tuple[slice, Any]) -> None:
        rows, part = block
        lost = _added_by_entries(part, own[:, rows])
        is_shared = np.repeat(is_in_several[rows], np.diff(part.indptr))
        lost[:, is_shared] = added_by_groups[:, bounds[rows.start] : bounds[rows.stop]]
        entries = slice(X.indptr[rows.start], X.indptr[rows.stop])
        log_odds[entries] = _log_odds_without(lost, part.indices, totals)

    in_threads(fill, row_blocks(X, BLOCK_ENTRIES // totals.n_outputs + 1))
    return log_odds if totals.factors is None else log_odds * totals.factors[X.indices, None]


def _added_by_entries(X: Any, added_by_rows: Array) -> Array:
    """Return the amounts that a CSR matrix's entries add to totals, (1 + n_outputs, n_entries).

    `added_by_rows`, (1 + n_outputs, n_rows), is what an entry of 1 adds.
    """
    return np.repeat(added_by_rows, np.diff(X.indptr), axis=1) * X.data


def _log_odds_without(lost: Array, tokens: Numbers, totals: TokenTotals) -> Array:
    """Return tokens' log-odds, (n_tokens, n_outputs), where totals have lost (1 + n_outputs, ...).

    What is lost is that of all classes, then of each output's class.
    """
    log_odds = np.empty((len(tokens), totals.n_outputs))
    pseudo_counts = totals.pseudo_counts[tokens]
    for k, column in enumerate(range(totals.first, len(totals.prior_odds))):
        # 1) the totals of the output's class, and of all others
        of_class = totals.smoothed[tokens, column] - lost[1 + k]
        of_others = totals.rest[tokens, column] - (lost[0] - lost[1 + k])
        least, least_of_others = pseudo_counts * totals.class_shares[:, column, None]
        # 2) their log-odds
        odds = np.maximum(of_class, least) / np.maximum(of_others, least_of_others)
        log_odds[:, k] = np.log(odds) - totals.prior_odds[column]
    return log_odds
