"""The classifiers that are compared, on a matrix of counts and from raw text."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier, TokenImportanceTransformer
from sklearn_clsattn.text import TokenVectorizer


@dataclass(frozen=True)
class Competitor:
    """A classifier and the one parameter that it is tuned by.

    `make` takes the tuned value (None for one that is not tuned) and the number of classes. `grid`
    is ascending, `untuned` the value in fast runs. With `tfidf` the matrix gets TF-IDF weights,
    which are computed outside the timing.
    """

    name: str
    title: str
    make: Callable[[float | None, int], Any]
    parameter: str = ""
    grid: tuple[float, ...] = ()
    untuned: float | None = None
    tfidf: bool = False

    def matrices(self, X_train: Any, X_other: Any) -> tuple[Any, Any]:
        """Return both matrices for this competitor, with weights learned from the first."""
        if not self.tfidf:
            return X_train, X_other
        weighting = TfidfTransformer().fit(X_train)
        return weighting.transform(X_train), weighting.transform(X_other)


def _logistic(value: float | None, n_classes: int) -> Any:
    return LogisticRegression(C=value, max_iter=1000)


def _nb_svm(value: float | None, n_classes: int) -> Any:
    """Wang and Manning's (2012), with one class against the rest for more than two."""
    weighted = make_pipeline(
        TokenImportanceTransformer("log_odds"), LogisticRegression(C=value, max_iter=1000)
    )
    return make_pipeline(Binarizer(), weighted if n_classes == 2 else OneVsRestClassifier(weighted))


def _ours(value: float | None, n_classes: int) -> Any:
    return ClsAttentionClassifier(C="auto" if value is None else value)


def _svc(value: float | None, n_classes: int) -> Any:
    return LinearSVC(C=value, random_state=0)


def _bayes(value: float | None, n_classes: int) -> Any:
    return MultinomialNB(alpha=value)


_COUNTS, _TFIDF = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0), (1.0, 3.0, 10.0, 30.0, 100.0)
_SVC, _ALPHAS, _GIVEN = (0.1, 0.3, 1.0, 3.0), (0.03, 0.1, 0.3, 1.0, 3.0), (0.3, 1.0, 3.0, 10.0)
_NB_SVM = "NB-SVM (log-count ratio, LogisticRegression)"
_ALL = (
    Competitor("ours", "ClsAttentionClassifier (defaults)", _ours),
    Competitor("ours_given_c", "ClsAttentionClassifier, C given", _ours, "C", _GIVEN, 1.0),
    Competitor("logistic_counts", "LogisticRegression, counts", _logistic, "C", _COUNTS, 0.1),
    Competitor("logistic_tfidf", "LogisticRegression, TF-IDF", _logistic, "C", _TFIDF, 3.0, True),
    Competitor("nb_svm", _NB_SVM, _nb_svm, "C", _COUNTS, 0.1),
    Competitor("linear_svc", "LinearSVC, TF-IDF", _svc, "C", _SVC, 0.3, True),
    Competitor("multinomial_nb", "MultinomialNB, counts", _bayes, "alpha", _ALPHAS, 0.3),
)
COMPETITORS = {competitor.name: competitor for competitor in _ALL}


def from_texts(vectorizer: dict[str, Any]) -> dict[str, Competitor]:
    """Return those from raw text, with defaults; `vectorizer` has CountVectorizer's parameters."""
    counts, svc = CountVectorizer(**vectorizer), LinearSVC(random_state=0)
    tokens, ours = TokenVectorizer(**vectorizer), ClsAttentionClassifier()
    pairs, logistic = TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10, max_iter=1000)
    title = "TfidfVectorizer of words and pairs, LogisticRegression(C=10)"
    made = (
        ("front_end", "ours, TextClassifier()", (TextClassifier(),)),
        ("ours", "ours, the same tokens", (tokens, ours)),
        ("logistic_counts", "CountVectorizer, LogisticRegression", (counts, LogisticRegression())),
        ("linear_svc_counts", "CountVectorizer, LinearSVC", (counts, svc)),
        ("logistic_tfidf", title, (pairs, logistic)),
        ("linear_svc_tfidf", "TfidfVectorizer, LinearSVC", (TfidfVectorizer(**vectorizer), svc)),
    )
    return {
        name: Competitor(name, title, lambda *_, steps=steps: clone(make_pipeline(*steps)))
        for name, title, steps in made
    }


