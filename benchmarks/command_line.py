"""What the command lines of the benchmarks share."""

from __future__ import annotations

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def parser(file: str, description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a benchmark's file, which prints the description unchanged."""
    return argparse.ArgumentParser(
        prog=f"benchmarks/{Path(file).name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def reviews_parser(file: str, description: str | None) -> argparse.ArgumentParser:
    """Return :func:`parser` with the option ``--reviews``."""
    made = parser(file, description)
    made.add_argument(
        "--reviews",
        type=Path,
        default=ROOT.parent / "shared" / "data",
        help="folder with imdb_*.csv.gz and yelp_stars_*.csv.gz; without, documents are generated",
    )
    return made
