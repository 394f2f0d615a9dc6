"""Runs experiments: all of them for the page, or one of them alone."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import threadpoolctl

from benchmarks import machine, problems

from . import page
from .data import Settings, load
from .findings import Section, checks_table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "paper.md"
IMAGES = ROOT / "docs" / "images"
EXPERIMENTS = (
    "synthetic",
    "joint",
    "one_step",
    "frozen",
    "two_layers",
    "mlp",
    "stars",
    "margin",
    "selection_map",
    "open_questions",
    "after_p",
    "assumption",
)
# On one's own texts: those of two classes, and those of more.
OWN = ("joint", "one_step", "frozen", "two_layers", "mlp", "assumption")
OWN_CLASSES = ("stars", "assumption")

Experiment = Callable[[Settings], Section]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all experiments, those named, or those that one's own texts allow; write the page."""
    parser = _parser("benchmarks.paper", "The paper's figures and tables, made again.")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=EXPERIMENTS)
    options = parser.parse_args(arguments)
    settings = _settings(options, whole=not options.only)
    started = time.perf_counter()
    described = machine.describe()
    sections = []
    names = options.only or EXPERIMENTS
    if settings.own is not None:
        allowed = OWN if load(settings.own.name, settings).n_classes == 2 else OWN_CLASSES
        names = [name for name in names if name in allowed]
    for name in names:
        experiment = importlib.import_module(f"benchmarks.paper.{name}").run
        sections.append(perform(experiment, settings))
    seconds = time.perf_counter() - started
    print(checks_table([check for section in sections for check in section.checks]))
    if settings.tables:
        write_checks(settings.images / "checks.csv", sections)
    path = PAGE if settings.images == IMAGES else settings.images / PAGE.name
    page.write(path, page.markdown(sections, described, seconds, settings))
    if path != PAGE:
        _say(f"docs/{PAGE.name} is left alone: only whole runs on reviews write it")
    _say(str(path))
    _say(f"{seconds:.0f} s")
    return 0


def alone(experiment: Experiment, arguments: Sequence[str] | None = None) -> int:
    """Run one experiment and print its section: what each script does when run by itself."""
    name = sys.modules[experiment.__module__].__spec__
    title = (sys.modules[experiment.__module__].__doc__ or "").splitlines()[0]
    options = _parser(name.name if name else "benchmarks.paper", title).parse_args(arguments)
    section = perform(experiment, _settings(options, whole=False))
    print(page.section_markdown(section))
    return 0


def perform(experiment: Experiment, settings: Settings) -> Section:
    """Run an experiment, with its time, on one BLAS thread beside PyTorch's threads."""
    name = experiment.__module__.rsplit(".", 1)[-1]
    _say(f"{name} ...")
    started = time.perf_counter()
    with threadpoolctl.threadpool_limits(1, "blas"):
        section = experiment(settings)
    section = replace(section, seconds=time.perf_counter() - started)
    failed = sum(check.holds is False for check in section.checks)
    _say(f"{name}: {len(section.checks)} checks, {failed} failing, {section.seconds:.0f} s")
    return section


def _settings(options: argparse.Namespace, *, whole: bool) -> Settings:
    """Pictures of the documentation come from whole runs on real reviews, nothing less."""
    reviews = problems.find_reviews(options.reviews)
    if options.seeds < 1:
        raise SystemExit(f"--seeds must be 1 or more, got {options.seeds}.")
    if options.data is not None and not options.data.is_file():
        raise SystemExit(f"--data: there is no file {options.data}.")
    if reviews is None and not options.fast and options.data is None:
        _say(f"no reviews in {options.reviews}: the documents are generated, no page is written")
    if options.out:
        images = options.out
    elif whole and reviews is not None and not options.fast and options.data is None:
        images = IMAGES
    else:
        images = Path(tempfile.mkdtemp(prefix="sklearn-clsattn-paper-"))
    return Settings(
        reviews,
        images,
        options.fast,
        options.cache,
        n_seeds=options.seeds,
        own=options.data,
        tables=options.out is not None,
    )


def write_checks(path: Path, sections: Sequence[Section]) -> None:
    """Write all checks as CSV."""
    rows = [
        (section.name, check.what, check.asked, check.measured, check.verdict.strip("*"))
        for section in sections
        for check in section.checks
    ]
    columns = ["section", "what", "asked", "measured", "verdict"]
    pd.DataFrame(rows, columns=columns).to_csv(path, index=False)


def _parser(program: str, title: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=title)
    parser.add_argument(
        "--reviews",
        type=Path,
        default=ROOT.parent / "shared" / "data",
        help="folder with imdb_*.csv.gz and yelp_stars_*.csv.gz; documents are generated if not",
    )
    parser.add_argument("--fast", action="store_true", help="tiny generated data, seconds")
    parser.add_argument("--data", type=Path, help="your texts and labels, a file of a row each")
    parser.add_argument("--seeds", type=int, default=5, help="random starts of every statement")
    parser.add_argument("--out", type=Path, help="folder for the page, pictures and CSV files")
    parser.add_argument("--cache", type=Path, default=problems.CACHE, help="folder of matrices")
    return parser


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
