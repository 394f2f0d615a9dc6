"""A model in JSON says in JavaScript what it says in Python, or is refused."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._json_model import javascript_pattern
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import AttentionNetworkClassifier
from sklearn_clsattn.saving import JSON_READER, to_json
from sklearn_clsattn.text import (
    WORDS_AND_PUNCTUATION,
    ContextVectorizer,
    TokenVectorizer,
    make_text_classifier,
)

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
READ = """
const fs = require("fs"), AttentionModel = require(process.argv[2]);
const model = new AttentionModel(JSON.parse(fs.readFileSync(process.argv[3])));
const texts = JSON.parse(fs.readFileSync(0));
process.stdout.write(JSON.stringify(texts.map((text) => model.explain(text))));
"""
ODD = [
    "",
    "  ",
    "Ünïcödé ÅNGSTRÖM, İstanbul ΣΑΣ ﬁne",
    "e\u0301te\u0301 cafe\u0301",
    "don't DON’T l'été rock'n'roll ''quoted''",
    "a.b.c!! ... ?; \n new line\x85next\u3000wide\ufeffmark\x1cseparator",
    "好 电影 很好 ½ ² Ⅷ ٣",
    "😀😀 good 😀 film 𝐛𝐨𝐥𝐝",
    "x_y __init__ a-b-c",
]


def documents(n_classes=2):
    """Return 200 texts that are generated, changed at random or odd, and labels of the first."""
    texts, labels = make_token_classification(
        260, n_classes=n_classes, as_text=True, random_state=0
    )
    rng = np.random.default_rng(0)
    marks = np.array([" ", ". ", ", ", "\n", " é", "'s ", "! "], dtype=object)
    mixed = [
        "".join(
            f"{word}{mark}" for word, mark in zip(words[:30], rng.choice(marks, 30), strict=False)
        )
        for words in map(str.split, texts)
    ]
    names = [f"class {label}" for label in labels]
    odd = [f"{one} {text}" for one, text in zip(ODD, mixed, strict=False)]
    return mixed[:60] + odd, names[:60] + names[: len(odd)], [*mixed[80:260], *odd, *ODD, *odd[:2]]


def read_by_javascript(model, texts, folder, **options):
    path = folder / "model.json"
    assert to_json(model, path, **options) == path.stat().st_size
    ran = subprocess.run(
        [NODE, "-e", READ, "-", JSON_READER, path],
        input=json.dumps(texts).encode(),
        capture_output=True,
        check=True,
    )
    return json.loads(ran.stdout)


MODELS = {
    "words": CountVectorizer(),
    "n-grams": TokenVectorizer(token_pattern=WORDS_AND_PUNCTUATION, ngram_range=(1, 3)),
    "binary": CountVectorizer(binary=True, stop_words=["the", "token1"], lowercase=False),
    "accents": CountVectorizer(strip_accents="unicode", token_pattern=r"(?u)\b\w+(?:'\w+)?\b"),
    "ascii": CountVectorizer(strip_accents="ascii", token_pattern=r"[^\d\s]+|\d"),
    "group": CountVectorizer(token_pattern=r"(\w+)(?=\S|$)".replace("|$", "|\\s")),
    "characters": TokenVectorizer(analyzer="char_wb", ngram_range=(1, 4), min_df=2),
    "context": ContextVectorizer(dtype=np.float64),
    "places alone": ContextVectorizer(characters=None, ngram_range=(2, 3), dtype=np.float64),
    "own pattern": ContextVectorizer(token_pattern=r"\w+", dtype=np.float64, characters=(3, 3)),
    "no context": ContextVectorizer(context=False, lowercase=False, dtype=np.float64),
}


@needs_node
@pytest.mark.parametrize(
    ("name", "n_classes"), [*((name, 2) for name in MODELS), ("words", 3), ("context", 3)]
)
def test_javascript_says_what_python_says(name, n_classes, tmp_path):
    texts, labels, held_out = documents(n_classes)
    assert len(held_out) == 200
    context = isinstance(MODELS[name], ContextVectorizer)
    classifier = ClsAttentionClassifier(
        C=1.0, sublinear_counts=not context, attend_cls=name != "binary"
    )
    model = make_pipeline(MODELS[name], classifier)
    model.fit(texts, labels)
    read = read_by_javascript(model, held_out, tmp_path)

    decision = model.decision_function(held_out).reshape(len(held_out), -1)
    assert np.abs(np.array([one["decision"] for one in read]) - decision).max() < 1e-9
    proba = model.predict_proba(held_out)
    assert np.abs(np.array([one["probabilities"] for one in read]) - proba).max() < 1e-9
    assert [one["predicted"] for one in read] == model.predict(held_out).tolist()
    names = model[0].get_feature_names_out()
    X = model[0].transform(held_out)
    contributions = model[1].contributions(X)
    for terms in [contributions] if n_classes == 2 else [contributions[0]]:
        terms = terms.tocsr()
        for i, one in list(enumerate(read))[::10]:
            row = {int(j): term for j, term in zip(*_row(terms, i), strict=True)}
            assert {token["column"] for token in one["tokens"]} == set(row)
            for token in one["tokens"]:
                assert abs(token["contributions"][0] - row[token["column"]]) < 1e-9
                assert token["name"] == names[token["column"]]
    for i in (0, 17, 190):
        shares = np.zeros(len(read[i]["tokens"]))
        np.add.at(
            shares,
            [one["token"] for one in read[i]["occurrences"]],
            [one["share"] for one in read[i]["occurrences"]],
        )
        np.testing.assert_allclose(shares, 1.0)


def _row(X, i):
    return X.indices[X.indptr[i] : X.indptr[i + 1]], X.data[X.indptr[i] : X.indptr[i + 1]]


@needs_node
def test_single_precision_is_the_only_difference(tmp_path):
    texts, labels, held_out = documents()
    model = make_text_classifier().fit(texts, labels)
    read = read_by_javascript(model, held_out, tmp_path)
    decision = model.decision_function(held_out)
    assert np.abs(np.array([one["decision"][0] for one in read]) - decision).max() < 1e-3
    places = model[0].occurrences(held_out[5])
    found = read[5]["occurrences"]
    ours = sorted(
        zip(*(of.tolist() for of in (places.columns, places.starts, places.stops)), strict=True)
    )
    columns = [token["column"] for token in read[5]["tokens"]]
    assert ours == sorted((columns[o["token"]], o["spans"][0][0], o["spans"][-1][1]) for o in found)


@needs_node
def test_a_model_is_cut_to_its_strongest_tokens(tmp_path):
    texts, labels, held_out = documents()
    search = GridSearchCV(make_text_classifier(), {"classifier__C": [1.0]}, cv=2)
    search.fit(texts, labels)
    whole = to_json(search, tmp_path / "whole.json")
    assert to_json(search, tmp_path / "part.json", max_tokens=50) < whole / 5
    read = read_by_javascript(search, held_out, tmp_path, max_tokens=50)
    assert max(len(one["tokens"]) for one in read) <= 50
    agree = [one["predicted"] for one in read] == search.predict(held_out)
    assert np.mean(agree) > 0.6  # as a model of 50 tokens would
    values = json.loads((tmp_path / "part.json").read_text())
    assert (len(values["tokens"]), values["n_tokens"]) == (
        50,
        len(search.best_estimator_[1].attention_scores_),
    )


@needs_node
@pytest.mark.parametrize(
    "pattern",
    [
        r"(?u)\b\w\w+\b",
        WORDS_AND_PUNCTUATION,
        r"[^\W_]+",
        r"[\w'-]+",
        r"[]a-z^-]+",
        r"\S{2,}?",
        r".\d|\D\B",
        r"#\w+|[\d.,]+\b",
        r"(?:ab|a\.b)+",
        r"a{2}|b{1,3}|}",
        r"ca{,2}b|a{,}c",
        r"\w+(?!')",
        r"[a\]\-\s]b?",
    ],
)
def test_patterns_find_the_same_in_javascript(pattern):
    texts = [*ODD, "a]b-c^d} aaa bbb{2} ab a.b a b", *documents()[2][:5]]
    try:
        carried = javascript_pattern(pattern)
    except ValueError:
        assert pattern == r"[^\W_]+"  # a complement within a class
        return
    script = """const [pattern, texts] = JSON.parse(require("fs").readFileSync(0));
    const find = (text) => [...text.matchAll(new RegExp(pattern, "gu"))].map((one) => one[0]);
    process.stdout.write(JSON.stringify(texts.map(find)));"""
    ran = subprocess.run(
        [NODE, "-e", script], input=json.dumps([carried, texts]).encode(), capture_output=True
    )
    assert json.loads(ran.stdout) == [re.findall(pattern, text) for text in texts]


@pytest.mark.parametrize(
    "pattern",
    [
        r"\w+$",
        r"(?i)a",
        r"(a)(b)",
        r"a*",
        r"(?P<a>b)",
        r"a*+b",
        r"a{2}+b",
        r"(?s:.)b",
        r"\Ab",
        r"\x41",
    ],
)
def test_patterns_that_javascript_has_not_are_refused(pattern):
    with pytest.raises(ValueError, match="token_pattern"):
        javascript_pattern(pattern)


@pytest.mark.parametrize(
    ("steps", "error", "message"),
    [
        ([CountVectorizer(tokenizer=str.split, token_pattern=None)], ValueError, "tokenizer"),
        ([CountVectorizer(preprocessor=str.lower)], ValueError, "preprocessor"),
        ([CountVectorizer(analyzer="char")], ValueError, "analyzer='char'"),
        ([CountVectorizer(strip_accents=str.lower)], ValueError, "strip_accents"),
        ([TfidfVectorizer()], ValueError, "TF-IDF"),
        ([CountVectorizer(), "passthrough", _ := None], ValueError, None),
    ],
)
def test_what_json_cannot_carry_over_is_refused(steps, error, message, tmp_path):
    model = make_pipeline(*[step for step in steps if step], ClsAttentionClassifier())
    model.fit(["good fun", "bad film"], [0, 1])
    if message is None:
        assert to_json(model, tmp_path / "model.json") > 0
        return
    with pytest.raises(error, match=f"JSON cannot carry over a vectorizer's {message}"):
        to_json(model, tmp_path / "model.json")


@pytest.mark.filterwarnings("ignore:Adam stopped")
def test_other_models_are_refused(tmp_path):
    path = tmp_path / "model.json"
    texts, labels = ["good fun", "bad film"] * 5, [0, 1] * 5
    with pytest.raises(TypeError, match="expected a fitted Pipeline"):
        to_json(ClsAttentionClassifier(), path)
    with pytest.raises(ValueError, match="with nothing between them"):
        to_json(make_pipeline(ClsAttentionClassifier()), path)
    with pytest.raises(NotFittedError):
        to_json(make_pipeline(CountVectorizer(), ClsAttentionClassifier()), path)
    two_layers = AttentionNetworkClassifier(embedding_dim=8, n_layers=2, max_iter=2, random_state=0)
    model = make_pipeline(CountVectorizer(), two_layers).fit(texts, labels)
    with pytest.raises(ValueError, match="one layer of attention"):
        to_json(model, path)
    with pytest.raises(ValueError, match="max_tokens"):
        to_json(make_pipeline(CountVectorizer(), ClsAttentionClassifier()), path, max_tokens=0)
    assert not path.exists()


@needs_node
@pytest.mark.parametrize(
    ("classes", "kind"),
    [([7, 2**53 - 1], int), ([7, 2**53 + 1], str), ([-(2**53) - 1, 7], str)],
)
def test_labels_that_javascript_would_round_are_strings(classes, kind, tmp_path):
    texts, labels = ["good fun", "bad film"] * 5, np.array(classes * 5)
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifier(C=1.0)).fit(texts, labels)
    read = read_by_javascript(model, texts, tmp_path)
    assert [one["predicted"] for one in read] == list(map(kind, labels.tolist()))
