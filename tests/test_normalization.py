"""Texts that look the same are the same, and words of every script are found where they stand."""

import pickle
import re
import unicodedata
from itertools import product

import numpy as np
import pytest
import regex
from helpers import refused
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn import TextClassifier as make
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.inspection.token_positions import cut
from sklearn_clsattn.text import (
    WORDS_AND_PUNCTUATION,
    ContextVectorizer,
    TokenVectorizer,
    WordVectors,
)
from sklearn_clsattn.text._graphemes import cluster_starts
from sklearn_clsattn.text._normalization import _IGNORABLE, aligned, normalized

EMOJI = [
    *("👩\u200d🚒", "👍🏽", "❤️", "🇩🇪", "👨\u200d👩\u200d👧\u200d👦", "🏳️\u200d🌈"),
    *("👩🏿\u200d❤️\u200d💋\u200d👨🏻", "🙂\u200d↔️", "1️⃣", "#️⃣", "*️⃣"),
    *("🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "©️", "™️", "‼️"),
    *("ℹ️", "Ⓜ️", "㊗️", "🈁", "🈂️", "☺️", "✊🏿", "⛹🏻\u200d♀️", "🇺🇸", "😀"),
]
INVISIBLE = "\u00ad\u034f\u061c\u200b\u200c\u200d\u200e\u200f\u202a\u202c\u2060\u2063\u2066\ufeff"
INVISIBLE += "\ufe0e\ufe0f\U000e0020\U000e0100\u180e"
APOSTROPHES = "'’‘ʼ＇´′‛ʻʹ՚׳᾽\x91\x92`"
WORDS = [
    *("don't", "isn't", "we'll", "l'été", "rock'n'roll", "O'Neill"),
    *("gâché", "naïve", "Ångström", "élève", "Việt", "số", "한국어", "영화", "がぎぐ", "ポケット"),
    *("finance", "office", "flow", "hello", "GOOD", "Straße", "STRASSE", "İstanbul", "ΟΔΟΣ", "ǆ"),
    *("فيلم", "می‌خواهم", "خانه‌ها", "क्षत्रिय", "फ़िल्म", "अच्छी", "ভালো", "நல்ல"),
    *("หนังดี", "น้ำ", "ຮູບເງົາ", "ຄຳ", "ရုပ်ရှင်", "ခ္ဂ", "ខ្មែរ", "ល្អ", "电影", "映画"),
    *('"so"', "well-known", "!", "a.b", "x²", "½", "ㅋㅋ", *EMOJI),
]

texts = st.text(max_size=12) | st.lists(
    st.sampled_from(
        [*WORDS, *INVISIBLE, *APOSTROPHES, "\u0301", "\u0307", "\u200d", "🏽", "e", " "]
    )
    | st.characters(categories=["M", "L", "S", "P", "Cf", "Cc"]),
    max_size=8,
).map("".join)
forms = st.sampled_from(["NFKC", "NFC"])


def normal(text):
    return normalized(text, "NFKC", lowercase=True)


# The normal form.


@settings(max_examples=200)
@given(texts, forms, st.booleans())
@example("a\u00ad\u0301", "NFKC", True)
@example("\u1100\u200b\u1161\u200b\u11a8", "NFKC", True)
@example("\u0e19\u0e49\u0e4d\u0e32", "NFKC", True)
@example("\x98\u0303", "NFKC", False)
@example("\x9a\u0323", "NFKC", True)
@example("🇩\u200d🏴 🏽\u200d🚒 👩\u200d\u00ad🚒", "NFC", True)
def test_normal_forms(text, form, lowercase):
    result = normalized(text, form, lowercase=lowercase)
    assert normalized(result, form, lowercase=lowercase) == result
    assert unicodedata.is_normalized("NFC", result)
    for canonical in ("NFC", "NFD"):
        same = unicodedata.normalize(canonical, text)
        assert normalized(same, form, lowercase=lowercase) == result

    # Character by character, with positions.
    by_character = aligned(text, form, lowercase=lowercase)
    assert by_character.text == result
    starts, stops = by_character.starts, by_character.stops
    assert len(starts) == len(stops) == len(result)
    assert (np.diff(starts) >= 0).all()
    assert (np.diff(stops) >= 0).all()
    assert ((starts >= 0) & (starts < stops) & (stops <= len(text))).all()
    for character, start, stop in zip(result, starts, stops, strict=True):
        there = normalized(text[start:stop], form, lowercase=lowercase)
        assert character in there or (character == "'" and "`" in there)


@pytest.mark.parametrize("form", ["NFKC", "NFC"])
def test_what_no_form_divides_has_one_form(form):
    """The vowel am of Thai and Lao, also where another tool has divided it, and Hangul."""
    for text, other in (
        *(("น้ำ", "น\u0e49\u0e4d\u0e32"), ("ຄຳ", "ຄ\u0ecd\u0eb2")),
        *(("ㅋㅋ", "ﾻﾻ"), ("각", "가\u11a8")),
    ):
        assert normalized(other, form, lowercase=True) == text
        assert aligned(other, form, lowercase=True).text == text


@pytest.mark.parametrize(
    ("text", "other"),
    [
        *(("ab", "a\u200db"), ("film", "film\u200d"), ("क्ष", "क्\u200dष"), ("istanbul", "İstanbul")),
        *(("ÿ", "\x9f"), ("ㅣ", "ￜ"), ("㉠", "㉠"), ("—", "―"), ("'\u0300", "\u1fcd")),
        *(("`so`", "`so`"), ("a\x81é", "a\x81é"), (EMOJI[11], EMOJI[11])),
    ],
)
def test_signs_have_one_form(text, other):
    assert normal(other) == text


@given(st.text(st.characters(max_codepoint=127)), forms, st.booleans())
def test_ascii_texts_are_only_lower_cased(text, form, lowercase):
    text = text.replace("`", "")
    result = normalized(text, form, lowercase=lowercase)
    assert result == (text.lower() if lowercase else text)


@given(texts, st.booleans())
def test_without_a_form_texts_are_only_lower_cased(text, lowercase):
    expected = text.lower() if lowercase else text
    assert normalized(text, None, lowercase=lowercase) == expected
    assert aligned(text, None, lowercase=lowercase).text == expected


def test_the_property_of_signs_without_a_glyph():
    every = "".join(map(chr, range(0x110000)))
    ours = set(regex.findall(f"[{_IGNORABLE}]", every))
    theirs = set(regex.findall(r"\p{Default_Ignorable_Code_Point}", every))
    assert ours == theirs - {"\u200d"}


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
spelled = [word for word in WORDS if not any(sign in word for sign in "#*1©™‼ℹⓂ㊗🈁🈂²½ㅋ")]


@st.composite
def spellings(draw):
    """Draw a text, and another of its spellings that looks the same."""
    words = draw(st.lists(st.sampled_from(spelled), min_size=1, max_size=8))
    text = other = " ".join(words)
    for name in draw(st.lists(st.sampled_from([*CHANGES, "invisible"]), min_size=1, max_size=3)):
        if name == "invisible":  # between characters, and not within an emoji
            at = draw(st.sampled_from([*cluster_starts(other).tolist(), len(other)]))
            sign = draw(st.sampled_from([one for one in INVISIBLE if one != "\U000e0020"]))
            other = other[:at] + sign + other[at:]
        else:
            other = CHANGES[name](other, draw)
    return text, other


TRAINING = [" ".join(WORDS[at::5]) for at in range(5)] * 4 + WORDS
LABELS = [at % 2 for at in range(len(TRAINING))]
MODEL = make(min_df=1).fit(TRAINING, LABELS)


@settings(max_examples=150)
@given(spellings())
@example(("film🚒", "film\u200d🚒"))
@example(("don't go", "don`t go"))
def test_predictions_are_those_of_every_spelling(pair):
    text, other = pair
    assert normal(other) == normal(text)
    assert MODEL.predict_proba([other]).tolist() == MODEL.predict_proba([text]).tolist()


def test_forms_differ_in_compatibility_characters():
    pairs = [("ﬁnance x² ™ Ｈｉ", "finance x2 tm hi")]
    for form, same in (("NFKC", True), ("NFC", False), (None, False)):
        vectorizer = ContextVectorizer(context=False, normalize=form).fit([pairs[0][1]])
        one, other = vectorizer.transform(pairs[0]).toarray()
        assert (one == other).all() == same
    case = ContextVectorizer(context=False, lowercase=False).fit(["Straße don’t"])
    assert {"Straße", "don't"} <= set(case.vocabulary_)
    refused("'normalize' parameter", ContextVectorizer(context=False, normalize="NFD").fit, ["a"])


# Grapheme clusters.


@pytest.mark.parametrize("emoji", EMOJI)
@pytest.mark.parametrize("form", ["NFKC", "NFC", None])
def test_an_emoji_is_one_token(emoji, form):
    vectorizer = ContextVectorizer(context=False, normalize=form).fit([f"so {emoji}"])
    for text in (emoji, f"ok{emoji}ok", emoji * 3, f"{emoji}, {emoji}!", f"👍{emoji}👍"):
        spans = vectorizer.occurrences(text).words
        there = [text[start:stop] for start, stop in spans]
        assert there.count(emoji) == text.count(emoji)
        assert "".join(there) == text.replace(" ", "")
    assert not any(emoji in ngram for ngram in vectorizer.character_vocabulary_)
    # A sign without meaning after a letter divides no word.
    assert len(vectorizer.occurrences("ok\ufe0fay").words) == 1


@settings(max_examples=150)
@given(texts)
@example("👩‍🚒👍🏽❤️🇩🇪🇫🇷")
@example("क्षि क्‍षि กำ နိုင် ខ្មែរ 한")
def test_clusters_are_those_of_the_standard_or_larger(text):
    standard = {match.start() for match in regex.finditer(r"\X", text)}
    assert set(cluster_starts(text).tolist()) <= standard


def test_no_cluster_of_the_standard_is_cut():
    """Neither beside any character that can join others, nor among three kinds of characters."""
    every = "".join(map(chr, range(0x110000)))
    joining = regex.findall(r"[^\p{GCB=Other}\p{GCB=Control}\p{GCB=CR}\p{GCB=LF}]", every)
    cases = [f"a{one}a" for one in joining if unicodedata.category(one) != "Cn"]
    kinds = (
        "a\u0301\u200d\u0600🇩🚒\u1100\u1161\u11a8가각\u0e4d\u0e32\u0e33\u0903\u103a\n\u2028\u2060"
    )
    cases += map("".join, product(kinds, repeat=3))
    text = "\n".join(cases)
    standard = {match.start() for match in regex.finditer(r"\X", text)}
    found = set(cluster_starts(text).tolist())
    assert found <= standard
    breaks = {match.start() for match in re.finditer("[\n\u2028\u2060]", text)}
    assert breaks | {at + 1 for at in breaks} <= found | {len(text)}


def clusters(text):
    return {*cluster_starts(text).tolist(), len(text)}


COUNTS = make_pipeline(CountVectorizer(token_pattern=r"\w|\S"), ClsAttentionClassifier())
COUNTS.fit(TRAINING, LABELS)
PATTERN = make(min_df=1, token_pattern=r"[a-zé]|[^a-z\s]", normalize=None).fit(TRAINING, LABELS)


@settings(max_examples=80, deadline=None)
@given(texts, st.sampled_from([MODEL, COUNTS, PATTERN]))
@example(" ".join(WORDS), MODEL)
@example(" ".join(WORDS), COUNTS)
@example("½ ﷺ 1½ ™ e\u0301 " + "".join(EMOJI), MODEL)
def test_pages_cut_no_glyphs(text, model):
    explanation = explain(model, [text])
    (shown,) = explanation.texts[0]
    contributions = explanation.contributions[:, 0]
    segments = cut(shown, contributions, explanation.attention)
    assert "".join(segment.text for segment in segments) == text
    edges = np.cumsum([len(segment.text) for segment in segments]).tolist()
    assert set(edges) <= clusters(text) | {0}
    summed = sum(segment.contribution for segment in segments)
    assert_allclose(summed, contributions.sum(), rtol=0, atol=1e-10)


def test_explanations_mark_the_original():
    text = "\ufeffWe Don’t regret “Ｈｅｌｌｏ” gâ\u00adche\u0301, ﬁnance 👩‍🚒❤️!"
    found = MODEL[0].occurrences(text)
    there = [text[start:stop] for start, stop in found.words]
    expected = ["We", "Don’t", "regret", "“", "Ｈｅｌｌｏ", "”", "gâ\u00adche\u0301", ","]
    assert there == [*expected, "ﬁnance", "👩‍🚒", "❤️", "!"]
    assert {"don't", "hello", "gâché", "finance", "❤"} <= set(found.terms)
    page = explain(MODEL, [text]).to_html()
    assert "Don’t" in page
    assert "Ｈｅｌｌｏ" in page


# Elsewhere.


def test_word_vectors_have_normal_words(tmp_path):
    vectors = WordVectors.from_mapping({"don’t": [1, 0], "ﬁne": [0, 1], "Straße": [1, 1]})
    assert vectors.words_.tolist() == ["don't", "fine", "strasse"]
    assert vectors.of(["DON‘T", "ﬁne", "strasse"]).any(axis=1).all()
    assert vectors.most_similar("don´t", k=1)[0][0] == "strasse"
    plain = WordVectors.from_mapping({"don’t": [1, 0], "Straße": [1, 1]}, normalize=None)
    assert plain.words_.tolist() == ["don’t", "straße"]
    path = tmp_path / "vectors.txt"
    plain.save(path)
    assert WordVectors.from_file(path, words=["DON'T"]).words_.tolist() == ["don't"]
    kept = WordVectors.from_file(path, words=["don’t"], normalize=None)
    assert kept.words_.tolist() == ["don’t"]
    learned = WordVectors(2, min_df=1).fit(["don’t go", "don't stay", "cafe\u0301 go", "CAFÉ stay"])
    assert sorted(learned.words_) == ["café", "don't", "go", "stay"]
    model = make(word_vectors=plain, normalize=None).fit(["don’t Straße", "fine"], [0, 1])
    assert {"don’t", "straße"} <= set(model.vectorizer_.word_vectors_.words_)
    more = ["don’t go", "so fine"] * 3
    model = make(word_vectors=plain, normalize=None).fit(["don’t", "fine"], [0, 1], unlabeled=more)
    assert "don’t" in model.vectorizer_.word_vectors_.words_  # beside learned vectors, too


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, {"don't", "strasse"}),
        ({"normalize": None, "lowercase": False}, {"Don’t", "STRASSE"}),
    ],
)
def test_tokenizers_get_the_normal_text(parameters, words):
    vectorizer = ContextVectorizer(context=False, tokenizer=str.split, **parameters)
    assert words <= set(vectorizer.fit(["Don’t STRASSE"]).vocabulary_)


