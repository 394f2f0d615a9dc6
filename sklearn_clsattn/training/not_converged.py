"""What to tell the user of a training that did not converge, and what may help."""

from __future__ import annotations

import numpy as np

from .gradient_flow import PATIENCE
from .settings import Settings


def of_adam(status: str, n_iter: int, unit: str, *, early_stopping: bool) -> str:
    """Return what to tell of training by Adam, whose iterations are of this unit; "" if nothing."""
    if status != "max_iter":
        return ""
    measure = "validation" if early_stopping else "training"
    return (
        f"Adam stopped at max_iter={n_iter} {unit}s while the {measure} loss was still "
        f"improving. Increase max_iter or step_size (Adam's learning rate)"
        + ("." if early_stopping else ", or raise tol, or set early_stopping=True.")
    )


def of_lbfgs(status: str, n_iter: int, gap: float, tol: float) -> str:
    """Return what to tell of training by L-BFGS; "" if nothing."""
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


def of_gradient_flow(
    status: str, selection_curve: list[int], direction_curve: list[float], settings: Settings
) -> str:
    """Return what to tell of gradient flow; "" if nothing."""
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
