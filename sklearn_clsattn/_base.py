"""What all classifiers share: prediction, reading, and validating, storing and reporting a fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ._callbacks import CallbackSupportMixin, FitCallbacks
from ._core.fitted import FittedAttention, probabilities
from ._core.statistics import balancing_factors
from ._documents import (
    NegativeEntriesError,
    as_csr,
    canonical,
    check_two_classes,
    damped,
    in_units,
    is_plain,
    is_plain_csr,
    training_dtype,
    with_columns,
)
from ._machine import warn_of_memory
from ._saved import SavedMixin
from ._transaction import all_or_nothing
from ._validation import check_labels, check_non_negative, check_not_texts
from .importance import signed_frequency

if TYPE_CHECKING:
    import torch

    from ._core.documents import Documents
    from ._core.fitted import FittedModel
    from ._core.problem import Callback, FitResult, Progress
    from ._core.statistics import CorpusStatistics


class BaseAttentionClassifier(SavedMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Base of all classifiers: a fitted model is read and predicts in one way.

    A subclass has the parameters `class_weight`, `max_iter`, `verbose` and `device` beside its
    own, and trains in :meth:`_train`.
    """

    mlp = False  # whether one follows the softmax, so that decisions are no sums over tokens

    _solver_name = "lbfgs"  # callbacks' tasks are named after it
    _criterion = "gap"
    _optional_attributes: tuple[str, ...] = ()

    class_weight: dict[Any, float] | str | None
    max_iter: int
    verbose: int
    device: Any

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.
        y : array-like of shape (n_documents,)
            Class labels, of any type, two classes or more.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weights; a weight of 2 is the document twice.

        Returns
        -------
        self : estimator
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
        from ._core.backend import resolve_device

        device = resolve_device(self.device)
        before = self._trained_on() if getattr(self, "warm_start", False) else None
        documents, classes, y = self._documents(X, y, sample_weight)
        train: Callable[..., FitResult] = partial(self._train, device=device)
        if before is not None and before[1:] == (*self._tokens(), classes.tolist()):
            start = replace(before[0], cls_weight=before[0].cls_weight / documents.unit)
            train = partial(train, start=start)
        return self._fit(documents, classes, (documents.X, y, sample_weight), train)

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
        outputs = self._answer(X, "outputs")
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
        numbers = self._answer(X, "most_probable")  # fails first if not fitted
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
        """The embedding p of ``<cls>``; the first unit vector where any basis will do."""
        check_is_fitted(self)
        if self._embeddings is not None:
            return self._embeddings.cls_embedding
        return np.eye(1, 1 + len(self.intercept_))[0]

    @property
    def output_vector_(self) -> NDArray[np.float64]:
        """The output vector v, or one row per class; other unit vectors where any basis will do."""
        check_is_fitted(self)
        if self._embeddings is not None:
            vectors = self._embeddings.output_vectors
        else:
            vectors = np.eye(1 + len(self.intercept_))[1:]
        return vectors[0] if len(vectors) == 1 else vectors

    @property
    def token_embeddings_(self) -> NDArray[np.floating[Any]]:
        """The embeddings E, made when asked for."""
        check_is_fitted(self)
        if self._embeddings is not None:
            return self._embeddings.token_embeddings()
        model = self._model()
        return np.column_stack([model.scores, model.values])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "attention_scores_")

    def _model(self) -> FittedModel:
        """Return the fitted model, made of the fitted attributes."""
        values = self.token_values_
        return FittedAttention(
            scores=self.attention_scores_,
            values=values[:, None] if values.ndim == 1 else values.T,
            intercept=self.intercept_,
            cls_weight=self.cls_weight_,
            cls_score=self.cls_score_,
            entry_scale=getattr(self, "entry_scale_", None),
        )

    def _answer(self, X: Any, question: str) -> Any:
        """Return what a method of the fitted model returns for documents."""
        if (
            hasattr(self, "entry_scale_")
            and not hasattr(self, "feature_names_in_")
            and is_plain_csr(X, self.n_features_in_)
            and X.dtype.kind == "i"
            and X.has_canonical_format
            and len(X.data) == X.nnz
        ):
            # Damping finds negative counts as well as a look at all entries beforehand would.
            with suppress(NegativeEntriesError):
                return getattr(self._model(), question)(X)
        fitted, X = self._checked(X)
        return getattr(fitted, question)(X)

    def _checked(self, X: Any) -> tuple[FittedModel, Any]:
        """Return the fitted model, and documents as it takes them."""
        check_is_fitted(self)
        if hasattr(self, "feature_names_in_") or not is_plain(X, self.n_features_in_):
            check_not_texts(X, self)
            X = validate_data(self, X, accept_sparse="csr", accept_large_sparse=True, reset=False)
            check_non_negative(X, self)
            X = as_csr(X)
        model = self._model()
        if hasattr(self, "entry_scale_"):  # of an entry in several parts, the sum is damped
            X = canonical(X)
        return model, X

    def _train(
        self,
        documents: Documents,
        *,
        dtype: type[np.floating[Any]],
        device: torch.device,
        callback: Callback,
    ) -> FitResult:
        """Train on the documents; every classifier has its own way."""
        raise NotImplementedError

    def _trained_on(self) -> tuple[Any, ...] | None:
        """Return the fitted model, its tokens' number and names, and its classes, if any."""
        if not self.__sklearn_is_fitted__():
            return None
        return self._model(), *self._tokens(), self.classes_.tolist()

    def _tokens(self) -> tuple[int, list[Any] | None]:
        """Return number and names of the features that scikit-learn's validation noted."""
        names = getattr(self, "feature_names_in_", None)
        return self.n_features_in_, None if names is None else list(names)

    def _documents(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Documents, NDArray[Any], NDArray[Any]]:
        """Return validated training documents, the sorted class labels, and validated y."""
        check_not_texts(X, self)
        check_labels(y)
        X, y = validate_data(self, X, y, accept_sparse="csr", accept_large_sparse=True)
        check_non_negative(X, self)
        check_classification_targets(y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        classes, codes = np.unique(y, return_inverse=True)
        return self._weighted(X, codes, classes, weights, check_two_classes), classes, np.asarray(y)

    def _weighted(
        self,
        X: Any,
        codes: NDArray[np.intp],
        classes: NDArray[Any],
        weights: NDArray[np.float64],
        check: Callable[[NDArray[Any], NDArray[np.float64]], None],
        entry_scale: float | None = None,
    ) -> Documents:
        """Return documents with the weights of their classes; `check` sees these weights' sums.

        `entry_scale` is that of earlier documents, if there were any.
        """
        from ._core.documents import Documents
        from ._core.statistics import CorpusStatistics

        X, columns = with_columns(as_csr(X))
        X, unit = in_units(X)
        with np.errstate(over="ignore", invalid="ignore"):  # `check` refuses what is not finite
            class_weights = np.bincount(codes, weights, len(classes)).astype(np.float64)
            factors = self._class_factors(classes, class_weights)
            check(classes, class_weights * factors)
            weights = weights * factors[codes]
            X, scale = self._training_entries(X, weights, entry_scale)
            statistics = CorpusStatistics.of(X, codes, len(classes), weights)
        if columns is not None:
            columns, _ = in_units(columns)
            columns = columns if scale is None else damped(columns, scale, X.dtype.type)
        return Documents(X, codes, weights, statistics, scale, unit, columns)

    def _training_entries(
        self, X: Any, weights: NDArray[np.float64], entry_scale: float | None
    ) -> tuple[Any, float | None]:
        """Return the CSR matrix that is trained on, and the unit of its entries if damped."""
        return X, None

    def _class_factors(
        self, classes: NDArray[Any], class_weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return every class's factor by `class_weight`, from their weights, both (n_classes,)."""
        if self.class_weight is None:
            return np.ones(len(classes))
        if self.class_weight == "balanced":
            return balancing_factors(class_weights)
        factors = np.asarray(compute_sample_weight(self.class_weight, classes))
        if not (np.isfinite(factors).all() and factors.min() >= 0):
            raise ValueError(
                f"class_weight must be finite and not negative, got {self.class_weight!r}."
            )
        return factors

    def _fit(
        self,
        documents: Documents,
        classes: NDArray[Any],
        data: tuple[Any, Any, Any],
        train: Callable[..., FitResult],
    ) -> Self:
        """Train, and store what comes back; `data` are X, y and sample weights for callbacks."""
        X = documents.X
        dtype = self._precision(X, documents.statistics.total_weight)
        warn_of_memory(documents, dtype, stacklevel=5)
        return self._fit_documents(documents, dtype, classes, data, train, stacklevel=7)

    def _precision(self, X: Any, total_weight: float) -> type[np.floating[Any]]:
        """Return the precision of training on the CSR matrix X."""
        strengths = [getattr(self, name, 1.0) for name in ("C", "attention_C")]
        strengths = [strength for strength in strengths if strength != "auto"]
        return training_dtype(X, total_weight, min(strengths))

    def _fit_documents(
        self,
        documents: Documents,
        dtype: type[np.floating[Any]],
        classes: NDArray[Any],
        data: tuple[Any, Any, Any],
        train: Callable[..., FitResult],
        stacklevel: int,
    ) -> Self:
        """Train in some precision on documents, wherever they are, as :meth:`_fit`."""
        from ._core.backend import ThreadShare

        callbacks = FitCallbacks(
            self, *data, max_iter=self.max_iter, task_name=f"{self._solver_name}-iter"
        )
        callbacks.begin()
        dimension = getattr(self, "embedding_dim", None) or 0
        with ThreadShare(dimension * documents.n_multiplications), in_range(self, documents):
            result = train(
                documents, dtype=dtype, callback=self._reporter(callbacks, classes, documents)
            )
            check_finite(result)
        counts = documents.count_selected(result.model.scores)
        self._store(
            result, classes, documents.statistics, counts, documents.entry_scale, documents.unit
        )
        self.__dict__.pop("_stream", None)  # of batches that this model knows nothing of
        callbacks.end()
        warn(result, stacklevel)
        return self

    def _store(
        self,
        result: FitResult,
        classes: NDArray[Any],
        statistics: CorpusStatistics,
        selection_counts: NDArray[np.intp],
        entry_scale: float | None,
        unit: float = 1.0,
    ) -> None:
        self.classes_ = classes
        self.n_iter_ = max(1, result.n_iter)
        self.loss_curve_ = np.array(result.loss_curve)
        for name in self._optional_attributes:  # of an earlier fit with other parameters
            self.__dict__.pop(name, None)
        self.__dict__.update(result.attributes)
        self.__dict__.update(self._model_attributes(result.model, entry_scale, unit))
        self.token_importance_ = signed_frequency(statistics.shares, statistics.class_weights)
        order = np.argsort(-selection_counts, kind="stable")
        self.selected_tokens_ = order[: np.count_nonzero(selection_counts)]
        self.selection_counts_ = selection_counts[self.selected_tokens_]

    def _model_attributes(
        self, model: FittedModel, entry_scale: float | None, unit: float = 1.0
    ) -> dict[str, Any]:
        """Return the fitted attributes that predictions are made from.

        `unit` is that of the entries that the model was trained on, and of their scale.
        """
        values = model.values
        scale = {} if entry_scale is None else {"entry_scale_": entry_scale * unit}
        return scale | {
            "attention_scores_": model.scores,
            "token_values_": values[:, 0] if values.shape[1] == 1 else values.T,
            "intercept_": model.intercept,
            "cls_weight_": model.cls_weight * unit,
            "cls_score_": model.cls_score,
            "_embeddings": model.embeddings,
        }

    def _print(self, progress: Progress) -> None:
        if self.verbose and progress.n_iter % int(self.verbose) == 0:
            criterion = progress.criterion
            measure = "" if np.isnan(criterion) else f"   {self._criterion} {criterion:.2e}"
            print(f"iteration {progress.n_iter:4d}   loss {progress.loss:.6f}{measure}", flush=True)

    def _reporter(
        self, callbacks: FitCallbacks, classes: NDArray[Any], documents: Documents
    ) -> Callback:
        """Return the callback of training: prints, and calls scikit-learn's callbacks."""

        def report(progress: Progress) -> bool:
            self._print(progress)
            if progress.n_iter == 0:
                return False
            return callbacks.iteration(
                lambda: {
                    "classes_": classes,
                    **self._model_attributes(
                        progress.model(), documents.entry_scale, documents.unit
                    ),
                }
            )

        return report


@contextmanager
def in_range(classifier: BaseAttentionClassifier, documents: Documents) -> Iterator[None]:
    """Turn what leaves the range of floating-point numbers into a ValueError with the sizes."""
    try:
        with np.errstate(all="ignore"):  # what comes of it is checked
            yield
    except (ArithmeticError, NotFiniteError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "without overflow" not in str(error):
            raise  # PyTorch says no more of a number that single precision does not hold
        names = ("C", "attention_C", "learning_rate", "step_size", "class_weight")
        given = {name: getattr(classifier, name, None) for name in names}
        sizes = "".join(f", {name}={value!r}" for name, value in given.items() if value is not None)
        raise ValueError(
            f"Training leaves the range of floating-point numbers, with document weights of "
            f"{documents.statistics.total_weight:.2g} together{sizes}: choose less extreme ones."
        ) from error


class NotFiniteError(Exception):
    """A model has numbers that are infinite or NaN."""


def check_finite(result: FitResult) -> None:
    """Raise NotFiniteError unless a fit's model and its losses are finite."""
    model = result.model
    arrays = (model.scores, model.values, model.intercept, [model.cls_weight])
    found = [np.asarray(value) for value in result.attributes.values()]
    found = [value for value in found if value.dtype.kind == "f"]
    found += [np.asarray(array) for array in (*arrays, result.loss_curve)]
    if not all(np.isfinite(array).all() for array in found):
        raise NotFiniteError


def warn(result: FitResult, stacklevel: int) -> None:
    """Warn of what training says, past scikit-learn's wrapper of `fit`."""
    for message, category in (
        (result.warning, UserWarning),
        (result.not_converged, ConvergenceWarning),
    ):
        if message:
            warnings.warn(message, category, stacklevel=stacklevel)


def fitted_attention(classifier: BaseAttentionClassifier) -> FittedModel:
    """Return the fitted model of a classifier, made of its fitted attributes."""
    check_is_fitted(classifier)
    return classifier._model()


def checked_documents(classifier: BaseAttentionClassifier, X: Any) -> Any:
    """Return documents as the fitted model of a classifier takes them."""
    return classifier._checked(X)[1]


def training_documents(
    classifier: BaseAttentionClassifier,
    X: Any,
    codes: NDArray[np.intp],
    weights: NDArray[np.float64],
) -> Documents:
    """Return checked documents as a fitted classifier was trained on them.

    `codes`, (n_documents,), are positions of the labels in `classes_`; `weights` those of `fit`.
    """
    scale = getattr(classifier, "entry_scale_", None)
    return classifier._weighted(X, codes, classifier.classes_, weights, check_two_classes, scale)
