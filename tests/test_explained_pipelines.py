"""Every shape of Pipeline: explained exactly, or refused by a sentence that says what to pass."""

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    Normalizer,
    OneHotEncoder,
)

from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import TokenImportanceDisplay, explain, label_issues
from sklearn_clsattn.inspection.feature_origins import feature_origins
from sklearn_clsattn.inspection.view import views
from sklearn_clsattn.paper import (
    AttentionNetworkClassifier,
    EmbeddingClassifier,
    OneStepClassifier,
)
from sklearn_clsattn.text import ContextVectorizer

PAPER = {
    "default": ClsAttentionClassifier(),
    "one step": OneStepClassifier(max_iter=20),
    "embeddings": EmbeddingClassifier(max_iter=20, random_state=0),
    "two layers": AttentionNetworkClassifier(
        n_layers=2, embedding_dim=8, early_stopping=False, max_iter=3, random_state=0
    ),
}


def corpus(n_classes):
    texts, y = make_token_classification(
        120, n_classes=n_classes, n_irrelevant=30, document_length=8, as_text=True, random_state=0
    )
    y[::4] = (y[::4] + 1) % n_classes  # so that no class is certain
    return np.array(texts, dtype=object), np.array(["bad", "good", "odd"])[y]


TWO, THREE = corpus(2), corpus(3)


def text_model(classifier=None):
    return make_pipeline(CountVectorizer(), classifier or ClsAttentionClassifier())


def fitted(model, texts, labels):
    with warnings.catch_warnings():  # a model need not have converged to be explained
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(texts, labels)


@cache
def of_the_paper(training):
    """Return a fitted Pipeline, shared by tests that leave it as it is."""
    return fitted(text_model(clone(PAPER[training])), *TWO)


def check(model, texts, *, removal=None, **parameters):
    """Require an explanation to add up to the log-odds of the model's probabilities."""
    explanation = explain(model, texts, removal=removal, **parameters)
    P = model.predict_proba(texts)
    added = explanation.decision_terms() + explanation.intercept
    assert_allclose(added, explanation.decision, rtol=1e-10, atol=1e-10)
    if len(explanation.classes) == 2:
        assert_allclose(expit(explanation.decision[:, 0]), P[:, 1], rtol=1e-10, atol=1e-14)
    else:
        assert_allclose(softmax(explanation.decision, axis=1), P, rtol=1e-10, atol=1e-14)
    assert_array_equal(explanation.probability, P[:, 1:] if len(P.T) == 2 else P)
    assert_array_equal(explanation.predicted, model.predict(texts))
    return explanation


# Steps before the classifier.

TEXTS, LABELS = TWO
TABLE = pd.DataFrame(
    {"title": [text[:20] for text in TEXTS], "body": TEXTS, "stars": np.arange(120) % 5}
)


