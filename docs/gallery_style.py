"""The style of the gallery's figures: letters that can be read in a thumbnail."""

from __future__ import annotations

from typing import Any


def larger_letters(gallery_conf: Any, file: str) -> None:
    """Set matplotlib's letters before each example; the gallery resets them first."""
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "font.size": 14,
            "axes.titlesize": 14,
            "lines.linewidth": 2.4,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
