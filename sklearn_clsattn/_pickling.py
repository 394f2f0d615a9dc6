"""The content of a saved estimator: public class names, plain state, and versions."""

import json
import re
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
    "FittedNetwork": "paper._fitted_network",
}
# Keys of the dictionaries in which state is saved.
_KIND = "_kind"
_VERSIONS = "_saved_with"
_VOCABULARY = "Vocabulary"
_TERMS = "terms"
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def public(module: str) -> Callable[[Kind], Kind]:
    """Set a class's public module, for files and documentation, without moving its doctests."""

    def decorate(kind: Kind) -> Kind:
        home = sys.modules[kind.__module__]
        # doctest looks only at classes of a module's own, and at what is in its `__test__`.
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
        for name, value in parameters.items():
            if name != "self":
                setattr(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        plain = {}
        for name, value in state.items():
            is_vocabulary = name.endswith("vocabulary_")
            plain[name] = _packed_vocabulary(value) if is_vocabulary else _plain(value)
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


def _packed_vocabulary(vocabulary: Any) -> Any:
    """Return a vocabulary's terms as one text, in the order of their columns.

    skops writes and reads an object for each key and each value of a dictionary. What is not a
    dictionary of strings, numbered from 0 on, is returned as it is, and so are strings with both
    halves of a surrogate pair, of which JSON makes one character.
    """
    has_strings = isinstance(vocabulary, dict) and all(isinstance(one, str) for one in vocabulary)
    if not has_strings:
        return vocabulary
    terms: list[str] = sorted(vocabulary, key=vocabulary.__getitem__)
    columns = [vocabulary[term] for term in terms]
    if columns != list(range(len(terms))):
        return vocabulary
    if _SURROGATE_PAIR.search("\n".join(terms)):
        return vocabulary
    return {_KIND: _VOCABULARY, _TERMS: json.dumps(terms)}


def _unpacked_vocabulary(text: Any) -> dict[str, int]:
    """Return the vocabulary of terms in one text."""
    terms = json.loads(text)
    if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms):
        raise ValueError("expected the terms of a vocabulary")
    vocabulary = dict(zip(terms, range(len(terms)), strict=True))
    if len(vocabulary) != len(terms):
        raise ValueError("expected different terms in a vocabulary")
    return vocabulary


def _restored(value: Any) -> Any:
    """Return the object that :func:`_plain` or :func:`_packed_vocabulary` was given."""
    if isinstance(value, dict) and value.get(_KIND) == _VOCABULARY:
        return _unpacked_vocabulary(value.get(_TERMS))
    if not (isinstance(value, dict) and value.get(_KIND) in _MODULES):
        return value
    content = {name: _restored(one) for name, one in value.items()}
    name = content.pop(_KIND)
    module = import_module(f"{__package__}.{_MODULES[name]}")
    return getattr(module, name)(**content)
