"""Texts that look the same are the same, and words of every script are found where they stand."""

import pickle
import re
import unicodedata
from functools import cache

import numpy as np
import pytest
import regex
from helpers import put
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.inspection.token_positions import cut
from sklearn_clsattn.text import (
    WORDS_AND_PUNCTUATION,
    ContextVectorizer,
    TokenVectorizer,
    WordVectors,
)
from sklearn_clsattn.text._normalization import aligned, normalized
from sklearn_clsattn.text._tokens import tokenize

EMOJI = [
    *("😀", "👩\u200d🚒", "👍🏽", "❤️", "🇩🇪", "👨\u200d👩\u200d👧\u200d👦", "🏳️\u200d🌈", "✊🏿"),
    *("👩🏿\u200d❤️\u200d💋\u200d👨🏻", "⛹🏻\u200d♀️", "1️⃣", "#️⃣", "*️⃣", "☺️"),
    *("©️", "™️", "‼️", "ℹ️", "㊗️", "🈁", "🈂️"),
]
INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202c\u2060\u2066\ufeff\ufe0e\ufe0f"
APOSTROPHES = "'’‘ʼ＇´′‛ʻ\x91\x92`"
WORDS = [
    *("don't", "isn't", "we'll", "l'été", "rock'n'roll", "O'Neill", "well-known", '"so"', "!"),
    *("gâché", "naïve", "Ångström", "élève", "Việt", "finance", "office", "flow", "hello", "GOOD"),
    *("Straße", "STRASSE", "İstanbul", "ΟΔΟΣ", "ǆ", "한국어", "영화", "ㅋㅋ", "がぎぐ", "ポケット"),
    *("فيلم", "می‌خواهم", "خانه‌ها", "क्षत्रिय", "फ़िल्म", "अच्छी", "ভালো", "நல்ல", "电影", "映画"),
    *("หนังดี", "น้ำ", "ຮູບເງົາ", "ຄຳ", "ရုပ်ရှင်", "ခ္ဂ", "ខ្មែរ", "ល្អ", "x²", "½", "4½", *EMOJI),
]

UNUSED = "Cn", "Co", "Cs"  # no characters, private ones and surrogates

pieces = st.sampled_from([*WORDS, *INVISIBLE, *APOSTROPHES, "\u0301", "\u0307", "🏽", "7", " "])
characters = st.characters(categories=["L", "M", "N", "P", "S", "Zs"])
texts = st.text(max_size=12) | st.lists(pieces | characters, max_size=8).map("".join)


def normal(text):
    return normalized(text, lowercase=True)


def tokens_of(text):
    """Return the tokens of a text, normalized, in order."""
    vectorizer = ContextVectorizer(ngram_range=(1, 1), characters=None, context=False)
    return vectorizer.fit([text, "other"]).occurrences(text).terms.tolist()


@cache
def fitted_once():
    return ContextVectorizer(context=False).fit(["a b"])


def parts_of(text):
    """Return the parts of a text that are tokens, as they stand there."""
    spans = fitted_once().occurrences(text).words
    return [text[start:stop] for start, stop in spans]


# The normal form.


@settings(max_examples=100)
@given(texts, st.booleans())
@example("a\u00ad\u0301", True)
@example("\u00ad", True)
@example("10² 4½", True)
def test_normal_forms(text, lowercase):
    result = normalized(text, lowercase=lowercase)
    assert normalized(result, lowercase=lowercase) == result
    assert unicodedata.is_normalized("NFC", result)
    for canonical in ("NFC", "NFD"):
        same = unicodedata.normalize(canonical, text)
        assert normalized(same, lowercase=lowercase) == result

    # Character by character, with positions.
    by_character = aligned(text, lowercase=lowercase)
    assert by_character.text == result
    starts, stops = by_character.starts, by_character.stops
    assert len(starts) == len(stops) == len(result)
    assert (np.diff(starts) >= 0).all()
    assert (np.diff(stops) >= 0).all()
    assert ((starts >= 0) & (starts < stops) & (stops <= len(text))).all()
    for character, start, stop in zip(result, starts, stops, strict=True):
        there = normalized(text[start:stop], lowercase=lowercase)
        assert character in there or character in " '"  # parts numbers, or was a backtick


