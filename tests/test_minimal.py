"""The smallest changes are the smallest: against all subsets, and tried on the model."""

import itertools
import json
import pickle
import re
import warnings
from copy import copy
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline, make_union

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.inspection.minimal.removal_of_words import Removal, words_of
from sklearn_clsattn.paper import AttentionNetworkClassifier
from sklearn_clsattn.text import ContextVectorizer
from sklearn_clsattn.text._context_vectorizer import CHARACTER_PREFIX

# A share of the decisions' terms that is no rounding; the drawn models have greater leads, or none.
AHEAD = 1e-9
UNDERFLOWN = 1e-90


@cache
def hardly_fitted(n_classes, n_tokens, attend_cls):
    y = np.arange(2 * n_classes) % n_classes
    X = np.random.default_rng(0).poisson(1.0, (len(y), n_tokens))
    return ClsAttentionClassifier(attend_cls=attend_cls, max_iter=1, tol=1e9).fit(X, y)


@st.composite
def models(draw, classes=(2, 3, 4)):
    """Return a model with drawn scores and values, in half of the cases integers, and counts.

    Integers make ties; a sixth of the documents has no token. In half of the cases scores are so
    far apart that attention shares underflow.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_tokens = draw(st.integers(1, 7))
    model = copy(hardly_fitted(draw(st.sampled_from(classes)), n_tokens, draw(st.booleans())))
    shape, whole = model.token_values_.shape, draw(st.booleans())
    model.entry_scale_ = draw(st.sampled_from([1.0, 2.5]))
    model.token_values_ = rng.integers(-3, 4, shape) * 1.0 if whole else rng.normal(size=shape)
    model.intercept_ = 0.5 * rng.integers(-2, 3, model.intercept_.shape)
    far = draw(st.sampled_from([0, 400])) * rng.integers(-3, 4, n_tokens + 1)
    model.attention_scores_ = far[1:] + (0.0 if whole else 2 * rng.normal(size=n_tokens))
    if model.cls_weight_:
        model.cls_score_ = float(far[0] + (0.0 if whole else rng.normal()))
        model.cls_weight_ = draw(st.sampled_from([1.0, 1e-300]))
    X = rng.integers(0, 2 if whole else 3, (draw(st.integers(1, 3)), n_tokens)).astype(float)
    return model, sp.csr_array(X)


def outputs(model, X):
    """Return a decision for every class, and the sum of its absolute terms, from logarithms."""
    decisions, sizes = [], []
    values = np.atleast_2d(model.token_values_)
    for x in np.atleast_2d(X):
        tokens = np.flatnonzero(x)
        weights = model.entry_scale_ * np.log2(1 + x[tokens] / model.entry_scale_)
        logs = np.log(weights) + model.attention_scores_[tokens]
        if model.cls_weight_:
            logs = np.append(logs, np.log(model.cls_weight_) + model.cls_score_)
        masses = np.exp(logs - logs.max()) if len(logs) else logs
        shares = (masses / (masses.sum() or 1.0))[: len(tokens)]
        decisions.append(model.intercept_ + values[:, tokens] @ shares)
        sizes.append(np.abs(model.intercept_) + np.abs(values[:, tokens]) @ shares)
    more = ((0, 0), (2 - min(len(values), 2), 0))  # the first of two classes has 0
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


def present(model, x, one):
    """Return the number of the class that is ahead; of level ones, the set's."""
    (decision,), (size,) = outputs(model, x)
    code = model.classes_.tolist().index(one.before)
    assert not any(is_ahead(decision, size, other, code) for other in range(len(decision)))
    return code


