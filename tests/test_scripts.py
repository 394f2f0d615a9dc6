"""Texts in every script, and tokenizers that users bring along."""

import pickle

import numpy as np
import pytest

from sklearn_clsattn.inspection import explain
from sklearn_clsattn.text import (
    WORDS_AND_PUNCTUATION,
    ContextVectorizer,
    TokenVectorizer,
    WordVectors,
)
from sklearn_clsattn.text import make_text_classifier as make

TEXTS = {
    "Chinese": ("这部电影很好看。", list("这部电影很好看。")),
    "Japanese": ("映画はGoodでした!", [*"映画は", "good", *"でした!"]),
    "Korean": ("영화 최고ㅋㅋ", list("영화최고ㅋㅋ")),
    "Thai": ("หนังดี น้ำ 10", ["ห", "นั", "ง", "ดี", "น้ำ", "10"]),
    "Lao": ("ຮູບເງົາດີ", ["ຮູ", "ບ", "ເ", "ງົ", "າ", "ດີ"]),
    "Burmese": ("ရုပ်ရှင် မြန်မာ", ["ရု", "ပ်", "ရှ", "င်", "မြ", "န်", "မာ"]),
    "Khmer": ("ខ្មែរ ល្អ", ["ខ្មែ", "រ", "ល្អ"]),
    "Arabic": ("فيلمٌ رائع، جدًّا", ["فيلمٌ", "رائع", "،", "جدًّا"]),
    "Hindi": ("फ़िल्म अच्छी है।", ["फ़िल्म", "अच्छी", "है", "।"]),
    "accents apart": ("cafe\u0301 tre\u0300s", ["cafe\u0301", "tre\u0300s"]),
    "a heart": ("I \u2764\ufe0f it", ["i", "\u2764\ufe0f", "it"]),
    "emoji": ("ok👩‍🚒👍🏽🇩🇪🇫🇷1️⃣2️⃣🏴󠁧󠁢󠁳󠁣󠁴󠁿!", ["ok", "👩‍🚒", "👍🏽", "🇩🇪", "🇫🇷", "1️⃣", "2️⃣", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "!"]),
    "English": ("It isn't 日本", ["it", "isn't", "日", "本"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_words_of_every_script(name):
    text, expected = TEXTS[name]
    vectorizer = ContextVectorizer(context=False, normalize=None).fit([text, "", text])
    found = [text[start:stop].lower() for start, stop in vectorizer.occurrences(text).words]
    assert found == expected
    assert set(expected) <= set(vectorizer.vocabulary_)


def test_single_characters_are_not_spelled():
    vectorizer = ContextVectorizer(context=False).fit(["好看 the film"])
    assert {"好", "看", "好 看", "the"} <= set(vectorizer.vocabulary_)
    assert not any("好" in ngram or "看" in ngram for ngram in vectorizer.character_vocabulary_)
    counted = TokenVectorizer(token_pattern=WORDS_AND_PUNCTUATION, min_df=1).fit(["好看 film"] * 9)
    assert sorted(counted.vocabulary_) == ["film", "好看"]  # as CountVectorizer


def two_by_two(text):
    """Return pieces of two characters, and blanks, as jieba does."""
    return [text[at : at + 2] for at in range(0, len(text), 2)]


def stems(text):
    return [word.rstrip("s") + "_" for word in text.split()]


def test_tokenizers():
    texts, labels = ["goodbad  ok", "badbad ok", "good goo", "bad bad"] * 3, [1, 0, 1, 0] * 3
    model = make(tokenizer=two_by_two).fit(texts, labels)
    assert {"go", "od", "go od"} <= set(model[0].vocabulary_)
    found = model[0].occurrences("Goodbad  ok")
    singles = [term for term in found.terms if " " not in term]
    spans = zip(found.starts, found.stops, strict=True)
    assert singles[:3] == ["go", "od", "ba"]
    assert next(spans) == (0, 2)
    text = explain(model, ["Goodbad"]).to_html()
    assert "Go</span>" in text
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(texts), model.predict_proba(texts))
    # What is not in the text has no place: it is listed.
    stemmed = explain(make(tokenizer=stems).fit(texts, labels), ["bads ok"])
    assert not stemmed.texts[0] or stemmed.texts[0][0].words is None
    assert "bad_" in stemmed.tokens
    assert "bad_" in stemmed.to_text()


def test_vectors_have_the_words_of_the_tokenizer():
    texts, labels = ["goodbad  ok", "badbad ok"] * 6, [1, 0] * 6
    model = make(tokenizer=two_by_two).fit(texts, labels, unlabeled=texts * 2)
    assert "go" in model[0].word_vectors_.words_
    given = make(word_vectors=WordVectors(2, tokenizer=stems)).fit(texts, labels)
    assert "ok_" in given[0].word_vectors_.words_


def test_tokens_with_spaces_are_refused():
    with pytest.raises(ValueError, match="without white space, got 'a b'"):
        make(tokenizer=lambda text: ["a b"]).fit(["x", "y"], [0, 1])
