"""Which training a set of parameters asks for, and what all trainings hand back.

The estimator knows the regimes by this file alone: :func:`check_settings` refuses combinations
that mean nothing, :func:`train` calls the one that was asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ..importance import class_totals, signed_frequency
from ..model.bag import TokenBag
from ..model.embedding_source import (
    Geometry,
    RedrawnEmbeddings,
    SpannedEmbeddings,
    StoredEmbeddings,
    random_frame,
)
from ..model.fitted import FittedAttention
from ..model.fitted_network import FittedNetwork
from ..model.targets import encode_targets
from .cls_regression import fit_cls_regression
from .embeddings import fit_embeddings
from .frozen import fit_frozen
from .gradient_flow import PATIENCE, follow_gradient_flow
from .joint import JointProgress, class_log_odds, fit_joint
from .minibatch import NetworkProgress, fit_network
from .one_step import FrozenEmbeddings, take_step
from .scaling import Scaling, token_scaling

Array = NDArray[np.float64]
OnStep = Callable[[JointProgress | NetworkProgress], bool]


@dataclass(frozen=True)
class Settings:
    """What the trainings look at: the estimator's parameters of these names."""

    training: Literal["joint", "one_step", "frozen"]
    solver: Literal["lbfgs", "adam"]
    C: float
    attention_C: float
    embedding_dim: int | None
    step_size: float | None
    fit_output: bool
    n_layers: int
    mlp: bool
    attend_cls: bool
    token_scaling: Literal["log_odds"] | None
    batch_size: int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    max_iter: int
    tol: float
    warm_start: bool

    @property
    def deeper(self) -> bool:
        """Whether this is more than one layer of attention."""
        return self.n_layers == 2 or self.mlp

    @property
    def progress_label(self) -> str:
        """What the number called gap is that is reported after each step."""
        if self.solver == "adam":
            return "validation loss"
        if self.training == "one_step" and not self.fit_output:
            return "unselected attention"
        return "gap"


@dataclass(frozen=True)
class Documents:
    """What is trained on.

    Attributes
    ----------
    X : CSR matrix of shape (n_documents, n_tokens)
        In canonical format.

    codes : ndarray of shape (n_documents,)
        Class codes 0..K-1.

    weights : ndarray of shape (n_documents,)
        Document weights, class weights included.

    class_weights : ndarray of shape (n_classes,)
        Their sums over each class.

    shares : ndarray of shape (n_classes, n_tokens)
        :func:`sklearn_clsattn.importance.class_totals` of kind "shares" under these weights.
    """

    X: Any
    codes: NDArray[np.intp]
    weights: Array
    class_weights: Array
    shares: Array

    def mean_weight(self) -> float:
        """Return the mean total token weight of a document."""
        totals = np.asarray(self.X.sum(axis=1), dtype=np.float64).ravel()
        return float(np.average(totals, weights=self.weights))

    def mean_entry(self) -> float:
        """Return the mean of the positive entries, as documents weigh them."""
        entries = float(np.average(_positive_entries(self.X), weights=self.weights))
        return self.mean_weight() / (entries or 1.0)


@dataclass(frozen=True)
class Trained:
    """What every training hands back.

    Attributes
    ----------
    fitted : FittedAttention or FittedNetwork

    loss_curve : list of float
        At the start and after each step.

    n_iter : int

    geometry : Geometry or None
        None where the dimension drops out.

    attributes : dict
        Fitted attributes that not every training has, by name.

    not_converged : str
        What to tell the user if it did not converge, else "".

    warning : str
        What else to tell, or "".
    """

    fitted: FittedAttention | FittedNetwork
    loss_curve: list[float]
    n_iter: int
    geometry: Geometry | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    not_converged: str = ""
    warning: str = ""


OPTIONAL_ATTRIBUTES = ("optimality_gap_", "validation_curve_", "direction_curve_", "step_size_")
"""Fitted attributes that not every training has."""


