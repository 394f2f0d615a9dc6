"""Vectors of tokens: the fit against a plain minimisation, and words of texts without labels."""

import gzip
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import core_documents, data, generated_texts, put, refused
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn._bags import Bags, TokenVectors
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.text import WordVectors, _word_vectors
from sklearn_clsattn.training.fit import fit_attention

REQUESTS = load_requests()
TEXTS, TOPICS = REQUESTS.data[:600], REQUESTS.topic[:600]
VECTORS = WordVectors(n_components=30).fit(REQUESTS.data)
REVIEWS, RATINGS = generated_texts(1500, relevant_share=0.2, document_length=12, random_state=0)


def problem(n_classes=2, d=3):
    X, y = data(n_classes, n_documents=50)
    G = np.random.default_rng(1).normal(size=(X.shape[1], d))
    G[::5] = 0.0
    return sp.csr_array(X, dtype=np.float64), y, G


# The objective and its minimum


def test_a_fit_is_a_plain_minimisation():
    """Without token scaling, for which values have no prior mean and scores start at 0."""
    X, y, G = problem()
    n, V, d, gamma, C, attention_C = *X.shape, G.shape[1], 1.5, 2.0, 0.1
    fit = fit_attention(
        core_documents(X, y),
        C=C,
        attention_C=attention_C,
        token_scaling=None,
        vectors=TokenVectors.from_rows(G),
        vector_scale=gamma,
        max_iter=5000,
        tol=1e-12,
    )
    model = fit.model
    # The units of training: <cls> weighs what the mean document does.
    entry, length = X.data.mean(), X.sum() / n
    scale, C_unit = 2 * model.cls_weight, 1 / (entry**2 * np.sqrt(length / entry))
    lengths = np.linalg.norm(G, axis=1, keepdims=True)
    rows = np.divide(G, lengths, out=np.zeros_like(G), where=lengths > 0)
    counts, sign = X.toarray(), 2.0 * y - 1.0

    def parts(x):
        u, t, w, (a, beta) = np.split(x, [V, 2 * V, 2 * V + d])
        values = scale * (t + gamma * rows @ w)
        masses = counts * np.exp(u)
        total = model.cls_weight * np.exp(a) + masses.sum(axis=1)
        penalties = (u @ u / attention_C + (t @ t + w @ w) / (C * C_unit)) / n + a * a
        return beta + masses @ values / total, penalties

    def loss(x):
        decision, penalties = parts(x)
        return np.mean(np.logaddexp(0.0, -sign * decision)) + penalties / 2

    start = np.zeros(2 * V + d + 2)
    found = minimize(loss, start, method="L-BFGS-B", options={"maxfun": 10**6, "ftol": 1e-15})
    assert_allclose(model.outputs(Bags(X))[:, 0], parts(found.x)[0], atol=2e-3)
    assert fit.loss_curve[-1] <= found.fun + 1e-9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_embeddings_have_the_vectors_and_unseen_tokens_what_these_say(n_classes):
    X, y, G = problem(n_classes)
    wider = sp.hstack([X, sp.csr_array((X.shape[0], 3))], format="csr")
    G = np.vstack([G, G[[1, 2]], np.zeros((1, 3))])
    model = ClsAttentionClassifier().fit(wider, y, token_vectors=G)
    assert model.token_vectors_scale_ > 0
    E, p, v = model.token_embeddings_, model.cls_embedding_, model.output_vector_
    assert E.shape == (wider.shape[1], len(p))
    assert_allclose(E @ p, model.attention_scores_, atol=1e-12)
    assert_allclose((E @ v.T).T, model.token_values_, atol=1e-9)
    values = np.atleast_2d(model.token_values_)
    assert values[:, -3:-1].any()
    assert not values[:, -1].any()
    # An unseen token's value is its vector's product with what was learned.
    unit = G[-3:-1] / np.linalg.norm(G[-3:-1], axis=1, keepdims=True)
    expected = np.atleast_2d(model.vector_weights_) @ unit.T / 0.1
    assert_allclose(values[:, -3:-1], expected, rtol=1e-5)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(wider), model.predict_proba(wider))
    assert_array_equal(again.token_embeddings_, E)


def test_scale_0_is_a_fit_without_vectors():
    X, y, G = problem(3)
    settings = {"C": 1.0, "attention_C": 0.03, "tol": 1e-10, "max_iter": 2000}
    without = fit_attention(core_documents(X, y), **settings)
    vectors = TokenVectors.from_rows(G)
    none = fit_attention(core_documents(X, y), vectors=vectors, vector_scale=0.0, **settings)
    assert_allclose(none.model.outputs(Bags(X)), without.model.outputs(Bags(X)), atol=1e-4)
    assert not none.attributes["vector_weights_"].any()