def second_half(texts):
    return [text[len(text) // 2 :] for text in texts]


def titles(table):
    return table["title"]


def importance(**parameters):
    return TokenImportanceTransformer(scale=False, **parameters)


SHAPES = {
    "tfidf transformer": [CountVectorizer(), TfidfTransformer()],
    "scalers": [CountVectorizer(), MaxAbsScaler(), Normalizer(), Binarizer(threshold=0.01)],
    "context selected": [ContextVectorizer(), SelectKBest(chi2, k=60)],
    "context union": [make_union(ContextVectorizer(), CountVectorizer(ngram_range=(1, 2)))],
    "passthrough": [CountVectorizer(), "passthrough", MaxAbsScaler()],
    "select k best": [CountVectorizer(), SelectKBest(chi2, k=15)],
    "text before": [FunctionTransformer(second_half), CountVectorizer()],
    "function by name": [
        CountVectorizer(),
        FunctionTransformer(np.sqrt, feature_names_out="one-to-one"),
    ],
    "union": [make_union(CountVectorizer(), CountVectorizer(ngram_range=(2, 2), min_df=2))],
    "union with selectors": [
        make_union(
            make_pipeline(CountVectorizer(), importance(k=12)),
            make_pipeline(TfidfVectorizer(ngram_range=(2, 2)), SelectKBest(chi2, k=9)),
        ),
        MaxAbsScaler(),
    ],
    "union after": [
        CountVectorizer(),
        FeatureUnion(
            [("a", MaxAbsScaler()), ("b", "passthrough"), ("c", "drop")],
            transformer_weights={"a": 2.0},
        ),
    ],
    "columns after": [
        CountVectorizer(),
        ColumnTransformer(
            [("some", MaxAbsScaler(), slice(5, 9)), ("more", "passthrough", [0, 2, 11])]
        ),
        Normalizer(),
    ],
}
TABLE_SHAPES = {
    "one column": [make_column_transformer((CountVectorizer(), "body"))],
    "two columns": [
        make_column_transformer((CountVectorizer(), "title"), (TfidfVectorizer(), "body")),
        MaxAbsScaler(),
    ],
    "by number": [
        make_column_transformer(
            (make_pipeline(CountVectorizer(), importance(k=10)), 1), ("drop", [0])
        )
    ],
    "with numbers": [
        ColumnTransformer(
            [
                ("text", CountVectorizer(), "body"),
                ("many", MaxAbsScaler(), ["stars"]),
                ("kinds", OneHotEncoder(), ["stars"]),
                ("none", MaxAbsScaler(), []),
            ],
            remainder="drop",
        ),
    ],
    "by slice and mask": [
        ColumnTransformer(
            [
                ("text", CountVectorizer(), "body"),
                ("slice", MaxAbsScaler(), slice("stars", "stars")),
                ("mask", MaxAbsScaler(), [False, False, True]),
            ]
        )
    ],
    "remainder": [
        ColumnTransformer(
            [("title", CountVectorizer(), "title"), ("body", "drop", "body")],
            remainder="passthrough",
        )
    ],
    "context": [
        make_column_transformer((ContextVectorizer(), "body"), (MaxAbsScaler(), ["stars"]))
    ],
    "item selectors": [
        FeatureUnion(
            [
                ("title", make_pipeline(FunctionTransformer(titles), CountVectorizer())),
                ("body", make_column_transformer((CountVectorizer(), "body"))),
            ]
        )
    ],
}


def fit(steps, documents):
    return make_pipeline(*steps, ClsAttentionClassifier()).fit(documents, LABELS)


def written(text, first, length):
    """Return the words that stand where a token is said to."""
    spans = text.words[first : first + max(length, 1)].tolist()
    return " ".join(text.text[start:stop] for start, stop in spans).lower()


@pytest.mark.parametrize("shape", [*SHAPES, *TABLE_SHAPES])
def test_tokens_are_those_of_the_steps_and_stand_where_they_are_said_to(shape):
    steps, documents = (
        (SHAPES.get(shape), TEXTS) if shape in SHAPES else (TABLE_SHAPES[shape], TABLE)
    )
    model = fit(steps, documents)
    explanation = check(model, documents[:20])
    X = model[:-1].transform(documents[:20])
    rows = np.repeat(np.arange(20), np.diff(explanation.indptr))
    assert_array_equal(np.asarray(X.tocsr()[rows, explanation.columns]).ravel(), explanation.counts)
    tokens = [name.rpartition("__")[2] for name in explanation.tokens]
    try:
        names = model[:-1].get_feature_names_out()[explanation.columns]
    except (AttributeError, ValueError):  # a step has no names of its own
        names = explanation.tokens
    assert tokens == [name.rpartition("__")[2] for name in names]
    for one in explanation[:10]:
        n_placed = set()
        for text in one.texts[0]:
            row = TABLE.iloc[one.index[0]]
            expected = {*row[["title", "body"]], second_half([row["body"]])[0]}
            assert text.text in expected
            for first, length, token in text.occurrences.tolist():
                name = one.tokens[token].rpartition("__")[2].rpartition(": ")[2].strip()
                assert written(text, first, length) == name
            n_placed |= set(text.occurrences[:, 2].tolist())
            shares = np.bincount(text.occurrences[:, 2], text.shares)
            assert_allclose(shares[shares > 0], 1.0)
        with_text = [token.rpartition("__")[2][:5] != "stars" for token in one.tokens]
        assert len(n_placed) == sum(with_text)
        one.to_html()


def test_searches_and_pipelines_within():
    inner = make_pipeline(MaxAbsScaler(), ClsAttentionClassifier())
    search = GridSearchCV(inner, {"clsattentionclassifier__C": [1.0]}, cv=2)
    model = make_pipeline(CountVectorizer(), search).fit(TEXTS, LABELS)
    explanation = explain(model, TEXTS)
    assert_array_equal(explanation.decision[:, 0], model.decision_function(TEXTS))
    assert len(explanation.texts[0]) == 1


def test_matrices_and_dictionaries_have_names_and_no_text():
    X = CountVectorizer().fit_transform(TEXTS)
    model = fit([MaxAbsScaler(), importance(k=5)], X)
    explanation = explain(model, X)
    kept = model[1].get_support(indices=True)
    assert {int(name[1:]) for name in explanation.tokens} <= set(kept.tolist())
    assert explanation.texts[0] == ()
    dictionaries = [{word: text.count(word) for word in text.split()} for text in TEXTS]
    explanation = explain(fit([DictVectorizer()], dictionaries), dictionaries)
    assert set(explanation[0].tokens) == set(TEXTS[0].split())


def test_names_of_frames_are_followed():
    counter = CountVectorizer().fit(TEXTS)
    names = counter.get_feature_names_out()
    frame = pd.DataFrame(counter.transform(TEXTS).toarray(), columns=names)
    selector = SelectKBest(chi2, k=7).set_output(transform="pandas")
    model = make_pipeline(selector, ClsAttentionClassifier()).fit(frame, LABELS)
    explanation = explain(model, frame, removal=True)
    assert set(explanation.tokens) <= set(model[0].get_feature_names_out())
    assert_array_equal(explanation.decision[:, 0], model.decision_function(frame))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([HashingVectorizer(alternate_sign=False)], "hashing keeps no names"),
        (
            [CountVectorizer(), TruncatedSVD(3), Binarizer()],
            r"TruncatedSVD \(step 'truncatedsvd'\).*each of them mixes several",
        ),
        ([CountVectorizer(), FunctionTransformer(abs)], 'feature_names_out="one-to-one"'),
        ([make_union(CountVectorizer(), HashingVectorizer())], "hashing keeps no names"),
    ],
    ids=["hashing", "svd", "function", "hashing in a union"],
)
def test_what_cannot_be_traced_is_said(steps, message):
    model = fit([*steps, FunctionTransformer(abs)] if "hashing" in message else steps, TEXTS)
    with pytest.raises(ValueError, match=message) as caught:
        explain(model, TEXTS)
    assert "pipeline[-1]" in str(caught.value)
    # What the message proposes works.
    matrix = model[:-1].transform(TEXTS)
    assert_array_equal(explain(model[-1], matrix).decision[:, 0], model.decision_function(TEXTS))


