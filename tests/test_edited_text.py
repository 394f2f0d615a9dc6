"""Whatever is said of words comes true when the text is edited and predicted again."""

import itertools
import re
import warnings
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from golden import texts as generated_texts
from helpers import network
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.inspection import explain, word_search
from sklearn_clsattn.inspection.edited_text import EditableDocument, delete_spans, word_spans
from sklearn_clsattn.inspection.formatting import percent
from sklearn_clsattn.inspection.word_search import REACHED, fewest_words
from sklearn_clsattn.paper import OneStepClassifier
from sklearn_clsattn.text import TokenVectorizer

N_TEXTS = 100
PIECES = [
    *("good", "Good", "bad", "not", "very", "film", "don't", "naïve", "7/10", "l’été", "x_y"),
    *("GOOD", "!", "?!", ",", ".", " (", ") ", "-", "...", "\n", "  ", "🙂", "👍🏽", "漢字"),
    *("カナ", "한국", "ไทย", "½", "5℃"),
]


# ---- deleting words ------------------------------------------------------------------------------

written = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join) | st.text(max_size=30)


@settings(max_examples=300, deadline=None)
@given(written, st.data())
def test_the_other_words_stay_in_their_order(text, data):
    document = EditableDocument((text,))
    numbers = range(len(document.words))
    chosen = data.draw(st.sets(st.sampled_from(numbers))) if numbers else set()
    (left,), (kept,) = document.without(chosen), document.only(chosen)
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
        document = EditableDocument((text,))
        names = [word.name.casefold() for word in document.words]
        assert document.without([names.index(word) for word in words]) == (left,)


def test_a_sign_that_stands_for_several_words_is_one_word():
    document = EditableDocument(("½ cup, 5℃, ½ pint, ㍿",))
    assert [word.name for word in document.words] == ["½", "cup", "5", "℃", "pint", "㍿"]
    assert document.only([0, 2]) == ("½ 5 ½",)
    assert document.without([0, 2, 5]) == ("cup, ℃, pint,",)


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


@settings(max_examples=80, deadline=None)
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


