"""When not to decide, with MAPIE: ``python -m benchmarks.hosts.deciding --explore FOLDER``.

A text is decided where the probability of its likeliest class reaches a threshold, and goes to
people else. MAPIE finds, on texts that the model was not fitted to, thresholds above which at most
2 % of the decided texts are wrong, with 95 % confidence (Angelopoulos and others, 2022), and sets
of classes that hold the right one nine times of ten. Both are then tried on the test part.

With ``--teachers``, the folder of benchmarks.setfit, also with 300 labels: SetFit's recorded
probabilities, a model that SetFit taught, and logistic regression. One half of the test part is for
the thresholds then, above which at most 10 % are wrong.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from mapie.classification import SplitConformalClassifier
from mapie.risk_control import BinaryClassificationController
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from .. import pages
from ..models import LOGISTIC, OURS, logistic, text_classifier
from ..problems import load
from ..setfit import recorded_splits

SETS = "banking77", "topic"
LABELS = 300
TAUGHT, SETFIT = "TextClassifier(), taught by SetFit", "SetFit"
ERRORS, ERRORS_OF_FEW = 0.02, 0.1
CONFIDENCE, COVERED = 0.95, 0.9
# Thresholds, closer to each other near 1, where some models' probabilities are.
GRID = 1 - np.geomspace(1, 0.001, 100)
STEPS = np.linspace(0.5, 0.95, 10)
COLORS = {OURS: "#1f6fb4", TAUGHT: "#7a3e9d", LOGISTIC: "#b2570f", SETFIT: "#3b7d3b"}

Probabilities = NDArray[np.float64]


class Told(NamedTuple):
    """A model's probabilities of texts, of shape (n, n_classes), and their labels' columns."""

    probabilities: Probabilities
    y: NDArray[np.intp]

    @property
    def surest(self) -> Probabilities:
        """The probability of each text's likeliest class, of shape (n,)."""
        return np.asarray(self.probabilities.max(axis=1))

    @property
    def is_right(self) -> NDArray[np.bool_]:
        """Whether each text's likeliest class is its label's, of shape (n,)."""
        return np.asarray(self.probabilities.argmax(axis=1) == self.y)

    def of_class(self, k: int) -> Told:
        """Return the texts whose likeliest class is the k-th."""
        rows = self.probabilities.argmax(axis=1) == k
        return Told(self.probabilities[rows], self.y[rows])


class Case(NamedTuple):
    """What a model told of texts to find thresholds on, and of texts for testing.

    errors : the largest share of decided texts that may be wrong
    """

    set: str
    model: str
    errors: float
    calibration: Told
    test: Told


def fitted(explore: Path | None, seeds: int) -> Iterator[Case]:
    """Yield models fitted to six of ten training texts; the others are for thresholds."""
    for name in SETS if explore else SETS[1:]:
        data = load(name, explore=explore)
        classes, y = np.unique(data.y_train, return_inverse=True)
        y_test = np.searchsorted(classes, data.y_test)
        for seed in range(seeds):
            texts, others, y_texts, y_others = train_test_split(
                data.X_train, y, test_size=0.4, stratify=y, random_state=seed
            )
            for title, model in {OURS: text_classifier(), LOGISTIC: logistic()}.items():
                model.fit(texts, y_texts)
                of_others = Told(model.predict_proba(others), y_others)
                of_test = Told(model.predict_proba(data.X_test), y_test)
                yield Case(name, title, ERRORS, of_others, of_test)


def recorded(explore: Path, teachers: Path) -> Iterator[Case]:
    """Yield SetFit, a model that it taught and logistic regression, each with 300 labels."""
    for split in recorded_splits(explore, teachers):
        if len(split.labels) != LABELS:
            continue
        y = np.searchsorted(split.classes, split.labels_test)
        half = np.random.default_rng(0).random(len(y)) < 0.5
        regression = logistic().fit(split.texts, split.labels)
        told = {
            TAUGHT: split.fit(split.told).predict_proba(split.texts_test),
            SETFIT: split.told_test,
            LOGISTIC: regression.predict_proba(split.texts_test),
        }
        for title, of_texts in told.items():
            parts = (Told(of_texts[rows], y[rows]) for rows in (half, ~half))
            yield Case(split.name, title, ERRORS_OF_FEW, *parts)