class FastText:
    """fastText as a classifier of texts."""

    def fit(self, X: Any, y: Any) -> FastText:
        """Return itself, trained on a file of the texts."""
        import fasttext

        self.classes_, codes = np.unique(y, return_inverse=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            lines = zip(codes, self._prepared(X), strict=True)
            file.writelines(f"__label__{code} {text}\n" for code, text in lines)
            file.flush()
            how = {"lr": 0.5, "epoch": 25, "wordNgrams": 2, "thread": 1, "verbose": 0}
            self._model = fasttext.train_supervised(file.name, **how)
        self.save_model = self._model.save_model
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        found = np.full((len(X), len(self.classes_)), 1e-9)  # of a text without words, alike
        answers = zip(*self._model.predict(self._prepared(X), k=-1), strict=True)
        for row, (labels, probabilities) in zip(found, answers, strict=True):
            row[[int(label.removeprefix("__label__")) for label in labels]] = probabilities
        return found / found.sum(axis=1, keepdims=True)

    def _prepared(self, X: Any) -> list[str]:
        """Return texts in lower case, each in one line, with spaces around punctuation."""
        return [" ".join(re.sub(r"([.!?,'/()])", r" \1 ", text).lower().split()) for text in X]


class Peer(NamedTuple):
    """A classifier of raw texts with its defaults: how it is made and drawn, and what it needs."""

    make: Callable[[], Any]
    colour: str  # Okabe and Ito's
    mark: str
    package: str = "sklearn"


def _tfidf(*steps: Any, min_df: int = 2) -> Any:
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=min_df, sublinear_tf=True)
    return make_pipeline(vectorizer, *steps)


def _boosted(module: str, name: str, *steps: Any, **parameters: Any) -> Any:
    """Return boosting on columns that enough texts have; the package may not be there."""
    return _tfidf(*steps, getattr(import_module(module), name)(n_jobs=1, **parameters), min_df=5)


_COUNTS, _NB_SVM = CountVectorizer(ngram_range=(1, 2), min_df=2), COMPETITORS["nb_svm"].make(0.1, 3)
_LOGISTIC = LogisticRegression(max_iter=1000)
_TUNED = GridSearchCV(_LOGISTIC, {"C": [1.0, 3.0, 10.0, 30.0, 100.0]}, cv=3)
_DENSE = SelectKBest(chi2, k=300), FunctionTransformer(methodcaller("toarray"), accept_sparse=True)
# With its default of 1e-3 it diverges on 77 classes.
_STEADY = {"min_sum_hessian_in_leaf": 0.1, "verbose": -1}
_LIGHTGBM = partial(_boosted, "lightgbm", "LGBMClassifier", **_STEADY)
_EBM = partial(
    _boosted, "interpret.glassbox", "ExplainableBoostingClassifier", *_DENSE, interactions=0
)
PEERS = {
    "TextClassifier()": Peer(TextClassifier, "#D55E00", "*"),
    "LogisticRegression": Peer(partial(_tfidf, _LOGISTIC), "#56B4E9", "s"),
    "LogisticRegression, C tuned": Peer(partial(_tfidf, _TUNED), "#0072B2", "o"),
    "LinearSVC": Peer(partial(_tfidf, LinearSVC(random_state=0)), "#CC79A7", "D"),
    "NB-SVM, C=0.1": Peer(partial(make_pipeline, _COUNTS, _NB_SVM), "#009E73", "^"),
    "fastText": Peer(FastText, "#000000", "X", "fasttext"),
    "LightGBM": Peer(_LIGHTGBM, "#E69F00", "P", "lightgbm"),
    "EBM": Peer(_EBM, "#7F7F7F", "v", "interpret"),
}
