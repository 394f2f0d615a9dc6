"""Explain predictions: compute all terms of each decision, and the positions of its words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .._base import checked_documents, fitted_attention, of_label, vector_embeddings
from .._core.fitted import FittedAttention
from .._matrices import canonical, row_sums
from .._types import Array
from .._validation import label_array
from ..text._context_vectorizer import ContextVectorizer, bags_of
from ..text._tokens import look_up
from ..text._units import units_of
from .edited_text import EditableDocument, TextModel
from .explanation import Explanation
from .feature_origins import Columns, FeatureOrigins, Source, TextInput, feature_origins
from .terms import DocumentText, ExplainedModel, Likeness
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
    # 1) The documents as they are, as the classifier's input, and by tokens.
    documents = _as_sequence(documents)
    origins = feature_origins(estimator, documents)
    true = None if y_true is None else label_array(y_true).copy()
    text_model = TextModel(estimator)
    if origins.classifier.multilabel_:
        origins, text_model, true = _of_one_label(estimator, origins, target, true)
        target = str(origins.classifier.classes_[1])
    classifier = origins.classifier
    targets = _targets(classifier.classes_, target)
    documents = _checked_documents(documents, origins)
    classifier_input = origins.transform(documents)
    by_token = _by_token(origins, documents, classifier_input)
    X = by_token.X
    fitted = by_token.fitted
    n_documents = X.shape[0]
    # 2) The terms of the decisions.
    attention = fitted.attention(X).data.astype(np.float64, copy=False)
    by_output = [output.data for output in fitted.contributions(X)]
    contributions = np.column_stack(by_output).astype(np.float64)
    decision = fitted.outputs(X)
    probability = classifier.predict_proba(classifier_input)
    _check_true(true, n_documents)
    X = sp.csr_array((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
    cls_attention = _cls_attention(fitted, X, attention)
    own_contributions = _partial_contributions(by_token.own_values, X, attention, targets)
    vector_contributions = _partial_contributions(by_token.vector_values, X, attention, targets)
    # 3) With one layer, contributions are attention times the tokens' own values.
    model = None
    decision_without = None
    if fitted.n_layers == 1:
        likeness = _likeness(origins, targets)
        names = by_token.columns.names
        model = ExplainedModel(names, fitted, targets.outputs, targets.sign, likeness)
        values = fitted.values[X.indices]
        if not origins.sources:
            without = _decisions_without(fitted, X, attention, contributions, cls_attention)
            decision_without = targets.select(without)
    else:
        values = _effective_values(attention, contributions)
    # 4) The texts.
    editable: tuple[EditableDocument | None, ...] = (None,) * n_documents
    texts: tuple[tuple[DocumentText, ...], ...] = ((),) * n_documents
    if places:
        editable = _editable_documents(origins, documents)
        texts = document_texts(origins, by_token.columns, documents, editable, X)
    return Explanation(
        classes=classifier.classes_.copy(),
        targets=classifier.classes_[targets.numbers],
        intercept=targets.select(classifier.intercept_),
        index=np.arange(n_documents),
        indptr=X.indptr.astype(np.intp),
        columns=X.indices.astype(np.intp),
        tokens=by_token.columns.names[X.indices],
        weights=X.data,
        attention=attention,
        values=targets.select(values),
        contributions=targets.select(contributions),
        own_contributions=own_contributions,
        vector_contributions=vector_contributions,
        decision_without_count=decision_without,
        cls_attention=cls_attention,
        decision=targets.select(decision),
        probability=probability[:, targets.numbers],
        predicted=classifier.predict(classifier_input),
        predicted_probability=probability.max(axis=1),
        true=true,
        texts=texts,
        model=model,
        documents=editable,
        text_model=text_model if any(editable) else None,
    )


def _of_one_label(
    estimator: Any, origins: FeatureOrigins, label: Any, true: NDArray[Any] | None
) -> tuple[FeatureOrigins, TextModel, NDArray[Any] | None]:
    """Return the origins, the text model and the true classes for one of several labels."""
    labels = origins.classifier.classes_
    classifier = of_label(origins.classifier, label)
    text_model = TextModel(estimator, labels.tolist().index(label))
    if true is not None:
        has_label = true if true.ndim == 1 else true[:, labels == label].ravel()
        true = classifier.classes_[has_label.astype(np.intp)]
    return replace(origins, classifier=classifier), text_model, true


@dataclass(frozen=True, eq=False)
class _Targets:
    """The explained classes, and the model's outputs that are their decisions."""

    numbers: NDArray[np.intp]  # (n_targets,), of the classes
    outputs: NDArray[np.intp]  # (n_targets,)
    # -1 if the first of two classes is explained, as the model's output is for the second; else 1.
    sign: float

    def select(self, by_output: Array) -> Array:
        """Return numbers for the explained classes (..., n_targets), of (..., n_outputs)."""
        return self.sign * by_output[..., self.outputs] + 0.0  # avoids negative zeros


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

    X: Any  # (n_documents, n_tokens)
    fitted: Any  # a FittedAttention or FittedNetwork
    columns: Columns
    own_values: Array | None  # (n_tokens, n_outputs), without character n-grams
    vector_values: Array | None  # (n_tokens, n_outputs), what of the values comes from vectors


