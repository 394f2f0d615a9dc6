"""AttentionNetworkClassifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, Options
from sklearn.utils.validation import check_is_fitted

from .._saved import public
from ._classifier import PaperClassifier, documented

if TYPE_CHECKING:
    from .._core.fitted import FittedModel
    from .._core.problem import FitResult
    from ._fitted_network import FittedNetwork


@public("sklearn_clsattn.paper")
@documented
class AttentionNetworkClassifier(PaperClassifier):
    r"""One or two layers of attention, with or without an MLP, trained by mini-batches.

    The deeper ablations of the paper. With two layers, the first is self-attention among the
    document's tokens, and both have a key-query matrix. With the MLP, a hidden layer of
    `embedding_dim` units follows the softmax, and decisions are no sums over tokens.

    Parameters
    ----------
    n_layers : {1, 2}, default=1
        Layers of attention.
    mlp : bool, default=False
        Whether a hidden layer follows the softmax.
    embedding_dim : int, default=128
        Dimension d of the embeddings, at least 2, and 1 + K for K > 2 classes.
    learning_rate : float, default=1e-3
        Learning rate of Adam.
    batch_size : int, default=50
        Documents in a mini-batch.
    {beyond_the_paper}
    {early_stopping}
    n_iter_no_change : int, default=5
        Number of epochs without improvement after which training stops.
    {class_weight}
    max_iter : int, default=100
        Maximum number of epochs.
    tol : float, default=1e-3
        Without early stopping, training stops when `n_iter_no_change` epochs together lower the
        training loss by no more than this, in nats per document.
    random_state : int, RandomState instance or None, default=None
        Draws the start, the mini-batches and the documents held out.
    verbose : int, default=0
        Prints the loss and the validation loss of every `verbose`-th epoch. scikit-learn's
        callbacks (from 1.9 on, ``set_callbacks``) are called after every one.
    {device}

    Attributes
    ----------
    {attributes}
    key_query_ : ndarray of shape (2, d, d)
        The key-query matrices W_1 and W_2 of two layers: a token i attends to j by E_i W_1 E_j, and
        ``<cls>`` to i by p W_2 h_i. Only with two layers.
    validation_loss_curve_ : ndarray of shape (n_iterations + 1,)
        Mean loss of the documents held out, in nats. Only with early stopping.
    {see_also}

    Notes
    -----
    With two layers `attention_scores_` are E.W_2' p, with the key-query matrix W_2 of the second,
    and a token adds the values of what it attends to as well as its own. With the MLP
    `token_values_` are a diagnostic only, and :meth:`contributions` raises a ValueError.

    References
    ----------
    {reference}

    Examples
    --------
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.paper import AttentionNetworkClassifier
    >>> X, y = make_token_classification(200, random_state=0)
    >>> model = AttentionNetworkClassifier(
    ...     n_layers=2, embedding_dim=8, learning_rate=0.1, random_state=0
    ... ).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _solver_name, _criterion = "adam", "validation loss"
    _optional_attributes = ("validation_loss_curve_",)

    _network: FittedNetwork

    _parameter_constraints = {
        **PaperClassifier._parameter_constraints,
        "n_layers": [Options(Integral, {1, 2})],
        "mlp": ["boolean"],
        "embedding_dim": [Interval(Integral, 2, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "attend_cls": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_layers: int = 1,
        mlp: bool = False,
        embedding_dim: int = 128,
        learning_rate: float = 1e-3,
        batch_size: int = 50,
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
        self.n_layers = n_layers
        self.mlp = mlp
        self.embedding_dim = embedding_dim
        self.learning_rate = learning_rate
        self.batch_size = batch_size
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

    @property
    def key_query_(self) -> NDArray[np.floating[Any]]:
        """The key-query matrices W_1 and W_2 of two layers."""
        check_is_fitted(self)
        network = self._network
        if network.first_key_query is None or network.second_key_query is None:
            raise AttributeError("key_query_ is of two layers: this model has n_layers=1.")
        return np.stack([network.first_key_query, network.second_key_query])

    def _trainer(self) -> Callable[..., FitResult]:
        from ._minibatch import fit_network

        return fit_network

    def _model(self) -> FittedNetwork:
        return self._network

    def _model_attributes(
        self, model: FittedModel, entry_scale: float | None, unit: float = 1.0
    ) -> dict[str, Any]:
        attributes = super()._model_attributes(model, entry_scale, unit)
        network = replace(cast("FittedNetwork", model), cls_weight=attributes["cls_weight_"])
        return {**attributes, "_network": network}
