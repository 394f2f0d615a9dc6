"""The smallest changes are the smallest: against all subsets, and tried on the model."""

import itertools
import pickle
import re
from copy import copy
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import drawn_models, hardly_fitted, network
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import page_of
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline, make_union

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._base import fitted_attention
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.inspection.minimal import search
from sklearn_clsattn.text import ContextVectorizer
from sklearn_clsattn.text._context_vectorizer import CHARACTER_PREFIX

# A share of the decisions' terms that is no rounding; the drawn models have greater margins, or 0.
AHEAD = 1e-9
UNDERFLOWN = 1e-90


def outputs(model, X):
    """Return a decision for every class, and the sum of its absolute terms."""
    fitted, X = fitted_attention(model), sp.csr_array(np.atleast_2d(X))
    sizes = np.abs(fitted.intercept) + fitted.attention(X) @ np.abs(fitted.values)
    more = ((0, 0), (2 - min(sizes.shape[1], 2), 0))  # the first of two classes has 0
    return np.pad(fitted.outputs(X), more), np.pad(sizes, more)


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
def test_the_fewest_removed_or_added_tokens(drawn, data):
    model, X = drawn
    change = data.draw(st.sampled_from(["tokens", "add"]))
    to = data.draw(st.sampled_from([None, *model.classes_.tolist()]))
    is_exact = change == "tokens" or to is None or len(model.classes_) == 2
    # Of more tokens of the vocabulary, the best are tried first.
    with patch.object(search, "_CANDIDATES", data.draw(st.sampled_from([2, 200]))):
        sets = explain(model, X).counterfactual(change, to=to)
    for x, one in zip(X.toarray(), sets, strict=True):
        n = len(x) if change == "add" else np.count_nonzero(x)
        before = present(model, x, one)

        def changed(chosen, x=x):
            return x + np.isin(np.arange(len(x)), chosen) if change == "add" else without(x, chosen)

        def changes(chosen, changed=changed, before=before):
            return is_changed(model, changed(chosen), before, to)

        if to == before:
            assert (one.size, one.after) == (0, to)
            continue
        expected = fewest_by_trying(n, changes)
        if is_exact or expected is None:
            assert one.size == expected
        if is_exact:
            assert one.at_least == expected
        elif expected is not None:  # several conditions at once: found step by step, with a bound
            assert one.at_least <= expected
            assert expected > 1 or one.size == 1
        if one.found:
            assert changes(one.entries)
            assert one.after == model.predict(changed(one.entries)[None])[0]
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


@pytest.mark.parametrize("asked", [{"to": 0}, None], ids=["removed", "kept"])
def test_without_time_there_are_sets_and_no_proofs(asked):
    n_open = 0
    for seed in range(2, 6):
        explanation = four_classes(seed)
        ask = explanation.sufficient if asked is None else explanation.counterfactual
        exact, hasty = (ask(time_limit=limit, **(asked or {})) for limit in (10.0, 1e-9))
        for at, (one, quick) in enumerate(zip(exact, hasty, strict=True)):
            assert one.is_minimal
            assert one.found or not quick.found
            if quick.found and quick.size:
                assert quick.at_least <= one.size <= quick.size
                assert quick.margin > 0
                assert ("is open" in hasty.statement(at)) == (not quick.is_minimal)
                n_open += not quick.is_minimal
    assert n_open


# ---- words ---------------------------------------------------------------------------------------

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


def test_several_additions_reach_a_class_of_four():
    sets = [one for seed in range(2, 6) for one in four_classes(seed).counterfactual("add", to=0)]
    assert max(one.size for one in sets if one.found) > 1
    assert all(one.at_least <= one.size and one.after == 0 for one in sets if one.found)


def test_a_token_that_holds_back_one_class_and_not_another():
    model = copy(hardly_fitted(3, 1, False))
    model.intercept_, model.token_values_ = np.array([1.0, 0, 2]), np.array([[0.0], [3], [-9]])
    one = explain(model, np.ones((1, 1))).counterfactual(to=0)[0]
    assert (one.found, one.at_least, one.before) == (False, None, 1)


def text_model(vectorizer, labels=LABELS, **parameters):
    classifier = ClsAttentionClassifier(C=10.0, **parameters)
    return make_pipeline(vectorizer, classifier).fit(TEXTS, labels)


