"""Explain predictions: compute every term of every decision, and the positions of its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from .._base import BaseAttentionClassifier
from .._core.fitted import FittedAttention, FittedModel, most_probable, probabilities
from ..text._context_vectorizer import ContextVectorizer
from .document_texts import document_texts
from .explanation import Explanation
from .removal import decisions_without_by_removing, decisions_without_in_closed_form, row_sums
from .terms import ExplainedModel
from .trace import Trace, trace

Array = NDArray[np.float64]


def explain(
    estimator: Any,
    documents: Any,
    *,
    target: Any = None,
    top: int | None = None,
    y_true: ArrayLike | None = None,
    token_names: Sequence[str] | NDArray[Any] | None = None,
    removal: bool | None = None,
    places: bool = True,
) -> Explanation:
    """Explain predictions exactly: what every token of every document adds to the decision.

    The model's decision is a sum over the document's tokens, so that nothing is approximated.

    Parameters
    ----------
    estimator : classifier of this package, or Pipeline
        A fitted classifier, a fitted Pipeline that ends in one, or a fitted search over either;
        also frozen, with a threshold of its own (``TunedThresholdClassifierCV``), or calibrated by
        one sigmoid or temperature (``CalibratedClassifierCV(ensemble=False)``), whose calibrated
        log-odds are explained.
    documents : matrix of shape (n_documents, n_tokens), or sequence of length n_documents
        The estimator's input: for a classifier the token matrix, for a Pipeline the raw texts (or
        rows of a data frame), one document or more.
    target : label, default=None
        The class whose decision to explain. None explains all classes, of which the readers of the
        explanation compare two; of two, the second, as ``decision_function`` does: what speaks for
        it speaks against the first.
    top : int, default=None
        Keep only this many tokens of each document, those that change a decision most, and sum up
        the others. None keeps all.
    y_true : array-like of shape (n_documents,), default=None
        The true classes.
    token_names : sequence of str of length n_tokens, default=None
        Names of a matrix's columns. None takes them from the estimator, or numbers them.
    removal : bool, default=None
        Whether to compute the decision without each token. None does so for one layer of
        attention, where it has a closed form; with two layers, True predicts for each
        token without it, which takes as many predictions as there are tokens.
    places : bool, default=True
        Whether to keep raw texts and find the positions of the tokens in them, to be shown by
        ``to_text()`` and ``to_html()``. False is faster.

    Returns
    -------
    explanation : Explanation
        Plain data, with ``to_frame()``, ``to_dict()``, ``to_text()`` and ``to_html()``.

    Raises
    ------
    TypeError
        If the estimator is or ends in something else, also if it combines several classifiers or
        calibrates so that no sum is left (the message says what to pass), or `top` is no integer.
    NotFittedError
        If it is not fitted.
    ValueError
        If documents are not the estimator's input, or none; if the class is unknown; if a step of
        the Pipeline cannot be traced; if the model has an MLP, whose decision is not a sum over
        tokens.

    See Also
    --------
    Explanation : The result.

    Notes
    -----
    The attention share of a removed token is distributed over the others: what a token
    *contributes* and what its *removal* changes are different. Removal sets the classifier's count
    to 0; the steps before it, such as normalisation of the whole document, are not repeated.

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
    traced = trace(estimator, wrapped=True)
    classifier = traced.classifier
    explained = _explained(classifier.classes_, target)
    if top is not None:
        check_scalar(top, "top", Integral, min_val=0)
    documents = _checked_documents(documents, traced)
    names = _checked_names(token_names, traced)

    given = traced.transform(documents)
    # The columns' names and widths are checked once.
    fitted, X = classifier._checked(given)
    outcome = traced.outcome
    decision, intercept = outcome.of(fitted.outputs(X)), outcome.of(classifier.intercept_)
    X, attention, terms = _terms(fitted, X)
    terms *= outcome.scale
    n_documents = X.shape[0]
    rows = np.repeat(np.arange(n_documents), np.diff(X.indptr))
    one_layer = fitted.n_layers == 1  # contributions are attention times the tokens' own values
    cls_attention = _cls_attention(fitted, X, attention, rows)
    without = None
    if one_layer and removal is not False:
        without, unresolved = decisions_without_in_closed_form(
            attention, terms, cls_attention, intercept, X.indptr
        )
        if len(unresolved):
            removed = decisions_without_by_removing(classifier, X, unresolved)
            without[unresolved] = outcome.of(removed)
    elif removal:
        without = outcome.of(decisions_without_by_removing(classifier, X, np.arange(X.nnz)))
    if one_layer:
        values = outcome.scale * np.atleast_2d(classifier.token_values_).T[X.indices]
    else:
        shares = np.broadcast_to(attention[:, None], terms.shape)
        values = np.divide(terms, shares, out=np.full_like(terms, np.nan), where=shares > 0)
    of_classes = decision[:, 0] if decision.shape[1] == 1 else decision
    probability = probabilities(of_classes)
    predicted = classifier.classes_[most_probable(of_classes)]
    if outcome.wrapped:
        probability, predicted = estimator.predict_proba(documents), estimator.predict(documents)
    elif any(  # a subclass may predict in another way
        getattr(type(classifier), method) is not getattr(BaseAttentionClassifier, method)
        for method in ("predict", "predict_proba")
    ):
        probability, predicted = classifier.predict_proba(given), classifier.predict(given)

    kept = _strongest(terms[:, explained.outputs], rows, top)
    others = ~kept
    return Explanation(
        classes=classifier.classes_.copy(),
        targets=classifier.classes_[explained.classes],
        intercept=explained.of(intercept),
        index=np.arange(n_documents),
        indptr=np.searchsorted(rows[kept], np.arange(n_documents + 1)),
        columns=X.indices[kept].astype(np.intp),
        tokens=names[X.indices[kept]],
        counts=X.data[kept],
        attention=attention[kept],
        values=explained.of(values[kept]),
        contributions=explained.of(terms[kept]),
        decision_without=None if without is None else explained.of(without[kept]),
        cls_attention=cls_attention,
        others_count=np.bincount(rows[others], minlength=n_documents),
        others_attention=row_sums(attention[others], rows[others], n_documents),
        others_contributions=explained.of(row_sums(terms[others], rows[others], n_documents)),
        decision=explained.of(decision),
        probability=probability[:, explained.classes],
        predicted=predicted,
        predicted_probability=probability.max(axis=1),
        true=_checked_labels(y_true, n_documents),
        texts=document_texts(traced, documents, X, kept) if places else ((),) * n_documents,
        model=ExplainedModel(names, fitted, explained.outputs, explained.sign * outcome.scale)
        if one_layer
        else None,
        threshold=explained.sign * outcome.threshold + 0.0,
    )


