r"""The mean field of the flow on p: relevant tokens, where all others of a document are alike.

With :math:`x_r` the score of a relevant token above the irrelevant ones', :math:`q_r = 1 / (1 +
(T - 1) e^{-x_r})`, its value :math:`\pm a_r` and its share :math:`f_r` of the documents,

.. math::

    \dot x_r = h_r \pm a_r \textstyle\sum_s (\pm a_s h_s) + \bar h, \qquad
    h_r = f_r a_r\, \sigma(-a_r q_r)\, q_r (1 - q_r),

where :math:`\bar h` is the sum of the h over the number of irrelevant tokens. It is followed at the
speed at which the h add up to 1.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import logsigmoid

from sklearn_clsattn.paper._exponential import ExponentialIntegrator

Array = NDArray[np.float64]
Field = Callable[[torch.Tensor], tuple[torch.Tensor, None]]

# Scores above irrelevant ones at which a class is lost, and, over half the attention, selected.
_LOST, _SELECTED = -1.0, 10.0
_MOST_STEPS, _FARTHEST = 5000, 400.0  # where the class behind has not come back, it never will


def mean_field_leads(
    values: Array,
    sides: Array,
    frequency: Array,
    rivals: float,
    n_irrelevant: int,
    embedding_dim: int | None,
) -> tuple[float, float]:
    """Return A of either class ahead at the start (:class:`SelectionLaw`).

    `values`, `sides` (-1 or 1) and `frequency` (shares of the documents) are those of relevant
    tokens, (n,); a document's other tokens weigh `rivals` times its relevant one.
    """
    own, along = torch.from_numpy(np.log(frequency * values)), torch.from_numpy(sides * values)
    sizes, far = torch.from_numpy(values), float(np.log(rivals))

    def field(y: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the speeds of scores above irrelevant ones, and their pulls h over the sum."""
        share = y[0] - far
        held = torch.sigmoid(share)
        logs = own + logsigmoid(-sizes * held) + logsigmoid(share) + logsigmoid(-share)
        pulls = torch.softmax(logs, dim=0)
        speeds = pulls + along * (along @ pulls) + 1.0 / max(n_irrelevant, 1)
        return torch.stack([speeds, pulls]), None

    start = np.zeros(len(values))
    if embedding_dim is not None:
        of_class = [values[sides == k] for k in (-1, 1)]
        # Means over a class's tokens of the noise of p, of v, and of what the step adds.
        spread = sum(1 / len(a) + a.mean() ** 2 + 1 / (len(a) * a.mean() ** 2) for a in of_class)
        start = sides * np.sqrt(2 * spread / embedding_dim) / 2
    return _lead(field, -start, sides, far), _lead(field, start, sides, far)


def _lead(field: Field, x: Array, sides: Array, far: float) -> float:
    """Return A of a start x, (n,); at the score `far` a token has half the attention."""
    start = torch.from_numpy(np.stack([x, np.zeros_like(x)]))
    flow = ExponentialIntegrator(
        field, start, tol=1e-3, largest_change=2.0, rounding=float(np.finfo(np.float64).eps)
    )
    ahead: NDArray[np.bool_] | None = None  # the tokens of the class ahead, once the other is lost
    lead = 0.0
    for _ in range(_MOST_STEPS):
        if flow.step() == 0:
            break
        x = flow.y[0].numpy()
        if ahead is None and x.min() < _LOST:
            ahead = sides == sides[x.argmax()]
        if ahead is not None:
            lead = max(lead, float(x[ahead].mean()))
        if x.min() >= (0.0 if ahead is not None else far + _SELECTED):
            return lead
        if x.max() > _FARTHEST:
            break
    return 0.0 if ahead is None else np.inf