@settings(max_examples=60, deadline=None)
@given(models(), st.data())
def test_the_fewest_removed_tokens(drawn, data):
    model, X = drawn
    to = data.draw(st.sampled_from([None, *model.classes_.tolist()]))
    sets = explain(model, X).counterfactual(to=to)
    for i, x in enumerate(X.toarray()):
        tokens, before = np.flatnonzero(x), present(model, x, sets[i])

        def changes(chosen, x=x, tokens=tokens, before=before):
            left = x.copy()
            left[tokens[chosen]] = 0
            return is_changed(model, left, before, to)

        one = sets[i]
        if to == before:
            assert (one.size, one.after) == (0, to)
            continue
        expected = fewest_by_trying(len(tokens), changes)
        assert one.size == expected
        assert one.at_least == expected
        assert one.is_minimal
        if expected is None:
            assert one.after == one.before == model.classes_[before]
            assert "proved" in sets.statement(i)
        else:
            assert changes(one.entries)
            assert one.after == (model.predict(without(x, tokens[one.entries]))[0])
            assert one.margin > 0


def test_what_a_token_with_nearly_all_of_the_attention_hides():
    """Without it the others decide, whose shares have underflowed."""
    X = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 2, 0, 1], [1, 0, 0, 0], [2, 0, 0, 1]]
    y = [1, 0, 1, 0, 1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ClsAttentionClassifier(C=1000.0, attention_C=1e10, attend_cls=False).fit(X, y)
    model.attention_scores_ = np.array([0.0, 0.0, 900.0, 0.0])
    explanation = explain(model, X)
    before, after = explanation.decision[2, 0], explanation[2].decision_without[:, 0]
    assert before * after.min() < 0
    for asked in ({}, {"to": 0}, {"probability": 0.5}):
        one = explanation.counterfactual(**asked)[2]
        assert one.tokens == ("x2",)
        assert one.leads == pytest.approx([before, after[0]])
    one = explanation.sufficient()[2]
    assert one.tokens == ("x2",)
    assert one.margin == pytest.approx(before)


def without(x, columns):
    left = np.array(x)
    left[columns] = 0
    return left[None]


@settings(max_examples=40, deadline=None)
@given(models(classes=(2,)), st.sampled_from([0.05, 0.3, 0.5, 0.8]), st.booleans())
def test_across_a_probability(drawn, probability, first):
    model, X = drawn
    explanation = explain(model, X, target=0 if first else None)
    threshold = -logit(probability) if first else logit(probability)
    sets = explanation.counterfactual(probability=probability)
    for i, x in enumerate(X.toarray()):
        tokens = np.flatnonzero(x)

        def side(x):
            """Return -1 or 1, or 0 for neither."""
            ((_, decision),), ((_, size),) = outputs(model, x)
            beyond = abs(decision - threshold) > AHEAD * (size + abs(threshold)) + UNDERFLOWN
            return beyond * np.sign(decision - threshold)

        if not side(x):
            continue

        def changes(chosen, x=x, tokens=tokens, side=side):
            return side(without(x, tokens[chosen])) == -side(x)

        expected = fewest_by_trying(len(tokens), changes)
        assert sets[i].size == sets[i].at_least == expected
        assert expected is None or changes(sets[i].entries)


@settings(max_examples=40, deadline=None)
@given(models(), st.data())
def test_the_fewest_added_tokens(drawn, data):
    model, X = drawn
    to = data.draw(st.sampled_from([None, *model.classes_.tolist()]))
    sets = explain(model, X).counterfactual("add", to=to)
    for i, x in enumerate(X.toarray()):
        before = present(model, x, sets[i])

        def changes(chosen, x=x, before=before):
            return is_changed(model, x + np.isin(np.arange(len(x)), chosen), before, to)

        one = sets[i]
        if to == before:
            assert one.size == 0
            continue
        expected = fewest_by_trying(len(x), changes)
        if to is None or len(model.classes_) == 2:
            assert one.size == one.at_least == expected
        elif expected is None:
            assert one.size is None
        else:  # several conditions at once: found step by step, with a bound
            assert one.at_least <= expected
            assert expected > 1 or one.size == 1
        if one.found:
            assert changes(one.entries)


def is_guaranteed(model, x, tokens, fixed, before):
    """Whether a class is ahead in all documents that have these tokens."""
    for _, chosen in subsets(len(tokens)):
        if set(fixed) <= set(chosen):
            left = np.zeros_like(x)
            left[tokens[chosen]] = x[tokens[chosen]]
            (decision,), (size,) = outputs(model, left)
            others = np.delete(np.arange(len(decision)), before)
            if not all(is_ahead(decision, size, before, other) for other in others):
                return False
    return True


@settings(max_examples=40, deadline=None)
@given(models(), st.booleans())
def test_the_fewest_sufficient_tokens(drawn, smallest):
    model, X = drawn
    sets = explain(model, X).sufficient(smallest=smallest)
    rng = np.random.default_rng(0)
    for i, x in enumerate(X.toarray()):
        tokens, before, one = np.flatnonzero(x), present(model, x, sets[i]), sets[i]

        def guarantees(fixed, x=x, tokens=tokens, before=before):
            return is_guaranteed(model, x, tokens, fixed, before)

        expected = fewest_by_trying(len(tokens), guarantees)
        if expected is None:
            assert one.at_least is None
            assert not one.found
            continue
        assert guarantees(one.entries)
        assert one.at_least <= expected <= one.size
        if smallest or len(model.classes_) == 2:
            assert one.size == one.at_least == expected
        for left_out in one.entries:
            assert not guarantees([entry for entry in one.entries if entry != left_out])
        # The margin is the lowest lead there is: also if others are there in part.
        leads = []
        for _, chosen in subsets(len(tokens)):
            if set(one.entries) <= set(chosen):
                decision = outputs(model, without(x, np.delete(tokens, chosen)))[0][0]
                leads.append(decision[before] - np.delete(decision, before).max())
        assert one.margin == pytest.approx(min(leads), rel=1e-9, abs=1e-9)
        partly = np.tile(x, (20, 1)) * rng.uniform(size=(20, len(x)))
        partly[:, tokens[one.entries]] = x[tokens[one.entries]]
        decision = outputs(model, partly)[0]
        others = np.delete(decision, before, axis=1).max(axis=1)
        assert (decision[:, before] - others > one.margin - AHEAD).all()


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


def text_model(vectorizer, **parameters):
    return make_pipeline(vectorizer, ClsAttentionClassifier(C=10.0, **parameters)).fit(
        TEXTS, LABELS
    )


def words_tried(explanation, words_of):
    """Return the fewest words of one document by trying all, as the shares of occurrences say."""
    text = explanation.texts[0][0]
    model, counts = explanation.model, explanation.counts
    kinds = sorted({word for words in words_of for word in words})

    fitted = model.fitted
    scores = fitted.scores[explanation.columns]
    cls = np.log(fitted.cls_weight) + fitted.cls_score if fitted.cls_weight else -np.inf

    def decision(removed):
        kept = np.ones(len(counts))
        for (_, _, token), share, words in zip(
            text.occurrences.tolist(), text.shares, words_of, strict=True
        ):
            kept[token] -= share * any(word in removed for word in words)
        kept[kept < 1e-9] = 0.0
        with np.errstate(divide="ignore"):
            logs = np.append(np.log(model.token_weights(counts * kept)) + scores, cls)
        masses = np.exp(logs - max(logs.max(), -1e9))
        mean = masses[:-1] @ explanation.values[:, 0] / (masses.sum() or 1.0)
        return explanation.intercept[0] + mean

    before = explanation.decision[0, 0] > 0
    for size in range(len(kinds) + 1):
        for removed in itertools.combinations(kinds, size):
            if (1 if not before else -1) * decision(set(removed)) > AHEAD:
                return size
    return None


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+"),
        ContextVectorizer(ngram_range=(1, 3), min_df=1, characters=None),
        ContextVectorizer(ngram_range=(1, 2), min_df=1, characters=(2, 3)),
        make_union(CountVectorizer(), CountVectorizer(ngram_range=(2, 2))),
        make_union(CountVectorizer(), CountVectorizer(analyzer="char_wb", ngram_range=(2, 3))),
    ],
    ids=["pairs", "context", "characters", "union", "union with characters"],
)
@pytest.mark.parametrize("attend_cls", [True, False])
@pytest.mark.parametrize("far", [0, 400])
def test_the_fewest_removed_words(vectorizer, attend_cls, far):
    model = text_model(vectorizer, attend_cls=attend_cls)
    scores = model[-1].attention_scores_
    # Attention shares of scores so far apart underflow.
    scores += far * np.random.default_rng(0).integers(-3, 4, len(scores))
    explanation = explain(model, ASKED[:4])
    sets = explanation.counterfactual("words")
    n_tried = 0
    for one, found in zip(explanation, sets, strict=True):
        text = one.texts[0][0]
        words_of = [
            set(_words(text.text, *text.words[first], *text.words[first + max(length, 1) - 1]))
            for first, length, _ in text.occurrences.tolist()
        ]
        expected = words_tried(one, words_of)
        if expected is None:
            assert not found.found
            continue
        n_tried += 1
        assert found.at_least is not None
        assert found.at_least <= expected <= found.size
        assert found.size == expected or not found.is_minimal
        assert found.leads[-1] < 0
    assert n_tried >= (1 if far else 2)


