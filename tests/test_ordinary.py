"""At home in scikit-learn: matrices are ordinary ones, and nothing gets lost on the way.

What carries more than numbers (word vectors, damped counts) goes from `make_text_classifier`'s
vectorizer to its classifier and nowhere else, and every other way is an ordinary matrix.
"""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from helpers import refused
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer
from sklearn_clsattn.datasets import load_requests, make_token_classification
from sklearn_clsattn.text import (
    ContextVectorizer,
    TokenVectorizer,
    WordVectors,
    make_text_classifier,
)

REQUESTS = load_requests()
VECTORS = WordVectors(n_components=10).fit(REQUESTS.data[:600])
TEXTS, TOPICS = np.array(REQUESTS.data[:120], dtype=object), REQUESTS.topic[:120]
OTHERS = REQUESTS.data[600:660]
SETTINGS = [{"characters": (2, 3)}, {"characters": None, "context": False}]
HAS_INTERFACES = hasattr(sklearn.utils, "_align_api_if_sparse")  # scikit-learn 1.9


def vectorizer(**parameters):
    return ContextVectorizer(**{"dtype": np.float64, "word_vectors": VECTORS} | parameters)


def text_model(**parameters):
    settings = {"dtype": np.float64, "characters": (2, 3), "C": 1.0, "token_vectors_scale": 1.0}
    return make_text_classifier(**settings | {"word_vectors": VECTORS} | parameters)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_matrix_is_an_ordinary_one(settings):
    X = vectorizer(**settings).fit(TEXTS, TOPICS).transform(TEXTS[:40])
    assert type(X) is sp.csr_matrix
    made = sp.csr_matrix(X.toarray())
    assert set(vars(X)) <= {*vars(made), "_has_canonical_format", "_has_sorted_indices"}
    assert X.has_canonical_format
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert (made != X).nnz == 0


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_text_classifier_is_its_two_steps_by_hand(settings):
    model = text_model(**settings, tol=1e-10, max_iter=3000).fit(TEXTS, TOPICS)
    one = vectorizer(**settings).fit(TEXTS, TOPICS)
    how = {"C": 1.0, "token_vectors_scale": 1.0, "tol": 1e-10, "max_iter": 3000}
    other = ClsAttentionClassifier(sublinear_counts=False, **how)
    X = one.transform(TEXTS)
    other.fit(X, TOPICS, token_vectors=one.token_vectors_)
    expected = other.predict_proba(one.transform(OTHERS))
    assert_allclose(model.predict_proba(OTHERS), expected, atol=2e-4)
    # Each method, of the pipeline and of its steps.
    X = model[:-1].transform(OTHERS)
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        by_pipeline, by_step = getattr(model, name)(OTHERS), getattr(model[-1], name)(X)
        if name == "predict":
            assert_array_equal(by_pipeline, by_step)
        else:
            assert_allclose(by_pipeline, by_step, rtol=1e-6, atol=1e-8)
    y = REQUESTS.topic[600:660]
    weights = model.predict(OTHERS) == y
    assert 0 < model.score(OTHERS, y) == model[-1].score(X, y) < 1
    assert model.score(OTHERS, y, sample_weight=weights) == 1
    priors = np.full(len(model.classes_), 1 / len(model.classes_))
    assert_allclose(
        model.predict_proba(OTHERS, priors=priors), model[-1].predict_proba(X, priors=priors)
    )


def test_token_vectors_are_those_of_the_columns():
    one = vectorizer(characters=(2, 3)).fit(TEXTS, TOPICS)
    names = one.get_feature_names_out()
    assert_allclose(one.token_vectors_, VECTORS.of(names), atol=1e-7)
    assert one.token_vectors_.any(axis=1).sum() == len(VECTORS.words_)
    assert not hasattr(vectorizer(word_vectors=None).fit(TEXTS, TOPICS), "token_vectors_")
    assert not hasattr(ContextVectorizer(), "token_vectors_")


def test_vectors_that_nothing_would_use_are_said():
    by_hand = make_pipeline(vectorizer(), ClsAttentionClassifier(sublinear_counts=False, C=1.0))
    with pytest.warns(
        UserWarning, match="matrix does not have the word vectors: use make_text_"
    ) as caught:
        by_hand.fit(TEXTS, TOPICS)
    assert caught[0].filename == __file__
    X = vectorizer(word_vectors=None).fit_transform(TEXTS, TOPICS)
    model = ClsAttentionClassifier(C=1.0, token_vectors_scale=0.5)
    with pytest.warns(UserWarning, match=r"token_vectors_scale=0\.5 has no effect") as caught:
        model.fit(X, TOPICS)
    assert caught[0].filename == __file__
    model.set_params(token_vectors_scale=0.0).fit(X, TOPICS)


