"""Write or compare the golden master: what fits give, and what a user of texts reads and gets.

``python tests/golden.py --write`` records `golden.json`; without ``--write`` the differences from
it are printed, of which ``test_golden.py`` asks that there are none.
"""

import contextlib
import io
import json
import re
import shlex
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier, paper
from sklearn_clsattn.cli import main as command_line
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.text import TokenVectorizer

PATH = Path(__file__).with_name("golden.json")
N_TOKENS = 40

# How far another CPU may be off, relative to a quantity's own scale: some thirty times what was
# seen under the roundings of `make test-roundings` and with inputs moved by one unit in the last
# place. A case whose iterations amplify rounding has its own. The gap, a difference of nearly
# equal numbers, has `GAP_FACTOR` times as much.
DOUBLE, SINGLE, GAP_FACTOR = 1e-10, 5e-4, 50
EXPLAINED = 1e-8  # of explanations


def documents(kind, n_classes, n_documents, seed):
    """Return counts, labels 0..K-1 and document weights.

    Built from comparisons of uniform numbers with constants, so that they are the same on every
    CPU. Some documents are empty and the last token is in none. "topics": every class has three
    tokens that it uses more often. "single": every document has its class's own token, which no
    other class has, and tokens that all share.
    """
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_documents) % n_classes)
    rates = np.where(np.arange(N_TOKENS) % 4 == 0, 0.25, 0.08) * np.ones((n_documents, 1))
    for repeat in range(3 if kind == "topics" else 0):
        rates[np.arange(n_documents), repeat * n_classes + y] = 0.4
    if kind == "single":
        rates[:, :n_classes] = 0
    X = (rng.random((n_documents, N_TOKENS, 3)) < rates[:, :, None]).sum(axis=2).astype(float)
    if kind == "single":
        X[np.arange(n_documents), y] = 1 + (rng.random(n_documents) < 0.5)
    else:
        X[5::37] = 0
    X[:, -1] = 0
    return X, y, 0.25 * rng.integers(1, 12, n_documents)


@dataclass(frozen=True)
class Case:
    """A problem, a regime and what is done: data, not code, so that a move cannot change it.

    `parameters` are the regime's own; `batches` is for `partial_fit` in three calls.
    """

    regime: str
    parameters: dict[str, Any] = field(default_factory=dict)
    kind: str = "topics"
    n_classes: int = 2
    n_documents: int = 150
    seed: int = 0
    input: str = "float64"
    dense: bool = False
    weighted: bool = False
    names: tuple[str, ...] = ()
    batches: bool = False
    class_missing_at_first: bool = False
    rounding: float = 0.0

    @property
    def tolerance(self):
        return self.rounding or (DOUBLE if self.input == "float64" else SINGLE)


BARE = {"attend_cls": False}

CASES = {
    "default, two classes, string labels": Case("default", names=("spam", "ham")),
    "default, three classes, integers": Case("default", n_classes=3, input="int64", seed=1),
    "default, five classes, weights": Case(
        "default", n_classes=5, n_documents=250, weighted=True, seed=2
    ),
    "default, float32, dense": Case("default", input="float32", dense=True, seed=3),
    "default, balanced, C and attention_C": Case(
        "default",
        {"C": 4.0, "attention_C": 0.3, "class_weight": "balanced", "verbose": 2},
        weighted=True,
        seed=4,
    ),
    "default, weights of classes, without <cls>": Case(
        "default", {**BARE, "class_weight": {0: 0.5, 2: 2.0}}, n_classes=3, seed=5
    ),
    "default, unscaled, tight": Case("default", {"token_scaling": None, "tol": 1e-7}, seed=6),
    "default, three classes, unscaled, without <cls>": Case(
        "default",
        {**BARE, "token_scaling": None, "C": 0.3, "device": "cpu"},
        n_classes=3,
        weighted=True,
        seed=7,
    ),
    "default, batches, a class missing at first": Case(
        "default", n_classes=3, n_documents=180, batches=True, class_missing_at_first=True, seed=10
    ),
    "default, batches, weights": Case(
        "default",
        {**BARE, "class_weight": {"no": 2.0}, "C": 0.5},
        names=("no", "yes"),
        weighted=True,
        batches=True,
        seed=11,
    ),
    "one step": Case("one_step", kind="single", seed=12, rounding=1e-8),
    "one step, three classes, finite": Case(
        "one_step",
        {"embedding_dim": 256, "step_size": 30.0, "random_state": 1},
        kind="single",
        n_classes=3,
        weighted=True,
        seed=13,
        rounding=2e-7,
    ),
    "embedding, no dimension": Case("embedding", {"embedding_dim": None}, n_documents=200, seed=18),
    "embedding, no dimension, three classes, all documents": Case(
        "embedding",
        {
            **BARE,
            "embedding_dim": None,
            "early_stopping": False,
            "learning_rate": 0.1,
            "max_iter": 25,
        },
        n_classes=3,
        weighted=True,
        seed=19,
    ),
    "embedding": Case(
        "embedding",
        {
            "embedding_dim": 8,
            "learning_rate": 0.2,
            "validation_fraction": 0.25,
            "n_iter_no_change": 3,
            "tol": 3e-3,
            "random_state": 4,
        },
        weighted=True,
        n_documents=200,
        seed=20,
    ),
    "two layers, MLP": Case(
        "network",
        {
            "learning_rate": 0.02,
            "max_iter": 3,
            "n_layers": 2,
            "mlp": True,
            "embedding_dim": 6,
            "validation_fraction": 0.2,
            "class_weight": "balanced",
            "random_state": 8,
        },
        weighted=True,
        n_documents=120,
        seed=24,
    ),
}


