"""The classifier: it validates, calls the core and stores the result."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array

from ._bags import Bags, TokenVectors
from ._base import BaseAttentionClassifier, documents_in_memory
from ._docstrings import documented
from ._pickling import public
from ._sklearn import Interval, StrOptions
from ._training import (
    all_or_nothing,
    check_finite,
    overflow_as_value_error,
    warn_of_size,
    warn_user,
)
from ._validation import (
    check_first_classes,
    column_names,
    encode_batch,
    encode_columns,
    has_probabilities,
    has_several_labels,
    validated,
)

if TYPE_CHECKING:
    from ._core.documents import Documents
    from ._core.memory import Stream
    from ._core.result import FitResult


def _learns_from_batches(classifier: ClsAttentionClassifier) -> bool:
    """Whether `partial_fit` is available."""
    if classifier.class_weight == "balanced":
        why = "class_weight='balanced' needs all documents at once: use a dict or sample_weight"
    elif hasattr(classifier, "classes_") and not hasattr(classifier, "_stream"):
        why = "fit keeps no memory of its documents: train a clone() with partial_fit instead"
    else:
        return True
    raise AttributeError(f"partial_fit is not available, because {why}.")


@public("sklearn_clsattn")
@documented
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
        held-out documents, in a deterministic sample of some 8,000. This takes at most half a fit's
        time from 20,000 documents on, one fit's at 8,000, and up to six fits' below 4,000.
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
    sublinear_counts : bool, default=True
        Whether a count c enters as :math:`m \log_2 (1 + c / m)`, m being the mean positive entry
        of the training data: the tenth occurrence of a token adds less than the first. Binary
        counts stay as they are. False is for weights that are damped already, such as those of a
        :class:`~sklearn_clsattn.text.ContextVectorizer`.
    token_vectors_scale : float or "auto", default="auto"
        How much the token vectors contribute, if `fit` gets any: the standard deviation of the part
        of the values that comes from vectors, relative to the tokens' own part. "auto" chooses it
        between 0 and 2, together with `C`, by the loss of held-out documents: a mean of 0, 0.5, 1
        and 2, which few documents change little.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in :class:`~sklearn.linear_model.LogisticRegression`.
    max_iter : int, default=300
        Maximum number of iterations.
    tol : float or "auto", default="auto"
        Training stops when the optimality gap is at most `tol`, in nats per document. For the
        values it is a duality gap: at the attention and intercepts reached, no values lower the
        penalised mean log loss by more than `tol`. For scores and intercepts it is an estimate.
        "auto" is 2e-6 for fewer than 10,000 documents, so that more iterations would change no
        probability by more than some 0.01, and 1e-4 for more.
    verbose : int, default=0
        If positive, print the values of `C` that are tried, and the loss and gap of every
        `verbose`-th iteration.
    device : str or torch.device, default="cpu"
        Device for training: "cpu", "cuda", "cuda:1", "auto" (CUDA if available) or a
        ``torch.device``. Prediction always runs on the CPU, without PyTorch.

    Attributes
    ----------
    C_ : float
        The value of `C` used.
    attention_C_ : float
        The value of `attention_C` used.
    Cs_ : ndarray of shape (n_Cs,)
        With ``C="auto"``, the values tried, ascending; empty if there are fewer than eight
        different documents.
    scores_ : ndarray of shape (n_folds, n_Cs)
        Negative mean log loss on the held-out documents, for each fold and value.
    token_vectors_scale_ : float
        The value of `token_vectors_scale` used; absent without vectors.
    vector_weights_ : ndarray of shape (d,) or (n_classes, d)
        Weights of the vectors in the token values; absent without vectors.
    entry_scale_ : float
        The m of `sublinear_counts`; absent if that is False.
    multilabel_ : bool
        Whether documents have several labels. Each label then has its own values and intercept;
        all labels share the attention, and the loss is the sum of theirs.
    {attributes}
    optimality_gap_ : float
        The gap reached (see `tol`).

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

    Training uses single precision for integer counts and float32 input, and double precision for
    other input. Predictions, attention and contributions are always in double precision.

    {references}

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

    _parameter_constraints = {
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "attention_C": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "attend_cls": ["boolean"],
        "token_scaling": [StrOptions({"log_odds"}), None],
        "sublinear_counts": ["boolean"],
        "token_vectors_scale": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
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
        sublinear_counts: bool = True,
        token_vectors_scale: float | Literal["auto"] = "auto",
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int = 300,
        tol: float | Literal["auto"] = "auto",
        verbose: int = 0,
        device: Any = "cpu",
    ) -> None:
        self._keep(locals())

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        token_vectors: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Fit the classifier.

        If documents can have several labels, `y` is a matrix of 0 and 1 of shape (n_documents,
        n_labels): dense, sparse, or a data frame, whose column names are then the classes.

        If only probabilities of the classes are known, such as those of another model, `y` is a
        matrix of these, of shape (n_documents, n_classes), whose rows add up to 1. A document is
        then worth as much as one copy of it for each class, weighted by the probability.

        Parameters
        ----------
        {training}
        token_vectors : array-like of shape (n_tokens, d), default=None
            Vectors of the tokens, such as those of
            :class:`~sklearn_clsattn.text.WordVectors`. Tokens with similar vectors share what is
            learned, and a token that occurs in no document gets its value from its vector. Only
            directions matter; a row of zeros means no vector. A
            :class:`~sklearn_clsattn.text.ContextVectorizer` with `word_vectors` has them as
            `token_vectors_`; :class:`~sklearn_clsattn.TextClassifier` passes them on.
        classes : array-like of shape (n_classes,), default=None
            Names of the classes in the order of the columns of `y`, if these are probabilities. A
            data frame's columns have names, other columns are named 0, 1, 2, ... Where all
            probabilities are 0 or 1, `classes` tell them from several labels.

        {self}

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_clsattn import ClsAttentionClassifier
        >>> X = np.array([[2, 0, 1], [0, 2, 1], [1, 1, 0], [0, 1, 1]])
        >>> y = np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5], [0.3, 0.7]])
        >>> model = ClsAttentionClassifier(C=1.0).fit(X, y, classes=["ham", "spam"])
        >>> model.predict([[1, 0, 0], [0, 1, 0]])
        array(['ham', 'spam'], dtype='<U4')
        """
        vectors = X.vectors if isinstance(X, Bags) else None
        options = self._vector_options(token_vectors, vectors)
        self._fit_in_memory(X, y, sample_weight, classes, **options)
        return self

    @available_if(_learns_from_batches)
    @all_or_nothing
    @documented
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
        current model. The first call is :meth:`fit` in double precision. Batches should mix the
        classes: the model forgets a class that is missing from many batches in a row. Of a
        matrix `y`, columns are several labels, or probabilities if any is between 0 and 1.

        Parameters
        ----------
        {training}
        {classes}

        {self}

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
        from ._core.memory import Stream
        from ._core.products import resolve_device
        from ._core.streaming import learn_batch
        from ._core.threads import ThreadLimit

        if isinstance(X, Bags) and X.vectors is not None:
            raise ValueError("X has word vectors, which partial_fit does not support: use fit.")
        # 1) the batch, with targets among the classes of the first one
        stream: Stream | None = getattr(self, "_stream", None)  # None in the first call
        device = resolve_device(self.device)
        earlier_classes = None if stream is None else self.classes_
        names = self._names_of_probabilities(y, classes, earlier_classes)
        csr, labels, weights = validated(
            self, X, y, sample_weight, reset=stream is None, classes=names
        )
        if labels.ndim == 1:
            if earlier_classes is None:
                check_first_classes(classes)
            targets = encode_batch(labels, classes, earlier_classes)
        else:
            targets = encode_columns(y, labels, names, earlier_classes)
        # 2) the memory of earlier batches
        if stream is None:
            stream = Stream.empty(targets.n_classes, csr.shape[1], multilabel=targets.multilabel)
        elif targets.multilabel != self.multilabel_:
            before = "several labels" if self.multilabel_ else "one label"
            raise ValueError(f"Earlier batches had {before} per document: got {targets.kind}.")
        # 3) training on both
        batch, _ = documents_in_memory(
            self,
            csr,
            targets,
            weights,
            entry_scale=stream.entry_scale,
            earlier_class_weights=stream.statistics.class_weights,
        )
        with ThreadLimit(), overflow_as_value_error(self, batch.statistics.total_weight):
            result, kept = learn_batch(
                stream, batch, device=device, on_iteration=self._print_progress, **self._settings()
            )
            check_finite(result)
        # 4) the model and the new memory
        self._store(
            result, targets.classes, kept.statistics, kept.selection_counts, kept.entry_scale
        )
        self._stream = kept
        self._warn(result)
        return self

    def _names_of_probabilities(self, y: Any, classes: Any, earlier_classes: Any) -> Any:
        """Return the names of a batch's columns of probabilities, None if `y` has labels.

        Columns of 0 and 1 are several labels in the first batch, where `earlier_classes` are None,
        and then what they were.
        """
        if not has_several_labels(y):
            return None
        if not has_probabilities(y) and (earlier_classes is None or self.multilabel_):
            return None
        if classes is not None:
            return classes
        if earlier_classes is None or hasattr(y, "columns"):
            return column_names(y)
        return earlier_classes  # in whose order columns without names are

    def cls_attention(self, X: Any) -> NDArray[np.float64]:
        """Return the share of attention that ``<cls>`` keeps: how uninformative a document is.

        If it is near 1, the decision is near the intercept. You can reject documents by this share
        or by their probabilities.

        {X}

        Returns
        -------
        shares : ndarray of shape (n_documents,)
            From 0 to 1: 1 for a document without known tokens; always 0 with
            ``attend_cls=False``.
        """
        fitted, X = self._checked(X)
        return fitted.cls_shares(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.class_weight is None
        return tags

    def _train(self, documents: Documents, **options: Any) -> FitResult:
        # Imported only when a fit starts, because prediction does not need PyTorch.
        from ._core.fit import fit_attention

        vectors = options.get("vectors")
        n_tokens = documents.shape[1]
        if vectors is not None and vectors.n_tokens != n_tokens:
            raise ValueError(
                f"token_vectors has {vectors.n_tokens} rows, but X has {n_tokens} columns: "
                "expected one row per token, zeros for a token without a vector."
            )
        warn_of_size(n_tokens, documents.n_outputs)
        log = partial(print, flush=True) if self.verbose else None
        return fit_attention(documents, log=log, **options, **self._settings())

    def _settings(self) -> dict[str, Any]:
        """Return the training parameters."""
        settings: dict[str, Any] = {
            "C": self.C,
            "attention_C": self.attention_C,
            "attend_cls": self.attend_cls,
            "max_iter": self.max_iter,
            "tol": self.tol,
            "scaling": self.token_scaling,
        }
        # The core chooses what is None.
        for name, value in settings.items():
            if value == "auto":
                settings[name] = None
        return settings

    def _vector_options(self, rows: Any, vectors: TokenVectors | None = None) -> dict[str, Any]:
        """Return the training options for token vectors: `rows`, (n_tokens, d), else `vectors`."""
        if rows is not None:
            rows = check_array(rows, dtype=np.float64, input_name="token_vectors")
            vectors = TokenVectors.from_rows(rows)
        scale = None if self.token_vectors_scale == "auto" else self.token_vectors_scale
        if vectors is not None:
            return {"vectors": vectors, "scale": scale}
        if scale:  # a number, which asks for vectors
            warn_user(
                f"token_vectors_scale={scale} has no effect, because fit got no token_vectors."
            )
        return {}
