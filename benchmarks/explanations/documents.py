"""The documents that are explained, as texts, and the counts that models are trained on.

Words only, no bigrams: text explainers remove words, and that is what all explanations are then
about, the same tokens for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks import problems
from benchmarks.problems import WORDS, Problem, Spec

_WORDS = {"min_df": 5, "token_pattern": WORDS}
REAL = (
    Spec("imdb_unigrams", "IMDB, words", "imdb", vectorizer=_WORDS),
    Spec("yelp_words", "Yelp polarity, words", "yelp_stars", "polarity", _WORDS),
)
# Several classes, from the folder `explore` of the reviews.
NEWS = Spec("news", "20 newsgroups, words", "explore/20news", vectorizer=_WORDS)
GENERATED = (problems.GENERATED[0], problems.GENERATED[2])


@dataclass(frozen=True)
class Corpus:
    """Documents to train on and documents to explain.

    Attributes
    ----------
    problem : Problem
        Counts and labels; its test half are the documents to explain.

    texts : ndarray of shape (n_explained,)
        The documents to explain, each with a token of the vocabulary or more.

    vectorizer : CountVectorizer
        Makes the counts of the texts.
    """

    problem: Problem
    texts: NDArray[Any]
    vectorizer: CountVectorizer


def specs(reviews: Path | None) -> tuple[Spec, ...]:
    return REAL if reviews else GENERATED


def raced(reviews: Path | None) -> tuple[Spec, ...]:
    """Return the problems of `specs`, and one of many classes where its file is there."""
    known = reviews is not None and (reviews / f"{NEWS.stem}.csv.gz").is_file()
    return (*specs(reviews), *((NEWS,) if known else ()))


def load(spec: Spec, reviews: Path | None, n_documents: int, n_rows: int | None = None) -> Corpus:
    """Return a corpus with `n_documents` random test documents to explain.

    `n_rows` limits the documents to train on.
    """
    if reviews is not None and spec.stem:
        (texts, y), (texts_test, y_test) = (
            _labelled_texts(spec, reviews, part) for part in ("train", "test")
        )
        texts, y = problems.some_rows((texts, y), None, n_rows)
        vectorizer = CountVectorizer(**spec.vectorizer)
        X = vectorizer.fit_transform(texts)
    else:
        X, y, X_test, y_test = problems.generate(spec, None, n_rows)
        names = np.array([f"token{column}" for column in range(X.shape[1])])
        vectorizer = CountVectorizer(vocabulary=names.tolist(), token_pattern=WORDS)
        texts_test = np.array([_spelt_out(row, names) for row in X_test], dtype=object)
    order = np.random.default_rng(0).permutation(len(y_test))
    # Long before the end: a few documents in a thousand have no token at all.
    chosen = order[: 2 * n_documents + 10]
    chosen = chosen[vectorizer.transform(texts_test[chosen]).getnnz(axis=1) > 0][:n_documents]
    X_chosen = vectorizer.transform(texts_test[chosen])
    for matrix in (X, X_chosen):
        matrix.sum_duplicates()
    key = Path(f"explained_{spec.name}-{X.shape[0]}x{X.shape[1]}-{X.nnz}")
    problem = Problem(spec.name, spec.title, key, X, y, X_chosen, y_test[chosen])
    return Corpus(problem, texts_test[chosen], vectorizer)


def _labelled_texts(spec: Spec, reviews: Path, part: str) -> Any:
    """Return the texts and labels of one half, of two files or of one with the column `part`."""
    whole = reviews / f"{spec.stem}.csv.gz"
    if not whole.is_file():
        return problems.labelled_texts(spec, reviews, part)
    frame = pd.read_csv(whole, keep_default_na=False)
    frame = frame[frame["part"] == part]
    return frame["text"].to_numpy(dtype=object), frame["label"].to_numpy(dtype=object)


def _spelt_out(row: Any, names: NDArray[Any]) -> str:
    row = row.tocoo()
    columns = row.col if hasattr(row, "col") else row.coords[-1]
    return " ".join(np.repeat(names[columns], row.data.astype(np.int64)))
