"""Checks of loaded models, whose files anybody may have made or damaged.

skops has checked that a file names only trusted types, and its ZIP archive has checksums. The
functions below, one for each kind of estimator, check that what it predicts by fits together:
finite numbers, of the sizes that other arrays say. A wrong file then fails when it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ._base import BaseAttentionClassifier
from ._transformer import TokenImportanceTransformer
from .text._context_vectorizer import ContextVectorizer
from .text._gate_positions import N_CELLS
from .text._token_vectorizer import TokenVectorizer
from .text._word_vectors import WordVectors


def check_loaded(model: Any) -> None:
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
