"""Checks of loaded models, whose files anybody may have made.

skops has already checked that a file names only types that are safe to construct. The functions of
this module check what is in the objects: that they would not run code, wait for ever, read outside
an array or fail later. Each type has a function of its own, which raises a ValueError that names
the estimator and the attribute.
"""

from __future__ import annotations

import codecs
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)

from ._base import BaseAttentionClassifier
from ._core.fitted import FittedAttention, StoredEmbeddings, VectorEmbeddings
from ._core.memory import Memory, Stream
from ._core.statistics import CorpusStatistics
from ._sklearn import LinearClassifierMixin, validate_parameter_constraints
from ._transformer import TokenImportanceTransformer
from .paper._fitted_network import FittedNetwork
from .text._context_vectorizer import ContextVectorizer
from .text._gate_positions import N_CELLS
from .text._tokens import PATTERNS
from .text._word_vectors import WordVectors

# Larger numbers would overflow in products and sums.
_LARGEST = 1e150
# Larger numbers of words or characters in an n-gram would take minutes to look up.
_LONGEST_NGRAM = 1000
# Devices that PyTorch may have to train on; those of a model need not be there to predict.
_DEVICE = re.compile(r"auto|(cpu|cuda)(:\d+)?")
# More processes would exhaust a machine.
_MOST_JOBS = 256

# One character: a class such as \w, a set in brackets, an escaped or an ordinary character.
_CHARACTERS = (
    r"(?:\\[wWdDsS]|\[\^?\]?(?:[^\]\[\\]|\\.)*\]|\\[^\w\s]|[^\W_]|[^\w\s\\\[\](){}.*+?^$|])"
)
_FIXED_NUMBER = r"(?:\{\d{1,2}\})?"
# An alternative: characters, of which one may be repeated a variable number of times.
_BRANCH = (
    rf"(?:\\b)?(?:{_CHARACTERS}{_FIXED_NUMBER})*"
    rf"(?:{_CHARACTERS}(?:[*+?]|\{{\d{{1,2}},\d{{0,2}}\}})(?:{_CHARACTERS}{_FIXED_NUMBER})*)?"
    r"(?:\\b)?"
)
# Alternatives without groups. The time to match one is bounded by the square of a text's longest
# run of matching characters.
_QUICK_PATTERN = re.compile(rf"(?:\(\?u\))?{_BRANCH}(?:\|{_BRANCH})*")
_LONGEST_PATTERN = 200
# Types of what cannot be a class label.
_NOT_LABELS = (tuple, list, dict, set, np.ndarray, type, type(None))


def untrusted_content(model: Any) -> set[str]:
    """Check a model; return the content that is safe only if its author is trusted.

    This content is regular expressions that could take for ever to match, types and functions that
    are used as functions, and vectorizers that read files. Raise ValueError if the model is not
    valid.
    """
    untrusted: set[str] = set()
    _check(model, untrusted)
    return untrusted


def try_prediction(model: Any) -> None:
    """Raise ValueError if a model, checked by :func:`untrusted_content`, does not work."""
    X = _example(model)
    if X is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not hasattr(model, "predict"):
            model.transform(X)
            return
        model.predict(X)
        if hasattr(model, "predict_proba"):
            probabilities = np.asarray(model.predict_proba(X))
            n_documents = len(X) if isinstance(X, list) else X.shape[0]
            expected = (n_documents, len(model.classes_))
            if probabilities.shape != expected or not np.isfinite(probabilities).all():
                raise ValueError("it does not predict a probability of each class")


def is_quick_pattern(pattern: str) -> bool:
    """Return whether a regular expression is known to match any text in a short time."""
    if pattern in PATTERNS:
        return True
    return len(pattern) <= _LONGEST_PATTERN and _QUICK_PATTERN.fullmatch(pattern) is not None


# Any content


def _check(value: Any, untrusted: set[str]) -> None:
    """Check a value and all that it contains."""
    if type(value) in (str, int, float):  # most of what there is
        return
    if isinstance(value, BaseEstimator):
        _check_estimator(value, untrusted)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            _check(key, untrusted)
            _check(one, untrusted)
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            _check(one, untrusted)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        for one in value.ravel():
            _check(one, untrusted)
    elif sparse.issparse(value):
        _check_sparse(value)
    elif isinstance(value, type | np.ufunc) and not _is_dtype(value):
        # Functions and objects that can be called were refused by skops unless they are trusted.
        untrusted.add(_name_of(value))


