"""Runs the experiments and writes the record, the pictures and the page."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import threadpoolctl

from benchmarks import command_line, machine
from benchmarks.problems import find_reviews

from . import networks, reviews, synthetic, theorem
from .data import Settings
from .record import Row, frame, summary

DOCS = command_line.ROOT / "docs"
TEMPLATE = Path(__file__).with_name("page.md")
EXPERIMENTS: dict[str, Callable[[Settings], list[Row]]] = {
    "synthetic": synthetic.run,
    "joint": reviews.joint,
    "one_step": reviews.one_step,
    "frozen": reviews.frozen,
    "networks": networks.run,
    "stars": reviews.stars,
    "lemma": reviews.lemma,
    "theorem": theorem.theorem,
    "selection_map": theorem.selection_map,
    "open_questions": theorem.open_questions,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all experiments, or those named; a whole run on reviews writes docs/paper.md."""
    parser = command_line.parser("paper", __doc__, reviews=True)
    parser.add_argument("--fast", action="store_true", help="tiny generated data, a trial")
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument("--seeds", type=int, default=5, help="random starts of every statement")
    parser.add_argument("--out", type=Path, help="folder for the page, the record and pictures")
    options = parser.parse_args(arguments)
    folder = None if options.fast else find_reviews(options.reviews)
    if folder is None and not options.fast:
        raise SystemExit(f"There are no reviews in {options.reviews}: give --reviews, or --fast.")
    whole = folder is not None and options.only == list(EXPERIMENTS)
    out = options.out or (DOCS if whole else Path(tempfile.mkdtemp(prefix="paper-")))
    settings = Settings(folder, out / "images", options.seeds)
    started = time.perf_counter()
    rows: list[tuple[str, Row]] = []
    for name in options.only:
        begun = time.perf_counter()
        with threadpoolctl.threadpool_limits(1, "blas"):
            found = EXPERIMENTS[name](settings)
        rows += [(name, each) for each in found]
        failed = sum(each.verdict == "fails" for each in found)
        seconds = time.perf_counter() - begun
        said = f"{name}: {len(found)} lines, {failed} fail, {seconds:.0f} s"
        print(said, file=sys.stderr, flush=True)
    record = frame(rows)
    out.mkdir(parents=True, exist_ok=True)
    record.to_csv(out / "paper.csv", index=False, float_format="%.6g")
    (out / "paper.md").write_text(
        page(record, settings, time.perf_counter() - started), encoding="utf-8"
    )
    print(f"{out / 'paper.md'} and paper.csv", file=sys.stderr)
    return 0


def page(record: pd.DataFrame, settings: Settings, seconds: float) -> str:
    """Return the page, made of its template."""
    asked = record[record["verdict"] != "reported"]
    held = int((asked["verdict"] == "holds").sum())
    return TEMPLATE.read_text(encoding="utf-8").format(
        made=f"{seconds / 60:.0f} minutes on {machine.summary(machine.describe())}",
        counts=f"Of {len(asked)} checks, {held} passed for every seed, {len(asked) - held} not.",
        starts=len(settings.seeds),
        table=summary(record),
    )
