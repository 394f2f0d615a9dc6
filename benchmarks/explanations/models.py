"""The model that is explained: ours, with its defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.pipeline import Pipeline, make_pipeline

from sklearn_clsattn import ClsAttentionClassifier

from .documents import Corpus


@dataclass(frozen=True)
class Model:
    """A fitted classifier of counts, and what it was fitted on."""

    classifier: ClsAttentionClassifier
    corpus: Corpus

    @property
    def pipeline(self) -> Pipeline:
        """The classifier of texts."""
        return make_pipeline(self.corpus.vectorizer, self.classifier)

    def code(self, counts: Any) -> int:
        """Return the number of the class predicted for one document."""
        return int(self.classifier.predict_proba(counts)[0].argmax())

    def log_odds(self, counts: Any, code: int) -> NDArray[np.float64]:
        """Return the log-odds (n_documents,) of a class against all others together."""
        decisions = self.classifier.decision_function(counts)
        if decisions.ndim == 1:
            return decisions if code == 1 else -decisions
        others = np.delete(decisions, code, axis=1)
        return np.asarray(decisions[:, code] - logsumexp(others, axis=1))


def fit(corpus: Corpus) -> Model:
    """Fit our classifier, with its defaults, on a corpus."""
    problem = corpus.problem
    return Model(ClsAttentionClassifier().fit(problem.X_train, problem.y_train), corpus)