def _check_estimator(estimator: Any, untrusted: set[str]) -> None:
    """Check the attributes and parameters of an estimator and of the estimators in it."""
    # 1) all attributes, none of which may replace a method
    kind = type(estimator)
    is_known = kind.__module__.split(".")[0] in ("sklearn", "sklearn_clsattn")
    for name, value in vars(estimator).items():
        _require(isinstance(name, str), estimator, f"attribute {name!r} must have a name")
        replaced = inspect.getattr_static(kind, name, None)
        is_method = callable(replaced) or isinstance(replaced, property)
        _require(not (is_known and is_method), estimator, f"{name} must not replace a method")
        # A NumPy function as the function of a FunctionTransformer is safe.
        is_function = isinstance(estimator, FunctionTransformer) and isinstance(value, np.ufunc)
        if not is_function:
            _check(value, untrusted)
    # 2) what this type of estimator needs
    if is_known:
        _check_parameters(estimator)
    for one, check in _CHECKS.items():
        if isinstance(estimator, one):
            check(estimator, untrusted)


def _check_parameters(estimator: Any) -> None:
    """Raise ValueError for parameters that a fit would refuse."""
    # 1) scikit-learn's checks of a fit
    parameters = estimator.get_params(deep=False)
    if hasattr(estimator, "_parameter_constraints"):
        name = type(estimator).__name__
        validate_parameter_constraints(estimator._parameter_constraints, parameters, name)
    # 2) the number of processes
    n_jobs = parameters.get("n_jobs")
    is_few = n_jobs is None or (isinstance(n_jobs, Integral) and abs(int(n_jobs)) <= _MOST_JOBS)
    _require(is_few, estimator, f"n_jobs must be at most {_MOST_JOBS}, got {n_jobs!r}")
    # 3) what `set_output` has stored
    config = vars(estimator).get("_sklearn_output_config", {})
    is_valid = isinstance(config, dict) and set(config.values()) <= {"default", "pandas", "polars"}
    _require(is_valid, estimator, f"its output must be of a known type, got {config!r}")


def _check_sparse(matrix: Any) -> None:
    """Raise ValueError for indices outside a sparse matrix, which SciPy would follow."""
    if matrix.format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)


def _is_dtype(value: Any) -> bool:
    """Return whether a type is a type of numbers or texts, such as a parameter `dtype`."""
    return isinstance(value, type) and issubclass(value, np.generic | int | float | str)


def _name_of(value: Any) -> str:
    """Return the name of a type or function, by which `trusted` names it."""
    module = getattr(value, "__module__", None) or "numpy"
    return f"{module}.{value.__name__}"


def _require(is_valid: Any, owner: Any, what: str) -> None:
    """Raise a ValueError that names the owner of an attribute, unless it is valid."""
    if not is_valid:
        raise ValueError(f"{type(owner).__name__}: {what}")


def _is_fitted(estimator: Any) -> bool:
    """Return whether an estimator has any attribute that only a fit gives it."""
    return any(name.endswith("_") and not name.startswith("_") for name in vars(estimator))


def _are_strings(items: Iterable[Any]) -> bool:
    """Return whether all items are strings."""
    return all(isinstance(one, str) for one in items)


def _has_shape(array: NDArray[Any], shape: tuple[int | None, ...]) -> bool:
    """Return whether an array has a shape, of which a length of None may be any."""
    if array.ndim != len(shape):
        return False
    return all(expected in (None, n) for expected, n in zip(shape, array.shape, strict=True))


