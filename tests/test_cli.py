"""The command line: what it prints, what it writes, and how it refuses."""

import csv
import errno
import io
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import joblib
import numpy as np
import pandas as pd
import pytest
from helpers import put
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_clsattn import TextClassifier, comparison
from sklearn_clsattn.cli import commands, main
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.saving import load_model

POSIX = pytest.mark.skipif(os.name != "posix", reason="a POSIX system is needed")


@pytest.fixture(scope="module")
def frame():
    texts, y = make_token_classification(
        n_samples=160, n_irrelevant=50, as_text=True, random_state=0
    )
    return pd.DataFrame({"text": texts, "label": y})


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
        assert (code, out) == (2, "")
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
    few = [models[0], models[4], models[-1]]
    monkeypatch.setattr(comparison, "default_models", lambda *_: few)


def fewer_generated(**parameters):
    return make_token_classification(**{**parameters, "n_samples": 200})


# compare and report


def test_compare_prints_a_table_and_tokens(data, run):
    code, out, err = run("compare", data)
    assert code == 0
    assert "20% of the texts, drawn at random (seed 0), are the test set." in out
    for model in comparison.default_models():
        mark = "> " if model.kind == "ours" else "  "
        assert re.search(rf"^{mark}{re.escape(model.name)}( +(\d\.\d{{3,4}}\*?|-))+", out, re.M)
    for said in ("Most important", "Most selected"):
        assert said in out
    assert re.search(r"majority class +0\.50", out)  # the test set has a half of each class
    assert len(err.splitlines()) == len(comparison.default_models())


def test_compare_measures_on_a_test_file(frame, data, tmp_path, run, few_models):
    test = tmp_path / "test.jsonl"
    frame[:40].to_json(test, orient="records", lines=True)
    code, out, err = run("compare", data, "--test", test, "--min-df", 1, "--quiet")
    assert (code, err) == (0, "")
    assert f"Test set: {test}." in out
    assert "160 training texts, 40 test texts" in out
    assert "40 distinct test texts are also in the training set" in out


def test_without_a_file_reviews_are_generated(run, few_models, tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "make_token_classification", fewer_generated)
    code, out, err = run("compare", "--quiet")
    assert (code, err) == (0, "")
    assert out.startswith("200 generated reviews")
    assert "  negative: " in out
    monkeypatch.chdir(tmp_path)
    assert run("report", "--quiet") == (0, "", "")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "200 generated reviews" in page
    assert "<title>Model report</title>" in page


def test_report_writes_a_page(data, tmp_path, run, few_models):
    page = tmp_path / "page.html"
    argv = ["report", data, "-o", page]
    code, out, err = run(*argv)
    assert (code, out) == (0, "")
    assert "accuracy on 32 test texts: ClsAttentionClassifier " in err
    assert re.search(r"page\.html: [\d.]+ [KM]B\n$", err)
    html = page.read_text("utf-8")
    assert "<title>Model report: reviews.csv</title>" in html
    assert " ".join(map(str, ["sklearn-clsattn", *argv])) in html


# fit and predict


def test_texts_without_labels(frame, data, tmp_path, run, refused):
    where = "-o", tmp_path / "m.skops", "--unlabeled", tmp_path / "none.txt"
    assert "none.txt; expected a file of texts\n" in refused("fit", data, *where)
    lines = put(tmp_path / "more.txt", "\n\n".join(frame["text"]) + "\n")
    for more in (lines, data):
        out = run("fit", data, "--unlabeled", more, "-o", tmp_path / "m.skops", "--force")[1]
        assert re.search(
            rf"unlabeled +{len(frame):,} of .*: vectors of \d+ words, scale", " ".join(out.split())
        )
        assert re.search(r"1: .*\w+ \(near \w+, \w+, \w+\)", out)
        assert out.count("(near ") == 2 * 4  # words of each class
    assert run("predict", tmp_path / "m.skops", lines)[1].count("\n") == len(frame) + 1
    assert load_model(tmp_path / "m.skops")[0].word_vectors_ is not None


