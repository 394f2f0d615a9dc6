"""The loop between the objective that is trained and its solver."""

import math

from .fitted_model import FitResult, OnIteration
from .lbfgs import Iterate, Pairs, minimize_lbfgs
from .objective import AttentionObjective


def solve(
    objective: AttentionObjective,
    *,
    max_iter: int,
    tol: float,
    on_iteration: OnIteration | None = None,
    pairs: Pairs | None = None,
    reached: Iterate | None = None,
) -> tuple[FitResult, Iterate]:
    """Minimise until the optimality gap, in nats per document, is at most `tol`.

    At most `max_iter` steps are made; `on_iteration` gets the gap. `pairs` are the curvature pairs
    to start with; `reached` is the last iterate of an earlier call, whose value and gradient are
    the start's.
    """
    if reached is None:
        x = objective.start
        reached = Iterate(x, *objective(x))
    n_done = 0
    curve: list[float] = []
    gap = math.inf

    def is_converged(iterate: Iterate) -> bool:
        nonlocal gap
        gap = objective.gap(iterate.gradient)
        if not (curve and iterate.n_iter == 0):  # a restart begins at a recorded point
            curve.append(iterate.value)
            if on_iteration is not None:
                on_iteration(n_done + iterate.n_iter, iterate.value, gap)
        return gap <= tol

    while True:
        # 1) some steps with the curvature where they begin
        n_left = max_iter - n_done
        leg = minimize_lbfgs(
            objective,
            reached,
            is_converged=is_converged,
            max_iter=min(objective.refresh or n_left, n_left),
            inverse_curvature=objective.inverse_curvature(reached.x),
            pairs=pairs,
        )
        # 2) the end, or the start of the next ones
        reached = leg
        n_done += leg.n_iter
        is_refreshed = objective.refresh is not None and leg.n_iter > 0
        if leg.status == "converged" or n_done >= max_iter or not is_refreshed:
            break
    result = FitResult(
        model=objective.model(leg.x),
        loss_curve=curve,
        n_iter=n_done,
        attributes={"optimality_gap_": gap},
        convergence_message=_not_converged(leg.status, n_done, gap, tol),
    )
    return result, leg


def _not_converged(status: str, n_iter: int, gap: float, tol: float) -> str:
    """Return the warning about the result of a minimisation, "" if none."""
    if status == "max_iter":
        return (
            f"Training stopped at max_iter={n_iter} with an optimality gap of {gap:.1e} > "
            f"tol={tol:.1e}: values, and perhaps scores, could still lower the penalised mean log "
            "loss by about that much. Increase max_iter, or lower C or attention_C (stronger "
            "penalties converge sooner), or raise tol."
        )
    if status == "no_progress":
        return (
            "Training cannot lower the loss any further in this precision, with an optimality gap "
            f"of {gap:.1e} > tol={tol:.1e}. Raise tol, or pass X as float64 if it is float32 or "
            "integer."
        )
    return ""
