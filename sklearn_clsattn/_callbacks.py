"""A bridge to scikit-learn's callbacks, which exist from scikit-learn 1.9 on."""

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin

    HAS_CALLBACKS = True
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands where scikit-learn has no callbacks."""

    HAS_CALLBACKS = False


class FitCallbacks:
    """Tells an estimator's callbacks of its fit: one task, and one subtask per iteration."""

    def __init__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, *, max_iter: int, task_name: str
    ) -> None:
        self._estimator = estimator
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._max_iter = max_iter
        self._task_name = task_name
        self._context: Any = None

    def begin(self) -> None:
        """Open the fit's task. Does nothing without callbacks support."""
        if HAS_CALLBACKS:
            self._context = self._estimator._init_callback_context(max_subtasks=self._max_iter)
            self._context.call_on_fit_task_begin(**self._data)

    @property
    def active(self) -> bool:
        """Whether anyone listens: iterations cost nothing otherwise."""
        return self._context is not None and hasattr(self._estimator, "_skl_callbacks")

    def iteration(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        """Report one finished iteration; return whether a callback asks to stop."""
        if not self.active:
            return False
        task = self._context.subcontext(task_name=self._task_name)
        task.call_on_fit_task_begin(**self._data)
        return bool(task.call_on_fit_task_end(**self._data, reconstruction_attributes=attributes))

    def end(self) -> None:
        """Close the fit's task."""
        if self._context is not None:
            self._context.call_on_fit_task_end(**self._data, reconstruction_attributes={})
