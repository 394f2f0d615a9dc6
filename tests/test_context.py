"""ContextVectorizer: scores of positions, learned on leave-one-out evidence, and the gated bag."""

import base64
import math
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from helpers import refused, targets
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import slow_log_odds
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import TextClassifier, _matrices
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.text import (
    WORDS_AND_PUNCTUATION,
    ContextVectorizer,
    _context_vectorizer,
    _gate_positions,
    _gate_scores,
)
from sklearn_clsattn.text._gate_positions import (
    N_CELLS,
    PlacedTokens,
    frequent_words,
    token_positions,
)
from sklearn_clsattn.text._gate_scores import gather_evidence, loss_and_gradient
from sklearn_clsattn.text._ngrams import count_ngrams
from sklearn_clsattn.text._tokens import tokenize

WORDS = ["good", "bad", "fine", "dull", "so", "very", "not", ".", ",", "!", "a", "the", "film"]


def reviews(n_classes=2, n_documents=80, seed=0):
    """Return texts whose words depend on their class, some of them twice, and the class codes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=n_documents)
    codes[:n_classes] = np.arange(n_classes)
    texts = []
    for code in codes:
        chances = np.ones(len(WORDS))
        chances[code::n_classes] += 1.5
        words = rng.choice(WORDS, rng.integers(0, 14), p=chances / chances.sum())
        texts.append(" ".join(words))
    copies = rng.integers(n_documents, size=6)
    return texts + [texts[i] for i in copies], np.concatenate(
        [codes, rng.permutation(codes[copies])]
    )


def vectorizer(**parameters):
    defaults = {"min_df": 1, "character_min_df": 1, "dtype": np.float64}
    return ContextVectorizer(**defaults | parameters)


def evidence_of(texts, codes, weights=None, n_classes=2, limit=math.inf, least=5.0):
    """Return evidence of words and pairs, and the words that have a score as the word before."""
    weights = np.ones(len(texts)) if weights is None else np.asarray(weights, float)
    tokens = tokenize(texts, WORDS_AND_PUNCTUATION)
    ngrams = count_ngrams(tokens, (1, 2))
    known = frequent_words(tokens, weights, least)
    positions = token_positions(tokens, texts, {word: number for number, word in enumerate(known)})
    placed = PlacedTokens(tokens, ngrams.columns_at_tokens(), positions)
    given = targets(codes, n_classes)
    return gather_evidence(ngrams.counts, placed, given, weights, len(known), limit), known


# Slow and obvious.


def words_of(text):
    """Return the words and signs of a text of Latin letters."""
    return re.findall(WORDS_AND_PUNCTUATION, text)


def positions_of(text):
    """Yield cells from start and from end, and the word before each word or None."""
    found = list(re.finditer(WORDS_AND_PUNCTUATION, text))
    for j, match in enumerate(found):
        before = None
        if j and not re.search(r"[.!?;:,\n]", text[found[j - 1].start() : match.start()]):
            before = found[j - 1].group()
        yield (min(9, int(math.log2(j + 1))), min(9, int(math.log2(len(found) - j))), before)


def slow_loss(texts, codes, weights, n_classes, scores, known, scale, intercepts, penalties):
    """Return the loss as a loop over occurrences, with statistics made anew for every document."""
    ngrams = []
    for text in texts:
        words = words_of(text)
        pairs = [" ".join(pair) for pair in pairwise(words)]
        ngrams.append([words, pairs])
    bags = [Counter(words + pairs) for words, pairs in ngrams]
    bags = [{name: 1 + math.log(c) for name, c in bag.items()} for bag in bags]
    names = sorted(set().union(*bags))
    X = sparse.csr_array([[bag.get(name, 0.0) for name in names] for bag in bags])
    lengths = X.sum(axis=1)
    odds_of = slow_log_odds(X, codes, weights, n_classes)
    importance = 0.1 + np.sqrt((odds_of**2).mean(axis=0))
    # The mass of <cls> is that of the mean document of mean length.
    shares = weights @ (X.toarray() / np.maximum(lengths, 1e-300)[:, None]) / weights.sum()
    mass_of_cls = shares @ importance * (weights @ lengths) / weights.sum()
    loss = 0.5 * sum(p * s * s for p, s in zip(penalties, scores, strict=True))
    for i, (text, (words, pairs), bag) in enumerate(zip(texts, ngrams, bags, strict=True)):
        odds, counts = slow_log_odds(X, codes, weights, n_classes, i), Counter(words + pairs)
        mass, numerators = mass_of_cls, 0.0
        for j, (start, end, before) in enumerate(positions_of(text)):
            for order, one in enumerate((words, pairs)):
                if j < len(one):
                    score = scores[order * N_CELLS + start] + scores[(2 + order) * N_CELLS + end]
                    if before in known:
                        score += scores[4 * N_CELLS + known.index(before)]
                    factor, at = math.exp(score) * bag[one[j]] / counts[one[j]], names.index(one[j])
                    mass += factor * importance[at]
                    numerators = numerators + factor * 2 * mass_of_cls * odds[:, at]
        F = intercepts + scale * numerators / mass
        F = np.append(0.0, F) if n_classes == 2 else F
        loss += weights[i] * (np.log(np.exp(F).sum()) - F[codes[i]])
    return loss


def columns_of(model, unit):
    """Return a dictionary from column to weight of a word or an n-gram of words."""
    columns = Counter()
    if unit in model.vocabulary_:
        columns[model.vocabulary_[unit]] = 1.0
    if model.character_vocabulary_ and " " not in unit and re.search(r"\w", unit):
        analyze = CountVectorizer(analyzer="char_wb", ngram_range=model.characters).build_analyzer()
        for ngram in analyze(unit):
            if ngram in model.character_vocabulary_:
                column = len(model.vocabulary_) + model.character_vocabulary_[ngram]
                columns[column] += model.character_weight
    return columns


def slow_bag(model, text):
    """Return a dictionary from column to entry, by a loop over occurrences."""
    low, high = model.ngram_range
    words = words_of(text.lower())
    before_scores = dict(zip(model.previous_words_, model.previous_word_scores_, strict=True))
    found = []
    for j, (start, end, before) in enumerate(positions_of(text.lower())):
        for n in sorted({1, *range(low, high + 1)}):
            row = max(n - low, 0)
            score = model.start_scores_[row, start] + model.end_scores_[row, end]
            gate = math.exp((score + before_scores.get(before, 0.0)) / 2)
            unit = " ".join(words[j : j + n])
            if j + n <= len(words) and columns_of(model, unit):
                found.append((unit, gate))
    counts, sums = Counter(unit for unit, _ in found), Counter()
    for unit, gate in found:
        sums[unit] += (1 + math.log(counts[unit])) / counts[unit] * gate
    wanted = sum(1 + math.log(count) for count in counts.values())
    entries = Counter()
    for unit, value in sums.items():
        for column, weight in columns_of(model, unit).items():
            entries[column] += weight * value * wanted / sums.total()
    return entries


# Learning.


@settings(max_examples=6)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3]))
def test_loss_is_that_of_a_loop_and_the_gradient_that_of_differences(seed, n_classes):
    texts, codes = reviews(n_classes, 24, seed % 10)
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, len(texts)).astype(float)
    evidence, known = evidence_of(texts, codes, weights, n_classes)
    assert known
    scores = rng.normal(size=evidence.parts.shape[1])
    penalties = rng.uniform(0.5, 2.0, evidence.parts.shape[1])
    intercepts = rng.normal(size=len(evidence.intercepts))
    x = np.concatenate([scores, [0.7], intercepts])
    expected = slow_loss(
        texts, codes, weights, n_classes, scores, known, 0.7, intercepts, penalties
    )
    loss, gradient = loss_and_gradient(x, evidence, penalties)
    assert loss == pytest.approx(expected, rel=1e-9)
    direction = rng.normal(size=len(x))
    above, below = (
        loss_and_gradient(x + step * direction, evidence, penalties)[0] for step in (1e-5, -1e-5)
    )
    assert gradient @ direction == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-5)


def test_gates_learn_that_the_last_word_decides():
    def ordered_reviews(n_documents, seed):
        """Return texts and labels: of two opinions in a text, the last one decides."""
        rng = np.random.default_rng(seed)
        labels = np.array(["bad", "good"])[rng.integers(2, size=n_documents)]
        texts = []
        for label in labels:
            other = {"bad": "good", "good": "bad"}[label]
            words = [f"word{k}" for k in rng.integers(60, size=16)]
            words.append(f"{label}{rng.integers(20)}")
            if rng.random() < 0.6:
                words.insert(0, f"{other}{rng.integers(20)}")
            texts.append(" ".join(words))
        return texts, labels

    texts, labels = ordered_reviews(600, 0)
    new, truth = ordered_reviews(400, 1)

    def accuracy(model):
        pipeline = make_pipeline(model, LogisticRegression(C=10.0))
        return pipeline.fit(texts, labels).score(new, truth)

    words = {"ngram_range": (1, 1), "characters": None}
    bag = accuracy(ContextVectorizer(context=False, **words))
    gated = ContextVectorizer(**words)
    assert accuracy(gated) > bag + 0.2
    multipliers = np.exp(gated.end_scores_[0] / 2)
    assert multipliers[0] > 1.5 * multipliers[3]


# The bag.


@pytest.mark.parametrize("ngram_range", [(1, 2), (2, 3)])
@pytest.mark.parametrize("characters", [None, (1, 1), (2, 5)])
@pytest.mark.parametrize("bounds", [{"min_df": 3}, {"min_df": 0.1, "max_df": 0.6}, {"max_df": 40}])
def test_without_context_entries_are_damped_counts(ngram_range, characters, bounds):
    texts, _ = reviews()
    texts = [f"{text.upper()} don't! ünï" for text in texts]
    model = vectorizer(
        ngram_range=ngram_range,
        characters=characters,
        character_min_df=0.05,
        context=False,
        **bounds,
    )
    X = model.fit_transform(texts)
    counter = CountVectorizer(
        ngram_range=ngram_range, token_pattern=WORDS_AND_PUNCTUATION, **bounds
    )
    part = counter.fit_transform(texts).toarray()
    assert model.vocabulary_ == counter.vocabulary_
    names = list(counter.get_feature_names_out())
    damped = np.where(part > 0, 1 + np.log(np.maximum(part, 1)), 0)
    np.testing.assert_allclose(X[:, np.arange(len(names))].toarray(), damped, rtol=1e-12)
    names += ["char:  " + ngram for ngram in sorted(frequent(texts, characters, 0.05))]
    assert model.get_feature_names_out().tolist() == names
    assert X.has_canonical_format
    assert X.format == "csr"


def frequent(texts, characters, share):
    """Return the character n-grams of words in enough documents, but not too common."""
    if characters is None:
        return []
    analyze = CountVectorizer(analyzer="char_wb", ngram_range=characters).build_analyzer()
    documents, occurrences = Counter(), Counter()
    for text in texts:
        words = {word for word in words_of(text.lower()) if re.search(r"\w", word)}
        inside = [ngram for word in words for ngram in analyze(word)]
        documents.update(set(inside))
        occurrences.update(inside)
    low, high = share * len(texts), max(0.1 * len(texts), 200)
    return [ngram for ngram, n in documents.items() if n >= low and occurrences[ngram] <= high]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("ngram_range", [(1, 2), (2, 2), (1, 3)])
@pytest.mark.parametrize("characters", [None, (2, 4)])
def test_bag_is_that_of_a_loop_over_occurrences(n_classes, ngram_range, characters):
    texts, codes = reviews(n_classes)
    model = vectorizer(ngram_range=ngram_range, characters=characters)
    X = model.fit_transform(texts, np.array(["a", "b", "c"])[codes])
    assert np.abs(model.start_scores_).max() > 0.01
    without = clone(model).set_params(context=False)
    plain = without.fit_transform(texts)
    for text, row in zip(texts, X, strict=True):
        expected = slow_bag(model, text)
        assert sorted(expected) == row.indices.tolist()
        np.testing.assert_allclose(row.data, [expected[k] for k in row.indices], rtol=1e-11)
    assert abs(X - model.transform(texts)).max() == 0
    assert abs(X - plain).max() > 0.01


FITTED = {
    characters: vectorizer(characters=characters).fit(*reviews()) for characters in (None, (2, 4))
}


@given(
    st.sampled_from(list(FITTED)),
    st.lists(st.sampled_from([*WORDS, "unseen", "GOOD", "x-ray", "it's", "naïve", "\n"]))
    | st.lists(st.text("aB!' \n", max_size=4), max_size=8),
)
def test_occurrences_sum_to_the_bag(characters, words):
    model, text = FITTED[characters], " ".join(words)
    occurrences = model.occurrences(text)
    entries = Counter()
    for term, weight in zip(occurrences.terms, occurrences.weights, strict=True):
        for column, share in columns_of(model, term).items():
            entries[column] += weight * share
    row = np.zeros(len(model.get_feature_names_out()))
    row[list(entries)] = list(entries.values())
    np.testing.assert_allclose(row, model.transform([text]).toarray()[0], rtol=0, atol=1e-12)
    # Their spans are those of the text (of other spellings: test_normalization.py).
    expected = words_of(text.lower())
    assert [text[start:stop].lower() for start, stop in occurrences.words] == expected
    for at, term in enumerate(occurrences.terms):
        first = occurrences.first_words[at]
        last = first + term.count(" ")
        assert " ".join(expected[first : last + 1]) == term
        assert occurrences.starts[at] == occurrences.words[first, 0]
        assert occurrences.stops[at] == occurrences.words[last, 1]


# As an estimator.


@pytest.mark.parametrize("characters", [None, (2, 4)])
def test_a_text_of_known_words_alone_has_the_row_that_it_has_among_many(characters):
    """To the bit, though the columns in use are numbered anew for a few texts."""
    texts, codes = reviews(n_documents=400)
    names = [f"word{i}" for i in range(3000)]  # a vocabulary much larger than a text
    texts = [f"{text} {names[i]} {names[-i]} good good" for i, text in enumerate(texts)]
    texts.append(" ".join(names))
    model = vectorizer(characters=characters, dtype=np.float32).fit(texts, np.append(codes, 0))
    many = sparse.csr_array(model.transform(texts))
    for i in (0, 7, 399, 400):
        alone = sparse.csr_array(model.transform([texts[i]]))
        row = many[[i]]
        assert np.array_equal(alone.indices, row.indices)
        assert np.array_equal(alone.data, row.data)


@pytest.mark.parametrize("characters", [None, (2, 4)])
def test_texts_without_known_tokens_are_predicted_as_among_others(characters):
    texts, codes = reviews()
    model = TextClassifier(characters=characters).fit(texts, codes)
    nothing = ["", "§"]
    alone = model.predict_proba(nothing)
    np.testing.assert_array_equal(alone, model.predict_proba([*nothing, *texts])[:2])
    np.testing.assert_array_equal(alone[0], alone[1])


@pytest.mark.parametrize("characters", [None, (2, 4)])
def test_bags_do_not_depend_on_the_sizes_of_blocks(monkeypatch, characters):
    texts, codes = reviews()
    texts[3] = "a good film\n. not good\nso"
    at_once = vectorizer(characters=characters).fit(texts, codes)
    others = [f"film{at} {text} good{at % 9}" for at, text in enumerate(texts)]  # unknown words
    expected = sparse.csr_array(at_once.transform(others))
    for module in (_context_vectorizer, _gate_positions, _gate_scores):
        monkeypatch.setattr(module, "_BLOCK", 3)
    monkeypatch.setattr(_context_vectorizer, "_BATCH", 100)
    monkeypatch.setattr(_matrices, "_FEW_VALUES", 0)
    in_pieces = vectorizer(characters=characters).fit(texts, codes)
    assert np.array_equal(in_pieces.start_scores_, at_once.start_scores_)
    found = sparse.csr_array(in_pieces.transform(others))
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


def test_a_sign_has_no_characters_of_words():
    model = vectorizer(characters=(1, 1), context=False).fit(["don't stop"] * 5)
    assert "'" in model.character_vocabulary_
    assert model.transform(["'"]).nnz == len(model.occurrences("'").terms) == 0
    pairs = vectorizer(characters=(2, 2), context=False).fit(["ab"])
    assert pairs.transform(["az"]).nnz == 1  # " a"


def test_encoded_files_are_not_spelled():
    rng = np.random.default_rng(0)
    compound, hashtag = "Rechtsschutzversicherungsgesellschaften", "ThrowbackThursdayMemories"
    files = [base64.b32encode(rng.bytes(5_000)).decode() for _ in range(10)]
    texts = ["a good film", f"#{hashtag}", f"{compound} zahlen", "https://example.org/a_long_path"]
    model = vectorizer(context=False).fit(texts + files)
    assert set(files) <= {name.upper() for name in model.vocabulary_}
    without = vectorizer(context=False).fit(texts)
    assert model.character_vocabulary_ == without.character_vocabulary_
    ends = {f"{word[-4:].lower()} " for word in (compound, hashtag, "a_long_path")}
    assert ends <= set(model.character_vocabulary_)
    assert model.transform(["s" * 40]).nnz > model.transform(["s" * 41]).nnz == 0


@pytest.mark.parametrize("n_documents", [200, 201])
def test_character_ngrams_are_dropped_from_201_words_on(n_documents):
    model = vectorizer(characters=(1, 1), context=False).fit(["a"] * n_documents + ["b"])
    assert sorted(model.character_vocabulary_) == ["a", "b"][n_documents - 200 :]


def test_other_token_patterns():
    texts, codes = reviews()
    fast = vectorizer().fit_transform(texts, codes)
    slow = vectorizer(token_pattern=f"(?:{WORDS_AND_PUNCTUATION})").fit_transform(texts, codes)
    assert abs(slow - fast).max() < 1e-12
    letters = vectorizer(token_pattern="[a-z]*", lowercase=False)
    assert "Good" not in letters.fit(["Good film", "bad film"], [0, 1]).vocabulary_


def test_bags_are_of_single_precision_by_default():
    texts, codes = reviews()
    single, double = ContextVectorizer(min_df=1), ContextVectorizer(min_df=1, dtype=np.float64)
    X, exact = single.fit_transform(texts, codes), double.fit_transform(texts, codes)
    assert X.dtype == single.transform(["goody"]).dtype == single.transform([]).dtype == np.float32
    assert exact.dtype == np.float64
    assert abs(X - exact).max() < 1e-5


TWO = ["a", "b"]


def test_errors_say_what_to_do():
    for parameters, arguments, message in [
        ({}, ([b"a", "b"], [0, 1]), "position 0 is b'a', of type bytes"),
        ({}, (TWO, None), "y is None: expected labels"),
        ({}, (TWO, [0]), "inconsistent"),
        ({}, (TWO, [0, 1], [0.0, 0.0]), "non-zero|no documents"),
        ({}, (TWO, [0, 1], [1.0, -1.0]), "egative"),
        ({"min_df": 2}, (TWO, [0, 1]), "lower min_df"),
        ({"min_df": 0.9}, (TWO, [0, 1]), r"in 1.8 to 2 of the 2 documents"),
        ({"max_df": 1}, (["a", "a"], [0, 1]), "raise max_df"),
        ({"token_pattern": "(a)|b"}, (TWO, [0, 1]), "white space or have a capt"),
        ({"token_pattern": "a b"}, (["a b", "b"], [0, 1]), "not match white space"),
    ]:
        refused(message, vectorizer(**parameters).fit, *arguments)


@pytest.mark.parametrize("name", ["ngram_range", "characters"])
def test_ranges_are_pairs_of_lengths(name):
    for wrong, message in (
        (2, f"The {name!r} parameter of [A-Za-z]+ must be"),
        (True, f"The {name!r} parameter of [A-Za-z]+ must be"),
        ((2, 1), rf"{name} must be two integers \(min_n, max_n\) with 1 <= min_n <= max_n"),
        ((0, 2), f"{name} must be two integers"),
        ((1, 2, 3), f"{name} must be two integers"),
        (("a", "b"), f"{name} must be two integers"),
    ):
        refused(message, ContextVectorizer(**{name: wrong}).fit, TWO, [0, 1])
        refused(message, TextClassifier(**{name: wrong}).fit, TWO, [0, 1])


def test_a_pipeline_that_goes_on_learning():
    texts, y = load_requests(return_X_y=True)
    model = TextClassifier()
    for start in (0, 700, 1400):
        batch = slice(start, start + 700)
        model.partial_fit(texts[batch], y[batch], classes=[*np.unique(y), "other"])
    assert model.score(texts[2100:], y[2100:]) > 0.94
    assert "other" in model.classes_
    first = TextClassifier().fit(texts[:700], y[:700])
    assert model.vectorizer_.vocabulary_ == first.vectorizer_.vocabulary_
