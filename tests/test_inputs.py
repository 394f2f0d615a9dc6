"""The list of inputs in docs/inputs.md: each line works, and what is beside it is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from helpers import refused
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier, TokenImportanceTransformer
from sklearn_clsattn.cli import main
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.saving import load_model, save_model
from sklearn_clsattn.text import ContextVectorizer

TEXTS = ["a good film", "a bad film", "good fun, really", "bad and dull fun"] * 5
LABELS = ["pos", "neg"] * 10
COUNTS = CountVectorizer().fit_transform(TEXTS)
NEW = ["so good", "rather bad"]


@pytest.fixture(scope="module")
def expected():
    return TextClassifier(C=1.0).fit(TEXTS, LABELS).predict_proba(NEW)


# Texts

TEXTS_AS = {
    "list": list,
    "array of str": np.array,
    "array of objects": lambda texts: np.array(texts, dtype=object),
    "pandas": pd.Series,
    "pandas string": lambda texts: pd.Series(texts, dtype="string"),
    "pandas on Arrow": lambda texts: pd.Series(texts, dtype="string[pyarrow]"),
    "polars": pl.Series,
    "generator": iter,
    "frame": lambda texts: pd.DataFrame({"text": texts}),
    "polars frame": lambda texts: pl.DataFrame({"text": texts}),
    "column of an array": lambda texts: np.array(texts, dtype=object)[:, None],
}


@pytest.mark.parametrize("kind", TEXTS_AS)
def test_texts(kind, expected):
    make = TEXTS_AS[kind]
    model = TextClassifier(C=1.0).fit(make(TEXTS), LABELS)
    assert_array_equal(model.predict_proba(make(NEW)), expected)
    explanation = explain(model, make(NEW))
    assert_array_equal(explanation.predicted, model.predict(NEW))
    assert explanation.texts == tuple(NEW)


def test_tables_of_several_columns_are_no_texts():
    fit = TextClassifier().fit
    frame = pd.DataFrame({"text": TEXTS, "price": "cheap"})
    refused(r"one column of texts, got \['text', 'price'\]: pass X\[name\]", fit, frame, LABELS)
    refused("one column of texts, got 2", fit, frame.to_numpy(), LABELS)
    refused(
        f"one column of texts, got {COUNTS.shape[1]}; counts are for ClsAttentionClassifier",
        fit,
        COUNTS,
        LABELS,
    )
    refused("Expected texts, got a dict", fit, {"text": TEXTS}, LABELS)


def test_texts_in_a_column_of_a_data_frame():
    frame = pd.DataFrame({"text": TEXTS, "price": range(20)})
    columns = ColumnTransformer([("words", ContextVectorizer(), "text")])
    model = make_pipeline(columns, ClsAttentionClassifier(C=1.0)).fit(frame, LABELS)
    assert model.score(frame, LABELS) == 1.0


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_texts_are_an_error(missing):
    message = 'Documents must be texts, but the one at position 19 is .*: fill empty cells with ""'
    refused(message, TextClassifier().fit, [*TEXTS[:-1], missing], LABELS)


def test_one_text_is_an_error():
    refused(r"got one text: pass \[text\]", TextClassifier().fit, "a good film", LABELS)


# Counts

COUNTS_AS = {
    "dense": sp.csr_matrix.toarray,
    "CSR matrix": sp.csr_matrix,
    "CSR array": sp.csr_array,
    "CSC matrix": sp.csc_matrix,
    "CSC array": sp.csc_array,
    "data frame": lambda X: pd.DataFrame(X.toarray()),
    "list of lists": lambda X: X.toarray().tolist(),
}


@pytest.mark.parametrize("kind", COUNTS_AS)
@pytest.mark.parametrize("model", [ClsAttentionClassifier(C=1.0), TokenImportanceTransformer()])
def test_counts(model, kind):
    X = COUNTS_AS[kind](COUNTS)
    model = model.fit(X, LABELS)
    fitted = model.token_importance_
    assert_allclose(fitted, model.fit(COUNTS, LABELS).token_importance_, rtol=1e-12)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float32, np.float64])
def test_numbers_of_any_type(dtype):
    model = ClsAttentionClassifier(C=1.0, tol=1e-8).fit(COUNTS.astype(dtype), LABELS)
    wide = ClsAttentionClassifier(C=1.0, tol=1e-8).fit(COUNTS.astype(np.float64), LABELS)
    assert_allclose(model.predict_proba(COUNTS), wide.predict_proba(COUNTS), atol=1e-3)


@pytest.mark.parametrize(
    ("value", "message"), [(-1.0, "Negative values"), (np.nan, "NaN"), (np.inf, "infinity")]
)
def test_other_numbers_are_an_error(value, message):
    X = COUNTS.toarray().astype(float)
    X[3, 1] = value
    refused(message, ClsAttentionClassifier().fit, X, LABELS)


def test_texts_instead_of_counts_are_an_error():
    refused("X contains texts.*TextClassifier", ClsAttentionClassifier().fit, TEXTS, LABELS)


# Labels

LABELS_AS = {
    "strings": (["neg", "pos"], np.array),
    "integers": ([3, 7], np.array),
    "booleans": ([False, True], np.array),
    "objects": (["neg", "pos"], lambda labels: np.array(labels, dtype=object)),
    "a list": (["neg", "pos"], list),
    "pandas": (["neg", "pos"], pd.Series),
    "a pandas category": (["neg", "pos"], lambda labels: pd.Series(labels, dtype="category")),
    "polars": (["neg", "pos"], pl.Series),
}


@pytest.mark.parametrize("kind", LABELS_AS)
def test_labels(kind, expected):
    (negative, positive), make = LABELS_AS[kind]
    model = TextClassifier(C=1.0).fit(TEXTS, make([positive, negative] * 10))
    assert model.classes_.tolist() == [negative, positive]
    assert model.predict(NEW).tolist() == [positive, negative]
    assert_array_equal(model.predict_proba(NEW), expected)


def test_several_labels():
    Y = np.array([[1, 0], [0, 1]] * 10)
    for given in (Y, sp.csr_matrix(Y), pd.DataFrame(Y, columns=["good", "bad"])):
        model = TextClassifier().fit(TEXTS, given)
        assert model.predict(NEW).tolist() == [[1, 0], [0, 1]]
    assert model.classes_.tolist() == ["good", "bad"]


def test_probabilities():
    P = np.array([[0.9, 0.1], [0.2, 0.8]] * 10)
    model = TextClassifier().fit(TEXTS, P)
    assert model.classes_.tolist() == [0, 1]
    named = TextClassifier().fit(TEXTS, pd.DataFrame(P, columns=["pos", "neg"]))
    assert named.classes_.tolist() == ["neg", "pos"]
    assert_allclose(named.predict_proba(NEW)[:, ::-1], model.predict_proba(NEW), atol=1e-6)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS[:-1], "inconsistent numbers of samples"),
        (["pos"] * 20, "greater than one"),
        (np.linspace(0, 1, 20), "Unknown label type"),
        (np.array([*LABELS[:-1], np.nan], dtype=object), "NaN"),
    ],
)
def test_other_labels_are_an_error(labels, message):
    refused(message, ClsAttentionClassifier().fit, COUNTS, labels)


# Weights


def test_weights(expected):
    weights = np.tile([1.0, 2.0], 10)
    rows = np.repeat(np.arange(20), np.tile([1, 2], 10))
    model = ClsAttentionClassifier(C=1.0, tol=1e-9).fit(COUNTS, LABELS, weights)
    repeated = ClsAttentionClassifier(C=1.0, tol=1e-9)
    repeated.fit(COUNTS[rows], np.array(LABELS)[rows])
    assert_allclose(model.predict_proba(COUNTS), repeated.predict_proba(COUNTS), atol=1e-5)
    same = TextClassifier(C=1.0).fit(TEXTS, LABELS, 1.0)
    assert_allclose(same.predict_proba(NEW), expected)
    refused("Negative values", model.fit, COUNTS, LABELS, -weights)


# Files of models


@pytest.mark.parametrize("name", ["model.skops", "model.joblib"])
def test_files_of_models(name, tmp_path, expected):
    model = TextClassifier(C=1.0).fit(TEXTS, LABELS)
    pipeline = make_pipeline(TfidfVectorizer(), ClsAttentionClassifier(C=1.0)).fit(TEXTS, LABELS)
    for one in (model, pipeline):
        save_model(one, tmp_path / name)
        again = load_model(tmp_path / name)
        assert_array_equal(again.predict_proba(NEW), one.predict_proba(NEW))


# Tables for the command line: as many predictions as rows, and every cell as it was

ROWS = pd.DataFrame({"id": ["007", "1e3", "NA", ""], "text": [*NEW, '"quoted', "null"]})
TABLES = {
    "table.csv": lambda path: ROWS.to_csv(path, index=False),
    "table.csv.gz": lambda path: ROWS.to_csv(path, index=False),
    "table.tsv": lambda path: path.write_text(
        "id\ttext\n" + "".join(f"{a}\t{b}\n" for a, b in ROWS.to_numpy())
    ),
    "table.jsonl": lambda path: ROWS.to_json(path, orient="records", lines=True),
    "table.parquet": lambda path: ROWS.to_parquet(path),
    "semicolons.csv": lambda path: ROWS.to_csv(path, index=False, sep=";"),
    "latin.csv": lambda path: ROWS.to_csv(path, index=False, encoding="latin-1"),
}
OPTIONS = {"semicolons.csv": ["--sep", ";"], "latin.csv": ["--encoding", "latin-1"]}


@pytest.mark.parametrize("name", TABLES)
def test_tables(name, tmp_path):
    model = TextClassifier(C=1.0).fit(TEXTS, LABELS)
    save_model(model, tmp_path / "model.skops")
    TABLES[name](tmp_path / name)
    given = [str(tmp_path / one) for one in ("model.skops", name, "out.csv")]
    code = main(["predict", *given[:2], "-o", given[2], *OPTIONS.get(name, [])])
    assert code == 0
    written = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    assert_array_equal(written[["id", "text"]], ROWS)
    assert written["prediction"].tolist() == model.predict(ROWS["text"].tolist()).tolist()
