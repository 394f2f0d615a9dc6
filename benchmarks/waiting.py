"""What a user waits for: imports, models in files and the command line.

``python -m benchmarks.waiting``. Processor seconds of generated requests, each in a process of its
own, imports included; those of a function once more in a process that has called it before.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import joblib
import pandas as pd

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.saving import load_model, save_model

from . import command_line, pages

N_PREDICTED = 200
PREDICT, REPORT = "sklearn-clsattn predict", "sklearn-clsattn report"


def of_process(*arguments: Any) -> float:
    """Return the processor seconds of Python with some arguments, in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *map(str, arguments)]
    subprocess.run(command, cwd=command_line.ROOT, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def twice(function: Any) -> tuple[float, float]:
    """Return the processor seconds of the first call of a function and of the second."""
    seconds = []
    for _ in range(2):
        started = time.process_time()
        function()
        seconds.append(time.process_time() - started)
    return seconds[0], seconds[1]


def of_functions(texts: list[str], y: list[str], folder: Path) -> list[list[str]]:
    """Return rows of a fit, of saving and of loading, first calls and second ones, in a process."""
    safe = folder / "model.skops"
    model = TextClassifier()
    rows = []
    calls = {
        f"fit of {len(texts):,} texts": lambda: model.fit(texts, y),
        "save_model(), *.skops": lambda: save_model(model, safe),
        "load_model(), *.skops": lambda: load_model(safe),
    }
    for name, call in calls.items():
        first, second = twice(call)
        rows.append([name, f"{first:.2f}", f"{second:.2f}"])
    joblib.dump(model, folder / "model.joblib")
    return rows


def of_command_line(texts: list[str], y: list[str], folder: Path) -> list[list[str]]:
    """Return rows of the commands that read models and texts from files in a folder."""
    labelled = folder / "labelled.csv"
    asked = folder / "asked.csv"
    table = pd.DataFrame({"text": texts, "label": y})
    table.to_csv(labelled, index=False)
    table[["text"]].head(N_PREDICTED).to_csv(asked, index=False)
    program = "-m", "sklearn_clsattn"
    report = "report", labelled, "-o", folder / "report.html", "--quiet"

    def prediction(model: str) -> tuple[Any, ...]:
        output = folder / f"{model}.csv"
        return *program, "predict", folder / model, asked, "-o", output

    of_texts = f"of {N_PREDICTED} texts"
    processes = {
        "import sklearn": ("-c", "import sklearn"),
        "import torch": ("-c", "import torch"),
        f"{PREDICT} {of_texts}, *.joblib": prediction("model.joblib"),
        f"{PREDICT} {of_texts}, *.skops": prediction("model.skops"),
        f"{REPORT} of {len(texts):,} texts": (*program, *report),
    }
    rows = []
    for name, arguments in processes.items():
        rows.append([name, f"{of_process(*arguments):.2f}", "–"])
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write the page."""
    parser = command_line.parser("waiting", __doc__)
    parser.add_argument("--rows", type=int, help="of the texts, for a trial")
    parser.add_argument("--output", type=Path, help="file of the page")
    options = parser.parse_args(arguments)
    texts, y = load_requests(target="topic", return_X_y=True)
    texts = list(texts)[: options.rows]
    y = list(y)[: options.rows]
    with tempfile.TemporaryDirectory() as folder:
        rows = of_functions(texts, y, Path(folder))
        rows += of_command_line(texts, y, Path(folder))
    header = "", "first, processor seconds", "again"
    notes = (
        "Imports of what a call needs are part of its first time: PyTorch in the fit, skops in "
        "`save_model()`. Commands are processes of their own, from their start to their end; the "
        "imports of scikit-learn and of PyTorch alone are given beside them."
    )
    pages.publish_table("What a user waits for", "waiting", notes, header, rows, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
