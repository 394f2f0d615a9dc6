"""The JavaScript of pages says what Python says: of characters, texts, models and explanations."""

import csv
import gzip
import io
import json
import os
import re
import shutil
import struct
import subprocess
import unicodedata
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from web_answers import HERE, TOOLS, WEB, as_in_javascript, ask, needs, needs_node, save

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.inspection import formatting as python_formatting
from sklearn_clsattn.inspection.view import views
from sklearn_clsattn.portable._model_file import BLOCK, sorted_terms
from sklearn_clsattn.text import WordVectors
from sklearn_clsattn.text._normalization import aligned, normalized
from sklearn_clsattn.text._tokens import WORDS_AND_PUNCTUATION, is_spelled, tokenize

pytestmark = needs_node

REQUESTS, TOPICS = load_requests(return_X_y=True)
REQUESTS = list(REQUESTS)
_, MOODS = load_requests(target="mood", return_X_y=True)
TOPICS = np.array(TOPICS)
LABELS = np.column_stack([TOPICS == "billing", np.array(MOODS) == "upset"]).astype(int)
ODD = [
    "",
    " ",
    "?",
    "zzz",
    "The the THE the",
    "first line\nsecond line\r\nthird",
    "4½ x² Ⅷ ﬁne ＦＵＬＬ width",
    "don’t `quote` it’s rock`n`roll",
    "Straße İstanbul ΣΑΣ ǅ",
    "手机很好 ありがとう ไม่ดี ကောင်း ខ្មែរ 한국어 한국어",
    "👩‍👩‍👧 👍🏽 🇩🇪🇫🇷 1️⃣ ❤️ #️⃣",
    "soft\u00adhyphen zero\u200bwidth \u202eturned",
    "e\u0301 é a\u0323\u0301 a\u0301\u0323",
    "क्षि दे॒वः தமிழ் क्‍ष",
    "lone \ud800 half \udc00",
    "good… 1½ 2 fun…",
    "_ __init__ a_b",
    "A" * 41 + " " + "b" * 39,
    "!!! ... ?!",
    "word " * 3_000,
]
MODELS = {
    "several classes": ({}, TOPICS),
    "two": ({}, MOODS),
    "several labels": ({}, LABELS),
    "numbers": ({"characters": None}, (TOPICS == "billing").astype(int)),
    "truths": ({"context": False}, TOPICS == "billing"),
    "words alone": ({"ngram_range": (1, 1), "lowercase": False}, TOPICS),
    "pairs alone": ({"ngram_range": (2, 2), "class_weight": "balanced"}, TOPICS),
    "pairs and no characters": ({"ngram_range": (2, 3), "characters": None}, TOPICS),
    "short characters": ({"characters": (4, 7), "attention_C": 1.0}, TOPICS),
    "stop words": ({"stop_words": ["the", "not", "?", ".", "2", "straße"]}, TOPICS),
    "level words": ({"characters": None, "context": False}, TOPICS),
    "trusted words": ({"trusted_words": {"billing": ["pay up", "zzz"]}}, TOPICS),
    "word vectors": ({}, TOPICS),
}


