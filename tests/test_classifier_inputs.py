"""What ClsAttentionClassifier takes: formats, number types, labels, odd data; and refuses."""

from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from helpers import assert_same_fit, data, settled
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from sklearn_clsattn import (
    ChunkedCounts,
    ClsAttentionClassifier,
    ClsAttentionClassifierCV,
    TokenImportanceTransformer,
    _machine,
)
from sklearn_clsattn._documents import damped
from sklearn_clsattn.paper import (
    AttentionNetworkClassifier,
    EmbeddingClassifier,
    FrozenEmbeddingClassifier,
    OneStepClassifier,
    PenalizedOneStepClassifier,
)
from sklearn_clsattn.theory import one_step_embeddings

PAPER = [
    AttentionNetworkClassifier,
    EmbeddingClassifier,
    FrozenEmbeddingClassifier,
    OneStepClassifier,
    PenalizedOneStepClassifier,
]
CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


def as_bytes(X):
    return [array.tobytes() for array in (X.data, X.indices, X.indptr)]


FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("layout", FORMATS)
def test_every_sparse_format(layout, kind):
    X, y = data()
    expected = ClsAttentionClassifier().fit(X, y)
    Z = getattr(sp, f"{layout}_{kind}")(X)
    assert_same_fit(ClsAttentionClassifier().fit(Z, y), expected)
    assert_array_equal(expected.decision_function(Z), expected.decision_function(X))
    for method in (expected.attention, expected.contributions, expected.select_tokens):
        assert_array_equal(method(Z).toarray(), method(X).toarray())


def test_dense_arrays_data_frames_and_wide_indices():
    X, y = data()
    expected = ClsAttentionClassifier().fit(X, y)
    dense = ClsAttentionClassifier().fit(X.toarray(), y)
    assert_same_fit(dense, expected)
    assert_allclose(dense.decision_function(X.toarray()), expected.decision_function(X))
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert_same_fit(ClsAttentionClassifier().fit(wide, y), expected)
    assert_array_equal(expected.decision_function(wide), expected.decision_function(X))
    assert_array_equal(expected.attention(wide).toarray(), expected.attention(X).toarray())

    names = [f"word {i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(X.toarray(), columns=names)
    framed = ClsAttentionClassifier().fit(frame, pd.Series(y))
    assert_same_fit(framed, expected)
    assert_array_equal(framed.feature_names_in_, names)
    with pytest.raises(ValueError, match="feature names"):
        framed.predict(frame[names[::-1]])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, "f2", "f4", "f8"])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_number_type(dtype, sparse):
    if sparse and dtype == "f2":
        pytest.skip("SciPy has no sparse matrices of half precision")
    X, y = data()
    X = (X > 0).astype(float)
    expected = settled(tol=1e-7).fit(X, y)
    Z = X.astype(dtype) if sparse else X.toarray().astype(dtype)
    # Wholly trained in single precision, rounding may end it before `tol` does.
    model = settled(tol=1e-5).fit(Z, y)
    for name in ("attention_scores_", "token_values_", "intercept_"):
        assert getattr(model, name).dtype == np.float64
    assert_allclose(model.predict_proba(Z), expected.predict_proba(X), atol=3e-3)
    assert_array_equal(model.predict(Z), expected.predict(X))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["spam", "ham"]),
        np.array(["spam", "ham"], dtype=object),
        np.array([False, True]),
        np.array([-1, 1]),
        np.array([-7, -3, 40]),
        np.array([0.5, 2.5, 3.5]).astype(int),
        np.array([0.0, 1.0]),
    ],
    ids=str,
)
def test_labels_of_any_type(labels):
    X, y = data(len(labels))
    codes = np.argsort(np.argsort(labels))[y]
    model = ClsAttentionClassifier().fit(X, labels[y])
    assert_array_equal(model.classes_, np.sort(labels))
    assert model.classes_.dtype == labels.dtype
    expected = ClsAttentionClassifier().fit(X, codes)
    assert_same_fit(model, expected)
    assert_array_equal(model.predict(X), np.sort(labels)[expected.predict(X)])
    assert_array_equal(
        ClsAttentionClassifier().fit(X, labels[y].tolist()).predict(X), model.predict(X)
    )


