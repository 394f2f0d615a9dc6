"""The choice of C and of attention_C: what they are chosen by, and what must not change them.

`test_invariance.py` has what says nothing: order, names, copies.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import data, log_losses
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import cross_val_score

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.inspection import label_issues

LEAST_ATTENTION_C = 0.03  # that of all fits but those that choose it
CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


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


@CLASSES
def test_the_choice_predicts_as_well_as_the_best_of_a_search(n_classes):
    X, y = data(n_classes, n_documents=240)
    model = ClsAttentionClassifier().fit(X, y)
    assert_allclose(np.diff(np.log10(model.Cs_)), 0.5)
    losses = []
    for C in (model.C_, *model.Cs_):
        scores = cross_val_score(ClsAttentionClassifier(C=C), X, y, scoring="neg_log_loss", cv=4)
        losses.append(-scores.mean())
    assert losses[0] < min(losses) + 0.01
    # The scores of the choice are those of held-out documents, like these.
    assert_allclose(-model.scores_.mean(axis=0).max(), losses[0], atol=0.05)


def test_few_documents_and_a_number_are_not_searched_for():
    X, y = data(2)
    few = ClsAttentionClassifier().fit(X[:7], y[:7])
    assert len(few.Cs_) == few.scores_.size == 0
    assert 0 < few.C_ < 10
    fixed = few.set_params(C=2.0).fit(X, y)
    assert fixed.C_ == 2.0
    assert not {"Cs_", "scores_"} & vars(fixed).keys()


def test_a_class_of_one_document_is_not_judged_where_it_is_held_out():
    X, y = data(2)
    weights = np.append(np.ones(len(y)), 30.0)
    model = ClsAttentionClassifier()
    model.fit(sp.vstack([X, X[:1] * 3]).tocsr(), np.append(y, 2), sample_weight=weights)
    assert (model.scores_ > -2).all()  # with the document, some -14 where it is held out


def test_attention_is_freed_where_one_word_decides():
    X, y = needles()
    train, test = slice(0, 1000), slice(1000, 2000)
    auto = ClsAttentionClassifier(attention_C="auto").fit(X[train], y[train])
    assert auto.attention_C_ in (0.3, 1.0)
    given = ClsAttentionClassifier(attention_C=auto.attention_C_).fit(X[train], y[train])
    usual = ClsAttentionClassifier(attention_C=LEAST_ATTENTION_C).fit(X[train], y[train])
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
    assert LEAST_ATTENTION_C <= model.attention_C_ <= 1
    plain = ClsAttentionClassifier(attention_C="auto").fit(X, y)
    given = ClsAttentionClassifier(C=plain.C_, attention_C=plain.attention_C_).fit(X, y)
    assert plain.attention_C_ > LEAST_ATTENTION_C
    found, expected = label_issues(plain, X, y), label_issues(given, X, y)
    assert len(set(found["document"][:30]) & set(expected["document"][:30])) > 25
