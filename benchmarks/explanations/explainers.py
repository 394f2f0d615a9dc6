"""Explainers: from a text to columns of the counts, and how much each speaks for the prediction."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_clsattn import inspection

from .documents import Document, Model
from .searches import anchor_scores

Scores = tuple[NDArray[Any], NDArray[Any]]  # columns and scores, (n_scored,)
TEXT_EVALUATIONS = 500  # SHAP's default for texts
_BATCH = 100  # documents that SHAP asks about at once; its default of 5 texts is slower


@dataclass(frozen=True)
class Explainer:
    """A way of explaining a model's predictions."""

    name: str
    title: str
    explain: Callable[[str], Scores]


def explainers(model: Model, samples: int) -> list[Explainer]:
    """Return the explainers that are compared, in the order of the tables."""
    n_text = min(samples, TEXT_EVALUATIONS)
    return [
        Explainer("contributions", "ours: contributions", partial(_contributions, model)),
        Explainer("whole", "ours: `explain`", partial(_whole, model)),
        Explainer("lime", "LIME", _lime(model, samples)),
        Explainer("shap", f"SHAP, tokens, {samples:,} evaluations", _shap_tokens(model, samples)),
        Explainer("shap_text", f"SHAP, text, {n_text:,} evaluations", _shap_text(model, n_text)),
        Explainer("anchors", "the search of Anchors", partial(_anchors, model)),
        Explainer("attention", "attention", partial(_attention, model)),
        Explainer("chance", "random order", partial(_chance, model, np.random.default_rng(0))),
    ]


def _contributions(model: Model, text: str) -> Scores:
    """Our model's own terms, of the predicted class less those of the next."""
    classifier = model.classifier
    shares = classifier.attention(model.vectorizer.transform([text]))
    contributions = shares.data * np.atleast_2d(classifier.token_values_)[:, shares.indices]
    decisions = classifier.intercept_ + contributions.sum(axis=1)
    if len(decisions) == 1:
        return shares.indices, contributions[0] if decisions[0] > 0 else -contributions[0]
    second, first = np.argsort(decisions)[-2:]
    return shares.indices, contributions[first] - contributions[second]


def _whole(model: Model, text: str) -> Scores:
    """All that `explain` returns: contributions, decisions without tokens, positions in texts."""
    answer = inspection.explain(model.pipeline, [text])
    return answer.columns, answer.contributions[:, 0]


def _lime(model: Model, samples: int) -> Callable[[str], Scores]:
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
        return _by_column({vocabulary[word]: scores[word] for word in scores if word in vocabulary})

    return explain


def _shap_text(model: Model, evaluations: int) -> Callable[[str], Scores]:
    """SHAP's choice for texts: partitions of the text, words masked out where they stand.

    A token's score is the sum over its occurrences.
    """
    shap, code = _import_shap(), 0
    vectorizer, tokenizer = model.vectorizer, _Tokenizer(model.vectorizer.token_pattern)
    vocabulary, preprocess = vectorizer.vocabulary_, vectorizer.build_preprocessor()

    def log_odds(texts: Any) -> Any:
        return model.log_odds(vectorizer.transform(list(texts)), code)

    explainer = shap.Explainer(log_odds, shap.maskers.Text(tokenizer))

    def explain(text: str) -> Scores:
        nonlocal code
        lowered = preprocess(text)
        code = model.code(vectorizer.transform([lowered]))
        answer = explainer([lowered], max_evals=evaluations, batch_size=_BATCH, silent=True)
        scores: dict[int, float] = {}
        values = np.asarray(answer.values, dtype=float).ravel()
        for word, value in zip(tokenizer(lowered)["input_ids"], values, strict=True):
            if word in vocabulary:
                scores[vocabulary[word]] = scores.get(vocabulary[word], 0.0) + value
        return _by_column(scores)

    return explain


def _shap_tokens(model: Model, evaluations: int) -> Callable[[str], Scores]:
    """SHAP's permutations of the document's tokens, each removed in all its occurrences."""
    shap = _import_shap()

    def explain(text: str) -> Scores:
        document = Document(model, text)

        def log_odds(kept: Any) -> Any:
            return model.log_odds(document.with_only(np.asarray(kept) > 0), document.code)

        explainer = shap.PermutationExplainer(log_odds, np.zeros((1, document.n)), seed=0)
        n_evaluations = max(evaluations, 2 * document.n + 1)
        answer = explainer(
            np.ones((1, document.n)), max_evals=n_evaluations, batch_size=_BATCH, silent=True
        )
        return document.x.indices, np.asarray(answer.values, dtype=float)[0]

    return explain


def _anchors(model: Model, text: str) -> Scores:
    """The search of Anchors: its tokens in the order found, others by their precision alone."""
    document = Document(model, text)
    scores = anchor_scores(document.agrees, document.n, np.random.default_rng(0))
    return document.x.indices, scores


def _attention(model: Model, text: str) -> Scores:
    """Our model's attention alone, which has no sign."""
    shares = model.classifier.attention(model.vectorizer.transform([text]))
    return shares.indices, shares.data


def _chance(model: Model, rng: np.random.Generator, text: str) -> Scores:
    """Random scores of the document's tokens: what any explanation should beat."""
    columns = model.vectorizer.transform([text]).indices
    return columns, rng.random(len(columns))


def _by_column(scores: dict[int, float]) -> Scores:
    return np.array(list(scores), dtype=np.int64), np.array(list(scores.values()), dtype=float)


def _import_shap() -> Any:
    with warnings.catch_warnings():  # of matplotlib's to come, while it makes its colours
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        import shap
    return shap


class _Tokenizer:
    """Words and where they stand, as SHAP asks for them."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern)

    def __call__(self, text: str, return_offsets_mapping: bool = True) -> dict[str, Any]:
        words = list(self._pattern.finditer(text))
        if not words:  # the mask, or nothing: SHAP tries both before it starts
            whole = [text] if text else []
            return {"input_ids": whole, "offset_mapping": [(0, len(text)) for _ in whole]}
        return {
            "input_ids": [word.group() for word in words],
            "offset_mapping": [word.span() for word in words],
        }
