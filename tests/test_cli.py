"""The command line: what it prints, what it writes, and how it refuses."""

import csv
import gzip
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import warnings
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import shtab
from pyarrow import parquet
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_clsattn import ClsAttentionClassifier, comparison
from sklearn_clsattn._writing import written_whole
from sklearn_clsattn.cli import commands, main, reading, tables
from sklearn_clsattn.cli.arguments import parser
from sklearn_clsattn.cli.writing import shown_size
from sklearn_clsattn.datasets import _files, make_token_classification
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.saving import load_model
from sklearn_clsattn.text import HashingTokenVectorizer, make_text_classifier


@pytest.fixture(scope="module")
def frame():
    reviews = make_token_classification(
        n_samples=160, n_irrelevant=50, as_text=True, return_X_y=False, random_state=0
    )
    return pd.DataFrame({"text": reviews.texts, "label": reviews.target})


@pytest.fixture
def data(frame, tmp_path):
    path = tmp_path / "reviews.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def run(capsys):
    """Run the command line in this process; return its code and what it printed."""

    def run(*argv):
        code = main([str(argument) for argument in argv])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def refused(run, tmp_path):
    """Run what must be refused, in one line and with nothing written; return the line."""

    def refused(*argv):
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        code, out, err = run(*argv)
        assert code == 2
        assert out == ""
        assert err.startswith("sklearn-clsattn: ")
        assert err.count("\n") == 1
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
        return err

    return refused


@pytest.fixture(scope="module")
def fitted(frame, tmp_path_factory):
    """Return the model of all texts, which no test writes."""
    folder = tmp_path_factory.mktemp("fitted")
    frame.to_csv(folder / "reviews.csv", index=False)
    path = folder / "model.joblib"
    assert main(["fit", str(folder / "reviews.csv"), "-o", str(path), "--quiet"]) == 0
    return path


@pytest.fixture
def model(fitted, tmp_path):
    return Path(shutil.copy(fitted, tmp_path))


@pytest.fixture
def few_models(monkeypatch):
    """Leave the comparison ours and the two fastest, where the others add nothing but time."""
    models = comparison.default_models()
    monkeypatch.setattr(
        comparison._compare, "default_models", lambda _: [models[0], models[3], models[-1]]
    )


# compare


def test_compare_prints_a_table_and_tokens(data, run):
    code, out, err = run("compare", data, "--top", 3)
    assert code == 0
    lines = out.splitlines()
    assert f"{data}: texts in column 'text', labels in 'label'." in lines
    assert "20% of the texts, drawn at random (seed 0), are the test set." in lines
    heading = next(line for line in lines if "accuracy" in line)
    assert heading.split("  ")[1:2] == ["model"]
    for model in comparison.default_models():
        row = next(line for line in lines if line[2:].startswith(model.name))
        assert row.startswith("> " if model.kind == "ours" else "  ")
        assert len(re.findall(r"\d\.\d{3,4}|-", row.removeprefix(f"  {model.name}"))) >= 5
    assert next(line for line in lines if "LinearSVC" in line).split()[4] == "-"
    assert "*" not in next(line for line in lines if "majority" in line)
    assert sum("*" in line for line in lines) > 1
    assert "  >: this package's classifier; *: best of its column, the majority vote aside" in lines
    assert "Making the features of all texts, in none of these times: our features" in out
    assert "Most important tokens of each class" in out
    assert "Most selected tokens of each class" in out
    assert "\x1b" not in out
    assert not any(line.endswith(" ") for line in lines)
    assert max(len(line) for line in lines if str(data) not in line) <= 79
    progress = err.splitlines()
    assert len(progress) == len(comparison.default_models())
    assert progress[0].startswith("[1/9] ClsAttentionClassifier: fitted in ")


def test_compare_generates_reviews(run, few_models, monkeypatch):
    generate = reading.make_token_classification

    def fewer(**parameters):
        return generate(**{**parameters, "n_samples": 200})

    monkeypatch.setattr(reading, "make_token_classification", fewer)
    code, out, err = run("compare", "--quiet")
    assert code == 0
    assert out.startswith("200 generated reviews")
    assert "  negative: " in out
    assert "  positive: " in out
    assert err == ""


def test_compare_with_test_file(frame, data, tmp_path, run, few_models):
    test = tmp_path / "test.jsonl"
    frame[:40].to_json(test, orient="records", lines=True)
    code, out, _ = run("compare", data, "--test", test, "--ngrams", 2, "--min-df", 1, "--quiet")
    assert code == 0
    assert f"Test set: {test}." in out
    assert "160 training texts, 40 test texts" in out
    assert "40 distinct test texts are also in the training set" in out


def test_compare_tunes(data, run, few_models):
    code, out, err = run("compare", data, "--tune", "--top", 0)
    assert code == 0
    said = "- Tuning, before the fits with what it found: MultinomialNB "
    assert re.search(said + r"[\d.]+ s\.\n", out)
    assert "tokens of each class" not in out
    assert "tuned in" in err


