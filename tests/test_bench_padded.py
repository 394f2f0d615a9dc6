"""The padded benchmark: its competitors are correct, and a tiny run of it goes through."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch

from benchmarks import bench_padded, problems
from benchmarks.bench_padded import BagForm, Parameters, ScalarForm, Sequences, Timing


@pytest.fixture
def documents():
    """Return counts with an empty document, an unseen token and one long document, and codes."""
    X = reference.counts(0, n_documents=20, n_tokens=12)
    X = X.toarray().astype(int)
    X[3, :5] = 7
    return sp.csr_matrix(X), np.arange(20) % 2


def test_all_forms_agree_with_each_other(documents):
    found = bench_padded.differences(*documents, 8, cut=6, dtype=torch.float64)
    assert set(found) == {"padded, cut at 6", "padded, whole", "scalars"}
    assert max(found.values()) < 1e-12


def test_and_with_the_reference(documents):
    X, codes = documents
    parameters = Parameters.draw(X.shape[1], 8, torch.float64)
    leaves = parameters.leaves()
    E, p, v = leaves
    padded = reference.PaddedDocuments.from_counts(X)
    f = reference.outputs(padded, E, p, v[None], 0, 0, 0)
    targets, ones = torch.from_numpy(2.0 * codes - 1), torch.ones(20, dtype=torch.float64)
    expected = torch.autograd.grad(reference.mean_loss(f, targets, ones), leaves)
    sequences = Sequences(X, codes, torch.float64)
    bag = BagForm(X, codes, torch.float64)(parameters, torch.empty_like(E))
    by_batches = bench_padded.padded_gradient_of_all(parameters, sequences, 7)
    whole = bench_padded.padded_gradient(parameters, sequences, np.arange(20), sparse=True)
    assert whole[0].is_sparse
    for found in (bag, by_batches, (whole[0].to_dense(), *whole[1:])):
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-14)
    for one, other in zip(ScalarForm(sequences)(parameters), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-14)


def test_sequences_spell_counts_out(documents):
    X, codes = documents
    sequences = Sequences(X, codes)
    np.testing.assert_array_equal(sequences.lengths, np.asarray(X.sum(axis=1)).ravel())
    for cut in (None, 6):
        tokens, real = sequences.padded(np.array([3, 0, 10]), cut)
        kept = X if cut is None else bench_padded.cut_counts(X, cut)
        for row, document in enumerate([3, 0, 10]):
            counts = np.bincount(tokens[row][real[row]].numpy(), minlength=X.shape[1])
            np.testing.assert_array_equal(counts, kept[[document]].toarray()[0])
        assert tokens.shape[1] == (6 if cut else X[3].sum())


def test_cutting_leaves_the_callers_matrix_alone(documents):
    X, _ = documents
    before = X.copy()
    cut = bench_padded.cut_counts(X, 4)
    assert (before != X).nnz == 0
    assert cut.sum(axis=1).max() == 4
    assert (cut > X).nnz == 0


def test_what_is_extrapolated_says_so(documents):
    X, codes = documents
    parameters = Parameters.draw(X.shape[1], 4)
    timing = bench_padded.extrapolated(parameters, Sequences(X, codes), 6, seconds=0)
    assert timing.seconds > 0
    assert timing.how.startswith(("extrapolated from 1 of 2 batches of 16", "all 1 batches, once"))


def test_report_names_forms_ratios_and_targets():
    forms = {
        "bag": Timing(0.1, "median of 3"),
        "scalars": Timing(0.05, "median of 3"),
        "padded, cut at 256": Timing(123.4, "extrapolated from 2 of 9 batches"),
        "padded, whole": Timing(1000.0, "extrapolated"),
    }
    text = bench_padded.table({64: forms})
    assert "| 64 | padded, cut at 256 | 123 | 1,234 | extrapolated from 2 of 9 batches |" in text
    assert "| 64 | scalars | 0.05 | 0.5 | median of 3 |" in text
    padded, scalars = bench_padded.verdicts({8: {}, 64: forms})
    assert "d = 64" in padded
    assert "1,234 times, met" in padded
    assert "0.5 times, missed" in scalars


def run_tiny(tmp_path, monkeypatch, expected=0):
    """Run the benchmark on 60 generated documents and return where its report should be."""
    tiny = problems.Spec("tiny", "a tiny problem", generated={"n_irrelevant": 50, "delta": 0.1})
    load = problems.load
    monkeypatch.setattr(problems, "specs", lambda reviews: (tiny,))
    monkeypatch.setattr(
        problems,
        "load",
        lambda spec, reviews, n_rows: load(spec, reviews, n_rows=n_rows, cache=tmp_path),
    )
    threads = torch.get_num_threads()
    output = tmp_path / "results" / "padded.md"
    arguments = ["--reviews", str(tmp_path), "--rows", "60", "--dims", "4", "16", "--runs", "2"]
    arguments += ["--seconds", "0", "--threads", "1", "--output", str(output)]
    try:
        assert bench_padded.main(arguments) == expected
    finally:
        torch.set_num_threads(threads)
    return output


def test_nothing_is_timed_where_forms_disagree(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench_padded, "differences", lambda *arguments: {"scalars": 0.5})
    assert not run_tiny(tmp_path, monkeypatch, expected=1).exists()
    assert "disagree" in capsys.readouterr().err


def test_a_tiny_run(tmp_path, monkeypatch, capsys):
    text = run_tiny(tmp_path, monkeypatch).read_text(encoding="utf-8")
    for part in (
        "60 documents",
        "PyTorch on 1 threads",
        "| 16 | scalars |",
        "at d = 16",
        "Largest",
    ):
        assert part in text
    assert "| 4 | bag |" in capsys.readouterr().out