@CLASSES
@pytest.mark.parametrize("attend_cls", [True, False])
@pytest.mark.parametrize("token_scaling", ["log_odds", None])
def test_all_counts_zero(n_classes, attend_cls, token_scaling):
    X, y = np.zeros((9, 4)), np.arange(9) % n_classes
    model = settled(attend_cls=attend_cls, token_scaling=token_scaling, tol=1e-6).fit(X, y)
    frequencies = np.bincount(y) / 9
    assert_allclose(model.predict_proba(X), np.tile(frequencies, (9, 1)), atol=2e-3)
    assert len(model.selected_tokens_) == 0
    assert np.isfinite(model.predict_proba(np.ones((2, 4)))).all()


def test_empty_documents_have_the_intercept_alone():
    X, y = data()
    model = ClsAttentionClassifier().fit(X, y)
    assert_array_equal(model.decision_function(X[-1:]), model.intercept_)
    assert model.attention(X[-1:]).sum() == 0
    assert not model.select_tokens(X[-1:]).toarray().any()


@CLASSES
@pytest.mark.parametrize("token_scaling", ["log_odds", None])
def test_a_token_of_no_document_changes_nothing(n_classes, token_scaling):
    X, y = data(n_classes)
    model = settled(token_scaling=token_scaling).fit(X, y)
    wider = sp.hstack([X, sp.csr_matrix((X.shape[0], 3))], format="csr")
    other = settled(token_scaling=token_scaling).fit(wider, y)
    assert_allclose(other.decision_function(wider), model.decision_function(X), atol=1e-4)
    assert_allclose(other.attention_scores_[:-3], model.attention_scores_, atol=1e-4)
    assert_array_equal(other.token_values_[..., -3:], 0)
    assert_array_equal(other.selected_tokens_, model.selected_tokens_)


# scikit-learn takes as many labels as documents for a regression's.
@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
@pytest.mark.parametrize("n_classes", [2, 5, 100])
def test_one_document_per_class(n_classes):
    X = sp.csr_matrix(np.eye(n_classes) * 3)
    model = ClsAttentionClassifier(C=100.0).fit(X, np.arange(n_classes))
    assert_array_equal(model.predict(X), np.arange(n_classes))


def test_a_hundred_classes():
    X, y = data(100, n_documents=400, n_tokens=110)
    model = ClsAttentionClassifier().fit(X, y)
    assert model.token_values_.shape == (100, 110)
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_X_is_never_altered(dtype):
    X, y = data(3)
    X = X.astype(dtype)
    for row in range(X.shape[0]):  # unsorted indices must stay as they are, too
        part = slice(X.indptr[row], X.indptr[row + 1])
        X.data[part], X.indices[part] = X.data[part][::-1].copy(), X.indices[part][::-1].copy()
    X.has_sorted_indices = False
    before = as_bytes(X)
    model = ClsAttentionClassifier().fit(X, y)
    for method in ("predict_proba", "attention", "contributions", "select_tokens"):
        getattr(model, method)(X)
    assert as_bytes(X) == before
    dense = X.toarray()
    kept = dense.copy()
    assert_allclose(
        model.fit(dense, y).decision_function(dense), model.decision_function(X), atol=1e-9
    )
    assert_array_equal(dense, kept)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_read_only_memory_maps(dtype, tmp_path):
    X, y = data()
    joblib.dump((X.astype(dtype), y), tmp_path / "data.joblib")
    mapped, labels = joblib.load(tmp_path / "data.joblib", mmap_mode="r")
    assert not mapped.data.flags.writeable
    model = ClsAttentionClassifier().fit(mapped, labels)
    assert_same_fit(model, ClsAttentionClassifier().fit(X.astype(dtype), y))
    assert_array_equal(model.predict_proba(mapped), model.predict_proba(X))
    assert_array_equal(model.attention(mapped).toarray(), model.attention(X).toarray())


