"""Tokens are found where they stand, or not at all, and share what they add among their places."""

import re

import numpy as np
import pytest
from helpers import generated_texts
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.inspection.token_positions import LocatedText, Occurrence, cut, read_terms
from sklearn_clsattn.text import TokenVectorizer

# Characters whose lower case or accent-free form has another length, or depends on others.
AWKWARD = "aBé İıßẞΣσςΑﬁŉǰ½①Ǆ한가각\u0301\u0327\u200d\u00ad日本語😀_-'’.!\n\t\r\u2028אבІ"
WORD_PARAMETERS = [
    {},
    {"lowercase": False},
    {"strip_accents": "unicode"},
    {"strip_accents": "ascii"},
    {"ngram_range": (1, 3)},
    {"ngram_range": (2, 2), "stop_words": ["the", "a", "ab"]},
    {"token_pattern": r"\S+", "strip_accents": "unicode"},
    {"token_pattern": r"#(\w+)"},
    {"token_pattern": r"(?i)[a-z]"},
]


def words_of(vectorizer, text):
    """Return the words that a vectorizer finds in a text, as they stand there."""
    words, *_ = read_terms(vectorizer, text)
    return [text[start:stop] for start, stop in words]


@pytest.mark.parametrize("kind", [CountVectorizer, TfidfVectorizer, TokenVectorizer])
@pytest.mark.parametrize("parameters", WORD_PARAMETERS, ids=str)
@settings(max_examples=30)
@given(text=st.text(alphabet=AWKWARD, max_size=40) | st.text(max_size=30))
@example(text="Le CAFÉ du cafe\u0301 était fermé: the café, a #tag")
@example(text="ΟΔΟΣ ΣΑΣ ﬁne ½½ İstanbul")
@example(text="So  good,\n\t\tso  good ")
@example(text="")
def test_positions_hold_the_tokens_that_the_vectorizer_counts(kind, parameters, text):
    vectorizer = kind(**parameters)
    words, terms, _ = read_terms(vectorizer, text)
    assert sorted(term.name for term in terms) == sorted(vectorizer.build_analyzer()(text))
    sigmas = str.maketrans("ς", "σ")
    preprocess = vectorizer.build_preprocessor()
    for name, first_word, n_words, _ in terms:
        spans = words[first_word : first_word + n_words]
        parts = name.split(" ") if n_words > 1 else [name]
        assert len(parts) == len(spans)
        for (start, stop), part in zip(spans, parts, strict=True):
            assert 0 <= start < stop <= len(text)
            # The span holds the token; a ligature that was cut in two is shown whole.
            there = preprocess(text[start:stop]).translate(sigmas)
            assert part.translate(sigmas) in there


@pytest.mark.parametrize("analyzer", ["char", "char_wb"])
@pytest.mark.parametrize("n", [(1, 1), (2, 5), (3, 4)])
@settings(max_examples=30)
@given(text=st.text(alphabet=AWKWARD, max_size=40) | st.text("ab  ", max_size=20))
@example(text="I see:  a leaning\nlemon tree")
@example(text="")
def test_characters_stand_in_the_words_that_have_them(analyzer, n, text):
    vectorizer = CountVectorizer(analyzer=analyzer, ngram_range=n)
    words, terms, _ = read_terms(vectorizer, text)
    counted = [name for name in vectorizer.build_analyzer()(text) if name.strip()]
    written = [term.name for term in terms]
    assert sorted(name for name in written if len(name) >= n[0]) == sorted(
        name for name in counted if len(name) >= n[0]
    )
    for name, first, n_words, _ in terms:
        there = [vectorizer.build_preprocessor()(text[slice(*span)]) for span in words]
        around = " ".join(" ".join(there[first : first + n_words]).split())
        assert " ".join(name.split()) in around
        assert n_words == len(name.split())


def test_marks_and_ligatures_belong_to_their_letters():
    strips = CountVectorizer(strip_accents="unicode")
    assert words_of(strips, "un cafe\u0301 ferme\u0301") == ["un", "cafe\u0301", "ferme\u0301"]
    assert words_of(strips, "oﬃce ½ cup") == ["oﬃce", "cup"]
    digits = CountVectorizer(strip_accents="unicode", token_pattern=r"\d")
    assert words_of(digits, "oﬃce ½ cup") == ["½", "½"]
    reaches = CountVectorizer(ngram_range=(2, 2), stop_words=["the"])
    _, terms, _ = read_terms(reaches, "Not the best film")
    assert [term.name for term in terms] == ["not best", "best film"]
    assert words_of(reaches, "Not the best film") == ["Not", "best", "film"]


class Backwards(CountVectorizer):
    """A vectorizer that reads words from right to left."""

    def build_tokenizer(self):
        return lambda text: [word[::-1] for word in text.split()]


def test_no_positions_are_better_than_wrong_ones():
    for vectorizer in [
        CountVectorizer(tokenizer=str.split, token_pattern=None),
        CountVectorizer(analyzer=str.split),
        CountVectorizer(preprocessor=lambda text: re.sub("<[^>]*>", "", text)),
        CountVectorizer(strip_accents=lambda text: text.replace("so", "very")),
        CountVectorizer(token_pattern=r"\w*"),
        Backwards(),
    ]:
        assert read_terms(vectorizer, "<b>so</b> good, so good") == ((), [], ())


# Words in context.

