"""The fewest counts are the fewest: against all subsets, and tried on the model."""

import itertools
import pickle
import re
from copy import copy
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import drawn_models, hardly_fitted, network
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import page_of
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.inspection import explain

# A share of the decisions' terms that is no rounding; the drawn models have greater margins, or 0.
AHEAD = 1e-9
UNDERFLOWN = 1e-90


def outputs(model, X):
    """Return a decision for every class, and the sum of its absolute terms."""
    X, values = sp.csr_array(np.atleast_2d(X)), np.atleast_2d(model.token_values_)
    decisions = model.decision_function(X).reshape(X.shape[0], -1)
    sizes = np.abs(model.intercept_) + model.attention(X) @ np.abs(values.T)
    more = ((0, 0), (2 - min(sizes.shape[1], 2), 0))  # the first of two classes has 0
    return np.pad(decisions, more), np.pad(sizes, more)


def is_ahead(decision, size, one, other):
    return decision[one] - decision[other] > AHEAD * (size[one] + size[other]) + UNDERFLOWN


def is_changed(model, x, before, to=None):
    """Whether another class than the number `before`, or `to`, is ahead of the others."""
    (decision,), (size,) = outputs(model, x)
    others = range(len(decision))
    if to is None:
        return any(is_ahead(decision, size, other, before) for other in others)
    return all(is_ahead(decision, size, to, other) for other in others if other != to)


def subsets(n):
    for size in range(n + 1):
        for chosen in itertools.combinations(range(n), size):
            yield size, list(chosen)


def fewest_by_trying(n, does):
    """Return the size of the smallest of all subsets for which `does`, None without one."""
    return next((size for size, chosen in subsets(n) if does(chosen)), None)


def without(x, numbers):
    left = np.array(x)
    left[np.flatnonzero(x)[numbers]] = 0
    return left


def present(model, x, one):
    """Return the number of the class that is ahead; of tied ones, the set's."""
    (decision,), (size,) = outputs(model, x)
    code = model.classes_.tolist().index(one.before)
    assert not any(is_ahead(decision, size, other, code) for other in range(len(decision)))
    return code


@settings(max_examples=100, deadline=None)
@given(drawn_models(), st.data())
def test_the_fewest_removed_tokens(drawn, data):
    model, X = drawn
    to = data.draw(st.sampled_from([None, *model.classes_.tolist()]))
    sets = explain(model, X).counterfactual(to=to)
    for x, one in zip(X.toarray(), sets, strict=True):
        before = present(model, x, one)

        def changes(chosen, x=x, before=before):
            return is_changed(model, without(x, chosen), before, to)

        if to == before:
            assert (one.size, one.after) == (0, to)
            continue
        expected = fewest_by_trying(np.count_nonzero(x), changes)
        assert one.size == one.at_least == expected
        if one.found:
            changed = without(x, one.entries)[None]
            assert changes(one.entries)
            assert one.after == model.predict(changed)[0]
            assert one.probability == pytest.approx(model.predict_proba(changed).max(), abs=1e-9)
            assert one.margin > 0
        else:
            assert one.after == one.before == model.classes_[before]


@settings(max_examples=40, deadline=None)
@given(drawn_models())
def test_the_fewest_sufficient_tokens(drawn):
    model, X = drawn
    sets = explain(model, X).sufficient()
    for x, one in zip(X.toarray(), sets, strict=True):
        tokens, before = np.flatnonzero(x), present(model, x, one)

        def documents_with(fixed, x=x, tokens=tokens):
            chosen = (some for _, some in subsets(len(tokens)) if set(fixed) <= set(some))
            every = np.arange(len(tokens))
            return np.array([without(x, np.delete(every, some)) for some in chosen])

        def guarantees(fixed, documents_with=documents_with, before=before):
            return all(
                is_ahead(decision, size, before, other)
                for decision, size in zip(*outputs(model, documents_with(fixed)), strict=True)
                for other in range(len(decision))
                if other != before
            )

        expected = fewest_by_trying(len(tokens), guarantees)
        if expected is None:
            assert (one.at_least, one.found) == (None, False)
            continue
        assert guarantees(one.entries)
        assert one.size == one.at_least == expected
        for left_out in one.entries:
            assert not guarantees([entry for entry in one.entries if entry != left_out])
        # The margin is the lowest there is: also if others are there in part.
        partly = np.tile(x, (20, 1)) * np.random.default_rng(0).uniform(size=(20, len(x)))
        partly[:, tokens[one.entries]] = x[tokens[one.entries]]
        margins = []
        for documents in (documents_with(one.entries), partly):
            decisions = outputs(model, documents)[0]
            others = np.delete(decisions, before, axis=1).max(axis=1)
            margins.append((decisions[:, before] - others).min())
        assert one.margin == pytest.approx(margins[0], rel=1e-9, abs=1e-9)
        assert margins[1] > one.margin - AHEAD


def four_classes(seed):
    """Return the explanation of some documents of a model that has no ties."""
    rng = np.random.default_rng(seed)
    model = copy(hardly_fitted(4, 14, True))
    model.token_values_, model.attention_scores_ = rng.normal(size=(4, 14)), rng.normal(size=14)
    model.token_values_[0] += 0.5
    return explain(model, rng.integers(0, 3, (4, 14)).astype(float))


