"""A classifier of texts: a pipeline of this package's vectorizer and classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, Literal, Self

from numpy.typing import ArrayLike
from sklearn import clone, config_context
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from .._callbacks import CallbackSupportMixin, fit_task
from .._classifier import ClsAttentionClassifier
from .._pickling import public
from .._training import all_or_nothing
from ._context_vectorizer import ContextVectorizer, bags_of, fit_bags
from ._teacher import learn_from_teacher


class BagsVectorizer(CallbackSupportMixin, BaseEstimator):
    """A ContextVectorizer, perhaps frozen, that returns bags, which only this package reads."""

    _parameter_constraints: dict[str, Any] = {}

    def __init__(self, vectorizer: Any) -> None:
        self.vectorizer = vectorizer

    @all_or_nothing
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit the vectorizer, and return the bags of its texts, with word vectors."""
        if isinstance(self.vectorizer, FrozenEstimator):
            return self.transform(X)
        with fit_task(self, X, y):
            return fit_bags(self.vectorizer, X, y, **params)

    def transform(self, X: Any) -> Any:
        """Return the bags of texts."""
        return bags_of(_thawed(self.vectorizer), X)


def _thawed(step: Any) -> Any:
    """Return the estimator of a step that may be frozen."""
    return step.estimator if isinstance(step, FrozenEstimator) else step


def _last_step_has(name: str) -> Callable[[Pipeline], bool]:
    """Return a check of whether a pipeline's last step has an attribute."""

    def check(pipeline: Pipeline) -> bool:
        getattr(pipeline.steps[-1][1], name)  # raises an AttributeError with a reason
        return True

    return check


_TEACHER_ATTRIBUTES = "teacher_weight_", "teacher_power_", "teacher_agreement_", "taught_by_"