@pytest.mark.parametrize("lowercase", [True, False])
def test_every_character_has_one_form(lowercase):
    assigned = [one for one in map(chr, range(0x110000)) if unicodedata.category(one) not in UNUSED]
    # Han and Hangul, where one rule is for thousands of neighbours, are sampled.
    alike = re.compile("[\u3400-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff]")
    assigned = [one for at, one in enumerate(assigned) if at % 20 == 0 or not alike.match(one)]
    for start in range(0, len(assigned), 500):
        text = " x ".join(assigned[start : start + 500])
        result = normalized(text, lowercase=lowercase)
        decomposed = unicodedata.normalize("NFD", text)
        assert normalized(result, lowercase=lowercase) == result
        assert normalized(decomposed, lowercase=lowercase) == result
        assert aligned(text, lowercase=lowercase).text == result


@given(st.text(st.characters(max_codepoint=127)), st.booleans())
def test_ascii_texts_are_only_lower_cased(text, lowercase):
    text = text.replace("`", "")
    result = normalized(text, lowercase=lowercase)
    assert result == (text.lower() if lowercase else text)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        *(("film", "fi\u00adlm\u200d"), ("क्ष", "क्\u200dष"), ("istanbul", "İstanbul"), ("—", "―")),
        *(("don't", "don`t"), ("naïve…", "nai\u0308ve…"), ("wait...", "wait\x85")),
        *(("ŵ 'n", "Ŵ ŉ"), ("각", "가\u11a8"), ("ㅋㅋ", "ㅋㅋ"), ("no 5kg", "№ 5㎏"), ("™", "™️")),
    ],
)
def test_signs_have_one_form(text, other):
    assert normal(other) == normal(text)


CHANGES = {
    "composed": lambda text, draw: unicodedata.normalize("NFC", text),
    "decomposed": lambda text, draw: unicodedata.normalize("NFD", text),
    "apostrophes": lambda text, draw: text.replace("'", draw(st.sampled_from(APOSTROPHES))),
    "quotation marks": lambda text, draw: text.replace('"', draw(st.sampled_from('"“”„‟＂'))),
    "hyphens": lambda text, draw: text.replace("-", draw(st.sampled_from("-‐‑‒–−－"))),
    "ligatures": lambda text, draw: text.replace("ffi", "ﬃ").replace("fi", "ﬁ").replace("fl", "ﬂ"),
    "full width": lambda text, draw: "".join(
        chr(ord(one) + 0xFEE0) if "!" <= one <= "~" and one not in "'`" else one for one in text
    ),
    "bold": lambda text, draw: "".join(
        chr(0x1D41A + ord(one) - ord("a")) if "a" <= one <= "z" else one for one in text
    ),
    "spaces": lambda text, draw: text.replace(
        " ", draw(st.sampled_from(" \u00a0\u2009\u202f\u3000"))
    ),
    "capitals": lambda text, draw: text.upper(),
}
spelled = [word for word in WORDS if not any(sign in word for sign in "#*1©™‼ℹ㊗🈁🈂²½ㅋ")]


@st.composite
def spellings(draw):
    """Draw a text, and another of its spellings that looks the same."""
    words = draw(st.lists(st.sampled_from(spelled), min_size=1, max_size=8))
    text = other = " ".join(words)
    for name in draw(st.lists(st.sampled_from([*CHANGES, "invisible"]), min_size=1, max_size=3)):
        if name == "invisible":  # between characters, and not within an emoji
            places = [match.start() for match in regex.finditer(r"\X", other)]
            at = draw(st.sampled_from([*places, len(other)]))
            other = other[:at] + draw(st.sampled_from(INVISIBLE)) + other[at:]
        else:
            other = CHANGES[name](other, draw)
    return text, other


