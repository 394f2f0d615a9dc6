"""One full-batch gradient by (E, p, v): the bag form against three forms of autograd.

``python benchmarks/bench_padded.py [--reviews FOLDER] [--dims 64 512 2048]``

The model is the paper's: embeddings E of all tokens, ``<cls>`` embedding p, output vector v,
logistic loss, every document a sequence of token ids. What is timed is the gradient of the mean
loss over all documents by E, p and v, in single precision, with dL/dE written out as a dense
matrix. All forms' gradients are compared with the bag form's beforehand.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line, pages, problems  # noqa: E402
from sklearn_clsattn._core.bag import TokenBag  # noqa: E402
from sklearn_clsattn._core.objective import AttentionLoss, encode_targets  # noqa: E402

CUT = 256
TARGET_RATIO = 500.0
_BATCH_FLOATS = 100_000_000  # of one copy of a batch's embeddings: autograd keeps about four
_BATCH_SIZES = (16, 64, 256)
_MAX_BATCHES = 40
_LARGEST_DIFFERENCE = 1e-3  # between forms, relative, in single precision

Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # E (n_tokens, d), p (d,) and v (d,)

_NOTES = f"""\
Bag form: the closed form of this package, with dL/dE written out. Competitors: PyTorch's autograd.
*padded* looks up an embedding for every position of every document, in batches of random documents
padded to the longest of the batch, with sparse gradients of the lookup, and is extrapolated from
some batches; documents are cut at {CUT} tokens, or whole. *scalars* looks up E p and E v only and
has a softmax by segments, all documents at once. Single precision."""


class Sequences:
    """Documents spelt out, one position per occurrence, with targets +-1."""

    def __init__(self, X: sp.csr_matrix, codes: Any, cut: int | None = None) -> None:
        counts, ends = X.data.astype(np.int64), np.append(0, np.cumsum(X.data.astype(np.int64)))
        self.tokens = torch.from_numpy(np.repeat(X.indices.astype(np.int64), counts))
        self.starts, lengths = ends[X.indptr[:-1]], np.diff(ends[X.indptr])
        self.lengths = lengths if cut is None else np.minimum(lengths, cut)
        self.targets = encode_targets(codes, 2).to(torch.float32)

    def padded(self, rows: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Return token ids (n, longest), 0 where there are none, and where there are some."""
        real = np.arange(self.lengths[rows].max(initial=1)) < self.lengths[rows][:, None]
        positions = (self.starts[rows][:, None] + np.arange(real.shape[1]))[real]
        tokens, mask = torch.zeros(real.shape, dtype=torch.int64), torch.from_numpy(real)
        tokens[mask] = self.tokens[torch.from_numpy(positions)]
        return tokens, mask


def bag_form(X: sp.csr_matrix, codes: Any) -> Callable[[Tensors, torch.Tensor], Tensors]:
    """Return the closed form: two sparse products, then the rank-2 matrix dL/dE written out."""
    bag = TokenBag(X, dtype=np.float32)
    loss = AttentionLoss(bag, encode_targets(codes, 2), torch.ones(len(codes)), 1)

    def gradient(parameters: Tensors, out: torch.Tensor) -> Tensors:
        E, p, v = parameters
        matrix = loss.zeros()
        matrix[:-1] = E @ torch.stack([p, v], dim=1)
        factors = loss.mean(matrix)[1][:-1]
        torch.mm(factors, torch.stack([p, v]), out=out)
        dp, dv = factors.T @ E
        return out, dp, dv

    return gradient


def padded_form(parameters: Tensors, documents: Sequences, rows: Any) -> Tensors:
    """Return these documents' part of the gradient of the mean loss over all documents."""
    tokens, real = documents.padded(rows)
    E, p, v = leaves = [tensor.detach().requires_grad_() for tensor in parameters]
    embedded = F.embedding(tokens, E, sparse=True)
    attention = torch.softmax((embedded @ p).masked_fill(~real, -torch.inf), dim=1)
    attention = torch.where(real.any(dim=1, keepdim=True), attention, 0.0)
    pooled = torch.bmm(attention[:, None], embedded)[:, 0]
    targets = documents.targets[torch.as_tensor(rows)]
    loss = F.softplus(-targets * (pooled @ v)).sum() / len(documents.lengths)
    return torch.autograd.grad(loss, leaves)


