"""Whatever is said of words comes true when the text is edited and predicted again."""

import itertools
import pickle
import re
import warnings
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from golden import texts as generated_texts
from helpers import network, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from pages import page_of
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.inspection import explain, word_search
from sklearn_clsattn.inspection.edited_text import EditableText, delete_spans, word_spans
from sklearn_clsattn.inspection.formatting import percent
from sklearn_clsattn.inspection.word_search import REACHED, fewest_words
from sklearn_clsattn.paper import OneStepClassifier
from sklearn_clsattn.text import ContextVectorizer, TokenVectorizer

N_TEXTS = 18
PIECES = [
    *("good", "Good", "bad", "not", "very", "film", "don't", "naïve", "7/10", "l’été", "x_y"),
    *("GOOD", "!", "?!", ",", ".", " (", ") ", "-", "...", "\n", "  ", "🙂", "👍🏽", "漢字"),
    *("カナ", "한국", "ไทย", "½", "5℃"),
]


# ---- deleting words ------------------------------------------------------------------------------

written = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join) | st.text(max_size=30)


@settings(max_examples=60, deadline=None)
@given(written, st.data())
def test_the_other_words_stay_in_their_order(text, data):
    document = EditableText(text)
    numbers = range(len(document.words))
    chosen = data.draw(st.sets(st.sampled_from(numbers))) if numbers else set()
    left, kept = document.without(chosen), document.only(chosen)
    is_gone = {span for at in chosen for span in document.words[at].spans}
    assert all(stop <= start for (_, stop), (start, _) in itertools.pairwise(word_spans(text)))
    stay = [text[slice(*span)] for span in word_spans(text) if span not in is_gone]
    go = [text[slice(*span)] for span in word_spans(text) if span in is_gone]
    # Nothing but the words and spaces is deleted; what touched a deleted word may be read with it.
    outside = re.sub(r"\s", "", delete_spans(text, sorted(is_gone)))
    expected = "".join(c for at, c in enumerate(text) if not any(i <= at < j for i, j in is_gone))
    assert outside == re.sub(r"\s", "", expected) == re.sub(r"\s", "", left)
    assert re.sub(r"\s", "", kept) == re.sub(r"\s", "", "".join(go))
    if not is_gone:
        assert left == text
    if re.fullmatch(r"[\w\s]*", text, re.ASCII):
        assert [left[slice(*span)] for span in word_spans(left)] == stay
        assert "  " not in left or "  " in text
        assert not is_gone or left == left.strip() or text != text.strip()


def test_spaces_are_mended():
    for text, words, left in [
        ("Lovely, but nobody helped me.", ["helped"], "Lovely, but nobody me."),
        ("Lovely, but nobody helped me.", ["helped", "me"], "Lovely, but nobody."),
        ("Not good. Not bad.", ["not"], "good. bad."),
        ("a well-known film", ["well"], "a -known film"),
        ("one\ntwo\nthree", ["two"], "one\nthree"),
        ("漢abc字", ["abc"], "漢字"),
        ("abc漢def", ["漢"], "abc def"),
        ("only", ["only"], ""),
    ]:
        document = EditableText(text)
        names = [word.name.casefold() for word in document.words]
        assert document.without([names.index(word) for word in words]) == left


def test_a_sign_that_stands_for_several_words_is_one_word():
    document = EditableText("½ cup, 5℃, ½ pint, ㍿")
    assert [word.name for word in document.words] == ["½", "cup", "5", "℃", "pint", "㍿"]
    assert document.only([0, 2]) == "½ 5 ½"
    assert document.without([0, 2, 5]) == "cup, ℃, pint,"


# ---- the search ----------------------------------------------------------------------------------


class Margins:
    """Margins of choices of n words, drawn so that words act together and against each other."""

    def __init__(self, n, seed, level):
        rng = np.random.default_rng(seed)
        self.alone, self.level = rng.normal(size=n), level
        self.together = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.3), 1)

    def __call__(self, choices):
        masks = np.array([np.isin(np.arange(len(self.alone)), choice) for choice in choices])
        pairs = ((masks @ self.together) * masks).sum(axis=1)
        return masks @ self.alone + pairs - self.level

    def fewest(self):
        n = len(self.alone)
        for size in range(n + 1):
            choices = list(itertools.combinations(range(n), size))
            if (self(choices) > REACHED).any():
                return size
        return None


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 11), st.integers(0, 10**6), st.floats(-0.5, 6.0))
def test_small_problems_are_solved_by_trying_all(n, seed, level):
    margins = Margins(n, seed, level)
    found = fewest_words(margins, n, n, np.zeros(n), 1e6)
    expected = margins.fewest()
    if expected is None:
        assert (found.words, found.n_tried) == (None, n)
    else:
        assert len(found.words) == expected
        assert found.n_tried >= expected - 1
        assert margins([found.words])[0] > REACHED


