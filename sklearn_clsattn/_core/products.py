"""Tensors and their device; bags of tokens and their two sparse products.

A corpus is a sparse matrix ``X`` of shape (n_documents, n_tokens) of non-negative token
weights. Training needs two products of it with thin dense matrices: a sum over the tokens of
every document, ``X @ M``, and a sum over the documents of every token, ``X.T @ M``: PyTorch's CSR
products (MKL on CPUs, cuSPARSE on CUDA), of blocks of rows in threads, the same blocks however many
threads there are, or SciPy's, where PyTorch has no sparse kernels (Arm and macOS without MKL).
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from .._bags import Bags, multiplied
from .._matrices import BLOCK_ENTRIES, csr_of, index_type, row_blocks
from .._types import Array
from .threads import blocks_in_threads, in_background, in_threads

_Block = tuple[slice, torch.Tensor]
Backend = Literal["auto", "torch", "scipy"]

# PyTorch warns once in a process that sparse CSR tensors are in beta, and of read-only arrays, such
# as joblib's memory maps, to which nothing here writes. The warnings are used up here.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], [], size=(1, 1))
    torch.from_numpy(np.frombuffer(bytes(8)))


class TokenBag:
    """A corpus of token bags with its sums over tokens and over documents.

    `X` is a CSR matrix of token weights, (n_documents, n_tokens), or bags; arrays are shared, not
    copied, where their types allow it. `backend` "auto" is PyTorch on CUDA and where it was built
    with MKL, else SciPy, which works on the CPU only (a ValueError elsewhere). `columns` is the
    transpose of `X` as CSR, where there is one already.
    """

    def __init__(
        self,
        X: Any,
        *,
        dtype: type[np.floating[Any]] = np.float64,
        device: torch.device | str = "cpu",
        backend: Backend = "auto",
        columns: Any = None,
    ) -> None:
        self.dtype = torch.float32 if dtype == np.float32 else torch.float64
        self.device = torch.device(device)
        self.shape: tuple[int, int] = tuple(X.shape)
        self._X: Any = X if isinstance(X, Bags) else _contiguous(X, dtype)
        if backend == "auto":
            has_kernels = self.device.type == "cuda" or torch.backends.mkl.is_available()
            backend = "torch" if has_kernels else "scipy"
        if backend == "scipy" and self.device.type != "cpu":
            raise ValueError(
                f"SciPy multiplies on the CPU only, but device is {self.device}; "
                "use device='cpu' or the 'torch' backend."
            )
        self.backend = backend
        # PyTorch's products, those with bags, or SciPy's
        self._products: Any
        if isinstance(X, Bags):
            self._products = _BagsProducts(X, dtype, self.device, backend)
        elif backend == "scipy":
            self._products = _ScipyProducts(self._X)
        else:
            self._products = _TorchProducts(self._X, self.device, columns)

    def __reduce__(self) -> Any:  # the transpose is made anew
        dtype = np.float32 if self.dtype == torch.float32 else np.float64
        bag = partial(TokenBag, dtype=dtype, device=self.device, backend=self.backend)
        return bag, (self._X,)

    def entries(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return documents and tokens (int64) and weights of all stored entries, row by row."""
        X = multiplied(self._X)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(X.indptr))
        documents = as_tensor(rows, self.device)
        tokens = as_tensor(X.indices.astype(np.int64), self.device)
        weights = as_tensor(X.data, self.device).to(self.dtype)
        return documents, tokens, weights

    def sum_over_tokens(self, per_token: torch.Tensor) -> torch.Tensor:
        """Return ``X @ per_token``: (n_tokens, m) -> (n_documents, m)."""
        return self._products.sum_over_tokens(per_token)

    def sum_over_documents(
        self, per_document: torch.Tensor, out: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return ``X.T @ per_document``: (n_documents, m) -> (n_tokens, m), in `out` if given."""
        if out is None:
            shape = (self.shape[1], per_document.shape[1])
            out = torch.empty(shape, dtype=self.dtype, device=self.device)
        self._products.sum_over_documents(per_document, out)
        return out

    def squared_sum_over_documents(
        self, per_document: torch.Tensor, *, roughly: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return ``(X * X).T @ per_document``: (n_documents, m) -> (n_tokens, m).

        Where an entry is stored in several parts, each part is squared by itself. `roughly`, the
        documents' weights (n_documents,), saves the making of the entries where X is bags.
        """
        if roughly is not None and isinstance(self._products, _BagsProducts):
            return self._products.rough_squared_sum_over_documents(per_document, roughly)
        return self._products.squared_sum_over_documents(per_document)


class _TorchProducts:
    """PyTorch's CSR product, with the transpose built once (MKL's own is 100 times slower)."""

    def __init__(self, csr: Any, device: torch.device, columns: Any) -> None:
        def transpose() -> list[_Block]:
            transposed = csr.tocsc().T if columns is None else columns
            return _blocks(_contiguous(transposed, csr.dtype), device)

        self._shape = csr.shape
        self._rows = _blocks(csr, device)
        self._transpose = in_background(transpose)

    def sum_over_tokens(self, per_token: torch.Tensor) -> torch.Tensor:
        out = per_token.new_empty((self._shape[0], per_token.shape[1]))
        _multiply(self._rows, per_token, out)
        return out

    def sum_over_documents(self, per_document: torch.Tensor, out: torch.Tensor) -> None:
        _multiply(self._transpose(), per_document, out)

    def squared_sum_over_documents(self, per_document: torch.Tensor) -> torch.Tensor:
        squared = []
        for rows, block in self._transpose():
            indptr = block.crow_indices()
            indices = block.col_indices()
            squares = block.values().square()
            squared.append((rows, _torch_csr(block.shape, indptr, indices, squares)))
        out = per_document.new_empty((self._shape[1], per_document.shape[1]))
        _multiply(squared, per_document, out)
        return out


class _BagsProducts:
    """Products with bags: with one of their matrices, then with the other."""

    def __init__(self, X: Bags, dtype: Any, device: torch.device, backend: Backend) -> None:
        self._X = X
        self._left = TokenBag(X.left, dtype=dtype, device=device, backend=backend)
        self._right = TokenBag(X.right, dtype=dtype, device=device, backend=backend)
        self._squared_means: tuple[torch.Tensor, torch.Tensor] | None = None

    def sum_over_tokens(self, per_token: torch.Tensor) -> torch.Tensor:
        return self._left.sum_over_tokens(self._right.sum_over_tokens(per_token))

    def sum_over_documents(self, per_document: torch.Tensor, out: torch.Tensor) -> None:
        self._right.sum_over_documents(self._left.sum_over_documents(per_document), out)

    def squared_sum_over_documents(self, per_document: torch.Tensor) -> torch.Tensor:
        """Return the sums of squares of the entries, which are made block by block."""
        weights = per_document.cpu().numpy()
        sums = np.zeros((self._X.shape[1], weights.shape[1]), dtype=np.float64)
        lock = Lock()

        def add(block: tuple[slice, Any]) -> None:
            rows, part = block
            part.data *= part.data
            added = part.T @ weights[rows]
            with lock:  # threads add to the same sums
                np.add(sums, added, out=sums)

        # Every block adds to all sums, so that it should have more entries than these.
        blocks_in_threads(add, self._X, 4 * max(BLOCK_ENTRIES, sums.size))
        return torch.from_numpy(sums).to(per_document)

    def rough_squared_sum_over_documents(
        self, per_document: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """Return an approximation that treats the units of a document as independent.

        Then the square of a sum over units is the sum of the squares, and that of the mean sum.
        `weights`, (n_documents,), are those of the documents in the mean.
        """
        if self._squared_means is None:
            self._squared_means = self._make_squared_means(weights.to(per_document.dtype))
        squared_totals, squared_shares = self._squared_means
        # 1) the sums of the units' squares
        by_unit = self._left.squared_sum_over_documents(per_document)
        squares = self._right.squared_sum_over_documents(by_unit)
        # 2) the squares of the entries' means
        of_means = squared_totals.T @ per_document
        return squares.addmm_(squared_shares, of_means)

    def _make_squared_means(self, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return documents' squared totals, and tokens' squared shares of all weight, as columns.

        The product of both is the square of each entry's mean.
        """
        weights = weights[:, None]
        ones = weights.new_ones((self._X.shape[1], 1))
        totals = self.sum_over_tokens(ones)
        shares = torch.empty_like(ones)
        self.sum_over_documents(weights, shares)
        shares /= (totals * weights).sum()
        return totals.square(), shares.square_()


def _multiply(blocks: list[_Block], matrix: torch.Tensor, out: torch.Tensor) -> None:
    """Multiply blocks of rows with a matrix."""

    def multiply_block(block: _Block) -> None:
        rows, part = block
        torch.mm(part, matrix, out=out[rows])

    in_threads(multiply_block, blocks)


def _blocks(csr: Any, device: torch.device) -> list[_Block]:
    """Return a matrix in blocks of rows; on devices other than the CPU, in one block."""
    n_entries = BLOCK_ENTRIES if device.type == "cpu" else int(csr.indptr[-1]) + 1
    blocks = []
    for rows, part in row_blocks(csr, n_entries):
        indptr = as_tensor(part.indptr, device)
        indices = as_tensor(part.indices, device)
        entries = as_tensor(part.data, device)
        blocks.append((rows, _torch_csr(part.shape, indptr, indices, entries)))
    return blocks


class _ScipyProducts:
    """SciPy's CSR and CSC products: one thread, nothing built beforehand."""

    def __init__(self, csr: Any) -> None:
        self._rows = csr
        self._columns = csr.T

    def sum_over_tokens(self, per_token: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self._rows @ per_token.numpy())

    def sum_over_documents(self, per_document: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(torch.from_numpy(self._columns @ per_document.numpy()))

    def squared_sum_over_documents(self, per_document: torch.Tensor) -> torch.Tensor:
        squared = self._columns.copy()
        squared.data *= squared.data
        return torch.from_numpy(squared @ per_document.numpy())


def _contiguous(X: Any, dtype: Any) -> Any:
    """Return a CSR matrix with contiguous arrays, as PyTorch reads them; SciPy's may be strided.

    Index arrays are int32 where they fit: half the memory, faster products.
    """
    largest = max(X.indptr[-1], X.indices.max(initial=0))
    kind = index_type(largest)
    entries = np.ascontiguousarray(X.data, dtype)
    indices = np.ascontiguousarray(X.indices, kind)
    indptr = np.ascontiguousarray(X.indptr, kind)
    return csr_of(entries, indices, indptr, X.shape[1])


def _torch_csr(shape: Any, indptr: Any, indices: Any, data: Any) -> torch.Tensor:
    """Return the CSR tensor of these arrays without checks."""
    return torch.sparse_csr_tensor(indptr, indices, data, size=shape, check_invariants=False)


def as_tensor(array: NDArray[Any], device: torch.device) -> torch.Tensor:
    """Return an array, which may be read-only, as a tensor, without a copy if possible."""
    return torch.from_numpy(array).to(device)


def floats(*scalars: torch.Tensor) -> list[float]:
    """Return tensors of one number each as floats, in one transfer: a device waits for each."""
    numbers: list[float] = torch.stack(scalars).tolist() if scalars else []
    return numbers


def to_array(tensor: torch.Tensor) -> Array:
    """Return a tensor as a copy in NumPy and float64."""
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float64, order="C")


def resolve_device(device: str | torch.device) -> torch.device:
    """Return the device that a `device` parameter names; "auto" is CUDA if there is one, else CPU.

    Anything that is no device, is not available, or has no sparse matrix products is a ValueError.
    """
    n_cuda = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if n_cuda else "cpu")
    problem = "expected 'cpu', 'cuda', 'auto' or a torch.device"
    resolved = None
    if isinstance(device, str | torch.device):
        with suppress(RuntimeError):
            resolved = torch.device(device)
    if resolved is not None:
        if resolved.type not in ("cpu", "cuda"):
            problem = "it has no sparse matrix products in PyTorch; use 'cpu' or 'cuda'"
        elif resolved.type == "cuda" and (resolved.index or 0) >= n_cuda:
            problem = f"PyTorch finds {n_cuda or 'no'} CUDA device(s) here; use 'cpu' or 'auto'"
        else:
            return resolved
    raise ValueError(f"device: got {device!r}: {problem}.")
