"""What several benchmarks fit, and what they measure of a fitted model."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import Binarizer

import sklearn_clsattn
from sklearn_clsattn import TokenImportanceTransformer

OURS = "TextClassifier()"
LOGISTIC = "TF-IDF, LogisticRegression(C=10)"
N_BINS = 15  # of confidence


def text_classifier(**parameters: Any) -> Any:
    """Return the package's classifier of texts, which a function made in older checkouts."""
    if hasattr(sklearn_clsattn, "TextClassifier"):
        return sklearn_clsattn.TextClassifier(**parameters)
    return import_module("sklearn_clsattn.text").make_text_classifier(**parameters)


def logistic(**parameters: Any) -> Any:
    """Return logistic regression on TF-IDF of words and pairs of words."""
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), **parameters)
    return make_pipeline(vectorizer, LogisticRegression(C=10, max_iter=1000))


def with_characters(classifier: Any) -> Any:
    """Return a classifier of TF-IDF of words, pairs and characters that two texts have."""
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    characters = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 5), min_df=2, sublinear_tf=True
    )
    return make_pipeline(make_union(words, characters), classifier)


def nb_svm(C: float | None, n_classes: int) -> Any:
    """Return Wang and Manning's (2012), with one class against the rest for more than two."""
    regression = LogisticRegression(C=C, max_iter=1000)
    weighted = make_pipeline(TokenImportanceTransformer("log_odds"), regression)
    return make_pipeline(Binarizer(), weighted if n_classes == 2 else OneVsRestClassifier(weighted))


@cache
def minilm() -> Any:
    """Return a small sentence transformer that a package ships; None where that is absent."""
    if not (find_spec("sentence_transformers") and find_spec("all_minilm_l6_v2")):
        return None
    import all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(all_minilm_l6_v2.get_model_path()), device="cpu")


def quality(model: Any, X: Any, y: NDArray[Any]) -> dict[str, float | None]:
    """Return accuracy, and log loss and calibration error if the model has probabilities."""
    if not hasattr(model, "predict_proba"):
        return {"accuracy": float(np.mean(model.predict(X) == y)), "log_loss": None, "ece": None}
    probabilities = model.predict_proba(X)
    is_right = model.classes_[probabilities.argmax(axis=1)] == y
    # The expected calibration error has bins of confidence of equal width.
    confidence = probabilities.max(axis=1)
    bins = np.searchsorted(np.arange(1, N_BINS) / N_BINS, confidence)
    gaps = np.bincount(bins, is_right - confidence)
    return {
        "accuracy": float(np.mean(is_right)),
        "log_loss": float(log_loss(y, probabilities, labels=model.classes_)),
        "ece": float(np.abs(gaps).sum() / len(y)),
    }
