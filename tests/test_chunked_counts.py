"""Counts in files: what is written is what is read, and fits are those of the whole."""

import itertools
import os
import shutil

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import assert_close_fit
from numpy.testing import assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from sklearn_clsattn import ChunkedCounts, ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification

BOUNDS = [0, 3, 4, 4, 30, 120, 200]


def cut(bounds, *arrays):
    """Return rows of all arrays between bounds."""
    return [
        tuple(array[first:last] for array in arrays) for first, last in itertools.pairwise(bounds)
    ]


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
    batches = cut([*BOUNDS, len(y)], X, y, *weights)
    return ChunkedCounts.write(folder, batches, chunk_entries=chunk_entries, **options)


X, y, _ = documents()


@pytest.fixture
def counts(tmp_path):
    return written(tmp_path / "counts", X, y)


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


def test_texts_by_a_vectorizer(tmp_path):
    texts = ["a terrific film", "a boring film", "terrific fun", "long and boring", ""]
    labels = ["good", "bad", "good", "bad", "bad"]
    batches = [(texts[:2], labels[:2]), ([], []), (texts[2:], labels[2:])]
    with pytest.raises(ValueError, match="not fitted"):
        ChunkedCounts.write(tmp_path / "none", batches, vectorizer=CountVectorizer())
    vectorizer = HashingVectorizer(n_features=64, alternate_sign=False, norm=None)
    for name, one in (("hashed", vectorizer), ("counted", CountVectorizer().fit(texts))):
        counts = ChunkedCounts.write(tmp_path / name, batches, vectorizer=one)
        model, X = ClsAttentionClassifier().fit_chunks(counts), one.transform(texts)
        expected = ClsAttentionClassifier().fit(X, labels).decision_function(X)
        np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-5)


def test_names_of_tokens_are_kept(tmp_path):
    frame = pd.DataFrame(X.toarray()).add_prefix("token ")
    counts = written(tmp_path / "named", frame, y)
    assert counts.feature_names == frame.columns.tolist()
    model = ClsAttentionClassifier().fit_chunks(counts)
    assert model.feature_names_in_.tolist() == counts.feature_names
    assert_close_fit(model, ClsAttentionClassifier().fit(frame, y))
    with pytest.raises(ValueError, match=r"Batch 1 .*expected the same tokens"):
        ChunkedCounts.write(tmp_path / "mixed", [(frame, y), (X, y)])


def test_writing_that_was_stopped_leaves_a_folder_that_says_so(tmp_path):

    def batches():
        yield X, y
        raise KeyboardInterrupt

    folder = tmp_path / "counts"
    with pytest.raises(KeyboardInterrupt):
        ChunkedCounts.write(folder, batches(), chunk_entries=200)
    assert any(folder.glob("chunk-*"))
    with pytest.raises(ValueError, match="is incomplete, because writing stopped"):
        ChunkedCounts(folder)
    with pytest.raises(FileExistsError, match="is not empty"):
        written(folder, X, y)


def test_an_error_in_a_batch_names_it_and_leaves_the_mark(tmp_path):
    batches = [(X, y), (X[:, :-1], y)]
    with pytest.raises(ValueError, match=r"Batch 1 \(from 0\): Got documents with 539 tokens"):
        ChunkedCounts.write(tmp_path / "counts", batches)
    with pytest.raises(ValueError, match="incomplete"):
        ChunkedCounts(tmp_path / "counts")


