"""Every shape of Pipeline: explained exactly, or refused by a sentence that says what to pass."""

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import TokenImportanceDisplay, explain, label_issues
from sklearn_clsattn.inspection.view import views
from sklearn_clsattn.paper import (
    AttentionNetworkClassifier,
    EmbeddingClassifier,
    FrozenEmbeddingClassifier,
    OneStepClassifier,
    PenalizedOneStepClassifier,
)
from sklearn_clsattn.text import TokenVectorizer

PAPER = {
    "default": ClsAttentionClassifier(),
    "one step": OneStepClassifier(tol=0.5, max_iter=20),
    "penalized": PenalizedOneStepClassifier(),
    "frozen": FrozenEmbeddingClassifier(embedding_dim=16, random_state=0),
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
def of_the_paper(training, n_classes):
    """Return a fitted Pipeline, shared by tests that leave it as it is."""
    return fitted(text_model(clone(PAPER[training])), *(TWO if n_classes == 2 else THREE))


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


def check_removal(model, vectorizer, texts):
    """Require decisions without a token to be the log-odds of a text without the word."""
    explanation = check(model, texts)
    for one, text in zip(explanation, texts, strict=True):
        for entry, token in enumerate(one.tokens):
            without = re.sub(rf"\b{re.escape(token)}\b", " ", text)
            P = model.predict_proba([without])[0]
            expected = logit(P[1]) if len(P) == 2 else np.log(P)
            got = one.decision_without[entry]
            centre = 0.0 if len(P) == 2 else got.mean() - expected.mean()
            assert_allclose(got - centre, expected, rtol=1e-8, atol=1e-8)


# Places of characters.


@pytest.mark.parametrize("kind", [CountVectorizer, TfidfVectorizer, TokenVectorizer])
@pytest.mark.parametrize("analyzer", ["char", "char_wb"])
def test_characters_find_their_places_in_the_text(kind, analyzer):
    texts, labels = TWO
    vectorizer = kind(analyzer=analyzer, ngram_range=(2, 4))
    model = make_pipeline(vectorizer, ClsAttentionClassifier()).fit(texts, labels)
    explanation = check(model, texts[:5])
    for one, view in zip(explanation, views(explanation, None, 8), strict=True):
        (text,) = one.texts[0]
        assert set(text.occurrences[:, 2]) == set(range(len(one.tokens)))
        assert not view.unplaced
        pieces = sum(piece.contribution for piece in view.texts[0].pieces)
        assert_allclose(pieces + one.intercept[0], one.decision[0, 0], rtol=0, atol=1e-10)
        if analyzer == "char_wb":  # listed by word, each in one line
            assert {token.term for token in view.terms} <= set(re.findall(r"\w+", text.text))
        assert_allclose(sum(token.contribution for token in view.terms), pieces, atol=1e-10)
        assert "(characters)" in one.to_text()


def test_words_and_characters_share_the_text():
    texts, labels = TWO
    union = make_union(
        CountVectorizer(ngram_range=(1, 2)), TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4))
    )
    model = make_pipeline(union, ClsAttentionClassifier()).fit(texts, labels)
    explanation = check(model, texts[:4])
    for one, view in zip(explanation, views(explanation, None, 100), strict=True):
        (text,) = one.texts[0]
        assert set(text.occurrences[:, 2]) == set(range(len(one.tokens)))
        assert not view.unplaced
        pieces = sum(piece.contribution for piece in view.texts[0].pieces)
        assert_allclose(pieces + one.intercept[0], one.decision[0, 0], rtol=0, atol=1e-10)
        kinds = {token.name.partition("__")[0] for token in view.tokens if not token.is_characters}
        assert kinds == {"countvectorizer"}
        assert any(token.name.endswith("(characters)") for token in view.terms)
        one.to_html()
    changed = explanation[:2].counterfactual("words")
    for found, text in zip(changed, texts[:2], strict=True):
        assert found.found
        words = "|".join(map(re.escape, found.tokens))
        without = re.sub(rf"\b(?:{words})\b", lambda match: "\x00" * len(match.group()), text)
        # A gap instead of a word: no new neighbours, and characters that no n-gram has.
        assert model.predict([without])[0] == found.after


def test_spaces_between_words_belong_to_none_of_them():
    texts, labels = TWO
    model = make_pipeline(
        CountVectorizer(analyzer="char", ngram_range=(1, 2)), ClsAttentionClassifier()
    ).fit(texts, labels)
    sets = explain(model, texts[:2]).counterfactual("words")
    assert all(one.found or one.at_least is None for one in sets)


