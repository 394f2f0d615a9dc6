"""The choice of C: folds by content, the walk, held-out losses, and what must not change it."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import data, documents, log_losses
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core import choose_c
from sklearn_clsattn._core import documents as documents_module
from sklearn_clsattn._core.choose_c import (
    ATTENTION_CS,
    HeldOut,
    _walk,
    assign_folds,
    choose_C,
    guess_C,
)
from sklearn_clsattn._core.fit import fit_attention
from sklearn_clsattn._core.path import AttentionPath
from sklearn_clsattn.inspection import label_issues

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
HOW = {"attention_C": 0.03}


def prior_mean(d):
    return AttentionPath(d, np.float64, "cpu", **HOW).mean


def chosen(d, attention_C=0.03):
    return choose_C(d, prior_mean(d), np.float64, "cpu", attention_C=attention_C)


def needles(n_documents=2000, seed=2, length=60, noise=0.1):
    """Return counts in which one of 60 tokens tells the class, and labels of which some are wrong.

    Each class has 40 tokens of its own; the others are drawn from 3,000 by Zipf's law.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_documents)
    frequencies = 1 / np.arange(1.0, 3001)
    frequencies /= frequencies.sum()
    tokens = 80 + rng.choice(3000, (n_documents, length), p=frequencies)
    tokens[:, 0] = 40 * y + rng.integers(0, 40, n_documents)
    rows = np.repeat(np.arange(n_documents), length)
    X = sp.csr_matrix((np.ones(tokens.size), (rows, tokens.ravel())), (n_documents, 3080))
    return X, np.where(rng.random(n_documents) < noise, 1 - y, y)


def groups_and_codes(pairs):
    groups, codes = np.array(pairs).T
    return np.unique(groups, return_inverse=True)[1], codes


def grouped(groups, codes, weights=None):
    """Return documents of one token each, which are copies in groups."""
    X = sp.csr_array(np.eye(groups.max() + 1)[groups])
    d = documents(X, codes, weights, 3)
    starts = np.array([0, len(groups)])
    known = documents_module._Description(groups, d.targets, d.weights, starts)
    return replace(d, _cache={"description": known})


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=8, max_size=60),
    st.integers(2, 4),
)
def test_folds_are_of_equal_size_and_keep_copies_together(pairs, n_folds):
    groups, codes = groups_and_codes(pairs)
    first = np.unique(groups, return_index=True)[1]
    codes = codes[first][groups]  # a class for each group
    dealt = assign_folds(grouped(groups, codes), n_folds)
    assert_array_equal(dealt, dealt[first][groups])
    assert np.ptp(np.bincount(dealt[first], minlength=n_folds)) <= 1
    for code in np.unique(codes):  # every class is spread evenly
        of_class = dealt[first][codes[first] == code]
        assert np.ptp(np.bincount(of_class, minlength=n_folds)) <= 1


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=8, max_size=60),
    st.permutations(range(3)),
)
def test_folds_and_samples_do_not_depend_on_the_names_of_classes(pairs, names):
    """Nor where copies are of different classes."""
    groups, codes = groups_and_codes(pairs)
    renamed = np.array(names)[codes]
    given, other = grouped(groups, codes), grouped(groups, renamed)
    assert_array_equal(assign_folds(other, 3), assign_folds(given, 3))
    with (
        patch.object(documents_module, "SAMPLE_SIZE", 4),
        patch.object(documents_module, "LEAST_OF_A_CLASS", 1),
    ):
        (_, sample), (_, again) = given.sample(), other.sample()
    assert_array_equal(again.groups, sample.groups)
    assert_array_equal(again.weights, sample.weights)
    assert_array_equal(again.targets.values, np.array(names)[sample.targets.values])


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), min_size=1, max_size=80),
    st.integers(1, 40),
)
def test_a_sample_is_spread_over_classes_and_has_one_of_each_copy(pairs, size):
    groups, codes = groups_and_codes(pairs)
    weights = np.arange(1.0, 1 + len(codes))
    with (
        patch.object(documents_module, "SAMPLE_SIZE", size),
        patch.object(documents_module, "LEAST_OF_A_CLASS", 2),
    ):
        _, sample = grouped(groups, codes, weights).sample()
    pairs = list(zip(sample.groups, sample.targets.values, strict=True))
    assert len(set(pairs)) == len(pairs)
    for (group, code), total in zip(pairs, sample.weights, strict=True):
        assert total == weights[(groups == group) & (codes == code)].sum()
    whole = np.isin(groups, sample.groups)
    assert sample.weights.sum() == weights[whole].sum()  # groups are taken whole
    n_groups = groups.max() + 1
    classes = []  # in which each group weighs most
    for group in range(n_groups):
        in_group = groups == group
        sizes = np.bincount(codes[in_group], weights[in_group])
        classes.append(frozenset(np.flatnonzero(sizes == sizes.max()).tolist()))
    for stratum in set(classes):
        members = np.flatnonzero([some == stratum for some in classes])
        taken = np.isin(members, sample.groups).sum()
        wanted = max(len(members) * min(size / n_groups, 1), min(2, len(members)))
        assert taken == int(wanted + 1e-9)


