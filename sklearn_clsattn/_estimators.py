"""What all estimators have: fits that complete or change nothing, callbacks, and what is saved."""

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from . import _SITE, __version__
from ._sklearn import _fit_context

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: there are no callbacks."""


Options = ParamSpec("Options")
Returned = TypeVar("Returned")
_VERSIONS = f"{__version__} with scikit-learn {sklearn.__version__}"
_SAVED_WITH = "_saved_with"
# skops takes a minute to write and read the keys of a dictionary with 500,000 terms one by one.
_VOCABULARIES = ("vocabulary_", "character_vocabulary_")


def all_or_nothing(
    method: Callable[Concatenate[Any, Options], Returned],
) -> Callable[Concatenate[Any, Options], Returned]:
    """Validate the parameters of a fitting method, and restore the estimator if it fails.

    This includes Ctrl-C. The attributes are restored without copies, because fits create new
    arrays and change none in place.
    """
    validating = _fit_context(prefer_skip_nested_validation=True)(method)

    @wraps(method)
    def fitting(self: Any, *args: Options.args, **options: Options.kwargs) -> Returned:
        before = vars(self).copy()
        try:
            return validating(self, *args, **options)
        except BaseException:
            self.__dict__ = before  # one assignment, which nothing can interrupt
            raise

    return fitting


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
    decorated with :func:`._estimators.all_or_nothing`: scikit-learn's `_fit_context` in it
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


class SavedMixin:
    """Save versions, warn if others load them, and save vocabularies as one text."""

    _doc_link_module = "sklearn_clsattn"
    _doc_link_template = f"{_SITE}/docs/reference/{{estimator_module}}.{{estimator_name}}.html"

    def __getstate__(self) -> dict[str, Any]:
        attributes: Any = super().__getstate__()
        state = {**attributes, _SAVED_WITH: _VERSIONS}
        for name in _VOCABULARIES:
            if name in state:
                terms = sorted(state[name], key=state[name].__getitem__)
                # Not as a string, in which JSON joins the two halves of a surrogate pair.
                state[name] = json.dumps(terms, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        saved_with = state.pop(_SAVED_WITH, "unknown")
        if saved_with != _VERSIONS:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=_VERSIONS,
                    original_sklearn_version=saved_with,
                ),
                stacklevel=2,
            )
        for name in _VOCABULARIES:
            if name in state:
                terms = json.loads(state[name].decode("utf-8", "surrogatepass"))
                state[name] = {term: column for column, term in enumerate(terms)}
        estimator: Any = super()
        estimator.__setstate__(state)
