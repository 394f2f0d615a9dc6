"""Models as ONNX give the probabilities that they give here."""

import sys

import numpy as np
import pytest
from helpers import refused
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.datasets import load_requests, make_token_classification
from sklearn_clsattn.saving import to_onnx
from sklearn_clsattn.text import WORDS_AND_PUNCTUATION, TokenVectorizer

skl2onnx = pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")

TEXTS = [
    *("A boring story, don't go", "CHARMING actors: naïve, über-fun", "a b c", "", "  ", "x"),
    *("映画 is good", "no well-known word of it", "boring boring boring charming", "café 2nd_1"),
]


def check(model, data, /, **inputs):
    """Require onnxruntime's labels and probabilities to be the model's; return the labels."""
    session = onnxruntime.InferenceSession(
        to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    labels, probabilities = session.run(None, inputs)
    expected = model.predict_proba(data)
    np.testing.assert_allclose(probabilities, expected, atol=1e-6)
    clear = np.sort(expected, axis=1)[:, -2:] @ [-1, 1] > 1e-9
    np.testing.assert_array_equal(labels[clear], model.predict(data)[clear])
    return labels


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("parameters", [{}, {"sublinear_counts": False, "attend_cls": False}])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1500.0])
def test_counts_and_weights(n_classes, parameters, scale):
    X, y = make_token_classification(n_samples=200, n_classes=n_classes, random_state=0)
    X = (X.toarray() * scale).astype(np.float32)
    X[:3] = 0  # documents without tokens
    labels = check(ClsAttentionClassifier(**parameters).fit(X, y), X, X=X)
    assert labels.dtype == np.int64


@pytest.mark.parametrize("lowercase", [True, False])
def test_words_without_context(lowercase):
    texts, y = load_requests(return_X_y=True)
    plain = {"context": False, "characters": None, "normalize": None, "lowercase": lowercase}
    model = TextClassifier(**plain).fit(texts[:600], y[:600])
    check(model, texts[600:700], texts=texts[600:700])
    chinese = TextClassifier(**plain).fit(["好 film", "bad"], [0, 1])
    refused("scripts such as Chinese", to_onnx, chinese)


def test_vectors_of_tokens():
    X, y = make_token_classification(n_samples=100, random_state=0)
    G = np.random.default_rng(0).normal(size=(X.shape[1], 5))
    model = ClsAttentionClassifier(token_vectors_scale=1.0).fit(X, y, token_vectors=G)
    check(model, X, X=X.toarray().astype(np.float32))


def test_scores_far_apart():
    X, y = make_token_classification(n_samples=100, random_state=2)
    model = ClsAttentionClassifier().fit(X, y)
    model.attention_scores_ = np.linspace(-250.0, 250.0, X.shape[1])
    X = X.toarray()
    check(model, X, X=X.astype(np.float32))
    model.attention_scores_ *= 2
    refused("Attention scores differ by up to 1000", to_onnx, model)


VECTORIZERS = [
    CountVectorizer(ngram_range=(1, 3), binary=True),
    CountVectorizer(ngram_range=(2, 2), lowercase=False),
    CountVectorizer(token_pattern=WORDS_AND_PUNCTUATION, ngram_range=(1, 2), min_df=2),
    TokenVectorizer(token_pattern=r"(?u)\b\w+(?:'\w+)?\b", ngram_range=(1, 2)),
    TokenVectorizer(),
    TfidfVectorizer(),
]


@pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=str)
def test_texts(vectorizer):
    texts, y = make_token_classification(n_samples=150, as_text=True, random_state=0)
    texts, y = [*texts, *TEXTS, *TEXTS], np.array(["no", "yes"])[[*y, *[0, 1] * len(TEXTS)]]
    model = make_pipeline(vectorizer, ClsAttentionClassifier()).fit(texts, y)
    for some in (texts, TEXTS[3:5], ["unknown"]):
        check(model, some, texts=np.array(some, dtype=object))


def test_vectorizers_without_a_counterpart():
    for vectorizer, message in [
        (TextClassifier(min_df=1)[0], "context, characters and normalize"),
        (TfidfVectorizer(sublinear_tf=True), "skl2onnx computes"),
        (CountVectorizer(analyzer="char_wb"), "analyzer="),
        (CountVectorizer(stop_words=["a"]), "stop_words="),
        (CountVectorizer(token_pattern="[a-z]+"), "token_pattern='.a-z.+'"),
        (HashingVectorizer(norm=None, alternate_sign=False), "not support HashingVectorizer"),
    ]:
        model = make_pipeline(vectorizer, ClsAttentionClassifier())
        refused(message, to_onnx, model.fit(["so good", "so bad"], [1, 0]))


def test_other_models_labels_and_a_missing_package(monkeypatch):
    X = np.eye(2)
    model, other = ClsAttentionClassifier(), LogisticRegression().fit(X, [0, 1])
    refused("got LogisticRegression", to_onnx, other, error=TypeError)
    refused("not fitted", to_onnx, model)
    refused("integers or strings, got float64", to_onnx, model.fit(X, [1.0, 2.0]))
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    refused(r"pip install sklearn-clsattn\[onnx\]", to_onnx, model, error=ImportError)