@settings(max_examples=30, deadline=None)
@given(st.integers(6, 11), st.integers(0, 10**6), st.floats(1.0, 6.0), st.sampled_from([10**6, 0]))
def test_without_trying_all_no_word_of_the_answer_is_needless(n, seed, level, readable):
    margins = Margins(n, seed, level)
    with patch.multiple(word_search, _MAX_CHOICES=0, _MAX_AT_ONCE=0, _MAX_READ=readable):
        found = fewest_words(margins, n, n, margins.alone, 1e6)
    assert found.n_tried == (1 if readable else 0)
    if found.words is not None:
        assert len(found.words) >= margins.fewest()
        assert margins([found.words])[0] > REACHED
        fewer = [found.words[:at] + found.words[at + 1 :] for at in range(len(found.words))]
        assert not (margins(fewer) > REACHED).any()


def test_the_search_ends_when_the_time_is_over():
    margins = Margins(30, 0, 5.0)
    assert fewest_words(margins, 30, 30, np.zeros(30), 1e-9).words is None
    assert fewest_words(margins, 30, 30, np.zeros(30), 1e6).words is not None


# ---- every kind of text model --------------------------------------------------------------------


def classifier(**parameters):
    return ClsAttentionClassifier(**{"C": 1.0, **parameters})


TEXTS, LABELS = generated_texts(160, 2, 3)
THREE, OF_THREE = generated_texts(160, 3, 3)
ASKED = [text[: text.rfind(" ", 0, 160)] for text in generated_texts(N_TEXTS, 3, 5)[0]]
CJK = [" ".join(text) + "。" for text in (["不好", "看"], ["很好", "看"], ["难看"], ["好"])] * 10
CJK_ASKED = [
    "".join(np.random.default_rng(at).choice([*"不好看很难，。 电影a"], 9)) for at in range(N_TEXTS)
]

DATA = {
    "text classifier, CJK": (CJK, [0, 1, 0, 1] * 10),
    "pairs": (THREE, OF_THREE),
    "union": (THREE, OF_THREE),
    "three classes": (THREE, OF_THREE),
    "naive Bayes of three": (THREE, OF_THREE),
    "several labels": (
        THREE,
        np.stack([OF_THREE == "good", OF_THREE != "odd"], axis=1).astype(int),
    ),
}
PIPELINES = {
    "text classifier": TextClassifier(C=1.0, min_df=1),
    "text classifier, case": TextClassifier(C=1.0, context=False, lowercase=False),
    "context, by spaces": make_pipeline(  # in double precision: sums in single may be rounded
        ContextVectorizer(token_pattern=r"\S+", dtype=np.float64), classifier()
    ),
    "text classifier, CJK": TextClassifier(C=1.0, min_df=1),
    "three classes": TextClassifier(min_df=1),
    "several labels": TextClassifier(C=1.0, min_df=1),
    "fast counts": make_pipeline(TokenVectorizer(), classifier()),
    "pairs": make_pipeline(CountVectorizer(ngram_range=(1, 2)), classifier()),
    "tf-idf": make_pipeline(TfidfVectorizer(sublinear_tf=True), classifier()),
    "hashing": make_pipeline(
        HashingVectorizer(n_features=64, alternate_sign=False), TfidfTransformer(), classifier()
    ),
    "characters": make_pipeline(
        CountVectorizer(analyzer="char_wb", ngram_range=(2, 3)), classifier()
    ),
    "union": make_pipeline(
        make_union(CountVectorizer(), CountVectorizer(analyzer="char")), classifier()
    ),
    "cleaned first": make_pipeline(
        FunctionTransformer(lambda texts: [text.replace("good", "GOOD fine") for text in texts]),
        CountVectorizer(),
        classifier(),
    ),
    "search": GridSearchCV(
        make_pipeline(TokenVectorizer(), classifier()), {"clsattentionclassifier__C": [1.0]}, cv=2
    ),
    "one step": make_pipeline(CountVectorizer(), OneStepClassifier(random_state=0)),
    # Other classifiers than this package's.
    "logistic regression": make_pipeline(TfidfVectorizer(), LogisticRegression(C=10)),
    "naive Bayes of three": make_pipeline(CountVectorizer(binary=True), BernoulliNB()),
    "no probabilities": make_pipeline(TfidfVectorizer(), LinearSVC()),
    "calibrated": CalibratedClassifierCV(make_pipeline(CountVectorizer(), LinearSVC()), cv=2),
    "threshold": make_pipeline(
        TfidfVectorizer(),
        FixedThresholdClassifier(LogisticRegression(), threshold=0.6, pos_label="bad"),
    ),
    "no sum": make_pipeline(CountVectorizer(), RandomForestClassifier(8, random_state=0)),
}