@public("sklearn_clsattn.text")
class TextClassifier(Pipeline):
    """The Pipeline of :func:`make_text_classifier`, with `unlabeled` and `partial_fit`.

    The vectorizer hands documents and word vectors to the classifier in a form that is smaller than
    their matrix. With other steps in their place it is an ordinary Pipeline.

    Attributes
    ----------
    teacher_weight_ : float
        The weight of a text of the teacher; 0 if learning from it is no better, and then the fit is
        the one without it. This and what follows is absent without a teacher.
    teacher_power_ : float
        The power of the teacher's probabilities that was learned, from 1 to 1.5; 1 with a given
        `teacher_weight`.
    teacher_agreement_ : float
        The share of the teacher's texts, not in training, for which the most probable class is that
        of the teacher, with about this weight; NaN where all labelled texts are equal, so that
        none can be held out.
    taught_by_ : str
        The teacher, and the number of its texts.
    """

    steps: list[tuple[str, Any]]

    __metadata_request__fit = {"unlabeled": True}

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        unlabeled: Iterable[str] | None = None,
        teacher: Any = None,
        teacher_weight: float | Literal["auto"] = "auto",
        **params: Any,
    ) -> Self:
        """Fit the vectorizer and the classifier.

        Parameters
        ----------
        X : iterable of str
            Texts.
        y : array-like of shape (n_documents,)
            Their class labels.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weights, for the gates and the classifier: a weight of 2 is equivalent to
            two copies, and 0 to leaving the text out. Only `min_df` and `character_min_df` count
            each text of positive weight once.
        unlabeled : iterable of str, default=None
            More texts of the same kind, without labels. Word similarities are learned from them
            (:class:`WordVectors`), so that words that occur in no labelled text are used as well.
        teacher : estimator, callable or array-like of shape (n_unlabeled, n_classes), default=None
            Another model, whose probabilities of the `unlabeled` texts are learned as well: an
            estimator of texts with `predict_proba`, a function of a list of texts, or the
            probabilities themselves, an array or a data frame. Names of classes, in `classes_` or
            in a data frame's columns, are matched with the labels. An estimator that is not fitted
            is fitted to X and y.
        teacher_weight : float or "auto", default="auto"
            The weight of a text of the teacher, beside 1 for a labelled text. "auto" chooses it
            between 0 and 1, by the loss of labelled texts that are held out. A fitted teacher must
            not have seen their labels: otherwise pass it without a fit.
        **params : dict
            Other parameters for the steps' `fit`, with the step's name and two underscores before
            the name, as in :class:`~sklearn.pipeline.Pipeline`.

        Returns
        -------
        self : TextClassifier
            The fitted classifier.

        Examples
        --------
        >>> from sklearn_clsattn.datasets import make_token_classification
        >>> from sklearn_clsattn.text import make_text_classifier
        >>> texts, y = make_token_classification(
        ...     1500, relevant_share=0.2, document_length=12, as_text=True, random_state=0
        ... )
        >>> few = make_text_classifier().fit(texts[:30], y[:30])
        >>> more = make_text_classifier().fit(texts[:30], y[:30], unlabeled=texts[30:1000])
        >>> bool(more.score(texts[1000:], y[1000:]) > few.score(texts[1000:], y[1000:]))
        True
        """
        from_teacher: dict[str, Any] = {}
        # 1) with the teacher, unless its best weight is 0
        if teacher is not None:
            adapter, classifier = self._taught_steps(params)
            lesson = learn_from_teacher(
                adapter, classifier, X, y, sample_weight, unlabeled, teacher, teacher_weight
            )
            from_teacher = {
                "teacher_weight_": lesson.use.weight,
                "teacher_power_": lesson.use.power,
                "teacher_agreement_": lesson.agreement,
                "taught_by_": lesson.taught_by,
            }
            if lesson.use.weight:
                (name, _), (last_name, _) = self.steps
                self.steps = [(name, lesson.vectorizer), (last_name, lesson.classifier)]
                self.__dict__.update(from_teacher)
                return self
        # 2) without a teacher
        self._fit_steps(X, y, sample_weight, unlabeled, params)
        for name in _TEACHER_ATTRIBUTES:  # from an earlier fit
            self.__dict__.pop(name, None)
        self.__dict__.update(from_teacher)
        return self

    def _fit_steps(
        self, X: Any, y: Any, sample_weight: Any, unlabeled: Any, params: dict[str, Any]
    ) -> None:
        """Fit the steps without a teacher, with `params` for their `fit`."""
        first_name = self.steps[0][0]
        # 1) what is meant for the steps
        if unlabeled is not None:
            params[f"{first_name}__unlabeled"] = unlabeled
        if sample_weight is not None:
            for name, step in self.steps:
                if has_fit_parameter(step, "sample_weight") or step is self.steps[-1][1]:
                    params[f"{name}__sample_weight"] = sample_weight
        # 2) a fit that hands it over, whatever they request
        pipeline = self._on_bags()
        with config_context(enable_metadata_routing=False):
            super(TextClassifier, pipeline).fit(X, y, **params)
        if pipeline is not self:
            adapter = pipeline.steps[0][1]
            self.steps = [(first_name, adapter.vectorizer), pipeline.steps[1]]

    def _taught_steps(self, params: dict[str, Any]) -> tuple[BagsVectorizer, Any]:
        """Return the vectorizer, as one of bags, and the classifier of a fit with a teacher."""
        vectorizer = self._on_bags().steps[0][1]
        classifier = self.steps[-1][1]
        if not isinstance(vectorizer, BagsVectorizer):
            raise ValueError(
                "A teacher needs the steps of make_text_classifier(): a ContextVectorizer and a "
                "ClsAttentionClassifier."
            )
        if params:
            raise ValueError(f"With a teacher, fit takes no other parameters: got {[*params]}.")
        return vectorizer, classifier

    def predict(self, X: Any, **params: Any) -> Any:
        """Return the most probable class of each text.

        Parameters
        ----------
        X : iterable of str
            Texts.
        **params : dict
            Parameters for the classifier's `predict`.

        Returns
        -------
        labels : ndarray of shape (n_documents,) or (n_documents, n_classes)
            As the classifier returns them.
        """
        return super(TextClassifier, self._on_bags()).predict(X, **params)

    @available_if(_last_step_has("predict_proba"))
    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Return the probability of each class.

        Parameters
        ----------
        X : iterable of str
            Texts.
        **params : dict
            Parameters for the classifier's `predict_proba`, such as `priors`.

        Returns
        -------
        probabilities : ndarray of shape (n_documents, n_classes)
            In the order of `classes_`.
        """
        return super(TextClassifier, self._on_bags()).predict_proba(X, **params)

    @available_if(_last_step_has("predict_log_proba"))
    def predict_log_proba(self, X: Any, **params: Any) -> Any:
        """Return the logarithm of the probability of each class.

        Parameters
        ----------
        X : iterable of str
            Texts.
        **params : dict
            Parameters for the classifier's `predict_log_proba`.

        Returns
        -------
        log_probabilities : ndarray of shape (n_documents, n_classes)
            In the order of `classes_`.
        """
        return super(TextClassifier, self._on_bags()).predict_log_proba(X, **params)

    @available_if(_last_step_has("decision_function"))
    def decision_function(self, X: Any, **params: Any) -> Any:
        """Return the decision values.

        Parameters
        ----------
        X : iterable of str
            Texts.
        **params : dict
            Parameters for the classifier's `decision_function`.

        Returns
        -------
        decision : ndarray of shape (n_documents,) or (n_documents, n_classes)
            As the classifier returns them.
        """
        return super(TextClassifier, self._on_bags()).decision_function(X, **params)

    @available_if(_last_step_has("score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : iterable of str
            Texts.
        y : array-like of shape (n_documents,)
            Their class labels.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the texts.
        **params : dict
            Parameters for the classifier's `score`.

        Returns
        -------
        score : float
            The share of texts whose label is predicted.
        """
        pipeline: Any = super(TextClassifier, self._on_bags())
        with config_context(enable_metadata_routing=False):
            return float(pipeline.score(X, y, sample_weight=sample_weight, **params))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the requests of this classifier for `fit`, and of its steps for other methods.

        Returns
        -------
        routing : MetadataRouter
            See scikit-learn's guide to metadata routing.
        """
        return super().get_metadata_routing().add_self_request(self)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a batch of texts, in addition to the batches of earlier calls.

        The first call also fits the vectorizer. Its vocabulary and gates then stay fixed, so the
        first batch should be large. New words in later batches are scored by their letters.

        Parameters
        ----------
        X : iterable of str
            Texts.
        y : array-like of shape (n_documents,)
            Their class labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that occur in any batch. The first call needs them; in later calls they may
            be omitted.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weights.

        Returns
        -------
        self : TextClassifier
            The classifier, fitted on all batches so far.

        Examples
        --------
        >>> from sklearn_clsattn.datasets import load_requests
        >>> from sklearn_clsattn.text import make_text_classifier
        >>> texts, topics = load_requests(return_X_y=True)
        >>> model = make_text_classifier()
        >>> for start in (0, 1000):
        ...     batch = slice(start, start + 1000)
        ...     model = model.partial_fit(texts[batch], topics[batch], classes=set(topics))
        >>> bool(model.score(texts[2000:], topics[2000:]) > 0.9)
        True
        """
        if len(self.steps) != 2:
            raise ValueError(
                "partial_fit needs two steps, a vectorizer and a classifier: got "
                f"{[name for name, _ in self.steps]}."
            )
        is_fitted = hasattr(self.steps[0][1], "vocabulary_")
        (name, vectorizer), (_, classifier) = self._on_bags().steps
        if is_fitted:
            bags = vectorizer.transform(X)
        else:
            classifier.partial_fit  # noqa: B018 - raises if it is not available
            vectorizer = clone(vectorizer)
            weights = {}
            if has_fit_parameter(self.steps[0][1], "sample_weight"):
                weights["sample_weight"] = sample_weight
            bags = vectorizer.fit_transform(X, y, **weights)
        classifier.partial_fit(bags, y, classes, sample_weight)
        if isinstance(vectorizer, BagsVectorizer):
            vectorizer = vectorizer.vectorizer
        self.steps[0] = name, vectorizer
        return self

    def _on_bags(self) -> Pipeline:
        """Return this pipeline with a vectorizer that returns bags, if the classifier reads them.

        The steps are the same objects.
        """
        if len(self.steps) != 2:
            return self
        (name, vectorizer), (last_name, classifier) = self.steps
        first = _thawed(vectorizer)
        last = _thawed(classifier)
        # A subclass may return or read something else.
        makes_bags = (
            isinstance(first, ContextVectorizer)
            and type(first).transform is ContextVectorizer.transform
        )
        reads_bags = (
            isinstance(last, ClsAttentionClassifier)
            and type(last).fit is ClsAttentionClassifier.fit
        )
        if not (makes_bags and reads_bags):
            return self
        pipeline = copy(self)
        pipeline.steps = [(name, BagsVectorizer(vectorizer)), (last_name, classifier)]
        return pipeline


