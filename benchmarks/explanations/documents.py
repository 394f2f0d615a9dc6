"""The documents that are explained, and the model: ours, with its defaults, on counts of words.

Words only, no bigrams: text explainers remove words, so that all explain the same tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from benchmarks import problems
from benchmarks.problems import WORDS, Spec
from sklearn_clsattn import ClsAttentionClassifier

Array = NDArray[np.float64]

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
    """Counts and labels to train on, and texts to explain, each with a known token or more."""

    title: str
    vectorizer: CountVectorizer
    X_train: Any
    y_train: NDArray[Any]
    texts: NDArray[Any]


def specs(reviews: Path | None) -> tuple[Spec, ...]:
    """Return the problems of two classes: of reviews if they are there, else generated."""
    return REAL if reviews else GENERATED


def load(spec: Spec, reviews: Any, n_documents: int, n_rows: int | None = None) -> Corpus:
    """Return a corpus with random test documents to explain; `n_rows` limits those to train on."""
    problem = problems.load_texts(spec, reviews, n_rows=n_rows)
    vectorizer = CountVectorizer(**{**_WORDS, **spec.vectorizer})
    X = vectorizer.fit_transform(problem.X_train)
    X.sum_duplicates()
    order = np.random.default_rng(0).permutation(len(problem.X_test))
    # Long before the end: a few documents in a thousand have no token at all.
    chosen = problem.X_test[order[: 2 * n_documents + 10]]
    chosen = chosen[vectorizer.transform(chosen).getnnz(axis=1) > 0]
    return Corpus(spec.title, vectorizer, X, problem.y_train, chosen[:n_documents])


class Model:
    """Our classifier, fitted on a corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus, self.vectorizer = corpus, corpus.vectorizer
        self.classifier = ClsAttentionClassifier().fit(corpus.X_train, corpus.y_train)
        self.pipeline = make_pipeline(self.vectorizer, self.classifier)

    def code(self, counts: Any) -> int:
        """Return the number of the class predicted for one document."""
        return int(self.classifier.predict_proba(counts)[0].argmax())

    def log_odds(self, counts: Any, code: int) -> Array:
        """Return the log-odds (n_documents,) of a class against all others together."""
        decisions = self.classifier.decision_function(counts)
        if decisions.ndim == 1:
            return decisions if code == 1 else -decisions
        others = np.delete(decisions, code, axis=1)
        return np.asarray(decisions[:, code] - logsumexp(others, axis=1))


class Document:
    """A text, its counts, and what the model says of it with only some of its tokens.

    Which are kept is an array of shape (n_questions, n), answers are (n_questions,).
    """

    def __init__(self, model: Model, text: str) -> None:
        self.model, self.text = model, text
        self.x = sp.csr_array(model.vectorizer.transform([text]))
        self.x.sort_indices()
        self.n, self.code = self.x.nnz, model.code(self.x)

    def with_only(self, kept: NDArray[np.bool_]) -> sp.csr_array:
        """Return the counts of the tokens that are kept, a row for each question."""
        rows, entries = np.nonzero(kept)
        data, columns = self.x.data[entries], self.x.indices[entries]
        return sp.csr_array((data, (rows, columns)), shape=(len(kept), self.x.shape[1]))

    def ask(self, kept: NDArray[np.bool_]) -> Array:
        """Return the probability of the class that is predicted for the whole document."""
        chances: Array = self.model.classifier.predict_proba(self.with_only(kept))
        return chances[:, self.code]

    def agrees(self, kept: NDArray[np.bool_]) -> Array:
        """Return 1 where the prediction stays, else 0."""
        decisions = self.model.classifier.decision_function(self.with_only(kept))
        codes = (decisions > 0) if decisions.ndim == 1 else decisions.argmax(axis=1)
        return np.asarray(codes == self.code, dtype=np.float64)
