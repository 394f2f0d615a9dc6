"""Screening records, in ASReview: ``python -m benchmarks.hosts.screening --screening FOLDER``.

The folder holds NAME.csv with the columns title, abstract and included (0 or 1), such as the sets
of github.com/GerbrichFerdinands/asreview-thesis. ASReview's simulation starts from one relevant
and one irrelevant record, and labels ten more a step until 95 % of the relevant ones are found and
a tenth of the records is read. WSS@95 is the share of records that need not be read to find these
95 %, less 0.05. Recall at 10 % is the share of the relevant found in the first tenth.

With ``--choose`` all settings of clsattn run. The best of them by the mean WSS@95 on the sets ace
and nudging, with ``--n-query 25``, was the one in the last row: "no scaling, one-hot".
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch  # noqa: F401  before the first fit, whose time is measured
from asreview import load_dataset
from asreview.learner import ActiveLearningCycle
from asreview.models.models import get_ai_config
from asreview.simulation.simulate import Simulate
from numpy.typing import NDArray

from .. import pages

LINEAR_SVC = get_ai_config("elas_u4")["value"]  # ASReview's default
NAIVE_BAYES = get_ai_config("elas_u3")["value"]
ONE_HOT = {
    "feature_extractor": "onehot",
    "feature_extractor_param": {"ngram_range": (1, 2), "max_df": 0.95},
}


def classified(name: str, *, balancer: str | None = "balanced", **parameters: Any) -> Any:
    """Return the default cycle with another classifier."""
    return replace(LINEAR_SVC, classifier=name, classifier_param=parameters, balancer=balancer)


CYCLES = {
    "LinearSVC, the default": LINEAR_SVC,
    "naive Bayes": NAIVE_BAYES,
    "logistic regression": classified("logistic"),
    "logistic regression, one-hot": replace(classified("logistic"), **ONE_HOT),
    "clsattn": classified("clsattn"),
    "clsattn, one-hot": replace(classified("clsattn"), **ONE_HOT),
    "clsattn, scaled by log-odds": classified("clsattn", token_scaling="log_odds"),
}
SETTINGS: dict[str, Any] = {}
for title, scaling in {"clsattn": None, "clsattn, scaled": "log_odds"}.items():
    given = {"token_scaling": scaling}
    SETTINGS |= {
        f"{title}, C=0.1": classified("clsattn", C=0.1, **given),
        f"{title}, C=1": classified("clsattn", C=1.0, **given),
        f"{title}, not balanced": classified("clsattn", balancer=None, **given),
        f"{title}, one-hot": replace(classified("clsattn", **given), **ONE_HOT),
    }
STARTS = 5


class Enough:
    """Stops when 95 % of the relevant records are found and a tenth is read, and keeps labels."""

    found: NDArray[np.intp]  # labels in the order of reading, without those of the start

    def stop(self, results: pd.DataFrame, labels: NDArray[np.intp]) -> bool:
        """Whether to stop."""
        self.found = results["label"].to_numpy(dtype=np.intp)[2:]
        is_read = len(self.found) >= (len(labels) - 2) / 10
        return bool(is_read and self.found.sum() >= 0.95 * (labels.sum() - 1))


def measures(found: NDArray[np.intp], n_records: int, n_relevant: int) -> dict[str, float]:
    """Return WSS@95 and the recall at 10 % of labels in the order of reading."""
    n_read = 1 + np.searchsorted(found.cumsum(), 0.95 * n_relevant)
    first = found[: int(0.1 * n_records)]
    return {"WSS@95": 0.95 - n_read / n_records, "recall": first.sum() / n_relevant}


def simulated(file: Path, cycles: dict[str, Any], starts: int) -> Iterator[dict[str, Any]]:
    """Yield the measures of each cycle from each start, with seconds of processor time."""
    with load_dataset(file, dataset_id=file.name) as database:
        records = database.input.get_df()
    y = records["included"].to_numpy(dtype=np.intp)

    @cache
    def features(extractor: str, parameters: str) -> Any:
        return made.transform(records).tocsr()

    for title, data in cycles.items():
        made = ActiveLearningCycle.from_meta(data)
        X = features(data.feature_extractor, str(data.feature_extractor_param))
        for start in range(starts):
            rng = np.random.default_rng(start)
            first = [int(rng.choice(np.flatnonzero(y == label))) for label in (1, 0)]
            enough = Enough()
            given = {"stopper": enough, "skip_transform": True, "print_progress": False}
            simulation = Simulate(X, y, made, **given)
            simulation.label(first)
            began = time.process_time()
            simulation.review()
            seconds = time.process_time() - began
            row = {"set": file.stem, "cycle": title, "seconds": seconds}
            row["steps"] = len(enough.found) / made.n_query
            yield row | measures(enough.found, len(y) - 2, int(y.sum()) - 1)
            print(file.stem, title, start, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Simulate, and print the table."""
    parser = pages.parser("hosts.screening", __doc__)
    parser.add_argument("--screening", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--choose", action="store_true", help="run all settings")
    parser.add_argument("--n-query", type=int, default=10, help="records labelled a step")
    parser.add_argument("--starts", type=int, default=STARTS)
    options = parser.parse_args(arguments)
    chosen = SETTINGS | CYCLES if options.choose else CYCLES
    cycles = {title: replace(data, n_query=options.n_query) for title, data in chosen.items()}
    files = sorted(options.screening.glob("*.csv"))
    found = pd.DataFrame([row for file in files for row in simulated(file, cycles, options.starts)])
    found["a step"] = found["seconds"] / found["steps"]
    columns = ["WSS@95", "recall", "seconds", "a step"]
    means = found.groupby(["set", "cycle"], sort=False)[columns].mean().reset_index()
    forms = {"WSS@95": "{:.3f}", "recall": "{:.3f}", "seconds": "{:.1f}", "a step": "{:.3f}"}
    for column, form in forms.items():
        means[column] = means[column].map(form.format)
    notes = (
        f"ASReview {pages.version('asreview')}; {options.n_query} records a step; means of "
        f"{options.starts} starts; seconds of processor time in the loop, and of a step."
    )
    parts = notes, pages.table(means.columns, means.to_numpy())
    command = "hosts.screening --screening FOLDER"
    pages.publish(options.output, "Screening, in ASReview", command, *parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
