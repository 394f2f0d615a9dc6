"""The base of all classifiers: prediction, inspection, and handling the result of a fit."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, log_softmax, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted

from ._bags import multiplied
from ._callbacks import CallbackSupportMixin, FitTask, fit_task
from ._core.fitted import FittedAttention, VectorEmbeddings, probabilities
from ._docstrings import documented
from ._matrices import canonical, is_plain, with_columns
from ._pickling import SavedMixin
from ._training import (
    all_or_nothing,
    check_finite,
    overflow_as_value_error,
    prepared_documents,
    summary_of,
    warn_of_outlying_entries,
    warn_user,
)
from ._types import Array, Numbers
from ._validation import encode_targets, validated

if TYPE_CHECKING:
    import torch

    from ._core.corpus import Corpus
    from ._core.documents import Documents
    from ._core.result import FitResult
    from ._core.statistics import CorpusStatistics
    from ._targets import Targets
    from ._training import Summary


@documented
class BaseAttentionClassifier(SavedMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Base of all classifiers, which share prediction and inspection.

    A subclass has the parameters `class_weight`, `max_iter`, `verbose` and `device` in addition to
    its own, and trains in `_train`.
    """

    mlp = False  # default of the parameter `mlp` of AttentionNetworkClassifier
    multilabel_ = False  # `_store` sets True on an instance whose documents have several labels

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
        {training}

        {self}
        """
        self._fit_in_memory(X, y, sample_weight)
        return self

    def _fit_in_memory(
        self, X: Any, y: Any, sample_weight: Any, classes: Any = None, **more: Any
    ) -> None:
        """Fit on documents in memory.

        `classes` name the columns of `y` if these are probabilities; `more` is passed to `_train`.
        """
        from ._core.products import resolve_device

        device = resolve_device(self.device)
        with fit_task(self, X, y, sample_weight, self.max_iter) as task:
            csr, labels, weights = validated(self, X, y, sample_weight, classes=classes)
            # If `y` is a data frame, it names the columns of `labels`, the validated array.
            targets = encode_targets(y, labels, classes)
            warn_of_outlying_entries(self, csr)
            documents, dtype = documents_in_memory(self, csr, targets, weights)
            self._fit_documents(documents, dtype, device, targets.classes, task, **more)

    def decision_function(self, X: Any) -> Array:
        """Return the decision values.

        {X}

        Returns
        -------
        decision : ndarray of shape (n_documents,) or (n_documents, n_classes)
            For two classes, the log-odds of ``classes_[1]``; for more, one value per class; with
            several labels per document, the log-odds of each label.
        """
        fitted, X = self._checked(X)
        outputs = fitted.outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each document.

        {X}

        Returns
        -------
        labels : ndarray of shape (n_documents,) or (n_documents, n_classes)
            Labels from `classes_`; for several labels, 1 for each with a probability above 0.5.
        """
        if self.multilabel_:
            has_label = self.decision_function(X) > 0  # where its probability is above 0.5
            return has_label.astype(np.intp)
        fitted, X = self._checked(X)
        return self.classes_[fitted.most_probable(X)]

    def predict_proba(self, X: Any, priors: ArrayLike | None = None) -> Array:
        """Return the probability of each class.

        {X}
        priors : array-like of shape (n_classes,), default=None
            Class frequencies among the documents to predict, if they differ from those in
            training (`class_prior_`). They sum to 1, except with several labels. The logarithms of
            the ratios (with several labels, of the odds ratios) are added to the decisions.

        Returns
        -------
        probabilities : ndarray of shape (n_documents, n_classes)
            In the order of `classes_`. Rows sum to 1, except with several labels.
        """
        decision = self.decision_function(X)
        if priors is not None:
            decision = decision + self._prior_shift(priors)
        if self.multilabel_:
            return np.asarray(expit(decision))
        return probabilities(decision)

    def _prior_shift(self, priors: ArrayLike) -> Array:
        """Return the shift of decisions by other priors, a number or (n_classes,) of them."""
        # 1) the priors, which must be frequencies of all classes
        frequencies = check_array(priors, ensure_2d=False, dtype=np.float64, input_name="priors")
        if self.multilabel_:
            requirement = "between 0 and 1"
            is_valid = (frequencies < 1).all()
        else:
            requirement = "above 0 that add up to 1"
            is_valid = np.isclose(frequencies.sum(), 1.0)
        has_shape = frequencies.shape == self.class_prior_.shape
        if not (has_shape and is_valid and (frequencies > 0).all()):
            raise ValueError(
                f"priors must be {len(self.class_prior_)} numbers {requirement}, one for each "
                f"of {self.classes_.tolist()}, got {priors!r}."
            )
        # 2) their distance from those in training, in the units of the decisions
        if self.multilabel_:
            return np.asarray(logit(frequencies) - logit(self.class_prior_))
        shift = np.log(frequencies) - np.log(self.class_prior_)
        if len(self.intercept_) == 1:  # the decision is the log-odds of two classes
            return np.asarray(shift[1] - shift[0])
        return np.asarray(shift)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of the probability of each class.

        {X}

        Returns
        -------
        log_probabilities : ndarray of shape (n_documents, n_classes)
            Finite even if a probability rounds to 0.
        """
        decision = self.decision_function(X)
        if self.multilabel_:
            return np.asarray(log_expit(decision))
        if decision.ndim == 1:  # the log-odds of two classes
            return np.column_stack([log_expit(-decision), log_expit(decision)])
        return log_softmax(decision, axis=1)

    def attention(self, X: Any) -> sp.csr_array:
        """Return the attention weights of each document's tokens.

        {X}

        Returns
        -------
        attention : csr_array of shape (n_documents, n_tokens)
            Each row sums to 1 minus the share of ``<cls>``. A document without tokens has no
            entries.
        """
        fitted, X = self._checked(X)
        return fitted.attention(X)

    def contributions(self, X: Any) -> sp.csr_array | list[sp.csr_array]:
        """Return the contribution of each token of each document to the decision.

        {X}

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
        fitted, X = self._checked(X)
        terms = fitted.contributions(X)
        return terms[0] if len(terms) == 1 else terms

    def select_tokens(self, X: Any) -> sp.csr_array:
        """Return the tokens with the highest attention score in each document.

        {X}

        Returns
        -------
        selected : boolean csr_array of shape (n_documents, n_tokens)
            The document's tokens whose score is within 1e-6 of its highest (S_X(p) in the paper).
        """
        fitted, X = self._checked(X)
        return fitted.selected(X)

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

    @property
    def coef_(self) -> Any:
        """Not available: see `token_values_` and :meth:`contributions`."""
        raise AttributeError(
            f"{type(self).__name__} has no coef_, because what a token adds to a decision depends "
            "on its attention in the document. token_values_ is what it adds with all of the "
            "attention, contributions(X) what it adds in each document."
        )

    @property
    def feature_importances_(self) -> Any:
        """Not available: see `token_importance_`."""
        raise AttributeError(
            f"{type(self).__name__} has no feature_importances_: see token_importance_, which "
            'SelectFromModel and RFE read with importance_getter="token_importance_".'
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "attention_scores_")

    def _model(self) -> FittedAttention:
        """Return the fitted model, here from the fitted attributes."""
        # A file may store smaller numbers (save_model).
        values = self.token_values_.astype(np.float64, copy=False)
        return FittedAttention(
            scores=self.attention_scores_.astype(np.float64, copy=False),
            values=values[:, None] if values.ndim == 1 else values.T,
            intercept=self.intercept_,
            cls_weight=self.cls_weight_,
            cls_score=self.cls_score_,
            entry_scale=getattr(self, "entry_scale_", None),
        )

    def _checked(self, X: Any) -> tuple[FittedAttention, Any]:
        """Return the fitted model, and the documents in the form that it expects."""
        check_is_fitted(self)
        if hasattr(self, "feature_names_in_") or not is_plain(X, self.n_features_in_):
            X, _, _ = validated(self, X, reset=False)
        if hasattr(self, "entry_scale_"):
            X = multiplied(X)  # entries of bags cannot be damped one by one
            X = canonical(X)  # an entry in several parts is summed before it is damped
        return self._model(), X

    def _train(self, documents: Documents, **options: Any) -> FitResult:
        """Train on the documents; each classifier implements this."""
        raise NotImplementedError

    def _fit_documents(
        self,
        documents: Documents,
        dtype: type[np.floating[Any]],
        device: torch.device,
        classes: NDArray[Any],
        task: FitTask,
        **more: Any,
    ) -> None:
        """Train on documents, store the result, and warn; `more` is passed to `_train`."""
        result = self._finite_result(documents, task, dtype=dtype, device=device, **more)
        counts = documents.count_selected(result.model.scores)
        self._store(result, classes, documents.statistics, counts, documents.entry_scale)
        self.__dict__.pop("_stream", None)  # the memory of partial_fit describes the previous model
        self._warn(result)

    def _finite_result(self, documents: Documents, task: FitTask, **options: Any) -> FitResult:
        """Return the result of `_train`, or raise an error if its numbers are not finite."""
        from ._core.threads import ThreadLimit

        def on_iteration(n_iter: int, loss: float, criterion: float) -> None:
            self._print_progress(n_iter, loss, criterion)
            task.reached(n_iter)

        # Multiplications of dense matrices per pass, by which ThreadLimit chooses the threads.
        dimension = getattr(self, "embedding_dim", None) or 0  # None: no dense matrices
        n_dense = dimension * documents.n_entries * (1 + documents.n_outputs)
        total_weight = documents.statistics.total_weight
        with ThreadLimit(n_dense), overflow_as_value_error(self, total_weight):
            result = self._train(documents, on_iteration=on_iteration, **options)
            check_finite(result)
        return result

    def _warn(self, result: FitResult) -> None:
        """Issue the warnings of training."""
        if result.other_message:
            warn_user(result.other_message)
        if result.convergence_message:
            warn_user(result.convergence_message, ConvergenceWarning)

    def _fit_corpus(self, corpus: Corpus, summary: Summary, **more: Any) -> None:
        """Fit on the CPU to documents in chunks, which `summary` describes.

        `more` is passed to `_train`.
        """
        import torch

        self._store_tokens(summary)
        with fit_task(self, max_iter=self.max_iter) as task:
            documents, dtype = prepared_documents(self, corpus, summary)
            device = torch.device("cpu")
            self._fit_documents(documents, dtype, device, summary.targets.classes, task, **more)

    def _store_tokens(self, summary: Summary) -> None:
        """Store the number and names of the tokens, as scikit-learn's `validate_data` does."""
        self.n_features_in_ = summary.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if summary.names is not None:
            self.feature_names_in_ = np.array(summary.names, dtype=object)

    def _store(
        self,
        result: FitResult,
        classes: NDArray[Any],
        statistics: CorpusStatistics,
        selection_counts: Numbers,
        entry_scale: float | None,
    ) -> None:
        """Store the fitted attributes."""
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
        self.class_prior_ = statistics.priors
        # 4) the selected tokens, most often selected first
        order = np.argsort(-selection_counts, kind="stable")
        self.selected_tokens_ = order[: np.count_nonzero(selection_counts)]
        self.selection_counts_ = selection_counts[self.selected_tokens_]

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


