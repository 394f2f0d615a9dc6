"""Fits that change their estimator completely or not at all."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Options = ParamSpec("Options")
Returned = TypeVar("Returned")


def all_or_nothing(
    method: Callable[Concatenate[Any, Options], Returned],
) -> Callable[Concatenate[Any, Options], Returned]:
    """Leave the estimator as it was where a method that fits it raises anything, Ctrl-C included.

    What an attribute held is put back, not a copy: fits make new arrays and change none in place.
    """

    @wraps(method)
    def fitting(self: Any, *args: Options.args, **options: Options.kwargs) -> Returned:
        before = vars(self).copy()
        try:
            return method(self, *args, **options)
        except BaseException:
            self.__dict__ = before  # one assignment: nothing can come between
            raise

    return fitting
