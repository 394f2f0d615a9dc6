"""Explain predictions: compute all terms of each decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from .._bags import Bags
from .._base import BaseAttentionClassifier, fitted_attention, of_label, vector_embeddings
from .._matrices import row_sums
from .._types import Array, Numbers
from ..training.forward import probabilities
from .edited_text import TextModel
from .explanation import Explanation
from .likeness import Likeness
from .parts import classifier_input, column_names, parts_of


def explain(
    estimator: Any,
    documents: Any,
    *,
    target: Any = None,
    y_true: ArrayLike | None = None,
) -> Explanation:
    """Explain predictions exactly: what each token of each document adds to the decision.

    The model's decision is a sum over the document's tokens, so nothing is approximated. The
    *contribution* of a token differs from the effect of its *removal*: the attention of a removed
    token goes to the others, and a text without a word is another text, which is predicted again.

    Parameters
    ----------
    estimator : classifier of this package, or Pipeline
        A fitted classifier (of counts, or a :class:`~sklearn_clsattn.TextClassifier`), a fitted
        Pipeline that ends in one, or a fitted search over either. A
        classifier with an MLP is not supported, because its decision is not a sum over tokens.
    documents : matrix of shape (n_documents, n_tokens), or sequence of length n_documents
        The estimator's input: of a classifier of counts, the document-term matrix (a data frame
        names its tokens); of a text classifier or a Pipeline, the texts (or rows of a data frame).
    target : label, default=None
        The class whose decision to explain. By default all classes are explained, and ``to_text``
        and similar methods compare two. For two classes, this is the decision for the second, as in
        ``decision_function``. For several labels, `target` must be one of them; the classes are
        then "not" the label and the label.
    y_true : array-like of shape (n_documents,), default=None
        The true classes. For several labels, 1 for documents with the target, or all labels,
        (n_documents, n_labels).

    Returns
    -------
    explanation : Explanation
        Plain data, with ``to_frame()``, ``to_dict()``, ``to_text()`` and ``to_html()``.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.inspection import explain
    >>> texts = ["a terrific film", "a boring film", "terrific fun", "long and boring"]
    >>> labels = ["good", "bad", "good", "bad"]
    >>> model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, labels)
    >>> explanation = explain(model, ["terrific but long"], y_true=["good"])
    >>> terms = explanation.to_frame().set_index("token")["contribution"]
    >>> bool(terms["terrific"] > 0 > terms["long"])
    True
    >>> bool(abs(terms.sum() - model.decision_function(["terrific but long"])[0]) < 1e-12)
    True
    """
    # 1) The documents, as the classifier reads them.
    steps, classifier = parts_of(estimator)
    check_is_fitted(classifier)
    names = column_names(steps, classifier)
    if not hasattr(documents, "__len__"):
        documents = list(documents)
    bags = classifier_input(steps, classifier, documents)
    # 2) The classes to explain; of several labels, one.
    true = None if y_true is None else np.array(y_true)
    check_consistent_length(bags.units, true)
    label = None
    if classifier.multilabel_:
        classifier, label, true = _of_one_label(classifier, target, true)
        target = classifier.classes_.tolist()[1]
    elif true is not None:
        true = column_or_1d(true)
    targets = _targets(classifier.classes_, target)
    # 3) The predictions, and their terms.
    outputs = fitted_attention(classifier).outputs(bags)
    by_class = outputs
    if len(classifier.classes_) == 2:  # the first has the decision 0
        by_class = np.pad(outputs, ((0, 0), (1, 0)))
    probability = probabilities(outputs)
    terms = _terms(_by_token(classifier, names, bags))
    # 4) The texts, and what predicts them when they are edited.
    texts = _texts(steps, documents)
    text_model = None
    if texts is not None:
        container = pd.Series if isinstance(documents, pd.Series) else list
        columns = targets.outputs if label is None else np.array([label])
        text_model = TextModel(estimator, steps[0], container, label, columns, targets.sign)
    likeness = None
    embeddings = vector_embeddings(classifier)
    if embeddings is not None:
        likeness = Likeness(names, embeddings, targets.outputs, targets.sign)
    return Explanation(
        classes=classifier.classes_.copy(),
        targets=classifier.classes_[targets.numbers],
        intercept=targets.select(classifier.intercept_),
        index=np.arange(len(bags)),
        indptr=terms.indptr,
        tokens=terms.tokens,
        weights=terms.weights,
        attention=terms.attention,
        values=targets.select(terms.values),
        contributions=targets.select(terms.contributions),
        own_contributions=targets.select_any(terms.own_contributions),
        vector_contributions=targets.select_any(terms.vector_contributions),
        cls_attention=terms.cls_attention,
        decision=targets.select(outputs),
        probability=probability[:, targets.numbers],
        predicted=classifier.classes_[by_class.argmax(axis=1)],
        predicted_probability=probability.max(axis=1),
        true=true,
        texts=texts,
        text_model=text_model,
        likeness=likeness,
    )


def _of_one_label(
    classifier: BaseAttentionClassifier, label: Any, true: NDArray[Any] | None
) -> tuple[BaseAttentionClassifier, int, NDArray[Any] | None]:
    """Return the classifier of one of several labels, the label's number and the true classes."""
    binary = of_label(classifier, label)
    number = classifier.classes_.tolist().index(label)
    if true is not None:
        has_label = true if true.ndim == 1 else true[:, number]
        true = binary.classes_[has_label.astype(np.intp)]
    return binary, number, true