@settings(max_examples=60, deadline=None)
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
    "front end, CJK": (CJK, [0, 1, 0, 1] * 10),
    "pairs": (THREE, OF_THREE),
    "union": (THREE, OF_THREE),
    "three classes": (THREE, OF_THREE),
    "several labels": (
        THREE,
        np.stack([OF_THREE == "good", OF_THREE != "odd"], axis=1).astype(int),
    ),
}
PIPELINES = {
    "front end": TextClassifier(C=1.0, min_df=1),
    "front end, words alone": TextClassifier(C=1.0, characters=None),
    "front end, without context": TextClassifier(C=1.0, context=False),
    "front end, single words": TextClassifier(C=1.0, ngram_range=(1, 1)),
    "front end, case": TextClassifier(C=1.0, lowercase=False, min_df=1),
    "front end, tokenizer": TextClassifier(C=1.0, tokenizer=str.split),
    "front end, pattern": TextClassifier(C=1.0, token_pattern=r"\S+"),
    "front end, CJK": TextClassifier(C=1.0, min_df=1),
    "three classes": TextClassifier(min_df=1),
    "several labels": TextClassifier(C=1.0, min_df=1),
    "fast counts": make_pipeline(TokenVectorizer(), classifier()),
    "pairs": make_pipeline(CountVectorizer(ngram_range=(1, 2)), classifier()),
    "pairs and triples": make_pipeline(CountVectorizer(ngram_range=(2, 3), min_df=2), classifier()),
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
    """Return the classes, and their probabilities for documents as a user would predict them."""
    probabilities, predicted = model.predict_proba(documents), model.predict(documents)
    if target is None:
        assert (predicted == model.classes_[probabilities.argmax(axis=1)]).all()
        return model.classes_.tolist(), probabilities
    at = model.classes_.tolist().index(target)
    assert (predicted[:, at] == (probabilities[:, at] > 0.5)).all()
    both = np.stack([1 - probabilities[:, at], probabilities[:, at]], axis=1)
    return [f"not {target}", str(target)], both


def assert_true(answer, labels, before, after, statement):
    """Require an answer to say what predicting the document, and the edited one, gives."""
    assert labels[before.argmax()] == answer.before
    assert_allclose(after[labels.index(answer.after)], answer.probability, rtol=0, atol=1e-9)
    if not answer.found:
        assert "were found" in statement or "all sets of words were tried" in statement
        return
    assert labels[after.argmax()] == answer.after
    assert (answer.after == answer.before) == (answer.is_kept or not answer.tokens)
    assert str(answer.after) in statement
    assert f"({percent(after[labels.index(answer.after)])})" in statement
    if not answer.is_kept:
        assert_allclose(answer.probabilities[0], before.max(), rtol=0, atol=1e-9)
    assert answer.at_least <= answer.size


def assert_all_true(sets, model, target, documents):
    """Require all answers to come true, some of them predicted one by one; count those found."""
    labels, before = promised(model, target, documents)
    if isinstance(documents, list):
        edited = [answer.edited_text for answer in sets]
        assert [answer.edited_document for answer in sets] == [[text] for text in edited]
        _, after = promised(model, target, edited)
    else:
        every = [promised(model, target, answer.edited_document)[1] for answer in sets]
        after = np.concatenate(every)
    for at, answer in enumerate(sets):
        assert_true(answer, labels, before[at], after[at], sets.statement(at))
    for answer in sets[:5]:
        _, (alone,) = promised(model, target, answer.edited_document)
        assert_allclose(alone[labels.index(answer.after)], answer.probability, rtol=0, atol=1e-9)
    return sum(answer.found and bool(answer.tokens) for answer in sets)


def asked_for(model):
    """Return the target to explain: a label if there are several."""
    last = model[-1] if hasattr(model, "steps") else model
    return model.classes_[0] if getattr(last, "multilabel_", False) else None


def test_every_answer_comes_true(case):
    _, model, texts = case
    target = asked_for(model)
    explanation = explain(model, texts, target=target)
    few = explanation[:40]
    asked = [explanation.counterfactual("words"), few.sufficient("words")]
    asked += [few.counterfactual("words", to=label) for label in explanation.classes.tolist()]
    assert sum(assert_all_true(sets, model, target, texts[: len(sets)]) for sets in asked) > 20


def test_all_were_tried_where_it_says_so(case):
    _, model, texts = case
    short = sorted(texts, key=len)[10:16]
    target = asked_for(model)
    sets = explain(model, short, target=target).counterfactual("words")
    for text, answer in zip(short, sets, strict=True):
        document = EditableDocument((text,))
        n = len(document.words)
        sizes = range(1, min(n + 1 if answer.at_least is None else answer.at_least, 4))
        choices = [c for size in sizes for c in itertools.combinations(range(n), size)]
        versions = [document.without(choice)[0] for choice in choices]
        some = [text, *versions[:: max(1, len(versions) // 40)]]
        labels, probabilities = promised(model, target, some)
        for of_version in probabilities:
            is_level = np.ptp(np.sort(of_version)[-2:]) < 1e-9
            assert labels[of_version.argmax()] == answer.before or is_level


def test_without_a_word_is_the_prediction_of_the_text_without_it(case):
    name, model, texts = case
    target = asked_for(model)
    n_checked = 0
    for text in texts[:6]:
        one = explain(model, [text], target=target)
        for token, decisions in zip(one.tokens, one.decision_without, strict=True):
            spans = spans_of(token.rpartition("__")[2], text, by_spaces=name in BY_SPACES)
            if not spans or np.isnan(decisions).any():
                continue
            expected = model.decision_function([delete_spans(text, spans)])[0]
            expected = expected[0] if target is not None else expected
            assert_allclose(decisions, np.atleast_1d(expected), rtol=0, atol=1e-9)
            n_checked += 1
    assert n_checked or name in ("characters", "pairs and triples")


BY_SPACES = ("front end, tokenizer", "front end, pattern")  # whose tokens have punctuation


def spans_of(token, text, by_spaces):
    """Return where a single word stands in a text."""
    found = word_spans(text)
    if by_spaces:
        found = [match.span() for match in re.finditer(r"\S+", text)]
    return [span for span in found if text[slice(*span)].lower() == token.lower()]


@settings(max_examples=30, deadline=None)
@given(written)
def test_answers_about_odd_texts_come_true(text):
    for name in ("front end", "pairs"):
        model = PIPELINES[name]
        if not hasattr(model[-1], "classes_"):
            model.fit(*DATA.get(name, (TEXTS, LABELS)))
        sets = explain(model, [text]).counterfactual("words")
        assert_all_true(sets, model, None, [text])
        assert sets.to_text()
        assert sets.to_html()


def test_tables_with_texts_and_numbers():
    """Words of all columns are removed, each from its own; numbers stay."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"title": TEXTS[::-1], "number": rng.random(160), "body": TEXTS}, index=range(7, 167)
    )
    columns = make_column_transformer(
        (TokenVectorizer(), "title"), (MinMaxScaler(), ["number"]), (TokenVectorizer(), "body")
    )
    model = make_pipeline(columns, classifier()).fit(frame, LABELS)
    asked = frame[:60]
    explanation = explain(model, asked)
    n_found = 0
    for sets in (explanation.counterfactual("words"), explanation[:20].sufficient("words")):
        n_found += assert_all_true(sets, model, None, asked[: len(sets)])
        for at, answer in enumerate(sets[:10]):
            edited = asked.iloc[[at]].assign(**answer.edited_text)
            found = model.predict_proba(edited), model.predict_proba(answer.edited_document)
            assert_allclose(*found, rtol=0, atol=1e-12)
            assert edited["number"].iloc[0] == answer.edited_document["number"].iloc[0]
            assert all(word.startswith(("title: ", "body: ")) for word in answer.tokens)
            assert "Edited text (body): " in sets[at : at + 1].to_text() or not answer.tokens
    assert n_found > 60
    # An array of the same columns by number.
    columns = make_column_transformer((TokenVectorizer(), 0), (MinMaxScaler(), [1]))
    table = frame[["title", "number"]].to_numpy(dtype=object)
    model = make_pipeline(columns, classifier()).fit(table, LABELS)
    sets = explain(model, table[:20]).counterfactual("words")
    assert assert_all_true(sets, model, None, table[:20])


@pytest.mark.parametrize(
    ("first_step", "contain"),
    [
        (lambda texts: texts.str.lower(), lambda texts: pd.Series(texts, name="text")),
        (lambda texts: texts.str.lower(), lambda texts: pd.Series(texts, dtype="string")),
        (lambda texts: texts.astype(str), np.array),
        (lambda texts: texts.astype(str), lambda texts: np.array(texts, dtype=object)),
    ],
)
def test_edited_texts_come_in_what_the_texts_came_in(first_step, contain):
    """Steps may need a series or an array."""
    model = make_pipeline(FunctionTransformer(first_step), CountVectorizer(), classifier())
    model.fit(contain(TEXTS), LABELS)
    asked = contain(ASKED[:20])
    if isinstance(asked, pd.Series):
        asked.index = range(3, 43, 2)
    explanation = explain(model, asked)
    sets = explanation.counterfactual("words")
    assert type(sets[0].edited_document) is type(asked)
    assert assert_all_true(sets, model, None, asked)
    for answer in sets:
        edited = model.predict_proba(contain([answer.edited_text]))
        assert_allclose(edited, model.predict_proba(answer.edited_document), rtol=0, atol=1e-12)
    assert not np.isnan(explanation[:3].decision_without).all()


def test_tables_that_a_step_changes():
    """Words are removed from the columns that a step leaves in place, or not at all."""
    frame = pd.DataFrame({"title": TEXTS[::-1], "body": TEXTS})
    columns = make_column_transformer((CountVectorizer(), "title"), (CountVectorizer(), "body"))
    filled = make_pipeline(FunctionTransformer(lambda table: table.fillna("")), columns)
    model = make_pipeline(filled, classifier()).fit(frame, LABELS)
    assert assert_all_true(
        explain(model, frame[:20]).counterfactual("words"), model, None, frame[:20]
    )
    joined = FunctionTransformer(lambda table: table["title"] + " " + table["body"])
    for first in (
        make_pipeline(joined, CountVectorizer()),
        FeatureUnion([("both", make_pipeline(joined, CountVectorizer())), ("each", columns)]),
    ):
        model = make_pipeline(first, classifier()).fit(frame, LABELS)
        explanation = explain(model, frame[:3])
        assert explanation.to_text()
        with pytest.raises(ValueError, match="step makes of several columns cannot be edited"):
            explanation.counterfactual("words")


def test_two_layers_of_attention_have_answers_about_words():
    counter = CountVectorizer().fit(TEXTS)
    model = make_pipeline(counter, network(counter.transform(TEXTS), LABELS, n_layers=2))
    sets = explain(model, ASKED[:10]).counterfactual("words")
    assert assert_all_true(sets, model, None, ASKED[:10])