def test_a_vectorizer_of_several_columns_is_refused():
    several = make_pipeline(FunctionTransformer(titles), CountVectorizer())
    model = fit([make_column_transformer((several, ["title", "body"]))], TABLE)
    with pytest.raises(ValueError, match="a vectorizer reads one column"):
        explain(model, TABLE)


def test_a_vectorizer_that_has_no_hash():
    class Equal(CountVectorizer):
        def __eq__(self, other):
            return isinstance(other, Equal)

    tokens = explain(fit([Equal()], TEXTS), TEXTS[:1]).tokens
    assert set(tokens) == set(re.findall(r"\w\w+", TEXTS[0].lower()))


def test_texts_where_a_table_was_expected():
    model = fit(TABLE_SHAPES["one column"], TABLE)
    with pytest.raises(ValueError, match="expected a matrix or data frame of 3 columns"):
        explain(model, TEXTS)


def test_tokens_that_cannot_be_placed_are_shown_beside_the_text():
    own = CountVectorizer(analyzer=str.split)
    explanation = explain(fit([make_union(CountVectorizer(), own)], TEXTS), TEXTS[:1])
    assert "Tokens without a position in the text" in explanation.to_html()
    alone = explain(fit([own], TEXTS), TEXTS[:1])
    assert alone.texts[0][0].words is None
    assert alone.texts[0][0].text == TEXTS[0]
    assert "whose positions in the text are unknown" in alone.to_html()


