"""The questions about defaults, as data.

A variant makes an estimator of counts (of texts, if the question says so). `constants` are names
within the package that are replaced while it is fitted. The first variant is the default.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer
from sklearn_clsattn.text import ContextVectorizer, WordVectors, make_text_classifier

from .sets import FEW, SIZES


@dataclass(frozen=True)
class Variant:
    """An estimator, and constants of the package; with `best_of`, the best in hindsight.

    `best_of` are values of C, of which the one of least log loss on the test documents is taken.
    With `pool`, it fits on the other training texts as well, without their labels.
    """

    make: Callable[..., Any]
    constants: Mapping[str, Any] = field(default_factory=dict)
    best_of: tuple[float, ...] = ()
    pool: bool = False


@dataclass(frozen=True)
class Question:
    """Variants by their titles, and the splits that they are measured on."""

    title: str
    variants: dict[str, Variant]
    texts: bool = False
    sizes: tuple[int | None, ...] = SIZES
    seeds: int = 5
    max_work: float = float("inf")


def _ours(**parameters: Any) -> Variant:
    return Variant(partial(ClsAttentionClassifier, **parameters))


def _with(name: str, value: Any, make: Any = ClsAttentionClassifier) -> Variant:
    """Return the default with another value of a constant of the core."""
    return Variant(make, {f"_core.{name}": value})


def _of_entries(function: Callable[[Any], Any]) -> Variant:
    """Return the default on a function of the counts."""

    def damped(X: Any) -> Any:
        X = X.astype(np.float32)
        X.data = function(X.data)
        return X

    return Variant(
        lambda: make_pipeline(
            FunctionTransformer(damped, accept_sparse=True),
            ClsAttentionClassifier(sublinear_counts=False),
        )
    )


def _tuned(*steps: Any, values: tuple[float, ...], name: str = "C") -> Variant:
    """Return a pipeline tuned by accuracy in three folds, by a parameter of its last step."""

    def make() -> GridSearchCV:
        pipeline = make_pipeline(*steps)
        last = pipeline.steps[-1][0]
        deep = [key for key in pipeline.get_params() if key.startswith(last)]
        (parameter,) = (key for key in deep if key.endswith(f"__{name}"))
        return GridSearchCV(pipeline, {parameter: values}, cv=3, error_score=0.0)

    return Variant(make)


@dataclass
class OnePass:
    """An estimator whose `partial_fit` sees each batch of documents once, in random order."""

    estimator: Any
    size: int

    def fit(self, X: Any, y: Any) -> Any:
        """Return the estimator after one pass."""
        classes, order = np.unique(y), np.random.default_rng(0).permutation(len(y))
        for start in range(0, len(y), self.size):
            rows = order[start : start + self.size]
            self.estimator.partial_fit(X[rows], y[rows], classes=classes)
        return self.estimator


def _text(**parameters: Any) -> Variant:
    return Variant(partial(make_text_classifier, **parameters))


@dataclass
class OnAllTexts:
    """Features of all texts, and a classifier of the labelled ones, or if `semi` of all."""

    features: Any
    classifier: Any
    semi: bool = False

    def fit(self, X: Any, y: Any, unlabeled: Any) -> Any:
        """Return itself, fitted; texts without labels have the label -1."""
        self.features.fit([*X, *unlabeled])
        texts = [*X, *unlabeled] if self.semi else X
        labels = np.concatenate([y, np.full(len(texts) - len(X), -1)])
        self.classifier.fit(self.features.transform(texts), labels)
        self.classes_ = self.classifier.classes_
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes: all alike of texts far from all others."""
        found = self.classifier.predict_proba(self.features.transform(X))
        return np.where(np.isnan(found), 1.0 / found.shape[1], found)


def _unlabeled(constants: Mapping[str, Any] | None = None, **parameters: Any) -> Variant:
    """Return the front end that learns vectors of words from all texts."""
    return Variant(partial(make_text_classifier, **parameters), constants or {}, pool=True)


