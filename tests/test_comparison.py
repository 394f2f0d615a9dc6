"""compare: every model measured alike, against what scikit-learn gives step by step."""

import json
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.comparison import (
    ClassTokens,
    Model,
    class_tokens,
    compare,
    count_tokens,
    default_models,
    hold_out,
    token_effects,
)
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import AttentionNetworkClassifier
from sklearn_clsattn.text import ContextVectorizer, make_text_classifier


def counts():
    """What models are given by default, as scikit-learn counts it."""
    return CountVectorizer(ngram_range=(1, 2))


NAIVE = Model("nb", MultinomialNB(), {"alpha": [0.1, 1.0, 10.0]})


@pytest.fixture(scope="module")
def reviews():
    texts, y = make_token_classification(n_samples=200, as_text=True, flip_y=0.2, random_state=0)
    return texts[:150], y[:150], texts[150:], y[150:]


@pytest.fixture(scope="module")
def result(reviews):
    return compare(*reviews, n_top=5)


def test_all_models_are_measured(result):
    assert [model.name for model in result.models] == [model.name for model in default_models()]
    assert [model.kind for model in result.models].count("ours") == 1
    assert result.models[0].kind == "ours"
    assert result.models[-1].kind == "floor"
    floor = result.models[-1].accuracy
    for model in result.models[:-1]:
        assert floor < model.accuracy <= 1
        assert 0 < model.macro_f1 <= 1
        assert model.fit_seconds > 0
        assert model.predict_seconds > 0
        assert model.tuning_seconds is None
    without = [model.name for model in result.models if model.log_loss is None]
    assert without == ["LinearSVC, TF-IDF", "LinearSVC, same features"]
    plain = result.to_dict()
    assert (plain["n_train"], plain["n_test"], plain["classes"]) == (150, 50, [0, 1])
    assert list(result.vectorize_seconds) == ["ours", "counts", "plain"]
    assert min(result.vectorize_seconds.values()) > 0


def test_every_model_has_its_own_features(reviews, result):
    train, y, test, _ = reviews
    for name, vectorizer in (
        ("LogisticRegression, same features", ContextVectorizer(context=False)),
        ("LogisticRegression, TF-IDF", CountVectorizer(ngram_range=(1, 2))),
    ):
        model = make_pipeline(vectorizer, TfidfTransformer(), LogisticRegression()).fit(train, y)
        entrant = next(one for one in result.entrants if one.result.name == name)
        np.testing.assert_allclose(entrant.proba, model.predict_proba(test), rtol=1e-4)
    assert (ContextVectorizer().fit_transform(train, y) != result.X).nnz == 0
    ours = make_text_classifier().fit(train, y)
    np.testing.assert_allclose(result.entrants[0].proba, ours.predict_proba(test), rtol=1e-12)


def test_measurements_are_those_of_scikit_learn(reviews):
    train, y, test, y_test = reviews
    measured = compare(*reviews, models=[NAIVE], min_df=1, ngram_range=(1, 2)).models[0]
    vectorizer = CountVectorizer(ngram_range=(1, 2))
    model = MultinomialNB().fit(vectorizer.fit_transform(train), y)
    X_test = vectorizer.transform(test)
    assert measured.accuracy == accuracy_score(y_test, model.predict(X_test))
    assert measured.macro_f1 == f1_score(y_test, model.predict(X_test), average="macro")
    assert measured.log_loss == pytest.approx(log_loss(y_test, model.predict_proba(X_test)))


def test_fitted_models_are_those_that_were_measured(reviews):
    fitted = compare(*reviews, models=[NAIVE, default_models()[-1]])
    assert len(fitted.entrants) == len(fitted.models) == 2
    for entrant in fitted.entrants:
        accuracy = entrant.estimator.score(fitted.X_test, fitted.y_test)
        assert accuracy == entrant.result.accuracy
        assert (entrant.predicted == entrant.estimator.predict(fitted.X_test)).all()
        np.testing.assert_allclose(
            entrant.proba, entrant.estimator.predict_proba(fitted.X_test), rtol=1e-12
        )
    assert fitted.X.shape[0] == fitted.to_dict()["n_train"]
    assert fitted.X.shape[1] == fitted.to_dict()["n_tokens"]
    assert fitted.vectorizer.transform(reviews[2]).shape == fitted.X_test.shape
    assert fitted.y.tolist() == reviews[1].tolist()
    assert repr(fitted).startswith("<Comparison on 50 test texts: accuracy nb 0.")


