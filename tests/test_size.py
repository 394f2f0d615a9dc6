"""The budgets of CONTRIBUTING.md: lines of each folder, words of the documentation."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
CEILING = 20_000  # lines of the package, whatever the table allows
FOLDERS = {  # the rows of the table: what is counted where
    "`sklearn_clsattn`, Python": ("sklearn_clsattn", {".py"}),
    "`sklearn_clsattn`, templates and CSS": ("sklearn_clsattn", {".html", ".css"}),
    "`tests`": ("tests", {".py"}),
    "`benchmarks`": ("benchmarks", {".py"}),
}
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]


def budgets():
    """Return the table of CONTRIBUTING.md: what each of its rows allows."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Budgets")[1].split("\n##")[0]
    rows = re.findall(r"^\| (.+) \| ([\d,]+)(?: words)? \|$", page, re.M)
    return {name: int(number.replace(",", "")) for name, number in rows}


def lines(folder, suffixes):
    """Return the number of lines in the files of a folder with these suffixes."""
    files = (file for file in (ROOT / folder).rglob("*") if file.suffix in suffixes)
    return sum(len(file.read_text("utf-8").splitlines()) for file in files)


def test_the_package_stays_below_its_ceiling(capsys):
    sizes = {name: lines(*of) for name, of in FOLDERS.items()}
    sizes["documentation"] = sum(len((ROOT / page).read_text("utf-8").split()) for page in PAGES)
    allowed = budgets()
    with capsys.disabled():
        for name, size in sizes.items():
            over = ", over its budget" if size > allowed[name] else ""
            print(f"\n{name}: {size:,} of {allowed[name]:,}{over}", end="")
    assert allowed.keys() == sizes.keys()
    assert sizes["`sklearn_clsattn`, Python"] <= CEILING