def test_pairs_of_words_have_no_nearest_words(tmp_path, run):
    rows = "so good film,1\nnot good film,0\nso bad film,0\nnot bad film,1\n" * 5
    data = put(tmp_path / "pairs.csv", f"text,label\n{rows}")
    code, out, _ = run("fit", data, "--unlabeled", data, "-o", tmp_path / "m", "--min-df", 1)
    assert code == 0
    assert re.search(r"^  class 0: .*not good", out, re.M)
    assert "not good (near" not in out


def test_options_of_columns_are_not_those_of_a_text_file(frame, tmp_path, run):
    data = tmp_path / "reviews.csv"
    frame.rename(columns={"text": "words"}).to_csv(data, index=False, sep="\t")
    lines = put(tmp_path / "more.txt", "\n".join(frame["text"]))
    options = "--unlabeled", lines, "--text", "words", "--sep", r"\t", "--C", 1
    code, out, _ = run("fit", data, "-o", tmp_path / "m.joblib", *options)
    assert code == 0
    assert f"unlabeled  {len(frame):,} of" in out


def test_of_many_classes_the_first_are_listed(tmp_path, run):
    rows = [f"word{i} text,c{i:02}\n" for i in range(21)] * 2  # too many of fewer rows
    data = put(tmp_path / "many.csv", "text,label\n" + "".join(rows))
    out = run("fit", data, "-o", tmp_path / "m.joblib", "--C", 1, "--min-df", 1)[1]
    assert "c06 (2), c07 (2) and 13 more (column 'label')" in " ".join(out.split())


def test_without_important_tokens_none_are_listed(tmp_path, run):
    data = put(tmp_path / "same.csv", "text,label\n" + "film,1\nfilm,0\n" * 9)
    out = run("fit", data, "-o", tmp_path / "m.joblib", "--C", 1, "--min-df", 1)[1]
    assert "Most important" not in out
    assert "Most selected" in out


def test_of_equal_labelled_texts_no_agreement_is_told(tmp_path, run):
    data = put(tmp_path / "same.csv", "text,label\n" + "film,1\nfilm,0\n" * 9)
    told = put(tmp_path / "told.csv", "text,p,q\ngood film,0.9,0.1\nbad film,0.2,0.8\n")
    more = "--unlabeled", told, "--teacher-columns", "1=p,0=q"
    code, out, _ = run("fit", data, *more, "-o", tmp_path / "m.joblib", "--min-df", 1)
    assert code == 0
    assert "teacher" in out
    assert "says the same" not in out
    assert "nan" not in out


def test_probabilities_of_another_model(frame, data, tmp_path, run, refused):
    """In columns with the classes' names, or given as CLASS=COLUMN; the saved model tells of it."""
    labels = frame["label"].astype(str)
    first, second = sorted(set(labels))
    told = pd.DataFrame({"text": frame["text"], first: np.where(labels == first, 0.9, 0.1)})
    told["p"] = 1 - told[first]
    told.to_csv(tmp_path / "told.csv", index=False)
    more = "--unlabeled", tmp_path / "told.csv", "--teacher-columns"
    where = "-o", tmp_path / "m.skops", "--force"
    out = " ".join(run("fit", data, *more, f"{first},{second}=p", *where)[1].split())
    assert re.search(r"teacher weight [\d.]+.*says the same on \d+ % of texts held out", out)
    model = load_model(tmp_path / "m.skops")
    assert model.taught_by_ == f"probabilities, {len(frame):,} texts"
    told_wrong = run("fit", data, *more, f"{first}=p,{second}={first}", *where)[1]
    assert "teacher weight 0 (not used);" in " ".join(told_wrong.split())
    assert "do not include the labels" in refused("fit", data, *more, first, *where)
    assert "has no column 'q'" in refused("fit", data, *more, f"{first},{second}=q", *where)
    assert "expected a probability" in refused("fit", data, *more, f"{first},{second}=text", *where)
    assert "pass it as --unlabeled" in refused("fit", data, "--teacher-columns", first, *where)


