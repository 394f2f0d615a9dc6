"""The content of a saved estimator: public class names, plain state, and versions."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, TypeVar

import sklearn

from . import _SITE, __version__

Kind = TypeVar("Kind", bound=type)

# The modules of the classes of private attributes' values. Files contain only the class names.
_MODULES = {
    "Memory": "_core.memory",
    "Stream": "_core.memory",
    "CorpusStatistics": "_core.statistics",
    "StoredEmbeddings": "paper._fitted",
    "FittedNetwork": "paper._fitted",
}
_KIND = "kind"
_VERSIONS = "_saved_with"


def public(module: str) -> Callable[[Kind], Kind]:
    """Set a class's public module, for files and documentation; its doctests stay where it is."""

    def decorate(kind: Kind) -> Kind:
        home = sys.modules[kind.__module__]
        home.__dict__.setdefault("__test__", {})[kind.__name__] = kind
        kind.__module__ = module
        return kind

    return decorate


class SavedMixin:
    """Save state as dictionaries and arrays with versions; warn when others load it."""

    _doc_link_module = "sklearn_clsattn"
    _doc_link_template = f"{_SITE}/docs/reference/{{estimator_module}}.{{estimator_name}}.html"

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        assert isinstance(state, dict)
        private = {name: _plain(value) for name, value in state.items() if name.startswith("_")}
        return state | private | {_VERSIONS: _versions()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        private = {name: _restored(value) for name, value in state.items() if name.startswith("_")}
        state = state | private
        versions = state.pop(_VERSIONS, {})
        if versions != _versions():
            warnings.warn(
                f"This {type(self).__name__} was saved with {_listed(versions)} and is loaded with "
                f"{_listed(_versions())}: predictions may differ or fail. Fit it again, or install "
                "the versions it was saved with.",
                stacklevel=2,
            )
        estimator: Any = super()
        estimator.__setstate__(state)


def _versions() -> dict[str, str]:
    return {"sklearn-clsattn": __version__, "scikit-learn": sklearn.__version__}


def _listed(versions: dict[str, str]) -> str:
    return " and ".join(f"{name} {version}" for name, version in versions.items())


def _plain(value: Any) -> Any:
    """Return an object of a class in `_MODULES` as a dictionary, anything else as it is."""
    if is_dataclass(value) and type(value).__name__ in _MODULES:
        content = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {_KIND: type(value).__name__, **content}
    return value


def _restored(value: Any) -> Any:
    """Return the object that :func:`_plain` was given."""
    if not (isinstance(value, dict) and value.get(_KIND) in _MODULES):
        return value
    content = dict(value)
    name = content.pop(_KIND)
    kind: Any = getattr(import_module(f"{__package__}.{_MODULES[name]}"), name)
    return kind(**{field: _restored(one) for field, one in content.items()})
