"""Saving models, in files that are safe to load or as pickles.

A .skops file may come from anybody. skops checks that it names only trusted types, and its ZIP
archive has checksums. When it is loaded, functions below, one for each kind of estimator, check
that what it predicts by fits together: finite numbers, of the sizes that other arrays say.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile

import joblib
import numpy as np

from ._bags import TrustedTokens
from ._base import BaseAttentionClassifier
from ._classifier import ClsAttentionClassifier
from ._text_classifier import TextClassifier
from ._transformer import TokenImportanceTransformer
from ._writing import written_whole
from .paper._classifiers import AttentionNetworkClassifier, EmbeddingClassifier, OneStepClassifier
from .paper._fitted_network import FittedNetwork
from .text._context_vectorizer import ContextVectorizer
from .text._gate_positions import N_CELLS
from .text._keywords import Keywords
from .text._token_vectorizer import TokenVectorizer
from .text._word_vectors import WordVectors
from .training.earlier_batches import Memory, Stream
from .training.fitted_model import StoredEmbeddings, VectorEmbeddings
from .training.statistics import CorpusStatistics

__all__ = ["TRUSTED_TYPES", "load_model", "save_model"]

_TYPES: tuple[type, ...] = (
    AttentionNetworkClassifier,
    ClsAttentionClassifier,
    ContextVectorizer,
    CorpusStatistics,
    EmbeddingClassifier,
    FittedNetwork,
    Keywords,
    Memory,
    OneStepClassifier,
    StoredEmbeddings,
    Stream,
    TextClassifier,
    TokenImportanceTransformer,
    TokenVectorizer,
    TrustedTokens,
    VectorEmbeddings,
    WordVectors,
)
TRUSTED_TYPES = (
    "numpy.dtype",
    "sklearn.compose._column_transformer._RemainderColsList",  # a list of columns, in old releases
    *(f"{kind.__module__}.{kind.__name__}" for kind in _TYPES),
    "sklearn_clsattn._asreview.ASReviewClassifier",  # these two are imported on demand
    "sklearn_clsattn.dask.DaskClsAttentionClassifier",
)
"""What a .skops file may contain besides what skops trusts: types that run no code when loaded."""

_LEVEL = 1  # of compression: higher levels save little and take three times as long to load
# An archive that unpacks to more could fill the memory.
_LARGEST_SIZE = 2**32
_LARGEST_RATIO = 1000


def save_model(model: Any, path: str | Path) -> None:
    """Save a model in a compressed file, completely or not at all.

    Parameters
    ----------
    model : estimator
        An estimator of this package or of scikit-learn, such as a Pipeline of both.
    path : str or path-like
        The file, which is replaced if it exists. If its name ends in ``.skops``, loading it runs no
        code from the file, so it is safe to share. Any other file is a pickle, written by joblib.

    Raises
    ------
    ValueError
        If skops cannot load the model again, for example because its tokenizer is a method of
        `str`.

    Warns
    -----
    UserWarning
        If a ``.skops`` file contains your own functions or classes: pass them to :func:`load_model`
        as `trusted`. A `GridSearchCV` contains such types as well; its `best_estimator_` does not.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn_clsattn.saving import load_model, save_model
    >>> from sklearn_clsattn import TextClassifier
    >>> model = TextClassifier().fit(["good fun", "bad film"], ["pos", "neg"])
    >>> with TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/model.skops")
    ...     print(load_model(f"{folder}/model.skops").predict(["good film, fun"]))
    ['pos']
    """
    path = Path(path)
    # 1) a pickle
    if not _is_skops(path):
        with written_whole(path, text=False) as file:
            joblib.dump(model, file, compress=("zlib", _LEVEL))
        return
    # 2) or an archive, which is written only if it can be loaded again
    import skops.io  # takes a second

    try:
        model = _in_memory(model)
        content = skops.io.dumps(model, compression=ZIP_DEFLATED, compresslevel=_LEVEL)
        types = skops.io.get_untrusted_types(data=content)
        others = sorted(set(types).difference(TRUSTED_TYPES))
        _read_archive(io.BytesIO(content), others)
    except Exception as error:
        raise ValueError(
            f"{path} was not saved, because skops could not load it again ({type(error).__name__}: "
            f"{error}). Define functions and classes at the top level of a module, or choose a "
            "name that ends in .joblib."
        ) from error
    if others:
        warnings.warn(
            f"{path} contains types that are not known to be safe. If you trust them, load it with "
            f"load_model(path, trusted={others}).",
            stacklevel=2,
        )
    with written_whole(path, text=False) as file:
        file.write(content)


def load_model(path: str | Path, *, trusted: Sequence[str | Callable[..., Any]] = ()) -> Any:
    """Load a model that :func:`save_model` saved.

    Parameters
    ----------
    path : str or path-like
        The file. A ``.skops`` file may come from anyone: it can contain only this package's
        estimators, whose own arrays and vocabularies are checked, and types that skops considers
        safe. Any other file is a pickle, which can run any code: load only files that you trust.
    trusted : sequence of str, type or function, default=()
        Other types and functions that a ``.skops`` file may contain, or their names as given by
        :func:`save_model` and the error. Their code may run.

    Returns
    -------
    model : estimator
        The model. Loading warns if other versions of this package or scikit-learn saved it.

    Raises
    ------
    ValueError
        If the file is not a model, is damaged, contains other types or would fill the memory.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.saving import load_model, save_model
    >>> with TemporaryDirectory() as folder:
    ...     save_model(ClsAttentionClassifier(C=2.0), f"{folder}/model.skops")
    ...     print(load_model(f"{folder}/model.skops"))
    ClsAttentionClassifier(C=2.0)
    """
    path = Path(path).expanduser()
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a file of a model: it is a folder, a pipe or a device.")
    with path.open("rb") as file:
        try:
            return _read_archive(file, trusted) if _is_skops(path) else joblib.load(file)
        except Warning:  # an error where the user has turned warnings into errors
            raise
        except Exception as error:  # a damaged file can raise anything
            raise ValueError(
                f"{path} was not loaded: it is not a model, is damaged, or contains types that are "
                f"not trusted ({type(error).__name__}: {error})"
            ) from error


def _is_skops(path: Path) -> bool:
    """Return whether a file is an archive of skops, by its name."""
    return path.suffix.lower() == ".skops"


def _in_memory(model: Any) -> Any:
    """Return a copy of a model without memory-mapped arrays, which skops cannot load."""
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def _read_archive(file: IO[bytes], trusted: Sequence[str | Callable[..., Any]]) -> Any:
    """Return the model in a file of skops, or raise an error if it is not valid."""
    import skops.io

    # 1) its size, by the directory: nothing is unpacked yet
    with ZipFile(file) as archive:
        members = archive.infolist()
    size = sum(member.file_size for member in members)
    compressed_size = sum(member.compress_size for member in members)
    if size > min(_LARGEST_SIZE, _LARGEST_RATIO * compressed_size):
        raise ValueError(f"it unpacks to {size:,} bytes")
    # 2) the model, whose types and then arrays are checked
    model = skops.io.load(file, trusted=[*TRUSTED_TYPES, *trusted])
    _check_loaded(model)
    return model


def _check_loaded(model: Any) -> None:
    """Raise ValueError if an estimator of this package, anywhere in a model, is not valid."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, str | int | float | None):
            continue
        seen.add(id(part))
        for kind, check in _CHECKS.items():
            if isinstance(part, kind):
                try:
                    check(part)
                except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
                    name = type(part).__name__
                    raise ValueError(f"{name} is not valid: {error}") from error
        waiting.extend(_parts_of(part))