@pytest.mark.parametrize(
    ("name", "encoding", "form"), [("a.csv.gz", "utf-8", None), ("a.csv", "utf-16", "NFC")]
)
def test_round_trip(frame, tmp_path, run, name, encoding, form):
    data, model = tmp_path / name, tmp_path / "model.joblib"
    frame.to_csv(data, index=False, encoding=encoding)
    options = "--C", 1, "--min-df", 2, "--normalize", form or "none"
    code, _, err = run("fit", data, "-o", model, *options, "--encoding", encoding)
    assert (code, err) == (0, "fitting\n")
    predictions = tmp_path / "predictions.csv"
    said = run("predict", model, data, "-o", predictions, "--encoding", encoding)
    assert said == (0, "", "")
    read = pd.read_csv(predictions)
    pipeline, texts = joblib.load(model), frame["text"].to_numpy()
    assert str(pipeline) == str(TextClassifier(C=1.0, min_df=2, normalize=form))
    assert read.columns.tolist() == [*frame, "prediction", "probability_0", "probability_1"]
    np.testing.assert_array_equal(read["prediction"], pipeline.predict(texts))
    np.testing.assert_allclose(read.iloc[:, -2:], pipeline.predict_proba(texts), rtol=1e-5)


def test_standard_input(frame, data, model, run, monkeypatch):
    content = frame.to_parquet(index=False)

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


@pytest.mark.parametrize("labels", [[False, True], [-2.0, 1.0], [-0.5, 1.5], ["très bien", "weak"]])
def test_predictions_keep_the_type_of_labels(frame, tmp_path, run, labels):
    data, model = tmp_path / "typed.parquet", tmp_path / "model.joblib"
    frame.assign(label=np.array(labels)[frame["label"]]).to_parquet(data)
    assert run("fit", data, "-o", model, "--C", 1, "--quiet")[0] == 0
    code, out, err = run("predict", model, data)
    assert (code, err) == (0, "")
    read = pd.read_csv(io.StringIO(out))
    assert read.columns.tolist()[2:] == ["prediction", *(f"probability_{y}" for y in labels)]
    assert set(read["prediction"]) == set(labels)


def test_what_utf_8_cannot_encode_is_escaped(model, tmp_path, run):
    data = put(tmp_path / "half.jsonl", r'{"text": "half a pair \ud83d"}')
    assert run("predict", model, data, "-o", tmp_path / "out.csv") == (0, "", "")
    assert cells(tmp_path / "out.csv")[1][0] == r"half a pair \ud83d"


def test_missing_cells_stay_empty(model, tmp_path, run):
    data = tmp_path / "missing.parquet"
    pd.DataFrame({"text": ["good", "bad"], "stars": [None, 1], "by": ["me", None]}).to_parquet(data)
    lines = run("predict", model, data)[1].splitlines()
    assert [line.split(",")[:3] for line in lines[1:]] == [["good", "", "me"], ["bad", "1.0", ""]]


def test_predictions_of_several_labels(frame, data, tmp_path, run):
    often = np.arange(len(frame)) % 4 > 0  # of which texts say nothing
    labels = np.stack([frame["label"], often], axis=1)
    pipeline = TextClassifier(C=1.0).fit(frame["text"], labels)
    joblib.dump(pipeline, tmp_path / "several.joblib")
    read = pd.read_csv(io.StringIO(run("predict", tmp_path / "several.joblib", data)[1]))
    assert read["prediction"].tolist() == list(map(str, pipeline.predict(frame["text"]).tolist()))


@pytest.mark.parametrize(
    "argv", ["fit DATA", "predict MODEL DATA", "explain MODEL DATA", "report DATA --quiet"]
)
def test_files_are_overwritten_only_by_force(argv, data, model, tmp_path, run, refused, few_models):
    given = {"DATA": data, "MODEL": model, "OUT": put(tmp_path / "out", "mine")}
    words = [given.get(word, word) for word in f"{argv} -o OUT".split()]
    assert "out exists already; pass --force to overwrite it" in refused(*words)
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
        ["id", "words", "price", "note", "code"],
        ["007", "so good", "1.50", "", "007"],
        ["-ab", 'a "bad"\r\nfilm, really', "NA", "=1+1", "1.50"],
        ["9007199254740993", "a carriage\rreturn 🎬", "1e3", " x ", "1e3"],
    ]
    data, out = tmp_path / "new.csv", tmp_path / "out.csv"
    with data.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";", quoting=csv.QUOTE_ALL).writerows(rows)
    assert run("predict", model, data, "-o", out, "--text", "words") == (0, "", "")
    heading, *found = cells(out)
    assert heading == [*rows[0], "prediction", "probability_0", "probability_1"]
    assert [row[:5] for row in found] == rows[1:]
    texts = [row[1] for row in rows[1:]]
    assert [row[5] for row in found] == [str(y) for y in joblib.load(model).predict(texts)]
    assert "already has a column 'prediction'" in refused("predict", model, out, "--text", "words")


