"""Typical mistakes, and what a newcomer reads."""

import numpy as np
import pandas as pd
import pytest
from helpers import refused
from sklearn.feature_extraction.text import CountVectorizer

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.text import ContextVectorizer, WordVectors

TEXTS = ["a good film", "a bad film", "good fun, really", "bad, dull fun", "dull film"] * 4
LABELS = ["pos", "neg", "pos", "neg", "neg"] * 4
TABLE = pd.DataFrame({"text": TEXTS, "number": range(20)})
COUNTS = CountVectorizer().fit_transform(TEXTS)

# Documents that are no texts, and what is said.
DOCUMENTS = {
    "none": ([], "X has no documents"),
    "an empty array": (np.array([]), "X has no documents"),
    "a string": ("a good film", r"got one text: pass \[text\]"),
    "numbers": (list(range(20)), "position 0 is 0, of type int"),
    "bytes": ([*TEXTS[:-1], b"bad"], "position 19 is b'bad', of type bytes"),
    "lists of tokens": ([text.split() for text in TEXTS], "position 0 is .*, of type list"),
    "one missing": ([*TEXTS[:-1], None], "position 19 is None, of type NoneType"),
    "a missing number": (pd.Series([*TEXTS[:-1], np.nan], dtype=object), "position 19 is nan"),
    "a missing entry": (pd.Series([*TEXTS[:-1], pd.NA], dtype="string"), "position 19 is <NA>"),
}
LEARNERS = {
    "text classifier": lambda X: TextClassifier(C=1.0).fit(X, _labels(X)),
    "context": lambda X: ContextVectorizer().fit(X, _labels(X)),
    "vectors": lambda X: WordVectors(min_df=1).fit(X),
}


def _labels(X):
    return [] if isinstance(X, list | np.ndarray) and not len(X) else LABELS


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("mistake", DOCUMENTS)
def test_documents_that_are_no_texts(learner, mistake):
    X, said = DOCUMENTS[mistake]
    refused(f"(?s){said}", LEARNERS[learner], X)


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
@pytest.mark.parametrize("learner", ["text classifier", "context", "vectors"])
def test_texts_without_tokens(learner, blank):
    refused("The 20 texts have no tokens", LEARNERS[learner], [blank] * 20)
