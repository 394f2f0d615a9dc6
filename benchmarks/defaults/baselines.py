"""Against tuned linear models on the same words and bigrams."""

from __future__ import annotations

from typing import Any

from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer

from .question import Question, Row, fitted
from .sets import Split

N_FOLDS = 3
_MOST_WORK = 3_000_000  # beyond, a baseline's 13 fits take minutes


def measure(split: Split) -> dict[str, Row]:
    rows = {"ours": fitted(ClsAttentionClassifier, split)}
    for name, (pipeline, grid) in baselines().items():
        rows[name] = fitted(
            lambda pipeline=pipeline, grid=grid: GridSearchCV(pipeline, grid, cv=N_FOLDS), split
        )
    return rows


def baselines() -> dict[str, tuple[Any, dict[str, tuple[float, ...]]]]:
    """Return every baseline as a pipeline on counts, and the values it is tuned over."""
    logistic = LogisticRegression(max_iter=100)
    nb_weighted = make_pipeline(
        TokenImportanceTransformer("log_odds"), LogisticRegression(solver="liblinear")
    )
    return {
        "logistic counts": (make_pipeline(logistic), {"logisticregression__C": (0.01, 0.1, 1, 10)}),
        "logistic TF-IDF": (
            make_pipeline(TfidfTransformer(), logistic),
            {"logisticregression__C": (1, 5, 25, 125)},
        ),
        "LinearSVC TF-IDF": (
            make_pipeline(TfidfTransformer(), LinearSVC(random_state=0)),
            {"linearsvc__C": (0.1, 0.3, 1, 3)},
        ),
        "NB-weighted": (
            make_pipeline(Binarizer(), OneVsRestClassifier(nb_weighted)),
            {"onevsrestclassifier__estimator__logisticregression__C": (0.01, 0.1, 1, 10)},
        ),
        "MultinomialNB": (
            make_pipeline(MultinomialNB()),
            {"multinomialnb__alpha": (0.01, 0.03, 0.1, 0.3, 1)},
        ),
    }


QUESTION = Question(
    "baselines",
    "Is it worth it?",
    "Baselines are tuned by accuracy in three stratified folds of the training documents, over the "
    "values of benchmarks/defaults/baselines.py; LogisticRegression stops after 100 iterations at "
    "the latest. Nothing of ours is tuned. LinearSVC gives no probabilities. CPU: that of tuning "
    "and fit over that of our choice and fit.",
    {
        "ours": "ClsAttentionClassifier (**the default**)",
        "logistic counts": "LogisticRegression, counts, tuned",
        "logistic TF-IDF": "LogisticRegression, TF-IDF, tuned",
        "LinearSVC TF-IDF": "LinearSVC, TF-IDF, tuned",
        "NB-weighted": "LogisticRegression, NB-weighted, tuned",
        "MultinomialNB": "MultinomialNB, counts, tuned",
    },
    "ours",
    measure,
    unit="ours",
    sizes=(2_000, None, 8_000, 500),
    seeds=2,
    takes=lambda split: split.work <= _MOST_WORK,
)