def _array(
    owner: Any, name: str, shape: tuple[int | None, ...], kinds: str = "f", least: float = -_LARGEST
) -> NDArray[Any]:
    """Return an attribute that must be an array of this shape, with numbers from `least` on.

    A length of None may be any.
    """
    value: Any = getattr(owner, name, None)
    # 1) the type of the numbers, and the shape
    fits = False
    if isinstance(value, np.ndarray):
        is_usual = value.dtype.itemsize <= 8 and value.dtype.isnative
        fits = is_usual and value.dtype.kind in kinds and _has_shape(value, shape)
        got = f"{value.dtype} of shape {value.shape}"
    else:
        got = repr(value)
    expected = ", ".join(map(str, shape)).replace("None", "any")
    _require(fits, owner, f"{name} must be numbers of shape ({expected}), got {got:.80}")
    # 2) the bounds; NaN is not between them
    in_range = value.size == 0 or (float(value.min()) >= least and float(value.max()) <= _LARGEST)
    _require(in_range, owner, f"{name} must be finite and at least {least:g}")
    return value


def _number(owner: Any, name: str, least: float = -_LARGEST, largest: float = _LARGEST) -> float:
    """Return an attribute that must be a number within bounds."""
    value: Any = getattr(owner, name, None)
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    in_range = is_number and least <= value <= largest
    _require(in_range, owner, f"{name} must be a number from {least:g} on, got {value!r:.80}")
    return float(value)


def _strings(owner: Any, name: str, length: int | None = None) -> NDArray[Any]:
    """Return an attribute that must be an array of different strings."""
    value: Any = getattr(owner, name, None)
    is_array = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "OU"
    items = value.tolist() if is_array else []
    are_different = is_array and _are_strings(items) and len(set(items)) == len(items)
    is_valid = are_different and length in (None, len(items))
    number = "" if length is None else f"{length:,} "
    _require(is_valid, owner, f"{name} must be {number}different strings")
    return value


def _check_classes(estimator: Any) -> int:
    """Return the number of classes, which must be different labels."""
    # 1) labels, all different
    classes: Any = getattr(estimator, "classes_", None)
    is_array = isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 0
    _require(is_array, estimator, f"classes_ must be an array of labels, got {classes!r:.80}")
    labels = classes.tolist()
    are_labels = not any(isinstance(one, _NOT_LABELS) for one in labels)
    are_different = are_labels and len(set(labels)) == len(labels)
    _require(are_different, estimator, "classes_ must be different")
    # 2) of one type
    kinds = set(map(type, labels))
    of_one_kind = len(kinds) == 1 or kinds <= {int, float, bool}
    has_nan = any(one != one for one in labels)
    is_valid = of_one_kind and not has_nan
    _require(is_valid, estimator, "classes_ must be of one type, without NaN")
    # 3) sorted, unless they are several labels, which have the order of their columns
    is_multilabel = getattr(estimator, "multilabel_", False)
    is_sorted = is_multilabel or labels == sorted(labels)
    _require(is_sorted, estimator, "classes_ must be sorted")
    least = 1 if is_multilabel else 2
    _require(len(labels) >= least, estimator, f"classes_ must be at least {least}")
    return len(labels)


# Texts


def _check_vocabulary(owner: Any, name: str, vocabulary: Any) -> int:
    """Return the size of a vocabulary, whose tokens must be numbered from 0 on without gaps."""
    is_mapping = isinstance(vocabulary, dict) and _are_strings(vocabulary)
    _require(is_mapping, owner, f"{name} must be a dictionary of strings")
    numbers = list(vocabulary.values())
    integers = all(isinstance(one, Integral) and not isinstance(one, bool) for one in numbers)
    complete = integers and sorted(numbers) == list(range(len(numbers)))
    what = f"{name} must number its {len(numbers):,} tokens from 0 to {len(numbers) - 1:,}"
    _require(complete, owner, what)
    return len(numbers)


def _check_ngram_range(owner: Any, name: str) -> tuple[int, int]:
    """Return two lengths of n-grams, which must be ascending and not too large."""
    bounds = getattr(owner, name)
    is_pair = isinstance(bounds, tuple | list) and list(map(type, bounds)) == [int, int]
    in_order = is_pair and 1 <= bounds[0] <= bounds[1] <= _LONGEST_NGRAM
    what = (
        f"{name} must be two integers from 1 to {_LONGEST_NGRAM:,}, ascending, got {bounds!r:.80}"
    )
    _require(in_order, owner, what)
    return bounds[0], bounds[1]


def _check_pattern(owner: Any, untrusted: set[str]) -> None:
    """Raise ValueError for an invalid token pattern; collect one that may take for ever."""
    pattern = owner.token_pattern
    if pattern is None or owner.tokenizer is not None:
        return
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(
            f"{type(owner).__name__}: token_pattern is not a regular expression ({error})"
        ) from error
    if not is_quick_pattern(pattern):
        untrusted.add(pattern)


