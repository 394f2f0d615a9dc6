"""Explain predictions: compute all terms of each decision, and the positions of its words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .._base import checked_documents, fitted_attention, of_label, vector_embeddings
from .._core.fitted import FittedAttention
from .._documents import canonical, row_sums
from .._types import Array
from .._validation import label_array
from ..text._context_vectorizer import ContextVectorizer, bags_of
from ..text._units import units_of
from .edited_text import EditableDocument, TextModel
from .explanation import Explanation
from .feature_origins import Columns, FeatureOrigins, Source, TextInput, feature_origins
from .terms import ExplainedModel, Likeness
from .token_positions import document_texts

# Smaller shares of attention lose digits to underflow.
_SMALLEST_SHARE = 1e-200


def explain(
    estimator: Any,
    documents: Any,
    *,
    target: Any = None,
    y_true: ArrayLike | None = None,
    places: bool = True,
) -> Explanation:
    """Explain predictions exactly: what each token of each document adds to the decision.

    The model's decision is a sum over the document's tokens, so nothing is approximated. The
    *contribution* of a token differs from the effect of its *removal*: the attention of a removed
    token goes to the others, and a text without a word is another text, which is predicted again.

    Parameters
    ----------
    estimator : classifier of this package, or Pipeline
        A fitted classifier, a fitted Pipeline that ends in one, or a fitted search over either. A
        classifier with an MLP is not supported, because its decision is not a sum over tokens.
    documents : matrix of shape (n_documents, n_tokens), or sequence of length n_documents
        The estimator's input, at least one document: for a classifier, the document-term matrix (a
        data frame names its tokens); for a Pipeline, the raw texts (or rows of a data frame).
    target : label, default=None
        The class whose decision to explain. By default all classes are explained, and ``to_text``
        and similar methods compare two. For two classes, this is the decision for the second, as in
        ``decision_function``. For several labels, `target` must be one of them; the classes are
        then "not" the label and the label.
    y_true : array-like of shape (n_documents,), default=None
        The true classes. For several labels, 1 for documents with the target, or all labels,
        (n_documents, n_labels).
    places : bool, default=True
        Whether to keep raw texts and find the positions of their tokens, which ``to_text()`` and
        ``to_html()`` show, and without which words cannot be removed. False is faster.

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
    documents = _as_sequence(documents)
    origins = feature_origins(estimator, documents)
    classifier, true = origins.classifier, None if y_true is None else label_array(y_true).copy()
    text_model = TextModel(estimator)
    if classifier.multilabel_:
        several, classifier = classifier, of_label(classifier, target)
        text_model = TextModel(estimator, several.classes_.tolist().index(target))
        origins = replace(origins, classifier=classifier)
        if true is not None:
            has_label = true if true.ndim == 1 else true[:, several.classes_ == target].ravel()
            true = classifier.classes_[has_label.astype(np.intp)]
        target = str(classifier.classes_[1])
    outputs, classes, sign = _explained(classifier.classes_, target)
    documents = _checked_documents(documents, origins)
    given = origins.transform(documents)
    fitted, columns, own = fitted_attention(classifier), origins.columns, None
    embeddings, n_outputs = vector_embeddings(classifier), len(classifier.intercept_)
    if embeddings is not None:  # also the parts of the values that come from vectors
        parts = np.hstack([fitted.values, fitted.values - embeddings.own])
        fitted = replace(fitted, values=parts)
    X = canonical(checked_documents(classifier, given))
    has_characters = any(_has_characters(source.vectorizer) for source in origins.sources)
    if has_characters and type(fitted) is FittedAttention and fitted.entry_scale is None:
        X, fitted, columns, own = _by_units(origins, documents, X, fitted)
    shared = fitted.values[:, n_outputs:]
    if embeddings is not None:
        fitted = replace(fitted, values=fitted.values[:, :n_outputs])
        own = None if own is None else own[:, :n_outputs]
    attention = fitted.attention(X).data.astype(np.float64, copy=False)
    terms = np.column_stack([output.data for output in fitted.contributions(X)]).astype(np.float64)
    decision, probability = fitted.outputs(X), classifier.predict_proba(given)
    X = sp.csr_array((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
    n_documents = X.shape[0]
    if true is not None and true.shape != (n_documents,):
        raise ValueError(
            f"expected one label in y_true for each of {n_documents} documents, got an array of "
            f"shape {true.shape}"
        )
    cls_attention = _cls_attention(fitted, X, attention)

    def of(by_output: Array) -> Array:
        """Return the numbers for the explained classes."""
        return sign * by_output[..., outputs] + 0.0  # avoids negative zeros

    editable = _editable_documents(origins, documents) if places else (None,) * n_documents
    without = model = likeness = by_vectors = None
    if embeddings is not None:
        names, told = origins.columns.names[embeddings.tokens], embeddings.own[embeddings.tokens]
        likeness = Likeness(names, embeddings.vectors, of(told))
        by_vectors = of(attention[:, None] * shared[X.indices])
    if fitted.n_layers == 1:  # contributions are attention times the tokens' own values
        if not origins.sources:
            without = of(_decisions_without(fitted, X, attention, terms, cls_attention))
        model = ExplainedModel(columns.names, fitted, outputs, sign, likeness)
        values = fitted.values[X.indices]
    else:
        shares = np.broadcast_to(attention[:, None], terms.shape)
        values = np.divide(terms, shares, out=np.full_like(terms, np.nan), where=shares > 0)
    return Explanation(
        classes=classifier.classes_.copy(),
        targets=classifier.classes_[classes],
        intercept=of(classifier.intercept_),
        index=np.arange(n_documents),
        indptr=X.indptr.astype(np.intp),
        columns=X.indices.astype(np.intp),
        tokens=columns.names[X.indices],
        weights=X.data,
        attention=attention,
        values=of(values),
        contributions=of(terms),
        own_contributions=None if own is None else of(attention[:, None] * own[X.indices]),
        vector_contributions=by_vectors,
        decision_without_count=without,
        cls_attention=cls_attention,
        decision=of(decision),
        probability=probability[:, classes],
        predicted=classifier.predict(given),
        predicted_probability=probability.max(axis=1),
        true=true,
        texts=(
            document_texts(origins, columns, documents, editable, X)
            if places
            else ((),) * n_documents
        ),
        model=model,
        documents=editable,
        text_model=text_model if any(editable) else None,
    )


def _editable_documents(
    origins: FeatureOrigins, documents: Any
) -> tuple[EditableDocument | None, ...]:
    """Return the documents as they can be edited, None for those that have no texts."""
    sources = origins.sources
    shape = getattr(documents, "shape", None) or (len(documents),)
    if not origins.transformers or any(
        getattr(source.vectorizer, "input", "content") != "content" for source in sources
    ):
        return (None,) * shape[0]
    if len(shape) == 1:
        decode = getattr(sources[0].vectorizer, "decode", str) if sources else str
        container = documents[:0] if isinstance(documents, pd.Series | np.ndarray) else None
        return tuple(
            EditableDocument((decode(document),), container=container)
            if isinstance(document, str | bytes)
            else None
            for document in documents
        )
    # Every text must be a column of the table, or some words could not be removed.
    if not sources or not all(_has_column(documents, source.input) for source in sources):
        return (None,) * shape[0]
    columns = list(dict.fromkeys(source.input.column for source in sources))
    if hasattr(documents, "iloc"):
        rows = [documents.iloc[[at]] for at in range(shape[0])]
    else:
        table = np.asarray(documents, dtype=object)
        rows = [table[[at]] for at in range(shape[0])]
    editable: list[EditableDocument | None] = []
    for row in rows:
        texts = tuple(_cell(row, column) for column in columns)
        is_complete = all(isinstance(text, str) for text in texts)
        editable.append(EditableDocument(texts, tuple(columns), row) if is_complete else None)
    return tuple(editable)


def _has_column(table: Any, text: TextInput) -> bool:
    """Return whether a text is a column of a table; steps before may have made it of others."""
    if isinstance(text.column, str):
        return text.column in getattr(table, "columns", ())
    return text.column is not None and text.is_editable


def _cell(row: Any, column: Any) -> Any:
    """Return the only entry of a column of a table of one row."""
    if not hasattr(row, "iloc"):
        return row[0, column]
    return row[column].iloc[0] if isinstance(column, str) else row.iloc[0, column]


def _by_units(
    origins: FeatureOrigins, documents: Any, X: Any, fitted: FittedAttention
) -> tuple[sp.csr_array, FittedAttention, Columns, Array]:
    """Return documents by units, such as words with their character n-grams, and the units' model.

    Also return the units' names, and what a unit's own column adds if the unit has all attention,
    (n_units, n_outputs), NaN without own column. Columns of other vectorizers, and columns that a
    step changed, are units themselves.
    """
    columns, is_own = origins.columns, np.ones(X.shape[1], dtype=bool)
    lefts, rights, of_units = [], [], []
    for number, source in enumerate(origins.sources):
        chosen = np.flatnonzero(columns.sources == number)
        if not (len(chosen) and _has_characters(source.vectorizer)):
            continue
        left, table, names = _units_of(source, documents)
        table = table[:, pd.Index(source.terms).get_indexer(pd.Index(columns.terms[chosen]))]
        part = X[:, chosen]
        if abs(left @ table - part).max() <= 1e-6 * abs(part).max():
            filled = np.diff(table.indptr) > 0
            entries = table.data, chosen[table.indices], np.append(0, table.indptr[1:][filled])
            right = sp.csr_array(entries, shape=(np.count_nonzero(filled), X.shape[1]))
            lefts.append(left[:, filled])
            rights.append(right)
            first = right.indices[right.indptr[:-1]]
            of_units.append(columns[first].of_terms(names[filled]))
            is_own[chosen] = False
    others = np.flatnonzero(is_own)
    X = sp.hstack([*lefts, X[:, others]], format="csr")
    identity = sp.eye_array(len(is_own), format="csr")[others]
    right = sp.vstack([*rights, identity], format="csr")
    units = Columns.joined([*of_units, columns[others]])
    by_unit = fitted.of_units(right)
    # The first entry of a unit is its own column, if it has one.
    first, weights = right.indices[right.indptr[:-1]], right.data[right.indptr[:-1]]
    share = np.exp(fitted.scores[first] - by_unit.scores) * weights
    share[columns.terms[first] != units.terms] = np.nan
    return X, by_unit, units, share[:, None] * fitted.values[first]


def _has_characters(vectorizer: Any) -> bool:
    return isinstance(vectorizer, ContextVectorizer) and bool(vectorizer.character_vocabulary_)


def _units_of(source: Source, documents: Any) -> tuple[Any, Any, NDArray[np.object_]]:
    """Return a vectorizer's units in documents, their columns and names, the vocabulary first."""
    bags = bags_of(source.vectorizer, source.input.of(documents))
    left, names, units = bags.left, bags.units, units_of(source.vectorizer)
    numbers = np.array([units.vocabulary.get(name, -1) for name in names.tolist()], dtype=np.int32)
    others = np.flatnonzero(numbers < 0)
    numbers[others] = len(units.names) + np.arange(len(others))
    shape = left.shape[0], len(units.names) + len(others)
    left = sp.csr_array((left.data, numbers[left.indices], left.indptr), shape=shape)
    table = sp.vstack([units.table, bags.right[others]], format="csr")
    return left, table, np.concatenate([units.names, names[others]])


def _explained(
    classes: NDArray[Any], target: Any
) -> tuple[NDArray[np.intp], NDArray[np.intp], float]:
    """Return the explained outputs, the numbers of their classes, and the sign of outputs."""
    labels = classes.tolist()
    if target is None:
        numbers = np.arange(len(labels)) if len(labels) > 2 else np.array([1])
    else:
        numbers = np.flatnonzero([np.ndim(target) == 0 and label == target for label in labels])
        if not len(numbers):
            raise ValueError(f"target must be None or one of the classes {labels}, got {target!r}")
    if len(labels) > 2:
        return numbers, numbers, 1.0
    return np.array([0]), numbers, 1.0 if numbers[0] else -1.0


def _as_sequence(documents: Any) -> Any:
    """Return documents as a sequence with a length."""
    if isinstance(documents, str | bytes):
        raise ValueError("expected a sequence of documents, got one text: pass [text]")
    if not hasattr(documents, "shape") and not hasattr(documents, "__len__"):
        if not hasattr(documents, "__iter__"):
            raise ValueError(f"expected a sequence of documents, got {documents!r}: pass a list")
        documents = list(documents)
    return documents


def _checked_documents(documents: Any, origins: FeatureOrigins) -> Any:
    """Return documents, or raise ValueError for unexpected input."""
    shape = getattr(documents, "shape", None) or (len(documents),)
    if not shape[0]:
        raise ValueError("there are no documents to explain: pass at least one")
    first = origins.transformers[0] if origins.transformers else origins.classifier
    reads_matrix = hasattr(first, "n_features_in_")
    row = getattr(documents, "iloc", documents)[0] if len(shape) == 1 else None
    if reads_matrix and isinstance(row, str | bytes):
        raise ValueError(
            f"expected a matrix or data frame of {first.n_features_in_} columns for "
            f"{type(first).__name__}, got texts: pass a matrix, or the Pipeline that includes the "
            "vectorizer"
        )
    if not reads_matrix and len(shape) > 1 and any(not one.input.steps for one in origins.sources):
        raise ValueError(
            f"expected raw texts, got {type(documents).__name__} of shape {shape}: to explain a "
            "document-term matrix, pass the classifier, pipeline[-1]"
        )
    return documents


def _cls_attention(fitted: FittedAttention, X: sp.csr_array, attention: Array) -> Array:
    """Return the share of attention that ``<cls>`` keeps in each document."""
    if not fitted.cls_weight:
        return np.zeros(X.shape[0])
    of_tokens = row_sums(attention, X.indptr)
    shares = (1.0 - of_tokens).clip(min=0.0)
    if type(fitted) is FittedAttention:
        # A small share is computed from its odds against the token with the most attention,
        # because the difference from 1 loses its digits.
        small = np.flatnonzero(of_tokens > 0.5)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        most = np.lexsort((attention, rows))[X.indptr[small + 1] - 1]
        weights = fitted.token_weights(X.data[most])
        log_odds = np.log(fitted.cls_weight / weights) + fitted.cls_score
        shares[small] = np.exp(log_odds - fitted.scores[X.indices[most]] + np.log(attention[most]))
    return shares


def _decisions_without(
    fitted: FittedAttention, X: sp.csr_array, attention: Array, terms: Array, cls_attention: Array
) -> Array:
    r"""Return the decisions (n_entries, n_outputs) without each token of its document.

    The shares q of the others and of ``<cls>`` (of value 0) are rescaled to sum to 1:

    .. math:: F_k^{(-s)} = \beta_k + \frac{\sum_{j \ne s} q_j b_{jk}}{\sum_{j \ne s} q_j}.
    """
    lengths = np.diff(X.indptr)
    documents, alone = np.repeat(np.arange(len(lengths)), lengths), np.repeat(lengths == 1, lengths)
    # If one token of a document has more than half, the others are summed, because subtraction
    # would cancel digits.
    dominant = attention > 0.5
    both = np.column_stack([attention, terms])
    few = row_sums(np.where(dominant[:, None], 0.0, both), X.indptr)
    few[:, 0] += cls_attention
    every = few + row_sums(np.where(dominant[:, None], both, 0.0), X.indptr)
    left = np.where(dominant[:, None], few[documents], every[documents] - both)
    others, others_term = left[:, 0], left[:, 1:]
    unknown = np.flatnonzero((others < _SMALLEST_SHARE) & ~alone)
    others[others < _SMALLEST_SHARE] = 1.0
    without = others_term / others[:, None]
    without[alone] = 0.0
    without += fitted.intercept
    if len(unknown):  # if the ratio underflows, the decision is predicted
        changed = X[documents[unknown]]
        changed.data[changed.indptr[:-1] + unknown - X.indptr[documents[unknown]]] = 0.0
        changed.eliminate_zeros()
        without[unknown] = fitted.outputs(changed)
    return without
