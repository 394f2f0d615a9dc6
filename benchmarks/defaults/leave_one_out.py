r"""Which C, and which temperature, without folds: approximate leave-one-out.

After a fit every document's outputs without it are estimated from the fit itself. With
:math:`z_{is} = c_{is} e^{a_s} \sigma_s / d_i`, so that an output is
:math:`\beta + (\alpha N_i)/d_i + \sum_s z_{is} t_s`, and with p the probabilities:

1. Variances of t and of the outputs agree with each other (mean field), in a few sweeps:
   :math:`\chi_s = 1 / (\lambda + \sum_i z_{is}^2 \omega_i)`,
   :math:`V_i = \sum_s z_{is}^2 \chi_s + 1 / \sum_i \omega_i`, :math:`\omega_i = W_i / (1 + W_i
   V_i)`, where W is p(1 - p), twice that for more than two classes; :math:`\lambda` is the penalty
   whose stationary point the fit is, though it is not finished.
2. Without document i, :math:`\chi'_s = 1 / (1 / \chi_s - z_{is}^2 \omega_i)`, at most
   :math:`1 / \lambda`.
3. The value scale :math:`\sigma` without document i is q times that with it, at most 3 times, for
   tokens of at most 100 documents: variances change by :math:`\rho = q^2 (1 + a) / (1 + q^2 a)`,
   :math:`a = 1 / (\lambda \chi'_s) - 1`. So does the attention mass, by :math:`1 / \kappa`.
4. :math:`F^{(-i)} = \beta + \kappa (\alpha N_i / d_i + \sum_s z_{is} t_s \rho + s_i)`, where the
   shift :math:`s_i` is :math:`V^\rho_i g_i`, at most :math:`c \ln (1 + V^\rho_i)` in size, g is
   the derivative of the document's loss, and c is 2, or 1.5 for more than two classes.

Copies of a document are left out together.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit, log_softmax, softmax

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._blocks import row_blocks
from sklearn_clsattn._core.attention_problem import VALUES
from sklearn_clsattn._core.choose_c import _walk
from sklearn_clsattn._core.documents import Documents
from sklearn_clsattn._core.leave_one_out import _log_odds_without, own_weights
from sklearn_clsattn._core.path import AttentionPath
from sklearn_clsattn._core.statistics import IMPORTANCE_FLOOR, LOG_ODDS_EXPONENT, TokenTotals
from sklearn_clsattn.importance import overall_importance

from .curve import EXPONENTS, Curve
from .question import Question, Row, fitted
from .sets import Split

Array = NDArray[np.float64]

_SWEEPS = 4
_RARE = 100
_LARGEST_RATIO = 3.0
_BLOCK = 2_000_000
_LOG_MULTIPLES = (-1.5, 1.0)


class _Fit(NamedTuple):
    """A fit in the letters of the formulas above; `scaled` is exp(a) sigma, `lam` lambda."""

    intercept: Array
    weights: Array
    mass: Array
    scaled: Array
    t: Array
    chi: Array
    variances: Array
    omega: Array
    g: Array
    lam: float


class LeaveOneOut:
    """Outputs of every different document without it, for one fit of a path after another."""

    def __init__(self, documents: Documents, path: AttentionPath) -> None:
        problem, mean = path.problem, path.mean
        assert mean is not None
        assert problem.loss.evidence is not None
        self._problem = problem
        groups, n_classes = documents.groups, documents.n_classes
        own = own_weights(documents.codes, documents.weights, n_classes, groups)
        present = np.flatnonzero(own.sum(axis=1) > 0)
        rows = np.zeros(len(own), dtype=np.intp)
        rows[groups] = np.arange(len(groups))
        rows, self.own = rows[present], own[present]
        self._X = documents.X[rows].astype(np.float64)
        self._squares = self._X.copy()
        self._squares.data **= 2
        self._transposed = self._squares.T.tocsr()
        self._evidence = problem.loss.evidence.cpu().numpy()[rows]
        self._scales = problem.units.value_scales.cpu().numpy().astype(np.float64)
        self._totals = TokenTotals.of(documents.statistics)
        self._odds = self._totals.log_odds()
        self._importance = overall_importance(self._odds.T) + IMPORTANCE_FLOOR
        self._rare = np.bincount(self._X.indices, minlength=self._X.shape[1]) <= _RARE

    def __call__(self, x: torch.Tensor, gradient: torch.Tensor) -> Array:
        """Return the outputs without each document, (n_different, n_outputs).

        `x` are the trained numbers and `gradient` the objective's there.
        """
        problem, own = self._problem, self.own
        matrix = problem.token_map.matrix(x).cpu().numpy().astype(np.float64)
        t = x[:-1, 1:].cpu().numpy().astype(np.float64)
        of_t = gradient[:-1, 1:].cpu().numpy().astype(np.float64)
        weights = np.exp(matrix[:-1, 0])
        cls_mass = problem.loss.cls_weight * np.exp(matrix[-1, 0])
        mass = self._X @ weights + cls_mass
        scaled = weights[:, None] * self._scales
        outputs = self._evidence + self._X @ (scaled * t)
        outputs /= mass[:, None]
        outputs += matrix[-1, 1:]

        penalty = problem.blocks[VALUES].penalty
        squared = float(np.vdot(t, t))
        unfinished = float(np.vdot(of_t, t)) / (penalty * squared) if squared else 0.0
        lam = penalty * problem.total_weight * max(1.0 - unfinished, 0.1)
        weight = own.sum(axis=1, keepdims=True)
        two = own.shape[1] == 2
        p = expit(outputs) if two else softmax(outputs, axis=1)
        g = weight * p - own[:, -p.shape[1] :]
        W = (1.0 if two else 2.0) * weight * p * (1 - p)
        of_square = scaled**2
        variances = np.zeros_like(W)
        for _ in range(_SWEEPS):
            omega = W / (1 + W * variances)
            data = self._transposed @ (omega / mass[:, None] ** 2)
            chi = 1 / (lam + of_square * data)
            variances = self._squares @ (of_square * chi) / mass[:, None] ** 2
            variances += 1 / omega.sum(axis=0)
        omega = W / (1 + W * variances)

        fit = _Fit(matrix[-1, 1:], weights, mass, scaled, t, chi, variances, omega, g, lam)
        for rows, part in row_blocks(self._X, _BLOCK // p.shape[1] + 1):
            outputs[rows] = self._without(part, rows, fit)
        return outputs

    def _without(self, part: Any, rows: slice, fit: _Fit) -> Array:
        """Return the outputs without each document of a block of rows."""
        mass, omega, g, lam = fit.mass[rows], fit.omega[rows], fit.g[rows], fit.lam
        lengths, tokens = np.diff(part.indptr), part.indices
        blocks = _log_odds_without(part, self.own[rows], self._totals)
        odds = np.concatenate([of_block for _, _, of_block in blocks]).astype(np.float64)
        importance = overall_importance(odds.T) + IMPORTANCE_FLOOR
        change = fit.weights[tokens] * (importance / self._importance[tokens] - 1) * part.data
        kappa = mass / np.maximum(mass + _sums(change[:, None], part.indptr)[:, 0], 0.1 * mass)
        q = np.ones_like(odds)
        rare = self._rare[tokens]
        ratio = np.abs(odds[rare]) / np.maximum(np.abs(self._odds[tokens[rare]]), 1e-12)
        q[rare] = np.minimum(ratio**LOG_ODDS_EXPONENT, _LARGEST_RATIO)
        q *= q
        z = (part.data / np.repeat(mass, lengths))[:, None] * fit.scaled[tokens]
        squares = z * z
        own_chi = fit.chi[tokens]
        others = 1 / np.maximum(1 / own_chi - squares * np.repeat(omega, lengths, axis=0), lam)
        a = 1 / (lam * others) - 1
        rho = q * (1 + a) / (1 + q * a)
        v = fit.variances[rows] + _sums(squares * (rho * others - own_chi), part.indptr)
        v = np.maximum(v, 0.0)
        weight = self.own[rows].sum(axis=1, keepdims=True)
        most = (2.0 if g.shape[1] == 1 else 1.5) * np.log1p(weight * v)
        shift = np.clip(v * g, -most, most)
        attended = self._evidence[rows] / mass[:, None] + _sums(
            z * fit.t[tokens] * rho, part.indptr
        )
        return np.asarray(fit.intercept + kappa[:, None] * (attended + shift))

    def loss(self, outputs: Array, multiple: float = 1.0) -> float:
        """Return the mean log loss of a multiple of outputs."""
        outputs = multiple * outputs
        if outputs.shape[1] == 1:
            logs = log_expit(np.column_stack([-outputs, outputs]))
        else:
            logs = log_softmax(outputs, axis=1)
        return -float((self.own * logs).sum() / self.own.sum())

    def multiple(self, outputs: Array) -> float:
        """Return the multiple of the outputs of least loss, one over the temperature."""
        found = minimize_scalar(
            lambda log: self.loss(outputs, float(np.exp(log))),
            bounds=_LOG_MULTIPLES,
            method="bounded",
            options={"xatol": 1e-2},
        )
        return float(np.exp(found.x))


def _sums(entries: Array, indptr: NDArray[Any]) -> Array:
    """Return the sums of rows of entries, (n_rows, m), 0 for an empty row."""
    ones = np.ones(len(entries))
    rows = sp.csr_array((ones, np.arange(len(entries)), indptr), shape=(len(indptr) - 1, len(ones)))
    return np.asarray(rows @ entries)


def measure(split: Split) -> dict[str, Row]:
    estimates: list[tuple[float, float, float, float]] = []

    def watch(documents: Documents, path: AttentionPath) -> Callable[[], None]:
        estimate = LeaveOneOut(documents, path)

        def after_fit() -> None:
            started = time.process_time()
            outputs = estimate(path.point, path.problem(path.point)[1])
            seconds = time.process_time() - started
            multiple = estimate.multiple(outputs)
            losses = estimate.loss(outputs), estimate.loss(outputs, multiple)
            estimates.append((*losses, multiple, seconds))

        return after_fit

    curve = Curve(split, watch)
    alone, jointly, multiples, judging = np.array(estimates).T
    tempered = curve.tempered(multiples)
    one_fit = fitted(lambda: ClsAttentionClassifier(C=1.0), split)["seconds"] or 0.0
    guess, best = curve.guess(), curve.best()
    start = int(np.clip(np.floor(2 * np.log10(guess)), EXPONENTS[0], EXPONENTS[-1]))
    one_estimate = float(judging[start - EXPONENTS[0]])

    C, n_fits, seconds = curve.chosen()
    cost = seconds + one_fit, n_fits + 1
    rows = {
        "oracle": curve.at(best),
        "oracle, T": curve.at(best, rows=tempered),
        "folds": curve.at(curve.mixed(C), *cost),
        "folds, T": curve.at(curve.mixed(C), cost[0] + one_estimate, cost[1], tempered),
        "guess": curve.at(guess, one_fit, 1),
        "guess, T": curve.at(guess, one_fit + one_estimate, 1, tempered),
    }
    for name, losses in (("alone", alone), ("jointly", jointly)):
        visited: set[int] = set()

        def loss(exponent: int, losses: Array = losses, visited: set[int] = visited) -> float:
            visited.add(exponent - EXPONENTS[0])
            return float(losses[exponent - EXPONENTS[0]])

        C = 10.0 ** (_walk(loss, start) / 2)
        along = sum(curve.seconds[place] + judging[place] for place in visited)
        cost = one_fit + along, len(visited) + 1
        rows[name] = curve.at(C, *cost)
        rows[f"{name}, T"] = curve.at(C, *cost, tempered)
        rows[f"{name}, mixed"] = curve.at(curve.mixed(C), *cost)
        rows[f"{name}, mixed, T"] = curve.at(curve.mixed(C), *cost, tempered)
    return rows


def _titles() -> dict[str, str]:
    """Return every variant in words."""
    titles = {
        "oracle": "oracle",
        "folds": "documents held out, mixed with the guess (**the default**)",
        "guess": "the guess",
        "alone": "leave-one-out",
        "alone, mixed": "leave-one-out, mixed with the guess",
        "jointly": "leave-one-out of C and T jointly",
        "jointly, mixed": "leave-one-out of C and T jointly, mixed with the guess",
    }
    return {
        name + more: text + words
        for name, text in titles.items()
        for more, words in (("", ""), (", T", "; outputs over T"))
    }


QUESTION = Question(
    "leave_one_out",
    "Can C be chosen without documents held out?",
    "Approximate leave-one-out estimates every document's outputs without it from the fit itself "
    "(benchmarks/defaults/leave_one_out.py has the formulas): no folds. *T* is the temperature by "
    "which these outputs have the least loss. The walk along C is that of the documents held out. "
    "The differences are from the C of least log loss on the test documents. "
    "CPU: all fits and estimates over one fit; the estimates are plain NumPy.",
    _titles(),
    "oracle",
    measure,
    unit="guess",
    count="fits",
)
