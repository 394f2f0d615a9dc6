"""Training on Dask: the same model from two real worker processes, also where one is lost.

What needs no process of its own runs on two workers in this one.
"""

import multiprocessing
import os
import pickle
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.saving import load_model, save_model

pytest.importorskip("distributed", reason='Dask is not installed: pip install "dask[distributed]"')


import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
from distributed import Client, LocalCluster
from helpers import assert_close_fit, generated_texts

from sklearn_clsattn.dask import DaskClsAttentionClassifier, Parts

X, y = make_token_classification(240, n_classes=3, random_state=0)
X = X.astype(np.float64)
TEXTS, LABELS = generated_texts(120, random_state=1)
LABELS = np.array(["bad", "good"])[LABELS]
SHORT = {"C": 1.0, "tol": 0.1}
PRELOADED = ["sklearn_clsattn.dask", "sklearn_clsattn.datasets"]


@pytest.fixture(autouse=True)
def short_search(monkeypatch):
    """Three values of C: every sum is a round of tasks."""
    monkeypatch.setattr("sklearn_clsattn.training.choose_c.CS", (0.3, 1.0, 3.0))


@pytest.fixture(scope="module")
def client():
    """Two workers in this process."""
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as here:
        yield here


@pytest.fixture(scope="module")
def processes():
    """Two workers in processes, in an order of their own."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    method = "spawn"
    if sys.platform == "linux":  # forked from one process that has imported what takes seconds
        from multiprocessing import forkserver  # of POSIX systems alone

        method = "forkserver"
        multiprocessing.get_context(method).set_forkserver_preload(PRELOADED)
        forkserver.ensure_running()  # before Dask asks for its own modules
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": method}),
        LocalCluster(processes=True, **options) as cluster,
        Client(cluster) as connected,
    ):
        yield connected


@pytest.fixture
def two(processes):
    """The client of two worker processes, after whatever another test did to them."""
    processes.wait_for_workers(2)
    return processes


def in_blocks(*sizes, make=lambda rows: rows, known=True, of=X):
    """Return an array in blocks of some sizes, the last one the rest."""
    blocks = [
        da.from_delayed(
            dask.delayed(make(of[a:b])), (b - a if known else np.nan, *of.shape[1:]), meta=of[:0]
        )
        for a, b in pairwise([0, *np.cumsum(sizes), len(y)])
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


# The same model as on one machine.


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_array.toarray])
def test_blocks_of_any_kind(client, make):
    blocks = in_blocks(70, 100, make=make)
    model = DaskClsAttentionClassifier(**SHORT, client=client).fit(blocks, da.from_array(y, 50))
    assert_close_fit(model, ClsAttentionClassifier(**SHORT).fit(X, y))


def test_default_fit_with_empty_uneven_blocks_of_unknown_sizes_and_weights(client):
    weights = np.random.default_rng(0).uniform(0, 2, len(y))
    columns = [in_blocks(3, 0, 150, 0, known=False, of=one) for one in (X, y, weights)]
    model = DaskClsAttentionClassifier(client=client).fit(*columns)
    assert_close_fit(model, ClsAttentionClassifier().fit(X, y, weights), tol=1e-7)


def test_a_block_may_have_no_weight(client):
    weights = np.ones(len(y))
    weights[:150] = 0.0
    columns = [in_blocks(150, of=one) for one in (X, y, weights)]
    model = DaskClsAttentionClassifier(client=client).fit(*columns)
    assert_close_fit(model, ClsAttentionClassifier().fit(X, y, weights), tol=1e-7)


@pytest.mark.slow
def test_processes_with_one_class_each(two):
    order = np.argsort(y, kind="stable")
    parts = np.split(order, [np.sum(y == 0)])
    blocks = [
        two.persist(
            da.from_delayed(dask.delayed(X[rows]), (len(rows), X.shape[1]), meta=X[:0]),
            workers=[worker],
        )
        for rows, worker in zip(parts, two.nthreads(), strict=True)
    ]
    labels = [da.from_array(y[rows], chunks=-1) for rows in parts]
    model = DaskClsAttentionClassifier(client=two)
    model.fit(da.concatenate(blocks), da.concatenate(labels))
    assert_close_fit(model, ClsAttentionClassifier().fit(X, y), tol=1e-7)


@pytest.mark.slow
def test_fits_at_the_same_time_wait_for_each_other(two):
    strengths = (0.3, 3.0)
    blocks, labels = in_blocks(120), da.from_array(y, 120)

    def fit(C):
        return DaskClsAttentionClassifier(C=C, tol=0.1, client=two).fit(blocks, labels)

    with ThreadPoolExecutor(2) as pool:
        for C, model in zip(strengths, pool.map(fit, strengths), strict=True):
            assert_close_fit(model, ClsAttentionClassifier(C=C, tol=0.1).fit(X, y))


def test_vectors_of_tokens(client, monkeypatch):
    monkeypatch.setattr("sklearn_clsattn.training.fit.SCALES", (1.0,))  # folds are others in Dask
    G = np.random.default_rng(0).normal(size=(X.shape[1], 8))
    model = ClsAttentionClassifier(C=0.1, tol=1e-8).fit(X, y, token_vectors=G)
    other = DaskClsAttentionClassifier(C=0.1, tol=1e-8, client=client)
    parts = da.from_array(X, chunks=(90, -1)), da.from_array(y, chunks=90)
    other.fit(*parts, token_vectors=G)
    assert np.abs(model.vector_weights_).max() > 0.01
    assert_allclose(other.vector_weights_, model.vector_weights_, atol=0.03)
    assert_allclose(other.to_local().predict_proba(X), model.predict_proba(X), atol=1e-3)


def texts_in(kind, texts):
    if kind == "bag":
        return db.from_sequence(list(texts), npartitions=3)
    return dd.from_pandas(pd.Series(texts), npartitions=3)


@pytest.mark.parametrize("kind", ["bag", "series"])
def test_texts(client, kind):
    vectorizer = HashingVectorizer(n_features=2**10, alternate_sign=False, norm=None)
    texts, labels = texts_in(kind, TEXTS), texts_in(kind, LABELS)
    model = DaskClsAttentionClassifier(vectorizer=vectorizer, **SHORT, client=client)
    model.fit(texts, labels)
    counts = vectorizer.transform(TEXTS)
    local = ClsAttentionClassifier(**SHORT).fit(counts, LABELS)
    assert_close_fit(model, local)
    predicted = model.predict(texts)
    assert predicted.dtype == predicted._meta.dtype == model.classes_.dtype
    assert_array_equal(predicted.compute(), local.predict(counts))
    assert model.score(texts, labels) == local.score(counts, LABELS)
    assert isinstance(model.to_local(), Pipeline)
    assert_array_equal(model.to_local().predict(TEXTS), predicted.compute())


def test_data_frames_keep_their_names(client):
    frame = pd.DataFrame(X[:, :9].toarray(), columns=list("abcdefghi"))
    model = DaskClsAttentionClassifier(**SHORT, client=client)
    model.fit(dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3))
    local = ClsAttentionClassifier(**SHORT).fit(frame, y)
    assert_close_fit(model, local)
    assert_array_equal(model.feature_names_in_, local.feature_names_in_)
    assert_allclose(
        model.predict_proba(dd.from_pandas(frame, npartitions=2)).compute(),
        local.predict_proba(frame),
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_are_lazy_and_know_their_shape(client, n_classes):
    model = DaskClsAttentionClassifier(C=1.0, client=client, max_iter=2, tol=10.0)
    model.fit(in_blocks(100), da.from_array(y % n_classes, 100))
    for method in ("predict", "predict_proba", "decision_function"):
        expected = getattr(model.to_local(), method)(X)
        lazy = getattr(model, method)(in_blocks(200))
        assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
        assert (lazy.chunks[0], type(lazy._meta)) == ((200, 40), np.ndarray)
        assert_array_equal(lazy.compute(), expected)
        assert_array_equal(lazy[150:210].compute(), expected[150:210])
        unknown = getattr(model, method)(in_blocks(200, known=False))
        assert np.isnan(unknown.shape[0])
        assert_array_equal(unknown.compute(), expected)


def test_it_is_an_estimator(client, tmp_path):
    model = DaskClsAttentionClassifier(client=client, C=2.0, max_iter=5, tol=1.0)
    parameters = {*ClsAttentionClassifier().get_params(), "vectorizer", "client"}
    assert model.get_params().keys() == parameters
    assert repr(DaskClsAttentionClassifier(C=2.0)) == "DaskClsAttentionClassifier(C=2.0)"
    copy = clone(model).set_params(C=3.0)
    assert (copy.client, copy.C, model.C) == (client, 3.0, 2.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'gamma'"):
        DaskClsAttentionClassifier(gamma=1)
    model.fit(in_blocks(100), da.from_array(y, 100))
    restored = pickle.loads(pickle.dumps(model))
    assert restored.client is None
    save_model(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert_array_equal(loaded.token_values_, model.token_values_)
    assert_array_equal(restored.to_local().predict(X), model.predict(in_blocks()).compute())
    assert not hasattr(model, "no_entry_")
    assert not hasattr(clone(model), "classes_")


# What is wrong is said, with the worker where there is one.


def refused(model, match, documents=None, labels=None, error=ValueError):
    documents = in_blocks(120) if documents is None else documents
    labels = da.from_array(y, 120) if labels is None else labels
    with pytest.raises(error, match=match):
        model.fit(documents, labels)


def test_wrong_input(client):
    model = DaskClsAttentionClassifier(C=1.0, client=client)
    texts, labels = texts_in("bag", TEXTS), texts_in("bag", LABELS)
    refused(model, "numbers of partitions, 2, 3, 2", labels=texts_in("bag", y))
    refused(
        model, r"inconsistent numbers of samples: \[120, 119\]", labels=da.from_array(y[:-1], 120)
    )
    refused(model, r"2 blocks of columns.*rechunk", da.ones((240, 8), chunks=(120, 4)))
    refused(model, "X contains texts", texts, labels)
    refused(clone(model).set_params(C=-1.0), "'C' parameter")
    refused(
        model, "number of classes of positive weight", labels=da.zeros(240, chunks=120, dtype=int)
    )
    with pytest.raises(TypeError, match=r"X must be a Dask .* ClsAttentionClassifier"):
        model.fit(X, y)
    model.set_params(vectorizer=CountVectorizer())
    refused(model, "Vocabulary not fitted", texts, labels)
    assert not hasattr(model, "classes_")
    frozen = FrozenEstimator(CountVectorizer().fit(TEXTS))
    assert clone(model).set_params(vectorizer=frozen).fit(texts, labels).score(texts, labels) > 0.8


def test_what_is_wrong_in_one_partition_names_it(client):
    def with_last_block(block, array):
        """Return an Array of two blocks of 120 rows that says it is whole, but is not."""
        shape = (120, *array.shape[1:])
        parts = [dask.delayed(array[:120]), dask.delayed(block)]
        return da.concatenate([da.from_delayed(part, shape, meta=array[:0]) for part in parts])

    model = DaskClsAttentionClassifier(C=1.0, client=client)
    refused(model, "expected the same tokens", with_last_block(X[120:, 1:], X))
    refused(model, r"Partition 1 of X \(from 0\): Negative values", with_last_block(-X[120:], X))
    short = with_last_block(y[121:], y)
    refused(model, r"Partition 1 of X \(from 0\): .*inconsistent numbers of samples", labels=short)
    mixed = with_last_block(y[120:].astype(str), y)
    refused(model, "not supported between", labels=mixed, error=TypeError)


@pytest.mark.long
@pytest.mark.parametrize(("C", "number"), [(1.0, 2), ("auto", 20)])
def test_the_parts_of_a_killed_worker_are_computed_again(two, monkeypatch, C, number):
    """Before training, and in it."""
    pids = two.run(os.getpid)
    summed, count = Parts.sum, 0

    def sum_and_kill(self, *arguments):
        nonlocal count
        count += 1
        if count == number:
            os.kill(min(pids.values()), signal.SIGKILL)
        return summed(self, *arguments)

    monkeypatch.setattr(Parts, "sum", sum_and_kill)
    blocks, labels = in_blocks(*[30] * 7), da.from_array(y, 30)
    model = DaskClsAttentionClassifier(C=C, client=two).fit(blocks, labels)
    assert count > number
    assert_close_fit(model, ClsAttentionClassifier(C=C).fit(X, y), tol=1e-7)


def test_probabilities_and_several_labels(client):
    P = 0.6 * np.eye(3)[y] + 0.4 * np.random.default_rng(0).dirichlet(np.ones(3), len(y))
    several = (P > 0.3).astype(int)
    P[:100] = np.eye(3)[y[:100]]  # probabilities of 0 and 1 in a whole partition
    named = pd.DataFrame(P, columns=["b", "a", "c"])
    for given, labels in (
        (dd.from_pandas(named, npartitions=1).repartition(divisions=[0, 100, 239]), named),
        (da.from_array(several, chunks=(100, -1)), several),
    ):
        model = DaskClsAttentionClassifier(client=client)
        model.fit(in_blocks(100), given)
        local = ClsAttentionClassifier().fit(X, labels)
        assert_array_equal(model.classes_, local.classes_)
        found = model.to_local().predict_proba(X)
        assert_allclose(found, local.predict_proba(X), atol=2e-3)
