"""Generated documents are what they say; messages of customers have labels that they tell."""

import hashlib
import re

import numpy as np
import pytest
from helpers import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from sklearn_clsattn.datasets import load_requests, make_token_classification
from sklearn_clsattn.importance import class_totals, signed_frequency


def truth(*args, **kwargs):
    return make_token_classification(*args, return_X_y=False, **kwargs)


@settings(max_examples=20, deadline=None)
@given(
    n_samples=st.integers(1, 30),
    n_classes=st.integers(2, 23),
    n_relevant_per_class=st.integers(1, 60),
    n_irrelevant=st.integers(0, 300),
    document_length=st.floats(1, 60),
    relevant_share=st.floats(0, 1),
    delta=st.floats(0, 1),
    random_state=st.integers(0, 2**32 - 1),
)
def test_texts_are_tokenised_to_the_counts(**parameters):
    bunch = truth(as_text=True, **parameters)
    names = bunch.feature_names
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z]{2,}", name) for name in names)
    counted = CountVectorizer(vocabulary=list(names)).fit_transform(bunch.texts)
    assert (counted != bunch.data).nnz == 0
    # Without being told the vocabulary, it finds the tokens that occur, and no others.
    vectorizer = CountVectorizer().fit(bunch.texts)
    occurring = np.asarray(bunch.data.sum(axis=0)).ravel() > 0
    assert sorted(names[occurring]) == list(vectorizer.get_feature_names_out())
    assert len(bunch.target_names) == len(set(bunch.target_names)) == parameters["n_classes"]
    np.testing.assert_allclose(bunch.token_probabilities.sum(axis=1), 1)


@pytest.mark.parametrize(("n_classes", "delta"), [(2, 0), (2, (0.05, 0.4)), (3, 0.1)])
def test_frequencies_follow_the_stated_probabilities(n_classes, delta):
    how = {"n_relevant_per_class": 4, "n_irrelevant": 30, "document_length": 60}
    how |= {"n_classes": n_classes, "delta": delta, "zipf_exponent": 1.2}
    bunch = truth(6000, random_state=0, **how)
    for k, expected in enumerate(bunch.token_probabilities):
        counts = np.asarray(bunch.data[bunch.target == k].sum(axis=0)).ravel()
        np.testing.assert_allclose(counts / counts.sum(), expected, atol=5e-3)
        assert not counts[expected == 0].any()
        irrelevant = expected[bunch.token_class == -1]
        np.testing.assert_allclose(irrelevant / irrelevant[0], np.arange(1, 31) ** -1.2)
    relevant = bunch.token_probabilities[:, bunch.token_class >= 0]
    deltas = np.tile(np.linspace(*np.broadcast_to(delta, 2), 4), n_classes)
    np.testing.assert_allclose(relevant.max(axis=0) / relevant.sum(axis=0), 1 - deltas)
    assert bunch.data[:, bunch.token_class >= 0].sum(axis=1).min() >= 1


def test_lengths():
    X, _ = make_token_classification(n_samples=4000, document_length=80, random_state=0)
    lengths = np.asarray(X.sum(axis=1)).ravel()
    assert lengths.mean() == pytest.approx(80, rel=0.05)
    assert np.log(lengths).std() == pytest.approx(0.5, rel=0.1)


def test_weights_and_flips():
    _, y = make_token_classification(n_samples=1000, weights=[0.2, 0.8], random_state=0)
    np.testing.assert_array_equal(np.bincount(y), [200, 800])
    _, y = make_token_classification(
        n_samples=10, n_classes=3, weights=[0.5, 0.25, 0.25], random_state=0
    )
    assert np.bincount(y, minlength=3)[0] == 5
    bunch = truth(n_samples=4000, flip_y=0.3, random_state=0)
    assert (bunch.target != bunch.unflipped_target).mean() == pytest.approx(0.15, abs=0.02)
    bunch = truth(n_samples=100, random_state=0)
    np.testing.assert_array_equal(bunch.target, bunch.unflipped_target)