TEXTS, LABELS = generated_texts(
    80, n_relevant_per_class=6, n_irrelevant=40, document_length=8, random_state=0
)
WORDS = sorted({word for text in TEXTS[:8] for word in re.findall(r"\w+", text)})
MODEL = TextClassifier().fit(TEXTS, LABELS)
BIGRAMS = TextClassifier(
    ngram_range=(2, 3), characters=(1, 3), tokenizer=re.compile("[a-zé]+").findall
)
MODELS = [
    MODEL,
    TextClassifier(characters=None).fit(TEXTS, np.arange(80) % 3),
    BIGRAMS.fit([f"{text} É so so" for text in TEXTS], LABELS),
]

documents = st.lists(
    st.sampled_from([*WORDS, *map(str.upper, WORDS[:3]), "so", "É", "unseen", "İ", ",", "ΣΑΣ"])
    | st.sampled_from(" ".join(TEXTS[:8]).split()),  # with signs
    max_size=14,
).map(" ".join) | st.text(alphabet="aethİßéΣ .,\n\u0307", max_size=20)


@settings(max_examples=60)
@given(documents, st.sampled_from(MODELS))
@example("", MODEL)
@example("unseen", MODEL)
@example("İ a", BIGRAMS)
@example(f"İ{WORDS[0]} İ İ {WORDS[0]}. {WORDS[0]}", MODEL)
def test_occurrences_and_segments_add_up_to_the_decision(text, model):
    explanation = explain(model, [text])
    found = model.vectorizer_.occurrences(text)
    number = {token: at for at, token in enumerate(explanation.tokens.tolist())}
    at = np.array([number[term] for term in found.terms.tolist()], dtype=int)
    share = found.weights / np.bincount(at, found.weights, len(number))[at]
    by_occurrence = share[:, None] * explanation.contributions[at]
    decision = np.ravel(model.decision_function([text]))
    summed = by_occurrence.sum(axis=0) + explanation.intercept
    assert_allclose(summed, decision, rtol=0, atol=1e-10)

    located = explanation.located_text
    for k in range(len(explanation.targets)):
        contributions = explanation.contributions[:, k]
        segments = cut(located, contributions, explanation.attention)
        assert "".join(segment.text for segment in segments) == text
        pairs = [(segment.contribution, segment.attention) for segment in segments]
        summed = np.sum(np.reshape(pairs, (-1, 2)), axis=0)
        expected = contributions.sum(), explanation.attention.sum()
        assert_allclose(summed, expected, rtol=0, atol=1e-10)
        assert all((segment.contribution != 0) <= bool(segment.tokens) for segment in segments)
        assert not any(segment.tokens for segment in segments if segment.text.isspace())

    # The positions are those of the vectorizer.
    kept = {}
    for token, first_word, n_words, token_share in located.occurrences:
        start, _ = located.words[first_word]
        _, stop = located.words[first_word + n_words - 1]
        kept[explanation.tokens[token], start, stop] = token_share
    rows = zip(found.terms.tolist(), found.starts.tolist(), found.stops.tolist(), strict=True)
    assert len(located.occurrences) == len(found.terms)
    for row, expected in zip(rows, share, strict=True):
        assert row in kept
        if text.isascii():  # else the two letters of one may be a word each, at one place
            assert_allclose(kept[row], expected)


def test_a_word_is_one_row_with_its_characters():
    known, unknown = WORDS[0], WORDS[0] + "er"
    explanation = explain(MODEL, [f"{known}, {unknown} {known.upper()}"])
    frame = explanation.to_frame().set_index("token")
    assert {known, unknown, ","} <= set(frame.index)
    assert np.isnan(frame.loc[unknown, "own_contribution"])
    assert frame.loc[unknown, "contribution"] != 0
    assert 0 < abs(frame.loc[known, "own_contribution"]) < abs(frame.loc[known, "contribution"])
    assert_allclose(frame["contribution"].sum(), explanation.decision[0, 0], rtol=1e-12)
    # The word's own part is the attention of its own column times that column's value.
    X = MODEL.vectorizer_.transform([f"{known}, {unknown} {known.upper()}"])
    column = MODEL.vectorizer_.vocabulary_[known]
    own = MODEL.classifier_.contributions(X)[0, column]
    assert_allclose(frame.loc[known, "own_contribution"], own, rtol=1e-6)
    said = explanation.to_text(color=False, width=100, top=100)
    assert f"{unknown} (unknown word, scored by its letters)" in said
    page = explanation.to_html(top=100)
    assert "of it by its characters" in page
    assert "char:" not in said + page
    assert explanation.to_dict()["documents"][0]["tokens"]


def test_the_words_of_overlapping_ngrams_share_what_these_add():
    words = ((0, 3), (4, 6), (7, 11))
    occurrences = (
        Occurrence(0, first_word=0, n_words=2, share=1.0),
        Occurrence(1, first_word=1, n_words=2, share=1.0),
        Occurrence(2, first_word=2, n_words=1, share=1.0),
    )
    located = LocatedText("not so good", words, occurrences)
    segments = cut(located, np.array([-1.0, 2.0, 0.5]), np.full(3, 0.2))
    assert [segment.text for segment in segments] == ["not", " ", "so", " ", "good"]
    assert [segment.tokens for segment in segments] == [(0,), (), (0, 1), (), (1, 2)]
    assert [segment.contribution for segment in segments] == [-0.5, 0.0, 0.5, 0.0, 1.5]
    unplaced = LocatedText("not so good")
    assert [segment.text for segment in cut(unplaced, np.zeros(0), np.zeros(0))] == ["not so good"]
