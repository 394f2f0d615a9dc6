"""The messages of customers: the same everywhere, all different, and with labels that they tell."""

import hashlib

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from sklearn_clsattn.datasets import load_requests


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
