"""Saving models, in files that are safe to load and as ONNX."""

from __future__ import annotations

import io
import warnings
import zlib
from collections.abc import Callable, Sequence
from copy import copy
from numbers import Integral
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from ._base import fitted_attention
from ._classifier import ClsAttentionClassifier
from ._loaded import try_prediction, untrusted_content
from ._reproducible import reproducible_archive
from ._unpacked import UNPACKED_SIZE, LargeArchive, unpacked_archive
from ._writing import written_whole
from .importance import overall_importance
from .text._context_vectorizer import ContextVectorizer
from .text._token_vectorizer import TokenVectorizer
from .text._tokens import WORDS, WORDS_AND_PUNCTUATION, words_differ

__all__ = ["load_model", "save_model", "to_onnx"]

# The types of this package in .skops files: estimators, which run no code when they are loaded.
TRUSTED_TYPES = (
    "sklearn_clsattn.ClsAttentionClassifier",
    "sklearn_clsattn.TokenImportanceTransformer",
    "sklearn_clsattn.paper.AttentionNetworkClassifier",
    "sklearn_clsattn.paper.EmbeddingClassifier",
    "sklearn_clsattn.paper.OneStepClassifier",
    "sklearn_clsattn.text.ContextVectorizer",
    "sklearn_clsattn.TextClassifier",
    "sklearn_clsattn.text.TokenVectorizer",
    "sklearn_clsattn.text.WordVectors",
)
_LEVEL = 1  # of compression: higher levels save little and take three times as long to load
_LEVEL_OF_SMALL = 9
# Fitted attributes whose last axis is the tokens.
_BY_TOKEN = ("attention_scores_", "token_values_", "token_importance_")

_WORD = r"[\p{L}\p{N}_]"
# Token patterns for RE2, which onnxruntime uses and whose \w matches only ASCII letters.
_PATTERNS = {
    WORDS: f"{_WORD}{{2,}}",
    WORDS_AND_PUNCTUATION: rf"{_WORD}+(?:['’]{_WORD}+)*|[^\p{{L}}\p{{N}}_\s\p{{Z}}]",
    r"(?u)\b\w+(?:'\w+)?\b": f"{_WORD}+(?:'{_WORD}+)?",
}
# Parameters of vectorizers that ONNX supports only with these values; max_df can drop words.
_FIXED = {
    "input": "content",
    "analyzer": "word",
    "tokenizer": None,
    "preprocessor": None,
    "strip_accents": None,
    "stop_words": None,
}
_VECTORIZERS = (CountVectorizer, TfidfVectorizer, TokenVectorizer)
_LARGEST_SPREAD = 600.0  # of scores: those further apart underflow in double precision