def check_settings(settings: Settings, n_outputs: int) -> None:
    """Raise ValueError where parameters contradict each other.

    Parameters
    ----------
    settings : Settings

    n_outputs : int
        1 for two classes, K for K > 2.
    """
    s = settings
    dim = s.embedding_dim
    if dim is not None and dim < 1 + n_outputs:
        raise ValueError(
            f"embedding_dim must be at least {1 + n_outputs} here, one dimension for <cls> and "
            f"{n_outputs} for the output vector(s), got {dim}. None needs no dimension."
        )
    if s.deeper:
        names = " and ".join(
            name for name, on in (("n_layers=2", s.n_layers == 2), ("mlp=True", s.mlp)) if on
        )
        if s.training != "joint" or s.solver != "adam" or dim is None:
            raise ValueError(
                f"{names} is trained by mini-batches on embeddings of finite dimension: set "
                "training='joint', solver='adam' and embedding_dim (128, for example); got "
                f"training={s.training!r}, solver={s.solver!r}, embedding_dim={dim}."
            )
    if s.training == "frozen" and dim is None:
        raise ValueError(
            "training='frozen' needs embedding_dim (2048 in the paper): random embeddings of "
            "infinitely many dimensions are as free as trained ones, which is training='joint' "
            "with token_scaling=None."
        )
    if s.training != "joint" and s.solver == "adam":
        raise ValueError(
            f"solver='adam' trains embeddings, which training={s.training!r} leaves as they are: "
            "set solver='lbfgs', or training='joint'."
        )
    if s.training == "one_step" and not s.fit_output and s.attend_cls:
        raise ValueError(
            "fit_output=False is the letter of the paper, in which <cls> does not attend to "
            "itself: set attend_cls=False as well."
        )
    if not s.fit_output and s.training != "one_step":
        raise ValueError(
            "fit_output=False is a reading of training='one_step', but training is "
            f"{s.training!r}: leave fit_output=True, or set training='one_step'."
        )
    if s.step_size is not None and s.training != "one_step" and s.solver == "lbfgs":
        raise ValueError(
            f"step_size={s.step_size} has no meaning for training={s.training!r} by L-BFGS, "
            "which finds the size of its steps: leave step_size=None, or set "
            "training='one_step' or solver='adam'."
        )
    if s.warm_start and (s.training != "joint" or s.solver != "lbfgs"):
        raise ValueError(
            "warm_start continues joint training by L-BFGS only: set warm_start=False, or "
            "training='joint' and solver='lbfgs'."
        )


def train(
    documents: Documents,
    settings: Settings,
    *,
    dtype: type[np.floating[Any]],
    device: torch.device,
    seed: int,
    start: FittedAttention | None,
    on_step: OnStep,
) -> Trained:
    """Train as the settings ask.

    Parameters
    ----------
    documents : Documents

    settings : Settings
        That :func:`check_settings` has nothing against.

    dtype : {numpy.float32, numpy.float64}
        Precision of training.

    device : torch.device

    seed : int
        Of everything random.

    start : FittedAttention or None
        A model to start joint training from.

    on_step : callable
        Told of every step; True stops.

    Returns
    -------
    Trained
    """
    if settings.solver == "adam":
        run = _network if settings.deeper else _adam
        return run(documents, settings, dtype, device, seed, on_step)
    if settings.training == "one_step":
        return _one_step(documents, settings, dtype, device, seed, on_step)
    if settings.training == "frozen":
        return _frozen(documents, settings, dtype, device, seed, on_step)
    return _joint(documents, settings, dtype, device, seed, start, on_step)