def test_the_choice_is_that_of_the_sample(monkeypatch):
    X, y = data(2, n_documents=400)
    monkeypatch.setattr(documents_module, "SAMPLE_SIZE", 200)
    d = documents(X, y)
    of_sample, (n_different, some) = chosen(d), d.sample()
    assert n_different > 300 > len(some.targets) > 190
    alone = chosen(some)
    _, mine, its = np.intersect1d(of_sample.Cs, alone.Cs, return_indices=True)
    assert len(mine) > 1
    assert_allclose(of_sample.losses[:, mine], alone.losses[:, its], rtol=0.02)
    assert of_sample.point.shape == (X.shape[1] + 1, 2)


@given(st.floats(-7, 9), st.integers(-4, 6), st.floats(0.1, 5))
def test_the_walk_finds_the_minimum_of_a_parabola(minimum, start, curvature):
    asked = []

    def loss(position):
        asked.append(position)
        return curvature * (position - minimum) ** 2

    within = 1e-6 if -3.4 < minimum < 5.4 else 0.51
    assert _walk(loss, start) == pytest.approx(np.clip(minimum, -4, 6), abs=within)
    assert len(set(asked)) == len(asked)
    assert set(asked) <= set(range(-4, 7))


@CLASSES
def test_held_out_losses_are_those_of_fits_without_the_documents(n_classes, monkeypatch):
    monkeypatch.setattr(choose_c, "SEARCH_TOL", 1e-9)
    monkeypatch.setattr(choose_c, "_MAX_ITER", 2000)
    X, y = data(n_classes)
    out = np.arange(len(y)) % 4 == 1
    held_out = HeldOut(documents(X, y), out, np.float64, "cpu", **HOW)
    rest = documents(X[~out], y[~out])
    for C in (0.3, 1.0, 3.0):
        model = fit_attention(rest, C=C, max_iter=2000, tol=1e-9, **HOW).model
        expected = log_losses(model.outputs(X[out]), y[out]).mean()
        assert held_out.loss(C) == pytest.approx(expected, abs=1e-3)


@CLASSES
@settings(max_examples=3)
@given(seed=st.integers(0, 1000))
def test_what_does_not_change_the_choice(n_classes, seed):
    rng = np.random.default_rng(seed)
    X, y = data(n_classes)
    weights = rng.integers(0, 3, len(y)).astype(float)
    weights[:n_classes] = 1
    expected = chosen(documents(X, y, weights), None)
    order = rng.permutation(len(y))
    copies = np.repeat(np.arange(len(y)), weights.astype(int))
    for other in (
        documents(X[order], y[order], weights[order]),
        documents(X[copies], y[copies]),
        documents(X * 8.0, y, weights),
        documents(X, n_classes - 1 - y, weights),
    ):
        again = chosen(other, None)
        assert again.attention_C == expected.attention_C
        assert_allclose(again.losses, expected.losses, rtol=1e-6, atol=1e-6)
        assert_allclose(again.Cs, expected.Cs)


def test_few_documents_take_the_guess():
    X, y = data(2)
    model = ClsAttentionClassifier().fit(X[:7], y[:7])
    d = documents(X[:7], y[:7])
    assert len(model.Cs_) == model.scores_.size == 0
    assert 0 < model.C_ < 10
    assert pytest.approx(guess_C(prior_mean(d), d.statistics)) == chosen(d).C


