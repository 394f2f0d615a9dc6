"""The classifier: validates, codes labels, calls a training, stores what came back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from ._callbacks import CallbackSupportMixin, FitCallbacks
from ._documents import (
    as_csr,
    canonical,
    check_total_weight,
    check_two_classes,
    is_plain,
    training_dtype,
)
from ._validation import check_non_negative, code_labels
from .importance import class_totals, signed_frequency
from .model.fitted import FittedAttention, count_selected, most_probable, probabilities

if TYPE_CHECKING:
    from .model.fitted_network import FittedNetwork
    from .training.joint import JointProgress
    from .training.minibatch import NetworkProgress
    from .training.regimes import Settings, Trained


def _learns_from_batches(classifier: ClsAttentionClassifier) -> bool:
    """Whether there is `partial_fit`: a quadratic remembers joint training by L-BFGS alone."""
    asked = (classifier.training, classifier.solver, classifier.n_layers, bool(classifier.mlp))
    why = ""
    if asked != ("joint", "lbfgs", 1, False):
        why = "it is for training='joint', solver='lbfgs', n_layers=1 and mlp=False"
    elif classifier.class_weight == "balanced":
        why = "class_weight='balanced' needs all documents at once: weigh documents or classes"
    elif hasattr(classifier, "classes_") and not hasattr(classifier, "_stream"):
        why = "fit remembers no documents: train a clone() by partial_fit from the start"
    if why:
        raise AttributeError(f"There is no partial_fit here, because {why}.")
    return True


class ClsAttentionClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    r"""Text classifier with one layer of ``<cls>`` attention over token counts.

    A document is a bag of tokens. Each token has one attention score and, per class, one
    value; the prediction is the attention-weighted mean of the values, so that every
    prediction is a sum over the document's tokens. Training is deterministic, on scores and
    values alone, at the price of logistic regression; it is the exact equivalent of training
    embeddings of any dimension (see Notes).

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the L2 penalty on token values, in units in which 1.0 is good
        whatever the documents' length and the scale of X. Larger fits the training data more
        closely.

    attention_C : float, default=0.03
        Inverse strength of the L2 penalty on what the attention scores learn beyond their
        starting point. Small keeps them near it, large (1 and more) lets attention select
        sharply.

    training : {"joint", "one_step", "frozen"}, default="joint"
        "joint": scores and values are trained together, to convergence. "one_step": the
        regime of the paper [1]_, one gradient step on random embeddings, then the embedding
        of ``<cls>`` with the embeddings frozen (see `fit_output`). "frozen": random embeddings
        stay as they are, only ``<cls>`` and the output vectors are trained (the paper's
        ablation); needs `embedding_dim`. `token_scaling` matters to "joint" by "lbfgs" alone.

    solver : {"lbfgs", "adam"}, default="lbfgs"
        "lbfgs": preconditioned L-BFGS on all documents at once, nothing random but embeddings
        of finite dimension. "adam", for ``training="joint"``: Adam on embeddings, ``<cls>`` and
        output vectors themselves where `embedding_dim` is an int (as in the paper's figures),
        else on scores and values, from a start without prior knowledge. It has no penalties
        (`C`, `attention_C`), and stops early instead.

    embedding_dim : int, default=None
        Dimension d of the embeddings, at least 2, and 1 + K for K > 2 classes. None is the
        limit of infinitely many: nothing is drawn, and d drops out.

    step_size : float, default=None
        Size eta_0 of the gradient step of "one_step"; by default the one that makes the most
        important token's value 1, or less for more than two classes and for the letter of the
        paper in finite dimensions (ours). With
        ``solver="adam"`` its learning rate, by default 1e-3, or 0.036 without `embedding_dim`.

    fit_output : bool, default=True
        How "one_step" goes on after the step. True is the practical form (ours): the step gives
        all classes the same weight, and intercept and scale of the output vectors are trained
        with ``<cls>``, which `attention_C` keeps finite. False, with ``attend_cls=False``, is
        the letter of the paper: nothing but ``<cls>`` is trained, along gradient flow, until
        its direction converges (Theorem 4.3; `tol` then bounds 1 less the cosine to the limit).

    n_layers : {1, 2}, default=1
        Layers of attention. Two, ablated in the paper, need ``solver="adam"`` and
        `embedding_dim`: the first is self-attention among the document's tokens, and both have
        a key-query matrix.

    mlp : bool, default=False
        Whether a hidden layer of `embedding_dim` units follows the softmax, another ablation
        of the paper, with the same needs. Its decisions are no sums over tokens.

    attend_cls : bool, default=True
        Whether ``<cls>`` attends to itself as well: the share of attention it keeps grows as
        a document gets shorter or says less. False is the letter of the paper [1]_.

    token_scaling : {"log_odds"} or None, default="log_odds"
        How values are scaled and where attention starts: by the tokens' log-odds between the
        classes (as in NB-SVM [2]_), or all alike.

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in :class:`~sklearn.linear_model.LogisticRegression`.

    max_iter : int, default=100
        Maximum number of iterations.

    tol : float, default=1e-3
        Training stops when the optimality gap is at most this, in nats per document. For the
        values it is a duality gap: at the attention and intercepts reached, no values bring
        the penalised mean log loss lower by more than `tol`. For scores and intercepts it is
        an estimate.

    batch_size : int, default=50
        Documents in a mini-batch, for two layers and the MLP. All other training takes all
        documents at once.

    early_stopping : bool, default=True
        Whether Adam holds documents out, stops when their loss no longer falls and returns the
        best model met. False trains on all until the training loss no longer falls.

    validation_fraction : float, default=0.1
        Share of every class's documents held out for that.

    n_iter_no_change : int, default=5
        Steps (epochs, with mini-batches) without improvement after which Adam stops.

    warm_start : bool, default=False
        For joint training by L-BFGS, whether a fit starts from the last one's result, where that
        has the same classes and the same tokens: the same names, or as many where they have
        none.

    random_state : int, RandomState instance or None, default=None
        Draws embeddings of finite dimension, mini-batches and the documents held out.

    verbose : int, default=0
        Prints the loss and the gap (or validation loss) of every `verbose`-th iteration.
        scikit-learn's callbacks (from 1.9 on, ``set_callbacks``) are told of every one.

    device : str or torch.device, default="cpu"
        Where training computes: "cpu", "cuda", "auto" (CUDA where there is one) or a
        ``torch.device``. Prediction always runs on the CPU, without PyTorch.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    token_importance_ : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
        Signed frequency alpha of each token in the training data, the paper's importance:
        one row per class for more than two classes. For two, positive speaks for
        ``classes_[1]``.

    attention_scores_ : ndarray of shape (n_tokens,)
        Attention scores E.p (with two layers, E.W_KQ.p of the second): among a document's
        tokens, attention is in proportion to the token's count times the exponential of its
        score.

    token_values_ : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
        Token values E.v: what a token adds to the decision per unit of attention. (With two
        layers it adds that of what it attends to as well; with the MLP it is a diagnostic.)

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Added to the attention-weighted values.

    cls_score_, cls_weight_ : float
        Attention score of ``<cls>`` and its weight, the count that it stands in every
        document with. Its value is 0. Without ``<cls>``: -inf and 0.

    cls_embedding_ : ndarray of shape (d,)
        p. Where `embedding_dim` is None, d = 1 + K for K > 2 classes and d = 2 for two.

    output_vector_ : ndarray of shape (d,) or (n_classes, d)
        v; without `embedding_dim`, orthogonal to p and to each other.

    token_embeddings_ : ndarray of shape (n_tokens, d)
        E, made when asked for. The trained or random ones where `embedding_dim` is an int, except
        for joint training by L-BFGS, which gives, as without `embedding_dim`, the embeddings of
        least norm that have these scores and values. (Stored only by ``solver="adam"``.)

    selected_tokens_ : ndarray of shape (n_selected,)
        Columns with the highest attention score of some training document (ties within 1e-6
        included), most often selected first.

    selection_counts_ : ndarray of shape (n_selected,)
        In how many training documents each of them is selected.

    n_iter_ : int
        Number of iterations run (epochs, with mini-batches), at least 1.

    loss_curve_ : ndarray of shape (n_steps + 1,)
        Penalised mean log loss at the start and after each step. There are `n_iter_` steps,
        or none where the start was good enough, as it may be with `warm_start`.

    optimality_gap_ : float
        The gap reached (see `tol`). Only where L-BFGS was used.

    validation_curve_ : ndarray of shape (n_steps + 1,)
        Mean loss of the documents held out. Only with early stopping.

    step_size_ : float
        The step size eta_0 used. Only for "one_step".

    direction_curve_ : ndarray of shape (n_ascent_steps,)
        How far p is from the max-margin direction of the selected tokens: a certified bound on 1
        less their cosine, after each step of the second phase. Only for "one_step" to the
        letter; empty where the selection did not settle.

    n_features_in_ : int
        Number of tokens.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the tokens, where X had string names.

    See Also
    --------
    TokenImportanceTransformer : Scale or select tokens by the same importances.
    sklearn.linear_model.LogisticRegression : The model without attention.

    Notes
    -----
    With token weights :math:`c_{is}`, the model is

    .. math::

        F_{ik} = \beta_k + \frac{\sum_s c_{is} e^{a_s} b_{sk}}
                                {S_0 e^{a_0} + \sum_s c_{is} e^{a_s}} .

    In terms of embeddings, :math:`a_s = E_s \cdot p` and :math:`b_{sk} = E_s \cdot v_k`. For p
    and v_k fixed and orthogonal, an L2 penalty on E is two L2 penalties, on a and on b: the
    dimension of the embeddings drops out.

    Integer counts and float32 input are trained on in single precision, other input in double.
    Predictions, attention and contributions are always in double precision.

    References
    ----------
    .. [1] D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained
       Embeddings Provably Selects Important Tokens. NeurIPS 2025, arXiv:2505.17282.
    .. [2] S. Wang, C. D. Manning (2012). Baselines and Bigrams: Simple, Good Sentiment and
       Topic Classification. Proceedings of ACL 2012.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> texts = ["a terrific film", "a boring film", "terrific fun", "long and boring"]
    >>> labels = ["good", "bad", "good", "bad"]
    >>> model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, labels)
    >>> model.predict(["terrific", "how boring"])
    array(['good', 'bad'], dtype='<U4')
    """

    _parameter_constraints = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "attention_C": [Interval(Real, 0, None, closed="neither")],
        "training": [StrOptions({"joint", "one_step", "frozen"})],
        "solver": [StrOptions({"lbfgs", "adam"})],
        "embedding_dim": [Interval(Integral, 2, None, closed="left"), None],
        "step_size": [Interval(Real, 0, None, closed="neither"), None],
        "fit_output": ["boolean"],
        "n_layers": [Options(Integral, {1, 2})],
        "mlp": ["boolean"],
        "attend_cls": ["boolean"],
        "token_scaling": [StrOptions({"log_odds"}), None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "device": "no_validation",  # may be a torch.device; resolve_device checks it
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        attention_C: float = 0.03,
        training: str = "joint",
        solver: str = "lbfgs",
        embedding_dim: int | None = None,
        step_size: float | None = None,
        fit_output: bool = True,
        n_layers: int = 1,
        mlp: bool = False,
        attend_cls: bool = True,
        token_scaling: str | None = "log_odds",
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int = 100,
        tol: float = 1e-3,
        batch_size: int = 50,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        device: Any = "cpu",
    ) -> None:
        self.C = C
        self.attention_C = attention_C
        self.training = training
        self.solver = solver
        self.embedding_dim = embedding_dim
        self.step_size = step_size
        self.fit_output = fit_output
        self.n_layers = n_layers
        self.mlp = mlp
        self.attend_cls = attend_cls
        self.token_scaling = token_scaling
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # scikit-learn says what this is by blobs: three classes of two tokens. The importances of
        # two tokens are opposite numbers, which put documents in a single line.
        ordered = self.training == "one_step" and (
            self.embedding_dim is None or not self.fit_output
        )
        tags.classifier_tags.poor_score = ordered
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights, used as they are.

        y : array-like of shape (n_documents,)
            Class labels, of any type, two classes or more.

        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weights; a weight of 2 is the document twice.

        Returns
        -------
        self : ClsAttentionClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If X is negative, infinite or NaN somewhere, or if fewer than two classes have
            documents of positive weight.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations do not reach `tol`.
        """
        # Imported when a fit starts: predicting needs no PyTorch.
        from .model.devices import resolve_device
        from .model.threads import ThreadShare
        from .training.regimes import Documents, check_settings, train

        device = resolve_device(self.device)
        settings = self._settings()
        previous = self._one_layer() if self.warm_start and hasattr(self, "classes_") else None
        before = self._fitted_on()
        X, y = validate_data(self, X, y, accept_sparse="csr", accept_large_sparse=True)
        check_non_negative(X, self)
        check_classification_targets(y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        classes, codes = np.unique(y, return_inverse=True)
        weights, class_weights = self._weighted(weights, classes, codes)
        check_two_classes(classes, class_weights)
        check_settings(settings, 1 if len(classes) == 2 else len(classes))
        old_classes = getattr(self, "classes_", classes[:0])
        if self._fitted_on() != before or not np.array_equal(old_classes, classes):
            previous = None  # a model of other tokens or classes is no start

        X = canonical(as_csr(X))
        shares = class_totals(X, codes, len(classes), weights, kind="shares")
        importance = signed_frequency(shares, class_weights)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        callbacks = FitCallbacks(
            self,
            X,
            y,
            sample_weight,
            max_iter=self.max_iter,
            task_name=f"{self.solver}-iter",
        )
        callbacks.begin()
        with ThreadShare() as threads:
            trained = train(
                Documents(X, codes, weights, class_weights, shares),
                settings,
                dtype=training_dtype(X, class_weights.sum(), min(self.C, self.attention_C)),
                device=device,
                seed=seed,
                start=previous,
                on_step=self._step_reporter(
                    callbacks, classes, threads.update, settings.progress_label
                ),
            )
        counts = count_selected(trained.fitted.scores, X if weights.all() else X[weights > 0])
        self._store(trained, classes, importance, counts)
        self.__dict__.pop("_stream", None)  # of batches that this model knows nothing of
        callbacks.end()
        _warn(trained)
        return self

    @available_if(_learns_from_batches)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn a batch of documents after those of earlier calls, which are not needed again.

        Every call trains to convergence on the batch and on what is remembered of all earlier
        documents: the statistics of their tokens, exactly, and their losses, to second order
        around the model reached with them (see Notes). The first call is :meth:`fit`, in double
        precision. Batches should mix the classes: what is remembered of one class gives way when
        only others come for long.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights, of the same tokens in every call.

        y : array-like of shape (n_documents,)
            Class labels.

        classes : array-like of shape (n_classes,), default=None
            All labels that any batch may have. Only the first call needs them; without, the
            labels of the first batch are all there are.

        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weights, not all 0.

        Returns
        -------
        self : ClsAttentionClassifier
            The classifier, fitted on all batches so far.

        Raises
        ------
        ValueError
            As :meth:`fit`; if a batch has other classes or tokens than the first one, or no
            weight.
        AttributeError
            If the model comes from :meth:`fit`, which remembers no documents; with another
            training, solver or architecture, or ``class_weight="balanced"``, which has to know
            all documents. ``hasattr(model, "partial_fit")`` tells.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations do not reach `tol`.

        Notes
        -----
        The memory is one gradient and one curvature per parameter, whatever the number of
        documents: variational Bayesian online learning with a diagonal covariance, applied to
        attention (ours). `loss_curve_`, `n_iter_` and `optimality_gap_` are the last call's, and
        are those of the batch with the expansion for all earlier documents; `selection_counts_`
        count each document by the model that had just learnt it.

        Examples
        --------
        >>> from sklearn_clsattn import ClsAttentionClassifier
        >>> from sklearn_clsattn.datasets import make_token_classification
        >>> X, y = make_token_classification(600, random_state=0)
        >>> model = ClsAttentionClassifier()
        >>> for start in range(0, 400, 100):
        ...     batch = slice(start, start + 100)
        ...     model = model.partial_fit(X[batch], y[batch], classes=[0, 1])
        >>> bool(model.score(X[400:], y[400:]) > 0.8)
        True
        """
        from .model.devices import resolve_device
        from .model.threads import ThreadShare
        from .training.regimes import Documents, check_settings
        from .training.streaming import Stream, learn_batch

        stream: Stream | None = getattr(self, "_stream", None)
        device = resolve_device(self.device)
        settings = self._settings()
        afresh = stream is None
        X, y = validate_data(
            self, X, y, accept_sparse="csr", accept_large_sparse=True, reset=afresh
        )
        check_non_negative(X, self)
        check_classification_targets(y)
        earlier = None if afresh else self.classes_
        known, codes = code_labels(np.asarray(y), classes, earlier)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        weights, class_weights = self._weighted(weights, known, codes)
        check_settings(settings, 1 if len(known) == 2 else len(known))
        if not class_weights.any():
            raise ValueError(
                "The batch has no document of positive weight: check sample_weight and "
                "class_weight, or leave it out."
            )
        if stream is None:
            stream = Stream.empty(len(known), X.shape[1])
        elif stream.shares.shape[1] != X.shape[1]:  # after a fit of other tokens that failed
            raise ValueError(
                f"X has {X.shape[1]} features, but the batches so far had {stream.shares.shape[1]}."
            )
        check_total_weight(stream.class_weights + class_weights)

        X = canonical(as_csr(X))
        shares = class_totals(X, codes, len(known), weights, kind="shares")
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        with ThreadShare():
            trained, kept = learn_batch(
                stream,
                Documents(X, codes, weights, class_weights, shares),
                settings,
                device=device,
                seed=seed,
                on_step=self._print_step if self.verbose else None,
            )
        importance = signed_frequency(kept.shares, kept.class_weights)
        _warn(trained)  # first: where it is an error, the batch has not been learnt
        self._store(trained, known, importance, kept.selection_counts)
        self._stream = kept
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the decision values.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Token counts or weights.

        Returns
        -------
        decision : ndarray of shape (n_documents,) or (n_documents, n_classes)
            For two classes the log-odds of ``classes_[1]``, else one value per class.
        """
        fitted, X = self._checked(X)
        outputs = fitted.outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every document.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Token counts or weights.

        Returns
        -------
        labels : ndarray of shape (n_documents,)
            Labels from `classes_`.
        """
        numbers = most_probable(self.decision_function(X))  # fails first if not fitted
        return self.classes_[numbers]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of every class.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Token counts or weights.

        Returns
        -------
        probabilities : ndarray of shape (n_documents, n_classes)
            In the order of `classes_`; rows sum to 1.
        """
        return probabilities(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the probability of every class.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Token counts or weights.

        Returns
        -------
        log_probabilities : ndarray of shape (n_documents, n_classes)
            Finite also where probabilities round to 0.
        """
        decision = self.decision_function(X)
        if decision.ndim == 1:
            return np.column_stack([log_expit(-decision), log_expit(decision)])
        return log_softmax(decision, axis=1)

    def attention(self, X: Any) -> sp.csr_array:
        """Return the attention weights of every document's tokens.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Token counts or weights.

        Returns
        -------
        attention : csr_array of shape (n_documents, n_tokens)
            Rows sum to 1 less the share of ``<cls>``; a document without tokens has none.
        """
        fitted, X = self._checked(X)
        return fitted.attention(X)

    def contributions(self, X: Any) -> sp.csr_array | list[sp.csr_array]:
        """Return what each token of each document adds to the decision.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Token counts or weights.

        Returns
        -------
        contributions : csr_array of shape (n_documents, n_tokens), or a list of them
            Attention weight times token value; for more than two classes one array per class.
            Row sums plus `intercept_` are :meth:`decision_function`.
        """
        fitted, X = self._checked(X)
        terms = fitted.contributions(X)
        return terms[0] if len(terms) == 1 else terms

    def select_tokens(self, X: Any) -> sp.csr_array:
        """Return which tokens have the highest attention score of their document.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Token counts or weights.

        Returns
        -------
        selected : boolean csr_array of shape (n_documents, n_tokens)
            The selected tokens S_X(p), ties within 1e-6 included; none in a document without
            tokens.
        """
        fitted, X = self._checked(X)
        return fitted.selected(X)

    @property
    def cls_embedding_(self) -> NDArray[np.float64]:
        """The embedding p of ``<cls>``; the first unit vector where the basis is ours to choose."""
        check_is_fitted(self)
        if self._geometry is not None:
            return self._geometry.cls_embedding
        return np.eye(1, 1 + len(self.intercept_))[0]

    @property
    def output_vector_(self) -> NDArray[np.float64]:
        """The output vector v, or one row per class; without a dimension, other unit vectors."""
        check_is_fitted(self)
        if self._geometry is not None:
            vectors = self._geometry.output_vectors
        else:
            vectors = np.eye(1 + len(self.intercept_))[1:]
        return vectors[0] if len(vectors) == 1 else vectors

    @property
    def token_embeddings_(self) -> NDArray[np.floating[Any]]:
        """The embeddings E, made when asked for."""
        check_is_fitted(self)
        if self._geometry is not None:
            return self._geometry.source.embeddings()
        fitted = self._one_layer()
        return np.column_stack([fitted.scores, fitted.values])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_network")

    def _checked(self, X: Any) -> tuple[FittedAttention | FittedNetwork, Any]:
        """Return the fitted model, and documents as it takes them."""
        check_is_fitted(self)
        if hasattr(self, "feature_names_in_") or not is_plain(X, self.n_features_in_):
            X = validate_data(self, X, accept_sparse="csr", accept_large_sparse=True, reset=False)
            check_non_negative(X, self)
        return self._one_layer() if self._network is None else self._network, as_csr(X)

    def _one_layer(self) -> FittedAttention:
        values = self.token_values_
        return FittedAttention(
            scores=self.attention_scores_,
            values=values[:, None] if values.ndim == 1 else values.T,
            intercept=self.intercept_,
            cls_weight=self.cls_weight_,
            cls_score=self.cls_score_,
        )

    def _weighted(
        self, weights: NDArray[np.float64], classes: NDArray[Any], codes: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the documents' weights, those of their classes included, and the classes' sums."""
        class_weights = np.bincount(codes, weights, len(classes)).astype(np.float64)
        if self.class_weight is None:
            return weights, class_weights
        weights = weights * self._class_factors(classes, class_weights)[codes]
        if not (np.isfinite(weights).all() and weights.min() >= 0):
            raise ValueError(
                f"class_weight must be finite and not negative, got {self.class_weight!r}."
            )
        return weights, np.bincount(codes, weights, len(classes)).astype(np.float64)

    def _store(
        self,
        trained: Trained,
        classes: NDArray[Any],
        importance: NDArray[np.float64],
        selection_counts: NDArray[np.intp],
    ) -> None:
        from .training.regimes import OPTIONAL_ATTRIBUTES

        self.classes_ = classes
        self.n_iter_ = max(1, trained.n_iter)
        self.loss_curve_ = np.array(trained.loss_curve)
        for name in OPTIONAL_ATTRIBUTES:  # of an earlier fit by another training
            self.__dict__.pop(name, None)
        self.__dict__.update(trained.attributes)
        self.__dict__.update(_attributes(trained.fitted))
        self._geometry = trained.geometry
        self.token_importance_ = importance
        order = np.argsort(-selection_counts, kind="stable")
        self.selected_tokens_ = order[: np.count_nonzero(selection_counts)]
        self.selection_counts_ = selection_counts[self.selected_tokens_]

    def _settings(self) -> Settings:
        from .training.regimes import Settings

        names = [field.name for field in fields(Settings)]
        return Settings(**{name: getattr(self, name) for name in names})

    def _class_factors(
        self, classes: NDArray[Any], class_weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return every class's factor by `class_weight`.

        "balanced" counts sample weights as repetition, which scikit-learn's own function does
        not before version 1.7.
        """
        if self.class_weight == "balanced":
            present = class_weights > 0
            mean = class_weights.sum() / np.count_nonzero(present)
            return np.divide(
                mean, class_weights, out=np.zeros_like(mean * class_weights), where=present
            )
        return compute_sample_weight(self.class_weight, classes)

    def _fitted_on(self) -> tuple[int | None, list[Any] | None]:
        """Return number and names of the features that scikit-learn's validation noted."""
        names = getattr(self, "feature_names_in_", None)
        return getattr(self, "n_features_in_", None), None if names is None else list(names)

    def _print_step(
        self, progress: JointProgress | NetworkProgress, label: str = "gap"
    ) -> Literal[False]:
        if self.verbose and progress.n_iter % int(self.verbose) == 0:
            measure = "" if np.isnan(progress.gap) else f"   {label} {progress.gap:.2e}"
            print(f"iteration {progress.n_iter:4d}   loss {progress.loss:.6f}{measure}", flush=True)
        return False

    def _step_reporter(
        self,
        callbacks: FitCallbacks,
        classes: NDArray[Any],
        share_threads: Callable[[], None],
        label: str,
    ) -> Callable[[JointProgress | NetworkProgress], bool]:
        def report(progress: JointProgress | NetworkProgress) -> bool:
            share_threads()
            self._print_step(progress, label)
            if progress.n_iter == 0:
                return False
            return callbacks.iteration(
                lambda: {"classes_": classes, **_attributes(progress.fitted())}
            )

        return report


def _warn(trained: Trained) -> None:
    for message, category in (
        (trained.warning, UserWarning),
        (trained.not_converged, ConvergenceWarning),
    ):
        if message:  # past scikit-learn's wrapper of fit
            warnings.warn(message, category, stacklevel=4)


def _attributes(fitted: FittedAttention | FittedNetwork) -> dict[str, Any]:
    """Return the fitted attributes that predictions are made from."""
    values = fitted.values
    network = None if isinstance(fitted, FittedAttention) else fitted
    return {
        "attention_scores_": fitted.scores,
        "token_values_": values[:, 0] if values.shape[1] == 1 else values.T,
        "intercept_": fitted.intercept,
        "cls_weight_": fitted.cls_weight,
        "cls_score_": getattr(fitted, "cls_score", 0.0 if fitted.cls_weight else -np.inf),
        "_network": network,
        "_geometry": None,  # an earlier fit's would say something else
    }
