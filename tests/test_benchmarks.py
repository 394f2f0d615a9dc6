"""The benchmark's own arithmetic, and a run of it on a tiny generated problem."""

import copy
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "benchmarks" / "run.py").is_file():
    pytest.skip("the benchmarks are not part of an installed package", allow_module_level=True)
pytest.importorskip("psutil")
sys.path.insert(0, str(ROOT))

from benchmarks import problems, suite, targets, timing, tuning  # noqa: E402
from benchmarks.competitors import COMPETITORS  # noqa: E402
from benchmarks.competitors.base import Competitor  # noqa: E402
from benchmarks.measures import expected_calibration_error, quality  # noqa: E402

TINY = problems.Spec(
    "tiny", "a tiny problem", generated={"n_irrelevant": 50, "document_length": 60, "delta": 0.1}
)


@pytest.fixture
def tiny(tmp_path):
    return problems.load(TINY, None, n_rows=150, cache=tmp_path)


def test_calibration_error_by_hand():
    classes = np.array(["no", "yes"])
    # Confidences .9, .9 in one bin (one right: gap .4), .6 in another (right: gap .4).
    probabilities = np.array([[0.9, 0.1], [0.1, 0.9], [0.4, 0.6]])
    y = np.array(["no", "no", "yes"])
    error = expected_calibration_error(classes, y, probabilities)
    assert error == pytest.approx((2 * 0.4 + 0.4) / 3)


def test_calibration_error_of_certain_and_right_is_zero():
    y = np.array([0, 1, 2])
    assert expected_calibration_error(np.arange(3), y, np.eye(3)) == 0


def test_quality_of_decision_values_has_no_probabilities():
    row = quality(
        np.array([3, 5]), np.array([3, 5, 5]), np.array([-1.0, 2.0, -0.1]), probabilities=False
    )
    assert row["accuracy"] == pytest.approx(2 / 3)
    assert row["log_loss"] is None
    assert row["ece"] is None


def test_a_cached_problem_is_the_same_and_canonical(tiny, tmp_path):
    again = problems.load(TINY, None, n_rows=150, cache=tmp_path)
    assert (again.X_train != tiny.X_train).nnz == 0
    np.testing.assert_array_equal(again.y_test, tiny.y_test)
    for row in range(5):
        indices = tiny.X_train[row].indices
        assert np.all(np.diff(indices) > 0)
    assert problems.load(TINY, None, n_rows=100, cache=tmp_path).path != tiny.path


def test_reviews_that_are_not_there(tmp_path):
    assert problems.find_reviews(tmp_path) is None
    assert problems.find_reviews(None) is None
    assert problems.specs(None) == problems.GENERATED


def test_ties_go_to_the_smaller_value():
    assert tuning.best_value({1.0: 0.8, 0.1: 0.8, 0.01: 0.7}) == 0.1


def test_tuning_extends_the_grid_and_reads_its_cache(tiny, tmp_path):
    made = []

    class Scores:
        """Accuracy falls with the value: the best stands at the lower edge."""

        def __init__(self, value):
            made.append(value)
            self.value = value

        def fit(self, X, y):
            self.right = y
            return self

        def predict(self, X):
            n_right = int(X.shape[0] * max(0.0, 1 - self.value))
            return np.where(np.arange(X.shape[0]) < n_right, self.expected, -1)

    held_out_labels = tuning._split(tiny, COMPETITORS["multinomial_nb"])[3]
    Scores.expected = held_out_labels
    competitor = Competitor(
        "falls", "falls", lambda value, n_classes: Scores(value), parameter="C", grid=(0.5, 0.9)
    )
    first = tuning.tuned_value(tiny, competitor, cache=tmp_path)
    assert first == min(made[:-1]) or first == min(made)
    assert min(made) < 0.5
    n_made = len(made)
    assert tuning.tuned_value(tiny, competitor, cache=tmp_path) == first
    assert len(made) == n_made
    tuning.tuned_value(tiny, competitor, cache=tmp_path, retune=True)
    assert len(made) == 2 * n_made


def test_runs_follow_the_time_of_the_first():
    effort = timing.Effort(max_runs=5, seconds=20)
    assert [effort.runs(seconds) for seconds in (0.0, 1, 6, 60)] == [5, 5, 3, 1]


