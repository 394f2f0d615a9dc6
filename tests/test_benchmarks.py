"""Every benchmark runs on tiny data and prints its table, and its arithmetic is right."""

import re
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest

from benchmarks import (
    accuracy_against,
    bench_against,
    bench_counting,
    bench_explanations,
    bench_threads,
    bench_tokens,
    few_texts,
    long_texts,
    many_classes,
    peers,
    problems,
    processes,
    report,
    run,
    thousand,
    timing,
    waiting,
)
from benchmarks.command_line import ROOT
from benchmarks.competitors import COMPETITORS, PEERS
from benchmarks.defaults import engine
from benchmarks.defaults.questions import QUESTIONS, Question, Variant
from benchmarks.defaults.sets import sources, splits
from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests

pytestmark = pytest.mark.filterwarnings("ignore")
TINY = problems.Spec("tiny", "a tiny problem", generated={"n_irrelevant": 50, "delta": 0.1})
NONE = ["--reviews", "none"]


def few_requests(**options):
    return tuple(column[:300] for column in load_requests(**options))


@pytest.fixture(autouse=True)
def tiny(tmp_path, monkeypatch):
    monkeypatch.setattr(problems, "GENERATED", (TINY,))
    monkeypatch.setattr(problems, "FAST_ROWS", 150)
    monkeypatch.setattr(problems, "SHORT", TINY)
    load = problems.load
    monkeypatch.setattr(
        problems,
        "load",
        lambda *what, n_rows=150, cache=tmp_path: load(*what, n_rows=n_rows, cache=tmp_path),
    )
    for module in (timing, few_texts, waiting):
        monkeypatch.setattr(module, "load_requests", few_requests)
    monkeypatch.setattr(waiting, "of_process", lambda *arguments: 1.0)
    monkeypatch.setattr(thousand, "N_DRAWS", 1)
    monkeypatch.setattr(thousand, "N_TRAINING", 100)
    for name in IN_PROCESSES:  # which take seconds to start
        module = sys.modules[BENCHMARKS[name][0].__module__]
        monkeypatch.setattr(module, "in_process", processes.call)
    monkeypatch.setattr(bench_against, "in_a_process", cache(bench_against.in_a_process))
    return tmp_path


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    texts, y = sources(None, None)["two"]()
    parts = np.where(np.arange(len(y)) % 4 == 0, "test", "train")
    frame = pd.DataFrame({"text": texts, "label": y, "part": parts})
    frame.to_csv(folder / "two.csv.gz", index=False)
    return folder


def titles(names):
    return [re.escape(name) for name in names]