def test_files_are_read_by_name(tmp_path):
    paths = []
    for i, text in enumerate(TEXTS):
        paths.append(str(tmp_path / f"{i}.txt"))
        (tmp_path / f"{i}.txt").write_text(text)
    explanation = explain(fit([CountVectorizer(input="filename")], paths), paths)
    assert explanation.texts[3][0].text == TEXTS[3]
    without = explain(fit([CountVectorizer()], TEXTS), TEXTS, places=False)
    assert without.texts == ((),) * len(TEXTS)


@pytest.mark.parametrize("vectorizer", [CountVectorizer(), ContextVectorizer(context=False)])
def test_names_follow_a_vectorizer_that_is_fitted_again(vectorizer):
    model = make_pipeline(vectorizer, ClsAttentionClassifier()).fit(TEXTS, LABELS)
    before = feature_origins(model).columns.names
    assert feature_origins(model).columns.names is before
    model.fit(TEXTS[:40], LABELS[:40])
    assert_array_equal(feature_origins(model).columns.names, vectorizer.get_feature_names_out())


def test_classes_that_predict_in_their_own_way_are_asked():
    class Cautious(ClsAttentionClassifier):
        def predict_proba(self, X):
            return 0.5 * super().predict_proba(X) + 0.25

    model = make_pipeline(CountVectorizer(), Cautious()).fit(TEXTS, LABELS)
    assert_allclose(explain(model, TEXTS).probability[:, 0], model.predict_proba(TEXTS)[:, 1])


def test_numbers_and_kinds_beside_texts_are_named_by_their_columns():
    model = fit(TABLE_SHAPES["with numbers"], TABLE)
    explanation = check(model, TABLE[:6])
    for view in views(explanation, None, 100):
        assert [text.name for text in view.texts] == ["body"]
        assert {token.prefix for token in view.unplaced} <= {"many", "kinds"}
        kinds = [token.term for token in view.unplaced if token.prefix == "kinds"]
        assert kinds == [f"stars_{TABLE['stars'].iloc[view.number]}"]


# Wrappers.


@pytest.mark.parametrize("threshold", [0.3, 0.64])
@pytest.mark.parametrize("pos_label", ["good", "bad"])
def test_thresholds_move_where_the_prediction_changes(pos_label, threshold):
    texts, labels = TWO
    frozen = FrozenEstimator(of_the_paper("default"))
    wrapped = FixedThresholdClassifier(frozen, threshold=threshold, pos_label=pos_label)
    explanation = check(wrapped.fit(texts, labels), texts)
    at = explanation.threshold
    assert_allclose(expit(at), threshold if pos_label == "good" else 1 - threshold)
    assert_array_equal(explanation.decision[:, 0] > at, explanation.predicted == "good")
    other = explain(wrapped, texts[:3], target="bad")
    assert other.threshold == -at
    assert_allclose(other.decision, -explanation[:3].decision, rtol=1e-6)
    assert_array_equal(other.predicted, explanation[:3].predicted)


def test_a_tuned_threshold_is_that_of_its_class_and_is_said():
    texts, labels = TWO
    scoring = make_scorer(f1_score, pos_label="bad")
    model = TunedThresholdClassifierCV(text_model(), cv=2, scoring=scoring)
    search = GridSearchCV(model, {"estimator__clsattentionclassifier__C": [1.0]}, cv=2)
    search.fit(texts, labels)
    explanation = check(search, texts[:20])
    at = expit(explanation.threshold)
    assert_allclose(at, 1 - search.best_estimator_.best_threshold_)
    if explanation.threshold:
        text = explanation.to_text(width=200)
        assert "good is predicted from" in text
        assert f"a probability of {at:.1%}" in text
    explanation.to_html()


