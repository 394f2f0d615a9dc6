"""Tokens are found where they stand, or not at all."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from sklearn_clsattn.inspection.character_spans import CharacterSpanFinder
from sklearn_clsattn.inspection.spans import SpanFinder
from sklearn_clsattn.text import TokenVectorizer

# Characters whose lower case or accent-free form has another length, or depends on others.
AWKWARD = "aBé İıßẞΣσςΑﬁŉǰ½①Ǆ한가각\u0301\u0327\u200d\u00ad日本語😀_-'’.!\n\t\r\u2028אبІ"
PARAMETERS = [
    {},
    {"lowercase": False},
    {"strip_accents": "unicode"},
    {"strip_accents": "ascii"},
    {"ngram_range": (1, 3)},
    {"ngram_range": (2, 2), "stop_words": ["the", "a", "ab"]},
    {"token_pattern": r"\S+", "strip_accents": "unicode"},
    {"token_pattern": r"#(\w+)"},
    {"token_pattern": r"(?i)[a-z]"},
    {"preprocessor": str.upper},
]


def analysed(vectorizer, spans):
    """Return the tokens as the vectorizer lists them."""
    return [gram for grams in spans.grams.values() for gram in grams]


def check(vectorizer, text):
    spans = SpanFinder(vectorizer).find(text)
    assert spans is not None
    assert analysed(vectorizer, spans) == vectorizer.build_analyzer()(text)
    preprocess = vectorizer.build_preprocessor()
    sigmas = str.maketrans("ς", "σ")
    places = spans.words.tolist()
    for (start, stop), word in zip(places, words_of(spans), strict=True):
        assert 0 <= start < stop <= len(text)
        # The place holds the word; a ligature that was cut in two is shown whole.
        assert word.translate(sigmas) in preprocess(text[start:stop]).translate(sigmas)


def words_of(spans):
    """Return the words, from the n-grams of the least number of words."""
    shortest, grams = next(iter(spans.grams.items()))
    if shortest == 1:
        return grams
    words = [gram.split(" ")[0] for gram in grams]
    words += grams[-1].split(" ")[1:] if grams else []
    return words or [None] * 0


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@settings(max_examples=60)
@given(text=st.text(alphabet=AWKWARD, max_size=40) | st.text(max_size=30))
@example(text="Le CAFÉ du cafe\u0301 était fermé: the café, a #tag")
@example(text="ΟΔΟΣ ΣΑΣ ﬁne ½½ İstanbul")
@example(text="")
def test_places_hold_the_words_that_the_vectorizer_counts(parameters, text):
    vectorizer = CountVectorizer(**parameters)
    spans = SpanFinder(vectorizer).find(text)
    if parameters.get("preprocessor") and spans is None:
        return  # a sigma or the like, of which only a preprocessor of one's own knows
    if parameters.get("ngram_range") == (2, 2) and not spans.grams[2]:
        assert vectorizer.build_analyzer()(text) == []
        return
    check(vectorizer, text)


def test_accents_belong_to_their_letters():
    text = "un cafe\u0301 ferme\u0301"
    finder = SpanFinder(CountVectorizer(strip_accents="unicode"))
    spans = finder.find(text)
    assert spans.grams[1] == ["un", "cafe", "ferme"]
    assert [text[a:b] for a, b in spans.words] == ["un", "cafe\u0301", "ferme\u0301"]


def test_letters_that_become_two_are_marked_whole():
    text = "oﬃce ½ cup"
    spans = SpanFinder(CountVectorizer(strip_accents="unicode")).find(text)
    assert spans.grams[1] == ["office", "cup"]
    assert [text[a:b] for a, b in spans.words] == ["oﬃce", "cup"]
    pieces = SpanFinder(CountVectorizer(strip_accents="unicode", token_pattern=r"\d")).find(text)
    assert pieces.grams[1] == ["1", "2"]
    assert [text[a:b] for a, b in pieces.words] == ["½", "½"]


def test_ngrams_reach_over_stop_words():
    text = "Not the best film"
    spans = SpanFinder(CountVectorizer(ngram_range=(1, 2), stop_words=["the"])).find(text)
    assert spans.grams[2] == ["not best", "best film"]
    assert [text[a:b] for a, b in spans.words] == ["Not", "best", "film"]


class Backwards(CountVectorizer):
    """A vectorizer that reads words from right to left."""

    def build_tokenizer(self):
        return lambda text: [word[::-1] for word in text.split()]


class Shorter(CountVectorizer):
    """A vectorizer that leaves the first letter out before it looks for words."""

    def build_preprocessor(self):
        return lambda text: text[1:].lower()


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(tokenizer=str.split, token_pattern=None),
        CountVectorizer(analyzer=str.split),
        CountVectorizer(preprocessor=lambda text: re.sub("<[^>]*>", "", text)),
        CountVectorizer(preprocessor=lambda text: " ".join(reversed(text.split()))),
        CountVectorizer(preprocessor=lambda text: text[3:]),
        CountVectorizer(preprocessor=lambda text: {"long": text}["long"] + text),
        CountVectorizer(strip_accents=lambda text: text.replace("so", "very")),
        CountVectorizer(token_pattern=r"\w*"),
        Backwards(),
        Shorter(),
    ],
    ids=[
        "tokenizer",
        "analyzer",
        "strips tags",
        "reverses",
        "cuts",
        "doubles",
        "replaces",
        "empty tokens",
        "own tokens",
        "own preprocessing",
    ],
)
def test_no_places_are_better_than_wrong_ones(vectorizer):
    assert SpanFinder(vectorizer).find("<b>so</b> good, so good") is None


def test_preprocessors_that_keep_places_are_followed():
    def upper(text):
        if not text:
            raise ValueError("nothing to do")
        return text.upper()

    text = "straße, so good"
    spans = SpanFinder(CountVectorizer(preprocessor=upper)).find(text)
    assert spans.grams[1] == ["STRASSE", "SO", "GOOD"]
    assert [text[a:b] for a, b in spans.words] == ["straße", "so", "good"]


def test_preprocessors_that_take_no_single_characters_are_given_up():
    def strict(text):
        if len(text) < 3:
            raise ValueError("too short")
        return text.upper()

    assert SpanFinder(CountVectorizer(preprocessor=strict)).find("so good") is None


CHARACTERS = [
    {"analyzer": "char", "ngram_range": (1, 3)},
    {"analyzer": "char", "ngram_range": (2, 2), "lowercase": False},
    {"analyzer": "char_wb", "ngram_range": (1, 4)},
    {"analyzer": "char_wb", "ngram_range": (3, 5), "strip_accents": "unicode"},
    {"analyzer": "char_wb", "ngram_range": (2, 3), "strip_accents": "ascii"},
]


@pytest.mark.parametrize("kind", [CountVectorizer, TfidfVectorizer, TokenVectorizer])
@pytest.mark.parametrize("parameters", CHARACTERS, ids=str)
@settings(max_examples=40)
@given(text=st.text(alphabet=AWKWARD, max_size=25) | st.text(max_size=20))
@example(text="So  good,\n\t\tso  good ")
@example(text="Le CAFÉ du cafe\u0301 ﬁne ½½ İstanbul ΟΔΟΣ")
@example(text="")
def test_places_hold_the_characters_that_the_vectorizer_counts(kind, parameters, text):
    vectorizer = kind(**parameters)
    assert CharacterSpanFinder.reads(vectorizer)
    spans = CharacterSpanFinder(vectorizer).find(text)
    assert spans is not None
    assert sorted(spans.terms) == sorted(vectorizer.build_analyzer()(text))
    preprocess = vectorizer.build_preprocessor()
    sigmas = str.maketrans("ς", "σ")
    assert set(spans.lengths.tolist()) <= {0}
    for (start, stop), term in zip(spans.words.tolist(), spans.terms, strict=True):
        assert 0 <= start < stop <= len(text)
        place = re.sub(r"\s\s+", " ", preprocess(text[start:stop])).translate(sigmas)
        own = term.translate(sigmas)
        if parameters["analyzer"] == "char_wb":  # spaces around a word are not in the text
            assert not re.search(r"\s", place)
            own = own.strip(" ")
        assert own in place


def test_characters_of_an_analyzer_of_ones_own_have_no_places():
    class Reversed(CountVectorizer):
        def build_analyzer(self):
            return lambda text: text[::-1]

    assert not CharacterSpanFinder.reads(Reversed(analyzer="char"))
    doubled = CountVectorizer(analyzer="char", preprocessor=lambda text: text + "!")
    assert CharacterSpanFinder(doubled).find("so good") is None

    class Fewer(CountVectorizer):
        def _char_ngrams(self, text):
            return list(text)[1:]

    assert CharacterSpanFinder(Fewer(analyzer="char")).find("so good") is None
