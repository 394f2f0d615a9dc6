"""Are explanations true, and what do they cost? Ours, LIME, SHAP and attention.

``python -m benchmarks.bench_explanations [--reviews FOLDER] [--explore FOLDER] [--documents 24]``

All explain the predictions of the same model, for the same test documents, one at a time and each
document by all in turn, from the text to a score per token. LIME and SHAP come from their own
packages (``pip install --group explain-bench``). The model is ours, of counts of words: no
bigrams, as LIME removes words, so that all explain the same tokens.

Faithfulness is that of J. DeYoung, S. Jain, N. F. Rajani, E. Lehman, C. Xiong, R. Socher, B. C.
Wallace (2020), ERASER: A Benchmark to Evaluate Rationalized NLP Models, ACL, section 4.3.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse as sp
import threadpoolctl
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.inspection import explain as package_explain

from . import pages, problems
from .problems import WORDS, Problem
from .processes import timed

Array = NDArray[np.float64]
Scores = tuple[NDArray[Any], Array]  # columns and scores, (n_scored,)
Explain = Callable[[str], Scores]  # of a text

SETS = {"imdb": "IMDB, words", "polarity": "Yelp polarity, words", "20news": "20 newsgroups, words"}
FAST_ROWS = 1000
OURS = "ours: `explain`"
_Z95 = 1.96
_BATCH = 100  # documents that SHAP asks about at once; its default of 5 texts is slower
# Below these seconds an explanation is timed so many times: the first finds other data in caches.
_SHORT, _REPEATS = 0.05, 7


# Faithfulness


# The fractions of a document's tokens at which ERASER measures.
ERASER_FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)


def probability_drops(classifier: Any, X: Any, scores: Any, *, keep_top: bool) -> Array:
    """Return the mean drops in probability (n_documents,) without the top tokens, or with no other.

    The probability is the one of the predicted class. The top tokens of a document are each of the
    `ERASER_FRACTIONS` of its tokens (rounded up), by falling score. A token whose score is not
    above 0 is never a top token; equal scores are taken in column order. `X` and `scores` are
    sparse, of shape (n_documents, n_tokens).
    """
    X = sp.csr_array(X)
    X.sum_duplicates()
    X.eliminate_zeros()
    documents = np.arange(X.shape[0])
    n_tokens = np.diff(X.indptr)

    # 1) rank of each token within its document
    row_of_entry = np.repeat(documents, n_tokens)
    score_of_entry = scores.toarray()[row_of_entry, X.indices]
    order = np.lexsort((-score_of_entry, row_of_entry))  # stable
    rank = np.empty(X.nnz, dtype=np.int64)
    rank[order] = np.arange(X.nnz) - X.indptr[row_of_entry]
    n_supporting = np.bincount(row_of_entry[score_of_entry > 0], minlength=len(documents))

    # 2) probability of the predicted class
    probabilities = classifier.predict_proba(X)
    predicted = probabilities.argmax(axis=1)
    whole = probabilities[documents, predicted]

    # 3) the same after the change; an unchanged document has a drop of exactly 0
    drops = np.zeros(len(documents))
    for fraction in ERASER_FRACTIONS:
        # A fraction such as 0.07 of 100 tokens is computed as 7.000000000000001.
        n_top = np.minimum(np.ceil(fraction * n_tokens - 1e-9), n_supporting)
        is_top = rank < n_top[row_of_entry]
        changed = X.copy()
        changed.data[is_top != keep_top] = 0
        changed.eliminate_zeros()
        left = classifier.predict_proba(changed)[documents, predicted]
        is_changed = np.diff(changed.indptr) < n_tokens
        drops += np.where(is_changed, whole - left, 0.0)
    return drops / len(ERASER_FRACTIONS)


MEASURES = {"comprehensiveness": False, "sufficiency": True}  # whether the top tokens are kept


# Explainers: columns, and how much each speaks for the prediction


class Model:
    """Our classifier, with its defaults, on words of a problem, and random test documents."""

    def __init__(self, problem: Problem, n_documents: int) -> None:
        self.vectorizer = CountVectorizer(min_df=5, token_pattern=WORDS)
        X = self.vectorizer.fit_transform(problem.X_train)
        X.sum_duplicates()
        self.classifier = ClsAttentionClassifier().fit(X, problem.y_train)
        self.pipeline = make_pipeline(self.vectorizer, self.classifier)
        order = np.random.default_rng(0).permutation(len(problem.X_test))
        # Long before the end: a few documents in a thousand have no token at all.
        chosen = problem.X_test[order[: 2 * n_documents + 10]]
        self.texts = chosen[self.vectorizer.transform(chosen).getnnz(axis=1) > 0][:n_documents]

    def log_odds(self, counts: Any, code: int) -> Array:
        """Return the log-odds (n_documents,) of a class against all others together."""
        decisions = self.classifier.decision_function(counts)
        if decisions.ndim == 1:
            return decisions if code == 1 else -decisions
        others = np.delete(decisions, code, axis=1)
        return np.asarray(decisions[:, code] - logsumexp(others, axis=1))


def explainers(model: Model, samples: int) -> dict[str, Explain]:
    """Return the explainers that are compared, in the order of the tables."""
    return {
        OURS: partial(_contributions, model),
        "LIME": _lime(model, samples),
        "SHAP": _shap(model, samples),
        "attention": partial(_attention, model),
        "random order": partial(_chance, model, np.random.default_rng(0)),
    }


def _contributions(model: Model, text: str) -> Scores:
    """Return the contributions of `explain`, to the predicted class less those to the next."""
    explanation = package_explain(model.pipeline, [text])
    vocabulary = model.vectorizer.vocabulary_
    columns = np.array([vocabulary[token] for token in explanation.tokens], dtype=np.int64)
    contributions = explanation.contributions
    if contributions.shape[1] == 1:
        is_second = explanation.decision[0, 0] > 0
        return columns, contributions[:, 0] if is_second else -contributions[:, 0]
    second, first = np.argsort(explanation.decision[0])[-2:]
    return columns, contributions[:, first] - contributions[:, second]


def _lime(model: Model, samples: int) -> Explain:
    """Return LIME with all words scored; removing a word removes all its occurrences (`bow`).

    It is given lower-case texts and the vectorizer's own words, so that its words are the
    model's tokens; its other settings are its defaults.
    """
    from lime.lime_text import LimeTextExplainer

    vectorizer = model.vectorizer
    vocabulary, preprocess = vectorizer.vocabulary_, vectorizer.build_preprocessor()
    explainer = LimeTextExplainer(
        split_expression=vectorizer.build_tokenizer(), feature_selection="none", random_state=0
    )

    def explain(text: str) -> Scores:
        answer = explainer.explain_instance(
            preprocess(text), model.pipeline.predict_proba, top_labels=1, num_samples=samples
        )
        words = answer.domain_mapper.indexed_string
        pairs = answer.local_exp[answer.top_labels[0]]
        scores = {words.word(number): weight for number, weight in pairs}
        known = [word for word in scores if word in vocabulary]
        columns = np.array([vocabulary[word] for word in known], dtype=np.int64)
        return columns, np.array([scores[word] for word in known], dtype=float)

    return explain


def _shap(model: Model, evaluations: int) -> Explain:
    """Return SHAP's permutations of the document's tokens, each removed in all its occurrences."""
    with warnings.catch_warnings():  # of matplotlib's to come, while it makes its colours
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        import shap

    def explain(text: str) -> Scores:
        x = sp.csr_array(model.vectorizer.transform([text]))
        x.sort_indices()
        code = int(model.classifier.predict_proba(x)[0].argmax())

        def log_odds(kept: Any) -> Array:
            rows, entries = np.nonzero(kept)
            of_kept = x.data[entries], (rows, x.indices[entries])
            return model.log_odds(sp.csr_array(of_kept, shape=(len(kept), x.shape[1])), code)

        explainer = shap.PermutationExplainer(log_odds, np.zeros((1, x.nnz)), seed=0)
        n_evaluations = max(evaluations, 2 * x.nnz + 1)
        answer = explainer(
            np.ones((1, x.nnz)), max_evals=n_evaluations, batch_size=_BATCH, silent=True
        )
        return x.indices, np.asarray(answer.values, dtype=float)[0]

    return explain


def _attention(model: Model, text: str) -> Scores:
    """Return our model's attention alone, which has no sign."""
    shares = model.classifier.attention(model.vectorizer.transform([text]))
    return shares.indices, shares.data


