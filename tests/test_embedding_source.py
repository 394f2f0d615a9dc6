"""Embeddings that are made when asked for are those that training had."""

import pickle

import numpy as np
import pytest
import reference
import torch
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_clsattn.importance import class_totals, signed_frequency
from sklearn_clsattn.model.bag import TokenBag
from sklearn_clsattn.model.embedding_source import (
    RedrawnEmbeddings,
    SpannedEmbeddings,
    StoredEmbeddings,
    random_frame,
)
from sklearn_clsattn.model.gradient_step import draw_embeddings
from sklearn_clsattn.model.targets import encode_targets
from sklearn_clsattn.theory import one_step_embeddings
from sklearn_clsattn.training.one_step import take_step

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


def stepped(n_classes, dtype=np.float64, dimension=7):
    """Return documents, labels and embeddings after a step, of seed 5."""
    X = reference.counts(0, 12, 9, mean=1.5, empty=False)
    y = np.arange(12) % n_classes
    shares = class_totals(X, y, n_classes, kind="shares")
    frozen = take_step(
        TokenBag(X, dtype=dtype),
        encode_targets(y, n_classes),
        torch.ones(12, dtype=torch.float64),
        signed_frequency(shares, np.bincount(y)),
        step_size=9.0,
        embedding_dim=dimension,
        seed=5,
    )
    return X, y, frozen


def test_stored():
    matrix = np.arange(6.0).reshape(3, 2)
    assert StoredEmbeddings(matrix).embeddings() is matrix


@CLASSES
def test_spanned_give_back_scores_and_values(n_classes):
    rng = np.random.default_rng(0)
    n_outputs = 1 if n_classes == 2 else n_classes
    columns, directions = rng.normal(size=(9, 1 + n_outputs)), rng.normal(size=(1 + n_outputs, 12))
    embeddings = SpannedEmbeddings(columns, directions).embeddings()
    assert embeddings.shape == (9, 12)
    assert_allclose(embeddings @ directions.T, columns, atol=1e-12)
    # Of least norm: nothing outside the span of the directions.
    shortest = columns @ np.linalg.pinv(directions.T)
    assert_allclose(embeddings, shortest, atol=1e-12)


@CLASSES
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_redrawn_are_those_of_training_to_the_last_bit(n_classes, dtype):
    _, _, frozen = stepped(n_classes, dtype)
    again = frozen.source.embeddings()
    assert again.dtype == dtype
    assert_array_equal(again, frozen.embeddings.matrix)
    assert_array_equal(frozen.source.embeddings(), again)  # asking changes nothing


@CLASSES
def test_redrawn_are_the_ones_of_the_theory(n_classes):
    X, y, _ = stepped(n_classes)
    # What one_step_embeddings makes of random_state=3.
    seed = int(np.random.RandomState(3).randint(np.iinfo(np.int32).max))
    theory = one_step_embeddings(X, y, step_size=9.0, embedding_dim=7, random_state=3)
    frozen = take_step(
        TokenBag(X),
        encode_targets(y, n_classes),
        torch.ones(len(y), dtype=torch.float64),
        theory.importance,
        step_size=9.0,
        embedding_dim=7,
        seed=seed,
    )
    assert_allclose(frozen.source.embeddings(), theory.embeddings, atol=1e-13)


def test_redrawn_without_a_step():
    for single in (True, False):
        source = RedrawnEmbeddings(9, 3, 7, 11, single, None)
        dtype = torch.float32 if single else torch.float64
        expected = draw_embeddings(9, 3, 7, seed=11, dtype=dtype).embeddings
        assert_array_equal(source.embeddings(), expected)
        assert source.embeddings().dtype == (np.float32 if single else np.float64)


@CLASSES
def test_sources_are_pickled_small(n_classes):
    _, _, frozen = stepped(n_classes, dimension=5000)
    source = pickle.loads(pickle.dumps(frozen.source))
    assert_array_equal(source.embeddings(), frozen.source.embeddings())
    assert len(pickle.dumps(frozen.source)) < 2000
    rng = np.random.default_rng(0)
    for source in (
        StoredEmbeddings(rng.normal(size=(4, 3))),
        SpannedEmbeddings(rng.normal(size=(4, 2)), rng.normal(size=(2, 3))),
    ):
        assert_array_equal(pickle.loads(pickle.dumps(source)).embeddings(), source.embeddings())


@CLASSES
def test_read_only_memory_is_no_cause_for_warnings(n_classes):
    """As joblib's memory maps are: PyTorch warns when handed one."""
    _, _, frozen = stepped(n_classes)
    expected = frozen.source.embeddings()
    frozen.source.step.flags.writeable = False
    assert_array_equal(frozen.source.embeddings(), expected)


def test_a_random_frame():
    frame = random_frame(3, 7, 0)
    assert_allclose(frame @ frame.T, np.eye(3), atol=1e-14)
    assert_array_equal(random_frame(3, 7, 0), frame)
    # In every position alike: no sign is preferred, and no coordinate.
    frames = np.array([random_frame(2, 3, seed) for seed in range(2000)])
    assert_allclose(frames.mean(axis=0), 0, atol=0.05)
    assert_allclose((frames**2).mean(axis=0), 1 / 3, atol=0.03)
