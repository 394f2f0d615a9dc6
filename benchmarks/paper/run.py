"""Runs the experiments and writes the record, the pictures and two pages."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import threadpoolctl

from benchmarks import pages

from . import networks, reviews, synthetic, theorem
from .data import Settings
from .record import Row, frame, joined, reasons, summary, with_reasons

TEMPLATES = {"paper.md": "page.md", "paper_checks.md": "checks.md"}
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
    """Run all experiments, or those named; a whole run on reviews writes the pages of the site."""
    parser = pages.parser("paper", __doc__, "reviews", output=False)
    parser.add_argument("--fast", action="store_true", help="tiny generated data, a trial")
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument("--seeds", type=int, default=5, help="random starts of every statement")
    parser.add_argument("--out", type=Path, help="folder for the page, the record and pictures")
    parser.add_argument(
        "--page", action="store_true", help="only write the page again, from its record"
    )
    options = parser.parse_args(arguments)
    if options.page:
        return rewrite(options.out or pages.DOCS)
    folder = None if options.fast else options.reviews
    if folder is None and not options.fast:
        raise SystemExit("There are no reviews: give --reviews, or --fast.")
    whole = folder is not None and options.only == list(EXPERIMENTS)
    out = options.out or (pages.DOCS if whole else Path(tempfile.mkdtemp(prefix="paper-")))
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
    minutes = (time.perf_counter() - started) / 60
    made = f"{minutes:.0f} minutes on {pages.machine()}"
    write_pages(record, len(settings.seeds), made, out)
    print(
        f"{', '.join(str(page_file(name, out)) for name in TEMPLATES)}, paper.csv", file=sys.stderr
    )
    return 0


def rewrite(out: Path) -> int:
    """Write the record and the pages of a folder again, with the reasons and lines of today."""
    file = out / "paper.csv"
    known = pd.read_csv(file, dtype=str, keep_default_na=False)
    numbers = ["starts", "mean", "least", "largest"]
    known[numbers] = known[numbers].apply(pd.to_numeric)
    record = with_reasons(joined(known))
    record.to_csv(file, index=False, float_format="%.6g")
    checks = page_file("paper_checks.md", out)
    made = re.search(r"^Made in (.+)$", checks.read_text(encoding="utf-8"), re.M)
    if made is None:
        raise SystemExit(f"{checks} does not say how it was made: run all experiments.")
    n_starts = int(record.loc[record["experiment"] == "synthetic", "starts"].max())
    write_pages(record, n_starts, made.group(1), out)
    return 0


def page_file(name: str, out: Path) -> Path:
    """Return the file of a page: the checks of the site's record are among the measurements."""
    if out == pages.DOCS and name == "paper_checks.md":
        return pages.RESULTS / name
    return out / name


def write_pages(record: pd.DataFrame, n_starts: int, made: str, out: Path) -> None:
    """Write the page of figures and the page of checks, made of their templates."""
    asked = record[record["verdict"] != "reported"]
    held = int((asked["verdict"] == "holds").sum())
    counts = f"Of {len(asked)} checks, {held} passed for every seed, {len(asked) - held} not."
    parts = {"made": made, "counts": counts, "starts": n_starts}
    parts |= {"table": summary(record), "reasons": reasons(record)}
    for name, template in TEMPLATES.items():
        text = Path(__file__).with_name(template).read_text(encoding="utf-8").format(**parts)
        page_file(name, out).write_text(text, encoding="utf-8")
