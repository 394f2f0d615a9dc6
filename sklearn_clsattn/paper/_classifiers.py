"""The classifiers of `sklearn_clsattn.paper`, and their common base."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import BaseAttentionClassifier
from .._sklearn import Interval, Options, StrOptions

if TYPE_CHECKING:
    from ..training.documents import Documents
    from ..training.fitted_model import FitResult
    from ._fitted_network import FittedNetwork
    from ._trainer import FitOptions

POSITIVE = Interval(Real, 0, None, closed="neither")
AT_LEAST_1 = Interval(Integral, 1, None, closed="left")
AT_LEAST_2 = Interval(Integral, 2, None, closed="left")
SHARED_CONSTRAINTS: dict[str, Any] = {
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "max_iter": [AT_LEAST_1],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "device": "no_validation",  # may be a torch.device; resolve_device checks it
}
TRAINING_CONSTRAINTS = SHARED_CONSTRAINTS | {
    "fit_intercept": ["boolean"],
    "attend_cls": ["boolean"],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [AT_LEAST_1],
    "tol": [Interval(Real, 0, None, closed="left")],
}


class PaperClassifier(BaseAttentionClassifier):
    """Base of the classifiers of this subpackage, which draw random numbers from `random_state`."""

    random_state: int | np.random.RandomState | None

    def _train(self, documents: Documents, **options: Any) -> FitResult:
        from ._trainer import FitOptions

        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return self._train_with(FitOptions(seed, **options), documents)

    def _train_with(self, options: FitOptions, documents: Documents) -> FitResult:
        """Train on the documents; each classifier implements this."""
        raise NotImplementedError


class OneStepClassifier(PaperClassifier):
    r"""One gradient step on the embeddings, then ``<cls>`` alone: the regime of the paper.

    Random embeddings E get one full-batch gradient step, which writes each token's importance
    along the output vector (Lemma 4.1). Then E and v are frozen and p is trained until its
    direction converges. By Theorem 4.3 this is the max-margin direction, which separates each
    document's selected tokens from its other tokens. On real text this predicts poorly.

    Parameters
    ----------
    step_size : float, default=None
        Size eta_0 of the gradient step. By default the value of the most important token becomes
        1, or less for more than two classes and in finite dimensions.
    embedding_dim : int, default=None
        Dimension d of the embeddings: at least 2, and at least 1 + K for K > 2 classes. None is the
        limit of infinitely many dimensions, where nothing is random.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in :class:`~sklearn.linear_model.LogisticRegression`.
    max_iter : int, default=1000
        Maximum number of steps along the flow.
    random_state : int, RandomState instance or None, default=None
        Draws E, p and v of finite dimension.
    verbose : int, default=0
        If positive, print the loss of every `verbose`-th iteration.
    device : str or torch.device, default="cpu"
        Device for training: "cpu", "cuda", "auto" (CUDA if available) or a ``torch.device``.
        Prediction always runs on the CPU, without PyTorch.

    Attributes
    ----------
    classes_, token_importance_, attention_scores_, token_values_, intercept_ : ndarray
        As in `ClsAttentionClassifier`.
    cls_score_, cls_weight_, cls_embedding_, output_vector_, token_embeddings_ : float or ndarray
        Likewise. If ``<cls>`` does not attend to itself, its score is -inf and its weight 0.
    selected_tokens_, selection_counts_, n_features_in_, feature_names_in_ : ndarray or int
        Likewise.
    n_iter_, loss_curve_ : int and ndarray of shape (n_iterations + 1,)
        Number of iterations, as `max_iter` counts them, and the training loss, in nats per
        document, at the start and after each.
    step_size_ : float
        The step size eta_0 used.
    direction_error_ : float
        Certified bound on 1 minus the cosine of p to the max-margin direction of the selected
        tokens; 2, which is no bound, if the selection did not settle.

    Notes
    -----
    p is trained until the selected tokens have not changed over a distance of 300 in score units
    and hold 99 % of the attention. Its direction is then that of :func:`max_margin_direction`,
    which needs PIQP (``pip install 'sklearn-clsattn[theory]'``). A step along the flow takes from
    three to a thousand evaluations of the gradient (``docs/theory.md``).

    References
    ----------
    D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained Embeddings Provably
    Selects Important Tokens. NeurIPS 2025, arXiv:2505.17282.

    Examples
    --------
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.paper import OneStepClassifier
    >>> X, y = make_token_classification(120, delta=0, single_relevant=True, random_state=0)
    >>> model = OneStepClassifier().fit(X, y)
    >>> bool(model.direction_error_ < 1e-6)
    True
    >>> model.score(X, y)
    1.0
    """

    _criterion = "unselected attention"

    _parameter_constraints = SHARED_CONSTRAINTS | {
        "step_size": [POSITIVE, None],
        "embedding_dim": [AT_LEAST_2, None],
    }

    def __init__(
        self,
        *,
        step_size: float | None = None,
        embedding_dim: int | None = None,
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        device: Any = "cpu",
    ) -> None:
        self.step_size = step_size
        self.embedding_dim = embedding_dim
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn checks the accuracy on three classes of documents of two tokens. The
        # importances of two tokens are opposite numbers: one line cannot separate three classes.
        tags.classifier_tags.poor_score = True
        return tags

    def _train_with(self, options: FitOptions, documents: Documents) -> FitResult:
        from ._gradient_flow import fit_one_step

        return fit_one_step(documents, self, options)


class EmbeddingClassifier(PaperClassifier):
    r"""Embeddings, ``<cls>`` and output vectors trained together by Adam or gradient descent.

    This is the training behind the figures of the paper, from its random start, and two of its
    ablations: embeddings that stay as drawn, or get one step. There is no penalty; training stops
    early instead.

    Parameters
    ----------
    embedding_dim : int, default=None
        Dimension d of the embeddings: at least 2, and at least 1 + K for K > 2 classes; 2048 in
        the paper. None trains scores E.p and values E.v instead of embeddings, from 0.
    learning_rate : float, default=None
        By default 1e-3 for Adam, or 0.036 without a dimension, and 1 for gradient descent.
    solver : {"adam", "sgd"}, default="adam"
        Adam, or plain (stochastic) gradient descent.
    batch_size : int, default=None
        Number of documents in a mini-batch. By default each step uses all documents.
    train_embeddings : bool or "one_step", default=True
        Whether to train E. False leaves it as drawn and trains only p and the output vectors, for a
        direct comparison with frozen embeddings. "one_step" first makes one full-batch gradient
        step on E and then does the same. Both need an `embedding_dim`.
    step_size : float, default=None
        Size eta_0 of that one step. By default the value of the most important token becomes 1, or
        less for more than two classes.
    fit_intercept : bool, default=True
        Whether to train intercepts. The paper's model has none.
    attend_cls : bool, default=True
        Whether ``<cls>`` attends to itself. In the paper it does not.
    early_stopping : bool, default=True
        Whether to hold out documents, stop when their loss no longer falls, and keep the model with
        their lowest loss. False trains on all documents until the training loss no longer falls.
    validation_fraction : float, default=0.1
        Fraction of each class's documents to hold out for early stopping.
    n_iter_no_change : int, default=5
        Number of iterations without improvement after which training stops.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in :class:`~sklearn.linear_model.LogisticRegression`.
    max_iter : int, default=100
        Maximum number of iterations: steps or, with mini-batches, epochs.
    tol : float, default=1e-3
        Without early stopping, training stops when `n_iter_no_change` iterations together lower
        the training loss by at most this much, in nats per document.
    random_state : int, RandomState instance or None, default=None
        Draws the start, the mini-batches and the held-out documents.
    verbose : int, default=0
        If positive, print the loss of every `verbose`-th iteration.
    device : str or torch.device, default="cpu"
        Device for training: "cpu", "cuda", "auto" (CUDA if available) or a ``torch.device``.
        Prediction always runs on the CPU, without PyTorch.

    Attributes
    ----------
    classes_, token_importance_, attention_scores_, token_values_, intercept_ : ndarray
        As in `ClsAttentionClassifier`.
    cls_score_, cls_weight_, cls_embedding_, output_vector_, token_embeddings_ : float or ndarray
        Likewise. If ``<cls>`` does not attend to itself, its score is -inf and its weight 0.
    selected_tokens_, selection_counts_, n_features_in_, feature_names_in_ : ndarray or int
        Likewise.
    n_iter_, loss_curve_ : int and ndarray of shape (n_iterations + 1,)
        Number of iterations, as `max_iter` counts them, and the training loss, in nats per
        document, at the start and after each.
    validation_loss_curve_ : ndarray of shape (n_iterations + 1,)
        Mean loss of the held-out documents, in nats. Only with early stopping.

    References
    ----------
    D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained Embeddings Provably
    Selects Important Tokens. NeurIPS 2025, arXiv:2505.17282.

    Examples
    --------
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.paper import EmbeddingClassifier
    >>> X, y = make_token_classification(200, random_state=0)
    >>> model = EmbeddingClassifier(embedding_dim=16, learning_rate=0.1, random_state=0).fit(X, y)
    >>> model.token_embeddings_.shape[1]
    16
    """

    _criterion = "validation loss"

    _parameter_constraints = TRAINING_CONSTRAINTS | {
        "embedding_dim": [AT_LEAST_2, None],
        "learning_rate": [POSITIVE, None],
        "solver": [StrOptions({"adam", "sgd"})],
        "batch_size": [AT_LEAST_1, None],
        "train_embeddings": ["boolean", StrOptions({"one_step"})],
        "step_size": [POSITIVE, None],
    }

    def __init__(
        self,
        *,
        embedding_dim: int | None = None,
        learning_rate: float | None = None,
        solver: str = "adam",
        batch_size: int | None = None,
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
        self.batch_size = batch_size
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

    def _train_with(self, options: FitOptions, documents: Documents) -> FitResult:
        from ._embeddings import fit_embeddings

        return fit_embeddings(documents, self, options)


class AttentionNetworkClassifier(PaperClassifier):
    r"""One or two layers of attention, with or without an MLP, trained with mini-batches.

    These are the deeper ablations of the paper. With two layers, the first is self-attention among
    the document's tokens, and both have a key-query matrix. With the MLP, a hidden layer of
    `embedding_dim` units follows the softmax, and decisions are not sums over tokens.

    Parameters
    ----------
    n_layers : {1, 2}, default=1
        Number of attention layers.
    mlp : bool, default=False
        Whether a hidden layer follows the softmax.
    embedding_dim : int, default=128
        Dimension d of the embeddings: at least 2, and at least 1 + K for K > 2 classes.
    learning_rate : float, default=1e-3
        Learning rate of Adam.
    batch_size : int, default=50
        Number of documents in a mini-batch.
    fit_intercept : bool, default=True
        Whether to train intercepts. The paper's model has none.
    attend_cls : bool, default=True
        Whether ``<cls>`` attends to itself. In the paper it does not.
    early_stopping : bool, default=True
        Whether to hold out documents, stop when their loss no longer falls, and keep the model with
        their lowest loss. False trains on all documents until the training loss no longer falls.
    validation_fraction : float, default=0.1
        Fraction of each class's documents to hold out for early stopping.
    n_iter_no_change : int, default=5
        Number of iterations without improvement after which training stops.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in :class:`~sklearn.linear_model.LogisticRegression`.
    max_iter : int, default=100
        Maximum number of iterations: steps or, with mini-batches, epochs.
    tol : float, default=1e-3
        Without early stopping, training stops when `n_iter_no_change` iterations together lower
        the training loss by at most this much, in nats per document.
    random_state : int, RandomState instance or None, default=None
        Draws the start, the mini-batches and the held-out documents.
    verbose : int, default=0
        If positive, print the loss of every `verbose`-th iteration.
    device : str or torch.device, default="cpu"
        Device for training: "cpu", "cuda", "auto" (CUDA if available) or a ``torch.device``.
        Prediction always runs on the CPU, without PyTorch.

    Attributes
    ----------
    classes_, token_importance_, attention_scores_, token_values_, intercept_ : ndarray
        As in `ClsAttentionClassifier`.
    cls_score_, cls_weight_, cls_embedding_, output_vector_, token_embeddings_ : float or ndarray
        Likewise. If ``<cls>`` does not attend to itself, its score is -inf and its weight 0.
    selected_tokens_, selection_counts_, n_features_in_, feature_names_in_ : ndarray or int
        Likewise.
    n_iter_, loss_curve_ : int and ndarray of shape (n_iterations + 1,)
        Number of iterations, as `max_iter` counts them, and the training loss, in nats per
        document, at the start and after each.
    validation_loss_curve_ : ndarray of shape (n_iterations + 1,)
        Mean loss of the held-out documents, in nats. Only with early stopping.

    Notes
    -----
    With two layers, `attention_scores_` are E.W_2' p, and a token adds its own value and the values
    of the tokens that it attends to. With the MLP, `token_values_` are only a diagnostic, and
    :meth:`contributions` raises a ValueError.

    References
    ----------
    D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained Embeddings Provably
    Selects Important Tokens. NeurIPS 2025, arXiv:2505.17282.

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

    _criterion = "validation loss"

    _network: FittedNetwork

    _parameter_constraints = TRAINING_CONSTRAINTS | {
        "n_layers": [Options(Integral, {1, 2})],
        "mlp": ["boolean"],
        "embedding_dim": [AT_LEAST_2],
        "learning_rate": [POSITIVE],
        "batch_size": [AT_LEAST_1],
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

    def _train_with(self, options: FitOptions, documents: Documents) -> FitResult:
        from ._network import fit_network

        return fit_network(documents, self, options)

    def _model(self) -> FittedNetwork:
        check_is_fitted(self)
        return self._network

    def _model_attributes(self, model: Any, entry_scale: float | None) -> dict[str, Any]:
        return {**super()._model_attributes(model, entry_scale), "_network": model}
