"""The networks on bags of distinct tokens, against the same networks on repeated tokens."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import PADDING, PaddedDocuments, counts

from sklearn_clsattn.paper import _batches
from sklearn_clsattn.paper._batches import (
    batch_documents,
    batches_by_length,
    positive_entries,
)
from sklearn_clsattn.paper._network import AttentionNetwork
from sklearn_clsattn.theory._gradient_step import draw_embeddings

VARIANTS = pytest.mark.parametrize(
    ("n_layers", "mlp"), [(1, False), (2, False), (1, True), (2, True)]
)
CLS = pytest.mark.parametrize("cls_weight", [0.0, 1.5])


def network(n_tokens, n_outputs=1, *, n_layers=1, mlp=False, cls_weight=0.0, dim=6, seed=0):
    """Return a network whose parameters are all random, none of them small."""
    generator = torch.Generator().manual_seed(seed)
    made = AttentionNetwork(
        draw_embeddings(n_tokens, n_outputs, dim, seed=seed),
        intercept=torch.zeros(n_outputs, dtype=torch.float64),
        n_layers=n_layers,
        mlp=mlp,
        cls_weight=cls_weight,
        generator=generator,
    )
    with torch.no_grad():
        for parameter in made.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter += 0.7 * noise
    return made


def spelled_out(made, X):
    """Return the outputs position by position, documents as sequences of repeated tokens."""
    padded = PaddedDocuments.from_counts(X)
    outputs = []
    for tokens, weights in zip(padded.tokens, padded.weights, strict=True):
        real = tokens != PADDING
        E, log_weights = made.embeddings[tokens[real]], torch.log(weights[real])
        hidden, direction = E, made.cls_embedding
        if made.first_key_query is not None:
            table = torch.softmax(E @ made.first_key_query @ E.T + log_weights, dim=1)
            hidden = E + table @ E
            direction = made.cls_embedding @ made.second_key_query
        masses = torch.exp(hidden @ direction + log_weights)
        total = masses.sum() + made.cls_weight
        o = torch.zeros_like(made.cls_embedding)
        if len(masses):
            o = (masses / total) @ hidden
        if made.hidden_weights is not None:
            o = made.hidden_output @ torch.relu(made.hidden_weights @ o + made.hidden_bias)
        outputs.append(made.output_vectors @ o + made.intercept)
    return torch.stack(outputs)


def outputs_of(made, X, fullness=0.8):
    X = positive_entries(sp.csr_matrix(X))
    documents = np.arange(X.shape[0])
    return made(batch_documents(X, documents, fullness=fullness, dtype=torch.float64))


@VARIANTS
@CLS
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_outputs_are_those_of_repeated_tokens(n_layers, mlp, cls_weight, n_outputs):
    X = counts(1)
    made = network(9, n_outputs, n_layers=n_layers, mlp=mlp, cls_weight=cls_weight)
    assert_allclose(
        outputs_of(made, X).detach(), spelled_out(made, X).detach(), rtol=1e-12, atol=1e-13
    )


@VARIANTS
@CLS
def test_gradients_are_those_of_repeated_tokens(n_layers, mlp, cls_weight):
    X = counts(2)
    made = network(9, n_layers=n_layers, mlp=mlp, cls_weight=cls_weight)
    parameters = dict(made.named_parameters())
    projection = torch.randn(12, 1, generator=torch.Generator().manual_seed(1)).double()
    found, expected = (
        torch.autograd.grad((projection * outputs).sum(), parameters.values())
        for outputs in (outputs_of(made, X), spelled_out(made, X))
    )
    for name, one, other in zip(parameters, found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-10, atol=1e-12, err_msg=name)


@CLS
def test_the_closed_form_of_two_layers_agrees_with_finite_differences(cls_weight):
    X = counts(3, n_documents=4, n_tokens=5)
    made = network(5, n_layers=2, cls_weight=cls_weight, dim=3)
    batch = batch_documents(X, np.arange(4), fullness=0.5, dtype=torch.float64)
    rows = made.embeddings.detach()[batch.tokens].requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: made(batch, rows), rows, fast_mode=True)


@VARIANTS
def test_weights_need_not_be_whole(n_layers, mlp):
    X = counts(4)
    X.data += np.linspace(0.1, 0.4, X.nnz)
    made = network(9, n_layers=n_layers, mlp=mlp)
    assert_allclose(outputs_of(made, X).detach(), spelled_out(made, X).detach(), rtol=1e-12)


@VARIANTS
@CLS
def test_a_weight_in_several_parts_and_stored_zeros_change_nothing(n_layers, mlp, cls_weight):
    made = network(3, n_layers=n_layers, mlp=mlp, cls_weight=cls_weight)
    parts = sp.csr_matrix(([1.0, 2.0, 1.0, 0.0, 0.0], [2, 0, 2, 1, 1], [0, 4, 5]), shape=(2, 3))
    assert_allclose(
        outputs_of(made, parts).detach(),
        outputs_of(made, np.array([[2.0, 0, 2], [0, 0, 0]])).detach(),
        rtol=1e-12,
    )
    assert parts.nnz == 5


@VARIANTS
def test_documents_without_tokens_are_finite(n_layers, mlp):
    made = network(4, n_layers=n_layers, mlp=mlp)
    outputs = outputs_of(made, np.zeros((3, 4)))
    assert_allclose(outputs.detach(), spelled_out(made, np.zeros((3, 4))).detach(), rtol=1e-12)
    outputs.sum().backward()
    assert all(
        parameter.grad is None or torch.isfinite(parameter.grad).all()
        for parameter in made.parameters()
    )


@VARIANTS
@settings(max_examples=15)
@given(seed=st.integers(0, 100), fullness=st.floats(0.05, 1.0))
def test_padding_and_company_do_not_matter(n_layers, mlp, seed, fullness):
    X = counts(seed, n_documents=8, n_tokens=7, mean=1.0)
    made = network(7, n_layers=n_layers, mlp=mlp, dim=3)
    alone = torch.cat([outputs_of(made, X[i : i + 1]) for i in range(8)])
    order = np.random.default_rng(seed).permutation(8)
    together = outputs_of(made, X[order], fullness)
    assert_allclose(together.detach(), alone.detach()[order], rtol=1e-10, atol=1e-12)


@VARIANTS
def test_the_order_of_columns_does_not_matter(n_layers, mlp):
    X = counts(5)
    made = network(9, n_layers=n_layers, mlp=mlp)
    expected = outputs_of(made, X).detach()
    order = np.random.default_rng(0).permutation(9)
    made.embeddings.data = made.embeddings.data[order]
    assert_allclose(outputs_of(made, X[:, order]).detach(), expected, rtol=1e-11)


def test_scores_far_apart_stay_finite():
    X = counts(6)
    made = network(9, n_layers=2)
    made.embeddings.data *= 100
    outputs = outputs_of(made, X)
    outputs.sum().backward()
    assert torch.isfinite(outputs).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in made.parameters())


def test_two_layers_start_from_uniform_first_attention_and_the_embedding_of_cls():
    made = AttentionNetwork(draw_embeddings(5, 1, 4, seed=0), n_layers=2)
    assert not made.first_key_query.any()
    assert_array_equal(made.second_key_query.detach(), np.eye(4))


def test_the_mlp_starts_by_keeping_lengths():
    generator = torch.Generator().manual_seed(0)
    made = AttentionNetwork(draw_embeddings(5, 1, 400, seed=0), mlp=True, generator=generator)
    o = torch.randn(400, generator=generator, dtype=torch.float64)
    after = (made.hidden_output @ torch.relu(made.hidden_weights @ o)).detach()
    assert float(after.norm() / o.norm()) == pytest.approx(1, abs=0.15)
    assert not made.hidden_bias.any()


def test_other_numbers_of_layers_are_refused():
    with pytest.raises(ValueError, match="n_layers must be 1 or 2, got 3"):
        AttentionNetwork(draw_embeddings(5, 1, 4, seed=0), n_layers=3)


def long_and_short():
    rng = np.random.default_rng(0)
    X = np.zeros((40, 100))
    for row, length in zip(X, rng.integers(0, 101, 40), strict=True):
        row[rng.choice(100, length, replace=False)] = rng.integers(1, 50, length)
    return sp.csr_matrix(X)


def test_batches_hold_every_document_and_are_padded_to_distinct_tokens():
    X = long_and_short()
    lengths = np.diff(X.indptr)
    batch = batch_documents(X, np.arange(40), fullness=0.7)
    assert sorted(batch.documents.tolist()) == np.flatnonzero(lengths).tolist()
    assert max(longest for _, longest in batch.shapes) == lengths.max() <= 100
    real = torch.isfinite(batch.log_weights)
    assert int(real.sum()) == X.nnz
    assert len(real) <= X.nnz / 0.7
    first = 0
    for (rows, longest), tokens, weights in zip(
        batch.shapes, batch.split(batch.positions), batch.split(batch.log_weights), strict=True
    ):
        members = batch.documents[first : first + rows].tolist()
        assert (lengths[members] >= 0.7 * longest).all()
        for i, document in enumerate(members):
            row = X[document]
            there = torch.isfinite(weights[i])
            assert_array_equal(batch.tokens[tokens[i][there]], row.indices)
            assert_allclose(weights[i][there].exp(), row.data, rtol=1e-5)
        first += rows


def test_groups_are_cut_where_their_tables_would_be_too_large(monkeypatch):
    monkeypatch.setattr(_batches, "GROUP_ENTRIES", 50)
    X = sp.csr_matrix(np.ones((7, 5)))
    batch = batch_documents(X, np.arange(7), fullness=0.5)
    assert batch.shapes == [(2, 5), (2, 5), (2, 5), (1, 5)]


def test_going_through_documents_meets_each_once_in_bounded_batches(monkeypatch):
    monkeypatch.setattr(_batches, "BATCH_ENTRIES", 120)
    X = long_and_short()
    chosen = np.arange(1, 40)
    met = list(batches_by_length(X, chosen, fullness=0.5))
    assert_array_equal(np.sort(np.concatenate([members for members, _ in met])), chosen)
    lengths = np.diff(X.indptr)
    assert all(lengths[members].sum() <= 120 or len(members) == 1 for members, _ in met)
    assert not list(batches_by_length(X, chosen[:0], fullness=0.5))
