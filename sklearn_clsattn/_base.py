"""Base of the classifiers of counts: preparation, prediction, inspection, and storing a fit."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from ._bags import Bags
from ._estimators import CallbackSupportMixin, FitTask, SavedMixin, all_or_nothing, fit_task
from ._matrices import log_damp, safe_divide
from ._threads import thread_pool
from ._types import Array, Numbers
from ._validation import check_two_classes, checked_groups, validated, validated_bags
from .training.fitted_model import (
    FittedAttention,
    VectorEmbeddings,
    log_probabilities,
    probabilities,
    selection,
)

if TYPE_CHECKING:
    import torch

    from .training.documents import Documents
    from .training.fitted_model import FitResult
    from .training.statistics import CorpusStatistics

_LARGEST_SINGLE = 2**24  # up to here, single precision is exact for integers
PSEUDO_DOCUMENTS = 1.0  # of each class, for its share
_LEAST_FACTOR = 1e-30  # of a class's odds


class BaseAttentionClassifier(SavedMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Base of all classifiers of counts, which share prediction and inspection.

    A subclass has the parameters `class_weight`, `max_iter`, `verbose` and `device` in addition to
    its own, and trains in `_train`.
    """

    mlp = False  # default of the parameter `mlp` of AttentionNetworkClassifier
    multilabel_ = False  # `_store` sets True on an instance whose documents have several labels

    _accepts_columns = False  # a y of several columns
    _damps_counts = False
    _weighs_documents = True  # by `class_weight`, else this changes the intercepts only
    _criterion = "gap"  # what `_print_progress` calls the number that the stopping rule compares

    class_weight: dict[Any, float] | str | None
    max_iter: int
    verbose: int
    device: Any

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier.

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
        self._fit_in_memory(X, y, sample_weight)
        return self

    def _fit_in_memory(
        self, X: Any, y: Any, sample_weight: Any, groups: Any = None, **more: Any
    ) -> None:
        """Fit on documents in memory; `more` is passed to `_train`."""
        from .training.documents import Documents
        from .training.products import resolve_device

        device = resolve_device(self.device)
        with fit_task(self, X, y, sample_weight, self.max_iter) as task:
            parts = validated(self, X, y, sample_weight, columns=self._accepts_columns)
            given_groups = checked_groups(parts[-1], groups)
            with thread_pool():
                documents = Documents(*parts, given_groups=given_groups)
                self._fit_documents(documents, device, task, **more)

    def decision_function(self, X: Any) -> Array:
        """Return the decision values.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.

        Returns
        -------
        decision : ndarray of shape (n_documents,) or (n_documents, n_classes)
            For two classes, the log-odds of ``classes_[1]``; for more, one value per class; with
            several labels per document, the log-odds of each label.
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each document.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.

        Returns
        -------
        labels : ndarray of shape (n_documents,) or (n_documents, n_classes)
            Labels from `classes_`; for several labels, 1 for each with a probability above 0.5.
        """
        outputs = self._outputs(X)
        if self.multilabel_:
            return (outputs > 0).astype(np.intp)
        if outputs.shape[1] == 1:
            return self.classes_[(outputs[:, 0] > 0).astype(np.intp)]
        return self.classes_[outputs.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.

        Returns
        -------
        probabilities : ndarray of shape (n_documents, n_classes)
            In the order of `classes_`. Rows sum to 1, except with several labels.
        """
        outputs = self._outputs(X)
        return class_probabilities(self, outputs)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.

        Returns
        -------
        log_probabilities : ndarray of shape (n_documents, n_classes)
            Finite even if a probability rounds to 0.
        """
        outputs = self._outputs(X)
        return np.asarray(log_expit(outputs)) if self.multilabel_ else log_probabilities(outputs)

    def attention(self, X: Any) -> sp.csr_array:
        """Return the attention weights of each document's tokens.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.

        Returns
        -------
        attention : csr_array of shape (n_documents, n_tokens)
            Each row sums to 1 minus the share of ``<cls>``. A document without tokens has no
            entries.
        """
        bags = self._bags(X)
        return self._model().attention(bags.matrix())

    def contributions(self, X: Any) -> sp.csr_array | list[sp.csr_array]:
        """Return the contribution of each token of each document to the decision.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.

        Returns
        -------
        contributions : csr_array of shape (n_documents, n_tokens), or a list of them
            Attention weight times token value; for more than two classes or several labels, one
            array per class. Row sums plus `intercept_` equal :meth:`decision_function`.

        Raises
        ------
        ValueError
            If `mlp` of AttentionNetworkClassifier is True: decisions are then not sums over tokens.
        """
        bags = self._bags(X)
        terms = self._model().contributions(bags.matrix())
        return terms[0] if len(terms) == 1 else terms

    def select_tokens(self, X: Any) -> sp.csr_array:
        """Return the tokens with the highest attention score in each document.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.

        Returns
        -------
        selected : boolean csr_array of shape (n_documents, n_tokens)
            The document's tokens whose score is within 1e-6 of its highest (S_X(p) in the paper).
        """
        bags = self._bags(X)
        return selection(self._model().scores, bags.matrix())

    @property
    def cls_embedding_(self) -> Array:
        """The embedding p of ``<cls>``.

        The first unit vector if only scores and values were trained.
        """
        check_is_fitted(self)
        if self._embeddings is not None:
            return self._embeddings.cls_embedding
        return np.eye(1, 1 + len(self.intercept_))[0]

    @property
    def output_vector_(self) -> Array:
        """The output vector v, or one row per class.

        Unit vectors if only scores and values were trained.
        """
        check_is_fitted(self)
        n_outputs = len(self.intercept_)
        if self._embeddings is None:
            vectors = np.eye(1 + n_outputs)[1:]
        else:
            vectors = self._embeddings.output_vectors
        return vectors[0] if n_outputs == 1 else vectors

    @property
    def token_embeddings_(self) -> NDArray[np.floating[Any]]:
        """The embeddings E; a row [score, values] per token if only these were trained."""
        check_is_fitted(self)
        if self._embeddings is not None:
            return self._embeddings.matrix
        return np.column_stack([self.attention_scores_, self._model().values])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "attention_scores_")

    def _model(self) -> FittedAttention:
        """Return the fitted model, here from the fitted attributes."""
        check_is_fitted(self)
        values = self.token_values_
        return FittedAttention(
            scores=self.attention_scores_,
            values=values[:, None] if values.ndim == 1 else values.T,
            intercept=self.intercept_,
            cls_weight=self.cls_weight_,
            cls_score=self.cls_score_,
            entry_scale=getattr(self, "entry_scale_", None),
        )

    def _bags(self, X: Any) -> Bags:
        """Return validated documents to predict as bags."""
        check_is_fitted(self)
        return validated_bags(self, X, reset=False)

    def _outputs(self, X: Any) -> Array:
        """Return the outputs of documents, (n_documents, n_outputs): one for two classes."""
        bags = self._bags(X)
        return self._model().outputs(bags)

    def _train(self, documents: Documents, **options: Any) -> FitResult:
        """Train on the documents; each classifier implements this."""
        raise NotImplementedError

    def _fit_documents(
        self, documents: Documents, device: torch.device, task: FitTask, **more: Any
    ) -> None:
        """Train on documents, store the result, and warn; `more` is passed to `_train`."""

        def on_iteration(n_iter: int, loss: float, criterion: float) -> None:
            self._print_progress(n_iter, loss, criterion)
            task.reached(n_iter)

        # 1) weighted classes, and damped counts
        documents, dtype = prepared(
            documents,
            self.class_weight,
            damps_counts=self._damps_counts and not documents.is_damped,
            weighs_documents=self._weighs_documents,
        )
        targets = documents.targets
        if not targets.multilabel:
            sizes = documents.class_sizes()
            # A class of sample weight 0 is known to the intercepts, and never predicted.
            known = sizes if self._weighs_documents else np.ones(len(sizes))
            check_two_classes(targets.classes, known)
        # 2) training
        with np.errstate(all="ignore"):  # the result is checked
            result = self._train(
                documents, dtype=dtype, device=device, on_iteration=on_iteration, **more
            )
        check_finite(result)
        # 3) the fitted attributes
        counts = documents.count_selected(result.model.scores)
        self._store(result, targets.classes, documents.statistics, counts, documents.entry_scale)
        self.__dict__.pop("_stream", None)  # the memory of partial_fit describes the previous model

    def _store(
        self,
        result: FitResult,
        classes: NDArray[Any],
        statistics: CorpusStatistics,
        selection_counts: Numbers,
        entry_scale: float | None,
    ) -> None:
        """Store the fitted attributes, and issue the warning of training."""
        # 1) no attribute of an earlier fit, perhaps with other parameters, stays
        for name in list(vars(self)):
            if name.endswith("_") and not name.endswith("_in_"):
                del self.__dict__[name]
        # 2) the classes, the course of training and the model
        self.classes_ = classes
        self.n_iter_ = max(1, result.n_iter)  # scikit-learn requires at least 1
        self.loss_curve_ = np.array(result.loss_curve)
        if statistics.multilabel:
            self.multilabel_ = True
        self.__dict__.update(result.attributes)
        self.__dict__.update(self._model_attributes(result.model, entry_scale))
        # 3) the statistics of the training documents
        self.token_importance_ = statistics.importance
        # 4) the selected tokens, most often selected first
        order = np.argsort(-selection_counts, kind="stable")
        self.selected_tokens_ = order[: np.count_nonzero(selection_counts)]
        self.selection_counts_ = selection_counts[self.selected_tokens_]
        if result.convergence_message:
            warnings.warn(result.convergence_message, ConvergenceWarning, stacklevel=2)

    def _model_attributes(
        self, model: FittedAttention, entry_scale: float | None
    ) -> dict[str, Any]:
        """Return the fitted attributes that prediction needs."""
        values = model.values  # (n_tokens, n_outputs)
        attributes = {
            "attention_scores_": model.scores,
            "token_values_": values[:, 0] if values.shape[1] == 1 else values.T,
            "intercept_": model.intercept,
            "cls_weight_": model.cls_weight,
            "cls_score_": model.cls_score,
            "_embeddings": model.embeddings,
        }
        if entry_scale is not None:
            attributes["entry_scale_"] = entry_scale
        return attributes

    def _print_progress(self, n_iter: int, loss: float, criterion: float) -> None:
        """Print progress as `verbose` requests."""
        if self.verbose and n_iter % int(self.verbose) == 0:
            measure = "" if np.isnan(criterion) else f"   {self._criterion} {criterion:.2e}"
            print(f"iteration {n_iter:4d}   loss {loss:.6f}{measure}", flush=True)