def _joint(
    documents: Documents,
    settings: Settings,
    dtype: type[np.floating[Any]],
    device: torch.device,
    seed: int,
    start: FittedAttention | None,
    on_step: OnStep,
) -> Trained:
    fit = fit_joint(
        TokenBag(documents.X, dtype=dtype, device=device),
        documents.codes,
        documents.weights,
        documents.class_weights,
        _scaling(documents, settings, dtype, settings.token_scaling),
        value_C=settings.C,
        attention_C=settings.attention_C,
        max_iter=settings.max_iter,
        tol=settings.tol,
        start=start,
        on_step=on_step,
    )
    geometry = None
    if settings.embedding_dim is not None:  # the fit is the same in any dimension
        n_outputs = fit.fitted.values.shape[1]
        frame = random_frame(1 + n_outputs, settings.embedding_dim, seed)
        stacked = np.column_stack([fit.fitted.scores, fit.fitted.values])
        geometry = Geometry(frame[0], frame[1:], SpannedEmbeddings(stacked, frame))
    return Trained(
        fit.fitted,
        fit.loss_curve,
        fit.n_iter,
        geometry,
        {"optimality_gap_": fit.gap},
        _lbfgs_message(fit.status, fit.n_iter, fit.gap, settings.tol),
    )


def _frozen(
    documents: Documents,
    settings: Settings,
    dtype: type[np.floating[Any]],
    device: torch.device,
    seed: int,
    on_step: OnStep,
) -> Trained:
    assert settings.embedding_dim is not None
    fit = fit_frozen(
        TokenBag(documents.X, dtype=dtype, device=device),
        documents.codes,
        documents.weights,
        documents.class_weights,
        _scaling(documents, settings, dtype, None),
        embedding_dim=settings.embedding_dim,
        seed=seed,
        value_C=settings.C,
        attention_C=settings.attention_C,
        max_iter=settings.max_iter,
        tol=settings.tol,
        on_step=on_step,
    )
    n_outputs = len(fit.output_vectors)
    source = RedrawnEmbeddings(
        documents.X.shape[1], n_outputs, settings.embedding_dim, seed, dtype == np.float32, None
    )
    return Trained(
        fit.fitted,
        fit.loss_curve,
        fit.n_iter,
        Geometry(fit.cls_embedding, fit.output_vectors, source),
        {"optimality_gap_": fit.gap},
        _lbfgs_message(fit.status, fit.n_iter, fit.gap, settings.tol),
    )


def _one_step(
    documents: Documents,
    settings: Settings,
    dtype: type[np.floating[Any]],
    device: torch.device,
    seed: int,
    on_step: OnStep,
) -> Trained:
    n_classes = len(documents.class_weights)
    balanced = settings.fit_output
    importance = signed_frequency(documents.shares, documents.class_weights, centred=balanced)
    if balanced:  # the weight of all goes to the classes that have any, as in the step's weights
        importance *= n_classes / np.count_nonzero(documents.class_weights)
    X, codes, weights = documents.X, documents.codes, documents.weights
    if not settings.fit_output and not weights.all():  # pairs of tokens have no weight
        X, codes, weights = X[weights > 0], codes[weights > 0], weights[weights > 0]
    step_weights = weights
    if balanced:
        present = documents.class_weights > 0
        mean = weights.sum() / np.count_nonzero(present)
        factors = np.divide(mean, documents.class_weights, where=present, out=np.zeros(n_classes))
        step_weights = weights * factors[codes]
    bag = TokenBag(X, dtype=dtype, device=device)
    targets = encode_targets(codes, n_classes, device)
    frozen = take_step(
        bag,
        targets,
        torch.from_numpy(step_weights).to(device),
        importance,
        step_size=settings.step_size,
        embedding_dim=settings.embedding_dim,
        seed=seed,
    )
    if not bool(torch.isfinite(frozen.values).all()):
        raise ValueError(
            f"step_size={settings.step_size:.3g} makes token values that are no longer finite: "
            "choose a smaller one, or leave step_size=None, the default rule."
        )
    tensor_weights = torch.from_numpy(np.ascontiguousarray(weights)).to(device)
    attributes: dict[str, Any] = {"step_size_": frozen.step_size}
    fit: Any
    if settings.fit_output:
        presence = class_totals(X, codes, n_classes, weights, kind="presence")
        fit = fit_cls_regression(
            bag,
            targets,
            tensor_weights,
            frozen,
            presence.sum(axis=0) / weights.sum(),
            class_log_odds(documents.class_weights),
            cls_weight=(documents.mean_weight() or 1.0) if settings.attend_cls else 0.0,
            output_C=settings.C,
            attention_C=settings.attention_C,
            max_iter=settings.max_iter,
            tol=settings.tol,
            on_step=on_step,
        )
        scales = fit.output_scales
        attributes["optimality_gap_"] = fit.gap
        message = _lbfgs_message(fit.status, fit.n_iter, fit.gap, settings.tol)
    else:
        fit = follow_gradient_flow(
            X,
            bag,
            targets,
            tensor_weights,
            frozen,
            max_iter=settings.max_iter,
            tol=max(settings.tol, sys.float_info.min),  # 0 is asked of rounding
            on_step=on_step,
        )
        scales = np.ones(frozen.values.shape[1])
        attributes["direction_curve_"] = np.array(fit.direction_curve)
        message = _flow_message(fit.status, fit.selection_curve, fit.direction_curve, settings)
    return Trained(
        fit.fitted,
        fit.loss_curve,
        fit.n_iter,
        _geometry_of_step(frozen, fit.cls_embedding, scales),
        attributes,
        message,
        frozen.warning,
    )


