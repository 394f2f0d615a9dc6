"""Linear classifiers and naive Bayes are explained by their sums, other classifiers by effects."""

import json
import pickle
import warnings
from copy import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from golden import texts as generated_texts
from helpers import refused, sums_of_documents
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from pages import Page
from scipy.special import logit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.inspection import TokenImportanceDisplay, explain, label_issues, report

TEXTS, LABELS = generated_texts(90, 2, 3)
THREE, OF_THREE = generated_texts(90, 3, 3)
BOTH = np.stack([OF_THREE == "good", OF_THREE != "odd"], axis=1).astype(int)
ASKED = ["a good film, not bad at all", "bad bad bad", "nothing that is known", ""]

# scikit-learn 1.8 warns of its defaults, and earlier releases do not know the new ones.
NEW_DEFAULTS = {"scoring": "neg_log_loss"}
if "use_legacy_attributes" in LogisticRegressionCV().get_params():
    NEW_DEFAULTS |= {"l1_ratios": (0.0,), "use_legacy_attributes": False}

LINEAR = {
    "LogisticRegression": LogisticRegression(),
    "without intercept": LogisticRegression(fit_intercept=False),
    "sparse coefficients": SGDClassifier(penalty="l1", random_state=0),
    "LogisticRegressionCV": LogisticRegressionCV(Cs=2, cv=2, **NEW_DEFAULTS),
    "LinearSVC": LinearSVC(),
    "LinearSVC without intercept": LinearSVC(fit_intercept=False),
    "SGD": SGDClassifier(random_state=0),
    "SGD, Huber": SGDClassifier(loss="modified_huber", random_state=0),
    "RidgeClassifier": RidgeClassifier(),
    "RidgeClassifierCV": RidgeClassifierCV(),
    "Perceptron": Perceptron(),
    "one against the rest": OneVsRestClassifier(LogisticRegression()),
    "ClsAttentionClassifier": ClsAttentionClassifier(C=1.0),
}
NAIVE_BAYES = {
    "MultinomialNB": MultinomialNB(),
    "uniform prior": MultinomialNB(fit_prior=False, alpha=0.1),
    "ComplementNB": ComplementNB(),
    "ComplementNB, norm": ComplementNB(norm=True),
    "BernoulliNB": BernoulliNB(),
    "BernoulliNB, threshold": BernoulliNB(binarize=0.3),
    "BernoulliNB of binary counts": BernoulliNB(binarize=None),
}
FITTED_ONLY = ["ClsAttentionClassifier", "LogisticRegressionCV"]  # no weights of one's own
OF_TWO = {
    "SVC": SVC(kernel="linear"),
    "NuSVC": NuSVC(kernel="linear"),
}


def fitted(classifier, vectorizer=None, n_classes=2):
    vectorizer = vectorizer or TfidfVectorizer()
    if isinstance(classifier, BernoulliNB) and classifier.binarize is None:
        vectorizer = CountVectorizer(binary=True)
    documents = (TEXTS, LABELS) if n_classes == 2 else (THREE, OF_THREE)
    return clone(make_pipeline(vectorizer, classifier)).fit(*documents)


def sums(explanation):
    """Return contributions plus intercept, and the size of the terms, (n_documents, n_targets)."""
    terms = sums_of_documents(explanation, explanation.contributions)
    sizes = sums_of_documents(explanation, abs(explanation.contributions))
    return terms + explanation.intercept, sizes + abs(explanation.intercept) + 1.0


def assert_sums(explanation, expected):
    """Require sums that are the expected decisions, (n_documents, n_targets)."""
    totals, sizes = sums(explanation)
    expected = np.reshape(expected, totals.shape)
    assert (abs(totals - expected) <= 1e-12 * sizes).all()
    assert (abs(explanation.decision - expected) <= 1e-12 * sizes).all()


