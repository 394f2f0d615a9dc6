"""A classifier of texts: a pipeline of this package's vectorizer and classifier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn import clone, config_context
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.validation import has_fit_parameter

from .._classifier import ClsAttentionClassifier
from .._pickling import public
from ._context_vectorizer import ContextVectorizer


@public("sklearn_clsattn.text")
class TextClassifier(Pipeline):
    """The Pipeline of :func:`make_text_classifier`, with `unlabeled` and `partial_fit`."""

    __metadata_request__fit = {"unlabeled": True}

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        unlabeled: Iterable[str] | None = None,
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
        if unlabeled is not None:
            params[f"{self.steps[0][0]}__unlabeled"] = unlabeled
        if sample_weight is not None:
            for name, step in self.steps:
                if has_fit_parameter(step, "sample_weight") or step is self.steps[-1][1]:
                    params[f"{name}__sample_weight"] = sample_weight
        # The steps get what is meant for them, whatever they request.
        with config_context(enable_metadata_routing=False):
            fitted: Self = super().fit(X, y, **params)
        return fitted

    def score(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, **params: Any
    ) -> float:
        """Return the mean accuracy on texts with labels.

        Parameters
        ----------
        X : iterable of str
            Texts.
        y : array-like of shape (n_documents,)
            Their class labels.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weights.
        **params : dict
            Other parameters for the classifier's `score`.

        Returns
        -------
        score : float
            The accuracy.
        """
        with config_context(enable_metadata_routing=False):
            return float(super().score(X, y, sample_weight, **params))

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
        first batch should be large. New words in later batches are counted by their characters.

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
        (name, vectorizer), (_, classifier) = self.steps
        if hasattr(vectorizer, "vocabulary_"):
            bags = vectorizer.transform(X)
        else:
            classifier.partial_fit  # noqa: B018 - raises if it is not available
            vectorizer = clone(vectorizer)
            bags = vectorizer.fit_transform(X, y, sample_weight)
        classifier.partial_fit(bags, y, classes, sample_weight)
        self.steps[0] = name, vectorizer
        return self


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
    vectorizer, classifier = ContextVectorizer(), ClsAttentionClassifier(sublinear_counts=False)
    known = {name: step for step in (vectorizer, classifier) for name in step.get_params()}
    for name, value in parameters.items():
        if name not in known:
            raise TypeError(
                f"make_text_classifier() has no parameter {name!r}: expected one of "
                f"{', '.join(sorted(known))}."
            )
        known[name].set_params(**{name: value})
    return TextClassifier([("vectorizer", vectorizer), ("classifier", classifier)])
