"""The problems: what is classified, as document-token matrices, each made once and cached.

Real reviews are read from a folder that the caller names; where it is absent, documents are
generated. Every matrix is what CountVectorizer gives, with sorted indices and no duplicates:
some SciPy operations sort in place, and no competitor shall pay for that, or profit from it.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from sklearn_clsattn.datasets import load_reviews, make_token_classification

CACHE = Path(__file__).resolve().parent / ".cache"
FAST_ROWS = 1000

Texts = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Problem:
    """Matrices and labels, and the file they are cached in (for processes that measure memory).

    Of a problem from raw text, `X_train` and `X_test` are arrays of texts, and there is no file.
    """

    name: str
    title: str
    path: Path
    X_train: Any
    y_train: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]

    @property
    def key(self) -> str:
        """What tuned parameters are cached under: it changes with the data."""
        return self.path.stem

    @property
    def n_classes(self) -> int:
        """How many classes the training documents have."""
        return len(np.unique(self.y_train))


@dataclass(frozen=True)
class Spec:
    """How a problem is made: from reviews (`stem`, `labels`, `vectorizer`), or generated.

    `from_text` says whether competitors are compared from raw text too.
    """

    name: str
    title: str
    stem: str = ""
    labels: str = "as given"
    vectorizer: dict[str, Any] = field(default_factory=dict)
    generated: dict[str, Any] = field(default_factory=dict)
    binary: bool = False
    max_rows: int | None = None
    max_words: int | None = None
    from_text: bool = True


# Words with their contractions ("don't" is one), and words of one letter too: reviews' own
# tokens, the same for every competitor.
WORDS = r"(?u)\b\w+(?:'\w+)?\b"

REAL = (
    Spec(
        "imdb_unigrams",
        "IMDB, unigram counts",
        "imdb",
        vectorizer={"min_df": 5, "token_pattern": WORDS},
        from_text=False,
    ),
    Spec(
        "imdb_bigrams",
        "IMDB, uni+bigrams, binary",
        "imdb",
        vectorizer={
            "min_df": 2,
            "ngram_range": (1, 2),
            "binary": True,
            "token_pattern": WORDS,
        },
    ),
    Spec(
        "yelp_polarity",
        "Yelp polarity, uni+bigrams",
        "yelp_stars",
        labels="polarity",
        vectorizer={"min_df": 2, "ngram_range": (1, 2), "token_pattern": WORDS},
    ),
    Spec(
        "yelp_stars",
        "Yelp five stars, uni+bigrams",
        "yelp_stars",
        vectorizer={"min_df": 2, "ngram_range": (1, 2), "token_pattern": WORDS},
    ),
)

_LONG = {"n_irrelevant": 30_000, "n_relevant_per_class": 500, "document_length": 200}
_WIDE = {"n_irrelevant": 100_000, "n_relevant_per_class": 2000, "document_length": 100}
GENERATED = (
    Spec("long_counts", "generated, long documents", generated={**_LONG, "delta": 0.35}),
    Spec("long_binary", "generated, long, binary", generated={**_LONG, "delta": 0.3}, binary=True),
    Spec(
        "wide_polarity",
        "generated, wide vocabulary",
        generated={**_WIDE, "delta": 0.25, "weights": [0.33, 0.67]},
    ),
    Spec(
        "wide_classes",
        "generated, five classes",
        generated={**_WIDE, "delta": 0.55, "n_classes": 5, "flip_y": 0.1},
    ),
)

SHORT_REAL = Spec(
    "short_documents",
    "1,000 short documents (Yelp polarity)",
    "yelp_stars",
    labels="polarity",
    max_rows=1000,
    max_words=20,
)
SHORT_GENERATED = Spec(
    "short_documents",
    "1,000 short documents (generated)",
    generated={"document_length": 20, "n_irrelevant": 4000, "n_relevant_per_class": 100},
    max_rows=1000,
)


def find_reviews(folder: Path | None) -> Path | None:
    """Return the folder if it has all the review files, else None."""
    names = [f"{stem}_{part}.csv.gz" for stem in ("imdb", "yelp_stars") for part in _PARTS]
    if folder is not None and all((folder / name).is_file() for name in names):
        return folder
    return None


def specs(reviews: Path | None) -> tuple[Spec, ...]:
    return REAL if reviews else GENERATED


def short_documents(reviews: Path | None, cache: Path = CACHE) -> Problem:
    return load(SHORT_REAL if reviews else SHORT_GENERATED, reviews, cache=cache)


def load(
    spec: Spec, reviews: Path | None, *, n_rows: int | None = None, cache: Path = CACHE
) -> Problem:
    """Return a problem, from the cache where it is there; `n_rows` limits both its halves."""
    path = cache / f"{spec.name}-{_fingerprint(spec, reviews, n_rows)}.npz"
    if not path.is_file():
        print(f"making {spec.title}", file=sys.stderr, flush=True)
        make: Callable[..., tuple[Any, ...]] = _vectorise if spec.stem else generate
        _save(path, *make(spec, reviews, n_rows))
    return read(path, spec.name, spec.title)


def load_texts(spec: Spec, reviews: Path | None, *, n_rows: int | None = None) -> Problem:
    """Return a problem from raw text; generated documents are written out as words."""
    halves: list[Any] = []
    if spec.stem and reviews:
        for part in _PARTS:
            halves += some_rows(labelled_texts(spec, reviews, part), spec.max_rows, n_rows)
    else:
        for half in generate(spec, None, n_rows):
            halves.append(_as_texts(half) if sp.issparse(half) else half)
    return Problem(spec.name, spec.title, Path(), *halves)


def read(path: Path, name: str = "", title: str = "") -> Problem:
    """Read a cached problem."""
    with np.load(path) as stored:
        parts: dict[str, Any] = {}
        for part in ("train", "test"):
            arrays = [stored[f"{part}_{kind}"] for kind in ("data", "indices", "indptr")]
            matrix = sp.csr_matrix(tuple(arrays), shape=tuple(stored[f"{part}_shape"]))
            parts |= {f"X_{part}": matrix, f"y_{part}": stored[f"{part}_y"]}
    return Problem(name, title, path, **parts)


_PARTS = ("train", "test")


def _vectorise(spec: Spec, reviews: Path, n_rows: int | None) -> tuple[Any, ...]:
    (texts, y), (texts_test, y_test) = (
        some_rows(labelled_texts(spec, reviews, part), spec.max_rows, n_rows) for part in _PARTS
    )
    if spec.max_words:
        texts, texts_test = (
            np.array([" ".join(text.split()[: spec.max_words]) for text in half], dtype=object)
            for half in (texts, texts_test)
        )
    vectorizer = CountVectorizer(**spec.vectorizer)
    X = vectorizer.fit_transform(texts)
    return X, y, vectorizer.transform(texts_test), y_test


def labelled_texts(spec: Spec, reviews: Path, part: str) -> Texts:
    """Return the texts and labels of one half, "train" or "test", of a problem of reviews."""
    file = reviews / f"{spec.stem}_{part}.csv.gz"
    texts, y = load_reviews(file, text="text", label="label", return_X_y=True)
    if spec.labels == "polarity":
        kept = y != 3
        texts, y = texts[kept], (y[kept] > 3).astype(np.int64)
    return texts, y


def some_rows(texts: Texts, max_rows: int | None, n_rows: int | None) -> Texts:
    """Return the first `max_rows`, or `n_rows` at random: files may be sorted by label."""
    rows = np.arange(len(texts[0]))[:max_rows]
    if n_rows is not None and n_rows < len(rows):
        rows = np.sort(np.random.default_rng(0).choice(rows, n_rows, replace=False))
    return texts[0][rows], texts[1][rows]


def generate(spec: Spec, _: Path | None, n_rows: int | None) -> tuple[Any, ...]:
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


def _save(path: Path, X: Any, y: Any, X_test: Any, y_test: Any) -> None:
    arrays: dict[str, Any] = {}
    for part, matrix, labels in (("train", X, y), ("test", X_test, y_test)):
        matrix.sum_duplicates()
        arrays |= {
            f"{part}_data": matrix.data,
            f"{part}_indices": matrix.indices.astype(np.int32, copy=False),
            f"{part}_indptr": matrix.indptr.astype(np.int32, copy=False),
            f"{part}_shape": matrix.shape,
            f"{part}_y": labels,
        }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        np.savez(file, **arrays)
    temporary.replace(path)


def _fingerprint(spec: Spec, reviews: Path | None, n_rows: int | None) -> str:
    digest = hashlib.sha256(f"{spec} {n_rows} {sklearn.__version__}".encode())
    if spec.stem and reviews:
        for part in _PARTS:
            with (reviews / f"{spec.stem}_{part}.csv.gz").open("rb") as file:
                file.seek(-8, os.SEEK_END)  # gzip's own checksum and length of the contents
                digest.update(file.read())
    return digest.hexdigest()[:10]
