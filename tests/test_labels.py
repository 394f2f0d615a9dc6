"""Labels of every type: the classes and the errors are those of LogisticRegression."""

import re
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import data, refused
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier, TokenImportanceTransformer
from sklearn_clsattn.inspection import label_issues
from sklearn_clsattn.text import ContextVectorizer

X, Y = data(2, n_documents=20)
TEXTS = [f"{'good' if label else 'bad'} film number {number % 7}" for number, label in enumerate(Y)]
NAMES = np.array(["ham", "spam"])[Y]
NUMBERS = np.array([-(2**40), 2**40])[Y]
LEARNERS = {
    "classifier": lambda y: ClsAttentionClassifier(C=1.0).fit(X, y),
    "batches": lambda y: ClsAttentionClassifier(C=1.0).partial_fit(X, y, classes=y),
    "transformer": lambda y: TokenImportanceTransformer().fit(X, y),
    "text classifier": lambda y: TextClassifier(C=1.0).fit(TEXTS, y),
}


def without(missing, labels=NAMES, **options):
    """Return a column of labels of which one is missing."""
    return pd.Series([*labels[:-1], missing], **options)


ACCEPTED = {
    "Int64": pd.Series(NUMBERS, dtype="Int64"),
    "UInt8": pd.Series(Y, dtype="UInt8"),
    "boolean": pd.Series(Y == 1, dtype="boolean"),
    "string[pyarrow]": pd.Series(NAMES, dtype="string[pyarrow]"),
    "int64[pyarrow]": pd.Series(NUMBERS, dtype="int64[pyarrow]"),
    "category of integers": pd.Series(NUMBERS).astype("category"),
    "floats": 2.0 * Y,
    "Index": pd.Index(NAMES),
    "dates": pd.Series(np.array([datetime(2024, 1, 1), datetime(2025, 1, 1)])[Y]),
    "polars": pl.Series(NUMBERS),
    "pyarrow": pa.array(NAMES.tolist()),
}
REFUSED = {
    "None": without(None, dtype=object),
    "NaN": without(np.nan, dtype=object),
    "NA": without(pd.NA, dtype="string"),
    "NA of integers": without(pd.NA, NUMBERS, dtype="Int64"),
    "an empty category": without(None, dtype="category"),
    "infinity": without(np.inf, 2.0 * Y),
    "continuous": np.linspace(0, 1, 20),
    "lists": pd.Series([["a", "b"] if code else ["a"] for code in Y]),
    "three dimensions": np.zeros((20, 2, 2)),
    "one label for all": np.array("ham"),
    "too few": NAMES[:-1],
}


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", ACCEPTED)
def test_classes(kind, learner):
    labels = ACCEPTED[kind]
    expected = LogisticRegression().fit(X, labels).classes_
    model = LEARNERS[learner](labels)
    assert model.classes_.tolist() == expected.tolist()
    assert model.classes_.dtype == expected.dtype
    if hasattr(model, "predict"):
        predicted = model.predict(TEXTS if learner == "text classifier" else X)
        assert predicted.dtype == expected.dtype
        assert set(predicted.tolist()) == set(expected.tolist())


@pytest.mark.parametrize("learner", [*LEARNERS, "vectorizer"])
@pytest.mark.parametrize("kind", REFUSED)
def test_errors(kind, learner):
    labels = REFUSED[kind]
    with pytest.raises((TypeError, ValueError)) as expected:
        LogisticRegression().fit(X, labels)
    learners = LEARNERS | {
        "batches": lambda y: ClsAttentionClassifier().partial_fit(X, y, classes=["ham", "spam"]),
        "vectorizer": lambda y: ContextVectorizer().fit(TEXTS, y),
    }
    refused(re.escape(str(expected.value)), learners[learner], labels, error=expected.type)


def test_the_first_batch_names_the_classes():
    message = r"first call to partial_fit needs all labels.*classes=\[\.\.\.\]"
    for model, documents in ((ClsAttentionClassifier(), X), (TextClassifier(), TEXTS)):
        refused(message, model.partial_fit, documents, Y)
        refused("greater than one", model.partial_fit, documents, ["a"] * 20, classes=["a"])
        assert not hasattr(model, "classes_")
        assert model.partial_fit(documents, Y, classes=[0, 1]).classes_.tolist() == [0, 1]


def test_a_set_of_classes_is_in_ascending_order():
    names = ["eggs", "ham", "spam", "toast"]
    indicator = np.array([Y, 1 - Y, Y, 1 - Y]).T
    model = ClsAttentionClassifier(C=1.0).partial_fit(X, indicator, classes=set(names))
    assert model.classes_.tolist() == names
    expected = ClsAttentionClassifier(C=1.0).partial_fit(X, indicator, classes=names)
    assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_label_issues_keep_the_names_of_documents():
    y = pd.Series(NAMES, index=[f"mail {number}" for number in range(20)])
    issues = label_issues(ClsAttentionClassifier(C=1.0).fit(X, y), X, y)
    assert issues.index.tolist() == y.index[issues["document"]].tolist()
    assert issues["label"].tolist() == y[issues.index].tolist()