def _parts_of(whole: Any) -> Iterable[Any]:
    """Return the items of a container, or the attributes of an object."""
    if isinstance(whole, Mapping):
        return whole.values()
    if isinstance(whole, list | tuple | set | frozenset):
        return whole
    if isinstance(whole, np.ndarray):
        return whole.ravel().tolist() if whole.dtype == object else ()
    return getattr(whole, "__dict__", {}).values()


def _check_classifier(classifier: Any) -> None:
    """Check scores, values and statistics of a classifier."""
    state = vars(classifier)
    if "attention_scores_" not in state:  # not fitted
        return
    # 1) the sizes
    n_tokens = classifier.n_features_in_
    n_classes = len(classifier.classes_)
    is_binary = n_classes == 2 and not classifier.multilabel_
    n_outputs = 1 if is_binary else n_classes
    by_class = (n_classes, n_tokens)
    # 2) what all have
    _check_arrays(
        state,
        attention_scores_=(n_tokens,),
        token_values_=(n_tokens,) if n_outputs == 1 else by_class,
        token_importance_=(n_tokens,) if is_binary else by_class,
        intercept_=(n_outputs,),
        cls_weight_=(),
        selection_counts_=(len(classifier.selected_tokens_),),
    )
    _check_columns(state, "selected_tokens_", n_tokens)
    _check_different(state, "classes_", n_classes)
    # 3) what only some have
    if classifier.cls_weight_ > 0:
        _check_arrays(state, cls_score_=())
    if "entry_scale_" in state:
        _check_arrays(state, entry_scale_=())