# ---- sums ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", LINEAR)
def test_sums_are_the_decisions(name, n_classes):
    model = fitted(LINEAR[name], n_classes=n_classes)
    if name == "sparse coefficients":
        model[-1].sparsify()
    explanation = explain(model, ASKED)
    assert explanation.is_sum
    assert_sums(explanation, model.decision_function(ASKED))
    assert_array_equal(explanation.predicted, model.predict(ASKED))
    if hasattr(model, "predict_proba"):
        numbers = [model.classes_.tolist().index(label) for label in explanation.targets]
        assert_allclose(explanation.probability, model.predict_proba(ASKED)[:, numbers], rtol=1e-12)
    else:
        assert explanation.probability is None
    assert_shown(explanation)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", NAIVE_BAYES)
def test_sums_are_differences_of_log_probabilities(name, n_classes):
    model = fitted(NAIVE_BAYES[name], n_classes=n_classes)
    explanation = explain(model, ASKED)
    joint = model[-1].predict_joint_log_proba(model[0].transform(ASKED))
    expected = joint[:, 1] - joint[:, 0]
    if n_classes == 3:
        expected = joint - joint.mean(axis=1, keepdims=True)
        logs = model.predict_log_proba(ASKED)
        gaps = explanation.decision - explanation.decision[:, [0]]
        assert_allclose(gaps, logs - logs[:, [0]], atol=1e-9)
    assert_sums(explanation, expected)
    assert_array_equal(explanation.predicted, model.predict(ASKED))
    assert_shown(explanation)


@pytest.mark.parametrize("name", OF_TWO)
def test_support_vector_machines_of_two_classes(name):
    model = fitted(OF_TWO[name])
    assert_sums(explain(model, ASKED), model.decision_function(ASKED))
    of_three = fitted(OF_TWO[name], n_classes=3)
    assert not explain(of_three, ASKED).is_sum


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([name for name in [*LINEAR, *NAIVE_BAYES] if name not in FITTED_ONLY]),
    st.integers(2, 4),
    st.integers(0, 10**6),
    st.sampled_from([1.0, 1e-6, 1e6]),
)
def test_sums_of_generated_weights(name, n_classes, seed, scale):
    """Whatever the weights and the counts, of a matrix."""
    rng = np.random.default_rng(seed)
    y = np.arange(12) % n_classes
    X = sp.csr_array(scale * rng.poisson(0.7, size=(12, 9)).astype(float))
    classifier = {**LINEAR, **NAIVE_BAYES}[name]
    classifier = clone(classifier)
    if isinstance(classifier, BernoulliNB) and classifier.binarize is None:
        X.data[:] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence does not matter
        classifier.fit(X, y, **({} if "rest" in name else {"sample_weight": rng.random(12) + 0.1}))
    for one in getattr(classifier, "estimators_", [classifier]):
        if hasattr(one, "coef_"):
            one.coef_ = rng.normal(size=one.coef_.shape) * (rng.random(one.coef_.shape) < 0.7)
    if name == "sparse coefficients":
        classifier.sparsify()
    if hasattr(classifier, "feature_log_prob_") and name != "BernoulliNB":
        classifier.feature_log_prob_ = -rng.gamma(2.0, size=classifier.feature_log_prob_.shape)
    explanation = explain(classifier, X)
    if name in NAIVE_BAYES:
        joint = classifier.predict_joint_log_proba(X)
        expected = joint[:, [1]] - joint[:, [0]]
        if n_classes > 2:
            expected = joint - joint.mean(axis=1, keepdims=True)
        size = abs(joint).max() + 1.0
        assert abs(sums(explanation)[0] - expected).max() <= 1e-12 * size
    else:
        assert_sums(explanation, classifier.decision_function(X))
    assert_array_equal(explanation.predicted, classifier.predict(X))


