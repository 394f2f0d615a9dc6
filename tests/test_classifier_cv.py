"""C chosen by cross-validation: the same scores as one fit after another, for any folds."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import data
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import accuracy_score, log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, ClsAttentionClassifierCV
from sklearn_clsattn._core import cross_validation
from sklearn_clsattn.inspection import explain

CS = [0.03, 0.3, 3.0]
# Trained until hardly anything can be gained, in the folds as well (`to_the_end`).
SETTLED = {"tol": 1e-11, "max_iter": 3000}
# In folds, counts are damped by the mean entry of all documents, elsewhere by that of the fold.
PLAIN = {**SETTLED, "sublinear_counts": False}


@pytest.fixture
def to_the_end(monkeypatch):
    monkeypatch.setattr(cross_validation, "SEARCH_TOL", 0.0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"class_weight": "balanced"}, {"attend_cls": False}, {"token_scaling": None}],
    ids=str,
)
def test_scores_are_those_of_a_grid_search(n_classes, parameters, to_the_end):
    X, y = data(n_classes, n_documents=50)
    y[:6] = 0  # so that "balanced" has something to balance
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    ours = ClsAttentionClassifierCV(Cs=CS, cv=folds, **PLAIN, **parameters).fit(X, y)
    search = GridSearchCV(
        ClsAttentionClassifier(**PLAIN, **parameters), {"C": CS}, scoring="neg_log_loss", cv=folds
    ).fit(X, y)
    expected = [search.cv_results_[f"split{fold}_test_score"] for fold in range(3)]
    assert_allclose(ours.scores_, expected, rtol=0, atol=1e-5)
    assert search.best_params_["C"] == ours.C_
    assert_array_equal(ours.Cs_, CS)
    assert_allclose(ours.predict_log_proba(X), search.predict_log_proba(X), atol=1e-4)


def test_defaults_are_near_a_grid_search():
    X, y = data(n_documents=90)
    ours = ClsAttentionClassifierCV(cv=3).fit(X, y)
    assert ours.scores_.shape == (3, 10)
    assert_allclose(ours.Cs_[[0, -1]], [0.01, 100])
    assert_allclose(np.diff(np.log(ours.Cs_)), np.log(1e4) / 9)
    search = GridSearchCV(
        ClsAttentionClassifier(), {"C": ours.Cs_}, scoring="neg_log_loss", cv=3
    ).fit(X, y)
    # Both train to a gap of 0.01 nats per document; held-out losses differ by a few times that.
    assert_allclose(ours.scores_.mean(axis=0), search.cv_results_["mean_test_score"], atol=0.05)
    assert ours.Cs_[ours.scores_.mean(axis=0).argmax()] == ours.C_


def test_weights_are_repetitions_in_training_and_scores(to_the_end):
    X, y = data(3, n_documents=40)
    times = np.random.default_rng(0).integers(0, 4, size=40)
    rows = np.repeat(np.arange(40), times)
    parity = np.arange(40) // 3 % 2
    folds = [(np.flatnonzero(parity == one), np.flatnonzero(parity != one)) for one in (0, 1)]
    repeated = [tuple(np.flatnonzero(np.isin(rows, part)) for part in fold) for fold in folds]
    for scoring in (None, "accuracy"):
        make = {"Cs": CS, "scoring": scoring, **SETTLED}
        one = ClsAttentionClassifierCV(cv=folds, **make).fit(X, y, sample_weight=times)
        other = ClsAttentionClassifierCV(cv=repeated, **make).fit(X[rows], y[rows])
        assert_allclose(one.scores_, other.scores_, rtol=0, atol=1e-6)
        assert one.C_ == other.C_
        assert_allclose(one.predict_log_proba(X), other.predict_log_proba(X), atol=1e-4)


def test_documents_drawn_twice_count_twice(to_the_end):
    """As in a bootstrap; boolean masks are no other than positions."""
    X, y = data(n_documents=40)
    drawn = np.random.default_rng(1).integers(30, size=40)
    held_out = np.arange(40) >= 30
    make = ClsAttentionClassifierCV(Cs=CS, **PLAIN)
    found = clone(make).set_params(cv=[(drawn, held_out)]).fit(X, y)
    for place, C in enumerate(CS):
        model = ClsAttentionClassifier(C=C, **PLAIN).fit(X[drawn], y[drawn])
        loss = log_loss(y[held_out], model.predict_proba(X[held_out]))
        assert found.scores_[0, place] == pytest.approx(-loss, abs=1e-5)


def test_any_scoring(to_the_end):
    X, y = data(3, n_documents=45)
    y = np.array(["red", "green", "blue"])[y]
    frame = pd.DataFrame(X.toarray()).add_prefix("token ")
    seen = []

    def accuracy(estimator, X, y):
        seen.append(estimator)
        assert estimator.predict_proba(X).shape == (len(y), 3)
        return accuracy_score(y, estimator.predict(X))

    fits = [
        ClsAttentionClassifierCV(Cs=CS, cv=3, scoring=scoring).fit(frame, y)
        for scoring in ("accuracy", make_scorer(accuracy_score), accuracy)
    ]
    for fit in fits[1:]:
        assert_array_equal(fit.scores_, fits[0].scores_)
    assert len(seen) == 9
    assert fits[2] not in seen  # copies, so that the classifier is not half fitted meanwhile
    assert list(fits[0].feature_names_in_) == list(frame.columns)
    none, named = (
        ClsAttentionClassifierCV(Cs=CS, cv=3, scoring=scoring).fit(X, y)
        for scoring in (None, "neg_log_loss")
    )
    assert_allclose(none.scores_, named.scores_, rtol=1e-9)
    assert none.C_ == named.C_


def test_of_equal_scores_the_smallest_C_is_taken():
    X, y = data()
    model = ClsAttentionClassifierCV(Cs=CS[::-1], cv=2, scoring=lambda *_: 1.0).fit(X, y)
    assert CS[0] == model.C_
    assert_array_equal(model.Cs_, CS)


def test_folds_of_any_kind():
    X, y = data(n_documents=60)
    groups = np.arange(60) // 6
    for cv, n_folds in [
        (None, 5),
        (2, 2),
        (ShuffleSplit(3, random_state=0), 3),
        (list(GroupKFold(4).split(X, y, groups)), 4),
        (GroupKFold(4).split(X, y, groups), 4),
    ]:
        assert ClsAttentionClassifierCV(Cs=2, cv=cv).fit(X, y).scores_.shape == (n_folds, 2)


def test_the_last_fit_is_that_of_the_chosen_C(to_the_end):
    X, y = data(n_documents=80)
    found = ClsAttentionClassifierCV(Cs=CS, cv=3, **SETTLED).fit(X, y)
    alone = ClsAttentionClassifier(C=found.C_, **SETTLED).fit(X, y)
    assert_allclose(found.decision_function(X), alone.decision_function(X), atol=1e-5)
    assert found.entry_scale_ == alone.entry_scale_
    assert found.loss_curve_[0] < alone.loss_curve_[0]  # it starts from a fold's model


def test_the_fit_repeats_itself_and_pickles():
    X, y = data(3)
    one, other = (ClsAttentionClassifierCV(Cs=CS, cv=3).fit(X, y) for _ in range(2))
    again = pickle.loads(pickle.dumps(one))
    for model in (other, again, clone(one).fit(X, y)):
        assert_array_equal(model.scores_, one.scores_)
        assert_array_equal(model.decision_function(X), one.decision_function(X))


def test_formats_say_the_same():
    X, y = data()
    expected = ClsAttentionClassifierCV(Cs=CS, cv=3).fit(X, y)
    for form in (sp.csc_array, sp.coo_matrix, lambda X: X.toarray()):
        assert_array_equal(ClsAttentionClassifierCV(Cs=CS, cv=3).fit(form(X), y).scores_,
                           expected.scores_)  # fmt: skip


def test_in_a_pipeline_it_explains():
    texts = ["a good film", "good fun, good plot", "a bad film", "a dull, bad plot"] * 5
    labels = ["pos", "pos", "neg", "neg"] * 5
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifierCV(Cs=CS, cv=2))
    model.fit(texts, labels)
    assert model.predict(["good", "bad"]).tolist() == ["pos", "neg"]
    assert "good" in explain(model, ["a good plot"]).to_text()


def test_there_is_no_partial_fit():
    assert not hasattr(ClsAttentionClassifierCV(), "partial_fit")
    with pytest.raises(AttributeError) as error:
        ClsAttentionClassifierCV().partial_fit([[1]], [0])
    assert "chosen by cross-validation" in str(error.value.__cause__)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"Cs": 1}, "The 'Cs' parameter"),
        ({"Cs": [1.0, -1.0]}, "Cs must be an integer or a list of positive numbers"),
        ({"Cs": [0.0]}, "positive numbers"),
        ({"Cs": [[1.0]]}, "positive numbers"),
        ({"Cs": [1.0, np.nan]}, "NaN"),
        ({"Cs": []}, "minimum of 1 is required"),
        ({"cv": 1}, "The 'cv' parameter"),
        ({"cv": []}, "cv gives no splits"),
        ({"cv": [([0, 2, 4], [1, 3])]}, r"Fold 1 has no training document .* \['b'\]"),
        ({"cv": [([0, 1], [2]), ([0, 1], [])]}, "Fold 2 holds out no document"),
        ({"scoring": "no such score"}, "The 'scoring' parameter"),
        ({"scoring": lambda *_: np.nan}, "score at C = 0.01 is nan: expected a finite number"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        ClsAttentionClassifierCV(**{"cv": 2, **parameters}).fit(X, np.array(["a", "b"])[y])


def test_rare_classes_are_named():
    X, y = data()
    y = np.where(np.arange(60) == 7, 2, y)
    with (
        pytest.warns(UserWarning, match="least populated class"),
        pytest.raises(ValueError, match=r"no training document .* \[2\]: .*leave out rare classes"),
    ):
        ClsAttentionClassifierCV().fit(X, y)


def test_weights_of_0_can_empty_a_fold():
    X, y = data()
    weights = np.where(np.arange(60) < 20, 0.0, 1.0)
    folds = [(np.arange(20, 60), np.arange(20))]
    with pytest.raises(ValueError, match="holds out no document of positive weight"):
        ClsAttentionClassifierCV(cv=folds).fit(X, y, sample_weight=weights)


def test_more_values_of_C_than_there_is_memory_for():
    X, y = data(2)
    with pytest.raises(ValueError, match=r"Cs=1000000000000 takes at least .* GB of memory"):
        ClsAttentionClassifierCV(Cs=10**12).fit(X, y)
