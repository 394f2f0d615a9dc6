"""Pages of models: ``python -m benchmarks.portable --reviews FOLDER --explore FOLDER``.

A page in 32 and one in 16 bits a number, for each set: its size, how far its probabilities are from
Python's, and how long things take in Node and, where it is installed, in Chromium. It needs Node.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests

from . import pages
from .problems import Problem, load

N_TEXTS = 20_000  # compared with Python
N_TRIED = 1_000  # by which 16 bits are tried
N_TIMED = 41  # texts of 200 words, the first of which is the first after loading
N_ROWS = 100_000  # of a table of short texts
ODD = [
    "",
    "?",
    "first line\nsecond line\r\nthird",
    "4½ x² Ⅷ ﬁne ＦＵＬＬ width “quoted” don’t",
    "Straße İstanbul ΣΑΣ",
    "手机很好 ありがとう ไม่ดี ကောင်း ខ្មែរ 한국어 क्षि தமிழ்",
    "👩‍👩‍👧 👍🏽 🇩🇪🇫🇷 1️⃣ ❤️",
    "soft\u00adhyphen zero\u200bwidth \u202eturned \ud800",
    "word " * 100_000,
]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def texts_to_compare(problem: Problem, explore: Path | None) -> list[str]:
    """Return texts of the set and of all others, and odd ones."""
    texts = list(problem.X_test)
    for file in sorted(explore.glob("*.csv.gz")) if explore else ():
        texts += pd.read_csv(file, keep_default_na=False)["text"].tolist()
    rng = np.random.default_rng(0)
    chosen = [texts[at] for at in rng.permutation(len(texts))[: N_TEXTS - len(ODD)].tolist()]
    return [*ODD, *chosen]


def texts_to_time(problem: Problem) -> list[str]:
    """Return texts of 200 words."""
    words = " ".join(problem.X_test[: 200 * N_TIMED]).split()
    return [" ".join(words[200 * at :][:200]) for at in range(min(N_TIMED, len(words) // 200))]


def in_node(model: TextClassifier, texts: list[str], timed: list[str], tried: Any) -> Any:
    """Return times in milliseconds, and the predictions of texts, of a model's module."""
    with tempfile.TemporaryDirectory() as folder:
        model.to_javascript(folder, texts=tried)
        (Path(folder) / "package.json").write_text('{"type": "module"}')
        asked = Path(folder) / "texts.json"
        answered = Path(folder) / "answers.json"
        asked.write_text(json.dumps({"texts": texts, "timed": timed}))
        script = Path(__file__).with_suffix(".mjs")
        subprocess.run(["node", script, folder, asked, answered], check=True)
        return json.loads(answered.read_text())


def in_chromium(page: Path, n_rows: int) -> tuple[float, float]:
    """Return the seconds until a page is ready, and those of a table of short texts."""
    from playwright.sync_api import sync_playwright

    requests, _ = load_requests(return_X_y=True)
    rows = [f"{requests[at % len(requests)]} {at}" for at in range(n_rows)]
    table = pd.DataFrame({"text": rows}).to_csv(index=False).encode()
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        seconds = []
        for _ in range(5):
            tab = browser.new_page()
            tab.goto(page.as_uri())
            tab.wait_for_selector("#app:not([hidden])")
            seconds.append(tab.evaluate("performance.now()") / 1000)
        content = {"name": "table.csv", "mimeType": "text/csv", "buffer": table}
        tab.set_input_files("#file", files=[content])
        tab.wait_for_selector("#tableoptions:not([hidden])")
        start = time.perf_counter()
        tab.click("#classify")
        tab.wait_for_selector("#tablestate a", timeout=600_000)
        of_table = time.perf_counter() - start
        browser.close()
    return float(np.median(seconds)), of_table


def measure(name: str, options: Any) -> list[tuple[Any, ...]]:
    """Return a row for each page of a set."""
    problem = load(name, options.reviews, options.explore, options.rows)
    model = TextClassifier().fit(problem.X_train, problem.y_train)
    texts = texts_to_compare(problem, options.explore)
    if options.rows:
        texts = texts[: options.rows]
    timed = texts_to_time(problem)
    expected = model.predict_proba(texts)
    n_terms = len(model.get_feature_names_out())
    rows = []
    for bits, tried in ((32, []), (16, list(problem.X_train[:N_TRIED]))):
        answers = in_node(model, texts, timed, tried)
        found = np.array([one["probabilities"] for one in answers["predictions"]])
        numbers = np.array([one["numbers"][0] for one in answers["predictions"]])
        predicted = model.predict(texts)
        n_other = int((model.classes_[numbers] != predicted).sum())
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.html"
            model.to_page(page, texts=tried)
            size = page.stat().st_size
            opening, of_table = (None, None)
            if CHROMIUM:
                opening, of_table = in_chromium(page, options.rows or N_ROWS)
        times = answers["times"]
        row = (
            f"{name}, {len(model.classes_)} classes",
            bits,
            f"{n_terms:,}",
            f"{size / 1e6:.2f}",
            f"{np.abs(found - expected).max():.1e}",
            n_other,
            f"{times['first']:.0f}",
            f"{times['text']:.2f}",
            f"{times['strike']:.2f}",
            pages.number(opening, ".2f"),
            pages.number(of_table, ".1f"),
        )
        rows.append(row)
    return rows


def main(argv: list[str] | None = None) -> int:
    """Print the table of pages."""
    parser = pages.parser("portable", __doc__, "reviews", "explore")
    parser.add_argument("--rows", type=int, help="texts of each half, for a trial")
    options = parser.parse_args(argv)
    sets = ["topic"]
    sets += ["banking77"] if options.explore else []
    sets += ["imdb"] if options.reviews else []
    rows = [row for name in sets for row in measure(name, options)]
    header = ("set", "bits", "terms", "page, MB", "largest difference", "other classes")
    header += ("load and predict, ms", "200 words, ms", "a word struck out, ms")
    header += ("page opens, s", "table, s")
    n_texts = options.rows or N_TEXTS
    notes = (
        f"Probabilities of {n_texts:,} texts (of the set, of all others, and odd ones) against "
        "Python's; *other classes*: how many are predicted differently. Milliseconds in Node, "
        "medians; a text of 200 words is one that was not seen before. *Page opens*: in Chromium, "
        f"until the first prediction is shown, median of five. *Table*: {options.rows or N_ROWS:,} "
        "messages of some 25 words, in Chromium, whose own processes count as others."
    )
    command = "portable --reviews FOLDER --explore FOLDER"
    pages.publish(options.output, "Pages of models", command, notes, pages.table(header, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