@pytest.mark.parametrize(
    "classifier",
    [
        OneVsRestClassifier(LogisticRegression()),
        OneVsRestClassifier(LinearSVC()),
        RidgeClassifier(),
    ],
    ids=["probabilities", "decisions", "ridge"],
)
def test_one_of_several_labels(classifier):
    y = sp.csr_matrix(BOTH) if isinstance(classifier, OneVsRestClassifier) else BOTH
    model = make_pipeline(TfidfVectorizer(), classifier).fit(THREE, y)
    refused("Documents have several labels", explain, model, ASKED)
    predicted = model.predict(ASKED)
    predicted = predicted.toarray() if sp.issparse(predicted) else predicted
    for label in (0, 1):
        explanation = explain(model, ASKED, target=label, y_true=[1, 0, 1, 0])
        assert explanation.classes.tolist() == [f"not {label}", str(label)]
        assert_sums(explanation, model.decision_function(ASKED)[:, label])
        has_label = predicted[:, label]
        assert_array_equal(explanation.predicted, explanation.classes[has_label])
        assert_array_equal(explanation.true, explanation.classes[[1, 0, 1, 0]])
        for answer in explanation.counterfactual():
            if answer.found:
                after = int(model.predict([answer.edited_text])[0, label])
                assert explanation.classes[after] == answer.after != answer.before
        assert_shown(explanation)


def test_values_are_coefficients():
    model = fitted(LogisticRegression(), CountVectorizer())
    explanation = explain(model, ["good good film"])
    names = model[0].get_feature_names_out()
    coefficients = dict(zip(names, model[-1].coef_[0], strict=True))
    assert_allclose(explanation.values[:, 0], [coefficients[t] for t in explanation.tokens])
    assert_array_equal(explanation.weights, [1.0, 2.0])
    assert explanation.attention is None
    frame = explanation.to_frame()
    assert "attention" not in frame
    assert_allclose(frame["contribution"].sum(), model.decision_function(["good good film"])[0])
    assert (
        explain(model, ["good"], target="bad").decision[0, 0] == -explain(model, ["good"]).decision
    )


