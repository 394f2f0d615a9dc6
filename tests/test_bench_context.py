"""The benchmark of contexts: a tiny run goes through, and its table is right."""

import pandas as pd

from benchmarks import bench_context


def test_a_tiny_run(tmp_path, capsys):
    texts = ["a good film", "so good, so fine", "a bad film", "dull, not fun", "nan"] * 12
    labels = ["pos", "pos", "neg", "neg", "nan"] * 12
    pd.DataFrame({"text": texts, "label": labels}).to_csv(tmp_path / "tiny.csv.gz", index=False)
    arguments = ["--explore", str(tmp_path), "--splits", "1", "--sets"]
    assert bench_context.main([*arguments, "tiny", "missing"]) == 0
    printed, warned = capsys.readouterr()
    assert "| tiny | 100.00 / " in printed
    assert printed.count("\n|") == 5
    assert "missing.csv.gz" in warned
    assert bench_context.main([*arguments, "missing"]) == 1


def test_without_places_no_word_has_one_before_it():
    texts = ["a good film", "a bad film, dull"] * 9
    vectorizer = bench_context.Order().fit(texts, [0, 1] * 9)
    places = vectorizer._places(texts, vectorizer._tokens(texts))
    own = bench_context.ContextVectorizer._places(vectorizer, texts, vectorizer._tokens(texts))
    assert places.previous.shape == own.previous.shape
    assert places.previous.dtype == own.previous.dtype  # in smaller ones numbers overflow
    assert set(places.previous.tolist()) == {-1}
    assert set(places.from_start.tolist()) == set(places.from_end.tolist()) == {0}


def test_the_table_has_differences_and_their_mean():
    variants = ["none", *bench_context.VARIANTS]
    one, other = (
        pd.DataFrame(
            {"accuracy": [80.0] + [80.0 + gain] * 5, "log_loss": [0.5] + [0.5 - gain / 100] * 5},
            index=variants,
        )
        for gain in (1.0, -0.5)
    )
    lines = bench_context.table({"one": one, "other": other}).split("\n")
    assert lines[2].startswith("| one | 80.00 / 0.5000 | +1.00 / -0.0100 |")
    assert lines[4].endswith("| +0.25 / -0.0025 |")
    assert lines[6].endswith("| 1 / 1 |")
