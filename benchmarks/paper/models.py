"""Fits the package's classifiers and keeps what the experiments look at: plain numbers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.paper import AttentionNetworkClassifier, EmbeddingClassifier

from . import known, pictures
from .data import Corpus, Settings
from .shapes import Array, Bins, binned


@dataclass(frozen=True, eq=False)
class Fit:
    """What is kept of a fitted model.

    scores, values : E.p (n_frequent,) and E.v of the frequent tokens, a row for each of K > 2
        classes
    one_token : the output for a document of one token, each frequent token in turn
    accuracy, test_loss : on test documents; the mean log loss in nats
    """

    scores: Array
    values: Array
    one_token: Array
    accuracy: float
    test_loss: float


@cache
def fit(corpus: Corpus, kind: type = ClsAttentionClassifier, **parameters: Any) -> Fit:
    """Fit on a corpus's training half; each fit is made once in a run.

    Unless `parameters` say so, ``<cls>`` does not attend to itself, and there is no intercept, as
    in the paper. Training that ends at `max_iter` is part of an experiment, so it does not warn.
    """
    usual: dict[str, Any] = {"attend_cls": False, "fit_intercept": False, "random_state": 0}
    named = kind().get_params()
    model = kind(**{name: usual[name] for name in usual if name in named} | parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(corpus.X, corpus.y)
    frequent = corpus.frequent
    single = sp.identity(corpus.X.shape[1], dtype=corpus.X.dtype, format="csr")[frequent]
    probabilities = model.predict_proba(corpus.X_test)
    return Fit(
        scores=np.asarray(model.attention_scores_[frequent], dtype=np.float64),
        values=np.asarray(model.token_values_[..., frequent], dtype=np.float64),
        one_token=model.decision_function(single),
        accuracy=float(np.mean(probabilities.argmax(axis=1) == corpus.y_test)),
        test_loss=float(log_loss(corpus.y_test, probabilities)),
    )


def over_seeds(corpus: Corpus, settings: Settings, **parameters: Any) -> list[Fit]:
    """Fit once for every seed: starts, documents held out and mini-batches differ."""
    return [fit(corpus, random_state=seed, **parameters) for seed in settings.seeds]


def joint_parameters(settings: Settings) -> dict[str, Any]:
    """Return how E, p and v are trained together in the paper's d: early stopping is ours."""
    return {
        "kind": EmbeddingClassifier,
        "embedding_dim": settings.pick(known.EMBEDDING_DIM, 32),
        "max_iter": settings.pick(150, 60),
        **({"learning_rate": 0.02} if settings.fast else {}),
    }


def batch_parameters(embedding_dim: int, max_iter: int) -> dict[str, Any]:
    """Return the parameters of one layer trained as deep networks are: Adam on mini-batches."""
    return {
        "kind": AttentionNetworkClassifier,
        "embedding_dim": embedding_dim,
        "n_iter_no_change": 2,
        "max_iter": max_iter,
    }


def draw(ax: Any, corpus: Corpus, numbers: Array, title: str, symbol: str, **style: Any) -> None:
    """Draw numbers of the frequent tokens against the difference of posteriors, and their means."""
    bins = along_posterior(corpus, numbers)
    pictures.cloud(ax, corpus.posterior, numbers, bins, **style)
    pictures.name_axes(ax, title, pictures.POSTERIOR, symbol)


def along_posterior(corpus: Corpus, numbers: Array) -> Bins:
    """Bin numbers of the frequent tokens along the difference of posteriors."""
    return binned(corpus.posterior, numbers)
