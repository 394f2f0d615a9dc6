"""Generated documents are what they say; messages of customers have labels that they tell."""

import hashlib

import numpy as np
import pytest
from helpers import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import TokenImportanceTransformer
from sklearn_clsattn.datasets import load_requests, make_token_classification


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
def test_any_parameters(n_samples, n_classes, n_relevant_per_class, n_irrelevant, **more):
    how = {"n_classes": n_classes, "n_relevant_per_class": n_relevant_per_class}
    X, y = make_token_classification(n_samples, n_irrelevant=n_irrelevant, **how, **more)
    assert X.shape == (n_samples, n_classes * n_relevant_per_class + n_irrelevant)
    assert X.sum(axis=1).min() >= 1
    assert np.bincount(y, minlength=n_classes).max() <= -(-n_samples // n_classes)
    assert len(y) == n_samples


@pytest.mark.parametrize(("n_classes", "delta"), [(2, 0), (2, (0.05, 0.4)), (3, 0.1)])
def test_frequencies_follow_the_stated_probabilities(n_classes, delta):
    n_relevant = 4 * n_classes
    how = {"n_relevant_per_class": 4, "n_irrelevant": 30, "document_length": 60}
    X, y = make_token_classification(6000, n_classes=n_classes, delta=delta, random_state=0, **how)
    deltas = np.tile(np.linspace(*np.broadcast_to(delta, 2), 4), n_classes)
    of_class = np.repeat(np.arange(n_classes), 4)
    frequencies = 1 / np.arange(1, 31)
    for k in range(n_classes):
        p_relevant = np.where(of_class == k, 1 - deltas, deltas / (n_classes - 1)) / 4
        expected = np.append(0.2 * p_relevant, 0.8 * frequencies / frequencies.sum())
        counts = np.asarray(X[y == k].sum(axis=0)).ravel()
        np.testing.assert_allclose(counts / counts.sum(), expected, atol=5e-3)
        assert not counts[expected == 0].any()
    assert X[:, :n_relevant].sum(axis=1).min() >= 1


def test_lengths_and_labels():
    X, y = make_token_classification(4000, document_length=80, random_state=0)
    lengths = np.asarray(X.sum(axis=1)).ravel()
    assert lengths.mean() == pytest.approx(80, rel=0.05)
    assert np.log(lengths).std() == pytest.approx(0.5, rel=0.1)
    np.testing.assert_array_equal(np.bincount(y), [2000, 2000])
    flipped = make_token_classification(4000, document_length=80, flip_y=0.3, random_state=0)[1]
    assert (flipped != y).mean() == pytest.approx(0.15, abs=0.02)


@settings(max_examples=60, deadline=None)
@given(
    n_groups=st.integers(1, 40),
    n_classes=st.integers(2, 7),
    n_relevant=st.integers(1, 30),
    n_irrelevant=st.integers(1, 100),
    document_length=st.floats(1, 60),
    random_state=st.integers(0, 2**32 - 1),
)
def test_single_relevant_token_satisfies_assumption_1(n_groups, n_classes, n_relevant, **more):
    X, y = make_token_classification(
        n_groups * n_classes,
        n_classes=n_classes,
        n_relevant_per_class=n_relevant,
        single_relevant=True,
        **more,
    )
    np.testing.assert_array_equal(np.bincount(y), n_groups)
    # One relevant token, once, of the document's own class; all that can occur do.
    relevant = X[:, : n_relevant * n_classes].tocoo()
    np.testing.assert_array_equal(relevant.row, np.arange(len(y)))
    np.testing.assert_array_equal(relevant.data, 1)
    np.testing.assert_array_equal(relevant.col // n_relevant, y)
    assert len(np.unique(relevant.col)) == n_classes * min(n_relevant, n_groups)
    # The shares of irrelevant tokens add up to the same numbers in every class, to the last bit.
    fitted = TokenImportanceTransformer("signed_frequency").fit(X, y)
    irrelevant = fitted.token_totals_[:, n_relevant * n_classes :]
    np.testing.assert_array_equal(irrelevant, np.broadcast_to(irrelevant[0], irrelevant.shape))
    assert not fitted.token_importance_[..., n_relevant * n_classes :].any()


def test_documents_are_the_same_from_release_to_release():
    X, y = make_token_classification(n_samples=50, flip_y=0.2, random_state=7)
    digest = hashlib.sha256(
        b"".join(a.astype("<i8").tobytes() for a in (X.data, X.indices, X.indptr, y))
    )
    assert digest.hexdigest()[:16] == "9d41edd160366e1d"


@pytest.mark.parametrize(
    "parameters", [{"n_samples": 0}, {"n_classes": 1}, {"relevant_share": 1.1}, {"delta": 2.0}]
)
def test_parameters_out_of_range(parameters):
    refused(next(iter(parameters)), make_token_classification, **parameters)


def test_documents_of_a_single_relevant_token_come_in_groups():
    message = "n_samples must be a multiple of n_classes=2 with single_relevant, got 11"
    refused(message, make_token_classification, 11, single_relevant=True)


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
