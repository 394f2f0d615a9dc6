"""FrozenEmbeddingClassifier."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import Interval

from .._saved import public
from ._classifier import PaperClassifier, documented

if TYPE_CHECKING:
    from .._core.problem import FitResult


@public("sklearn_clsattn.paper")
@documented
class FrozenEmbeddingClassifier(PaperClassifier):
    r"""Random embeddings stay as drawn: the ablation of the paper.

    Only p, the output vectors, the intercepts and the score of ``<cls>`` are trained, by L-BFGS
    with L2 penalties. As the dimension grows past the number of tokens, the fit tends to that of
    :class:`~sklearn_clsattn.ClsAttentionClassifier` with ``token_scaling=None``.

    Parameters
    ----------
    embedding_dim : int, default=2048
        Dimension d of the embeddings, at least 2, and 1 + K for K > 2 classes; 2048 in the paper.
    C : float, default=1.0
        Inverse strength of the L2 penalty on the output vectors.
    attention_C : float, default=0.03
        Inverse strength of the L2 penalty on p.
    {beyond_the_paper}
    {class_weight}
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-3
        Training stops when the optimality gap is at most this, in nats per document: an
        estimate of how far the loss is above a stationary one.
    random_state : int, RandomState instance or None, default=None
        Draws E.
    verbose : int, default=0
        Prints the loss and the gap of every `verbose`-th iteration. scikit-learn's callbacks
        (from 1.9 on, ``set_callbacks``) are called after every one.
    {device}

    Attributes
    ----------
    {attributes}
    optimality_gap_ : float
        The gap reached (see `tol`).
    {see_also}

    Notes
    -----
    Training needs memory for n_tokens * d numbers. The fitted model stores the seed, not E.

    References
    ----------
    {reference}

    Examples
    --------
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.paper import FrozenEmbeddingClassifier
    >>> X, y = make_token_classification(200, random_state=0)
    >>> model = FrozenEmbeddingClassifier(embedding_dim=64, random_state=0).fit(X, y)
    >>> model.token_embeddings_.shape[1]
    64
    """

    _parameter_constraints = {
        **PaperClassifier._parameter_constraints,
        "embedding_dim": [Interval(Integral, 2, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "attention_C": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "attend_cls": ["boolean"],
    }

    def __init__(
        self,
        *,
        embedding_dim: int = 2048,
        C: float = 1.0,
        attention_C: float = 0.03,
        fit_intercept: bool = True,
        attend_cls: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int = 100,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        device: Any = "cpu",
    ) -> None:
        self.embedding_dim = embedding_dim
        self.C = C
        self.attention_C = attention_C
        self.fit_intercept = fit_intercept
        self.attend_cls = attend_cls
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def _trainer(self) -> Callable[..., FitResult]:
        from ._frozen import fit_frozen

        return fit_frozen