def threshold(told: Told, errors: float, thresholds: Probabilities, method: str) -> float:
    """Return MAPIE's threshold for a share of errors, above 1 where none is sure enough.

    Those that no text reaches are left out: with them, MAPIE 1.6 finds none.
    """
    reached = thresholds[thresholds <= told.surest.max(initial=0)]
    if not len(reached):
        return 2.0
    controller = BinaryClassificationController(
        lambda surest: np.column_stack([1 - surest, surest]),
        risk="precision",
        target_level=1 - errors,
        confidence_level=CONFIDENCE,
        list_predict_params=reached,
        fwer_method=method,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no threshold is low, or high, enough
        controller.calibrate(told.surest, told.is_right.astype(int))
    found = controller.best_predict_param
    return 2.0 if found is None else float(found)


def sets_of_classes(case: Case) -> NDArray[np.bool_]:
    """Return whether MAPIE's set of a test text has a class, of shape (n, n_classes)."""
    n_classes = case.test.probabilities.shape[1]
    given = Given().fit(np.eye(n_classes), np.arange(n_classes))
    conformal = SplitConformalClassifier(given, confidence_level=COVERED, prefit=True)
    conformal.conformalize(case.calibration.probabilities, case.calibration.y)
    return np.asarray(conformal.predict_set(case.test.probabilities)[1][:, :, 0])


class Given(DummyClassifier):
    """A classifier whose documents are probabilities already."""

    def predict_proba(self, X: Any) -> Any:
        """Return the documents."""
        return X


def measures(case: Case) -> dict[str, Any]:
    """Return shares of decided texts, errors among them, and sizes of sets, on test texts."""
    surest, is_right = case.test.surest, case.test.is_right
    decided = surest >= threshold(case.calibration, case.errors, GRID, "bonferroni_holm")
    # A threshold for each class that is predicted, found in steps, which asks for fewer texts.
    n_classes = case.test.probabilities.shape[1]
    of_classes = map(case.calibration.of_class, range(n_classes))
    by_class = np.array(
        [threshold(told, case.errors, STEPS, "fixed_sequence") for told in of_classes]
    )
    decided_by_class = surest >= by_class[case.test.probabilities.argmax(axis=1)]
    sets = sets_of_classes(case)
    return {
        "set": case.set,
        "model": case.model,
        "errors allowed": case.errors,
        "accuracy": is_right.mean(),
        "log loss": log_loss(case.test.y, case.test.probabilities, labels=np.arange(n_classes)),
        "decided": decided.mean(),
        "wrong of these": _share_of(~is_right, decided),
        "decided, a threshold a class": decided_by_class.mean(),
        "wrong of these, a class": _share_of(~is_right, decided_by_class),
        "right class in the set": sets[np.arange(len(sets)), case.test.y].mean(),
        "classes in a set": sets.sum(axis=1).mean(),
    }


def _share_of(condition: NDArray[np.bool_], rows: NDArray[np.bool_]) -> float:
    """Return the share of some rows that meet a condition, nothing (NaN) of no rows."""
    return float(condition[rows].mean()) if rows.any() else np.nan


def draw(cases: list[Case], path: Path) -> None:
    """Draw errors among decided texts over the share decided, a panel a set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    first = {(case.set, case.model): case for case in reversed(cases)}
    names = list(dict.fromkeys(case.set for case in cases))
    n_rows = -(-len(names) // 4)
    figure, axes = plt.subplots(
        n_rows, 4, figsize=(10, 2.7 * n_rows), layout="constrained", squeeze=False
    )
    for ax in axes.flat[len(names) :]:
        ax.axis("off")
    for ax, name in zip(axes.flat, names, strict=False):
        for (of_set, model), case in first.items():
            if of_set != name:
                continue
            wrong = ~case.test.is_right[np.argsort(-case.test.surest, kind="stable")]
            number = np.arange(1, len(wrong) + 1)
            beyond = number >= 50
            shares = 100 * number / len(wrong), 100 * np.cumsum(wrong) / number
            ax.plot(*(one[beyond] for one in shares), color=COLORS[model], label=model)
        title = f"{name} labels" if name.endswith(str(LABELS)) else name
        ax.set(title=title, xlabel="texts decided (%)", ylabel="wrong of these (%)", ylim=(0, None))
        ax.spines[["top", "right"]].set_visible(False)
    handles = {line.get_label(): line for ax in axes.flat for line in ax.lines}
    figure.legend(handles.values(), handles, frameon=False, loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print and draw."""
    parser = pages.parser("hosts.deciding", __doc__, "explore")
    parser.add_argument("--teachers", type=Path, metavar="FOLDER", help="folder of setfit_NAME.npz")
    parser.add_argument("--figure", type=Path, metavar="FILE")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    cases = list(fitted(options.explore, options.seeds))
    if options.explore and options.teachers:
        cases += recorded(options.explore, options.teachers)
    found = pd.DataFrame(list(map(measures, cases)))
    found["too many wrong"] = found["wrong of these"] > found["errors allowed"]
    rows = found.groupby(["set", "model"], sort=False)
    too_many = rows["too many wrong"].agg(lambda column: f"{column.sum()} of {len(column)}")
    means = rows.mean().map("{:.3f}".format).replace("nan", "–")
    means = means.assign(**{"too many wrong": too_many}).reset_index()
    notes = (
        f"MAPIE {pages.version('mapie')}; means of {options.seeds} divisions of the training texts "
        "into texts to fit and texts for thresholds."
    )
    command = "hosts.deciding --explore FOLDER --teachers FOLDER"
    table = pages.table(means.columns, means.to_numpy())
    pages.publish(options.output, "When not to decide", command, notes, table)
    if options.figure:
        draw(cases, options.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