def prepared(
    documents: Documents,
    class_weight: Any,
    *,
    damps_counts: bool,
    entry_scale: float | None = None,
    weighs_documents: bool = True,
) -> tuple[Documents, type[np.floating[Any]]]:
    """Return documents in the form for training, and the precision of training.

    With `damps_counts`, counts are damped in the unit `entry_scale`, by default their mean. Class
    weights multiply the documents' weights if `weighs_documents`; else they are for the intercepts
    (:func:`class_offsets`). Training is in single precision if that holds the entries exactly.
    """
    # 1) class weights
    if class_weight is not None:
        targets = documents.targets
        if targets.multilabel:
            raise ValueError("class_weight is for one label per document: use sample_weight.")
        if weighs_documents:
            factors = class_factors(class_weight, targets.classes, documents.class_sizes())
            documents = documents.with_class_factors(factors)
    # 2) the precision of the entries
    is_exact = documents.entry_type == np.float32 or documents.entry_type.kind in "biu"
    largest = documents.largest_entry
    # 3) damped entries, in the unit of their mean
    if damps_counts:
        if entry_scale is None:
            total, n_entries = documents.entry_sums()
            entry_scale = float(total / n_entries) if n_entries > 0 else 1.0
        documents = documents.damped(entry_scale, np.float32 if is_exact else np.float64)
        largest = float(log_damp(np.array([largest]), entry_scale)[0])
    is_single = is_exact and largest <= _LARGEST_SINGLE
    return documents, np.float32 if is_single else np.float64