def test_an_entry_stored_in_two_parts_is_selected_once():
    X, y = data()
    split = sp.csr_matrix(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    model, whole = settled().fit(split, y), settled().fit(X, y)
    assert_allclose(model.predict_proba(split), whole.predict_proba(X), atol=1e-4)
    assert_array_equal(model.selection_counts_, whole.selection_counts_)
    assert_array_equal(model.select_tokens(split).toarray(), model.select_tokens(X).toarray())
    assert model.select_tokens(split).nnz == model.select_tokens(X).nnz


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, -np.inf, 1j])
@pytest.mark.parametrize("sparse", [True, False])
def test_numbers_that_are_no_weights(value, sparse):
    X, y = data()
    fitted = ClsAttentionClassifier().fit(X, y)
    bad = X.toarray().astype(complex if value == 1j else float)
    bad[3, 2] = value
    bad = sp.csr_matrix(bad) if sparse else bad
    message = {-1.0: "Negative values", 1j: "Complex data"}.get(value, "NaN|infinity")
    with pytest.raises(ValueError, match=message):
        ClsAttentionClassifier().fit(bad, y)
    for method in ("predict", "predict_proba", "attention", "contributions", "select_tokens"):
        with pytest.raises(ValueError, match=message):
            getattr(fitted, method)(bad)


def test_labels_that_do_not_make_a_problem():
    X, y = data()
    with pytest.raises(ValueError, match=r"at least two classes.*one class only: 'spam'"):
        ClsAttentionClassifier().fit(X, ["spam"] * len(y))
    with pytest.raises(ValueError, match=r"positive weight.*\[1\].*sample_weight"):
        ClsAttentionClassifier().fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match=r"positive weight.*\[0\].*class_weight"):
        ClsAttentionClassifier(class_weight={1: 0.0}).fit(X, y)
    with pytest.raises(ValueError, match=r"positive weight|non-zero"):
        ClsAttentionClassifier().fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="continuous"):
        ClsAttentionClassifier().fit(X, y + 0.5 * np.arange(len(y)) + 0.1)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ClsAttentionClassifier().fit(X, y[:-1])


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_weights_that_are_no_weights(weight):
    X, y = data()
    weights = np.ones(len(y))
    weights[2] = weight
    with pytest.raises(ValueError, match=r"(?i)negative|NaN|infinity"):
        ClsAttentionClassifier().fit(X, y, sample_weight=weights)


def test_three_classes_of_which_one_has_no_weight():
    X, y = data(3)
    model = settled(tol=1e-6).fit(X, y, sample_weight=(y != 1).astype(float))
    assert_array_equal(model.classes_, [0, 1, 2])
    assert (model.predict_proba(X)[:, 1] < 1e-3).all()


def test_another_width_and_not_fitted():
    X, y = data()
    fitted = ClsAttentionClassifier().fit(X, y)
    for method in ("predict", "predict_proba", "attention", "contributions", "select_tokens"):
        with pytest.raises(ValueError, match=r"19 features.*expecting 20 features"):
            getattr(fitted, method)(X[:, :-1])
        with pytest.raises(NotFittedError):
            getattr(ClsAttentionClassifier(), method)(X)
    for name in ("token_embeddings_", "cls_embedding_", "output_vector_"):
        assert not hasattr(ClsAttentionClassifier(), name)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("gpu", "expected 'cpu', 'cuda', 'auto' or a torch.device"),
        (None, "expected 'cpu', 'cuda', 'auto' or a torch.device"),
        ("mps", "'mps' has no sparse matrix products"),
        (torch.device("meta"), "'meta' has no sparse matrix products"),
    ],
)
def test_devices_that_cannot_be_used(device, message):
    with pytest.raises(ValueError, match=message):
        ClsAttentionClassifier(device=device).fit(*data())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none():
    with pytest.raises(ValueError, match="finds no CUDA device"):
        ClsAttentionClassifier(device="cuda").fit(*data())
    assert_same_fit(
        ClsAttentionClassifier(device="auto").fit(*data()), ClsAttentionClassifier().fit(*data())
    )


def test_strided_index_arrays():
    """SciPy keeps strided views as index arrays; PyTorch would read them as contiguous."""
    X, y = data(2)
    expected = ClsAttentionClassifier().fit(X, y).decision_function(X)
    for name in ("data", "indices", "indptr"):
        for step in (2, -1):
            parts = {key: getattr(X, key) for key in ("data", "indices", "indptr")}
            base = np.zeros(2 * len(parts[name]), dtype=parts[name].dtype)
            view = base[::2] if step == 2 else base[: len(parts[name])][::-1]
            view[:] = parts[name]
            Z = sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
            setattr(Z, name, view)
            assert not getattr(Z, name).flags.c_contiguous
            got = ClsAttentionClassifier().fit(Z, y).decision_function(X)
            assert_array_equal(got, expected)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_class_weights_that_are_no_weights(weight):
    X, y = data(3)
    with pytest.raises(ValueError, match="class_weight must be finite and not negative"):
        ClsAttentionClassifier(class_weight={0: weight, 1: 1, 2: 1}).fit(X, y)


