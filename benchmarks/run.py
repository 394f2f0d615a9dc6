"""The benchmark: ``python -m benchmarks.run [--reviews FOLDER] [--fast]`` (``make bench``).

A whole run on reviews writes results/latest.md, and the table and chart of docs/measured.md.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.text import WordVectors

from . import pages, problems
from .models import OURS, logistic, nb_svm, quality, text_classifier, with_characters
from .problems import WORDS, Problem
from .processes import interleaved, timed

MEASURED = pages.DOCS / "measured.md"
CHART = pages.DOCS / "images" / "benchmark.png"
BEGIN, END = "<!-- table of make bench -->", "<!-- end of table -->"
FAST_ROWS = 1000
_WARM_UP_ROWS = 500
_MOST_SECONDS = 20.0  # of the fits of a model, of which there is one at least
_NOTES = (
    "Medians of interleaved runs after a warm-up. Baselines, and C if given, are tuned by accuracy "
    "on an 80/20 split of the training documents. ECE: calibration error in 15 bins of equal width."
)


@dataclass(frozen=True)
class Task:
    """A set of texts and the parameters of its CountVectorizer.

    With `from_text`, models are compared from raw text as well.
    """

    title: str
    texts: str
    vectorizer: dict[str, Any]
    from_text: bool = True


_PAIRS = {"min_df": 2, "ngram_range": (1, 2), "token_pattern": WORDS}
_UNIGRAMS = {"min_df": 5, "token_pattern": WORDS}
REAL = (
    Task("IMDB, unigram counts", "imdb", _UNIGRAMS, from_text=False),
    Task("IMDB, uni+bigrams, binary", "imdb", {**_PAIRS, "binary": True}),
    Task("Yelp polarity, uni+bigrams", "polarity", _PAIRS),
    Task("Yelp five stars, uni+bigrams", "stars", _PAIRS),
)
GENERATED = (
    Task("generated requests, moods", "mood", _PAIRS),
    Task("generated requests, topics", "topic", _PAIRS),
)


class Competitor(NamedTuple):
    """A classifier of counts and the one parameter that it is tuned by.

    `make` takes the tuned value (None for one that is not tuned) and the number of classes; `grid`
    is ascending, and its middle the value in fast runs. With `tfidf` the matrix gets TF-IDF
    weights, which are computed outside the timing. The last two are of the chart: the shape of the
    mark says what the colour does (Okabe and Ito's), for print and colour-blind readers.
    """

    title: str
    make: Callable[[float | None, int], Any]
    parameter: str
    grid: tuple[float, ...]
    tfidf: bool
    colour: str
    mark: str


def _ours(value: float | None, n_classes: int) -> Any:
    return ClsAttentionClassifier(C="auto" if value is None else value)


def _logistic(value: float | None, n_classes: int) -> Any:
    return LogisticRegression(C=value, max_iter=1000)


def _svc(value: float | None, n_classes: int) -> Any:
    return LinearSVC(C=value, random_state=0)


def _bayes(value: float | None, n_classes: int) -> Any:
    return MultinomialNB(alpha=value)


_COUNTS, _TFIDF = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0), (1.0, 3.0, 10.0, 30.0, 100.0)
_GIVEN, _SVC, _ALPHAS = (0.3, 1.0, 3.0, 10.0), (0.1, 0.3, 1.0, 3.0), (0.03, 0.1, 0.3, 1.0, 3.0)
_NB_SVM = "NB-SVM (log-count ratio, LogisticRegression)"
COMPETITORS = (
    Competitor("ClsAttentionClassifier (defaults)", _ours, "", (), False, "#D55E00", "*"),
    Competitor("ClsAttentionClassifier, C given", _ours, "C", _GIVEN, False, "#E69F00", "P"),
    Competitor("LogisticRegression, counts", _logistic, "C", _COUNTS, False, "#0072B2", "o"),
    Competitor("LogisticRegression, TF-IDF", _logistic, "C", _TFIDF, True, "#56B4E9", "s"),
    Competitor(_NB_SVM, nb_svm, "C", _COUNTS, False, "#009E73", "^"),
    Competitor("LinearSVC, TF-IDF", _svc, "C", _SVC, True, "#CC79A7", "D"),
    Competitor("MultinomialNB, counts", _bayes, "alpha", _ALPHAS, False, "#000000", "X"),
)

FROM_TEXTS: dict[str, Callable[[dict[str, Any]], Any]] = {  # of CountVectorizer's parameters
    OURS: lambda how: text_classifier(),
    "TF-IDF of words and pairs, LogisticRegression(C=10)": lambda how: logistic(),
    "TF-IDF of words, pairs and characters, LogisticRegression(C=10)": lambda how: with_characters(
        LogisticRegression(C=10, max_iter=1000)
    ),
    "TF-IDF of words and pairs in two texts or more, LinearSVC": lambda how: make_pipeline(
        TfidfVectorizer(**how), LinearSVC(random_state=0)
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page; a whole run writes what docs/measured.md has as well."""
    parser = pages.parser("run", __doc__, "reviews")
    parser.add_argument("--fast", action="store_true", help="few rows, few runs, nothing tuned")
    options = parser.parse_args(arguments)
    reviews = options.reviews
    # LogisticRegression on sparse documents gains nothing from a second BLAS thread, and loses
    # much on a busy machine.
    threadpoolctl.threadpool_limits(1, "blas")
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "BLIS_NUM_THREADS": "1"}  # processes to come
    warnings.simplefilter("ignore")  # fast runs and defaults need not converge
    results = [measure(task, reviews, options.fast) for task in (REAL if reviews else GENERATED)]
    is_whole = bool(reviews) and not options.fast
    command = "run" + " --reviews FOLDER" * bool(reviews) + " --fast" * options.fast
    path = pages.RESULTS / "latest.md" if is_whole and not options.output else options.output
    pages.publish(path, "Benchmark", command, _NOTES, *sections(results))
    if is_whole:
        measured = MEASURED.read_text(encoding="utf-8")
        MEASURED.write_text(with_summary(measured, summary_table(results)), encoding="utf-8")
        draw(results, CHART)
    return 0


