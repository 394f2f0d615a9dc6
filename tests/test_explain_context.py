"""Words in context are explained where they stand: exactly, occurrence by occurrence."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MaxAbsScaler

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import ModelReport, explain
from sklearn_clsattn.inspection.pieces import cut
from sklearn_clsattn.inspection.trace import trace
from sklearn_clsattn.inspection.view import view
from sklearn_clsattn.text import ContextVectorizer, make_text_classifier

TEXTS, LABELS = make_token_classification(
    80, n_relevant_per_class=6, n_irrelevant=40, document_length=8, as_text=True, random_state=0
)
WORDS = sorted({word for text in TEXTS[:8] for word in text.split()})
MODEL = make_text_classifier().fit(TEXTS, LABELS)
BIGRAMS = make_text_classifier(ngram_range=(2, 3), characters=(1, 3), token_pattern="[a-zé]+")
MODELS = [
    MODEL,
    make_text_classifier(characters=None).fit(TEXTS, np.arange(80) % 3),
    BIGRAMS.fit([f"{text} É so so" for text in TEXTS], LABELS),
]

documents = st.lists(
    st.sampled_from([*WORDS, *map(str.upper, WORDS[:3]), "so", "É", "unseen", "İ", ",", "ΣΑΣ"]),
    max_size=14,
).map(" ".join) | st.text(alphabet="aethİßéΣ .,\n\u0307", max_size=20)


@settings(max_examples=60)
@given(documents, st.sampled_from(MODELS))
@example("", MODEL)
@example("unseen", MODEL)
@example("İ a", BIGRAMS)
@example(f"İ{WORDS[0]} İ İ {WORDS[0]}. {WORDS[0]}", MODEL)
def test_occurrences_and_pieces_add_up_to_the_decision(text, model):
    explanation = explain(model, [text])
    found = model[0].occurrences(text)
    entry = np.bincount(found.columns, found.weights, model[-1].n_features_in_)
    place = {column: at for at, column in enumerate(explanation.columns.tolist())}
    at = [place[column] for column in found.columns.tolist()]
    by_occurrence = (found.weights / entry[found.columns])[:, None] * explanation.contributions[at]
    decision = np.ravel(model.decision_function([text]))
    summed = by_occurrence.sum(axis=0) + explanation.intercept
    assert_allclose(summed, decision, rtol=0, atol=1e-10)

    (shown,) = explanation.texts[0]
    for k in range(len(explanation.targets)):
        contributions = explanation.contributions[:, k]
        pieces = cut(shown, contributions, explanation.attention)
        assert "".join(piece.text for piece in pieces) == text
        pairs = [(piece.contribution, piece.attention) for piece in pieces]
        summed = np.sum(np.reshape(pairs, (-1, 2)), axis=0)
        expected = contributions.sum(), explanation.attention.sum()
        assert_allclose(summed, expected, rtol=0, atol=1e-10)
        assert all((piece.contribution != 0) <= bool(piece.tokens) for piece in pieces)
        assert not any(piece.tokens for piece in pieces if piece.text.isspace())


@settings(max_examples=40)
@given(documents, st.sampled_from(MODELS))
def test_places_are_those_of_the_vectorizer(text, model):
    explanation = explain(model, [text])
    (shown,) = explanation.texts[0]
    found = model[0].occurrences(text)
    columns = explanation.columns[shown.occurrences[:, 2]]
    first, length = shown.occurrences[:, 0], shown.occurrences[:, 1]
    starts = shown.words[first, 0]
    stops = shown.words[first + length.clip(min=1) - 1, 1]
    kept = {
        tuple(row[:3]): row[3]
        for row in zip(columns.tolist(), starts.tolist(), stops.tolist(), shown.shares, strict=True)
    }
    rows = zip(found.columns.tolist(), found.starts.tolist(), found.stops.tolist(), strict=True)
    entry = np.bincount(found.columns, found.weights, model[-1].n_features_in_)
    assert len(columns) == len(found.columns)
    for row, weight in zip(rows, found.weights, strict=True):
        assert row in kept
        if text.isascii():  # else the two letters of one may be an n-gram each, at one place
            assert_allclose(kept[row], weight / entry[row[0]])


def test_pieces_are_those_of_a_loop_over_characters():
    text = f"{WORDS[0]}, {WORDS[1]} {WORDS[0]} {WORDS[2]}."
    explanation = explain(MODEL, [text])
    (shown,) = explanation.texts[0]
    added = np.zeros(len(text))
    for (first, length, token), share in zip(shown.occurrences, shown.shares, strict=True):
        for word in range(first, first + max(length, 1)):
            start, stop = shown.words[word]
            for at in range(start, stop):
                amount = explanation.contributions[token, 0] * share
                added[at] += amount / max(length, 1) / (stop - start)
    pieces = cut(shown, explanation.contributions[:, 0], explanation.attention)
    assert [piece.text for piece in pieces] == re.findall(r"\w+|\W", text)
    start = 0
    for piece in pieces:
        stop = start + len(piece.text)
        assert_allclose(piece.contribution, added[start:stop].sum(), rtol=0, atol=1e-12)
        start = stop


def test_the_same_word_is_shared_by_what_it_counts_where_it_stands():
    word = WORDS[0]
    filler = [other for other in WORDS[1:] if other != word]
    model = make_text_classifier(characters=None, ngram_range=(1, 1)).fit(TEXTS, LABELS)
    # Gates as of labels for which the start of a text matters most.
    model[0].start_scores_[:] = np.linspace(2.0, -2.0, 10)
    model[0].previous_word_scores_[:] = 0.0
    text = " ".join([word, *filler[:6], word])
    explanation = explain(model, [text])
    (shown,) = explanation.texts[0]
    of_word = shown.occurrences[:, 2] == explanation.tokens.tolist().index(word)
    first, last = shown.shares[of_word]
    assert first > 2 * last
    assert_allclose(first + last, 1.0)
    pieces = cut(shown, explanation.contributions[:, 0], explanation.attention)
    parts = [piece for piece in pieces if piece.text == word]
    assert_allclose(parts[0].contribution / parts[1].contribution, first / last)
    assert_allclose(parts[0].attention / parts[1].attention, first / last)
    assert "here" in explanation.to_html()


def test_words_counted_without_weights_share_equally():
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(TEXTS, LABELS)
    (shown,) = explain(model, [" ".join([WORDS[0]] * 3)]).texts[0]
    assert_allclose(shown.shares, 1 / 3)


SHAPES = {
    "scaled": [ContextVectorizer(), MaxAbsScaler()],
    "selected": [ContextVectorizer(), SelectKBest(chi2, k=60)],
    "union": [make_union(ContextVectorizer(), CountVectorizer(ngram_range=(1, 2)))],
    "twice": [make_union(ContextVectorizer(characters=None), ContextVectorizer(context=False))],
    "table": [make_column_transformer((ContextVectorizer(), "text"), (MaxAbsScaler(), ["stars"]))],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_pipelines(shape):
    table = pd.DataFrame({"text": TEXTS, "stars": np.arange(80) % 5})
    given_documents = table if shape == "table" else TEXTS
    model = make_pipeline(*SHAPES[shape], ClsAttentionClassifier()).fit(given_documents, LABELS)
    explanation = explain(model, given_documents[:3])
    decision = model.decision_function(given_documents[:3])
    assert_allclose(explanation.decision_terms()[:, 0] + explanation.intercept[0], decision)
    names = model[:-1].get_feature_names_out()[explanation.columns]
    same = [name.rpartition("__")[2] for name in explanation.tokens]
    assert same == [name.rpartition("__")[2] for name in names]
    for one in explanation:
        (shown,) = one.texts[0]
        in_text = [name.rpartition("__")[2] != "stars" for name in one.tokens]
        assert_array_equal(np.unique(shown.occurrences[:, 2]), np.flatnonzero(in_text))
        assert_allclose(np.bincount(shown.occurrences[:, 2], shown.shares), np.ones(sum(in_text)))
        pieces = cut(shown, one.contributions[:, 0], one.attention)
        total = sum(piece.contribution for piece in pieces)
        assert_allclose(total, one.contributions[in_text, 0].sum(), rtol=0, atol=1e-10)


def test_names_follow_a_vectorizer_that_is_fitted_again():
    vectorizer = ContextVectorizer(context=False)
    model = make_pipeline(vectorizer, ClsAttentionClassifier()).fit(TEXTS, LABELS)
    before = trace(model).columns.names
    assert trace(model).columns.names is before
    model.fit(TEXTS[:40], LABELS[:40])
    assert_array_equal(trace(model).columns.names, vectorizer.get_feature_names_out())


def test_characters_are_listed_by_the_word_they_are_in():
    text = f"{WORDS[0]}, {WORDS[1]} {WORDS[0].upper()}"
    explanation = explain(MODEL, [text])
    one = view(explanation, None, 100)
    inside = [token for token in one.terms if token.prefix == "characters"]
    assert [token.term for token in inside] == [WORDS[0], WORDS[1]]
    of_characters = [token for token in one.tokens if token.is_characters]
    assert len(of_characters) + len(one.terms) - 2 == len(one.tokens)
    for number in ("contribution", "attention", "count"):
        sums = [sum(getattr(token, number) for token in some) for some in (inside, of_characters)]
        assert_allclose(*sums)
    terms = one.plus.total + one.minus.total + one.start
    assert_allclose(terms, one.end, rtol=0, atol=1e-10)
    said = explanation.to_text(color=False, width=100, top=100)
    assert f"{WORDS[0]} (characters)" in said
    assert "char:" not in said
    page = explanation.to_html(top=100)
    assert "character n-grams" in page
    assert "char:" not in page


def test_character_ngrams_without_places_are_shown_as_such():
    explanation = explain(MODEL, [f"{WORDS[0]}"], places=False)
    assert f"char: ␣{WORDS[0][:2]}" in explanation.to_html()


def test_top_leaves_the_same_decision():
    explanation = explain(MODEL, TEXTS[:3], top=10)
    for one in explanation:
        (shown,) = one.texts[0]
        assert_array_equal(shown.shares[shown.occurrences[:, 2] < 0], 0.0)
        pieces = cut(shown, one.contributions[:, 0], one.attention)
        total = sum(piece.contribution for piece in pieces)
        assert_allclose(total, one.contributions.sum(), rtol=0, atol=1e-10)
        one.to_html()


@pytest.mark.parametrize("document", [b"bytes", None, 3])
def test_documents_that_are_no_texts(document):
    with pytest.raises(ValueError, match="expected texts, but document 1"):
        explain(MODEL, ["a text", document])


def test_metrics_of_its_columns():
    from sklearn_clsattn.metrics import comprehensiveness

    X = MODEL[:-1].transform(TEXTS[:10])
    explanation = explain(MODEL, TEXTS[:10], places=False)
    scores = X.copy()
    scores.data = explanation.contributions[:, 0]
    assert np.isfinite(comprehensiveness(MODEL[-1], X, scores)).all()


def test_displays():
    with warnings.catch_warnings():  # of matplotlib and pyparsing about each other
        warnings.simplefilter("ignore", DeprecationWarning)
        plt = pytest.importorskip("matplotlib.pyplot")
        pytest.importorskip("matplotlib.mathtext")

    from sklearn_clsattn.inspection import (
        AttentionDisplay,
        SelectionDisplay,
        TokenImportanceDisplay,
    )

    AttentionDisplay.from_estimator(MODEL, TEXTS[0])
    SelectionDisplay.from_estimator(MODEL, TEXTS[:20])
    TokenImportanceDisplay.from_estimator(MODEL, TEXTS, LABELS, kind="bars")
    plt.close("all")


def test_a_report():
    report = ModelReport.from_estimator(MODEL, TEXTS[:40], LABELS[:40])
    assert "char:" in report.to_html()
    report.to_text()
