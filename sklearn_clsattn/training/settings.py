"""What the trainings look at of the estimator's parameters, and which of them contradict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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