# explain


def test_explain_shows_what_the_library_says(frame, model, tmp_path, run):
    text, pipeline = frame["text"][0], joblib.load(model)
    explanation = explain(pipeline, [text])
    words, tokens = (explanation.counterfactual(unit) for unit in ("words", "tokens"))
    target = 1 - explanation.predicted[0]
    other = explain(pipeline, [text], target=target)
    said = ("explain", model, "--say", text)
    for options, expected in (
        ((), explanation.to_text(top=8)),
        (("--target", target), other.to_text(top=8)),
        (("--counterfactual",), words.to_text(top=8)),
        (("--counterfactual", "tokens"), tokens.to_text(top=8)),
        (("--target", target, "--counterfactual"), words.to_text(top=8)),
    ):
        assert run(*said, *options, "-o", "-") == (0, expected + "\n", "")
    page = tmp_path / "page.html"
    code, out, err = run(*said, "-o", page)
    assert (code, out) == (0, "")
    assert re.search(r"page\.html: [\d.]+ [KM]B\n$", err)
    assert page.read_text("utf-8") == explanation.to_html(top=8)


def test_explain_shows_the_first_texts_of_a_file(data, model, run):
    out, err = run("explain", model, data, "--limit", 2)[1:]
    assert out.count("Document") == 2
    assert err == "The first 2 of 160 texts; --limit N explains more.\n"
    said = "--say", "good", "--say", "bad"
    out, err = run("explain", model, *said, "--limit", 1)[1:]
    assert out.count("Document") == 2  # all that are said
    assert err == ""


def test_explain_shows_one_of_several_labels(frame, tmp_path, run):
    labels = np.stack([frame["label"], 1 - frame["label"]], axis=1)
    pipeline = TextClassifier(C=1.0).fit(frame["text"], labels)
    joblib.dump(pipeline, tmp_path / "several.joblib")
    text = frame["text"][0]
    said = ("explain", tmp_path / "several.joblib", "--say", text, "--target", "1")
    explanation = explain(pipeline, [text], target=1)
    assert run(*said) == (0, explanation.to_text() + "\n", "")
    expected = explanation.counterfactual("words").to_text(top=8)
    assert run(*said, "--counterfactual") == (0, expected + "\n", "")


def test_explain_shows_one_of_three_classes(tmp_path, run):
    texts, y = make_token_classification(
        n_samples=90, n_classes=3, n_irrelevant=20, as_text=True, random_state=0
    )
    pipeline = TextClassifier(C=1.0).fit(texts, y)
    joblib.dump(pipeline, tmp_path / "three.joblib")
    said = ("explain", tmp_path / "three.joblib", "--say", texts[0])
    explanation = explain(pipeline, texts[:1])
    for target in {0, 1, 2} - {explanation.predicted[0]}:
        asked = (*said, "--target", target)
        assert run(*asked) == (0, explanation.to_text(target=target) + "\n", "")
        answer = explanation.counterfactual("words", to=target)
        assert run(*asked, "--counterfactual") == (0, answer.to_text() + "\n", "")


# What is refused

DIFFERENT = "text,label\n" + "".join(f"good,{i % 21}\n" for i in range(41))
RARE = "text,label\n" + "".join(f"a{i},{i % 2}\n" for i in range(20))


@pytest.mark.parametrize("command", ["compare", "fit"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,label\ngood,1\nbad,1\n", "are 1; expected two classes"),
        ("text,other\na,1\n", "choose one with --label"),
        ("text^label\na, b^1\n", r"separator with --sep$"),
        (b"text,label\n\xff\xfe,1\n", "--encoding latin-1"),
        (DIFFERENT, "21 different labels in 41 rows"),
        (RARE, "--min-df"),
        ("text,label\ngood,1\nbad,0\nbad,0\n", "cannot hold out|--min-df"),
    ],
)
def test_bad_files(content, message, command, tmp_path, refused):
    path = put(tmp_path / "a.csv", content)
    output = ["-o", tmp_path / "model"] if command == "fit" else []
    assert re.search(message, refused(command, path, *output, "--min-df", "3", "--quiet"))