@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e4])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_multiple_of_X_gives_the_same_model(factor, n_classes):
    X, y = data(n_classes)
    X = X.astype(np.float64)
    expected = ClsAttentionClassifier(tol=1e-8, max_iter=500).fit(X, y)
    scaled = ClsAttentionClassifier(tol=1e-8, max_iter=500).fit(X * factor, y)
    assert_allclose(scaled.decision_function(X * factor), expected.decision_function(X), atol=1e-3)


def test_extreme_penalties_are_trained_on_in_double():
    X, y = data(2)
    for options in ({"C": 1e-300}, {"attention_C": 1e-45}):
        model = ClsAttentionClassifier(**options).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()


def test_warm_start_needs_the_same_names():
    X, y = data(2)
    names = [f"token {s}" for s in range(X.shape[1])]
    frame = pd.DataFrame(X.toarray(), columns=names)
    model = ClsAttentionClassifier(warm_start=True).fit(frame, y)
    model.fit(frame, y)
    assert model.loss_curve_[0] < 0.9 * np.log(2)
    backwards = frame[names[::-1]]
    model.fit(backwards, y)
    cold = ClsAttentionClassifier().fit(backwards, y)
    assert model.loss_curve_[0] == cold.loss_curve_[0]


def test_where_pytorch_has_no_sparse_kernels(monkeypatch):
    """A whole fit on SciPy's products, as on macOS and Arm."""
    X, y = data(3)
    expected = ClsAttentionClassifier().fit(X.astype(np.float64), y)
    monkeypatch.setattr("torch.backends.mkl.is_available", lambda: False)
    model = ClsAttentionClassifier().fit(X.astype(np.float64), y)
    assert_allclose(model.predict_proba(X), expected.predict_proba(X), rtol=1e-9)


def test_room_beyond_the_last_entry_is_not_read():
    X, y = data()
    model = ClsAttentionClassifier().fit(X, y)
    roomy = sp.csr_matrix(X, copy=True)
    roomy.data = np.append(roomy.data, [7, 7])
    roomy.indices = np.append(roomy.indices, [0, 0]).astype(roomy.indices.dtype)
    assert_array_equal(model.decision_function(roomy), model.decision_function(X))
    assert_array_equal(model.attention(roomy).toarray(), model.attention(X).toarray())
    assert_allclose(ClsAttentionClassifier().fit(roomy, y).token_values_, model.token_values_)
    assert len(roomy.data) == X.nnz + 2  # as it came


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_duplicates_of_small_integers_do_not_overflow(dtype):
    X, y = data()
    X = sp.coo_matrix(X)
    twice = [np.concatenate([part, part]) for part in (np.full(X.nnz, 90), X.row, X.col)]
    small = sp.csr_matrix(
        (twice[0].astype(dtype), twice[2], np.append(0, np.cumsum(2 * X.tocsr().getnnz(axis=1)))),
        shape=X.shape,
    )
    rows = np.argsort(twice[1], kind="stable")
    small.indices[:] = twice[2][rows]
    plain = small.astype(np.int64)
    plain.sum_duplicates()
    assert plain.data.max() >= 180
    assert_allclose(
        ClsAttentionClassifier().fit(small, y).token_values_,
        ClsAttentionClassifier().fit(plain, y).token_values_,
    )


def test_one_document_is_answered_as_among_many():
    X, y = data()
    for labels in (y, y + (np.arange(len(y)) % 5 == 0)):
        model = ClsAttentionClassifier().fit(X, labels)
        alone = np.concatenate([model.predict_proba(X[[i]]) for i in range(20)])
        assert_allclose(alone, model.predict_proba(X)[:20], rtol=1e-12, atol=1e-15)


def test_a_device_that_is_not_there_leaves_the_model_as_it_is():
    X, y = data(2)
    model = ClsAttentionClassifier().fit(X, y)
    expected = model.predict_proba(X)
    with pytest.raises(ValueError, match="device"):
        model.set_params(device="nowhere").fit(X[:, :5], y)
    assert_array_equal(model.predict_proba(X), expected)


