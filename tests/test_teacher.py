"""Learning from another model: its probabilities on unlabelled texts, and how much they count."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import refused
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.text._teacher import N_FOLDS

N_LABELLED, N_MORE = 40, 240
words = partial(TextClassifier, characters=None)


def logistic():
    return make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))


@pytest.fixture(scope="module", autouse=True)
def short_search():
    """Two values of C and of gamma: here it does not matter which is chosen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sklearn_clsattn.training.choose_c.CS", (1.0, 10.0))
        patch.setattr("sklearn_clsattn.training.fit.SCALES", (0.0, 1.0))
        yield


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
    return TextClassifier().fit(*texts[0], unlabeled=texts[1][0], teacher=teacher)


def test_a_good_teacher_helps(texts, taught):
    alone = clone(taught).fit(*texts[0], unlabeled=texts[1][0], teacher=np.ones((N_MORE, 2)) / 2)
    assert not hasattr(alone.fit(*texts[0]), "teacher_weights_")  # a later fit has none
    assert taught.score(*texts[2]) > alone.score(*texts[2]) + 0.05
    assert taught.teacher_weights_ > 0


def test_a_bad_teacher_does_not_count(texts):
    """One that says the opposite, or anything: the model is that of the labels, bit by bit."""
    many, more = (texts[3][0][:100], texts[3][1][:100]), texts[1][0]
    truth = logistic().fit(*texts[3]).predict_proba(more)
    at_random = np.random.default_rng(0).dirichlet([1, 1], N_MORE)
    expected = words().fit(*many, unlabeled=more).predict_proba(texts[2][0])
    for wrong in (truth[:, ::-1], at_random):
        model = words().fit(*many, unlabeled=more, teacher=wrong)
        assert model.teacher_weights_ == 0
        assert_array_equal(model.predict_proba(texts[2][0]), expected)


def test_what_texts_alone_teach_is_not_lost_to_a_bad_teacher():
    """The fit without the teacher learns vectors from texts; it was judged without them."""
    texts, topics = load_requests(return_X_y=True)
    labelled, more = (texts[:30], topics[:30]), texts[30:600]
    expected = words().fit(*labelled, unlabeled=more)
    model = clone(expected).fit(*labelled, unlabeled=more, teacher=at_random_of(4))
    assert_array_equal(model.predict_proba(more), expected.predict_proba(more))


def at_random_of(n_classes):
    """Return a teacher that says nothing of a text."""
    rng = np.random.default_rng(1)
    return lambda some: rng.dirichlet(np.ones(n_classes), len(some))


def test_the_order_of_the_texts_does_not_matter(texts, teacher, taught):
    order = np.random.default_rng(0).permutation(N_MORE)
    more = [texts[1][0][at] for at in order]
    model = TextClassifier().fit(*texts[0], unlabeled=more, teacher=teacher)
    assert model.teacher_weights_ == taught.teacher_weights_
    expected = taught.predict_proba(texts[2][0])
    assert_allclose(model.predict_proba(texts[2][0]), expected, atol=1e-3)


FEW = ["good film", "bad film", "good fun", "bad fun"] * 5
MORE = ["good one", "bad one", "so good", "so bad"] * 5


def knows_good(some):
    """Return probabilities of bad and good, of a teacher that is right and not very sure."""
    good = np.array([0.8 if "good" in text else 0.2 for text in some])
    return np.stack([1 - good, good], axis=1)


def test_every_form_of_a_teacher():
    labelled = FEW, ["good", "bad"] * 10
    teacher = logistic().fit(*labelled)
    table = pd.DataFrame(teacher.predict_proba(MORE), columns=teacher.classes_)
    asked = []

    def ask(some):
        assert type(some) is list
        asked.append(len(some))
        return teacher.predict_proba(some)

    class Other:
        """As SetFit is: no estimator of scikit-learn, names as `labels`."""

        labels = teacher.classes_[::-1].tolist()

        def predict_proba(self, some):
            return teacher.predict_proba(some)[:, ::-1]

    expected = words().fit(*labelled, unlabeled=MORE, teacher=table.to_numpy())
    for form in (
        table[table.columns[::-1]],
        pl.DataFrame(table[table.columns[::-1]]),
        ask,
        Other(),
    ):
        model = words().fit(*labelled, unlabeled=MORE, teacher=form)
        assert_allclose(model.predict_proba(MORE), expected.predict_proba(MORE), atol=1e-6)
    assert asked == [len(MORE)]


