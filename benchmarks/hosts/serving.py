"""A model is started, asked and served: ``python -m benchmarks.hosts.serving [--reviews FOLDER]``.

Ours and logistic regression are fitted to generated requests, or to IMDB's reviews, and saved. All
else happens in fresh processes on one thread. Texts to classify are requests, or sentences of
reviews. FastAPI and uvicorn, or MLflow, are left out where they are not installed.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from sklearn_clsattn.inspection import explain
from sklearn_clsattn.saving import TRUSTED_TYPES, save_model

from .. import pages
from ..models import LOGISTIC, OURS, logistic, text_classifier
from ..problems import load
from ..processes import ROOT, in_process, interleaved, peak_beyond, timed

MODELS = {OURS: text_classifier, LOGISTIC: partial(logistic, min_df=2)}
STARTS, ASKED, BATCH, MANY = 3, 500, 10_000, 1_000_000
STARTING = """
import sys, time
from pathlib import Path
file, torch = sys.argv[1:]
class Absent:
    def find_spec(self, name, *_):
        if name == "torch":
            raise ModuleNotFoundError(name)
if torch == "absent":
    sys.meta_path.insert(0, Absent())
if file.endswith(".skops"):
    from sklearn_clsattn.saving import load_model as load
else:
    from joblib import load
load(file).predict_proba(["Thank you!"])
status = Path("/proc/self/status").read_text()
print([time.process_time(), int(status.split("VmHWM:")[1].split()[0]) / 1e3])
"""
_NOTES = f"""\
Times are of the processor, which a busy machine lengthens less, but for the servers'. A start
ends with the first prediction, and memory is the process's largest: medians of {STARTS}. Times of
one text are medians of {ASKED} texts. A million texts are classified in batches of {BATCH:,};
memory is what this adds. A server is uvicorn in a process of its own, asked for one text at a time
over a connection that stays open, in turn with the other model's: median and 95th percentile of
{ASKED} answers."""


def reasons(model: Any, text: str) -> list[tuple[str, float]]:
    """Return the tokens of a text and what they add to the decision."""
    explanation = explain(model, [text])
    return list(zip(explanation.tokens, explanation.contributions[:, 0].tolist(), strict=True))


CALLS: dict[str, Callable[[Any, str], Any]] = {
    "nothing": lambda model, text: None,
    "predict_proba": lambda model, text: model.predict_proba([text]).tolist(),
    "explain": reasons,
    "explain, each token removed": lambda model, text: explain(model, [text]).to_dict(),
}


def texts_to_classify(reviews: str | None) -> list[str]:
    """Return sentences of reviews, or else requests."""
    if reviews is None:
        return list(map(str, load("mood").X_test))
    sentences = ". ".join(load("imdb", reviews).X_test).split(". ")
    return [sentence for sentence in sentences if 20 <= len(sentence) <= 200]


def fit(folder: str, reviews: Path | None) -> dict[str, str]:
    """Fit and save the models; return the names of their files, without endings."""
    texts, labels, _, _ = load("imdb" if reviews else "mood", reviews)
    files = {name: f"{folder}/model{i}" for i, name in enumerate(MODELS)}
    for name, file in files.items():
        model = MODELS[name]().fit(texts, labels)
        joblib.dump(model, f"{file}.joblib")
        if name == OURS:  # scikit-learn's vectorizers are slow in files of skops
            save_model(model, f"{file}.skops")
            if find_spec("mlflow"):
                from mlflow.sklearn import save_model as log

                log(model, f"{file}.mlflow", skops_trusted_types=list(TRUSTED_TYPES))
    return files


def started(file: str, torch: str) -> list[float]:
    """Return the median seconds to start and predict, and megabytes, of fresh processes."""
    command = [sys.executable, "-c", STARTING, file, torch]
    runs = [subprocess.check_output(command, text=True, cwd=ROOT) for _ in range(STARTS)]
    return list(np.median([json.loads(run) for run in runs], axis=0))


def starts(files: dict[str, str]) -> Iterator[list[str]]:
    """Yield a row for each way to start from each model's file."""
    for name, file in files.items():
        for path in sorted(Path(file).parent.glob(f"{Path(file).name}.*")):
            parts = path.rglob("*") if path.is_dir() else [path]
            size = sum(part.stat().st_size for part in parts) / 1e6
            if path.is_dir():
                yield [name, path.suffix, *"–––", f"{size:.1f}"]
                continue
            for torch in ("installed", "absent") if path.suffix == ".skops" else ("installed",):
                seconds, memory = started(str(path), torch)
                yield [name, path.suffix, torch, f"{seconds:.1f}", f"{memory:.0f}", f"{size:.1f}"]