def test_compare_writes_json(data, tmp_path, run, few_models):
    out = tmp_path / "result.json"
    assert run("compare", data, "--json", out, "--quiet")[0] == 0
    result = json.loads(out.read_text("utf-8"))
    assert result["settings"]["data"] == str(data)
    assert [model["name"] for model in result["models"]][:2] == [
        "ClsAttentionClassifier",
        "MultinomialNB",
    ]
    assert result["models"][0]["accuracy"] > 0.5
    assert result["classes"] == [0, 1]
    assert len(result["tokens"]) == 2


def test_many_classes_are_cut_short():
    tokens = [comparison.ClassTokens(k, [("good", 1.0)], [("good", 3)]) for k in range(30)]
    out = tables.fit_text({"texts": "30"}, tokens)
    assert "  class 19: good (3)\n" in out
    assert "  class 20" not in out
    assert out.count("and 10 more classes") == 2


def test_tokens_that_are_commas_are_told_apart():
    names = [",", ", really good", "a , b", "e acute"] * 5
    tokens = [comparison.ClassTokens("so\n[b]", [(name, 1.0) for name in names], [])]
    heading, *lines = tables.fit_text({"texts": "[bold]"}, tokens).split("\n\n")[1].split("\n")
    assert "Most important tokens" in heading
    assert " ".join(map(str.strip, lines)) == f"so [b]: {' · '.join(names)}"
    assert all(len(line) <= 79 and line.endswith(" ·") for line in lines[:-1])  # not in a token
    assert len(lines) > 1


# fit and predict


def write(frame, path):
    name = path.name.removesuffix(".gz")
    if name.endswith(".csv"):
        content = frame.to_csv(index=False).encode("utf-16" if "utf16" in name else "utf-8")
    elif name.endswith(".tsv"):
        content = frame.to_csv(index=False, sep="\t").encode()
    elif name.endswith(".jsonl"):
        content = frame.to_json(orient="records", lines=True).encode()
    else:
        content = frame.to_parquet(index=False)
    path.write_bytes(gzip.compress(content) if path.name.endswith(".gz") else content)
    return path


@pytest.mark.parametrize(
    "name",
    [
        *("a.csv", "a.csv.gz", "a.tsv", "a.tsv.gz", "a.jsonl", "a.jsonl.gz", "a.parquet"),
        "utf16.csv",
    ],
)
def test_round_trip_in_every_format(frame, tmp_path, run, name):
    data = write(frame, tmp_path / name)
    encoding = ["--encoding", "utf-16"] if "utf16" in name else []
    model = tmp_path / "model.joblib"
    code, out, _ = run("fit", data, "-o", model, "--C", 1, *encoding)
    assert code == 0
    assert re.search(r"^texts +160 of\s+\S+\s+column 'text'$", out, re.MULTILINE)
    assert re.search(r"^classes +0 \(80\), 1 \(80\) \(column 'label'\)$", out, re.MULTILINE)
    assert re.search(r"^fit +[\d.]+ s, \d+ iterations, loss [\d.]+, C [\d.]+$", out, re.MULTILINE)
    assert "Most important tokens of each class" in out
    predictions = tmp_path / "predictions.csv"
    assert run("predict", model, data, "-o", predictions, *encoding) == (0, "", "")
    read = pd.read_csv(predictions)
    pipeline = joblib.load(model)
    texts = frame["text"].to_numpy()
    assert read.columns.tolist() == [*frame, "prediction", "probability_0", "probability_1"]
    np.testing.assert_array_equal(read["prediction"], pipeline.predict(texts))
    np.testing.assert_allclose(read.iloc[:, -2:], pipeline.predict_proba(texts), rtol=1e-5)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.jsonl", "a.parquet"])
def test_standard_input(frame, data, model, tmp_path, run, monkeypatch, name):
    content = write(frame, tmp_path / name).read_bytes()

    def run_with(*argv):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return run(*argv)

    predicted = run("predict", model, data)
    assert run_with("predict", model, "-") == predicted
    assert run_with("explain", model, "-")[1].count("Document") == 10
    assert run_with("fit", "-", "-o", model, "--force", "--quiet")[0] == 0
    assert run("predict", model, data) == predicted
    monkeypatch.setattr(sys, "stdin", None)
    assert "input is closed" in run("predict", model, "-")[2]


def test_sizes_have_two_digits():
    assert [shown_size(n) for n in (4_321, 99_400, 100_000, 2_345_678)] == [
        *("4 KB", "99 KB"),
        *("0.1 MB", "2.3 MB"),
    ]