def test_thresholds_on_decisions_and_thresholds_that_decide_alone():
    texts, labels = TWO
    model = text_model().fit(texts, labels)
    parameters = {"threshold": -0.4, "response_method": "decision_function"}
    wrapped = FixedThresholdClassifier(FrozenEstimator(model), **parameters).fit(texts, labels)
    assert check(wrapped, texts).threshold == -0.4
    auto = FixedThresholdClassifier(FrozenEstimator(model)).fit(texts, labels)
    assert check(auto, texts).threshold == 0.0
    always = FixedThresholdClassifier(FrozenEstimator(model), threshold=0.0).fit(texts, labels)
    with pytest.raises(ValueError, match=r"one class whatever the document says.*estimator_"):
        explain(always, texts)


def test_frozen_parts_are_seen_through():
    texts, labels = TWO
    model = text_model().fit(texts, labels)
    expected = explain(model, texts)
    for frozen in (
        FrozenEstimator(model),
        make_pipeline(FrozenEstimator(model[0]), FrozenEstimator(model[1])),
        make_pipeline(FrozenEstimator(make_pipeline(model[0])), model[1]),
    ):
        explanation = check(frozen, texts)
        assert_array_equal(explanation.contributions, expected.contributions)
        assert_array_equal(explanation.tokens, expected.tokens)
        assert explanation.texts[0][0].text == texts[0]


@pytest.mark.parametrize("training", PAPER)
def test_sigmoids_and_temperatures_are_explained_exactly(training):
    texts, labels = TWO
    model = of_the_paper(training)
    wrapped = CalibratedClassifierCV(FrozenEstimator(model)).fit(texts, labels)
    explanation = check(wrapped, texts, removal=True)
    assert_allclose(
        explanation.contributions,
        -wrapped.calibrated_classifiers_[0].calibrators[0].a_ * explain(model, texts).contributions,
        rtol=1e-10,
    )
    inner = make_pipeline(model[0], CalibratedClassifierCV(FrozenEstimator(model[1])))
    check(inner.fit(texts, labels), texts)


def test_a_threshold_on_calibrated_probabilities():
    texts, labels = TWO
    calibrated = CalibratedClassifierCV(text_model(), cv=2, ensemble=False)
    wrapped = TunedThresholdClassifierCV(calibrated, cv=2).fit(texts, labels)
    explanation = check(wrapped, texts)
    assert_allclose(expit(explanation.threshold), wrapped.best_threshold_)
    # A calibration of a threshold's decisions predicts the more probable class again.
    turned = CalibratedClassifierCV(
        FrozenEstimator(wrapped.estimator_.calibrated_classifiers_[0].estimator)
    ).fit(texts, labels)
    assert check(turned, texts).threshold == 0.0


def test_a_temperature_of_several_classes():
    texts, labels = THREE
    model = text_model().fit(texts, labels)
    try:
        wrapped = CalibratedClassifierCV(FrozenEstimator(model), method="temperature").fit(
            texts, labels
        )
    except ValueError:
        pytest.skip("temperature scaling is in scikit-learn 1.8 and later")
    explanation = check(wrapped, texts)
    assert_allclose(
        explanation.contributions,
        wrapped.calibrated_classifiers_[0].calibrators[0].beta_
        * explain(model, texts).contributions,
    )
    assert explanation[:3].counterfactual().to_text()
    check(
        CalibratedClassifierCV(text_model(), cv=2, method="temperature", ensemble=False).fit(*TWO),
        TWO[0],
    )