def test_bad_arguments(data, model, tmp_path, refused):
    for argv, message in [
        ("", "COMMAND"),
        ("nonsense", "invalid choice"),
        ("compare --nonsense", "unrecognized arguments: --nonsense"),
        ("compare --qui", "unrecognized arguments: --qui"),
        ("compare text=good.csv", "no file text=good.csv; expected a file of texts\n"),
        ("compare --min-df many", 'a whole number above 0 or "auto", got'),
        ("compare --test DATA", "--test needs a file"),
        ("compare DATA --test gone.csv", "no file gone.csv; expected a file of texts\n"),
        ("compare DATA --label gone", "no column 'gone'; its columns are 'text', 'label': choose"),
        ("compare DATA --encoding gone", "Python encoding"),
        ("report DATA -o nowhere/OUT", "no folder"),
        ("fit DATA", "-o"),
        ("fit DATA -o m --C nan", "expected a number above 0"),
        ("fit DATA -o m --C inf", "expected a number above 0"),
        ("fit DATA -o m --normalize NFD", "invalid choice: 'NFD'"),
        ("fit DATA -o .", "is a folder"),
        ("fit DATA -o DATA --force", "also an input"),
        ("predict MODEL", "DATA"),
        ("predict gone DATA", "no file gone"),
        ("predict DATA DATA", "is not a model"),
        ("predict MODEL DATA --text gone", "has no column 'gone'"),
        ("predict MODEL DATA -o MODEL", "also an input"),
        ("explain MODEL", "either a file DATA or --say TEXT"),
        ("explain MODEL DATA --say x", "either a file DATA or --say TEXT"),
        ("explain MODEL --say x --sep ;", "--sep needs a file"),
        ("explain MODEL --say x --text words", "--text needs a file"),
        ("explain MODEL DATA --limit auto", "expected a whole number above 0, got"),
        ("explain MODEL --say x --target 2", "classes, 0, 1; got '2'"),
        ("explain MODEL --say x --counterfactual y", "invalid choice"),
        ("report --text words -o OUT", "--text needs a file"),
    ]:
        given = {"MODEL": model, "DATA": data, "OUT": tmp_path / "out.html"}
        assert message in refused(*(given.get(word, word) for word in argv.split()))


def test_no_test_set(data, tmp_path, refused):
    path = put(tmp_path / "few.csv", "text,label\n" + "good,a\n" * 9 + "good,b\n")
    assert "smallest, b, has 1" in refused("compare", path)
    put(path, "text,label\n" + "x,a\nx,b\nx,c\nx,d\nx,e\n" * 2)
    assert "all 5 classes" in refused("compare", path)
    put(path, "review,label\ngood,1\nbad,0\n")
    assert "has no column 'text'" in refused("compare", data, "--test", path)


def test_no_model_of_texts(data, tmp_path, refused):
    path = put(tmp_path / "other", pickle.dumps({"a": 1}))
    assert "contains a dict" in refused("predict", path, data)
    joblib.dump(TextClassifier(), path)
    assert "clsattn: This TextClassifier instance is not fitted" in refused("predict", path, data)
    X, y = np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]
    joblib.dump(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), path)
    assert "does not take texts" in refused("predict", path, data)
    other = make_pipeline(CountVectorizer(), LogisticRegression()).fit(["so good", "bad"], [0, 1])
    joblib.dump(other, path)
    assert "cannot be explained" in refused("explain", path, "--say", "good")


# Files


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(errno.ENOSPC, "disk full"), 2, "out: disk full\n"),  # named, as it names no file
        (OSError("disk full"), 2, "disk full\n"),
        (KeyboardInterrupt(), 130, "sklearn-clsattn: interrupted\n"),
    ],
)
def test_failure_leaves_no_file(error, code, message, data, tmp_path, run, monkeypatch):
    out = put(tmp_path / "out", "before")
    monkeypatch.setattr(os, "fsync", Mock(side_effect=error))
    found, _, err = run("fit", data, "-o", out, "--force", "--quiet", "--C", 1)
    assert found == code
    assert err.endswith(message)
    assert out.read_text() == "before"
    assert sorted(tmp_path.iterdir()) == [out, data]


