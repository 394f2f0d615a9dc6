r"""The choice of C, by the loss of held-out documents along a path of fits.

The search uses some 8,000 different documents in four folds, with the copies of a document in the
same one (:mod:`.folds`). Where there are many documents, not all folds are held out.

**Path.** C runs up a short list, each fit starting from the last, until the mean held-out log loss
rises. A parabola through the least value and those beside it gives the held-out choice, the least
value itself at an end of the list.

**Guess.** With the leave-one-out loss of naive Bayes relative to the entropy of the classes,
:math:`\nu_0`, from 0 (the tokens tell the class) to 1 (they tell nothing),

.. math:: \ln C = 1.66 - 4.14\, \nu_0 .

Of ten documents, naive Bayes may know the classes by chance: documents whose tokens tell nothing
are added. C is multiplied by the share of documents that are different, which near-copies are not:
they count in the fit, and are no evidence.

Few documents say little about C, so the choice is the mean of the held-out and the guessed ln C,
weighted by the number of different documents and :data:`GUESS_WORTH`. Where nearly all are of one
class, those of the others decide how many count.

Where tokens have vectors, there is such a path for every scale gamma. The choice is the mean of
these gammas, and of the logarithms of their C, with the weights :math:`\exp(-n_\text{out}
L_\gamma)` (pseudo-Bayesian model averaging, Yao et al. 2018), where :math:`L_\gamma` is the least
mean loss of :math:`n_\text{out}` different documents held out: many documents decide for one gamma,
few do not.

**attention_C** is the smallest of :data:`ATTENTION_CS`, unless the largest lowers the held-out
loss enough. Then there is such a path for each of them, with the best gamma alone, and the one with
the least held-out loss is chosen. ``benchmarks/results/defaults.md`` has the measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

from .._types import Array, Numbers
from .documents import Documents
from .folds import assign_folds
from .output_loss import output_loss
from .prior_mean import PriorMean
from .regularization_path import AttentionPath
from .statistics import CorpusStatistics

CS = 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0
"""The values of C of which one is chosen, ascending."""

N_FOLDS = 4

ENOUGH_DOCUMENTS = 3_000
"""The number of held-out folds is this, divided by that of documents: 1 to :data:`N_FOLDS`."""

GUESS_WORTH = 1_000
"""The number of documents that the guess of log C is worth."""

GUESS_DOCUMENTS = 10.0
"""The number of uninformative documents that the guess adds to the others."""

LEAST_TELLING = 100.0
"""With fewer documents that count, none are held out, unless gamma is chosen."""

MOST_OF_A_CLASS = 20.0
"""The maximum number of documents that count, relative to those not of the largest class."""

ATTENTION_CS = 0.03, 0.3, 1.0
"""The values of `attention_C` of which one is chosen, ascending."""

LEAST_GAIN = 0.02
"""The share of the held-out loss that a larger `attention_C` must save if documents are many."""

SEARCH_TOL = 1e-2
_MAX_ITER = 100


@dataclass(frozen=True)
class Choice:
    """A choice of C.

    C : the choice
    attention_C : the choice of `attention_C`, or what was given
    scale : the choice of gamma, where tokens have vectors
    Cs : (n_Cs,), what was tried, ascending
    losses : (n_folds, n_Cs), mean log loss of the held-out documents
    point : the trained numbers without the first fold for the largest C tried that is not above
        the choice with its gamma, to start from, of all tokens; None if there is none
    point_scale : the gamma of that point, and of `Cs` and `losses`
    """

    C: float
    attention_C: float
    Cs: Array
    losses: Array
    point: torch.Tensor | None
    scale: float = 0.0
    point_scale: float = 0.0

    @property
    def best(self) -> float:
        """The least mean loss."""
        return float(self.losses.mean(axis=0).min())


def choose_C(
    documents: Documents,
    mean: PriorMean | None,
    dtype: type[np.floating[Any]],
    device: torch.device | str,
    C: float | None = None,
    attention_C: float | None = ATTENTION_CS[0],
    scales: tuple[float, ...] = (0.0,),
    log: Callable[[str], None] | None = None,
    **model_params: Any,
) -> Choice:
    """Choose C for some documents and, if tokens have vectors, gamma by some `scales`.

    `mean` is their prior mean of the values; training is in the precision `dtype` on a device, and
    `model_params` are the other parameters of :class:`~.regularization_path.AttentionPath`. A given
    `C` stays; `attention_C` None is chosen with C, where C is not given. The choice has the losses
    of the gamma and `attention_C` whose loss is least; where documents are too few there are none,
    and gamma, of several, is 1. `log` is called with each loss, in words.
    """
    first_attention_C = ATTENTION_CS[0] if attention_C is None else attention_C
    # 1) a sample, and its folds
    n_different, sample = documents.sample()
    groups = sample.near_groups
    share_of_different = _count_distinct(groups) / _count_distinct(sample.copies)
    n_different = round(n_different * share_of_different)
    guess = share_of_different * guess_C(mean, documents.statistics) if C is None else C
    n_telling = _count_telling(sample, groups, n_different)
    says_enough = n_telling >= LEAST_TELLING or len(scales) > 1
    held_together = sample.held_together
    if _count_distinct(held_together) < 2 * N_FOLDS or not says_enough:
        scale = scales[0] if len(scales) == 1 else 1.0
        return Choice(guess, first_attention_C, np.empty(0), np.empty((0, 0)), None, scale)
    folds = assign_folds(held_together, sample.targets, sample.weights, N_FOLDS)
    n_wanted = np.ceil(ENOUGH_DOCUMENTS / max(n_telling, 1.0))
    n_used = int(np.clip(n_wanted, 1, N_FOLDS))
    fits = []
    for fold in range(n_used):
        fit = HeldOut(
            sample, folds == fold, dtype, device, attention_C=first_attention_C, **model_params
        )
        fits.append(fit)
    held_out_share = n_telling / (n_telling + GUESS_WORTH)
    search = _Search(fits, guess, held_out_share, C, first_attention_C, log)
    # 2) the path of each gamma
    choices = [search.choose(scale, first_attention_C) for scale in scales]
    choice = min(choices, key=attrgetter("best"))
    averaged = choice  # of one
    if len(choices) > 1:
        is_held_out = folds < n_used
        n_held_out = _count_distinct(groups[is_held_out])
        averaged = _averaged(choices, n_held_out, C)
    if C is not None or attention_C is not None:
        return averaged
    # 3) the paths of larger attention_C, if the largest lowers the loss
    if not search.gains(choice, ATTENTION_CS[-1]):
        return averaged
    candidates = [choice]
    for larger in ATTENTION_CS[1:]:
        candidates.append(search.choose(choice.scale, larger))
    best_candidate = min(candidates, key=attrgetter("best"))
    return averaged if best_candidate is choice else best_candidate


def _count_distinct(numbers: Numbers) -> int:
    """Return the number of different numbers."""
    return len(np.unique(numbers))


def _count_telling(sample: Documents, groups: Numbers, n_different: int) -> float:
    """Return the number of documents that tell about C, of so many different ones."""
    if sample.targets.multilabel:
        return float(n_different)
    _, numbers = np.unique(groups, return_inverse=True)
    of_groups = np.bincount(numbers, sample.weights)
    class_sizes = sample.targets.class_sums(sample.weights / of_groups[numbers])
    share_of_others = 1.0 - float(class_sizes.max() / class_sizes.sum())
    return n_different * min(1.0, MOST_OF_A_CLASS * share_of_others)


@dataclass(frozen=True)
class _Search:
    """The search for C along paths of fits, one after another.

    `guess` is that of C, and `held_out_share`, from 0 to 1, what a held-out choice counts beside
    it. A given `C` is the only one tried.
    """

    fits: list[HeldOut]
    guess: float
    held_out_share: float
    C: float | None
    first_attention_C: float
    log: Callable[[str], None] | None

    def choose(self, scale: float, attention_C: float) -> Choice:
        """Return the choice of C with a gamma and an `attention_C`."""
        for fit in self.fits:
            fit.begin(scale, attention_C)
        setting = f", vectors times {scale:g}" if scale else ""
        if attention_C != self.first_attention_C:
            setting += f", attention_C {attention_C:g}"
        # 1) the losses along the path, until they rise
        tried: list[float] = []
        losses: list[list[float]] = []
        for C in (self.C,) if self.C is not None else CS:
            tried.append(C)
            losses.append([fit.loss(C) for fit in self.fits])
            if self.log is not None:
                self.log(f"C {C:.3g}{setting}: held-out loss {np.mean(losses[-1]):.4f}")
            if len(losses) > 1 and np.mean(losses[-1]) > np.mean(losses[-2]):
                break
        losses_by_fold = np.array(losses).T
        # 2) the mean of the best and the guess, in logarithms
        mean_losses = losses_by_fold.mean(axis=0)
        best_log_C = _least(np.log(tried), mean_losses)
        share = self.held_out_share
        log_C = share * best_log_C + (1 - share) * np.log(self.guess)
        C = self.C or float(np.exp(log_C))
        point = self.fits[0].point_up_to(C)
        return Choice(C, attention_C, np.array(tried), losses_by_fold, point, scale, scale)

    def gains(self, choice: Choice, attention_C: float) -> bool:
        """Return whether a larger `attention_C` lowers the held-out loss enough.

        It is tried once, with a smaller C than the best so far: the freer the scores, the smaller
        the best C, by about this divisor.
        """
        share = self.held_out_share
        least_gain = LEAST_GAIN / share if share > 0 else np.inf
        mean_losses = choice.losses.mean(axis=0)
        best_column = int(mean_losses.argmin())
        C = float(choice.Cs[best_column]) / (1.0 + 2.0 * attention_C)
        loss = np.mean([fit.loss_from(C, choice.scale, attention_C) for fit in self.fits])
        if self.log is not None:
            self.log(f"C {C:.3g}, attention_C {attention_C:g}: held-out loss {loss:.4f}")
        return bool(loss < (1.0 - least_gain) * mean_losses[best_column])


def _least(x: Array, values: Array) -> float:
    """Return the x of the minimum, by a parabola through the least value and its neighbours."""
    best = int(values.argmin())
    if best in (0, len(values) - 1):
        return float(x[best])
    # 1) the slopes between the three, which the parabola has in the middles
    near = x[best - 1 : best + 2]
    slopes = np.diff(values[best - 1 : best + 2]) / np.diff(near)
    middles = (near[:-1] + near[1:]) / 2
    # 2) where a line through them is 0
    curvature = slopes[1] - slopes[0]
    if not curvature > 0:
        return float(x[best])
    distance = middles[1] - middles[0]
    return float(middles[0] - slopes[0] * distance / curvature)


def _averaged(choices: list[Choice], n_held_out: int, C: float | None) -> Choice:
    """Return the mean of choices with several gammas, weighted by their held-out losses."""
    losses = np.array([choice.best for choice in choices])
    weights = softmax(-n_held_out * losses)
    scales = [choice.scale for choice in choices]
    scale = float(weights @ scales)
    if C is None:
        log_Cs = np.log([choice.C for choice in choices])
        C = float(np.exp(weights @ log_Cs))
    best = choices[int(losses.argmin())]
    return replace(best, C=C, scale=scale)


def guess_C(mean: PriorMean | None, statistics: CorpusStatistics) -> float:
    """Return the guess of C from the prior mean and the documents' statistics."""
    if mean is None:
        return 1.0
    # 1) the loss of naive Bayes relative to the entropy of the classes
    priors = statistics.priors
    entropy = -float(priors @ np.log(priors))
    if statistics.multilabel:
        entropy -= float((1 - priors) @ np.log1p(-priors))
    relative_loss = min(mean.mean_loss / entropy, 1.0)
    # 2) the same with documents whose tokens tell nothing
    uninformative = GUESS_DOCUMENTS / (statistics.total_weight + GUESS_DOCUMENTS)
    nu = uninformative + (1 - uninformative) * relative_loss
    log_C = 1.66 - 4.14 * nu
    return float(np.exp(log_C))


