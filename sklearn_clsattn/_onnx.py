"""Fitted classifiers and pipelines as ONNX, by converters registered with skl2onnx."""

from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ._base import fitted_attention
from ._classifier import ClsAttentionClassifier
from ._core.fitted import FittedModel
from .text._context_vectorizer import ContextVectorizer
from .text._token_vectorizer import TokenVectorizer
from .text._tokens import WORDS, WORDS_AND_PUNCTUATION

_WORD = r"[\p{L}\p{N}_]"
# Token patterns in the language of RE2, onnxruntime's, whose \w has only the letters of ASCII.
_PATTERNS = {
    WORDS: f"{_WORD}{{2,}}",
    WORDS_AND_PUNCTUATION: rf"{_WORD}+(?:['’]{_WORD}+)*|[^\p{{L}}\p{{N}}_\s\p{{Z}}]",
    r"(?u)\b\w+(?:'\w+)?\b": f"{_WORD}+(?:'{_WORD}+)?",
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
            "Conversion to ONNX needs skl2onnx: pip install sklearn-clsattn[onnx]."
        ) from error
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    first, classifier = steps[0], steps[-1]
    if type(classifier) is not ClsAttentionClassifier:
        raise TypeError(
            "to_onnx converts ClsAttentionClassifier and pipelines that end in one, got "
            f"{type(classifier).__name__}."
        )
    check_is_fitted(model)
    labels = classifier.classes_
    if labels.dtype.kind not in "iu" and not all(isinstance(one, str) for one in labels.tolist()):
        raise ValueError(
            f"ONNX needs classes that are integers or strings, got {labels.dtype}: convert y "
            "before fitting."
        )
    _check_spread(fitted_attention(classifier))
    options: dict[int, dict[str, Any]] = {id(classifier): {"zipmap": False}}
    name, data = "X", FloatTensorType([None, getattr(first, "n_features_in_", None)])
    if isinstance(first, (*_VECTORIZERS, ContextVectorizer, HashingVectorizer)):
        _check_vectorizer(first)
        options[id(first)] = {"tokenexp": _PATTERNS[first.token_pattern], "locale": locale}
        name, data = "texts", StringTensorType([None])
    _register()
    return convert_sklearn(model, initial_types=[(name, data)], options=options)


def _check_vectorizer(vectorizer: Any) -> None:
    """Raise ValueError for a vectorizer whose counts ONNX would not give alike."""
    if type(vectorizer) not in _VECTORIZERS:
        names = ", ".join(kind.__name__ for kind in _VECTORIZERS)
        raise ValueError(
            f"ONNX has no counterpart of {type(vectorizer).__name__}: expected one of {names}."
        )
    for name, allowed in (
        ("input", ["content"]),
        ("analyzer", ["word"]),
        ("tokenizer", [None]),
        ("preprocessor", [None]),
        ("strip_accents", [None]),
        ("stop_words", [None]),  # max_df can leave frequent words out
        ("token_pattern", _PATTERNS),
    ):
        value = getattr(vectorizer, name)
        if value not in allowed:
            expected = " or ".join(map(repr, allowed))
            raise ValueError(
                f"ONNX cannot count as the vectorizer does with {name}={value!r}: "
                f"expected {expected}."
            )


def _check_spread(model: FittedModel) -> None:
    """Raise ValueError where scores are so far apart that attention masses would underflow."""
    scores = model.scores
    if model.cls_weight:
        scores = np.append(scores, model.cls_score)
    spread = float(np.ptp(scores))
    if spread > _LARGEST_SPREAD:
        raise ValueError(
            f"Attention scores are {spread:.0f} apart, but ONNX underflows above "
            f"{_LARGEST_SPREAD:.0f}: fit with a smaller attention_C."
        )


def _register() -> None:
    """Register the converters of `ClsAttentionClassifier` and of `TokenVectorizer`."""
    from skl2onnx import update_registered_converter
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes
    from skl2onnx.operator_converters.text_vectoriser import convert_sklearn_text_vectorizer
    from skl2onnx.shape_calculators.text_vectorizer import (
        calculate_sklearn_text_vectorizer_output_shapes,
    )

    update_registered_converter(
        ClsAttentionClassifier,
        "ClsattnClsAttentionClassifier",
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
        make = getattr(onnx_ops, f"Onnx{kind}")
        return make(*inputs, op_version=container.target_opset, **attributes)

    classifier = operator.raw_operator
    model: Any = fitted_attention(classifier)
    counts = node("Cast", operator.inputs[0], to=TensorProto.DOUBLE)
    one, tiny = np.ones((1, 1)), np.array([[np.finfo(np.float64).tiny]])
    if model.entry_scale is not None:  # damped counts
        scale = np.array([[model.entry_scale]])
        shares = node("Div", counts, scale)
        sums = node("Add", shares, one)
        rounded = node("Sub", sums, one)  # log(1 + x) is x / rounded * log(sums)
        factors = node("Div", shares, node("Max", rounded, tiny))
        logs = node("Mul", node("Log", sums), factors)
        logs = node("Where", node("Equal", sums, one), shares, logs)
        counts = node("Mul", logs, scale / np.log(2.0))
    if model.cls_weight:  # in units of its mass: onnxruntime drops the addition of a tiny constant
        weights = np.exp(model.scores - model.cls_score - np.log(model.cls_weight))[:, None]
        mass = node("Add", node("MatMul", counts, weights), one)
    else:  # a document without tokens has no mass, and the intercept for its decision
        weights = np.exp(model.scores - model.scores.max())[:, None]
        mass = node("Max", node("MatMul", counts, weights), tiny)
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
    for output in (
        node("Gather", labels, best, axis=0, output_names=[operator.outputs[0]]),
        node("Cast", probabilities, to=TensorProto.FLOAT, output_names=[operator.outputs[1]]),
    ):
        output.add_to(scope, container)
