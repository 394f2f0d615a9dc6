"""EmbeddingClassifier."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .._saved import public
from ._classifier import PaperClassifier, documented

if TYPE_CHECKING:
    from .._core.problem import FitResult


@public("sklearn_clsattn.paper")
@documented
class EmbeddingClassifier(PaperClassifier):
    r"""Embeddings, ``<cls>`` and output vectors trained together on all documents at once.

    The training behind the figures of the paper, from its random start, and two of its ablations:
    embeddings that stay as drawn, or get one step. Nothing of that is penalised: training stops
    early instead.

    Parameters
    ----------
    embedding_dim : int, default=None
        Dimension d of the embeddings, at least 2, and 1 + K for K > 2 classes; 2048 in the
        paper. None trains scores E.p and values E.v in place of the embeddings, from 0.
    learning_rate : float, default=None
        None is 1e-3 for Adam, or 0.036 without a dimension, and 1 for gradient descent.
    solver : {"adam", "gradient_descent"}, default="adam"
        What trains: Adam, or plain gradient descent, both with all documents in every step.
    train_embeddings : bool or "one_step", default=True
        Whether E is trained. False leaves it as drawn and trains p and the output vectors alone:
        the ablation of frozen embeddings, like for like. "one_step" makes one full-batch gradient
        step on E first and then does the same. Both need an `embedding_dim`.
    step_size : float, default=None
        Size eta_0 of that one step; by default the one that makes the most important token's
        value 1, or less for more than two classes.
    {beyond_the_paper}
    {early_stopping}
    n_iter_no_change : int, default=5
        Number of steps without improvement after which training stops.
    {class_weight}
    max_iter : int, default=100
        Maximum number of steps.
    tol : float, default=1e-3
        Without early stopping, training stops when `n_iter_no_change` steps together lower the
        training loss by no more than this, in nats per document.
    random_state : int, RandomState instance or None, default=None
        Draws the start and the documents held out.
    verbose : int, default=0
        Prints the loss and the validation loss of every `verbose`-th step. scikit-learn's
        callbacks (from 1.9 on, ``set_callbacks``) are called after every one.
    {device}

    Attributes
    ----------
    {attributes}
    validation_loss_curve_ : ndarray of shape (n_iterations + 1,)
        Mean loss of the documents held out, in nats. Only with early stopping.
    {see_also}

    Notes
    -----
    Training with a dimension needs memory for five matrices of the size of E, four without
    early stopping.

    References
    ----------
    {reference}

    Examples
    --------
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.paper import EmbeddingClassifier
    >>> X, y = make_token_classification(200, random_state=0)
    >>> model = EmbeddingClassifier(embedding_dim=16, learning_rate=0.1, random_state=0).fit(X, y)
    >>> model.token_embeddings_.shape[1]
    16
    """

    _solver_name, _criterion = "adam", "validation loss"
    _optional_attributes = ("validation_loss_curve_",)

    _parameter_constraints = {
        **PaperClassifier._parameter_constraints,
        "embedding_dim": [Interval(Integral, 2, None, closed="left"), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "solver": [StrOptions({"adam", "gradient_descent"})],
        "train_embeddings": ["boolean", StrOptions({"one_step"})],
        "step_size": [Interval(Real, 0, None, closed="neither"), None],
        "fit_intercept": ["boolean"],
        "attend_cls": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        embedding_dim: int | None = None,
        learning_rate: float | None = None,
        solver: str = "adam",
        train_embeddings: bool | str = True,
        step_size: float | None = None,
        fit_intercept: bool = True,
        attend_cls: bool = True,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int = 100,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        device: Any = "cpu",
    ) -> None:
        self.embedding_dim = embedding_dim
        self.learning_rate = learning_rate
        self.solver = solver
        self.train_embeddings = train_embeddings
        self.step_size = step_size
        self.fit_intercept = fit_intercept
        self.attend_cls = attend_cls
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def _trainer(self) -> Callable[..., FitResult]:
        from ._embeddings import fit_embeddings

        return fit_embeddings