def test_vectors_reach_the_classifier(tmp_path):
    renamed = text_model()
    renamed.steps = [("a", renamed[0]), ("b", renamed[1])]
    frozen = text_model()
    fitted = clone(frozen[0]).fit(TEXTS[:60], TOPICS[:60])
    frozen.steps[0] = ("vectorizer", FrozenEstimator(fitted))
    calibrated = CalibratedClassifierCV(text_model(), cv=2).fit(TEXTS, TOPICS)
    models = [
        calibrated.calibrated_classifiers_[0].estimator,
        renamed.set_params(a__min_df=1, b__C=2.0).fit(TEXTS, TOPICS),
        frozen.fit(TEXTS, TOPICS),
        text_model().fit(pd.Series(TEXTS), pd.Series(TOPICS)),
        text_model(word_vectors=None).fit(TEXTS, TOPICS, unlabeled=OTHERS),
        text_model().set_params(memory=str(tmp_path)).fit(TEXTS, TOPICS),
        text_model().set_params(memory=str(tmp_path)).fit(TEXTS, TOPICS),  # read from there
    ]
    for model in models:
        assert len(model.predict(OTHERS)) == len(OTHERS)
        assert np.abs(model[-1].vector_weights_).max() > 0
        assert not hasattr(model[-1], "entry_scale_")  # damped once
    assert frozen[0].vocabulary_ is fitted.vocabulary_
    expected = frozen.predict_proba(OTHERS)
    frozen.steps[1] = ("classifier", FrozenEstimator(frozen[1]))
    assert_array_equal(frozen.predict_proba(OTHERS), expected)


def test_counts_are_damped_where_that_is_asked_for():
    settings = {"word_vectors": None, "token_vectors_scale": "auto", "tol": 1e-10}
    once = text_model(**settings, max_iter=2000).fit(TEXTS, TOPICS)
    twice = text_model(**settings, max_iter=2000, sublinear_counts=True).fit(TEXTS, TOPICS)
    assert hasattr(twice[-1], "entry_scale_")
    X, X_others = once[:-1].transform(TEXTS), once[:-1].transform(OTHERS)
    for model in (once, twice):
        by_hand = clone(model[-1]).fit(X, TOPICS).predict_proba(X_others)
        assert_allclose(model.predict_proba(OTHERS), by_hand, atol=2e-4)


def test_a_parameter_that_is_changed_is_the_same_in_a_copy():
    one = ContextVectorizer().fit(TEXTS, TOPICS)
    before = one.transform(TEXTS)
    for change in ({"character_weight": 2.0}, {"characters": (2, 3)}, {"dtype": np.float64}):
        after = one.set_params(**change).transform(TEXTS)
        copy = pickle.loads(pickle.dumps(one)).transform(TEXTS)
        assert after.dtype == one.dtype
        assert abs(after - before).max() > 0.1
        assert abs(after - copy).max() == 0


class Doubled(ContextVectorizer):
    def transform(self, raw_documents):
        return 2 * super().transform(raw_documents)


class OfArrays(ClsAttentionClassifier):
    def fit(self, X, y):
        return super().fit(X.toarray(), y)


def test_with_other_steps_it_is_an_ordinary_pipeline():
    model = make_text_classifier().set_params(vectorizer=CountVectorizer())
    expected = Pipeline(clone(model).steps).fit(TEXTS, TOPICS).predict_proba(OTHERS)
    assert_array_equal(model.fit(TEXTS, TOPICS).predict_proba(OTHERS), expected)
    model.set_params(classifier=MultinomialNB())
    weights = np.arange(len(TEXTS))
    in_batches = clone(model).partial_fit(TEXTS, TOPICS, np.unique(TOPICS), weights)
    expected = model.fit(TEXTS, TOPICS, weights).predict_proba(OTHERS)
    assert_array_equal(in_batches.predict_proba(OTHERS), expected)
    model = make_text_classifier().set_params(classifier=LogisticRegression())
    assert model.fit(TEXTS, TOPICS).score(TEXTS, TOPICS) > 0.8
    model.set_params(classifier=KNeighborsClassifier())
    refused("sample_weight", model.fit, TEXTS, TOPICS, np.ones(len(TEXTS)), error=TypeError)
    assert not hasattr(model.set_params(classifier=MaxAbsScaler()), "predict_proba")
    model = make_text_classifier()
    model.steps.insert(1, ("scaled", MaxAbsScaler()))
    assert model.fit(TEXTS, TOPICS).predict_proba(OTHERS).shape == (60, len(set(TOPICS)))
    for steps in ({"vectorizer": Doubled()}, {"classifier": OfArrays(C=1.0)}):
        model = make_text_classifier(C=1.0).set_params(**steps)
        expected = Pipeline(clone(model).steps).fit(TEXTS, TOPICS).predict_proba(OTHERS)
        assert_array_equal(model.fit(TEXTS, TOPICS).predict_proba(OTHERS), expected)


# Data frames and sparse containers


class MaxAbsSparse(MaxAbsScaler, auto_wrap_output_keys=None):
    """A step of scikit-learn's that makes no data frames."""


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_sparse_output_is_never_a_data_frame(output):
    for model in (
        make_text_classifier(),
        make_pipeline(ContextVectorizer(), LogisticRegression()),
        make_pipeline(ContextVectorizer(characters=None), TokenImportanceTransformer(k=50)),
        make_pipeline(TokenVectorizer(), TokenImportanceTransformer(k=9), MaxAbsSparse()),
        make_pipeline(CountVectorizer(), TokenImportanceTransformer(scale=False)),
    ):
        ask = "predict_proba" if hasattr(model, "predict_proba") else "transform"
        by_default = getattr(clone(model).fit(TEXTS, TOPICS), ask)(OTHERS)
        with config_context(transform_output=output):
            answer = getattr(model.fit(TEXTS, TOPICS), ask)(OTHERS)
        assert type(answer) is type(by_default)
        assert abs(answer - by_default).max() == 0


def containers():
    """Yield what each public function and method returns."""
    X, y = make_token_classification(60, random_state=0)
    yield X
    yield make_token_classification(60, return_X_y=False, random_state=0).data
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
        text_model().fit(TEXTS, TOPICS).predict(OTHERS)