@dataclass(frozen=True)
class Result:
    """What was measured of a task: the size of its counts, and a row for each model."""

    title: str
    size: str
    of_counts: dict[str, dict[str, Any]]
    of_texts: dict[str, dict[str, Any]]
    few: str  # a sentence about few labels


def measure(task: Task, reviews: Path | None, fast: bool) -> Result:
    """Return what the models reach on a task."""
    texts = problems.load(task.texts, reviews, n_rows=FAST_ROWS if fast else None)
    # 1) models of counts, tuned unless it is a fast run
    counts = _counts(texts, task.vectorizer)
    n_classes = len(np.unique(counts.y_train))
    weighted = _weighted(counts)
    models = {}
    values = {}
    for one in COMPETITORS:
        value = one.grid[len(one.grid) // 2] if one.grid else None
        if one.grid and not fast:
            value = tuned_value(one, counts, n_classes)
        values[one.title] = f"{one.parameter}={value:g}" if one.grid else ""
        make = lambda one=one, value=value: one.make(value, n_classes)  # noqa: E731
        models[one.title] = make, weighted if one.tfidf else counts
    of_counts = compare(models, runs=1 if fast else 5)
    for title, value in values.items():
        of_counts[title]["parameter"] = value
    size = "{:,} documents, {:,} tokens".format(*counts.X_train.shape)
    size += f", {counts.X_train.nnz:,} non-zeros"
    if not task.from_text:
        return Result(task.title, size, of_counts, {}, "")
    # 2) models of texts
    models = {}
    for title, make_from in FROM_TEXTS.items():
        models[title] = lambda make_from=make_from: make_from(task.vectorizer), texts
    of_texts = compare(models, runs=1 if fast else 3)
    return Result(task.title, size, of_counts, of_texts, few_labels(texts))


def _counts(texts: Problem, vectorizer: dict[str, Any]) -> Problem:
    """Return counts, with sorted indices and no duplicates: some SciPy operations sort in place."""
    counter = CountVectorizer(**vectorizer)
    X = counter.fit_transform(texts.X_train)
    X_test = counter.transform(texts.X_test)
    for matrix in (X, X_test):
        matrix.sum_duplicates()
    return Problem(X, texts.y_train, X_test, texts.y_test)


def _weighted(counts: Problem) -> Problem:
    """Return counts with TF-IDF weights."""
    weighting = TfidfTransformer().fit(counts.X_train)
    X, X_test = (weighting.transform(half) for half in (counts.X_train, counts.X_test))
    return Problem(X, counts.y_train, X_test, counts.y_test)


def tuned_value(competitor: Competitor, counts: Problem, n_classes: int) -> float:
    """Return a competitor's value of the best accuracy on a fifth of the training documents."""
    X, X_held_out, y, y_held_out = train_test_split(
        counts.X_train, counts.y_train, test_size=0.2, stratify=counts.y_train, random_state=0
    )
    problem = Problem(X, y, X_held_out, y_held_out)
    if competitor.tfidf:
        problem = _weighted(problem)
    scores = {}
    for value in competitor.grid:
        model = competitor.make(value, n_classes).fit(problem.X_train, problem.y_train)
        scores[value] = float(model.score(problem.X_test, problem.y_test))
    return max(scores, key=lambda value: scores[value])


def compare(
    models: dict[str, tuple[Callable[[], Any], Problem]], *, runs: int
) -> dict[str, dict[str, Any]]:
    """Return times and quality of models, each with what it is fitted to.

    Runs are interleaved, A B C A B C, so that a drift of the machine affects all alike. Models that
    take long are fitted fewer times.
    """
    for make, problem in models.values():  # imports
        rows = _warm_up_rows(problem.y_train)
        make().fit(problem.X_train[rows], problem.y_train[rows])
    fitted = {}
    seconds: dict[str, list[float]] = {title: [] for title in models}
    for run in range(runs):
        for title, (make, problem) in models.items():
            if run and (run + 1) * seconds[title][0] > _MOST_SECONDS:
                continue
            model = make()
            gc.collect()
            fit = lambda model=model, p=problem: model.fit(p.X_train, p.y_train)  # noqa: E731
            fitted[title], taken = timed(fit)
            seconds[title].append(taken)
            print(f"{title} {taken:.2f} s", file=sys.stderr, flush=True)
    calls = [lambda t=t, p=p: fitted[t].predict(p.X_test) for t, (_, p) in models.items()]
    predictions = interleaved(*calls, runs=runs)
    found = {}
    for (title, (_, problem)), prediction in zip(models.items(), predictions, strict=True):
        found[title] = {
            "fit": statistics.median(seconds[title]),
            "predict": prediction,
            **quality(fitted[title], problem.X_test, problem.y_test),
        }
    return found


def _warm_up_rows(y: NDArray[Any]) -> NDArray[np.intp]:
    """Return the first rows and one of each class: enough to import and to start threads."""
    firsts = np.unique(y, return_index=True)[1]
    return np.unique(np.concatenate([np.arange(min(_WARM_UP_ROWS, len(y))), firsts]))


def few_labels(texts: Problem, n_labels: int = 100) -> str:
    """Return accuracies with few labels, and the seconds that vectors of all words take."""
    X, y = texts.X_train, texts.y_train
    few, others = np.split(np.random.default_rng(0).permutation(len(y)), [n_labels])
    _, seconds = timed(lambda: WordVectors().fit(X))
    alone = text_classifier().fit(X[few], y[few])
    helped = text_classifier().fit(X[few], y[few], unlabeled=X[others])
    topics = lsa().fit(X)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(LogisticRegression(max_iter=1000), {"C": _TFIDF}, cv=folds)
    rival = make_pipeline(FrozenEstimator(topics), search).fit(X[few], y[few])
    models = alone, helped, rival
    scores = [float(one.score(texts.X_test, texts.y_test)) for one in models]
    return (
        f"{OURS}, {n_labels} labels: accuracy {scores[0]:.4f}, with `unlabeled=` all other texts "
        f"{scores[1]:.4f}; latent semantic analysis of all texts and LogisticRegression, tuned, on "
        f"these labels {scores[2]:.4f}. Vectors of the words take {seconds:.3g} s."
    )


def lsa() -> Any:
    """Return a latent semantic analysis of texts, with 100 components."""
    words = TfidfVectorizer(min_df=2, sublinear_tf=True)
    return make_pipeline(words, TruncatedSVD(100, random_state=0), Normalizer())


# The page, the table of docs/measured.md and the chart


def sections(results: Sequence[Result]) -> list[str]:
    """Return the parts of the page."""
    header = "accuracy", "log loss", "ECE", "fit, s", "predict, s"
    parts = []
    for one in results:
        rows = [(title, row["parameter"], *_cells(row)) for title, row in one.of_counts.items()]
        table = pages.table(("classifier", "parameter", *header), rows)
        parts += [f"## {one.title}", f"{one.size}.", table]
    parts += ["## From raw text", "Times include vectorizing; all have their defaults."]
    for one in results:
        if one.of_texts:
            rows = [(title, *_cells(row)) for title, row in one.of_texts.items()]
            parts += [pages.table((one.title, *header), rows), one.few]
    return parts


def _cells(row: dict[str, Any]) -> list[str]:
    """Return accuracy, log loss, calibration error and seconds."""
    found = [pages.number(row[what], ".4f") for what in ("accuracy", "log_loss", "ece")]
    return [*found, f"{row['fit']:.3g}", f"{row['predict']:.3g}"]


def summary_table(results: Sequence[Result]) -> str:
    """Return accuracy and fit time from raw texts, and NB-SVM's accuracy, for docs/measured.md."""
    results = [one for one in results if one.of_texts]
    rows = []
    for title in FROM_TEXTS:
        cells = [one.of_texts[title] for one in results]
        shown = [f"{cell['accuracy']:.4f} ({cell['fit']:.3g})" for cell in cells]
        mark = "**" if title == OURS else ""
        rows.append([f"{mark}{text}{mark}" for text in (title, *shown)])
    # NB-SVM reads counts, so there is no time from raw texts.
    tuned = [f"{one.of_counts[_NB_SVM]['accuracy']:.4f}" for one in results]
    rows.append(["Words and pairs in two texts or more, NB-SVM, C tuned", *tuned])
    titles = [one.title.partition(",")[0] for one in results]
    return pages.table(("accuracy (fit, seconds)", *titles), rows)


def with_summary(text: str, summary: str) -> str:
    """Return a page with the summary between the two marks."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"expected a page with {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{summary}\n\n{end}{after}"


def draw(results: Sequence[Result], path: Path) -> None:
    """Draw fit time against accuracy, one panel a task."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.4, 7.2))
    axes = figure.subplots(2, 2, squeeze=False)
    for ax, result in zip(axes.flat, results, strict=False):
        for one in COMPETITORS:
            row = result.of_counts[one.title]
            point = row["fit"], 100 * row["accuracy"]
            style = {"marker": one.mark, "label": one.title, "edgecolor": "white", "zorder": 3}
            ax.scatter(*point, 240 if one.mark == "*" else 75, one.colour, **style)
        ax.set(xscale="log", xlabel="fit, seconds", ylabel="test accuracy, %")
        ax.set_title(result.title, loc="left")
        ax.margins(0.12)
        ax.grid(color="0.9", zorder=0)
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", ncols=3)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
