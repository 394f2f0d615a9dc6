"""A transformer that weights and selects tokens by their importance for the classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from numbers import Integral, Real
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    check_non_negative,
    validate_data,
)

from ._estimators import CallbackSupportMixin, SavedMixin, all_or_nothing, fit_task
from ._matrices import as_configured, native, safe_divide
from ._sklearn import Interval, RealNotInt, StrOptions
from ._types import Array
from ._validation import checked_weights, targets_of_batch, targets_of_labels, validated_bags
from .training.fitted_model import in_the_layout_of
from .training.statistics import overall_importance, signed_frequency

Kind = TypeVar("Kind", bound=type)


def _sparse_stays_sparse(kind: Kind) -> Kind:
    """Leave sparse output as it is where scikit-learn is set to return data frames."""
    transformer: Any = kind
    transformer.transform = _not_framed(transformer.transform)
    transformer.fit_transform = _not_framed(all_or_nothing(transformer.fit_transform))
    return kind


def _not_framed(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that makes no data frame of a sparse X by the global configuration."""

    @wraps(method)
    def transforming(self: Any, X: Any, *args: Any, **params: Any) -> Any:
        if not sparse.issparse(X):
            return method(self, X, *args, **params)
        with config_context(transform_output="default"):
            return method(self, X, *args, **params)

    return transforming


