"""Every benchmark runs on tiny data and prints its table, and its arithmetic is right."""

import re
from dataclasses import replace
from functools import cache
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from web_answers import needs_node

import sklearn_clsattn.text
from benchmarks import (
    accuracy_against,
    bench_explanations,
    bench_threads,
    costs,
    defaults,
    devices,
    edited_reviews,
    keywords,
    models,
    peers,
    portable,
    problems,
    processes,
    rare,
    run,
    setfit,
    trusted_words,
)
from benchmarks.problems import sources, splits
from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.training import choose_c

pytestmark = pytest.mark.filterwarnings("ignore")

HERE = str(processes.ROOT)
TITLES = [one.title for one in run.COMPETITORS]
BENCHMARKS = {  # what is run, with which arguments, and the first cells of rows that it prints
    "run": (run.main, ["--fast"], [*TITLES, *run.FROM_TEXTS]),
    "peers": (peers.main, ["--sets", "mood"], list(peers.PEERS)),
    "accuracy": (accuracy_against.main, [HERE, "--seeds", "1", "--C", "1"], ["two", "**mean**"]),
    "threads": (bench_threads.main, ["--rows", "150", "--runs", "1"], ["topic"]),
    "counting": (costs.main, ["counting", "--rows", "40"], list(costs.TASKS)),
    "explaining": (costs.main, ["explaining", "--rows", "4000"], list(costs.CLASSIFIERS)),
    "memory": (costs.main, ["memory", "--rows", "2000"], ["2000"]),
    "keywords": (keywords.main, ["--sets", "topic", "--words", "3"], ["topic | 3", "topic"]),
    "setfit": (setfit.main, [], ["topic 100", "**mean 100**", "100", "50"]),
    "edited": (edited_reviews.main, [], ["both | TextClassifier(), groups"]),
    "trusted": (trusted_words.main, ["--sets", "mood", "--labels", "20"], ["mood | 20"]),
    "devices": (devices.main, ["--documents", "400"], ["400 | 2 | 1.0"]),
    "portable": (
        portable.main,
        ["--rows", "30"],
        ["topic, 4 classes | 32", "topic, 4 classes | 16"],
    ),
    "rare": (rare.main, ["--draws", "1"], list(rare.classifiers())),
    "explanations": (
        bench_explanations.main,
        ["--fast", "--samples", "100"],
        ["generated requests, words"],
    ),
}


@cache
def few_requests(**options):
    return tuple(column[:180] for column in load_requests(**options))


