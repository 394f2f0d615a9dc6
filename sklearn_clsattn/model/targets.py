"""Class codes as the losses expect them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray


def encode_targets(
    codes: NDArray[np.intp], n_classes: int, device: torch.device | str = "cpu"
) -> torch.Tensor:
    """Return the targets of the attention objective for class codes 0..K-1.

    Parameters
    ----------
    codes : ndarray of shape (n_documents,)
        Class codes 0..K-1.

    n_classes : int
        Number of classes, K.

    device : torch.device or str, default="cpu"
        Where the objective is computed.

    Returns
    -------
    targets : torch.Tensor of shape (n_documents,)
        For two classes +1.0 or -1.0 (float64), else the codes (int64).
    """
    if n_classes == 2:
        return torch.from_numpy(2.0 * codes - 1.0).to(device)
    return torch.from_numpy(np.ascontiguousarray(codes, dtype=np.int64)).to(device)
