"""Every shape of Pipeline: explained exactly, or refused by a sentence that says what to pass."""

import numpy as np
import pandas as pd
import pytest
from helpers import network, refused, sums_of_documents
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
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    Normalizer,
    OneHotEncoder,
)

from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import TokenImportanceDisplay, explain, label_issues
from sklearn_clsattn.text import ContextVectorizer, TokenVectorizer

TEXTS, y = make_token_classification(
    120, n_irrelevant=30, document_length=8, as_text=True, random_state=0
)
TEXTS = np.array(TEXTS, dtype=object)
y[::4] = 1 - y[::4]  # so that no class is certain
LABELS = np.array(["bad", "good"])[y]
TABLE = pd.DataFrame(
    {"title": [text[:20] for text in TEXTS], "body": TEXTS, "stars": np.arange(120) % 5}
)


def second_half(texts):
    return [text[len(text) // 2 :] for text in texts]


def titles(table):
    return table["title"]


def importance(**parameters):
    return TokenImportanceTransformer(scale=False, **parameters)


SHAPES = {
    "tfidf transformer": [CountVectorizer(), TfidfTransformer()],
    "scalers": [CountVectorizer(), MaxAbsScaler(), Normalizer(), Binarizer(threshold=0.01)],
    "context selected": [ContextVectorizer(dtype=np.float64), SelectKBest(chi2, k=60)],
    "context union": [
        make_union(ContextVectorizer(dtype=np.float64), CountVectorizer(ngram_range=(1, 2)))
    ],
    "text before": [FunctionTransformer(second_half), CountVectorizer()],
    "union with selectors": [
        make_union(
            make_pipeline(CountVectorizer(), importance(k=12)),
            make_pipeline(TfidfVectorizer(ngram_range=(2, 2)), SelectKBest(chi2, k=9)),
        ),
        MaxAbsScaler(),
    ],
    "union after": [
        CountVectorizer(),
        FeatureUnion(
            [("a", MaxAbsScaler()), ("b", "passthrough"), ("c", "drop")],
            transformer_weights={"a": 2.0},
        ),
    ],
    "columns after": [
        CountVectorizer(),
        make_column_transformer((MaxAbsScaler(), slice(5, 9)), ("passthrough", [0, 2, 11])),
        Normalizer(),
    ],
}
TABLE_SHAPES = {
    "two columns": [
        make_column_transformer((CountVectorizer(), "title"), (TfidfVectorizer(), "body")),
        MaxAbsScaler(),
    ],
    "by number": [
        make_column_transformer(
            (make_pipeline(CountVectorizer(), importance(k=10)), 1), ("drop", [0])
        )
    ],
    "with numbers": [
        make_column_transformer(
            (CountVectorizer(), "body"),
            (MaxAbsScaler(), ["stars"]),
            (OneHotEncoder(), ["stars"]),
            (Normalizer(), []),
        )
    ],
    "remainder": [
        make_column_transformer(
            (CountVectorizer(), "title"), ("drop", "body"), remainder="passthrough"
        )
    ],
    "item selectors": [
        make_union(
            make_pipeline(FunctionTransformer(titles), CountVectorizer()),
            make_column_transformer((CountVectorizer(), "body")),
        )
    ],
}


def fit(steps, documents):
    classifier = ClsAttentionClassifier(sublinear_counts=False)
    return make_pipeline(*steps, classifier).fit(documents, LABELS)


def written(text, first, length):
    """Return the words that stand where a token is said to."""
    spans = text.words[first : first + max(length, 1)].tolist()
    return " ".join(text.text[start:stop] for start, stop in spans).lower()


@pytest.mark.parametrize("shape", [*SHAPES, *TABLE_SHAPES])
def test_tokens_are_those_of_the_steps_and_stand_where_they_are_said_to(shape):
    documents = TEXTS if shape in SHAPES else TABLE
    model = fit((SHAPES | TABLE_SHAPES)[shape], documents)
    explanation = explain(model, documents[:20])
    assert_allclose(
        (sums_of_documents(explanation, explanation.contributions) + explanation.intercept)[:, 0],
        model.decision_function(documents[:20]),
        rtol=1e-10,
        atol=1e-10,
    )
    X = model[:-1].transform(documents[:20])
    rows = np.repeat(np.arange(20), np.diff(explanation.indptr))
    if "context" not in shape:  # of words with characters, columns are no columns of X
        entries = np.asarray(X.tocsr()[rows, explanation.columns]).ravel()
        assert_array_equal(entries, explanation.weights)
        tokens = [name.rpartition("__")[2] for name in explanation.tokens]
        try:
            names = model[:-1].get_feature_names_out()[explanation.columns]
        except (AttributeError, ValueError):  # a step has no names of its own
            names = explanation.tokens
        assert tokens == [name.rpartition("__")[2] for name in names]
    for one in explanation[:10]:
        n_placed = set()
        for text in one.texts[0]:
            row = TABLE.iloc[one.index[0]]
            expected = {*row[["title", "body"]], second_half([row["body"]])[0]}
            assert text.text in expected
            for first, length, token in text.occurrences.tolist():
                name = one.tokens[token].rpartition("__")[2].rpartition(": ")[2].strip()
                assert written(text, first, length) == name
            n_placed |= set(text.occurrences[:, 2].tolist())
            shares = np.bincount(text.occurrences[:, 2], text.shares)
            assert_allclose(shares[shares > 0], 1.0)
        with_text = [token.rpartition("__")[2][:5] != "stars" for token in one.tokens]
        assert len(n_placed) == sum(with_text)
        one.to_html()


def test_where_a_step_leaves_no_column_of_words_with_characters():
    union = make_union(ContextVectorizer(), TokenVectorizer())
    last = SelectKBest(lambda X, _: np.arange(X.shape[1], dtype=float), k=3)
    tokens = explain(fit([union, last], TEXTS), TEXTS).tokens
    assert {name.partition("__")[0] for name in tokens} == {"tokenvectorizer"}


def test_searches_and_pipelines_within():
    inner = make_pipeline(MaxAbsScaler(), ClsAttentionClassifier())
    search = GridSearchCV(inner, {"clsattentionclassifier__C": [1.0]}, cv=2)
    model = make_pipeline(CountVectorizer(), search).fit(TEXTS, LABELS)
    explanation = explain(model, TEXTS)
    assert_array_equal(explanation.decision[:, 0], model.decision_function(TEXTS))
    assert len(explanation.texts[0]) == 1


def test_matrices_and_dictionaries_have_names_and_no_text():
    X = CountVectorizer().fit_transform(TEXTS)
    model = fit([MaxAbsScaler(), importance(k=5)], X)
    explanation = explain(model, X)
    kept = model[1].get_support(indices=True)
    assert {int(name[1:]) for name in explanation.tokens} <= set(kept.tolist())
    assert explanation.texts[0] == ()
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


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (TruncatedSVD(3), r"TruncatedSVD \(step 'truncatedsvd'\).*each of them mixes several"),
        (FunctionTransformer(abs), 'feature_names_out="one-to-one"'),
    ],
    ids=["svd", "function"],
)
def test_what_cannot_be_traced_is_said(step, message):
    model = fit([CountVectorizer(), step, Binarizer()], TEXTS)
    with pytest.raises(ValueError, match=message) as caught:
        explain(model, TEXTS)
    assert "pipeline[-1]" in str(caught.value)
    # What the message proposes works.
    matrix = model[:-1].transform(TEXTS)
    assert_array_equal(explain(model[-1], matrix).decision[:, 0], model.decision_function(TEXTS))


