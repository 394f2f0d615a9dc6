"""The problems: document-token matrices, each made once and cached.

Reviews are read from a folder; without it documents are generated. Matrices are CountVectorizer's,
with sorted indices and no duplicates, because some SciPy operations sort in place.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from sklearn_clsattn.datasets import make_token_classification

CACHE = Path(__file__).resolve().parent / ".cache"
FAST_ROWS = 1000

Texts = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Problem:
    """Matrices and labels, and the file they are cached in.

    From raw text, `X_train` and `X_test` are arrays of texts, and there is no file.
    """

    name: str
    title: str
    path: Path
    X_train: Any
    y_train: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]

    @property
    def n_classes(self) -> int:
        """The number of classes of the training documents."""
        return len(np.unique(self.y_train))


@dataclass(frozen=True)
class Spec:
    """How a problem is made: from reviews (`stem`, `labels`, `vectorizer`), or generated.

    With `from_text`, competitors are compared from raw text as well.
    """

    name: str
    title: str
    stem: str = ""
    labels: str = "as given"
    vectorizer: dict[str, Any] = field(default_factory=dict)
    generated: dict[str, Any] = field(default_factory=dict)
    binary: bool = False
    max_rows: int | None = None
    from_text: bool = True


# Words with their contractions, words of one letter included.
WORDS = r"(?u)\b\w+(?:'\w+)?\b"

_UNIGRAMS = {"min_df": 5, "token_pattern": WORDS}
_BIGRAMS = {"min_df": 2, "ngram_range": (1, 2), "token_pattern": WORDS}
_BINARY = {**_BIGRAMS, "binary": True}
REAL = (
    Spec("imdb_unigrams", "IMDB, unigram counts", "imdb", "as given", _UNIGRAMS, from_text=False),
    Spec("imdb_bigrams", "IMDB, uni+bigrams, binary", "imdb", "as given", _BINARY),
    Spec("yelp_polarity", "Yelp polarity, uni+bigrams", "yelp_stars", "polarity", _BIGRAMS),
    Spec("yelp_stars", "Yelp five stars, uni+bigrams", "yelp_stars", "as given", _BIGRAMS),
)

_LONG = {"n_irrelevant": 30_000, "n_relevant_per_class": 500, "document_length": 200}
_WIDE = {"n_irrelevant": 100_000, "n_relevant_per_class": 2000, "document_length": 100}
_UNEQUAL = {**_WIDE, "delta": 0.25, "weights": [0.33, 0.67]}
_FIVE = {**_WIDE, "delta": 0.55, "n_classes": 5, "flip_y": 0.1}
GENERATED = (
    Spec("long_counts", "generated, long documents", generated={**_LONG, "delta": 0.35}),
    Spec("long_binary", "generated, long, binary", generated={**_LONG, "delta": 0.3}, binary=True),
    Spec("wide_polarity", "generated, wide vocabulary", generated=_UNEQUAL),
    Spec("wide_classes", "generated, five classes", generated=_FIVE),
)
SHORT = Spec(
    "short_documents",
    "1,000 short documents",
    generated={"document_length": 20, "n_irrelevant": 4000, "n_relevant_per_class": 100},
    max_rows=1000,
)
REVIEWS = {
    "imdb": Spec("imdb", "", "imdb"),
    "polarity": Spec("polarity", "", "yelp_stars", labels="polarity"),
    "stars": Spec("stars", "", "yelp_stars"),
}
_PARTS = ("train", "test")


def find_reviews(folder: Path | None) -> Path | None:
    """Return the folder if it has all the review files, else None."""
    names = [f"{stem}_{part}.csv.gz" for stem in ("imdb", "yelp_stars") for part in _PARTS]
    if folder is not None and all((folder / name).is_file() for name in names):
        return folder
    return None


def specs(reviews: Path | None) -> tuple[Spec, ...]:
    """Return the four problems: of reviews if they are there, else generated."""
    return REAL if reviews else GENERATED


def load(
    spec: Spec, reviews: Path | None, *, n_rows: int | None = None, cache: Path = CACHE
) -> Problem:
    """Return a problem, from the cache if it is there; `n_rows` limits both halves."""
    files = [reviews / f"{spec.stem}_{part}.csv.gz" for part in _PARTS] if reviews else []
    sizes = [file.stat().st_size for file in files if spec.stem]
    what = joblib.hash(f"{spec} {n_rows} {sizes} {sklearn.__version__}")
    path = cache / f"{spec.name}-{what}.joblib"
    if not path.is_file():
        print(f"making {spec.title}", file=sys.stderr, flush=True)
        if spec.stem:
            texts = load_texts(spec, reviews, n_rows=n_rows)
            vectorizer = CountVectorizer(**spec.vectorizer)
            X, X_test = vectorizer.fit_transform(texts.X_train), vectorizer.transform(texts.X_test)
            made = X, texts.y_train, X_test, texts.y_test
        else:
            made = generate(spec, n_rows)
        for X in made[::2]:
            X.sum_duplicates()
        path.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(made, path)
    return read(path, spec.name, spec.title)


def load_texts(spec: Spec, folder: Path | None, *, n_rows: int | None = None) -> Problem:
    """Return a problem from raw text; generated documents are written out as words."""
    if spec.stem and folder:
        file = folder / f"{spec.stem}.csv.gz"
        parts = (labelled_texts(spec, folder, part) for part in _PARTS)
        both = split_texts(*read_set(file)) if file.is_file() else parts
        halves = [column for half in both for column in some_rows(half, spec.max_rows, n_rows)]
    else:
        halves = [_as_texts(half) if sp.issparse(half) else half for half in generate(spec, n_rows)]
    return Problem(spec.name, spec.title, Path(), *halves)


def read_set(file: Path) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Return texts, labels, and which are for testing, of a file with text, label and part."""
    frame = pd.read_csv(file, keep_default_na=False, dtype={"label": str})
    texts, y = frame["text"].to_numpy(dtype=object), frame["label"].to_numpy(dtype=str)
    return texts, y, (frame["part"] == "test").to_numpy()


