"""Explainers of our model on counts of words: columns, and how much each speaks for the prediction.

Words only, no bigrams: LIME removes words, so that all explain the same tokens.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier

from .problems import WORDS, Problem

Array = NDArray[np.float64]
Scores = tuple[NDArray[Any], Array]  # columns and scores, (n_scored,)
Explain = Callable[[str], Scores]  # of a text
OURS = "ours: contributions"
_BATCH = 100  # documents that SHAP asks about at once; its default of 5 texts is slower


class Model:
    """Our classifier, with its defaults, on words of a problem, and random test documents."""

    def __init__(self, problem: Problem, n_documents: int) -> None:
        self.vectorizer = CountVectorizer(min_df=5, token_pattern=WORDS)
        X = self.vectorizer.fit_transform(problem.X_train)
        X.sum_duplicates()
        self.classifier = ClsAttentionClassifier().fit(X, problem.y_train)
        self.pipeline = make_pipeline(self.vectorizer, self.classifier)
        order = np.random.default_rng(0).permutation(len(problem.X_test))
        # Long before the end: a few documents in a thousand have no token at all.
        chosen = problem.X_test[order[: 2 * n_documents + 10]]
        self.texts = chosen[self.vectorizer.transform(chosen).getnnz(axis=1) > 0][:n_documents]

    def log_odds(self, counts: Any, code: int) -> Array:
        """Return the log-odds (n_documents,) of a class against all others together."""
        decisions = self.classifier.decision_function(counts)
        if decisions.ndim == 1:
            return decisions if code == 1 else -decisions
        others = np.delete(decisions, code, axis=1)
        return np.asarray(decisions[:, code] - logsumexp(others, axis=1))


def explainers(model: Model, samples: int) -> dict[str, Explain]:
    """Return the explainers that are compared, in the order of the tables."""
    return {
        OURS: partial(_contributions, model),
        "LIME": _lime(model, samples),
        "SHAP": _shap(model, samples),
        "attention": partial(_attention, model),
        "random order": partial(_chance, model, np.random.default_rng(0)),
    }


def _contributions(model: Model, text: str) -> Scores:
    """Our model's own terms, of the predicted class less those of the next."""
    classifier = model.classifier
    columns, shares = _attention(model, text)
    contributions = shares * np.atleast_2d(classifier.token_values_)[:, columns]
    decisions = classifier.intercept_ + contributions.sum(axis=1)
    if len(decisions) == 1:
        return columns, contributions[0] if decisions[0] > 0 else -contributions[0]
    second, first = np.argsort(decisions)[-2:]
    return columns, contributions[first] - contributions[second]


def _lime(model: Model, samples: int) -> Explain:
    """All words scored; removing a word removes all its occurrences (`bow`).

    It is given lower-case texts and the vectorizer's own words, so that its words are the
    model's tokens; its other settings are its defaults.
    """
    from lime.lime_text import LimeTextExplainer

    vectorizer = model.vectorizer
    vocabulary, preprocess = vectorizer.vocabulary_, vectorizer.build_preprocessor()
    explainer = LimeTextExplainer(
        split_expression=vectorizer.build_tokenizer(), feature_selection="none", random_state=0
    )

    def explain(text: str) -> Scores:
        answer = explainer.explain_instance(
            preprocess(text), model.pipeline.predict_proba, top_labels=1, num_samples=samples
        )
        words = answer.domain_mapper.indexed_string
        pairs = answer.local_exp[answer.top_labels[0]]
        scores = {words.word(number): weight for number, weight in pairs}
        known = [word for word in scores if word in vocabulary]
        columns = np.array([vocabulary[word] for word in known], dtype=np.int64)
        return columns, np.array([scores[word] for word in known], dtype=float)

    return explain


def _shap(model: Model, evaluations: int) -> Explain:
    """SHAP's permutations of the document's tokens, each removed in all its occurrences."""
    with warnings.catch_warnings():  # of matplotlib's to come, while it makes its colours
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        import shap

    def explain(text: str) -> Scores:
        x = sp.csr_array(model.vectorizer.transform([text]))
        x.sort_indices()
        code = int(model.classifier.predict_proba(x)[0].argmax())

        def log_odds(kept: Any) -> Array:
            rows, entries = np.nonzero(kept)
            of_kept = x.data[entries], (rows, x.indices[entries])
            return model.log_odds(sp.csr_array(of_kept, shape=(len(kept), x.shape[1])), code)

        explainer = shap.PermutationExplainer(log_odds, np.zeros((1, x.nnz)), seed=0)
        n_evaluations = max(evaluations, 2 * x.nnz + 1)
        answer = explainer(
            np.ones((1, x.nnz)), max_evals=n_evaluations, batch_size=_BATCH, silent=True
        )
        return x.indices, np.asarray(answer.values, dtype=float)[0]

    return explain


def _attention(model: Model, text: str) -> Scores:
    """Our model's attention alone, which has no sign."""
    shares = model.classifier.attention(model.vectorizer.transform([text]))
    return shares.indices, shares.data


def _chance(model: Model, rng: np.random.Generator, text: str) -> Scores:
    """Random scores of the document's tokens: what any explanation should beat."""
    columns = model.vectorizer.transform([text]).indices
    return columns, rng.random(len(columns))
