"""The pipeline from texts to calibrated probabilities."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from .._classifier import ClsAttentionClassifier
from ._context_vectorizer import ContextVectorizer


def make_text_classifier(**parameters: Any) -> Pipeline:
    """Return a classifier of texts: words in context, characters, attention, the right C.

    Parameters
    ----------
    **parameters
        Parameters of :class:`ContextVectorizer` and of
        :class:`~sklearn_clsattn.ClsAttentionClassifier`, which have no name in common. The defaults
        are theirs, but for ``sublinear_counts=False``, since the vectorizer damps the counts.

    Returns
    -------
    classifier : Pipeline
        Of the steps "vectorizer" and "classifier". It takes texts and labels of any type.

    Raises
    ------
    TypeError
        If a parameter is of neither.

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
    known = sorted({*vectorizer.get_params(), *classifier.get_params()})
    if unknown := sorted(parameters.keys() - known):
        raise TypeError(
            f"make_text_classifier() has no parameter {unknown[0]!r}: expected one of "
            f"{', '.join(known)}."
        )
    for step in (vectorizer, classifier):
        own = step.get_params()
        step.set_params(**{name: value for name, value in parameters.items() if name in own})
    return Pipeline([("vectorizer", vectorizer), ("classifier", classifier)])
