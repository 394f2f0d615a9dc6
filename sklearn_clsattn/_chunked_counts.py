"""A corpus of counts in files, read chunk by chunk where they are needed."""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from ._blocks import csr_of, row_blocks
from ._core.part import Chunk
from ._fit_parts import Summary, checked, kind_of_labels, summary_of
from ._saved import public
from ._writing import written_whole

_FORMAT = 1
_HEADER, _MARK, _CLASSES = "corpus.json", "INCOMPLETE", "classes.npy"
_LEAST_CHUNK, _CHUNK_PER_TOKEN = 4_000_000, 8  # entries; more for many tokens


@public("sklearn_clsattn")
class ChunkedCounts:
    """Token counts with labels in a folder, for fits on more documents than memory holds.

    :meth:`write` makes the folder and :meth:`ClsAttentionClassifier.fit_chunks` reads it, one chunk
    after another, as memory-mapped arrays of the counts and of their transpose.

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
        Names of the tokens, where the counts came with any.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If the folder is something else, of another version, or was not written to its end.

    See Also
    --------
    ClsAttentionClassifier.fit_chunks : Fit on the documents of all chunks.
    ClsAttentionClassifier.partial_fit : Learn documents once, chunk by chunk.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn_clsattn import ChunkedCounts, ClsAttentionClassifier
    >>> from sklearn_clsattn.text import HashingTokenVectorizer
    >>> batches = [
    ...     (["a terrific film", "a boring film"], ["good", "bad"]),
    ...     (["terrific fun", "long and boring"], ["good", "bad"]),
    ... ]
    >>> vectorizer = HashingTokenVectorizer(n_features=2**10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     counts = ChunkedCounts.write(f"{folder}/films", batches, vectorizer=vectorizer)
    ...     model = ClsAttentionClassifier().fit_chunks(counts)
    >>> counts.shape, model.predict(vectorizer.transform(["terrific"]))
    ((4, 1024), array(['good'], dtype='<U4'))
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser()
        if not self.path.is_dir():
            raise FileNotFoundError(f"There is no folder {self.path}: write it first.")
        if (self.path / _MARK).exists():
            raise ValueError(
                f"{self.path} is incomplete: writing it did not come to its end. Write it again, "
                "with overwrite=True."
            )
        try:
            header = json.loads((self.path / _HEADER).read_text("utf-8"))
            if header["format"] == _FORMAT:
                self._take(header)
        except (FileNotFoundError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self.path} is no folder of ChunkedCounts.") from error
        if header["format"] != _FORMAT:
            raise ValueError(
                f"{self.path} is of format {header['format']}, expected {_FORMAT}: write it with "
                "this version of sklearn-clsattn."
            )
        self._lock = threading.Lock()  # one fit at a time changes what follows
        self._chunks: list[Chunk] | None = None
        self._parts: Any = None  # what the last fit has prepared

    def _take(self, header: dict[str, Any]) -> None:
        """Take what the header says of the folder."""
        self._n_chunks: int = header["n_chunks"]
        labels = np.load(self.path / _CLASSES)
        self._labels = labels.astype(object) if header["labels_are_objects"] else labels
        self.shape: tuple[int, int] = tuple(header["shape"])
        self.n_entries: int = header["n_entries"]
        self.classes = np.sort(self._labels)
        self.feature_names: list[str] | None = header["feature_names"]
        self._summary = Summary(
            self.shape,
            self.n_entries,
            self.feature_names,
            self._labels,
            np.dtype(header["dtype"]),
            header["largest"],
            header["least"],
        )

    @classmethod
    def write(
        cls,
        path: str | os.PathLike[str],
        batches: Iterable[tuple[Any, ...]],
        *,
        vectorizer: Any = None,
        chunk_entries: int | None = None,
        overwrite: bool = False,
    ) -> Self:
        """Write a folder of chunks.

        Parameters
        ----------
        path : str or path-like
            The folder to make. Until it is complete it has a file ``INCOMPLETE``.
        batches : iterable of tuple
            (X, y) or (X, y, sample_weight), with non-negative counts X of shape (n_documents,
            n_tokens), of the same tokens in all batches; with `vectorizer`, X are texts. One batch
            is in memory at a time. Batches may be of any size, and empty.
        vectorizer : transformer, default=None
            Makes counts of texts: one that needs no fit, such as
            :class:`~sklearn_clsattn.text.HashingTokenVectorizer`, or one that is fitted.
        chunk_entries : int, default=None
            Stored counts in a chunk, about: small batches are joined, large ones cut. A chunk takes
            some 12 to 24 bytes an entry. By default four million, and more than eight for each
            token.
        overwrite : bool, default=False
            Whether a folder of chunks that is there already, complete or not, is removed first.

        Returns
        -------
        counts : ChunkedCounts
            The folder, opened.

        Raises
        ------
        FileExistsError
            If there is something at `path`, unless `overwrite` says to replace it.
        ValueError
            If a batch has other tokens than the first, or is no input of
            :meth:`ClsAttentionClassifier.fit`; if there is no document; if `chunk_entries` is
            below 1.
        TypeError
            If a batch is no such tuple.
        """
        folder = Path(path).expanduser()
        if chunk_entries is not None:
            check_scalar(chunk_entries, "chunk_entries", Integral, min_val=1)
        # The tags of older releases' HashingVectorizer ask for a fit, which it does not need.
        if vectorizer is not None and not isinstance(vectorizer, HashingVectorizer):
            check_is_fitted(vectorizer)
        _make_room(folder, overwrite)
        (folder / _MARK).write_text("The folder is being written, or writing it was stopped.\n")
        writer = _Writer(folder, vectorizer, chunk_entries)
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
        """Yield the counts, the labels and the weights of the documents of each chunk."""
        for chunk in self._read():
            yield chunk.X, self._labels[chunk.codes], chunk.weights
            chunk.release()

    def __reduce__(self) -> tuple[type[Self], tuple[Path]]:
        return type(self), (self.path,)

    def __repr__(self) -> str:
        documents, tokens = self.shape
        return (
            f"ChunkedCounts({str(self.path)!r}): {documents:,} documents, {tokens:,} tokens, "
            f"{self.n_entries:,} entries, {len(self):,} chunks"
        )

    def _read(self) -> list[Chunk]:
        """Return the chunks, memory-mapped."""
        if self._chunks is None:
            self._chunks = [self._chunk(number) for number in range(len(self))]
        return self._chunks

    def _chunk(self, number: int) -> Chunk:
        maps: WeakSet[mmap.mmap] = WeakSet()
        folder = self.path / _name(number)

        def read(name: str) -> NDArray[Any]:
            return _mapped(folder / f"{name}.npy", maps)

        n_tokens = self.shape[1]
        rows, columns = (
            (read(f"{name}_data"), read(f"{name}_indices"), read(f"{name}_indptr"))
            for name in ("rows", "columns")
        )
        return Chunk(
            csr_of(*rows, n_tokens),
            read("codes"),
            read("weights"),
            csr_of(*columns, len(rows[2]) - 1),
            partial(_keep, self.path, maps),
            partial(_release, maps),
        )


class _Writer:
    """Writes chunks of about as many entries, whatever the batches."""

    def __init__(self, folder: Path, vectorizer: Any, chunk_entries: int | None) -> None:
        self._folder, self._vectorizer, self._size = folder, vectorizer, chunk_entries
        self._waiting: list[tuple[Any, NDArray[Any], NDArray[np.float64]]] = []
        self._codes: dict[Any, int] = {}
        self._labels: list[NDArray[Any]] = []
        self._summary: Summary | None = None
        self._n_chunks = 0

    def add(self, batch: Any) -> None:
        """Take a batch."""
        size = len(batch) if isinstance(batch, tuple | list) else 0
        if size not in (2, 3):
            raise TypeError(
                "Expected a tuple (X, y) or (X, y, sample_weight), got a "
                f"{type(batch).__name__}{f' of {size}' if size else ''}."
            )
        X, y, sample_weight = (*batch, None)[:3]
        if self._vectorizer is not None:
            if not len(X):  # not every vectorizer takes no texts
                return
            X = self._vectorizer.transform(X)
        X, y, weights, names = checked(X, y, sample_weight, "ChunkedCounts")
        labels, codes = np.unique(y, return_inverse=True)
        known = self._codes
        of_labels = [known.setdefault(label, len(known)) for label in labels.tolist()]
        numbers = np.array(of_labels, np.int32)[codes]
        if len(labels):
            self._labels.append(labels)
            kinds = {kind_of_labels(self._labels[0]), kind_of_labels(labels)}
            if len(kinds) > 1:
                raise ValueError(f"Expected labels of one type in all batches, got {kinds}.")
        summary = summary_of(X, labels, names)
        self._summary = summary if self._summary is None else _together(self._summary, summary)
        if self._size is None:
            self._size = max(_LEAST_CHUNK, _CHUNK_PER_TOKEN * X.shape[1])
        for rows, part in row_blocks(X, self._size):
            if sum(waiting[0].nnz for waiting in self._waiting) + part.nnz > 1.1 * self._size:
                self._flush()
            self._waiting.append((part, numbers[rows], weights[rows]))

    def finish(self) -> None:
        """Write the last chunk and the header."""
        self._flush()
        summary = self._summary
        if summary is None or not summary.shape[0]:
            raise ValueError("There is no document in any batch.")
        labels = np.concatenate(self._labels)
        first = np.unique([self._codes[label] for label in labels.tolist()], return_index=True)[1]
        plain = labels.astype(str) if labels.dtype == object else labels
        np.save(self._folder / _CLASSES, plain[first])
        with written_whole(self._folder / _HEADER, text=True) as file:
            json.dump(
                {
                    "format": _FORMAT,
                    "n_chunks": self._n_chunks,
                    "shape": summary.shape,
                    "n_entries": summary.n_entries,
                    "feature_names": summary.names,
                    "dtype": summary.dtype.str,
                    "labels_are_objects": labels.dtype == object,
                    "largest": summary.largest,
                    "least": summary.least,
                },
                file,
            )

    def _flush(self) -> None:
        """Write what waits as one chunk."""
        if not self._waiting:
            return
        parts, codes, weights = zip(*self._waiting, strict=True)
        self._waiting = []
        X = sparse.csr_array(sparse.vstack(parts, format="csr"))
        del parts
        if X.dtype.kind in "biu":
            X.data = X.data.astype(np.min_scalar_type(X.data.max(initial=0)))
        folder = self._folder / _name(self._n_chunks)
        folder.mkdir()
        self._n_chunks += 1
        np.save(folder / "codes.npy", np.concatenate(codes))
        np.save(folder / "weights.npy", np.concatenate(weights))
        for name in ("rows", "columns"):
            if name == "columns":
                X = X.tocsc()
            np.save(folder / f"{name}_data.npy", X.data)
            np.save(folder / f"{name}_indices.npy", X.indices.astype(np.int32, copy=False))
            np.save(folder / f"{name}_indptr.npy", X.indptr.astype(np.int32, copy=False))


def _together(one: Summary, other: Summary) -> Summary:
    """Return the summary of two batches; the classes are kept elsewhere."""
    if one.shape[1] != other.shape[1] or one.names != other.names:
        raise ValueError(
            f"It has {other.shape[1]:,} tokens, and batches before it {one.shape[1]:,}: expected "
            "the same tokens, by the same names if they have any, in all batches."
        )
    return Summary(
        (one.shape[0] + other.shape[0], one.shape[1]),
        one.n_entries + other.n_entries,
        one.names,
        one.classes,
        np.result_type(one.dtype, other.dtype),
        max(one.largest, other.largest),
        min(one.least, other.least),
    )


# What a folder of chunks may have, what a fit that was killed has left there included.
_OURS = re.compile(
    rf"{_MARK}|classes\.npy|corpus\.json|\.corpus\.json\.[^/]*\.part|fit-[^/]*\.npy"
    r"|chunk-\d{5,}(/(codes|weights|(rows|columns)_(data|indices|indptr))\.npy)?"
)


def _make_room(folder: Path, overwrite: bool) -> None:
    """Make an empty folder, in place of an earlier one of chunks."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        ours = _is_ours(folder)
        if not (ours and overwrite):
            raise FileExistsError(
                f"There is something at {folder} already: choose another name, or "
                + ("pass overwrite=True." if ours else "remove it: not all of it is ChunkedCounts.")
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)


