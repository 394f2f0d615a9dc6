"""Counts in files: what is written is what is read, and fits are those of the whole."""

import itertools
import os
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import assert_close_fit, refused
from numpy.testing import assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from sklearn_clsattn import ChunkedCounts, ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification


def documents(n_classes=2):
    """Return counts in double precision, labels and weights; some documents stand there twice."""
    X, y = make_token_classification(300, n_classes=n_classes, random_state=0)
    again = np.arange(0, 300, 7)
    X = sp.csr_array(sp.vstack([X, X[again]])).astype(float)
    y = np.array(["bad", "fair", "good"])[np.concatenate([y, y[again]])]
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    weights[5:9] = 0.0
    return X, y, weights


def written(folder, X, y, *weights, chunk_entries=1000, **options):
    """Write uneven batches, one of them empty."""
    batches = []
    for first, last in itertools.pairwise([0, 3, 4, 4, 30, 120, 200, len(y)]):
        batches.append(tuple(array[first:last] for array in (X, y, *weights)))
    return ChunkedCounts.write(folder, batches, chunk_entries=chunk_entries, **options)


X, y, _ = documents()
FRAME = pd.DataFrame(X.toarray()).add_prefix("token ")


def test_what_is_read_is_what_was_written(tmp_path):
    X, y, weights = documents(3)
    counts = written(tmp_path / "counts", X, y, weights)
    assert counts.shape == X.shape
    assert counts.n_entries == X.nnz
    assert counts.classes.tolist() == ["bad", "fair", "good"]
    chunks = list(counts)
    assert len(chunks) == len(counts) >= 7
    assert (sp.vstack([chunk[0] for chunk in chunks]) != X).nnz == 0
    assert_array_equal(np.concatenate([chunk[1] for chunk in chunks]), y)
    assert_array_equal(np.concatenate([chunk[2] for chunk in chunks]), weights)
    assert str(len(y)) in repr(counts)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"attend_cls": False},
        {"token_scaling": None, "C": 3.0},
        {"sublinear_counts": False},
        {"class_weight": "balanced"},
    ],
    ids=str,
)
def test_a_fit_on_chunks_is_that_of_the_whole(tmp_path, n_classes, changed):
    """The default fit's choice of C included, with copies of documents in several chunks."""
    X, y, weights = documents(n_classes)
    counts = written(tmp_path / "counts", X, y, weights)
    before = sorted(os.listdir(counts.path))
    model = ClsAttentionClassifier(**changed).fit_chunks(counts)
    assert_close_fit(model, ClsAttentionClassifier(**changed).fit(X, y, weights))
    assert sorted(os.listdir(counts.path)) == before


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int64])
def test_chunks_of_one_class_each_and_of_any_number_type(tmp_path, dtype):
    X, y, weights = documents(3)
    order = np.argsort(y, kind="stable")
    X, y, weights = X.astype(dtype)[order], y[order], weights[order]
    counts = written(tmp_path / "counts", X, y, weights)
    model = ClsAttentionClassifier(C=1.0, tol=1e-6).fit_chunks(counts)
    expected = ClsAttentionClassifier(C=1.0, tol=1e-6).fit(X, y, weights)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-3)


def test_texts_by_a_vectorizer(tmp_path):
    texts = ["a terrific film", "a boring film", "terrific fun", "long and boring", ""]
    labels = ["good", "bad", "good", "bad", "bad"]
    batches = [(texts[:2], labels[:2]), ([], []), (texts[2:], labels[2:])]
    unfitted = CountVectorizer()
    refused("not fitted", ChunkedCounts.write, tmp_path / "none", batches, vectorizer=unfitted)
    vectorizer = HashingVectorizer(n_features=64, alternate_sign=False, norm=None)
    for name, one in (("hashed", vectorizer), ("counted", CountVectorizer().fit(texts))):
        counts = ChunkedCounts.write(tmp_path / name, batches, vectorizer=one)
        model, X = ClsAttentionClassifier().fit_chunks(counts), one.transform(texts)
        expected = ClsAttentionClassifier().fit(X, labels).decision_function(X)
        np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-5)


def test_names_of_tokens_are_kept(tmp_path):
    counts = written(tmp_path / "named", FRAME, y)
    assert counts.feature_names == FRAME.columns.tolist()
    model = ClsAttentionClassifier().fit_chunks(counts)
    assert model.feature_names_in_.tolist() == counts.feature_names
    assert_close_fit(model, ClsAttentionClassifier().fit(FRAME, y))


def test_writing_that_was_stopped_leaves_a_folder_that_says_so(tmp_path):
    def batches():
        yield X, y
        raise KeyboardInterrupt

    folder = tmp_path / "counts"
    with pytest.raises(KeyboardInterrupt):
        ChunkedCounts.write(folder, batches(), chunk_entries=200)
    assert any(folder.glob("chunk-*"))
    refused("is incomplete, because writing stopped", ChunkedCounts, folder)
    refused("is not empty", written, folder, X, y, error=FileExistsError)


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ((X[:, :-1], y), r"Batch 1 \(from 0\): Got documents with 539 tokens"),
        ((FRAME, y), r"Batch 1 .*expected the same tokens"),
        ((-X, y), "Negative values in data passed to ChunkedCounts"),
        ((X, y[:-1]), "inconsistent numbers of samples"),
        ((X, y, -np.ones(len(y))), "Negative values"),
        ((["some text"], ["bad"]), "X contains texts"),
        ((X, np.arange(len(y)) % 2), "labels of one type"),
        ((X,), r"Expected \(X, y\) or .*, got a tuple"),
    ],
)
def test_what_is_wrong_with_a_batch_is_said(tmp_path, batch, said):
    write, error = ChunkedCounts.write, (TypeError, ValueError)
    refused(said, write, tmp_path / "counts", [(X, y), batch], error=error)
    refused("incomplete", ChunkedCounts, tmp_path / "counts")