def test_fewer_folds_for_more_documents(monkeypatch):
    X, y = data(2, n_documents=200)
    n_different = len(np.unique(X.toarray(), axis=0))
    for enough, n_folds in ((1, 1), (2 * n_different, 2), (10**6, 4)):
        monkeypatch.setattr(choose_c, "ENOUGH_DOCUMENTS", enough)
        model = ClsAttentionClassifier().fit(X, y)
        assert model.scores_.shape == (n_folds, len(model.Cs_))
        assert_allclose(np.diff(np.log10(model.Cs_)), 0.5)
    fixed = model.set_params(C=2.0).fit(X, y)  # a number is not searched for
    assert fixed.C_ == 2.0
    assert not {"Cs_", "scores_"} & vars(fixed).keys()


def test_a_class_of_one_document_is_not_judged_where_it_is_held_out():
    X, y = data(2)
    model = ClsAttentionClassifier().fit(sp.vstack([X, X[:1] * 3]).tocsr(), np.append(y, 2))
    assert (model.scores_ > -3).all()  # a class unseen in training would cost some 20 nats


def test_attention_is_freed_where_one_word_decides():
    X, y = needles()
    train, test = slice(0, 1000), slice(1000, 2000)
    auto = ClsAttentionClassifier(attention_C="auto").fit(X[train], y[train])
    assert auto.attention_C_ in ATTENTION_CS[1:]
    given = ClsAttentionClassifier(attention_C=auto.attention_C_).fit(X[train], y[train])
    usual = ClsAttentionClassifier(attention_C=ATTENTION_CS[0]).fit(X[train], y[train])
    losses = {}
    for name, model in {"auto": auto, "given": given, "usual": usual}.items():
        losses[name] = log_losses(model.decision_function(X[test])[:, None], y[test]).mean()
    assert losses["auto"] < losses["usual"] - 0.03
    assert losses["auto"] == pytest.approx(losses["given"], abs=0.02)
    assert auto.score(X[test], y[test]) > usual.score(X[test], y[test]) + 0.03
    batch = ClsAttentionClassifier(attention_C="auto").partial_fit(
        X[train], y[train], classes=[0, 1]
    )
    assert batch.attention_C_ == auto.attention_C_  # chosen once, then kept
    assert batch.partial_fit(X[test][:100], y[test][:100]).attention_C_ == auto.attention_C_


@CLASSES
def test_attention_stays_where_that_gains_nothing(n_classes, capsys):
    X, y = data(n_classes, n_documents=200)
    auto = ClsAttentionClassifier(attention_C="auto", verbose=100).fit(X, y)
    assert "attention_C 1: first held-out loss" in capsys.readouterr().out
    usual = ClsAttentionClassifier(attention_C=0.03).fit(X, y)
    assert (auto.attention_C_, auto.C_) == (0.03, usual.C_)
    assert_array_equal(auto.token_values_, usual.token_values_)


def test_attention_is_not_searched_for_where_C_is_given():
    X, y = data(2)
    auto = ClsAttentionClassifier(C=1.0, attention_C="auto").fit(X, y)
    usual = ClsAttentionClassifier(C=1.0, attention_C=0.03).fit(X, y)
    assert auto.attention_C_ == 0.03
    assert_array_equal(auto.attention_scores_, usual.attention_scores_)
    assert ClsAttentionClassifier(attention_C=0.5).fit(X, y).attention_C_ == 0.5


def test_attention_is_chosen_with_vectors_and_label_issues_use_the_choice():
    X, y = (half[:1000] for half in needles())
    vectors = np.random.default_rng(0).normal(size=(X.shape[1], 3))
    model = ClsAttentionClassifier(attention_C="auto").fit(X, y, token_vectors=vectors)
    assert model.attention_C_ in ATTENTION_CS
    plain = ClsAttentionClassifier(attention_C="auto").fit(X, y)
    given = ClsAttentionClassifier(C=plain.C_, attention_C=plain.attention_C_).fit(X, y)
    assert plain.attention_C_ > ATTENTION_CS[0]
    found, expected = label_issues(plain, X, y), label_issues(given, X, y)
    assert len(set(found["document"][:30]) & set(expected["document"][:30])) > 25