@pytest.mark.parametrize("text", ["good fun ", "  good fun\n", " ", ""])
def test_spaces_at_the_ends_of_a_text(text):
    texts, labels = TWO
    characters = CountVectorizer(analyzer="char", ngram_range=(1, 3))
    model = make_pipeline(characters, ClsAttentionClassifier()).fit(texts, labels)
    explanation = explain(model, [text])
    (shown,) = views(explanation, None, 8)
    listed = sum(token.contribution for token in shown.terms)
    assert listed + shown.start == pytest.approx(shown.end)
    assert "characters" in explanation.to_text() or not text.strip()
    for page in (explanation.to_html(), explanation.to_html(interactive=True)):
        assert page.startswith("<!doctype html>")
    explanation.counterfactual("words")


# Tables.


def test_tables_of_several_texts_numbers_and_kinds():
    texts, labels = TWO
    table = pd.DataFrame(
        {
            "title": [text[:20] for text in texts],
            "body": texts,
            "price": np.arange(len(texts)) % 7 + 0.5,
            "votes": np.arange(len(texts)) % 3,
            "kind": np.array(["a", "b", "c"])[np.arange(len(texts)) % 3],
        }
    )
    columns = ColumnTransformer(
        [
            ("title", TfidfVectorizer(), "title"),
            (
                "body",
                make_union(
                    CountVectorizer(), CountVectorizer(analyzer="char_wb", ngram_range=(3, 3))
                ),
                "body",
            ),
            ("numbers", MaxAbsScaler(), ["price", "votes"]),
            ("kinds", OneHotEncoder(), ["kind"]),
        ]
    )
    model = make_pipeline(columns, ClsAttentionClassifier()).fit(table, labels)
    explanation = check(model, table[:6])
    for one, view in zip(explanation, views(explanation, None, 100), strict=True):
        assert [text.name for text in view.texts] == ["title", "body"]
        assert {token.prefix for token in view.unplaced} <= {"numbers", "kinds"}
        assert any(token.term == "kind_a" for token in view.unplaced) == (
            table["kind"].iloc[view.number] == "a"
        )
        one.to_text()
    tuned = TunedThresholdClassifierCV(model, cv=2).fit(table, labels)
    check(tuned, table[:4])


# Wrappers.


@pytest.mark.parametrize("training", PAPER)
def test_thresholds_move_where_the_prediction_changes(training):
    texts, labels = TWO
    model = of_the_paper(training, 2)
    for threshold in (0.3, 0.5, 0.64):
        for pos_label in ("good", "bad"):
            wrapped = FixedThresholdClassifier(
                FrozenEstimator(model), threshold=threshold, pos_label=pos_label
            ).fit(texts, labels)
            explanation = check(wrapped, texts)
            at = explanation.threshold
            assert_allclose(expit(at), threshold if pos_label == "good" else 1 - threshold)
            assert_array_equal(explanation.decision[:, 0] > at, explanation.predicted == "good")
            other = explain(wrapped, texts[:3], target="bad")
            assert other.threshold == -at
            assert_allclose(other.decision, -explanation[:3].decision, rtol=1e-6)
            assert_array_equal(other.predicted, explanation[:3].predicted)


@pytest.mark.parametrize("pos_label", ["good", "bad"])
def test_smallest_changes_cross_the_threshold(pos_label):
    texts, labels = TWO
    scoring = make_scorer(f1_score, pos_label=pos_label)
    tuned = TunedThresholdClassifierCV(text_model(), cv=2, scoring=scoring).fit(texts, labels)
    at = tuned.best_threshold_
    threshold = check(tuned, texts).threshold
    assert_allclose(expit(threshold), at if pos_label == "good" else 1 - at)
    wrapped = FixedThresholdClassifier(
        FrozenEstimator(tuned.estimator_), threshold=0.47, pos_label=pos_label
    ).fit(texts, labels)
    explanation = check(wrapped, texts[:20])
    n_found = 0
    for answer in (explanation.counterfactual(), explain(wrapped, texts[:20], target="bad")):
        sets = answer if hasattr(answer, "sets") else answer.counterfactual()
        for one, text in zip(sets, texts[:20], strict=True):
            if not one.found:
                continue
            n_found += 1
            words = "|".join(map(re.escape, one.tokens))
            changed = re.sub(rf"\b(?:{words})\b", " ", text)
            assert wrapped.predict([changed])[0] == one.after != one.before
            assert one.before == wrapped.predict([text])[0]
            if len(one.tokens) > 1:  # all but one of them are not enough
                words = "|".join(map(re.escape, one.tokens[1:]))
                assert wrapped.predict([re.sub(rf"\b(?:{words})\b", " ", text)])[0] == one.before
        sets.to_text()
        sets.to_html()
    assert n_found
    kept = explanation.sufficient()
    for one, text in zip(kept, texts[:20], strict=True):
        alone = " ".join(word for word in re.findall(r"\w+", text) if word in one.tokens)
        assert wrapped.predict([alone])[0] == one.before
    text = explanation.to_text(width=200)
    assert "good is predicted from" in text
    shown = expit(explanation.threshold)
    assert f"a probability of {shown:.1%}" in text
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
    model = of_the_paper(training, 2)
    wrapped = CalibratedClassifierCV(FrozenEstimator(model)).fit(texts, labels)
    explanation = check(wrapped, texts, removal=True)
    assert_allclose(
        explanation.contributions,
        -wrapped.calibrated_classifiers_[0].calibrators[0].a_ * explain(model, texts).contributions,
        rtol=1e-10,
    )
    inner = make_pipeline(model[0], CalibratedClassifierCV(FrozenEstimator(model[1])))
    check(inner.fit(texts, labels), texts)