def test_shells_can_complete():
    for shell in ("bash", "zsh", "tcsh"):
        written = shtab.complete(parser(), shell)
        for word in ("compare", "--counterfactual", "words"):
            assert word in written
    fit = parser()._subparsers._group_actions[0].choices["fit"]
    assert [one.complete for one in fit._actions if one.dest == "data"] == [shtab.FILE]


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        ([False, True], "bool"),
        ([1.0, 2.0], "float64"),
        ([0.5, 1.5], "float64"),
        (["schlecht", "très bien"], None),
    ],
)
def test_predictions_keep_the_type_of_labels(frame, tmp_path, run, labels, dtype):
    data = tmp_path / "typed.parquet"
    frame.assign(label=np.array(labels)[frame["label"]]).to_parquet(data)
    model = tmp_path / "model.joblib"
    assert run("fit", data, "-o", model, "--C", 1, "--quiet")[0] == 0
    code, out, err = run("predict", model, data)
    assert (code, err) == (0, "")
    read = pd.read_csv(io.StringIO(out))
    assert read.columns.tolist()[2:] == ["prediction", *(f"probability_{y}" for y in labels)]
    assert set(read["prediction"]) == set(labels)
    if dtype is not None:
        assert read["prediction"].dtype == dtype


def test_fit_passes_parameters(data, tmp_path, run):
    model = tmp_path / "model.joblib"
    options = ["--C", "0.5", "--attention-C", "0.1", "--ngrams", "3", "--min-df", "3"]
    options += ["--no-characters", "--no-context", "--quiet"]
    assert run("fit", data, "-o", model, *options)[0] == 0
    expected = make_text_classifier(
        **{"C": 0.5, "attention_C": 0.1, "ngram_range": (1, 3), "min_df": 3},
        **{"characters": None, "context": False},
    )
    assert str(joblib.load(model)) == str(expected)
    assert run("fit", data, "-o", model, "--C", "auto", "--quiet", "--force")[0] == 0
    assert str(joblib.load(model)) == str(make_text_classifier())


@pytest.mark.parametrize(
    "argv",
    [
        "compare DATA --quiet --json OUT",
        "fit DATA -o OUT",
        "predict MODEL DATA -o OUT",
        "explain MODEL DATA -o OUT",
        "report DATA --quiet -o OUT",
    ],
)
def test_files_are_overwritten_only_by_force(argv, data, model, tmp_path, run, refused, few_models):
    given = {"DATA": data, "MODEL": model, "OUT": put(tmp_path / "out", "mine")}
    words = [given.get(word, word) for word in argv.split()]
    assert "out is there already; pass --force to overwrite it" in refused(*words)
    assert run(*words, "--force")[0] == 0
    assert (tmp_path / "out").read_bytes() != b"mine"
    # A device is no file that could be lost, and nothing lies beside what is written.
    assert run(*(os.devnull if word == given["OUT"] else word for word in words))[0] == 0
    assert sorted(tmp_path.iterdir()) == sorted([data, model, tmp_path / "out"])