def _check_text_vectorizer(vectorizer: Any, untrusted: set[str]) -> None:
    """Check scikit-learn's vectorizers of texts, and TokenVectorizer."""
    # 1) tokens
    _check_ngram_range(vectorizer, "ngram_range")
    _check_pattern(vectorizer, untrusted)
    words = vectorizer.stop_words
    are_words = words is None or isinstance(words, str) or _are_strings(words)
    _require(are_words, vectorizer, "stop_words must be strings")
    # 2) texts
    if vectorizer.input != "content":  # it opens files that texts name
        untrusted.add(f"input={vectorizer.input!r}")
    try:
        codecs.lookup(vectorizer.encoding)
    except (LookupError, ValueError) as error:
        raise ValueError(f"{type(vectorizer).__name__}: {error}") from error
    # 3) counts
    try:
        np.dtype(vectorizer.dtype)
    except TypeError as error:
        raise ValueError(f"{type(vectorizer).__name__}: dtype must be a type ({error})") from error
    _require(np.dtype(vectorizer.dtype).kind in "biuf", vectorizer, "dtype must be one of numbers")


def _check_count_vectorizer(vectorizer: Any, untrusted: set[str]) -> None:
    """Check a vectorizer with a vocabulary."""
    _check_text_vectorizer(vectorizer, untrusted)
    if isinstance(vectorizer.vocabulary, dict):
        _check_vocabulary(vectorizer, "vocabulary", vectorizer.vocabulary)
    if "vocabulary_" in vars(vectorizer):
        _check_vocabulary(vectorizer, "vocabulary_", vectorizer.vocabulary_)


def _check_tfidf_vectorizer(vectorizer: Any, _: set[str]) -> None:
    """Check that every token has an inverse document frequency."""
    if hasattr(vectorizer, "vocabulary_") and vectorizer.use_idf:
        weights = getattr(vectorizer, "_tfidf", None)
        _require(isinstance(weights, TfidfTransformer), vectorizer, "it must have a transformer")
        _array(weights, "idf_", (len(vectorizer.vocabulary_),), least=0.0)


def _check_tfidf(transformer: Any, _: set[str]) -> None:
    """Check the inverse document frequencies of tokens."""
    if "n_features_in_" in vars(transformer) and transformer.use_idf:
        _array(transformer, "idf_", (int(_number(transformer, "n_features_in_", 1)),), least=0.0)


def _check_context_vectorizer(vectorizer: Any, untrusted: set[str]) -> None:
    """Check vocabularies, gates and word vectors."""
    # 1) parameters
    shortest, longest = _check_ngram_range(vectorizer, "ngram_range")
    _check_pattern(vectorizer, untrusted)
    if vectorizer.characters is not None:
        _check_ngram_range(vectorizer, "characters")
    _number(vectorizer, "character_weight", 0.0)
    if not _is_fitted(vectorizer):
        return
    # 2) vocabularies
    sizes = {}
    for name in ("vocabulary_", "character_vocabulary_"):
        sizes[name] = _check_vocabulary(vectorizer, name, getattr(vectorizer, name, None))
    _require(sizes["vocabulary_"] > 0, vectorizer, "vocabulary_ must have tokens")
    is_usable = vectorizer.characters is not None or sizes["character_vocabulary_"] == 0
    _require(is_usable, vectorizer, "character_vocabulary_ must be empty without characters")
    # 3) gates
    words = _strings(vectorizer, "previous_words_").tolist()
    _require(sorted(words) == words, vectorizer, "previous_words_ must be sorted")
    _array(vectorizer, "previous_word_scores_", (len(words),))
    for name in ("start_scores_", "end_scores_"):
        _array(vectorizer, name, (longest - shortest + 1, N_CELLS))
    if "classes_" in vars(vectorizer):
        _check_classes(vectorizer)
    # 4) word vectors
    vectors = getattr(vectorizer, "word_vectors_", None)
    is_fitted = vectors is None or (isinstance(vectors, WordVectors) and hasattr(vectors, "words_"))
    _require(is_fitted, vectorizer, "word_vectors_ must be None or fitted word vectors")


