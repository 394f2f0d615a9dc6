"""Learning from another model: its probabilities on unlabelled texts, and how much they count."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import refused
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.saving import load_model, save_model
from sklearn_clsattn.text import TextClassifier, WordVectors, make_text_classifier

N_LABELLED, N_MORE = 24, 240


def logistic():
    return make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))


@pytest.fixture(scope="module")
def texts():
    """Few labelled texts, texts without labels, others to test on, and those of the teacher."""
    every, labels = load_requests(target="mood", return_X_y=True)
    starts = 0, N_LABELLED, N_LABELLED + N_MORE, 900
    ends = (*starts[1:], 1900)
    parts = [slice(*part) for part in zip(starts, ends, strict=True)]
    return [(every[part].tolist(), labels[part]) for part in parts]


@pytest.fixture(scope="module")
def teacher(texts):
    return logistic().fit(*texts[3])


@pytest.fixture(scope="module")
def taught(texts, teacher):
    return make_text_classifier().fit(*texts[0], unlabeled=texts[1][0], teacher=teacher)


def test_a_good_teacher_helps_and_is_agreed_with(texts, teacher, taught):
    alone = make_text_classifier().fit(*texts[0])
    assert taught.score(*texts[2]) > alone.score(*texts[2]) + 0.05
    assert taught.teacher_weight_ > 0.1
    told = teacher.predict(texts[2][0])
    assert taught.teacher_agreement_ == pytest.approx(taught.score(texts[2][0], told), abs=0.1)
    assert taught.taught_by_ == "TfidfVectorizer and LogisticRegression, 240 texts"
    assert taught[-1].token_vectors_scale == "auto"  # not the one that was chosen


def test_a_bad_teacher_does_not_count(texts):
    """One that says the opposite: the model is then that of the labels, bit by bit."""
    labelled, more = texts[0], texts[1]
    truth = logistic().fit(*texts[3]).predict_proba(more[0])
    wrong = pd.DataFrame(truth[:, ::-1], columns=np.unique(labelled[1]))
    many = texts[3][0][:300], texts[3][1][:300]  # labels enough to see it
    model = make_text_classifier().fit(*many, unlabeled=more[0], teacher=wrong)
    assert model.teacher_weight_ == 0
    alone = make_text_classifier().fit(*many, unlabeled=more[0])
    assert_array_equal(model.predict_proba(texts[2][0]), alone.predict_proba(texts[2][0]))


def test_every_form_of_a_teacher(texts, teacher, taught):
    labelled, more = texts[0], texts[1][0]
    table = pd.DataFrame(teacher.predict_proba(more), columns=teacher.classes_)
    asked = []

    def ask(some):
        assert type(some) is list
        asked.extend(some)
        return teacher.predict_proba(some)

    class Other:
        """As SetFit is: no estimator of scikit-learn, names as `labels`."""

        labels = teacher.classes_[::-1].tolist()

        def predict_proba(self, some):
            return teacher.predict_proba(some)[:, ::-1]

    class Head(Other):
        labels = None
        model_head = Other()

    forms = {
        "array": (table.to_numpy(), "probabilities"),
        "frame": (table[table.columns[::-1]], "probabilities"),
        "function": (partial(ask), "partial"),
        "other": (Other(), "Other"),
        "head": (Head(), "Head"),
    }
    expected = taught.predict_proba(texts[2][0])
    for name, (form, description) in forms.items():
        model = make_text_classifier().fit(*labelled, unlabeled=more, teacher=form)
        assert_allclose(model.predict_proba(texts[2][0]), expected, atol=1e-6, err_msg=name)
        assert model.taught_by_ == f"{description}, 240 texts"
    assert asked == more


def test_an_unfitted_teacher_is_fitted_and_judged_without_the_labels_it_saw(texts):
    labelled, more = texts[0], texts[1][0]
    unfitted = logistic()
    model = make_text_classifier().fit(*labelled, unlabeled=more, teacher=unfitted)
    assert not hasattr(unfitted[-1], "coef_")  # it stays as it was
    assert 0 <= model.teacher_weight_ <= 1
    with pytest.warns(UserWarning, match="much surer of the labelled texts"):
        seen = make_text_classifier().fit(
            *labelled, unlabeled=more, teacher=clone(unfitted).fit(*labelled)
        )
    assert seen.teacher_weight_ == 1


def test_a_teacher_that_only_knows_labels_by_heart_does_not_count(texts):
    some = texts[3][0][:80]
    at_random = np.random.default_rng(0).permutation(texts[3][1][:80])
    by_heart = make_pipeline(TfidfVectorizer(), KNeighborsClassifier(1))
    model = make_text_classifier(C=1.0, characters=None)
    model.fit(some, at_random, unlabeled=some, teacher=by_heart)
    assert model.teacher_weight_ == 0


def test_a_class_with_a_single_text_makes_no_bad_teacher_count(texts):
    some, labels = texts[3][0][:120], texts[3][1][:120].astype(object)
    labels[0] = "rare"
    wrong = logistic().fit(*texts[3]).predict_proba(texts[1][0][:60])[:, ::-1]
    told = pd.DataFrame(0.9 * wrong, columns=np.unique(texts[3][1])).assign(rare=0.1)
    model = make_text_classifier(C=1.0, characters=None)
    assert model.fit(some, labels, unlabeled=texts[1][0][:60], teacher=told).teacher_weight_ == 0


@pytest.mark.parametrize("weight", [0.2, 3.0])
def test_a_given_weight_is_that_of_the_texts(texts, teacher, weight):
    labelled, more = texts[0], texts[1][0]
    model = make_text_classifier().fit(
        *labelled, unlabeled=more, teacher=teacher, teacher_weight=weight
    )
    assert model.teacher_weight_ == weight
    P = np.vstack([np.eye(2)[np.searchsorted(teacher.classes_, labelled[1])]])
    P = np.vstack([P, teacher.predict_proba(more)])
    weights = np.r_[np.ones(N_LABELLED), np.full(N_MORE, weight)]
    vectorizer = clone(make_text_classifier()[0])
    X = vectorizer.fit_transform([*labelled[0], *more], P)
    other = ClsAttentionClassifier(sublinear_counts=False, token_vectors_scale=0.0)
    other.fit(X, P, weights, classes=teacher.classes_)
    found = model.predict_proba(texts[2][0])
    assert_allclose(found, other.predict_proba(vectorizer.transform(texts[2][0])), atol=1e-2)


def test_weight_0_is_the_fit_without_a_teacher(texts, teacher):
    labelled, more = texts[0], texts[1][0]
    model = make_text_classifier().fit(
        *labelled, unlabeled=more, teacher=teacher, teacher_weight=0.0
    )
    alone = make_text_classifier().fit(*labelled, unlabeled=more)
    assert_array_equal(model.predict_proba(more), alone.predict_proba(more))
    assert model.teacher_weight_ == 0
    assert not hasattr(alone, "teacher_weight_")
    assert not hasattr(model.fit(*labelled), "teacher_weight_")  # a later fit has none


FEW = ["good film", "bad film", "good fun", "bad fun"] * 3
MOODS = ["good", "bad"] * 6


def knows_good(some):
    """Return probabilities of bad and good, of a teacher that is right and not very sure."""
    good = np.array([0.7 if "good" in text else 0.3 for text in some])
    return np.stack([1 - good, good], axis=1)


def test_the_power_is_that_of_the_probabilities():
    more = ["good one", "bad one", "so good", "bad"] * 5
    model = make_text_classifier(min_df=1, context=False, token_vectors_scale=0.0)
    timid = clone(model).fit(FEW, MOODS, unlabeled=more, teacher=knows_good)
    assert 1 < timid.teacher_power_ <= 1.5
    P = knows_good(more) ** timid.teacher_power_
    P /= P.sum(axis=1, keepdims=True)
    sure = model.fit(FEW, MOODS, unlabeled=more, teacher=P, teacher_weight=timid.teacher_weight_)
    assert_allclose(timid.predict_proba(FEW), sure.predict_proba(FEW), atol=1e-6)


def test_a_teacher_is_asked_for_some_texts_at_a_time(capsys):
    asked = []

    def teacher(some):
        asked.append(len(some))
        return knows_good(some)

    more = ["good one", "bad one"] * 150
    make_text_classifier(verbose=1).fit(
        FEW, MOODS, unlabeled=more, teacher=teacher, teacher_weight=1.0
    )
    assert asked == [256, 44]
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["teacher: 256 of 300 texts", "teacher: 300 of 300 texts"]


def test_labelled_texts_may_all_be_equal():
    """Then none can be held out, to judge the teacher."""
    how = {"unlabeled": ["good one", "bad one"] * 5, "teacher": knows_good}
    model = make_text_classifier(min_df=1).fit(["film"] * 12, MOODS, **how)
    assert model.predict(["good one", "bad one"]).tolist() == ["good", "bad"]
    assert np.isnan(model.teacher_agreement_)


def test_an_unfitted_teacher_may_lack_a_rare_class():
    rare = {"X": [*FEW, "dull"], "y": [*MOODS, "rare"], "unlabeled": ["good one", "so dull"] * 5}
    model = make_text_classifier(min_df=1).fit(**rare, teacher=logistic())
    assert model.classes_.tolist() == ["bad", "good", "rare"]


@pytest.mark.parametrize("n_more", [1, 2, 3])
def test_a_teacher_of_fewer_texts_than_folds(n_more):
    more = ["good one", "bad one", "good"][:n_more]
    model = make_text_classifier(min_df=1).fit(FEW, MOODS, unlabeled=more, teacher=knows_good)
    assert model.teacher_agreement_ == 1
    assert model.taught_by_ == f"knows_good, {n_more} texts"


def test_labels_may_be_a_column():
    how = {"unlabeled": ["good one", "bad one"] * 5, "teacher": knows_good}
    expected = make_text_classifier(min_df=1).fit(FEW, MOODS, **how)
    with pytest.warns(DataConversionWarning, match="column-vector y"):  # as without a teacher
        model = make_text_classifier(min_df=1).fit(FEW, pd.DataFrame({"mood": MOODS}), **how)
    assert_array_equal(model.predict_proba(FEW), expected.predict_proba(FEW))


def test_a_teacher_may_know_more_classes(texts):
    labelled, more = (["good film", "bad film"] * 8, ["good", "bad"] * 8), ["so so", "good"] * 20
    P = pd.DataFrame({"so-so": [0.9, 0.0], "good": [0.05, 1.0], "bad": [0.05, 0.0]})
    P = pd.concat([P] * 20, ignore_index=True)
    model = make_text_classifier(min_df=1).fit(
        *labelled, unlabeled=more, teacher=P, teacher_weight=1.0
    )
    assert model.classes_.tolist() == ["bad", "good", "so-so"]
    assert model.predict(["so so", "a bad film"]).tolist() == ["so-so", "bad"]


def test_the_model_is_explained_saved_and_pickled(taught, texts, tmp_path):
    new = texts[2][0][:5]
    one = explain(taught, new)[0]
    assert one.predicted in taught.classes_
    expected = taught.predict_proba(new)
    path = tmp_path / "m.skops"
    save_model(taught, path)
    for other in (load_model(path), pickle.loads(pickle.dumps(taught))):
        assert isinstance(other, TextClassifier)
        assert_array_equal(other.predict_proba(new), expected)
        assert other.teacher_weight_ == taught.teacher_weight_
        assert other.taught_by_ == taught.taught_by_


def test_brought_vectors_are_used(texts, teacher):
    labelled, more = texts[0], texts[1][0]
    vectors = WordVectors(n_components=8).fit(texts[3][0])
    model = make_text_classifier(word_vectors=vectors, token_vectors_scale=0.5).fit(
        *labelled, unlabeled=more, teacher=teacher
    )
    assert model[-1].token_vectors_scale_ == 0.5
    assert model[-1].get_params()["token_vectors_scale"] == 0.5


def test_what_cannot_be_learned_is_refused(texts, teacher):
    of_others = pd.DataFrame(np.ones((N_MORE, 2)) / 2, columns=["x", "y"])
    given = dict(zip("Xy", texts[0], strict=True))
    usual = given | {"unlabeled": texts[1][0], "teacher": teacher}
    for change, message in [
        ({"unlabeled": None}, "pass them as unlabeled"),
        ({"teacher": np.ones((3, 2)) / 2}, "probabilities of 3 texts, but unlabeled has 240"),
        ({"teacher": np.ones((N_MORE, 3)) / 3}, "a column for each of"),
        ({"teacher": np.ones(N_MORE)}, r"shape \(240,\): expected a column for each of"),
        ({"teacher": np.ones((N_MORE, 2))}, "rows that add up to 1"),
        ({"teacher": of_others}, r"which do not include the labels"),
        ({"teacher_weight": -1}, "teacher_weight must be"),
        ({"teacher_weight": np.inf}, "teacher_weight must be"),
        ({"y": [[0, 1]] * N_LABELLED}, "With a teacher, expected one label per text"),
        ({"y": texts[0][1][1:]}, "inconsistent numbers of samples"),
        ({"y": [None, *texts[0][1][1:]]}, "y has 1 missing labels"),
        ({"unlabeled": "one text"}, "got one text|expected.*texts|iterable of texts"),
        ({"sample_weight": [-1.0] * N_LABELLED}, "Negative values"),
        ({"classifier__token_vectors": None}, "takes no other parameters"),
    ]:
        model = make_text_classifier()
        refused(message, model.fit, **usual | change)
        assert not hasattr(model[0], "vocabulary_")
    two = [("v", CountVectorizer()), ("c", LogisticRegression())]
    for steps in (two, [two[0], ("between", "passthrough"), two[1]]):
        message = "A teacher needs the steps of make_text_classifier"
        refused(message, TextClassifier(steps).fit, **usual)
    wrong = make_text_classifier(C=-1)
    refused("'C' parameter", wrong.fit, **usual)
    assert not hasattr(wrong[0], "vocabulary_")


def test_a_fit_that_fails_changes_nothing(texts, teacher):
    labelled, more = texts[0], texts[1][0]
    model = make_text_classifier().fit(
        *labelled, unlabeled=more, teacher=teacher, teacher_weight=1.0
    )
    before, steps = model.predict_proba(more), model.steps
    refused(
        "but unlabeled has 3", model.fit, *labelled, unlabeled=more[:3], teacher=np.ones((2, 2)) / 2
    )
    refused("expected y, got None", model.fit, labelled[0], None, unlabeled=more, teacher=teacher)
    assert model.steps is steps
    assert model.teacher_weight_ == 1
    assert_array_equal(model.predict_proba(more), before)