def test_calibrated_models_answer_and_remove_as_they_predict():
    texts, labels = TWO
    wrapped = CalibratedClassifierCV(text_model(), cv=2, ensemble=False).fit(texts, labels)
    check_removal(wrapped, None, texts[:3])
    explanation = explain(wrapped, texts[:10])
    added = explanation.counterfactual("add")
    removed = explanation.counterfactual()
    assert any(one.found for one in removed)
    for one, text in zip(removed, texts[:10], strict=True):
        if one.found:
            words = "|".join(map(re.escape, one.tokens))
            P = wrapped.predict_proba([re.sub(rf"\b(?:{words})\b", " ", text)])[0]
            assert wrapped.classes_[P.argmax()] == one.after
            before = wrapped.classes_.tolist().index(one.before)
            assert_allclose(one.probabilities[-1], P[before], rtol=1e-8)
    for one, text in zip(added, texts[:10], strict=True):
        if one.found:
            P = wrapped.predict_proba([f"{text} {' '.join(one.tokens)}"])[0]
            before = wrapped.classes_.tolist().index(one.before)
            assert_allclose(one.probabilities[-1], P[before], rtol=1e-8)


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
    check_removal(wrapped, None, texts[:2])
    explanation = check(wrapped, texts)
    assert_allclose(
        explanation.contributions,
        wrapped.calibrated_classifiers_[0].calibrators[0].beta_
        * explain(model, texts).contributions,
    )
    assert explanation[:3].counterfactual().to_text()
    two_texts, two = TWO
    check(
        CalibratedClassifierCV(
            FrozenEstimator(text_model().fit(two_texts, two)), method="temperature"
        ).fit(two_texts, two),
        two_texts,
    )


def test_searches_over_wrappers():
    texts, labels = TWO
    search = GridSearchCV(
        TunedThresholdClassifierCV(text_model(), cv=2),
        {"estimator__clsattentionclassifier__C": [1.0]},
        cv=2,
    )
    check(search.fit(texts, labels), texts)


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
    "one against one": (OneVsOneClassifier(ClsAttentionClassifier()), "attention of its own"),
    "codes": (OutputCodeClassifier(ClsAttentionClassifier(), random_state=0), "any number"),
    "bagging": (BaggingClassifier(ClsAttentionClassifier(), n_estimators=2), "such as"),
    "voting": (VotingClassifier([("a", ClsAttentionClassifier())]), "such as"),
    "stacking": (StackingClassifier([("a", ClsAttentionClassifier())], cv=2), "such as"),
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


@pytest.mark.parametrize("kind", [MultiOutputClassifier, OneVsRestClassifier, ClassifierChain])
def test_several_labels_are_refused_with_what_to_pass(kind):
    texts, labels = THREE
    several = np.column_stack([labels == "good", labels != "odd"]).astype(int)
    pipeline = make_pipeline(CountVectorizer(), kind(ClsAttentionClassifier()))
    pipeline.fit(texts, several)
    with pytest.raises(TypeError, match=rf"{kind.__name__} .*estimators_\[0\]") as refusal:
        explain(pipeline, texts)
    instead = followed(str(refusal.value), pipeline=pipeline)
    explanation = check(instead, texts[:5])
    assert explanation.texts[0]
    assert_array_equal(explanation.predicted, pipeline.predict(texts[:5])[:, 0])


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


@pytest.mark.parametrize("training", [name for name in PAPER if name != "two layers"])
def test_the_papers_estimators_answer_what_would_change(training):
    texts, _ = THREE
    model = of_the_paper(training, 3)
    explanation = check(model, texts[:4])
    for one, text in zip(explanation.counterfactual(), texts[:4], strict=True):
        if one.found:
            words = "|".join(map(re.escape, one.tokens))
            assert model.predict([re.sub(rf"\b(?:{words})\b", " ", text)])[0] == one.after


def test_an_mlp_says_what_is_no_sum():
    texts, labels = TWO
    mlp = AttentionNetworkClassifier(mlp=True, embedding_dim=8, max_iter=2, random_state=0)
    model = fitted(text_model(mlp), texts, labels)
    with pytest.raises(ValueError, match="no sum over tokens"):
        explain(model, texts)