TRAINING = [" ".join(WORDS[at::5]) for at in range(5)] * 4 + WORDS
LABELS = [at % 2 for at in range(len(TRAINING))]
MODEL = TextClassifier(min_df=1).fit(TRAINING, LABELS)


@settings(max_examples=60)
@given(spellings())
@example(("film🚒", "film\u200d🚒"))
def test_predictions_are_those_of_every_spelling(pair):
    text, other = pair
    assert normal(other) == normal(text)
    assert MODEL.predict_proba([other]).tolist() == MODEL.predict_proba([text]).tolist()


def test_compatibility_characters_are_plain_ones():
    pair = ["ﬁnance x² ㎏ Ｈｉ", "finance x2 kg hi"]
    one, other = ContextVectorizer(context=False).fit(pair[1:]).transform(pair).toarray()
    assert (one == other).all()
    case = ContextVectorizer(context=False, lowercase=False).fit(["Straße don’t"])
    assert {"Straße", "don't"} <= set(case.vocabulary_)


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("rated 4½", "rated 4 ½"),
        ("10² and ²10", "10 ² and ² 10"),
        ("①2, 3①", "① 2, 3 ①"),
        ("5₂", "5 ₂"),
        ("４½", "４ ½"),
        ("4\u200b½", "4 ½"),
    ],
)
def test_numbers_do_not_join_the_digits_beside_them(text, apart):
    assert tokens_of(text) == tokens_of(apart)
    assert parts_of(text) == parts_of(apart)


def test_how_numbers_are_written():
    assert tokens_of("4½ 10² m² CO₂") == ["4", "1", "⁄", "2", "10", "2", "m2", "co2"]


def test_accents_without_a_letter():
    """NFKC would make a space and a mark of each; a mark on a space is no token."""
    assert tokens_of("¯\\_(ツ)_/¯ so ¨it¨") == [*"¯\\_(ツ)_/¯", "so", "¨", "it", "¨"]
    assert tokens_of("a \u0308 b\n\u0308") == ["a", "b"]


# Grapheme clusters.


def test_an_emoji_is_one_token():
    vectorizer = ContextVectorizer(context=False)
    ngrams = vectorizer.fit([f"so {emoji}" for emoji in EMOJI]).character_vocabulary_
    for emoji in EMOJI:
        for text in (emoji, f"ok{emoji}ok", emoji * 3, f"{emoji}, {emoji}!", f"👍{emoji}👍"):
            there = parts_of(text)
            assert there.count(emoji) == text.count(emoji)
            assert "".join(there) == text.replace(" ", "")
        assert not any(emoji in ngram for ngram in ngrams)


def test_a_sign_without_meaning_divides_no_word():
    assert parts_of("ok\ufe0fay") == ["ok\ufe0fay"]


@settings(max_examples=150)
@given(texts)
@example(" ".join(WORDS))
@example("👩‍🚒👍🏽❤️🇩🇪🇫🇷 ខ្មែរ က္က 가\u11a8 1️⃣")
def test_tokens_cut_no_clusters(text):
    tokens = tokenize([text], WORDS_AND_PUNCTUATION, scripts=True)
    clusters = {match.start() for match in regex.finditer(r"\X", text)} | {len(text)}
    assert {*tokens.starts.tolist(), *tokens.stops.tolist()} <= clusters


COUNTS = make_pipeline(CountVectorizer(token_pattern=r"\w|\S"), ClsAttentionClassifier())
COUNTS.fit(TRAINING, LABELS)
PATTERN = make_pipeline(
    ContextVectorizer(token_pattern=r"[a-zé]|[^a-z\s]", characters=None),
    ClsAttentionClassifier(),
)
PATTERN.fit(TRAINING, LABELS)