def _by_token(origins: FeatureOrigins, documents: Any, classifier_input: Any) -> _DocumentsByToken:
    """Return documents by columns, or by words if words have character n-grams."""
    classifier = origins.classifier
    fitted = fitted_attention(classifier)
    embeddings = vector_embeddings(classifier)
    n_outputs = len(classifier.intercept_)
    # 1) The parts of the values from vectors become further outputs.
    if embeddings is not None:
        from_vectors = fitted.values - embeddings.own
        fitted = replace(fitted, values=np.hstack([fitted.values, from_vectors]))
    # 2) The documents by tokens.
    X = canonical(checked_documents(classifier, classifier_input))
    columns = origins.columns
    own_values = None
    has_characters = any(_has_characters(source.vectorizer) for source in origins.sources)
    if has_characters and type(fitted) is FittedAttention and fitted.entry_scale is None:
        X, fitted, columns, own_values = _by_units(origins, documents, X, fitted)
    # 3) These outputs are taken out again.
    vector_values = None
    if embeddings is not None:
        vector_values = fitted.values[:, n_outputs:]
        fitted = replace(fitted, values=fitted.values[:, :n_outputs])
        own_values = None if own_values is None else own_values[:, :n_outputs]
    return _DocumentsByToken(X, fitted, columns, own_values, vector_values)


def _likeness(origins: FeatureOrigins, targets: _Targets) -> Likeness | None:
    """Return the vectors of tokens, None if there are none."""
    embeddings = vector_embeddings(origins.classifier)
    if embeddings is None:
        return None
    names = origins.columns.names[embeddings.tokens]
    without_vector = targets.select(embeddings.own[embeddings.tokens])
    return Likeness(names, embeddings.vectors, without_vector)


def _editable_documents(
    origins: FeatureOrigins, documents: Any
) -> tuple[EditableDocument | None, ...]:
    """Return the documents as they can be edited, None for those that have no texts."""
    shape = getattr(documents, "shape", None) or (len(documents),)
    without_texts = (None,) * shape[0]
    inputs = {getattr(source.vectorizer, "input", "content") for source in origins.sources}
    if not origins.transformers or inputs - {"content"}:  # or texts in files
        return without_texts
    if len(shape) == 1:
        return _editable_texts(origins, documents)
    # 1) Every text must be a column of the table, or some words could not be removed.
    columns: list[Any] = []
    for source in origins.sources:
        if not _has_column(documents, source.input):
            return without_texts
        if source.input.column not in columns:
            columns.append(source.input.column)
    if not columns:
        return without_texts
    # 2) A table of one row for each document.
    table: Any = getattr(documents, "iloc", None)
    if table is None:
        table = np.asarray(documents, dtype=object)
    editable: list[EditableDocument | None] = []
    for at in range(shape[0]):
        row = table[[at]]
        texts = tuple(_cell(row, column) for column in columns)
        is_complete = all(isinstance(text, str) for text in texts)
        editable.append(EditableDocument(texts, tuple(columns), row) if is_complete else None)
    return tuple(editable)