def _brought(pool: bool = False) -> Variant:
    """Return the front end with the vectors in the file that `VECTORS` names."""
    read = cache(lambda: WordVectors.from_file(os.environ["VECTORS"]))
    return Variant(lambda: make_text_classifier(word_vectors=read()), pool=pool)


_LOGISTIC = LogisticRegression(max_iter=200)
_NB_WEIGHTED = OneVsRestClassifier(
    make_pipeline(TokenImportanceTransformer("log_odds"), LogisticRegression(max_iter=200))
)
_SVC, _WEIGHTS, _FEATURES = LinearSVC(), TfidfTransformer(), ContextVectorizer(context=False)
_LONG = "text._word_vectors._MANY_WORDS"
_COUNTS, _TFIDF, _SVC_C = (0.01, 0.1, 1.0, 10.0), (1.0, 5.0, 25.0, 125.0), (0.1, 0.3, 1.0, 3.0)


_TUNED_C = GridSearchCV(_LOGISTIC, {"C": _TFIDF}, cv=3, error_score=0.0)
_SELF_TRAINING = SelfTrainingClassifier(LogisticRegression(C=25.0, max_iter=200))


def _tf_idf() -> Any:
    """Return the features' TF-IDF."""
    return make_pipeline(clone(_FEATURES), TfidfTransformer())


def _lsa() -> Any:
    """Return 200 components of TF-IDF."""
    return make_pipeline(_tf_idf(), TruncatedSVD(200, random_state=0), Normalizer())


def _on_all(features: Callable[[], Any], classifier: Any, semi: bool = False) -> Variant:
    """Return features of all texts, and a classifier of those with labels or, if `semi`, of all."""
    return Variant(lambda: OnAllTexts(features(), clone(classifier), semi), pool=True)


def _sgd(alpha: float) -> OnePass:
    """Return averaged stochastic gradient descent over batches of 1,000."""
    return OnePass(SGDClassifier(loss="log_loss", average=True, alpha=alpha, random_state=0), 1_000)