def _geometry_of_step(frozen: FrozenEmbeddings, p: Array, scales: Array) -> Geometry | None:
    if frozen.source is None:
        return None
    vectors = frozen.output_vectors.to("cpu", torch.float64).numpy()
    return Geometry(p, scales[:, None] * vectors, frozen.source)


def _adam(
    documents: Documents,
    settings: Settings,
    dtype: type[np.floating[Any]],
    device: torch.device,
    seed: int,
    on_step: OnStep,
) -> Trained:
    fit = fit_embeddings(
        documents.X,
        documents.codes,
        documents.weights,
        len(documents.class_weights),
        embedding_dim=settings.embedding_dim,
        learning_rate=settings.step_size,
        cls_weight=(documents.mean_weight() or 1.0) if settings.attend_cls else 0.0,
        early_stopping=settings.early_stopping,
        validation_fraction=settings.validation_fraction,
        n_iter_no_change=settings.n_iter_no_change,
        max_iter=settings.max_iter,
        tol=settings.tol,
        seed=seed,
        dtype=dtype,
        device=device,
        on_step=on_step,
    )
    geometry = None
    if fit.cls_embedding is not None:
        assert fit.output_vectors is not None
        assert fit.token_embeddings is not None
        source = StoredEmbeddings(fit.token_embeddings)
        geometry = Geometry(fit.cls_embedding, fit.output_vectors, source)
    return _trained_by_adam(fit, geometry, settings, "step")


def _network(
    documents: Documents,
    settings: Settings,
    dtype: type[np.floating[Any]],
    device: torch.device,
    seed: int,
    on_step: OnStep,
) -> Trained:
    assert settings.embedding_dim is not None
    fit = fit_network(
        documents.X,
        documents.codes,
        documents.weights,
        len(documents.class_weights),
        n_layers=settings.n_layers,
        mlp=settings.mlp,
        embedding_dim=settings.embedding_dim,
        learning_rate=settings.step_size,
        batch_size=settings.batch_size,
        cls_weight=(documents.mean_weight() or 1.0) if settings.attend_cls else 0.0,
        early_stopping=settings.early_stopping,
        validation_fraction=settings.validation_fraction,
        n_iter_no_change=settings.n_iter_no_change,
        max_iter=settings.max_iter,
        tol=settings.tol,
        seed=seed,
        device=device,
        dtype=torch.float32 if dtype == np.float32 else torch.float64,
        on_step=on_step,
    )
    network = fit.fitted
    geometry = Geometry(
        np.asarray(network.cls_embedding, dtype=np.float64),
        np.asarray(network.output_vectors, dtype=np.float64),
        StoredEmbeddings(network.embeddings),
    )
    return _trained_by_adam(fit, geometry, settings, "epoch")