# Texts in every script, and tokenizers that users bring along


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
    stemmed = explain(make(tokenizer=stems).fit(texts, labels), ["bads ok"])
    assert not stemmed.texts[0] or stemmed.texts[0][0].words is None
    assert "bad_" in stemmed.tokens
    assert "bad_" in stemmed.to_text()


@pytest.mark.parametrize("text", ["", "\u00ad"])
def test_a_tokenizer_may_find_tokens_in_an_empty_text(text):
    model = make(min_df=1, tokenizer=lambda text: text.split() or ["none"])
    found = model.fit(["good", "bad", ""], [1, 0, 0])[0].occurrences(text)
    assert found.terms.tolist() == ["none"]
    assert found.words[:, 1].tolist() == [-1]


def test_vectors_have_the_words_of_the_tokenizer():
    texts, labels = ["goodbad  ok", "badbad ok"] * 6, [1, 0] * 6
    model = make(tokenizer=two_by_two).fit(texts, labels, unlabeled=texts * 2)
    assert "go" in model.vectorizer_.word_vectors_.words_
    given = make(word_vectors=WordVectors(2, tokenizer=stems)).fit(texts, labels)
    assert "ok_" in given[0].word_vectors_.words_


def test_tokens_with_spaces_are_refused():
    with pytest.raises(ValueError, match="without white space, got 'a b'"):
        make(tokenizer=lambda text: ["a b"]).fit(["x", "y"], [0, 1])