def _chance(model: Model, rng: np.random.Generator, text: str) -> Scores:
    """Return random scores of the document's tokens: what any explanation should beat."""
    columns = model.vectorizer.transform([text]).indices
    return columns, rng.random(len(columns))


# The race


@dataclass(frozen=True)
class Measured:
    """What was measured of one explainer: arrays of shape (n_documents,), by `MEASURES`."""

    values: dict[str, Array]
    seconds: Array  # the processor's: a busy machine's waiting would mostly fall on what takes long


Results = dict[str, dict[str, Measured]]  # by set and explainer


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit status."""
    parser = pages.parser("bench_explanations", __doc__, "reviews", "explore")
    parser.add_argument("--documents", type=int, default=24, help="to explain (default 24)")
    parser.add_argument("--samples", type=int, default=5000, help="of LIME and SHAP")
    parser.add_argument("--fast", action="store_true", help="few documents of generated requests")
    options = parser.parse_args(arguments)
    threadpoolctl.threadpool_limits(1, "blas")
    sets = {"mood": "generated requests, words"} if options.fast else SETS
    n_rows = FAST_ROWS if options.fast else None
    n_documents = 4 if options.fast else options.documents
    results: Results = {}
    for name, title in sets.items():
        problem = problems.load(name, options.reviews, options.explore, n_rows)
        model = Model(problem, n_documents)
        results[title] = race(model, explainers(model, options.samples))
    command = "bench_explanations --reviews FOLDER --explore FOLDER"
    packages = ", ".join(f"{name} {version(name)}" for name in ("lime", "shap"))
    pages.publish(
        options.output,
        "Are explanations true, and what do they cost?",
        "bench_explanations --fast" if options.fast else command,
        f"With {packages}.",
        _NOTES.format(samples=options.samples),
        table(results),
    )
    return 0


def race(model: Model, some: dict[str, Explain]) -> dict[str, Measured]:
    """Explain all documents by all explainers in turn, and ask the model about each."""
    texts = model.texts
    for explain in some.values():
        explain(min(texts, key=len))  # imports, compiles and allocates
    scores: list[list[Scores]] = [[] for _ in some]
    seconds = np.zeros((len(some), len(texts)))
    for at, text in enumerate(texts):
        for number, explain in enumerate(some.values()):
            answer, seconds[number, at] = _timed(explain, text)
            scores[number].append(answer)
        print(f"document {at + 1} of {len(texts)}", file=sys.stderr, flush=True)
    X = model.vectorizer.transform(texts)
    measured = {}
    for name, answers, taken in zip(some, scores, seconds, strict=True):
        rows = np.repeat(np.arange(len(answers)), [len(columns) for columns, _ in answers])
        columns, numbers = (np.concatenate([answer[at] for answer in answers]) for at in (0, 1))
        matrix = sp.coo_array((numbers, (rows, columns)), shape=X.shape).tocsr()
        values = {
            what: probability_drops(model.classifier, X, matrix, keep_top=keep_top)
            for what, keep_top in MEASURES.items()
        }
        measured[name] = Measured(values, taken)
    return measured


def _timed(explain: Explain, text: str) -> tuple[Scores, float]:
    """Return an explanation and the processor's time: of a short one, the median of several."""
    taken: list[float] = []
    while not taken or (len(taken) < _REPEATS and taken[0] < _SHORT):
        answer, seconds = timed(partial(explain, text), time.process_time)
        taken.append(seconds)
    return answer, float(np.median(taken))


