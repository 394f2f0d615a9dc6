"""The classifier: validates, calls the core, stores what comes back."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array

from ._base import BaseAttentionClassifier, documents_in_memory, fit_corpus
from ._docstrings import documented
from ._factored import TokenVectors
from ._pickling import public
from ._training import all_or_nothing, check_finite, in_range, warn
from ._validation import code_labels, validated

if TYPE_CHECKING:
    from ._chunked_counts import ChunkedCounts
    from ._core.documents import Documents
    from ._core.memory import Stream
    from ._core.result import FitResult


def _learns_from_batches(classifier: ClsAttentionClassifier) -> bool:
    """Whether there is `partial_fit`."""
    if classifier.class_weight == "balanced":
        why = "class_weight='balanced' needs all documents at once: weigh documents or classes"
    elif hasattr(classifier, "classes_") and not hasattr(classifier, "_stream"):
        why = "fit remembers no documents: train a clone() by partial_fit from the start"
    else:
        return True
    raise AttributeError(f"There is no partial_fit here, because {why}.")


@public("sklearn_clsattn")
@documented
class ClsAttentionClassifier(BaseAttentionClassifier):
    r"""Text classifier with one layer of ``<cls>`` attention over token counts.

    A document is a bag of tokens. Each token has one attention score and, per class, one
    value; the prediction is the attention-weighted mean of the values, so that every
    prediction is a sum over the document's tokens. Training is deterministic, on scores and
    values alone, at the price of logistic regression; it is the exact equivalent of training
    embeddings of any dimension (see Notes).

    Parameters
    ----------
    C : float or "auto", default="auto"
        Inverse strength of the L2 penalty on what token values have beyond their prior mean (see
        Notes), in units in which 1.0 is good whatever the documents' length and the scale of X.
        Larger fits the training data more closely. "auto" chooses it by the log loss of held-out
        documents, of a sample of some 8,000: deterministic. From 20,000 documents on that adds half
        a fit's time or less, at 8,000 one fit's, below 4,000 up to six.
    attention_C : float, default=0.03
        Inverse strength of the L2 penalty on what the attention scores learn beyond their
        starting point. Large (1 and more) lets attention select sharply.
    attend_cls : bool, default=True
        Whether ``<cls>`` attends to itself as well: the share of attention it keeps grows as
        a document gets shorter or says less. False is the model of the paper [1]_.
    token_scaling : {"log_odds"} or None, default="log_odds"
        How values are scaled and where attention starts: by the tokens' log-odds between the
        classes (as in NB-SVM [2]_), or all alike.
    sublinear_counts : bool, default=True
        Whether a count c enters as :math:`m \log_2 (1 + c / m)`, m being the mean positive entry
        of the training data: the tenth occurrence of a token says less than the first. Bags of 0
        and 1 stay as they are, and so does what a
        :class:`~sklearn_clsattn.text.ContextVectorizer` with characters counts: it is damped.
    token_vectors_scale : float or "auto", default="auto"
        How much of the tokens' values comes from their vectors, where `fit` has any: the standard
        deviation of that part in units of that of their own part. "auto" chooses among 0, 0.5, 1
        and 2, together with `C`, by the loss of held-out documents.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in :class:`~sklearn.linear_model.LogisticRegression`.
    max_iter : int, default=300
        Maximum number of iterations.
    tol : float or "auto", default="auto"
        Training stops when the optimality gap is at most this, in nats per document. For the
        values it is a duality gap: at the attention and intercepts reached, no values bring
        the penalised mean log loss lower by more than `tol`. For scores and intercepts it is
        an estimate. "auto" is 2e-6 for fewer than 10,000 documents, so that more iterations would
        change no probability by more than some 0.02, and 1e-4 for more.
    warm_start : bool, default=False
        Whether a fit starts from the last one's result, where that has the same classes and
        the same tokens: the same names, or as many where they have none.
    verbose : int, default=0
        Prints what the choice of `C` tries, and the loss and the gap of every `verbose`-th
        iteration.
    device : str or torch.device, default="cpu"
        Where training computes: "cpu", "cuda", "cuda:1", "auto" (CUDA where there is one) or a
        ``torch.device``. Prediction always runs on the CPU, without PyTorch.

    Attributes
    ----------
    C_ : float
        The value of `C` used.
    Cs_ : ndarray of shape (n_Cs,)
        With ``C="auto"``, the values tried, ascending; empty where there are fewer than eight
        different documents.
    scores_ : ndarray of shape (n_folds, n_Cs)
        Minus the mean log loss of the documents that were held out, for each of them.
    token_vectors_scale_ : float
        The value of `token_vectors_scale` used; absent without vectors.
    vector_weights_ : ndarray of shape (d,) or (n_classes, d)
        What a token's vector is multiplied by in its values; absent without vectors.
    entry_scale_ : float
        The m of `sublinear_counts`; absent without.
    multilabel_ : bool
        Whether documents have several labels: each has values and an intercept of its own,
        attention is that of all, and losses are added up.
    {attributes}
    optimality_gap_ : float
        The gap reached (see `tol`).

    See Also
    --------
    TokenImportanceTransformer : Scale or select tokens by the same importances.
    sklearn_clsattn.paper : The regimes of the paper, as classifiers with the same methods.

    Notes
    -----
    With token weights :math:`c_{is}`, the model is

    .. math::

        F_{ik} = \beta_k + \frac{\sum_s c_{is} e^{a_s} b_{sk}}
                                {S_0 e^{a_0} + \sum_s c_{is} e^{a_s}} .

    Before training, the values have a prior mean: a share of what a naive Bayes says of the token,
    fitted without the document at hand (``docs/model.md``). What training adds is penalised.

    In terms of embeddings, :math:`a_s = E_s \cdot p` and :math:`b_{sk} = E_s \cdot v_k`. For p
    and v_k fixed and orthogonal, an L2 penalty on E is two L2 penalties, on a and on b: the
    dimension of the embeddings drops out.

    Integer counts and float32 input are trained on in single precision, other input in double.
    Predictions, attention and contributions are always in double precision.

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

    _parameter_constraints = {
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "attention_C": [Interval(Real, 0, None, closed="neither")],
        "attend_cls": ["boolean"],
        "token_scaling": [StrOptions({"log_odds"}), None],
        "sublinear_counts": ["boolean"],
        "token_vectors_scale": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "device": "no_validation",  # may be a torch.device; resolve_device checks it
    }

    def __init__(
        self,
        *,
        C: float | Literal["auto"] = "auto",
        attention_C: float = 0.03,
        attend_cls: bool = True,
        token_scaling: Literal["log_odds"] | None = "log_odds",
        sublinear_counts: bool = True,
        token_vectors_scale: float | Literal["auto"] = "auto",
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int = 300,
        tol: float | Literal["auto"] = "auto",
        warm_start: bool = False,
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
    ) -> Self:
        """Fit the classifier.

        Where a document may have several labels, `y` is a matrix of 0 and 1, (n_documents,
        n_labels), dense, sparse or a data frame, whose columns' names are then the classes.

        Parameters
        ----------
        {training}
        token_vectors : array-like of shape (n_tokens, d), default=None
            Vectors of the tokens, such as those of
            :class:`~sklearn_clsattn.text.WordVectors`: tokens with similar ones share what is
            learned, and a token that no document has is given what its vector says. Only their
            directions count; a row of 0 is no vector. What a
            :class:`~sklearn_clsattn.text.ContextVectorizer` with `word_vectors` returns has them.

        {self}
        """
        more = vector_options(self, token_vectors, getattr(X, "token_vectors", None))
        self._fit_in_memory(X, y, sample_weight, **more)
        return self

    @all_or_nothing
    def fit_chunks(self, counts: ChunkedCounts, token_vectors: ArrayLike | None = None) -> Self:
        """Fit the classifier on documents in files, chunk by chunk.

        The model is that of :meth:`fit` on all documents at once, but for rounding. In memory are
        one chunk at a time, some vectors as large as the model, and, while equal documents are
        looked for, some 150 bytes for each document.

        Parameters
        ----------
        counts : ChunkedCounts
            The documents, with their labels and weights.
        token_vectors : array-like of shape (n_tokens, d), default=None
            As in :meth:`fit`.

        {self}

        Examples
        --------
        >>> import tempfile
        >>> from sklearn_clsattn import ChunkedCounts, ClsAttentionClassifier
        >>> from sklearn_clsattn.datasets import make_token_classification
        >>> X, y = make_token_classification(600, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     batches = ((X[start : start + 100], y[start : start + 100])
        ...                for start in range(0, 600, 100))
        ...     counts = ChunkedCounts.write(f"{folder}/counts", batches)
        ...     model = ClsAttentionClassifier().fit_chunks(counts)
        >>> model.n_iter_ == ClsAttentionClassifier().fit(X, y).n_iter_
        True
        """
        from ._core.backend import resolve_device

        if resolve_device(self.device).type != "cpu":
            raise ValueError(
                f"Fits on ChunkedCounts compute on the CPU, but device={self.device!r}: chunks "
                "that fit into a GPU's memory can be fitted on at once, by fit."
            )
        with counts.opened() as (corpus, summary):
            fit_corpus(self, corpus, summary, **vector_options(self, token_vectors))
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
        """Learn a batch of documents after those of earlier calls, which are not needed again.

        Every call trains to convergence on the batch and on what is remembered of all earlier
        documents: the statistics of their tokens, exactly, and their losses, to second order
        around the model reached with them. The first call is :meth:`fit`, in double precision.
        Batches should mix the classes: what is remembered of one class gives way when only others
        come for long.

        Parameters
        ----------
        {training}
        {classes}

        {self}

        Raises
        ------
        AttributeError
            If the model comes from :meth:`fit`, which remembers no documents, or with
            ``class_weight="balanced"``, which has to know all documents.

        Notes
        -----
        The memory is one gradient and one curvature per parameter: variational Bayesian online
        learning with a diagonal covariance. `loss_curve_`, `n_iter_` and `optimality_gap_` are the
        last call's; `selection_counts_` count each document by the model that had just learnt it.

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
        from ._core.backend import ThreadShare, resolve_device
        from ._core.memory import Stream
        from ._core.streaming import learn_batch

        if getattr(X, "token_vectors", None) is not None:
            raise ValueError("X carries vectors of words, with which only fit learns.")
        stream: Stream | None = getattr(self, "_stream", None)
        device = resolve_device(self.device)
        csr, labels, weights = validated(self, X, y, sample_weight, reset=stream is None)
        if labels.ndim > 1:
            raise ValueError("partial_fit learns one label per document: of several only fit does.")
        known, codes = code_labels(labels, classes, None if stream is None else self.classes_)
        if stream is None:
            stream = Stream.empty(len(known), csr.shape[1])
        scale, seen = stream.entry_scale, stream.statistics.class_weights
        batch, _ = documents_in_memory(self, csr, codes, known, weights, scale, seen)
        with ThreadShare(), in_range(self, batch.statistics.total_weight):
            result, kept = learn_batch(
                stream, batch, device=device, report=self._report, **self._settings()
            )
            check_finite(result)
        self._store(result, known, kept.statistics, kept.selection_counts, kept.entry_scale)
        self._stream = kept
        warn(result, stacklevel=5)
        return self

    def cls_attention(self, X: Any) -> NDArray[np.float64]:
        """Return the share of attention that ``<cls>`` keeps: how little a document says.

        Where it is near 1, the decision is near the intercept. Reject documents by it, or by their
        probabilities.

        {X}

        Returns
        -------
        shares : ndarray of shape (n_documents,)
            From 0 to 1: 1 for a document without tokens that the model knows, 0 for all with
            ``attend_cls=False``.
        """
        return self._answer(X, "cls_shares")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _train(self, documents: Documents, **options: Any) -> FitResult:
        # Imported when a fit starts: predicting needs no PyTorch.
        from ._core.fit import fit_attention

        vectors, n_tokens = options.get("vectors"), documents.shape[1]
        if vectors is not None and vectors.n_tokens != n_tokens:
            raise ValueError(
                f"token_vectors has {vectors.n_tokens} rows, but X has {n_tokens} columns: "
                "expected a vector for each token, of zeros where there is none."
            )

        tell = partial(print, flush=True) if self.verbose else None
        return fit_attention(documents, tell=tell, **options, **self._settings())

    def _settings(self) -> dict[str, Any]:
        """Return the parameters of training."""
        names = ("C", "attention_C", "attend_cls", "max_iter", "tol")
        settings = {name: getattr(self, name) for name in names} | {"scaling": self.token_scaling}
        return {name: None if value == "auto" else value for name, value in settings.items()}


def vector_options(
    classifier: ClsAttentionClassifier, given: Any, carried: TokenVectors | None = None
) -> dict[str, Any]:
    """Return the options of training with vectors of tokens: those given, else those carried."""
    if given is not None:
        given = check_array(given, dtype=np.float64, input_name="token_vectors")
        carried = TokenVectors.of_rows(given)
    scale = None if classifier.token_vectors_scale == "auto" else classifier.token_vectors_scale
    return {} if carried is None else {"vectors": carried, "scale": scale}
