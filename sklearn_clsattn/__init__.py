"""Interpretable text classification with one ``<cls>`` attention layer, in scikit-learn's style."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._classifier import ClsAttentionClassifier
    from ._text_classifier import TextClassifier
    from ._transformer import TokenImportanceTransformer

__all__ = [
    "ClsAttentionClassifier",
    "TextClassifier",
    "TokenImportanceTransformer",
    "__version__",
]

__version__ = "0.1.0"

# The planned home of the documentation: nothing is there yet.
_SITE = "https://sklearn-clsattn.readthedocs.io/en/stable"

# The modules of the estimators, and the modules that are public names themselves.
_HOME = {
    "ClsAttentionClassifier": "._classifier",
    "TextClassifier": "._text_classifier",
    "TokenImportanceTransformer": "._transformer",
}

_SUBMODULES = (
    "comparison",
    "dask",
    "datasets",
    "inspection",
    "paper",
    "saving",
    "text",
)


def __getattr__(name: str) -> Any:
    """Import an estimator or a module on first use, which keeps the command line's help fast."""
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value  # so that the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_SUBMODULES})
