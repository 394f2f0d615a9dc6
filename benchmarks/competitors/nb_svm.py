"""NB-SVM: log-count ratio times binarised counts, then logistic regression.

Wang and Manning (2012) define it for two classes. For more, one class against the rest, each
with its own ratios.
"""

from __future__ import annotations

from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer

from sklearn_clsattn._transformer import TokenImportanceTransformer

from .base import Competitor


def make(value: float | None, n_classes: int) -> Any:
    weighted = make_pipeline(
        TokenImportanceTransformer("log_odds"), LogisticRegression(C=value, max_iter=1000)
    )
    return make_pipeline(Binarizer(), weighted if n_classes == 2 else OneVsRestClassifier(weighted))


COMPETITOR = Competitor(
    "nb_svm",
    "NB-SVM (log-count ratio, LogisticRegression)",
    make,
    parameter="C",
    grid=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    untuned=0.1,
)
