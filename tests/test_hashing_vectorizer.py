"""HashingTokenVectorizer against HashingVectorizer: everything that it returns and raises."""

import inspect
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
import sklearn.utils
from hypothesis import HealthCheck, example, given, settings
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from test_token_vectorizer import DOCUMENTS, RANGES, assert_same_matrix, outcome, some_texts

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.text import WORDS_AND_PUNCTUATION, HashingTokenVectorizer
from sklearn_clsattn.text import _hashing_vectorizer as module

PARAMETERS = st.fixed_dictionaries(
    {"alternate_sign": st.booleans(), "norm": st.sampled_from(["l1", "l2", None])},
    optional={
        "analyzer": st.sampled_from(["word", "word", "char_wb", "char_wb", "char", str.split]),
        "ngram_range": RANGES,
        "token_pattern": st.sampled_from([WORDS_AND_PUNCTUATION, r"(?u)\b\w+\b"]),
        "lowercase": st.booleans(),
        "strip_accents": st.sampled_from(["ascii", "unicode"]),
        "stop_words": st.sampled_from(["english", ["the", "ab"]]),
        "n_features": st.sampled_from([1, 3, 1000]),
        "binary": st.booleans(),
        "dtype": st.sampled_from([np.float32, np.int64]),
    },
)
FAST = [
    {"analyzer": "char_wb", "ngram_range": (2, 4)},
    {"analyzer": "char_wb", "ngram_range": (1, 3), "norm": "l2", "alternate_sign": True},
    {"analyzer": "char_wb", "ngram_range": (3, 3), "n_features": 50, "binary": True},
]


@pytest.fixture
def fast(monkeypatch):
    """Have integers counted however few documents there are."""
    monkeypatch.setattr(module, "MIN_SIZE", 0)


def compare(parameters, documents):
    """Require the same of both vectorizers, whatever happens to the documents."""
    ours = HashingTokenVectorizer(**parameters)
    theirs = HashingVectorizer(**{"alternate_sign": False, "norm": None, **parameters})
    for method in ("fit_transform", "transform"):
        one, other = (outcome(getattr(kind, method), documents) for kind in (ours, theirs))
        assert one[1] == other[1]
        if isinstance(other[0], tuple):
            assert one[0] == other[0]
            return
        else:
            assert_same_matrix(one[0], other[0])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PARAMETERS, DOCUMENTS)
@example({"analyzer": "char_wb", "n_features": 1, "alternate_sign": True, "norm": None}, ["abcdef"])
def test_equal_to_hashing_vectorizer(fast, parameters, documents):
    compare(parameters, documents)


@pytest.mark.parametrize("parameters", FAST)
def test_equal_by_default_where_integers_count(parameters, monkeypatch):
    texts = some_texts(1000)
    expected = HashingVectorizer(**{"alternate_sign": False, "norm": None, **parameters})
    counts = expected.transform(texts)
    monkeypatch.setattr(HashingVectorizer, "transform", None)
    assert_same_matrix(HashingTokenVectorizer(**parameters).fit_transform(iter(texts)), counts)


@pytest.mark.parametrize(
    ("parameters", "n_documents"), [(FAST[0], 10), ({}, 1000), ({"ngram_range": (1, 2)}, 1000)]
)
def test_few_documents_and_words_are_left_to_scikit_learn(parameters, n_documents, monkeypatch):
    monkeypatch.setattr(module, "tokenize", None)
    compare(parameters, some_texts(n_documents))


@pytest.mark.parametrize(
    ("parameters", "documents"),
    [
        ({}, "one text"),
        ({}, []),
        ({}, [""]),
        ({}, [np.nan]),
        ({}, [3]),
        ({"lowercase": False}, [None]),
        ({}, ["ab\ud800"]),
        ({"ngram_range": (2, 1)}, ["a"]),
        ({"n_features": 0}, ["a"]),
        ({"stop_words": ["cat's"]}, ["cat sat"]),
        ({"dtype": np.uint8}, ["cat sat " * 200]),
        ({"dtype": np.int8}, ["cat sat " * 200]),
    ],
)
@pytest.mark.parametrize("analyzer", ["word", "char_wb"])
def test_the_same_errors_and_warnings(fast, parameters, documents, analyzer):
    compare({"analyzer": analyzer, **parameters}, documents)


def test_the_hash_without_a_positive_value(fast, monkeypatch):
    """The absolute value of -2**31 is no 32-bit integer."""
    assert sklearn.utils.murmurhash3_32 is module.murmurhash3_32
    monkeypatch.setattr(module, "murmurhash3_32", lambda _: -(2**31))
    for n_features in (1, 7, 2**20, 2**31 - 1):
        vectorizer = HashingTokenVectorizer(n_features=n_features, analyzer="char_wb")
        columns = vectorizer.transform(["ab"]).indices
        assert columns == (2147483647 - (n_features - 1)) % n_features  # as scikit-learn has it


def test_defaults_are_scikit_learns_but_two():
    ours, theirs = HashingTokenVectorizer(), HashingVectorizer()
    assert list(inspect.signature(type(ours)).parameters) == list(
        inspect.signature(type(theirs)).parameters
    )
    changed = {"norm": None, "alternate_sign": False}
    assert ours.get_params() == {**theirs.get_params(), **changed}


def test_pickled_and_cloned(fast):
    vectorizer = HashingTokenVectorizer(analyzer="char_wb", n_features=100)
    counts = vectorizer.transform(some_texts())
    for copy in (pickle.loads(pickle.dumps(vectorizer)), clone(vectorizer)):
        assert_same_matrix(copy.transform(some_texts()), counts)


def test_a_stream_that_a_classifier_learns_from():
    texts, y = some_texts(200), np.arange(200) % 2
    vectorizer = HashingTokenVectorizer(n_features=2**10)
    classifier = ClsAttentionClassifier()
    for batch in (slice(0, 100), slice(100, 200)):
        classifier.partial_fit(vectorizer.transform(texts[batch]), y[batch], classes=[0, 1])
    assert classifier.predict(vectorizer.transform(texts)).shape == (200,)
