"""The content of a saved estimator: public class names, plain state, and versions."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import fields
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
    "StoredEmbeddings": "_core.fitted",
    "VectorEmbeddings": "_core.fitted",
    "FittedNetwork": "paper._fitted",
}
_KIND = "_kind"
_VERSIONS = "_saved_with"


def public(module: str) -> Callable[[Kind], Kind]:
    """Set a class's public module, for files and documentation, without moving its doctests."""

    def decorate(kind: Kind) -> Kind:
        home = sys.modules[kind.__module__]
        home.__dict__.setdefault("__test__", {})[kind.__name__] = kind
        kind.__module__ = module
        return kind

    return decorate


class SavedMixin:
    """Save state as dictionaries and arrays with versions; warn if other versions load it."""

    _doc_link_module = "sklearn_clsattn"
    _doc_link_template = f"{_SITE}/docs/reference/{{estimator_module}}.{{estimator_name}}.html"

    def _keep(self, parameters: dict[str, Any]) -> None:
        """Store the parameters of a constructor, its ``locals()``."""
        self.__dict__.update({name: parameters[name] for name in parameters if name != "self"})

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        plain = {name: _plain(value) for name, value in state.items()}
        plain[_VERSIONS] = _versions()
        return plain

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {name: _restored(value) for name, value in state.items()}
        saved = state.pop(_VERSIONS, "")
        here = _versions()
        if saved != here:
            warnings.warn(
                f"This {type(self).__name__} was saved with {saved} and is loaded with {here}: "
                "predictions may differ or fail. Fit it again, or install the versions that saved "
                "it.",
                stacklevel=2,
            )
        estimator: Any = super()
        estimator.__setstate__(state)


def _versions() -> str:
    """Return the versions that an estimator depends on, as text."""
    return f"sklearn-clsattn {__version__} and scikit-learn {sklearn.__version__}"


def _plain(value: Any) -> Any:
    """Return an object of a class in `_MODULES` as a dictionary, anything else as it is."""
    name = type(value).__name__
    if name not in _MODULES:
        return value
    content = {_KIND: name}
    for field in fields(value):
        content[field.name] = _plain(getattr(value, field.name))
    return content


def _restored(value: Any) -> Any:
    """Return the object that :func:`_plain` was given."""
    if not (isinstance(value, dict) and value.get(_KIND) in _MODULES):
        return value
    content = {name: _restored(one) for name, one in value.items()}
    name = content.pop(_KIND)
    return getattr(import_module(f"{__package__}.{_MODULES[name]}"), name)(**content)
