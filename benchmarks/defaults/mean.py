"""The prior mean of the values: how much of naive Bayes, and with or without each document."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core import evidence, prior_mean

from .question import Question, Row, fitted
from .sets import Split

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def measure(split: Split) -> dict[str, Row]:
    rows = {}
    for share in SHARES:
        with patch.object(prior_mean, "MEAN_SHARE", share):
            rows[f"{share:g}"] = fitted(ClsAttentionClassifier, split)
    with patch.object(evidence, "evidence_without", _in_sample):
        rows["in sample"] = fitted(ClsAttentionClassifier, split)
    return rows


def _in_sample(X: Any, own: Any, totals: Any) -> Any:
    """Return the evidence by the statistics of all documents, (n_documents, n_outputs)."""
    return X @ totals.log_odds()


QUESTION = Question(
    "mean",
    "What is the prior mean of the values?",
    "A share of the best multiple of naive Bayes's log-odds; 0 is the usual penalty towards 0. In "
    "sample, the multiple is fitted, and the values are trained, on log-odds that have seen the "
    "document.",
    {
        **{
            f"{share:g}": f"share {share:g}" + " (**the default**)" * (share == 0.5)
            for share in SHARES
        },
        "in sample": "share 0.5, in sample",
    },
    "0",
    measure,
    unit="0.5",
)
