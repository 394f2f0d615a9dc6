"""SHAP, from its own package: exact for a linear model, by evaluations for any other."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

from .explainers import Explainer, Explanation
from .models import Model

with warnings.catch_warnings():  # of matplotlib's to come, while it makes its colours
    warnings.simplefilter("ignore", PendingDeprecationWarning)
    import shap

EVALUATIONS = 500  # its default
_BATCH = 100


def linear(model: Model) -> Explainer:
    """SHAP's explainer of linear models, with its default background of 100 documents."""
    vectorizer, problem = model.corpus.vectorizer, model.corpus.problem
    explainer = shap.LinearExplainer(model.classifier, problem.X_train)
    base = float(explainer.expected_value)

    def explain(text: str) -> Explanation:
        x = vectorizer.transform([text])
        values = explainer.shap_values(x)[0]
        total = float(values.sum()) + base
        sign = 1.0 if total > 0 else -1.0
        return Explanation(x.indices, sign * values[x.indices], sign * total)

    return Explainer("shap", "SHAP, linear", model, explain, "log-odds")


def by_evaluations(model: Model, evaluations: int = EVALUATIONS) -> Explainer:
    """SHAP's choice for texts: partitions of the text, words masked out where they stand.

    A token's score is the sum over its occurrences. It is given bigger batches than its default
    of 5 texts, which makes it faster.
    """
    vectorizer = model.corpus.vectorizer
    vocabulary, preprocess = vectorizer.vocabulary_, vectorizer.build_preprocessor()
    tokenizer = _Tokenizer(vectorizer.token_pattern)
    decision = model.pipeline.decision_function
    explainer = shap.Explainer(lambda texts: decision(list(texts)), shap.maskers.Text(tokenizer))

    def explain(text: str) -> Explanation:
        lowered = preprocess(text)
        found = explainer([lowered], max_evals=evaluations, batch_size=_BATCH, silent=True)
        values = np.asarray(found.values, dtype=float).ravel()
        total = float(values.sum() + np.ravel(found.base_values)[0])
        scores: dict[int, float] = {}
        for word, value in zip(tokenizer(lowered)["input_ids"], values, strict=True):
            if word in vocabulary:
                column = vocabulary[word]
                scores[column] = scores.get(column, 0.0) + value
        sign = 1.0 if total > 0 else -1.0
        columns = np.array(list(scores), dtype=np.int64)
        return Explanation(columns, sign * np.array(list(scores.values())), sign * total)

    return Explainer("shap", f"SHAP, {evaluations} evaluations", model, explain, "log-odds", True)


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
