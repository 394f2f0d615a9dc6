"""A corpus cut into chunks anywhere computes what one chunk of all documents does."""

import pickle
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import counts

from sklearn_clsattn._core.bag import TokenBag
from sklearn_clsattn._core.chunk import (
    Chunk,
    class_sums,
    expansion,
    loss_and_gradient,
    multiple_sums,
    selections,
    statistics_of,
    with_weights,
)
from sklearn_clsattn._core.corpus import Corpus, added
from sklearn_clsattn._core.documents import Documents
from sklearn_clsattn._core.prior_mean import prior_mean
from sklearn_clsattn._core.statistics import token_scaling

N_TOKENS = 9


@st.composite
def cuts(draw):
    """Return documents with copies and weights of 0, their labels, and where to cut them."""
    n, n_classes = draw(st.integers(6, 30)), draw(st.sampled_from([2, 3]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    X = sp.csr_array(counts(draw(st.integers(0, 10**6)), n, N_TOKENS))
    rows = np.concatenate([np.arange(n), rng.integers(0, n, n // 2)])  # copies, in other chunks
    X = X[rows].astype(draw(st.sampled_from([np.float64, np.float32, np.uint8, np.int64])))
    X.eliminate_zeros()
    y = rng.integers(0, n_classes, len(rows))
    y[:n_classes] = np.arange(n_classes)
    if draw(st.booleans()):  # chunks without some of the classes
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    weights = rng.integers(0, 4, len(y)) / 2
    weights[[np.flatnonzero(y == k)[0] for k in range(n_classes)]] = 1.0
    bounds = draw(st.lists(st.integers(0, len(y)), max_size=5))  # may repeat: empty chunks
    return X, np.array(["bad", "fair", "good"])[y], weights, sorted([0, *bounds, len(y)])


def corpus_of(X, y, weights, bounds):
    chunks = []
    for number, (a, b) in enumerate(pairwise(bounds)):
        labels, codes = np.unique(y[a:b], return_inverse=True)
        chunks.append(Chunk(X[a:b], codes, weights[a:b], number, labels))
    return Corpus(chunks)


def sums_of(X, y, weights, bounds, again=lambda corpus: corpus):
    """Return all that training asks of a corpus; `again` may put another in its place."""
    classes = np.unique(y)
    corpus = again(corpus_of(X, y, weights, bounds))
    found = [corpus.sum(class_sums, classes)]
    factors = np.arange(1.0, 1 + len(classes))
    corpus = again(corpus.map(with_weights, classes, factors, 1.3, np.float64))
    statistics = corpus.sum(statistics_of, len(classes))
    found += [statistics.class_weights, statistics.token_weights, statistics.shares]
    documents = Documents(corpus, statistics, X.shape, X.nnz).trained_in(np.float64, "cpu")
    n_different, sample = documents.sample()
    found += [documents.groups, n_different, sample.X.toarray(), sample.codes, sample.weights]
    own = documents.with_copies(documents.corpus).gather(lambda chunk: chunk.own)
    found.append(np.concatenate(own))
    units = token_scaling(statistics, scaling="log_odds", attend_cls=True)
    loss = documents.loss(np.float64, "cpu", units.cls_weight)
    mean = prior_mean(documents, loss, units)
    x = np.linspace(0.3, 0.7, 1 + loss.n_outputs)
    found += [mean.scale, mean.precision, mean.mean_loss, *loss.corpus.sum(multiple_sums, x)]
    loss.corpus = again(loss.corpus)
    matrix = torch.from_numpy(np.random.default_rng(0).normal(size=loss.zeros().shape))
    value, gradient = loss(matrix)
    found += [value, gradient.numpy(), loss.curvature(matrix).numpy()]
    found += [
        *loss.corpus.sum(expansion, matrix),
        loss.corpus.sum(selections, matrix[:-1, 0].numpy()),
    ]
    return found


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def pickled(corpus):
    return Corpus(pickle.loads(pickle.dumps(corpus.chunks)))


@settings(max_examples=40)
@given(cuts())
def test_any_cut_gives_the_sums_of_one_chunk(cut):
    X, y, weights, bounds = cut
    assert_same(sums_of(X, y, weights, bounds), sums_of(X, y, weights, [0, len(y)]))


@settings(max_examples=10)
@given(cuts())
def test_pickled_chunks_compute_the_same(cut):
    assert_same(sums_of(*cut, pickled), sums_of(*cut))
    bag = TokenBag(cut[0])
    again, ones = pickle.loads(pickle.dumps(bag)), torch.ones(N_TOKENS, 2, dtype=bag.dtype)
    assert (again.dtype, again.shape, again.backend) == (bag.dtype, bag.shape, bag.backend)
    assert torch.equal(again.sum_over_tokens(ones), bag.sum_over_tokens(ones))


@settings(max_examples=10)
@given(cuts())
def test_what_is_made_of_a_corpus_leaves_it_as_it_was(cut):
    """Evidence of one corpus is not that of another, though both share bags and targets."""
    X, y, weights, bounds = cut
    corpus, classes = corpus_of(X, y, weights, bounds), np.unique(y)
    before = pickle.dumps(corpus.chunks)
    weighted = corpus.map(with_weights, classes, np.ones(len(classes)), 1.3, np.float64)
    statistics = weighted.sum(statistics_of, len(classes))
    documents = Documents(weighted, statistics, X.shape, X.nnz).trained_in(np.float64, "cpu")
    units = token_scaling(statistics, scaling="log_odds", attend_cls=True)
    loss = documents.loss(np.float64, "cpu", units.cls_weight)
    plain, matrix = loss.corpus, loss.zeros()
    value, _ = plain.sum(loss_and_gradient, matrix)
    mean = prior_mean(documents, loss, units)
    with_half, (changed, _) = loss.corpus, loss(matrix)
    mean.fit(0.01)
    assert with_half.sum(loss_and_gradient, matrix)[0] == changed
    assert plain.sum(loss_and_gradient, matrix)[0] == value
    assert pickle.dumps(corpus.chunks) == before


def test_sums_of_single_precision_are_in_double():
    one, other = torch.full((2,), 2.0**24), torch.ones(2)
    total, (numbers, count) = added((one, (np.ones(2), 1)), (other, (np.ones(2), 2)))
    assert total.dtype == torch.float64
    assert_array_equal(total, [2.0**24 + 1] * 2)
    assert_array_equal(numbers, [2.0, 2.0])
    assert count == 3