def test_a_fast_run_gives_json_and_markdown(tiny, tmp_path):
    names = ["ours", "logistic_counts", "logistic_tfidf", "nb_svm", "linear_svc", "multinomial_nb"]
    with threadpool_limits(1):  # threads cost more than they give on a hundred documents
        results = suite.run(
            [tiny],
            [COMPETITORS[name] for name in names],
            short=tiny,
            fast=True,
            measure_memory=False,
            cache=tmp_path,
        )
    suite.write(results, tmp_path, "fast")
    written = json.loads((tmp_path / "fast.json").read_text())
    rows = written["problems"]["tiny"]["competitors"]
    assert list(rows) == names
    assert all(0.5 < row["accuracy"] <= 1 and row["fit_seconds"] > 0 for row in rows.values())
    assert rows["linear_svc"]["log_loss"] is None
    assert rows["ours"]["value"] is None
    assert written["machine"]["versions"]["scikit-learn"]
    assert written["short_fit"]["ratio"] > 0

    text = (tmp_path / "fast.md").read_text()
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = {line.count("|") for line in tables if "a tiny" not in line}
    assert widths <= {5, 7, 11}
    assert all(COMPETITORS[name].title in text for name in names)
    assert "not measured" in text
    assert not list(tmp_path.glob("*.tmp"))


def test_an_unknown_problem_is_one_clear_line(tmp_path, capsys):
    status = suite.main(["--problems", "nothing", "--reviews", str(tmp_path)])
    assert status == 2
    assert "no problem named nothing" in capsys.readouterr().err


GOOD_ROW = {"accuracy": 0.97, "ece": 0.01, "log_loss": 0.1, "fit_seconds": 1.0}
BASELINE_ROW = {"accuracy": 0.9, "ece": 0.02, "log_loss": 0.2, "fit_seconds": 4.0}


def good_results():
    entry = {
        "competitors": {
            "ours": GOOD_ROW,
            "logistic_counts": BASELINE_ROW,
            "logistic_tfidf": {**BASELINE_ROW, "fit_seconds": 2.0},
        },
        "gradient": {"ratio": 2.0},
        "prediction": {"ratio": 1.5},
        "memory": {"ours": {"ratio": 2.0}},
    }
    names = targets.MIN_ACCURACY
    return {
        "problems": {name: copy.deepcopy(entry) for name in names},
        "short_fit": {"ratio": 0.9},
    }


def test_targets_can_all_be_met():
    verdicts = targets.judge(good_results())
    assert [verdict.words for verdict in verdicts] == ["met"] * len(verdicts)


@pytest.mark.parametrize(
    ("path", "value", "what"),
    [
        (("competitors", "ours", "fit_seconds"), 4.0, "fit, each problem"),
        (("gradient", "ratio"), 2.3, "one loss-and-gradient"),
        (("prediction", "ratio"), 1.9, "predict_proba"),
        (("memory", "ours", "ratio"), 2.6, "peak memory of fit beyond X"),
        (("competitors", "ours", "accuracy"), 0.6, "test accuracy with defaults, yelp_stars"),
        (
            ("competitors", "logistic_counts", "accuracy"),
            0.974,
            "accuracy against the best tuned baseline",
        ),
        (("competitors", "ours", "ece"), 0.03, "expected calibration error"),
        (("competitors", "ours", "log_loss"), 0.3, "log loss"),
    ],
)
def test_each_target_can_fail(path, value, what):
    results = good_results()
    *parents, last = path
    place = results["problems"]["yelp_stars"]
    for key in parents:
        place = place[key]
    place[last] = value
    missed = {verdict.what: verdict.words for verdict in targets.judge(results) if not verdict.met}
    assert what in missed
    assert missed[what].startswith("missed by ")
    assert "fit on 1,000 short documents" not in missed


def test_means_and_short_documents_can_fail():
    results = good_results()
    results["short_fit"]["ratio"] = 1.2
    for entry in results["problems"].values():
        entry["competitors"]["ours"]["fit_seconds"] = 1.6
    words = [(v.what, v.words) for v in targets.judge(results) if not v.met]
    assert words == [
        ("fit, geometric mean", "missed by 0.05 (geometric mean)"),
        ("fit, geometric mean", "missed by 0.10 (geometric mean)"),
        ("fit on 1,000 short documents", "missed by 0.20 (1,000 documents)"),
    ]


def test_what_was_not_measured_is_neither_met_nor_missed():
    verdicts = targets.judge({"problems": {}})
    assert {verdict.words for verdict in verdicts} == {"not measured"}