@dataclass(frozen=True)
class _Explained:
    """Which of the classifier's outputs are explained, and the classes that they are for."""

    outputs: NDArray[np.intp]
    classes: NDArray[np.intp]
    sign: float

    def of(self, by_output: Array) -> Array:
        # 0.0 is added so that no zero is negative.
        return self.sign * by_output[..., self.outputs] + 0.0


def _explained(classes: NDArray[Any], target: Any) -> _Explained:
    labels = classes.tolist()
    if target is None:
        if len(labels) == 2:
            return _Explained(np.array([0]), np.array([1]), 1.0)
        return _Explained(np.arange(len(labels)), np.arange(len(labels)), 1.0)
    places = [k for k, label in enumerate(labels) if np.ndim(target) == 0 and label == target]
    if not places:
        raise ValueError(f"target must be None or one of the classes {labels}, got {target!r}")
    if len(labels) == 2:
        return _Explained(np.array([0]), np.array(places), 1.0 if places == [1] else -1.0)
    return _Explained(np.array(places), np.array(places), 1.0)


def _checked_documents(documents: Any, traced: Trace) -> Any:
    """Return documents with a length, or raise ValueError for unexpected input."""
    if isinstance(documents, str | bytes):
        raise ValueError("expected a sequence of documents, got one text: pass [text]")
    if not hasattr(documents, "shape") and not hasattr(documents, "__len__"):
        documents = list(documents)
    n_documents = documents.shape[0] if hasattr(documents, "shape") else len(documents)
    if not n_documents:
        raise ValueError("there are no documents to explain: expected one or more")
    tabular = len(getattr(documents, "shape", (0,))) > 1
    first = traced.transformers[0] if traced.transformers else traced.classifier
    if hasattr(first, "n_features_in_"):
        if not tabular and isinstance(_first(documents), str | bytes):
            advice = (
                "pass the Pipeline that has the vectorizer, or what the vectorizer makes of them"
                if first is traced.classifier
                else "pass them in the layout in which the Pipeline was fitted"
            )
            raise ValueError(
                f"expected a matrix or data frame of {first.n_features_in_} columns for "
                f"{type(first).__name__}, got texts: {advice}"
            )
        return documents
    directly = [vectorizer for vectorizer, reads in traced.sources if not reads.steps]
    if directly and tabular:
        raise ValueError(
            f"expected raw texts for the Pipeline's {type(directly[0]).__name__}, got "
            f"{type(documents).__name__} of shape {documents.shape}: to explain a token matrix, "
            "pass the classifier, pipeline[-1]"
        )
    for vectorizer in directly:
        kinds = _text_types(vectorizer)
        for at, text in enumerate(documents):
            if not isinstance(text, kinds):
                raise ValueError(f"expected texts, but document {at} is {text!r}")
    return documents