def test_the_scale_is_one_of_few():
    X, y, G = problem(3)
    for C in (1.0, "auto"):
        model = ClsAttentionClassifier(C=C).fit(X, y, token_vectors=G)
        assert 0 <= model.token_vectors_scale_ <= 2
    refitted = model.fit(X, y)
    assert not hasattr(refitted, "vector_weights_")


def test_wrong_vectors_are_refused():
    X, y, _ = problem()
    model = ClsAttentionClassifier()
    refused("4 rows, but X has", model.fit, X, y, token_vectors=np.ones((4, 2)))
    refused("NaN", model.fit, X, y, token_vectors=np.full((36, 2), np.nan))
    refused("Expected 2D array", model.fit, X, y, token_vectors=np.ones(36))
    assert not hasattr(model, "classes_")


# Vectors of words


def test_short_texts_are_decomposed_by_mutual_information():
    texts = ["a b c", "a b", "b c d", "c d", "a d e"] * 2
    vectors = WordVectors(n_components=4, min_df=1).fit(texts)
    B = CountVectorizer(binary=True, token_pattern=r"\w+").fit_transform(texts).toarray()
    together = (B.T @ B).astype(float)
    np.fill_diagonal(together, 0)
    total = together.sum(axis=1)
    with np.errstate(divide="ignore"):
        information = np.log(together * total.sum() / np.outer(total, total)).clip(min=0)
    _, sizes, rows = np.linalg.svd(information)
    expected = rows[:4].T * np.sqrt(sizes[:4])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert vectors.words_.tolist() == list("abcde")
    # The words in most texts are kept.
    assert WordVectors(min_df=1, max_words=4).fit(texts).words_.tolist() == list("abcd")
    assert_allclose(vectors.vectors_ @ vectors.vectors_.T, expected @ expected.T, atol=1e-4)


def test_they_are_the_same_again_near_where_texts_are_alike_and_kept_in_clones():
    again = WordVectors(n_components=30).fit(list(REQUESTS.data))
    assert_array_equal(again.vectors_, VECTORS.vectors_)
    assert_allclose(np.linalg.norm(VECTORS.vectors_, axis=1), 1.0, rtol=1e-5)
    assert clone(VECTORS) is VECTORS
    assert VECTORS.vectors_.dtype == np.float32
    (nearest, cosine), *others = VECTORS.most_similar("parcel", k=3)
    assert len(others) == 2
    assert nearest != "parcel"
    assert 0 < cosine <= 1
    long = WordVectors(n_components=5, min_df=1).fit([" ".join(f"w{i}" for i in range(80))] * 3)
    assert long.vectors_.shape[1] <= 5


def test_of_very_long_texts_evenly_spaced_ones_are_used(monkeypatch):
    texts = REQUESTS.data[:400]
    expected = WordVectors(n_components=5).fit(texts[::2])
    monkeypatch.setattr(_word_vectors, "_MOST_CHARACTERS", sum(map(len, texts)) / 2)
    assert_array_equal(WordVectors(n_components=5).fit(texts).vectors_, expected.vectors_)


def test_files_and_mappings(tmp_path):
    plain = put(tmp_path / "glove.txt", "a 0.3 4e-1\nb -1 0\n")
    read = WordVectors.from_file(plain)
    assert read.words_.tolist() == ["a", "b"]
    assert_allclose(read.vectors_, [[0.6, 0.8], [-1, 0]], rtol=1e-6)
    zipped = tmp_path / "word2vec.txt.gz"
    zipped.write_bytes(gzip.compress(b"4 2\nGood 1 0\ngood 0 1\n. 1 . 3 0\nbad 0 -2\nbad 1 1\n"))
    found = WordVectors.from_file(zipped).of(["good", "bad", "?", ". 1 ."])
    assert found.tolist() == [[1, 0], [0, -1], [0, 0], [1, 0]]
    assert WordVectors.from_file(zipped, words=["BAD"]).words_.tolist() == ["bad"]
    numbers = put(tmp_path / "numbers.txt", "2 1\na 1\n7 3\n")  # only the first line is a header
    assert WordVectors.from_file(numbers).words_.tolist() == ["a", "7"]
    some = WordVectors.from_mapping({"a": [1, 0], "b": [1, 0], "": [0, 1], "zero": [0, 0]})
    assert some.words_.tolist() == ["a", "b"]
    assert some.most_similar("b") == [("a", 1.0)]
    keyed = SimpleNamespace(index_to_key=["a", "b"], vectors=np.eye(2))
    static = SimpleNamespace(tokens=["a", "b"], embedding=np.eye(2))
    for other in (keyed, static, {"a": [1, 0], "b": [0, 1]}):
        assert WordVectors.from_mapping(other).of(["b"]).tolist() == [[0, 1]]


