"""Fitted pipelines as ONNX, by converters that skl2onnx is told of."""

from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ._classifier import ClsAttentionClassifier
from ._classifier_cv import ClsAttentionClassifierCV
from ._core.fitted import FittedModel
from .text._context_vectorizer import ContextVectorizer
from .text._token_vectorizer import TokenVectorizer
from .text._tokens import WORDS, WORDS_AND_CONTRACTIONS, WORDS_AND_PUNCTUATION

_WORD = r"[\p{L}\p{N}_]"
# Patterns of words in the language of RE2, onnxruntime's, whose \w has only the letters of ASCII.
_PATTERNS = {
    WORDS: f"{_WORD}{{2,}}",
    WORDS_AND_PUNCTUATION: rf"{_WORD}+(?:['’]{_WORD}+)*|[^\p{{L}}\p{{N}}_\s\p{{Z}}]",
    WORDS_AND_CONTRACTIONS: f"{_WORD}+(?:'{_WORD}+)?",
}
_VECTORIZERS = (CountVectorizer, TfidfVectorizer, TokenVectorizer)
# Scores that are further apart than this underflow in double precision.
_LARGEST_SPREAD = 600.0


def convert(model: Any, locale: str) -> Any:
    """Return the ONNX model of a fitted classifier, or of a pipeline that ends in one."""
    try:
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    except ImportError as error:
        raise ImportError(
            "converting to ONNX needs skl2onnx; install it with 'pip install sklearn-clsattn[onnx]'"
        ) from error
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    classifier = steps[-1]
    if type(classifier) not in (ClsAttentionClassifier, ClsAttentionClassifierCV):
        raise TypeError(
            "to_onnx converts ClsAttentionClassifier, ClsAttentionClassifierCV and pipelines that "
            f"end in one of them, got {type(classifier).__name__}"
        )
    check_is_fitted(model)
    labels = classifier.classes_
    if labels.dtype.kind not in "iu" and not all(isinstance(one, str) for one in labels.tolist()):
        raise ValueError(
            f"ONNX has classes that are integers or strings, these are {labels.dtype}: convert y "
            "before fitting"
        )
    check_spread(classifier._model())
    options: dict[int, dict[str, Any]] = {id(classifier): {"zipmap": False}}
    first = steps[0]
    texts = isinstance(first, (*_VECTORIZERS, ContextVectorizer, HashingVectorizer))
    if texts:
        check_vectorizer(first)
        options[id(first)] = {"tokenexp": _PATTERNS[first.token_pattern], "locale": locale}
    _register()
    n_features = getattr(first, "n_features_in_", None)
    data = StringTensorType([None]) if texts else FloatTensorType([None, n_features])
    name = "texts" if texts else "X"
    return convert_sklearn(model, initial_types=[(name, data)], options=options)


def check_vectorizer(vectorizer: Any) -> None:
    """Raise ValueError for a vectorizer whose counts ONNX would not give alike."""
    if type(vectorizer) not in _VECTORIZERS:
        names = ", ".join(kind.__name__ for kind in _VECTORIZERS)
        raise ValueError(
            f"ONNX has no counterpart of {type(vectorizer).__name__}; expected one of {names}"
        )
    for name, allowed, expected in (
        ("input", ("content",), "'content'"),
        ("analyzer", ("word",), "'word'"),
        ("tokenizer", (None,), "None"),
        ("preprocessor", (None,), "None"),
        ("strip_accents", (None,), "None"),
        ("stop_words", (None,), "None (max_df leaves frequent words out)"),
        ("token_pattern", tuple(_PATTERNS), f"one of {', '.join(map(repr, _PATTERNS))}"),
    ):
        value = getattr(vectorizer, name)
        if value not in allowed:
            raise ValueError(
                f"ONNX cannot count as the vectorizer does: {name}={value!r}; expected {expected}"
            )


