r"""How much each document moves its own outputs, by the curvature of all others.

Of output k of document i, :math:`J_i` are the derivatives by what is trained, in units in which
every penalty is 1: with attention q and mean m, q times the scale by a value, q (b - m) by a score,
-q m by the score of ``<cls>``, and 1 by the intercept, which has no penalty. With the curvature
:math:`w_j` of document j's loss in its output, a Newton step from the fit without document i
changes its output by the gradient of its loss in it, times the leverage

.. math::

    h_i = J_i H_{-i}^{-1} J_i^\top, \qquad H_{-i} = I + \sum_{j \ne i} w_j J_j^\top J_j.

Numbers that are trained mostly outnumber documents, so what is inverted has the size of the
documents' kernel :math:`K = J J^\top` (Woodbury). Of many documents, some stand for all: each is
drawn with a chance in proportion to its curvature, and weighs what it was drawn for.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, solve_triangular

from .._types import Array, Numbers

SAMPLE_SIZE = 1_000
"""The maximum number of documents that stand for all, over the root of the number of outputs."""

_LEAST_CURVATURE = 1e-12
_BLOCK = 2_000  # documents


def leverages(
    attention: sp.csr_array,
    cls_attention: Array,
    means: Array,
    values: Array,
    value_scales: Array,
    curvature: Array,
    penalties: Sequence[float],
) -> Array:
    """Return the leverages of documents, (n_documents, n_outputs), output by output.

    `attention`, (n_documents, n_tokens), and `cls_attention`, (n_documents,), add up to 1;
    `means` and `curvature` are (n_documents, n_outputs), `values` and `value_scales` (n_tokens,
    n_outputs), and `penalties` those of scores, values and the score of ``<cls>``.
    """
    n_outputs = means.shape[1]
    size = max(int(SAMPLE_SIZE / math.sqrt(n_outputs)), 1)
    of_outputs = []
    for k in range(n_outputs):
        by_token = values[:, k], value_scales[:, k]
        derivatives = _derivatives(attention, cls_attention, means[:, k], *by_token, penalties)
        of_outputs.append(_of_output(derivatives, curvature[:, k].clip(_LEAST_CURVATURE), size))
    return np.column_stack(of_outputs)


def _derivatives(
    attention: sp.csr_array,
    cls_attention: Array,
    means: Array,
    values: Array,
    value_scales: Array,
    penalties: Sequence[float],
) -> sp.csr_array:
    """Return an output's derivatives but for that by the intercept, (n_documents, 2 n_tokens + 1).

    `means` are (n_documents,), `values` and `value_scales` (n_tokens,).
    """
    on_scores, on_values, on_cls = np.sqrt(penalties)
    by_score = attention.multiply(values) - attention.multiply(means[:, None])
    by_value = attention.multiply(value_scales)
    by_cls_score = sp.csr_array(-(cls_attention * means)[:, None])
    parts = [by_score / on_scores, by_value / on_values, by_cls_score / on_cls]
    return sp.hstack(parts, format="csr")


def _of_output(derivatives: sp.csr_array, curvature: Array, size: int) -> Array:
    """Return the leverages of documents on an output, (n_documents,), by the curvature of some."""
    n_documents = len(curvature)
    sample, weights = _sampled(curvature, size)
    # 1) the sample's kernel, and the direction of the intercept
    of_sample = derivatives[sample]
    roots = np.sqrt(weights)
    kernel = _products(of_sample, of_sample)
    factor = cholesky(np.eye(len(sample)) + roots[:, None] * kernel * roots, lower=True)
    of_intercept = solve_triangular(factor, roots, lower=True)
    # 2) the leverages by the curvature of the sample
    results = derivatives.power(2).sum(axis=1)
    for start in range(0, n_documents, _BLOCK):
        rows = slice(start, start + _BLOCK)
        between = roots[:, None] * _products(of_sample, derivatives[rows])
        solved = solve_triangular(factor, between, lower=True)
        results[rows] -= (solved**2).sum(axis=0)
        results[rows] += (1.0 - of_intercept @ solved) ** 2 / (of_intercept @ of_intercept)
    # 3) without the document itself
    own_weights = np.zeros(n_documents)
    own_weights[sample] = weights
    return np.asarray(results / (1.0 - own_weights * results))


def _sampled(curvature: Array, size: int) -> tuple[Numbers, Array]:
    """Return the positions of at most `size` documents, and the curvature that each stands for.

    `curvature` is (n_documents,).
    """
    if len(curvature) <= size:
        return np.arange(len(curvature)), curvature
    # Marks at equal distances on the sum of all: whoever has more than a distance is drawn.
    distance = curvature.sum() / size
    n_marks = np.diff(np.floor(np.cumsum(curvature) / distance + 0.5), prepend=0.0)
    drawn = np.flatnonzero(n_marks)
    return drawn, n_marks[drawn] * distance


def _products(first: sp.csr_array, second: sp.csr_array) -> Any:
    """Return the products of rows of two matrices, (n_first, n_second), dense."""
    return (first @ second.T).toarray()