def _check_word_vectors(vectors: Any, _: set[str]) -> None:
    """Check words and their vectors."""
    if _is_fitted(vectors):
        words = _strings(vectors, "words_")
        _array(vectors, "vectors_", (len(words), None))


# Classifiers of this package


def _check_attention(classifier: Any, _: set[str]) -> None:
    """Check scores, values and embeddings of a fitted classifier of this package."""
    if not _is_fitted(classifier):
        return
    # 1) the device, and the sizes of all arrays
    is_multilabel = getattr(classifier, "multilabel_", False)
    _require(is_multilabel in (False, True), classifier, "multilabel_ must be True or False")
    device = classifier.get_params().get("device", "cpu")
    is_device = isinstance(device, str) and _DEVICE.fullmatch(device) is not None
    _require(is_device, classifier, f"device must be 'cpu', 'cuda' or 'auto', got {device!r:.80}")
    n_classes = _check_classes(classifier)
    n_outputs = 1 if n_classes == 2 and not is_multilabel else n_classes
    is_indicator = is_multilabel or n_classes > 2
    n_tokens = int(_number(classifier, "n_features_in_", 1))
    shape = (n_classes, n_tokens) if is_indicator else (n_tokens,)
    # 2) scores and values
    _array(classifier, "attention_scores_", (n_tokens,))
    # A model of one label has one row of values, or no rows.
    by_output = (n_tokens,) if n_outputs == 1 else shape
    _array(classifier, "token_values_", by_output)
    _array(classifier, "token_importance_", shape)
    _array(classifier, "intercept_", (n_outputs,))
    _array(classifier, "class_prior_", (n_classes,), least=0.0)
    _array(classifier, "loss_curve_", (None,))
    has_cls = _number(classifier, "cls_weight_", 0.0) > 0
    if has_cls:
        _number(classifier, "cls_score_")
    if "entry_scale_" in vars(classifier):
        _number(classifier, "entry_scale_", np.finfo(float).tiny)
    # 3) the selected tokens
    selected = _array(classifier, "selected_tokens_", (None,), "iu", 0)
    in_range = len(np.unique(selected)) == len(selected) and selected.max(initial=0) < n_tokens
    _require(in_range, classifier, f"selected_tokens_ must be different columns below {n_tokens:,}")
    _array(classifier, "selection_counts_", (len(selected),), "iuf", 0)
    # 4) what only some models have
    if "feature_names_in_" in vars(classifier):
        _strings(classifier, "feature_names_in_", n_tokens)
    for name in ("C_", "token_vectors_scale_"):
        if name in vars(classifier):
            _number(classifier, name, 0.0)
    _require("_embeddings" in vars(classifier), classifier, "it must have embeddings, or None")
    _check_embeddings(classifier, vars(classifier)["_embeddings"], n_tokens, n_outputs)
    if "vector_weights_" in vars(classifier):
        rows = (None,) if n_outputs == 1 else (n_outputs, None)
        _array(classifier, "vector_weights_", rows)
    if "_network" in vars(classifier):
        _check_network(classifier, n_tokens, n_outputs)
    elif "n_layers" in classifier.get_params():
        _require(False, classifier, "it must have a network")
    if "_stream" in vars(classifier):
        _check_stream(classifier, n_tokens, n_outputs)


def _check_embeddings(owner: Any, stored: Any, n_tokens: int, n_outputs: int) -> None:
    """Check the stored embeddings of a model, None if their basis is arbitrary."""
    if isinstance(stored, StoredEmbeddings):
        dimension = len(_array(stored, "cls_embedding", (None,)))
        _array(stored, "output_vectors", (n_outputs, dimension))
        _array(stored, "matrix", (n_tokens, dimension))
        return
    if isinstance(stored, VectorEmbeddings):
        _array(stored, "scores", (n_tokens,))
        _array(stored, "own", (n_tokens, n_outputs))
        tokens = _array(stored, "tokens", (None,), "i", 0)
        ascending = (np.diff(tokens) > 0).all() and tokens.max(initial=0) < n_tokens
        _require(ascending, stored, f"tokens must be ascending and below {n_tokens:,}")
        vectors = _array(stored, "vectors", (len(tokens), None))
        _array(stored, "factors", (len(tokens),))
        _array(stored, "weights", (vectors.shape[1], n_outputs))
        return
    _require(stored is None, owner, f"its embeddings must not be a {type(stored).__name__}")