def cells(path):
    """Return a CSV as it is written: strings, row by row."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_predictions_stand_beside_the_columns_of_the_file(model, tmp_path, run, refused):
    """So that they can be joined: no number, line break or sign of an input cell changes."""
    rows = [
        ["id", "text", "price", "note"],
        ["007", "so good", "1.50", ""],
        ["-ab", 'a "bad"\r\nfilm, really', "NA", "=1+1"],
        ["9007199254740993", "a carriage\rreturn 🎬", "1e3", " x "],
    ]
    data, out = tmp_path / "new.csv", tmp_path / "out.csv"
    with data.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";", quoting=csv.QUOTE_ALL).writerows(rows)
    assert run("predict", model, data, "-o", out) == (0, "", "")
    heading, *found = cells(out)
    assert heading == [*rows[0], "prediction", "probability_0", "probability_1"]
    assert [row[:4] for row in found] == rows[1:]
    texts = [row[1] for row in rows[1:]]
    assert [row[4] for row in found] == [str(y) for y in joblib.load(model).predict(texts)]
    said = refused("predict", model, out)
    assert "has a column 'prediction' already" in said


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_typed_columns_are_repeated(model, tmp_path, run, name):
    data, out = tmp_path / name, tmp_path / "out.csv"
    identity = [2**53 + 1, None, 3]
    if name == "a.jsonl":
        texts = ["good \ud800", "bad", "so"]
        records = [{"id": i, "text": t, "ok": True} for i, t in zip(identity, texts, strict=True)]
        put(data, "\n".join(map(json.dumps, records)))
    else:
        table = {"id": pd.array(identity, "Int64"), "text": ["good", "bad", "so"], "ok": True}
        pd.DataFrame(table).to_parquet(data)
        # As others write it, without what pandas notes of its types.
        parquet.write_table(parquet.read_table(data).replace_schema_metadata(), data)
    assert run("predict", model, data, "-o", out) == (0, "", "")
    assert [(row[0], row[2]) for row in cells(out)[1:]] == [
        ("9007199254740993", "True"),
        ("", "True"),
        ("3", "True"),
    ]


def test_predict_names_the_text_column(frame, model, tmp_path, run):
    other = tmp_path / "other.csv"
    frame.rename(columns={"text": "words"})[["words"]].to_csv(other, index=False)
    code, out, _ = run("predict", model, other, "--text", "words", "-o", "-")
    assert code == 0
    assert len(out.splitlines()) == len(frame) + 1


# Files larger than memory


@pytest.fixture
def small_batches(monkeypatch, tmp_path_factory):
    """Read few rows at a time, into few columns; nothing may stay among temporary files."""
    monkeypatch.setattr(reading, "ROWS", 30)
    monkeypatch.setattr(commands, "HashingTokenVectorizer", narrow)
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert not list(folder.iterdir())


narrow = partial(HashingTokenVectorizer, n_features=2**12)


def hashed_in_memory(texts, labels):
    vectorizer = narrow(ngram_range=(1, 2), dtype=np.int32)
    return make_pipeline(vectorizer, ClsAttentionClassifier()).fit(texts, labels)


def test_chunks_give_the_model_of_all_texts(frame, tmp_path, run, small_batches):
    names = ("a.csv", "b.jsonl.gz", "c.parquet", "d.tsv.gz")
    files = [
        write(frame[40 * i : 40 * (i + 1)].reset_index(drop=True), tmp_path / name)
        for i, name in enumerate(names)
    ]
    model = tmp_path / "model.joblib"
    code, out, err = run("fit", *files, "--chunks", "-o", model)
    assert code == 0
    lines = err.splitlines()
    assert lines[:-1] == [f"read {path}: 40 texts" for path in files]
    assert re.fullmatch(r"fitting on [\d,]+ counts in 1 chunks", lines[-1])
    assert f"160 of {', '.join(map(str, files))}, column 'text'" in " ".join(out.split())
    assert re.search(r"^classes +0 \(80\), 1 \(80\) \(column 'label'\)$", out, re.MULTILINE)
    texts, labels = frame["text"].to_numpy(), frame["label"].astype(str).to_numpy()
    expected, pipeline = hashed_in_memory(texts, labels), joblib.load(model)
    assert pipeline.classes_.tolist() == ["0", "1"]
    assert pipeline[-1].n_iter_ == expected[-1].n_iter_
    np.testing.assert_allclose(
        pipeline.predict_proba(texts), expected.predict_proba(texts), rtol=1e-4
    )
    assert run("predict", model, files[0], "-o", tmp_path / "out.csv") == (0, "", "")
    assert run("fit", *files, "--chunks", "-o", model, "--force", "--quiet")[2] == ""


def test_chunks_of_standard_input(frame, tmp_path, run, small_batches, monkeypatch):
    model, texts = tmp_path / "model.joblib", frame["text"].to_numpy()
    expected = hashed_in_memory(texts, frame["label"].astype(str).to_numpy())
    for name in ("a.csv.gz", "a.parquet"):
        content = write(frame, tmp_path / name).read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert run("fit", "-", "--chunks", "-o", model, "--quiet", "--force")[0] == 0
        predicted = joblib.load(model).predict_proba(texts)
        np.testing.assert_allclose(predicted, expected.predict_proba(texts), rtol=1e-4)


def test_chunks_take_what_only_later_rows_show(tmp_path, run, small_batches):
    """The first batch has numbers only, as texts and as labels, and the next has words."""
    rows = [f"{i},{i % 2}" for i in range(30)] + ["so good,high", "so bad,1.5"] * 15
    data = put(tmp_path / "a.csv", "\n".join(["text,label", *rows]))
    records = [{"text": "so so", "label": label} for label in (0, 1.0, 1) * 10]
    more = put(tmp_path / "b.jsonl", "\n".join(map(json.dumps, records)))
    model = tmp_path / "model.joblib"
    assert run("fit", data, more, "--chunks", "-o", model, "--quiet")[0] == 0
    assert joblib.load(model).classes_.tolist() == ["0", "1", "1.5", "high"]


def test_chunks_are_saved_as_skops(data, tmp_path, run, small_batches):
    model = tmp_path / "model.skops"
    options = ["--C", "0.5", "--attention-C", "0.1", "--ngrams", "3", "--quiet"]
    assert run("fit", data, "--chunks", "-o", model, *options)[0] == 0
    pipeline = load_model(model)
    assert pipeline[0].ngram_range == (1, 3)
    assert (pipeline[-1].C, pipeline[-1].attention_C) == (0.5, 0.1)


BROKEN_BATCHES = {
    "a third cell": ("b.csv", "good,1\nbad,0\n" * 20 + "good,1,2\n" + "bad,0\n" * 9, "line 42"),
    "no label": ("b.csv", "good,1\nbad,0\n" * 20 + "good,\n", r"row 41 of .*b\.csv has no label"),
    "no text": (
        "b.jsonl",
        '{"text": "good", "label": 1}\n' * 39 + '{"text": null, "label": 1}',
        r"row 40 of .*b\.jsonl has no text .* 1 of the 10 rows read with it",
    ),
    "no JSON": ("b.jsonl", '{"text": "good", "label": 1}\n' * 40 + "{", "line 41 is not JSON"),
    "no rows": ("b.csv", "", "b.csv has columns but no rows"),
}


@pytest.mark.parametrize("case", BROKEN_BATCHES)
def test_broken_rows_of_batches(case, data, tmp_path, refused, small_batches):
    name, content, message = BROKEN_BATCHES[case]
    heading = "text,label\n" if name.endswith(".csv") else ""
    broken = put(tmp_path / name, heading + content)
    said = refused("fit", data, broken, "--chunks", "-o", tmp_path / "model", "--quiet")
    assert re.search(message, said)
    assert str(broken) in said


def test_what_chunks_refuse(frame, data, tmp_path, refused, small_batches, monkeypatch):
    output = ["-o", tmp_path / "model", "--quiet"]
    assert "--chunks reads several" in refused("fit", data, data, *output)
    with monkeypatch.context() as patched:
        patched.setattr(commands, "memory", lambda: 10.0)
        assert "--chunks reads files part by part" in refused("fit", data, *output)
    assert "no file" in refused("fit", data, tmp_path / "gone.csv", "--chunks", *output)
    assert "--min-df needs names" in refused("fit", data, "--chunks", "--min-df", 3, *output)
    assert "read as well" in refused("fit", data, data, "--chunks", "--force", "-o", data)
    for case in ("one class", "labels all differ"):
        name, content, message = BAD_FILES[case]
        path = put(tmp_path / name, content)
        said = refused("fit", path, "--chunks", *output)
        assert re.search(message.replace("are 1", "are '1'"), said)
    none = tmp_path / "none.parquet"
    frame[:0].to_parquet(none)
    assert "no rows" in refused("fit", none, "--chunks", *output)
    bomb = put(tmp_path / "bomb.csv.gz", gzip.compress(b"text,label\n" + b"good,1\n" * 10_000))
    monkeypatch.setattr(_files, "_LEAST_LIMIT", 1000)
    assert "it unpacks to more" in refused("fit", bomb, "--chunks", *output)


# explain and report


def test_explain_prints_what_every_word_adds(frame, data, model, run):
    code, out, err = run("explain", model, data, "--limit", 3, "--top", 2, "--label", "label")
    assert (code, err) == (0, "The first 3 of 160 texts; --limit N explains more.\n")
    pipeline = joblib.load(model)
    expected = explain(pipeline, frame["text"][:3].to_numpy(), y_true=frame["label"][:3])
    assert out == expected.to_text(top=2) + "\n"
    assert "Document 2" in out
    assert "truly" in out or "right" in out


def test_explain_says_what_it_is_told(frame, model, run):
    said = frame["text"][0]
    code, out, err = run("explain", model, "--say", said, "--say", "", "--target", "0")
    assert (code, err) == (0, "")
    assert "+ for 0" in out
    assert "- for 1" in out
    assert "truly" not in out
    assert "the decision is the intercept" in out


def test_explain_compares_classes(tmp_path, run, refused):
    texts, y = make_token_classification(120, n_classes=3, as_text=True, random_state=0)
    data, model = tmp_path / "three.csv", tmp_path / "three.joblib"
    pd.DataFrame({"text": texts, "label": y}).to_csv(data, index=False)
    assert run("fit", data, "-o", model, "--quiet")[0] == 0
    explanation = explain(joblib.load(model), texts[:1])
    first, second, third = (-explanation.decision[0]).argsort().tolist()
    say = ("explain", model, "--say", texts[0])
    assert f"lead over {second} " in run(*say)[1]
    assert f"lead over {first} " in run(*say, "--target", third)[1]
    assert f"lead over {third} " in run(*say, "--against", third)[1]
    expected = explanation.to_text(target=second, against=third, every_class=True) + "\n"
    assert run(*say, "--target", second, "--against", third, "--every-class")[1] == expected
    assert "classes, 0, 1, 2; got '7'" in refused(*say, "--against", "7")


def test_explain_writes_a_page(data, model, tmp_path, run):
    page = tmp_path / "page.html"
    code, out, err = run("explain", model, data, "-o", page, "--limit", 200)
    assert (code, out) == (0, "")
    assert re.fullmatch(rf"{re.escape(str(page))}: \d\.\d MB\n", err)
    html = page.read_text("utf-8")
    assert html.startswith("<!doctype html>")
    assert html.count('<section class="doc">') == 160
    assert run("explain", model, "--say", "<b>", "-o", page, "--force")[:2] == (0, "")
    assert "&lt;b&gt;" in page.read_text("utf-8")
    assert run("explain", model, "--say", "x", "-o", "-")[1].startswith("Document 0")


def test_explain_shows_the_smallest_changes(frame, model, tmp_path, run, refused):
    said = frame["text"][0]
    code, out, err = run("explain", model, "--say", said, "--counterfactual")
    assert (code, err) == (0, "")
    expected = explain(joblib.load(model), [said]).counterfactual("words")
    assert out == expected.to_text() + "\n"
    assert "Without" in out
    assert "token" in run("explain", model, "--say", said, "--counterfactual", "add")[1]
    code, _, err = run("explain", model, "--say", said, "--counterfactual", "--every-class")
    assert code
    assert "leave out --against, --every-class" in err
    target = str(1 - int(joblib.load(model).predict([said])[0]))
    assert run("explain", model, "--say", said, "--target", target, "--counterfactual")[1] == out
    page = tmp_path / "changes.html"
    assert run("explain", model, "--say", said, "--counterfactual", "-o", page)[0] == 0
    assert "whose removal changes" in page.read_text()
    assert "invalid choice" in refused("explain", model, "--say", said, "--counterfactual", "x")


def test_explain_warns_of_labels_that_the_model_does_not_know(frame, model, tmp_path, run):
    data = tmp_path / "stars.csv"
    frame.assign(label=frame["label"] + 3).to_csv(data, index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, out, err = run("explain", model, data, "--label", "label", "--limit", 60)
    assert code == 0
    assert "warning: column 'label' has labels that the model does not know, such as '3'" in err
    assert "WRONG, truly" in out


def test_explain_knows_classes_that_fit_takes_for_names(frame, tmp_path, run):
    data = tmp_path / "typed.parquet"
    frame.assign(label=np.array([0.5, 1.5])[frame["label"]]).to_parquet(data)
    model = tmp_path / "model.joblib"
    assert run("fit", data, "-o", model, "--quiet")[0] == 0
    code, out, _ = run("explain", model, data, "--label", "label", "--target", "1.5")
    assert code == 0
    assert "  right" in out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["explain"], "MODEL"),
        (["explain", "MODEL"], "either a file DATA, or --say TEXT"),
        (["explain", "MODEL", "DATA", "--say", "x"], "not both"),
        (["explain", "MODEL", "--say", "x", "--sep", ";"], "--sep needs a file"),
        (["explain", "MODEL", "--say", "x", "--label", "label"], "--label needs a file"),
        (["explain", "MODEL", "--say", "x", "--target", "2"], "classes, 0, 1; got '2'"),
        (["explain", "MODEL", "DATA", "--limit", "0"], "expected a whole number above 0"),
        (["explain", "MODEL", "DATA", "--label", "gone"], "has no column 'gone'"),
        (["explain", "MODEL", "DATA", "-o", "DATA", "--force"], "read as well"),
        (["explain", "DATA", "--say", "x"], "not a model that can be loaded"),
        (["explain", "gone", "--say", "x"], "no file gone"),
        (["report", "--text", "words", "-o", "OUT"], "--text needs a file"),
        (["report", "gone.csv", "-o", "OUT"], "no file gone.csv"),
        (["report", "DATA", "-o", "OUT", "--mistakes", "-1"], "expected a whole number of 0"),
        (["report", "DATA", "-o", "DATA"], "read as well"),
        (["report", "DATA", "-o", "nowhere/OUT"], "no folder"),
    ],
)
def test_bad_input_to_explain_and_report(argv, message, data, model, tmp_path, refused):
    given = {"MODEL": model, "DATA": data, "OUT": tmp_path / "out.html"}
    assert message in refused(*(given.get(argument, argument) for argument in argv))


def test_explain_refuses_other_pipelines(tmp_path, refused):
    other = tmp_path / "other"
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression())
    joblib.dump(pipeline.fit(["so good", "bad"], [0, 1]), other)
    assert "cannot be explained" in refused("explain", other, "--say", "good")


def test_report_writes_a_page(data, tmp_path, run):
    page = tmp_path / "page.html"
    code, out, err = run("report", data, "-o", page, "--top", 3, "--mistakes", 2)
    assert (code, out) == (0, "")
    progress = err.splitlines()
    assert progress[0].startswith("[1/4] ClsAttentionClassifier: fitted in ")
    assert progress[-2].startswith("accuracy on 32 test texts: ClsAttentionClassifier ")
    assert progress[-1] == f"{page}: {shown_size(page.stat().st_size)}"
    html = page.read_text("utf-8")
    assert "<title>Model report: reviews.csv</title>" in html
    assert "20% of the texts, drawn at random (seed 0), are the test set." in html
    assert "--top 3 --mistakes 2 -o " in html
    assert len(re.findall('<article class="r-case"', html)) <= 4


def test_report_on_a_test_file_and_on_generated_reviews(frame, data, tmp_path, run, monkeypatch):
    test = tmp_path / "test.jsonl"
    frame[:40].to_json(test, orient="records", lines=True)
    options = ["--test", test, "--ngrams", 2, "--min-df", 1, "-o", tmp_path / "page.html"]
    assert run("report", data, *options, "--quiet") == (0, "", "")
    html = (tmp_path / "page.html").read_text("utf-8")
    assert "40 distinct test texts are also in the training set" in html
    assert "min_df=1" in html
    generate = reading.make_token_classification
    monkeypatch.setattr(
        reading,
        "make_token_classification",
        lambda **parameters: generate(**{**parameters, "n_samples": 200}),
    )
    monkeypatch.chdir(tmp_path)
    assert run("report", "--quiet") == (0, "", "")
    assert "200 generated reviews" in (tmp_path / "report.html").read_text("utf-8")


# What is refused


def put(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


GOOD = "text,label\n" + "so good,1\nso bad,0\n" * 10
BAD_FILES = {
    "empty": ("a.csv", "", "is empty"),
    "no rows": ("a.csv", "text,label\n", "no rows"),
    "one class": ("a.csv", "text,label\ngood,1\nbad,1\n", "are 1; expected two classes"),
    "no label column": ("a.csv", "text,other\na,1\n", "name one with --label"),
    "no text column": ("a.csv", "words,label\na,1\n", "name one with --text"),
    "other separator": ("a.csv", "text^label\na, b^1\n", r"or pass --sep '\^'$"),
    "text is numbers": ("a.csv", "text,label\n1,0\n2,1\n", "columns? of the texts|--text"),
    "undecodable": ("a.csv", b"text,label\n\xff\xfe,1\n", "--encoding latin-1"),
    "no gzip": ("a.csv.gz", "text,label\n", "not compressed as .gz files are"),
    "no parquet": ("a.parquet", "text,label\n", "not a Parquet file"),
    "no format": ("a.doc", "text,label\n", "cannot tell the format"),
    "label missing": ("a.csv", "text,label\ngood,1\nbad,\n", "row 2 .* has no label"),
    "labels all differ": (
        "a.csv",
        "text,label\n" + "".join(f"good,{i}\n" for i in range(50)),
        "50 different labels in 50 rows",
    ),
    "no token twice": (
        "a.csv",
        "text,label\n" + "".join(f"a{i},{i % 2}\n" for i in range(20)),
        "--min-df",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
@pytest.mark.parametrize("command", ["compare", "fit"])
def test_bad_files(case, command, tmp_path, refused):
    name, content, message = BAD_FILES[case]
    path = put(tmp_path / name, content)
    output = ["-o", tmp_path / "model"] if command == "fit" else ["--json", tmp_path / "json"]
    asked = [*output, "--min-df", "2", "--quiet"]
    assert re.search(message, refused(command, path, *asked))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "COMMAND"),
        (["nonsense"], "invalid choice"),
        (["compare", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["compare", "--ngrams", "0"], "expected a whole number above 0, got '0'"),
        (["compare", "--min-df", "many"], "expected a whole number above 0, got 'many'"),
        (["compare", "--top", "-1"], "expected a whole number of 0 or more"),
        (["compare", "--text", "words"], "--text needs a file"),
        (["compare", "--test", "a.csv"], "--test needs a file"),
        (["fit", "a.csv"], "-o"),
        (["fit", "a.csv", "-o", "m", "--C", "nan"], "expected a number above 0"),
        (["fit", "a.csv", "-o", "m", "--C", "high"], "expected a number above 0"),
        (["fit", "a.csv", "-o", "m", "--attention-C", "auto"], "expected a number above 0"),
        (["predict", "m"], "DATA"),
    ],
)
def test_bad_arguments(argv, message, refused):
    assert message in refused(*argv)


def test_missing_files_and_columns(data, model, tmp_path, refused, monkeypatch):
    gone = tmp_path / "gone.csv"
    assert "no file" in refused("compare", gone)
    assert "no file" in refused("compare", data, "--test", gone)
    assert "no file" in refused("fit", gone, "-o", tmp_path / "m")
    assert "no file" in refused("predict", gone, data)
    with monkeypatch.context() as patched:
        patched.setattr(reading, "load_model", None)
        patched.setattr(reading, "load_reviews", None)
        assert "no file" in refused("predict", model, gone)
        assert "no file" in refused("explain", model, gone)
        assert "no file" in refused("compare", data, "--test", gone)
    assert "no file" in refused("predict", model, gone)
    for option in ("--text", "--label"):
        said = f"has no column 'gone'; its columns are 'text', 'label': name one with {option}\n"
        assert said in refused("compare", data, option, "gone")
    assert "has no column 'gone'" in refused("predict", model, data, "--text", "gone")
    assert "Python knows" in refused("compare", data, "--encoding", "gone")


def test_test_file_of_another_kind(data, tmp_path, refused):
    words = put(tmp_path / "words.csv", "text,label\ngood,pos\nbad,neg\n")
    assert "no test label occurs in training" in refused("compare", data, "--test", words)
    other = put(tmp_path / "other.csv", "review,label\ngood,1\nbad,0\n")
    assert "has no column 'text'" in refused("compare", data, "--test", other)


def test_too_few_texts(tmp_path, refused):
    few = put(tmp_path / "few.csv", "text,label\ngood,1\nbad,0\nbad,0\n")
    assert "cannot hold out" in refused("compare", few)
    rare = put(tmp_path / "rare.csv", "text,label\n" + "good,1\nbad,0\n" * 5 + "odd,2\nodd,2\n")
    test = put(tmp_path / "test.csv", "text,label\ngood,1\n")
    assert "class 2 has 2" in refused("compare", rare, "--test", test, "--tune")


def test_unwritable_output(data, model, tmp_path, refused):
    nowhere = tmp_path / "nowhere" / "out"
    assert "no folder" in refused("compare", data, "--json", nowhere)
    assert "no folder" in refused("fit", data, "-o", nowhere)
    assert "no folder" in refused("predict", model, data, "-o", nowhere)
    assert "is a folder" in refused("fit", data, "-o", tmp_path)
    assert "read as well" in refused("predict", model, data, "-o", data)
    assert "read as well" in refused("predict", model, data, "-o", model)
    assert "read as well" in refused("fit", data, "-o", data, "--force")


def test_no_model(data, tmp_path, refused):
    assert "not a model that can be loaded" in refused("predict", data, data)
    damaged = put(tmp_path / "damaged", b"\x80\x05\x95")
    assert "not a model that can be loaded" in refused("predict", damaged, data)
    other = put(tmp_path / "other", pickle.dumps({"a": 1}))
    assert "holds a dict" in refused("predict", other, data)
    X = np.arange(8.0).reshape(4, 2)
    joblib.dump(make_pipeline(LogisticRegression()).fit(X, [0, 1, 0, 1]), other)
    assert "not a pipeline from texts" in refused("predict", other, data)
    joblib.dump(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, [0, 1, 0, 1]), other)
    assert "does not take texts" in refused("predict", other, data)


def test_failure_leaves_no_file(tmp_path):
    path = tmp_path / "out"
    path.write_text("before")

    def write_half(error):
        with written_whole(path, text=True) as file:
            file.write("half")
            raise error

    for error in (OSError("disk full"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            write_half(error)
        assert path.read_text() == "before"
        assert list(tmp_path.iterdir()) == [path]


def test_devices_and_links_stay(tmp_path):
    with written_whole(tmp_path / "file", text=True) as file:
        file.write("a")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with written_whole(tmp_path / "link", text=True) as file:
        file.write("b")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "b"


# Signals, streams and speed


def test_interruption(data, run, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "compare", interrupt)
    assert run("compare", data) == (130, "", "sklearn-clsattn: interrupted\n")


def test_warnings_are_one_line(data, run, monkeypatch, few_models):
    def warn(*_, **__):
        warnings.simplefilter("always")
        warnings.warn("two\nlines", stacklevel=2)
        return "report"

    monkeypatch.setattr(commands, "result_text", warn)
    code, out, err = run("compare", data, "--quiet")
    assert (code, out, err) == (0, "report\n", "sklearn-clsattn: warning: two lines\n")


@pytest.mark.parametrize("command", ["compare", "fit", "predict", "explain", "report"])
def test_help(command, capsys):
    with pytest.raises(SystemExit) as exit_info:
        main([command, "--help"])
    assert exit_info.value.code == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"usage: sklearn-clsattn {command}" in out
    assert ("Load only files that you trust" in out) == (command not in ("compare", "report"))


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_broken_pipe_is_quiet(model, data):
    code = f"""
