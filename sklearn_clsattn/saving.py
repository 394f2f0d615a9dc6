"""Models in files, among them files that are safe to load from others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib

from ._writing import written_whole

__all__ = ["TRUSTED_TYPES", "load_model", "save_model"]

TRUSTED_TYPES = (
    "sklearn_clsattn.ClsAttentionClassifier",
    "sklearn_clsattn.ClsAttentionClassifierCV",
    "sklearn_clsattn.TokenImportanceTransformer",
    "sklearn_clsattn.paper.AttentionNetworkClassifier",
    "sklearn_clsattn.paper.EmbeddingClassifier",
    "sklearn_clsattn.paper.FrozenEmbeddingClassifier",
    "sklearn_clsattn.paper.OneStepClassifier",
    "sklearn_clsattn.paper.PenalizedOneStepClassifier",
    "sklearn_clsattn.text.ContextVectorizer",
    "sklearn_clsattn.text.HashingTokenVectorizer",
    "sklearn_clsattn.text.TokenVectorizer",
)
"""The types of this package in files of skops: all are estimators, and loading runs none."""


def save_model(model: Any, path: str | Path) -> None:
    """Save a model, completely or not at all.

    Parameters
    ----------
    model : estimator
        Of this package or of scikit-learn, such as a Pipeline of both.

    path : str or path-like
        The file, replaced if it is there. If its name ends in ``.skops``, it can be loaded without
        running code of its maker's (needs ``pip install sklearn-clsattn[skops]``); any other is a
        pickle, by joblib.

    Raises
    ------
    ImportError
        If skops is needed and not installed.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn_clsattn.saving import load_model, save_model
    >>> from sklearn_clsattn.text import make_text_classifier
    >>> model = make_text_classifier(min_df=1).fit(["good fun", "bad film"], ["pos", "neg"])
    >>> with TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "model.skops")
    ...     print(load_model(Path(folder) / "model.skops").predict(["good film, fun"]))
    ['pos']
    """
    path = Path(path)
    content = _skops().dumps(model) if _is_skops(path) else None
    with written_whole(path, text=False) as file:
        if content is None:
            joblib.dump(model, file)
        else:
            file.write(content)


def load_model(path: str | Path) -> Any:
    """Load a model that :func:`save_model` has saved.

    Parameters
    ----------
    path : str or path-like
        The file. One whose name ends in ``.skops`` may come from anyone: only `TRUSTED_TYPES` and
        what skops trusts by itself, such as scikit-learn's estimators, are made of it. Any other is
        a pickle, which runs whatever code is in it: load only files that you trust.

    Returns
    -------
    model : estimator
        The model.

    Raises
    ------
    ImportError
        If skops is needed and not installed.
    OSError
        If the file cannot be read.
    ValueError
        If a ``.skops`` file has other types in it.

    Warns
    -----
    UserWarning
        If it was saved with other versions of this package or of scikit-learn.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import skops.io
    >>> from sklearn_clsattn.saving import load_model
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "model.skops"
    ...     skops.io.dump({"not": "a model", "but": Path}, file)
    ...     try:
    ...         load_model(file)
    ...     except ValueError as error:
    ...         print(str(error).rpartition("safe: ")[2])
    pathlib.Path. It has not been loaded.
    """
    path = Path(path).expanduser()
    if not _is_skops(path):
        return joblib.load(path)
    skops = _skops()
    content = path.read_bytes()
    others = sorted(set(skops.get_untrusted_types(data=content)) - set(TRUSTED_TYPES))
    if others:
        raise ValueError(
            f"{path} has types that are neither this package's nor known to be safe: "
            f"{', '.join(others)}. It has not been loaded."
        )
    return skops.loads(content, trusted=list(TRUSTED_TYPES))


def _is_skops(path: Path) -> bool:
    return path.suffix.lower() == ".skops"


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "models in .skops files need skops; install it with "
            "'pip install sklearn-clsattn[skops]', or name the file .joblib"
        ) from error
    return skops.io
