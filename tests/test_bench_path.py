"""The benchmark of choosing C runs, and says what it measured."""

from benchmarks import bench_path, problems


def test_a_tiny_run(tmp_path, monkeypatch, capsys):
    tiny = problems.Spec("tiny", "a tiny problem", generated={"n_irrelevant": 50, "delta": 0.1})
    monkeypatch.setattr(problems, "GENERATED", (tiny,))
    load = problems.load
    monkeypatch.setattr(
        problems,
        "load",
        lambda spec, reviews, n_rows: load(spec, reviews, n_rows=n_rows, cache=tmp_path),
    )
    arguments = ["--reviews", str(tmp_path), "--rows", "60", "--runs", "1", "--folds", "2"]
    assert bench_path.main(arguments) == 0
    said = capsys.readouterr().out
    assert "a tiny problem, 60 documents" in said
    assert "- cross-validation: C = " in said
    assert "by 10 values x 2 folds" in said
    assert '- C="auto": C = ' in said