def test_a_file_that_may_not_be_written_is_known_before_the_work(
    data, tmp_path, refused, monkeypatch
):
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "m: permission denied" in refused("fit", data, "-o", tmp_path / "m")


def test_sizes_of_files():
    sizes = [commands.shown_size(n_bytes) for n_bytes in (1_499, 99_499, 100_000, 2_340_000)]
    assert sizes == ["1 KB", "99 KB", "0.1 MB", "2.3 MB"]


# Terminals and spreadsheets

TITLE = "\x1b]0;owned\x07"  # sets a terminal's title
LABELS = [f"{TITLE}good", "=HYPERLINK(bad)"]


@pytest.fixture
def folder(tmp_path):
    """Return a folder whose name, labels and texts are hostile; it has data.csv and its model."""
    folder = tmp_path / f"{TITLE}folder"
    folder.mkdir()
    texts = [f"a good film {TITLE}", "a bad film"] * 10
    frame = pd.DataFrame({"text": texts, "label": LABELS * 10})
    frame.to_csv(folder / "data.csv", index=False)
    assert main(["fit", str(folder / "data.csv"), "-o", str(folder / "model"), "--quiet"]) == 0
    return folder


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        ("fit {f}/data.csv -o {f}/other", 0),
        ("fit {f}/data.csv -o {f}/model", 2),
        ("compare {f}/data.csv", 0),
        ("predict {f}/model {f}/none.csv", 2),
        ("explain {f}/model {f}/data.csv --limit 2", 0),
        ("explain {f}/model {f}/data.csv --limit 2 -o {f}/page.html", 0),
        ("explain {f}/model --say {t} --target {t}", 2),
        ("report {f}/data.csv -o {f}/report.html", 0),
        ("{t}", 2),
    ],
)
def test_no_escape_reaches_the_terminal(argv, code, folder, run, few_models):
    words = [word.format(f=folder, t=TITLE) for word in argv.split()]
    found, out, err = run(*words)
    assert found == code
    assert not set(out + err) & {"\x1b", "\x07"}
    assert "owned" in out + err


def test_predictions_have_no_formulas_and_on_a_terminal_no_escapes(folder, run, monkeypatch):
    out, argv = folder / "out.csv", ["predict", folder / "model", folder / "data.csv"]
    assert run(*argv, "-o", out)[0] == 0
    assert TITLE in run(*argv)[1]  # what is not a terminal has the labels
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert "\x1b" not in run(*argv)[1]
    rows = cells(out)[1:]
    assert {row[2] for row in rows} == {LABELS[0], "'" + LABELS[1]}
    assert {row[1] for row in rows} == set(LABELS)  # the file's own


# Signals and streams


def test_any_standard_output(model, capsys, monkeypatch):
    """One that cannot encode a text, one that has no encoding, and none."""
    said = ["explain", str(model), "--say", "très good"]
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(said) == 0
    assert rb"tr\xe8s" in stream.buffer.getvalue()
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert main(said) == 0
    assert "très" in sys.stdout.getvalue()
    monkeypatch.setattr(sys, "stdout", None)
    assert main(said) == 2
    assert "standard output is closed" in capsys.readouterr().err


def test_a_tilde_is_the_home_folder(model, data, run, monkeypatch):
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(data.parent))
    assert run("predict", model, "~/reviews.csv") == run("predict", model, data)


def test_broken_pipe_is_quiet(model, tmp_path):
    code = """
import os, sys
from sklearn_clsattn.cli import main
read, write = os.pipe()
os.close(read)
os.dup2(write, 1)
sys.exit(main(sys.argv[1:]))
"""
    one = put(tmp_path / "one.txt", "good\n")  # less than a buffer holds
    command = [sys.executable, "-c", code, "predict", model, one]
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=buffered)
    assert (done.returncode, done.stderr) == (141, "")


@POSIX
def test_termination_leaves_nothing(data, tmp_path):
    code = """
import os, sys, time
from sklearn_clsattn.cli import main
def fsync(file):
    print("writing", flush=True)
    time.sleep(60)
os.fsync = fsync
sys.exit(main(sys.argv[1:]))
"""
    argv = [sys.executable, "-c", code, "fit", data, "-o", tmp_path / "out", "--quiet"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"writing\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    assert list(tmp_path.iterdir()) == [data]