def make_estimator(regime, parameters):
    """Return the regime's estimator; the only code here that knows how regimes are spelled."""
    kind = {
        "default": ClsAttentionClassifier,
        "one_step": paper.OneStepClassifier,
        "embedding": paper.EmbeddingClassifier,
        "network": paper.AttentionNetworkClassifier,
    }[regime]
    # The choice of C magnifies rounding: tests/test_fit.py is about it.
    fixed = {"C": 1.0} if regime == "default" else {"random_state": 0}
    return kind(**{**fixed, **parameters})


def fit(case):
    """Return the fitted model, what it printed, its warnings and held-out documents."""
    X, y, weights = documents(case.kind, case.n_classes, case.n_documents, case.seed)
    held_out, *_ = documents(case.kind, case.n_classes, 40, case.seed + 100)
    X, held_out = (
        array.astype(case.input) if case.dense else sp.csr_matrix(array.astype(case.input))
        for array in (X, held_out)
    )
    labels = np.array(case.names)[y] if case.names else y
    model = make_estimator(case.regime, case.parameters)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if case.batches:
            first = np.arange(len(y)) % 3 == 0
            if case.class_missing_at_first:
                first &= y != 1
            others = np.flatnonzero(~first)
            classes = np.unique(labels)
            for rows in (np.flatnonzero(first), others[::2], others[1::2]):
                model.partial_fit(X[rows], labels[rows], classes, weights[rows])
        else:
            model.fit(X, labels, weights if case.weighted else None)
    return model, printed.getvalue(), caught, held_out


ARRAYS = [
    *("token_importance_", "attention_scores_", "token_values_", "intercept_", "cls_score_"),
    *("cls_weight_", "cls_embedding_", "output_vector_", "token_embeddings_", "loss_curve_"),
    *("optimality_gap_", "step_size_"),
]


def outcome(case):
    """Return everything compared: lists compared exactly, arrays within the case's tolerance."""
    model, printed, caught, held_out = fit(case)
    contributions = [] if model.mlp else model.contributions(held_out)
    if not isinstance(contributions, list):
        contributions = [contributions]
    exact = {
        "classes_": model.classes_.tolist(),
        "n_iter_": int(model.n_iter_),
        "selected_tokens_": model.selected_tokens_.tolist(),
        "selection_counts_": model.selection_counts_.tolist(),
        "selected, held out": model.select_tokens(held_out).sum(axis=0).ravel().tolist(),
        "predicted": model.predict(held_out).tolist(),
        "warnings": [warning.category.__name__ for warning in caught],
        "lines printed": len(printed.splitlines()),
        "embeddings are": str(model.token_embeddings_.dtype),
    }
    arrays = {name: getattr(model, name) for name in ARRAYS if hasattr(model, name)}
    arrays["decisions"] = model.decision_function(held_out)
    arrays["attention"] = model.attention(held_out).toarray()
    for k, terms in enumerate(contributions):
        arrays[f"contributions, {k}"] = terms.toarray()
    if hasattr(model, "validation_loss_curve_"):
        arrays["validation losses"] = model.validation_loss_curve_
    return {"exact": exact, "arrays": {name: summary(array) for name, array in arrays.items()}}