def scalar_form(parameters: Tensors, documents: Sequences) -> Tensors:
    """Return the gradient by autograd through E p and E v, then two numbers per position."""
    n, tokens = len(documents.lengths), documents.tokens
    document = torch.from_numpy(np.repeat(np.arange(n), documents.lengths))
    E, p, v = leaves = [tensor.detach().requires_grad_() for tensor in parameters]
    scores, values = (E @ p)[tokens], (E @ v)[tokens]
    with torch.no_grad():
        largest = scores.new_zeros(n).scatter_reduce_(
            0, document, scores, reduce="amax", include_self=False
        )
    weights = torch.exp(scores - largest[document])
    mass = scores.new_zeros(n).index_add(0, document, weights)
    attended = scores.new_zeros(n).index_add(0, document, weights * values)
    outputs = attended / torch.where(mass > 0, mass, 1.0)
    return torch.autograd.grad(F.softplus(-documents.targets * outputs).sum() / n, leaves)


def draw(n_tokens: int, d: int) -> Tensors:
    """Draw E, p and v as the paper does, v of length 1."""
    generator = torch.Generator().manual_seed(0)
    E, p, v = (torch.randn(shape, generator=generator) for shape in ((n_tokens, d), d, d))
    return E.mul_(d**-0.5), p * d**-0.5, v / v.norm()


def added_up(
    parameters: Tensors, documents: Sequences, batches: list[Any], seconds: float
) -> tuple[list[torch.Tensor], float, int]:
    """Return the sum of batches' gradients until the time is up, its seconds and documents."""
    total, taken, n_added = [torch.zeros_like(tensor) for tensor in parameters], 0.0, 0
    for rows in batches:
        started = time.perf_counter()
        for whole, part in zip(total, padded_form(parameters, documents, rows), strict=True):
            whole += part
        taken, n_added = taken + time.perf_counter() - started, n_added + len(rows)
        if taken > seconds:
            break
    return total, taken, n_added


def differences(X: sp.csr_matrix, codes: Any, d: int = 64, cut: int = CUT) -> dict[str, float]:
    """Return by how much each form's gradient differs from the bag form's, relative to its max.

    The cut form is compared with the bag form of the same, cut documents.
    """
    parameters, batches = draw(X.shape[1], d), np.array_split(np.arange(len(codes)), 3)
    shortened = X.copy()
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        left = np.minimum(np.cumsum(X.data[start:stop]), cut)
        shortened.data[start:stop] = np.diff(left, prepend=0)

    def difference(counts: sp.csr_matrix, gradients: Any) -> float:
        exact = bag_form(counts, codes)(parameters, torch.empty_like(parameters[0]))
        pairs = zip(gradients, exact, strict=True)
        return max(float((one - two).abs().max() / two.abs().max()) for one, two in pairs)

    whole, short = Sequences(X, codes), Sequences(X, codes, cut)
    return {
        f"padded, cut at {cut}": difference(
            shortened, added_up(parameters, short, batches, np.inf)[0]
        ),
        "padded, whole": difference(X, added_up(parameters, whole, batches, np.inf)[0]),
        "scalars": difference(X, scalar_form(parameters, whole)),
    }


def _timed(function: Callable[[], Any], runs: int) -> tuple[float, str]:
    """Return the median seconds of some runs after two others."""
    seconds = []
    for _ in range(2 + runs):
        started = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[2:]), f"median of {runs}"


