"""How much memory there is, and refusing and warning of what needs more."""

from __future__ import annotations

import os
import warnings

# Bytes that a fit has at its peak beyond X, as measured (docs/robustness.md): by the number of
# entries, and by that of trained numbers, in single and in double precision.
_PER_ENTRY, _PER_NUMBER = {4: 30, 8: 35}, {4: 150, 8: 200}


def memory() -> float:
    """Return the bytes of memory of this machine, infinity where they are not known."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not on every system
        return float("inf")


def check_memory(least: int, what: str) -> None:
    """Raise ValueError for arrays of at least so many bytes if the machine has fewer."""
    limit = min(memory(), 2.0**62)  # beyond, array sizes are no longer integers
    if least > limit:
        raise ValueError(
            f"{what} takes at least {least / 1e9:,.3g} GB of memory, and this machine has "
            f"{limit / 1e9:,.3g} GB: choose less."
        )


def peak_of_fit(n_entries: int, n_tokens: int, n_outputs: int, itemsize: int) -> int:
    """Estimate the bytes that a default fit takes beyond X, with numbers of 4 or 8 bytes."""
    return _PER_ENTRY[itemsize] * n_entries + _PER_NUMBER[itemsize] * n_tokens * (1 + n_outputs)


def warn_of_memory(estimate: int, what: str, stacklevel: int) -> None:
    """Warn before work that takes more memory than the machine has."""
    if estimate > (limit := memory()):
        warnings.warn(
            f"Training on {what} takes about {estimate / 1e9:,.3g} GB of memory, and this machine "
            f"has {limit / 1e9:,.3g} GB: leave out rare tokens (min_df of a vectorizer), or learn "
            "from fewer documents at a time (partial_fit).",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
