"""LIME's text explainer, from its own package, on the pipeline from text to probability."""

from __future__ import annotations

import numpy as np
from lime.lime_text import LimeTextExplainer

from .explainers import Explainer, Explanation
from .models import Model

SAMPLES = 5000  # its default


def lime(model: Model, samples: int = SAMPLES) -> Explainer:
    """All words of the document scored; removing a word removes all its occurrences (`bow`).

    It is given lower-case texts and the vectorizer's own words, so that its words are the
    model's tokens; its other settings are its defaults.
    """
    vectorizer, predict_proba = model.corpus.vectorizer, model.pipeline.predict_proba
    vocabulary, preprocess = vectorizer.vocabulary_, vectorizer.build_preprocessor()
    explainer = LimeTextExplainer(
        split_expression=vectorizer.build_tokenizer(), feature_selection="none", random_state=0
    )

    def explain(text: str) -> Explanation:
        found = explainer.explain_instance(
            preprocess(text), predict_proba, top_labels=1, num_samples=samples
        )
        label = found.top_labels[0]
        words = found.domain_mapper.indexed_string
        pairs = [(words.word(place), weight) for place, weight in found.local_exp[label]]
        known = [(vocabulary[word], weight) for word, weight in pairs if word in vocabulary]
        columns, scores = zip(*known, strict=True) if known else ((), ())
        return Explanation(np.array(columns, dtype=np.int64), np.array(scores, dtype=float))

    return Explainer("lime", "LIME", explain)
