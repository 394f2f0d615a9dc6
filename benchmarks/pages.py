"""Command lines, and the pages of results with the machine that they were measured on."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import psutil
import threadpoolctl

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DOCS = ROOT / "docs"

_FOLDERS = {
    "reviews": "folder with imdb_*.csv.gz and yelp_stars_*.csv.gz",
    "explore": "folder of sets, NAME.csv.gz: text, label and part",
}
_TIMES_AT_START = psutil.cpu_times()
_MOST_BY_OTHERS = 0.1  # of the processors' time during a benchmark
_PACKAGES = ("sklearn-clsattn", "scikit-learn", "numpy", "scipy", "torch")


def parser(
    module: str, description: str | None, *folders: str, output: bool = True
) -> argparse.ArgumentParser:
    """Return a module's parser, of which some of `_FOLDERS`, and the page's file, are options."""
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in folders:
        made.add_argument(f"--{name}", type=Path, metavar="FOLDER", help=_FOLDERS[name])
    if output:
        made.add_argument("--output", type=Path, help="file of the page, which is printed anyway")
    return made


def table(header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def number(value: float | None, form: str) -> str:
    """Return a number in a format, or a dash where there is none."""
    return "–" if value is None else format(value, form)


def publish(path: Path | None, title: str, command: str, *parts: str) -> None:
    """Print a page, and write it where a path is given.

    It has a title, the command after "python -m benchmarks.", the date, the machine, and the parts.
    """
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    head = [f"# {title}", f"`python -m benchmarks.{command}`, {date}.", machine(), busy()]
    text = "\n\n".join(filter(None, [*head, *parts])) + "\n"
    print(text)
    if path is not None:
        path.write_text(text, encoding="utf-8")


def machine() -> str:
    """Return processor, its instructions, memory, versions and threads, as a line."""
    import torch

    instructions = torch.backends.cpu.get_cpu_capability()  # such as AVX2 or AVX512
    memory = psutil.virtual_memory().total / 2**30
    versions = ", ".join(f"{package} {version(package)}" for package in _PACKAGES)
    pools = threadpoolctl.threadpool_info()
    blas = [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]
    return (
        f"{_processor()} ({instructions}), {joblib.cpu_count()} cores, {memory:.1f} GiB, "
        f"{platform.system()} {platform.machine()}; Python {platform.python_version()}, "
        f"{versions}; PyTorch on {torch.get_num_threads()} threads, BLAS on {max(blas, default=1)}."
    )


def busy() -> str:
    """Return a warning if other processes, or other machines, were at work meanwhile."""
    # 1) what all used of the processors' time
    passed = [now - then for now, then in zip(psutil.cpu_times(), _TIMES_AT_START, strict=True)]
    times = psutil.cpu_times()._make(passed)
    used = sum(times) - times.idle - getattr(times, "iowait", 0.0)
    # 2) what this process and those that it started used
    own = sum(os.times()[:4])
    own += sum(sum(child.cpu_times()[:2]) for child in psutil.Process().children(recursive=True))
    by_others = (used - own) / sum(times)
    if by_others < _MOST_BY_OTHERS:
        return ""
    return f"**The machine was busy** (others used {by_others:.0%} of it): do not trust times."


def _processor() -> str:
    """Return the name of the processor, where Linux tells it."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
