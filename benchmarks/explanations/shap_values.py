"""SHAP, from its own package, of the log-odds of the predicted class."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

from .explainers import Explainer, Explanation
from .models import Model
from .searches import Document

with warnings.catch_warnings():  # of matplotlib's to come, while it makes its colours
    warnings.simplefilter("ignore", PendingDeprecationWarning)
    import shap

EVALUATIONS = 500  # its default for texts
SAMPLES = 5000  # as many as LIME's
_BATCH = 100


def of_text(model: Model, evaluations: int = EVALUATIONS) -> Explainer:
    """SHAP's choice for texts: partitions of the text, words masked out where they stand.

    A token's score is the sum over its occurrences. It is given bigger batches than its default
    of 5 texts, which makes it faster.
    """
    vectorizer = model.corpus.vectorizer
    vocabulary, preprocess = vectorizer.vocabulary_, vectorizer.build_preprocessor()
    tokenizer = _Tokenizer(vectorizer.token_pattern)
    code = 0

    def log_odds(texts: Any) -> Any:
        return model.log_odds(vectorizer.transform(list(texts)), code)

    explainer = shap.Explainer(log_odds, shap.maskers.Text(tokenizer))

    def explain(text: str) -> Explanation:
        nonlocal code
        lowered = preprocess(text)
        code = model.code(vectorizer.transform([lowered]))
        found = explainer([lowered], max_evals=evaluations, batch_size=_BATCH, silent=True)
        scores: dict[int, float] = {}
        values = np.asarray(found.values, dtype=float).ravel()
        for word, value in zip(tokenizer(lowered)["input_ids"], values, strict=True):
            if word in vocabulary:
                column = vocabulary[word]
                scores[column] = scores.get(column, 0.0) + value
        return Explanation(np.array(list(scores), dtype=np.int64), np.array(list(scores.values())))

    return Explainer("shap_text", f"SHAP, text, {evaluations:,} evaluations", explain)


def of_tokens(model: Model, evaluations: int = SAMPLES) -> Explainer:
    """SHAP's permutations of the document's tokens, each removed in all its occurrences."""
    pipeline = model.pipeline

    def explain(text: str) -> Explanation:
        document = Document(pipeline, text)

        def log_odds(kept: Any) -> Any:
            return model.log_odds(document.with_only(np.asarray(kept) > 0), document.code)

        explainer = shap.PermutationExplainer(log_odds, np.zeros((1, document.n)), seed=0)
        n_evaluations = max(evaluations, 2 * document.n + 1)
        found = explainer(
            np.ones((1, document.n)), max_evals=n_evaluations, batch_size=_BATCH, silent=True
        )
        return Explanation(document.x.indices, np.asarray(found.values, dtype=float)[0])

    return Explainer("shap", f"SHAP, tokens, {evaluations:,} evaluations", explain)


class _Tokenizer:
    """Words and where they stand, as SHAP asks for them."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern)

    def __call__(self, text: str, return_offsets_mapping: bool = True) -> dict[str, Any]:
        found = list(self._pattern.finditer(text))
        if not found:  # the mask, or nothing: SHAP tries both before it starts
            whole = [text] if text else []
            return {"input_ids": whole, "offset_mapping": [(0, len(text)) for _ in whole]}
        return {
            "input_ids": [match.group() for match in found],
            "offset_mapping": [match.span() for match in found],
        }