def test_what_is_wrong_with_a_batch_is_said(tmp_path):
    for number, (batch, said) in enumerate(
        [
            ((-X, y), "Negative values in data passed to ChunkedCounts"),
            ((X, y[:-1]), "inconsistent numbers of samples"),
            ((X, y, -np.ones(len(y))), "Negative values"),
            ((X, y, np.ones(3)), r"sample_weight\.shape"),
            ((["some text"], ["bad"]), "X contains texts"),
            ((X, np.arange(len(y)) % 2), "labels of one type"),
            ((X,), r"Expected \(X, y\) or .*, got a tuple"),
            (X, "got a csr_array"),
        ]
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            ChunkedCounts.write(tmp_path / str(number), [(X, y), batch])


def test_what_is_no_folder_of_chunks(tmp_path):
    for header, said in [
        (None, "it is not a file"),
        (b"[]", "TypeError"),
        (b'{"format": 5}', "KeyError"),
        (b'{"format": 99}', "its format is 99, expected 5"),
        (b"\xff", "UnicodeDecodeError"),
    ]:
        if header is not None:
            (tmp_path / "corpus.json").write_bytes(header)
        with pytest.raises(ValueError, match=rf"not a ChunkedCounts file \(.*{said}"):
            ChunkedCounts(tmp_path)


def test_the_path_and_the_size_of_chunks(tmp_path, monkeypatch):
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for size in (0, "many"):
        with pytest.raises((TypeError, ValueError), match="chunk_entries"):
            written("~/counts", X, y, chunk_entries=size)
    assert ChunkedCounts(written("~/counts", X, y).path).path == tmp_path / "counts"
    assert ChunkedCounts("~/counts").shape == X.shape
    for n_batches in (0, 1, 2):
        with pytest.raises(ValueError, match="batches have no documents"):
            ChunkedCounts.write(tmp_path / f"empty {n_batches}", [(X[:0], y[:0])] * n_batches)


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.int64])
def test_any_cut_gives_the_fit_of_the_whole(tmp_path, dtype, by_class):
    """With copies in several chunks, and chunks without some of the classes or any document."""
    X, y, weights = documents(3)
    order = np.argsort(y, kind="stable") if by_class else np.arange(len(y))
    X, y, weights = X.astype(dtype)[order], y[order], weights[order]
    batches = cut([0, 0, 0, 1, 50, 50, 210, len(y)], X, y, weights)
    counts = ChunkedCounts.write(tmp_path / "counts", batches, chunk_entries=700)
    model = ClsAttentionClassifier(C=1.0, tol=1e-6).fit_chunks(counts)
    expected = ClsAttentionClassifier(C=1.0, tol=1e-6).fit(X, y, weights)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(model.token_importance_, expected.token_importance_, atol=1e-12)
    assert_array_equal(model.selected_tokens_, expected.selected_tokens_)


def test_who_cannot_fit_on_chunks_says_why(tmp_path, counts, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with pytest.raises(ValueError, match="fit_chunks runs on the CPU only"):
        ClsAttentionClassifier(device="cuda").fit_chunks(counts)
    one = ChunkedCounts.write(tmp_path / "one", [(X[y == "bad"], y[y == "bad"])])
    with pytest.raises(ValueError, match="y has one class"):
        ClsAttentionClassifier().fit_chunks(one)


# Folders that are damaged, or made by others


DAMAGES = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "empty": lambda path: path.write_bytes(b""),
    "gone": lambda path: path.unlink(),
    "folder": lambda path: (path.unlink(), path.mkdir()),
    "pipe": lambda path: (path.unlink(), os.mkfifo(path)),  # which is not waited for
}
NAMES = ["targets", "weights"] + [
    f"{of}_{part}" for of in ("rows", "columns") for part in ("indptr", "indices", "data")
]
FILES = ["corpus.json", "classes.npy", *(f"chunk-00001/{name}.npy" for name in NAMES)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of chunks of 540 tokens."""
    X, y, weights = documents()
    return written(tmp_path_factory.mktemp("whole") / "counts", X, y, weights).path


@pytest.fixture
def folder(whole, tmp_path):
    """A copy of it to damage."""
    return shutil.copytree(whole, tmp_path / "counts")


def refused(folder, name):
    """Require that a fit on a folder is refused with the name of a file."""
    with pytest.raises(ValueError, match="is damaged or not a ChunkedCounts file") as error:
        ClsAttentionClassifier(C=1.0).fit_chunks(ChunkedCounts(folder))
    assert type(error.value) is ValueError
    assert str(error.value).startswith(f"{folder / name} is damaged")


@pytest.mark.parametrize(
    ("name", "damage"),
    [(name, "cut") for name in FILES]
    + [(name, damage) for name in ("corpus.json", "chunk-00001/weights.npy") for damage in DAMAGES],
)
def test_damage_to_any_file_is_said(folder, name, damage):
    if damage == "pipe" and not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes")
    DAMAGES[damage](folder / name)
    refused(folder, name)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows_indices", lambda a: a + 540),
        ("columns_indices", lambda a: a - 1),
        ("rows_indptr", lambda a: a[::-1].copy()),
        ("columns_indptr", lambda a: a[:-1]),
        ("columns_data", lambda a: a[:-1]),
        ("targets", lambda a: a + 2),
        ("targets", lambda a: a[1:]),
    ],
)
def test_numbers_out_of_bounds_are_said(folder, name, change):
    path = folder / f"chunk-00001/{name}.npy"
    np.save(path, change(np.load(path)))
    refused(folder, "chunk-00001/targets.npy")
