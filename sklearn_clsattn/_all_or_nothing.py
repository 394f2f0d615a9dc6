"""Fits that complete or change nothing."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from ._sklearn import _fit_context

Options = ParamSpec("Options")
Returned = TypeVar("Returned")


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
