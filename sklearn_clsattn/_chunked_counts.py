"""A corpus of counts in files, read chunk by chunk as needed."""

from __future__ import annotations

import json
import mmap
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from ._core.chunk import Chunk
from ._core.corpus import Corpus
from ._matrices import csr_of, row_blocks
from ._pickling import public
from ._targets import Targets
from ._training import Summary, joined, summary_of
from ._validation import checked_part
from ._writing import written_whole

_FORMAT = 5  # of the files; a folder of any other format is refused
_HEADER = "corpus.json"
_MARK = "INCOMPLETE"
_CLASSES = "classes.npy"
# A chunk's files: its counts are stored twice, by rows and by columns, so that no fit transposes.
_ARRAYS = (
    "targets",
    "weights",
    "rows_data",
    "rows_indices",
    "rows_indptr",
    "columns_data",
    "columns_indices",
    "columns_indptr",
)
# The default number of entries in a chunk: the first, or the second per token if that is more.
_LEAST_CHUNK = 4_000_000
_CHUNK_PER_TOKEN = 8
_OVERFULL = 1.1  # how much larger than asked a chunk may be


@public("sklearn_clsattn")
class ChunkedCounts:
    """Token counts with labels in a folder, for out-of-core fits.

    :meth:`write` creates the folder and :meth:`ClsAttentionClassifier.fit_chunks` reads it, one
    memory-mapped chunk after another. Lengths and bounds are checked when a file is first read, so
    that a damaged folder raises an error. Files must not change while in use.

    Parameters
    ----------
    path : str or path-like
        The folder.

    Attributes
    ----------
    path : pathlib.Path
        The folder.
    shape : tuple of int
        Number of documents and of tokens.
    n_entries : int
        Number of stored counts.
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    feature_names : list of str or None
        Names of the tokens, if the counts had any.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn_clsattn import ChunkedCounts, ClsAttentionClassifier
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> batches = [
    ...     (["a terrific film", "a boring film"], ["good", "bad"]),
    ...     (["terrific fun", "long and boring"], ["good", "bad"]),
    ... ]
    >>> vectorizer = HashingVectorizer(n_features=2**10, alternate_sign=False, norm=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     counts = ChunkedCounts.write(f"{folder}/films", batches, vectorizer=vectorizer)
    ...     model = ClsAttentionClassifier().fit_chunks(counts)
    >>> counts.shape, model.predict(vectorizer.transform(["terrific"]))
    ((4, 1024), array(['good'], dtype='<U4'))
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # 1) the header
        self.path = Path(path).expanduser()
        if (self.path / _MARK).exists():
            raise ValueError(
                f"{self.path} is incomplete, because writing stopped early. Remove it and write it "
                "again."
            )
        with _intact(self.path / _HEADER) as file:
            header = json.loads(file.read_text("utf-8"))
            if header["format"] != _FORMAT:
                raise ValueError(f"its format is {header['format']}, expected {_FORMAT}")
            self._n_chunks: int = header["n_chunks"]
            self.shape: tuple[int, int] = tuple(header["shape"])
            self.n_entries: int = header["n_entries"]
            self.feature_names: list[str] | None = header["feature_names"]
            dtype = np.dtype(header["dtype"])
            least = header["least"]
            largest = header["largest"]
            kind = header["targets"]
            labels_are_objects = header["labels_are_objects"]
        # 2) the labels, in the order of their codes, and the classes
        labels = self._array(_CLASSES, _Maps())
        self._labels = labels.astype(object if labels_are_objects else labels.dtype)
        has_codes = kind == "one label per document"
        self.classes = np.sort(self._labels) if has_codes else self._labels
        # 3) what a fit needs to know before it reads a chunk
        values = np.empty(0, np.intp) if has_codes else np.empty((0, len(labels)))
        targets = Targets(self.classes, values, multilabel=kind == "several labels")
        self._summary = Summary(
            self.shape, self.n_entries, dtype, least, largest, targets, self.feature_names
        )
        self._chunks: dict[int, Chunk] = {}

    @classmethod
    def write(
        cls,
        path: str | os.PathLike[str],
        batches: Iterable[tuple[Any, ...]],
        *,
        vectorizer: Any = None,
        chunk_entries: int | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Write a folder of chunks.

        Parameters
        ----------
        path : str or path-like
            The folder to create, or an empty one. It has a file ``INCOMPLETE`` until writing ends.
        batches : iterable of tuple
            (X, y) or (X, y, sample_weight), with counts X of shape (n_documents, n_tokens), or
            texts if there is a `vectorizer`. Several columns of y are several labels, or
            probabilities if there are `classes`. Only one batch, of any size, is in memory at a
            time.
        vectorizer : transformer, default=None
            Turns texts into counts: a fitted vectorizer, or one that needs no fit, such as
            :class:`~sklearn.feature_extraction.text.HashingVectorizer`.
        chunk_entries : int, default=None
            Approximate number of stored counts per chunk; each takes 12 to 24 bytes. By default
            four million, or eight per token if that is more.
        classes : array-like of shape (n_classes,), default=None
            Names of the classes in the order of the columns of y, if these are probabilities.

        Returns
        -------
        counts : ChunkedCounts
            The folder, opened.
        """
        # 1) checks before anything is written
        folder = Path(path).expanduser()
        if chunk_entries is not None:
            check_scalar(chunk_entries, "chunk_entries", Integral, min_val=1)
        # The tags of older releases' HashingVectorizer ask for a fit, which it does not need.
        if vectorizer is not None and not isinstance(vectorizer, HashingVectorizer):
            check_is_fitted(vectorizer)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise FileExistsError(f"{folder} is not empty: choose another name or remove it.")
        # 2) the chunks, batch by batch
        (folder / _MARK).write_text("This folder is being written, or writing stopped early.\n")
        writer = _Writer(folder, vectorizer, chunk_entries, classes)
        for number, batch in enumerate(batches):
            try:
                writer.add(batch)
            except (TypeError, ValueError) as error:
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(f"Batch {number} (from 0): {error}") from error
        writer.finish()
        (folder / _MARK).unlink()
        return cls(folder)

    def __len__(self) -> int:
        return self._n_chunks

    def __iter__(self) -> Iterator[tuple[Any, NDArray[Any], NDArray[np.float64]]]:
        """Yield the counts, labels (or columns of y) and document weights of each chunk."""
        for number in range(len(self)):
            chunk = self._chunk(number)
            targets = chunk.targets
            y = targets.classes[targets.values] if targets.has_codes else targets.values
            yield chunk.X, y, chunk.weights
            chunk.unload()

    def __reduce__(self) -> tuple[type[Self], tuple[Path]]:
        return type(self), (self.path,)

    def __repr__(self) -> str:
        documents, tokens = self.shape
        return (
            f"ChunkedCounts({str(self.path)!r}): {documents:,} documents, {tokens:,} tokens, "
            f"{self.n_entries:,} entries, {len(self):,} chunks"
        )

    def opened(self) -> tuple[Corpus, Summary]:
        """Return the documents with their summary."""
        chunks = [self._chunk(number) for number in range(len(self))]
        return Corpus(chunks), self._summary

    def _chunk(self, number: int) -> Chunk:
        """Return a memory-mapped chunk, which is checked when it is first read."""
        if number not in self._chunks:
            self._chunks[number] = self._read_chunk(number)
            self._chunks[number].unload()
        return self._chunks[number]

    def _read_chunk(self, number: int) -> Chunk:
        """Return a memory-mapped chunk of intact files."""
        # 1) its arrays
        maps = _Maps()
        arrays = {name: self._array(_file(number, name), maps) for name in _ARRAYS}
        targets = self._targets(arrays["targets"])
        rows = _stored_csr(arrays, "rows", self.shape[1])
        columns = _stored_csr(arrays, "columns", len(targets))
        # 2) checks
        with _intact(self.path / _file(number, "targets")):
            rows.check_format()  # indices out of bounds would crash the process
            columns.check_format()
            shape = (len(targets), self.shape[1])
            has_shape = rows.shape == shape and columns.shape == shape[::-1]
            has_weights = arrays["weights"].shape == (len(targets),)
            if not (has_shape and has_weights and _is_valid(targets)):
                raise ValueError("its sizes do not match the other files")
        # 3) the chunk
        return Chunk(
            X=rows,
            targets=targets,
            weights=arrays["weights"],
            number=number,
            transposed=columns,
            spill=partial(_spill, self.path, maps),
            unload=maps.unload,
        )

    def _targets(self, values: NDArray[Any]) -> Targets:
        """Return targets given by codes or shares."""
        return Targets(self._labels, values, multilabel=self._summary.targets.multilabel)

    def _array(self, name: str, maps: _Maps) -> NDArray[Any]:
        """Return the memory-mapped array of an intact file."""
        with _intact(self.path / name) as file:
            return _mapped(file, maps)


