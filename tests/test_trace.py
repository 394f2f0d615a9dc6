"""Columns are followed back to the words of the documents, through every shape of Pipeline."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold, chi2
from sklearn.model_selection import GridSearchCV
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
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.inspection.trace import trace

TEXTS, LABELS = make_token_classification(
    80, n_relevant_per_class=6, n_irrelevant=40, document_length=8, as_text=True, random_state=0
)
TABLE = pd.DataFrame(
    {"title": [text[:20] for text in TEXTS], "body": TEXTS, "stars": np.arange(80) % 5}
)


def second_half(texts):
    return [text[len(text) // 2 :] for text in texts]


def titles(table):
    return table["title"]


def importance(**parameters):
    return TokenImportanceTransformer(scale=False, **parameters)


SHAPES = {
    "count": [CountVectorizer()],
    "tfidf": [TfidfVectorizer()],
    "bigrams": [CountVectorizer(ngram_range=(1, 2), binary=True)],
    "tfidf transformer": [CountVectorizer(), TfidfTransformer()],
    "scalers": [CountVectorizer(), MaxAbsScaler(), Normalizer(), Binarizer(threshold=0.01)],
    "passthrough": [CountVectorizer(), "passthrough", MaxAbsScaler()],
    "select k best": [CountVectorizer(), SelectKBest(chi2, k=15)],
    "variance": [CountVectorizer(), VarianceThreshold(0.05), MaxAbsScaler()],
    "importance": [CountVectorizer(), importance(k=20)],
    "two selectors": [CountVectorizer(), importance(k=20), SelectKBest(chi2, k=10)],
    "nested": [make_pipeline(CountVectorizer(), TfidfTransformer()), MaxAbsScaler()],
    "text before": [FunctionTransformer(second_half), CountVectorizer()],
    "function": [CountVectorizer(), FunctionTransformer(feature_names_out="one-to-one")],
    "function by name": [
        CountVectorizer(),
        FunctionTransformer(np.sqrt, feature_names_out="one-to-one"),
    ],
    "union of one": [FeatureUnion([("words", CountVectorizer())])],
    "union": [make_union(CountVectorizer(), CountVectorizer(ngram_range=(2, 2), min_df=2))],
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
        ColumnTransformer(
            [("some", MaxAbsScaler(), slice(5, 9)), ("more", "passthrough", [0, 2, 11])]
        ),
        Normalizer(),
    ],
}
TABLE_SHAPES = {
    "one column": [make_column_transformer((CountVectorizer(), "body"))],
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
        ColumnTransformer(
            [
                ("text", CountVectorizer(), "body"),
                ("many", MaxAbsScaler(), ["stars"]),
                ("kinds", OneHotEncoder(), ["stars"]),
                ("none", MaxAbsScaler(), []),
            ],
            remainder="drop",
        ),
    ],
    "remainder": [
        ColumnTransformer(
            [("title", CountVectorizer(), "title"), ("body", "drop", "body")],
            remainder="passthrough",
        )
    ],
    "union in columns": [
        make_column_transformer(
            (make_union(CountVectorizer(), CountVectorizer(ngram_range=(2, 2))), "body"),
            (MaxAbsScaler(), ["stars"]),
        ),
    ],
    "item selectors": [
        FeatureUnion(
            [
                ("title", make_pipeline(FunctionTransformer(titles), CountVectorizer())),
                ("body", make_column_transformer((CountVectorizer(), "body"))),
            ]
        )
    ],
}


def fit(steps, documents):
    return make_pipeline(*steps, ClsAttentionClassifier()).fit(documents, LABELS)


def check(model, documents):
    """Require the explanation to be the model's, with scikit-learn's names where it has any."""
    explanation = explain(model, documents)
    decision = model.decision_function(documents)
    assert_array_equal(explanation.decision[:, 0], decision)
    assert_allclose(explanation.decision_terms()[:, 0] + explanation.intercept[0], decision)
    X = model[:-1].transform(documents)
    rows = np.repeat(np.arange(len(explanation)), np.diff(explanation.indptr))
    assert_array_equal(np.asarray(X.tocsr()[rows, explanation.columns]).ravel(), explanation.counts)
    return explanation


def own_names(model):
    try:
        return model[:-1].get_feature_names_out()
    except (AttributeError, ValueError):
        return None


def written(text, first, length):
    """Return the words that stand where a token is said to."""
    places = text.words[first : first + length].tolist()
    return " ".join(text.text[start:stop] for start, stop in places).lower()


def without_prefixes(names):
    return [name.rpartition("__")[2] for name in names]


@pytest.mark.parametrize("shape", SHAPES)
def test_pipelines_of_texts(shape):
    model = fit(SHAPES[shape], TEXTS)
    explanation = check(model, TEXTS)
    names = own_names(model)
    if names is not None:
        expected = names[explanation.columns]
        assert without_prefixes(explanation.tokens) == without_prefixes(expected)
    for one in explanation[:10]:
        (text,) = one.texts[0]
        assert text.text in (TEXTS[one.index[0]], second_half(TEXTS)[one.index[0]])
        assert set(text.occurrences[:, 2]) == set(range(len(one.tokens)))
        for first, length, token in text.occurrences.tolist():
            assert written(text, first, length) == one.tokens[token].rpartition("__")[2]


@pytest.mark.parametrize("shape", TABLE_SHAPES)
def test_pipelines_of_tables(shape):
    model = fit(TABLE_SHAPES[shape], TABLE)
    explanation = check(model, TABLE)
    names = own_names(model)
    if names is not None:
        expected = names[explanation.columns]
        assert without_prefixes(explanation.tokens) == without_prefixes(expected)
    one = explanation[0]
    for text in one.texts[0]:
        assert text.text == TABLE.iloc[0][text.name if text.name != "1" else "body"]
        for first, length, token in text.occurrences.tolist():
            assert written(text, first, length) == one.tokens[token].rpartition("__")[2]
    one.to_html()


def test_fields_of_a_table_are_shown_by_name():
    model = fit(TABLE_SHAPES["two columns"], TABLE)
    explanation = explain(model, TABLE)
    assert [text.name for text in explanation.texts[0]] == ["title", "body"]
    assert {name.partition("__")[0] for name in explanation.tokens} == {
        "countvectorizer",
        "tfidfvectorizer",
    }
    text = explanation[0].to_text(width=200)
    assert "title: " in text
    assert "body: " in text


def test_vectorizers_of_the_same_text_share_it():
    explanation = explain(fit(SHAPES["union"], TEXTS), TEXTS)
    assert {len(texts) for texts in explanation.texts} == {1}
    lengths = explanation.texts[0][0].occurrences[:, 1]
    assert {1, 2} == set(lengths)


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
    explanation = explain(model, frame, removal=True)
    assert set(explanation.tokens) <= set(model[0].get_feature_names_out())
    assert_array_equal(explanation.decision[:, 0], model.decision_function(frame))


# scikit-learn 1.6 takes a Pipeline for not fitted whose last step needs no fitting.
@pytest.mark.filterwarnings("ignore:This Pipeline instance is not fitted:FutureWarning")
@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([HashingVectorizer(alternate_sign=False)], "hashing keeps no names"),
        (
            [CountVectorizer(), TruncatedSVD(3), FunctionTransformer(np.abs)],
            r"TruncatedSVD \(step 'truncatedsvd'\).*each of them mixes several",
        ),
        ([CountVectorizer(), FunctionTransformer(abs)], 'feature_names_out="one-to-one"'),
        (
            [make_union(CountVectorizer(), HashingVectorizer(alternate_sign=False))],
            "hashing keeps no names",
        ),
    ],
    ids=["hashing", "svd", "function", "hashing in a union"],
)
def test_what_cannot_be_traced_is_said(steps, message):
    model = fit(steps, TEXTS)
    with pytest.raises(ValueError, match=message) as caught:
        explain(model, TEXTS)
    assert "pipeline[-1]" in str(caught.value)
    # What the message proposes works.
    matrix = model[:-1].transform(TEXTS)
    assert_array_equal(explain(model[-1], matrix).decision[:, 0], model.decision_function(TEXTS))


def test_matrices_that_are_mixed_are_refused():
    X = np.abs(np.random.default_rng(0).normal(size=(80, 6)))
    model = make_pipeline(TruncatedSVD(2), FunctionTransformer(np.abs), ClsAttentionClassifier())
    with pytest.raises(ValueError, match="mixes several"):
        explain(model.fit(X, LABELS), X)


def test_texts_where_a_table_was_expected():
    model = fit(TABLE_SHAPES["one column"], TABLE)
    with pytest.raises(ValueError, match="expected a matrix or data frame of 3 columns"):
        explain(model, TEXTS)


def test_tokens_that_cannot_be_placed_are_shown_beside_the_text():
    own = CountVectorizer(analyzer=str.split)
    explanation = explain(fit([make_union(CountVectorizer(), own)], TEXTS), TEXTS[:1])
    assert "Tokens without a position in the text" in explanation.to_html()
    alone = explain(fit([own], TEXTS), TEXTS[:1])
    assert alone.texts[0][0].words is None
    assert alone.texts[0][0].text == TEXTS[0]
    assert "whose positions in the text are unknown" in alone.to_html()


def test_files_are_read_by_name(tmp_path):
    paths = []
    for i, text in enumerate(TEXTS):
        paths.append(str(tmp_path / f"{i}.txt"))
        (tmp_path / f"{i}.txt").write_text(text)
    explanation = explain(fit([CountVectorizer(input="filename")], paths), paths)
    assert explanation.texts[3][0].text == TEXTS[3]
    without = explain(fit([CountVectorizer()], TEXTS), TEXTS, places=False)
    assert without.texts == ((),) * len(TEXTS)


def test_names_follow_a_vectorizer_that_is_fitted_again():
    vectorizer = CountVectorizer()
    model = make_pipeline(vectorizer, ClsAttentionClassifier())
    model.fit(["good fun", "bad plot"], [1, 0])
    assert trace(model).columns.names.tolist() == ["bad", "fun", "good", "plot"]
    model.fit(["fine fun", "bad plot"], [1, 0])
    assert trace(model).columns.names.tolist() == ["bad", "fine", "fun", "plot"]
    vectorizer.vocabulary_ = {"a": 0, "d": 3, "b": 1, "c": 2}
    assert trace(model).columns.names.tolist() == ["a", "b", "c", "d"]