def _check_network(classifier: Any, n_tokens: int, n_outputs: int) -> None:
    """Check the arrays of a fitted network of attention layers."""
    # 1) the model, and its number of layers
    network = vars(classifier)["_network"]
    _require(type(network) is FittedNetwork, classifier, "its network must be a FittedNetwork")
    _check_model(network, n_tokens, n_outputs)
    _require(network.embeddings is not None, network, "it must have embeddings")
    dimension = network.embeddings.matrix.shape[1]
    depth = network.n_layers, network.mlp
    _require(depth in {(1, False), (1, True), (2, False), (2, True)}, network, "unknown layers")
    # 2) the arrays of these layers
    shapes: dict[str, tuple[int, ...]] = {}
    if network.n_layers == 2:
        shapes = dict.fromkeys(("first_key_query", "second_key_query"), (dimension, dimension))
    if network.mlp:
        shapes |= dict.fromkeys(("hidden_weights", "hidden_output"), (dimension, dimension))
        shapes["hidden_bias"] = (dimension,)
    layers = network.layers
    _require(isinstance(layers, dict) and layers.keys() == shapes.keys(), network, "wrong layers")
    for name, shape in shapes.items():
        _array(_Named(layers), name, shape)


class _Named:
    """The values of a dictionary as attributes."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)


def _check_model(model: FittedAttention, n_tokens: int, n_outputs: int) -> None:
    """Check the arrays of a fitted attention model."""
    _array(model, "scores", (n_tokens,))
    _array(model, "values", (n_tokens, n_outputs))
    _array(model, "intercept", (n_outputs,))
    if _number(model, "cls_weight", 0.0) > 0:
        _number(model, "cls_score")
    if model.entry_scale is not None:
        _number(model, "entry_scale", np.finfo(float).tiny)
    _check_embeddings(model, model.embeddings, n_tokens, n_outputs)


def _check_stream(classifier: Any, n_tokens: int, n_outputs: int) -> None:
    """Check what a classifier remembers of the batches of `partial_fit`."""
    # 1) statistics
    stream = vars(classifier)["_stream"]
    _require(type(stream) is Stream, classifier, "its memory of batches must be a Stream")
    n_classes = len(classifier.classes_)
    statistics = stream.statistics
    is_known = type(statistics) is CorpusStatistics
    _require(is_known, stream, "statistics must be those of documents")
    is_multilabel = classifier.multilabel_
    _require(statistics.multilabel is is_multilabel, statistics, "multilabel must be multilabel_")
    _array(statistics, "class_weights", (n_classes,), least=0.0)
    _array(statistics, "shares", (n_classes, n_tokens), least=0.0)
    _array(statistics, "token_shares", (n_tokens,), least=0.0)
    for name in ("total_weight", "token_weight", "n_entries"):
        _number(statistics, name, 0.0)
    _array(stream, "selection_counts", (n_tokens,), "iuf", 0)
    # 2) the expansion of the losses
    memory = stream.memory
    _require(type(memory) is Memory, stream, "memory must be that of a batch")
    for name in ("center", "gradient", "curvature"):
        _array(memory, name, (n_tokens + 1, 1 + n_outputs))
    _number(memory, "loss")
    _require(memory.attend_cls in (False, True), memory, "attend_cls must be True or False")
    # 3) numbers for the choice of C
    evidence = stream.evidence
    is_pair = isinstance(evidence, tuple | list) and len(evidence) == 2
    has_numbers = is_pair and all(isinstance(one, Real) for one in evidence)
    is_valid = has_numbers and bool(np.isfinite(np.array(evidence, dtype=np.float64)).all())
    _require(is_valid, stream, "evidence must be two numbers")
    for name in ("C", "attention_C", "entry_scale"):
        if getattr(stream, name) is not None:
            _number(stream, name, np.finfo(float).tiny)


def _check_importance(transformer: Any, _: set[str]) -> None:
    """Check the statistics of tokens, the factors of columns and the selection."""
    if not _is_fitted(transformer):
        return
    n_classes = _check_classes(transformer)
    n_tokens = int(_number(transformer, "n_features_in_", 1))
    shape = (n_tokens,) if n_classes == 2 else (n_classes, n_tokens)
    _array(transformer, "token_importance_", shape)
    _array(transformer, "token_totals_", (n_classes, n_tokens), least=0.0)
    _array(transformer, "class_weight_", (n_classes,), least=0.0)
    _array(transformer, "_support_mask", (n_tokens,), "b")
    kind = vars(transformer).get("_totals_kind")
    _require(kind in ("shares", "counts"), transformer, f"totals of an unknown kind, {kind!r}")
    if getattr(transformer, "scale_", None) is not None:
        _array(transformer, "scale_", (n_tokens,), least=0.0)
    _require("scale_" in vars(transformer), transformer, "it must have scale_")
    if "feature_names_in_" in vars(transformer):
        _strings(transformer, "feature_names_in_", n_tokens)


# scikit-learn


def _check_named(owner: Any, name: str, length: int) -> list[Any]:
    """Return a list of tuples of this length, of which the first items are different names."""
    what = f"{name} must be tuples of a name and an estimator"
    items: Any = getattr(owner, name, None)
    _require(isinstance(items, list) and len(items) > 0, owner, what)
    names = []
    for one in items:
        _require(isinstance(one, tuple) and len(one) == length, owner, what)
        names.append(one[0])
    _require(_are_strings(names) and len(set(names)) == len(names), owner, what)
    return list(items)


def _check_step(owner: Any, step: Any) -> None:
    """Raise ValueError for a step that is neither an estimator nor a word in its place."""
    is_word = step is None or (isinstance(step, str) and step in ("drop", "passthrough"))
    _require(is_word or isinstance(step, BaseEstimator), owner, f"{step!r:.80} is not an estimator")


def _check_pipeline(pipeline: Any, _: set[str]) -> None:
    """Check the names and types of a pipeline's steps."""
    for _name, step in _check_named(pipeline, "steps", 2):
        _check_step(pipeline, step)