def _text_types(vectorizer: Any) -> type | tuple[type, ...]:
    """Return the types of documents that a vectorizer reads."""
    if isinstance(vectorizer, ContextVectorizer):
        return str
    usual = vectorizer.preprocessor is None and isinstance(vectorizer.analyzer, str)
    return (str, bytes) if usual and vectorizer.input == "content" else object


def _first(documents: Any) -> Any:
    return documents.iloc[0] if hasattr(documents, "iloc") else documents[0]


def _checked_names(token_names: Any, traced: Trace) -> NDArray[np.object_]:
    names: NDArray[np.object_] = traced.columns.names
    if token_names is not None:
        names = np.empty(len(token_names), dtype=object)
        names[:] = [str(name) for name in token_names]
        if len(names) != len(traced.columns):
            raise ValueError(
                f"expected {len(traced.columns)} token_names, one a column of the classifier, got "
                f"{len(names)}"
            )
    return names


def _checked_labels(y_true: Any, n_documents: int) -> NDArray[Any] | None:
    if y_true is None:
        return None
    labels = np.array(y_true)
    if labels.shape != (n_documents,):
        raise ValueError(
            f"expected one label in y_true for each of {n_documents} documents, got an array of "
            f"shape {labels.shape}"
        )
    return labels


def _terms(fitted: FittedModel, X: Any) -> tuple[sp.csr_array, Array, Array]:
    """Return counts (n_documents, n_tokens), attention and contributions, every token once."""
    attention = fitted.attention(X)
    data = [X.data, attention.data, *(output.data for output in fitted.contributions(X))]
    # Duplicate and zero entries are removed from all of them alike.
    columns = np.column_stack(data).astype(np.float64, copy=False)
    n_documents, n_tokens = X.shape
    rows = np.repeat(np.arange(n_documents, dtype=np.int64), np.diff(X.indptr))
    keys = rows * n_tokens + X.indices
    if (keys[1:] <= keys[:-1]).any():
        keys, place = np.unique(keys, return_inverse=True)
        columns = row_sums(columns, place, len(keys))
    stored = columns[:, 0] > 0
    if not stored.all():
        columns, keys = columns[stored], keys[stored]
    width = max(n_tokens, 1)
    indptr = np.searchsorted(keys // width, np.arange(n_documents + 1))
    X = sp.csr_array((columns[:, 0], keys % width, indptr), shape=X.shape)
    return X, columns[:, 1], columns[:, 2:]


def _cls_attention(
    fitted: FittedModel, X: sp.csr_array, attention: Array, rows: NDArray[np.intp]
) -> Array:
    """Return the share of attention that ``<cls>`` keeps in each document."""
    n_documents = X.shape[0]
    if not fitted.cls_weight:
        return np.zeros(n_documents)
    of_tokens = row_sums(attention, rows, n_documents)
    shares = (1.0 - of_tokens).clip(min=0.0)
    if isinstance(fitted, FittedAttention):
        # A small share is computed from its odds against the token with the most attention, as
        # the difference from 1 has lost its digits.
        small = np.flatnonzero(of_tokens > 0.5)
        most = np.lexsort((attention, rows))[X.indptr[small + 1] - 1]
        scores = fitted.scores[X.indices[most]]
        weights = fitted.token_weights(X.data[most])
        log_odds = np.log(fitted.cls_weight / weights) + fitted.cls_score - scores
        shares[small] = np.exp(log_odds + np.log(attention[most]))
    return shares


def _strongest(terms: Array, rows: NDArray[np.intp], top: int | None) -> NDArray[np.bool_]:
    """Return which entries are among the `top` of their document with the largest terms."""
    if top is None:
        return np.full(len(terms), True)
    order = np.lexsort((-np.abs(terms).max(axis=1), rows))
    starts = np.searchsorted(rows, rows)
    kept = np.full(len(terms), False)
    kept[order] = np.arange(len(terms)) - starts[order] < top
    return kept