@settings(max_examples=40)
@given(texts, st.sampled_from([MODEL, COUNTS, PATTERN]))
@example(" ".join(WORDS), MODEL)
@example(" ".join(WORDS), COUNTS)
@example("½ ﷺ 1½ ™ e\u0301 " + "".join(EMOJI), MODEL)
def test_pages_cut_no_glyphs(text, model):
    explanation = explain(model, [text])
    contributions = explanation.contributions[:, 0]
    segments = cut(explanation.located_text, contributions, explanation.attention)
    assert "".join(segment.text for segment in segments) == text
    edges = np.cumsum([len(segment.text) for segment in segments]).tolist()
    clusters = {match.start() for match in regex.finditer(r"\X", text)}
    assert set(edges) <= clusters | {0, len(text)}
    summed = sum(segment.contribution for segment in segments)
    assert_allclose(summed, contributions.sum(), rtol=0, atol=1e-10)


def test_explanations_mark_the_original():
    text = "\ufeffWe Don’t regret “Ｈｅｌｌｏ” gâ\u00adche\u0301, ﬁnance 👩‍🚒❤️!"
    found = MODEL.vectorizer_.occurrences(text)
    there = [text[start:stop] for start, stop in found.words]
    expected = ["We", "Don’t", "regret", "“", "Ｈｅｌｌｏ", "”", "gâ\u00adche\u0301", ","]
    assert there == [*expected, "ﬁnance", "👩‍🚒", "❤️", "!"]
    assert {"don't", "hello", "gâché", "finance", "❤"} <= set(found.terms)
    page = explain(MODEL, [text]).to_html()
    assert "Don’t" in page
    assert "Ｈｅｌｌｏ" in page


def test_word_vectors_have_normal_words(tmp_path):
    vectors = WordVectors.from_mapping({"don’t": [1, 0], "ﬁne": [0, 1], "Straße": [1, 1]})
    assert vectors.words_.tolist() == ["don't", "fine", "strasse"]
    assert vectors.of(["DON‘T", "ﬁne", "strasse"]).any(axis=1).all()
    assert vectors.most_similar("don´t", k=1)[0][0] == "strasse"
    path = put(tmp_path / "vectors.txt", "don’t 1 0\nstraße 1 1\n")
    assert WordVectors.from_file(path, words=["DON'T"]).words_.tolist() == ["don't"]
    learned = WordVectors(2, min_df=1).fit(["don’t go", "don't stay", "cafe\u0301 go", "CAFÉ stay"])
    assert sorted(learned.words_) == ["café", "don't", "go", "stay"]


# Texts in every script


