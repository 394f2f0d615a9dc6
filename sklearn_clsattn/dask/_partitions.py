"""Dask collections as partitions: those that belong together, and arrays made of them again."""

from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from dask.base import is_dask_collection

from ._worker import documents_of, predicted_part


def aligned(X: Any, y: Any, sample_weight: Any, vectorizer: Any) -> list[Any]:
    """Return a delayed `Partition` for every partition of X, with its labels and weights."""
    if vectorizer is None and getattr(X, "ndim", 1) == 1 and is_dask_collection(X):
        raise ValueError(
            "X is a collection of one column, as of texts, which need a vectorizer: pass "
            "vectorizer=sklearn_clsattn.text.HashingTokenVectorizer(), or one that is fitted."
        )
    parts = partitions(X, "X")
    columns = [parts]
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        if values is None:
            columns.append([None] * len(parts))
            continue
        own = partitions(_chunked_like(X, values, name), name)
        if len(own) != len(parts):
            raise ValueError(
                f"X has {len(parts)} partitions and {name} has {len(own)}: repartition them alike."
            )
        columns.append(own)
    shared = None if vectorizer is None else delayed(vectorizer, traverse=False)
    make: Any = delayed(documents_of, pure=False)
    return [
        make(number, *together, shared)
        for number, together in enumerate(zip(*columns, strict=True))
    ]


def partitions(collection: Any, name: str) -> list[Any]:
    """Return the delayed partitions of a Dask Array, DataFrame, Series or Bag."""
    if not (is_dask_collection(collection) and hasattr(collection, "to_delayed")):
        raise TypeError(
            f"{name} has to be a Dask Array, DataFrame, Series or Bag, got "
            f"{type(collection).__name__}: make one of it, as by dask.array.from_array, or use "
            "ClsAttentionClassifier, which takes what is in memory."
        )
    if isinstance(collection, da.Array) and collection.numblocks[1:] not in ((), (1,)):
        raise ValueError(
            f"{name} is divided into {collection.numblocks[1]} blocks of columns: every block has "
            f"to hold whole documents, as after {name}.rechunk({{1: -1}})."
        )
    blocks = collection.to_delayed()
    return blocks.ravel().tolist() if isinstance(blocks, np.ndarray) else list(blocks)


def _chunked_like(X: Any, values: Any, name: str) -> Any:
    """Return an Array in the chunks of the rows of X, where both are known; anything else as is."""
    if not (isinstance(X, da.Array) and isinstance(values, da.Array)):
        return values
    if values.ndim != 1:
        raise ValueError(f"{name} has to have one dimension, got {values.ndim}.")
    if np.isnan(X.shape[0]) or np.isnan(values.shape[0]):
        return values
    if X.shape[0] != values.shape[0]:
        raise ValueError(f"X has {X.shape[0]} documents and {name} has {values.shape[0]}.")
    return values.rechunk((X.chunks[0],))


def predictions(model: Any, method: str, X: Any, n_columns: int | None, dtype: Any) -> da.Array:
    """Return what a method of the model says of all documents, as a lazy Array."""
    blocks = partitions(X, "X")
    lengths = X.chunks[0] if isinstance(X, da.Array) else [np.nan] * len(blocks)
    columns = () if n_columns is None else (n_columns,)
    empty = np.empty((0, *columns), dtype)
    shared = delayed(model, traverse=False)
    predict: Any = delayed(predicted_part, pure=False)
    return da.concatenate(
        [
            da.from_delayed(
                predict(shared, method, block, empty), shape=(length, *columns), meta=empty
            )
            for block, length in zip(blocks, lengths, strict=True)
        ],
        allow_unknown_chunksizes=True,
    )
