"""Pipelines are explained exactly, by the names of their columns, and where words stand."""

import pickle
import tracemalloc
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from helpers import generated_texts, network, refused, sums_of_documents
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import Binarizer, FunctionTransformer, MaxAbsScaler, Normalizer

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier, TokenImportanceTransformer
from sklearn_clsattn.inspection import explain, label_issues
from sklearn_clsattn.text import ContextVectorizer, TokenVectorizer

TEXTS, y = generated_texts(120, n_irrelevant=30, document_length=8, random_state=0)
TEXTS = np.array(TEXTS, dtype=object)
y[::4] = 1 - y[::4]  # so that no class is certain
LABELS = np.array(["bad", "good"])[y]
TABLE = pd.DataFrame(
    {"title": [text[:20] for text in TEXTS], "body": TEXTS, "stars": np.arange(120) % 5}
)


def second_half(texts):
    return [text[len(text) // 2 :] for text in texts]


# A vectorizer and steps that keep or select its columns: words are found in the texts.
FOLLOWED = {
    "tfidf transformer": [CountVectorizer(), TfidfTransformer()],
    "scalers": [TokenVectorizer(), MaxAbsScaler(), Normalizer(), Binarizer(threshold=0.01)],
    "pairs selected": [TfidfVectorizer(ngram_range=(1, 2)), SelectKBest(chi2, k=30)],
    "important": [CountVectorizer(), TokenImportanceTransformer(k=12, scale=False)],
    "context selected": [ContextVectorizer(dtype=np.float64), SelectKBest(chi2, k=60)],
}
# Others have the names that scikit-learn's steps give, or numbers, and no positions.
NAMED = {
    "union": ([make_union(CountVectorizer(), TfidfVectorizer(analyzer="char"))], TEXTS),
    "two columns": (
        [
            make_column_transformer(
                (CountVectorizer(), "title"),
                (CountVectorizer(), "body"),
                (MaxAbsScaler(), ["stars"]),
            )
        ],
        TABLE,
    ),
    "text before": ([FunctionTransformer(second_half), CountVectorizer()], TEXTS),
    "own words": ([CountVectorizer(analyzer=str.split)], TEXTS),
}
NUMBERED = {
    "hashing": [HashingVectorizer(n_features=32, alternate_sign=False), MaxAbsScaler()],
    "function": [CountVectorizer(), FunctionTransformer(abs)],
}


def fit(steps, documents):
    return make_pipeline(*steps, ClsAttentionClassifier(C=1.0)).fit(documents, LABELS)


def assert_explained(model, documents):
    """Require the explanation to add up to the decisions, and to be shown; return it."""
    explanation = explain(model, documents)
    sums = sums_of_documents(explanation, explanation.contributions) + explanation.intercept
    decision = model.decision_function(documents)
    assert_allclose(sums[:, 0], decision, rtol=1e-10, atol=1e-10)
    assert explanation[:2].to_text()
    assert explanation[:2].to_html()
    return explanation


@pytest.mark.parametrize("shape", FOLLOWED)
def test_words_stand_where_they_are_said_to(shape):
    model = fit(FOLLOWED[shape], TEXTS)
    explanation = assert_explained(model, TEXTS[:20])
    assert set(explanation.tokens) <= set(model[:-1].get_feature_names_out())
    X = model[:-1].transform(TEXTS[:20])
    for i, one in enumerate(explanation):
        assert_allclose(np.sort(one.weights), np.sort(X[[i]].data))
        located = one.located_text
        assert located.text == TEXTS[i]
        shares = np.zeros(len(one.tokens))
        for token, first_word, n_words, share in located.occurrences:
            spans = located.words[first_word : first_word + n_words]
            there = " ".join(located.text[start:stop] for start, stop in spans)
            assert there.lower() == one.tokens[token]
            shares[token] += share
        is_word = np.array([not name.startswith("char:") for name in one.tokens])
        assert_allclose(shares, is_word)


@pytest.mark.parametrize("shape", NAMED)
def test_other_steps_have_their_own_names(shape):
    steps, documents = NAMED[shape]
    model = fit(steps, documents)
    explanation = assert_explained(model, documents[:20])
    last = model[-2]
    assert set(explanation.tokens) <= set(last.get_feature_names_out())
    assert (explanation.texts is None) == (documents is TABLE)
    if explanation.texts is not None:
        assert explanation.texts == tuple(documents[:20])
        assert not explanation[0].located_text.occurrences
        assert "whose positions in the text are unknown" in explanation[0].to_html()
        assert "without" not in explanation[0].to_text()


@pytest.mark.parametrize("shape", NUMBERED)
def test_columns_without_names_have_numbers(shape):
    explanation = assert_explained(fit(NUMBERED[shape], TEXTS), TEXTS[:20])
    assert all(name[0] == "x" and name[1:].isdigit() for name in explanation.tokens)


def test_mixed_columns_have_names_of_their_own():
    mixed = [CountVectorizer(), TruncatedSVD(3, random_state=0), FunctionTransformer(np.abs)]
    explanation = assert_explained(fit([*mixed, Binarizer(threshold=0.01)], TEXTS), TEXTS[:20])
    assert set(explanation.tokens) <= {"x0", "x1", "x2"}


def test_matrices_and_dictionaries_have_names_and_no_text():
    X = CountVectorizer().fit_transform(TEXTS)
    model = fit([MaxAbsScaler(), TokenImportanceTransformer(k=5, scale=False)], X)
    explanation = explain(model, X)
    kept = model[1].get_support(indices=True)
    assert {int(name[1:]) for name in explanation.tokens} <= set(kept.tolist())
    assert explanation.texts is None
    dictionaries = [{word: text.count(word) for word in text.split()} for text in TEXTS]
    explanation = explain(fit([DictVectorizer()], dictionaries), dictionaries)
    assert set(explanation[0].tokens) == set(TEXTS[0].split())


def test_names_of_frames_are_followed():
    counter = CountVectorizer().fit(TEXTS)
    names = counter.get_feature_names_out()
    frame = pd.DataFrame(counter.transform(TEXTS).toarray(), columns=names)
    selector = SelectKBest(chi2, k=7).set_output(transform="pandas")
    model = make_pipeline(selector, ClsAttentionClassifier()).fit(frame, LABELS)
    explanation = explain(model, frame)
    assert set(explanation.tokens) <= set(model[0].get_feature_names_out())
    assert_array_equal(explanation.decision[:, 0], model.decision_function(frame))


SEARCHES = {
    "step": make_pipeline(
        CountVectorizer(),
        "passthrough",
        GridSearchCV(
            make_pipeline(MaxAbsScaler(), ClsAttentionClassifier()),
            {"clsattentionclassifier__C": [1.0]},
            cv=2,
        ),
    ),
    "text classifier": GridSearchCV(TextClassifier(), {"C": [1.0]}, cv=2),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_and_frozen_estimators(name):
    model = SEARCHES[name].fit(TEXTS, LABELS)
    for estimator in (model, FrozenEstimator(model)):
        explanation = assert_explained(estimator, TEXTS[:5])
        assert explanation[0].located_text.occurrences


@pytest.mark.parametrize(
    "wrapper", [CalibratedClassifierCV, TunedThresholdClassifierCV], ids=lambda kind: kind.__name__
)
def test_labels_are_ranked_by_the_classifier_alone(wrapper):
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifier())
    wrapped = wrapper(model, cv=2).fit(TEXTS, LABELS)
    assert explain(wrapped, TEXTS[:2]).is_sum
    message = f"expected a TextClassifier or ClsAttentionClassifier, .* got {wrapper.__name__}"
    refused(message, label_issues, wrapped, TEXTS, LABELS, error=TypeError)


def test_an_mlp_is_no_sum():
    counter = CountVectorizer().fit(TEXTS)
    X = counter.transform(TEXTS)
    mlp = network(X, LABELS, mlp=True)
    refused("not a sum over tokens", explain, mlp, X, error=TypeError)
    assert not explain(make_pipeline(counter, mlp), TEXTS[:2]).is_sum


# ---- what an explanation costs -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vectorizer", "classifier"),
    [
        (CountVectorizer(), ClsAttentionClassifier(C=1.0)),
        (ContextVectorizer(min_df=1), ClsAttentionClassifier(C=1.0)),
        (ContextVectorizer(min_df=1, characters=None), ClsAttentionClassifier(C=1.0)),
        (CountVectorizer(), LogisticRegression()),
        (CountVectorizer(), BernoulliNB()),
    ],
    ids=["counts", "characters", "words in context", "logistic regression", "naive Bayes"],
)
def test_the_vocabulary_is_read_once_a_model(vectorizer, classifier):
    """An explanation of a text costs what the text costs, whatever the size of the vocabulary."""
    model = make_pipeline(vectorizer, classifier).fit(TEXTS, LABELS)
    kind = type(vectorizer)
    names = kind.get_feature_names_out
    with patch.object(kind, "get_feature_names_out", autospec=True, side_effect=names) as reads:
        for text in TEXTS[:3]:
            explain(model, [text]).to_text()
        assert reads.call_count == 1
        # A fit has another vocabulary.
        model.fit(TEXTS[:40], LABELS[:40])
        tokens = explain(model, TEXTS[:1]).tokens
        assert reads.call_count == 2
    assert set(tokens) <= set(model[0].get_feature_names_out())


@pytest.mark.parametrize(
    ("vectorizer", "classifier"),
    [
        (TokenVectorizer(), ClsAttentionClassifier(C=1.0, max_iter=1, tol=1e9)),
        (
            ContextVectorizer(min_df=1, ngram_range=(1, 1), context=False),
            ClsAttentionClassifier(C=1.0, max_iter=1, tol=1e9),
        ),
        (TokenVectorizer(), LogisticRegression()),
    ],
    ids=["counts", "characters", "logistic regression"],
)
def test_no_array_is_as_long_as_the_vocabulary(vectorizer, classifier):
    words = [f"word{number}" for number in range(30_000)]
    texts = [" ".join(words[start : start + 500]) for start in range(0, len(words), 500)]
    model = make_pipeline(vectorizer, classifier).fit(texts, np.arange(len(texts)) % 2)
    peaks = []
    for call in (explain, explain, Pipeline.predict):  # the first reads the vocabulary
        tracemalloc.start()
        call(model, ["word1 word2 word3"])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    of_first, of_explanation, of_prediction = peaks
    assert of_explanation < of_prediction + 4 * len(words)
    assert of_first > of_prediction + 4 * len(words)


def test_names_are_those_of_the_fit_and_not_pickled():
    model = fit([CountVectorizer()], TEXTS)
    size = len(pickle.dumps(model))
    first = explain(model, TEXTS[:1])
    assert len(pickle.dumps(model)) == size
    again = explain(pickle.loads(pickle.dumps(model)), TEXTS[:1])
    assert_array_equal(again.tokens, first.tokens)