@pytest.mark.parametrize("vectorizer", [TfidfVectorizer(), CountVectorizer(ngram_range=(1, 2))])
@pytest.mark.parametrize("name", ["LogisticRegression", "SGD", "LinearSVC", "one against the rest"])
def test_weights_are_those_of_eli5(name, vectorizer):
    """On the classifiers and vectorizers of its own tests; it has no binary RidgeClassifier."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eli5 = pytest.importorskip("eli5", reason="pip install --group eli5")
    for n_classes in (2, 3):
        model = fitted(LINEAR[name], clone(vectorizer), n_classes=n_classes)
        explanation = explain(model, ASKED[:1])
        ours = {}
        for number, label in enumerate(explanation.targets):
            ours[label, "<BIAS>"] = explanation.intercept[number]
            of_label = explanation.contributions[:, number]
            ours.update(
                zip([(label, token) for token in explanation.tokens], of_label, strict=True)
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = eli5.explain_prediction_df(model[-1], ASKED[0], vec=model[0], top=None)
        for label, token, weight in theirs[["target", "feature", "weight"]].itertuples(index=False):
            sign = 1.0
            if n_classes == 2 and label == model.classes_[0]:
                label, sign = model.classes_[1], -1.0
            assert_allclose(ours.pop((label, token)), sign * weight, rtol=1e-12)
        assert all(abs(weight) < 1e-12 for weight in ours.values())


def test_matrices_and_frames_of_a_bare_classifier():
    counter = CountVectorizer()
    X = counter.fit_transform(TEXTS)
    frame = pd.DataFrame(X.toarray(), columns=counter.get_feature_names_out())
    for documents in (X, X.tocsc(), X.toarray(), frame):
        model = LogisticRegression().fit(documents, LABELS)
        explanation = explain(model, documents)
        assert_sums(explanation, model.decision_function(documents))
        assert explanation.texts is None
        assert explanation[:3].to_text()
        names = frame.columns if documents is frame else [f"x{at}" for at in range(X.shape[1])]
        assert set(explanation.tokens) <= set(names)


def assert_shown(explanation):
    """Require an explanation to be shown in every way, and to be saved."""
    text, page = explanation.to_text(width=60, color=False), Page(explanation.to_html())
    shown = text + page.text
    assert explanation.attention is not None or "attention" not in shown
    assert "nan" not in shown
    assert "None" not in shown
    assert ("with probability" in text) == (explanation.probability is not None)
    assert ("intercept" in text) == explanation.is_sum
    plain = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    assert len(plain["documents"]) == len(explanation)
    assert set(explanation.to_frame()["document"]) <= set(explanation.index)
    assert len(pickle.loads(pickle.dumps(explanation))) == len(explanation)
    sets = explanation[:2].counterfactual()
    assert sets.to_text()
    assert "nan" not in Page(sets.to_html()).text


# ---- classifiers inside --------------------------------------------------------------------------

INSIDE = {
    "calibrated": CalibratedClassifierCV(LinearSVC(), cv=3),
    "fixed threshold": FixedThresholdClassifier(
        LogisticRegression(), threshold=0.7, pos_label="good"
    ),
    "threshold for the first": FixedThresholdClassifier(
        LogisticRegression(), threshold=0.3, pos_label="bad"
    ),
    "threshold of decisions": FixedThresholdClassifier(
        LinearSVC(), threshold=0.4, pos_label="good"
    ),
    "tuned threshold": TunedThresholdClassifierCV(LogisticRegression(), cv=2),
    "search": GridSearchCV(LogisticRegression(), {"C": [1.0, 10.0]}, cv=2),
    "vote": VotingClassifier(
        [("lr", LogisticRegression()), ("nb", MultinomialNB()), ("no", "drop")],
        voting="soft",
        weights=[3, 1, 2],
    ),
}


def members(name, model):
    """Return the classifiers inside of a model, and their shares."""
    last = model[-1]
    if name == "vote":
        return last.estimators_, [0.75, 0.25]
    if name == "calibrated":
        return [fold.estimator for fold in last.calibrated_classifiers_], [1 / 3] * 3
    return [last.best_estimator_ if name == "search" else last.estimator_], [1.0]


@pytest.mark.parametrize("name", INSIDE)
def test_sums_are_the_members_and_predictions_the_whole(name):
    model = fitted(INSIDE[name])
    explanation = explain(model, ASKED)
    X = model[0].transform(ASKED)
    expected = np.zeros(len(ASKED))
    for member, share in zip(*members(name, model), strict=True):
        if isinstance(member, MultinomialNB):
            logs = member.predict_joint_log_proba(X)
            expected += share * (logs[:, 1] - logs[:, 0])
        else:
            expected += share * member.decision_function(X)
    assert_sums(explanation, expected)
    assert_array_equal(explanation.predicted, model.predict(ASKED))
    if explanation.probability is not None:
        assert_allclose(explanation.probability[:, 0], model.predict_proba(ASKED)[:, 1], rtol=1e-12)
    assert_shown(explanation)
    says_so = {
        "calibrated": "3 classifiers inside, on average",
        "vote": "2 classifiers inside, on average",
        "threshold of decisions": "LinearSVC inside",
        "search": "",
    }
    assert explanation.inside == says_so.get(name, "LogisticRegression inside")
    remark = f"the sum is the decision of the {explanation.inside}"
    assert (remark in explanation.to_text(width=200)) == (name != "search")
    found = 0
    for sets in (explanation.counterfactual(), explanation.sufficient()):
        for answer in sets:
            if answer.found:
                found += 1
                assert model.predict([answer.edited_text])[0] == answer.after
    assert found > 2


def test_whole_pipelines_inside_with_words_of_their_own():
    whole = VotingClassifier(
        [
            ("words", fitted(LogisticRegression(), CountVectorizer())),
            ("pairs", fitted(ClsAttentionClassifier(C=1.0), CountVectorizer(ngram_range=(1, 2)))),
        ],
        voting="soft",
    ).fit(TEXTS, LABELS)
    explanation = explain(whole, ASKED)
    words, pairs = whole.estimators_
    assert not explanation[0].located_text.occurrences  # which differ
    folds = CalibratedClassifierCV(fitted(LinearSVC()), cv=2).fit(TEXTS, LABELS)
    assert explain(folds, ASKED)[0].located_text.occurrences
    assert_sums(explanation, (words.decision_function(ASKED) + pairs.decision_function(ASKED)) / 2)
    assert len(set(explanation[0].tokens)) == len(explanation[0].tokens)
    assert explanation[3].tokens.size == 0


@pytest.mark.parametrize(
    "classifier",
    [
        KNeighborsClassifier(2),
        ComplementNB(),
        MultinomialNB(),
        LogisticRegression(fit_intercept=False),
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_what_is_predicted_of_level_classes_counts(classifier):
    texts = ["good film", "good plot", "bad film", "bad plot"]
    model = make_pipeline(CountVectorizer(), classifier).fit(texts, ["good", "good", "bad", "bad"])
    assert model.predict(["film"])[0] == "bad"
    (answer,) = explain(model, ["good film"]).counterfactual()
    assert answer.words == ("good",)
    assert answer.statement.startswith('Remove "good" and the prediction becomes bad (50.0%).')
    assert explain(model, ["film"]).sufficient()[0].found


@pytest.mark.parametrize("pos_label", ["bad", "good"])
def test_margins_are_from_the_threshold(pos_label):
    fixed = {"threshold": 0.7, "pos_label": pos_label}
    scoring = make_scorer(fbeta_score, beta=4, pos_label=pos_label)
    for wrapper in (
        FixedThresholdClassifier(LogisticRegression(), **fixed),
        FixedThresholdClassifier(LinearSVC(), **fixed),
        FixedThresholdClassifier(
            SGDClassifier(loss="modified_huber"), **fixed, response_method="decision_function"
        ),
        TunedThresholdClassifierCV(LogisticRegression(), scoring=scoring, cv=2),
    ):
        model = fitted(wrapper, CountVectorizer())
        threshold = getattr(model[-1], "best_threshold_", 0.7)
        member = make_pipeline(model[0], model[-1].estimator_)
        if isinstance(member[-1], LogisticRegression):
            threshold = logit(threshold)
        for answer in explain(model, [text[:90] for text in TEXTS[:5]]).counterfactual():
            score = member.decision_function([answer.text])[0]
            score = score if pos_label == "good" else -score
            margin = score - threshold if answer.before == pos_label else threshold - score
            assert_allclose(answer.margins[0], margin, rtol=1e-9, atol=1e-8)


def test_an_estimator_fitted_before_its_threshold():
    whole = fitted(LogisticRegression())
    model = FixedThresholdClassifier(whole, threshold=0.7, pos_label="good")
    assert_array_equal(explain(model, ASKED).predicted, model.predict(ASKED))


def test_confidence_of_reports_is_in_what_is_predicted():
    model = fitted(INSIDE["fixed threshold"])
    test = TEXTS[:40]
    probabilities, predicted = model.predict_proba(test), model.predict(test)
    wrong = np.flatnonzero(predicted != LABELS[:40])
    of_predicted = probabilities[wrong, (predicted[wrong] == "good").astype(int)]
    first = wrong[np.argmax(of_predicted)]
    page = report(model, test, LABELS[:40])
    assert page.index(f"Document {first}<") == min(
        page.index(f"Document {number}<") for number in wrong[:10]
    )


def test_arrays_stay_arrays():
    lower = FunctionTransformer(lambda texts: np.char.lower(texts.astype(str)))
    model = make_pipeline(lower, CountVectorizer(), LogisticRegression())
    model.fit(np.array(TEXTS, dtype=object), LABELS)
    for documents in (np.array(ASKED), np.array(ASKED, dtype=object)):
        assert explain(model, documents).counterfactual()[0].found


def test_a_threshold_inside_a_vote_is_its_own_affair():
    model = fitted(
        VotingClassifier(
            [("one", INSIDE["fixed threshold"]), ("two", LogisticRegression())],
            voting="soft",
            weights=np.array([1.0, 2.0]),
        )
    )
    (answer, *_) = explain(model, ASKED).counterfactual()
    probabilities = model.predict_proba([answer.text])[0]
    odds = np.log(probabilities.max() / probabilities.min())
    assert_allclose(answer.margins[0], odds, rtol=1e-9)


def test_folds_that_know_other_classes_have_effects():
    model = fitted(LogisticRegression(), n_classes=3)
    other = clone(model).fit(THREE, np.where(OF_THREE == "odd", "good", OF_THREE))
    whole = CalibratedClassifierCV(FrozenEstimator(model)).fit(THREE, OF_THREE)
    assert explain(whole, ASKED).is_sum
    first = whole.calibrated_classifiers_[0]
    second = copy(first)
    second.estimator = other
    whole.calibrated_classifiers_ = [first, second]
    assert not explain(whole, ASKED).is_sum
    message = "the classifiers inside know different classes"
    refused(message, TokenImportanceDisplay.from_estimator, whole, ASKED, error=TypeError)
    assert "classes inside" not in report(whole, ASKED, ["good", "bad", "bad", "good"])


# ---- models whose decisions are no sums ----------------------------------------------------------

NO_SUM = {
    "forest": RandomForestClassifier(7, random_state=0),
    "neighbours": KNeighborsClassifier(3),
    "kernel": SVC(),
    "boosted calibration": CalibratedClassifierCV(KNeighborsClassifier(3), cv=2),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", NO_SUM)
def test_effects_are_those_of_deleting_words(name, n_classes):
    model = fitted(NO_SUM[name], n_classes=n_classes)
    text = "A good film, not bad: good"
    one = explain(model, [text])
    assert not one.is_sum
    assert one.intercept is None
    assert one.tokens.tolist() == ["A", "good", "film", "not", "bad"]
    assert one.weights.tolist() == [1, 2, 1, 1, 1]
    without = {
        "A": "good film, not bad: good",
        "good": "A film, not bad:",
        "film": "A good, not bad: good",
        "not": "A good film, bad: good",
        "bad": "A good film, not: good",
    }

    def measure(document):
        if name == "kernel":
            return np.atleast_1d(model.decision_function([document])[0])
        probabilities = model.predict_proba([document])[0]
        return probabilities[1:] - 0.5 if n_classes == 2 else probabilities

    for token, effect, left in zip(
        one.tokens, one.contributions, one.decision_without, strict=True
    ):
        assert_allclose(left, measure(without[token]), atol=1e-12)
        assert_allclose(effect, measure(text) - measure(without[token]), atol=1e-12)
    assert_array_equal(one.predicted, model.predict([text]))
    assert "effects do not add up" in one.to_text(width=200)
    assert "effect" in one.to_frame()
    assert "contribution" not in one.to_frame()
    assert one.to_frame()["kind"].unique().tolist() == ["token"]
    assert_shown(explain(model, ASKED))
    refused("a decision that is a sum", one.plot)


def test_columns_without_names_say_nothing_of_texts():
    for vectorizer in (
        HashingVectorizer(n_features=64),
        make_pipeline(HashingVectorizer(n_features=64), MaxAbsScaler()),
        make_pipeline(CountVectorizer(), TruncatedSVD(2), MaxAbsScaler()),
        FunctionTransformer(embedded),
    ):
        model = fitted(LogisticRegression(), vectorizer)
        explanation = explain(model, ["a good film"])
        assert not explanation.is_sum
        assert explanation.tokens.tolist() == ["a", "good", "film"]
        X = model[0].transform(["a good film"])
        assert_sums(explain(model[-1], X), model.decision_function(["a good film"]))
        assert explain(model[-1], X).tokens[0].startswith("x")


def embedded(texts):
    """Return two numbers of each text."""
    return np.array([[len(text), text.count("good")] for text in texts], dtype=float)


class Rules:
    """A classifier of texts that is none of scikit-learn's: only its predictions are known."""

    def __init__(self, says, names=None):
        self.says = says
        self.labels = names or says

    def predict_proba(self, texts):
        share = np.array(["good" in text for text in texts]) * 0.6 + 0.2
        return np.stack([1 - share, share], axis=1)

    def predict(self, texts):
        return [self.says[int(row[1] > 0.5)] for row in self.predict_proba(texts)]


