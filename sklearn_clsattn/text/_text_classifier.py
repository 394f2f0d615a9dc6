"""The pipeline from texts to calibrated probabilities."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from .._classifier import ClsAttentionClassifier
from ._context_vectorizer import ContextVectorizer


def make_text_classifier(**parameters: Any) -> Pipeline:
    """Return a classifier of texts, from words in context to calibrated probabilities.

    Parameters
    ----------
    **parameters
        Parameters of :class:`ContextVectorizer` and
        :class:`~sklearn_clsattn.ClsAttentionClassifier`, which have no name in common. The defaults
        are theirs, except ``sublinear_counts=False``: the vectorizer already damps the counts.

    Returns
    -------
    classifier : Pipeline
        With the steps "vectorizer" and "classifier". It takes texts and labels of any type.

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
    return Pipeline([("vectorizer", vectorizer), ("classifier", classifier)])