def summary(array):
    """Return shape, at most 12 entries, and three sums over all entries."""
    array = np.asarray(array, dtype=np.float64)
    entries = array.ravel()
    at = np.unique(np.linspace(0, entries.size - 1, 12).astype(int)) if entries.size else []
    numbers = {"entries": entries[at]}
    if entries.size > 12:
        ramp = np.linspace(-1, 1, entries.size)
        numbers |= {
            "sums": np.array([entries.mean(), ramp @ entries / entries.size]),
            "norm": np.array([np.sqrt(np.mean(entries**2))]),
        }
    return {"shape": list(array.shape)} | {
        name: [float(f"{number:.12g}") for number in some] for name, some in numbers.items()
    }


def deviation(one, other):
    """Return how far two summaries of one shape are apart, relative to their scale."""
    mine, theirs = (
        np.array([*s["entries"], *s.get("sums", []), *s.get("norm", [])]) for s in (one, other)
    )
    infinite = ~np.isfinite(theirs)
    if one["shape"] != other["shape"] or not np.array_equal(mine[infinite], theirs[infinite]):
        return np.inf
    if infinite.all():
        return 0.0
    mine, theirs = mine[~infinite], theirs[~infinite]
    return float(np.max(np.abs(mine - theirs)) / (np.max(np.abs(theirs)) or 1.0))


def fits():
    for name, case in CASES.items():
        yield name, outcome(case)


# What a user of texts gets: explanations, printed output

WORDS = (
    *("film", "story", "plot", "actor", "scene", "music", "voice", "camera", "ending", "dialogue"),
    *("not", "very", "quite", "never", "rather", "the", "a", "of", "and", "but", "with", "in"),
    *("it", "was", "is", "Ünïted", "don't", "7/10"),
)
OF_CLASS = (
    ["good", "great", "lovely", "charming", "wonderful", "masterpiece"],
    ["bad", "dull", "boring", "awful", "tedious", "mess"],
    ["strange", "odd", "weird", "peculiar", "baffling", "riddle"],
)


def texts(n_texts, n_classes, seed):
    """Return texts with words of their class and others, and labels, the same on every CPU."""
    rng = np.random.default_rng(seed)
    labels, written = np.arange(n_texts) % n_classes, []
    for label in labels:
        words = []
        for _ in range(rng.integers(4, 18)):
            own = OF_CLASS[label if rng.random() < 0.8 else rng.integers(n_classes)]
            words.append((WORDS if rng.random() < 0.7 else own)[rng.integers(6)])
            if rng.random() < 0.3:
                words.append(WORDS[rng.integers(len(WORDS))])
        marks = [", ", ". ", " ", " ", "! "]
        written.append("".join(word + marks[rng.integers(5)] for word in words))
    return written, np.array(["good", "bad", "odd"])[labels]


class Precise(TextClassifier):
    """A text classifier whose bags are in double precision."""

    def _new_vectorizer(self):
        return super()._new_vectorizer().set_params(character_min_df=2, dtype=np.float64)


def pipelines():
    """Yield name, fitted pipeline and texts to explain."""
    for n_classes in (2, 3):
        given, labels = texts(160, n_classes, 3)
        asked = [*texts(6, n_classes, 4)[0], ""]
        counts = make_pipeline(TokenVectorizer(), ClsAttentionClassifier(C=1.0))
        usual = make_pipeline(CountVectorizer(ngram_range=(1, 2)), ClsAttentionClassifier(C=2.0))
        context = Precise(C=1.0, min_df=1)
        for name, model in (("counts", counts), ("pairs", usual), ("context", context)):
            yield f"{name}, {n_classes} classes", model.fit(given, labels), asked


