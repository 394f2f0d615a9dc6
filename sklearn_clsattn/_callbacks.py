"""Fits as tasks of scikit-learn's callbacks, such as its progress bar; from scikit-learn 1.9 on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: there are no callbacks."""


class FitTask:
    """The task of a fit, with a subtask for each iteration up to a maximum."""

    def __init__(self, estimator: Any, context: Any, max_iter: int) -> None:
        self._estimator = estimator
        self._context = context
        self._max_iter = max_iter
        self._n_begun = 0
        self._iteration: Any = None
        self._begin_iteration()

    def reached(self, n_iter: int) -> None:
        """End the subtasks of iterations 1 to `n_iter`, and begin the next one."""
        while self._iteration is not None and self._n_begun <= n_iter:
            self.end_iteration()
            self._begin_iteration()

    def end_iteration(self) -> None:
        """End the subtask of the iteration that has begun, if any."""
        if self._iteration is not None:
            self._iteration.call_on_fit_task_end(estimator=self._estimator)
            self._iteration = None

    def _begin_iteration(self) -> None:
        if self._context is not None and self._n_begun < self._max_iter:
            self._n_begun += 1
            self._iteration = self._context.subcontext(task_name="iteration")
            self._iteration.call_on_fit_task_begin(estimator=self._estimator)


@contextmanager
def fit_task(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    max_iter: int = 0,
    part: Any = None,
) -> Iterator[FitTask]:
    """Tell the callbacks of an estimator that its fit begins and, without an error, that it ends.

    With a `part`, its callbacks are told, too, and its fit is the only subtask. The fit must be
    decorated with :func:`._all_or_nothing.all_or_nothing`: scikit-learn's `_fit_context` in it
    clears up after an error.
    """
    if not hasattr(estimator, "_init_callback_context"):
        yield FitTask(estimator, None, 0)  # scikit-learn before 1.9
        return
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    data: dict[str, Any] = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
    context = estimator._init_callback_context(max_subtasks=max_iter if part is None else 1)
    context.call_on_fit_task_begin(**data)
    task = FitTask(estimator, context, max_iter)
    if part is None:
        yield task
        task.end_iteration()  # the one that has begun: a fit may end before `max_iter`
    else:
        subtask = context.subcontext(task_name=f"fit {type(part).__name__}")
        with subtask.propagate_callback_context(part):
            subtask.call_on_fit_task_begin(**data)
            yield task
            subtask.call_on_fit_task_end(**data)
    context.call_on_fit_task_end(**data, reconstruction_attributes={})