@pytest.mark.parametrize("is_kept", [False, True])
def test_without_time_there_are_sets_and_no_proofs(is_kept):
    n_open = 0
    for seed, to in itertools.product(range(6 if is_kept else 60), range(1 if is_kept else 4)):
        explanation = four_classes(seed)
        ask = partial(explanation.counterfactual, to=to)
        ask = explanation.sufficient if is_kept else ask
        exact, hasty = (ask(time_limit=limit) for limit in (10.0, 1e-9))
        for at, (one, quick) in enumerate(zip(exact, hasty, strict=True)):
            assert one.is_minimal
            assert one.found or not quick.found
            if quick.found and quick.size:
                assert quick.at_least <= one.size <= quick.size
                assert quick.margin > 0
                assert ("is open" in hasty.statement(at)) == (not quick.is_minimal)
                n_open += not quick.is_minimal
    assert n_open


TEXTS = [
    "a good film, good fun",
    "good cast and a good story",
    "fun, not bad at all",
    "bad film, bad cast",
    "a bad story and bad fun",
    "not good at all",
]
LABELS = ["good", "good", "good", "bad", "bad", "bad"]
ASKED = ["a good film and a bad story", "good fun, good cast", "not bad fun at all", "bad", ""]


def test_a_token_that_holds_back_one_class_and_not_another():
    model = copy(hardly_fitted(3, 1, False))
    model.intercept_, model.token_values_ = np.array([1.0, 0, 2]), np.array([[0.0], [3], [-9]])
    one = explain(model, np.ones((1, 1))).counterfactual(to=0)[0]
    assert (one.found, one.at_least, one.before) == (False, None, 1)


def text_model(vectorizer, labels=LABELS, **parameters):
    classifier = ClsAttentionClassifier(C=10.0, **parameters)
    return make_pipeline(vectorizer, classifier).fit(TEXTS, labels)


def test_questions_that_are_refused():
    model = text_model(CountVectorizer())
    X = model[0].transform(TEXTS)
    several = ClsAttentionClassifier().fit(X, np.arange(6) % 3)
    known = explain(model, ASKED)
    for explanation, asked, message in (
        (known, {"unit": "letters"}, "unit must be 'tokens' or 'words', got 'letters'"),
        (known, {"to": "fair"}, "one of the classes"),
        (known, {"time_limit": 0}, "time_limit"),
        (explain(model, ASKED, places=False), {"unit": "words"}, "document 0 was not explained"),
        (explain(model[-1], X), {"unit": "words"}, "pass texts"),
        (explain(several, X, target=1), {}, "without target"),
        (explain(network(X, LABELS, n_layers=2), X), {}, "one layer"),
    ):
        with pytest.raises(ValueError, match=message):
            explanation.counterfactual(**asked)


# ---- what is shown -------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [LABELS, [*"abcabc"]], ids=["two", "three"])
def test_sets_as_text_frame_and_page(labels):
    model = text_model(CountVectorizer(ngram_range=(1, 2)), labels)
    explanation = explain(model, [*ASKED, "<b>good</b> & bad, bad, bad"])
    asked = [explanation.counterfactual(unit) for unit in ("tokens", "words")]
    asked += [explanation.sufficient(unit) for unit in ("tokens", "words")]
    for sets in asked:
        text, page, frame = str(sets), page_of(sets), sets.to_frame()
        for i in range(len(sets)):
            assert sets.statement(i) in text
        assert page.tags.count("section") == len(sets) == len(explanation)
        assert "<b>good" not in sets.to_html()
        assert frame["document"].tolist() == list(range(len(sets)))
        np.testing.assert_array_equal(frame["size"], sets.sizes)
        assert sets[1:3].to_frame()["document"].tolist() == [1, 2]
        assert pickle.loads(pickle.dumps(sets)).to_text() == text
        assert ("Edited text" in text) == ("Edited text" in page.text) == (sets.unit == "words")
        assert ("edited_text" in frame) == (sets.unit == "words")
    assert "more" in asked[2].to_text(top=0)
    assert asked[3][:0].to_text() == "No documents."


def test_statements_and_marks():
    model = text_model(CountVectorizer(token_pattern=r"\w+"))
    explanation = explain(model, ["good fun", "good bad", "bad", ""])
    sets = explanation.counterfactual(to="bad")
    assert re.fullmatch(
        r"Set all 2 counts to 0 and the prediction becomes bad \(5\d\.\d%\)\."
        r" No single one is enough\.",
        sets.statement(0),
    )
    assert sets.statement(2) == "The prediction is already bad."
    assert (sets[2].size, sets[2].is_minimal) == (0, True)
    nothing = "Setting counts to 0 does not change the prediction (proved)."
    assert explanation.counterfactual().statement(3) == nothing
    assert re.fullmatch(
        r'The count of "fun" keeps the prediction good \(at least 7\d\.\d%\), '
        r"however much the others are reduced\.",
        explanation.sufficient().statement(0),
    )
    model = text_model(CountVectorizer(ngram_range=(1, 2)))
    sets = explain(model, ["bad film, bad"]).counterfactual("words")
    assert sets[0].marked_texts[0][2] == [(0, 3), (10, 13)]
    assert sets[0].edited_text == "film,"
    assert sets.to_html().count('<span class="t">bad</span>') == 2
