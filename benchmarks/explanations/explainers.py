"""What an explainer is, and those that read the explanation off the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_clsattn import inspection
from sklearn_clsattn.metrics import greedy_scores

from .models import Model
from .searches import Document, anchor_scores


@dataclass(frozen=True)
class Explanation:
    """How much each token speaks for the predicted class.

    Attributes
    ----------
    columns, scores : ndarray of shape (n_scored,)
        Columns of the matrix of counts, and the scores of these tokens.

    kept : ndarray of shape (n_scored,), or None
        The scores by which tokens are kept rather than removed, where they are others.
    """

    columns: NDArray[Any]
    scores: NDArray[Any]
    kept: NDArray[Any] | None = None


@dataclass(frozen=True)
class Explainer:
    """A way of explaining a model.

    Attributes
    ----------
    name, title : str
        What the code and the table call it.

    explain : callable
        Takes a text and returns an `Explanation` of the class predicted for it.
    """

    name: str
    title: str
    explain: Callable[[str], Explanation]


def contributions(model: Model) -> Explainer:
    """Our model's own terms, of the predicted class less those of the next."""
    classifier, vectorizer = model.classifier, model.corpus.vectorizer

    values, intercept = np.atleast_2d(classifier.token_values_), classifier.intercept_

    def explain(text: str) -> Explanation:
        shares = classifier.attention(vectorizer.transform([text]))
        terms = shares.data * values[:, shares.indices]
        decisions = intercept + terms.sum(axis=1)
        if len(decisions) == 1:
            return Explanation(shares.indices, terms[0] if decisions[0] > 0 else -terms[0])
        second, first = np.argsort(decisions)[-2:]
        return Explanation(shares.indices, terms[first] - terms[second])

    return Explainer("contributions", "ours: contributions", explain)


def greedy(model: Model) -> Explainer:
    """Our model's order of removal, and of keeping, with the exact probability after each."""
    classifier, vectorizer = model.classifier, model.corpus.vectorizer

    def explain(text: str) -> Explanation:
        x = vectorizer.transform([text])
        by_removal, by_keeping = (greedy_scores(classifier, x, keep=keep) for keep in (False, True))
        columns = x.indices
        return Explanation(
            columns,
            by_removal[[0]].toarray()[0][columns],
            by_keeping[[0]].toarray()[0][columns],
        )

    return Explainer("greedy", "ours: exact order", explain)


def whole(model: Model) -> Explainer:
    """All that `explain` returns: contributions, decisions without each token, places in text."""
    pipeline = model.pipeline

    def explain(text: str) -> Explanation:
        found = inspection.explain(pipeline, [text])
        return Explanation(found.columns, found.contributions[:, 0])

    return Explainer("whole", "ours: `explain`", explain)


def attention(model: Model) -> Explainer:
    """Our model's attention alone, which has no sign."""
    classifier, vectorizer = model.classifier, model.corpus.vectorizer

    def explain(text: str) -> Explanation:
        weights = classifier.attention(vectorizer.transform([text]))
        return Explanation(weights.indices, weights.data)

    return Explainer("attention", "attention", explain)


def anchors(model: Model) -> Explainer:
    """The search of Anchors: its tokens in the order found, others by their precision alone."""
    pipeline = model.pipeline

    def explain(text: str) -> Explanation:
        document = Document(pipeline, text)
        scores = anchor_scores(document.agrees, document.n, np.random.default_rng(0))
        return Explanation(document.x.indices, scores)

    return Explainer("anchors", "the search of Anchors", explain)


def chance(model: Model) -> Explainer:
    """Random scores of the document's tokens: what any explanation should beat."""
    rng, vectorizer = np.random.default_rng(0), model.corpus.vectorizer

    def explain(text: str) -> Explanation:
        columns = vectorizer.transform([text]).indices
        return Explanation(columns, rng.random(len(columns)))

    return Explainer("chance", "random order", explain)
