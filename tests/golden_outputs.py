"""Write or compare what a user of texts gets: matrices, explanations, printed output.

``python tests/golden_outputs.py --write`` records `golden_outputs.json`; without ``--write`` what
differs from it is printed. ``test_golden.py`` compares: strings exactly, numbers as in `golden`.
"""

import contextlib
import io
import json
import re
import shlex
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from golden import deviation, summary
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.cli import main as command_line
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.text import ContextVectorizer, TokenVectorizer, make_text_classifier

PATH = Path(__file__).with_name("golden_outputs.json")
DOUBLE, SINGLE = 1e-8, 5e-4
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


def matrix(X):
    """Return what is compared of a sparse matrix: where its entries are, and what they are."""
    X = sp.csr_array(X)
    X.sort_indices()
    return {
        "dtype": str(X.dtype),
        "rows": X.indptr[::7].tolist(),
        "columns": X.indices[:: max(1, X.nnz // 60)].tolist(),
        "column sum": int(X.indices.astype(np.int64).sum()),
        "data": summary(X.data),
    }


SETTINGS = {
    "default": {},
    "min_df 2": {"min_df": 2, "character_min_df": 2},
    "words alone": {"characters": None, "min_df": 1},
    "without context": {"context": False, "min_df": 1, "character_min_df": 3},
    "single words, case, double": {
        "ngram_range": (1, 1),
        "lowercase": False,
        "characters": (3, 3),
        "character_weight": 1.0,
        "min_df": 1,
        "max_df": 0.5,
        "dtype": np.float64,
    },
    "three words, other tokens": {"ngram_range": (1, 3), "token_pattern": r"\w+", "min_df": 2},
}


def vectorizers():
    given, labels = texts(240, 2, 0)
    unseen = [*texts(40, 2, 1)[0], "", "   ", "unseen words only"]
    for name, setting in SETTINGS.items():
        vectorizer = ContextVectorizer(**setting)
        fitted = vectorizer.fit_transform(given, labels)
        names = vectorizer.get_feature_names_out()
        yield (
            f"ContextVectorizer, {name}",
            {
                "fit_transform": matrix(fitted),
                "transform": matrix(vectorizer.transform(unseen)),
                "names": [len(names), *names[:: max(1, len(names) // 40)].tolist()],
            },
        )
    three, labels = texts(240, 3, 2)
    vectorizer = ContextVectorizer(min_df=1).fit(three, labels)
    yield "ContextVectorizer, three classes", {"transform": matrix(vectorizer.transform(unseen))}
    for setting in ({}, {"ngram_range": (2, 4), "analyzer": "char_wb"}, {"binary": True}):
        vectorizer = TokenVectorizer(**setting)
        yield f"TokenVectorizer, {setting}", {"counts": matrix(vectorizer.fit_transform(given))}


def pipelines():
    """Yield name, fitted pipeline and texts to explain."""
    for n_classes in (2, 3):
        given, labels = texts(160, n_classes, 3)
        asked = [*texts(6, n_classes, 4)[0], ""]
        counts = make_pipeline(TokenVectorizer(), ClsAttentionClassifier(C=1.0))
        usual = make_pipeline(CountVectorizer(ngram_range=(1, 2)), ClsAttentionClassifier(C=2.0))
        context = make_text_classifier(C=1.0, min_df=1, character_min_df=2, dtype=np.float64)
        for name, model in (("counts", counts), ("pairs", usual), ("context", context)):
            yield f"{name}, {n_classes} classes", model.fit(given, labels), asked


def plain(value):
    """Return nested data with its numbers as numbers that JSON has."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


MANY_TIES = ("counterfactual, words", "sufficient, words", "to odd")  # the steps may differ


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
        answers = {}
        for unit in ("tokens", "words"):
            answers[f"counterfactual, {unit}"] = explained.counterfactual(unit)
            answers[f"sufficient, {unit}"] = explained.sufficient(unit)
        if "2 classes" not in name:
            answers["to odd"] = explained.counterfactual("words", to="odd")
        said = {}
        for key, sets in answers.items():
            said[key] = {"statements": [sets.statement(i) for i in range(len(asked))]}
            if key not in MANY_TIES:
                said[key]["text"] = sets.to_text()
        yield f"minimal, {name}", said


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
    "explain model.skops new.csv --limit 2 --counterfactual tokens",
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


GROUPS = {function.__name__: function for function in (vectorizers, explanations, printed)}


def differences(found, expected, tolerance, path=""):
    """Yield where two outcomes differ: numbers by more than the tolerance, all else at all."""
    kinds = {type(found), type(expected)}
    if kinds == {dict} and {"shape", "entries"} <= found.keys() & expected.keys():
        if (far := deviation(found, expected)) > tolerance:
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
    expected = json.loads(PATH.read_text())[group]
    found = outcomes(group)
    tolerance = DOUBLE if group == "explanations" else SINGLE
    return list(differences(found, expected, tolerance))


def main():
    if "--write" in sys.argv:
        lines = []
        for group in GROUPS:
            rows = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in outcomes(group).items()]
            lines.append(f"{json.dumps(group)}: {{\n" + ",\n".join(rows) + "\n}")
        PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return
    for group in GROUPS:
        print(group, *compared(group), sep="\n  ")


if __name__ == "__main__":
    main()
