"""Token bags: both backends against dense products; nothing copied, nothing altered."""

import threading
import time

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import counts

from sklearn_clsattn._core import bag
from sklearn_clsattn._core.backend import ThreadShare, in_background
from sklearn_clsattn._core.bag import TokenBag

BACKENDS = [
    pytest.param(
        "torch",
        marks=pytest.mark.skipif(
            not torch.backends.mkl.is_available(), reason="PyTorch was built without MKL"
        ),
    ),
    "scipy",
]
DTYPES = {"float32": torch.float32, "float64": torch.float64}


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


def check_against_dense(bag, dense, rtol):
    """Compare all that a bag offers with products of dense float64 matrices."""
    n_documents, n_tokens = dense.shape
    rng = np.random.default_rng(0)
    for columns in (1, 2, 4):
        per_token = rng.normal(size=(n_tokens, columns))
        per_document = rng.normal(size=(n_documents, columns))
        tolerance = {"rtol": rtol, "atol": rtol * max(1.0, np.abs(dense).sum())}
        tokens, documents = (torch.from_numpy(a).to(bag.dtype) for a in (per_token, per_document))
        for result, expected in [
            (bag.sum_over_tokens(tokens), dense @ per_token),
            (bag.sum_over_documents(documents), dense.T @ per_document),
            (bag.squared_sum_over_documents(documents), (dense**2).T @ per_document),
        ]:
            assert result.dtype == bag.dtype
            assert_allclose(result.numpy(), expected, **tolerance)
    assert_allclose(bag.document_totals().numpy(), dense.sum(axis=1), rtol=rtol)
    documents, tokens = bag.coordinates()
    assert documents.dtype == tokens.dtype == torch.int64
    rebuilt = sp.coo_array(
        (bag.nonzeros.numpy().astype(float), (documents.numpy(), tokens.numpy())),
        shape=dense.shape,
    )
    assert_allclose(rebuilt.toarray(), dense, rtol=rtol)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_those_of_the_dense_matrix(backend, dtype, index_dtype):
    X = counts(0, 20, 15).astype(dtype)
    X.indices, X.indptr = X.indices.astype(index_dtype), X.indptr.astype(index_dtype)
    bag = TokenBag(X, backend=backend)
    assert (bag.backend, bag.dtype, bag.shape) == (backend, DTYPES[dtype], X.shape)
    check_against_dense(bag, X.toarray(), 1e-6 if dtype == "float32" else 1e-13)


@settings(max_examples=25)
@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.2, 0.8]),
    st.sampled_from(["torch", "scipy"]),
)
def test_any_shape_and_filling(n_documents, n_tokens, seed, density, backend):
    if backend == "torch" and not torch.backends.mkl.is_available():
        backend = "scipy"
    rng = np.random.default_rng(seed)
    dense = rng.uniform(0.1, 3, (n_documents, n_tokens)) * (
        rng.random((n_documents, n_tokens)) < density
    )
    check_against_dense(TokenBag(sp.csr_array(dense), backend=backend), dense, 1e-13)


@pytest.mark.parametrize("kind", [np.uint8, np.int64, bool, np.float32])
def test_the_training_type_need_not_be_that_of_the_matrix(backend, kind):
    X = counts(1).astype(kind)
    for dtype in ("float32", "float64"):
        bag = TokenBag(X, dtype=getattr(np, dtype), backend=backend)
        check_against_dense(bag, X.toarray().astype(float), 1e-6)
        assert bag.dtype == bag.nonzeros.dtype == DTYPES[dtype]


def test_explicit_zeros_unsorted_indices_and_split_entries(backend):
    X = sp.csr_matrix(
        (np.array([2.0, 0.0, 1.0, 4.0, 0.5]), np.array([3, 1, 0, 2, 2]), np.array([0, 3, 3, 5])),
        shape=(3, 4),
    )
    dense = np.array([[1.0, 0, 0, 2], [0, 0, 0, 0], [0, 0, 4.5, 0]])
    bag = TokenBag(X, backend=backend)
    per_token, per_document = torch.arange(8.0).reshape(4, 2), torch.arange(6.0).reshape(3, 2)
    assert_allclose(bag.sum_over_tokens(per_token.double()), dense @ per_token.numpy())
    assert_allclose(bag.sum_over_documents(per_document.double()), dense.T @ per_document.numpy())
    assert_array_equal(X.indices, [3, 1, 0, 2, 2])


def test_the_matrix_is_shared_and_never_altered(backend):
    X = counts(2)
    before = [a.tobytes() for a in (X.data, X.indices, X.indptr)]
    bag = TokenBag(X, backend=backend)
    assert np.shares_memory(bag.nonzeros.numpy(), X.data)
    check_against_dense(bag, X.toarray(), 1e-13)
    assert [a.tobytes() for a in (X.data, X.indices, X.indptr)] == before


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_read_only_memory_maps_are_shared_without_a_warning(backend, index_dtype, tmp_path):
    X = counts(3)
    X.indices, X.indptr = X.indices.astype(index_dtype), X.indptr.astype(index_dtype)
    joblib.dump(X, tmp_path / "X.joblib")
    mapped = joblib.load(tmp_path / "X.joblib", mmap_mode="r")
    assert not mapped.data.flags.writeable
    bag = TokenBag(mapped, backend=backend)  # any warning is an error in these tests
    assert np.shares_memory(bag.nonzeros.numpy(), mapped.data)
    check_against_dense(bag, X.toarray(), 1e-13)
    assert not mapped.data.flags.writeable
    assert_array_equal(mapped.toarray(), X.toarray())


def test_a_bag_outlives_the_matrix_it_was_made_of(backend):
    X = counts(4)
    dense = X.toarray()
    X.data.flags.writeable = False
    bag = TokenBag(X, backend=backend)
    del X
    check_against_dense(bag, dense, 1e-13)


def test_scipy_multiplies_on_the_cpu_only():
    with pytest.raises(ValueError, match="on the CPU only"):
        TokenBag(counts(5), device="meta", backend="scipy")


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_the_transpose_is_made_on_a_thread_of_its_own(two_threads):
    """A fit's gradient, and an error while it is made, arrive with the first product."""
    X = sp.csr_array(counts(0, 30, 6, 0.4).astype(float))
    with ThreadShare():
        check_against_dense(TokenBag(X), X.toarray(), 1e-12)
        waiting = in_background(lambda: threading.get_ident() // 0)
    with pytest.raises(ZeroDivisionError):
        waiting()


def test_threads_multiply_blocks_which_do_not_depend_on_their_number(two_threads, monkeypatch):
    X = sp.csr_array(counts(0, 300, 40, 0.4).astype(float))
    whole = TokenBag(X)
    monkeypatch.setattr(bag, "BLOCK_ENTRIES", 500)
    threads = set()
    mm = torch.mm

    def product(*operands, out):
        threads.add(threading.get_ident())
        time.sleep(1e-3)  # so that the other thread comes to some
        return mm(*operands, out=out)

    monkeypatch.setattr(torch, "mm", product)
    found = []
    for n in (1, 2):
        torch.set_num_threads(n)
        with ThreadShare():
            blocks = TokenBag(X)
            check_against_dense(blocks, X.toarray(), 1e-12)
            found.append(blocks.sum_over_tokens(torch.ones(40, 2, dtype=torch.float64)))
        assert (len(threads) > 1) == (n > 1)
    assert torch.equal(*found)
    assert torch.equal(whole.sum_over_tokens(torch.ones(40, 2, dtype=torch.float64)), found[0])
