"""The script that chose the defaults: its arithmetic, and a run of it on generated documents."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from benchmarks.defaults import run
from benchmarks.defaults.answers import Lines, by_set, differences, relative
from benchmarks.defaults.copies import at_random
from benchmarks.defaults.curve import Curve
from benchmarks.defaults.leave_one_out import LeaveOneOut
from benchmarks.defaults.page import markdown
from benchmarks.defaults.question import Question, fitted
from benchmarks.defaults.sets import sources, splits
from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core import choose_c
from sklearn_clsattn._core.documents import Documents
from sklearn_clsattn._core.path import AttentionPath
from sklearn_clsattn._core.statistics import CorpusStatistics
from sklearn_clsattn.datasets import make_token_classification


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    found = {"two": sources(None, None)["two"]}
    return next(make() for _, make in splits(found, tmp_path_factory.mktemp("sets"), sizes=[None]))


def row(accuracy, seconds):
    return {
        "accuracy": accuracy,
        "log_loss": 1 - accuracy,
        "ece": None,
        "n_iter": 1,
        "seconds": seconds,
    }


QUESTION = Question(
    "q", "A question", "In words.", {"a": "the one", "b": "the other"}, "a", lambda split: {}, "a"
)
ANSWERS = {
    ("x", 0, None): {"a": row(0.5, 2.0), "b": row(0.6, 6.0)},
    ("x", 1, None): {"a": row(0.7, 2.0), "b": row(0.6, 2.0)},
    ("x", 0, 500): {"a": row(0.4, 1.0), "b": row(0.4, 1.0)},
    ("y", 0, None): {"a": row(0.9, 1.0), "b": row(0.8, 1.0)},
    ("y", 1, None): {},
}


def test_means_are_over_splits_then_sizes_then_sets():
    means = by_set(relative(ANSWERS, QUESTION))
    assert means["x"]["a"]["accuracy"] == pytest.approx((0.6 + 0.4) / 2)
    assert means["x"]["b"]["seconds"] == pytest.approx(((3 + 1) / 2 + 1) / 2)
    assert means["x"]["a"]["ece"] is None
    found = differences(means, QUESTION, "accuracy")
    assert found["b"] == pytest.approx({"x": 0.0, "y": -0.1})
    assert list(by_set(ANSWERS, 500)) == ["x"]
    assert differences(means, QUESTION, "ece") == {"a": {}, "b": {}}


def test_the_page_has_a_table_a_question(monkeypatch):
    about = {
        "title": "t",
        "command": "c",
        "date": "d",
        "fast": False,
        "machine": None,
        "changed": {"q": ["a default was 7"]},
    }
    monkeypatch.setattr("benchmarks.defaults.page.summary", lambda machine: "a machine")
    monkeypatch.setattr("benchmarks.defaults.page.warning", lambda machine: [])
    other = Question("unasked", "Another", "Text.", {"a": "one"}, "a", lambda split: {}, "a")
    text = markdown({"q": ANSWERS}, [QUESTION, other], about)
    assert "| the other | 0.6500 | -5.00 ± 5.00 | 0 to 1 | y -10.00 |" in text
    assert "| the other | +0.00, +0.0000, 1.00 | -5.00, +0.0500, 1.50 |" in text
    assert "x 3, y 1." in text
    assert "Measured before a default was changed: a default was 7." in text
    assert text.count("Not measured.") == 1


def test_answers_say_what_has_changed_since(tmp_path, monkeypatch):
    lines = Lines(tmp_path / "answers.jsonl")
    lines.add("q", ("x", 0, None), {"a": row(0.5, 1.0)})
    lines.add("none", ("x", 0, None), {})
    assert lines.read()["q"]["x", 0, None]["a"]["accuracy"] == 0.5
    assert lines.changed() == {}
    monkeypatch.setattr(choose_c, "GUESS_WORTH", -1)
    assert lines.changed() == {"q": ["GUESS_WORTH was 1000"]}


def test_test_parts_are_never_read(tmp_path):
    parts = ["train", "test", "pooled"] * 40
    frame = pd.DataFrame({"text": parts, "label": ["0", "1"] * 60, "part": parts})
    frame.to_csv(tmp_path / "small.csv.gz", index=False)
    texts, labels = sources(tmp_path, None)["small"]()
    assert set(texts) == {"train", "pooled"}
    assert len(labels) == 80


def test_a_split_learns_its_tokens_from_the_training_part(split):
    assert len(split.y_train) == 3 * len(split.y_test)
    assert split.X_train.getnnz(axis=0).min() >= 2
    assert split.X_test.shape[1] == split.X_train.shape[1]


def test_sizes_that_are_no_sizes(tmp_path):
    found = {"two": sources(None, None)["two"]}
    found_splits = splits(found, tmp_path, seeds=2, sizes=[40, 60, 170, None])
    made = {key[1:]: make() for key, make in found_splits}
    assert all((one is None) == (size in (40, 170)) for (_, size), one in made.items())
    assert len(made[0, 60].y_train) == 60
    first, second = (made[seed, None].y_train for seed in (0, 1))
    assert (first != second).any()


def test_the_curve_is_that_of_the_classifier(split):
    curve = Curve(split)
    row = curve.at(1.0)
    expected = fitted(lambda: ClsAttentionClassifier(C=1.0, tol=1e-2), split)
    assert row["log_loss"] == pytest.approx(expected["log_loss"], abs=0.01)
    losses = [curve.at(10.0 ** (exponent / 2))["log_loss"] for exponent in range(-4, 7)]
    assert curve.at(curve.best())["log_loss"] <= min(losses) + 0.01


def test_what_the_package_chooses_is_found_again(split):
    curve = Curve(split)
    C, n_fits, seconds = curve.chosen()
    n, guess = curve.n_different, curve.guess()
    model = ClsAttentionClassifier().fit(split.X_train, split.y_train)
    assert pytest.approx(C ** (n / (n + 1000)) * guess ** (1000 / (n + 1000))) == model.C_
    assert n_fits == model.scores_.size
    assert seconds > 0


def test_random_folds_are_stratified():
    codes = np.repeat([0, 1], [40, 20])
    folds = at_random(np.arange(60), codes, 4)
    assert np.bincount(folds[:40]).tolist() == [10] * 4
    assert np.bincount(folds[40:]).tolist() == [5] * 4


def test_a_fast_run_goes_on_where_it_stopped(tmp_path, capsys):
    arguments = ["--fast", "--folder", str(tmp_path), "--output", str(tmp_path)]
    assert run.main([*arguments, "tolerance", "counts"]) == 0
    answers = Lines(tmp_path / "fast" / "answers.jsonl").read()
    assert set(answers) == {"tolerance", "counts"}
    measured = [key for key, rows in answers["counts"].items() if rows]
    assert sorted(measured) == [(name, seed, None) for name in ("three", "two") for seed in (0, 1)]
    assert "tolerance" in capsys.readouterr().err
    assert run.main([*arguments, "counts"]) == 0
    assert "counts (" not in capsys.readouterr().err
    written = json.loads((tmp_path / "defaults-fast.json").read_text())
    means = written["questions"]["counts"]["all"]["two"]
    assert set(means) == {"raw", "binary", "logarithm", "damped"}
    assert all(0.5 < row["accuracy"] <= 1 for row in means.values())
    assert "| 1 + ln c |" in (tmp_path / "defaults-fast.md").read_text()


@pytest.mark.parametrize(
    "name", ["choice_of_c", "sample", "leave_one_out", "copies", "mean", "baselines"]
)
def test_every_variant_is_measured(split, name):
    question = run.QUESTIONS[name]
    rows = question.measure(split)
    assert set(rows) == set(question.variants)
    assert {question.reference, question.unit} <= set(rows)
    assert all(0.5 < row["accuracy"] <= 1 for row in rows.values())


def test_no_documents_is_one_clear_line(tmp_path, capsys):
    assert run.main(["--folder", str(tmp_path)]) == 2
    assert "name a folder with --explore" in capsys.readouterr().err


@pytest.mark.parametrize("n_classes", [2, 3])
def test_leave_one_out_is_close_to_fits_without_the_document(n_classes):
    X, y = make_token_classification(
        60, n_classes=n_classes, n_irrelevant=60, document_length=20, random_state=0
    )
    X = sp.csr_array(X, dtype=float)

    def fitted_path(weights):
        statistics = CorpusStatistics.of(X, y, n_classes, weights)
        documents = Documents(X, y, weights, statistics)
        path = AttentionPath(documents, documents.bag(np.float64, "cpu"), attention_C=0.03)
        return documents, path, path.fit(1.0, max_iter=3000, tol=1e-8).model

    documents, path, model = fitted_path(np.ones(60))
    groups = documents.groups
    without = np.array(
        [
            fitted_path(np.where(groups == group, 0.0, 1.0))[2].outputs(X[[row]])[0]
            for row, group in enumerate(groups)
        ]
    )
    estimate = LeaveOneOut(documents, path)(path.point, path.problem(path.point)[1])[groups]
    assert np.corrcoef(estimate.ravel(), without.ravel())[0, 1] > 0.98
    error, in_sample = estimate - without, model.outputs(X) - without
    assert np.linalg.norm(error) < 0.4 * np.linalg.norm(in_sample)