class _Writer:
    """Writes chunks of about equal size, whatever the sizes of the batches."""

    def __init__(
        self, folder: Path, vectorizer: Any, chunk_entries: int | None, classes: Any
    ) -> None:
        self._folder = folder
        self._vectorizer = vectorizer
        self._size = chunk_entries
        self._classes = classes
        self._waiting: list[tuple[Any, NDArray[Any], NDArray[np.float64]]] = []
        self._n_waiting = 0  # entries
        self._codes: dict[Any, int] = {}  # of labels, in the order in which they come
        self._labels: list[NDArray[Any]] = []
        self._summary: Summary | None = None
        self._n_chunks = 0

    def add(self, batch: Any) -> None:
        """Add a batch."""
        # 1) validated counts, targets and weights
        if not (isinstance(batch, tuple | list) and len(batch) in (2, 3)):
            raise TypeError(
                f"Expected (X, y) or (X, y, sample_weight), got a {type(batch).__name__}."
            )
        X, y, sample_weight = (*batch, None)[:3]  # None if there are no weights
        if self._vectorizer is not None:
            if not len(X):  # some vectorizers fail without texts
                return
            X = self._vectorizer.transform(X)
        X, targets, weights, names = checked_part(
            X, y, sample_weight, "ChunkedCounts", self._classes
        )
        # 2) the summary of all batches
        summary = summary_of(X, targets, names)
        self._summary = summary if self._summary is None else joined([self._summary, summary])
        # 3) parts that wait until there are enough for a chunk
        values = self._numbered(targets) if targets.has_codes else targets.values
        if self._size is None:
            self._size = max(_LEAST_CHUNK, _CHUNK_PER_TOKEN * X.shape[1])
        for rows, part in row_blocks(X, self._size):
            if self._n_waiting + part.nnz > _OVERFULL * self._size:
                self._flush()
            self._waiting.append((part, values[rows], weights[rows]))
            self._n_waiting += part.nnz

    def _numbered(self, targets: Targets) -> NDArray[np.int32]:
        """Return codes, (n_documents,), of labels in the order in which they come."""
        codes = []
        for label in targets.classes.tolist():
            codes.append(self._codes.setdefault(label, len(self._codes)))
        if len(codes):
            self._labels.append(targets.classes)
        return np.array(codes, np.int32)[targets.values]

    def finish(self) -> None:
        """Write the last chunk and the header."""
        self._flush()
        summary = self._summary
        if summary is None or not summary.shape[0]:
            raise ValueError("The batches have no documents: expected at least one.")
        # 1) the labels, in the order of their codes if there are codes
        labels = summary.targets.classes
        if summary.targets.has_codes:
            labels = np.concatenate(self._labels)
            codes = [self._codes[label] for label in labels.tolist()]
            _, first_of_code = np.unique(codes, return_index=True)
            labels = labels[first_of_code]
        # Arrays of objects would be pickled.
        plain = labels.astype(str) if labels.dtype == object else labels
        np.save(self._folder / _CLASSES, plain)
        # 2) the header
        header = {
            "format": _FORMAT,
            "shape": summary.shape,
            "n_entries": summary.n_entries,
            "feature_names": summary.names,
            "dtype": summary.dtype.str,
            "labels_are_objects": labels.dtype == object,
            "targets": summary.targets.kind,
            "largest": summary.largest,
            "least": summary.least,
            "n_chunks": self._n_chunks,
        }
        with written_whole(self._folder / _HEADER, text=True) as file:
            json.dump(header, file)

    def _flush(self) -> None:
        """Write the waiting documents as one chunk."""
        if not self._waiting:
            return
        # 1) one matrix, of the smallest type that holds its integers
        parts, values, weights = zip(*self._waiting, strict=True)
        self._waiting = []
        self._n_waiting = 0
        X = sparse.csr_array(sparse.vstack(parts, format="csr"))
        del parts  # the largest arrays in memory
        if X.dtype.kind in "biu":
            X.data = X.data.astype(np.min_scalar_type(X.data.max(initial=0)))
        # 2) its files
        (self._folder / _file(self._n_chunks, "")).parent.mkdir()
        self._save("targets", np.concatenate(values))
        self._save("weights", np.concatenate(weights))
        for name in ("rows", "columns"):
            X = X.tocsr() if name == "rows" else X.tocsc()
            self._save(f"{name}_data", X.data)
            self._save(f"{name}_indices", X.indices.astype(np.int32))
            self._save(f"{name}_indptr", X.indptr.astype(np.int32))
        self._n_chunks += 1

    def _save(self, name: str, array: NDArray[Any]) -> None:
        np.save(self._folder / _file(self._n_chunks, name), array)