def class_factors(class_weight: Any, classes: NDArray[Any], class_sizes: Array) -> Array:
    """Return every class's factor (n_classes,) by `class_weight`, from the classes' weights."""
    if class_weight == "balanced":  # equal weights of the classes that have documents
        mean = class_sizes.sum() / max(np.count_nonzero(class_sizes), 1)
        return safe_divide(mean, class_sizes)
    factors = np.asarray(compute_sample_weight(class_weight, classes))
    if (factors < 0).any():
        raise ValueError(f"class_weight must not be negative, got {class_weight}.")
    return factors


def class_offsets(class_weight: Any, classes: NDArray[Any], class_sizes: Array) -> Array:
    """Return the offsets of intercepts, (n_outputs,): logarithms of the classes' factors.

    `class_sizes`, (n_classes,), are the sums of the documents' weights. Each class is worth
    :data:`PSEUDO_DOCUMENTS` more, as the shares of a few documents are uncertain (Laplace's rule of
    succession), but at most twice its documents. A factor by `class_weight` multiplies the odds of
    a class; that of weight 0 is tiny, so that logarithms of probabilities are finite.
    """
    # 1) the shares of classes
    logs = np.log1p(PSEUDO_DOCUMENTS / np.maximum(class_sizes, PSEUDO_DOCUMENTS))
    # 2) the class weights
    if class_weight is not None:
        factors = class_factors(class_weight, classes, class_sizes * np.exp(logs))
        logs += np.log(factors.clip(_LEAST_FACTOR))
    return logs[1:] - logs[:1] if len(logs) == 2 else logs