def _check_union(union: Any, _: set[str]) -> None:
    """Check the names and types of a union's transformers."""
    for _name, transformer in _check_named(union, "transformer_list", 2):
        _check_step(union, transformer)


def _check_columns(transformer: Any, _: set[str]) -> None:
    """Check a ColumnTransformer's parts, their columns and the names of columns."""
    # 1) the parts, also those of a fit
    parts = _check_named(transformer, "transformers", 3)
    if _is_fitted(transformer):
        n_features = int(_number(transformer, "n_features_in_", 1))
        if "feature_names_in_" in vars(transformer):
            _strings(transformer, "feature_names_in_", n_features)
        parts += _check_named(transformer, "transformers_", 3)
    # 2) their columns
    for name, part, columns in parts:
        _check_step(transformer, part)
        is_known = isinstance(columns, str | int | list | slice | np.ndarray) or callable(columns)
        is_known = is_known and not isinstance(columns, type)
        _require(is_known, transformer, f"columns of {name!r} must be names, numbers or a mask")
        # A data frame's columns are found by name only if their names are stored.
        chosen = [columns] if isinstance(columns, str) else columns
        by_name = isinstance(chosen, list) and any(isinstance(one, str) for one in chosen)
        unnamed = _is_fitted(transformer) and "feature_names_in_" not in vars(transformer)
        what = f"feature_names_in_ must have the names of the columns of {name!r}"
        _require(not (by_name and unnamed), transformer, what)


def _check_linear(classifier: Any, _: set[str]) -> None:
    """Check the coefficients of a linear classifier."""
    if "coef_" not in vars(classifier) or "classes_" not in vars(classifier):
        return
    n_classes = _check_classes(classifier)
    rows = 1 if n_classes == 2 else n_classes
    n_features = int(_number(classifier, "n_features_in_", 1))
    if sparse.issparse(classifier.coef_):
        has_shape = classifier.coef_.shape == (rows, n_features)
        _require(has_shape, classifier, "coef_ has a wrong shape")
    else:
        _array(classifier, "coef_", (rows, n_features))
    if isinstance(classifier.intercept_, np.ndarray):
        _array(classifier, "intercept_", (rows,))
    else:
        _number(classifier, "intercept_")


