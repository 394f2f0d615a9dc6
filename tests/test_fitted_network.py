"""Fitted networks: what they say of documents, in NumPy alone."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from reference import counts
from test_network import CLS, VARIANTS, network, spelled_out

from sklearn_clsattn._core.fitted import FittedAttention
from sklearn_clsattn.paper import _fitted_network

OUTPUTS = pytest.mark.parametrize("n_outputs", [1, 3])


def row_sums(matrix):
    return matrix @ np.ones(matrix.shape[1])


@VARIANTS
@CLS
@OUTPUTS
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_outputs_are_those_of_the_network(n_layers, mlp, cls_weight, n_outputs, kind):
    X = counts(1)
    made = network(9, n_outputs, n_layers=n_layers, mlp=mlp, cls_weight=cls_weight)
    fitted = made.to_numpy()
    outputs = fitted.outputs(X.astype(kind))
    assert outputs.dtype == np.float64
    assert_allclose(outputs, spelled_out(made, X).detach(), rtol=1e-12, atol=1e-13)
    assert (fitted.n_layers, fitted.mlp) == (n_layers, mlp)


@CLS
@OUTPUTS
@pytest.mark.parametrize("n_layers", [1, 2])
def test_contributions_add_up_to_the_outputs(n_layers, cls_weight, n_outputs):
    X = counts(2)
    fitted = network(9, n_outputs, n_layers=n_layers, cls_weight=cls_weight).to_numpy()
    terms = fitted.contributions(X)
    assert len(terms) == n_outputs
    sums = np.column_stack([row_sums(of_output) for of_output in terms])
    assert_allclose(sums + fitted.intercept, fitted.outputs(X), rtol=1e-12, atol=1e-13)
    for of_output in terms:
        assert_array_equal(of_output.indices, X.indices)
        assert_array_equal(of_output.indptr, X.indptr)


def test_with_an_mlp_there_are_no_contributions():
    with pytest.raises(ValueError, match="no sum over tokens"):
        network(9, mlp=True).to_numpy().contributions(counts(2))


@VARIANTS
@CLS
def test_attention_is_the_pooling_of_each_document(n_layers, mlp, cls_weight):
    X = counts(3)
    made = network(9, n_layers=n_layers, mlp=mlp, cls_weight=cls_weight)
    fitted = made.to_numpy()
    attention = fitted.attention(X)
    assert_array_equal(attention.indices, X.indices)
    E, direction = fitted.embedding_matrix, fitted.cls_embedding
    for i in range(X.shape[0]):
        tokens, weights = X[i].indices, X[i].data
        h = E[tokens]
        if n_layers == 2:
            direction = fitted.cls_embedding @ fitted.second_key_query
            table = np.exp(h @ fitted.first_key_query @ h.T) * weights
            h = h + (table / table.sum(axis=1, keepdims=True)) @ h
        masses = weights * np.exp(h @ direction)
        total = masses.sum() + cls_weight
        assert_allclose(attention[[i]].data, masses / total, rtol=1e-11)


@VARIANTS
@CLS
def test_a_document_without_tokens_attends_to_nothing(n_layers, mlp, cls_weight):
    fitted = network(9, n_layers=n_layers, mlp=mlp, cls_weight=cls_weight).to_numpy()
    X = sp.csr_matrix(([0.0, 2.0], [3, 4], [0, 1, 1, 2]), shape=(3, 9))
    attention = fitted.attention(X)
    assert_array_equal(row_sums(attention)[:2], 0)
    assert row_sums(attention)[2] == pytest.approx(1) or cls_weight
    expected = fitted.intercept
    if mlp:
        hidden = fitted.hidden_output @ np.maximum(fitted.hidden_bias, 0)
        expected = expected + fitted.output_vectors @ hidden
    assert_allclose(fitted.outputs(X)[:2], np.tile(expected, (2, 1)), rtol=1e-12)
    assert np.isfinite(fitted.outputs(X)).all()
    assert fitted.outputs(X[:0]).shape == (0, 1)


@VARIANTS
def test_scores_and_values_are_the_ablations_diagnostics(n_layers, mlp):
    fitted = network(9, 3, n_layers=n_layers, mlp=mlp).to_numpy()
    p = fitted.cls_embedding if n_layers == 1 else fitted.cls_embedding @ fitted.second_key_query
    assert_allclose(fitted.scores, fitted.embedding_matrix @ p)
    assert_allclose(fitted.values, fitted.embedding_matrix @ fitted.output_vectors.T)
    X = counts(4)
    selected = fitted.selected(X)
    for i in range(X.shape[0]):
        tokens = X[i].indices
        expected = tokens[fitted.scores[tokens] == fitted.scores[tokens].max(initial=-np.inf)]
        assert_array_equal(selected[[i]].indices, expected)


def test_one_layer_is_the_attention_model():
    X = counts(5)
    fitted = network(9, cls_weight=1.5).to_numpy()
    same = FittedAttention(fitted.scores, fitted.values, fitted.intercept, 1.5, 0.0)
    assert_array_equal(fitted.outputs(X), same.outputs(X))


@VARIANTS
def test_blocks_do_not_matter(n_layers, mlp, monkeypatch):
    X = counts(6)
    fitted = network(9, n_layers=n_layers, mlp=mlp).to_numpy()
    outputs, attention = fitted.outputs(X), fitted.attention(X)
    monkeypatch.setattr(_fitted_network, "_BLOCK_ENTRIES", 10)
    assert_allclose(fitted.outputs(X), outputs, rtol=1e-12)
    assert_allclose(fitted.attention(X).data, attention.data, rtol=1e-12)


def test_scores_far_apart_stay_finite():
    made = network(9, n_layers=2, cls_weight=1.0)
    made.embeddings.data *= 100
    fitted = made.to_numpy()
    assert np.isfinite(fitted.outputs(counts(7))).all()


@pytest.mark.parametrize(("n_layers", "mlp"), [(1, True), (2, False)])
def test_pickles_predict_without_torch(n_layers, mlp, tmp_path):
    fitted = network(9, n_layers=n_layers, mlp=mlp).to_numpy()
    X = counts(8)
    (tmp_path / "model").write_bytes(pickle.dumps((fitted, X)))
    code = (
        "import pickle, sys; fitted, X = pickle.load(open(sys.argv[1], 'rb'));"
        "print(fitted.outputs(X).sum().hex(), 'torch' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert said == [fitted.outputs(X).sum().hex(), "False"]


def test_the_callers_matrix_is_left_alone():
    X = sp.csr_matrix(([1.0, 2.0, 1.0], [2, 0, 1], [0, 3]), shape=(1, 3))
    fitted = network(3, n_layers=2).to_numpy()
    fitted.outputs(X), fitted.attention(X), fitted.contributions(X), fitted.selected(X)
    assert_array_equal(X.indices, [2, 0, 1])