class HeldOut:
    """Fits without some documents, and the loss of these, on the tokens of the others.

    `held_out`, (n_documents,), says which. The other parameters are those of :func:`choose_C`.
    """

    def __init__(
        self,
        documents: Documents,
        held_out: NDArray[np.bool_],
        dtype: type[np.floating[Any]],
        device: torch.device | str,
        **model_params: Any,
    ) -> None:
        # 1) the fits without these documents
        kept = documents.rows(np.flatnonzero(~held_out))
        # A token that is only in documents held out still counts, by its vector.
        self._tokens = np.arange(documents.shape[1])
        if model_params.get("vectors") is None:
            kept, self._tokens = kept.without_unseen_tokens()
        self._path = AttentionPath(kept, dtype, device, **model_params)
        # 2) the documents held out, and their loss
        asked = documents.rows(np.flatnonzero(held_out))
        if not asked.targets.multilabel:
            # Nothing can be learned of a class that is held out altogether.
            is_known = (kept.class_sizes() > 0).astype(np.float64)
            asked = asked.with_class_factors(is_known)
        targets = asked.targets
        self._bags = asked.bags.columns(self._tokens)
        self._output_loss = output_loss(targets, asked.weights)
        self._n_tokens = documents.shape[1]
        self._points: dict[float, torch.Tensor] = {}
        self._tol = SEARCH_TOL * (targets.n_outputs if targets.multilabel else 1)

    def begin(self, scale: float, attention_C: float) -> None:
        """Set the scale gamma of the vectors' part of the values and `attention_C`."""
        self._path.set_vector_scale(scale)
        self._path.set_attention_C(attention_C)
        self._points.clear()

    def loss_from(self, C: float, scale: float, attention_C: float) -> float:
        """Return the loss with another `attention_C`, trained from a smaller C's fit if any."""
        smaller = [other for other in self._points if other <= C]
        if smaller:
            self._path.start_at(self._points[max(smaller)])
        self.begin(scale, attention_C)
        return self.loss(C)

    def loss(self, C: float) -> float:
        """Return the held-out documents' mean log loss."""
        result = self._path.fit(C, max_iter=_MAX_ITER, tol=self._tol)
        self._points[C] = self._path.objective.start
        total = float(self._output_loss.weights.sum())
        if not total:
            return 0.0
        outputs = torch.from_numpy(result.model.outputs(self._bags))
        loss, _ = self._output_loss(outputs)
        return loss / total

    def point_up_to(self, C: float) -> torch.Tensor | None:
        """Return the trained numbers for the largest C tried that is not above this one."""
        tried = [other for other in self._points if other <= C]
        if not tried:
            return None
        largest = self._points[max(tried)]
        # Rows of the tokens of training, of the weights of vectors, and of <cls> and intercepts.
        n_seen = len(self._tokens)
        n_rows = self._n_tokens + len(largest) - n_seen
        point = largest.new_zeros((n_rows, largest.shape[1]))
        point[self._tokens] = largest[:n_seen]
        point[self._n_tokens :] = largest[n_seen:]
        return point