@settings(max_examples=60, deadline=None)
@given(
    n_groups=st.integers(1, 40),
    n_classes=st.integers(2, 7),
    n_relevant_per_class=st.integers(1, 30),
    n_irrelevant=st.integers(1, 100),
    document_length=st.floats(1, 60),
    zipf_exponent=st.floats(0, 2),
    kind=st.sampled_from(["csr", "csc", "coo", "dense"]),
    random_state=st.integers(0, 2**32 - 1),
)
def test_single_relevant_token_satisfies_assumption_1(n_groups, n_classes, kind, **parameters):
    n_samples = n_groups * n_classes
    bunch = truth(n_samples, n_classes=n_classes, **parameters, delta=0, single_relevant=True)
    X, y, token_class = bunch.data, bunch.target, bunch.token_class
    m = parameters["n_relevant_per_class"]
    np.testing.assert_array_equal(np.bincount(y), n_groups)
    # One relevant token, once, of the document's own class; all that can occur do.
    relevant = X[:, token_class >= 0].tocoo()
    np.testing.assert_array_equal(relevant.row, np.arange(len(y)))
    np.testing.assert_array_equal(relevant.data, 1)
    np.testing.assert_array_equal(token_class[relevant.col], y)
    assert len(np.unique(relevant.col)) == n_classes * min(m, n_groups)
    # The shares of irrelevant tokens add up to the same numbers in every class, to the last bit.
    totals = class_totals(
        X.toarray() if kind == "dense" else X.asformat(kind), y, n_classes, kind="shares"
    )
    irrelevant = totals[:, token_class == -1]
    np.testing.assert_array_equal(irrelevant, np.broadcast_to(irrelevant[0], irrelevant.shape))
    importance = signed_frequency(totals, np.bincount(y))
    assert not importance[..., token_class == -1].any()
    documents = X[:, token_class == -1].getnnz(axis=0)
    assert np.all(documents[documents > 0] >= n_classes)
    np.testing.assert_allclose(bunch.token_probabilities.sum(axis=1), 1)


def test_documents_are_the_same_from_release_to_release():
    X, y = make_token_classification(n_samples=50, flip_y=0.2, random_state=7)
    digest = hashlib.sha256(
        b"".join(a.astype("<i8").tobytes() for a in (X.data, X.indices, X.indptr, y))
    )
    assert digest.hexdigest()[:16] == "9d41edd160366e1d"


SINGLE = {"delta": 0, "single_relevant": True}


def test_parameters_out_of_range():
    for parameters in [
        *({"n_samples": 0}, {"n_samples": 10.0}, {"n_classes": 1}, {"n_relevant_per_class": 0}),
        *({"n_irrelevant": -1}, {"document_length": 0.5}),
        *({"relevant_share": 1.1}, {"zipf_exponent": -1}, {"flip_y": 2}),
        *({"delta": 1.1}, {"delta": (0.1, -0.1)}, {"delta": (0.1, 0.2, 0.3)}, {"delta": "small"}),
        *({"weights": [0.5, 0.5, 0.5]}, {"weights": [0.9, 0.9]}, {"weights": [1.5]}),
        {"weights": [np.nan, 0.5]},
        {"n_samples": 10, "n_classes": 3, **SINGLE},
        {"weights": [0.4, 0.6], **SINGLE},
        {"delta": 0.1, "single_relevant": True},
        {"delta": (0, 0.1), "single_relevant": True},
        {"flip_y": 0.1, **SINGLE},
        {"n_irrelevant": 0, **SINGLE},
    ]:
        refused(next(iter(parameters)), make_token_classification, **parameters)


def test_messages_are_the_same_everywhere():
    requests = load_requests()
    digest = hashlib.sha256("\n".join(requests.data).encode()).hexdigest()
    assert digest[:16] == "16731a52a82e825c"
    assert len(set(requests.data)) == len(requests.data) == 3000
    assert "{" not in "".join(requests.data)


@pytest.mark.parametrize(("target", "n_classes"), [("topic", 4), ("mood", 2)])
def test_texts_tell_the_labels(target, n_classes):
    texts, labels = load_requests(target=target, return_X_y=True)
    requests = load_requests(target=target)
    np.testing.assert_array_equal(requests.target, requests[target])
    np.testing.assert_array_equal(requests.target, labels)
    assert requests.target_names == sorted(set(labels))
    assert len(requests.target_names) == n_classes
    model = make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts[:1500], labels[:1500])
    assert 0.8 < model.score(texts[1500:], labels[1500:]) < 1  # and not every one of them
