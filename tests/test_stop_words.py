"""Stop words: a model predicts the same for a text as for the text without them."""

import random
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.inspection.edited_text import delete_spans
from sklearn_clsattn.inspection.view import views
from sklearn_clsattn.saving import load_model, save_model
from sklearn_clsattn.text import ContextVectorizer
from sklearn_clsattn.text._normalization import normalized
from sklearn_clsattn.text._tokens import WORDS_AND_PUNCTUATION, tokenize

TEXTS, TOPICS = load_requests(return_X_y=True)
TRAIN = [text.replace("order", "日") if i % 3 else text for i, text in enumerate(TEXTS[:300])]
STOP_WORDS = ["please", "Order", "I", re.compile("ORD.*|ware"), "order's", "日", "'", ",", "😀"]
SCRIPTS = [(32, 128), (160, 592), (0x300, 0x370), (0x606, 0x6DD), (0x900, 0x970), (0xE00, 0xE60)]
SCRIPTS += [(0x2000, 0x2070), (0x4E00, 0x4E20), (0xAC00, 0xAC20), (0x1F600, 0x1F640)]
MODELS = {
    "default": TextClassifier(C=1.0),
    "without characters": TextClassifier(C=1.0, characters=None),
    "three words, by case": TextClassifier(C=1.0, ngram_range=(2, 3), lowercase=False),
    "vectors": TextClassifier(C=1.0),
    "in a pipeline": make_pipeline(ContextVectorizer(), ClsAttentionClassifier(C=1.0)),
}


def fitted(kind):
    """Return a model with stop words, and its vectorizer."""
    model = clone(MODELS[kind])
    vectorizer = model[0] if kind == "in a pipeline" else model
    vectorizer.set_params(stop_words=STOP_WORDS)
    more = {"unlabeled": TEXTS[300:500]} if kind == "vectors" else {}
    model.fit(TRAIN, TOPICS[:300], **more)
    return model, model[0] if kind == "in a pipeline" else model.vectorizer_


def letters():
    """Return characters of many scripts that are at most one token each, unlike ½ and ⁗."""
    every_one = [chr(code) for first, last in SCRIPTS for code in range(first, last)]
    normal = [normalized(letter, lowercase=True) for letter in every_one]
    n_tokens = np.diff(tokenize(normal, WORDS_AND_PUNCTUATION, scripts=True).indptr)
    return [letter for letter, number in zip(every_one, n_tokens, strict=True) if number < 2]


def random_texts(n, seed=0):
    """Return texts of stop words, words and parts of words in many scripts, glued or not."""
    rng = random.Random(seed)
    alphabet = letters()
    words = ["please", "PLEASE", "order", "i", "order's", "ordered", "hardware", "日本", "'", "😀"]
    words += " ".join(TEXTS[:20]).split()
    texts = []
    for _ in range(n):
        parts = []
        for _ in range(rng.randint(1, 12)):
            foreign = "".join(rng.choices(alphabet, k=rng.randint(1, 3)))
            parts.append(rng.choice([foreign, rng.choice(words)]))
            parts.append(rng.choice(["", " ", " ", "\n", ".", ", "]))
        texts.append("".join(parts))
    return texts


@pytest.mark.parametrize("kind", MODELS)
def test_no_text_is_predicted_otherwise_than_without_them(kind):
    model, vectorizer = fitted(kind)
    texts = random_texts(150)
    edited = []
    for text in texts:
        spans = vectorizer.occurrences(text).ignored.tolist()
        edited.append(delete_spans(text, list(map(tuple, spans))))
    assert sum(before != after for before, after in zip(texts, edited, strict=True)) > 75
    assert_allclose(model.decision_function(texts), model.decision_function(edited), atol=1e-9)
    assert not set(vectorizer.vocabulary_) & {
        "please",
        "order",
        "i",
        "ordered",
        "日",
        "'",
        ",",
        "please ,",
    }


def test_stop_words_do_not_enter_what_is_learned():
    edited = [re.sub(r"(?i)\b(please|order)\b\s?", "", text) for text in TEXTS[:200]]
    model = TextClassifier(C=1.0, stop_words={"please", "order"}).fit(TEXTS[:120], TOPICS[:120])
    other = TextClassifier(C=1.0).fit(edited[:120], TOPICS[:120])
    expected = other.predict_proba(edited[120:])
    assert_allclose(model.predict_proba(TEXTS[120:200]), expected, atol=1e-6)


def test_an_explanation_strikes_them_out():
    model, _ = fitted("default")
    explanation = explain(model, ["Please send my order back, I ordered hardware."])
    page = explanation.to_html()
    assert re.findall("<s>(.*?)</s>", page)[:4] == ["Please", "order", ",", "I"]
    assert "ignored by this model" in page
    assert "ignored by this model" not in explain(model, ["Nothing of it"]).to_html()
    assert not set(explanation.tokens) & {"please", "order", "i", "ordered"}


def test_they_are_saved_and_searched(tmp_path):
    words = TextClassifier(C=1.0, stop_words=["please"]).fit(TRAIN, TOPICS[:300])
    save_model(words, tmp_path / "words.skops")
    assert_allclose(
        load_model(tmp_path / "words.skops").predict_proba(TEXTS[:5]),
        words.predict_proba(TEXTS[:5]),
    )
    patterns, _ = fitted("without characters")
    with pytest.raises(ValueError, match=r"name that ends in \.joblib"):
        save_model(patterns, tmp_path / "patterns.skops")
    save_model(patterns, tmp_path / "patterns.joblib")
    loaded = load_model(tmp_path / "patterns.joblib")
    assert_allclose(loaded.predict_proba(TEXTS[:5]), patterns.predict_proba(TEXTS[:5]))


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["New York"], ValueError, "the tokens new, york: pass them one by one"),
        ([""], ValueError, "'' is no token"),
        ([3], TypeError, "words or compiled patterns, got 3"),
        ([re.compile("a*")], ValueError, "matches no character"),
        ("please", ValueError, "'stop_words' parameter of ContextVectorizer must be"),
    ],
)
def test_what_is_refused(words, error, message):
    with pytest.raises(error, match=message):
        ContextVectorizer(stop_words=words).fit(TRAIN, TOPICS[:300])


@pytest.mark.parametrize("text", ["good\u2026 fun", "good\x85fun", "\u2026"])
def test_a_character_that_is_several_stop_words_is_shown_once(text):
    model = TextClassifier(stop_words=["."]).fit(["good fun", "bad film"], ["pos", "neg"])
    (view,) = views(explain(model, [text]), None, 8)
    assert "".join(segment.text for segment in view.segments) == text
