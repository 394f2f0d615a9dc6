"""The targets, and what a run's results say of them.

`results` is what run.py writes as JSON: ``results["problems"][problem]`` has "competitors",
"gradient", "prediction" and "memory"; ``results["short_fit"]`` is one comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

MAX_FIT_RATIO_COUNTS_MEAN = 0.35
MAX_FIT_RATIO_COUNTS_EACH = 0.8
MAX_FIT_RATIO_TFIDF_MEAN = 0.7
MAX_SHORT_FIT_RATIO = 1.0
MAX_GRADIENT_RATIO = 2.2
MAX_PREDICT_RATIO = 1.8
MAX_MEMORY_RATIO = 2.5
MIN_ACCURACY = {
    "imdb_unigrams": 0.892,
    "imdb_bigrams": 0.914,
    "yelp_polarity": 0.962,
    "yelp_stars": 0.663,
}
MAX_POINTS_BEHIND_BEST = 0.3

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
        return "met" if self.met else f"missed by {self.missed_by}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and the words, for JSON."""
        return {**asdict(self), "verdict": self.words}


def judge(results: dict[str, Any]) -> list[Verdict]:
    """Return the verdict on every target."""
    problems = results["problems"]
    return [
        *_fit_ratios(problems),
        _at_most("fit on 1,000 short documents", MAX_SHORT_FIT_RATIO, _short(results), "LR"),
        _at_most(
            "one loss-and-gradient",
            MAX_GRADIENT_RATIO,
            _each(problems, "gradient"),
            "its two products",
        ),
        _at_most("predict_proba", MAX_PREDICT_RATIO, _each(problems, "prediction"), "LR's"),
        _at_most("peak memory of fit beyond X", MAX_MEMORY_RATIO, _memory(problems), "X's bytes"),
        *_accuracies({} if results.get("fast") else problems),  # those are for all rows
        *_against_best(problems),
        *(_calibration(problems, measure) for measure in ("ece", "log_loss")),
    ]


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def fit_ratios(problems: dict[str, Any], baseline: str) -> dict[str, float]:
    """Return our fit time over the baseline's, problem by problem."""
    return {
        name: entry["competitors"]["ours"]["fit_seconds"]
        / entry["competitors"][baseline]["fit_seconds"]
        for name, entry in problems.items()
        if {"ours", baseline} <= set(entry["competitors"])
    }


def _fit_ratios(problems: dict[str, Any]) -> list[Verdict]:
    counts = fit_ratios(problems, "logistic_counts")
    tfidf = fit_ratios(problems, "logistic_tfidf")
    of_counts, of_tfidf = "LR on counts, tuned", "LR on TF-IDF, tuned"
    return [
        _at_most("fit, geometric mean", MAX_FIT_RATIO_COUNTS_MEAN, _mean(counts), of_counts),
        _at_most("fit, each problem", MAX_FIT_RATIO_COUNTS_EACH, counts, of_counts),
        _at_most("fit, geometric mean", MAX_FIT_RATIO_TFIDF_MEAN, _mean(tfidf), of_tfidf),
    ]


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
    return Verdict(what, target, measured, excess <= 0, f"{excess:.2f} ({worst})")


def _mean(ratios: dict[str, float]) -> dict[str, float]:
    return {"geometric mean": geometric_mean(ratios.values())} if ratios else {}


def _short(results: dict[str, Any]) -> dict[str, float]:
    return {"1,000 documents": results["short_fit"]["ratio"]} if results.get("short_fit") else {}


def _each(problems: dict[str, Any], piece: str) -> dict[str, float]:
    return {name: entry[piece]["ratio"] for name, entry in problems.items() if entry.get(piece)}


def _memory(problems: dict[str, Any]) -> dict[str, float]:
    return {
        name: entry["memory"]["ours"]["ratio"]
        for name, entry in problems.items()
        if "ours" in entry.get("memory", {})
    }


def _accuracies(problems: dict[str, Any]) -> list[Verdict]:
    verdicts = []
    for name, least in MIN_ACCURACY.items():
        what, target = f"test accuracy with defaults, {name}", f"at least {least:.3f}"
        accuracy = _ours(problems, name).get("accuracy")
        if accuracy is None:
            verdicts.append(Verdict(what, target, NOT_MEASURED, None))
            continue
        missed_by = f"{100 * (least - accuracy):.2f} points"
        verdicts.append(Verdict(what, target, f"{accuracy:.4f}", accuracy >= least, missed_by))
    return verdicts


def _against_best(problems: dict[str, Any]) -> list[Verdict]:
    """Compare with the baseline that is best on test on each problem: the strictest reading."""
    points, named = {}, []
    for name, entry in problems.items():
        baselines = {key: row for key, row in entry["competitors"].items() if key != "ours"}
        if "ours" in entry["competitors"] and baselines:
            best = max(baselines, key=lambda key: baselines[key]["accuracy"])
            ours = entry["competitors"]["ours"]["accuracy"]
            points[name] = 100 * (ours - baselines[best]["accuracy"])
            named.append(f"{name} {points[name]:+.2f} against {best}")
    what = "accuracy against the best tuned baseline"
    targets = f"no worse than {MAX_POINTS_BEHIND_BEST:g} points on any", "better on average"
    if not points:
        return [Verdict(what, target, NOT_MEASURED, None) for target in targets]
    worst = min(points, key=lambda name: points[name])
    behind = -points[worst] - MAX_POINTS_BEHIND_BEST
    mean = sum(points.values()) / len(points)
    return [
        Verdict(what, targets[0], ", ".join(named), behind <= 0, f"{behind:.2f} ({worst})"),
        Verdict(what, targets[1], f"{mean:+.2f} points", mean > 0, f"{-mean:.2f} points"),
    ]


def _calibration(problems: dict[str, Any], measure: str) -> Verdict:
    what = {"ece": "expected calibration error", "log_loss": "log loss"}[measure]
    target = "no worse than LR on TF-IDF, tuned"
    pairs = {
        name: (_ours(problems, name)[measure], entry["competitors"]["logistic_tfidf"][measure])
        for name, entry in problems.items()
        if {"ours", "logistic_tfidf"} <= set(entry["competitors"])
    }
    if not pairs:
        return Verdict(what, target, NOT_MEASURED, None)
    measured = ", ".join(f"{name} {a:.4f} to {b:.4f}" for name, (a, b) in pairs.items())
    worse = {name: a - b for name, (a, b) in pairs.items() if a > b}
    missed_by = ", ".join(f"{excess:.4f} ({name})" for name, excess in worse.items())
    return Verdict(what, target, measured, not worse, missed_by)


def _ours(problems: dict[str, Any], name: str) -> dict[str, Any]:
    row: dict[str, Any] = problems.get(name, {}).get("competitors", {}).get("ours", {})
    return row
