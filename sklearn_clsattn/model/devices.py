"""Which device a fit runs on."""

from __future__ import annotations

import torch


def resolve_device(device: str | torch.device) -> torch.device:
    """Turn a `device` parameter into a device that is there and has sparse products.

    Parameters
    ----------
    device : str or torch.device
        "cpu", "cuda" (also "cuda:1"), "auto" (CUDA where there is one), or a torch.device.

    Returns
    -------
    torch.device

    Raises
    ------
    ValueError
        If it names no device, or one that is not here or cannot multiply sparse matrices.
    """
    expected = "expected 'cpu', 'cuda', 'auto' or a torch.device"
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not isinstance(device, str | torch.device):
        raise ValueError(f"device: {expected}, got {device!r}.")
    try:
        resolved = torch.device(device)
    except RuntimeError:
        raise ValueError(f"device: {expected}, got {device!r}.") from None
    if resolved.type not in ("cpu", "cuda"):
        raise ValueError(
            f"device: {resolved.type!r} has no sparse matrix products in PyTorch; use 'cpu' or "
            "'cuda'."
        )
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device: {device!r} was asked for, but PyTorch finds no CUDA device here; use "
            "'cpu', or 'auto' to take CUDA where there is one."
        )
    return resolved