@pytest.fixture(params=PIPELINES, scope="module")
def case(request):
    """Return the name of a pipeline, the fitted pipeline and texts to ask about."""
    model = PIPELINES[request.param]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of flows, which do not matter here
        model.fit(*DATA.get(request.param, (TEXTS, LABELS)))
    return request.param, model, CJK_ASKED if "CJK" in request.param else ASKED


def promised(model, target, documents):
    """Return the classes, their probabilities for documents, and the labels that a user gets.

    There are no probabilities, but NaN, of a model without ``predict_proba``.
    """
    predicted, labels = np.asarray(model.predict(documents)), model.classes_.tolist()
    probabilities = np.full((len(predicted), len(labels)), np.nan)
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(documents)
    if target is None:
        return labels, probabilities, predicted
    at = labels.index(target)
    both = np.stack([1 - probabilities[:, at], probabilities[:, at]], axis=1)
    labels = [f"not {target}", str(target)]
    return labels, both, np.array(labels)[predicted[:, at]]


def assert_true(answer, labels, before, after, statement):
    """Require an answer to say what predicting the document, and the edited one, gives."""
    (old, was), (new, becomes) = before, after
    assert was == answer.before
    of_after = new[labels.index(answer.after)]
    assert_allclose(of_after, answer.probability, rtol=0, atol=1e-9)
    if not answer.found:
        assert "were found" in statement or "all sets of words were tried" in statement
        return
    assert becomes == answer.after
    assert (answer.after == answer.before) == (answer.is_kept or not answer.words)
    assert str(answer.after) in statement
    assert np.isnan(of_after) or f"({percent(of_after)})" in statement
    if not answer.is_kept:
        of_before = old[labels.index(answer.before)]
        assert_allclose(answer.probabilities[0], of_before, rtol=0, atol=1e-9)
    assert answer.at_least <= answer.size


def assert_all_true(sets, model, target, documents):
    """Require all answers to come true, some of them predicted one by one; count those found."""
    labels, *before = promised(model, target, documents)
    edited = [answer.edited_text for answer in sets]
    _, *after = promised(model, target, pd.Series(edited))
    rows = zip(zip(*before, strict=True), zip(*after, strict=True), strict=True)
    for at, (answer, (old, new)) in enumerate(zip(sets, rows, strict=True)):
        assert_true(answer, labels, old, new, sets.statement(at))
    for answer in sets[:5]:
        _, (alone,), _ = promised(model, target, pd.Series([answer.edited_text]))
        assert_allclose(alone[labels.index(answer.after)], answer.probability, rtol=0, atol=1e-9)
    return sum(answer.found and bool(answer.words) for answer in sets)


def asked_for(model):
    """Return the target to explain: a label if there are several."""
    last = model[-1] if hasattr(model, "steps") else model
    return model.classes_[0] if getattr(last, "multilabel_", False) else None


def test_every_answer_comes_true(case):
    _, model, texts = case
    target = asked_for(model)
    explanation = explain(model, texts, target=target)
    few = explanation[:5]
    asked = [explanation.counterfactual(), few.sufficient()]
    asked += [few.counterfactual(to=label) for label in explanation.classes.tolist()]
    assert sum(assert_all_true(sets, model, target, texts[: len(sets)]) for sets in asked) > 10


