"""PenalizedOneStepClassifier."""

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
class PenalizedOneStepClassifier(PaperClassifier):
    r"""One gradient step on the embeddings, then penalised training of ``<cls>`` and the output.

    The practical form of :class:`OneStepClassifier`. The step gives all classes the same weight;
    then p, the scales of the output vectors, the intercepts and the score of ``<cls>`` are trained
    by L-BFGS, with L2 penalties that keep p finite.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the L2 penalty on the scales of the output vectors.
    attention_C : float, default=0.03
        Inverse strength of the L2 penalty on p.
    step_size : float, default=None
        Size eta_0 of the gradient step; by default the one that makes the most important
        token's value 1, or less for more than two classes. A step that is too large or too small
        to work causes a warning.
    embedding_dim : int, default=None
        Dimension d of the embeddings, at least 2, and 1 + K for K > 2 classes. None is the
        limit of infinitely many: nothing is drawn.
    {beyond_the_paper}
    {class_weight}
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-3
        Training stops when the optimality gap is at most this, in nats per document: an
        estimate of how far the loss is above a stationary one.
    random_state : int, RandomState instance or None, default=None
        Draws E, p and v of finite dimension.
    verbose : int, default=0
        Prints the loss and the gap of every `verbose`-th iteration. scikit-learn's callbacks
        (from 1.9 on, ``set_callbacks``) are called after every one.
    {device}

    Attributes
    ----------
    {attributes}
    step_size_ : float
        The step size eta_0 used.
    optimality_gap_ : float
        The gap reached (see `tol`).
    {see_also}

    Notes
    -----
    The paper trains p alone, without penalties; intercepts, scales and penalties are this
    package's (``docs/theory.md``).

    References
    ----------
    {reference}

    Examples
    --------
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.paper import PenalizedOneStepClassifier
    >>> X, y = make_token_classification(200, random_state=0)
    >>> model = PenalizedOneStepClassifier().fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _parameter_constraints = {
        **PaperClassifier._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "attention_C": [Interval(Real, 0, None, closed="neither")],
        "step_size": [Interval(Real, 0, None, closed="neither"), None],
        "embedding_dim": [Interval(Integral, 2, None, closed="left"), None],
        "fit_intercept": ["boolean"],
        "attend_cls": ["boolean"],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        attention_C: float = 0.03,
        step_size: float | None = None,
        embedding_dim: int | None = None,
        fit_intercept: bool = True,
        attend_cls: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int = 100,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        device: Any = "cpu",
    ) -> None:
        self.C = C
        self.attention_C = attention_C
        self.step_size = step_size
        self.embedding_dim = embedding_dim
        self.fit_intercept = fit_intercept
        self.attend_cls = attend_cls
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # As for OneStepClassifier; random embeddings of finite dimension separate more.
        tags.classifier_tags.poor_score = self.embedding_dim is None
        return tags

    def _trainer(self) -> Callable[..., FitResult]:
        from ._cls_regression import fit_penalized_one_step

        return fit_penalized_one_step
