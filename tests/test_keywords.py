"""Keywords: words in place of labels, and whether these agree with one another."""

import pickle
import warnings

import numpy as np
import pytest
from helpers import refused
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.utils import get_tags

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.saving import load_model, save_model
from sklearn_clsattn.text import Keywords
from sklearn_clsattn.text._keywords import agreements, marked_texts, surest
from sklearn_clsattn.text._tokens import WORDS_AND_PUNCTUATION, tokenize

# Words of two topics, words of neither, and one keyword in some texts of a topic.
WORDS = {"sports": ["Goal", "home run"], "politics": ["vote", "election"]}
OTHER_WORDS = {"sports": "striker match team pitch", "politics": "minister party law budget"}
FILLERS = ["the", "a", "of", "today", "we", "saw", "it", "was"]


def drawn(n_texts, seed, topical=True):
    """Return texts and classes; unless topical, keywords alone tell the classes."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n_texts):
        label = str(rng.choice(list(WORDS)))
        source = OTHER_WORDS[label].split() if topical else FILLERS
        words = [*rng.choice(FILLERS, 4), *rng.choice(source, 2)]
        if rng.random() < 0.3:
            words.append(str(rng.choice(WORDS[label])))
        rng.shuffle(words)
        texts.append(" ".join(words))
        labels.append(label)
    return np.array(texts, dtype=object), np.array(labels)


TEXTS, LABELS = drawn(120, 0)
OTHERS, OTHER_LABELS = drawn(100, 1)


@pytest.fixture(scope="module")
def model():
    return Keywords(WORDS).fit(TEXTS)


def test_what_it_learned_is_explained():
    texts = ["good film", "good plot, fine", "bad film", "bad plot, dull"] * 6
    model = Keywords({"pos": ["good"], "neg": ["bad"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one word a class says nothing of their agreement
        model.fit(texts)
    explanation = explain(model, texts[:4])
    assert explanation.is_sum
    assert_array_equal(explanation.predicted, model.predict(texts[:4]))
    assert_array_equal(explanation.probability[:, 0], model.predict_proba(texts[:4])[:, 1])


def test_words_suffice_where_they_carry_the_classes(model):
    assert_array_equal(model.classes_, ["politics", "sports"])
    assert model.score(OTHERS, OTHER_LABELS) > 0.95
    assert 0.95 < model.agreement_ <= 1
    assert 0.2 < model.coverage_ < 0.4
    assert_array_equal(model.predict(OTHERS), model.classes_[model.predict_proba(OTHERS).argmax(1)])
    assert model.model_.predict(["goal", "vote"]).tolist() == ["sports", "politics"]


def test_it_warns_where_words_do_not_agree():
    texts, _ = drawn(300, 0, topical=False)
    with pytest.warns(UserWarning, match="do not agree") as caught:
        model = Keywords(WORDS).fit(texts)
    assert caught[0].filename == __file__
    assert_allclose(model.agreement_, 0.5, atol=0.15)


@pytest.mark.parametrize("more", [[], ["handball"]])
def test_it_warns_where_nothing_can_be_held_out(more):
    """Of "sports", only one word is in texts."""
    with pytest.warns(UserWarning, match="agreement_ is nan"):
        model = Keywords({**WORDS, "sports": ["goal", *more]}).fit(TEXTS)
    assert np.isnan(model.agreement_)
    assert model.score(OTHERS, OTHER_LABELS) > 0.9


def test_a_word_that_means_something_else_does_not_agree():
    words = {
        "sports": ["goal", "striker", "home run", "election"],
        "politics": ["vote", "law", "budget"],
    }
    model = Keywords(words).fit(TEXTS)
    of_words = {w: each for some in model.word_agreements_.values() for w, each in some.items()}
    assert list(of_words) == [*words["politics"], *words["sports"]]
    assert of_words.pop("election") < 0.3
    assert min(of_words.values()) > 0.6


def test_agreement_is_the_area_under_the_roc_curve():
    rng = np.random.default_rng(0)
    logs = np.log(rng.dirichlet([1, 1, 1], 40)).round(1)  # with ties
    classes = rng.integers(3, size=40)
    of_texts = agreements(logs, classes)
    decisions = logs[:, 0] - logs[:, 1]
    two = classes < 2
    assert_allclose(
        agreements(logs[two], classes[two])[classes[two] == 0].mean(),
        roc_auc_score(classes[two] == 0, decisions[two]),
    )
    assert ((of_texts >= 0) & (of_texts <= 1)).all()
    assert np.isnan(agreements(logs[classes == 0], classes[classes == 0])).all()


def test_neither_the_order_of_texts_nor_labels_matter(model, tmp_path):
    again = clone(model).fit(TEXTS[::-1], np.zeros(len(TEXTS)))
    assert again.agreement_ == model.agreement_
    save_model(model, tmp_path / "model.skops")
    for same in (again, pickle.loads(pickle.dumps(model)), load_model(tmp_path / "model.skops")):
        assert_array_equal(same.predict_proba(OTHERS), model.predict_proba(OTHERS))
    assert not get_tags(model).target_tags.required


def test_suggested_words_are_those_of_the_class_and_new(model):
    suggested = model.suggest(TEXTS, n=4)
    assert {label: sorted(words) for label, words in suggested.items()} == {
        label: sorted(words.split()) for label, words in sorted(OTHER_WORDS.items())
    }


def test_words_of_all_texts_are_not_suggested(model):
    every = [word for words in model.suggest(TEXTS, n=6).values() for word in words]
    assert not {"home", "run"} & {*every[:4]}
    assert set(" ".join(OTHER_WORDS.values()).split()) < {*every}


def test_texts_with_words_of_one_class_lose_these():
    texts = ["one goal, one home run", "home and run", "goal and vote", "no-vote", "home", "run a"]
    words = [("goal",), ("home", "run"), ("vote",)]
    tokens = tokenize(texts, WORDS_AND_PUNCTUATION, scripts=True)
    marked = marked_texts(texts, tokens, words, np.array([0, 0, 1]))
    assert marked.texts == ["one , one  ", "no-"]
    assert_array_equal(marked.classes, [0, 1])
    assert_array_equal(marked.has_word, [[1, 1, 0], [0, 0, 1]])


def test_the_surest_of_each_class_are_learned():
    first = np.array([0.9, 0.8, 0.1, 0.4, 0.3, 0.7])
    assert_array_equal(surest(np.column_stack([first, 1 - first]), 0.6), [0, 1, 2, 4])
    assert_array_equal(surest(np.array([[0.6, 0.4], [0.4, 0.6]]), 0.1), [0, 1])


def test_a_tokenizer_finds_the_words():
    texts = [text.replace(" ", "_") for text in TEXTS]
    words = {"sports": ["goal", "home_run"], "politics": ["vote", "election"]}
    model = Keywords(words, tokenizer=lambda text: text.split("_")).fit(texts)
    assert model.predict(["striker_match"]) == ["sports"]


def test_classes_may_be_numbers():
    words = dict(enumerate(WORDS.values()))
    model = Keywords(words).fit(TEXTS)
    assert model.predict(["striker match", "minister party"]).tolist() == [0, 1]
    assert list(model.word_agreements_) == list(model.suggest(TEXTS)) == [0, 1]


# As a teacher


class Counted(Keywords):
    """Counts its fits, and how many texts the last one had."""

    fits: list = []

    def fit(self, X, y=None):
        self.fits.append((len(X), y))
        return super().fit(X)


def test_it_teaches_without_labels():
    taught = TextClassifier().fit([], [], unlabeled=TEXTS, teacher=Keywords(WORDS))
    assert taught.score(OTHERS, OTHER_LABELS) > 0.95
    assert taught.teacher_weights_.tolist() == [1.0]


def test_it_is_fitted_once_to_all_texts_without_labels():
    Counted.fits.clear()
    labelled = TEXTS[:20], LABELS[:20]
    taught = TextClassifier().fit(*labelled, unlabeled=TEXTS[20:], teacher=[Counted(WORDS)])
    assert Counted.fits == [(len(TEXTS), None)]
    assert taught.score(OTHERS, OTHER_LABELS) > 0.95
    assert taught.teacher_weights_[0] > 0


def test_labels_show_that_words_are_wrong_together():
    """Words that agree with one another, each in the texts of the other class."""
    wrong = dict(zip(WORDS, reversed(WORDS.values()), strict=True))
    teacher = Keywords(wrong).fit(TEXTS)  # no warning: without labels, nothing shows
    taught = TextClassifier().fit(TEXTS[:40], LABELS[:40], unlabeled=TEXTS[40:], teacher=teacher)
    assert taught.teacher_accuracies_[0, 2] < 0.2
    assert taught.teacher_weights_ == [0]
    assert taught.score(OTHERS, OTHER_LABELS) > 0.9


# What is refused


@pytest.mark.parametrize(
    ("message", "keywords"),
    [
        ("two classes", {"a": ["goal"]}),
        ("'a' must be a list of words, got 'goal'", {"a": "goal", "b": ["vote"]}),
        ("'a' must be a list of words", {"a": [1], "b": ["vote"]}),
        ("'' in keywords of 'b' has no token", {"a": ["goal"], "b": ["vote", ""]}),
        (r"No text contains keywords of \['b'\]", {"a": ["goal"], "b": ["unheard"]}),
        (r"'a' must be a list of words, got \[\]", {"a": [], "b": ["vote"]}),
        ("'GOAL' is in keywords of both 'a' and 'b'", {"a": ["goal"], "b": ["vote", "GOAL"]}),
        ("'keywords' parameter .* must be an instance of 'dict'", ["goal", "vote"]),
    ],
)
def test_refused(message, keywords):
    model = Keywords(keywords)
    refused(message, model.fit, TEXTS)
    assert vars(model).keys() == {"keywords", "tokenizer"}


def test_refused_texts(model):
    refused("got one text", model.fit, "goal")
    refused("not fitted", Keywords(WORDS).predict, TEXTS, error=NotFittedError)
    refused("not fitted", Keywords(WORDS).suggest, TEXTS, error=NotFittedError)