def test_a_warm_start_after_a_failed_fit_on_other_tokens():
    X, y = data(2)
    model = ClsAttentionClassifier(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X[:, :5], np.zeros(len(y)))
    expected = ClsAttentionClassifier().fit(X[:, :5], y).predict_proba(X[:, :5])
    assert_array_equal(model.fit(X[:, :5], y).predict_proba(X[:, :5]), expected)


@pytest.mark.parametrize("factor", [1e-270, 1e-160, 1e155, 1e290])
@pytest.mark.parametrize("sublinear", [True, False])
def test_entries_whose_squares_leave_the_range_are_scaled(factor, sublinear):
    X, y = data(2)
    settings = {"sublinear_counts": sublinear, "warm_start": True}
    power = 2.0 ** round(np.log2(factor))
    plain = ClsAttentionClassifier(**settings).fit(X, y)
    model = ClsAttentionClassifier(**settings).fit(X * power, y)
    assert_allclose(model.attention_scores_, plain.attention_scores_, rtol=1e-9)
    assert_allclose(model.token_values_, plain.token_values_, rtol=1e-9)
    assert_allclose(model.cls_weight_, plain.cls_weight_ * power, rtol=1e-12)
    assert_allclose(model.predict_proba(X * power), plain.predict_proba(X), rtol=1e-9)
    again = plain.fit(X, y)  # goes on from there, in either unit
    assert_allclose(model.fit(X * power, y).token_values_, again.token_values_, rtol=1e-9)


EXTREMES = np.array([[2.0, 1.0], [1.0, 2.0], [3.0, 0.0], [0.0, 3.0]])


@pytest.mark.parametrize(
    ("X", "weights", "parameters", "message"),
    [
        (EXTREMES * 1e300, None, {}, "Divide X, or its columns, by constants"),
        (EXTREMES * 1e-300, None, {}, "Divide X, or its columns, by constants"),
        (EXTREMES * [1e200, 1e-200], None, {}, "from 1e-200 to 3e.200.*too far apart"),
        (EXTREMES, [1e308, 1, 1, 1], {}, "add up to 1e.308.*divide sample_weight"),
        (EXTREMES, [1e-300, 1e300, 1, 1], {}, "add up to 1e.300.*divide sample_weight"),
        (EXTREMES, [1e-320] * 4, {"C": 1e-12}, "add up to 4e-320.*divide sample_weight"),
    ],
)
def test_what_cannot_be_scaled_is_refused_by_name(X, weights, parameters, message):
    for model in (ClsAttentionClassifier(**parameters), OneStepClassifier()):
        with pytest.raises(ValueError, match=message):
            model.fit(X, [0, 1, 0, 1], sample_weight=weights)
        assert not hasattr(model, "n_features_in_")


def test_batches_are_not_scaled():
    with pytest.raises(ValueError, match="the same constant in all batches"):
        ClsAttentionClassifier().partial_fit(EXTREMES * 1e30, [0, 1, 0, 1])


def test_penalties_that_leave_the_range_are_named():
    model = PenalizedOneStepClassifier(C=1e-300, random_state=0)
    with pytest.raises(ValueError, match=r"range of floating-point numbers.*C=1e-300"):
        model.fit(EXTREMES, [0, 1, 0, 1])


@pytest.mark.parametrize("kind", PAPER)
@pytest.mark.parametrize("dim", [10**12, 10**18, 10**30])
def test_more_dimensions_than_there_is_memory_for(kind, dim):
    message = f"embedding_dim={dim} for 2 tokens takes at least"
    with pytest.raises(ValueError, match=message):
        kind(embedding_dim=dim).fit(EXTREMES, [0, 1, 0, 1])
    with pytest.raises(ValueError, match=message):
        one_step_embeddings(EXTREMES, [0, 1, 0, 1], step_size=1.0, embedding_dim=dim)


def test_the_memory_of_a_container(monkeypatch):
    real = _machine.memory()
    assert 2**20 < real < 2**60
    for text, expected in (("max", real), ("1048576", 2.0**20)):
        _machine.memory.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_text", lambda _, text=text: text)
            assert _machine.memory() == expected
    _machine.memory.cache_clear()


