"""The command line: six commands, which write what the functions of Python return."""

import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from helpers import put
from numpy.testing import assert_allclose, assert_array_equal
from pages import Page
from pandas.testing import assert_frame_equal
from sklearn.dummy import DummyClassifier

from sklearn_clsattn import TextClassifier, comparison
from sklearn_clsattn.cli import commands, main
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import _report, explain, report
from sklearn_clsattn.saving import load_model, save_model

TEXTS, TOPICS = load_requests(return_X_y=True)
TRAIN = pd.DataFrame({"text": TEXTS[:90], "label": TOPICS[:90]})
TEST = pd.DataFrame({"text": TEXTS[120:160], "label": TOPICS[120:160]})


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("fitted") / "model"
    save_model(TextClassifier(C=1.0).fit(TRAIN["text"], TRAIN["label"]), path)
    return path


@pytest.fixture
def folder(fitted, tmp_path, monkeypatch):
    """Return the folder in which commands run, with a model, and texts for training and test."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(fitted, tmp_path)
    TRAIN.to_csv("train.csv", index=False)
    TEST.to_csv("test.csv", index=False)
    return tmp_path


@pytest.fixture
def model(folder):
    return load_model(folder / "model")


@pytest.fixture
def run(folder, capsys):
    """Run a command; return its code, its output and its messages."""

    def run(command, *more):
        code = main([*command.split(), *more])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def one_baseline(monkeypatch):
    """One baseline, of which nothing depends, in place of those that take long to fit."""
    majority = {"majority class": DummyClassifier(strategy="prior")}
    for module in (comparison, _report):
        monkeypatch.setattr(module, "text_baselines", lambda *arguments, **options: majority)


@pytest.fixture
def no_time(monkeypatch):
    """Let a comparison take no time, so that another one measures the same."""
    monkeypatch.setattr(comparison, "time", SimpleNamespace(perf_counter=lambda: 0.0))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# The six commands


def test_compare(run, no_time):
    code, out, err = run("compare train.csv --test test.csv")
    heading, *table, said = out.splitlines()
    assert said.startswith("p_value: ")
    assert (code, heading, err) == (0, "90 training texts, 40 test texts", "")
    rows = [re.split(r"\s{2,}", line) for line in table]
    found = pd.DataFrame([row[1:] for row in rows[1:]], [row[0] for row in rows[1:]], rows[0][1:])
    found = found.replace({"-": "nan", "<0.0001": "0"}).astype(float)
    expected = comparison.compare(*TRAIN.to_numpy().T, *TEST.to_numpy().T)
    assert_frame_equal(found, expected, atol=1e-4, check_dtype=False)


@pytest.mark.usefixtures("one_baseline")
def test_without_a_file_messages_are_generated(run, monkeypatch):
    few = Mock(return_value=(TEXTS[:100], TOPICS[:100]))
    monkeypatch.setattr(commands, "load_requests", few)
    assert run("compare")[1].startswith("80 training texts, 20 test texts\n")


@pytest.mark.usefixtures("one_baseline")
@pytest.mark.filterwarnings("default:40 distinct test texts")
def test_warnings_are_lines(run):
    TRAIN[:40].to_csv("seen.csv", index=False)
    code, _, err = run("compare train.csv --test seen.csv")
    said = "sklearn-clsattn: warning: 40 distinct test texts are also in the training set.\n"
    assert (code, err) == (0, said)


def test_fit(run):
    code, out, err = run("fit train.csv -o new.skops")
    expected = TextClassifier().fit(TRAIN["text"], TRAIN["label"])
    assert (code, err) == (0, "")
    assert f"a model of 90 texts, C {expected.C_:.3g}\n" in out
    for topic, token in (("billing", "invoice"), ("delivery", "driver"), ("returns", "back")):
        assert re.search(f"^  {topic}: .*{token}", out, re.MULTILINE)
    found = load_model("new.skops").predict_proba(TEST["text"])
    assert_array_equal(found, expected.predict_proba(TEST["text"]))


def test_fit_with_options(run):
    """Of the model, and of the columns of both files."""
    written = {"index": False, "sep": "|", "encoding": "utf-16", "header": ["message", "topic"]}
    TRAIN.to_csv("train.csv", **written)
    TEST.to_csv("test.csv", **written)
    columns = "--text message --label topic --sep | --encoding utf-16"
    Path("words.txt").write_text("please\n\nOrder \n", "utf-8")
    options = "--unlabeled test.csv --C 2 --min-df 2 --ignore words.txt"
    code, _, err = run(f"fit train.csv -o new {options} {columns}")
    assert (code, err) == (0, "")
    expected = TextClassifier(C=2.0, min_df=2, stop_words=["please", "Order"])
    expected.fit(TRAIN["text"], TRAIN["label"], unlabeled=TEST["text"])
    found = load_model("new")
    assert str(found) == str(expected)
    assert_array_equal(found.predict_proba(TEST["text"]), expected.predict_proba(TEST["text"]))


def test_predict(run, model):
    assert run("predict model test.csv -o out.csv") == (0, "", "")
    table = pd.read_csv("out.csv")
    names = [f"probability_{topic}" for topic in model.classes_]
    assert table.columns.tolist() == ["text", "label", "prediction", *names]
    assert_frame_equal(table[["text", "label"]], TEST, check_dtype=False)
    assert_array_equal(table["prediction"], model.predict(TEST["text"]))
    assert_allclose(table[names], model.predict_proba(TEST["text"]), atol=1e-6)
    _, out, _ = run("predict model test.csv")
    assert_frame_equal(pd.read_csv(io.StringIO(out)), table)


@pytest.mark.parametrize("labels", [[False, True], [-2.0, 1.0]])
def test_predictions_have_the_type_of_the_labels(labels, run):
    typed = TRAIN.assign(label=np.where(TRAIN["label"] == "billing", *labels))
    typed.index = [0] * len(typed)  # names of rows that say nothing
    typed.to_parquet("typed.parquet")
    assert run("fit typed.parquet -o typed --C 1")[0] == 0
    table = pd.read_csv(io.StringIO(run("predict typed typed.parquet")[1]))
    assert table.columns.tolist()[3:] == [f"probability_{label}" for label in labels]
    assert_array_equal(table["prediction"], load_model("typed").predict(TRAIN["text"]))


@pytest.mark.parametrize("target", [None, "returns"])
@pytest.mark.parametrize("counterfactual", [False, True])
def test_explain(counterfactual, target, run, model):
    def answer(texts):
        if counterfactual:
            return explain(model, texts).counterfactual(to=target)
        return explain(model, texts, target=target)

    options = " --counterfactual" * counterfactual + f" --target {target}" * (target is not None)
    texts = ["the invoice is wrong", "not in the parcel"]
    said = run(f"explain model{options}", "--say", texts[0], "--say", texts[1])
    assert said == (0, f"{answer(texts).to_text()}\n", "")
    assert run(f"explain model test.csv --limit 3{options} -o page") == (0, "", "")
    assert Path("page").read_bytes().decode() == answer(TEST["text"][:3].tolist()).to_html()


def test_colours_reach_a_terminal(run, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True, raising=False)
    code, out, _ = run("explain model --say", TEXTS[0])
    assert code == 0
    assert "\x1b[" in out
    assert "\ufffd" not in out


@pytest.mark.parametrize("name", ["A.CSV", "A.TSV", "A.Jsonl", "parquet.csv"])
def test_a_format_is_known_by_its_name_in_any_case(name, folder):
    texts = pd.DataFrame({"text": ["a good film", "bad"], "label": ["good", "bad"]})
    if name == "A.Jsonl":
        texts.to_json(name, orient="records", lines=True)
    else:
        texts.to_csv(name, index=False, sep="\t" if name == "A.TSV" else ",")
    assert commands.read_table(Path(name)).to_dict() == texts.to_dict()


def test_several_labels(run):
    labels = pd.get_dummies(TRAIN["label"])[["billing", "returns"]].astype(int)
    several = TextClassifier(C=1.0).fit(TRAIN["text"], labels)
    save_model(several, "several")
    table = pd.read_csv(io.StringIO(run("predict several test.csv")[1]))
    assert table["prediction"].tolist() == list(map(str, several.predict(TEST["text"]).tolist()))
    answer = explain(several, ["wrong invoice"], target="billing")
    for options, expected in (("", answer), ("--counterfactual", answer.counterfactual())):
        said = "--target", "billing", "--say", "wrong invoice"
        assert run(f"explain several {options}", *said)[1] == f"{expected.to_text()}\n"


@pytest.mark.usefixtures("one_baseline")
def test_report(run, no_time):
    assert run("report train.csv --test test.csv") == (0, "", "")
    found = Page(Path("report.html").read_text("utf-8"))
    X_train, y_train, X_test, y_test = [*TRAIN.to_numpy().T, *TEST.to_numpy().T]
    page = report(TextClassifier(), X_test, y_test, X_train=X_train, y_train=y_train)
    assert found.title == "Model report: train.csv"
    assert found.rows == Page(page).rows


# Files


@pytest.mark.usefixtures("one_baseline")
@pytest.mark.parametrize(
    "command",
    ["fit train.csv", "predict model test.csv", "explain model test.csv", "report test.csv"],
)
def test_files_are_overwritten_only_by_force(command, run, folder):
    before = contents(folder) | {"out": b"mine"}
    put(folder / "out", "mine")
    said = "sklearn-clsattn: out exists already: pass --force to overwrite it\n"
    assert run(f"{command} -o out") == (2, "", said)
    assert contents(folder) == before
    assert run(f"{command} -o out --force")[0] == 0
    assert contents(folder).keys() == before.keys()
    assert contents(folder)["out"] != b"mine"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [(OSError("disk full"), 2, "disk full"), (KeyboardInterrupt(), 130, "interrupted")],
)
def test_a_failing_command_leaves_files_as_they_were(
    error, code, message, run, folder, monkeypatch
):
    before = contents(folder)
    monkeypatch.setattr(os, "fsync", Mock(side_effect=error))
    said = f"sklearn-clsattn: {message}\n"
    assert run("fit train.csv -o model --force --C 1") == (code, "", said)
    assert contents(folder) == before


# Errors

FILES = {
    "one.csv": "text,label\ngood,a\nbad,a\n",
    "latin.csv": "text,label\ncafé,a\n".encode("latin-1"),
    "semicolons.csv": "text;label\ngood;a\n",
    "unlabelled.csv": "text,label\ngood,a\nbad\n",
    "ragged.csv": "text,label\ngood,a,b\nbad,b\n",
    "missing.jsonl": '{"text": "good", "label": "a"}\n{"text": null, "label": "b"}\n',
}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "COMMAND"),
        ("\x1bnonsense", "invalid choice"),
        ("fit train.csv", "required: -o"),
        ("fit train.csv -o new --C -1", "'C' parameter of TextClassifier must be"),
        ("fit train.csv -o new --label topic", "no column 'topic' among text, label"),
        ("fit train.csv -o new --encoding none", "unknown encoding"),
        ("fit train.csv -o none/new", "not a file in a folder that exists"),
        ("fit none.csv -o new", "No such file"),
        ("fit latin.csv -o new", "latin.csv is not utf-8: choose with --encoding"),
        ("fit semicolons.csv -o new", "choose with --sep"),
        ("fit one.csv -o new", "number of classes"),
        ("fit unlabelled.csv -o new", "row 2 of unlabelled.csv has no label"),
        ("fit ragged.csv -o new", "loss of data"),
        ("fit missing.jsonl -o new", "must be texts, but the one at position 1"),
        ("predict test.csv test.csv", "is not a model"),
        ("predict model predicted.csv", r"columns that predict writes: rename ['prediction'"),
        ("explain model", "DATA --say"),
        ("explain model --say x --target none", "not one of billing, delivery"),
    ],
)
def test_errors_are_one_line(command, message, run, folder):
    for name, content in FILES.items():
        put(folder / name, content)
    TEST.assign(prediction="").to_csv("predicted.csv", index=False)
    before = contents(folder)
    code, out, err = run(command)
    assert (code, out) == (2, "")
    assert err.startswith("sklearn-clsattn: ")
    assert message in err
    assert err.count("\n") == 1
    assert err.rstrip("\n").isprintable()
    assert contents(folder) == before


def test_version(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--version"])
    assert capsys.readouterr().out.startswith("sklearn-clsattn ")


def test_as_a_module(folder):
    """Whose output may end early, as by ``head``."""
    predict = [sys.executable, "-m", "sklearn_clsattn", "predict", "model", "test.csv"]
    with subprocess.Popen(predict, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
