"""The targets, and what a run's results say of them.

`results` is what run.py writes as JSON: ``results["problems"][problem]`` has "competitors",
"prediction" and "memory"; ``results["from_text"][problem]`` has the "competitors" from raw text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

MAX_FIT_RATIO_SVC = 0.7
MAX_FIT_RATIO_COUNTS_MEAN = 0.10
MAX_CHOICE_RATIO_SVC = 1.2
MAX_PREDICT_RATIO_SVC = 1.2
MAX_MEMORY_RATIO = 2.0
MAX_TEXT_FIT_RATIO = 0.25
MIN_ACCURACY = {"imdb_unigrams": 0.892, "imdb_bigrams": 0.917, "yelp_stars": 0.675}
MIN_FRONT_END_ACCURACY = {"imdb_bigrams": 0.921, "yelp_polarity": 0.966, "yelp_stars": 0.682}

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Verdict:
    """One target: what was asked, what was measured, and whether it is met (None: unknown)."""

    what: str
    target: str
    measured: str
    met: bool | None
    missed_by: str = ""

    @property
    def words(self) -> str:
        """The verdict as a table says it."""
        if self.met is None:
            return NOT_MEASURED
        return "MET" if self.met else f"MISSED by {self.missed_by}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and the words, for JSON."""
        return {**asdict(self), "verdict": self.words}


def judge(results: dict[str, Any]) -> list[Verdict]:
    """Return the verdict on every target."""
    problems, from_text = results["problems"], results.get("from_text", {})
    svc, counts = "LinearSVC on TF-IDF, tuned", "LR on counts, tuned"
    given_c = "fit, C given"
    return [
        _at_most(
            given_c, MAX_FIT_RATIO_SVC, fit_ratios(problems, "ours_given_c", "linear_svc"), svc
        ),
        _at_most(
            f"{given_c}, geometric mean",
            MAX_FIT_RATIO_COUNTS_MEAN,
            _mean(fit_ratios(problems, "ours_given_c", "logistic_counts")),
            counts,
        ),
        _at_most(
            "fit, C chosen", MAX_CHOICE_RATIO_SVC, fit_ratios(problems, "ours", "linear_svc"), svc
        ),
        _at_most("predict", MAX_PREDICT_RATIO_SVC, _predictions(problems), "LinearSVC's"),
        _at_most("peak memory of fit beyond X", MAX_MEMORY_RATIO, _memory(problems), "X's bytes"),
        _at_most(
            "from raw text to fitted, the same tokens",
            MAX_TEXT_FIT_RATIO,
            fit_ratios(from_text, "ours", "logistic_counts"),
            "CountVectorizer and LR, defaults",
        ),
        # Of all rows, not of the few of a fast run.
        *_accuracies("counts", MIN_ACCURACY, {} if results.get("fast") else problems, "ours"),
        *_accuracies(
            "make_text_classifier()",
            MIN_FRONT_END_ACCURACY,
            {} if results.get("fast") else from_text,
            "front_end",
        ),
        *_calibration(problems),
    ]


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def fit_ratios(problems: dict[str, Any], ours: str, baseline: str) -> dict[str, float]:
    """Return our fit time over the baseline's, problem by problem."""
    return {
        name: entry["competitors"][ours]["fit_seconds"]
        / entry["competitors"][baseline]["fit_seconds"]
        for name, entry in problems.items()
        if {ours, baseline} <= set(entry["competitors"])
    }


def _at_most(what: str, limit: float, ratios: dict[str, float], unit: str) -> Verdict:
    target = f"at most {limit:g} x {unit}"
    if not ratios:
        return Verdict(what, target, NOT_MEASURED, None)
    worst = max(ratios, key=lambda name: ratios[name])
    measured = f"{ratios[worst]:.2f}"
    if len(ratios) > 1:
        others = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
        measured = f"{measured} at worst ({others})"
    excess = ratios[worst] - limit
    return Verdict(what, target, measured, excess <= 0, f"{excess:.3f} ({worst})")


def _mean(ratios: dict[str, float]) -> dict[str, float]:
    return {"geometric mean": geometric_mean(ratios.values())} if ratios else {}


def _predictions(problems: dict[str, Any]) -> dict[str, float]:
    return {
        name: entry["prediction"]["ratio"]
        for name, entry in problems.items()
        if entry.get("prediction")
    }


def _memory(problems: dict[str, Any]) -> dict[str, float]:
    return {
        name: entry["memory"]["ours"]["ratio"]
        for name, entry in problems.items()
        if "ours" in entry.get("memory", {})
    }


def _accuracies(
    features: str, limits: dict[str, float], problems: dict[str, Any], ours: str
) -> list[Verdict]:
    verdicts = []
    for name, least in limits.items():
        what, target = f"test accuracy, {features}, {name}", f"at least {least:.3f}"
        accuracy = _row(problems, name, ours).get("accuracy")
        if accuracy is None:
            verdicts.append(Verdict(what, target, NOT_MEASURED, None))
            continue
        missed_by = f"{100 * (least - accuracy):.2f} points"
        verdicts.append(Verdict(what, target, f"{accuracy:.4f}", accuracy >= least, missed_by))
    return verdicts


def _calibration(problems: dict[str, Any]) -> list[Verdict]:
    what = "expected calibration error, C chosen"
    targets = ("no worse than LR on TF-IDF, tuned, on any", "better on average")
    pairs = {
        name: (_row(problems, name, "ours")["ece"], _row(problems, name, "logistic_tfidf")["ece"])
        for name, entry in problems.items()
        if {"ours", "logistic_tfidf"} <= set(entry["competitors"])
    }
    if not pairs:
        return [Verdict(what, target, NOT_MEASURED, None) for target in targets]
    measured = ", ".join(f"{name} {a:.4f} to {b:.4f}" for name, (a, b) in pairs.items())
    worse = {name: a - b for name, (a, b) in pairs.items() if a > b}
    missed_by = ", ".join(f"{excess:.4f} ({name})" for name, excess in worse.items())
    mean = sum(a - b for a, b in pairs.values()) / len(pairs)
    return [
        Verdict(what, targets[0], measured, not worse, missed_by),
        Verdict(what, targets[1], f"{mean:+.4f}", mean < 0, f"{mean:.4f}"),
    ]


def _row(problems: dict[str, Any], name: str, competitor: str) -> dict[str, Any]:
    row: dict[str, Any] = problems.get(name, {}).get("competitors", {}).get(competitor, {})
    return row