@dataclass(frozen=True, eq=False)
class _Targets:
    """The explained classes, and the model's outputs that are their decisions."""

    numbers: Numbers  # (n_targets,), of the classes
    outputs: Numbers  # (n_targets,)
    # -1 if the first of two classes is explained, as the model's output is for the second; else 1.
    sign: float

    def select(self, by_output: Array) -> Array:
        """Return numbers for the explained classes (..., n_targets), of (..., n_outputs)."""
        return self.sign * by_output[..., self.outputs] + 0.0  # avoids negative zeros

    def select_any(self, by_output: Array | None) -> Array | None:
        """Return the same, None for None."""
        return None if by_output is None else self.select(by_output)


def _targets(classes: NDArray[Any], target: Any) -> _Targets:
    """Return the explained classes: the target, all of several, or the second of two."""
    labels = classes.tolist()
    if target is not None:
        is_target = [np.ndim(target) == 0 and label == target for label in labels]
        numbers = np.flatnonzero(is_target)
        if not len(numbers):
            raise ValueError(f"target must be None or one of the classes {labels}, got {target!r}")
    elif len(labels) > 2:
        numbers = np.arange(len(labels))
    else:
        numbers = np.array([1])
    if len(labels) > 2:
        return _Targets(numbers, outputs=numbers, sign=1.0)
    # Two classes have one output, the decision for the second.
    return _Targets(numbers, outputs=np.array([0]), sign=1.0 if numbers[0] else -1.0)


@dataclass(frozen=True, eq=False)
class _DocumentsByToken:
    """Documents by tokens, the units of an explanation, and the model of these tokens."""

    X: sp.csr_array  # (n_documents, n_tokens)
    fitted: Any  # a FittedAttention or FittedNetwork
    names: NDArray[np.object_]  # (n_tokens,)
    # Of words that have character n-grams, what a unit of attention adds without these, and of
    # tokens that have vectors, without these: (n_tokens, n_outputs).
    values_without_characters: Array | None
    values_without_vectors: Array | None


def _by_token(
    classifier: BaseAttentionClassifier, names: NDArray[np.object_], bags: Bags
) -> _DocumentsByToken:
    """Return documents by columns, or by words if words have character n-grams."""
    fitted = fitted_attention(classifier)
    embeddings = vector_embeddings(classifier)
    without_vectors = None if embeddings is None else embeddings.own
    if bags.tokens is None or bags.names is None:
        return _DocumentsByToken(bags.units, fitted, names, None, without_vectors)
    # 1) The model of words, each of which stands for its columns.
    words = fitted.of_units(bags.tokens)
    if without_vectors is not None:
        without_vectors = replace(fitted, values=without_vectors).of_units(bags.tokens).values
    # 2) What a word adds by its own column, which is its first. A word that is not in the
    # vocabulary has none.
    first = bags.tokens.indptr[:-1]
    columns = bags.tokens.indices[first]
    share = bags.tokens.data[first] * np.exp(fitted.scores[columns] - words.scores)
    share[names[columns] != bags.names] = np.nan
    own_values = share[:, None] * fitted.values[columns]
    return _DocumentsByToken(bags.units, words, bags.names, own_values, without_vectors)


@dataclass(frozen=True, eq=False)
class _Terms:
    """The terms of all documents' decisions: numbers of each token, perhaps for each output."""

    indptr: Numbers  # (n_documents + 1,): the tokens of a document are indptr[i]:indptr[i + 1]
    tokens: NDArray[np.object_]  # (n_entries,)
    weights: Array
    attention: Array
    values: Array  # (n_entries, n_outputs)
    contributions: Array
    own_contributions: Array | None  # without character n-grams
    vector_contributions: Array | None
    cls_attention: Array  # (n_documents,)


def _terms(by_token: _DocumentsByToken) -> _Terms:
    """Return the terms of the decisions for documents."""
    X = by_token.X
    fitted = by_token.fitted
    # 1) Attention and contributions; with one layer, these are attention times the tokens' values.
    attention = fitted.attention(X).data.astype(np.float64, copy=False)
    by_output = [output.data for output in fitted.contributions(X)]
    contributions = np.column_stack(by_output).astype(np.float64)
    shares = attention[:, None]
    values = fitted.values[X.indices]
    if fitted.n_layers > 1:
        unknown = np.full_like(contributions, np.nan)
        values = np.divide(contributions, shares, out=unknown, where=shares > 0)
    # 2) Parts of the contributions.
    own = None
    if by_token.values_without_characters is not None:
        own = shares * by_token.values_without_characters[X.indices]
    by_vector = None
    if by_token.values_without_vectors is not None:
        by_vector = shares * (values - by_token.values_without_vectors[X.indices])
    # 3) The attention of <cls>.
    cls_attention = np.zeros(X.shape[0])
    if fitted.cls_weight:
        cls_attention = (1.0 - row_sums(attention, X.indptr)).clip(min=0.0)
    return _Terms(
        indptr=X.indptr.astype(np.intp),
        tokens=by_token.names[X.indices],
        weights=X.data.astype(np.float64),
        attention=attention,
        values=values,
        contributions=contributions,
        own_contributions=own,
        vector_contributions=by_vector,
        cls_attention=cls_attention,
    )


def _texts(steps: list[Any], documents: Any) -> tuple[str, ...] | None:
    """Return documents as texts, (n_documents,), None if they are something else."""
    if not steps or len(getattr(documents, "shape", (1,))) != 1:
        return None
    texts = tuple(documents)
    return texts if all(isinstance(text, str) for text in texts) else None