TEXTS = {
    "Chinese": ("这部电影很好看。", list("这部电影很好看。")),
    "Japanese": ("映画はGoodでした! スーパー", [*"映画は", "good", *"でした!スーパー"]),
    "Korean": ("영화 최고ㅋㅋ", list("영화최고ㅋㅋ")),
    "Thai": ("หนังดี น้ำ 10", ["ห", "นั", "ง", "ดี", "น้ำ", "10"]),
    "Lao": ("ຮູບເງົາດີ ຄຳ", ["ຮູ", "ບ", "ເ", "ງົ", "າ", "ດີ", "ຄຳ"]),
    "Burmese": ("ရုပ်ရှင် ကောင်း", ["ရု", "ပ်", "ရှ", "င်", "ကော", "င်း"]),
    "Khmer": ("ខ្មែរ ល្អ", ["ខ្មែ", "រ", "ល្អ"]),
    "Arabic": ("فيلمٌ رائع، جدًّا", ["فيلمٌ", "رائع", "،", "جدًّا"]),
    "Hindi": ("फ़िल्म अच्छी है।", ["फ़िल्म", "अच्छी", "है", "।"]),
    "Tamil": ("நல்ல படம்!", ["நல்ல", "படம்", "!"]),
    "accents apart": ("cafe\u0301 tre\u0300s", ["cafe\u0301", "tre\u0300s"]),
    "emoji": ("ok👩‍🚒👍🏽🇩🇪🇫🇷1️⃣2️⃣🏴󠁧󠁢󠁳󠁣󠁴󠁿!", ["ok", "👩‍🚒", "👍🏽", "🇩🇪", "🇫🇷", "1️⃣", "2️⃣", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "!"]),
    "English": ("It isn't 日本", ["it", "isn't", "日", "本"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_words_of_every_script(name):
    text, expected = TEXTS[name]
    assert list(map(str.lower, parts_of(text))) == expected
    assert tokens_of(text) == list(map(normal, expected))


def test_single_characters_are_not_spelled():
    vectorizer = ContextVectorizer(context=False).fit(["好看 the film"])
    assert {"好", "看", "好 看", "the"} <= set(vectorizer.vocabulary_)
    assert not any("好" in ngram or "看" in ngram for ngram in vectorizer.character_vocabulary_)
    counted = TokenVectorizer(token_pattern=WORDS_AND_PUNCTUATION, min_df=1).fit(["好看 film"] * 9)
    assert sorted(counted.vocabulary_) == ["film", "好看"]  # as CountVectorizer


# Tokenizers that users bring along


def two_by_two(text):
    """Return pieces of two characters, and blanks, as jieba does."""
    return [text[at : at + 2] for at in range(0, len(text), 2)]


def stems(text):
    return [word.rstrip("s") + "_" for word in text.split()]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, {"don't", "strasse"}),
        ({"lowercase": False}, {"Don't", "STRASSE"}),
    ],
)
def test_tokenizers_get_the_normal_text(parameters, words):
    vectorizer = ContextVectorizer(context=False, tokenizer=str.split, **parameters)
    assert words <= set(vectorizer.fit(["Don’t STRASSE"]).vocabulary_)


def test_tokenizers():
    texts, labels = ["goodbad  ok", "badbad ok", "good goo", "bad bad"] * 3, [1, 0, 1, 0] * 3
    model = TextClassifier(tokenizer=two_by_two).fit(texts, labels)
    assert {"go", "od", "go od"} <= set(model.vectorizer_.vocabulary_)
    found = model.vectorizer_.occurrences("Goodbad  ok")
    singles = [term for term in found.terms if " " not in term]
    spans = zip(found.starts, found.stops, strict=True)
    assert singles[:3] == ["go", "od", "ba"]
    assert next(spans) == (0, 2)
    text = explain(model, ["Goodbad"]).to_html()
    assert "Go</span>" in text
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(texts), model.predict_proba(texts))
    # What is not in the text has no place: it is listed.
    stemmed = explain(TextClassifier(tokenizer=stems).fit(texts, labels), ["bads ok"])
    assert not stemmed.located_text.occurrences
    assert "bad_" in stemmed.tokens
    assert "bad_" in stemmed.to_text()


@pytest.mark.parametrize("text", ["", "\u00ad"])
def test_a_tokenizer_may_find_tokens_in_an_empty_text(text):
    model = TextClassifier(min_df=1, tokenizer=lambda text: text.split() or ["none"])
    found = model.fit(["good", "bad", ""], [1, 0, 0]).vectorizer_.occurrences(text)
    assert found.terms.tolist() == ["none"]
    assert found.words[:, 1].tolist() == [-1]


def test_vectors_have_the_words_of_the_tokenizer():
    texts, labels = ["goodbad  ok", "badbad ok"] * 6, [1, 0] * 6
    model = TextClassifier(tokenizer=two_by_two).fit(texts, labels, unlabeled=texts * 2)
    assert "go" in model.vectorizer_.word_vectors_.words_
    given = TextClassifier(word_vectors=WordVectors(2, tokenizer=stems)).fit(texts, labels)
    assert "ok_" in given.vectorizer_.word_vectors_.words_


def test_tokens_with_spaces_are_refused():
    with pytest.raises(ValueError, match="without white space, got 'a b'"):
        TextClassifier(tokenizer=lambda text: ["a b"]).fit(["x", "y"], [0, 1])
