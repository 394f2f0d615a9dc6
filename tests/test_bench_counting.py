"""The benchmark of counting runs, and says what it measured."""

from benchmarks import bench_counting


def test_a_tiny_run(tmp_path, monkeypatch, capsys):
    output = tmp_path / "results" / "counting.md"
    arguments = ["--reviews", str(tmp_path), "--rows", "20", "--runs", "1"]
    fresh, names = bench_counting.in_fresh_process, []

    def in_process(name, task, options):
        names.append(name)
        measured = bench_counting.measure(name, task, options)
        if len(names) > 1:
            return measured
        found = fresh(name, task, options)  # one will do: starting a process takes seconds
        assert found.keys() == measured.keys()
        assert found["sum"] == measured["sum"]
        return found

    monkeypatch.setattr(bench_counting, "in_fresh_process", in_process)
    assert bench_counting.main([*arguments, "--output", str(output)]) == 0
    assert names == ["scikit-learn", "here"] * 2
    text = output.read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    assert "Generated texts" in text
    for task in bench_counting.TASKS:
        for what in bench_counting.TARGETS:
            assert f"| {task} | {what} |" in text


def test_what_passes():
    assert bench_counting.row("t", "transform", 6.0, 1.0, 5.0).endswith(
        "| 6 s | 1 s | 6.00 | at least 5 | PASS |"
    )
    assert bench_counting.row("t", "transform", 4.0, 1.0, 5.0).endswith("FAIL |")
    assert bench_counting.row("t", "peak memory", 1e9, 2e9, 1.7).endswith(
        "| 1,000 MB | 2,000 MB | 2.00 | at most 1.7 | FAIL |"
    )
    assert bench_counting.row("t", "peak memory", 1e9, 1e9, 1.7).endswith("PASS |")