def _stored_csr(arrays: dict[str, NDArray[Any]], name: str, n_columns: int) -> sparse.csr_array:
    """Return a matrix of a chunk, "rows" or "columns", as CSR."""
    data = arrays[f"{name}_data"]
    return csr_of(data, arrays[f"{name}_indices"], arrays[f"{name}_indptr"], n_columns)


def _is_valid(targets: Targets) -> bool:
    """Return whether codes are numbers of classes, and shares probabilities or 0 and 1."""
    values = targets.values
    if targets.has_codes:
        is_code = (values >= 0) & (values < targets.n_classes)
        return values.dtype.kind in "iu" and bool(is_code.all())
    if values.shape != (len(values), targets.n_classes) or values.dtype != np.float64:
        return False
    if targets.multilabel:
        return bool(np.isin(values, (0, 1)).all())
    return bool((values >= 0).all() and np.allclose(values.sum(axis=1), 1.0))


def _file(number: int, name: str) -> str:
    return f"chunk-{number:05d}/{name}.npy"


@contextmanager
def _intact(path: Path) -> Iterator[Path]:
    """Turn any error in reading a file into a ValueError that names the file."""
    try:
        if not path.is_file():  # opening a pipe would wait for ever
            raise FileNotFoundError("it is not a file")
        yield path
    except Exception as error:  # a damaged file can raise anything
        raise ValueError(
            f"{path} is damaged or not a ChunkedCounts file ({type(error).__name__}: {error}). "
            "Copy or write the folder again."
        ) from error