def plain(value):
    """Return nested data with its numbers as numbers that JSON has."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def explanations():
    for name, model, asked in pipelines():
        explained = explain(model, asked)
        data = plain(explained.to_dict())
        data["documents"] = [trimmed(document) for document in data["documents"]]
        frame = explained.to_frame().to_csv(float_format="%.4g").splitlines()[::9]
        yield (
            f"explain, {name}",
            {"to_dict": data, "to_text": explained.to_text(), "to_frame": frame},
        )


def trimmed(document):
    """Return an explained document with some of its tokens."""
    tokens = document["tokens"]
    return document | {"tokens": [len(tokens), *tokens[:: max(1, len(tokens) // 8)]]}


COMMANDS = (
    "fit reviews.csv -o model.skops --C 1.0",
    "predict model.skops new.csv",
    "explain model.skops new.csv --limit 3",
    "explain model.skops --say 'a good film, but a dull plot'",
    "explain model.skops new.csv --limit 3 --counterfactual",
    "fit reviews.csv -o model.skops",
    "fit nothing.csv -o other.skops",
    "predict model.skops reviews.csv --text wrong",
    "explain reviews.csv new.csv",
)


def printed():
    """Yield what each command prints, without times and sizes of files."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, seed, n in (("reviews", 5, 200), ("new", 6, 5)):
            given, labels = texts(n, 2, seed)
            pd.DataFrame({"text": given, "label": labels}).to_csv(f"{name}.csv", index=False)
        for command in COMMANDS:
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    code = command_line(shlex.split(command))
                except SystemExit as stop:
                    code = stop.code
            said = [re.sub(r"[\d.]+ (m?s|KB)\b", r"N \1", s.getvalue()) for s in (out, err)]
            yield command, {"code": code, "stdout": said[0], "stderr": said[1]}


GROUPS = {function.__name__: function for function in (fits, explanations, printed)}


def tolerance_of(group, name):
    """Return how far numbers of an outcome may be off."""
    if group == "fits":
        return CASES[name].tolerance
    return EXPLAINED if group == "explanations" else SINGLE


def differences(found, expected, tolerance, path=""):
    """Yield where two outcomes differ: numbers by more than the tolerance, all else at all."""
    kinds = {type(found), type(expected)}
    if kinds == {dict} and {"shape", "entries"} <= found.keys() & expected.keys():
        factor = GAP_FACTOR if path.endswith("optimality_gap_") else 1
        if (far := deviation(found, expected)) > factor * tolerance:
            yield f"{path}: off by {far:.1e}"
    elif kinds == {dict} and found.keys() == expected.keys():
        for key in found:
            yield from differences(found[key], expected[key], tolerance, f"{path}/{key}")
    elif kinds == {list} and len(found) == len(expected):
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from differences(one, other, tolerance, f"{path}/{i}")
    else:
        if kinds == {float}:
            same = np.isclose(found, expected, rtol=1e3 * tolerance, atol=1e3 * tolerance)
        elif kinds == {str} and tolerance == SINGLE:
            same = same_but_for_digits(found, expected)
        else:
            same = found == expected
        if not same:
            yield f"{path}: {found!r}, expected {expected!r}"


def same_but_for_digits(found, expected):
    """Return whether two texts differ in the last digits of numbers and the ends of bars alone."""
    number = r"\d+(?:\.\d+)?(?:e-\d+)?"
    one, other = (re.split(number, re.sub("[█▒]+ *", "", said)) for said in (found, expected))
    numbers = [[float(n) for n in re.findall(number, said)] for said in (found, expected)]
    return one == other and np.allclose(*numbers, rtol=0.02, atol=0.011)


def outcomes(group):
    """Return what JSON would give back of a group's outcomes."""
    return json.loads(json.dumps(plain(dict(GROUPS[group]()))))


def compared(group):
    """Return where a group differs from what was recorded."""
    found, expected = outcomes(group), json.loads(PATH.read_text())[group]
    different = []
    for name in found.keys() | expected.keys():
        tolerance = tolerance_of(group, name)
        different += differences(found.get(name), expected.get(name), tolerance, name)
    return different


def main():
    if "--write" in sys.argv:
        written = []
        for group in GROUPS:
            rows = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in outcomes(group).items()]
            written.append(f"{json.dumps(group)}: {{\n" + ",\n".join(rows) + "\n}")
        PATH.write_text("{\n" + ",\n".join(written) + "\n}\n")
        return
    for group in GROUPS:
        print(group, *compared(group), sep="\n  ")


if __name__ == "__main__":
    main()