@cache
def fitted(name):
    parameters, labels = MODELS[name]
    rows = slice(0, 200)
    texts = REQUESTS[rows]
    if name == "several classes":  # words of many scripts
        texts = [*texts[:-2], " ".join(ODD[6:14]), " ".join(ODD[9:13])]
    more = {"unlabeled": REQUESTS[400:600]} if name == "word vectors" else {}
    return TextClassifier(**parameters).fit(texts, labels[rows], **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save(fitted("two"), folder, "two")
    return folder


def ask_about(folder, name, *questions):
    """Return the answers to questions about one of the models, which is saved if it is not yet."""
    if not (folder / f"{name}.clsattn").exists():
        save(fitted(name), folder, name)
    return ask(folder, [{"model": name, **question} for question in questions])


def by_class(decisions):
    return decisions[:, None] if decisions.ndim == 1 else decisions


# Texts and characters.


def read_in_python(text, lowercase):
    form = aligned(text, lowercase=lowercase)
    tokens = tokenize([form.text], WORDS_AND_PUNCTUATION, scripts=True)
    words = [tokens.words[number] for number in tokens.ids.tolist()]
    return {
        "normalized": normalized(text, lowercase=lowercase),
        "aligned": form.text,
        "words": words,
        "spans": form.in_original(text, tokens.spans).tolist(),
        "spelled": [is_spelled(word) for word in words],
    }


def check_reading(folder, texts, lowercase):
    question = {"ask": "read", "model": "two", "texts": texts, "lowercase": lowercase}
    (answers,) = ask(folder, [question])
    for text, answer in zip(texts, answers, strict=True):
        expected = read_in_python(text, lowercase)
        for name, value in expected.items():
            assert answer[name] == value, (name, ascii(text[:200]))


FORMS = [
    "{}", "a{}", "{}b", "a{}b1", "1{}2", "{}\u0301\u0323", "{0}\u200d{0}", "😀\u200d{}\ufe0f",
    "क्{}", "ក្{}\u0e33", "i\u0307{}I\u0307", "\u1100{}\u11a8", "🇦{}", "x'{}’y`z", "{}\u20e3",
]  # fmt: skip


def every_character_in_forms(step):
    characters = [chr(code) for code in range(0x20, 0xE0200) if not 0xD800 <= code < 0xE000]
    seen = [one for one in characters if unicodedata.category(one) not in {"Co", "Cn"}]
    beyond = [one for one in characters if unicodedata.category(one) in {"Co", "Cn"}][::97]
    for form in FORMS:
        of_form = [*seen[::step], *beyond[::step]]
        for start in range(0, len(of_form), 400):
            yield "\n".join(form.format(one) for one in of_form[start : start + 400])


@pytest.mark.parametrize("lowercase", [True, False])
def test_some_characters_of_unicode_are_read_as_in_python(folder, lowercase):
    check_reading(folder, list(every_character_in_forms(211)), lowercase)


@pytest.mark.long
def test_every_character_of_unicode_is_read_as_in_python(folder):
    check_reading(folder, list(every_character_in_forms(1)), lowercase=True)


def test_random_texts_are_read_as_in_python(folder):
    rng = np.random.default_rng(0)
    characters = [chr(code) for code in range(0x20, 0x32000) if not 0xD800 <= code < 0xE000]
    marks = [one for one in characters if unicodedata.category(one)[0] == "M"]
    odd = list("aI1½²'’`-_.\n\t \r\u2028\u200d\ufe0f\u20e3\u00ad\U0001f1e6\U0001f3fb😀❤")
    odd += list("क्ក្\u1039\u1000\u0e33\uac00\u1100\u1161\u11a8\ud800\udc00")
    pools = [characters, marks, odd, odd, list("abc ")]
    texts = []
    for length in rng.integers(0, 14, 800).tolist():
        chosen = [pools[number] for number in rng.integers(0, len(pools), length).tolist()]
        text = "".join(pool[int(rng.integers(len(pool)))] for pool in chosen)
        texts.append(as_in_javascript(text))
    check_reading(folder, texts, lowercase=True)


# Terms.


@given(st.sets(st.text(st.characters(exclude_characters="\n"), min_size=1, max_size=6)))
def test_terms_can_be_read_back_from_what_they_do_not_share(terms):
    stored = sorted_terms({term: number for number, term in enumerate(terms)})
    rest = stored.rest.split("\n") if terms else []
    before = b""
    read = []
    for line, shared in zip(rest, stored.shared.tolist(), strict=True):
        before = before[: 2 * shared] + line.encode("utf-16-be", "surrogatepass")
        read.append(before.decode("utf-16-be", "surrogatepass"))
    assert read == sorted(terms, key=lambda term: term.encode("utf-16-be", "surrogatepass"))
    assert not stored.shared[::BLOCK].any()
    assert [list(terms)[number] for number in stored.tokens.tolist()] == read


# Predictions and explanations.


@pytest.mark.parametrize("name", MODELS)
def test_predictions_and_explanations_are_those_of_python(folder, name):
    model = fitted(name)
    texts = [*REQUESTS[400:410], *ODD]
    predictions, explanations = ask_about(
        folder, name, {"ask": "predict", "texts": texts}, {"ask": "explain", "texts": texts[:-1]}
    )
    same_predictions(predictions, model, texts)
    same_explanations(explanations, model, texts[:-1])


def same_predictions(answers, model, texts):
    probabilities = [answer["probabilities"] for answer in answers]
    decisions = [answer["decisions"] for answer in answers]
    assert_allclose(probabilities, model.predict_proba(texts), rtol=0, atol=1e-6)
    assert_allclose(decisions, by_class(model.decision_function(texts)), rtol=2e-6, atol=2e-6)
    predicted = model.predict(texts).tolist()
    if model.multilabel_:
        predicted = [model.classes_[np.flatnonzero(row)].tolist() for row in predicted]
    assert [answer["label"] for answer in answers] == predicted


def same_explanations(answers, model, texts):
    targets = model.classes_.tolist() if model.multilabel_ else [None]
    for number, target in enumerate(targets):
        for text, answer, one in zip(
            texts, answers, explain(model, texts, target=target), strict=True
        ):
            tokens = {token["name"]: token for token in answer["tokens"]}
            assert sorted(tokens) == sorted(one.tokens.tolist()), text
            for at, token in enumerate(one.tokens.tolist()):
                found = tokens[token]
                columns = slice(None) if target is None else [number]
                added = np.array(found["contributions"])[columns]
                assert_allclose(added, one.contributions[at], rtol=0, atol=2e-6)
                assert_allclose(found["attention"], one.attention[at], rtol=0, atol=1e-6)
                assert_allclose(found["weight"], one.weights[at], rtol=1e-6)
            assert_allclose(answer["clsAttention"], one.cls_attention[0], rtol=0, atol=1e-6)
            located = one.located_text
            assert answer["words"] == [list(span) for span in located.words]
            assert answer["ignored"] == [list(span) for span in located.ignored]


def same_deletion(answer, found):
    assert answer["found"] == found.found
    assert answer["editedText"] == found.edited_text
    assert answer["words"] == list(found.words)
    assert answer["atLeast"] == found.at_least
    assert answer["spans"] == [list(span) for span in found.spans]
    assert_allclose(answer["probability"], found.probability, atol=1e-6)


@pytest.mark.parametrize("name", ["several classes", "two", "stop words", "level words"])
def test_the_fewest_words_are_those_of_python(folder, name):
    texts = [*REQUESTS[400:408], *ODD[:-1], " ".join(REQUESTS[450:458])]
    (answers,) = ask_about(folder, name, {"ask": "fewestWords", "texts": texts})
    sets = explain(fitted(name), texts).counterfactual(time_limit=60.0)
    for answer, found in zip(answers, sets, strict=True):
        same_deletion(answer, found)


def test_the_fewest_words_of_one_of_several_labels(folder):
    texts = REQUESTS[400:408]
    name = "several labels"
    (answers,) = ask_about(folder, name, {"ask": "fewestWords", "texts": texts, "label": 1})
    model = fitted(name)
    sets = explain(model, texts, target=model.classes_[1]).counterfactual(time_limit=60.0)
    for answer, found in zip(answers, sets, strict=True):
        same_deletion(answer, found)


@pytest.mark.parametrize("name", ["several classes", "stop words", "numbers", "several labels"])
def test_a_view_has_the_sentences_and_numbers_of_python(folder, name):
    model = fitted(name)
    target = model.classes_[0] if model.multilabel_ else None
    texts = [*REQUESTS[400:408], *ODD[1:15]]
    question = {"ask": "view", "texts": texts, "target": 0 if model.multilabel_ else -1}
    (answers,) = ask_about(folder, name, question)
    explanation = explain(model, texts, target=target)
    for answer, view in zip(answers, views(explanation, None, 8, with_deletion=True), strict=True):
        assert_allclose([answer["start"], answer["end"]], [view.start, view.end], atol=2e-6)
        assert answer["decisionName"] == view.decision_name
        for side, expected in zip(answer["sides"], view.sides, strict=True):
            assert f"for {side['label']}" == expected.label
            assert_allclose(side["total"], expected.total, atol=2e-5)
            names = [token["name"] for token in side["tokens"]]
            assert names == [token.name for token in expected.tokens]
            assert side["more"] == expected.more
        for reason, expected in zip(answer["reasons"], view.reasons, strict=True):
            assert [token["name"] for token in reason["tokens"]] == [
                token.name for token in expected.tokens
            ]
            assert (reason["verb"], reason["label"]) == (expected.verb, expected.label)
        assert_allclose(answer["without"], [token.without for token in view.listed], atol=5e-6)
        for segment, expected in zip(answer["segments"], view.segments, strict=True):
            assert segment["text"] == expected.text
            assert segment["shade"] == view.shade(expected.contribution)
            assert segment["isIgnored"] == expected.is_ignored
        shown, more = view.classes() if not model.multilabel_ and view.j >= 0 else ([], 0)
        if shown:
            labels = list(map(python_formatting.label_text, model.classes_.tolist()))
            named = [labels[number] for number in answer["classes"]["shown"]]
            assert (named, answer["classes"]["nMore"]) == ([one.label for one in shown], more)
        if view.tokens:
            assert answer["statement"] == view.deletion


def test_what_a_word_adds_is_said_as_in_python(folder):
    texts = REQUESTS[400:408]
    (answers,) = ask(folder, [{"ask": "view", "model": "two", "texts": texts, "target": -1}])
    for answer, view in zip(answers, views(explain(fitted("two"), texts), None, 8), strict=True):
        for segment, lines in zip(view.segments, answer["lines"], strict=True):
            tokens = [view.tokens[number] for number in segment.tokens]
            tokens.sort(key=lambda token: -abs(token.contribution))
            said = re.sub(
                r", decision without \S+?(?=;|$)", "", view.tooltip(tokens, segment), flags=re.M
            )
            assert "\n".join(lines) == (said if tokens else "")


# Numbers as text.

NUMBERS = np.random.default_rng(0)
SIZES = [
    1005.0, 7665.0, 4985.0, 39650.0,
    0.0, 0.125, 0.375, 0.5, 1.5, 2.5, 0.0995, 0.00095, 999.5, 0.0625, 0.1875, 1e-5, 12345.678, 1.0,
    *(10.0 ** NUMBERS.uniform(-8, 7, 400)).tolist(),
    *(NUMBERS.integers(0, 5000, 200) / 1000).tolist(),
]  # fmt: skip
SIGNED = [*SIZES, *(-size for size in SIZES)]
SHARES = [*np.linspace(0, 1, 401).tolist(), 0.0005, 0.9995, 1e-9, 1 - 1e-9]


def test_numbers_are_written_as_in_python(folder):
    groups = [SIGNED[start : start + 6] for start in range(0, len(SIGNED), 6)]
    weights = [[abs(number) for number in group] for group in groups]
    names = ["a", " a ", "\t", "x\ny", "\u202e", "  ", "\ud800", "\r\n"]
    pairs = [(number, largest) for number in SIGNED[:60] for largest in SIZES[:40]]
    questions = {
        "signed": [[number] for number in SIGNED],
        "percent": [[share] for share in SHARES],
        "aligned": [[group] for group in groups],
        "weightColumn": [[group] for group in weights],
        "level": pairs,
        "roundsToNothing": pairs,
        "tokenText": [[name] for name in names],
    }
    asked = [{"ask": "format", "name": name, "values": one} for name, one in questions.items()]
    answers = dict(zip(questions, ask(folder, asked), strict=True))
    minus = python_formatting.MINUS
    assert answers["signed"] == [python_formatting.signed(one, minus) for one in SIGNED]
    assert answers["percent"] == [python_formatting.percent(one) for one in SHARES]
    assert answers["aligned"] == [python_formatting.aligned(one, minus) for one in groups]
    assert answers["weightColumn"] == [python_formatting.count_column(one) for one in weights]
    assert answers["level"] == [python_formatting.level(*pair, 5) for pair in pairs]
    assert answers["roundsToNothing"] == [
        python_formatting.rounds_to_nothing(*pair) for pair in pairs
    ]
    assert answers["tokenText"] == [python_formatting.token_text(name) for name in names]


# Tables.


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_tables_are_read_and_written_as_by_the_csv_module(folder, separator):
    rng = np.random.default_rng(1)
    questions = []
    tables = []
    for _ in range(100):
        rows = [["".join(rng.choice(list('ab,;\t"\n é'), rng.integers(0, 5))) for _ in range(3)]
                for _ in range(rng.integers(1, 6))]  # fmt: skip
        tables.append([["text", "a", "b"], *rows])
        file = io.StringIO()
        csv.writer(file, delimiter=separator).writerows(tables[-1])
        questions.append({"ask": "table", "text": file.getvalue()})
    for table, answer in zip(tables, ask(folder, questions), strict=True):
        assert [answer["header"], *answer["rows"]] == table
        assert answer["separator"] == separator
        written = list(
            csv.reader(io.StringIO("".join(answer["written"]), newline=""), delimiter=separator)
        )
        assert written == table[1:]


def tables(folder, texts):
    return ask(folder, [{"ask": "table", "text": text} for text in texts])


def test_tables_that_cannot_be_read(folder):
    says = {
        "": "empty",
        "text,label\nonly one\n": "Row 2 of the table has 1 cells, but the first row has 2",
        'text\n"open': "not closed",
    }
    for answer, said in zip(tables(folder, says), says.values(), strict=True):
        assert said in answer["error"]


def test_lines_end_as_on_any_system(folder):
    lines = ["text", '""', "", "good", '"a"" b"', '"two', 'lines"', ""]
    ends = ["\r", "\n", "\r\n"]
    answers = tables(folder, [end.join(lines) for end in ends])
    for end, answer in zip(ends, answers, strict=True):
        assert answer["rows"] == [[""], [""], ["good"], ['a" b'], [f"two{end}lines"]]
        assert answer["written"][0] == '""\r\n'


def test_the_end_of_a_table(folder):
    texts = [f"text,n\r\na,1\nb,{end}" for end in ("", "\n", "\r\n", "\n\n")]
    assert [one["rows"] for one in tables(folder, texts)] == [[["a", "1"], ["b", ""]]] * 4


# Files.


def changed(folder, name, values):
    content = bytearray(gzip.decompress((folder / "two.clsattn").read_bytes()))
    (size,) = struct.unpack("<I", content[:4])
    header = json.loads(content[4 : 4 + size])
    arrays = content[-(-(4 + size) // 8) * 8 :]
    encoded = json.dumps(header | values).encode()
    start = struct.pack("<I", len(encoded)) + encoded
    start += bytes(-len(start) % 8)
    (folder / f"{name}.clsattn").write_bytes(gzip.compress(start + arrays))


@pytest.mark.parametrize(
    ("values", "says"),
    [({"version": 2}, "version 2, expected 1"), ({"format": "x"}, "another format")],
)
def test_other_files_are_refused(folder, values, says):
    changed(folder, "other", values)
    (answer,) = ask(folder, [{"ask": "load", "model": "other"}])
    assert says in answer


@pytest.mark.parametrize("size", [0, 10, -100])
def test_files_that_are_cut_off_are_refused(folder, size):
    (folder / "part.clsattn").write_bytes((folder / "two.clsattn").read_bytes()[:size])
    (answer,) = ask(folder, [{"ask": "load", "model": "part"}])
    assert answer != "loaded"


LABELS_OF_ALL_KINDS = {
    "integers": (np.array([2**53 + 1, 2**53]), ["9007199254740993", 2**53]),
    "dates": (np.array(["2020-01-01", "2021-01-01"], "M8[D]"), ["2020-01-01", "2021-01-01"]),
    "truths": (np.array([True, False]), [True, False]),
    "floats": (np.array([2.0, 1.0]), [2, 1]),
}


@pytest.mark.parametrize("name", LABELS_OF_ALL_KINDS)
def test_labels_of_all_kinds(tmp_path, name):
    labels, expected = LABELS_OF_ALL_KINDS[name]
    save(TextClassifier().fit(["good fun", "bad film"], labels), tmp_path, "model")
    texts = ["good fun", "bad film"]
    (answers,) = ask(tmp_path, [{"ask": "predict", "model": "model", "texts": texts}])
    assert [answer["label"] for answer in answers] == expected


def test_long_labels_of_several_are_named_as_in_python(tmp_path):
    names = ["x" * 58, "\n"]
    labels = pd.DataFrame([[1, 0], [0, 1], [1, 1]], columns=names)
    texts = ["good fun", "bad film", "good bad"]
    model = TextClassifier().fit(texts, labels)
    save(model, tmp_path, "model")
    for number, name in enumerate(model.classes_.tolist()):
        question = {"ask": "view", "model": "model", "texts": ["good"], "target": number}
        ((answer,),) = ask(tmp_path, [question])
        (view,) = views(explain(model, ["good"], target=name), None, 8)
        assert [f"for {side['label']}" for side in answer["sides"]] == [
            side.label for side in view.sides
        ]


def test_vectors_of_what_is_no_token_are_left_out(tmp_path):
    vectors = WordVectors.from_mapping({"good": [1, 0], "bad": [0, 1], "a\nb": [1, 1]})
    texts = ["good fun", "bad film"]
    model = TextClassifier(word_vectors=vectors).fit(texts, ["pos", "neg"])
    save(model, tmp_path, "model")
    (answers,) = ask(tmp_path, [{"ask": "predict", "model": "model", "texts": texts}])
    probabilities = [answer["probabilities"] for answer in answers]
    assert_allclose(probabilities, model.predict_proba(texts), atol=1e-6)


def test_sixteen_bits_change_no_more_than_is_said(folder):
    model = fitted("several classes")
    texts = REQUESTS[400:600]
    save(model, folder, "half", texts=texts)
    (answers,) = ask(folder, [{"ask": "predict", "model": "half", "texts": texts}])
    probabilities = [answer["probabilities"] for answer in answers]
    change = np.abs(probabilities - model.predict_proba(texts)).max()
    model.to_page(folder / "half.html", texts=texts)
    points = re.search(r"at most ([\d.]+) percentage points", (folder / "half.html").read_text())[1]
    assert 1e-7 < change <= float(points) / 100 <= 1e-3
    save(model, folder, "single")
    sizes = [(folder / f"{name}.clsattn").stat().st_size for name in ("half", "single")]
    assert sizes[0] < 0.8 * sizes[1]


# The module for services, and the script itself.


def test_services_import_the_module(tmp_path, monkeypatch):
    model = fitted("several classes")
    monkeypatch.setenv("HOME", str(tmp_path))
    model.to_javascript("~/scorer")
    (tmp_path / "service.mjs").write_text(
        'import { readFileSync } from "node:fs";\n'
        'import { load } from "./scorer/scorer.js";\n'
        'const scorer = await load(readFileSync("scorer/model.clsattn"));\n'
        'console.log(JSON.stringify(scorer.predict("Where is my parcel?")));\n'
    )
    (tmp_path / "package.json").write_text('{"type": "module"}')
    command = [shutil.which("node"), "service.mjs"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    prediction = json.loads(run.stdout)
    text = ["Where is my parcel?"]
    assert [prediction["label"]] == model.predict(text).tolist()
    assert_allclose(prediction["probabilities"], model.predict_proba(text)[0], atol=1e-6)


def test_the_script_asks_nothing_of_the_browsers_unicode_and_makes_no_code():
    for path in sorted(WEB.glob("*.js")):
        source = re.sub(r"//.*|/\*[\s\S]*?\*/", "", path.read_text("utf-8"))
        for name in (
            "normalize(",
            "toLowerCase",
            "Segmenter",
            "eval(",
            "innerHTML",
            "fetch(",
            "\\w",
        ):
            assert name not in source, (path.name, name)


@needs(TOOLS.exists(), "what checks JavaScript (make web)")
@pytest.mark.parametrize(
    "command",
    [
        ["tsc", "--project", str(HERE / "tsconfig.json")],
        [
            "eslint",
            "--max-warnings",
            "0",
            "-c",
            str(HERE / "eslint.config.js"),
            str(WEB),
            str(HERE),
        ],
        ["prettier", "--print-width", "100", "--check", f"{WEB}/*.js", f"{HERE}/*.mjs"],
    ],
    ids=lambda command: command[0],
)
def test_the_script_passes(command):
    name, *arguments = command
    root = Path(os.path.commonpath([WEB, HERE]))
    run = subprocess.run(
        [TOOLS / name, *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
