"""At home in scikit-learn: matrices are ordinary ones, in the container that is configured."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn import config_context
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_clsattn import TextClassifier, TokenImportanceTransformer
from sklearn_clsattn.datasets import load_requests, make_token_classification
from sklearn_clsattn.text import ContextVectorizer, TokenVectorizer, WordVectors

REQUESTS = load_requests()
VECTORS = WordVectors(n_components=10).fit(REQUESTS.data[:600])
TEXTS, TOPICS = np.array(REQUESTS.data[:120], dtype=object), REQUESTS.topic[:120]
OTHERS = REQUESTS.data[600:660]
SETTINGS = [{"characters": (2, 3)}, {"characters": None, "context": False}]
HAS_INTERFACES = hasattr(sklearn.utils, "_align_api_if_sparse")  # scikit-learn 1.9


def vectorizer(**parameters):
    return ContextVectorizer(**{"dtype": np.float64, "word_vectors": VECTORS} | parameters)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_matrix_is_an_ordinary_one(settings):
    X = vectorizer(**settings).fit(TEXTS, TOPICS).transform(TEXTS[:40])
    assert type(X) is sp.csr_matrix
    made = sp.csr_matrix(X.toarray())
    assert set(vars(X)) <= {*vars(made), "_has_canonical_format", "_has_sorted_indices"}
    assert X.has_canonical_format
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert (made != X).nnz == 0


def test_a_parameter_that_is_changed_is_the_same_in_a_copy():
    one = ContextVectorizer().fit(TEXTS, TOPICS)
    before = one.transform(TEXTS)
    for change in ({"character_weight": 2.0}, {"characters": (2, 3)}, {"dtype": np.float64}):
        after = one.set_params(**change).transform(TEXTS)
        copy = pickle.loads(pickle.dumps(one)).transform(TEXTS)
        assert after.dtype == one.dtype
        assert abs(after - before).max() > 0.1
        assert abs(after - copy).max() == 0


# Data frames and sparse containers


class MaxAbsSparse(MaxAbsScaler, auto_wrap_output_keys=None):
    """A step of scikit-learn's that makes no data frames."""


def test_sparse_output_is_never_a_data_frame():
    for model in (
        TextClassifier(C=1.0),
        make_pipeline(ContextVectorizer(), LogisticRegression()),
        make_pipeline(ContextVectorizer(characters=None), TokenImportanceTransformer(k=50)),
        make_pipeline(TokenVectorizer(), TokenImportanceTransformer(k=9), MaxAbsSparse()),
        make_pipeline(CountVectorizer(), TokenImportanceTransformer(scale=False)),
    ):
        ask = "predict_proba" if hasattr(model, "predict_proba") else "transform"
        by_default = getattr(clone(model).fit(TEXTS, TOPICS), ask)(OTHERS)
        for output in ("pandas", "polars"):
            with config_context(transform_output=output):
                answer = getattr(model.fit(TEXTS, TOPICS), ask)(OTHERS)
            assert type(answer) is type(by_default)
            assert abs(answer - by_default).max() == 0


def containers():
    """Yield what each public function and method returns."""
    X, y = make_token_classification(60, random_state=0)
    yield X
    for settings in SETTINGS:
        one = ContextVectorizer(**settings)
        yield one.fit_transform(TEXTS, TOPICS)
        yield one.transform(OTHERS)
    many = list(REQUESTS.data[:900])
    for settings in ({}, {"analyzer": "char_wb", "ngram_range": (2, 3)}, {"ngram_range": (1, 2)}):
        for texts in (many, many[:3]):
            one = TokenVectorizer(**settings)
            yield one.fit_transform(texts)
            yield one.transform(texts)
    for settings in ({}, {"k": 5}, {"scale": False}, {"k": 5, "scale": False}):
        one = TokenImportanceTransformer(**settings)
        yield one.fit_transform(X, y)
        yield one.transform(sp.csr_matrix(X))
        if settings.get("scale", True) is False:
            yield one.inverse_transform(one.transform(X))


@pytest.mark.skipif(not HAS_INTERFACES, reason="scikit-learn before 1.9")
def test_the_sparse_container_is_the_configured_one():
    with config_context(sparse_interface="sparray"):
        of_arrays = list(containers())
    assert all(isinstance(X, sp.sparray) for X in of_arrays)
    of_matrices = list(containers())
    assert all(isinstance(X, sp.spmatrix) for X in of_matrices)
    for one, other in zip(of_arrays, of_matrices, strict=False):
        assert abs(one - other).max() == 0
        if one.format == "csr":  # what scikit-learn selects backwards is CSC
            assert one.indices.dtype == one.indptr.dtype == np.int32
    with config_context(sparse_interface="sparray"), warnings.catch_warnings():
        warnings.simplefilter("error")
        TextClassifier(C=1.0, word_vectors=VECTORS).fit(TEXTS, TOPICS).predict(OTHERS)