def _is_ours(folder: Path) -> bool:
    """Return whether something is a folder of chunks, complete or not, and has nothing else."""
    complete = all((folder / name).exists() for name in (_HEADER, _CLASSES))
    return (complete or (folder / _MARK).exists()) and all(
        _OURS.fullmatch(path.relative_to(folder).as_posix()) for path in folder.rglob("*")
    )


def _name(number: int) -> str:
    return f"chunk-{number:05d}"


def _mapped(path: Path, maps: WeakSet[mmap.mmap]) -> NDArray[Any]:
    """Return an array of a file, memory-mapped; its map joins `maps`."""
    array = np.load(path, mmap_mode="r")
    if array.size:
        maps.add(array._mmap)
    return np.asarray(array)


def _keep(folder: Path, maps: WeakSet[mmap.mmap], array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in a file without a name, which is gone with the array."""
    where = folder if os.access(folder, os.W_OK) else None
    handle, name = tempfile.mkstemp(prefix="fit-", suffix=".npy", dir=where)
    try:
        with open(handle, "wb") as file:
            np.save(file, array)
        return _mapped(Path(name), maps)
    finally:
        with suppress(PermissionError):  # Windows keeps the name of a file in use
            os.unlink(name)


def _release(maps: WeakSet[mmap.mmap]) -> None:
    """Give back the memory of mapped files, whose pages stay in the system's cache."""
    advice = getattr(mmap, "MADV_DONTNEED", None)
    if advice is not None:
        for one in maps:
            one.madvise(advice)