def test_folds_of_next_to_no_weight_are_refused_by_name():
    X = np.array([[6, 6], [3, 5], [4, 3], [3, 7], [7, 5], [5, 5], [3, 6]], dtype=np.int8)
    weights = [0.0, 1e-320, 1e-8, 1e-8, 1e-100, 1e-100, 0.0]
    model = ClsAttentionClassifierCV(Cs=[1e-3, 1.0], cv=2, max_iter=5)
    with pytest.raises(ValueError, match="range of floating-point numbers"):
        model.fit(X, [2, 0, 2, 0, 2, 0, 0], sample_weight=weights)


def test_folds_whose_balanced_weights_overflow_are_refused_by_name():
    X, y = np.ones((7, 3)), [2, 2, 1, 0, 1, 2, 0]
    weights = [0, 1, 1e-8, 1e-320, 1e-8, 1e-100, 1]
    model = ClsAttentionClassifierCV(Cs=[1e-3, 1.0], cv=2, class_weight="balanced")
    with pytest.raises(ValueError, match=r"add up to infinity.*divide sample_weight"):
        model.fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_fit_that_exceeds_the_machine_is_warned_of(method, monkeypatch):
    X, y = data(2)
    monkeypatch.setattr(_machine, "memory", lambda: 1000.0)
    with pytest.warns(UserWarning, match=r"20 columns with 2 classes.*partial_fit") as found:
        getattr(ClsAttentionClassifier(C=1.0), method)(X, y)
    assert found[0].filename == __file__


def test_scores_that_are_no_numbers_are_refused_by_name():
    X = np.array([[1, 0], [0, 3], [3, 1], [1, 2], [1, 0], [2, 3], [2, 0], [2, 3]], float)
    with pytest.raises(ValueError, match=r"range of floating-point numbers.*step_size=1e\+300"):
        OneStepClassifier(step_size=1e300, random_state=0).fit(X, [0] * 7 + [1])


def test_a_batch_that_outweighs_the_earlier_ones_is_refused_by_name():
    model = ClsAttentionClassifier(C=1.0)
    model.partial_fit([[1, 1, 1]], [2], classes=[0, 1, 2], sample_weight=[1e-8])
    with pytest.raises(ValueError, match=r"range of floating-point numbers.*1e\+100 together"):
        model.partial_fit([[0, 0, 0]], [1], sample_weight=[1e100])
    assert np.isfinite(model.loss_curve_).all()


def zeros_stored(X, rng, dtype):
    """Return a matrix of counts as CSR, without zeros and with some of them stored."""
    stored = (X == 0) & (rng.random(X.shape) < 0.3)
    rows, columns = np.nonzero(X.astype(bool) | stored)
    entries = X[rows, columns].astype(dtype), (rows, columns)
    return sp.csr_array(X.astype(dtype)), sp.csr_array(entries, shape=X.shape)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("attend_cls", [True, False])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
