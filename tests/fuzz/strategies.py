"""Inputs as hypothesis draws them: matrices, labels, weights and parameters, usual and absurd."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from hypothesis import strategies as st

from sklearn_clsattn import ClsAttentionClassifier, ClsAttentionClassifierCV
from sklearn_clsattn.paper import (
    AttentionNetworkClassifier,
    EmbeddingClassifier,
    FrozenEmbeddingClassifier,
    OneStepClassifier,
    PenalizedOneStepClassifier,
)

MAGNITUDES = [5e-324, 1e-310, 1e-300, 1e-200, 1e-155, 1e-30, 1e-3, 1.0, 7.0, 1e8, 1e20, 1e40]
MAGNITUDES += [1e100, 1e155, 1e200, 1e300, 1.7e308]
FORMATS = ["array", "csr", "csr_matrix", "csc", "coo", "lil", "frame", "duplicates", "unsorted"]
DTYPES = [np.float64, np.float32, np.float16, np.int64, np.int32, np.int8, np.uint8, np.bool_]
LABELS = [
    [0, 1, 2],
    [-1, 1, 7],
    ["ham", "spam", "eggs"],
    ["", "=1+1", "\x1b]0;x\x07"],
    [True, False],
    [0.0, 1.0, 2.0],
    [2**62, -(2**62), 0],
]
SMALL = {"max_iter": 4, "random_state": 0}
PENALTIES = st.sampled_from([1e-300, 1e-12, 1e-3, 0.03, 1.0, 100.0, 1e8, 1e300])


@dataclass
class Problem:
    """What is fitted: entries (n_documents, n_tokens), the same in a format, labels, weights."""

    dense: Any
    X: Any
    y: Any
    weights: Any


@st.composite
def entries(draw, n_documents=None):
    """Draw counts or weights of usual and absurd sizes, (n_documents, n_tokens)."""
    n = draw(st.integers(1, 12)) if n_documents is None else n_documents
    shape = (n, draw(st.integers(1, 6)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = rng.poisson(draw(st.sampled_from([0.0, 0.3, 1.0, 4.0])), shape).astype(float)
    kind = draw(st.sampled_from(["counts", "shares", "scaled", "by column", "by entry"]))
    if kind == "shares":
        return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    with np.errstate(over="ignore", under="ignore"):
        if kind == "scaled":
            counts = counts * draw(st.sampled_from(MAGNITUDES))
        elif kind == "by column":
            counts = counts * rng.choice(MAGNITUDES, shape[1])
        elif kind == "by entry":
            counts = counts * rng.choice(MAGNITUDES, shape)
    return np.minimum(counts, np.finfo(np.float64).max)


def in_format(dense, form):
    """Return a matrix in one of FORMATS."""
    if form == "array":
        return dense
    if form == "frame":
        return pd.DataFrame(dense, columns=[f"word {at}" for at in range(dense.shape[1])])
    wide = dense.astype(np.float32) if dense.dtype == np.float16 else dense
    if form == "csr_matrix":
        return sp.csr_matrix(wide)
    if form == "duplicates" and wide.dtype.kind == "f":
        rows, columns = np.nonzero(wide)
        whole = wide[rows, columns]
        half = np.where(
            whole / 2 + whole / 2 == whole, whole / 2, 0
        )  # of the smallest there is none
        halves = np.concatenate([half, whole - half])
        return sp.coo_array((halves, (np.tile(rows, 2), np.tile(columns, 2))), wide.shape)
    X = sp.csr_array(wide)
    if form == "unsorted":
        for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            X.data[start:stop] = X.data[start:stop][::-1].copy()
            X.indices[start:stop] = X.indices[start:stop][::-1].copy()
        X.has_sorted_indices = False
        return X
    return X if form in ("csr", "duplicates") else X.asformat(form)


@st.composite
def problems(draw):
    """Draw a problem."""
    dense = draw(entries())
    dtype = draw(st.sampled_from(DTYPES))
    limit = (
        1.0
        if dtype is np.bool_
        else float(np.iinfo(dtype).max)
        if np.dtype(dtype).kind in "iu"
        else float(np.finfo(dtype).max)
    )
    with np.errstate(all="ignore"):
        dense = np.minimum(dense, limit * 0.999).astype(dtype)
    n = len(dense)
    labels = np.array(draw(st.sampled_from(LABELS)))
    codes = np.array(draw(st.lists(st.integers(0, len(labels) - 1), min_size=n, max_size=n)))
    weight = st.sampled_from([0.0, 1e-320, 1e-100, 1e-8, 1.0, 1.0, 1.0, 3.0, 1e8, 1e100, 1e308])
    weights = draw(st.none() | st.lists(weight, min_size=n, max_size=n))
    X = in_format(dense, draw(st.sampled_from(FORMATS)))
    return Problem(dense, X, labels[codes], None if weights is None else np.array(weights))


@st.composite
def classifiers(draw):
    """Draw a classifier with usual and absurd parameters."""
    common = {"class_weight": draw(st.sampled_from([None, None, "balanced"]))}
    penalties = {"C": draw(PENALTIES), "attention_C": draw(PENALTIES)}
    tol = draw(st.sampled_from([0.0, 1e-12, 1e-2, 1e300]))
    kind = draw(
        st.sampled_from(["joint", "joint", "auto", "cv", "one", "pen", "frozen", "adam", "net"])
    )
    dim = draw(st.sampled_from([None, 4, 16, 10**12]))
    if kind in ("joint", "auto"):
        return ClsAttentionClassifier(
            **common,
            C=penalties["C"] if kind == "joint" else "auto",
            attention_C=penalties["attention_C"],
            tol=tol,
            max_iter=draw(st.sampled_from([1, 20])),
            attend_cls=draw(st.booleans()),
            token_scaling=draw(st.sampled_from(["log_odds", None])),
            sublinear_counts=draw(st.booleans()),
            warm_start=draw(st.booleans()),
        )
    if kind == "cv":
        return ClsAttentionClassifierCV(Cs=[1e-3, 1.0], cv=2, max_iter=5, **common)
    if kind == "one":
        step = draw(st.sampled_from([None, 1e-300, 1.0, 1e300]))
        return OneStepClassifier(step_size=step, embedding_dim=dim, **SMALL, **common)
    if kind == "pen":
        return PenalizedOneStepClassifier(embedding_dim=dim, **penalties, **SMALL, **common)
    if kind == "frozen":
        return FrozenEmbeddingClassifier(embedding_dim=dim or 8, **penalties, **SMALL, **common)
    rate = draw(st.sampled_from([1e-300, 1e-3, 1.0, 1e300]))
    settings = {"early_stopping": draw(st.booleans()), "learning_rate": rate, **SMALL, **common}
    if kind == "adam":
        return EmbeddingClassifier(embedding_dim=dim, **settings)
    return AttentionNetworkClassifier(
        embedding_dim=dim or 8,
        n_layers=draw(st.sampled_from([1, 2])),
        mlp=draw(st.booleans()),
        **settings,
    )