def one_text(files: dict[str, str], reviews: str | None) -> dict[str, list[float]]:
    """Return each model's median milliseconds for one text, of each call."""
    models = [joblib.load(f"{file}.joblib") for file in files.values()]
    some = cycle(np.random.default_rng(0).permutation(texts_to_classify(reviews)).tolist())
    found = {}
    for name, call in CALLS.items():
        asked = [lambda call=call, model=model: call(model, next(some)) for model in models]
        found[name] = [
            1e3 * seconds for seconds in interleaved(*asked, runs=ASKED, clock=time.process_time)
        ]
    return found


def many_texts(file: str, reviews: str | None) -> tuple[float, float, int]:
    """Return seconds and megabytes to classify a million texts, and how many are distinct."""
    model = joblib.load(f"{file}.joblib")
    texts = list(islice(cycle(texts_to_classify(reviews)), MANY))
    began = time.process_time()
    batches = (texts[first : first + BATCH] for first in range(0, MANY, BATCH))
    peak = peak_beyond(lambda: [model.predict_proba(batch).sum() for batch in batches])
    return time.process_time() - began, peak / 1e6, len(set(texts))


def app() -> Any:
    """Return a service of the model whose file an environment variable names."""
    from fastapi import Body, FastAPI

    service = FastAPI()
    model = joblib.load(os.environ["SERVED_MODEL"])

    @service.post("/{call}")
    def answer(call: str, text: str = Body()) -> Any:
        return CALLS[call](model, text)

    return service


@contextmanager
def server(file: str) -> Iterator[HTTPConnection]:
    """Serve a model in a process of its own, and yield a connection to it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = [
        "--factory",
        "--port",
        str(port),
        "--log-level",
        "error",
        "benchmarks.hosts.serving:app",
    ]
    environment = os.environ | {"SERVED_MODEL": f"{file}.joblib", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "uvicorn", *options]
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    connection = HTTPConnection("127.0.0.1", port)
    try:
        while process.poll() is None:
            with suppress(ConnectionRefusedError):
                connection.connect()
                break
            time.sleep(0.1)
        yield connection
    finally:
        process.terminate()
        process.wait()


def ask(connection: HTTPConnection, call: str, text: str) -> Any:
    """Return the answer to a text."""
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/" + call.replace(" ", "%20"), json.dumps(text), headers)
    with connection.getresponse() as answer:
        return json.load(answer)


def latencies(files: dict[str, str], reviews: str | None) -> dict[str, list[float]]:
    """Return the median and 95th percentile of milliseconds for each call, model by model."""
    texts = texts_to_classify(reviews)[:ASKED]
    found = {}
    with ExitStack() as stack:
        servers = [stack.enter_context(server(file)) for file in files.values()]
        for call in CALLS:
            times = [[timed(partial(ask, s, call, text))[1] for s in servers] for text in texts]
            found[call] = (1e3 * np.percentile(times, [50, 95], axis=0)).T.ravel().tolist()
    return found


def main(arguments: list[str] | None = None) -> int:
    """Measure all, and write the page."""
    options = pages.parser("hosts.serving", __doc__, "reviews").parse_args(arguments)
    reviews = options.reviews and str(options.reviews.resolve())
    with tempfile.TemporaryDirectory() as folder:
        files = fit(folder, reviews)
        run = partial(in_process, one_thread=True)
        parts = [_NOTES]
        # 1) starts
        header = "model", "file", "PyTorch", "start, CPU s", "memory, MB", "size, MB"
        parts += ["## Start", pages.table(header, starts(files))]
        # 2) one text, and many
        found = run("benchmarks.hosts.serving.one_text", files, reviews)
        rows = [[call, *(f"{value:.2f}" for value in values)] for call, values in found.items()]
        parts += ["## One text, CPU ms", pages.table(["", *files], rows[1:])]
        rows = []
        for name, file in files.items():
            seconds, memory, distinct = run("benchmarks.hosts.serving.many_texts", file, reviews)
            rows.append([name, f"{seconds:.0f}", f"{memory:.0f}", f"{distinct:,}"])
        header = "model", "CPU s", "memory, MB", "distinct texts"
        parts += ["## A million short texts", pages.table(header, rows)]
        # 3) a server
        if find_spec("fastapi") and find_spec("uvicorn"):
            found = latencies(files, reviews)
            rows = [[call, *(f"{value:.1f}" for value in values)] for call, values in found.items()]
            header = ["", *(f"{name}, {what}" for name in files for what in ("median", "95 %"))]
            parts += ["## FastAPI, ms", pages.table(header, rows)]
    absent = [name for name in ("fastapi", "uvicorn", "mlflow") if not find_spec(name)]
    parts += [f"Not installed: {', '.join(absent)}."] if absent else []
    pages.publish(options.output, "Served", "hosts.serving --reviews FOLDER", *parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