def test_all_were_tried_where_it_says_so(case):
    name, model, texts = case
    short = sorted(texts, key=len)[5:11]
    target = asked_for(model)
    sets = explain(model, short, target=target).counterfactual()
    for text, answer in zip(short, sets, strict=True):
        document = EditableText(text)
        n = len(document.words)
        sizes = range(1, min(n + 1 if answer.at_least is None else answer.at_least, 4))
        choices = [c for size in sizes for c in itertools.combinations(range(n), size)]
        versions = [document.without(choice) for choice in choices]
        some = [text, *versions[:: max(1, len(versions) // 40)]]
        _, probabilities, predicted = promised(model, target, some)
        for of_version, label in zip(probabilities, predicted, strict=True):
            is_level = np.ptp(np.sort(of_version)[-2:]) < 1e-9
            assert label == answer.before or (is_level and name != "no sum")


def test_without_a_word_is_the_prediction_of_the_text_without_it(case):
    name, model, texts = case
    target = asked_for(model)
    n_checked = 0
    if name == "characters":  # they stand in many words
        return
    for text in texts[:3]:
        one = explain(model, [text], target=target)
        for token, decisions in zip(one.tokens, one.decision_without, strict=True):
            spans = spans_of(token, text, by_spaces=name.endswith("by spaces"))
            if not spans or np.isnan(decisions).any():
                continue
            expected = decided(model, delete_spans(text, spans))
            expected = expected[0] if target is not None else expected
            assert_allclose(decisions, np.atleast_1d(expected), rtol=0, atol=1e-9)
            n_checked += 1
    assert n_checked or name in NO_SINGLE_WORDS


def decided(model, text):
    """Return the decisions of a model for a text; for a model without, what stands for them."""
    if hasattr(model, "decision_function"):
        return model.decision_function([text])[0]
    if isinstance(model, CalibratedClassifierCV):
        inside = [fold.estimator for fold in model.calibrated_classifiers_]
        return np.mean([one.decision_function([text])[0] for one in inside])
    probabilities = model.predict_proba([text])[0]
    if isinstance(model[-1], BernoulliNB):
        return np.log(probabilities) - np.log(probabilities).mean()
    return probabilities[1] - 0.5


# Their tokens are no single words, or have no positions.
NO_SINGLE_WORDS = ("characters", "union", "hashing", "cleaned first")


def spans_of(token, text, by_spaces):
    """Return where a single word stands in a text; one between spaces may have punctuation."""
    found = word_spans(text)
    if by_spaces:
        found = [match.span() for match in re.finditer(r"\S+", text)]
    return [span for span in found if text[slice(*span)].lower() == token.lower()]


@settings(max_examples=12, deadline=None)
@given(written)
def test_answers_about_odd_texts_come_true(text):
    for name in ("text classifier", "pairs"):
        model = PIPELINES[name]
        if not hasattr(model, "classes_"):
            model.fit(*DATA.get(name, (TEXTS, LABELS)))
        sets = explain(model, [text]).counterfactual()
        assert_all_true(sets, model, None, [text])
        assert sets.to_text()
        assert sets.to_html()


def test_steps_may_need_a_series():
    lower = FunctionTransformer(lambda texts: texts.str.lower())
    model = make_pipeline(lower, CountVectorizer(), classifier()).fit(pd.Series(TEXTS), LABELS)
    asked = pd.Series(ASKED[:8], index=range(3, 19, 2))
    assert assert_all_true(explain(model, asked).counterfactual(), model, None, asked)


def test_two_layers_of_attention_have_answers_about_words():
    counter = CountVectorizer().fit(TEXTS)
    model = make_pipeline(counter, network(counter.transform(TEXTS), LABELS, n_layers=2))
    sets = explain(model, ASKED[:5]).counterfactual()
    assert assert_all_true(sets, model, None, ASKED[:5])


# ---- what is shown -------------------------------------------------------------------------------

SHORT = ["a good film and a dull plot", "very good, very good", "not", ""]


@pytest.mark.parametrize("name", ["pairs", "tf-idf"])
def test_sets_as_text_frame_and_page(name):
    model = PIPELINES[name].fit(*DATA.get(name, (TEXTS, LABELS)))
    explanation = explain(model, [*SHORT, "<b>good</b> & bad, bad, bad"])
    for sets in (explanation.counterfactual(), explanation.sufficient()):
        text, page, frame = str(sets), page_of(sets), sets.to_frame()
        for i in range(len(sets)):
            assert sets.statement(i) in text
        assert page.tags.count("section") == len(sets) == len(explanation)
        assert "<b>good" not in sets.to_html()
        assert frame["document"].tolist() == list(range(len(sets)))
        assert frame["edited_text"].tolist() == [answer.edited_text for answer in sets]
        np.testing.assert_array_equal(frame["size"], sets.sizes)
        assert sets[1:3].to_frame()["document"].tolist() == [1, 2]
        assert pickle.loads(pickle.dumps(sets)).to_text() == text
        assert "Edited text" in text
        assert "Edited text" in page.text
        assert "more" in sets.to_text(top=0)
        assert sets[:0].to_text() == "No documents."


def test_words_are_marked_where_they_stand():
    model = PIPELINES["pairs"].fit(TEXTS, LABELS)
    sets = explain(model, ["great film, great"]).counterfactual()
    assert sets[0].words == ("great",)
    assert sets[0].spans == [(0, 5), (12, 17)]
    assert sets[0].edited_text == "film,"
    assert sets.to_html().count('<span class="t">great</span>') == 2


def test_questions_that_are_refused():
    model = PIPELINES["fast counts"].fit(TEXTS, LABELS)
    explanation = explain(model, ASKED[:2])
    refused("one of the classes", explanation.counterfactual, to="fair")
    refused("time_limit", explanation.counterfactual, time_limit=0)
    counts = explain(model[-1], model[0].transform(ASKED[:2]))
    refused("pass texts", counts.counterfactual)
    refused("pass texts", counts.sufficient)


@pytest.mark.parametrize("word", ["e\u0302", "क\u0963", "a\u200d"])
def test_words_that_end_in_marks_are_kept_apart(word):
    assert delete_spans(f"{word},b", [(len(word), len(word) + 1)]) == f"{word} b"
    assert delete_spans(f"{word}, b", [(len(word), len(word) + 1)]) == f"{word} b"
