"""The classifiers that are compared, on a matrix of counts and from raw text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer
from sklearn_clsattn.text import TokenVectorizer, make_text_classifier


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

    def counts(kind: Any, classifier: Any) -> Callable[[], Any]:
        return lambda: make_pipeline(kind(**vectorizer), classifier)

    svc = LinearSVC(random_state=0)
    pipelines = {
        "front_end": ("ours, make_text_classifier()", make_text_classifier),
        "ours": ("ours, the same tokens", counts(TokenVectorizer, ClsAttentionClassifier())),
        "logistic_counts": (
            "CountVectorizer, LogisticRegression",
            counts(CountVectorizer, LogisticRegression()),
        ),
        "linear_svc_counts": ("CountVectorizer, LinearSVC", counts(CountVectorizer, svc)),
        "logistic_tfidf": (
            "TfidfVectorizer of words and pairs, LogisticRegression(C=10)",
            lambda: make_pipeline(
                TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10, max_iter=1000)
            ),
        ),
        "linear_svc_tfidf": ("TfidfVectorizer, LinearSVC", counts(TfidfVectorizer, svc)),
    }
    return {
        name: Competitor(name, title, lambda *_, make=make: make())
        for name, (title, make) in pipelines.items()
    }
