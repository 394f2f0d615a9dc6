"""The benchmark of learning from batches runs, and says what it measured."""

import numpy as np

from benchmarks import bench_streaming, problems


def test_a_tiny_run(tmp_path, monkeypatch, capsys):
    tiny = problems.Spec("tiny", "a tiny problem", generated={"n_irrelevant": 50, "delta": 0.1})
    monkeypatch.setattr(problems, "GENERATED", (tiny,))
    load = problems.load
    monkeypatch.setattr(
        problems,
        "load",
        lambda spec, reviews, n_rows: load(spec, reviews, n_rows=n_rows, cache=tmp_path),
    )
    output = tmp_path / "results" / "streaming.md"
    arguments = ["--reviews", str(tmp_path), "--sizes", "100", "--rows", "200"]
    assert bench_streaming.main([*arguments, "--output", str(output)]) == 0
    text = output.read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    assert "| a tiny problem | 100 |" in text
    assert "One pass loses at most 0.01" in text


def test_one_pass_sees_every_batch_once():
    class Model:
        seen = ()

        def partial_fit(self, X, y, classes):
            assert classes.tolist() == [0, 1]
            self.seen += ((X.tolist(), y.tolist()),)

    model, seconds = bench_streaming.one_pass(Model, np.arange(5), np.array([0, 1, 1, 0, 1]), 2)
    assert model.seen == (([0, 1], [0, 1]), ([2, 3], [1, 0]), ([4], [1]))
    assert seconds >= 0
