"""TokenVectorizer against CountVectorizer: everything that it returns, raises and warns of."""

import inspect
import io
import re
import warnings
from operator import itemgetter

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import sklearn.feature_extraction.tests.test_text as vectorizer_tests
from hypothesis import HealthCheck, example, given, settings
from numpy.testing import assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer

from sklearn_clsattn.text import (
    WORDS_AND_PUNCTUATION,
    TokenVectorizer,
    _characters,
    _ngrams,
    _tokens,
)
from sklearn_clsattn.text import _character_ngrams as characters
from sklearn_clsattn.text import _token_vectorizer as module

COMMON = "the cat sat on a mat don't IS Straße naïve x_1 42 --- co-op ... ’tis"
# What goes wrong first: characters whose lower case is longer, marks that combine or join, digits
# and spaces of other scripts, control characters, the alphabets beyond one and two bytes.
CHARACTERS = st.sampled_from(
    "aabbAB_0'’ \n\t\r.!-?éßİIıΣσς٣²½ǅ漢字한𝒳👍🏽"
    "\u0301\u0307\u200d\u00a0\u2003\u2028\x00\x01\x1c\x1f"
)
WORD = st.text(CHARACTERS, max_size=20) | st.sampled_from(
    ["the", "cat", "sat", "don't", "a_very_long_word_of_many_letters_indeed", "AND"]
)
TEXT = st.lists(WORD, max_size=12).map(" ".join) | st.text(max_size=15)
TERM = WORD | st.sampled_from(["the cat", "cat sat", "ab the cat", "the  cat", " th", "at ", "é"])
DOCUMENTS = st.lists(TEXT, max_size=6)
RANGES = st.tuples(st.integers(1, 4), st.integers(0, 3)).map(lambda pair: (pair[0], sum(pair)))
BOUND = st.integers(1, 4) | st.floats(0, 1)
SLOWER = [r"(?u)\b\w+\b", r"(\w)\w*", r"[a-z]*", r"\w+ ?", None]
PARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        "analyzer": st.sampled_from(["word", "word", "word", "char_wb", "char", str.split]),
        "ngram_range": RANGES,
        "token_pattern": st.sampled_from([*_tokens.PATTERNS, *SLOWER]),
        "lowercase": st.booleans(),
        "strip_accents": st.sampled_from(["ascii", "unicode"]),
        "stop_words": st.sampled_from(["english", ["the", "ab"], ["don't"], []]),
        "min_df": BOUND,
        "max_df": BOUND,
        "max_features": st.integers(1, 5),
        "vocabulary": st.lists(TERM, max_size=9, unique=True),
        "binary": st.booleans(),
        "dtype": st.sampled_from([np.float32, np.uint8, bool, "int32"]),
        "tokenizer": st.just(str.split),
        "preprocessor": st.just(str.swapcase),
    },
)
# Every array is cut into the smallest pieces, and every table is too small.
TINY = {
    (_tokens, "BLOCK"): 7,
    (_characters, "_MAX_READS"): 2,
    (_ngrams, "_CHUNK"): 3,
    (_ngrams, "_MAX_TABLE"): 1,
    (characters, "_CHUNK"): 2,
}
FAST = [
    {"ngram_range": (1, 2), "min_df": 2},
    {"ngram_range": (2, 3), "max_features": 40},
    {"token_pattern": WORDS_AND_PUNCTUATION, "max_df": 0.5, "binary": True},
    {"stop_words": "english", "dtype": np.float32},
    {"vocabulary": ["the", "zebra", "a cat", "cat sat"], "ngram_range": (1, 2)},
    {"analyzer": "char_wb", "ngram_range": (2, 4), "min_df": 2},
    {"analyzer": "char_wb", "ngram_range": (6, 9), "max_df": 3},
    {"analyzer": "char_wb", "vocabulary": ["a", " ", "c", "at"]},
]


@pytest.fixture(params=["usual sizes", "tiny pieces"])
def fast(request, monkeypatch):
    """Have integers counted however few documents there are."""
    monkeypatch.setattr(module, "MIN_SIZE", 0)
    if request.param == "tiny pieces":
        for (where, name), size in TINY.items():
            monkeypatch.setattr(where, name, size)