def _editable_texts(origins: FeatureOrigins, documents: Any) -> tuple[EditableDocument | None, ...]:
    """Return texts as editable documents, None for those that are no texts."""
    decode: Any = str
    if origins.sources:
        decode = getattr(origins.sources[0].vectorizer, "decode", str)
    container = documents[:0] if isinstance(documents, pd.Series | np.ndarray) else None
    editable: list[EditableDocument | None] = []
    for document in documents:
        if isinstance(document, str | bytes):
            editable.append(EditableDocument((decode(document),), container=container))
        else:
            editable.append(None)
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
    columns = origins.columns
    is_unit = np.ones(X.shape[1], dtype=bool)  # whether a column is a unit itself
    document_units = []  # of each vectorizer, (n_documents, n_units)
    unit_entries = []  # (n_units, n_columns)
    unit_columns = []  # the units' names
    # 1) The units of each vectorizer with characters.
    for number, source in enumerate(origins.sources):
        chosen = np.flatnonzero(columns.sources == number)
        if not (len(chosen) and _has_characters(source.vectorizer)):
            continue
        counts, table, names = _units_of(source, documents)
        # As objects: pandas' own type of texts has no lone surrogates.
        terms = pd.Index(source.terms, dtype=object)
        positions = terms.get_indexer(pd.Index(columns.terms[chosen], dtype=object))
        table = table[:, positions]
        part = X[:, chosen]
        largest_change = abs(counts @ table - part).max()
        if largest_change > 1e-6 * abs(part).max():  # made by a step after the vectorizer
            continue
        is_filled = np.diff(table.indptr) > 0
        indptr = np.append(0, table.indptr[1:][is_filled])
        shape = (np.count_nonzero(is_filled), X.shape[1])
        entries = sp.csr_array((table.data, chosen[table.indices], indptr), shape=shape)
        first_columns = columns[entries.indices[entries.indptr[:-1]]]
        document_units.append(counts[:, is_filled])
        unit_entries.append(entries)
        unit_columns.append(first_columns.with_terms(names[is_filled]))
        is_unit[chosen] = False
    # 2) All other columns.
    others = np.flatnonzero(is_unit)
    identity = sp.eye_array(len(is_unit), format="csr")[others]
    X_units = sp.hstack([*document_units, X[:, others]], format="csr")
    entries = sp.vstack([*unit_entries, identity], format="csr")
    units = Columns.joined([*unit_columns, columns[others]])
    unit_model = fitted.of_units(entries)
    # 3) The first entry of a unit is its own column, if it has one.
    first_entries = entries.indptr[:-1]
    first = entries.indices[first_entries]
    weights = entries.data[first_entries]
    share = np.exp(fitted.scores[first] - unit_model.scores) * weights
    share[columns.terms[first] != units.terms] = np.nan
    own_values = share[:, None] * fitted.values[first]
    return X_units, unit_model, units, own_values


def _has_characters(vectorizer: Any) -> bool:
    return isinstance(vectorizer, ContextVectorizer) and bool(vectorizer.character_vocabulary_)


def _units_of(source: Source, documents: Any) -> tuple[Any, Any, NDArray[np.object_]]:
    """Return a vectorizer's units in documents, their columns and names, the vocabulary first."""
    bags = bags_of(source.vectorizer, source.input.read(documents))
    units = units_of(source.vectorizer)
    n_known = len(units.names)
    numbers = look_up(bags.units.tolist(), units.vocabulary)
    # Units that are not in the vocabulary get the numbers after it.
    others = np.flatnonzero(numbers < 0)
    numbers[others] = n_known + np.arange(len(others))
    left = bags.left
    shape = (left.shape[0], n_known + len(others))
    counts = sp.csr_array((left.data, numbers[left.indices], left.indptr), shape=shape)
    table = sp.vstack([units.table, bags.right[others]], format="csr")
    return counts, table, np.concatenate([units.names, bags.units[others]])


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
    # A vectorizer without a step that selects a column reads the documents themselves.
    reads_texts = not reads_matrix and not all(source.input.steps for source in origins.sources)
    if reads_texts and len(shape) > 1:
        raise ValueError(
            f"expected raw texts, got {type(documents).__name__} of shape {shape}: to explain a "
            "document-term matrix, pass the classifier, pipeline[-1]"
        )
    return documents


