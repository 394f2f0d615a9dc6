"""What an explainer is, and those that read the explanation off the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_clsattn import inspection

from .models import Model


@dataclass(frozen=True)
class Explanation:
    """How much each token speaks for the predicted class.

    Attributes
    ----------
    columns, scores : ndarray of shape (n_scored,)
        Columns of the matrix of counts, and the scores of these tokens.

    total : float or None
        Base value and scores added up as the method says, which is to be the model's output for
        the explained class; None where it does not say so.
    """

    columns: NDArray[Any]
    scores: NDArray[Any]
    total: float | None = None


@dataclass(frozen=True)
class Explainer:
    """A way of explaining a model.

    Attributes
    ----------
    name, title : str
        What the code and the table call it.

    model : Model
        What it explains.

    explain : callable
        Takes a text and returns an `Explanation` of the class predicted for it.

    output : {"log-odds", "probability"} or None
        What its scores add up to.

    slow : bool
        Whether it explains fewer documents.

    together : dict of str to callable
        Ways of explaining all texts in one call.
    """

    name: str
    title: str
    model: Model
    explain: Callable[[str], Explanation]
    output: str | None = None
    slow: bool = False
    together: dict[str, Callable[[list[str]], Any]] = field(default_factory=dict)


def contributions(model: Model) -> Explainer:
    """Our model's own terms: attention weight times token value."""
    classifier, vectorizer = model.classifier, model.corpus.vectorizer

    def explain(text: str) -> Explanation:
        terms = classifier.contributions(vectorizer.transform([text]))
        return _for_predicted(terms.indices, terms.data, classifier.intercept_[0])

    pipeline = model.pipeline
    together: dict[str, Callable[[list[str]], Any]] = {
        "contributions": lambda texts: classifier.contributions(vectorizer.transform(texts)),
        "explain": lambda texts: inspection.explain(pipeline, texts),
    }
    return Explainer(
        "contributions", "contributions", model, explain, "log-odds", together=together
    )


def leave_one_out(model: Model) -> Explainer:
    """How far our model's log-odds fall without the token, in closed form.

    Without token s the others share its attention: the sum of contributions G becomes
    (G - c_s) / (1 - q_s).
    """
    classifier, vectorizer = model.classifier, model.corpus.vectorizer

    def explain(text: str) -> Explanation:
        x = vectorizer.transform([text])
        terms, shares = classifier.contributions(x), classifier.attention(x)
        total = terms.data.sum()
        without = (total - terms.data) / (1 - shares.data)
        sign = 1.0 if total + classifier.intercept_[0] > 0 else -1.0
        return Explanation(terms.indices, sign * (total - without))

    return Explainer("leave_one_out", "leave one out", model, explain)


def attention(model: Model) -> Explainer:
    """Our model's attention alone, which has no sign and no base value."""
    classifier, vectorizer = model.classifier, model.corpus.vectorizer

    def explain(text: str) -> Explanation:
        weights = classifier.attention(vectorizer.transform([text]))
        return Explanation(weights.indices, weights.data)

    return Explainer("attention", "attention alone", model, explain)


def coefficients(model: Model) -> Explainer:
    """A logistic regression's own terms: coefficient times count, or times TF-IDF weight."""
    vectorizer, weighting = model.corpus.vectorizer, model.weighting
    coef, intercept = model.classifier.coef_[0], model.classifier.intercept_[0]

    def explain(text: str) -> Explanation:
        x = vectorizer.transform([text])
        if weighting is not None:
            x = weighting.transform(x)
        return _for_predicted(x.indices, x.data * coef[x.indices], intercept)

    times = "count" if weighting is None else "TF-IDF"
    return Explainer("coefficients", f"coefficient x {times}", model, explain, "log-odds")


def borrowed(model: Model, logistic: Model) -> Explainer:
    """A logistic regression's coefficients as an explanation of our model.

    Two explanations are only on the same scale where they explain the same model.
    """
    classifier, vectorizer = model.classifier, model.corpus.vectorizer
    coef = logistic.classifier.coef_[0]

    def explain(text: str) -> Explanation:
        x = vectorizer.transform([text])
        sign = 1.0 if classifier.decision_function(x)[0] > 0 else -1.0
        return Explanation(x.indices, sign * x.data * coef[x.indices])

    return Explainer("borrowed", "LR's coefficient x count", model, explain)


def chance(model: Model) -> Explainer:
    """Random scores of the document's tokens: what any explanation should beat."""
    rng, vectorizer = np.random.default_rng(0), model.corpus.vectorizer

    def explain(text: str) -> Explanation:
        columns = vectorizer.transform([text]).indices
        return Explanation(columns, rng.random(len(columns)))

    return Explainer("chance", "random order", model, explain)


def _for_predicted(columns: NDArray[Any], terms: NDArray[Any], base: float) -> Explanation:
    """Turn terms of the second class's log-odds towards the class that they predict."""
    total = float(terms.sum() + base)
    sign = 1.0 if total > 0 else -1.0
    return Explanation(columns, sign * terms, sign * total)