def fitted_attention(classifier: BaseAttentionClassifier) -> FittedAttention:
    """Return the model of a fitted classifier."""
    check_is_fitted(classifier)
    return classifier._model()


def vector_embeddings(classifier: BaseAttentionClassifier) -> VectorEmbeddings | None:
    """Return the embeddings of a fitted classifier with word vectors, else None."""
    stored = classifier._embeddings
    return stored if isinstance(stored, VectorEmbeddings) else None


def of_label(classifier: Any, label: Any) -> Any:
    """Return a binary classifier for one of several labels, only to predict and explain."""
    labels = classifier.classes_.tolist()
    if label not in labels:
        raise ValueError(
            f"Documents have several labels: target must be one of {labels}, got {label!r}."
        )
    k = labels.index(label)
    # Other fitted attributes, such as class_prior_, stay those of all labels.
    binary = copy(classifier)
    binary.multilabel_ = False
    # A label of any type becomes a string beside its negation.
    binary.classes_ = np.array([f"not {label}", str(label)], dtype=object)
    binary.token_values_ = classifier.token_values_[k]
    binary.intercept_ = classifier.intercept_[[k]]
    stored = classifier._embeddings
    if isinstance(stored, VectorEmbeddings):
        binary._embeddings = replace(stored, own=stored.own[:, [k]], weights=stored.weights[:, [k]])
    return binary


def checked_documents(classifier: BaseAttentionClassifier, X: Any) -> Any:
    """Return documents in the form that the fitted model of a classifier expects."""
    return classifier._checked(X)[1]


def documents_in_memory(
    classifier: BaseAttentionClassifier,
    X: Any,
    targets: Targets,
    weights: Array,
    entry_scale: float | None = None,
    earlier_class_weights: Array | None = None,
) -> tuple[Documents, type[np.floating[Any]]]:
    """Return validated documents, as one chunk prepared for training, and training's precision.

    In earlier batches, `entry_scale` was the unit of damped entries, and classes had the
    `earlier_class_weights`.
    """
    from ._core.chunk import Chunk
    from ._core.corpus import Corpus

    if getattr(classifier, "sublinear_counts", False):
        X = multiplied(X)  # entries of bags cannot be damped one by one
    X, transposed = with_columns(X)
    corpus = Corpus([Chunk(X, targets, weights, transposed=transposed)])
    summary = summary_of(X, targets)
    return prepared_documents(classifier, corpus, summary, entry_scale, earlier_class_weights)