def _words(text, start, _, __, stop):
    """Yield the words and commas that have characters from start to stop, in lower case."""
    for word in re.finditer(r"\w+|,", text):
        if word.start() < stop and word.end() > start:
            yield word.group().lower()


def test_words_without_their_ngrams_are_the_document_with_unknown_words():
    """A removed word of a pipeline without context is a word that the model does not know."""
    model = text_model(CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+"))
    sets = explain(model, ASKED[:4]).counterfactual("words")
    for text, one in zip(ASKED, sets, strict=False):
        if not one.found:
            continue
        masked = [("zzz" if word.strip(",") in one.tokens else word) for word in text.split()]
        assert model.predict([" ".join(masked)])[0] == one.after
        assert model.predict([text])[0] == one.before


def test_words_that_are_not_in_the_vocabulary_have_their_characters():
    """With an unknown word go the character n-grams in it, but not the known comma behind it."""
    vectorizer = ContextVectorizer(min_df=1, characters=(2, 3), context=False)
    model = make_pipeline(vectorizer, ClsAttentionClassifier(C=10.0)).fit(TEXTS, LABELS)
    explanation = explain(model, ["a goodish, badly filmed story"])
    words = words_of(explanation)
    assert {name for name in words.names if "," in name} == {","}
    assert {"goodish", ",", "badly", "filmed", "story"} <= set(words.names)
    removal = Removal(explanation, words)
    kept = removal.weights(np.array([name == "goodish" for name in words.names]))
    for name, weight in zip(explanation.tokens, kept, strict=True):
        _, is_characters, ngram = name.partition(CHARACTER_PREFIX)
        if is_characters and ngram in "goodish":
            assert weight == 0
        if name == "story":
            assert weight == 1
    assert removal.weights(np.ones(len(words.names), dtype=bool)).max() == 0


def test_words_to_a_class_of_several():
    labels = ["film", "cast", "fun", "film", "story", "fun"]
    model = make_pipeline(CountVectorizer(ngram_range=(1, 2)), ClsAttentionClassifier(C=10.0))
    model.fit(TEXTS, labels)
    explanation = explain(model, TEXTS)
    for to in (None, "fun"):
        for text, one in zip(TEXTS, explanation.counterfactual("words", to=to), strict=True):
            if one.found and one.size:
                words = {word.lower() for word in one.tokens}
                masked = [("zzz" if word.strip(",") in words else word) for word in text.split()]
                assert model.predict([" ".join(masked)])[0] == one.after
                assert to is None or one.after == to


def test_what_cannot_be_answered_is_refused():
    model = text_model(CountVectorizer())
    with pytest.raises(ValueError, match="without top"):
        explain(model, ASKED, top=1).counterfactual()
    explanation = explain(model, ASKED)
    with pytest.raises(ValueError, match="change must be one of"):
        explanation.counterfactual("letters")
    with pytest.raises(ValueError, match="one of the classes"):
        explanation.counterfactual(to="fair")
    with pytest.raises(ValueError, match="not both"):
        explanation.counterfactual(to="good", probability=0.4)
    with pytest.raises(ValueError, match="probability"):
        explanation.sufficient(probability=1.0)
    with pytest.raises(ValueError, match=r"places of \d tokens.*not known"):
        explain(model, ASKED, places=False).counterfactual("words")
    own = CountVectorizer(analyzer=str.split)
    mixed = explain(text_model(make_union(CountVectorizer(), own)), ASKED)
    with pytest.raises(ValueError, match="such as 'countvectorizer-2__"):
        mixed.counterfactual("words")
    X, y = model[0].transform(TEXTS), np.arange(6) % 3
    several = ClsAttentionClassifier().fit(X, y)
    with pytest.raises(ValueError, match="without target"):
        explain(several, X, target=1).sufficient()
    with pytest.raises(ValueError, match="two classes alone"):
        explain(several, X).counterfactual(probability=0.3)
    network = AttentionNetworkClassifier(
        n_layers=2, embedding_dim=4, early_stopping=False, max_iter=1, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(X, LABELS)
    with pytest.raises(ValueError, match="one layer"):
        explain(network, X).counterfactual()


def test_sets_as_text_frame_page_and_dictionary():
    model = text_model(CountVectorizer(ngram_range=(1, 2)))
    explanation = explain(model, [*ASKED, "<b>good</b> & bad, bad, bad"])
    for sets in (
        explanation.counterfactual(),
        explanation.counterfactual("words"),
        explanation.counterfactual("add"),
        explanation.counterfactual(probability=0.2),
        explanation.sufficient(),
    ):
        text, page = sets.to_text(), sets.to_html()
        for i in range(len(sets)):
            assert sets.statement(i) in text
        assert page.count("<section") == len(sets) == len(explanation)
        assert "<script" not in page
        assert "<b>good" not in page
        frame = sets.to_frame()
        assert frame["document"].tolist() == list(range(len(sets)))
        np.testing.assert_array_equal(frame["size"], sets.sizes)
        tokens = sets.to_frame("tokens")
        assert len(tokens) == np.nansum(sets.sizes)
        json.dumps(sets.to_dict())
        assert sets[1:3].to_frame()["document"].tolist() == [1, 2]
        assert pickle.loads(pickle.dumps(sets)).to_text() == text
        assert "srcdoc=" in sets._repr_html_()
    with pytest.raises(ValueError, match="rows must be"):
        sets.to_frame("words")
    assert "more" in explanation.sufficient().to_text(top=0)


def test_statements():
    model = text_model(CountVectorizer(token_pattern=r"\w+"))
    explanation = explain(model, ["good fun", "good bad", "bad", ""])
    sets = explanation.counterfactual(to="bad")
    assert re.fullmatch(
        r"Without .*, it is bad \(\d+\.\d%\)(; no .* would do)?\.", sets.statement(0)
    )
    assert sets.statement(2) == "It is bad already."
    assert (sets[2].size, sets[2].is_minimal) == (0, True)
    assert (
        explanation.counterfactual().statement(3)
        == "No removal of tokens changes the prediction: proved."
    )
    assert "guarantee" in explanation.sufficient().statement(0)
    near = float(explanation.probability[0, 0]) - 0.01
    crossed = explanation.counterfactual(probability=near)
    assert "the probability of good is" in crossed.statement(0)
    assert "across" in crossed.statement(0)
