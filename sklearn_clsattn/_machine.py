"""How much memory there is, and refusing and warning of what needs more."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._core.documents import Documents

# Bytes that a fit has at its peak beyond X, as measured (docs/robustness.md): by the number of
# entries, and by that of trained numbers, in single and in double precision.
_PER_ENTRY, _PER_NUMBER = {4: 30, 8: 35}, {4: 150, 8: 200}


@cache
def memory() -> float:
    """Return the bytes of memory of this machine or container, infinity if they are not known."""
    sizes = [float("inf")]
    with suppress(AttributeError, ValueError, OSError):  # not on every system
        sizes.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):  # versions 2 and 1
        with suppress(ValueError, OSError):  # such as "max"
            sizes.append(float(Path("/sys/fs/cgroup", limit).read_text()))
    return min(sizes)


def check_memory(least: float, what: str) -> None:
    """Raise ValueError for arrays of at least so many bytes if the machine has fewer."""
    limit = min(memory(), 2.0**62)  # beyond, array sizes are no longer integers
    if least > limit:
        raise ValueError(
            f"{what} takes at least {least / 1e9:,.3g} GB of memory, and this machine has "
            f"{limit / 1e9:,.3g} GB: choose less."
        )


def warn_of_memory(documents: Documents, dtype: type[np.floating[Any]], stacklevel: int) -> None:
    """Warn before a fit that takes more memory beyond its documents than the machine has."""
    X, itemsize = documents.X, np.dtype(dtype).itemsize
    numbers = X.shape[1] * (1 + documents.n_outputs)
    estimate = _PER_ENTRY[itemsize] * X.nnz + _PER_NUMBER[itemsize] * numbers
    if estimate > (limit := memory()):
        warnings.warn(
            f"Training on {X.nnz:,} entries in {X.shape[1]:,} columns with {documents.n_classes} "
            f"classes takes about {estimate / 1e9:,.3g} GB of memory, and this machine has "
            f"{limit / 1e9:,.3g} GB: leave out rare tokens (min_df of a vectorizer), or learn from "
            "fewer documents at a time (partial_fit).",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
