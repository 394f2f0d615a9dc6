r"""One gradient step on the embeddings, then gradient flow on p with E and v frozen.

The flow :math:`\dot p = -E^\top g`, with :math:`g = \partial L / \partial a`, keeps
:math:`p = p^0 + E^\top c`: its path is found in the space of scores :math:`a = a^0 + E E^\top c`.
The speed is g over the sum of the sizes of its terms, so that it does not vanish with the loss
(``docs/theory.md``). Once the selected tokens have settled, the direction of p is that of the
quadratic program on this selection. Where they do not settle p has no limit, and the fit warns.

**The gradient by the scores** has full relative precision also where softmax is nearly a maximum,
and the plain form is a difference of nearly equal numbers. Every document's differences are taken
from its leading token r, and magnitudes are carried as logarithms. With
:math:`D_{jk} = b_{jk} - b_{rk}`, exactly 0 there, outputs are
:math:`f_k = b_{rk} + \sum_j q_j D_{jk}`; with :math:`g_k = \omega\, \partial \ell / \partial F_k`,

.. math::

    \frac{\partial L}{\partial a_s}
        = \frac{1}{\Omega} \sum_i \big( e_{is} - q_{is} \textstyle\sum_j e_{ij} \big), \qquad
    e_{ij} = q_{ij} \textstyle\sum_k g_{ik} D_{ijk}.

All e are computed relative to the largest one in the corpus, :math:`e^M`, by which the gradient is
divided: its direction is right even where its length is below the smallest number.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._core.documents import Documents
from .._core.fitted import SELECTION_TOLERANCE, FittedAttention, StoredEmbeddings, in_the_layout_of
from .._core.loss import AttentionLoss
from .._core.result import FitResult, Report
from .._documents import row_totals
from ._chebyshev import ChebyshevIntegrator
from ._max_margin import import_piqp, max_margin_direction
from ._one_step_embeddings import default_step_size, limit_embeddings, shifts_per_step
from ._training import add_step, draw_embeddings, to_array

Array = NDArray[np.float64]

LARGEST_VALUE = 5.0  # above this the logistic loss saturates, and training of p takes longer
# Largest local error of a score in a step along the flow, relative to one more than its size.
TOLERANCE = 1e-3
# The selection has settled once it has not changed while scores moved by so much in all ...
PATIENCE = 60.0
UNSELECTED_ATTENTION = 0.01  # ... and unselected tokens have no larger share of any attention.
# About the largest change of a score in one step along the flow.
LARGEST_CHANGE = 10.0
BALANCED = 1e-5  # speed of the fastest score at which gradient flow has all but come to rest
NOT_CERTIFIED = 2.0  # 1 less a cosine is never more than this

# Why training has not converged, by the status it ended with.
_NOT_CONVERGED = {
    "selection": (
        "Training of p stopped at max_iter={max_iter}: the selected tokens have not settled "
        "({changes}), so that p has no limit yet, and Theorem 4.3 does not apply. Increase "
        "max_iter; on real text the selection may never settle, and ClsAttentionClassifier is "
        "what predicts."
    ),
    "balanced": (
        "Gradient flow on p has all but come to rest: documents that want different tokens ahead "
        "balance each other, so that the selected tokens have not settled, and Theorem 4.3 does "
        "not apply. ClsAttentionClassifier is what predicts."
    ),
    "direction": "The direction of p is not certified to be the max-margin direction: {reason}",
    "no_gradient": (
        "The gradient of p is 0: in every document all tokens have the same value. Documents need "
        "tokens of different importance; or increase step_size."
    ),
}


@dataclass(frozen=True)
class SelectiveGradient:
    """The gradient at some scores, and the attention there (see the module's docstring)."""

    by_score: torch.Tensor  # (n_tokens,), dL/da divided by exp(`log_scale`)
    magnitude: float  # the sum of the sizes of its terms before they cancel, divided alike
    log_scale: float  # M - log(Omega); -inf where the gradient is 0
    loss: float  # mean
    selected: torch.Tensor  # (n_entries,), whether an entry has its document's highest score
    log_selected_attention: torch.Tensor  # (n_documents,), on these; 0 without tokens


class SelectiveObjective:
    """The mean loss, without ``<cls>``, as a function of the scores, with values fixed.

    `X` is CSR (n_documents, n_tokens), and `loss` that of its documents; `values` are (n_tokens,
    n_outputs), on the device that computes. `entries` are the positions of the positive entries in
    the data of `X`.
    """

    def __init__(self, X: Any, loss: AttentionLoss, values: torch.Tensor) -> None:
        device = values.device
        self.n_documents, self.n_tokens = X.shape
        self.entries = np.flatnonzero(X.data > 0)
        documents = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[self.entries]
        self.documents = torch.from_numpy(documents).to(device)
        self.tokens = torch.from_numpy(X.indices[self.entries].astype(np.int64)).to(device)
        logs = np.log(X.data[self.entries], dtype=np.float64)
        self._log_weights = torch.from_numpy(logs).to(device)
        self._loss = loss
        self.values = values.to(torch.float64)
        self._of_entries = self.values[self.tokens]
        self._empty = torch.ones(self.n_documents, dtype=torch.bool, device=device)
        self._empty[self.documents] = False

    def __call__(self, scores: torch.Tensor) -> SelectiveGradient:
        """Return loss, direction of the gradient and selection at `scores`, in float64."""
        documents, tokens = self.documents, self.tokens
        of_entries = scores.to(torch.float64).index_select(0, tokens)
        logits = self._log_weights + of_entries
        leading_logit = self._maxima(logits)
        if torch.isnan(leading_logit).any():
            raise FloatingPointError("a score is not a number")
        of_leading = leading_logit.index_select(0, documents)
        above = logits - of_leading
        attention = torch.exp(above)
        mass = self._sums(attention) + self._empty
        log_attention = above - torch.log(mass).index_select(0, documents)
        attention /= mass.index_select(0, documents)

        reference = self.values.new_zeros((self.n_documents, self.values.shape[1]))
        tied = torch.nonzero(logits == of_leading)[:, 0]
        first = torch.zeros_like(self._empty, dtype=torch.int64).scatter_reduce_(
            0, documents[tied], tied, reduce="amin", include_self=False
        )
        reference[~self._empty] = self._of_entries[first[~self._empty]]
        differences = self._of_entries - reference.index_select(0, documents)
        outputs = reference + self._sums(attention[:, None] * differences)
        loss, per_output = self._loss.output_loss(outputs)

        signed = (differences * per_output.index_select(0, documents)).sum(dim=1)
        log_terms = log_attention + torch.log(signed.abs())
        largest = float(log_terms.max()) if len(log_terms) else -torch.inf
        by_score, magnitude = scores.new_zeros(self.n_tokens, dtype=torch.float64), 0.0
        if largest > -torch.inf:
            terms = torch.sign(signed) * torch.exp(log_terms - largest)
            terms -= attention * self._sums(terms).index_select(0, documents)
            by_score.index_add_(0, tokens, terms)
            magnitude = float(terms.abs().sum())

        lowest_selected = self._maxima(of_entries) - SELECTION_TOLERANCE
        selected = of_entries >= lowest_selected.index_select(0, documents)
        on_selected = self._sums(attention * selected) + self._empty
        return SelectiveGradient(
            by_score=by_score,
            magnitude=magnitude,
            log_scale=largest - float(np.log(self._loss.total_weight)),
            loss=loss / self._loss.total_weight,
            selected=selected,
            log_selected_attention=torch.log(on_selected),
        )

    def _maxima(self, per_entry: torch.Tensor) -> torch.Tensor:
        maxima = per_entry.new_full((self.n_documents,), -torch.inf)
        maxima.scatter_reduce_(0, self.documents, per_entry, reduce="amax")
        return torch.where(self._empty, 0.0, maxima)

    def _sums(self, per_entry: torch.Tensor) -> torch.Tensor:
        shape = (self.n_documents, *per_entry.shape[1:])
        return per_entry.new_zeros(shape).index_add_(0, self.documents, per_entry)


def gradient_flow(
    objective: SelectiveObjective, E: torch.Tensor | None, scores: torch.Tensor
) -> ChebyshevIntegrator:
    """Return the integrator of the flow of scores and coefficients c, (2, n_tokens), from `scores`.

    E is E^1, (n_tokens, d), None in the limit, where it is [I | S] with the values S.
    """
    values = objective.values
    gram = None
    if E is not None and E.shape[0] <= E.shape[1]:
        gram = E.to(torch.float64) @ E.to(torch.float64).T

    def velocity(y: torch.Tensor) -> torch.Tensor:
        point = objective(y[0])
        if not point.magnitude > 0:
            return torch.zeros_like(y)
        c = point.by_score / -point.magnitude
        if gram is not None:
            return torch.stack([gram @ c, c])
        if E is None:
            return torch.stack([c + values @ (values.T @ c), c])
        return torch.stack([(E @ (E.T @ c.to(E.dtype))).to(torch.float64), c])

    start = scores.to(torch.float64)
    return ChebyshevIntegrator(
        velocity,
        torch.stack([start, torch.zeros_like(start)]),
        tol=TOLERANCE,
        largest_change=LARGEST_CHANGE,
        rounding=float(torch.finfo(scores.dtype).eps),
    )


def fit_one_step(
    documents: Documents, classifier: Any, *, seed: int, dtype: Any, device: Any, report: Report
) -> FitResult:
    """Make one gradient step on random embeddings, then train p until its direction converges.

    `report` gets the largest share of attention on unselected tokens.
    """
    import_piqp()  # a missing package is known before the work
    if not documents.weights.all():  # a pair of tokens has no weight
        documents = documents.rows(np.flatnonzero(documents.weights))
    statistics, dimension = documents.statistics, classifier.embedding_dim
    loss = documents.attention_loss(dtype, device)
    importance = statistics.importance
    default = default_step_size(importance, dimension)
    step_size = default if classifier.step_size is None else classifier.step_size
    per_step = shifts_per_step(importance)
    n_tokens, n_outputs = per_step.shape
    warning = _step_size_warning(step_size, default, per_step, dimension)
    E = None
    values = torch.from_numpy(step_size * per_step).to(device, loss.bag.dtype)
    start = torch.zeros_like(values[:, 0])
    if dimension is not None:
        E, p, v = draw_embeddings(
            n_tokens, n_outputs, dimension, seed=seed, dtype=loss.bag.dtype, device=device
        )
        add_step(loss, E, p, v, step_size)
        values, start = E @ v.T, E @ p
    selective = SelectiveObjective(documents.X, loss, values)
    flow = gradient_flow(selective, E, start)

    def model() -> FittedAttention:
        """Return the model where the flow is."""
        scores, coefficients = flow.y
        direction = torch.empty(0) if E is None else p.double() + E.T.double() @ coefficients
        return of_scores(to_array(scores), to_array(direction))

    def of_scores(scores: Array, direction: Array) -> FittedAttention:
        embeddings = None
        if E is not None:
            embeddings = StoredEmbeddings(direction, to_array(v), E.cpu().numpy())
        none = np.zeros(n_outputs)
        return FittedAttention(scores, to_array(values), none, 0.0, -np.inf, embeddings)

    losses: list[float] = []
    n_changed, way, n_iter, status = 0, 0.0, 0, ""
    before: torch.Tensor | None = None
    while True:
        point = selective(flow.y[0])
        losses.append(point.loss)
        if before is not None and (point.selected != before).any():
            n_changed, way = n_changed + 1, 0.0
        before = point.selected
        most_unselected = max(0.0, -math.expm1(float(point.log_selected_attention.min())))
        report(n_iter, point.loss, most_unselected)
        if point.log_scale == -math.inf:
            status = "no_gradient"
        elif way >= PATIENCE and most_unselected <= UNSELECTED_ATTENTION:
            status = "converged"
        elif flow.speed <= BALANCED:
            status = "balanced"
        elif n_iter >= classifier.max_iter:
            status = "selection"
        elif (change := flow.step()) > 0:
            way += change
            n_iter += 1
            continue
        else:
            status = "no_gradient"
        break

    fitted, error, reason = model(), NOT_CERTIFIED, ""
    if status == "converged":
        flags = np.zeros(len(documents.X.data), dtype=bool)
        flags[selective.entries[point.selected.cpu().numpy()]] = True
        frozen = limit_embeddings(to_array(values)) if E is None else E.cpu().numpy()
        try:
            limit = max_margin_direction(frozen, documents.X, in_the_layout_of(documents.X, flags))
        except (ValueError, RuntimeError) as failure:
            status, reason = "direction", str(failure)
        else:
            error = limit.duality_gap
            if np.isfinite(limit.margin):  # otherwise any direction is a solution
                length = _length(documents.X, flags)
                fitted = of_scores(limit.scores * length, limit.direction * length)
    changes = f"they changed in {n_changed} of {n_iter} steps"
    if way >= PATIENCE:
        changes = "some document still attends to others"
    return FitResult(
        model=fitted,
        loss_curve=losses,
        n_iter=n_iter,
        attributes={"step_size_": float(step_size), "direction_error_": error},
        not_converged=_NOT_CONVERGED.get(status, "").format(
            max_iter=classifier.max_iter, changes=changes, reason=reason
        ),
        warning=warning,
    )


def _step_size_warning(
    step_size: float, default: float, per_step: Array, dimension: int | None
) -> str:
    """Return the warning about a step size, "" if none; `per_step` is S of a step of size 1."""
    largest = float(np.abs(per_step).max(initial=0.0))
    value = step_size * largest
    noise = math.sqrt(2 * math.log(max(len(per_step), 2)) / (dimension or math.inf))
    if not largest or noise <= value <= LARGEST_VALUE:
        return ""
    why = f"above {LARGEST_VALUE:g} the logistic loss saturates, and training takes longer"
    if value < noise:
        why = f"importance is drowned by the noise of {dimension} dimensions, {noise:.2g}"
    return (
        f"step_size={step_size:.3g} makes token values of up to {value:.2g}: {why}. Use "
        f"{noise / largest:.3g} to {LARGEST_VALUE / largest:.3g}, or more dimensions; "
        f"step_size=None is {default:.3g} here."
    )


def _length(X: Any, flags: NDArray[np.bool_]) -> float:
    """Return the factor on a direction of margin 1 that leaves little on unselected tokens."""
    on_selected, on_others = (
        row_totals(in_the_layout_of(X, X.data * of)) for of in (flags, ~flags)
    )
    ratios = np.divide(on_others, on_selected, out=np.zeros_like(on_others), where=on_selected > 0)
    odds = (1 - UNSELECTED_ATTENTION) / UNSELECTED_ATTENTION
    return math.log(max(float(ratios.max(initial=0.0)) * odds, math.e))