@cache
def few_told():
    """Return one recorded split of few texts."""
    split = next(setfit.recorded_splits(None, None))
    return split._replace(others=split.others[:60], told=split.told[:60])


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Few requests, one set, two values of C, and no processes, which take seconds to start."""
    monkeypatch.setattr(choose_c, "CS", (1.0, 3.0))
    monkeypatch.setattr("sklearn_clsattn.training.fit.SCALES", (1.0,))
    for module in (problems, costs, portable):
        monkeypatch.setattr(module, "load_requests", few_requests)
    for module in (accuracy_against, bench_threads, costs, peers):
        monkeypatch.setattr(module, "in_process", processes.call)
    two = {"two": sources(None, None)["mood"]}
    monkeypatch.setattr(accuracy_against, "sources", lambda *folders: two)
    monkeypatch.setattr(run, "GENERATED", run.GENERATED[:1])
    few = few_told()
    monkeypatch.setattr(setfit, "recorded_splits", lambda *folders: [few])
    monkeypatch.setattr(setfit, "ASKED", (50,))
    monkeypatch.setattr(keywords, "N_LABELS", 50)
    wrong = setfit.wrong
    monkeypatch.setattr(setfit, "wrong", lambda split: islice(wrong(split), 2))
    monkeypatch.setattr(costs, "N_TOKENS", 60)
    monkeypatch.setattr(trusted_words, "DRAWS", {20: 1})
    monkeypatch.setattr(devices, "CASES", [(400, 2)])


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    texts, y = sources(None, None)["mood"]()
    parts = np.where(np.arange(len(y)) % 4 == 0, "test", "train")
    frame = pd.DataFrame({"text": texts, "label": y, "part": parts})
    frame.to_csv(folder / "two.csv.gz", index=False)
    return folder


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=needs_node if name == "portable" else ()) for name in BENCHMARKS],
)
def test_a_benchmark_prints_its_table(name, tmp_path, capsys):
    if name == "explanations":
        # The nightly workflow installs them: their dependencies are large.
        pytest.importorskip("lime", reason="pip install --group explain-bench")
        pytest.importorskip("shap", reason="pip install --group explain-bench")
    main, arguments, rows = BENCHMARKS[name]
    page = tmp_path / "page.md"
    assert main([*arguments, "--output", str(page)]) == 0
    printed = capsys.readouterr().out
    assert page.read_text("utf-8").strip() in printed
    for row in rows:
        assert re.search(rf"^\| {re.escape(row)} \|.*\d", printed, re.M), row


@pytest.mark.long
@pytest.mark.parametrize("name", defaults.QUESTIONS)
def test_every_question_is_answered(name):
    question = defaults.QUESTIONS[name]
    split = next(splits({"two": sources(None, None)["mood"]}, seeds=1, sizes=[None]))
    for title, variant in question.variants.items():
        row = defaults.measure(variant, split, texts=question.texts)
        assert 0.3 < row["accuracy"] <= 1, title


def test_a_run_of_questions_continues_and_writes_a_page(sets, tmp_path, capsys, monkeypatch):
    short = replace(defaults.QUESTIONS["tolerance"], seeds=2)
    monkeypatch.setitem(defaults.QUESTIONS, "tolerance", short)
    arguments = ["tolerance", "--explore", str(sets), "--folder", str(tmp_path / "answers")]
    page = tmp_path / "defaults.md"
    assert defaults.main([*arguments, "--output", str(page)]) == 0
    assert "two None 1" in capsys.readouterr().err
    assert re.search(r"^\| tol=0.01 \|.*\d.*\|$", page.read_text("utf-8"), re.M)
    assert defaults.main(arguments) == 0  # nothing is measured again
    assert capsys.readouterr().err == ""


def test_means_are_over_splits_then_sizes_then_sets():
    variants = {name: defaults.Variant(ClsAttentionClassifier) for name in "ab"}
    rows = [  # set, seed, size, accuracy of a and b, seconds of a and b
        ("x", 0, np.inf, 0.5, 0.6, 2.0, 6.0),
        ("x", 1, np.inf, 0.7, 0.6, 2.0, 2.0),
        ("x", 0, 500.0, 0.4, 0.4, 1.0, 1.0),
        ("y", 0, np.inf, 0.9, 0.8, 1.0, 1.0),
    ]
    names = ["set", "seed", "size", "accuracy", "seconds"]
    of_variants = [
        pd.DataFrame([(*row[:3], row[3 + at], row[5 + at]) for row in rows], columns=names)
        for at in range(2)
    ]
    named = zip(of_variants, "ab", strict=True)
    found = pd.concat([one.assign(variant=name) for one, name in named])
    found = found.assign(log_loss=1 - found["accuracy"], ece=np.nan)
    text = defaults.tables(defaults.Question("q", variants), found)
    assert "| b | 0.6500 | -5.00 ± 5.00 | 0 to 1 | 0.3500 | +0.0500 ± 0.0500 |" in text
    assert "| b | +0.00, +0.0000, 1.00 | -5.00, +0.0500, 1.50 |" in text


def test_older_checkouts_have_a_function_for_the_classifier_of_texts(monkeypatch):
    monkeypatch.setattr(models, "sklearn_clsattn", SimpleNamespace())
    monkeypatch.setattr(sklearn_clsattn.text, "make_text_classifier", dict, raising=False)
    assert models.text_classifier(C=3.0) == {"C": 3.0}


def test_checkouts_are_compared_split_by_split():
    names = ["set", "size", "seed", "accuracy", "log_loss", "seconds"]
    here = [("x", "300", 0, 0.8, 0.5, 2.0), ("x", "300", 1, 0.7, 0.6, 3.0)]
    there = [("x", "300", 1, 0.6, 0.7, 1.0), ("x", "300", 0, 0.8, 0.8, 2.0)]
    tables = [pd.DataFrame(rows, columns=names) for rows in (here, there)]
    (found,) = accuracy_against.differences(*tables).to_numpy().tolist()
    assert found == pytest.approx([5.0, -0.2, 2.0])


def test_the_other_checkout_is_what_is_measured(tmp_path):
    package = tmp_path / "sklearn_clsattn"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('the other one')")
    function = "benchmarks.accuracy_against.measured"
    with pytest.raises(RuntimeError, match="the other one"):
        processes.in_process(function, tmp_path, None, "two", 1, [None], {}, checkout=tmp_path)


def test_splits_read_no_test_documents(sets):
    found = list(splits(sources(sets, None), seeds=2, sizes=[20, 60, 170, None]))
    assert [(split.seed, split.size) for split in found] == [(0, 60), (0, None), (1, 60), (1, None)]
    assert len(found[1].y_train) + len(found[1].y_test) == 180
    assert (found[1].texts_train != found[3].texts_train).any()


def test_the_page_has_a_place_for_the_table():
    row = {"accuracy": 0.93, "fit": 1.0}
    of_texts, of_counts = dict.fromkeys(run.FROM_TEXTS, row), dict.fromkeys(TITLES, row)
    table = run.summary_table([run.Result("IMDB, words", "", of_counts, of_texts, "")])
    assert f"| **{models.OURS}** | **0.9300 (1)** |" in table
    assert run.with_summary(run.MEASURED.read_text("utf-8"), table).count(table) == 1
