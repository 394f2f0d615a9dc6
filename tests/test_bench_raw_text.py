"""The benchmark from raw text runs, and says what it measured."""

from benchmarks import bench_raw_text


def test_a_tiny_run(tmp_path, monkeypatch, capsys):
    fresh, names = bench_raw_text.in_fresh_process, []

    def in_process(problem, name, options):
        names.append(name)
        measured = bench_raw_text.measure(problem, name, options)
        if len(names) == 2:  # one will do: starting a process takes seconds
            found = fresh(problem, name, options)
            assert found.keys() == measured.keys()
            assert found["accuracy"] == measured["accuracy"]
        return measured

    monkeypatch.setattr(bench_raw_text, "in_fresh_process", in_process)
    arguments = ["--reviews", str(tmp_path), "--problems", "wide_polarity"]
    assert bench_raw_text.main([*arguments, "--rows", "100", "--runs", "1"]) == 0
    assert names == list(bench_raw_text.MEASURED)
    text = capsys.readouterr().out
    assert "| generated, wide vocabulary | fit, cold | fit, warm |" in text
    assert "| ours, make_text_classifier() | " in text


def test_what_passes():
    (spec,) = (one for one in bench_raw_text.problems.GENERATED if one.name == "wide_polarity")
    slow = dict.fromkeys(bench_raw_text.TIMES, 8.0) | {"accuracy": 0.5, "log_loss": 0.7}
    quick = slow | {"fit, cold": 1.0, "fit, warm": 4.0}
    results = dict(zip(bench_raw_text.MEASURED, (slow, quick, slow), strict=True))
    lines = bench_raw_text.table(spec, results)
    assert "| 1 s, 0.12 | 4 s, 0.50 | 8 s, 1.00 | 8 s, 1.00 | 0.5000 | 0.7000 |" in lines[3]
    assert lines[5:7] == [
        "fit, cold: 0.12, at most 0.25: PASS",
        "fit, warm: 0.50, at most 0.25: FAIL",
    ]
