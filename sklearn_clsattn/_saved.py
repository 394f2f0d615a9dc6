"""What a saved estimator is made of: public class names, plain state, and versions."""

import inspect
import sys
import warnings
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, ClassVar, TypeVar

import sklearn

from . import _SITE, __version__

Kind = TypeVar("Kind", bound=type)

# Where the classes are of which private attributes hold objects. Files have the names alone.
_HOME = {
    "Memory": "_core.memory",
    "Stream": "_core.memory",
    "CorpusStatistics": "_core.statistics",
    "RedrawnEmbeddings": "paper._embedding_source",
    "StoredEmbeddings": "paper._embedding_source",
    "FittedNetwork": "paper._fitted_network",
}
_KIND = "kind"
_VERSIONS = "_saved_with"


def public(module: str) -> Callable[[Kind], Kind]:
    """Give a class its public module, so that files name it as users do; doctests stay."""

    def decorate(kind: Kind) -> Kind:
        home = sys.modules[kind.__module__]
        home.__dict__.setdefault("__test__", {})[kind.__name__] = kind
        kind.__module__ = module
        return kind

    return decorate


class SavedMixin:
    """Saves its state as dictionaries and arrays, with versions, and warns of others on loading."""

    _doc_link_module = "sklearn_clsattn"
    _doc_link_template = f"{_SITE}/docs/reference/{{estimator_module}}.{{estimator_name}}.html"

    _unsaved_parameters: ClassVar[dict[str, Any]] = {}  # of files older than the parameter

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        assert isinstance(state, dict)
        private = {name: _plain(value) for name, value in state.items() if name.startswith("_")}
        return state | private | {_VERSIONS: _versions()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {
            name: _restored(value) if name.startswith("_") else value
            for name, value in state.items()
        }
        versions = state.pop(_VERSIONS, {})
        # Parameters that the file has not yet are at their defaults, or at what was done then.
        parameters = inspect.signature(type(self)).parameters.values()
        defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
        state = defaults | self._unsaved_parameters | state
        if versions != _versions():
            saved = _listed(versions) or "earlier versions, which it does not name"
            warnings.warn(
                f"This {type(self).__name__} was saved with {saved}, and is loaded with "
                f"{_listed(_versions())}: what it predicts may differ, or fail. Fit it again, or "
                "install the versions that it was saved with.",
                stacklevel=2,
            )
        parent: Any = super()
        if hasattr(parent, "__setstate__"):
            parent.__setstate__(state)
        else:
            self.__dict__.update(state)


def _versions() -> dict[str, str]:
    return {"sklearn-clsattn": __version__, "scikit-learn": sklearn.__version__}


def _listed(versions: dict[str, str]) -> str:
    return " and ".join(f"{name} {version}" for name, version in versions.items())


def _plain(value: Any) -> Any:
    """Return an object of a class in `_HOME` as a dictionary, anything else as it is."""
    if is_dataclass(value) and type(value).__name__ in _HOME:
        content = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {_KIND: type(value).__name__, **content}
    return value


def _restored(value: Any) -> Any:
    """Return the object that :func:`_plain` was given; fields of other versions are left out."""
    if not (isinstance(value, dict) and value.get(_KIND) in _HOME):
        return value
    name = value[_KIND]
    kind: Any = getattr(import_module(f"{__package__}.{_HOME[name]}"), name)
    known = {field.name for field in fields(kind)} & value.keys()
    return kind(**{field: _restored(value[field]) for field in known})