BENCHMARKS = {  # what is run, with which arguments, and the first cells of rows that it prints
    "run": (run.main, ["--fast", *NONE], titles(one.title for one in COMPETITORS.values())),
    "peers": (peers.main, ["--sets", "mood", *NONE], titles(list(PEERS)[:3])),
    "classes": (many_classes.main, ["--classes", "3", "--tokens", "60"], ["3"]),
    "few texts": (few_texts.main, ["--labels", "100", "--runs", "1"], ["100", "234"]),
    "waiting": (waiting.main, ["--rows", "100"], ["fit of 100 texts", "import torch"]),
    "accuracy": (accuracy_against.main, [str(ROOT), "--seeds", "1"], ["all"]),
    "long texts": (long_texts.main, ["--lengths", "300"], list(long_texts.KINDS.values())),
    "thousand": (thousand.main, NONE, titles([thousand.OURS, thousand.TFIDF])),
    "against": (bench_against.main, [str(ROOT), *NONE, "--pairs", "1", "--rows", "150"], []),
    "counts": (
        bench_counting.main,
        [*NONE, "--rows", "40", "--runs", "1"],
        titles(bench_counting.TASKS),
    ),
    "threads": (
        bench_threads.main,
        [*NONE, "--rows", "150", "--runs", "1"],
        ["tiny"],
    ),
    "tokens": (bench_tokens.main, [*NONE, "--rows", "40"], ["here", "re.findall"]),
    "explanations": (
        bench_explanations.main,
        ["--fast", *NONE, "--samples", "100"],
        ["a tiny problem"],
    ),
}
IN_PROCESSES = "memory", "peers", "classes", "long texts", "counts", "threads", "tokens"
IN_PROCESSES += "few texts", "accuracy"
WRITING = ("run", "peers", "thousand", "counts", "explanations")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_prints_its_table(name, tiny, capsys):
    if name == "explanations":
        # The nightly workflow installs them: their dependencies are large.
        pytest.importorskip("lime", reason="pip install --group explain-bench")
        pytest.importorskip("shap", reason="pip install --group explain-bench")
    main, arguments, rows = BENCHMARKS[name]
    if name in WRITING:
        arguments = [*arguments, "--output", str(tiny)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    for row in rows:
        assert re.search(rf"^\| ({row}) \|.*\d", printed, re.M), row
    if name == "against":  # the same checkout twice
        for value in bench_against.VALUES:
            lines = re.findall(rf"^\| {value} \| (.+) \| \1 \|", printed, re.M)
            assert len(lines) == len(problems.GENERATED)


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_is_answered(name, sets):
    readers = {"two": sources(sets, None)["two"]}
    split = next(iter(splits(readers, seeds=1, sizes=[30 if name == "few" else None])))
    for title, variant in QUESTIONS[name].variants.items():
        row = engine.measure(variant, split, texts=QUESTIONS[name].texts)
        assert 0.3 < row["accuracy"] <= 1, title


def test_a_run_of_questions_continues_and_writes_a_page(sets, tiny, capsys):
    arguments = ["tolerance", "--explore", str(sets), "--folder", str(tiny / "answers")]
    page = tiny / "defaults.md"
    assert engine.main([*arguments, "--output", str(page)]) == 0
    assert "two None 0" in capsys.readouterr().err
    assert re.search(r"^\| tol=0.01 \|.*\d.*\|$", page.read_text(), re.M)
    assert engine.main(arguments) == 0  # nothing is measured again
    assert capsys.readouterr().err == ""


def test_means_are_over_splits_then_sizes_then_sets():
    question = Question("q", {name: Variant(ClsAttentionClassifier) for name in "ab"})
    rows = [  # set, seed, size, accuracy of a and b, seconds of a and b
        ("x", 0, np.inf, 0.5, 0.6, 2.0, 6.0),
        ("x", 1, np.inf, 0.7, 0.6, 2.0, 2.0),
        ("x", 0, 500.0, 0.4, 0.4, 1.0, 1.0),
        ("y", 0, np.inf, 0.9, 0.8, 1.0, 1.0),
    ]
    names = ["set", "seed", "size", "accuracy", "seconds"]
    variants = [
        pd.DataFrame([(*row[:3], row[3 + at], row[5 + at]) for row in rows], columns=names)
        for at in range(2)
    ]
    found = pd.concat([one.assign(variant=name) for one, name in zip(variants, "ab", strict=True)])
    text = engine.tables(question, found.assign(log_loss=1 - found["accuracy"], ece=np.nan))
    assert "| b | 0.6500 | -5.00 ± 5.00 | 0 to 1 | 0.3500 | +0.0500 ± 0.0500 |" in text
    assert "| b | +0.00, +0.0000, 1.00 | -5.00, +0.0500, 1.50 |" in text


def test_checkouts_are_compared_split_by_split():
    names = ["set", "size", "seed", "accuracy", "log_loss", "seconds"]
    here = [("x", "300", 0, 0.8, 0.5, 2.0), ("x", "300", 1, 0.7, 0.6, 3.0)]
    there = [("x", "300", 1, 0.6, 0.7, 1.0), ("x", "300", 0, 0.8, 0.8, 2.0)]
    tables = [pd.DataFrame(rows, columns=names) for rows in (here, there)]
    (found,) = accuracy_against.differences(*tables).to_numpy().tolist()
    assert found == pytest.approx([5.0, -0.2, 2.0])


def test_splits_read_no_test_documents(sets):
    found = list(splits(sources(sets, None), seeds=2, sizes=[20, 60, 170, None]))
    assert [(split.seed, split.size) for split in found] == [(0, 60), (0, None), (1, 60), (1, None)]
    assert len(found[1].y_train) + len(found[1].y_test) == 180
    assert (found[1].texts_train != found[3].texts_train).any()


def test_the_other_checkout_is_what_is_measured(tmp_path):
    package = tmp_path / "sklearn_clsattn"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('the other one')")
    with pytest.raises(RuntimeError, match="the other one"):
        bench_against.in_a_process(tmp_path, tmp_path / "none.npz")


def test_pages_have_every_target_and_the_place_of_the_table():
    assert report.with_summary(run.README.read_text("utf-8"), "THE TABLE").count("THE TABLE") == 1
    row = {"value": None, "accuracy": 0.93, "log_loss": 0.2, "ece": 0.01, "memory": 1.0}
    row |= {f"{what}_seconds": 1.0 for what in ("fit", "predict", "request")}
    entry = {"title": "t", "size": "s", "competitors": dict.fromkeys(COMPETITORS, row)}
    raw = ("ours", "front_end", "logistic_counts", *report.SUMMARY)
    few = {"n_labels": 100, "alone": 0.7, "unlabeled": 0.84, "seconds": 9.0}
    texts = {**entry, "competitors": dict.fromkeys(raw, row), "few": few}
    results = {
        "command": "python -m benchmarks.run --reviews FOLDER",
        "fast": False,
        "machine": run.machine.describe(),
        "problems": {"imdb_bigrams": entry},
        "from_text": {"imdb_bigrams": texts},
        "short_fit": (0.1, 0.1),
        "small_texts": {"ours": 3.0, "linear": 1.0, "explained": 1.5},
    }
    page = report.markdown(results)
    assert "| **TextClassifier()** | **0.9300 (1)** |" in report.summary_table(results)
    assert "| fit, C chosen | at most 1 x LinearSVC | imdb_bigrams 1.00 | met |" in page
    assert "| fit, C given | at most 0.7 x LinearSVC | imdb_bigrams 1.00 | **missed** |" in page
