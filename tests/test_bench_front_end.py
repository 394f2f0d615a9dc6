"""The benchmark of the front end: a tiny run goes through, and its table is right."""

import pandas as pd

from benchmarks import bench_front_end


def test_a_tiny_run(tmp_path, capsys):
    texts = ["a good film", "so good, so fine", "a bad film", "dull, not fun", "good"] * 30
    labels = ["pos", "pos", "neg", "neg", "neg"] * 30
    frame = pd.DataFrame({"text": texts, "label": labels, "part": ["train"] * 120 + ["test"] * 30})
    frame.to_csv(tmp_path / "tiny.csv.gz", index=False)
    arguments = ["--explore", str(tmp_path), "--splits", "1", "--documents", "30", "--sets"]
    assert bench_front_end.main([*arguments, "tiny", "missing"]) == 0
    printed, warned = capsys.readouterr()
    assert "| tiny | 100.00 / " in printed
    assert "| better, of 1 sets |" in printed
    assert "missing.csv.gz" in warned
    assert bench_front_end.main([*arguments, "missing"]) == 1


def test_the_best_baseline_is_another_one_for_each_measure():
    names = [bench_front_end.OURS, "one", "other"]
    result = pd.DataFrame(
        {"accuracy": [80.0, 79.0, 81.5], "log_loss": [0.5, 0.6, float("nan")]}, index=names
    )
    lines = bench_front_end.table({"set": result, "again": result}).split("\n")
    assert lines[2] == "| set | 80.00 / 0.5000 | 79.00 / 0.6000 | 81.50 | -1.50 / -0.1000 |"
    assert lines[-1].endswith("| 0 / 2 |")