def check_spread(model: FittedModel) -> None:
    """Raise ValueError for scores so far apart that a graph without a fallback loses documents."""
    scores = model.scores
    if model.cls_weight:
        scores = np.append(scores, model.cls_score)
    spread = float(np.ptp(scores)) if len(scores) else 0.0
    if spread > _LARGEST_SPREAD:
        raise ValueError(
            f"attention scores are {spread:.0f} apart, and more than {_LARGEST_SPREAD:.0f} "
            "underflow in ONNX; fit with a smaller attention_C"
        )


def _register() -> None:
    """Tell skl2onnx of this package's classifiers and of `TokenVectorizer`."""
    from skl2onnx import update_registered_converter
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes
    from skl2onnx.operator_converters.text_vectoriser import convert_sklearn_text_vectorizer
    from skl2onnx.shape_calculators.text_vectorizer import (
        calculate_sklearn_text_vectorizer_output_shapes,
    )

    for kind in (ClsAttentionClassifier, ClsAttentionClassifierCV):
        update_registered_converter(
            kind,
            f"Clsattn{kind.__name__}",
            calculate_linear_classifier_output_shapes,
            _add_classifier,
            options={"zipmap": [True, False, "columns"], "nocl": [True, False]},
        )
    update_registered_converter(
        TokenVectorizer,
        "ClsattnTokenVectorizer",
        calculate_sklearn_text_vectorizer_output_shapes,
        convert_sklearn_text_vectorizer,
        options=dict.fromkeys(("tokenexp", "separators", "nan", "keep_empty_string", "locale")),
    )


def _add_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Add a fitted classifier's graph, in double precision; probabilities are single."""
    from onnx import TensorProto
    from skl2onnx.algebra import onnx_ops

    def node(kind: str, *inputs: Any, **attributes: Any) -> Any:
        made = getattr(onnx_ops, f"Onnx{kind}")
        return made(*inputs, op_version=container.target_opset, **attributes)

    classifier = operator.raw_operator
    model = classifier._model()
    counts = node("Cast", operator.inputs[0], to=TensorProto.DOUBLE)
    if model.entry_scale is not None:  # damped counts
        shares = node("Div", counts, _row(model.entry_scale))
        sums = node("Add", shares, _row(1.0))
        rounded = node("Sub", sums, _row(1.0))  # log(1 + x) is x / rounded times its logarithm
        factors = node("Div", shares, node("Max", rounded, _row(np.finfo(np.float64).tiny)))
        logs = node("Mul", node("Log", sums), factors)
        logs = node("Where", node("Equal", sums, _row(1.0)), shares, logs)
        counts = node("Mul", logs, _row(model.entry_scale / np.log(2.0)))
    if model.cls_weight:  # its mass is 1: onnxruntime leaves sums with a tiny constant out
        weights = np.exp(model.scores - model.cls_score - np.log(model.cls_weight))[:, None]
        mass = node("Add", node("MatMul", counts, weights), _row(1.0))
    else:  # a document without tokens has no mass, and the intercept for its decision
        weights = np.exp(model.scores - model.scores.max())[:, None]
        mass = node("Max", node("MatMul", counts, weights), _row(np.finfo(np.float64).tiny))
    attended = node("Div", node("MatMul", counts, weights * model.values), mass)
    decision = node("Add", attended, model.intercept[None])
    if len(model.intercept) == 1:
        decision = node("MatMul", decision, np.array([[-1.0, 1.0]]))
        probabilities = node("Sigmoid", decision)
    else:
        probabilities = node("Softmax", decision, axis=1)
    labels = classifier.classes_
    labels = labels.astype(np.int64) if labels.dtype.kind in "iu" else labels.astype(str)
    best = node("ArgMax", decision, axis=1, keepdims=0)
    outputs = (
        node("Gather", labels, best, axis=0, output_names=[operator.outputs[0]]),
        node("Cast", probabilities, to=TensorProto.FLOAT, output_names=[operator.outputs[1]]),
    )
    for output in outputs:
        output.add_to(scope, container)


def _row(number: float) -> Any:
    """Return a number as an array (1, 1)."""
    return np.array([[number]], dtype=np.float64)
