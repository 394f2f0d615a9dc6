"""depends_on: predictions of texts without words, compared one by one."""

import re

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import depends_on

TEXTS, TOPICS = load_requests(return_X_y=True)
LINEAR = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10)).fit(TEXTS[:400], TOPICS[:400])
ASKED = [*TEXTS[400:480], "Nothing here", "The Invoice and the invoice!"]


def test_every_number_is_that_of_the_edited_texts():
    found = depends_on(LINEAR, ASKED, ["Invoice", re.compile("refund(ed)?"), "unheard"])
    assert found.index.tolist() == ["Invoice", "refund(ed)?", "unheard"]
    changes, changed, places = [], [], []
    for at, text in enumerate(ASKED):
        edited = re.sub(r"(?i) ?\binvoice\b", "", text)
        if edited != text:
            before, after = LINEAR.predict_proba([text, edited])
            changes.append(np.abs(after - before).max())
            changed.append(len(set(LINEAR.predict([text, edited]))) == 2)
            places.append(at)
    row = found.loc["Invoice"]
    assert row["n_texts"] == len(places) > 3
    assert row["changed"] == np.mean(changed) > 0
    np.testing.assert_allclose(row["mean_change"], np.mean(changes))
    np.testing.assert_allclose(row["largest_change"], np.max(changes))
    assert row["largest_in"] == places[int(np.argmax(changes))]
    assert found.loc["unheard", ["n_texts", "largest_in"]].tolist() == [0, -1]
    assert found.loc["unheard", ["changed", "mean_change"]].isna().all()
    assert depends_on(LINEAR, ASKED, ["unheard"])["n_texts"].tolist() == [0]


def test_a_model_with_stop_words_does_not_depend_on_them():
    model = TextClassifier(stop_words=["invoice"], C=1.0).fit(TEXTS[:400], TOPICS[:400])
    without, other = depends_on(model, ASKED, ["invoice", "order"])["largest_change"]
    assert without == 0
    assert other > 0


def test_several_labels():
    Y = np.column_stack([topic == TOPICS for topic in np.unique(TOPICS)[:3]]).astype(int)
    classifier = OneVsRestClassifier(LogisticRegression(C=10))
    model = make_pipeline(TfidfVectorizer(), classifier).fit(TEXTS[:400], Y[:400])
    found = depends_on(model, ASKED, ["invoice"])
    assert 0 < found["mean_change"].iloc[0] <= found["largest_change"].iloc[0] <= 1


def test_a_word_is_no_list():
    with pytest.raises(ValueError, match=r"pass \['not'\]"):
        depends_on(LINEAR, ASKED, "not")


@pytest.mark.parametrize("word", ["New York", "", "?!", re.compile("a*")])
def test_what_is_refused(word):
    with pytest.raises(ValueError, match=r"single words|no character"):
        depends_on(LINEAR, ASKED, [word])
