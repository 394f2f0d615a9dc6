"""The benchmark against another checkout measures that checkout, in pairs."""

import subprocess
import sys

import pytest

from benchmarks import bench_against, problems


def test_a_tiny_run(tmp_path, monkeypatch, capsys):
    tiny = problems.Spec("tiny", "a tiny problem", generated={"n_irrelevant": 50, "delta": 0.1})
    load = problems.load
    monkeypatch.setattr(problems, "GENERATED", (tiny,))
    monkeypatch.setattr(
        problems, "load", lambda spec, reviews: load(spec, reviews, n_rows=200, cache=tmp_path)
    )
    arguments = [str(bench_against.ROOT), "--reviews", str(tmp_path), "--pairs", "1"]
    monkeypatch.setattr(sys, "argv", ["bench_against.py", *arguments])
    bench_against.main()
    printed = capsys.readouterr().out
    assert "a tiny problem, 1 pairs: this, the other, this / other" in printed
    for figure in (*bench_against.FIGURES, "iterations", "accuracy", "log loss"):
        (line,) = (line for line in printed.splitlines() if line.strip().startswith(figure))
        if figure in ("iterations", "accuracy", "log loss"):  # the same checkout twice
            assert line.split()[-1] == line.split()[-2]


def test_the_other_checkout_is_what_is_measured(tmp_path):
    """A package of the same name that is empty cannot be fitted."""
    package = tmp_path / "sklearn_clsattn"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('the other one')")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        bench_against.in_a_process(tmp_path, tmp_path / "none.npz")
    assert "the other one" in caught.value.stderr
