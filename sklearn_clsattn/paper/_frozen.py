r"""Training with frozen random embeddings: the paper's ablation, in which E stays as drawn.

With the value scale :math:`\sigma` of the default training, the same in all tokens,
:math:`a = E p` and :math:`b_k = \sigma E w_k`. What is minimised is the default objective with
:math:`u = E p` and :math:`t_k = E w_k`, but with the penalties on p and w, which start at 0. They
are in the default training's units: the least :math:`\|p\|^2` with given scores u tends to
:math:`\|u\|^2` as d grows past the number of tokens, and this fit to the default one.
"""

from typing import Any

import numpy as np
import torch

from .._core.attention_problem import AttentionProblem, fitted_attention
from .._core.documents import Documents
from .._core.fitted import FittedAttention
from .._core.problem import Callback, FitResult, solve
from .._core.statistics import CorpusStatistics, token_scaling
from ..theory._gradient_step import draw_embeddings
from ._embedding_source import RedrawnEmbeddings


def fit_frozen(
    documents: Documents,
    *,
    embedding_dim: int,
    seed: int,
    C: float,
    attention_C: float,
    fit_intercept: bool = True,
    attend_cls: bool = True,
    max_iter: int,
    tol: float,
    dtype: type[np.floating[Any]] = np.float64,
    device: torch.device | str = "cpu",
    callback: Callback | None = None,
) -> FitResult:
    """Train p and the output vectors over random embeddings by L-BFGS."""
    problem = FrozenProblem(
        documents,
        embedding_dim=embedding_dim,
        seed=seed,
        C=C,
        attention_C=attention_C,
        fit_intercept=fit_intercept,
        attend_cls=attend_cls,
        dtype=dtype,
        device=device,
    )
    return solve(problem, max_iter=max_iter, tol=tol, callback=callback)


class FrozenProblem(AttentionProblem):
    """The default problem as a function of p and the w_k, with the penalties on these.

    What is trained is a matrix, (d + 1, 1 + n_outputs): a column for p and one for every w_k, over
    a last row with the score of ``<cls>`` and the intercepts.
    """

    def __init__(
        self,
        documents: Documents,
        *,
        embedding_dim: int,
        seed: int,
        C: float,
        attention_C: float,
        fit_intercept: bool = True,
        attend_cls: bool,
        dtype: type[np.floating[Any]],
        device: torch.device | str,
    ) -> None:
        units = token_scaling(
            documents.statistics, scaling=None, attend_cls=attend_cls, dtype=dtype
        )
        loss = documents.loss(documents.bag(dtype, device), cls_weight=units.cls_weight)
        super().__init__(
            loss,
            documents.statistics.class_weights,
            units,
            C=C * _C_scale(documents.statistics),
            attention_C=attention_C,
        )
        drawn = draw_embeddings(
            documents.X.shape[1],
            loss.n_outputs,
            embedding_dim,
            seed=seed,
            dtype=loss.bag.dtype,
            device=device,
        )
        self._seed = seed
        # All tokens have the same scale; without tokens it is not used.
        self._scales = torch.ones_like(self.start[-1, 1:])
        if len(self.units.value_scales):
            self._scales = self.units.value_scales[0]
        self.token_map = FrozenMap(drawn.embeddings, self._scales, fit_intercept)
        last_row = self.start[-1]
        self.start = last_row.new_zeros((embedding_dim + 1, len(last_row)))
        self.start[-1] = last_row
        if not fit_intercept:
            self.start[-1, 1:] = 0

    def curvature(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mean over random E of the Hessian's diagonal."""
        by_output = self.token_curvature(x)
        scores, values, cls, intercepts = self.blocks
        curvature = torch.empty_like(x)
        curvature[scores.index] = scores.penalty
        of_values = by_output[:-1].sum(dim=0, dtype=torch.float64) / (len(x) - 1)
        curvature[values.index] = of_values + values.penalty
        curvature[cls.index] = cls.penalty
        curvature[intercepts.index] = by_output[-1]
        return curvature

    def model(self, x: torch.Tensor) -> FittedAttention:
        """Return the model at a point, with its embeddings."""
        trained = x[:-1].to("cpu", torch.float64).numpy()
        embeddings = RedrawnEmbeddings(
            cls_embedding=trained[:, 0].copy(),
            output_vectors=(
                trained[:, 1:] * self._scales.to("cpu", torch.float64).numpy()
            ).T.copy(),
            n_tokens=self.loss.bag.shape[1],
            seed=self._seed,
            single_precision=x.dtype == torch.float32,
        )
        return fitted_attention(self.token_map.matrix(x), self.loss.cls_weight, embeddings)


class FrozenMap:
    """The token matrix of frozen embeddings: [E p | scale_k E w_k] over the last row."""

    def __init__(
        self, embeddings: torch.Tensor, scales: torch.Tensor, fit_intercept: bool = True
    ) -> None:
        self.embeddings, self.scales, self._fit_intercept = embeddings, scales, fit_intercept

    def matrix(self, x: torch.Tensor) -> torch.Tensor:
        """Return the token matrix of x, shape (d + 1, 1 + n_outputs)."""
        matrix = torch.cat([self.embeddings @ x[:-1], x[-1:]])
        matrix[:-1, 1:] *= self.scales
        return matrix

    def pull_back(self, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        """Return the gradient by x."""
        gradient[:-1, 1:] *= self.scales
        if not self._fit_intercept:
            gradient[-1, 1:] = 0
        # MKL is twice as fast by rows as at E.T @ gradient.
        by_x = gradient[:-1].T.contiguous() @ self.embeddings
        return torch.cat([by_x.T, gradient[-1:]])


def _C_scale(statistics: CorpusStatistics) -> float:
    """Return C = 1 of frozen embeddings in units of that of the default training.

    Without starting scores and scales, what is good goes with the documents' length, not its root.
    """
    by_class = 16.0 if len(statistics.class_weights) == 2 else 4.0
    length = statistics.mean_token_weight / statistics.mean_entry if statistics.mean_entry else 1.0
    return float(by_class / np.sqrt(length))
