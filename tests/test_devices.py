"""A fit on a device: what would wait for it, and which one is taken."""

import numpy as np
import pytest
import torch
from helpers import data
from numpy.testing import assert_allclose
from torch.utils._python_dispatch import TorchDispatchMode

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core import lbfgs, loss, objective
from sklearn_clsattn._core.backend import floats, resolve_device

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


class Counted(TorchDispatchMode):
    """Counts what a device would have to be waited for: numbers that are fetched from tensors."""

    def __init__(self):
        super().__init__()
        self.fetched = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.fetched += function is torch.ops.aten._local_scalar_dense.default
        return function(*args, **(kwargs or {}))


@pytest.fixture
def on_device(monkeypatch):
    """Have the solver treat the CPU as a device of its own, and count fetches."""
    several = []

    def counting(*scalars):
        several.append(len(scalars))
        return floats(*scalars)

    monkeypatch.setattr(lbfgs, "_scalar", lambda product: product)
    monkeypatch.setattr(objective, "floats", counting)
    monkeypatch.setattr(loss, "floats", counting)
    return several


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fetches_do_not_grow_with_curvature_pairs(on_device, n_classes):
    X, y = data(n_classes, n_documents=200, n_tokens=60)
    X = X.astype(np.float64)
    fetched = []
    for max_iter in (2, 10, 18):
        on_device.clear()
        with Counted() as counted:
            model = ClsAttentionClassifier(C=1.0, tol=0.0, max_iter=max_iter).fit(X, y)
        assert model.n_iter_ == max_iter
        fetched.append(counted.fetched + len(on_device))
    first, later = (np.diff(fetched) / 8).tolist()
    # Two of them are exponentials on the CPU; a line search may need one more evaluation.
    assert first < 16
    assert later < 16


@pytest.mark.parametrize("n_classes", [2, 3])
def test_factors_that_stay_on_the_device_change_nothing(monkeypatch, n_classes):
    X, y = data(n_classes)
    options = {"C": 1.0, "tol": 1e-6}
    expected = ClsAttentionClassifier(**options).fit(X, y)
    monkeypatch.setattr(lbfgs, "_scalar", lambda product: product)
    found = ClsAttentionClassifier(**options).fit(X, y)
    assert found.n_iter_ == expected.n_iter_
    assert_allclose(found.token_values_, expected.token_values_, rtol=1e-7, atol=1e-9)


def test_a_cuda_device_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert resolve_device("cuda:1") == torch.device("cuda:1")
    assert resolve_device("auto") == torch.device("cuda")
    with pytest.raises(ValueError, match=r"'cuda:7'.* finds 2 CUDA"):
        resolve_device("cuda:7")


@cuda
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cuda_fits_the_same_model(n_classes, dtype):
    X, y = data(n_classes, n_documents=200, n_tokens=60)
    X = X.astype(dtype)
    expected = ClsAttentionClassifier(tol=1e-4).fit(X, y)
    found = ClsAttentionClassifier(tol=1e-4, device="cuda").fit(X, y)
    assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-2)
    assert_allclose(found.loss_curve_[-1], expected.loss_curve_[-1], atol=2e-4)


@cuda
def test_cuda_fits_where_attention_underflows():
    X, y = data(2, n_documents=60, n_tokens=20)
    found = ClsAttentionClassifier(C=1e4, attention_C=1e4, max_iter=300, device="cuda").fit(X, y)
    assert np.isfinite(found.predict_proba(X)).all()