def _check_true(true: NDArray[Any] | None, n_documents: int) -> None:
    """Raise ValueError unless there is one true class for each document, or none for any."""
    if true is not None and true.shape != (n_documents,):
        raise ValueError(
            f"expected one label in y_true for each of {n_documents} documents, got an array of "
            f"shape {true.shape}"
        )


def _partial_contributions(
    values: Array | None, X: sp.csr_array, attention: Array, targets: _Targets
) -> Array | None:
    """Return attention times a part of the tokens' values, (n_entries, n_targets), if any."""
    if values is None:
        return None
    return targets.select(attention[:, None] * values[X.indices])


def _effective_values(attention: Array, contributions: Array) -> Array:
    """Return contributions over attention, (n_entries, n_outputs), NaN without attention."""
    shares = np.broadcast_to(attention[:, None], contributions.shape)
    unknown = np.full_like(contributions, np.nan)
    return np.divide(contributions, shares, out=unknown, where=shares > 0)


def _cls_attention(fitted: Any, X: sp.csr_array, attention: Array) -> Array:
    """Return the share of attention that ``<cls>`` keeps in each document."""
    if not fitted.cls_weight:
        return np.zeros(X.shape[0])
    token_attention = row_sums(attention, X.indptr)
    cls_attention = (1.0 - token_attention).clip(min=0.0)
    if type(fitted) is FittedAttention:
        # A small share is computed from its odds against the token with the most attention,
        # because the difference from 1 loses its digits.
        small = np.flatnonzero(token_attention > 0.5)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        by_row = np.lexsort((attention, rows))
        strongest = by_row[X.indptr[small + 1] - 1]  # the last of each row
        weights = fitted.token_weights(X.data[strongest])
        log_odds = np.log(fitted.cls_weight / weights) + fitted.cls_score
        log_odds = log_odds - fitted.scores[X.indices[strongest]]
        cls_attention[small] = np.exp(log_odds + np.log(attention[strongest]))
    return cls_attention


def _decisions_without(
    fitted: Any, X: sp.csr_array, attention: Array, contributions: Array, cls_attention: Array
) -> Array:
    r"""Return the decisions (n_entries, n_outputs) without each token of its document.

    The shares q of the others and of ``<cls>`` (of value 0) are rescaled to sum to 1:

    .. math:: F_k^{(-s)} = \beta_k + \frac{\sum_{j \ne s} q_j b_{jk}}{\sum_{j \ne s} q_j}.
    """
    lengths = np.diff(X.indptr)
    documents = np.repeat(np.arange(len(lengths)), lengths)
    is_alone = np.repeat(lengths == 1, lengths)
    # 1) The sums over the others. If one token of a document has more than half, the others are
    # summed, because subtraction would cancel digits.
    is_dominant = (attention > 0.5)[:, None]
    entries = np.column_stack([attention, contributions])
    sums_of_others = row_sums(np.where(is_dominant, 0.0, entries), X.indptr)
    sums_of_others[:, 0] += cls_attention
    sums = sums_of_others + row_sums(np.where(is_dominant, entries, 0.0), X.indptr)
    rest = np.where(is_dominant, sums_of_others[documents], sums[documents] - entries)
    # 2) Their mean value.
    shares = rest[:, 0]
    is_lost = shares < _SMALLEST_SHARE
    shares[is_lost] = 1.0
    without = rest[:, 1:] / shares[:, None]
    without[is_alone] = 0.0
    without += fitted.intercept
    # 3) If the ratio underflows, the decision is predicted.
    lost = np.flatnonzero(is_lost & ~is_alone)
    if len(lost):
        changed = X[documents[lost]]
        places_in_rows = lost - X.indptr[documents[lost]]
        changed.data[changed.indptr[:-1] + places_in_rows] = 0.0
        changed.eliminate_zeros()
        without[lost] = fitted.outputs(changed)
    return without