@_sparse_stays_sparse
class TokenImportanceTransformer(SavedMixin, CallbackSupportMixin, SelectorMixin, BaseEstimator):
    r"""Scale tokens by their importance for the classes, select the most important, or both.

    Use it between a vectorizer and any estimator. It computes a statistic of each token from X and
    y and multiplies the columns of X by it. If `k` or `threshold` is given, it selects the columns
    with the largest values. Binary counts scaled by ``"log_odds"`` before a linear classifier are
    NB-SVM [2]_.

    Parameters
    ----------
    importance : str, default="signed_frequency"
        The statistic:

        - ``"signed_frequency"``: the mean over documents of y_i = +1 or -1 times the token's share
          of the document. One gradient step on the embeddings of an attention model learns this
          [1]_;
        - ``"posterior_difference"``: P(class 1 | token) - P(class 0 | token), from occurrences;
        - ``"log_odds"``: the smoothed log-count ratio of the classes, from occurrences.

        Occurrences are the values of X. Binarise X to count documents instead.
    k : int, float or None, default=None
        How many tokens to select: a number (int), a fraction (float above 0, up to 1), or all
        (``None``). If tokens are equally important, the first columns are selected.
    threshold : float or None, default=None
        Select only tokens with a larger overall importance: the absolute importance for two
        classes, the root mean square over the classes for more. With `k`, both conditions must
        hold.
    scale : bool, default=True
        Multiply columns by the overall importance, which is not negative. ``False`` only selects
        columns. `inverse_transform` undoes the selection, not the scaling.
    smoothing : float, default=1.0
        Added to the total of each token in each class by ``"log_odds"``.
    centred : bool, default=False
        Whether ``"signed_frequency"`` gives all classes the same total weight, which removes the
        bias towards larger classes.

    Attributes
    ----------
    token_importance_ : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
        The statistic: for two classes one number per token, positive for ``classes_[1]``; for more,
        one row per class.
    scale_ : ndarray of shape (n_tokens,) or None
        Factors of the columns; ``None`` if ``scale=False``.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    token_totals_ : ndarray of shape (n_classes, n_tokens)
        Sums over the documents of each class: of token shares for ``"signed_frequency"``, of values
        of X for the others. :meth:`partial_fit` adds to them.
    class_count_ : ndarray of shape (n_classes,)
        Sum of the sample weights of each class.
    n_features_in_ : int
        Number of tokens.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the tokens, if X had string names.

    Notes
    -----
    With document weights :math:`\omega_i`, counts :math:`c_{is}`, their sums :math:`T_i` over a
    document and :math:`n_{ks}` over the documents of a class, and :math:`y_i = \pm 1`, the
    statistics are, for two classes,

    - signed frequency, :math:`\frac 1 n \sum_i \omega_i y_i c_{is} / T_i` with the sum n of all
      weights,
    - posterior difference, :math:`(n_{1s} - n_{0s}) / (n_{1s} + n_{0s})`,
    - log-odds, :math:`\log \frac{p_{1s}}{\lVert p_1 \rVert_1} - \log \frac{p_{0s}}{\lVert p_0
      \rVert_1}` with :math:`p_{ks} = n_{ks}` plus `smoothing`.

    For more classes, each is compared with all others.

    References
    ----------
    .. [1] D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained
       Embeddings Provably Selects Important Tokens. NeurIPS 2025, arXiv:2505.17282.
    .. [2] S. Wang, C. D. Manning (2012). Baselines and Bigrams: Simple, Good Sentiment and
       Topic Classification. Proceedings of ACL 2012.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_clsattn import TokenImportanceTransformer
    >>> texts = ["a good film", "good fun", "a bad film", "a dull, bad plot"]
    >>> y = ["pos", "pos", "neg", "neg"]
    >>> nbsvm = make_pipeline(
    ...     CountVectorizer(ngram_range=(1, 2), binary=True),
    ...     TokenImportanceTransformer("log_odds"),
    ...     LogisticRegression(),
    ... )
    >>> nbsvm.fit(texts, y).predict(["good plot", "bad"])
    array(['pos', 'neg'], dtype='<U3')
    >>> best = make_pipeline(CountVectorizer(), TokenImportanceTransformer(k=2, scale=False))
    >>> best.fit(texts, y).get_feature_names_out()
    array(['bad', 'good'], dtype=object)
    """

    classes_: NDArray[Any]
    token_totals_: NDArray[np.float64]
    class_count_: NDArray[np.float64]
    _totals_kind: str

    _parameter_constraints: dict[str, list[Any]] = {
        "importance": [StrOptions({"signed_frequency", "posterior_difference", "log_odds"})],
        "k": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
            None,
        ],
        "threshold": [Interval(Real, 0, None, closed="left"), None],
        "scale": ["boolean"],
        "smoothing": [Interval(Real, 0, None, closed="neither")],
        "centred": ["boolean"],
    }

    def __init__(
        self,
        importance: str = "signed_frequency",
        *,
        k: int | float | None = None,
        threshold: float | None = None,
        scale: bool = True,
        smoothing: float = 1.0,
        centred: bool = False,
    ) -> None:
        self.importance = importance
        self.k = k
        self.threshold = threshold
        self.scale = scale
        self.smoothing = smoothing
        self.centred = centred

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the importance of each token.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.
        y : array-like of shape (n_documents,)
            Class labels.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative document weights; a weight of 2 is equivalent to two copies.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        with fit_task(self, X, y, sample_weight):
            return self._add_batch(X, y, None, sample_weight, afresh=True)

    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add a batch of documents to those already seen.

        The result is that of :meth:`fit` on the documents of all batches together.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.
        y : array-like of shape (n_documents,)
            Class labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that occur in any batch; by default, those of the first batch. They are the
            same in each call.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative document weights; a weight of 2 is equivalent to two copies.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        afresh = not hasattr(self, "token_totals_")
        return self._add_batch(X, y, classes, sample_weight, afresh=afresh)

    def transform(self, X: Any) -> Any:
        """Return the selected columns of X, scaled.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.

        Returns
        -------
        X_new : {ndarray, sparse matrix} of shape (n_documents, n_selected)
            Sparse (CSR) if X is sparse; float32 if X is float32; scaled integers become float64. Of
            a dense X a data frame, if `set_output` or scikit-learn's configuration asks for one.
        """
        # 1) validated documents
        check_is_fitted(self)
        is_sparse_array = isinstance(X, sparse.sparray)
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False)
        X = native(X)
        check_non_negative(X, type(self).__name__)
        # 2) the selected columns
        selected = self.get_support(indices=True)
        if not len(selected):
            warnings.warn(
                "No tokens were selected: no importance is above "
                f"threshold={self.threshold}. The result has no columns.",
                stacklevel=2,
            )
        if len(selected) < self.n_features_in_:
            X = X[:, selected]
        elif self.scale_ is None:
            X = X.copy()  # later steps may change it in place
        # 3) their scale
        if self.scale_ is not None:
            X = _scaled(X, self.scale_[selected])
        return X if is_sparse_array else as_configured(X)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        """Return which tokens are selected, (n_tokens,), for :meth:`get_support`."""
        check_is_fitted(self)
        return self._support_mask.copy()

    def _add_batch(
        self, X: Any, y: Any, classes: ArrayLike | None, sample_weight: Any, *, afresh: bool
    ) -> Self:
        """Add one batch to the totals, or start them, and compute all other attributes."""
        # 1) the batch
        bags = validated_bags(self, X, reset=afresh)
        labels = targets_of_labels(y)
        earlier = None if afresh else self.classes_
        known = labels.classes if afresh and classes is None else classes
        targets = targets_of_batch(labels, known, earlier)
        weights = checked_weights(bags.units, sample_weight)
        check_consistent_length(bags.units, targets.values)
        # Stored with the totals: a later batch must be summed in the same way.
        kind: Any = "shares" if self.importance == "signed_frequency" else "counts"
        if not afresh and kind != self._totals_kind:
            raise ValueError(
                f"importance={self.importance!r} needs other sums than those of earlier batches: "
                "call fit, or use a new transformer."
            )
        # 2) totals of all batches, and the importance that follows from them
        per_count = safe_divide(weights, bags.totals()) if kind == "shares" else weights
        totals = bags.class_totals(targets.values, targets.n_classes, per_count)
        class_count = targets.class_sums(weights)
        if not afresh:
            totals += self.token_totals_
            class_count += self.class_count_
        importance = self._importance(totals, class_count)
        overall = overall_importance(importance)
        # 3) the attributes
        self._support_mask = self._selected(overall)
        self._totals_kind = kind
        self.classes_ = targets.classes
        self.class_count_ = class_count
        self.token_totals_ = totals
        self.token_importance_ = importance
        self.scale_ = overall if self.scale else None
        return self

    def _importance(
        self, totals: NDArray[np.float64], class_count: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the statistic of each token, (n_tokens,) or (n_classes, n_tokens)."""
        if self.importance == "signed_frequency":
            return signed_frequency(totals, class_count, centred=self.centred)
        if self.importance == "posterior_difference":
            return posterior_difference(totals)
        return log_odds(totals, smoothing=self.smoothing)

    def _selected(self, overall: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which tokens (n_tokens,) `k` and `threshold` select, by overall importance."""
        # 1) by the threshold
        n_tokens = len(overall)
        selected = np.full(n_tokens, True)
        if self.threshold is not None:
            selected = overall > self.threshold
        # 2) by the number or share of tokens
        k = self.k
        if k is not None:
            if k > n_tokens:
                warnings.warn(f"k={k} is above n_tokens={n_tokens}: all are kept.", stacklevel=2)
            is_number = isinstance(k, int | np.integer)
            n_best = int(k) if is_number else max(1, round(k * n_tokens))
            # Rounded, so that the order of documents does not decide between equal tokens.
            ranked = np.round(overall / (overall.max() or 1.0), 12)
            selected[np.argsort(-ranked, kind="stable")[n_best:]] = False
        return selected

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _scaled(X: Any, factors: NDArray[np.float64]) -> Any:
    """Return an ndarray or CSR matrix with its columns times factors, (n_tokens,)."""
    factors = factors.astype(np.float32 if X.dtype == np.float32 else np.float64)
    if not sparse.issparse(X):
        return X * factors
    data = factors[X.indices]
    data *= X.data
    return in_the_layout_of(X, data)


def posterior_difference(totals: Array) -> Array:
    r"""Return the difference of the classes' posterior probabilities, given the token.

    It has one number per token for two classes, positive for the second, else one row per class.
    For K > 2 classes it is the posterior of class k minus the mean posterior of the others,
    :math:`(K P(k|s) - 1) / (K - 1)`. The totals are those of counts, (n_classes, n_tokens).
    """
    n_classes = len(totals)
    seen = totals.sum(axis=0)
    if n_classes == 2:
        return safe_divide(totals[1] - totals[0], seen)
    difference = n_classes * totals  # changed in place: it may be large
    difference -= seen
    return safe_divide(difference, (n_classes - 1) * seen)


def log_odds(totals: Array, *, smoothing: float = 1.0) -> Array:
    """Return the log-count ratio of each token between the classes, as in NB-SVM.

    It has one number per token for two classes, positive for the second, else one row per class.
    For K > 2, the smoothed totals of each class are compared with the sum of the others. The totals
    are those of counts, (n_classes, n_tokens). The training of classifiers smooths otherwise
    (:class:`~.training.statistics.TokenTotals`).
    """
    # 1) the totals of each class, and of all others
    smoothed = totals + smoothing
    rest = smoothed.sum(axis=0) - smoothed
    # By rounding, the difference may be smaller than the smoothing.
    np.maximum(rest, (len(totals) - 1) * smoothing, out=rest)
    # 2) their log-odds, relative to those of their sums
    prior_odds = np.log(smoothed.sum(axis=1)) - np.log(rest.sum(axis=1))
    smoothed /= rest
    ratios = np.log(smoothed, out=smoothed)
    ratios -= prior_odds[:, None]
    return ratios[1] if len(totals) == 2 else ratios