def test_pipelines_that_resample_their_training_documents():
    pytest.importorskip("imblearn")
    from imblearn.over_sampling import RandomOverSampler
    from imblearn.pipeline import Pipeline, make_pipeline
    from imblearn.under_sampling import RandomUnderSampler

    texts, labels = TWO
    few = np.flatnonzero((labels == "good") | (np.arange(len(labels)) % 3 == 0))
    texts, labels = texts[few], labels[few]
    for sampler in (RandomOverSampler(random_state=0), RandomUnderSampler(random_state=0)):
        model = make_pipeline(CountVectorizer(), sampler, MaxAbsScaler(), ClsAttentionClassifier())
        explanation = check(model.fit(texts, labels), texts)
        assert set(explanation[0].tokens) == set(re.findall(r"\w\w+", texts[0]))
        assert explanation.texts[0][0].occurrences is not None
        check(TunedThresholdClassifierCV(model, cv=2).fit(texts, labels), texts)
    first = Pipeline([("sampler", None), ("model", text_model())]).fit(texts, labels)
    check(first, texts)


# What is refused, and whether what the sentence says works.


def followed(message, **names):
    """Return what the code in a refusal gives."""
    code = re.search(r"make_pipeline\([^()]*\)|model(?:\.\w+(?:\[\d\])?)+", message)
    return eval(code.group(), {"make_pipeline": make_pipeline, **names})


REFUSED = {
    "one against the rest": (OneVsRestClassifier(ClsAttentionClassifier()), "attention of its own"),
    "bagging": (BaggingClassifier(ClsAttentionClassifier(), n_estimators=2), "such as"),
    "voting": (VotingClassifier([("a", ClsAttentionClassifier())]), "such as"),
    "several calibrated": (
        CalibratedClassifierCV(ClsAttentionClassifier(), cv=2, ensemble=True),
        "averages the probabilities of 2 models.*ensemble=False",
    ),
    "isotonic": (
        CalibratedClassifierCV(ClsAttentionClassifier(), cv=2, ensemble=False, method="isotonic"),
        "isotonic.*method='sigmoid'",
    ),
    "sigmoids of several": (
        CalibratedClassifierCV(ClsAttentionClassifier(), cv=2, ensemble=False),
        "each of several classes by itself.*temperature",
    ),
}


@pytest.mark.parametrize("how", ["matrix", "texts"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_what_to_pass(name, how):
    texts, labels = THREE
    wrapped, message = REFUSED[name]
    if how == "texts":
        pipeline = make_pipeline(CountVectorizer(), clone(wrapped)).fit(texts, labels)
        given, names = texts, {"pipeline": pipeline}
    else:
        given = CountVectorizer().fit_transform(texts)
        names = {"model": clone(wrapped).fit(given, labels)}
    (model,) = names.values()
    with pytest.raises(TypeError, match=f"{type(wrapped).__name__} .*{message}") as refusal:
        explain(model, given)
    instead = followed(str(refusal.value), **names)
    explanation = explain(instead, given[:4])
    assert_allclose(
        explanation.decision_terms() + explanation.intercept,
        np.reshape(instead.decision_function(given[:4]), explanation.decision.shape),
        rtol=1e-10,
        atol=1e-10,
    )
    assert bool(explanation.texts[0]) == (how == "texts")


def test_wrappers_that_are_not_fitted_say_so():
    texts, _ = TWO
    for wrapper in (
        CalibratedClassifierCV(text_model()),
        TunedThresholdClassifierCV(text_model()),
        FixedThresholdClassifier(text_model()),
    ):
        with pytest.raises(NotFittedError):
            explain(wrapper, texts)


def test_what_reads_the_classifier_alone_refuses_wrappers():
    texts, labels = TWO
    wrapped = TunedThresholdClassifierCV(text_model(), cv=2).fit(texts, labels)
    for reads in (
        lambda: label_issues(wrapped, texts, labels),
        lambda: TokenImportanceDisplay.from_estimator(wrapped, texts, labels),
    ):
        with pytest.raises(TypeError, match=r"TunedThresholdClassifierCV around it.*estimator_"):
            reads()
    assert len(label_issues(wrapped.estimator_, texts, labels, top=2)) == 2


def test_an_mlp_says_what_is_no_sum():
    texts, labels = TWO
    mlp = AttentionNetworkClassifier(mlp=True, embedding_dim=8, max_iter=2, random_state=0)
    model = fitted(text_model(mlp), texts, labels)
    with pytest.raises(ValueError, match="no sum over tokens"):
        explain(model, texts)