def check_finite(result: FitResult) -> None:
    """Raise ValueError unless the model and losses of a fit are finite."""
    model = result.model
    numbers = [model.scores, model.values, model.intercept, model.cls_weight, result.loss_curve]
    numbers += result.attributes.values()
    for value in numbers:
        array = np.asarray(value)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(
                "Training leaves the range of floating-point numbers: choose less extreme entries "
                "of X, weights or parameters."
            )


def class_probabilities(classifier: BaseAttentionClassifier, outputs: Array) -> Array:
    """Return the probabilities of classes, or of labels, (n_documents, n_classes)."""
    return np.asarray(expit(outputs)) if classifier.multilabel_ else probabilities(outputs)


def sharpened(classifier: Any, factor: float) -> Any:
    """Return a classifier whose decisions are those of a fitted one, times a factor."""
    other = copy(classifier)
    other.token_values_ = factor * classifier.token_values_
    other.intercept_ = factor * classifier.intercept_
    stored = classifier._embeddings
    if isinstance(stored, VectorEmbeddings):
        own = factor * stored.own
        weights = factor * stored.weights
        other._embeddings = replace(stored, own=own, weights=weights)
        other.vector_weights_ = factor * classifier.vector_weights_
    return other


def add_class_weight(
    classifier: BaseAttentionClassifier, class_weight: Any, class_sizes: Array
) -> None:
    """Give a classifier that was fitted without class weights those of a parameter.

    `class_sizes`, (n_classes,), are the sums of the documents' weights.
    """
    offsets = class_offsets(class_weight, classifier.classes_, class_sizes)
    offsets -= class_offsets(None, classifier.classes_, class_sizes)
    classifier.intercept_ = classifier.intercept_ + offsets
    classifier.class_weight = class_weight
