"""What estimators save: their attributes, with the versions that they were saved with."""

import json
import warnings
from typing import Any

import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from . import _SITE, __version__

_VERSIONS = f"{__version__} with scikit-learn {sklearn.__version__}"
_SAVED_WITH = "_saved_with"
# skops takes a minute to write and read the keys of a dictionary with 500,000 terms one by one.
_VOCABULARIES = ("vocabulary_", "character_vocabulary_")


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