@pytest.mark.parametrize("names", [("bad", "good"), (False, True)])
def test_labels_of_every_type(names):
    labels = np.array(names)[[1, 0, 1, 0] * 5]
    for form in (knows_good, pd.DataFrame(knows_good(MORE), columns=names)):
        model = words().fit(FEW, labels, unlabeled=MORE, teacher=form)
        assert model.classes_.tolist() == list(names)
        assert model.predict(["good one", "bad one"]).tolist() == list(names[::-1])


class Counted(TfidfVectorizer):
    n_fits = 0

    def fit_transform(self, *given):
        type(self).n_fits += 1
        return super().fit_transform(*given)


def test_an_unfitted_teacher_learns_once_from_each_fold(texts):
    labelled, more = texts[0], texts[1][0][:60]
    unfitted = make_pipeline(Counted(), LogisticRegression(C=10))
    for n_teachers in (1, 2):
        Counted.n_fits = 0
        words(C=1.0).fit(*labelled, unlabeled=more, teacher=[unfitted] * n_teachers)
        assert Counted.n_fits == n_teachers * (1 + N_FOLDS)


class Shuffles(BaseEstimator):
    """A teacher whose `fit` shuffles the list that it gets."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        np.random.default_rng(0).shuffle(X)
        y[:] = y[::-1]
        return self

    def predict_proba(self, X):
        return knows_good(X)


def test_an_unfitted_teacher_gets_lists_of_its_own():
    texts, labels = list(FEW), np.array(["good", "bad"] * 10)
    model = words().fit(texts, labels, unlabeled=list(MORE), teacher=Shuffles())
    assert texts == FEW
    assert labels.tolist() == ["good", "bad"] * 10
    expected = words().fit(FEW, labels, unlabeled=MORE, teacher=knows_good)
    assert_array_equal(model.predict_proba(FEW), expected.predict_proba(FEW))


def test_an_unfitted_teacher_is_judged_without_the_labels_it_saw(texts):
    unfitted = logistic()
    labelled, more = texts[0], texts[1][0]
    model = words().fit(*labelled, unlabeled=more, teacher=unfitted)
    assert not hasattr(unfitted[-1], "coef_")  # it stays as it was
    saw_all = words().fit(*labelled, unlabeled=more, teacher=logistic().fit(*labelled))
    assert model.teacher_weights_ < 0.5 < saw_all.teacher_weights_


@pytest.mark.parametrize("teacher", [knows_good, logistic()])
def test_a_class_may_have_a_single_text(teacher):
    """It is in training or held out; a teacher that is fitted without it does not know it."""
    rare = {"X": [*FEW, "dull"], "y": [*["good", "bad"] * 10, "rare"]}
    if teacher is knows_good:
        P = np.column_stack([0.9 * knows_good(MORE), np.full(len(MORE), 0.1)])
        teacher = pd.DataFrame(P, columns=["bad", "good", "rare"])
    model = words().fit(**rare, unlabeled=MORE, teacher=teacher)
    assert model.classes_.tolist() == ["bad", "good", "rare"]
    assert model.predict(["good one", "bad one"]).tolist() == ["good", "bad"]


def test_labelled_texts_may_all_be_equal():
    """Then none can be held out, to judge the teacher."""
    model = words().fit(["film"] * 12, ["good", "bad"] * 6, unlabeled=MORE, teacher=knows_good)
    assert model.predict(["good one", "bad one"]).tolist() == ["good", "bad"]


def test_a_teacher_may_know_more_classes():
    labels = ["good", "bad"] * 10
    P = pd.DataFrame({"so-so": [0.9, 0.0], "good": [0.05, 1.0], "bad": [0.05, 0.0]})
    P = pd.concat([P] * 20, ignore_index=True)
    model = words().fit(FEW, labels, unlabeled=["so so", "good"] * 20, teacher=P)
    assert model.classes_.tolist() == ["bad", "good", "so-so"]


def table_with_a_gap(row):
    """Return probabilities of which the first are no answer, and one is missing in a row."""
    table = pd.DataFrame(np.ones((N_MORE, 2)) / 2, columns=["content", "upset"])
    table.iloc[:5] = np.nan
    table.iloc[row, 0] = np.nan
    return table


def test_what_cannot_be_learned_is_refused(texts, teacher):
    of_others = pd.DataFrame(np.ones((N_MORE, 2)) / 2, columns=["x", "y"])
    usual = dict(zip("Xy", texts[0], strict=True)) | {"unlabeled": texts[1][0], "teacher": teacher}
    for change, message in [
        ({"unlabeled": None}, "pass unlabeled"),
        ({"teacher": np.ones((3, 2)) / 2}, "probabilities of 3 texts, but unlabeled has 240"),
        ({"teacher": np.ones((N_MORE, 3)) / 3}, "a column for each of"),
        ({"teacher": np.ones((N_MORE, 2))}, "rows that add up to 1"),
        ({"teacher": of_others}, r"which do not include the labels"),
        ({"teacher": ["UPSET"] * N_MORE}, r"The teacher says \['UPSET'\]: expected labels of y"),
        ({"teacher": np.linspace(0.1, 0.9, N_MORE)}, "Unknown label type"),
        ({"teacher": [table_with_a_gap(7)]}, "row 7 has a sum of nan"),
        ({"y": [[0, 1]] * N_LABELLED}, "With a teacher, expected one label per text"),
        ({"y": texts[0][1][1:]}, "inconsistent numbers of samples"),
    ]:
        model = words()
        refused(message, model.fit, **usual | change)
        assert not hasattr(model, "vectorizer_")


# Several teachers


def labels_of(some):
    """Return labels, and None for texts that begin with "so"."""
    return [None if t.startswith("so") else "good" if "good" in t else "bad" for t in some]


def at_random(some):
    """Return probabilities that say nothing of these texts."""
    return np.random.default_rng(1).dirichlet([1, 1], len(some))


def test_labels_without_probabilities_and_texts_without_an_answer():
    answers = pd.DataFrame(knows_good(MORE), columns=["bad", "good"])
    answers.loc[[text.startswith("so") for text in MORE]] = np.nan
    for form in (labels_of, labels_of(MORE), answers):
        model = words().fit([], [], unlabeled=MORE, teacher=form)
        assert model.teacher_answers_ == 10
        assert model.predict(["good one", "bad one"]).tolist() == ["good", "bad"]
        assert "so" not in model.get_feature_names_out()  # these texts are left out
    refused("No teacher answers", model.fit, [], [], unlabeled=MORE, teacher=[None] * 20)


def test_a_teacher_may_answer_with_one_class_alone():
    """As one does that knows when a text is good, and says nothing of others."""

    def praises(some):
        return ["good" if "good" in text else None for text in some]

    labels = ["good", "bad"] * 10
    for form in (praises, [praises, knows_good]):
        model = words().fit(FEW, labels, unlabeled=MORE, teacher=form)
        assert model.predict(["good one", "bad one"]).tolist() == ["good", "bad"]
        assert np.isnan(model.teacher_accuracies_[0]).all()
    wrong = 1 - knows_good(MORE)
    model = words().fit(FEW, labels, unlabeled=MORE, teacher=[praises, knows_good, wrong])
    assert model.teacher_weights_[1] > 5 * model.teacher_weights_[2]  # of two, labels say who


def test_an_estimator_without_probabilities_says_labels(texts, teacher):
    svc = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(*texts[3])
    of_svc = words().fit([], [], unlabeled=texts[1][0], teacher=svc)
    labels = svc.predict(texts[1][0])
    of_labels = words().fit([], [], unlabeled=texts[1][0], teacher=labels)
    assert_array_equal(of_svc.predict_proba(MORE), of_labels.predict_proba(MORE))


def test_labelled_texts_of_weight_0_are_left_out(texts):
    """Also for a teacher that learns from them."""
    (labelled, y), more = texts[0], texts[1][0][:60]
    weights = np.ones(N_LABELLED)
    weights[25:] = 0
    teachers = [at_random_of(2), logistic()]
    model = words().fit(labelled, y, weights, unlabeled=more, teacher=teachers)
    teachers = [at_random_of(2), logistic()]
    without = words().fit(labelled[:25], y[:25], unlabeled=more, teacher=teachers)
    assert_array_equal(model.predict_proba(MORE), without.predict_proba(MORE))


def test_a_teacher_of_a_rare_class_is_believed():
    every, topics = load_requests(return_X_y=True)
    texts, is_billing = np.array(every), np.array(topics) == "billing"
    rows = np.append(np.flatnonzero(is_billing)[:12], np.flatnonzero(~is_billing)[:150])
    knows = logistic().fit(every[1500:], is_billing[1500:])
    model = words(C=3.0, class_weight="balanced").fit(
        texts[rows].tolist(), is_billing[rows], unlabeled=every[700:1000], teacher=knows
    )
    assert model.teacher_weights_ == 1


def test_any_number_of_teachers():
    many = [knows_good(MORE)] * 25
    model = words().fit(FEW, ["good", "bad"] * 10, unlabeled=MORE, teacher=many)
    assert_allclose(model.teacher_weights_, 1 / 25)


def test_labels_say_which_of_several_teachers_is_right(texts, teacher, taught):
    model = TextClassifier().fit(
        *texts[0], unlabeled=texts[1][0], teacher=[at_random, teacher, logistic()]
    )
    at_random_weight, weight, _ = model.teacher_weights_
    assert weight > 0.5 > 0.1 > at_random_weight
    estimate, low, high = model.teacher_accuracies_.T
    assert (low < estimate).all()
    assert (estimate < high).all()
    assert estimate[1] > estimate[0]
    assert model.score(*texts[2]) > taught.score(*texts[2]) - 0.05


def test_without_labels_agreement_says_who_is_right():
    more = np.repeat(["good one", "bad one", "good fun", "bad fun"], 25).tolist()
    truth = np.array(["good" in text for text in more])
    rng = np.random.default_rng(0)
    teachers = []
    for accuracy in (0.9, 0.8, 0.5):
        good = np.where(rng.random(100) < accuracy, truth, ~truth)
        teachers.append(pd.DataFrame({"good": good * 1.0, "bad": 1.0 - good}))
    model = words().fit([], [], unlabeled=more, teacher=teachers)
    assert model.predict(["good one", "bad one"]).tolist() == ["good", "bad"]
    assert_allclose(model.teacher_accuracies_[:, 0], [0.9, 0.8, 0.5], atol=0.12)
    assert np.isnan(model.teacher_accuracies_[:, 1:]).all()
    assert model.teacher_weights_[:2].min() > 0.2 > 0.1 > model.teacher_weights_[2]
    alone = words().fit([], [], unlabeled=more, teacher=teachers[0])
    assert alone.teacher_weights_.tolist() == [1.0]
    assert np.isnan(alone.teacher_accuracies_).all()


def test_where_no_text_can_be_held_out_agreement_decides():
    """All labelled texts are equal, so that nothing says what a teacher that learns is worth."""
    model = words().fit(
        ["film"] * 12, ["good", "bad"] * 6, unlabeled=MORE, teacher=[knows_good, logistic()]
    )
    assert_allclose(model.teacher_weights_, 0.5)
    assert np.isnan(model.teacher_accuracies_[1]).all()
    assert model.predict(["good one", "bad one"]).tolist() == ["good", "bad"]


def test_labels_that_are_numbers_may_be_several_teachers():
    good = np.array(["good" in text for text in MORE], dtype=int)
    labels = [1, 0] * 10
    model = words().fit(FEW, labels, unlabeled=MORE, teacher=[good, good])
    assert model.teacher_weights_.tolist() == [0.5, 0.5]
    assert model.predict(["good one", "bad one"]).tolist() == [1, 0]


def test_ensembles_may_be_among_several_teachers():
    forest = make_pipeline(TfidfVectorizer(), RandomForestClassifier(5, random_state=0))
    teachers = [forest.fit(FEW, ["good", "bad"] * 10), knows_good]
    model = words().fit(FEW, ["good", "bad"] * 10, unlabeled=MORE, teacher=teachers)
    assert model.teacher_weights_.shape == (2,)


def test_missing_values_of_pandas_are_no_answer():
    table = pd.DataFrame(knows_good(MORE), columns=["bad", "good"]).astype("Float64")
    table.iloc[0] = pd.NA
    model = words().fit(FEW, ["good", "bad"] * 10, unlabeled=MORE, teacher=table)
    assert model.teacher_answers_ == len(MORE) - 1


def test_nan_in_a_list_of_labels_is_no_answer():
    said = ["good" if "good" in text else np.nan for text in MORE]
    model = words().fit(FEW, ["good", "bad"] * 10, unlabeled=MORE, teacher=said)
    assert model.classes_.tolist() == ["bad", "good"]
    assert model.teacher_answers_ == sum("good" in text for text in MORE)


def test_rows_in_a_list_are_one_teacher():
    rows = list(knows_good(MORE))
    model = words().fit(FEW, ["good", "bad"] * 10, unlabeled=MORE, teacher=rows)
    assert model.teacher_weights_.shape == (1,)


# Real teachers, whose packages the nightly workflow installs


@pytest.fixture(scope="module")
def minilm():
    reason = "pip install --group teachers"
    package = pytest.importorskip("all_minilm_l6_v2", reason=reason)
    return str(package.get_model_path())


@pytest.fixture(scope="module")
def topics():
    """Twenty labelled messages, 200 without, and 200 to test on."""
    every, labels = load_requests(return_X_y=True)
    return [
        (every[part].tolist(), labels[part]) for part in map(slice, (0, 20, 220), (20, 220, 420))
    ]


@pytest.mark.filterwarnings("ignore")
def test_a_fine_tuned_setfit_is_a_teacher(minilm, topics):
    setfit = pytest.importorskip("setfit", reason="pip install --group teachers")
    datasets = pytest.importorskip("datasets", reason="pip install --group teachers")
    labelled, (more, _), test = topics
    names = np.unique(labelled[1]).tolist()
    model = setfit.SetFitModel.from_pretrained(minilm, labels=names)
    arguments = setfit.TrainingArguments(
        num_iterations=2, batch_size=16, report_to="none", save_strategy="no"
    )
    table = datasets.Dataset.from_dict({"text": labelled[0], "label": labelled[1].tolist()})
    setfit.Trainer(model=model, args=arguments, train_dataset=table).train()
    taught = TextClassifier().fit(*labelled, unlabeled=more, teacher=model)
    assert taught.classes_.tolist() == names
    assert taught.teacher_weights_ == 1
    assert taught.score(*test) > TextClassifier().fit(*labelled).score(*test)


@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_of_a_sentence_transformer_is_a_teacher(minilm, topics):
    package = pytest.importorskip("sentence_transformers", reason="pip install --group teachers")
    transformer = package.SentenceTransformer(minilm, device="cpu")
    embed = FunctionTransformer(lambda some: transformer.encode(list(some)))
    labelled, (more, _), test = topics
    unfitted = make_pipeline(embed, LogisticRegression(C=3.0))
    taught = TextClassifier().fit(*labelled, unlabeled=more, teacher=unfitted)
    assert taught.teacher_answers_ == len(more)
    assert taught.score(*test) > TextClassifier().fit(*labelled).score(*test)