def split_texts(texts: NDArray[Any], y: NDArray[Any], test: NDArray[np.bool_]) -> list[Texts]:
    """Return both halves of texts; a quarter, drawn at random, is for testing if nothing is."""
    if not test.any():
        test = np.random.default_rng(0).random(len(test)) < 0.25
    return [(texts[half], y[half]) for half in (~test, test)]


def read(path: Path, name: str = "", title: str = "") -> Problem:
    """Read a cached problem."""
    return Problem(name, title, path, *joblib.load(path))


def labelled_texts(spec: Spec, reviews: Path, part: str) -> Texts:
    """Return the texts and labels of one half, "train" or "test", of a problem of reviews."""
    file = reviews / f"{spec.stem}_{part}.csv.gz"
    table = pd.read_csv(file, keep_default_na=False)
    texts = table["text"].to_numpy(dtype=object)
    y = table["label"].to_numpy()
    if spec.labels == "polarity":
        clear = y != 3
        texts, y = texts[clear], (y[clear] > 3).astype(np.int64)
    return texts, y


def some_rows(texts: Texts, max_rows: int | None, n_rows: int | None) -> Texts:
    """Return the first `max_rows`, or `n_rows` at random: files may be sorted by label."""
    rows = np.arange(len(texts[0]))[:max_rows]
    if n_rows is not None and n_rows < len(rows):
        rows = np.sort(np.random.default_rng(0).choice(rows, n_rows, replace=False))
    return texts[0][rows], texts[1][rows]


def generate(spec: Spec, n_rows: int | None) -> tuple[Any, ...]:
    """Return matrix and labels of both halves of a generated problem."""
    n_train = spec.max_rows or n_rows or 12_000
    X, y = make_token_classification(
        n_samples=2 * n_train, relevant_share=0.1, random_state=0, **spec.generated
    )
    X = X[:, np.flatnonzero(X.getnnz(axis=0) >= 2)]
    if spec.binary:
        X.data[:] = 1
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def _as_texts(X: sp.csr_matrix) -> NDArray[Any]:
    """Return documents as words: the number of each token, as often as it counts."""
    texts = np.empty(X.shape[0], dtype=object)
    for row in range(X.shape[0]):
        entries = slice(X.indptr[row], X.indptr[row + 1])
        tokens = np.repeat(X.indices[entries], X.data[entries].astype(int))
        texts[row] = " ".join(f"w{token}" for token in tokens)
    return texts