_NOTES = """\
All explanations are of the same model, ours on word counts, and are judged by the drop in the
probability of the predicted class, averaged over the top 1, 5, 10, 20 and 50 % of the tokens
(ERASER). *Comprehensiveness*: the tokens that support the class most are removed, with all their
occurrences; higher is better. *Sufficiency*: only they are kept; lower is better. Tokens that do
not support the class are never used. Means over documents, ± half a 95 % interval. In brackets the
mean of the differences per document, of which positive values favour our contributions.

Ours are the contributions to the predicted class; of several, minus the runner-up's.
LIME and SHAP remove a word in all its occurrences and have {samples:,} evaluations each.

CPU time, without waiting, from a text to its scores, one document at a time with all methods in
turn, so that a busy machine slows all alike. Times below 50 ms are medians of seven calls.
*Times as fast*: the median over documents of the other's time divided by ours, and the lowest
tenth."""


def table(results: Results) -> str:
    """Return the measures and times of all explainers, and ours against each."""
    rows = []
    for title, by_name in results.items():
        ours = by_name[OURS]
        for name, one in by_name.items():
            cells = [interval(one.values[measure]) for measure in MEASURES]
            if one is not ours:
                for at, (measure, keep_top) in enumerate(MEASURES.items()):
                    gain = (ours.values[measure] - one.values[measure]) * (-1 if keep_top else 1)
                    cells[at] += f" ({interval(gain, '+')})"
            ratios = one.seconds / ours.seconds
            faster = f"{np.median(ratios):,.0f} ({np.quantile(ratios, 0.1):,.0f})"
            time_of_one = f"{1000 * float(np.median(one.seconds)):,.3g}"
            rows.append([title, name, *cells, time_of_one, "" if one is ours else faster])
    header = "documents", "explanation", *MEASURES, "ms a document", "ours: times as fast"
    return pages.table(header, rows)


def interval(values: Array, sign: str = "") -> str:
    """Return a mean and half the width of its 95 % interval, over documents."""
    half = _Z95 * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.inf
    return f"{values.mean():{sign}.4f} ± {half:.4f}"


if __name__ == "__main__":
    sys.exit(main())