def words_tried(explanation):
    """Return the fewest words of one document by trying all, as the shares of occurrences say."""
    text, model, counts = explanation.texts[0][0], explanation.model, explanation.weights
    fitted, occurrences = model.fitted, []
    for (first, length, token), share in zip(text.occurrences.tolist(), text.shares, strict=True):
        start, stop = text.words[first, 0], text.words[first + max(length, 1) - 1, 1]
        words = re.finditer(r"\w+|,", text.text)
        within = (word for word in words if word.start() < stop and word.end() > start)
        occurrences.append((token, share, {word.group().lower() for word in within}))
    kinds = sorted(set().union(*(words for _, _, words in occurrences)))
    cls = np.log(fitted.cls_weight) + fitted.cls_score if fitted.cls_weight else -np.inf

    def decision(removed):
        kept = np.ones(len(counts))
        for token, share, words in occurrences:
            kept[token] -= share * bool(words & removed)
        kept[kept < 1e-9] = 0.0
        with np.errstate(divide="ignore"):
            weights = np.log(model.token_weights(counts * kept))
        logs = np.append(weights + fitted.scores[explanation.columns], cls)
        masses = np.exp(logs - max(logs.max(), -1e9))
        mean = masses[:-1] @ explanation.values[:, 0] / (masses.sum() or 1.0)
        return explanation.intercept[0] + mean

    side = -1 if explanation.decision[0, 0] > 0 else 1
    return fewest_by_trying(
        len(kinds), lambda chosen: side * decision({kinds[at] for at in chosen}) > AHEAD
    )


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+"),
        ContextVectorizer(ngram_range=(1, 2), min_df=1, characters=(2, 3)),
        make_union(CountVectorizer(), CountVectorizer(ngram_range=(2, 2))),
    ],
    ids=["pairs", "context", "union"],
)
@pytest.mark.parametrize("attend_cls", [True, False])
@pytest.mark.parametrize("far", [0, 400])
def test_the_fewest_removed_words(vectorizer, attend_cls, far):
    model = text_model(vectorizer, attend_cls=attend_cls)
    scores = model[-1].attention_scores_
    # Attention shares of scores so far apart underflow.
    scores += far * np.random.default_rng(0).integers(-3, 4, len(scores))
    explanation = explain(model, ASKED[:4])
    sets, hasty = (explanation.counterfactual("words", time_limit=t) for t in (10.0, 1e-9))
    assert not (hasty.sizes < sets.sizes).any()
    n_found = 0
    for document, one in zip(explanation, sets, strict=True):
        expected = words_tried(document)
        if expected is None:
            assert not one.found
            continue
        n_found += 1
        assert one.at_least is not None
        assert one.at_least <= expected <= one.size
        assert one.size == expected or not one.is_minimal
        assert one.margins[-1] < 0
    assert n_found >= (1 if far else 2)


@pytest.mark.parametrize("labels", [LABELS, ["film", "cast", "fun", "film", "story", "fun"]])
def test_a_removed_word_is_a_word_that_the_model_does_not_know(labels):
    """Without context, so that n-grams over a gap are not made anew."""
    model = text_model(CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+"), labels)
    explanation = explain(model, TEXTS)
    for to in (None, labels[2]):
        for text, one in zip(TEXTS, explanation.counterfactual("words", to=to), strict=True):
            words = {word.lower() for word in one.tokens}
            masked = [("zzz" if word.strip(",") in words else word) for word in text.split()]
            assert model.predict([" ".join(masked)])[0] == one.after
            assert model.predict([text])[0] == one.before
            assert to is None or not one.found or one.after == to


def test_words_that_are_not_in_the_vocabulary_have_their_characters():
    """An unknown word goes with its character n-grams, but not the known comma behind it."""
    model = text_model(ContextVectorizer(min_df=1, characters=(2, 3), context=False))
    explanation = explain(model, ["a goodish, badly filmed story"])
    assert not any(CHARACTER_PREFIX in name for name in explanation.model.names)
    words = search.units_of(explanation, "words")
    assert {"goodish", ",", "badly", "filmed", "story"} <= set(words.names)
    kept = words.weights(words.every, words.names == "goodish")[:, 0]
    weights = dict(zip(explanation.tokens, kept, strict=True))
    assert (weights["goodish"], weights["story"]) == (0, 1)
    assert words.weights(words.every, np.ones(words.n, dtype=bool)).max() == 0


def test_questions_that_are_refused():
    model = text_model(CountVectorizer())
    X = model[0].transform(TEXTS)
    several = ClsAttentionClassifier().fit(X, np.arange(6) % 3)
    mixed = text_model(make_union(CountVectorizer(), CountVectorizer(analyzer=str.split)))
    known = explain(model, ASKED)
    for explanation, asked, message in (
        (known, {"change": "letters"}, "change must be one of"),
        (known, {"to": "fair"}, "one of the classes"),
        (known, {"time_limit": 0}, "time_limit"),
        (explain(model, ASKED, places=False), {"change": "words"}, r"positions of \d tokens.*"),
        (explain(mixed, ASKED), {"change": "words"}, "such as 'countvectorizer-2__"),
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
    asked = [explanation.counterfactual(change) for change in ("tokens", "words", "add")]
    asked.append(explanation.sufficient())
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
    assert "more" in asked[3].to_text(top=0)
    assert asked[3][:0].to_text() == "No documents."


def test_statements_and_marks():
    model = text_model(CountVectorizer(token_pattern=r"\w+"))
    explanation = explain(model, ["good fun", "good bad", "bad", ""])
    sets = explanation.counterfactual(to="bad")
    assert re.fullmatch(
        r"Without .*, it is bad \(\d+\.\d%\)(; no .* would do)?\.", sets.statement(0)
    )
    assert sets.statement(2) == "It is bad already."
    assert (sets[2].size, sets[2].is_minimal) == (0, True)
    nothing = "No removal of tokens changes the prediction: proved."
    assert explanation.counterfactual().statement(3) == nothing
    assert "guarantee" in explanation.sufficient().statement(0)
    model = text_model(CountVectorizer(ngram_range=(1, 2)))
    sets = explain(model, ["bad film, bad"]).counterfactual("words")
    assert [marks.tolist() for marks in sets[0].marks] == [[[0, 3], [10, 13]]]
    assert sets.to_html().count('<span class="t">bad</span>') == 2