def test_our_model_comes_back_as_a_pipeline_from_texts_to_labels(reviews):
    train, y, test, y_test = reviews
    names = np.array(["neg", "pos"])
    weighted = ClsAttentionClassifier(class_weight={"pos": 20.0})
    compared = compare(
        train, names[y], test, names[y_test], models=[Model("ours", weighted, kind="ours")]
    )
    expected = make_pipeline(counts(), weighted).fit(train, names[y])
    assert compared.pipeline.predict(test).tolist() == expected.predict(test).tolist()
    assert compared.pipeline[-1].class_weight == {"pos": 20.0}
    assert compared.pipeline.score(test, names[y_test]) == compared.models[0].accuracy
    inside = compare(train, names[y], test, names[y_test], models=default_models()[:1]).pipeline
    for step in inside:
        assert step.classes_.tolist() == ["neg", "pos"]
    with pytest.raises(ValueError, match="no model of kind 'ours'"):
        _ = compare(*reviews, models=[NAIVE]).pipeline


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (LogisticRegression(), "class_weight"),
        (make_pipeline(TfidfTransformer(), LinearSVC()), "linearsvc__class_weight"),
    ],
)
def test_class_weights_are_by_label(reviews, estimator, name):
    train, y, test, y_test = reviews
    names = np.array(["neg", "pos"])
    parts = train, names[y], test, names[y_test]
    estimator.set_params(**{name: {"pos": 20.0}})
    entrant = compare(*parts, models=[Model("weighted", estimator)]).entrants[0]
    expected = make_pipeline(counts(), estimator).fit(*parts[:2]).predict(test)
    assert (entrant.predicted == (expected == "pos")).all()
    assert estimator.get_params()[name] == {"pos": 20.0}
    estimator.set_params(**{name: {"odd": 2.0}})
    with pytest.raises(ValueError, match="'odd', which is no class"):
        compare(*parts, models=[Model("weighted", estimator)])


def test_floor_is_the_majority_vote(reviews):
    train, y, test, y_test = reviews
    floor = compare(*reviews, models=[default_models()[-1]]).models[0]
    vote = DummyClassifier(strategy="most_frequent").fit(train, y).predict(test)
    assert floor.accuracy == accuracy_score(y_test, vote)


def test_tuning_is_a_grid_search(reviews):
    train, y, _, _ = reviews
    models = [NAIVE, default_models()[-1]]
    tuned = compare(*reviews, models=models, tune=True, min_df=1, ngram_range=(1, 1)).models
    search = GridSearchCV(
        MultinomialNB(),
        NAIVE.grid,
        scoring="accuracy",
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
    ).fit(CountVectorizer().fit_transform(train), y)
    assert tuned[0].tuned == search.best_params_
    assert tuned[0].tuning_seconds > 0
    assert tuned[1].tuning_seconds is None
    assert NAIVE.estimator.alpha == 1.0
    assert not hasattr(NAIVE.estimator, "classes_")


def test_all_baselines_can_be_tuned_over_as_many_values():
    grids = [model.grid for model in default_models() if model.kind == "baseline"]
    assert all(len(grid) == 1 for grid in grids)
    assert {len(values) for grid in grids for values in grid.values()} == {5}
    assert default_models()[0].estimator.C == "auto"
    for model in default_models():
        for name, values in model.grid.items():
            model.estimator.set_params(**{name: values[0]})


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([True, False]), [False, True]),
        (np.array([1.0, 2.0]), [1.0, 2.0]),
        (np.array([0.5, 1.5]), [0.5, 1.5]),
        (np.array(["ja", "nein"], dtype=object), ["ja", "nein"]),
        (np.array(["ja", "nein"]), ["ja", "nein"]),
    ],
)
def test_labels_of_any_type(reviews, labels, expected):
    train, y, test, y_test = reviews
    result = compare(train, labels[y], test, labels[y_test])
    assert result.classes == expected
    assert [type(label) for label in result.classes] == [type(label) for label in expected]
    assert [tokens.label for tokens in result.tokens] == expected
    assert json.loads(json.dumps(result.to_dict()))["classes"] == expected


def test_more_classes():
    texts, y = make_token_classification(
        n_samples=200, n_classes=4, as_text=True, random_state=1, n_relevant_per_class=5
    )
    result = compare(texts[:150], y[:150], texts[150:], y[150:])
    assert [tokens.label for tokens in result.tokens] == [0, 1, 2, 3]
    assert result.models[0].accuracy > 0.8
    # Tokens of each class are its own, as generated data makes them readable.
    assert result.tokens[0].important[0][0] in {"goal", "striker", "league", "referee", "stadium"}


