"""Models in files, among them files that are safe to load from others, and models as ONNX."""

from __future__ import annotations

import io
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED

import joblib

from ._writing import written_whole

__all__ = ["load_model", "save_model", "to_onnx"]

# The types of this package in .skops files: estimators, whose code does not run when loaded.
TRUSTED_TYPES = (
    "sklearn_clsattn.ClsAttentionClassifier",
    "sklearn_clsattn.TokenImportanceTransformer",
    "sklearn_clsattn.paper.AttentionNetworkClassifier",
    "sklearn_clsattn.paper.EmbeddingClassifier",
    "sklearn_clsattn.paper.OneStepClassifier",
    "sklearn_clsattn.text.ContextVectorizer",
    "sklearn_clsattn.text.TokenVectorizer",
)

_LEVEL = 1  # of compression: higher ones save little and load a large model three times as long


def save_model(model: Any, path: str | Path) -> None:
    """Save a model in a compressed file, completely or not at all.

    Parameters
    ----------
    model : estimator
        Of this package or of scikit-learn, such as a Pipeline of both.
    path : str or path-like
        The file, which is replaced if it exists. If its name ends in ``.skops``, loading it runs no
        code from the file, so it is safe to share. Any other file is a pickle, written by joblib.

    Raises
    ------
    ValueError
        If the model cannot be loaded from a ``.skops`` file, for example because its tokenizer is a
        lambda expression.

    Warns
    -----
    UserWarning
        If a ``.skops`` file contains functions or classes of your own: it names them, and
        :func:`load_model` needs them as `trusted`. A `GridSearchCV` also holds such types; its
        `best_estimator_` does not.

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
    content = _dumped(model, path) if path.suffix.lower() == ".skops" else None
    with written_whole(path, text=False) as file:
        if content is None:
            joblib.dump(model, file, compress=("zlib", _LEVEL))
        else:
            file.write(content)


def load_model(path: str | Path, *, trusted: Sequence[str | Callable[..., Any]] = ()) -> Any:
    """Load a model that :func:`save_model` has saved.

    Parameters
    ----------
    path : str or path-like
        The file. A ``.skops`` file may come from anyone: it can contain only this package's
        estimators and types that skops considers safe. Any other file is a pickle, which can run
        any code: load only files that you trust.
    trusted : sequence of str, type or function, default=()
        Other types and functions that a ``.skops`` file may contain, or their names as given by
        :func:`save_model` and the error. Their code may run.

    Returns
    -------
    model : estimator
        The model.

    Raises
    ------
    ValueError
        If a ``.skops`` file contains other types, or if the file is damaged or is not a model.

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
    ...         print(str(error).partition("safe: ")[2])
    pathlib.Path. It has not been loaded. If you trust them, name them with `trusted`.
    """
    path = Path(path).expanduser()
    names = [one if isinstance(one, str) else f"{one.__module__}.{one.__name__}" for one in trusted]
    is_pickle = path.suffix.lower() != ".skops"
    if is_pickle and names:
        raise ValueError(f"{path} is a pickle, which can contain any type: leave `trusted` out.")
    content = path.read_bytes()
    try:
        if is_pickle:
            # zlib verifies the checksum before anything is used. Uncompressed pickles begin with
            # another byte.
            plain = zlib.decompress(content) if content.startswith(b"x") else content
            return joblib.load(io.BytesIO(plain))
        others = _untrusted(content, names)
        if not others:
            import skops.io

            return skops.io.loads(content, trusted=[*TRUSTED_TYPES, *names])
    except Warning:
        raise
    except Exception as error:  # a damaged file can raise anything
        raise ValueError(
            f"{path} is not a model that can be loaded: it is damaged, or was saved with other "
            f"versions or modules than are here ({type(error).__name__}: {error}). Copy or save it "
            "again."
        ) from error
    raise ValueError(
        f"{path} has types that are neither this package's nor known to be safe: "
        f"{', '.join(others)}. It has not been loaded. If you trust them, name them with `trusted`."
    )


def to_onnx(model: Any, *, locale: str = "C.UTF-8") -> Any:
    """Return a model as ONNX, which predicts without Python.

    Parameters
    ----------
    model : ClsAttentionClassifier or Pipeline
        Fitted. A pipeline of texts must begin with a `CountVectorizer`, a `TfidfVectorizer` or a
        `TokenVectorizer` of words, with a token pattern for which `TokenVectorizer` is fastest.
        skl2onnx must support the steps in between.
    locale : str, default="C.UTF-8"
        The locale by which onnxruntime converts texts to lower case, one of the system that it runs
        on. The default exists on Linux; elsewhere use ``"en_US.UTF-8"``, or ``"C"``, which changes
        only ASCII letters.

    Returns
    -------
    onnx_model : onnx.ModelProto
        Its input is ``texts``, of shape (n_documents,), or counts ``X``, of shape (n_documents,
        n_tokens) and in single precision; its outputs are labels and probabilities. These differ
        from `predict_proba` by less than 1e-6. Memory grows with the number of documents in a batch
        times the number of tokens.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.saving import to_onnx
    >>> model = ClsAttentionClassifier().fit([[1, 0], [0, 1]], ["good", "bad"])
    >>> onnx_model = to_onnx(model)
    >>> [output.name for output in onnx_model.graph.output]
    ['label', 'probabilities']
    """
    from ._onnx import convert

    return convert(model, locale)


def _dumped(model: Any, path: Path) -> bytes:
    """Return a model as the content of a .skops file that can be loaded."""
    import skops.io  # takes a second

    try:
        content: bytes = skops.io.dumps(model, compression=ZIP_DEFLATED, compresslevel=_LEVEL)
        others = _untrusted(content, ())
        if others:  # functions are saved by names, which may not lead back to them
            skops.io.loads(content, trusted=[*TRUSTED_TYPES, *others])
    except Exception as error:
        raise ValueError(
            f"{path} has not been saved: skops could not load it again ({type(error).__name__}: "
            f"{error}). Define functions and classes at the top level of a module, or choose a "
            "name that ends in .joblib."
        ) from error
    if others:
        warnings.warn(
            f"load_model refuses {path} unless these types, which are neither this package's nor "
            f"known to be safe, are trusted: load_model(path, trusted={others}).",
            stacklevel=3,
        )
    return content


def _untrusted(content: bytes, trusted: Sequence[str]) -> list[str]:
    """Return the names of the types of a .skops file that are not to be loaded."""
    import skops.io

    known = {*TRUSTED_TYPES, *trusted}
    return sorted(set(skops.io.get_untrusted_types(data=content)) - known)
