"""The classifier: it validates, calls the training and stores the result."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_consistent_length

from ._bags import Bags, TokenVectors
from ._base import BaseAttentionClassifier, check_finite, class_offsets, prepared
from ._estimators import all_or_nothing
from ._sklearn import Interval, StrOptions
from ._targets import Targets
from ._threads import thread_pool
from ._types import Array
from ._validation import checked_weights, targets_of_batch, validated_bags

if TYPE_CHECKING:
    from .training.documents import Documents
    from .training.earlier_batches import Stream
    from .training.fitted_model import FitResult


def _learns_from_batches(classifier: ClsAttentionClassifier) -> bool:
    """Whether `partial_fit` is available."""
    if classifier.class_weight == "balanced":
        why = "class_weight='balanced' needs all documents at once: use a dict or sample_weight"
    elif hasattr(classifier, "classes_") and not hasattr(classifier, "_stream"):
        why = "fit keeps no memory of its documents: train a clone() with partial_fit instead"
    else:
        return True
    raise AttributeError(f"partial_fit is not available, because {why}.")


class ClsAttentionClassifier(BaseAttentionClassifier):
    r"""Text classifier with one layer of ``<cls>`` attention over token counts.

    A document is a bag of tokens. Each token has one attention score and one value per class.
    The decision is the attention-weighted mean of the values, so each decision is a sum over
    the document's tokens. Training is deterministic and costs about as much as logistic
    regression. It optimises only scores and values, which is exactly equivalent to training
    embeddings of any dimension (see Notes).

    Parameters
    ----------
    C : float or "auto", default="auto"
        Inverse strength of the L2 penalty on the deviation of token values from their prior mean
        (see Notes), in units in which 1.0 is a good value for any document length and any scale of
        X. A larger C fits the training data more closely. "auto" chooses it by the log loss of
        held-out documents, in a deterministic sample of some 8,000. This takes at most half as
        long as a fit from 20,000 documents on, as long at 8,000, and up to six times as long below
        4,000.
    attention_C : float or "auto", default=0.03
        Inverse strength of the L2 penalty on the deviation of attention scores from their starting
        point. With large values (1 or more), attention selects sharply. "auto" chooses 0.03, 0.3 or
        1 together with `C`, by the loss of held-out documents: 0.03 unless a larger value clearly
        lowers it, as where one word in a long document decides. If `C` is given, it is 0.03.
    attend_cls : bool, default=True
        Whether ``<cls>`` also attends to itself. The share of attention it keeps is larger if a
        document is short or has few informative tokens. False is the model of the paper [1]_.
    token_scaling : {"log_odds"} or None, default="log_odds"
        How values are scaled and where attention starts: by the tokens' log-odds between the
        classes (as in NB-SVM [2]_), or the same for all tokens.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. As in :class:`~sklearn.linear_model.LogisticRegression`, but they
        change the intercepts after training, not the documents' weights in it: the odds of any two
        classes are multiplied by the ratio of their weights. "balanced" predicts as if all classes
        were equally frequent. A class of weight 0 is never predicted.
    max_iter : int, default=300
        Maximum number of iterations.
    tol : float or "auto", default="auto"
        Training stops when the optimality gap is at most `tol`, in nats per document. For the
        values it is a duality gap: at the attention and intercepts reached, no values lower the
        penalised mean log loss by more than `tol`. For scores and intercepts it is an estimate.
        "auto" is 2e-6 for fewer than 10,000 documents, so that more iterations would change no
        probability by more than some 0.01, and 1e-4 for more; with several labels, times their
        number.
    verbose : int, default=0
        If positive, print the values of `C` that `fit` tries, and the loss and gap of every
        `verbose`-th iteration.
    device : str or torch.device, default="cpu"
        Device for training: "cpu", "cuda", "cuda:1", "auto" (CUDA if available) or a
        ``torch.device``. Prediction always runs on the CPU, without PyTorch.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    token_importance_ : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
        Signed frequency alpha of each token in the training data (after damping), the importance in
        the paper. One row per class for more than two classes; for two, positive values support
        ``classes_[1]``.
    attention_scores_ : ndarray of shape (n_tokens,)
        Attention scores E.p. A token's attention is proportional to its (damped) count times the
        exponential of its score.
    token_values_ : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
        Token values E.v: what a token adds to the decision per unit of attention.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Added to the attention-weighted mean of the values. With one label a document, it includes
        the class weights and a pseudo-document of each class.
    cls_score_, cls_weight_ : float
        Attention score of ``<cls>``, and its weight, which acts as its count in each document. Its
        value is 0. If it does not attend to itself, these are -inf and 0.
    cls_embedding_ : ndarray of shape (d,)
        The embedding p; d is 2 for two classes and 1 + K for K > 2, plus the dimension of the token
        vectors.
    output_vector_ : ndarray of shape (d,) or (n_classes, d)
        The output vector v; one row per class for more than two classes.
    token_embeddings_ : ndarray of shape (n_tokens, d)
        The embeddings E of least norm that have these scores and values for orthonormal p and v,
        computed on demand; token vectors are the last components, multiplied by one factor per
        token.
    selected_tokens_ : ndarray of shape (n_selected,)
        Columns that have the highest attention score in some training document (including ties
        within 1e-6), most often selected first.
    selection_counts_ : ndarray of shape (n_selected,)
        Number of training documents in which each of them is selected.
    C_, attention_C_ : float
        The values of `C` and `attention_C` used.
    Cs_ : ndarray of shape (n_Cs,)
        With ``C="auto"``, the values tried, ascending; empty if fewer than 100 documents count
        (`docs/mathematics.md`), and C is guessed.
    scores_ : ndarray of shape (n_folds, n_Cs)
        Negative mean log loss on the held-out documents, for each fold and value.
    token_vectors_scale_ : float
        How much the token vectors contribute, absent without them: the standard deviation of the
        part of the values that comes from vectors, relative to the tokens' own part. It is chosen
        between 0 and 2, together with `C`, by the loss of held-out documents.
    vector_weights_ : ndarray of shape (d,) or (n_classes, d)
        Weights of the vectors in the token values; absent without vectors.
    entry_scale_ : float
        The m of the damping of counts (see Notes).
    multilabel_ : bool
        Whether documents have several labels. Each label then has its own values and intercept;
        all labels share the attention, and the loss is the sum of theirs.
    n_iter_ : int
        Number of iterations, at least 1.
    loss_curve_ : ndarray of shape (n_iterations + 1,)
        Training loss with penalties, in nats per document, at the start and after each iteration.
    optimality_gap_ : float
        The gap reached (see `tol`).
    n_features_in_ : int
        Number of tokens.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the tokens, if X had string names.

    See Also
    --------
    TokenImportanceTransformer : Scale or select tokens by the same importances.
    sklearn_clsattn.paper : The paper's training regimes as classifiers with the same methods.

    Notes
    -----
    With token weights :math:`c_{is}`, the model is

    .. math::

        F_{ik} = \beta_k + \frac{\sum_s c_{is} e^{a_s} b_{sk}}
                                {S_0 e^{a_0} + \sum_s c_{is} e^{a_s}} .

    The values have a prior mean: a fraction of the token's naive Bayes log-odds, computed without
    the document at hand (``docs/mathematics.md``). Deviations from the prior mean are penalised.

    In terms of embeddings, :math:`a_s = E_s \cdot p` and :math:`b_{sk} = E_s \cdot v_k`. If p and
    v_k are fixed and orthogonal, an L2 penalty on E equals two L2 penalties, on a and on b, so
    the dimension of the embeddings drops out.

    A count c enters as :math:`m \log_2 (1 + c / m)`, m being the mean positive entry in training:
    the tenth occurrence of a token adds less than the first. Binary counts stay as they are.

    Training uses single precision for integer counts and float32 input, and double precision for
    other input, and for few documents with token vectors. Predictions, attention and contributions
    are always in double precision.

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

    _accepts_columns = True  # of y
    _damps_counts = True
    _weighs_documents = False

    _parameter_constraints = {
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "attention_C": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "attend_cls": ["boolean"],
        "token_scaling": [StrOptions({"log_odds"}), None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "verbose": ["verbose"],
        "device": "no_validation",  # may be a torch.device; resolve_device checks it
    }

    def __init__(
        self,
        *,
        C: float | Literal["auto"] = "auto",
        attention_C: float | Literal["auto"] = 0.03,
        attend_cls: bool = True,
        token_scaling: Literal["log_odds"] | None = "log_odds",
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int = 300,
        tol: float | Literal["auto"] = "auto",
        verbose: int = 0,
        device: Any = "cpu",
    ) -> None:
        self.C = C
        self.attention_C = attention_C
        self.attend_cls = attend_cls
        self.token_scaling = token_scaling
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.device = device

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        token_vectors: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.
        y : array-like of shape (n_documents,) or (n_documents, n_classes)
            Class labels. If documents can have several labels, a matrix of 0 and 1 with a column
            for each label, dense or sparse. If only probabilities of the classes are known, such as
            those of another model, a matrix of these, whose rows add up to 1: a document is then
            worth as much as one copy of it for each class, weighted by the probability. The columns
            of a data frame name the classes, other columns are 0, 1, 2, ...
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative document weights; a weight of 2 is equivalent to two copies.
        token_vectors : array-like of shape (n_tokens, d), default=None
            Vectors of the tokens, such as those of
            :class:`~sklearn_clsattn.text.WordVectors`. Tokens with similar vectors share what is
            learned, and a token that occurs in no document gets its value from its vector. Only
            directions matter; a row of zeros means no vector.
        groups : array-like of shape (n_documents,), default=None
            What documents belong to, such as their author, patient or thread. Documents of one
            group are not evidence for each other: the choice of C and the prior mean hold them out
            together.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn_clsattn import ClsAttentionClassifier
        >>> X = [[2, 0, 1], [0, 2, 1], [1, 0, 0], [0, 1, 1]]
        >>> y = pd.DataFrame({"ham": [0.9, 0.1, 0.8, 0.2], "spam": [0.1, 0.9, 0.2, 0.8]})
        >>> model = ClsAttentionClassifier(C=1.0).fit(X, y)
        >>> model.predict([[1, 0, 0], [0, 1, 0]])
        array(['ham', 'spam'], dtype='<U4')
        """
        vectors = X.vectors if isinstance(X, Bags) else None
        if token_vectors is not None:
            vectors = checked_vectors(token_vectors)
        self._fit_in_memory(X, y, sample_weight, groups, vectors=vectors)
        trusted = X.trusted if isinstance(X, Bags) else None
        self._trusted_tokens = None if trusted is None else replace(trusted, spelled=None)
        return self

    @available_if(_learns_from_batches)
    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from a batch of documents, in addition to the batches of earlier calls.

        Each call trains to convergence on the batch and on a memory of all earlier documents:
        their exact token statistics, and a second-order expansion of their losses around the
        current model. The first call finds the model of :meth:`fit`, to `tol`. Batches should mix
        the classes: the model forgets a class that is missing from many batches in a row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.
        y : array-like of shape (n_documents,) or (n_documents, n_classes)
            As in :meth:`fit`. The columns of a data frame are matched with the classes by name.
        classes : array-like of shape (n_classes,), default=None
            All labels that occur in any batch. The first call needs them; in later calls they may
            be omitted.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative document weights; a weight of 2 is equivalent to two copies.

        Returns
        -------
        self : estimator
            The classifier, fitted on all batches so far.

        Raises
        ------
        AttributeError
            After :meth:`fit`, which keeps no memory of its documents, and with
            ``class_weight="balanced"``, which needs all documents.

        Notes
        -----
        The memory is one gradient and one curvature per parameter: variational Bayesian online
        learning with a diagonal covariance. `loss_curve_`, `n_iter_` and `optimality_gap_` describe
        the last call; `selection_counts_` use, for each document, the model of that call.

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
        from .training.documents import Documents
        from .training.earlier_batches import Stream
        from .training.products import resolve_device
        from .training.streaming import learn_batch

        device = resolve_device(self.device)
        stream: Stream | None = getattr(self, "_stream", None)
        earlier_classes = None if stream is None else self.classes_
        # 1) the batch
        bags = validated_bags(self, X, reset=stream is None)
        targets = targets_of_batch(y, classes, earlier_classes, self.multilabel_)
        weights = checked_weights(bags.units, sample_weight)
        check_consistent_length(bags.units, targets.values)
        if stream is None:
            none = Documents(bags[:0], targets[:0], weights[:0])
            stream = Stream(None, none.statistics, np.zeros(bags.shape[1], dtype=np.intp))
        elif targets.multilabel != self.multilabel_:
            raise ValueError(
                f"Earlier batches had several labels per document: got {targets.kind}."
            )
        # 2) training on it and on the memory of earlier batches
        with thread_pool(), np.errstate(all="ignore"):  # the result is checked
            batch, _ = prepared(
                Documents(bags, targets, weights),
                self.class_weight,
                damps_counts=not bags.is_damped,
                entry_scale=stream.entry_scale,
                weighs_documents=self._weighs_documents,
            )
            result, kept = learn_batch(
                stream, batch, device=device, on_iteration=self._print_progress, **self._settings()
            )
            result = result.with_offsets(self._class_offsets(targets, kept.statistics.class_sizes))
        check_finite(result)
        # 3) the model and the new memory
        self._store(
            result, targets.classes, kept.statistics, kept.selection_counts, kept.entry_scale
        )
        self._stream = kept
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.class_weight is None
        return tags

    def _train(self, documents: Documents, **options: Any) -> FitResult:
        # Imported only when a fit starts, because prediction does not need PyTorch.
        from .training.fit import fit_attention

        vectors = options["vectors"]
        n_tokens = documents.shape[1]
        if vectors is not None and vectors.n_tokens != n_tokens:
            raise ValueError(
                f"token_vectors has {vectors.n_tokens} rows, but X has {n_tokens} columns: "
                "expected one row per token, zeros for a token without a vector."
            )
        log = partial(print, flush=True) if self.verbose else None
        offsets = self._class_offsets(documents.targets, documents.class_sizes())
        result = fit_attention(documents, log=log, **options, **self._settings())
        return result.with_offsets(offsets)

    def _class_offsets(self, targets: Targets, class_sizes: Array) -> Array:
        """Return the offsets of intercepts, (n_outputs,), 0 of several labels.

        `class_sizes`, (n_classes,), are the sums of the documents' weights.
        """
        if targets.multilabel:
            return np.zeros(1)
        return class_offsets(self.class_weight, targets.classes, class_sizes)

    def _settings(self) -> dict[str, Any]:
        """Return the training parameters, None for what training chooses."""
        return {
            "C": None if self.C == "auto" else self.C,
            "attention_C": None if self.attention_C == "auto" else self.attention_C,
            "attend_cls": self.attend_cls,
            "max_iter": self.max_iter,
            "tol": None if self.tol == "auto" else self.tol,
            "token_scaling": self.token_scaling,
        }


def checked_vectors(token_vectors: ArrayLike) -> TokenVectors:
    """Return the vectors of tokens, given in rows, (n_tokens, d)."""
    rows = check_array(token_vectors, dtype=np.float64, input_name="token_vectors")
    return TokenVectors.from_rows(rows)