def make_text_classifier(**parameters: Any) -> TextClassifier:
    """Return a text classifier: texts in, calibrated probabilities out.

    Parameters
    ----------
    **parameters
        Parameters of :class:`ContextVectorizer` and
        :class:`~sklearn_clsattn.ClsAttentionClassifier`, which have no names in common. The
        defaults are theirs, except ``sublinear_counts=False``: the vectorizer damps the counts.

    Returns
    -------
    classifier : Pipeline
        With the steps "vectorizer" and "classifier". Labels can have any type. With
        ``fit(texts, labels, unlabeled=more_texts)`` it also learns from texts without labels which
        words are similar (:class:`WordVectors`).

    Examples
    --------
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.text import make_text_classifier
    >>> texts, labels = make_token_classification(n_samples=500, as_text=True, random_state=0)
    >>> model = make_text_classifier(characters=None).fit(texts[:400], labels[:400])
    >>> bool(model.score(texts[400:], labels[400:]) > 0.9)
    True
    >>> model.set_params(classifier__C=1.0, vectorizer__context=False)["classifier"].C
    1.0
    """
    vectorizer = ContextVectorizer()
    classifier = ClsAttentionClassifier(sublinear_counts=False)
    step_of_name: dict[str, Any] = dict.fromkeys(vectorizer.get_params(), vectorizer)
    step_of_name.update(dict.fromkeys(classifier.get_params(), classifier))
    for name, value in parameters.items():
        if name not in step_of_name:
            raise TypeError(
                f"make_text_classifier() has no parameter {name!r}: expected one of "
                f"{', '.join(sorted(step_of_name))}."
            )
        step_of_name[name].set_params(**{name: value})
    return TextClassifier([("vectorizer", vectorizer), ("classifier", classifier)])
