"""OneStepClassifier."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._saved import public
from ._classifier import PaperClassifier, documented

if TYPE_CHECKING:
    from .._core.problem import FitResult
    from ..theory import TheoremConditions


@public("sklearn_clsattn.paper")
@documented
class OneStepClassifier(PaperClassifier):
    r"""One gradient step on the embeddings, then ``<cls>`` alone: the regime of the paper.

    Random embeddings E get one full-batch gradient step, which writes every token's importance
    along the output vector (Lemma 4.1). Then E and v are frozen and p is trained until its
    direction converges; by Theorem 4.3 that is the max-margin direction, which separates every
    document's selected tokens from its others. There are no intercepts, and ``<cls>`` does not
    attend to itself. On real text this predicts poorly; :class:`PenalizedOneStepClassifier` is
    the practical form.

    Parameters
    ----------
    step_size : float, default=None
        Size eta_0 of the gradient step; by default the one that makes the most important
        token's value 1, or less for more than two classes and in finite dimensions. A step that
        is too large or too small to work causes a warning.
    embedding_dim : int, default=None
        Dimension d of the embeddings, at least 2, and 1 + K for K > 2 classes. None is the
        limit of infinitely many: nothing is drawn.
    {class_weight}
    solver : {"flow", "descent"}, default="flow"
        How p is trained until its selection settles: along gradient flow, integrated with
        adaptive steps; or by normalised descent, steps that each change the largest score by 2,
        which is not gradient flow and can settle on another selection.
    flow_tol : float, default=1e-3
        Largest local error of a score in a step along the flow, relative to one more than its
        size.
    max_iter : int, default=1000
        Maximum number of steps along the flow, or of descent.
    tol : float, default=1e-3
        The direction of p has converged when 1 less its cosine to the max-margin direction is
        certified to be at most this.
    random_state : int, RandomState instance or None, default=None
        Draws E, p and v of finite dimension.
    verbose : int, default=0
        Prints the loss and the largest unselected attention of every `verbose`-th step.
        scikit-learn's callbacks (from 1.9 on, ``set_callbacks``) are called after every one.
    {device}

    Attributes
    ----------
    {attributes}
    step_size_ : float
        The step size eta_0 used.
    direction_curve_ : ndarray of shape (n_ascent_steps,)
        Certified bound on 1 less the cosine of p to the max-margin direction of the selected
        tokens after each step of margin maximisation; empty where the selection did not settle.
    conditions_ : TheoremConditions
        Which conditions of Theorem 4.3 hold for this fit: ``print`` says it.
    {see_also}

    Notes
    -----
    p is trained until the selected tokens have not changed over a way of 60 in score units and
    hold 99 % of the attention, then by margin maximisation on that selection: ``docs/theory.md``
    says how the flow is integrated. A step along the flow takes from three to a thousand
    evaluations of the gradient, more where it is stiff; one of descent takes one.

    References
    ----------
    {reference}

    Examples
    --------
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.paper import OneStepClassifier
    >>> X, y = make_token_classification(120, delta=0, single_relevant=True, random_state=0)
    >>> model = OneStepClassifier().fit(X, y)
    >>> bool(model.direction_curve_[-1] <= model.tol)
    True
    >>> model.score(X, y)
    1.0
    >>> print(model.conditions_)
    The conditions of Theorem 4.3 do not all hold here, or are not certified.
      One relevant token a document (Assumption 1): holds.
      eta_0 large enough: not certified, n L(p0) = 82.3 >= log 2.
      The direction of p converges: certified.
    """

    _conditions: tuple[bool, float, bool]
    _solver_name, _criterion = "flow", "unselected attention"

    _parameter_constraints = {
        **PaperClassifier._parameter_constraints,
        "step_size": [Interval(Real, 0, None, closed="neither"), None],
        "embedding_dim": [Interval(Integral, 2, None, closed="left"), None],
        "solver": [StrOptions({"flow", "descent"})],
        "flow_tol": [Interval(Real, 0, 0.1, closed="neither")],
    }

    def __init__(
        self,
        *,
        step_size: float | None = None,
        embedding_dim: int | None = None,
        class_weight: dict[Any, float] | str | None = None,
        solver: str = "flow",
        flow_tol: float = 1e-3,
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        device: Any = "cpu",
    ) -> None:
        self.step_size = step_size
        self.embedding_dim = embedding_dim
        self.class_weight = class_weight
        self.solver = solver
        self.flow_tol = flow_tol
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    @property
    def conditions_(self) -> TheoremConditions:
        """Which conditions of Theorem 4.3 hold for this fit."""
        from ..theory import TheoremConditions

        check_is_fitted(self)
        return TheoremConditions(*self._conditions)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn checks the accuracy on three classes of documents of two tokens. The
        # importances of two tokens are opposite numbers: one line cannot separate three classes.
        tags.classifier_tags.poor_score = True
        return tags

    def _trainer(self) -> Callable[..., FitResult]:
        from ._gradient_flow import fit_one_step

        return fit_one_step
