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
from . import not_converged
from .cls_regression import fit_cls_regression
from .embeddings import fit_embeddings
from .frozen import fit_frozen
from .gradient_flow import follow_gradient_flow
from .joint import JointFit, JointProgress, class_log_odds, fit_joint
from .minibatch import NetworkProgress, fit_network
from .one_step import FrozenEmbeddings, take_step
from .scaling import Scaling, token_scaling
from .settings import Settings, check_settings

__all__ = [
    "OPTIONAL_ATTRIBUTES",
    "Documents",
    "Settings",
    "Trained",
    "check_settings",
    "joint_training",
    "train",
]

Array = NDArray[np.float64]
OnStep = Callable[[JointProgress | NetworkProgress], bool]


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

    def mean_entries(self) -> float:
        """Return the mean number of a document's positive entries."""
        return float(np.average(_positive_entries(self.X), weights=self.weights))

    def mean_entry(self) -> float:
        """Return the mean of the positive entries, as documents weigh them."""
        return self.mean_weight() / (self.mean_entries() or 1.0)


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
    run = _Run(dtype, device, seed, on_step)
    if settings.solver == "adam":
        return (_network if settings.deeper else _adam)(documents, settings, run)
    if settings.training == "one_step":
        return _one_step(documents, settings, run)
    if settings.training == "frozen":
        return _frozen(documents, settings, run)
    return _joint(documents, settings, run, start)


@dataclass(frozen=True)
class _Run:
    """What every training is told besides documents and settings."""

    dtype: type[np.floating[Any]]
    device: torch.device
    seed: int
    on_step: OnStep

    def bag(self, X: Any) -> TokenBag:
        return TokenBag(X, dtype=self.dtype, device=self.device)


def _joint(
    documents: Documents, settings: Settings, run: _Run, start: FittedAttention | None
) -> Trained:
    fit = fit_joint(
        run.bag(documents.X),
        documents.codes,
        documents.weights,
        documents.class_weights,
        _scaling(documents, settings, run.dtype, settings.token_scaling),
        value_C=settings.C,
        attention_C=settings.attention_C,
        max_iter=settings.max_iter,
        tol=settings.tol,
        start=start,
        on_step=run.on_step,
    )
    return joint_training(fit, settings, run.seed)


def joint_training(fit: JointFit, settings: Settings, seed: int = 0) -> Trained:
    """Return what joint training hands back, from its fit and the seed of its geometry."""
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
        not_converged.of_lbfgs(fit.status, fit.n_iter, fit.gap, settings.tol),
    )


def _frozen(documents: Documents, settings: Settings, run: _Run) -> Trained:
    assert settings.embedding_dim is not None
    fit = fit_frozen(
        run.bag(documents.X),
        documents.codes,
        documents.weights,
        documents.class_weights,
        _scaling(documents, settings, run.dtype, None),
        embedding_dim=settings.embedding_dim,
        seed=run.seed,
        value_C=settings.C,
        attention_C=settings.attention_C,
        max_iter=settings.max_iter,
        tol=settings.tol,
        on_step=run.on_step,
    )
    n_outputs = len(fit.output_vectors)
    source = RedrawnEmbeddings(
        documents.X.shape[1],
        n_outputs,
        settings.embedding_dim,
        run.seed,
        run.dtype == np.float32,
        None,
    )
    return Trained(
        fit.fitted,
        fit.loss_curve,
        fit.n_iter,
        Geometry(fit.cls_embedding, fit.output_vectors, source),
        {"optimality_gap_": fit.gap},
        not_converged.of_lbfgs(fit.status, fit.n_iter, fit.gap, settings.tol),
    )


def _one_step(documents: Documents, settings: Settings, run: _Run) -> Trained:
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
    bag = run.bag(X)
    targets = encode_targets(codes, n_classes, run.device)
    frozen = take_step(
        bag,
        targets,
        torch.from_numpy(step_weights).to(run.device),
        importance,
        step_size=settings.step_size,
        embedding_dim=settings.embedding_dim,
        seed=run.seed,
        for_flow=not settings.fit_output,
    )
    if not bool(torch.isfinite(frozen.values).all()):
        raise ValueError(
            f"step_size={settings.step_size:.3g} makes token values that are no longer finite: "
            "choose a smaller one, or leave step_size=None, the default rule."
        )
    tensor_weights = torch.from_numpy(np.ascontiguousarray(weights)).to(run.device)
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
            cls_weight=_cls_weight(documents, settings),
            output_C=settings.C,
            attention_C=settings.attention_C,
            max_iter=settings.max_iter,
            tol=settings.tol,
            on_step=run.on_step,
        )
        scales = fit.output_scales
        attributes["optimality_gap_"] = fit.gap
        message = not_converged.of_lbfgs(fit.status, fit.n_iter, fit.gap, settings.tol)
    else:
        fit = follow_gradient_flow(
            X,
            bag,
            targets,
            tensor_weights,
            frozen,
            max_iter=settings.max_iter,
            tol=max(settings.tol, sys.float_info.min),  # 0 is asked of rounding
            on_step=run.on_step,
        )
        scales = np.ones(frozen.values.shape[1])
        attributes["direction_curve_"] = np.array(fit.direction_curve)
        message = not_converged.of_gradient_flow(
            fit.status, fit.selection_curve, fit.direction_curve, settings
        )
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


def _adam(documents: Documents, settings: Settings, run: _Run) -> Trained:
    fit = fit_embeddings(
        documents.X,
        documents.codes,
        documents.weights,
        len(documents.class_weights),
        embedding_dim=settings.embedding_dim,
        learning_rate=settings.step_size,
        cls_weight=_cls_weight(documents, settings),
        early_stopping=settings.early_stopping,
        validation_fraction=settings.validation_fraction,
        n_iter_no_change=settings.n_iter_no_change,
        max_iter=settings.max_iter,
        tol=settings.tol,
        seed=run.seed,
        dtype=run.dtype,
        device=run.device,
        on_step=run.on_step,
    )
    geometry = None
    if fit.cls_embedding is not None:
        assert fit.output_vectors is not None
        assert fit.token_embeddings is not None
        source = StoredEmbeddings(fit.token_embeddings)
        geometry = Geometry(fit.cls_embedding, fit.output_vectors, source)
    return _trained_by_adam(fit, geometry, settings, "step")


def _network(documents: Documents, settings: Settings, run: _Run) -> Trained:
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
        cls_weight=_cls_weight(documents, settings),
        early_stopping=settings.early_stopping,
        validation_fraction=settings.validation_fraction,
        n_iter_no_change=settings.n_iter_no_change,
        max_iter=settings.max_iter,
        tol=settings.tol,
        seed=run.seed,
        device=run.device,
        dtype=torch.float32 if run.dtype == np.float32 else torch.float64,
        on_step=run.on_step,
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
    message = not_converged.of_adam(
        fit.status, fit.n_iter, unit, early_stopping=settings.early_stopping
    )
    return Trained(
        fit.fitted, fit.loss_curve, fit.n_iter, geometry, attributes, not_converged=message
    )


def _cls_weight(documents: Documents, settings: Settings) -> float:
    """Return the weight of ``<cls>`` in every document: that of a document's tokens."""
    return (documents.mean_weight() or 1.0) if settings.attend_cls else 0.0


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
