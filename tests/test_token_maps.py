"""How trained numbers make the token matrix: every map's chain rule, by its own derivative."""

import numpy as np
import pytest
import torch
from helpers import data, documents
from numpy.testing import assert_allclose

from sklearn_clsattn._core.objective import Units
from sklearn_clsattn.importance import signed_frequency
from sklearn_clsattn.paper._cls_regression import ClsMap
from sklearn_clsattn.paper._embeddings import EmbeddingMap, ScoresAndValues
from sklearn_clsattn.paper._frozen import FrozenMap
from sklearn_clsattn.paper._step import take_step

N_TOKENS, DIMENSION = 5, 7


def random(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng([seed, *shape]).normal(size=shape))


class InPlace:
    """A map whose tensors Adam changes in place, as a function of one vector of their numbers."""

    def __init__(self, token_map):
        self.map = token_map

    def start(self):
        return torch.cat([tensor.reshape(-1) for tensor in self.map.trained])

    def _set(self, x):
        parts = x.split([tensor.numel() for tensor in self.map.trained])
        for tensor, part in zip(self.map.trained, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def matrix(self, x):
        self._set(x)
        return self.map.matrix().clone()

    def pull_back(self, x, gradient):
        self._set(x)
        self.map.pull_back(gradient)
        return torch.cat([tensor.grad.reshape(-1) for tensor in self.map.trained])


def units(n_outputs):
    shape = (N_TOKENS + 1, 1 + n_outputs)
    return Units(random(N_TOKENS), random(N_TOKENS, n_outputs).abs()), random(*shape)


def frozen(n_outputs):
    embeddings = random(N_TOKENS, DIMENSION)
    return FrozenMap(embeddings, random(n_outputs)), random(DIMENSION + 1, 1 + n_outputs)


def cls(n_outputs, dimension=DIMENSION):
    d = documents(*data(2 if n_outputs == 1 else n_outputs, n_tokens=N_TOKENS))
    stepped = take_step(
        d.loss(d.bag(np.float64, "cpu")),
        signed_frequency(d.statistics.shares, d.statistics.class_weights),
        step_size=None,
        embedding_dim=dimension,
        seed=0,
    )
    size = stepped.embeddings.dimension + n_outputs + 1 + n_outputs
    return ClsMap(stepped, random(N_TOKENS, n_outputs)), random(size)


def cls_in_the_limit(n_outputs):
    return cls(n_outputs, None)


def embeddings(n_outputs):
    made = InPlace(
        EmbeddingMap(
            random(N_TOKENS, DIMENSION), random(1 + n_outputs, DIMENSION), random(1 + n_outputs)
        )
    )
    return made, made.start()


def scores_and_values(n_outputs):
    made = InPlace(ScoresAndValues(random(N_TOKENS + 1, 1 + n_outputs), random(1 + n_outputs)))
    return made, made.start()


@pytest.mark.parametrize(
    "make", [units, frozen, cls, cls_in_the_limit, embeddings, scores_and_values]
)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_pulling_back_is_the_transpose_of_the_derivative(make, n_outputs):
    """No map is more than quadratic, so that central differences are exact for any step."""
    token_map, x = make(n_outputs)
    matrix, before = token_map.matrix(x), x.clone()
    assert matrix.shape == (N_TOKENS + 1, 1 + n_outputs)
    gradient = random(*matrix.shape, seed=1)
    found = token_map.pull_back(x, gradient.clone())
    assert found.shape == x.shape
    for i in range(x.numel()):
        unit = torch.zeros_like(x)
        unit.view(-1)[i] = 1.0
        column = (token_map.matrix(x + unit).clone() - token_map.matrix(x - unit)) / 2
        assert float(found.view(-1)[i]) == pytest.approx(float((column * gradient).sum()))
    assert_allclose(x, before, rtol=0)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_units_can_be_undone(n_outputs):
    token_map, x = units(n_outputs)
    assert_allclose(token_map.inverse(token_map.matrix(x)), x, atol=1e-14)
    token_map.value_scales[2] = 0.0
    assert not token_map.inverse(token_map.matrix(x))[2, 1:].any()
