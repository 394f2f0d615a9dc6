"""Bags that are a product of two matrices: what is computed from them is that of the product.

They stay in the package: what a vectorizer returns is an ordinary matrix (`test_ordinary.py`).
"""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from helpers import targets
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline, make_union

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._bags import Bags, with_columns_of, without_unused_columns
from sklearn_clsattn._core.fitted import FittedAttention, count_selected
from sklearn_clsattn._core.leave_one_out import LeftOut, evidence_without, same_documents
from sklearn_clsattn._core.products import TokenBag
from sklearn_clsattn._core.statistics import CorpusStatistics, TokenTotals, row_lengths
from sklearn_clsattn._documents import row_totals
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.importance import class_totals
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.text import ContextVectorizer, TokenVectorizer, make_text_classifier

SHAPE = 60, 25, 90


def made_bags(seed=0, dtype=np.float64):
    """Return bags, with copies and an empty document, and their product."""
    rng = np.random.default_rng(seed)
    n, n_units, n_columns = SHAPE

    def drawn(shape, density):
        return sp.csr_array((rng.random(shape) < density) * rng.uniform(0.1, 1, shape))

    left, right = drawn((n, n_units), 0.2), drawn((n_units, n_columns), 0.1)
    left = sp.csr_array(sp.vstack([left, left[:3], sp.csr_array((1, n_units))])).astype(dtype)
    names = np.array([f"u{at}" for at in range(n_units)], dtype=object)
    right = right.astype(dtype)
    return Bags(left, right, names), sp.csr_array(left @ right)


