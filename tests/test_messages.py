"""Typical mistakes, and what a newcomer reads."""

import numpy as np
import pandas as pd
import pytest
from helpers import refused
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier, TokenImportanceTransformer
from sklearn_clsattn.inspection import ModelReport, explain, label_issues
from sklearn_clsattn.text import ContextVectorizer, TokenVectorizer, WordVectors

TEXTS = ["a good film", "a bad film", "good fun, really", "bad, dull fun", "dull film"] * 4
LABELS = ["pos", "neg", "pos", "neg", "neg"] * 4
TABLE = pd.DataFrame({"text": TEXTS, "number": range(20)})
COUNTS = CountVectorizer().fit_transform(TEXTS)

# Documents that are no texts, and what is said.
DOCUMENTS = {
    "none": ([], "X has no documents"),
    "an empty array": (np.array([]), "X has no documents"),
    "a string": ("a good film", "text"),
    "a table": (TABLE, "got a data frame: pass a column"),
    "a table of one column": (TABLE[["text"]], r"select it by 'text' instead of \['text'\]"),
    "an array of one column": (np.array(TEXTS)[:, None], r"pass one column, X\[:, 0\]"),
    "counts": (COUNTS, "got a sparse matrix: pass texts"),
    "a dictionary": (dict(enumerate(TEXTS)), "pass its values"),
    "nothing": (None, "got None.*pass a list of texts"),
    "a number": (3, "got 3.*pass a list of texts"),
    "numbers": (list(range(20)), "position 0 is 0, of type int"),
    "lists of tokens": ([text.split() for text in TEXTS], "join its words"),
    "one missing": ([*TEXTS[:-1], None], "position 19 is None: remove it"),
}
LEARNERS = {
    "text classifier": lambda X: TextClassifier(C=1.0).fit(X, _labels(X)),
    "context": lambda X: ContextVectorizer().fit(X, _labels(X)),
    "tokens": lambda X: TokenVectorizer().fit_transform(X),
    "vectors": lambda X: WordVectors(min_df=1).fit(X),
}


def _labels(X):
    return [] if isinstance(X, list | np.ndarray) and not len(X) else LABELS


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("mistake", DOCUMENTS)
def test_documents_that_are_no_texts(learner, mistake):
    X, said = DOCUMENTS[mistake]
    if learner == "tokens" and said == "X has no documents":
        said = "empty vocabulary"  # as CountVectorizer says
    refused(f"(?s){said}", LEARNERS[learner], X)


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
@pytest.mark.parametrize("learner", ["text classifier", "context", "vectors"])
def test_texts_without_tokens(learner, blank):
    refused("The 20 texts have no tokens", LEARNERS[learner], [blank] * 20)


@pytest.mark.parametrize("vectorizer", [TokenVectorizer(), ContextVectorizer()])
@pytest.mark.parametrize("of_names", [True, False])
def test_a_list_of_one_column_in_a_column_transformer(vectorizer, of_names):
    column, X = ("text", TABLE) if of_names else (0, TABLE.to_numpy())
    transformer = ColumnTransformer([("words", vectorizer, [column])])
    refused(rf"select it by {column!r} instead of \[{column!r}\]", transformer.fit, X, LABELS)


SWAPPED = {
    "lists": (LABELS, TEXTS),
    "columns": (pd.Series(LABELS), TABLE["text"]),
    "arrays": (np.array(LABELS), np.array(TEXTS, dtype=object)),
    "numbers": ([0, 1] * 10, TEXTS),
}


@pytest.mark.parametrize("name", SWAPPED)
@pytest.mark.parametrize("vectorizer", [TokenVectorizer(), ContextVectorizer()])
def test_swapped_texts_and_labels(name, vectorizer):
    X, y = SWAPPED[name]
    counted = make_pipeline(vectorizer, ClsAttentionClassifier(C=1.0))
    refused("X and y seem to be swapped: y is texts", counted.fit, X, y)
    refused("X and y seem to be swapped", TextClassifier().fit, X, y)


@pytest.mark.parametrize("y", [COUNTS, COUNTS.toarray()])
@pytest.mark.parametrize("kind", [ClsAttentionClassifier, TokenImportanceTransformer])
def test_swapped_counts_and_labels(kind, y):
    refused("X and y seem to be swapped: y is a matrix", kind().fit, LABELS, y)


def test_texts_as_labels_of_counts():
    texts = [f"the film number {at} is good" for at in range(20)]
    refused("20 different texts for 20 documents", ClsAttentionClassifier().fit, COUNTS, texts)


@pytest.mark.parametrize(
    "y", [["a", "b"] * 10, ["very good", "rather bad"] * 10, [f"topic {at}" for at in range(20)]]
)
def test_what_is_not_swapped(y):
    TokenVectorizer().fit_transform(TEXTS, y)
    TokenVectorizer().fit_transform([f"{text} {at}" for at, text in enumerate(TEXTS)], y)


def test_documents_of_one_class_have_no_label_issues():
    model = TextClassifier(min_df=1, C=1.0).fit(TEXTS, LABELS)
    one_class = [text for text, label in zip(TEXTS, LABELS, strict=True) if label == "pos"]
    message = r"all labels in y are 'pos'.*all training documents"
    refused(message, label_issues, model, one_class, ["pos"] * len(one_class))


@pytest.mark.parametrize("wrong", [None, 3])
def test_what_is_explained_and_reported_is_documents(wrong):
    model = TextClassifier(min_df=1, C=1.0).fit(TEXTS, LABELS)
    message = "expected a sequence of documents"
    refused(message, explain, model, wrong)
    refused(message, ModelReport.from_estimator, model, wrong, LABELS)
