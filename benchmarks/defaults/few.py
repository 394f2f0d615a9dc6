"""Few documents: what bounds the classifier, and against a tuned linear model."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

from sklearn_clsattn._core import choose_c, prior_mean
from sklearn_clsattn.text import ContextVectorizer, _context, make_text_classifier

from .question import Question, Row, fitted
from .sets import FEW, Split

_PRIORS = (0.0, 1.0, 3.0)
_GUESSES = (0.0, 30.0)
_GATES = (0.0, 1_000.0)
_GRID = {"logisticregression__C": [0.3, 1.0, 3.0, 10.0, 30.0]}


def measure(split: Split) -> dict[str, Row]:
    def classifier() -> Any:
        return make_text_classifier()["classifier"]

    both = _features(split)
    rows = {"ours": fitted(classifier, split, lambda *_: both)}
    for documents in _PRIORS:
        with patch.object(prior_mean, "PRIOR_DOCUMENTS", documents):
            rows[f"prior {documents:g}"] = fitted(classifier, split, lambda *_: both)
    for documents in _GUESSES:
        with patch.object(choose_c, "GUESS_DOCUMENTS", documents):
            rows[f"guess {documents:g}"] = fitted(classifier, split, lambda *_: both)
    for documents in _GATES:
        with patch.object(_context, "PENALTY_DOCUMENTS", documents):
            rows[f"gates {documents:g}"] = fitted(classifier, split, lambda *_: _features(split))
    others = _features(split, min_df=2, character_min_df=3)
    rows["min_df"] = fitted(classifier, split, lambda *_: others)
    plain = _features(split, context=False)
    rows["no gates"] = fitted(classifier, split, lambda *_: plain)
    rows["LR"] = fitted(_tuned, split, lambda *_: plain)
    return rows


def _features(split: Split, **parameters: Any) -> tuple[Any, Any]:
    """Return the bags of training and test documents."""
    vectorizer = ContextVectorizer(**parameters)
    bags = vectorizer.fit_transform(split.texts_train, split.y_train)
    return bags, vectorizer.transform(split.texts_test)


def _tuned() -> Any:
    """Return TF-IDF and LogisticRegression, whose C has the best accuracy in three folds."""
    pipeline = make_pipeline(TfidfTransformer(), LogisticRegression(max_iter=200))
    return GridSearchCV(pipeline, _GRID, cv=StratifiedKFold(3), error_score=0.0)


QUESTION = Question(
    "few",
    "What holds for few documents?",
    "`make_text_classifier()`, untuned, on 30, 100 and 300 texts, against LogisticRegression on "
    "the TF-IDF of the same words, pairs and characters, tuned by accuracy in three folds. The "
    "multiple of naive Bayes has a prior worth so many documents; 0 is none. The guess of C counts "
    "so many documents that say nothing. The penalties of the gates are doubled at so many "
    "documents.",
    {
        "ours": "make_text_classifier() (**the default**: prior 0.3, guess 10, gates 200)",
        **{f"prior {n:g}": f"prior of the multiple worth {n:g} documents" for n in _PRIORS},
        **{f"guess {n:g}": f"guess of C with {n:g} documents" for n in _GUESSES},
        **{f"gates {n:g}": f"gates with {n:g} documents" for n in _GATES},
        "min_df": "words in 2 documents, characters in 3",
        "no gates": "without gates",
        "LR": "LogisticRegression, TF-IDF, tuned",
    },
    "ours",
    measure,
    unit="ours",
    sizes=FEW,
)