def _trained_by_adam(fit: Any, geometry: Geometry | None, settings: Settings, unit: str) -> Trained:
    attributes = {}
    if fit.validation_curve is not None:
        attributes["validation_curve_"] = np.array(fit.validation_curve)
    message = ""
    if fit.status == "max_iter":
        measure = "validation" if settings.early_stopping else "training"
        message = (
            f"Adam stopped at max_iter={fit.n_iter} {unit}s while the {measure} loss was still "
            f"improving. Increase max_iter or step_size (Adam's learning rate)"
            + ("." if settings.early_stopping else ", or raise tol, or set early_stopping=True.")
        )
    return Trained(
        fit.fitted, fit.loss_curve, fit.n_iter, geometry, attributes, not_converged=message
    )


def _scaling(
    documents: Documents,
    settings: Settings,
    dtype: type[np.floating[Any]],
    scaling: Literal["log_odds"] | None,
) -> Scaling:
    return token_scaling(
        documents.shares,
        documents.class_weights,
        documents.mean_weight(),
        documents.mean_entry(),
        scaling=scaling,
        attend_cls=settings.attend_cls,
        dtype=dtype,
    )


def _positive_entries(X: Any) -> NDArray[np.int64]:
    """Return how many positive entries every row of a CSR matrix has."""
    if np.count_nonzero(X.data) == X.data.size:
        return np.diff(X.indptr).astype(np.int64)
    return np.diff(np.concatenate([[0], np.cumsum(X.data > 0)])[X.indptr])


def _lbfgs_message(status: str, n_iter: int, gap: float, tol: float) -> str:
    if status == "max_iter":
        return (
            f"L-BFGS stopped at max_iter={n_iter} with an optimality gap of {gap:.1e} > "
            f"tol={tol:.1e}: values, and perhaps scores, could still lower the penalised mean log "
            "loss by about that much. Increase max_iter, or lower C or attention_C (stronger "
            "penalties converge sooner), or raise tol."
        )
    if status == "no_progress":
        return (
            f"L-BFGS cannot lower the loss any further in this precision, with an optimality gap "
            f"of {gap:.1e} > tol={tol:.1e}. Raise tol, or pass X as float64 if it is float32 or "
            "integer."
        )
    return ""


def _flow_message(
    status: str, selection_curve: list[int], direction_curve: list[float], settings: Settings
) -> str:
    if status == "selection":
        recent = selection_curve[-PATIENCE:]
        changes = sum(1 for changed in recent if changed)
        what = f"they changed in {changes} of the last {len(recent)} steps"
        if not changes and len(recent) == PATIENCE:
            what = "some document still attends to others"
        return (
            f"Gradient flow stopped at max_iter={settings.max_iter}: the selected tokens have "
            f"not settled ({what}), so that p has no limit yet, and Theorem 4.3 does not apply. "
            "Increase max_iter, or choose a smaller step_size; on real text the selection may "
            "never settle, and fit_output=True (the practical form) is what predicts."
        )
    if status == "direction":
        error = direction_curve[-1] if direction_curve else np.inf
        return (
            "The direction of p is not certified: 1 less its cosine to the max-margin direction "
            f"of the tokens selected is known to be at most {error:.1e} only, > "
            f"tol={settings.tol:.1e}. Increase max_iter or raise tol."
        )
    if status == "no_gradient":
        return (
            "Nothing tells p where to go: in every document all tokens have the same value. "
            "Documents need tokens of different importance; or increase step_size."
        )
    return ""
