"""Small things that several test files share."""

import warnings
from copy import copy
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._bags import Bags
from sklearn_clsattn._targets import Targets
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.training.documents import Documents

ARRAYS = ["attention_scores_", "token_values_", "intercept_", "token_importance_", "loss_curve_"]


def data(n_classes=2, seed=0, n_documents=60, n_tokens=20):
    """Return counts in which the first tokens tell the classes apart, and labels.

    The last document is empty, and the last token is in no document.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n_documents) % n_classes
    means = np.full((n_documents, n_tokens), 0.4)
    means[np.arange(n_documents), y] = 1.5
    X = rng.poisson(means).astype(float)
    X[-1] = 0
    X[:, -1] = 0
    return sp.csr_matrix(X), y


def single_relevant(n_documents=120, n_classes=2, n_relevant=5, n_irrelevant=50, length=10, seed=0):
    """Return counts and labels of Assumption 1: every document has one relevant token, once."""
    X, y = make_token_classification(
        n_documents,
        n_classes=n_classes,
        n_relevant_per_class=n_relevant,
        n_irrelevant=n_irrelevant,
        document_length=length,
        delta=0,
        single_relevant=True,
        random_state=seed,
    )
    return sp.csr_matrix(X, dtype=float), y


def generated_texts(n_samples=1000, *, random_state=0, **how):
    """Return texts whose words are the tokens of generated counts, in any order, and labels."""
    rng = np.random.RandomState(random_state)
    X, y = make_token_classification(n_samples, random_state=rng, **how)
    words = np.array([made_up_word(number) for number in range(X.shape[1])], dtype=object)
    texts = []
    for start, stop in pairwise(X.indptr):
        text = rng.permutation(np.repeat(words[X.indices[start:stop]], X.data[start:stop]))
        text[rng.random_sample(len(text)) < 0.1] += ","
        texts.append(f"{' '.join(text)}.")
    return np.array(texts, dtype=object), y


def made_up_word(number):
    """Return a word of three syllables, another one for each number."""
    number = 7919 * number % 80**3  # neighbours have nothing in common
    word = ""
    for _ in range(3):
        number, syllable = divmod(number, 80)
        word += "bcdfghklmnprstvz"[syllable // 5] + "aeiou"[syllable % 5]
    return word


def targets(codes, n_classes=None):
    """Return the targets of documents with one label each, of classes named 0, 1, 2, ..."""
    return Targets(np.arange(n_classes or int(np.max(codes)) + 1), np.asarray(codes))


def core_documents(X, codes, weights=None, n_classes=None):
    """Return documents as the private core takes them, each of weight 1 if `weights` is None."""
    weights = np.ones(len(codes)) if weights is None else weights
    return Documents(Bags(sp.csr_array(X)), targets(codes, n_classes), weights)


def settled(**parameters):
    """Return a classifier that trains until hardly anything can be gained."""
    return ClsAttentionClassifier(**{"tol": 1e-12, "max_iter": 3000, **parameters})


@cache
def hardly_fitted(n_classes, n_tokens, attend_cls=True, **parameters):
    """Return a classifier whose arrays a test replaces."""
    y = np.arange(2 * n_classes) % n_classes
    X = np.random.default_rng(0).poisson(1.0, (len(y), n_tokens))
    model = ClsAttentionClassifier(attend_cls=attend_cls, max_iter=1, tol=1e9, **parameters)
    return model.fit(X, y)


@st.composite
def drawn_models(draw, classes=(2, 3, 4)):
    """Return a model with drawn scores and values, in half of the cases integers, and counts.

    Integers make ties; a sixth of the documents has no token. In half of the cases scores are so
    far apart that attention shares underflow.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_tokens = draw(st.integers(1, 7))
    model = copy(hardly_fitted(draw(st.sampled_from(classes)), n_tokens, draw(st.booleans())))
    shape, whole = model.token_values_.shape, draw(st.booleans())
    model.entry_scale_ = draw(st.sampled_from([1.0, 2.5]))
    model.token_values_ = rng.integers(-3, 4, shape) * 1.0 if whole else rng.normal(size=shape)
    model.intercept_ = 0.5 * rng.integers(-2, 3, model.intercept_.shape)
    far = draw(st.sampled_from([0, 400])) * rng.integers(-3, 4, n_tokens + 1)
    model.attention_scores_ = far[1:] + (0.0 if whole else 2 * rng.normal(size=n_tokens))
    if model.cls_weight_:
        model.cls_score_ = float(far[0] + (0.0 if whole else rng.normal()))
        model.cls_weight_ = draw(st.sampled_from([1.0, 1e-300]))
    X = rng.integers(0, 2 if whole else 3, (draw(st.integers(1, 3)), n_tokens)).astype(float)
    return model, sp.csr_array(X)


def network(X, y, **parameters):
    """Return a network after two epochs, of which it is not asked how well it does."""
    from sklearn_clsattn.paper import AttentionNetworkClassifier

    few = {"embedding_dim": 4, "max_iter": 2, "early_stopping": False, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return AttentionNetworkClassifier(**few, **parameters).fit(X, y)


def assert_same_fit(one, other):
    """Require every number that was fitted to be the same to the last bit."""
    for name in ARRAYS:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def assert_close_fit(one, other, tol=1e-10):
    """Require two fits to have taken the same way to the same model, up to rounding."""
    assert one.n_iter_ == other.n_iter_
    assert_array_equal(one.classes_, other.classes_)
    for name in [*ARRAYS, "C_", "cls_score_", "cls_weight_", "optimality_gap_"]:
        mine, its = getattr(one, name), getattr(other, name)
        assert_allclose(mine, its, rtol=tol, atol=tol, err_msg=name)
    assert_array_equal(one.selected_tokens_, other.selected_tokens_)
    assert_array_equal(one.selection_counts_, other.selection_counts_)


def assert_gradient(function, x, free=1.0):
    """Compare a gradient with differences along directions of those numbers that are free."""
    rng, gradient, h = np.random.default_rng(0), function(x)[1], 1e-4
    for _ in range(3):
        direction = free * torch.from_numpy(rng.normal(size=tuple(x.shape)))
        above, below = (function(x + step * direction)[0] for step in (h, -h))
        along = (gradient * direction).numpy()
        assert abs(along.sum() - (above - below) / (2 * h)) < 1e-6 * np.abs(along).sum() + 1e-7


def sums_of_documents(explanation, terms):
    """Return the sums of an explanation's terms by document, (n_documents, n_targets)."""
    documents = np.repeat(np.arange(len(explanation)), np.diff(explanation.indptr))
    return np.eye(len(explanation))[:, documents] @ terms


def refused(match, call, *arguments, error=ValueError, **options):
    """Require a call to fail with an error that says so."""
    with pytest.raises(error, match=match):
        call(*arguments, **options)


def put(path, content):
    """Write bytes or text into a file; return its path."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def log_losses(outputs, codes):
    """Return the log loss of each document (n_documents,) for outputs (n_documents, n_outputs)."""
    if outputs.shape[1] == 1:
        outputs = np.column_stack([np.zeros(len(outputs)), outputs])
    return -log_softmax(outputs, axis=1)[np.arange(len(codes)), codes]
