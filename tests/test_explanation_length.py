"""What an explanation takes grows with the length of the document, and not faster."""

import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline, make_union

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.text import ContextVectorizer


def work(does):
    """Return how many calls it takes to do something, and how many bytes at once."""
    calls = [0]

    def count(frame, event, argument):
        calls[0] += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        does()
    finally:
        sys.setprofile(before)
    tracemalloc.start()
    does()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return np.array([calls[0], peak])


def document(n_words):
    """Return a text of so many words, half of them different."""
    return " ".join(f"w{at:05d}" for at in np.random.default_rng(0).integers(0, n_words, n_words))


QUESTIONS = {
    "text": lambda one: one.to_text(),
    "page": lambda one: one.to_html(),
    "frame": lambda one: one.to_frame(),
    "dictionary": lambda one: one.to_dict(),
    "removal": lambda one: one.counterfactual().to_html(),
    "addition": lambda one: one.counterfactual("add").to_html(),
    "sufficiency": lambda one: one.sufficient().to_html(),
}


@pytest.mark.parametrize("kind", ["context", "union"])
def test_twice_as_many_words_take_twice_as_much(kind):
    vectorizer = ContextVectorizer(ngram_range=(1, 2), min_df=1, characters=(3, 4))
    if kind == "union":
        vectorizer = make_union(
            CountVectorizer(ngram_range=(1, 2)),
            CountVectorizer(analyzer="char_wb", ngram_range=(3, 3)),
        )
    parts = np.array_split(document(4000).split(), 40)
    texts = [f"{' '.join(part)} w0000{at % 2}" for at, part in enumerate(parts)]
    classifier = ClsAttentionClassifier(C=100.0, max_iter=20, tol=1.0)
    model = make_pipeline(vectorizer, classifier).fit(texts, np.arange(40) % 2)
    # Of documents of any length the same share of tokens speaks for a class.
    values = model[-1].token_values_
    model[-1].token_values_ = np.where(np.arange(values.size) % 3, 1.0, -1.0).reshape(values.shape)
    taken = {}
    for n_words in (1000, 2000):
        text = [document(n_words)]
        explanation = explain(model, text)
        taken[n_words] = {"explain": work(lambda text=text: explain(model, text))}
        for name, question in QUESTIONS.items():
            question(explanation)
            taken[n_words][name] = work(lambda one=explanation, ask=question: ask(one))
    growth = {name: (taken[2000][name] / taken[1000][name]).max() for name in taken[1000]}
    assert {name: ratio for name, ratio in growth.items() if ratio > 2.3} == {}
