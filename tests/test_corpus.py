"""A corpus cut into chunks anywhere computes what one chunk of all documents does."""

import pickle
from copy import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import counts

from sklearn_clsattn._core.chunk import (
    Chunk,
    class_weights,
    entry_sums,
    statistics_of,
    with_class_factors,
    with_classes,
    with_damped_entries,
)
from sklearn_clsattn._core.corpus import Corpus, added
from sklearn_clsattn._core.documents import CorpusLoss, Documents
from sklearn_clsattn._core.prior_mean import prior_mean
from sklearn_clsattn._core.shard import expansion, multiple_sums
from sklearn_clsattn._core.statistics import token_scaling
from sklearn_clsattn._targets import Targets

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
        chunks.append(Chunk(X[a:b], Targets.from_labels(y[a:b]), weights[a:b], number))
    return Corpus(chunks)


def documents_of(corpus, X, y):
    """Return the documents of a corpus before training, with damped entries."""
    classes = np.unique(y)
    factors = np.arange(1.0, 1 + len(classes))
    corpus = corpus.map(with_classes, classes).map(with_class_factors, factors)
    corpus = corpus.map(with_damped_entries, 1.3, np.float64)
    return Documents(corpus, corpus.sum(statistics_of), X.shape, X.nnz)


def loss_and_mean(documents, attend_cls):
    units = token_scaling(documents.statistics, scaling="log_odds", attend_cls=attend_cls)
    loss = CorpusLoss(documents, np.float64, "cpu", units.cls_weight)
    return loss, prior_mean(documents, loss, units)


def sums_of(cut, attend_cls, again=copy):
    """Return all that training asks of a corpus; `again` may put another in its place."""
    X, y, weights, bounds = cut
    corpus = again(corpus_of(X, y, weights, bounds))
    found = [corpus.map(with_classes, np.unique(y)).sum(class_weights), corpus.sum(entry_sums)]
    documents = documents_of(corpus, X, y)
    documents = replace(documents, corpus=again(documents.corpus))
    statistics = documents.statistics
    found += [statistics.class_weights, statistics.token_weight, statistics.shares]
    n_different, sample = documents.sample()
    found += [documents.groups, n_different, sample.X.toarray()]
    found += [sample.targets.values, sample.weights]
    loss, mean = loss_and_mean(documents, attend_cls)
    x = np.linspace(0.3, 0.7, 1 + loss.n_outputs)
    numerators = mean._evidence.gather(lambda evidence: evidence.numerators)
    found += [np.concatenate(numerators), mean.scale, mean.precision, mean.mean_loss]
    found += mean._evidence.sum(multiple_sums, x)
    loss.shards = again(loss.shards)
    matrix = torch.from_numpy(np.random.default_rng(0).normal(size=loss.zeros().shape))
    found += [*loss(matrix), loss.curvature(matrix), *loss.shards.sum(expansion, matrix)]
    return [*found, documents.count_selected(matrix[:-1, 0].numpy())]


def pickled(corpus):
    return Corpus(pickle.loads(pickle.dumps(corpus.chunks)))


def whole(cut):
    """Return the same documents in one chunk."""
    X, y, weights, _ = cut
    return X, y, weights, [0, len(y)]


@settings(max_examples=50)
@given(cuts(), st.booleans(), st.sampled_from([copy, pickled]))
def test_any_cut_gives_the_sums_of_one_chunk(cut, attend_cls, again):
    found, expected = sums_of(cut, attend_cls, again), sums_of(whole(cut), attend_cls)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def test_sums_of_single_precision_are_in_double():
    one, other = torch.full((2,), 2.0**24), torch.ones(2)
    total, (numbers, count) = added((one, (np.ones(2), 1)), (other, (np.ones(2), 2)))
    assert total.dtype == torch.float64
    assert_array_equal(total, [2.0**24 + 1] * 2)
    assert_array_equal(numbers, [2.0, 2.0])
    assert count == 3