def test_any_object_that_predicts_texts():
    explanation = explain(Rules(["bad", "good"]), ["good and good", "so so"])
    assert explanation.predicted.tolist() == ["good", "bad"]
    assert_allclose(explanation[0].contributions[:, 0], [0.6, 0.0], atol=1e-12)
    statement = explanation[0].counterfactual().statement(0)
    assert statement == 'Remove "good" and the prediction becomes bad (80.0%).'
    assert_shown(explanation)


# ---- what is refused, and pages ------------------------------------------------------------------


def test_what_cannot_be_explained():
    forest = fitted(NO_SUM["forest"])
    X = forest[0].transform(TEXTS)
    refused("pass texts, and the whole Pipeline", explain, forest[-1], X, error=TypeError)
    refused("string", explain, fitted(LogisticRegression()), "one text")
    refused("one text", explain, forest, "one text")
    refused("one text", explain, Rules(["bad", "good"]), "one text")
    refused("2 was predicted, which is none of", explain, Rules([1, 2], names=[0, 1]), ASKED)
    refused("expecting 5 features", explain, LinearSVC().fit(X[:, :5], LABELS), X)
    ovo = fitted(SVC(decision_function_shape="ovo"), n_classes=3)
    refused("decision_function_shape", explain, ovo, ASKED)
    frame = pd.DataFrame(X.toarray(), columns=forest[0].get_feature_names_out())
    named = LinearSVC().fit(frame, LABELS)
    refused("feature names should match", explain, named, frame.iloc[:, ::-1])
    hard = VotingClassifier([("one", make_pipeline(CountVectorizer(), LinearSVC()))])
    refused("neither predict_proba nor", explain, hard.fit(TEXTS, LABELS), ASKED, error=TypeError)
    unfitted = make_pipeline(CountVectorizer(), LogisticRegression())
    refused("not fitted", explain, unfitted, TEXTS, error=NotFittedError)
    refused("expected a fitted classifier", explain, str.upper, TEXTS, error=TypeError)
    linear = fitted(LogisticRegression())
    refused("ClsAttentionClassifier", label_issues, linear, TEXTS, LABELS, error=TypeError)
    refused("not a sum over", TokenImportanceDisplay.from_estimator, forest, TEXTS, error=TypeError)