class _Maps:
    """The memory maps of a chunk, which threads may unload while a fit adds to them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._maps: WeakSet[mmap.mmap] = WeakSet()

    def add(self, one: mmap.mmap) -> None:
        """Add a map, which is forgotten with its array."""
        with self._lock:
            self._maps.add(one)

    def unload(self) -> None:
        """Release the memory of mapped files; their pages stay in the system's cache."""
        advice = getattr(mmap, "MADV_DONTNEED", None)
        if advice is None:
            return
        with self._lock:
            for one in self._maps:
                one.madvise(advice)


def _mapped(path: Path, maps: _Maps) -> NDArray[Any]:
    """Return the memory-mapped array of a .npy file, and add its map to `maps`."""
    array: Any = np.lib.format.open_memmap(path, mode="r")
    if array.size:
        maps.add(array._mmap)
    return np.asarray(array)


def _spill(folder: Path, maps: _Maps, array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of an array in an unnamed file, which is deleted with the array."""
    where = folder if os.access(folder, os.W_OK) else None
    handle, name = tempfile.mkstemp(prefix="fit-", suffix=".npy", dir=where)
    try:
        with open(handle, "wb") as file:
            np.save(file, array)
        return _mapped(Path(name), maps)
    finally:
        with suppress(PermissionError):  # Windows keeps the name of a file in use
            os.unlink(name)
