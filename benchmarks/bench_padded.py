"""One full-batch gradient by (E, p, v): the bag form against three forms of autograd.

``python benchmarks/bench_padded.py [--reviews FOLDER] [--dims 64 512 2048]``

The model is the paper's: embeddings E of all tokens, ``<cls>`` embedding p, output vector v,
logistic loss, every document a sequence of token ids. What is timed is the gradient of the mean
loss over all documents by E, p and v, in single precision, with dL/dE written out as a dense
matrix. The competitors, all in PyTorch:

- padded, cut: look up every position's embedding, mask, softmax, pool, autograd; documents are
  cut at 256 tokens;
- padded, whole: the same without cutting, padded to the longest document of the batch;
- scalars: E p and E v for the vocabulary first, then two numbers looked up per position and a
  softmax by segments, autograd through all of it. All documents at once.

Padded forms run in batches (of the fastest of a few sizes, with dense or sparse gradients of the
lookup, whichever is faster), a few of which are timed and extrapolated to all documents. All
forms' gradients are checked against the bag form's beforehand.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line, machine, problems  # noqa: E402
from sklearn_clsattn._core.bag import TokenBag  # noqa: E402
from sklearn_clsattn._core.objective import AttentionLoss, encode_targets  # noqa: E402
from sklearn_clsattn.theory._gradient_step import (  # noqa: E402
    draw_embeddings,
    embedding_gradient,
)

CUT = 256
TARGET_RATIO = 500.0
# Floats of one copy of a batch's embeddings, at most: autograd keeps about four.
_BATCH_FLOATS = 100_000_000
_BATCH_SIZES = (16, 64, 256)
_MAX_BATCHES = 40
# Between forms, relative, in single precision.
_LARGEST_DIFFERENCE = 1e-3

Gradients = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Parameters:
    """E (n_tokens, d), p (d,) and v (d,)."""

    E: torch.Tensor
    p: torch.Tensor
    v: torch.Tensor

    @classmethod
    def draw(cls, n_tokens: int, d: int, dtype: torch.dtype = torch.float32) -> Parameters:
        """Draw them as the paper does."""
        drawn = draw_embeddings(n_tokens, 1, d, seed=0, dtype=dtype)
        return cls(drawn.embeddings, drawn.cls_embedding, drawn.output_vectors[0])

    def leaves(self) -> list[torch.Tensor]:
        """Return E, p and v as autograd's leaves, sharing their memory."""
        return [tensor.detach().requires_grad_() for tensor in (self.E, self.p, self.v)]


