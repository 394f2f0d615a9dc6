"""The default fit: when it stops, what bounds it, and how C and attention_C are chosen."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import data, log_losses
from numpy.testing import assert_allclose, assert_array_equal
from reference import counts
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests, make_token_classification
from sklearn_clsattn.inspection import label_issues
from sklearn_clsattn.training.choose_c import CS

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
ATTEND = pytest.mark.parametrize("attend_cls", [True, False])


def weighted(n_classes, seed=0, n_documents=60, n_tokens=15):
    X = counts(seed, n_documents, n_tokens)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, n_documents)
    return X, np.arange(n_documents) % n_classes, weights


# Where training stops


@CLASSES
@ATTEND
@pytest.mark.parametrize("token", ["log_odds", None])
def test_training_converges_and_says_what_it_did(n_classes, attend_cls, token):
    X, codes, weights = weighted(n_classes)
    how = {"attention_C": 0.3, "attend_cls": attend_cls, "token_scaling": token}
    model = ClsAttentionClassifier(C=1.0, tol=1e-6, **how).fit(X, codes, weights)
    assert model.optimality_gap_ <= 1e-6
    assert len(model.loss_curve_) == model.n_iter_ + 1
    assert (np.diff(model.loss_curve_) < 0).all()
    assert (model.cls_weight_ > 0) == attend_cls
    # The curve, of penalised losses, starts at that of the class frequencies.
    priors = np.bincount(codes, weights=weights) / weights.sum()
    assert model.loss_curve_[0] == pytest.approx(-(priors * np.log(priors)).sum())
    losses = -model.predict_log_proba(X)[np.arange(len(codes)), codes]
    loss = np.average(losses, weights=weights)
    assert loss < model.loss_curve_[-1] < model.loss_curve_[0]


@CLASSES
def test_a_loose_stop_is_within_its_gap_of_a_long_run(n_classes):
    problem = weighted(n_classes, 1)
    # With scores held at their start what remains is convex, and the gap nearly a bound: for
    # the intercepts it takes the curvature of the start, which falls as the model learns.
    held = {"C": 1.0, "attention_C": 1e-9}
    long = ClsAttentionClassifier(**held, tol=1e-13, max_iter=2000).fit(*problem)
    for tol in (1e-1, 1e-2, 1e-4, 1e-6):
        loose = ClsAttentionClassifier(**held, tol=tol).fit(*problem)
        assert -1e-12 <= loose.loss_curve_[-1] - long.loss_curve_[-1] <= 5 * tol
        assert loose.optimality_gap_ <= tol


def test_too_few_iterations_warn_and_say_what_to_do():
    X, y = data()
    with pytest.warns(ConvergenceWarning) as caught:
        model = ClsAttentionClassifier(max_iter=1, tol=1e-12).fit(X, y)
    (warning,) = caught
    words = ["max_iter=1", "optimality gap", "tol=1.0e-12", "Increase max_iter", "attention_C"]
    for word in [*words, f"{model.optimality_gap_:.1e}"]:
        assert word in str(warning.message)
    assert model.n_iter_ == 1
    search = GridSearchCV(make_pipeline("passthrough", model), {}, cv=2, refit=False)
    with pytest.warns(ConvergenceWarning):
        search.fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"in this precision.* pass X as float64"):
        ClsAttentionClassifier(tol=0.0, max_iter=300).fit(X.astype(np.float32), y)


@pytest.mark.parametrize("C", ["auto", 3.6])
@CLASSES
def test_more_steps_change_no_probabilities(C, n_classes):
    X, y = make_token_classification(
        700, n_classes=n_classes, n_irrelevant=400, flip_y=0.05, random_state=0
    )
    X, y, X_test = X[:400], y[:400], X[400:]
    model = ClsAttentionClassifier(C=C).fit(X, y)
    longer = ClsAttentionClassifier(C=model.C_, tol=1e-9, max_iter=3000).fit(X.astype(float), y)
    assert_allclose(model.predict_proba(X_test), longer.predict_proba(X_test), atol=0.02)


@pytest.mark.parametrize("sizes", [(2, 4), (1, 2, 5), (4, 0, 1)])
def test_documents_without_any_token_have_the_shares_of_the_classes(sizes):
    y = np.repeat(np.arange(len(sizes)), np.maximum(sizes, 1))
    weights = np.repeat(np.sign(sizes, dtype=float), np.maximum(sizes, 1))
    X = np.zeros((len(y), 4))
    pseudo = np.array(sizes) + np.sign(sizes)  # a document of each class that has any
    model = ClsAttentionClassifier().fit(X, y, sample_weight=weights)
    assert_allclose(model.predict_proba(X[:1])[0], pseudo / pseudo.sum(), atol=0.01)
    if len(sizes) > 2:
        return
    batches = ClsAttentionClassifier()
    for rows in (slice(0, None, 2), slice(1, None, 2)):
        batches = batches.partial_fit(X[rows], y[rows], classes=np.arange(len(sizes)))
    assert_allclose(batches.predict_proba(X[:1])[0], pseudo / pseudo.sum(), atol=0.02)


# Probabilities that cannot run away

STRENGTHS = (1e-4, 1e-2, 1.0)


def test_ten_documents_do_not_make_it_certain():
    texts, moods = map(np.array, load_requests(target="mood", return_X_y=True))
    order = np.random.default_rng(1).permutation(len(texts))
    X, train, test = CountVectorizer().fit_transform(texts[order]), slice(10), slice(-1000, None)
    moods = moods[order]

    def loss(C):
        model = ClsAttentionClassifier(C=C).fit(X[train], moods[train])
        return log_loss(moods[test], model.predict_proba(X[test]))

    assert loss("auto") < 1.1  # 12.27 without a bound; ln 2 is .69
    losses = [loss(C) for C in STRENGTHS]
    assert max(losses) < 1.4
    assert losses[0] == pytest.approx(np.log(2), abs=0.11)  # the classes' shares, 4 to 6


# The choice of C and of attention_C. What says nothing must not change it: test_invariance.py.


LEAST_ATTENTION_C = 0.03  # that of all fits but those that choose it


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
    assert_array_equal(model.Cs_, CS[: len(model.Cs_)])
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
    assert "attention_C 1: held-out loss" in capsys.readouterr().out
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
