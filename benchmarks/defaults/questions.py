"""The questions about defaults, as data.

A variant makes an estimator of counts (of texts, if the question says so). `constants` are names
within the package that are replaced while it is fitted. The first variant is the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier, TokenImportanceTransformer
from sklearn_clsattn.text import ContextVectorizer

from .sets import FEW, SIZES


@dataclass(frozen=True)
class Variant:
    """An estimator, and constants of the package; with `best_of`, the best in hindsight.

    `best_of` are values of C, of which the one of least log loss on the test documents is taken.
    """

    make: Callable[..., Any]
    constants: Mapping[str, Any] = field(default_factory=dict)
    best_of: tuple[float, ...] = ()


@dataclass(frozen=True)
class Question:
    """Variants by their titles, and the splits that they are measured on."""

    title: str
    variants: dict[str, Variant]
    texts: bool = False
    sizes: tuple[int | None, ...] = SIZES
    seeds: int = 5
    max_work: float = float("inf")


def _ours(make: Any = ClsAttentionClassifier, **parameters: Any) -> Variant:
    return Variant(partial(make, **parameters))


_text = partial(_ours, TextClassifier)


def _with(name: str, value: Any, make: Any = ClsAttentionClassifier) -> Variant:
    """Return the default with another value of a constant of the core."""
    return Variant(make, {f"_core.{name}": value})


def _tuned(*steps: Any, values: tuple[float, ...], name: str = "C") -> Variant:
    """Return a pipeline tuned by accuracy in three folds, by a parameter of its last step."""

    def make() -> GridSearchCV:
        pipeline = make_pipeline(*steps)
        last = pipeline.steps[-1][0]
        deep = [key for key in pipeline.get_params() if key.startswith(last)]
        (parameter,) = (key for key in deep if key.endswith(f"__{name}"))
        return GridSearchCV(pipeline, {parameter: values}, cv=3, error_score=0.0)

    return Variant(make)


_LOGISTIC = LogisticRegression(max_iter=200)
_NB_WEIGHTED = OneVsRestClassifier(make_pipeline(TokenImportanceTransformer("log_odds"), _LOGISTIC))
_SVC, _WEIGHTS, _FEATURES = LinearSVC(), TfidfTransformer(), ContextVectorizer(context=False)
_COUNTS, _TFIDF, _SVC_C = (0.01, 0.1, 1.0, 10.0), (1.0, 5.0, 25.0, 125.0), (0.1, 0.3, 1.0, 3.0)


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
    # To be the default, a cheaper search must lose at most .05 points and .0005 of log loss, in the
    # means over sets, at each size. Written down before the run.
    "search_cost": Question(
        "How carefully is C searched for few documents?",
        {
            "4 folds up to 500 documents": _text(),
            "4 folds up to 1,000": _with("choose_c.ENOUGH_DOCUMENTS", 4_000, TextClassifier),
            "4 folds up to 250": _with("choose_c.ENOUGH_DOCUMENTS", 1_000, TextClassifier),
            "tolerance of 0.03": _with("choose_c.SEARCH_TOL", 0.03, TextClassifier),
        },
        texts=True,
        sizes=(300, 1_000, 2_000),
        max_work=6e6,
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
        {'attention_C="auto"': _ours(attention_C="auto")}
        | {f"attention_C={C:g}": _ours(attention_C=C) for C in (0.003, 0.01, 0.03, 0.1, 0.3)}
        | {"token_scaling=None": _ours(token_scaling=None), "no <cls>": _ours(attend_cls=False)},
    ),
    # To be the default, "auto" must lose at most .05 points and no log loss, and take at most 1.2
    # times the time, in the means over sets. Written down before the run.
    "attention_c": Question(
        "Is attention_C chosen together with C?",
        {
            "attention_C=0.03": _ours(attention_C=0.03),
            'attention_C="auto"': _ours(attention_C="auto"),
            "attention_C=0.3": _ours(attention_C=0.3),
            "attention_C=1": _ours(attention_C=1.0),
        },
        sizes=(2_000, None),
        max_work=1e7,
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
    "few": Question(
        "What holds for few documents?",
        {
            "TextClassifier()": _text(),
            "without context": _text(context=False),
            "words in 2 documents, characters in 3": _text(min_df=2, character_min_df=3),
            **{
                f"prior of the multiple: {n:g} documents": _with(
                    "prior_mean.PRIOR_DOCUMENTS", n, TextClassifier
                )
                for n in (0.0, 1.0, 3.0)
            },
            "LogisticRegression, TF-IDF": _tuned(_FEATURES, _WEIGHTS, _LOGISTIC, values=_TFIDF),
        },
        texts=True,
        sizes=FEW,
    ),
    "front_end": Question(
        "TextClassifier against models tuned on the same features",
        {
            "TextClassifier()": _text(),
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
