"""A training that no estimator offers, from the package's parts; two classes."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import expit
from sklearn.metrics import log_loss

from sklearn_clsattn._core.bag import TokenBag
from sklearn_clsattn._core.fitted import FittedAttention
from sklearn_clsattn._core.objective import AttentionLoss, encode_targets
from sklearn_clsattn.paper._adam import minimize_adam
from sklearn_clsattn.paper._validation import hold_out
from sklearn_clsattn.theory import one_step_embeddings
from sklearn_clsattn.theory._gradient_step import embedding_gradient

from .data import Corpus
from .models import SEED, Fit

HELD_OUT = 0.1
LEARNING_RATE = 1e-3
PATIENCE = 10


@lru_cache(maxsize=8)
def fit_after_one_step(
    corpus: Corpus, embedding_dim: int, max_iter: int, largest_value: float = 1.0
) -> Fit:
    """Take one step on E, then train p, v and an intercept on it by Adam: the paper's ablation.

    Ours: the step size makes the largest value after the step `largest_value` (1 is the package's
    rule), and training stops early, as that of EmbeddingClassifier does.
    PenalizedOneStepClassifier is another training: there v keeps its direction, and p is
    penalised.
    """
    started = time.perf_counter()
    largest = np.abs(one_step_embeddings(corpus.X, corpus.y, step_size=1.0).shifts).max()
    step = one_step_embeddings(
        corpus.X,
        corpus.y,
        step_size=largest_value / largest,
        embedding_dim=embedding_dim,
        random_state=SEED,
    )
    embeddings = torch.from_numpy(np.asarray(step.embeddings, dtype=np.float32))
    directions = torch.from_numpy(
        np.vstack([step.cls_embedding, step.output_vectors]).astype(np.float32)
    )
    del step  # large
    last_row = torch.zeros(2)  # score of <cls>, which is left out, and intercept
    trained_on, held_out = hold_out(
        corpus.y.astype(np.intp), np.ones(len(corpus.y)), HELD_OUT, SEED
    )
    training, validation = _loss(corpus, trained_on), _loss(corpus, held_out)

    def evaluate() -> tuple[float, float]:
        loss, gradient = embedding_gradient(
            training, embeddings, directions[0], directions[1:], last_row
        )
        directions.grad = gradient[:-1].T.contiguous() @ embeddings
        last_row.grad = torch.stack([torch.zeros(()), gradient[-1, 1]])
        rows = torch.vstack([embeddings @ directions.T, last_row])
        return loss, validation.mean(rows)[0]

    result = minimize_adam(
        [directions, last_row],
        [LEARNING_RATE, LEARNING_RATE],
        evaluate,
        max_iter=max_iter,
        n_iter_no_change=PATIENCE,
        tol=0.0,
    )
    scores, values = (embeddings @ directions.T).double().numpy().T
    model = FittedAttention(
        scores=scores,
        values=values[:, None],
        intercept=last_row[1:].double().numpy(),
        cls_weight=0.0,
        cls_score=-np.inf,
    )
    return _measured(corpus, model, result.n_iter, started)


def _loss(corpus: Corpus, documents: Any) -> AttentionLoss:
    return AttentionLoss(
        TokenBag(corpus.X[documents], dtype=np.float32),
        encode_targets(corpus.y[documents].astype(np.intp), 2),
        torch.ones(len(documents), dtype=torch.float64),
        1,
    )


def _measured(corpus: Corpus, model: Any, n_iter: int, started: float) -> Fit:
    """Return what :func:`benchmarks.paper.models.fit` returns, of a model without an estimator."""
    seconds = time.perf_counter() - started
    single = sp.identity(corpus.X.shape[1], dtype=np.float32, format="csr")[corpus.frequent]
    decision = model.outputs(corpus.X_test)[:, 0]
    return Fit(
        scores=np.asarray(model.scores, dtype=np.float64)[corpus.frequent],
        values=np.asarray(model.values, dtype=np.float64)[corpus.frequent, 0],
        one_token=model.outputs(single)[:, 0],
        accuracy=float(np.mean((decision > 0) == corpus.y_test)),
        test_loss=float(log_loss(corpus.y_test, expit(decision))),
        n_iter=n_iter,
        seconds=seconds,
    )
