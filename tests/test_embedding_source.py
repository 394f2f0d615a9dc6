"""Embeddings that are made when asked for are those that training had."""

import pickle

import numpy as np
import pytest
import reference
import torch
from helpers import documents
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_clsattn.importance import signed_frequency
from sklearn_clsattn.paper._embedding_source import RedrawnEmbeddings, StoredEmbeddings
from sklearn_clsattn.paper._step import take_step
from sklearn_clsattn.theory import one_step_embeddings
from sklearn_clsattn.theory._gradient_step import draw_embeddings

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


def stepped(n_classes, dtype=np.float64, dimension=7, seed=5):
    """Return documents, the embeddings after a step, and what remembers them."""
    d = documents(reference.counts(0, 12, 9, mean=1.5, empty=False), np.arange(12) % n_classes)
    frozen = take_step(
        d.loss(d.bag(dtype, "cpu")),
        signed_frequency(d.statistics.shares, d.statistics.class_weights),
        step_size=9.0,
        embedding_dim=dimension,
        seed=seed,
    )
    return d, frozen, frozen.located(np.arange(dimension), np.arange(1, d.n_outputs + 1))


def test_stored():
    p, v, matrix = np.ones(2), np.ones((1, 2)), np.arange(6.0).reshape(3, 2)
    source = StoredEmbeddings(p, v, matrix)
    assert source.token_embeddings() is matrix
    assert source.cls_embedding is p
    assert source.output_vectors is v
    again = pickle.loads(pickle.dumps(source))
    assert_array_equal(again.token_embeddings(), matrix)


@CLASSES
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_redrawn_are_those_of_training_to_the_last_bit(n_classes, dtype):
    _, frozen, source = stepped(n_classes, dtype)
    again = source.token_embeddings()
    assert again.dtype == dtype
    assert_array_equal(again, frozen.embeddings.matrix)
    assert_array_equal(source.token_embeddings(), again)  # asking changes nothing
    assert_array_equal(source.cls_embedding, np.arange(7))
    for k, v in enumerate(frozen.output_vectors.double().numpy()):
        assert_array_equal(source.output_vectors[k], (k + 1) * v)


@CLASSES
def test_redrawn_are_the_ones_of_the_theory(n_classes):
    # What one_step_embeddings makes of random_state=3.
    seed = int(np.random.RandomState(3).randint(np.iinfo(np.int32).max))
    d, _, source = stepped(n_classes, seed=seed)
    theory = one_step_embeddings(d.X, d.codes, step_size=9.0, embedding_dim=7, random_state=3)
    assert_allclose(source.token_embeddings(), theory.embeddings, atol=1e-13)


@pytest.mark.parametrize("single", [True, False])
def test_redrawn_without_a_step(single):
    source = RedrawnEmbeddings(np.zeros(7), np.zeros((3, 7)), 9, 11, single)
    dtype = torch.float32 if single else torch.float64
    expected = draw_embeddings(9, 3, 7, seed=11, dtype=dtype).embeddings
    assert_array_equal(source.token_embeddings(), expected)
    assert source.token_embeddings().dtype == (np.float32 if single else np.float64)


@CLASSES
def test_redrawn_are_pickled_small(n_classes):
    _, _, source = stepped(n_classes, dimension=5000)
    pickled = pickle.dumps(source)
    assert_array_equal(pickle.loads(pickled).token_embeddings(), source.token_embeddings())
    vectors = source.cls_embedding.nbytes + source.output_vectors.nbytes
    assert len(pickled) - vectors < 2000


@CLASSES
def test_read_only_memory_is_no_cause_for_warnings(n_classes):
    """As joblib's memory maps are: PyTorch warns when handed one."""
    _, _, source = stepped(n_classes)
    expected = source.token_embeddings()
    source.step.flags.writeable = False
    assert_array_equal(source.token_embeddings(), expected)