@pytest.mark.parametrize("n_features", [8, 2**18])
def test_hashed_columns_are_named_after_the_tokens_of_the_texts(n_features):
    hashing = HashingVectorizer(n_features=n_features, alternate_sign=False, norm=None)
    model = fit([make_union(CountVectorizer(), hashing)], TEXTS)
    explanation = explain(model, TEXTS)
    analyze = CountVectorizer().build_analyzer()
    for one, text in zip(explanation, TEXTS, strict=True):
        names = [name.partition("__")[2] for name in one.tokens if name.startswith("hashing")]
        tokens = [token for name in names for token in name.split(" / ")]
        assert set(analyze(text)) <= set(tokens)
        # All occurrences of the tokens of a column have its contribution together.
        placed = np.unique(one.texts[0][0].occurrences[:, 2])
        assert len(placed) == len(one.tokens)
    assert len(names) == len(set(names)) > (0 if n_features == 8 else 3)


def test_tokens_that_cannot_be_placed_are_shown_beside_the_text():
    own = CountVectorizer(analyzer=str.split)
    explanation = explain(fit([make_union(CountVectorizer(), own)], TEXTS), TEXTS[:1])
    assert "Tokens without a position in the text" in explanation.to_html()
    alone = explain(fit([own], TEXTS), TEXTS[:1])
    assert alone.texts[0][0].words is None
    assert alone.texts[0][0].text == TEXTS[0]
    assert "whose positions in the text are unknown" in alone.to_html()


@pytest.mark.parametrize(
    "wrapper", [CalibratedClassifierCV, TunedThresholdClassifierCV], ids=lambda kind: kind.__name__
)
def test_wrappers_are_refused_by_what_they_have_fitted(wrapper):
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifier())
    wrapped = wrapper(model, cv=2).fit(TEXTS, LABELS)
    for reads in (
        lambda: explain(wrapped, TEXTS),
        lambda: label_issues(wrapped, TEXTS, LABELS),
        lambda: TokenImportanceDisplay.from_estimator(wrapped, TEXTS, LABELS),
    ):
        refused(f"got {wrapper.__name__}: if it contains", reads, error=TypeError)


def test_frozen_parts_are_seen_through():
    model = fit([CountVectorizer()], TEXTS)
    expected = explain(model, TEXTS)
    for frozen in (
        FrozenEstimator(model),
        make_pipeline(FrozenEstimator(model[0]), FrozenEstimator(model[1])),
        make_pipeline(FrozenEstimator(make_pipeline(model[0])), model[1]),
    ):
        explanation = explain(frozen, TEXTS)
        assert_array_equal(explanation.contributions, expected.contributions)
        assert_array_equal(explanation.tokens, expected.tokens)
        assert explanation.texts[0][0].text == TEXTS[0]


def test_an_mlp_says_what_is_no_sum():
    counter = CountVectorizer().fit(TEXTS)
    mlp = network(counter.transform(TEXTS), LABELS, mlp=True)
    refused("not a sum over tokens", explain, make_pipeline(counter, mlp), TEXTS)