class Sequences:
    """Documents spelt out, one position per occurrence, with targets +-1."""

    def __init__(self, X: sp.csr_matrix, codes: Any, dtype: torch.dtype = torch.float32) -> None:
        counts = X.data.astype(np.int64)
        self.tokens = torch.from_numpy(np.repeat(X.indices.astype(np.int64), counts))
        ends = np.concatenate([[0], np.cumsum(counts)])[X.indptr]
        self.starts, self.lengths = ends[:-1], np.diff(ends)
        self.targets = encode_targets(codes, 2).to(dtype)

    def __len__(self) -> int:
        return len(self.lengths)

    def padded(self, rows: Any, cut: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return token ids (n, longest), 0 where there are none, and where there are some."""
        lengths = np.minimum(self.lengths[rows], cut or np.inf).astype(np.int64)
        real = np.arange(lengths.max(initial=1)) < lengths[:, None]
        places = (self.starts[rows][:, None] + np.arange(real.shape[1]))[real]
        tokens = torch.zeros(real.shape, dtype=torch.int64)
        mask = torch.from_numpy(real)
        tokens[mask] = self.tokens[torch.from_numpy(places)]
        return tokens, mask


def cut_counts(X: sp.csr_matrix, cut: int) -> sp.csr_matrix:
    """Return the counts of what is left of documents cut at `cut` positions."""
    X = X.copy()
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        kept = np.minimum(np.cumsum(X.data[start:stop]), cut)
        X.data[start:stop] = np.diff(kept, prepend=0)
    return X


class BagForm:
    """The closed form: two sparse products, then the rank-2 matrix dL/dE written out."""

    def __init__(self, X: sp.csr_matrix, codes: Any, dtype: torch.dtype = torch.float32) -> None:
        bag = TokenBag(X, dtype=np.float32 if dtype == torch.float32 else np.float64)
        self.loss = AttentionLoss(bag, encode_targets(codes, 2), torch.ones(len(codes)), 1)

    def __call__(self, parameters: Parameters, out: torch.Tensor) -> Gradients:
        """Return the gradient by E, p and v; that by E in `out`."""
        E, p, v = parameters.E, parameters.p, parameters.v
        factors = embedding_gradient(self.loss, E, p, v[None])[1][:-1]
        torch.mm(factors, torch.stack([p, v]), out=out)
        dp, dv = factors.T @ E
        return out, dp, dv


def padded_gradient(
    parameters: Parameters,
    sequences: Sequences,
    rows: Any,
    cut: int | None = None,
    *,
    sparse: bool = False,
) -> Gradients:
    """Return these documents' part of the gradient of the mean loss over all `sequences`.

    With `sparse`, that by E is a sparse tensor with a row for every position.
    """
    tokens, real = sequences.padded(rows, cut)
    E, p, v = parameters.leaves()
    embedded = F.embedding(tokens, E, sparse=sparse)
    attention = torch.softmax((embedded @ p).masked_fill(~real, -torch.inf), dim=1)
    attention = torch.where(real.any(dim=1, keepdim=True), attention, 0.0)
    pooled = torch.bmm(attention[:, None], embedded)[:, 0]
    targets = sequences.targets[torch.as_tensor(rows)]
    loss = F.softplus(-targets * (pooled @ v)).sum() / len(sequences)
    dE, dp, dv = torch.autograd.grad(loss, (E, p, v))
    return dE, dp, dv


class ScalarForm:
    """Autograd through E p and E v, then two numbers per position, all documents at once."""

    def __init__(self, sequences: Sequences) -> None:
        self.sequences = sequences
        self.documents = torch.from_numpy(np.repeat(np.arange(len(sequences)), sequences.lengths))

    def __call__(self, parameters: Parameters) -> Gradients:
        """Return the gradient by E, p and v."""
        tokens, documents, n = self.sequences.tokens, self.documents, len(self.sequences)
        E, p, v = parameters.leaves()
        scores = (E @ p)[tokens]
        values = (E @ v)[tokens]
        with torch.no_grad():
            largest = scores.new_zeros(n).scatter_reduce_(
                0, documents, scores, reduce="amax", include_self=False
            )
        weights = torch.exp(scores - largest[documents])
        mass = scores.new_zeros(n).index_add(0, documents, weights)
        attended = scores.new_zeros(n).index_add(0, documents, weights * values)
        f = attended / torch.where(mass > 0, mass, 1.0)
        loss = F.softplus(-self.sequences.targets * f).sum() / n
        dE, dp, dv = torch.autograd.grad(loss, (E, p, v))
        return dE, dp, dv


def padded_gradient_of_all(
    parameters: Parameters, sequences: Sequences, batch: int, cut: int | None = None
) -> Gradients:
    """Return the whole gradient, batches added up."""
    total = [torch.zeros_like(tensor) for tensor in parameters.leaves()]
    for start in range(0, len(sequences), batch):
        rows = np.arange(start, min(start + batch, len(sequences)))
        parts = padded_gradient(parameters, sequences, rows, cut)
        for whole, part in zip(total, parts, strict=True):
            whole += part
    return total[0], total[1], total[2]


def differences(
    X: sp.csr_matrix, codes: Any, d: int, *, cut: int = CUT, dtype: torch.dtype = torch.float32
) -> dict[str, float]:
    """Return by how much each form's gradient differs from the bag form's, relative to its max.

    The cut form is compared with the bag form of the same, cut documents.
    """
    parameters = Parameters.draw(X.shape[1], d, dtype)
    sequences = Sequences(X, codes, dtype)
    exact = BagForm(X, codes, dtype)(parameters, torch.empty_like(parameters.E))
    exact_cut = BagForm(cut_counts(X, cut), codes, dtype)(
        parameters, torch.empty_like(parameters.E)
    )
    return {
        f"padded, cut at {cut}": _difference(
            padded_gradient_of_all(parameters, sequences, 16, cut), exact_cut
        ),
        "padded, whole": _difference(padded_gradient_of_all(parameters, sequences, 16), exact),
        "scalars": _difference(ScalarForm(sequences)(parameters), exact),
    }


def _difference(gradients: Gradients, exact: Gradients) -> float:
    pairs = zip(gradients, exact, strict=True)
    return max(float((one - two).abs().max() / two.abs().max()) for one, two in pairs)


@dataclass(frozen=True)
class Timing:
    """Seconds for all documents, and how they were found."""

    seconds: float
    how: str


def timed(function: Callable[[], Any], *, runs: int, warm_up: int = 1) -> Timing:
    """Return the median of `runs` runs."""
    times = []
    for run in range(warm_up + runs):
        started = time.perf_counter()
        function()
        if run >= warm_up:
            times.append(time.perf_counter() - started)
    return Timing(statistics.median(times), f"median of {runs}")


def extrapolated(
    parameters: Parameters, sequences: Sequences, cut: int | None, *, seconds: float
) -> Timing:
    """Time random batches for about `seconds`, in the fastest way tried, and extrapolate.

    Tried are some sizes, and both kinds of gradient that PyTorch has for a lookup. The batches'
    gradients are added up, as they would be for all documents.
    """
    n, d = len(sequences), parameters.E.shape[1]
    order = np.random.default_rng(0).permutation(n)
    total = [torch.zeros_like(tensor) for tensor in parameters.leaves()]
    lengths = np.minimum(sequences.lengths, cut or np.inf)

    def run(rows: Any, sparse: bool) -> float:
        started = time.perf_counter()
        parts = padded_gradient(parameters, sequences, rows, cut, sparse=sparse)
        for whole, part in zip(total, parts, strict=True):
            whole += part
        return time.perf_counter() - started

    def batches(size: int) -> list[Any]:
        return [order[start : start + size] for start in range(0, n, size)]

    def fits(size: int) -> bool:
        longest = max(float(lengths[rows].max()) for rows in batches(size)[:_MAX_BATCHES])
        return size * longest * d <= _BATCH_FLOATS or size == _BATCH_SIZES[0]

    tried = {}
    for size, sparse in product(filter(fits, _BATCH_SIZES), (False, True)):
        rows = batches(size)[0]
        run(rows, sparse)  # wakes up threads and allocators
        tried[size, sparse] = run(rows, sparse) / len(rows)
    size, sparse = min(tried, key=lambda way: tried[way])
    chosen = batches(size)
    timed_rows, times = 0, []
    for rows in chosen[:_MAX_BATCHES]:
        times.append(run(rows, sparse))
        timed_rows += len(rows)
        if sum(times) > seconds:
            break
    how = f"extrapolated from {len(times)} of {len(chosen)} batches"
    if len(times) == len(chosen):
        how = f"all {len(chosen)} batches, once"
    how += f" of {size} documents, {'sparse' if sparse else 'dense'} gradient of the lookup"
    return Timing(sum(times) * n / timed_rows, how)


def measure(
    X: sp.csr_matrix, codes: Any, d: int, *, runs: int = 7, seconds: float = 8.0, cut: int = CUT
) -> dict[str, Timing]:
    """Return what a full-batch gradient takes in each form, in `d` dimensions."""
    parameters = Parameters.draw(X.shape[1], d)
    sequences = Sequences(X, codes)
    bag, scalars = BagForm(X, codes), ScalarForm(sequences)
    out = torch.empty_like(parameters.E)
    return {
        "bag": timed(lambda: bag(parameters, out), runs=3 * runs, warm_up=3),
        "scalars": timed(lambda: scalars(parameters), runs=max(1, runs // 2)),
        f"padded, cut at {cut}": extrapolated(parameters, sequences, cut, seconds=seconds),
        "padded, whole": extrapolated(parameters, sequences, None, seconds=seconds),
    }


def table(results: dict[int, dict[str, Timing]]) -> str:
    """Return a Markdown table of seconds and of ratios to the bag form."""
    lines = ["| d | form | seconds | times the bag form | how measured |", "|---|---|---|---|---|"]
    for d, forms in results.items():
        fastest = forms["bag"].seconds
        for name, timing in forms.items():
            lines.append(
                f"| {d} | {name} | {_number(timing.seconds)} | {_number(timing.seconds / fastest)} "
                f"| {timing.how} |"
            )
    return "\n".join(lines)


def _number(value: float) -> str:
    """Write three digits, never in powers of ten."""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def verdicts(results: dict[int, dict[str, Timing]], cut: int = CUT) -> list[str]:
    """Return a line for each target, at the largest dimension measured."""
    d = max(results)
    forms = results[d]
    padded = forms[f"padded, cut at {cut}"].seconds / forms["bag"].seconds
    scalars = forms["scalars"].seconds / forms["bag"].seconds
    return [
        f"- at d = {d}, at least {TARGET_RATIO:g} times faster than padded autograd cut at {cut} "
        f"tokens: {padded:,.0f} times, {'met' if padded >= TARGET_RATIO else 'missed'};",
        f"- at d = {d}, faster than autograd that gathers scalars: {scalars:.1f} times, "
        f"{'met' if scalars > 1 else 'missed'}.",
    ]


def main(arguments: list[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    torch.set_num_threads(args.threads)
    reviews = problems.find_reviews(args.reviews)
    problem = problems.load(problems.specs(reviews)[0], reviews, n_rows=args.rows)
    X, codes = problem.X_train, np.unique(problem.y_train, return_inverse=True)[1]
    sample = np.random.default_rng(0).choice(len(codes), min(48, len(codes)), replace=False)
    found = differences(X[sample], codes[sample], 64)
    lines = [*_head(problem), _agreement(found, len(sample)), ""]
    print("\n".join(lines), flush=True)
    if max(found.values()) > _LARGEST_DIFFERENCE:
        print("The forms disagree: nothing was timed.", file=sys.stderr)
        return 1
    results: dict[int, dict[str, Timing]] = {}
    for d in args.dims:
        results[d] = measure(X, codes, d, runs=args.runs, seconds=args.seconds)
        print(table({d: results[d]}), flush=True)
    print("\n".join(verdicts(results)))
    lines += [table(results), "", "Targets:", "", *verdicts(results), ""]
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text("\n".join(lines), encoding="utf-8")
    return 0


def _head(problem: problems.Problem) -> list[str]:
    X, described = problem.X_train, machine.describe()
    lines = [
        "# One full-batch gradient by (E, p, v)",
        "",
        f"{problem.title}: {X.shape[0]:,} documents, {X.shape[1]:,} tokens, {X.nnz:,} non-zeros, "
        f"{int(X.sum()):,} token occurrences. {datetime.date.today().isoformat()}.",
        "",
        machine.summary(described),
        "",
    ]
    return [
        *lines,
        *machine.warning(described),
        "Bag form: the closed form of this package, with dL/dE written out. Competitors: PyTorch's "
        "autograd. *padded* looks up an embedding for every position of every document, in "
        "batches of random documents padded to the longest of the batch; *scalars* looks up E p "
        "and E v only, all documents at once. Single precision.",
        "",
    ]


def _agreement(found: dict[str, float], n_documents: int) -> str:
    listed = ", ".join(f"{name}: {value:.1e}" for name, value in found.items())
    return (
        "Largest difference from the bag form's gradient, relative to its largest entry "
        f"({n_documents} documents, d = 64; the cut form against cut documents): {listed}."
    )


def _parser() -> argparse.ArgumentParser:
    parser = command_line.reviews_parser(__file__, __doc__)
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 512, 2048], metavar="D")
    parser.add_argument("--threads", type=int, default=2, help="PyTorch's threads (default 2)")
    parser.add_argument("--runs", type=int, default=7, help="runs of the fast forms")
    parser.add_argument("--seconds", type=float, default=8.0, help="for each slow form")
    parser.add_argument("--rows", type=int, default=None, help="only this many documents")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "padded.md"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