def _extrapolated(parameters: Tensors, documents: Sequences, seconds: float) -> tuple[float, str]:
    """Time random batches, of the fastest size, for about `seconds`; extrapolate to all."""
    n, d = len(documents.lengths), parameters[0].shape[1]
    order, best = np.random.default_rng(0).permutation(n), (np.inf, 0)
    for size in _BATCH_SIZES:
        rows = order[:size]
        if size == _BATCH_SIZES[0] or size * documents.lengths[rows].max() * d <= _BATCH_FLOATS:
            added_up(parameters, documents, [rows], seconds)  # wakes up threads and allocators
            _, taken, n_added = added_up(parameters, documents, [rows], seconds)
            best = min(best, (taken / n_added, size))
    batches = [order[at : at + best[1]] for at in range(0, n, best[1])][:_MAX_BATCHES]
    _, taken, n_added = added_up(parameters, documents, batches, seconds)
    how = f"extrapolated from {n_added:,} documents in batches of {best[1]}"
    return taken * n / n_added, how


def measure(X: sp.csr_matrix, codes: Any, d: int, runs: int, seconds: float) -> list[list[str]]:
    """Return the rows of the table for `d` dimensions."""
    parameters, whole = draw(X.shape[1], d), Sequences(X, codes)
    out, gradient = torch.empty_like(parameters[0]), bag_form(X, codes)
    forms = {
        "bag": _timed(partial(gradient, parameters, out), 3 * runs),
        "scalars": _timed(partial(scalar_form, parameters, whole), max(1, runs // 2)),
        f"padded, cut at {CUT}": _extrapolated(parameters, Sequences(X, codes, CUT), seconds),
        "padded, whole": _extrapolated(parameters, whole, seconds),
    }
    fastest = forms["bag"][0]
    return [
        [str(d), name, _number(taken), _number(taken / fastest), how]
        for name, (taken, how) in forms.items()
    ]


def _number(value: float) -> str:
    """Write three digits, never in powers of ten."""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark and return the exit status."""
    parser = command_line.reviews_parser(__file__, __doc__)
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 512, 2048], metavar="D")
    parser.add_argument("--threads", type=int, default=2, help="PyTorch's threads (default 2)")
    parser.add_argument("--runs", type=int, default=7, help="runs of the fast forms")
    parser.add_argument("--seconds", type=float, default=8.0, help="for each slow form")
    parser.add_argument("--rows", type=int, default=None, help="only this many documents")
    parser.add_argument("--output", type=Path, default=pages.RESULTS / "padded.md")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    reviews = problems.find_reviews(options.reviews)
    problem = problems.load(problems.specs(reviews)[0], reviews, n_rows=options.rows)
    X, codes = problem.X_train, np.unique(problem.y_train, return_inverse=True)[1]
    sample = np.random.default_rng(0).choice(len(codes), min(48, len(codes)), replace=False)
    apart = differences(X[sample], codes[sample])
    if max(apart.values()) > _LARGEST_DIFFERENCE:
        print(f"The forms disagree, nothing was timed: {apart}", file=sys.stderr)
        return 1
    rows = [
        row for d in options.dims for row in measure(X, codes, d, options.runs, options.seconds)
    ]
    listed = ", ".join(f"{name}: {value:.1e}" for name, value in apart.items())
    text = pages.page(
        "One full-batch gradient by (E, p, v)",
        "python benchmarks/bench_padded.py",
        f"{problem.title}: {X.shape[0]:,} documents, {X.shape[1]:,} tokens, {X.nnz:,} non-zeros, "
        f"{int(X.sum()):,} token occurrences.",
        _NOTES,
        "Largest difference from the bag form's gradient, relative to its largest entry "
        f"({len(sample)} documents, d = 64; the cut form against cut documents): {listed}.",
        pages.table(["d", "form", "seconds", "times the bag form", "how measured"], rows),
        f"Target: at d = {options.dims[-1]}, {TARGET_RATIO:g} times the bag form for padded "
        f"autograd cut at {CUT} tokens; measured: {rows[-2][3]} times.",
    )
    print(text)
    pages.write(options.output, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