def test_unseen_test_labels_are_misses_and_noted(reviews):
    train, y, test, y_test = reviews
    y_test = y_test.copy()
    y_test[:5] = 7
    result = compare(train, y, test, y_test, models=[NAIVE])
    known = compare(train, y, test[5:], y_test[5:], models=[NAIVE])
    assert result.models[0].accuracy == pytest.approx(known.models[0].accuracy * 45 / 50)
    assert result.models[0].log_loss == pytest.approx(known.models[0].log_loss)
    assert result.models[0].macro_f1 < known.models[0].macro_f1
    assert any("5 of 50" in note and "7" in note for note in result.notes)


def test_shared_texts_are_noted(reviews):
    train, y, _, _ = reviews
    result = compare(train, y, train[:30], y[:30], models=[NAIVE])
    assert any(note.startswith("30 distinct test texts are also") for note in result.notes)


def test_convergence_warnings_become_notes(reviews):
    stuck = Model("stuck", LogisticRegression(max_iter=1), {"C": [1.0, 2.0]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plain = compare(*reviews, models=[stuck])
        tuned = compare(*reviews, models=[stuck], tune=True)
    assert not [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert plain.notes == ["stuck did not converge in the iterations it has by default."]
    assert tuned.notes == [
        "stuck did not converge in some fits of its tuning and in its final fit."
    ]


def test_other_warnings_pass(reviews):
    class Noisy(MultinomialNB):
        def fit(self, X, y):
            warnings.warn("something else", stacklevel=2)
            return super().fit(X, y)

    with pytest.warns(UserWarning, match="something else"):
        compare(*reviews, models=[Model("noisy", Noisy())])


def test_model_without_probabilities_or_ours(reviews):
    result = compare(*reviews, models=[Model("svc", LinearSVC())])
    assert result.models[0].log_loss is None
    assert result.models[0].calibration_error is None
    assert result.tokens == []


def test_progress(reviews):
    events = []
    models = [NAIVE, Model("vote", DummyClassifier(), kind="floor")]
    result = compare(*reviews, models=models, tune=True, progress=events.append)
    assert [(event.stage, event.model, event.n_done) for event in events] == [
        ("vectorizing", None, 0),
        ("tuning", "nb", 0),
        ("fitting", "nb", 0),
        ("done", "nb", 1),
        ("fitting", "vote", 1),
        ("done", "vote", 2),
    ]
    assert [event.result for event in events if event.result] == result.models
    assert {event.n_models for event in events} == {2}


def test_frame(result):
    frame = result.to_frame()
    assert frame.index.tolist() == [model.name for model in result.models]
    assert frame["accuracy"].tolist() == [model.accuracy for model in result.models]


class Attention:
    """What class_tokens reads of a classifier: four tokens a, b, c, d."""

    model = SimpleNamespace(n_layers=1, mlp=False)
    classes_ = np.array(["neg", "pos"])
    token_values_ = np.array([1.0, -2.0, 3.0, 0.0])
    selected_tokens_ = np.array([2, 1, 0])
    selection_counts_ = np.array([9, 5, 2])

    @classmethod
    def _model(cls):
        return cls.model

    @staticmethod
    def attention(X):
        return sparse.csr_matrix(X)


# Attention of two documents: its standard deviation is 0.3, 0.1, 0 and 0.1.
X = np.array([[0.6, 0.2, 0.1, 0.0], [0.0, 0.4, 0.1, 0.2]])


def test_class_tokens_of_two_classes():
    assert class_tokens(Attention, X, list("abcd")) == [
        ClassTokens("neg", [("b", pytest.approx(0.2))], [("b", 5)]),
        # Token c has a value and no spread: it moves no decision.
        ClassTokens("pos", [("a", pytest.approx(0.3))], [("c", 9), ("a", 2)]),
    ]
    top = class_tokens(Attention, X, list("abcd"), classes=[0, 1], n_top=1)
    assert top[1] == ClassTokens(1, [("a", pytest.approx(0.3))], [("c", 9)])


def test_class_tokens_of_more_classes():
    class Three(Attention):
        classes_ = np.array([1, 2, 3])
        # A constant for all classes says nothing.
        token_values_ = np.array([[3.0, 0, 0, 5], [0, 3.0, 0, 5], [0, 0, 3.0, 5]])

    tokens = class_tokens(Three, X + np.array([[0, 0, 0.2, 0], [0, 0, 0, 0]]), list("abcd"))
    assert [of.important for of in tokens] == [
        [("a", pytest.approx(0.6))],
        [("b", pytest.approx(0.2))],
        [("c", pytest.approx(0.2))],
    ]
    assert [of.selected for of in tokens] == [[("a", 2)], [("b", 5)], [("c", 9)]]
    with pytest.raises(ValueError, match="expected 4 names"):
        class_tokens(Three, X, ["a"])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_layers", [1, 2])
def test_effects_are_spreads_of_contributions_less_their_mean(n_classes, n_layers):
    counts, y = make_token_classification(n_samples=60, n_classes=n_classes, random_state=3)
    classifier = ClsAttentionClassifier()
    if n_layers == 2:
        classifier = AttentionNetworkClassifier(
            n_layers=2, embedding_dim=4, max_iter=2, early_stopping=False, random_state=0
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(counts, y)
    contributions = classifier.contributions(counts)
    if n_classes == 2:
        terms = np.array([-contributions.toarray(), contributions.toarray()])
    else:
        terms = np.array([of_class.toarray() for of_class in contributions])
    terms -= terms.mean(axis=0)
    effects = token_effects(classifier, counts)
    expected = np.sign(terms.sum(axis=1)) * terms.std(axis=1)
    np.testing.assert_allclose(effects, expected, atol=1e-9)
    names = [str(place) for place in range(counts.shape[1])]
    for of_class, effect in zip(class_tokens(classifier, counts, names), effects, strict=True):
        best = np.argsort(-effect, kind="stable")[:10]
        assert [name for name, _ in of_class.important] == best.astype(str).tolist()


def test_tokens_of_an_mlp_are_told_by_their_values():
    class Mlp(Attention):
        model = SimpleNamespace(n_layers=1, mlp=True)

    assert class_tokens(Mlp, X, list("abcd")) == class_tokens(Attention, X, list("abcd"))
    counts, y = make_token_classification(n_samples=40, random_state=3)
    classifier = AttentionNetworkClassifier(
        embedding_dim=4, mlp=True, max_iter=2, early_stopping=False, random_state=0
    )
    with pytest.warns(ConvergenceWarning):
        classifier.fit(counts, y)
    with pytest.raises(ValueError, match="no sum over tokens"):
        token_effects(classifier, counts)


def test_importance_is_the_spread_of_contributions():
    texts, y = make_token_classification(n_samples=100, as_text=True, random_state=3)
    vectorizer, counts = count_tokens(texts, (1, 1), 2)
    names = vectorizer.get_feature_names_out()
    classifier = ClsAttentionClassifier().fit(counts, y)
    spread = classifier.contributions(counts).toarray().std(axis=0)
    for of_class in class_tokens(classifier, counts, names, n_top=5):
        for token, importance in of_class.important:
            assert importance == pytest.approx(spread[list(names).index(token)])


def test_hold_out_is_stratified_and_reproducible():
    texts = [f"text {i}" for i in range(100)]
    labels = ["a"] * 80 + ["b"] * 20
    train, y, test, y_test = hold_out(texts, labels)
    assert sorted([*train, *test]) == sorted(texts)
    assert (y_test == "b").sum() == 4
    assert dict(zip(texts, labels, strict=True)) == dict(
        zip([*train, *test], [*y, *y_test], strict=True)
    )
    np.testing.assert_array_equal(test, hold_out(texts, labels)[2])
    assert test.tolist() != hold_out(texts, labels, random_state=1)[2].tolist()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"] * 10, "expected two classes or more"),
        (["a"] * 9 + ["b"], "smallest, b, has 1"),
        (["a", "b", "c", "d", "e"] * 2, "all 5 classes"),
    ],
)
def test_hold_out_errors(labels, message):
    with pytest.raises(ValueError, match=message):
        hold_out([f"text {i}" for i in range(10)], labels)


def test_count_tokens_needs_tokens():
    with pytest.raises(ValueError, match="is in 3 of them or more"):
        count_tokens(["good", "bad"], (1, 1), 3)


TWO = ["good good", "bad bad"] * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("text", [0], ["x"], [0]), "got one text"),
        (([], [], ["x"], [0]), "no training texts"),
        ((TWO, [0, 1] * 3, [], []), "no test texts"),
        ((TWO, [0, 1], ["x"], [0]), "one label for each training text"),
        (([*TWO[:5], 3], [0, 1] * 3, ["x"], [0]), "to be strings, got 3"),
        ((TWO, [0] * 6, ["x"], [0]), "all training labels are 0"),
        ((TWO, [0, 1] * 3, ["x"], ["0"]), "no test label occurs in training"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        compare(*arguments)


def test_models_must_be_and_have_features_that_are_known(reviews):
    with pytest.raises(ValueError, match="no models to compare"):
        compare(*reviews, models=[])
    with pytest.raises(ValueError, match=r"'counts'.*, got 'words'"):
        compare(*reviews, models=[replace(NAIVE, features="words")])


def test_tuning_needs_texts_for_every_fold():
    with pytest.raises(ValueError, match="class 'b' has 2"):
        compare(TWO, ["a"] * 4 + ["b"] * 2, ["good"], ["a"], tune=True)
