"""What an explanation takes grows with the length of the document, and not faster."""

import sys
import types
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline, make_union

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.inspection import explain, token_positions
from sklearn_clsattn.inspection.minimal import margin
from sklearn_clsattn.inspection.minimal.units import words_of
from sklearn_clsattn.text import ContextVectorizer

COUNTED = [0]


class Counting(np.ndarray):
    """An array that counts the entries that are computed with, as those made of it do."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **more):
        plain = [np.asarray(one) if isinstance(one, Counting) else one for one in inputs]
        COUNTED[0] += max(np.size(one) for one in plain)
        if out is not None:
            more["out"] = tuple(np.asarray(one) for one in out)
        made = getattr(ufunc, method)(*plain, **more)
        return made.view(Counting) if isinstance(made, np.ndarray) and out is None else made

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        COUNTED[0] += max(np.size(one) if isinstance(one, np.ndarray) else 1 for one in keys)
        return super().__getitem__(key)


class CountingNumpy(types.ModuleType):
    """NumPy, which counts the entries of lists and arrays that functions are given."""

    def __getattr__(self, name):
        known = getattr(np, name)
        if isinstance(known, type | np.ufunc) or not callable(known):
            return known

        def counted(*arguments, **more):
            sized = [one for one in arguments if isinstance(one, list | np.ndarray)]
            COUNTED[0] += sum(map(len, sized))
            return known(*arguments, **more)

        return counted


def work(does):
    """Return how many calls and entries it takes to do something."""
    COUNTED[0] = 0
    calls = [0]

    def count(frame, event, argument):
        calls[0] += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        does()
    finally:
        sys.setprofile(before)
    return calls[0] + COUNTED[0]


def counting(explanation):
    texts = tuple(
        tuple(
            replace(
                text,
                words=text.words.view(Counting),
                occurrences=text.occurrences.view(Counting),
                shares=text.shares.view(Counting),
            )
            for text in of_document
        )
        for of_document in explanation.texts
    )
    names = ("attention", "values", "contributions", "counts")
    arrays = {name: getattr(explanation, name).view(Counting) for name in names}
    return replace(explanation, texts=texts, **arrays)


def document(n_words):
    """Return a text of so many words, half of them different."""
    return " ".join(f"w{at:05d}" for at in np.random.default_rng(0).integers(0, n_words, n_words))


@pytest.fixture(scope="module", params=["context", "union"])
def model(request):
    vectorizer = ContextVectorizer(ngram_range=(1, 2), min_df=1, characters=(3, 4))
    if request.param == "union":
        vectorizer = make_union(
            CountVectorizer(ngram_range=(1, 2)),
            CountVectorizer(analyzer="char_wb", ngram_range=(3, 3)),
        )
    parts = np.array_split(document(4000).split(), 40)
    texts = [f"{' '.join(part)} w0000{at % 2}" for at, part in enumerate(parts)]
    classifier = ClsAttentionClassifier(C=100.0, max_iter=20, tol=1.0)
    found = make_pipeline(vectorizer, classifier).fit(texts, np.arange(40) % 2)
    # Of documents of any length the same share of tokens speaks for a class.
    values = found[-1].token_values_
    found[-1].token_values_ = np.where(np.arange(values.size) % 3, 1.0, -1.0).reshape(values.shape)
    return found


QUESTIONS = {
    "text": lambda one: one.to_text(),
    "page": lambda one: one.to_html(),
    "frame": lambda one: one.to_frame(),
    "dictionary": lambda one: one.to_dict(),
    "removal": lambda one: one.counterfactual().to_html(),
    "removal said": lambda one: one.counterfactual().to_text(),
    "addition": lambda one: one.counterfactual("add").to_html(),
    "sufficiency": lambda one: one.sufficient().to_html(),
    "words": words_of,
}


def test_twice_as_many_words_take_twice_as_much(model, monkeypatch):
    counted = CountingNumpy("numpy")
    for module in (token_positions, margin):
        monkeypatch.setattr(module, "np", counted)
    taken = {}
    for n_words in (500, 1000):
        text = [document(n_words)]
        explain(model, text)
        explanation = counting(explain(model, text))
        assert len(list(chain(*explanation.texts))) == 1
        taken[n_words] = {"explain": work(lambda text=text: explain(model, text))}
        for name, question in QUESTIONS.items():
            question(explanation)
            taken[n_words][name] = work(lambda one=explanation, ask=question: ask(one))
    growth = {name: taken[1000][name] / taken[500][name] for name in taken[500]}
    assert {name: ratio for name, ratio in growth.items() if ratio > 2.2} == {}
