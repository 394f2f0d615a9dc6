"""Trusted words: evidence that people state, beside that of the labels."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import refused
from numpy.testing import assert_allclose, assert_array_equal
from reference import slow_log_odds
from sklearn.base import clone

from sklearn_clsattn import TextClassifier
from sklearn_clsattn._bags import Bags, TrustedTokens
from sklearn_clsattn._targets import Targets
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain, label_issues
from sklearn_clsattn.saving import load_model, save_model
from sklearn_clsattn.text import WordVectors
from sklearn_clsattn.training.documents import Documents
from sklearn_clsattn.training.prior_mean import prior_mean
from sklearn_clsattn.training.statistics import scaling_of

TEXTS, TOPICS = load_requests(return_X_y=True)
TOPICS = np.array(TOPICS)
WORDS = {
    "billing": ["invoice", "charged", "payment", "refund"],
    "delivery": ["delivered", "parcel", "courier", "tracking"],
    "product": ["manual", "clean", "made of"],
    "returns": ["return", "send it back", "exchange"],
}
PHRASES = {"ngram_range": (1, 3), "characters": None}
KINDS = ["two", "several classes", "several labels"]


def drawn(kind, seed=0):
    """Return documents of some tokens, of which some are trusted, and the classes' problems."""
    rng = np.random.default_rng(seed)
    dense = rng.poisson(0.7, (40, 9)).astype(float)
    dense[5] = 0
    dense[6] = dense[7]
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], 40)
    if kind == "several labels":
        Y = rng.integers(0, 2, (40, 3))
        targets = Targets(np.arange(3), Y.astype(float), multilabel=True)
        problems = [(labels, 2) for labels in Y.T]
    else:
        n_classes = 2 if kind == "two" else 3
        codes = rng.integers(n_classes, size=40)
        targets = Targets(np.arange(n_classes), codes)
        problems = [(codes, n_classes)]
    numbers = np.array([0, 1, -1, -1, 1, -1, -1, -1, 0])
    factors = np.where(numbers < 0, 0.3, 1.0)
    bags = Bags(sp.csr_array(dense), trusted=TrustedTokens([0, 1], numbers, factors, None))
    return Documents(bags, targets, weights), problems


