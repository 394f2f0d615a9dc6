"""Which questions, on which sets, and where the answers go.

Answers are appended to a file as they come, so that a run that was interrupted goes on where it
stopped; the page is written of all that there are. Delete the folder to start afresh.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from benchmarks import machine

from . import baselines, choice_of_c, copies, counts, few, leave_one_out, mean, sample, tolerance
from .answers import Lines
from .page import as_json, markdown
from .question import Question
from .sets import Source, sources, splits

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS: dict[str, Question] = {
    module.QUESTION.name: module.QUESTION
    for module in (
        few,
        choice_of_c,
        sample,
        leave_one_out,
        copies,
        tolerance,
        baselines,
        counts,
        mean,
    )
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    torch.set_num_threads(1)  # processor time is compared
    if options.fast:
        found, seeds = sources(None, None), 2
    else:
        found, seeds = sources(options.explore, options.reviews), None
        if options.explore is None and options.reviews is None:
            _say("no documents: name a folder with --explore, or try --fast")
            return 2
    folder = options.folder / ("fast" if options.fast else "sets")
    lines = Lines(folder / "answers.jsonl")
    ends = time.monotonic() + 60 * options.minutes
    asked = [QUESTIONS[name] for name in options.questions or QUESTIONS]
    for question in asked:
        ask(question, found, lines, folder, seeds=seeds, ends=ends)
    write(lines, asked, options.output, page=options.page, fast=options.fast)
    return 0


def ask(
    question: Question,
    found: dict[str, Source],
    lines: Lines,
    folder: Path,
    *,
    seeds: int | None = None,
    ends: float = float("inf"),
) -> None:
    """Measure a question on every split that is not yet measured, until it is `ends`."""
    known = lines.read().get(question.name, {})
    seeds = question.seeds if seeds is None else min(seeds, question.seeds)
    for key, make in splits(found, folder, seeds=seeds, sizes=question.sizes):
        if key in known:
            continue
        if time.monotonic() > ends:
            return
        split = make()
        started = time.perf_counter()
        takes = split is not None and question.takes(split)
        lines.add(question.name, key, question.measure(split) if split and takes else {})
        if takes:
            _say(f"{question.name} {key}: {time.perf_counter() - started:.1f} s")


def write(lines: Lines, questions: list[Question], output: Path, *, page: str, fast: bool) -> None:
    """Write the page and the JSON of some questions' answers."""
    command = "python -m benchmarks.defaults" + (" --fast" if fast else " --explore FOLDER")
    if len(questions) < len(QUESTIONS):
        names = " ".join(question.name for question in questions)
        command = command.replace("defaults", f"defaults {names} --page {page}")
    title = "How the defaults were chosen"
    about: dict[str, Any] = {
        "title": title if page == "defaults" else f"{title}: {page.replace('_', ' ')}",
        "command": command if fast else f"{command} --reviews FOLDER",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "fast": fast,
        "machine": machine.describe(),
        "changed": lines.changed(),
    }
    answers = lines.read()
    output.mkdir(parents=True, exist_ok=True)
    stem = f"{page}-fast" if fast else page
    texts = {
        ".md": markdown(answers, questions, about),
        ".json": json.dumps(_rounded(as_json(answers, questions, about))) + "\n",
    }
    for suffix, text in texts.items():
        temporary = output / f"{stem}{suffix}.{os.getpid()}.tmp"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(output / f"{stem}{suffix}")
    _say(str(output / f"{stem}.md"))


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument(
        "--explore", type=Path, help="folder with sets: NAME.csv.gz with text, label and part"
    )
    parser.add_argument(
        "--reviews", type=Path, help="folder with imdb_train.csv.gz and yelp_stars_train.csv.gz"
    )
    parser.add_argument("--fast", action="store_true", help="generated documents, two splits")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="start no split after these (0: write)"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()) / "clsattn-defaults",
        help="where features and answers are kept",
    )
    parser.add_argument("--page", default="defaults", help="name of the page")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "benchmarks" / "results", help="where the page goes"
    )
    return parser


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
