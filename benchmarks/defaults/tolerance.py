"""When training stops."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core import fit

from .question import Question, Row, fitted
from .sets import Split

TOLS = (1e-6, 2e-6, 1e-5, 1e-4, 1e-3, 1e-2)


def measure(split: Split) -> dict[str, Row]:
    choices: list[Any] = []
    choose = fit.choose_C

    def once(*arguments: Any, **how: Any) -> Any:
        """Choose C for the first tolerance: it is the same for all."""
        if not choices:
            choices.append(choose(*arguments, **how))
        return choices[0]

    with patch.object(fit, "choose_C", once):
        fitted(ClsAttentionClassifier, split)
        return {
            f"{tol:g}": fitted(lambda tol=tol: ClsAttentionClassifier(tol=tol, max_iter=500), split)
            for tol in TOLS
        }


QUESTION = Question(
    "tolerance",
    "When does training stop?",
    "The optimality gap, in nats per document, at which the last fit stops; C is chosen by the "
    "same fits for all. CPU: that of the last fit.",
    {f"{tol:g}": f"tol = {tol:g}" + " (**the default**)" * (tol == 2e-6) for tol in TOLS},
    "1e-06",
    measure,
    unit="2e-06",
)
