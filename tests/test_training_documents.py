"""Decisions as sums over training documents: additive, solved for, and of the right sign."""

import numpy as np
import pytest
from helpers import data
from numpy.testing import assert_allclose
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import training_documents
from sklearn_clsattn.paper import EmbeddingClassifier


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "parameters", [{}, {"attend_cls": False}, {"token_scaling": None}, {"C": "auto"}]
)
def test_terms_sum_to_the_decisions_of_a_model_that_has_converged(n_classes, parameters):
    X, y = data(n_classes)
    model = ClsAttentionClassifier(tol=1e-12, max_iter=5000, **parameters).fit(X, y)
    decision = model.decision_function(X[:4])
    gaps = []
    for code in range(n_classes):
        terms = training_documents(model, X, y, X[:4], target=code, top=3)
        expected = decision[:, code] if n_classes > 2 else (2 * code - 1) * decision
        assert_allclose(terms.groupby("document")["adds"].sum(), expected, atol=1e-3)
        assert terms.attrs["gradient"] < 1e-8
        assert terms.attrs["change"] < 1e-3
        gaps.append(np.abs(terms.groupby("document")["adds"].sum() - expected).max())
    # The check is what it says: how far the solved model's decisions are from the fit's.
    assert_allclose(max(gaps), terms.attrs["change"], atol=1e-6)


def test_documents_speak_for_their_own_class():
    X, y = data()
    names = np.array(["bad", "good"])[y]
    model = ClsAttentionClassifier().fit(X, names)
    terms = training_documents(model, X, names, X[:5], top=len(y))
    assert terms["target"].groupby(terms["document"]).first().tolist() == (
        model.predict(X[:5]).tolist()
    )
    listed = terms[terms["kind"] == "training"]
    assert ((listed["adds"] > 0) == (listed["label"] == listed["target"])).all()
    others = terms.loc[terms["kind"] == "others", "adds"]
    assert_allclose(others, 0.0, atol=1e-12)  # none is left


def test_weights_are_repetitions():
    X, y = data(n_documents=30)
    weights = np.arange(30) % 3.0
    rows = np.repeat(np.arange(30), weights.astype(int))
    how = {"tol": 1e-12, "max_iter": 5000}
    weighted = ClsAttentionClassifier(**how).fit(X, y, sample_weight=weights)
    repeated = ClsAttentionClassifier(**how).fit(X[rows], y[rows])
    one = training_documents(weighted, X, y, X[:1], target=1, top=40, sample_weight=weights)
    two = training_documents(repeated, X[rows], y[rows], X[:1], target=1, top=80)
    two = two[two["kind"] == "training"]
    expected = two.groupby(rows[two["training"]])["adds"].sum()
    found = one[one["kind"] == "training"].set_index("training")["adds"]
    assert_allclose(found.sort_index(), expected[found.sort_index().index], atol=1e-4)


def test_pipelines_and_what_is_refused():
    texts, y = make_token_classification(100, as_text=True, random_state=0)
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, y)
    terms = training_documents(model, texts, y, texts[:2])
    assert terms["document"].unique().tolist() == [0, 1]
    assert {type(label) for label in terms["label"]} == {int, type(None)}
    with pytest.raises(ValueError, match="one of the classes"):
        training_documents(model, texts, y, texts[:2], target="good")
    with pytest.raises(ValueError, match="was fitted on"):
        training_documents(model, texts[:90], y[:90], texts[:2])
    with pytest.raises(TypeError, match="ClsAttentionClassifier"):
        training_documents(EmbeddingClassifier(), texts, y, texts[:2])
