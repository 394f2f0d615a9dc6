"""Labels of every type: their classes, missing ones, several a document, and names of rows."""

from datetime import datetime
from functools import partial

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from helpers import data, refused
from numpy.testing import assert_array_equal

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier, TokenImportanceTransformer
from sklearn_clsattn.inspection import label_issues
from sklearn_clsattn.text import ContextVectorizer

X, Y = data(2, n_documents=20)
TEXTS = [f"{'good' if label else 'bad'} film number {number % 7}" for number, label in enumerate(Y)]


def series(dtype):
    return partial(pd.Series, dtype=dtype)


def objects(values):
    return np.array(values, dtype=object)


def polars_series(values):
    return polars.Series(values, strict=False)


INTEGERS = (3, 8)
BOOLEANS = (False, True)
STRINGS = ("ham", "spam")
DATES = (datetime(2024, 1, 1), datetime(2025, 1, 1))
# How labels are held, the two labels, and the type of `classes_`.
COLUMNS = {
    "Int64": (series("Int64"), INTEGERS, "i"),
    "UInt8": (series("UInt8"), INTEGERS, "iu"),
    "boolean": (series("boolean"), BOOLEANS, "b"),
    "string": (series("string"), STRINGS, "OU"),
    "string[pyarrow]": (series("string[pyarrow]"), STRINGS, "OU"),
    "int64[pyarrow]": (series("int64[pyarrow]"), INTEGERS, "i"),
    "category": (series("category"), STRINGS, "OU"),
    "category of integers": (
        lambda values: pd.Series(values, dtype="Int64").astype("category"),
        INTEGERS,
        "i",
    ),
    "array of integers": (np.array, (-(2**62), 2**62), "i"),
    "array of floats": (np.array, (0.0, 2.0), "f"),
    "array of objects": (objects, ("", "=1+1"), "OU"),
    "column of objects": (lambda values: objects(values).reshape(-1, 1), STRINGS, "OU"),
    "Index": (partial(pd.Index, dtype=object), STRINGS, "OU"),
    "list": (list, STRINGS, "OU"),
    "datetime64": (series("datetime64[ns]"), DATES, "M"),
    "polars": (polars_series, INTEGERS, "i"),
    "polars strings": (polars_series, STRINGS, "OU"),
    "pyarrow": (pa.array, INTEGERS, "i"),
    "pyarrow strings": (pa.array, STRINGS, "OU"),
    "pyarrow booleans": (pa.array, BOOLEANS, "b"),
}
PER_COLUMN = pytest.mark.parametrize("column", COLUMNS)
LEARNERS = {
    "classifier": lambda y: ClsAttentionClassifier(C=1.0).fit(X, y),
    "batches": lambda y: ClsAttentionClassifier(C=1.0).partial_fit(X, y, classes=y),
    "transformer": lambda y: TokenImportanceTransformer().fit(X, y),
    "vectorizer": lambda y: ContextVectorizer().fit(TEXTS, y),
    "text classifier": lambda y: TextClassifier(C=1.0).fit(TEXTS, y),
}
ANY_COLUMN = "ignore:A column-vector y was passed"


@pytest.mark.filterwarnings(ANY_COLUMN)
@PER_COLUMN
def test_classes_have_the_type_of_the_labels(column):
    make, labels, kinds = COLUMNS[column]
    values = [labels[code] for code in Y]
    expected = ClsAttentionClassifier(C=1.0).fit(X, Y).predict(X)
    for name in ("classifier", "batches", "text classifier"):
        classes = LEARNERS[name](make(values)).classes_
        assert classes.dtype.kind in kinds
        assert pd.Series(classes).tolist() == pd.Series(labels).tolist()
    predicted = ClsAttentionClassifier(C=1.0).fit(X, make(values)).predict(X)
    assert pd.Series(predicted).tolist() == pd.Series([labels[code] for code in expected]).tolist()


@pytest.mark.filterwarnings(ANY_COLUMN)
@PER_COLUMN
@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT], ids=repr)
def test_a_missing_label_is_named_by_its_position(column, missing):
    make, labels, _ = COLUMNS[column]
    values = [labels[code] for code in Y]
    values[7] = values[11] = missing
    try:
        y = make(values)
    except (TypeError, ValueError):  # of pandas and pyarrow
        pytest.skip("such a column cannot have this value")
    if not pd.isna(np.asarray(y).reshape(-1)[7]):
        pytest.skip("the value became a label")
    for learn in LEARNERS.values():
        refused(r"2 missing labels .* position 7: remove these", learn, y)


RAGGED = [["a", "b"] if code else ["a"] for code in Y]
MIXED = ["a", ["b", "c"], *("ab"[code] for code in Y[2:])]


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        pd.Series,
        lambda values: pd.Series(values, index=range(5, 25)),
        lambda values: np.array([*values, None], dtype=object)[:-1],
        lambda values: [set(one) for one in values],
        lambda values: pd.Series([frozenset(one) for one in values]),
    ],
)
@pytest.mark.parametrize("values", [RAGGED, MIXED], ids=["ragged", "mixed"])
@pytest.mark.parametrize("name", LEARNERS)
def test_labels_in_lists_are_several_labels(name, make, values):
    refused(r"y has several labels per document.*MultiLabelBinarizer", LEARNERS[name], make(values))


def test_label_issues_keep_the_names_of_documents():
    names = [f"mail {number}" for number in range(20)]
    for kind, labels in (("Int64", [3, 8]), ("boolean", [False, True]), (object, ["no", "yes"])):
        y = pd.Series([labels[code] for code in Y], dtype=kind, index=names)
        model = ClsAttentionClassifier(C=1.0).fit(X, y)
        issues = label_issues(model, X, y)
        assert [names[document] for document in issues["document"]] == issues.index.tolist()
        assert issues["label"].tolist() == y[issues.index].tolist()
        assert issues["label"].dtype == issues["suggested"].dtype
        assert len(label_issues(model, X, y, top=3)) == 3
        plain = label_issues(model, X, y.tolist())
        assert_array_equal(plain["document"], issues["document"])
        assert plain.index.tolist() == list(range(20))
    frame = pd.DataFrame({"a": Y, "b": 1 - Y}, index=names)
    issues = label_issues(ClsAttentionClassifier(C=1.0).fit(X, frame), X, frame)
    assert [names[document] for document in issues["document"]] == issues.index.tolist()


@pytest.mark.parametrize(
    "make", [pa.array, series("string[pyarrow]"), polars_series, series("string")]
)
def test_texts_in_any_column(make):
    model = TextClassifier(C=1.0).fit(make(TEXTS), Y)
    expected = TextClassifier(C=1.0).fit(TEXTS, Y)
    assert_array_equal(model.predict_proba(make(TEXTS)), expected.predict_proba(TEXTS))
    refused(r"position 2 is .*: remove it and its label", model.predict, make([*TEXTS[:2], None]))


def test_the_first_batch_names_the_classes():
    message = r"first call to partial_fit needs all labels.*classes=\[\.\.\.\]"
    refused(message, ClsAttentionClassifier().partial_fit, X, Y)
    reader = TextClassifier()
    refused(message, reader.partial_fit, TEXTS, Y)
    assert not hasattr(reader, "vectorizer_")
    model = ClsAttentionClassifier(C=1.0).partial_fit(X, Y, classes=[0, 1])
    assert model.partial_fit(X, Y).classes_.tolist() == [0, 1]
