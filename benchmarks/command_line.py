"""What the command lines of the benchmarks share."""

from __future__ import annotations

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def parser(
    module: str, description: str | None, *, reviews: bool = False
) -> argparse.ArgumentParser:
    """Return a module's parser, which prints the description unchanged."""
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if reviews:
        made.add_argument(
            "--reviews",
            type=Path,
            default=ROOT.parent / "shared" / "data",
            help="folder with imdb_*.csv.gz and yelp_stars_*.csv.gz; else documents are generated",
        )
    return made