@pytest.mark.parametrize("method", ["fit", "fit_chunks", "partial_fit"])
def test_stored_zeros_change_nothing(method, dtype, attend_cls, tmp_path):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n_classes = 2 + seed % 2
        y = np.arange(30) % n_classes
        counts = rng.poisson(np.where(np.arange(8) == y[:, None], 1.2, 0.3))
        models = []
        X, Z = zeros_stored(counts, rng, dtype)
        for number, some in enumerate((X, Z)):
            model = ClsAttentionClassifier(C=[1.0, "auto"][seed // 2 % 2], attend_cls=attend_cls)
            if method == "fit_chunks":
                path = tmp_path / f"{seed}-{number}"
                model.fit_chunks(ChunkedCounts.write(path, [(some, y)], chunk_entries=20))
            elif method == "partial_fit":
                model.partial_fit(some[:15], y[:15]).partial_fit(some[15:], y[15:])
            else:
                model.fit(some, y)
            models.append(model)
        assert_same_fit(*models)
        assert Z.nnz > X.nnz  # as it came
        for ask in (models[0].decision_function, models[0].predict):
            assert_allclose(ask(Z), ask(X), rtol=1e-12, atol=1e-12)


def test_a_document_of_next_to_nothing_in_single_precision():
    X = np.array([[2, 0], [0, 2], [2, 1], [1, 2]] * 10 + [[1e-30, 0]], np.float32)
    y = np.array([0, 1, 0, 1] * 10 + [0])
    settings = {"C": 1.0, "attend_cls": False, "sublinear_counts": False, "tol": 1e-5}
    single, double = (ClsAttentionClassifier(**settings).fit(X.astype(t), y) for t in ("f4", "f8"))
    assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=0.01)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_large_integers_are_as_in_floating_point(parts, dtype):
    """The sum of the parts is 2^63 or, of int64, its half: the types hold no more."""
    whole = 2 ** (62 if dtype == np.int64 and parts == 1 else 63)
    entries = np.array([1] + [whole // parts] * parts, dtype)
    columns = np.array([1] + [0] * parts)
    X = sp.csr_array((entries, columns, [0, 1 + parts]), shape=(1, 2))
    dense = np.array([[float(whole), 1.0]])
    model = ClsAttentionClassifier(C=1.0).fit([[2, 0], [0, 2], [2, 1], [1, 2]], [0, 1, 0, 1])
    assert_allclose(model.predict_proba(X), model.predict_proba(dense), rtol=1e-12)
    assert_array_equal(model.predict(X), model.predict(dense))
    assert X.dtype == dtype


@pytest.mark.parametrize("top", [2**64 - 1, 2**63 - 1])
@pytest.mark.parametrize("chunked", [True, False])
def test_the_largest_integers_are_trained_on(chunked, top, tmp_path):
    X, y = data()
    X = X.toarray().astype(np.uint64 if top > 2**63 else np.int64)
    X[X > 0] = top
    decisions = []
    for number, some in enumerate((X, X.astype(float))):
        model = ClsAttentionClassifier(C=1.0)
        if chunked:
            model.fit_chunks(ChunkedCounts.write(tmp_path / f"{number}", [(some, y)]))
        else:
            model.fit(some, y)
        decisions.append(model.decision_function(some))
    assert_allclose(*decisions, rtol=1e-9, atol=1e-9)
    assert np.ptp(decisions[0]) > 1


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("dtype", ["i2", "u4", "i8", "f2", "f4", "f8"])
def test_any_byte_order(dtype, sparse):
    X, y = data()
    X = X.toarray()
    X[0, 0] = 256  # has the bytes of 1 in another order

    def made(order):
        array = X.astype(order + dtype)
        if not sparse:
            return array
        rows = sp.csr_array(array.astype("f4" if dtype == "f2" else "<" + dtype))
        rows.data = rows.data.astype(array.dtype if dtype != "f2" else order + "f4")
        return rows

    native, swapped = made("<"), made(">")
    for method in ("fit", "partial_fit"):
        models = [getattr(ClsAttentionClassifier(), method)(some, y) for some in (native, swapped)]
        assert_same_fit(*models)
        assert_array_equal(models[0].predict_proba(swapped), models[0].predict_proba(native))
        assert_array_equal(models[0].predict(swapped), models[0].predict(native))
    for importance in ("signed_frequency", "log_odds"):
        weights = [
            TokenImportanceTransformer(importance, k=3).fit(some, y).transform(other)
            for some, other in ((native, native), (swapped, swapped))
        ]
        assert_array_equal(*(one.toarray() if sparse else one for one in weights))


@pytest.mark.parametrize("entry", [1e-300, 1e-16, 1e-15, 1e-8])
@pytest.mark.parametrize("sparse", [True, False])
def test_entries_far_below_the_others_are_damped_too(entry, sparse):
    made = sp.csr_array if sparse else np.array
    model = ClsAttentionClassifier(attend_cls=False)
    model.fit([[3, 1], [2, 0], [0, 2], [1, 3]], [0, 0, 1, 1])
    expected = model.predict_proba([[0, 1]])  # a token by itself has all attention
    assert_allclose(model.predict_proba(made([[0, entry]])), expected, rtol=1e-12)


def test_columns_of_entries_far_below_the_others_are_learnt():
    X, y = data()
    X = X.toarray()
    X[:, 3] = 1e-18 * (y == 1)
    model = ClsAttentionClassifier(C=1.0).fit(X, y)
    assert model.token_values_[3] > 0
    assert_allclose(damped(np.array([1e-18, 3.0]), 3.0), [1e-18 / np.log(2), 3.0], rtol=1e-15)