def evidence_of(documents):
    """Return documents' evidence and its scaling."""
    scaling = scaling_of(
        documents.statistics, token_scaling="log_odds", attend_cls=True, trust=documents.trust
    )
    loss = documents.attention_loss(np.float64, "cpu", scaling.cls_weight)
    return documents.evidence(loss, scaling), scaling, loss


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grouped", [False, True])
def test_evidence_is_that_of_the_labels_times_factors_and_what_is_stated(kind, grouped):
    documents, problems = drawn(kind)
    if grouped:
        groups = np.arange(40) // 3
        documents = Documents(
            documents.bags, documents.targets, documents.weights, given_groups=groups
        )
    evidence, scaling, _ = evidence_of(documents)
    dense = documents.bags.units.toarray()
    factors = documents.bags.trusted.factors
    _, held = np.unique(documents.held_together, return_inverse=True)
    for i in range(40):
        left_out = held == held[i]
        if not grouped and not documents.weights[left_out].any():
            continue
        odds = [
            slow_log_odds(sp.csr_array(dense), codes, documents.weights, n, left_out=left_out)
            for codes, n in problems
        ]
        expected = factors * np.vstack(odds) @ np.diag(dense[i])
        found = evidence.numerators[0, i].numpy() / scaling.unit
        assert_allclose(found, expected.sum(axis=1), rtol=1e-8, atol=1e-8)
    stated = {"two": [-1, 1, 1, -1], "several classes": [[1, 0, 0], [0, 1, 0]]}.get(kind)
    if kind == "two":
        expected = dense[:, [0, 1, 4, 8]] @ np.array(stated)[:, None]
    else:
        expected = dense[:, [0, 8]].sum(axis=1), dense[:, [1, 4]].sum(axis=1), np.zeros(40)
        expected = np.column_stack(expected)
    assert_allclose(evidence.numerators[1].numpy() / scaling.unit, expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_by_the_multiples_are_those_of_differences(kind):
    evidence, _, _ = evidence_of(drawn(kind)[0])
    rng, h = np.random.default_rng(0), 1e-5
    x = rng.normal(size=2 + evidence.outputs.shape[2])
    _, gradient, hessian = evidence.sums(x)
    for k in range(len(x)):
        step = h * np.eye(len(x))[k]
        above, below = evidence.sums(x + step), evidence.sums(x - step)
        assert_allclose(gradient[k], (above[0] - below[0]) / (2 * h), rtol=1e-5, atol=1e-6)
        assert_allclose(hessian[k], (above[1] - below[1]) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_multiples_are_the_best_that_are_not_negative(kind):
    """No multiple and intercepts near the best ones have a smaller penalised loss."""
    for seed in range(5):
        documents, _ = drawn(kind, seed)
        _, scaling, loss = evidence_of(documents)
        mean = prior_mean(documents, loss, scaling, documents.statistics)
        evidence, *_ = evidence_of(documents)
        start = np.array([0.0, 1.0, *documents.statistics.class_log_odds])
        information = evidence.sums(start)[2].diagonal()[:2] / documents.weights.sum()
        precisions = np.array([0.3, 10.0]) * information

        def penalised(x, evidence=evidence, precisions=precisions):
            distances = x[:2] - [0.0, 1.0]
            return evidence.sums(x)[0] + 0.5 * precisions @ distances**2

        assert (mean.multiples >= 0).all()
        best = penalised(np.array([*mean.multiples, *best_intercepts(evidence, mean.multiples)]))
        for change in ([0.01, 0], [-0.01, 0], [0, 0.01], [0, -0.01]):
            multiples = (mean.multiples + change).clip(0)
            other = penalised(np.array([*multiples, *best_intercepts(evidence, multiples)]))
            assert other >= best - 1e-9


def best_intercepts(evidence, multiples):
    """Return the best intercepts for multiples, by Newton's steps."""
    intercepts = np.zeros(evidence.outputs.shape[2])
    for _ in range(8):
        _, gradient, hessian = evidence.sums(np.array([*multiples, *intercepts]))
        intercepts -= np.linalg.lstsq(hessian[2:, 2:], gradient[2:], rcond=1e-10)[0]
    return intercepts


def test_words_teach_what_few_labels_do_not():
    few = TextClassifier(**PHRASES).fit(TEXTS[:12], TOPICS[:12])
    known = TextClassifier(trusted_words=WORDS, **PHRASES).fit(TEXTS[:12], TOPICS[:12])
    right = [model.score(TEXTS[500:1500], TOPICS[500:1500]) for model in (few, known)]
    assert right[1] > right[0] + 0.08
    assert known.predict(["the courier", "made of", "exchange"]).tolist() == [
        "delivery",
        "product",
        "returns",
    ]


def test_words_that_are_wrong_cost_little():
    """Each class is given the words of another one."""
    labels = list(WORDS)
    wrong = {
        label: WORDS[other] for label, other in zip(labels, labels[1:] + labels[:1], strict=True)
    }
    models = [
        TextClassifier(trusted_words=words, **PHRASES).fit(TEXTS[:400], TOPICS[:400])
        for words in (None, wrong)
    ]
    right = [model.score(TEXTS[1000:2000], TOPICS[1000:2000]) for model in models]
    assert right[1] > right[0] - 0.02
    assert assert_not_against(models[1], wrong)


def assert_not_against(model, words):
    """Require words to speak for their class as for others; return how many do no more.

    What an explanation shows of a word is the word with its letters.
    """
    every_word = [(label, name) for label, names in words.items() for name in names]
    n_held = 0
    for label, name in every_word:
        if model.multilabel_:
            row = explain(model, [name], target=label)
            assert row.targets.tolist() == [label]
        else:
            row = explain(model, [name])
        added = row.contributions[row.tokens.tolist().index(name)]
        if len(added) > 1:
            k = row.targets.tolist().index(label)
            lead = added[k] - np.delete(added, k).max()
        else:
            lead = added[0] if row.targets.tolist() == [label] else -added[0]
        assert lead > -1e-9
        n_held += abs(lead) < 1e-9
    return n_held


@pytest.mark.parametrize("more", ["nothing", "vectors", "labels", "two", "copies", "teacher"])
@pytest.mark.parametrize("characters", [None, (2, 5)])
def test_a_trusted_word_never_speaks_against_its_class(more, characters):
    texts, y, options = TEXTS[:200], TOPICS[:200], {}
    wrong = {"billing": ["courier", "delivered"], "delivery": ["invoice", "charged", "parcel"]}
    if more == "vectors":
        options = {"unlabeled": TEXTS[300:500]}
    if more == "teacher":
        teacher = TextClassifier(C=1.0, characters=None).fit(TEXTS[900:1100], TOPICS[900:1100])
        options = {"unlabeled": TEXTS[300:400], "teacher": teacher}
    if more == "copies":
        options = {"sample_weight": np.arange(200) % 3}
    if more == "labels":
        topics = sorted(set(TOPICS))
        y = pd.DataFrame({topic: (TOPICS[:200] == topic).astype(int) for topic in topics})
        y["billing"] |= TOPICS[:200] == "returns"
    if more == "two":
        some = np.flatnonzero(np.isin(y, ["billing", "delivery"]))
        texts, y = [texts[row] for row in some], y[some]
    model = TextClassifier(C=10.0, characters=characters, trusted_words=wrong)
    model.fit(texts, y, **options)
    assert assert_not_against(model, wrong) > 0


def test_words_without_classes_make_others_count_less():
    known = ["happy", "thank", "thanks", "angry", "disappointed", "great", "complaint"]
    texts, moods = load_requests(target="mood", return_X_y=True)
    plain = TextClassifier(C=1.0, characters=None).fit(texts[:300], moods[:300])
    model = clone(plain).set_params(trusted_words=known).fit(texts[:300], moods[:300])
    occurrences = [model.vectorizer_.occurrences(text) for text in texts[:300]]
    n_known = sum(one.weights[np.isin(one.terms, known)].sum() for one in occurrences) / 300
    factors = model.vectorizer_._fit_bags(texts[:300], moods[:300]).trusted.factors
    assert_allclose(np.unique(factors), [3 / (3 + n_known), 1], rtol=1e-6)
    shares = []
    for one in (plain, model):
        is_known = np.isin(one.get_feature_names_out(), known)
        sizes = np.abs(one.token_values_ * np.exp(one.attention_scores_))
        shares.append(sizes[is_known].sum() / sizes.sum())
    assert shares[1] > shares[0]


def test_letters_are_no_trusted_words():
    model = TextClassifier(C=1.0, trusted_words={"billing": ["the", "in"]})
    model.fit(TEXTS[:100], TOPICS[:100])
    factors = model.vectorizer_._fit_bags(TEXTS[:100], TOPICS[:100]).trusted.factors
    names = model.get_feature_names_out().tolist()
    assert factors[names.index("in the")] == 1
    others = {name for name, factor in zip(names, factors, strict=True) if factor < 1}
    assert others >= {name for name in names if name.startswith("char:")}


def test_words_are_known_where_texts_share_nothing():
    words = {"billing": ["invoice"], "delivery": ["parcel"]}
    model = TextClassifier(characters=None, trusted_words=words)
    model.fit(["please cancel subscription", "where my order"], ["billing", "delivery"])
    assert model.predict(["invoice", "parcel"]).tolist() == ["billing", "delivery"]


def test_a_teacher_may_know_more_classes():
    """The fit without it, when it is not believed, has no text of a class with trusted words."""
    known = np.flatnonzero(TOPICS[:100] != "returns")
    guesses = np.random.default_rng(0).dirichlet(np.ones(4), 200)
    teacher = pd.DataFrame(guesses, columns=sorted(set(TOPICS)))
    model = TextClassifier(C=1.0, trusted_words=WORDS, **PHRASES)
    model.fit(
        [TEXTS[row] for row in known], TOPICS[known], unlabeled=TEXTS[300:500], teacher=teacher
    )
    assert "billing" in model.classes_


@pytest.mark.parametrize("words", [WORDS, [name for names in WORDS.values() for name in names]])
def test_issues_of_labels_are_near_those_of_fits_without_each_text(words):
    texts, topics = TEXTS[:60], TOPICS[:60]
    model = TextClassifier(C=1.0, trusted_words=words, **PHRASES).fit(texts, topics)
    issues = label_issues(model, texts, topics).set_index("document")["margin"]
    rows = range(0, 60, 6)
    margins = []
    for row in rows:
        others = np.delete(np.arange(60), row)
        one = clone(model).fit([texts[other] for other in others], topics[others])
        decisions = one.decision_function([texts[row]])[0]
        k = one.classes_.tolist().index(topics[row])
        margins.append(decisions[k] - np.delete(decisions, k).max())
    assert np.abs(issues[list(rows)] - margins).mean() < 1


def test_weights_are_copies_and_no_words_are_none():
    weights = np.tile([0, 1, 2], 40)
    copies = np.repeat(np.arange(120), weights)
    model = TextClassifier(C=1.0, trusted_words=WORDS, tol=1e-8, **PHRASES)
    weighted = clone(model).fit(TEXTS[:120], TOPICS[:120], sample_weight=weights)
    copied = clone(model).set_params(min_df=1).fit([TEXTS[i] for i in copies], TOPICS[copies])
    assert_allclose(
        weighted.predict_proba(TEXTS[200:260]), copied.predict_proba(TEXTS[200:260]), atol=1e-3
    )
    plain = TextClassifier(C=1.0, characters=None).fit(TEXTS[:120], TOPICS[:120])
    for nothing in ({}, []):
        other = clone(plain).set_params(trusted_words=nothing).fit(TEXTS[:120], TOPICS[:120])
        assert_array_equal(other.token_values_, plain.token_values_)


def test_a_model_with_trusted_words_is_saved_and_explained(tmp_path):
    model = TextClassifier(C=1.0, trusted_words=WORDS, **PHRASES).fit(TEXTS[:90], TOPICS[:90])
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops")
    assert again.trusted_words == WORDS
    assert_array_equal(again.predict_proba(TEXTS[:9]), model.predict_proba(TEXTS[:9]))
    explanation = explain(model, TEXTS[200:230])
    decisions = model.decision_function(TEXTS[200:230])
    best = np.sort(decisions, axis=1)[:, -2:]
    assert len(explanation) == 30
    assert (best[:, 1] >= best[:, 0]).all()


@pytest.mark.parametrize(
    ("match", "words", "options"),
    [
        ("'New York' in trusted_words has 2 tokens", {"a": ["New York"]}, {"ngram_range": (1, 1)}),
        ("'' in trusted_words of 'a' has no token", {"a": [""]}, {}),
        ("'GOAL' is in trusted_words of both 'a' and 'b'", {"a": ["goal"], "b": ["GOAL"]}, {}),
        (r"are of \['sports'\], but the classes are \['a', 'b'\]", {"sports": ["goal"]}, {}),
        ("'goal' is in trusted_words, and in stop_words", ["goal"], {"stop_words": ["goal"]}),
        ("'New York' is in .* stop_words, or a word of it", ["New York"], {"stop_words": ["new"]}),
        ("of 'a' must be a list of words, got 'goal'", {"a": "goal"}, {}),
        ("of 'a' must be a list of words, got 3", {"a": 3}, {}),
        (r"trusted_words must be a list of words, got \['goal', 3\]", ["goal", 3], {}),
    ],
)
def test_what_is_refused(match, words, options):
    model = TextClassifier(trusted_words=words, **options)
    refused(match, model.fit, ["a goal", "a law", "goals", "laws"], ["a", "b", "a", "b"])


def test_batches_and_other_types_are_refused():
    batch = ["a goal", "a law"], ["a", "b"]
    for known in ({"trusted_words": {"a": ["goal"]}}, {"word_vectors": WordVectors()}):
        refused("need all texts at once", TextClassifier(**known).partial_fit, *batch)
    refused("trusted_words' parameter", TextClassifier(trusted_words="goal").fit, *batch)
