"""Labels to look at: margins from one fit are near those of fits without each document."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import data, generated_texts, refused
from pandas.testing import assert_frame_equal
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import label_issues
from sklearn_clsattn.training import leverages


def margins_of(decision, codes):
    """Return the margins of classes by the decisions of several documents."""
    if np.ndim(decision) == 1:
        return (2 * codes - 1) * decision
    label = codes[:, None] == np.arange(decision.shape[1])
    return decision[label] - np.where(label, -np.inf, decision).max(axis=1)


@pytest.mark.parametrize(
    ("n_classes", "parameters"),
    [(2, {}), (3, {}), (2, {"attend_cls": False}), (2, {"token_scaling": None})],
)
def test_margins_are_near_those_of_fits_without_each_document(n_classes, parameters):
    X, y = data(n_classes, n_documents=180, n_tokens=40)
    wrong = np.random.default_rng(0).permutation(len(y))[:15]
    y[wrong] = (y[wrong] + 1) % n_classes
    model = ClsAttentionClassifier(C=1.0, tol=1e-6, max_iter=1000, **parameters).fit(X, y)
    issues = label_issues(model, X, y).set_index("document")["margin"].sort_index().to_numpy()
    chosen = np.random.default_rng(1).permutation(len(y))[:12]
    refitted = []
    for i in chosen:
        rest = np.arange(len(y)) != i
        refitted.append(model.fit(X[rest], y[rest]).decision_function(X[[i]])[0])
    model.fit(X, y)
    codes = y[chosen]
    exact = margins_of(np.array(refitted), codes)
    seen = margins_of(model.decision_function(X[chosen]), codes)
    found = issues[chosen]
    # Nearer than the model that has seen the documents, in all and for most of them.
    assert np.abs(found - exact).mean() < 0.5 * np.abs(seen - exact).mean()
    assert np.corrcoef(found, exact)[0, 1] > 0.98
    assert abs(np.mean(found - exact)) < 0.4 * abs(np.mean(seen - exact))


def test_margins_are_near_where_words_come_together():
    rng = np.random.default_rng(0)
    messages = ["where is my {}", "the {} came late and broken", "great service, love the {}"]
    kinds = rng.integers(3, size=240)
    texts = [messages[k].format(rng.choice(["sofa", "lamp", "rug", "desk"])) for k in kinds]
    texts = [f"{text} {i % 80}" for i, text in enumerate(texts)]
    y = kinds.copy()
    y[:8] = (y[:8] + 1) % 3
    X = CountVectorizer(ngram_range=(1, 2)).fit_transform(texts)
    model = ClsAttentionClassifier(C=1.5).fit(X, y)
    issues = label_issues(model, X, y, top=8)
    assert set(issues["document"]) == set(range(8))
    for document, margin in zip(issues["document"], issues["margin"], strict=True):
        rest = np.arange(len(y)) != document
        refit = ClsAttentionClassifier(C=1.5).fit(X[rest], y[rest])
        exact = margins_of(refit.decision_function(X[[document]]), y[[document]])[0]
        assert abs(margin - exact) < 1.0


def test_leverages_are_those_of_the_inverse_curvature_of_other_documents(monkeypatch):
    rng = np.random.default_rng(0)
    n, n_tokens, n_outputs = 25, 9, 2
    attention = sp.random_array((n, n_tokens), density=0.5, rng=rng, format="csr")
    cls_attention = 1.0 - attention.sum(axis=1)
    values, value_scales = rng.normal(size=(2, n_tokens, n_outputs))
    means = attention @ values + rng.normal(size=(n, n_outputs))
    curvature = rng.uniform(size=(n, n_outputs))
    arguments = attention, cls_attention, means, values, value_scales, curvature, (2.0, 0.5, 3.0)
    dense = attention.toarray()
    exact = np.empty((n, n_outputs))
    for k in range(n_outputs):
        by_score = dense * (values[:, k] - means[:, [k]])
        by_value = dense * value_scales[:, k]
        by_cls_score = -cls_attention * means[:, k]
        J = np.column_stack([by_score, by_value, by_cls_score, np.ones(n)])
        penalty = np.diag([2.0] * n_tokens + [0.5] * n_tokens + [3.0, 0.0])
        for i in range(n):
            others = np.arange(n) != i
            H = penalty + J[others].T * curvature[others, k] @ J[others]
            exact[i, k] = J[i] @ np.linalg.solve(H, J[i])
    np.testing.assert_allclose(leverages.leverages(*arguments), exact, rtol=1e-8)
    # Some documents stand for the others.
    monkeypatch.setattr(leverages, "SAMPLE_SIZE", 24)
    estimated = leverages.leverages(*arguments)
    assert np.median(np.abs(np.log(estimated / exact))) < 0.5
    assert np.corrcoef(np.log(estimated).ravel(), np.log(exact).ravel())[0, 1] > 0.8


def test_margins_with_groups_are_near_those_of_fits_without_each_group():
    X, y = data(n_documents=180, n_tokens=40)
    order = np.argsort(y, kind="stable")
    X, y, groups = X[order], y[order], np.arange(180) // 3
    own = sp.csr_array((np.ones(180), (np.arange(180), groups)))  # a token of each group alone
    X = sp.hstack([X, own], format="csr")
    model = ClsAttentionClassifier(C=1.0).fit(X, y, groups=groups)
    issues = label_issues(model, X, y, groups=groups).set_index("document")["margin"].sort_index()
    chosen = np.random.default_rng(0).permutation(len(y))[:12]
    refitted = []
    for i in chosen:
        rest = groups != groups[i]
        refit = ClsAttentionClassifier(C=1.0).fit(X[rest], y[rest], groups=groups[rest])
        refitted.append(refit.decision_function(X[[i]])[0])
    exact = margins_of(np.array(refitted), y[chosen])
    seen = margins_of(model.decision_function(X[chosen]), y[chosen])
    assert np.abs(issues[chosen] - exact).mean() < 0.5 * np.abs(seen - exact).mean()
    without = label_issues(model, X, y).set_index("document")["margin"].sort_index()
    assert np.abs(issues[chosen] - exact).mean() < 0.7 * np.abs(without[chosen] - exact).mean()


def test_wrong_labels_come_first():
    X, y = make_token_classification(600, random_state=0)
    rng = np.random.default_rng(0)
    wrong = rng.uniform(size=len(y)) < 0.05
    labels = np.where(wrong, 1 - y, y)
    names = np.array(["bad", "good"])[labels]
    model = ClsAttentionClassifier().fit(X, names)
    issues = label_issues(model, X, names)
    assert issues["margin"].is_monotonic_increasing
    assert sorted(issues["document"]) == list(range(len(y)))
    margins = issues.set_index("document")["margin"].sort_index()
    seen = margins_of(model.decision_function(X), labels)
    assert roc_auc_score(wrong, -margins) >= max(0.95, roc_auc_score(wrong, -seen))
    first = issues.iloc[0]
    assert first["suggested"] != first["label"]
    assert first["probability"] == pytest.approx(1 / (1 + np.exp(-first["margin"])))
    assert len(label_issues(model, X, names, top=5)) == 5


def test_pipelines_weights_and_several_classes():
    texts, y = generated_texts(200, n_classes=3, random_state=0)
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifier(C="auto")).fit(texts, y)
    assert set(label_issues(model, texts, y)["suggested"]) <= {0, 1, 2}
    X, weights = model[0].transform(texts), np.arange(200) % 3.0
    weighted = ClsAttentionClassifier().fit(X, y, sample_weight=weights)
    issues = label_issues(weighted, X, y, sample_weight=weights).set_index("document")
    # A document that weighs nothing is judged as it is predicted.
    free = np.flatnonzero(weights == 0)
    expected = margins_of(weighted.decision_function(X), y)[free]
    assert np.allclose(issues.loc[free, "margin"], expected, atol=1e-6)


def test_texts_are_read_as_in_the_fit():
    rng = np.random.default_rng(0)
    words = np.array(["late", "broken", "lovely", "great"])[rng.integers(4, size=200)]
    texts = [f"item {1000 + i} is {word}" for i, word in enumerate(words)]  # copies by characters
    labels = np.isin(words, ["lovely", "great"])
    model = TextClassifier(min_df=1).fit(texts, labels)
    expected = label_issues(model.classifier_, model.vectorizer_._bags_of(texts), labels)
    assert_frame_equal(label_issues(model, texts, labels), expected)


def test_other_data_and_models_are_refused():
    X, y = data()
    model = ClsAttentionClassifier().fit(X, y)
    refused("was fitted on", label_issues, model, X[:-5], y[:-5])
    refused("inconsistent", label_issues, model, X, y[:-5])
    refused("not among the classes", label_issues, model, X, y + 1)
    other = LogisticRegression().fit(X, y)
    refused("ClsAttentionClassifier", label_issues, other, X, y, error=TypeError)
    refused("not fitted", label_issues, ClsAttentionClassifier(), X, y, error=NotFittedError)
    texts, labels = ["good fun", "bad film", "good film", "bad fun"] * 5, [1, 0, 1, 0] * 5
    answers = np.eye(2)[labels]
    taught = TextClassifier(C=1.0).fit(texts, labels, unlabeled=texts, teacher=answers)
    refused("had a teacher", label_issues, taught, texts, labels)


def test_labels_may_be_a_column():
    X, y = data(n_documents=60)
    model = ClsAttentionClassifier(C=1.0).fit(X, y)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        issues = label_issues(model, X, y[:, np.newaxis])
    assert_frame_equal(issues, label_issues(model, X, y))