def codes_of(n_classes, n=SHAPE[0] + 4):
    return np.random.default_rng(n_classes).permutation(np.arange(n) % n_classes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_a_fit_computes_is_that_of_the_product(n_classes):
    X, made = made_bags()
    codes, weights = codes_of(n_classes), np.random.default_rng(0).uniform(0.5, 2, X.shape[0])
    assert_array_equal(row_lengths(X), np.diff(made.indptr))
    assert_allclose(row_totals(X), row_totals(made), rtol=1e-12)
    for kind in ("counts", "shares"):
        sums = [class_totals(one, codes, n_classes, weights, kind=kind) for one in (X, made)]
        assert_allclose(*sums, rtol=1e-12, atol=1e-14)
    assert_array_equal(same_documents(X), same_documents(made))
    totals = TokenTotals.from_statistics(
        CorpusStatistics.from_documents(X, targets(codes), weights)
    )
    own = np.eye(n_classes)[codes] * weights[:, None]
    own[:2] = 1.0  # copies of other classes
    left_out = LeftOut(own, own.sum(axis=1))
    sums = [evidence_without(one, left_out, totals) for one in (X, made)]
    assert_allclose(*sums, rtol=1e-10, atol=1e-12)
    scores = np.round(np.random.default_rng(1).normal(size=X.shape[1]), 1)  # with ties
    assert_array_equal(count_selected(scores, X), count_selected(scores, made))
    (used, columns), (expected, expected_columns) = map(without_unused_columns, (X, made))
    assert_array_equal(columns, expected_columns)
    assert abs(used.multiplied() - expected).max() < 1e-12


@pytest.mark.parametrize("backend", ["torch", "scipy"])
def test_products_are_those_of_the_product(backend):
    X, made = made_bags()
    if backend == "torch" and not torch.backends.mkl.is_available():
        backend = "scipy"
    bag, expected = (TokenBag(one, backend=backend) for one in (X, made))
    rng = np.random.default_rng(0)
    tokens = torch.from_numpy(rng.normal(size=(X.shape[1], 3)))
    documents = torch.from_numpy(rng.uniform(size=(X.shape[0], 3)))
    for name, given_ in {
        "sum_over_tokens": tokens,
        "sum_over_documents": documents,
        "squared_sum_over_documents": documents,
    }.items():
        results = [getattr(one, name)(given_).numpy() for one in (bag, expected)]
        assert_allclose(*results, rtol=1e-10, atol=1e-12)
    rows, columns, weights = (one.numpy() for one in bag.entries())
    entries = sp.coo_array((weights, (rows, columns)), shape=X.shape)
    assert_allclose(entries.toarray(), made.toarray(), rtol=1e-12)
    # Roughly: of the right size for every token that is there, whatever the weights.
    rough = bag.squared_sum_over_documents(documents, roughly=torch.ones(len(documents))).numpy()
    exact = expected.squared_sum_over_documents(documents).numpy()
    ratio = rough[exact > 0] / exact[exact > 0]
    assert 0.3 < ratio.min() <= ratio.max() < 3
    copy = pickle.loads(pickle.dumps(bag))
    assert_allclose(copy.sum_over_tokens(tokens), bag.sum_over_tokens(tokens))


@given(st.integers(0, 1000), st.sampled_from([1, 3]), st.sampled_from([0.0, 2.0]))
def test_predictions_are_those_of_the_product(seed, n_outputs, cls_weight):
    X, made = made_bags(seed % 7)
    rng = np.random.default_rng(seed)
    model = FittedAttention(
        scores=rng.normal(scale=rng.choice([1, 30]), size=X.shape[1]),
        values=rng.normal(size=(X.shape[1], n_outputs)),
        intercept=rng.normal(size=n_outputs),
        cls_weight=cls_weight,
        cls_score=0.3 if cls_weight else -np.inf,
    )
    for rows in (slice(None), slice(0, 2)):  # many entries, and fewer than tokens
        assert_allclose(model.outputs(X[rows]), model.outputs(made[rows]), rtol=1e-9, atol=1e-11)
        assert_array_equal(model.most_probable(X[rows]), model.most_probable(made[rows]))
    units = model.of_units(X.right)
    assert_allclose(units.outputs(X.left), model.outputs(made), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("attend_cls", [True, False])
def test_a_fit_is_that_of_the_product(n_classes, attend_cls):
    X, made = made_bags()
    how = {"C": 1.0, "tol": 1e-13, "max_iter": 3000, "attend_cls": attend_cls}
    model = ClsAttentionClassifier(sublinear_counts=False, **how)
    labels = codes_of(n_classes)
    probabilities = model.fit(X, labels).predict_proba(X)
    counts = model.selection_counts_
    assert_allclose(probabilities, model.fit(made, labels).predict_proba(made), atol=2e-5)
    assert_array_equal(counts, model.selection_counts_)


def test_rows_and_columns_are_those_of_the_product():
    X, made = made_bags()
    row_lengths(X)
    chosen = np.arange(0, 20, 3)
    for rows in (slice(5, 9), chosen, np.asarray(made.sum(axis=1) > 2)):
        part = X[rows]
        assert_array_equal(part.row_lengths, np.diff(made[rows].indptr))
        assert abs(part.multiplied() - made[rows]).max() < 1e-12
    part = with_columns_of(X, chosen)
    assert abs(part.multiplied() - made[:, chosen]).max() < 1e-12
    assert part.multiplied().has_canonical_format
    assert (X.shape, X.dtype) == (made.shape, made.dtype)


def test_bad_entries_are_refused():
    for bad in (np.nan, -1.0):
        X, _ = made_bags()
        X.right.data[3] = bad
        with pytest.raises(ValueError, match=r"NaN|Negative values"):
            ClsAttentionClassifier().fit(X, codes_of(2))


TEXTS, LABELS = make_token_classification(120, n_irrelevant=30, as_text=True, random_state=0)


def test_a_word_never_seen_counts_by_its_characters():
    texts = ["terrific fun", "great terrific story", "terrible mess", "a terrible bore"] * 5
    model = make_text_classifier().fit(texts, ["good", "good", "bad", "bad"] * 5)
    assert model.predict(["terriffic", "terribly"]).tolist() == ["good", "bad"]
    assert explain(model, ["terriffic !?"]).tokens.tolist() == ["terriffic"]


def test_a_model_of_damped_entries_damps_those_of_the_product():
    X, made = made_bags()
    model = ClsAttentionClassifier(C=1.0).fit(made, codes_of(2))
    assert model.entry_scale_
    for rows in (slice(0, 1), slice(None)):  # fewer entries than tokens, and more
        assert_allclose(model.decision_function(X[rows]), model.decision_function(made[rows]))
    again = ClsAttentionClassifier(C=1.0).fit(X, codes_of(2))
    assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-4)


def test_a_document_without_the_columns_that_are_left_selects_nothing():
    X, made = made_bags()
    scores, columns = np.array([0.0, -1.0, 1.0]), np.arange(3)
    assert (np.diff(made[:, columns].indptr) == 0).sum() > 1
    expected = count_selected(scores, made[:, columns])
    assert_array_equal(count_selected(scores, with_columns_of(X, columns)), expected)


def test_explained_where_a_step_leaves_no_column_of_words_with_characters():
    union = make_union(ContextVectorizer(), TokenVectorizer())
    last = SelectKBest(lambda X, _: np.arange(X.shape[1], dtype=float), k=3)
    model = make_pipeline(union, last, ClsAttentionClassifier(sublinear_counts=False))
    tokens = explain(model.fit(TEXTS, LABELS), TEXTS).tokens
    assert {name.partition("__")[0] for name in tokens} == {"tokenvectorizer"}


def test_a_parameter_that_is_changed_is_the_same_in_a_copy():
    vectorizer = ContextVectorizer().fit(TEXTS, LABELS)
    before = vectorizer.transform(TEXTS)
    after = vectorizer.set_params(character_weight=2.0).transform(TEXTS)
    copy = pickle.loads(pickle.dumps(vectorizer)).transform(TEXTS)
    assert abs(after - before).max() > 0.1
    assert abs(after - copy).max() == 0