def outcome(function, *arguments):
    """Return what a call returns, or its error, and the warnings in their order."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*arguments)
        except Exception as error:
            result = type(error), str(error).replace("CountVectorizer", "TokenVectorizer")
    return result, [(warning.category, str(warning.message)) for warning in caught]


def assert_same_matrix(one, other):
    assert type(one) is type(other)
    assert (one.shape, one.dtype) == (other.shape, other.dtype)
    assert one.indices.dtype == other.indices.dtype
    other = other.copy()
    other.sort_indices()  # scikit-learn leaves them as they come
    for name in ("indptr", "indices", "data"):
        assert_array_equal(getattr(one, name), getattr(other, name))


def compare(parameters, documents, others=()):
    """Require the same of both vectorizers, whatever happens to the documents.

    Documents may be a function that makes them anew.
    """
    ours, theirs = TokenVectorizer(**parameters), CountVectorizer(**parameters)
    for method, texts in (("fit_transform", documents), ("transform", others)):
        (one, warned), (other, expected) = (
            outcome(getattr(vectorizer, method), texts() if callable(texts) else texts)
            for vectorizer in (ours, theirs)
        )
        assert warned == expected
        if isinstance(other, tuple):
            assert one == other
            return None
        one.sort_indices()  # where scikit-learn has counted
        assert_same_matrix(one, other)
        assert ours.vocabulary_ == theirs.vocabulary_
    assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
    return ours


SHORT_AND_LONG = ["ab abc abcdx " + 300 * "x", "ab abc abcdy " + 300 * "x"]
# Words that differ in their last letter, where the bytes read at once end, and beyond all of them.
SIZES = 7, 8, 15, 16, 127, 128, 200
LONG = [start * size + end for size in SIZES for start in "xy" for end in "ab"]


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PARAMETERS, DOCUMENTS, DOCUMENTS)
@example({"ngram_range": (1, 2)}, ["a_very_long_word aa", "aa aa a_very_long_word"] * 2, ["aa"])
@example({"token_pattern": WORDS_AND_PUNCTUATION}, ["don't''s 'a b' c’d’", "'’a"], ["x'y ' z"])
@example({"token_pattern": r"\S+", "ngram_range": (1, 2)}, ["a\x01 a b"], [])
@example({}, ["ab\ud800cd \udfff\U0010ffff", "ab cd"], ["cd\ud800ef"])
@example({"ngram_range": (0, 2)}, ["ab cd ab", "cd"], ["ab"])
@example({"analyzer": "char_wb", "ngram_range": (5, 6), "min_df": 2}, SHORT_AND_LONG, ["ab"])
@example({}, [*LONG, " and ".join(LONG[::-1])], LONG)
@example({"analyzer": "char_wb", "tokenizer": list, "ngram_range": (1, 2)}, ["ab cd"], ["ab"])
def test_equal_to_count_vectorizer(fast, parameters, documents, others):
    compare(parameters, documents, others)


@pytest.mark.parametrize("n_letters", [255, 65_535])
@pytest.mark.parametrize("analyzer", ["word", "char_wb"])
def test_equal_for_large_alphabets(n_letters, analyzer, monkeypatch):
    """Which outgrow one byte a letter, or two, while texts are read."""
    monkeypatch.setattr(module, "MIN_SIZE", 0)
    monkeypatch.setattr(_tokens, "BLOCK", 1000)
    letters = "".join(filter(str.isalpha, map(chr, range(0x3400, 0x2A000))))[:n_letters]
    words = [letters[at : at + 3] for at in range(0, n_letters, 3)]
    texts = [" ".join(words[at : at + 100]) for at in range(0, len(words), 100)]
    assert compare({"analyzer": analyzer, "lowercase": False}, texts, texts[::-1])


def some_texts(n_documents=60, seed=0):
    """Return texts of up to 40 words and marks, frequent ones and rare ones."""
    rng = np.random.default_rng(seed)
    words = np.array([*COMMON.split(), *(f"rarely{i}" for i in range(200))])
    return [
        " ".join(words[(rng.zipf(1.5, rng.integers(0, 40)) - 1) % len(words)])
        for _ in range(n_documents)
    ]


@pytest.mark.parametrize("parameters", FAST)
def test_equal_by_default_where_integers_count(parameters, monkeypatch):
    texts = some_texts(1000)
    assert sum(map(len, texts)) > module.MIN_SIZE
    expected = CountVectorizer(**parameters)
    counts = expected.fit_transform(texts)

    def fail(*_):
        raise AssertionError("scikit-learn counts")

    monkeypatch.setattr(CountVectorizer, "_count_vocab", fail)
    vectorizer = TokenVectorizer(**parameters)
    assert_same_matrix(vectorizer.fit_transform(texts), counts)  # with columns in order
    assert_same_matrix(vectorizer.transform(iter(texts)), counts)
    assert vectorizer.vocabulary_ == expected.vocabulary_


INPUTS = {
    "generator": ({}, iter),
    "series": ({}, pd.Series),
    "array": ({"lowercase": False}, np.array),
    "bytes": ({"encoding": "latin-1"}, lambda texts: [text.encode() for text in texts]),
    "bad bytes": ({"decode_error": "ignore"}, lambda texts: [*texts, b"bad \xff byte"]),
    "files": ({"input": "file"}, lambda texts: map(io.StringIO, texts)),
    "records": (
        {"preprocessor": itemgetter("text")},
        lambda texts: [{"text": text} for text in texts],
    ),
}


@pytest.mark.parametrize("analyzer", ["word", "char_wb"])
@pytest.mark.parametrize("kind", INPUTS)
def test_equal_for_every_kind_of_input(fast, kind, analyzer):
    texts = some_texts(30)
    parameters, make = INPUTS[kind]
    parameters = {"analyzer": analyzer, **parameters}
    assert compare(parameters, lambda: make(texts), lambda: make(texts[:5]))


def test_equal_for_file_names(fast, tmp_path):
    paths = [tmp_path / str(i) for i in range(10)]
    for path, text in zip(paths, some_texts(10), strict=True):
        path.write_text(text, encoding="utf-8")
    assert compare({"input": "filename"}, paths, [str(path) for path in paths])


WRONG = [
    *[({}, documents) for documents in ("one text", 3, [], ["", "\n"], [1])],
    *[({}, ["cat", other]) for other in (b"\xff", None, np.nan, 2, ["cat"])],
    *[({"ngram_range": bounds}, ["cat sat"]) for bounds in ((2, 1), (5, 5), 2)],
    ({"min_df": 3, "max_df": 2}, ["cat", "cat", "cat"]),
    ({"min_df": 2, "max_features": 3}, ["cat", "dog"]),
    ({"min_df": -1}, ["cat"]),
    *[({"vocabulary": one}, ["cat"]) for one in ([], ["cat", "cat"], {"cat": 1})],
    ({"token_pattern": "(a)(b)"}, ["cat"]),
    ({"tokenizer": str.split}, ["cat"]),
    *[({"stop_words": words}, ["cat sat"]) for words in (["cat's"], ["cat", "sat"], "klingon")],
]


@pytest.mark.parametrize("analyzer", ["word", "char_wb"])
@pytest.mark.parametrize(("parameters", "documents"), WRONG)
def test_the_same_errors_and_warnings(fast, parameters, documents, analyzer):
    compare({"analyzer": analyzer, **parameters}, documents, ["cat sat", ""])


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(DOCUMENTS, st.sampled_from(_tokens.PATTERNS))
def test_tokens_are_those_of_re(fast, texts, pattern):
    tokens = _tokens.tokenize(iter(texts), pattern)
    expected = [
        (i, match[0], *match.span())
        for i, text in enumerate(texts)
        for match in re.finditer(pattern, text)
    ]
    columns = [tokens.documents, [tokens.words[i] for i in tokens.ids], tokens.starts, tokens.stops]
    assert list(zip(*columns, strict=True)) == expected
    assert len(set(tokens.words)) == len(tokens.words)
    assert tokens.n_documents == len(texts)
    assert_array_equal(np.diff(tokens.indptr), np.bincount(tokens.documents, minlength=len(texts)))
    without = _tokens.tokenize(texts, pattern, positions=False)
    assert_array_equal(without.ids, tokens.ids)
    assert len(without.starts) == len(without.stops) == 0
    rest = tokens.without(frozenset(["the", "ab"]))
    assert list(zip(rest.documents, [rest.words[i] for i in rest.ids], strict=True)) == [
        one[:2] for one in expected if one[1] not in ("the", "ab")
    ]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(DOCUMENTS, st.lists(TERM, max_size=9, unique=True))
@example(["ab the cat sat", "ab the", "cat"], ["ab the cat", "cat sat", "cat"])
def test_columns_of_occurrences(fast, texts, terms):
    vocabulary = {term: column for column, term in enumerate(terms)}
    tokens = _tokens.tokenize(texts, WORDS_AND_PUNCTUATION)
    words = [tokens.words[i] for i in tokens.ids]
    ngrams = _ngrams.NgramColumns.from_vocabulary(vocabulary)
    for n, columns in enumerate(ngrams.at_tokens(tokens, 4), 1):
        stops = tokens.indptr[tokens.documents + 1]
        assert columns.tolist() == [
            vocabulary.get(" ".join(words[j : j + n]), -1) if j + n <= stop else -1
            for j, stop in enumerate(stops.tolist())
        ]


# What scikit-learn tests of its own vectorizer.


def vectorizer_cases():
    """Yield scikit-learn's tests of CountVectorizer that take no parameters, by name."""
    for name, function in vars(vectorizer_tests).items():
        if not name.startswith("test_") or inspect.signature(function).parameters:
            continue
        if "CountVectorizer" in inspect.getsource(function):
            yield name


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", sorted(vectorizer_cases()))
@pytest.mark.parametrize("fast", [True, False])
def test_of_count_vectorizer(name, fast, monkeypatch):
    assert issubclass(TokenVectorizer, CountVectorizer)
    monkeypatch.setattr(vectorizer_tests, "CountVectorizer", TokenVectorizer)
    if fast:  # however few documents
        monkeypatch.setattr(module, "MIN_SIZE", 0)
    getattr(vectorizer_tests, name)()
