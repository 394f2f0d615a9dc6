"""The benchmark's own arithmetic, and a run of it on a tiny generated problem."""

import copy
import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from threadpoolctl import threadpool_limits

from benchmarks import problems, report, suite, targets, text_competitors, timing, tuning
from benchmarks.competitors import COMPETITORS
from benchmarks.competitors.base import Competitor
from benchmarks.measures import expected_calibration_error, quality
from benchmarks.text_competitors import fast_text

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
    names = list(COMPETITORS)
    with threadpool_limits(1):  # threads cost more than they give on a hundred documents
        results = suite.run(
            [tiny],
            [COMPETITORS[name] for name in names],
            short=tiny,
            texts=[TINY],
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
    assert written["problems"]["tiny"]["prediction"]["ratio_proba"] > 0
    from_text = written["from_text"]["tiny"]["competitors"]
    assert {"ours", "front_end", "logistic_counts", "linear_svc_tfidf"} <= set(from_text)
    assert all(row["accuracy"] > 0.5 for row in from_text.values())
    assert ("fasttext" in from_text) != bool(written["left_out"])

    text = (tmp_path / "fast.md").read_text()
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = {line.count("|") for line in tables if "a tiny" not in line}
    assert widths <= {3, 5, 7, 8, 11}
    assert all(COMPETITORS[name].title in text for name in names)
    assert "not measured" in text
    assert not list(tmp_path.glob("*.tmp"))


def test_the_readme_has_the_table_of_the_latest_run():
    page = suite.README.read_text("utf-8")
    results = json.loads((suite.RESULTS / "latest.json").read_text("utf-8"))
    assert report.with_summary(page, results) == page
    rows = report.summary_table(results).splitlines()
    assert len(rows) == 2 + len(report.SUMMARY)
    ours = results["problems"]["imdb_unigrams"]["competitors"]["ours"]
    assert rows[2].split(" | ")[1] == f"**{ours['accuracy']:.4f} ({ours['fit_seconds']:.2g})**"
    with pytest.raises(ValueError, match="end of table"):
        report.with_summary("no place for it", results)


def test_what_is_not_installed_is_left_out_by_name(monkeypatch):
    monkeypatch.setattr(fast_text, "PACKAGE", "no_such_package")
    assert list(text_competitors.left_out().values()) == ["no_such_package"]
    assert "fasttext" not in [c.name for c in text_competitors.text_competitors({})]


def test_texts_are_what_the_matrices_count(tiny):
    texts = problems.load_texts(TINY, None, n_rows=150)
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform(texts.X_train)
    columns = [int(name.removeprefix("w")) for name in vectorizer.get_feature_names_out()]
    np.testing.assert_array_equal(X.toarray(), tiny.X_train.toarray()[:, columns])
    np.testing.assert_array_equal(texts.y_test, tiny.y_test)


def test_fasttext_learns_what_words_say():
    pytest.importorskip("fasttext")
    texts = ["good, it's\nfine", "bad!\tpoor", "fine good", "poor bad"] * 25
    labels = np.array(["yes", "no"] * 50)
    model = fast_text.FastTextClassifier(bucket=1_000).fit(texts, labels)
    probabilities = model.predict_proba([*texts[:4], ""])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert model.predict(texts[:4]).tolist() == labels[:4].tolist()


def test_texts_for_fasttext_are_lines_of_tokens():
    assert fast_text.lines(["It's\ngood: very"]) == ["it's good : very"]


def test_an_unknown_problem_is_one_clear_line(tmp_path, capsys):
    status = suite.main(["--problems", "nothing", "--reviews", str(tmp_path)])
    assert status == 2
    assert "no problem named nothing" in capsys.readouterr().err


GOOD_ROW = {"accuracy": 0.97, "ece": 0.01, "log_loss": 0.1, "fit_seconds": 1.0}
BASELINE_ROW = {"accuracy": 0.9, "ece": 0.02, "log_loss": 0.2, "fit_seconds": 9.0}


def good_results():
    entry = {
        "competitors": {
            "ours": {**GOOD_ROW, "fit_seconds": 1.5},
            "ours_given_c": GOOD_ROW,
            "logistic_counts": {**BASELINE_ROW, "fit_seconds": 12.0},
            "logistic_tfidf": BASELINE_ROW,
            "linear_svc": {**BASELINE_ROW, "fit_seconds": 1.5, "ece": None},
        },
        "prediction": {"ratio": 1.1},
        "memory": {"ours": {"ratio": 1.9}},
    }
    text_entry = {
        "competitors": {"ours": GOOD_ROW, "front_end": GOOD_ROW, "logistic_counts": BASELINE_ROW}
    }
    names = {*targets.MIN_ACCURACY, *targets.MIN_FRONT_END_ACCURACY}
    return {
        "problems": {name: copy.deepcopy(entry) for name in names},
        "from_text": {name: copy.deepcopy(text_entry) for name in names},
    }


def test_targets_can_all_be_met():
    verdicts = targets.judge(good_results())
    assert [verdict.words for verdict in verdicts] == ["MET"] * len(verdicts)


@pytest.mark.parametrize(
    ("part", "path", "value", "what"),
    [
        ("problems", ("competitors", "ours_given_c", "fit_seconds"), 1.1, "fit, C given"),
        (
            "problems",
            ("competitors", "logistic_counts", "fit_seconds"),
            1.0,
            "fit, C given, geometric mean",
        ),
        ("problems", ("competitors", "ours", "fit_seconds"), 1.9, "fit, C chosen"),
        ("problems", ("prediction", "ratio"), 1.3, "predict"),
        ("problems", ("memory", "ours", "ratio"), 2.1, "peak memory of fit beyond X"),
        (
            "problems",
            ("competitors", "ours", "accuracy"),
            0.6,
            "test accuracy, counts, yelp_stars",
        ),
        (
            "problems",
            ("competitors", "ours", "ece"),
            0.03,
            "expected calibration error, C chosen",
        ),
        (
            "from_text",
            ("competitors", "ours", "fit_seconds"),
            2.5,
            "from raw text to fitted, the same tokens",
        ),
        (
            "from_text",
            ("competitors", "front_end", "accuracy"),
            0.68,
            "test accuracy, make_text_classifier(), yelp_stars",
        ),
    ],
)
def test_each_target_can_fail(part, path, value, what):
    results = good_results()
    *parents, last = path
    place = results[part]["yelp_stars"]
    for key in parents:
        place = place[key]
    place[last] = value
    missed = {verdict.what: verdict.words for verdict in targets.judge(results) if not verdict.met}
    assert list(missed) == [what]
    assert missed[what].startswith("MISSED by ")


def test_calibration_is_judged_on_average_too():
    results = good_results()
    for entry in results["problems"].values():
        entry["competitors"]["ours"]["ece"] = 0.02
    words = [(v.target, v.words) for v in targets.judge(results) if not v.met]
    assert words == [("better on average", "MISSED by 0.0000")]


def test_a_fast_run_is_not_judged_by_accuracy():
    verdicts = targets.judge({**good_results(), "fast": True})
    accuracies = [verdict for verdict in verdicts if "accuracy" in verdict.what]
    assert {verdict.words for verdict in accuracies} == {"not measured"}


def test_what_was_not_measured_is_neither_met_nor_missed():
    verdicts = targets.judge({"problems": {}})
    assert {verdict.words for verdict in verdicts} == {"not measured"}
