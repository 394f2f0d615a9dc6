"""Draw the documentation's figures: ``python docs/figures.py [REVIEWS.csv]`` (``make docs``).

Without a file of reviews they are drawn from generated ones, into the system's temporary folder.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import load_reviews, make_token_classification
from sklearn_clsattn.importance import class_totals, posterior_difference

WORDS = r"(?u)\b\w+(?:'\w+)?\b"
NEGATIVE, POSITIVE, INK = "#b2570f", "#1f6fb4", "#222222"  # apart for colour-blind readers too


def read(arguments: list[str]) -> tuple[Any, Any, Path]:
    """Return texts, labels and the folder for the pictures."""
    if arguments and Path(arguments[0]).is_file():
        texts, labels = load_reviews(arguments[0], return_X_y=True)
        return texts, labels, Path(__file__).parent / "images"
    print("No file of reviews: drawing generated ones.", file=sys.stderr)
    texts, labels = make_token_classification(
        5000, delta=(0.05, 0.45), as_text=True, random_state=0
    )
    return texts, labels, Path(tempfile.mkdtemp(prefix="sklearn-clsattn-"))


def tokens_figure(texts: Any, labels: Any, path: Path) -> None:
    """Where the model looks and what it makes of it, token by token."""
    vectorizer = CountVectorizer(min_df=5, token_pattern=WORDS)
    X = vectorizer.fit_transform(texts)
    names = vectorizer.get_feature_names_out()
    model = ClsAttentionClassifier().fit(X, labels)
    difference = posterior_difference(
        class_totals(X, np.searchsorted(model.classes_, labels), 2, kind="presence")
    )
    frequent = np.asarray((X > 0).sum(axis=0)).ravel() >= 50
    documents = np.asarray((X > 0).sum(axis=0)).ravel()

    figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained")
    panels = (
        ("attention score  $E_s \\cdot p$", model.attention_scores_),
        ("token value  $E_s \\cdot v$", model.token_values_),
    )
    colours = np.where(difference > 0, POSITIVE, NEGATIVE)
    for ax, (title, numbers) in zip(axes, panels, strict=True):
        ax.scatter(
            difference[frequent],
            numbers[frequent],
            s=4 + 3 * np.log10(documents[frequent] / 50),
            c=colours[frequent],
            alpha=0.35,
            linewidths=0,
        )
        ax.set(xlabel="$P(1\\,|\\,s) - P(0\\,|\\,s)$ in the training reviews", ylabel=title)
        ax.axhline(0, color=INK, linewidth=0.6, zorder=0)
        ax.spines[["top", "right"]].set_visible(False)
    annotate(axes[0], difference, model, names, documents)
    axes[0].set_title("Where the model looks: a U", loc="left", fontsize=11)
    axes[1].set_title("What it makes of it: rising through 0", loc="left", fontsize=11)
    figure.savefig(path, dpi=130)
    print(path)


def annotate(ax: Any, difference: Any, model: Any, names: Any, documents: Any) -> None:
    """Name the tokens that are selected most often, on alternating sides of the cloud."""
    chosen = [token for token in model.selected_tokens_ if documents[token] >= 50]
    for side in (-1, 1):
        tokens = [token for token in chosen if side * difference[token] > 0][:9]
        tokens.sort(key=lambda token: model.attention_scores_[token])
        low, high = ax.get_ylim()
        heights = np.linspace(low + 0.42 * (high - low), high, len(tokens))
        for token, height in zip(tokens, heights, strict=True):
            ax.annotate(
                names[token],
                (difference[token], model.attention_scores_[token]),
                xytext=(side * 1.12, height),
                ha="right" if side < 0 else "left",
                va="center",
                fontsize=8.5,
                color=POSITIVE if side > 0 else NEGATIVE,
                arrowprops={"arrowstyle": "-", "color": "#999999", "linewidth": 0.5},
            )
    ax.set_xlim(-1.62, 1.62)
    ax.set_xticks([-1, -0.5, 0, 0.5, 1])


def main() -> None:
    """Draw everything."""
    texts, labels, folder = read(sys.argv[1:])
    tokens_figure(texts, labels, folder / "tokens.png")


if __name__ == "__main__":
    main()