def test_the_path_and_the_size_of_chunks(tmp_path, monkeypatch):
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    refused("chunk_entries", written, "~/counts", X, y, chunk_entries=0)
    assert written("~/counts", X, y).path == tmp_path / "counts"
    assert ChunkedCounts("~/counts").shape == X.shape
    for n_batches in (0, 1, 2):
        batches = [(X[:0], y[:0])] * n_batches
        folder = tmp_path / f"empty {n_batches}"
        refused("batches have no documents", ChunkedCounts.write, folder, batches)


def test_who_cannot_fit_on_chunks_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    model = ClsAttentionClassifier(device="cuda")
    counts = written(tmp_path / "counts", X, y)
    refused("fit_chunks runs on the CPU only", model.fit_chunks, counts)
    one = ChunkedCounts.write(tmp_path / "one", [(X[y == "bad"], y[y == "bad"])])
    refused("y has one class", ClsAttentionClassifier().fit_chunks, one)


# Folders that are damaged, or made by others


def containing(content):
    return lambda path: path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-3])


def replaced_by_folder(path):
    path.unlink()
    path.mkdir()


def replaced_by_pipe(path):  # which is not waited for
    if not hasattr(os, "mkfifo"):
        pytest.skip("Windows has no named pipes")
    path.unlink()
    os.mkfifo(path)


HEADER, CHUNK = "corpus.json", "chunk-00001"
ARRAYS = ["targets", "weights"]
ARRAYS += [f"{of}_{part}" for of in ("rows", "columns") for part in ("indptr", "indices", "data")]
DAMAGES = [
    (HEADER, containing(b"[]"), "TypeError"),
    (HEADER, containing(b'{"format": 5}'), "KeyError"),
    (HEADER, containing(b'{"format": 99}'), "its format is 99, expected 5"),
    (HEADER, containing(b"\xff"), "UnicodeDecodeError"),
    *((name, cut, "") for name in (HEADER, "classes.npy")),
    *((f"{CHUNK}/{name}.npy", cut, "") for name in ARRAYS),
]
for name in (HEADER, f"{CHUNK}/weights.npy"):
    DAMAGES.append((name, containing(b""), ""))
    for damage in (Path.unlink, replaced_by_folder, replaced_by_pipe):
        DAMAGES.append((name, damage, "it is not a file"))
OUT_OF_BOUNDS = [
    ("rows_indices", lambda a: a + 540),
    ("columns_indices", lambda a: a - 1),
    ("rows_indptr", lambda a: a[::-1].copy()),
    ("rows_indptr", lambda a: a[:-1]),
    ("columns_indptr", lambda a: a[:-1]),
    ("columns_data", lambda a: a[:-1]),
    ("targets", lambda a: a + 2),
    ("targets", lambda a: a[1:]),
    ("weights", lambda a: a[1:]),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of chunks of 540 tokens."""
    X, y, weights = documents()
    return written(tmp_path_factory.mktemp("whole") / "counts", X, y, weights).path


@pytest.fixture
def folder(whole, tmp_path):
    """A copy of it to damage."""
    return shutil.copytree(whole, tmp_path / "counts")


def fit_on(folder):
    return ClsAttentionClassifier(C=1.0).fit_chunks(ChunkedCounts(folder))


@pytest.mark.parametrize(("name", "damage", "said"), DAMAGES)
def test_damage_to_any_file_is_said(folder, name, damage, said):
    damage(folder / name)
    refused(rf"{name} is damaged or not a ChunkedCounts file \(.*{said}", fit_on, folder)


@pytest.mark.parametrize(("name", "change"), OUT_OF_BOUNDS)
def test_numbers_out_of_bounds_are_said(folder, name, change):
    path = folder / CHUNK / f"{name}.npy"
    np.save(path, change(np.load(path)))
    # Chunks are only read: a fit on indices out of bounds could crash the process.
    refused("targets.npy is damaged or not a ChunkedCounts file", list, ChunkedCounts(folder))


def test_chunks_are_read_while_another_thread_fits(tmp_path):
    counts = written(tmp_path / "counts", X, y, chunk_entries=500)
    expected = ClsAttentionClassifier(C=1.0).fit_chunks(counts)
    ended = threading.Event()

    def read():
        while not ended.is_set():
            for _ in counts:
                pass

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(1) as pool:
            reader = pool.submit(read)
            fits = [ClsAttentionClassifier(C=1.0).fit_chunks(counts) for _ in range(2)]
            ended.set()
            reader.result()
    finally:
        sys.setswitchinterval(interval)
    for one in fits:
        assert_array_equal(one.token_values_, expected.token_values_)


def test_a_fit_on_the_same_chunks_within_a_fit_does_not_wait_for_it(tmp_path, monkeypatch):
    counts = written(tmp_path / "counts", X, y)
    expected = ClsAttentionClassifier(C=1.0).fit_chunks(counts)
    within = []

    def fit_once(text):
        if not within:
            within.append(ClsAttentionClassifier(C=1.0))
            within[0].fit_chunks(counts)

    output = SimpleNamespace(write=fit_once, flush=lambda: None)
    monkeypatch.setattr(sys, "stdout", output)
    outer = ClsAttentionClassifier(C=1.0, verbose=1).fit_chunks(counts)
    for model in (outer, *within):
        assert_array_equal(model.token_values_, expected.token_values_)
