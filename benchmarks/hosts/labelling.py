"""What to label next: ``python -m benchmarks.hosts.labelling --explore FOLDER``.

Of a pool of texts 20 are labelled, at least one of each class, then some more a round, up to 400:
at random, or where the two likeliest classes are closest (margin), or what scikit-activeml and
small-text choose. The classifiers are ours, on counts, and logistic regression, on TF-IDF; both
vocabularies are those of the pool. Texts for testing are never in the pool. In sms spam is thinned
out to 5 %, of the texts for testing, too.

The ways that need a package which is not installed are left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.text import TokenVectorizer

from .. import pages
from ..problems import load

SETS = "agnews", "trec", "sms"
RARE = {"sms": "spam"}
SHARE = 0.05
POOL, TEST = 2_000, 1_000  # texts
ROUNDS = 20, 35, 50, 75, 100, 150, 200, 300, 400  # labels after each
SHOWN = 20, 50, 100, 200, 400
SEEDS = 3
OURS, LOGISTIC = "clsattn", "logistic regression"
MODELS: dict[str, Any] = {
    OURS: ClsAttentionClassifier(),
    LOGISTIC: LogisticRegression(C=10, max_iter=1000),
}
COLORS = {OURS: "#1f6fb4", LOGISTIC: "#b2570f"}
STYLES = {"margin": "o-", "random": "o:"}

Rows = NDArray[np.intp]


class Pool(NamedTuple):
    """Texts of one classifier, as numbers, with labels, and others to test on.

    X, y : the features of the pool, (n_texts, n_features), and its labels
    vectors : a dense matrix for distances, (n_texts, 100)
    """

    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    vectors: NDArray[np.float64]

    def hidden(self, labelled: Rows) -> NDArray[np.float64]:
        """Return the numbers of the classes, and NaN where no label is known."""
        codes = np.full(len(self.y), np.nan)
        codes[labelled] = np.unique(self.y, return_inverse=True)[1][labelled]
        return codes


def thinned(name: str, texts: NDArray[Any], y: NDArray[Any], n: int, rng: Any) -> Iterator[Any]:
    """Yield n texts and their labels, at random; of a rare class only its share."""
    rows = rng.permutation(len(y))
    if name in RARE:
        is_rare = y[rows] == RARE[name]
        n_rare = round(SHARE * n)
        rows = np.r_[rows[is_rare][:n_rare], rows[~is_rare][: n - n_rare]]
    yield from (texts[rows[:n]], y[rows[:n]])


def pools(name: str, explore: Path, seed: int) -> dict[str, Pool]:
    """Return the pool of each classifier."""
    data = load(name, explore=explore)
    rng = np.random.default_rng(seed)
    texts, y = thinned(name, data.X_train, data.y_train, POOL, rng)
    texts_test, y_test = thinned(name, data.X_test, data.y_test, TEST, np.random.default_rng(0))
    made = {}
    weights = TfidfVectorizer(ngram_range=(1, 2))
    vectors = TruncatedSVD(100, random_state=0).fit_transform(weights.fit_transform(texts))
    counts = TokenVectorizer(ngram_range=(1, 2))
    for title, vectorizer in {OURS: counts, LOGISTIC: weights}.items():
        X, X_test = vectorizer.fit_transform(texts), vectorizer.transform(texts_test)
        made[title] = Pool(X, y, X_test, y_test, vectors)
    return made


def at_random(model: Any, pool: Pool, labelled: Rows, others: Rows, n: int) -> Rows:
    """Return texts at random."""
    return np.random.default_rng(len(labelled)).choice(others, n, replace=False)


def margin(model: Any, pool: Pool, labelled: Rows, others: Rows, n: int) -> Rows:
    """Return the texts whose two likeliest classes are closest."""
    second, first = np.sort(model.predict_proba(pool.X[others]), axis=1)[:, -2:].T
    return others[np.argsort(first - second, kind="stable")[:n]]


def falcun(model: Any, pool: Pool, labelled: Rows, others: Rows, n: int) -> Rows:
    """Return uncertain texts of different probabilities, by scikit-activeml."""
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import Falcun
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    # It takes no sparse features: so it gets numbers of rows.
    numbers = np.arange(len(pool.y))[:, None]
    read = FunctionTransformer(lambda rows: pool.X[rows.ravel().astype(int)])
    classes = range(len(np.unique(pool.y)))
    wrapped = SklearnClassifier(make_pipeline(read, model), classes=classes, random_state=0)
    wrapped.fit(numbers, pool.hidden(labelled))
    strategy = Falcun(random_state=0)
    y = pool.hidden(labelled)
    return strategy.query(X=numbers, y=y, clf=wrapped, fit_clf=False, batch_size=n)


def core_set(model: Any, pool: Pool, labelled: Rows, others: Rows, n: int) -> Rows:
    """Return texts far from all that are labelled, by scikit-activeml."""
    from skactiveml.pool import CoreSet

    y = pool.hidden(labelled)
    return CoreSet(random_state=0).query(X=pool.vectors, y=y, batch_size=n)


def discriminative(model: Any, pool: Pool, labelled: Rows, others: Rows, n: int) -> Rows:
    """Return texts that do not look like those labelled, by small-text."""
    import small_text

    np.random.seed(0)  # noqa: NPY002  what it draws from
    made = small_text.SklearnClassifierFactory(small_text.ConfidenceEnhancedLinearSVC(), 2)
    codes = np.unique(pool.y, return_inverse=True)[1]
    X = csr_matrix(pool.vectors)
    texts = small_text.SklearnDataset(X, codes, target_labels=np.unique(codes))
    strategy = small_text.DiscriminativeActiveLearning(made, 10)
    return strategy.query(None, texts, others, labelled, codes[labelled], n=n)


WAYS: dict[str, tuple[Callable[..., Rows], str]] = {
    "random": (at_random, "numpy"),
    "margin": (margin, "numpy"),
    "Falcun": (falcun, "skactiveml"),
    "core set": (core_set, "skactiveml"),
    "discriminative": (discriminative, "small_text"),
}


def score(name: str, model: Any, pool: Pool) -> float:
    """Return the accuracy on texts for testing, or the average precision of a rare class."""
    probabilities = model.predict_proba(pool.X_test)
    if name not in RARE:
        return float(np.mean(model.classes_[probabilities.argmax(axis=1)] == pool.y_test))
    rare = probabilities[:, model.classes_ == RARE[name]].ravel()
    return float(average_precision_score(pool.y_test == RARE[name], rare))


def curve(name: str, title: str, pool: Pool, way: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield scores, and seconds of processor time of a fit, as labels are added."""
    # 1) the first: of each class one, and others at random
    order = np.random.default_rng(seed).permutation(len(pool.y))
    firsts = order[np.unique(pool.y[order], return_index=True)[1]]
    labelled = np.r_[firsts, order[~np.isin(order, firsts)][: ROUNDS[0] - len(firsts)]]
    # 2) the others
    model = MODELS[title]
    for n in ROUNDS:
        if n > len(labelled):
            others = np.setdiff1d(np.arange(len(pool.y)), labelled)
            chosen = WAYS[way][0](model, pool, labelled, others, n - len(labelled))
            labelled = np.r_[labelled, chosen]
        began = time.process_time()
        model = MODELS[title].fit(pool.X[labelled], pool.y[labelled])
        row = {"labels": n, "seconds": time.process_time() - began}
        yield row | {
            "set": name,
            "classifier": title,
            "way": way,
            "score": score(name, model, pool),
        }


