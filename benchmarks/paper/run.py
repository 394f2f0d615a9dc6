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

import threadpoolctl

from benchmarks import machine, problems

from . import page
from .data import Settings
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
)

Experiment = Callable[[Settings], Section]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all experiments (or those named) and write the page."""
    parser = _parser("benchmarks.paper", "The paper's figures and tables, made again.")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=EXPERIMENTS)
    options = parser.parse_args(arguments)
    settings = _settings(options, whole=not options.only)
    started = time.perf_counter()
    described = machine.describe()
    sections = []
    for name in options.only or EXPERIMENTS:
        experiment = importlib.import_module(f"benchmarks.paper.{name}").run
        sections.append(perform(experiment, settings))
    seconds = time.perf_counter() - started
    print(checks_table([check for section in sections for check in section.checks]))
    path = PAGE if settings.images == IMAGES else settings.images / PAGE.name
    page.write(path, page.markdown(sections, described, seconds))
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
    if reviews is None and not options.fast:
        _say(f"no reviews in {options.reviews}: the documents are generated, no page is written")
    if options.images:
        images = options.images
    elif whole and reviews is not None and not options.fast:
        images = IMAGES
    else:
        images = Path(tempfile.mkdtemp(prefix="sklearn-clsattn-paper-"))
    return Settings(reviews, images, options.fast, options.cache)


def _parser(program: str, title: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=title)
    parser.add_argument(
        "--reviews",
        type=Path,
        default=ROOT.parent / "shared" / "data",
        help="folder with imdb_*.csv.gz and yelp_stars_*.csv.gz; documents are generated if not",
    )
    parser.add_argument("--fast", action="store_true", help="tiny generated data, seconds")
    parser.add_argument("--images", type=Path, help="folder for the pictures")
    parser.add_argument("--cache", type=Path, default=problems.CACHE, help="folder of matrices")
    return parser


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
