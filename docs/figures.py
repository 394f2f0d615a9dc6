"""Draw the documentation's figures: ``python docs/figures.py [REVIEWS.csv]`` (``make figures``).

Without a file of reviews they are drawn from messages, into the system's temporary folder.
Pages are photographed by a Chromium of the system's; without one, these pictures stay as they are.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import TokenImportanceDisplay, explain, report
from sklearn_clsattn.text import WordVectors

WORDS = r"(?u)\b\w+(?:'\w+)?\b"
REVIEW = (  # ours
    "The trailer promised a masterpiece. The photography is beautiful and the music is great, but "
    "the plot makes no sense, the dialogue is awful, and after two hours I wanted my money back. "
    "A waste of a wonderful cast."
)
NARROW = 400  # pixels of a telephone
NEGATIVE, POSITIVE, INK = "#b2570f", "#1f6fb4", "#222222"  # apart for colour-blind readers too


def read(arguments: list[str]) -> tuple[Any, Any, Path]:
    """Return texts, labels and the folder for the pictures."""
    if arguments and Path(arguments[0]).is_file():
        table = pd.read_csv(arguments[0], keep_default_na=False)
        texts = table["text"].to_numpy(dtype=object)
        return texts, table["label"].to_numpy(), Path(__file__).parent / "images"
    print("No file of reviews: drawing generated messages.", file=sys.stderr)
    texts, moods = load_requests(target="mood", return_X_y=True)
    labels = (moods == "content").astype(int)
    return texts, labels, Path(tempfile.mkdtemp(prefix="sklearn-clsattn-"))


def few_labels_figure(texts: Any, labels: Any, path: Path) -> None:
    """Accuracy by the number of labels, with and without the other texts."""
    order = np.random.default_rng(0).permutation(len(labels))
    texts, labels = np.array(texts, dtype=object)[order], np.array(labels)[order]
    n_test = len(labels) // 5
    (test, pool), (y_test, y) = np.split(texts, [n_test]), np.split(labels, [n_test])
    vectors = WordVectors().fit(pool)
    linear = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10.0))
    models = {
        "with the other texts, without their labels": (
            TextClassifier(word_vectors=vectors),
            {"color": POSITIVE, "linewidth": 2.2},
        ),
        "labelled texts alone": (TextClassifier(), {"color": POSITIVE, "linestyle": "--"}),
        "TF-IDF, logistic regression": (linear, {"color": NEGATIVE, "linestyle": ":"}),
    }
    sizes = [n for n in (30, 100, 300, 1_000, 3_000, 10_000) if n < len(pool)]
    figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for name, (model, style) in models.items():
        scores = [100 * clone(model).fit(pool[:n], y[:n]).score(test, y_test) for n in sizes]
        print(name, dict(zip(sizes, np.round(scores, 1).tolist(), strict=True)))
        ax.plot(sizes, scores, marker="o", markersize=4, label=name, **style)
    ax.set(xscale="log", xlabel="labelled reviews", ylabel="accuracy on others (%)")
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.set_xticks([], minor=True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(path)


def tokens_figure(texts: Any, labels: Any, path: Path) -> None:
    """Where the model looks and what it makes of it, token by token."""
    vectorizer = CountVectorizer(min_df=5, token_pattern=WORDS)
    X = vectorizer.fit_transform(texts)
    names = vectorizer.get_feature_names_out()
    model = ClsAttentionClassifier().fit(X, labels)
    has_token = X > 0
    documents = np.asarray(has_token.sum(axis=0)).ravel()
    positive = np.asarray(has_token[labels == model.classes_[1]].sum(axis=0)).ravel()
    difference = 2 * positive / documents - 1
    frequent = documents >= 50

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


def explaining_figures(texts: Any, labels: Any, folder: Path) -> None:
    """The pictures of the page on explanations, of a model of words and pairs of words."""
    named = np.where(labels == np.unique(labels)[1], "good", "bad")
    vectorizer = CountVectorizer(min_df=5, token_pattern=WORDS, ngram_range=(1, 2), binary=True)
    model = make_pipeline(vectorizer, ClsAttentionClassifier()).fit(texts, named)
    review = explain(model, [REVIEW], y_true=["bad"])
    table = review.to_frame().sort_values("contribution", key=abs, ascending=False)
    print(table[["token", "attention", "value", "contribution"]].head(20).to_string(index=False))
    photograph(review.to_html(top=6), folder / "explaining_document.png", 920)
    photograph(review.counterfactual().to_html(), folder / "explaining_words.png", 920)
    display = TokenImportanceDisplay.from_estimator(model, texts)
    display.figure_.savefig(folder / "explaining_tokens.png", dpi=110)
    plt.close(display.figure_)
    print(folder / "explaining_tokens.png")


def report_figure(folder: Path) -> None:
    """The first screen of a report, on generated messages: real reviews are not ours to show."""
    texts, moods = load_requests(target="mood", return_X_y=True)
    page = report(
        TextClassifier(), texts[2000:], moods[2000:], X_train=texts[:2000], y_train=moods[:2000]
    )
    photograph(page, folder / "explaining_report.png", 1100, height=1250)


def photograph(html: str, path: Path, width: int, height: int | None = None) -> None:
    """Save pictures of a page, by default as high as it is: of this width, and for a telephone."""
    screenshot(html, path, width, height)
    screenshot(html, path.with_stem(f"{path.stem}_narrow"), NARROW, height)


def screenshot(html: str, path: Path, width: int, height: int | None) -> None:
    """Save a picture of a page, by default as high as it is."""
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
    if browser is None:
        print(f"No Chromium here: {path.name} is left as it was.", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch, "page.html")
        page.write_text(html, encoding="utf-8")
        if width < 500:
            frame = f'<iframe src="page.html" style="border:0;width:{width}px;height:2980px">'
            page = Path(scratch, "frame.html")
            page.write_text(f"<body style='margin:0'>{frame}</iframe>", encoding="utf-8")
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--disable-background-networking",
                "--force-device-scale-factor=1.5",
                f"--user-data-dir={scratch}/profile",
                # A window is not narrower than 500: the page is shown in a frame.
                f"--window-size={max(width, 500)},{height or 3000}",
                f"--screenshot={path}",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )
    if width < 500:
        picture = plt.imread(path)
        plt.imsave(path, picture[:, : int(1.5 * width)])
    if height is None:
        cut_below(path)
    print(path)


def log_odds_of(shares: Any, totals: Any) -> Any:
    """Return the mean log-odds of the shares, by totals of shape (2, n_tokens)."""
    smoothed = totals + 0.5
    rates = np.log(smoothed / smoothed.sum(axis=1, keepdims=True))
    return shares @ (rates[1] - rates[0])


def mean_figure(texts: Any, labels: Any, path: Path) -> None:
    """Evidence for the training documents, by log-odds that have seen them and that have not."""
    X = CountVectorizer(ngram_range=(1, 2), min_df=2).fit_transform(texts[::5])
    codes = np.unique(labels[::5], return_inverse=True)[1]
    lengths = np.maximum(np.asarray(X.sum(axis=1)).ravel(), 1)
    shares = (X.multiply(1 / lengths[:, None])).tocsr()
    totals = np.array([np.asarray(shares[codes == k].sum(axis=0)).ravel() for k in (0, 1)])
    seen, unseen = log_odds_of(shares, totals), np.empty(len(codes))
    for i, code in enumerate(codes):
        row = shares[[i]]
        totals[code, row.indices] -= row.data  # the document's labels left out
        unseen[i] = log_odds_of(row, totals)[0]
        totals[code, row.indices] += row.data
    panels = (
        ("by log-odds that have seen the document", seen),
        ("by log-odds of all other documents", unseen),
    )
    figure, axes = plt.subplots(
        1, 2, figsize=(11.5, 3.6), layout="constrained", sharex=True, sharey=True
    )
    bins = np.linspace(*np.percentile(np.concatenate([of for _, of in panels]), [0.2, 99.8]), 60)
    for ax, (title, of_documents) in zip(axes, panels, strict=True):
        for code, colour, name in ((0, NEGATIVE, "negative"), (1, POSITIVE, "positive")):
            chosen = of_documents[codes == code]
            ax.hist(chosen, bins, color=colour, alpha=0.55, label=f"{name} reviews")
        wrong = np.mean((of_documents > 0) != codes)
        ax.set_title(f"{title}: {wrong:.0%} on the wrong side", loc="left", fontsize=11)
        ax.axvline(0, color=INK, linewidth=0.6)
        ax.set(xlabel="mean log-odds of the review's words and bigrams")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.set_yticks([])
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=130)
    print(path)


def context_figure(texts: Any, labels: Any, path: Path) -> None:
    """Draw the weights of positions and of the words before."""
    vectorizer = TextClassifier(characters=None).fit(texts, labels).vectorizer_
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.6), layout="constrained")
    sides = {"start": vectorizer.start_scores_, "end": vectorizer.end_scores_}
    for ax, (side, scores) in zip(axes[:2], sides.items(), strict=True):
        first_of_cell = 2 ** np.arange(scores.shape[1])
        for name, of_order in zip(("single words", "pairs of words"), scores, strict=True):
            learned = of_order != 0
            ax.plot(first_of_cell[learned], np.exp(of_order[learned] / 2), "o-", label=name)
        ax.set(xscale="log", xlabel="position", ylabel="multiplier")
        ax.set_title(f"by position from the {side}")
    axes[0].sharey(axes[1])
    axes[0].legend(frameon=False)
    scores = vectorizer.previous_word_scores_
    order = np.argsort(scores, kind="stable")
    # Signs are left out, such as those that remain of tags of HTML.
    names = vectorizer.previous_words_
    order = [at for at in order if any(character.isalnum() for character in names[at])]
    words = np.array(order[:8] + order[-8:])
    axes[2].barh(names[words], np.exp(scores[words] / 2) - 1, left=1)
    axes[2].set(xlabel="multiplier of what follows", title="by the word before")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(path)


def cut_below(path: Path, margin: int = 20) -> None:
    """Cut off the blank rows at the foot of a picture."""
    picture = plt.imread(path)
    drawn = np.flatnonzero((picture != picture[-1, 0]).any(axis=(1, 2)))
    plt.imsave(path, picture[: drawn[-1] + margin])


def main() -> None:
    """Draw everything."""
    texts, labels, folder = read(sys.argv[1:])
    tokens_figure(texts, labels, folder / "tokens.png")
    mean_figure(texts, labels, folder / "prior_mean.png")
    context_figure(texts, labels, folder / "context.png")
    few_labels_figure(texts, labels, folder / "few_labels.png")
    explaining_figures(texts, labels, folder)
    report_figure(folder)


if __name__ == "__main__":
    main()