def test_what_is_wrong_is_said(tmp_path):
    refused("got one text", WordVectors().fit, "one text")
    refused("got one text", WordVectors.from_mapping({"good": [1.0, 0.0]}).of, "good")
    refused("Only 0 words", WordVectors().fit, ["a b", "c"])
    faces = ["😀", "😡"] * 4
    refused("have no tokens", WordVectors().fit, faces)
    assert TextClassifier().fit(faces, [0, 1] * 4, unlabeled=faces).score(faces, [0, 1] * 4) == 1
    refused("Only 1 words", WordVectors(min_df=2).fit, ["a b", "a c"])
    refused("got list", WordVectors.from_mapping, [1], error=TypeError)
    refused("finite vectors", WordVectors.from_mapping, {"a": [np.inf]})
    refused("'zzz' has no vector", VECTORS.most_similar, "zzz")
    unfitted = TextClassifier(word_vectors=WordVectors())
    refused("Only 0 words occur in at least 3 texts", unfitted.fit, ["a", "b"], [0, 1])
    few = TextClassifier().fit(["a", "b"], [0, 1], unlabeled=["c", "d"])  # no vectors are learned
    alone = TextClassifier().fit(["a", "b"], [0, 1])
    assert_array_equal(few.predict_proba(["a", "c"]), alone.predict_proba(["a", "c"]))
    path = put(tmp_path / "broken.txt", "a 1 2\nb 1\n")
    message = r"line 2 of .* has 1 numbers after .* expected 2"
    refused(message, WordVectors.from_file, path)
    path = put(tmp_path / "words.txt", "good\nbad\n")
    refused("has 0 numbers .* expected some", WordVectors.from_file, path)


# Texts


def test_few_labels_and_many_texts():
    texts, y = REVIEWS[:30], RATINGS[:30]
    vectors = WordVectors(n_components=20).fit(REVIEWS)
    plain = TextClassifier(C=1.0).fit(texts, y)
    brought = TextClassifier(C=1.0, word_vectors=vectors).fit(texts, y)
    learned = TextClassifier(C=1.0).fit(texts, y, unlabeled=REVIEWS[30:])
    own = WordVectors(n_components=5)
    other = TextClassifier(C=1.0, word_vectors=own).fit(texts, y, unlabeled=REVIEWS[30:])
    assert other.vectorizer_.word_vectors_.vectors_.shape[1] == 5
    assert not hasattr(own, "vectors_")
    assert plain.vectorizer_.word_vectors_ is None
    for model in (brought, learned):
        assert model.score(REVIEWS[30:], RATINGS[30:]) > plain.score(REVIEWS[30:], RATINGS[30:])
        assert set(model.vectorizer_.word_vectors_.words_) <= set(model.vectorizer_.vocabulary_)
    both = TextClassifier(C=1.0, word_vectors=vectors).fit(texts, y, unlabeled=REVIEWS[30:])
    assert both.vectorizer_.word_vectors_.vectors_.shape[1] == 70
    assert both.score(REVIEWS[30:], RATINGS[30:]) > 0.7


@pytest.mark.parametrize("characters", [None, (2, 3)])
def test_explanations_say_what_comes_from_vectors(characters):
    vectors = {"great": [1, 0.1], "terrific": [1, 0.2], "awful": [-1, 0.1], "dire": [-1, 0.2]}
    model = TextClassifier(
        word_vectors=WordVectors.from_mapping(vectors),
        characters=characters,
        C=1.0,
    ).fit(["great fun", "a great film", "awful film", "awful and long"] * 5, list("ppnn") * 5)
    explanation = explain(model, ["a terrific film"])
    frame = explanation.to_frame(target="p" if explanation.targets[0] == "p" else None)
    terms = frame.set_index("token")
    assert_allclose(terms["contribution"].sum(), explanation.decision[0, 0])
    # No labelled text has the word: all that it adds itself is its vector's.
    terrific = terms.loc["terrific"]
    assert terrific["vector_contribution"] > 0
    if characters is None:
        assert_allclose(terrific["vector_contribution"], terrific["contribution"])
    assert terms.loc["film", "vector_contribution"] == 0
    assert re.search(
        r'"terrific" adds \+\S+ of \+\S+ because its vector is near great\.', explanation.to_text()
    )
    assert "because its vector is near great" in explanation.to_html()
    assert explanation.to_dict()["documents"][0]["tokens"][0]["vector_contributions"] is not None
    other = explain(model, ["a terrific film"], target="n").to_frame().set_index("token")
    assert_allclose(other["vector_contribution"], -terms["vector_contribution"])