@pytest.mark.parametrize("name", ["LogisticRegression", "LinearSVC", "forest"])
def test_reports_of_any_classifier(name):
    model = fitted({**LINEAR, **NO_SUM}[name], n_classes=3)
    page = report(model, THREE[:30], OF_THREE[:30])
    assert ("calibrated" in page) == (name != "LinearSVC")
    assert ("Important tokens" in page) == (name != "forest")


def test_important_tokens_of_several_labels():
    model = make_pipeline(CountVectorizer(), RidgeClassifier()).fit(THREE, BOTH)
    display = TokenImportanceDisplay.from_estimator(model, THREE)
    X = model[0].transform(THREE).toarray()
    expected = (model[-1].coef_ * X.std(axis=0)).T
    assert_allclose(display.importance.to_numpy(), expected, atol=1e-12)


def test_important_tokens_of_linear_classifiers():
    model = fitted(LogisticRegression(), CountVectorizer(), n_classes=3)
    display = TokenImportanceDisplay.from_estimator(model, THREE)
    X = model[0].transform(THREE).toarray()
    coefficients = model[-1].coef_ - model[-1].coef_.mean(axis=0)
    expected = (coefficients * X.std(axis=0)).T
    assert_allclose(display.importance.to_numpy(), expected, atol=1e-12)
    both = VotingClassifier([("one", model), ("again", model)], voting="soft").fit(THREE, OF_THREE)
    display = TokenImportanceDisplay.from_estimator(both, THREE)
    names = model[0].get_feature_names_out()
    assert_allclose(display.importance.loc[names].to_numpy(), expected, atol=1e-4)
