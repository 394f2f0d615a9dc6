"""The classifier works inside scikit-learn's searches, ensembles and tools, and with its input."""

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, learning_curve
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests, make_token_classification
from sklearn_clsattn.text import ContextVectorizer

MODEL = ClsAttentionClassifier(C=1.0)
BOTH = [("attention", MODEL), ("logistic", LogisticRegression())]


@pytest.fixture(scope="module")
def documents():
    return make_token_classification(200, n_irrelevant=30, n_relevant_per_class=5, random_state=0)


@pytest.mark.parametrize(
    "ensemble",
    [
        CalibratedClassifierCV(MODEL, cv=3),
        VotingClassifier(BOTH, voting="soft"),
        StackingClassifier(BOTH, cv=3),
        BaggingClassifier(MODEL, 3, random_state=0),
        OneVsRestClassifier(MODEL),
    ],
    ids=lambda ensemble: type(ensemble).__name__,
)
def test_ensembles(ensemble, documents):
    X, y = documents
    assert ensemble.fit(X, y).score(X, y) > 0.9


def test_searches_and_scores(documents):
    X, y = documents
    assert (cross_val_score(MODEL, X, y, cv=3, scoring="neg_log_loss") > -np.log(2)).all()
    assert learning_curve(MODEL, X, y, cv=3, train_sizes=[0.5, 1.0])[2].shape == (2, 3)
    search = GridSearchCV(MODEL, {"C": [1e-6, 1.0], "attend_cls": [True, False]}, cv=3)
    search.set_params(scoring="neg_log_loss").fit(X, y)
    assert search.best_params_["C"] == 1.0  # values that are nearly 0 say nothing


def test_a_search_with_routed_weights(documents):
    X, y = documents
    with sklearn.config_context(enable_metadata_routing=True):
        model = ClsAttentionClassifier().set_fit_request(sample_weight=True)
        model = model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3)
        assert search.fit(X, y, sample_weight=np.arange(1, 201)).score(X, y) > 0.9


def test_selection_and_inspection(documents):
    X, y = documents
    selector = SelectFromModel(MODEL, importance_getter="token_importance_", max_features=5)
    assert selector.fit_transform(X, y).shape == (200, 5)
    assert selector.get_support()[:10].sum() == 5  # the first ten are relevant
    frame = pd.DataFrame(X.toarray()).add_prefix("word ")
    model = ClsAttentionClassifier(C=1.0).fit(frame, y)
    found = permutation_importance(model, frame, y, n_repeats=2, random_state=0)
    assert found.importances_mean.argmax() < 10


@pytest.mark.parametrize(
    "converted",
    [
        lambda X: X.toarray(),
        lambda X: X.tocsc(),
        lambda X: X.tocoo(),
        lambda X: torch.as_tensor(X.toarray()),
        lambda X: pd.DataFrame(X.toarray()).add_prefix("word "),
    ],
    ids=["dense", "csc", "coo", "tensor", "frame"],
)
def test_every_kind_of_input_gives_the_same_model(converted, documents):
    X, y = documents
    expected = ClsAttentionClassifier(C=1.0).fit(X, y).predict_proba(X)
    same = converted(X)
    found = ClsAttentionClassifier(C=1.0).fit(same, y).predict_proba(same)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_numbers_beside_text():
    requests = load_requests()
    frame = pd.DataFrame({"message": requests.data[:300]})
    frame["length"] = frame["message"].str.len()
    columns = ColumnTransformer(
        [
            ("words", ContextVectorizer(), "message"),
            ("numbers", KBinsDiscretizer(10, strategy="uniform"), ["length"]),
        ],
        transformer_weights={"numbers": 3.0},
    )
    model = make_pipeline(columns, ClsAttentionClassifier(C=1.0, sublinear_counts=False))
    assert model.fit(frame, requests.mood[:300]).score(frame, requests.mood[:300]) > 0.9
