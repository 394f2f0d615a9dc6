"""The models that are explained: ours with its defaults, logistic regressions as tuned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import Pipeline, make_pipeline

from benchmarks import competitors
from benchmarks.tuning import tuned_value

from .documents import Corpus

_TITLES = {
    "ours": "ClsAttentionClassifier",
    "logistic_counts": "LogisticRegression, counts",
    "logistic_tfidf": "LogisticRegression, TF-IDF",
}
NAMES = tuple(_TITLES)


@dataclass(frozen=True)
class Model:
    """A fitted model of the counts; `weighting` is None, or what its classifier gets them from."""

    name: str
    title: str
    classifier: Any
    weighting: TfidfTransformer | None
    corpus: Corpus

    @property
    def estimator(self) -> Any:
        """The classifier of counts."""
        if self.weighting is None:
            return self.classifier
        return make_pipeline(self.weighting, self.classifier)

    @property
    def pipeline(self) -> Pipeline:
        """The classifier of texts."""
        return make_pipeline(self.corpus.vectorizer, self.estimator)


def fit(
    name: str, corpus: Corpus, *, tune: bool, report: Callable[[str], None] = lambda line: None
) -> Model:
    """Fit one of `NAMES`, tuned as in the benchmark of speed, or with its untuned value."""
    competitor, problem = competitors.COMPETITORS[name], corpus.problem
    value = tuned_value(problem, competitor, report=report) if tune else competitor.untuned
    weighting = TfidfTransformer().fit(problem.X_train) if competitor.tfidf else None
    X = problem.X_train if weighting is None else weighting.transform(problem.X_train)
    classifier = competitor.make(value, problem.n_classes).fit(X, problem.y_train)
    title = _TITLES[name] + (f", C={value:g}" if value is not None else "")
    return Model(name, title, classifier, weighting, corpus)
