"""Sparse products of bags as tensors, and devices.

Training needs two products of bags X with thin dense matrices: a sum over the tokens of every
document, ``X @ M``, and a sum over the documents of every token, ``X.T @ M``. They are PyTorch's
CSR products (MKL on CPUs, cuSPARSE on CUDA), or SciPy's where PyTorch has no sparse kernels (Arm
and macOS without MKL). Blocks of rows are multiplied in threads, the same blocks however many
threads there are.
"""

import warnings
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._bags import Bags
from .._matrices import BLOCK_ENTRIES, csr_of, index_type, row_blocks
from .._threads import in_background, in_threads
from .._types import Array

_Block = tuple[slice, torch.Tensor]

# PyTorch warns once in a process that sparse CSR tensors are in beta, and of read-only arrays, such
# as joblib's memory maps, to which nothing here writes. The warnings are used up here.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], [], size=(1, 1))
    torch.from_numpy(np.frombuffer(bytes(8)))


class BagProducts:
    """Sums over the tokens of bags, and over their documents, in a precision and on a device.

    With two matrices, a product is with one of them, then with the other.
    """

    def __init__(
        self, bags: Bags, dtype: type[np.floating[Any]], device: torch.device | str
    ) -> None:
        self.bags = bags
        self.shape = bags.shape
        self.dtype = torch_dtype(dtype)
        self.device = torch.device(device)
        self._units = _product(bags.units, dtype, self.device)
        self._tokens = None if bags.tokens is None else _product(bags.tokens, dtype, self.device)
        self._squared_means: tuple[torch.Tensor, torch.Tensor] | None = None

    def __reduce__(self) -> Any:  # blocks and transposes are made anew
        dtype = np.float32 if self.dtype == torch.float32 else np.float64
        make = partial(BagProducts, dtype=dtype, device=self.device)
        return make, (self.bags,)

    def sum_over_tokens(self, by_token: torch.Tensor) -> torch.Tensor:
        """Return ``X @ by_token``: (n_tokens, m) -> (n_documents, m)."""
        by_unit = by_token if self._tokens is None else self._tokens.dot(by_token)
        return self._units.dot(by_unit)

    def sum_over_documents(
        self, by_document: torch.Tensor, out: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return ``X.T @ by_document``: (n_documents, m) -> (n_tokens, m), in `out` if given."""
        n_columns = by_document.shape[1]
        if out is None:
            out = by_document.new_empty((self.shape[1], n_columns))
        if self._tokens is None:
            self._units.transposed_dot(by_document, out)
        else:
            n_units = self.bags.units.shape[1]
            by_unit = by_document.new_empty((n_units, n_columns))
            self._units.transposed_dot(by_document, by_unit)
            self._tokens.transposed_dot(by_unit, out)
        return out

    def squared_sum_over_documents(
        self, by_document: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """Return ``(X * X).T @ by_document``: (n_documents, m) -> (n_tokens, m).

        With two matrices it is an approximation that treats the units of a document as independent:
        the square of a sum over units is then the sum of the squares, and that of the mean sum.
        `weights`, (n_documents,), are those of the documents in the mean.
        """
        by_unit = self._units.squared_transposed_dot(by_document)
        if self._tokens is None:
            return by_unit
        # 1) the sums of the units' squares
        squares = self._tokens.squared_transposed_dot(by_unit)
        # 2) the squares of the entries' means
        if self._squared_means is None:
            weights = weights.to(by_document.dtype)
            self._squared_means = self._make_squared_means(weights)
        squared_totals, squared_shares = self._squared_means
        sums_of_totals = squared_totals.T @ by_document
        return squares.addmm_(squared_shares, sums_of_totals)

    def _make_squared_means(self, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return documents' squared totals, and tokens' squared shares of all weight, as columns.

        The product of both is the square of each entry's mean.
        """
        ones = weights.new_ones((self.shape[1], 1))
        totals = self.sum_over_tokens(ones)
        by_document = weights[:, None]
        shares = self.sum_over_documents(by_document)
        shares /= (totals * by_document).sum()
        return totals.square(), shares.square_()


class _TorchProduct:
    """PyTorch's CSR product, with the transpose built once (MKL's own is 100 times slower)."""

    def __init__(self, csr: Any, device: torch.device) -> None:
        def transpose() -> list[_Block]:
            transposed = _contiguous(csr.tocsc().T, csr.dtype)
            return _blocks(transposed, device)

        self._shape = csr.shape
        self._rows = _blocks(csr, device)
        # The sums over tokens, which come first, do not wait for it.
        self._transpose = in_background(transpose)

    def dot(self, matrix: torch.Tensor) -> torch.Tensor:
        out = matrix.new_empty((self._shape[0], matrix.shape[1]))
        _multiply(self._rows, matrix, out)
        return out

    def transposed_dot(self, matrix: torch.Tensor, out: torch.Tensor) -> None:
        _multiply(self._transpose(), matrix, out)

    def squared_transposed_dot(self, matrix: torch.Tensor) -> torch.Tensor:
        squared = []
        for rows, block in self._transpose():
            indptr = block.crow_indices()
            indices = block.col_indices()
            squares = block.values().square()
            squared_block = _torch_csr(block.shape, indptr, indices, squares)
            squared.append((rows, squared_block))
        out = matrix.new_empty((self._shape[1], matrix.shape[1]))
        _multiply(squared, matrix, out)
        return out


class _ScipyProduct:
    """SciPy's CSR and CSC products: one thread, nothing built beforehand."""

    def __init__(self, csr: Any) -> None:
        self._rows = csr
        self._columns = csr.T

    def dot(self, matrix: torch.Tensor) -> torch.Tensor:
        product = self._rows @ matrix.numpy()
        return torch.from_numpy(product)

    def transposed_dot(self, matrix: torch.Tensor, out: torch.Tensor) -> None:
        product = self._columns @ matrix.numpy()
        out.copy_(torch.from_numpy(product))

    def squared_transposed_dot(self, matrix: torch.Tensor) -> torch.Tensor:
        squared = self._columns.copy()
        squared.data *= squared.data
        product = squared @ matrix.numpy()
        return torch.from_numpy(product)


def _product(X: Any, dtype: Any, device: torch.device) -> _TorchProduct | _ScipyProduct:
    """Return the products of a CSR matrix: PyTorch's where it has kernels, else SciPy's."""
    csr = _contiguous(X, dtype)
    has_kernels = device.type == "cuda" or torch.backends.mkl.is_available()
    return _TorchProduct(csr, device) if has_kernels else _ScipyProduct(csr)


def _multiply(blocks: list[_Block], matrix: torch.Tensor, out: torch.Tensor) -> None:
    """Multiply blocks of rows with a matrix."""

    def multiply_block(block: _Block) -> None:
        rows, part = block
        torch.mm(part, matrix, out=out[rows])

    in_threads(multiply_block, blocks)


def _blocks(csr: Any, device: torch.device) -> list[_Block]:
    """Return a matrix in blocks of rows; on devices other than the CPU, in one block."""
    n_entries = BLOCK_ENTRIES
    if device.type != "cpu":
        n_entries = int(csr.indptr[-1]) + 1
    blocks = []
    for rows, part in row_blocks(csr, n_entries):
        indptr = as_tensor(part.indptr, device)
        indices = as_tensor(part.indices, device)
        entries = as_tensor(part.data, device)
        block = _torch_csr(part.shape, indptr, indices, entries)
        blocks.append((rows, block))
    return blocks


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


def torch_dtype(dtype: type[np.floating[Any]]) -> torch.dtype:
    """Return PyTorch's type of a precision."""
    return torch.float32 if dtype == np.float32 else torch.float64


def as_tensor(array: NDArray[Any], device: torch.device) -> torch.Tensor:
    """Return an array, which may be read-only, as a tensor, without a copy if possible."""
    return torch.from_numpy(array).to(device)


def floats(*scalars: torch.Tensor) -> list[float]:
    """Return tensors of one number each as floats, in one transfer: a device waits for each."""
    numbers: list[float] = torch.stack(scalars).tolist() if scalars else []
    return numbers


def to_array(tensor: torch.Tensor) -> Array:
    """Return a tensor as a copy in NumPy and float64."""
    array = tensor.detach().cpu().numpy()
    return np.array(array, dtype=np.float64, order="C")


def resolve_device(device: str | torch.device) -> torch.device:
    """Return the device that a `device` parameter names; "auto" is CUDA if there is one, else CPU.

    One that is not available, or has no sparse matrix products, is a ValueError.
    """
    n_cuda = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == "auto":
        return torch.device("cuda" if n_cuda else "cpu")
    resolved = torch.device(device)
    if resolved.type not in ("cpu", "cuda"):
        raise ValueError(f"PyTorch has no sparse products on {device}: use 'cpu' or 'cuda'.")
    if resolved.type == "cuda" and (resolved.index or 0) >= n_cuda:
        raise ValueError(f"PyTorch finds {n_cuda} CUDA devices, not {device}: use 'cpu' or 'auto'.")
    return resolved