def save_model(
    model: Any,
    path: str | Path,
    *,
    max_tokens: int | None = None,
    dtype: type[np.floating[Any]] | None = None,
) -> None:
    """Save a model in a compressed file, completely or not at all.

    Parameters
    ----------
    model : estimator
        An estimator of this package or of scikit-learn, such as a Pipeline of both.
    path : str or path-like
        The file, which is replaced if it exists. If its name ends in ``.skops``, loading it runs no
        code from the file, so it is safe to share. Any other file is a pickle, written by joblib.
    max_tokens : int, default=None
        Save only this many tokens, those with the largest `token_importance_`. The model must be a
        pipeline of a vectorizer and a :class:`~sklearn_clsattn.ClsAttentionClassifier`. It ignores
        all other tokens, so predictions change, and has no word vectors. With gates of a
        `ContextVectorizer`, the weights of the kept tokens change as well, by one factor a
        document: the factor h that keeps its total weight is computed from the kept tokens, because
        the file does not say which other n-grams were known. On 1,000 sentences this changes
        weights by up to a third, and probabilities by up to 0.07 and 0.01 on average (50 to 5,000
        of 70,310 tokens). None saves all tokens.
    dtype : {np.float16, np.float32}, default=None
        Type of the tokens' scores, values and importances in the file. None keeps double precision.

    Raises
    ------
    ValueError
        If skops cannot load the model again, for example because its tokenizer is a lambda.

    Warns
    -----
    UserWarning
        If a ``.skops`` file contains your own functions, classes or token patterns that may be
        slow: pass them to :func:`load_model` as `trusted`. A `GridSearchCV` contains such types as
        well; its `best_estimator_` does not.

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
    # 1) the model, perhaps with fewer tokens
    path = Path(path)
    level = _LEVEL
    if max_tokens is not None or dtype is not None:
        model = _smaller(model, max_tokens, dtype)
        level = _LEVEL_OF_SMALL
    # 2) a pickle
    if path.suffix.lower() != ".skops":
        with written_whole(path, text=False) as file:
            joblib.dump(model, file, compress=("zlib", level))
        return
    # 3) or an archive, which is written only if it can be loaded again
    import skops.io  # takes a second

    try:
        content = reproducible_archive(skops.io.dumps(model), level)
        others = _untrusted(content, ())
        if others:  # functions are saved by name, and a name may not lead back to its function
            skops.io.loads(content, trusted=[*TRUSTED_TYPES, *others])
        _, large = _unpacked(content, ())
        others = sorted({*others, *untrusted_content(model), *large})  # to be trusted by a reader
        if not others:
            try_prediction(model)
    except Exception as error:
        raise ValueError(
            f"{path} was not saved, because skops could not load it again ({type(error).__name__}: "
            f"{error}). Define functions and classes at the top level of a module, or choose a "
            "name that ends in .joblib."
        ) from error
    if others:
        warnings.warn(
            f"{path} contains types, functions or patterns that are not known to be safe, or "
            "unpacks to many times its size. If you trust it, load it with load_model(path, "
            f"trusted={others}).",
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
        estimators and types that skops considers safe, whose contents are checked. Any other file
        is a pickle, which can run any code: load only files that you trust.
    trusted : sequence of str, type or function, default=()
        Other types, functions and token patterns that a ``.skops`` file may contain, or their names
        as given by :func:`save_model` and the error. Their code may run, and their patterns may
        take for ever. ``"unpacked size"`` allows a file that unpacks to more than 512 MiB and more
        than 100 times its size.

    Returns
    -------
    model : estimator
        The model. Loading warns if other versions of this package or scikit-learn saved it.

    Raises
    ------
    ValueError
        If a ``.skops`` file contains other types, functions or patterns, would take much more
        memory than its size (which is found before the memory is taken), is damaged or is not a
        valid model.

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
    names = []
    for one in trusted:
        names.append(one if isinstance(one, str) else f"{one.__module__}.{one.__name__}")
    is_pickle = path.suffix.lower() != ".skops"
    if is_pickle and names:
        raise ValueError(f"{path} is a pickle, for which `trusted` has no effect: omit it.")
    content = path.read_bytes()
    try:
        if is_pickle:
            # zlib verifies the checksum before anything is used. Uncompressed pickles begin with
            # another byte.
            plain = zlib.decompress(content) if content.startswith(b"x") else content
            return joblib.load(io.BytesIO(plain))
        model, others = _load_archive(content, names)
    except Warning:  # an error where the user has turned warnings into errors
        raise
    except Exception as error:  # a damaged file can raise anything
        raise ValueError(
            f"{path} cannot be loaded: it is not a model, is damaged, or was saved with other "
            f"versions or modules ({type(error).__name__}: {error}). Copy or save it again."
        ) from error
    if others:
        raise ValueError(
            f"{path} was not loaded, because it contains types, functions or patterns that are not "
            "known to be safe, or unpacks to many times its size. If you trust it, pass "
            f"trusted={others}."
        )
    return model


def to_onnx(model: Any, *, locale: str = "C.UTF-8") -> Any:
    """Convert a model to ONNX, for prediction without Python.

    Parameters
    ----------
    model : ClsAttentionClassifier or Pipeline
        A fitted model. A pipeline of texts must start with a `CountVectorizer`, `TfidfVectorizer`
        or `TokenVectorizer` of words, with one of the fast token patterns of `TokenVectorizer`, or
        with a `ContextVectorizer` with ``context=False, characters=None, normalize=None``: ONNX has
        no operators for gates, for the character n-grams of words or for normalization forms.
    locale : str, default="C.UTF-8"
        The system locale with which onnxruntime converts texts to lower case. The default exists on
        Linux; elsewhere use ``"en_US.UTF-8"``, or ``"C"``, which changes only ASCII letters.

    Returns
    -------
    onnx_model : onnx.ModelProto
        Computes labels and probabilities from ``texts``, (n_documents,), or from counts ``X``,
        (n_documents, n_tokens), in single precision. Probabilities differ from `predict_proba` by
        less than 1e-6. A batch needs as much memory as a dense matrix of its counts.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.saving import to_onnx
    >>> model = ClsAttentionClassifier().fit([[1, 0], [0, 1]], ["good", "bad"])
    >>> onnx_model = to_onnx(model)
    >>> [output.name for output in onnx_model.graph.output]
    ['label', 'probabilities']
    """
    try:
        from skl2onnx import convert_sklearn
        from skl2onnx.common import data_types
    except ImportError as error:
        raise ImportError(
            "Conversion to ONNX needs skl2onnx: pip install sklearn-clsattn[onnx]."
        ) from error
    # 1) the model, with a CountVectorizer in place of a ContextVectorizer
    steps = _steps_of(model)
    first = steps[0]
    classifier = steps[-1]
    _check_convertible(model, classifier)
    if type(first) is ContextVectorizer:
        first = _without_context(first)
        classifier = copy(classifier)
        classifier.reads_logarithms = True
        model = Pipeline([("words", first), ("classifier", classifier)])
    # 2) its input: counts or texts
    options: dict[int, dict[str, Any]] = {id(classifier): {"zipmap": False}}
    if isinstance(first, (*_VECTORIZERS, ContextVectorizer, HashingVectorizer)):
        _check_vectorizer(first)
        options[id(first)] = {"tokenexp": _PATTERNS[first.token_pattern], "locale": locale}
        inputs = [("texts", data_types.StringTensorType([None]))]
    else:
        n_tokens = getattr(first, "n_features_in_", None)
        inputs = [("X", data_types.FloatTensorType([None, n_tokens]))]
    # 3) the conversion
    _register_converters()
    return convert_sklearn(model, initial_types=inputs, options=options)


def _register_converters() -> None:
    """Register the converters of the classifier and of TokenVectorizer with skl2onnx."""
    from skl2onnx import update_registered_converter
    from skl2onnx.common import shape_calculator
    from skl2onnx.operator_converters import text_vectoriser
    from skl2onnx.shape_calculators import text_vectorizer

    update_registered_converter(
        ClsAttentionClassifier,
        "ClsattnClsAttentionClassifier",
        shape_calculator.calculate_linear_classifier_output_shapes,
        _add_classifier,
        options={"zipmap": [True, False, "columns"], "nocl": [True, False]},
    )
    update_registered_converter(
        TokenVectorizer,
        "ClsattnTokenVectorizer",
        text_vectorizer.calculate_sklearn_text_vectorizer_output_shapes,
        text_vectoriser.convert_sklearn_text_vectorizer,
        options=dict.fromkeys(("tokenexp", "separators", "nan", "keep_empty_string", "locale")),
    )


def _steps_of(model: Any) -> list[Any]:
    """Return the estimators of a pipeline, or a model alone."""
    if not isinstance(model, Pipeline):
        return [model]
    return [step for _, step in model.steps]


def _smaller(model: Any, max_tokens: int | None, dtype: Any) -> Any:
    """Return a copy of a model with fewer tokens and smaller numbers, as in `save_model`."""
    steps = _steps_of(model)
    classifier = copy(steps[-1])
    if not isinstance(classifier, ClsAttentionClassifier):
        raise TypeError(
            "max_tokens and dtype need a ClsAttentionClassifier, or a pipeline that ends in one, "
            f"got {type(classifier).__name__}."
        )
    check_is_fitted(classifier)
    new_steps = [*steps[:-1], classifier]
    # 1) fewer tokens
    if max_tokens is not None:
        check_scalar(max_tokens, "max_tokens", Integral, min_val=1)
        able = CountVectorizer, TokenVectorizer, ContextVectorizer
        if len(steps) != 2 or type(steps[0]) not in able:
            raise ValueError(
                "max_tokens needs a pipeline of a CountVectorizer, TokenVectorizer or "
                "ContextVectorizer and a classifier, so that the vectorizer can drop tokens."
            )
        new_steps[0], columns = _of_fewer_tokens(steps[0], classifier.token_importance_, max_tokens)
        _keep_tokens(classifier, columns)
    # 2) smaller numbers
    if dtype is not None:
        for name in _BY_TOKEN:
            setattr(classifier, name, getattr(classifier, name).astype(dtype))
    # 3) the pipeline around them
    if not isinstance(model, Pipeline):
        return classifier
    smaller = copy(model)
    names = [name for name, _ in model.steps]
    smaller.steps = list(zip(names, new_steps, strict=True))
    return smaller


def _keep_tokens(classifier: ClsAttentionClassifier, columns: NDArray[np.intp]) -> None:
    """Drop all other tokens from a classifier, in place; `columns` are ascending."""
    for name in _BY_TOKEN:
        setattr(classifier, name, getattr(classifier, name)[..., columns])
    stays = np.isin(classifier.selected_tokens_, columns)
    classifier.selection_counts_ = classifier.selection_counts_[stays]
    selected = classifier.selected_tokens_[stays]
    classifier.selected_tokens_ = np.searchsorted(columns, selected)
    classifier.n_features_in_ = len(columns)
    # The memory of batches and the embeddings are of all tokens.
    classifier.__dict__.pop("_stream", None)
    classifier.__dict__["_embeddings"] = None


def _of_fewer_tokens(
    vectorizer: Any, importance: NDArray[Any], max_tokens: int
) -> tuple[Any, NDArray[np.intp]]:
    """Return a copy of a vectorizer with its most important columns, and their numbers."""
    # 1) the columns
    vectorizer = copy(vectorizer)
    order = np.argsort(-overall_importance(importance), kind="stable")[:max_tokens]
    columns = np.sort(order)
    # 2) vocabularies of these
    first = 0  # column of a vocabulary's token 0
    for name in ("vocabulary_", "character_vocabulary_"):
        vocabulary = getattr(vectorizer, name, None)
        if vocabulary is None:
            continue
        local_columns = columns - first
        is_inside = (local_columns >= 0) & (local_columns < len(vocabulary))
        new_numbers = {column: n for n, column in enumerate(local_columns[is_inside].tolist())}
        fewer = {}
        for token, column in vocabulary.items():
            if column in new_numbers:
                fewer[token] = new_numbers[column]
        setattr(vectorizer, name, fewer)
        first += len(vocabulary)
    if isinstance(vectorizer, ContextVectorizer):
        vectorizer.word_vectors = None
        vectorizer.word_vectors_ = None
    return vectorizer, columns


def _load_archive(content: bytes, trusted: Sequence[str]) -> tuple[Any, list[str]]:
    """Return the model in a .skops file, or None and the names of what must be trusted first."""
    import skops.io

    plain, others = _unpacked(content, trusted)
    if others:
        return None, others
    others = _untrusted(plain, trusted)
    if others:
        return None, others
    model = skops.io.loads(plain, trusted=[*TRUSTED_TYPES, *trusted])
    others = sorted(untrusted_content(model) - set(trusted))
    if others:
        return None, others
    if not trusted:  # what a user trusts may be slow, or need other documents than the examples
        try_prediction(model)
    return model, []


def _unpacked(content: bytes, trusted: Sequence[str]) -> tuple[bytes, list[str]]:
    """Return a .skops file without compression, and what must be trusted to unpack it."""
    try:
        return unpacked_archive(content, any_size=UNPACKED_SIZE in trusted), []
    except LargeArchive:
        return b"", [UNPACKED_SIZE]


def _untrusted(content: bytes, trusted: Sequence[str]) -> list[str]:
    """Return the names of the types in a .skops file that are not trusted."""
    import skops.io

    types = set(skops.io.get_untrusted_types(data=content))
    return sorted(types.difference(TRUSTED_TYPES, trusted))


def _check_convertible(model: Any, classifier: Any) -> None:
    """Raise an error for a classifier that ONNX cannot reproduce."""
    if type(classifier) is not ClsAttentionClassifier:
        raise TypeError(
            "to_onnx converts ClsAttentionClassifier and pipelines that end in one, got "
            f"{type(classifier).__name__}."
        )
    check_is_fitted(model)
    if any(getattr(step, "sublinear_tf", False) for step in _steps_of(model)):
        raise ValueError("sublinear_tf=True is not supported: skl2onnx computes ln(1 + c).")
    if classifier.multilabel_:
        raise ValueError("to_onnx supports one label per document, got a model of several labels.")
    labels = classifier.classes_
    if labels.dtype.kind not in "iu" and not all(isinstance(one, str) for one in labels.tolist()):
        raise ValueError(
            f"ONNX needs classes that are integers or strings, got {labels.dtype}: convert y "
            "before fitting."
        )
    fitted = fitted_attention(classifier)
    scores = np.append(fitted.scores, fitted.cls_score) if fitted.cls_weight else fitted.scores
    spread = float(np.ptp(scores))
    if spread > _LARGEST_SPREAD:
        raise ValueError(
            f"Attention scores differ by up to {spread:.0f}, but ONNX underflows above "
            f"{_LARGEST_SPREAD:.0f}: fit with a smaller attention_C."
        )


def _without_context(vectorizer: ContextVectorizer) -> CountVectorizer:
    """Return a CountVectorizer with the same counts c, of which a bag has 1 + ln c, or raise."""
    # 1) what a CountVectorizer cannot do
    if vectorizer.context or vectorizer.characters is not None or vectorizer.normalize is not None:
        raise ValueError(
            "ONNX does not support context, characters and normalize of a ContextVectorizer: fit "
            "it with context=False, characters=None and normalize=None."
        )
    if words_differ(" ".join(vectorizer.vocabulary_)):
        raise ValueError(
            "ONNX does not split scripts such as Chinese, or combining marks and emoji, like "
            "ContextVectorizer: use a CountVectorizer."
        )
    # 2) one with the same tokens
    names = ("token_pattern", "lowercase", "ngram_range", "tokenizer")
    parameters = {name: getattr(vectorizer, name) for name in names}
    made = CountVectorizer(**parameters)
    made.vocabulary_ = vectorizer.vocabulary_
    return made


def _check_vectorizer(vectorizer: Any) -> None:
    """Raise ValueError for a vectorizer whose counts ONNX cannot reproduce."""
    if type(vectorizer) not in _VECTORIZERS:
        names = ", ".join(kind.__name__ for kind in _VECTORIZERS)
        raise ValueError(
            f"to_onnx does not support {type(vectorizer).__name__}: expected one of {names}."
        )
    allowed = {name: [value] for name, value in _FIXED.items()}
    allowed["token_pattern"] = list(_PATTERNS)
    for name, values in allowed.items():
        value = getattr(vectorizer, name)
        if value not in values:
            raise ValueError(
                f"to_onnx does not support {name}={value!r} of the vectorizer: "
                f"expected {' or '.join(map(repr, values))}."
            )


def _add_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of a fitted classifier, in double precision; probabilities are single."""
    from onnx import TensorProto
    from skl2onnx.algebra import onnx_ops

    def node(kind: str, *inputs: Any, **attributes: Any) -> Any:
        make = getattr(onnx_ops, f"Onnx{kind}")
        return make(*inputs, op_version=container.target_opset, **attributes)

    classifier = operator.raw_operator
    model: Any = fitted_attention(classifier)
    # 1) the token weights
    counts = node("Cast", operator.inputs[0], to=TensorProto.DOUBLE)
    one = np.ones((1, 1))
    tiny = np.array([[np.finfo(np.float64).tiny]])
    if getattr(classifier, "reads_logarithms", False):  # 1 + ln c, or 0
        counts = node("Add", node("Log", node("Max", counts, one)), node("Min", counts, one))
    if model.entry_scale is not None:  # damped counts
        scale = np.array([[model.entry_scale]])
        shares = node("Div", counts, scale)
        sums = node("Add", shares, one)
        rounded = node("Sub", sums, one)  # log(1 + x) is x / rounded * log(sums)
        factors = node("Div", shares, node("Max", rounded, tiny))
        logs = node("Mul", node("Log", sums), factors)
        logs = node("Where", node("Equal", sums, one), shares, logs)
        counts = node("Mul", logs, scale / np.log(2.0))
    # 2) the attention mass, and the decision
    if model.cls_weight:  # in units of its mass: onnxruntime drops the addition of a tiny constant
        weights = np.exp(model.scores - model.cls_score - np.log(model.cls_weight))[:, None]
        mass = node("Add", node("MatMul", counts, weights), one)
    else:  # a document without tokens has no mass, and the intercept for its decision
        weights = np.exp(model.scores - model.scores.max())[:, None]
        mass = node("Max", node("MatMul", counts, weights), tiny)
    attended = node("Div", node("MatMul", counts, weights * model.values), mass)
    decision = node("Add", attended, model.intercept[None])
    # 3) probabilities and labels
    if len(model.intercept) == 1:
        decision = node("MatMul", decision, np.array([[-1.0, 1.0]]))
        probabilities = node("Sigmoid", decision)
    else:
        probabilities = node("Softmax", decision, axis=1)
    labels = classifier.classes_
    labels = labels.astype(np.int64 if labels.dtype.kind in "iu" else str)
    best = node("ArgMax", decision, axis=1, keepdims=0)
    label = node("Gather", labels, best, axis=0, output_names=[operator.outputs[0]])
    label.add_to(scope, container)
    single = node("Cast", probabilities, to=TensorProto.FLOAT, output_names=[operator.outputs[1]])
    single.add_to(scope, container)