def _check_importance(transformer: Any) -> None:
    """Check the statistics of tokens, the factors of columns and their selection."""
    state = vars(transformer)
    if "token_importance_" not in state:  # not fitted
        return
    n_tokens = transformer.n_features_in_
    n_classes = len(transformer.class_count_)
    by_class = (n_classes, n_tokens)
    _check_arrays(
        state,
        token_importance_=(n_tokens,) if n_classes == 2 else by_class,
        token_totals_=by_class,
        class_count_=(n_classes,),
        _support_mask=(n_tokens,),
    )
    if transformer.scale_ is not None:
        _check_arrays(state, scale_=(n_tokens,))
    _check_different(state, "classes_", n_classes)


def _check_token_vectorizer(vectorizer: Any) -> None:
    """Check the vocabulary of tokens."""
    if "vocabulary_" in vars(vectorizer):
        _check_vocabulary(vars(vectorizer), "vocabulary_")


def _check_context_vectorizer(vectorizer: Any) -> None:
    """Check the vocabularies, and the gates of occurrences."""
    state = vars(vectorizer)
    if "vocabulary_" not in state:  # not fitted
        return
    _check_vocabulary(state, "vocabulary_")
    _check_vocabulary(state, "character_vocabulary_")
    shortest, longest = vectorizer.ngram_range
    gates = (longest - shortest + 1, N_CELLS)
    n_previous = len(vectorizer.previous_word_scores_)
    _check_arrays(state, start_scores_=gates, end_scores_=gates)
    _check_arrays(state, previous_word_scores_=(n_previous,))
    _check_different(state, "previous_words_", n_previous)


def _check_word_vectors(vectors: Any) -> None:
    """Check the words and their vectors."""
    if "vectors_" in vars(vectors):
        n_words = len(vectors.vectors_)
        _check_arrays(vars(vectors), vectors_=(n_words, vectors.vectors_.shape[-1]))
        _check_different(vars(vectors), "words_", n_words)


_CHECKS: dict[type, Callable[[Any], None]] = {
    BaseAttentionClassifier: _check_classifier,
    TokenImportanceTransformer: _check_importance,
    TokenVectorizer: _check_token_vectorizer,
    ContextVectorizer: _check_context_vectorizer,
    WordVectors: _check_word_vectors,
}


def _check_arrays(state: Mapping[str, Any], **shapes: tuple[int, ...]) -> None:
    """Check that attributes are arrays of finite numbers, of these shapes; () is one number."""
    for name, shape in shapes.items():
        array = np.asarray(state.get(name))
        is_numeric = array.dtype.kind in "biuf"
        if not (is_numeric and array.shape == shape and np.isfinite(array).all()):
            raise ValueError(f"{name} must be finite numbers of shape {shape}")


def _check_columns(state: Mapping[str, Any], name: str, n_columns: int) -> None:
    """Check that an attribute is an array of different columns."""
    columns = state[name]
    is_integer = columns.dtype.kind in "iu"
    in_range = is_integer and (columns >= 0).all() and (columns < n_columns).all()
    if not in_range or len(np.unique(columns)) < len(columns):
        raise ValueError(f"{name} must be different integers from 0 to {n_columns - 1}")


def _check_different(state: Mapping[str, Any], name: str, length: int) -> None:
    """Check that an attribute is an array of this many different labels or words."""
    if state[name].shape != (length,) or len(set(state[name].tolist())) < length:
        raise ValueError(f"{name} must be {length} different labels or words")


def _check_vocabulary(state: Mapping[str, Any], name: str) -> None:
    """Check that a vocabulary has strings with the columns 0, 1, 2, ..."""
    vocabulary = state[name]
    are_strings = all(isinstance(term, str) for term in vocabulary)
    if not are_strings or sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError(f"{name} must have strings, with the columns 0, 1, 2, ...")
