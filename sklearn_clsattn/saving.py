"""Models in files, among them files that are safe to load from others."""

from __future__ import annotations

import io
import json
import warnings
import zlib
from collections.abc import Callable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED

import joblib
from sklearn.utils import check_scalar

from ._json_model import model_values
from ._writing import written_whole

__all__ = ["JSON_READER", "TRUSTED_TYPES", "load_model", "save_model", "to_json", "to_onnx"]

JSON_READER = Path(__file__).with_name("reader.js")
"""The reader of :func:`to_json`'s files in plain JavaScript, one file that needs nothing else."""

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

_LEVEL = 1  # of compression: higher ones save little and load a large model three times as long


def save_model(model: Any, path: str | Path) -> None:
    """Save a model in a compressed file, completely or not at all.

    Parameters
    ----------
    model : estimator
        Of this package or of scikit-learn, such as a Pipeline of both.
    path : str or path-like
        The file, replaced if it is there. If its name ends in ``.skops``, it can be loaded without
        running code of its maker's; any other is a pickle, by joblib.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        If a ``.skops`` file of the model could never be loaded, as with a lambda expression for a
        tokenizer.

    Warns
    -----
    UserWarning
        If :func:`load_model` will refuse the ``.skops`` file unless it is told to trust the types
        that the warning names: functions and classes of your own, or those that a `GridSearchCV`
        holds beside its `best_estimator_`, which needs none.

    Notes
    -----
    The file at `path` is the old one or the whole new one at all times. A process that is killed
    meanwhile may leave a file beside it, whose name ends in ``.part``.

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
    content = _dumped(model, path) if _is_skops(path) else None
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
        The file. One whose name ends in ``.skops`` may come from anyone: only `TRUSTED_TYPES` and
        what skops trusts by itself, such as scikit-learn's estimators, are made of it. Any other is
        a pickle, which runs whatever code is in it: load only files that you trust.
    trusted : sequence of str, type or function, default=()
        More types and functions that a ``.skops`` file may have, themselves or by the names that
        :func:`save_model` and the error give. The code of each may run.

    Returns
    -------
    model : estimator
        The model.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If a ``.skops`` file has other types in it; if the file is damaged or no model; if `trusted`
        is given for a pickle.

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
    if not _is_skops(path) and names:
        raise ValueError(f"{path} is a pickle, of which all is trusted: leave `trusted` out.")
    with path.open("rb") as file:
        zipped = file.read(1) == b"x"  # a pickle is not, nor one that is not compressed
    try:
        if not _is_skops(path):  # zlib checks the sum of the whole before any of it is used
            return joblib.load(io.BytesIO(zlib.decompress(path.read_bytes())) if zipped else path)
        content = path.read_bytes()
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
    model : ClsAttentionClassifier, ClsAttentionClassifierCV or Pipeline
        Fitted. The first step of a pipeline of texts is a `CountVectorizer`, a `TfidfVectorizer`
        or a `TokenVectorizer` of words with one of the token patterns that `TokenVectorizer` is
        fast with; steps in between are those that skl2onnx knows.
    locale : str, default="C.UTF-8"
        The locale by which onnxruntime makes texts lower-case, of the system that it runs on. The
        default is one of Linux; elsewhere ``"en_US.UTF-8"``, or ``"C"``, which every system has
        but which leaves letters beyond ASCII as they are.

    Returns
    -------
    onnx_model : onnx.ModelProto
        Its input is ``texts``, of shape (n_documents,), or counts ``X``, in single precision and of
        shape (n_documents, n_tokens); its outputs are labels and probabilities.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.
    TypeError
        If the model is of another kind.
    ValueError
        If ONNX has no counterpart of the vectorizer or of the labels.

    Notes
    -----
    It computes in double precision and rounds probabilities to single precision: they differ from
    `predict_proba` by less than 1e-6. Products are dense: memory grows with the documents of a
    batch times the tokens of the vocabulary.

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


def to_json(model: Any, path: str | Path, *, max_tokens: int | None = None) -> int:
    """Write a model as JSON, which `JSON_READER` reads in browsers and in Node.

    Parameters
    ----------
    model : Pipeline
        A fitted vectorizer and a fitted classifier of this package with one layer of attention, or
        a search over such a Pipeline. The vectorizer is a `CountVectorizer`,
        :class:`~sklearn_clsattn.text.TokenVectorizer` or
        :class:`~sklearn_clsattn.text.ContextVectorizer`, as in
        :func:`~sklearn_clsattn.text.make_text_classifier`.
    path : str or path-like
        The file, replaced if it is there.
    max_tokens : int, default=None
        How many tokens to keep, those with the largest attention mass times value; texts are then
        read as if the vectorizer knew no others, and decisions differ from the model's. ``None``
        keeps all.

    Returns
    -------
    n_bytes : int
        The size of the file.

    Raises
    ------
    TypeError
        If the model is no Pipeline, or `max_tokens` no integer.
    ValueError
        If the file cannot carry over what the model does: other steps or vectorizers, an own
        `tokenizer`, `preprocessor` or `analyzer`, a `token_pattern` that JavaScript does not have,
        two layers of attention or an MLP.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    OSError
        If the file cannot be written.

    Notes
    -----
    All numbers are written in full: decisions are those of the Pipeline up to the order of sums.
    A `ContextVectorizer` rounds its bags to single precision by default, the reader does not.
    Labels that JSON or JavaScript cannot hold, such as integers from 2^53 on, are all written as
    strings.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.saving import JSON_READER, to_json
    >>> model = make_pipeline(CountVectorizer(), ClsAttentionClassifier())
    >>> model = model.fit(["good fun", "bad film"], ["pos", "neg"])
    >>> with TemporaryDirectory() as folder:
    ...     print(to_json(model, Path(folder) / "model.json") < 1500)
    True
    >>> JSON_READER.name
    'reader.js'
    """
    if max_tokens is not None:
        check_scalar(max_tokens, "max_tokens", Integral, min_val=1)
    content = json.dumps(model_values(model, max_tokens), allow_nan=False, separators=(",", ":"))
    with written_whole(Path(path), text=True) as file:
        file.write(content)
    return len(content)


def _dumped(model: Any, path: Path) -> bytes:
    """Return a model as the content of a .skops file that can be loaded."""
    import skops.io  # takes a second

    try:
        content: bytes = skops.io.dumps(model, compression=ZIP_DEFLATED, compresslevel=_LEVEL)
        others = _untrusted(content, ())
        if others:  # functions are saved by names that may lead nowhere
            skops.io.loads(content, trusted=[*TRUSTED_TYPES, *others])
    except Exception as error:
        raise ValueError(
            f"{path} has not been saved: skops could not load it again ({type(error).__name__}: "
            f"{error}). Define functions and classes at the top level of a module, or choose a "
            "name that ends in .joblib."
        ) from error
    if others:
        warnings.warn(
            f"load_model refuses {path} unless it is told to trust what it has beside this "
            f"package's and known types: load_model(path, trusted={others}).",
            stacklevel=3,
        )
    return content


def _untrusted(content: bytes, trusted: Sequence[str]) -> list[str]:
    """Return the names of the types of a .skops file that are not to be loaded."""
    import skops.io

    known = {*TRUSTED_TYPES, *trusted}
    return sorted(set(skops.io.get_untrusted_types(data=content)) - known)


def _is_skops(path: Path) -> bool:
    return path.suffix.lower() == ".skops"