def _check_naive_bayes(classifier: Any, _: set[str]) -> None:
    """Check the log-probabilities of naive Bayes."""
    if "feature_log_prob_" not in vars(classifier):
        return
    n_classes = _check_classes(classifier)
    _array(classifier, "feature_log_prob_", (n_classes, None))
    _array(classifier, "class_log_prior_", (n_classes,))


_CHECKS: dict[type, Callable[[Any, set[str]], None]] = {
    BaseAttentionClassifier: _check_attention,
    TokenImportanceTransformer: _check_importance,
    ContextVectorizer: _check_context_vectorizer,
    WordVectors: _check_word_vectors,
    CountVectorizer: _check_count_vectorizer,
    HashingVectorizer: _check_text_vectorizer,
    TfidfVectorizer: _check_tfidf_vectorizer,
    TfidfTransformer: _check_tfidf,
    Pipeline: _check_pipeline,
    FeatureUnion: _check_union,
    ColumnTransformer: _check_columns,
    LinearClassifierMixin: _check_linear,
    BernoulliNB: _check_naive_bayes,
    ComplementNB: _check_naive_bayes,
    MultinomialNB: _check_naive_bayes,
}


# Examples of documents


def _example(model: Any) -> Any:
    """Return documents that a model must be able to take, None if they are not known."""
    # 1) of the first of several parts
    if isinstance(model, Pipeline | FeatureUnion):
        parts = model.steps if isinstance(model, Pipeline) else model.transformer_list
        steps = [step for _, step in parts if isinstance(step, BaseEstimator)]
        return _example(steps[0]) if steps else None
    if isinstance(model, ColumnTransformer):
        return _example_table(model)
    # 2) texts
    if isinstance(model, CountVectorizer | ContextVectorizer):
        vocabulary = getattr(model, "vocabulary_", None)
        return None if vocabulary is None else [" ".join(list(vocabulary)[:5]), ""]
    if isinstance(model, HashingVectorizer):
        return ["some words", ""]
    # 3) counts
    kinds = BaseAttentionClassifier | TokenImportanceTransformer | TfidfTransformer
    kinds |= LogisticRegression | LinearClassifierMixin | MultinomialNB
    n_features = vars(model).get("n_features_in_") if isinstance(model, kinds) else None
    if n_features is None:
        return None
    # The second document is empty.
    return sparse.csr_matrix(([1.0], [0], [0, 1, 1]), shape=(2, n_features))


def _example_table(model: Any) -> pd.DataFrame | None:
    """Return a table of two rows for a ColumnTransformer that was fitted on a table."""
    names = vars(model).get("feature_names_in_")
    if names is None or "transformers_" not in vars(model):
        return None
    columns: dict[str, Any] = {name: [0.0, 0.0] for name in names.tolist()}
    for _, part, of_part in model.transformers_:
        first = part.steps[0][1] if isinstance(part, Pipeline) else part
        if not isinstance(first, BaseEstimator):  # "drop" or "passthrough"
            continue
        places = [of_part] if isinstance(of_part, str) else of_part
        if not (isinstance(places, list) and set(places) <= set(columns)):
            return None
        values = _example_columns(first, len(places))
        if values is None:
            return None
        columns.update(zip(places, values, strict=True))
    return pd.DataFrame(columns)


def _example_columns(transformer: Any, n_columns: int) -> list[Any] | None:
    """Return columns of two rows that a transformer must be able to take, None if not known."""
    if isinstance(transformer, CountVectorizer | ContextVectorizer | HashingVectorizer):
        return [_example(transformer)] * n_columns
    if isinstance(transformer, MaxAbsScaler | Normalizer):
        return [[1.0, 0.0]] * n_columns
    if isinstance(transformer, OneHotEncoder):
        return [[categories[0]] * 2 for categories in transformer.categories_]
    if isinstance(transformer, StandardScaler | MinMaxScaler):
        # Numbers that scaling turns into 0, so that the classifier gets none below it.
        name = "data_min_" if isinstance(transformer, MinMaxScaler) else "mean_"
        numbers = getattr(transformer, name, None)
        if numbers is None:
            numbers = np.zeros(n_columns)
        return [[float(number)] * 2 for number in numbers]
    return None