import os, sys
from sklearn_clsattn.cli import main
read, write = os.pipe()
os.close(read)
os.dup2(write, 1)
sys.exit(main(["predict", {str(model)!r}, {str(data)!r}]))
"""
    done = python(code)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_plain_install_has_what_the_commands_need():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    needed = {re.split("[<>=]", one)[0] for one in project["project"]["dependencies"]}
    assert needed >= {"skops", "rich", "jinja2"}


@pytest.mark.skipif(shutil.which("make") is None, reason="make is needed")
@pytest.mark.parametrize("target", ["demo", "report"])
def test_make_passes_columns_and_separator(target):
    given = ["DATA=a.csv", "TEST=b.csv", "TEXT=my text", "LABEL=mood", "SEP=|"]
    makefile = Path(__file__).parents[1] / "Makefile"
    make = ["make", "-n", "-f", makefile, target, *given]
    said = subprocess.run(make, capture_output=True, text=True, check=True).stdout
    assert "a.csv --test b.csv --text 'my text' --label 'mood' --sep '|'" in said
    assert "--text" not in subprocess.check_output(make[:5], text=True)


def test_module_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "sklearn_clsattn", "fit", str(tmp_path / "gone"), "-o", "m"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("sklearn-clsattn: there is no file")


def test_arguments_are_read_without_the_heavy_libraries():
    code = """
import sys
before = set(sys.modules)
import sklearn_clsattn
package = set(sys.modules)
from sklearn_clsattn.cli import main
try:
    main(["compare", "--help"])
except SystemExit:
    pass
added = set(sys.modules) - package
print([name for name in ("torch", "pandas", "sklearn", "rich") if name in added])
"""
    assert python(code).stdout.splitlines()[-1] == "[]"