QUESTIONS = {
    "choice_of_c": Question(
        "How is C chosen?",
        {
            'C="auto"': _ours(),
            "the best C in hindsight": Variant(
                ClsAttentionClassifier, best_of=tuple(10.0 ** (k / 2) for k in range(-6, 7))
            ),
            "C=1": _ours(C=1.0),
            "the guess alone": _with("choose_c.GUESS_WORTH", float("inf")),
            "documents held out alone": _with("choose_c.GUESS_WORTH", 0),
            "folds of 8,000 documents": _with("choose_c.ENOUGH_DOCUMENTS", 8_000),
            "a sample of 2,000": _with("documents.SAMPLE_SIZE", 2_000),
            "all documents": _with("documents.SAMPLE_SIZE", 10**9),
        },
    ),
    "tolerance": Question(
        "When does training stop?",
        {'tol="auto"': _ours()} | {f"tol={tol:g}": _ours(tol=tol) for tol in (1e-6, 1e-4, 1e-2)},
    ),
    "counts": Question(
        "How does a count enter?",
        {
            "m log2(1 + c / m)": _ours(),
            "c": _ours(sublinear_counts=False),
            "1": _of_entries(np.sign),
            "1 + ln c": _of_entries(lambda counts: 1 + np.log(counts)),
        },
    ),
    "mean": Question(
        "What is the prior mean of the values?",
        {"share 0.5": _ours()}
        | {
            f"share {share:g}": _with("prior_mean.MEAN_SHARE", share)
            for share in (0.0, 0.25, 0.75, 1.0)
        },
    ),
    "attention": Question(
        "How strongly does attention learn?",
        {"attention_C=0.03": _ours()}
        | {f"attention_C={C:g}": _ours(attention_C=C) for C in (0.003, 0.01, 0.1, 0.3)}
        | {"token_scaling=None": _ours(token_scaling=None), "no <cls>": _ours(attend_cls=False)},
    ),
    "baselines": Question(
        "Against tuned linear models of the same counts",
        {
            "ClsAttentionClassifier": _ours(),
            "LogisticRegression": _tuned(_LOGISTIC, values=_COUNTS),
            "LogisticRegression, TF-IDF": _tuned(_WEIGHTS, _LOGISTIC, values=_TFIDF),
            "LinearSVC, TF-IDF": _tuned(_WEIGHTS, _SVC, values=_SVC_C),
            "LogisticRegression, NB-weighted": _tuned(Binarizer(), _NB_WEIGHTED, values=_COUNTS),
            "MultinomialNB": _tuned(MultinomialNB(), values=(0.01, 0.1, 1.0), name="alpha"),
        },
        seeds=2,
        max_work=3e6,
    ),
    "streaming": Question(
        "What does one pass over batches lose?",
        {
            "fit": _ours(),
            **{
                f"partial_fit, {size:,} at a time": Variant(
                    lambda size=size: OnePass(ClsAttentionClassifier(), size)
                )
                for size in (200, 1_000, 5_000)
            },
            **{
                f"SGDClassifier, averaged, alpha={alpha:g}": Variant(partial(_sgd, alpha))
                for alpha in (1e-4, 1e-5)
            },
        },
        sizes=(8_000, None),
        seeds=2,
        max_work=2e7,
    ),
    "few": Question(
        "What holds for few documents?",
        {
            "make_text_classifier()": _text(),
            "without context": _text(context=False),
            "words in 2 documents, characters in 3": _text(min_df=2, character_min_df=3),
            **{
                f"prior of the multiple: {n:g} documents": _with(
                    "prior_mean.PRIOR_DOCUMENTS", n, make_text_classifier
                )
                for n in (0.0, 1.0, 3.0)
            },
            "LogisticRegression, TF-IDF": _tuned(_FEATURES, _WEIGHTS, _LOGISTIC, values=_TFIDF),
        },
        texts=True,
        sizes=FEW,
    ),
    "unlabeled": Question(
        "What do texts without labels give?",
        {
            "make_text_classifier()": _text(),
            "fit(texts, labels, unlabeled=others)": _unlabeled(),
            "mutual information, whatever the length": _unlabeled({_LONG: np.inf}),
            "LSA, whatever the length": _unlabeled({_LONG: 0.0}),
            "LogisticRegression, TF-IDF": _tuned(_FEATURES, _WEIGHTS, _LOGISTIC, values=_TFIDF),
            "TF-IDF of all texts": _on_all(_tf_idf, _TUNED_C),
            "SelfTrainingClassifier": _on_all(_tf_idf, _SELF_TRAINING, semi=True),
            "LabelSpreading of LSA": _on_all(_lsa, LabelSpreading(kernel="knn"), semi=True),
            "LogisticRegression of LSA": _on_all(_lsa, _TUNED_C),
        },
        texts=True,
        sizes=(*FEW, 1_000),
        seeds=2,
        max_work=1e6,
    ),
    "dimension": Question(
        "How long are vectors of words?",
        {
            "50 numbers": _unlabeled(),
            **{f"{n} numbers": _unlabeled(word_vectors=WordVectors(n)) for n in (25, 100, 200)},
            "no vectors": _text(),
        },
        texts=True,
        sizes=(*FEW, 1_000),
        seeds=2,
        max_work=1e6,
    ),
    "many": Question(
        "What do vectors of words give where all texts have labels?",
        {
            "make_text_classifier()": _text(),
            "learned from the same texts": _unlabeled(),
            **({"brought": _brought(), "both": _brought(True)} if "VECTORS" in os.environ else {}),
        },
        texts=True,
        sizes=(1_000, None),
        seeds=2,
        max_work=2e6,
    ),
    "front_end": Question(
        "make_text_classifier against models tuned on the same features",
        {
            "make_text_classifier()": _text(),
            "without context": _text(context=False),
            "without characters": _text(characters=None),
            "LogisticRegression, TF-IDF": _tuned(_FEATURES, _WEIGHTS, _LOGISTIC, values=_TFIDF),
            "LinearSVC, TF-IDF": _tuned(_FEATURES, _WEIGHTS, _SVC, values=_SVC_C),
        },
        texts=True,
        sizes=(3_000, None),
        seeds=2,
        max_work=6e6,
    ),
}