def measured(explore: Path, ways: list[str], seeds: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of all curves."""
    for name in SETS:
        for seed in range(seeds):
            for title, pool in pools(name, explore, seed).items():
                for way in ways:
                    yield from curve(name, title, pool, way, seed)
                    print(name, seed, title, way, file=sys.stderr, flush=True)


def sections(found: pd.DataFrame) -> Iterator[str]:
    """Yield a table of scores for each set, and one of the seconds of a fit."""
    shown = found[found["labels"].isin(SHOWN)]
    keys = ["set", "classifier", "way", "labels"]
    scores = shown.groupby(keys, sort=False)["score"].mean().unstack()
    for name, of_set in scores.groupby("set", sort=False):
        measure = f"average precision of {RARE[name]}" if name in RARE else "accuracy"
        rows = [[*key[1:], *map("{:.3f}".format, row)] for key, row in of_set.iterrows()]
        yield f"## {name}: {measure}"
        yield pages.table(["classifier", "way", *SHOWN], rows)
    seconds = shown.groupby(["set", "classifier", "labels"], sort=False)["seconds"].median()
    rows = [[*key, *map("{:.3f}".format, row)] for key, row in seconds.unstack().iterrows()]
    yield "## Seconds of processor time of a fit, medians"
    yield pages.table(["set", "classifier", *SHOWN], rows)


def draw(found: pd.DataFrame, path: Path) -> None:
    """Draw the curves of both classifiers at random and by margin."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    means = found.groupby(["set", "classifier", "way", "labels"], sort=False)["score"].mean()
    figure, axes = plt.subplots(1, len(SETS), figsize=(9, 3.2), layout="constrained")
    for ax, name in zip(axes, SETS, strict=True):
        ends = {}
        for title, color in COLORS.items():
            for way, style in STYLES.items():
                points = 100 * means[name, title, way]
                ax.plot(points.index, points, style, color=color, markersize=3)
                ends[points.iloc[-1]] = f"{title}, {way}", color
        measure = "average precision" if name in RARE else "accuracy"
        ax.set(xscale="log", xlabel="labels", title=f"{name}: {measure} (%)")
        ax.title.set_fontsize(9)
        ax.set_xticks(SHOWN, [str(n) for n in SHOWN])
        ax.set_xticks([], minor=True)
        ax.spines[["top", "right"]].set_visible(False)
    height, gap = np.inf, np.ptp(axes[-1].get_ylim()) / 14
    for end in sorted(ends, reverse=True):
        height = min(end, height - gap)
        text, color = ends[end]
        axes[-1].text(450, height, text, color=color, fontsize=8, va="center")
    figure.savefig(path, dpi=100, facecolor="white")
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    """Measure, write the page and draw the picture."""
    parser = pages.parser("hosts.labelling", __doc__, "explore")
    parser.add_argument("--picture", type=Path, metavar="FILE")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args(arguments)
    absent = [way for way, (_, package) in WAYS.items() if not find_spec(package)]
    ways = [way for way in WAYS if way not in absent]
    found = pd.DataFrame(list(measured(options.explore, ways, options.seeds)))
    notes = f"Means of {options.seeds} pools of {POOL:,} texts; {TEST:,} texts for testing."
    notes += f" Not installed: what {', '.join(absent)} need." if absent else ""
    command = "hosts.labelling --explore FOLDER"
    pages.publish(options.output, "What to label next", command, notes, *sections(found))
    if options.picture:
        draw(found, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
