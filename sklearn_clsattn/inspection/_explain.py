"""Explain predictions: compute every term of every decision, and where its word stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .._classifier import ClsAttentionClassifier
from ..model.fitted import FittedAttention, most_probable, probabilities
from ..model.fitted_network import FittedNetwork
from .document_texts import document_texts
from .explanation import Explanation
from .removal import (
    decisions_without_by_removing,
    decisions_without_in_closed_form,
    row_sums,
)
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
    estimator : ClsAttentionClassifier or Pipeline
        A fitted classifier, a fitted Pipeline that ends in one, or a fitted search over either.
    documents : matrix of shape (n_documents, n_tokens), or sequence of length n_documents
        What the estimator takes: for a classifier the token matrix, for a Pipeline the raw texts
        (or rows of a data frame), one document or more.
    target : label, default=None
        The class whose decision to explain. None explains all classes; of two, the second, as
        ``decision_function`` does: what speaks for it speaks against the first.
    top : int, default=None
        Keep only this many tokens of each document, those that move a decision most, and put
        the others together. None keeps all.
    y_true : array-like of shape (n_documents,), default=None
        The true classes.
    token_names : sequence of str of length n_tokens, default=None
        Names of a matrix's columns. None takes them from the estimator, or numbers them.
    removal : bool, default=None
        Whether to compute the decision without each token. None does so for one layer of
        attention, where it has a closed form; with two layers, True predicts for each
        token without it, which takes as many predictions as there are tokens.
    places : bool, default=True
        Whether to keep raw texts and find where the tokens stand in them, to be shown by
        ``text()`` and ``html()``. False is faster.

    Returns
    -------
    explanation : Explanation
        Plain data, with ``frame()``, ``to_dict()``, ``text()`` and ``html()``.

    Raises
    ------
    TypeError
        If the estimator is or ends in something else.
    NotFittedError
        If it is not fitted.
    ValueError
        If documents are no such documents, or none; if the class is unknown; if a step of the
        Pipeline cannot be traced; if the model has an MLP, whose decision is no sum over tokens.

    See Also
    --------
    Explanation : What comes back.

    Notes
    -----
    A removed token leaves its share of attention to the others: what a token *contributes* and
    what its *removal* changes are different questions. Removal sets the classifier's count to 0;
    steps before it that look at the whole document, such as normalisation, do not see it.

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
    >>> terms = explanation.frame().set_index("token")["contribution"]
    >>> bool(terms["terrific"] > 0 > terms["long"])
    True
    >>> bool(abs(terms.sum() - model.decision_function(["terrific but long"])[0]) < 1e-12)
    True
    """
    traced = trace(estimator)
    classifier = traced.classifier
    explained = _explained(classifier.classes_, target)
    _check_top(top)
    documents = _checked_documents(documents, traced)
    names = _checked_names(token_names, traced)

    given = traced.transform(documents)
    # One look at the columns' names and widths, rather than one for each question.
    fitted, X = classifier._checked(given)
    decision = fitted.outputs(X)
    X, attention, terms = _terms(fitted, X)
    n_documents = X.shape[0]
    rows = np.repeat(np.arange(n_documents), np.diff(X.indptr))
    one_layer = _has_one_layer(classifier, X, attention, terms)
    cls_attention = _cls_attention(classifier, X, attention, rows, one_layer=one_layer)
    without = None
    if one_layer and removal is not False:
        without, unresolved = decisions_without_in_closed_form(
            attention, terms, cls_attention, classifier.intercept_, X.indptr
        )
        if len(unresolved):
            without[unresolved] = decisions_without_by_removing(classifier, X, unresolved)
    elif removal:
        without = decisions_without_by_removing(classifier, X, np.arange(X.nnz))
    values = _values(classifier, X, attention, terms, one_layer=one_layer)
    of_classes = decision[:, 0] if decision.shape[1] == 1 else decision
    probability = probabilities(of_classes)
    predicted = classifier.classes_[most_probable(of_classes)]
    if type(classifier) is not ClsAttentionClassifier:  # which may predict in another way
        probability, predicted = classifier.predict_proba(given), classifier.predict(given)

    kept = _strongest(terms[:, explained.outputs], rows, top)
    others = ~kept
    indptr = np.zeros(n_documents + 1, dtype=np.intp)
    np.cumsum(np.bincount(rows[kept], minlength=n_documents), out=indptr[1:])
    return Explanation(
        classes=classifier.classes_.copy(),
        targets=classifier.classes_[explained.classes],
        intercept=explained.of(classifier.intercept_),
        index=np.arange(n_documents),
        indptr=indptr,
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
    )


@dataclass(frozen=True)
class _Explained:
    """Which of the classifier's outputs are explained, and for which classes they speak."""

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


def _check_top(top: Any) -> None:
    number = isinstance(top, int | np.integer) and not isinstance(top, bool)
    if top is not None and not (number and top >= 0):
        raise ValueError(f"top must be None or a number of tokens, got {top!r}")


def _checked_documents(documents: Any, traced: Trace) -> Any:
    """Return documents that can be counted, or say what was expected instead."""
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
        usual = vectorizer.preprocessor is None and isinstance(vectorizer.analyzer, str)
        if usual and vectorizer.input == "content":
            for at, text in enumerate(documents):
                if not isinstance(text, str | bytes):
                    raise ValueError(f"expected texts, but document {at} is {text!r}")
    return documents


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


def _terms(fitted: FittedAttention | FittedNetwork, X: Any) -> tuple[sp.csr_array, Array, Array]:
    """Return counts, attention and contributions, with every token of a document once."""
    attention = fitted.attention(X)
    data = [X.data, attention.data, *(output.data for output in fitted.contributions(X))]
    # Tokens stored in parts, or with a count of 0, are put right in all of them alike.
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
    indptr = np.zeros(n_documents + 1, dtype=np.intp)
    width = max(n_tokens, 1)
    np.cumsum(np.bincount(keys // width, minlength=n_documents), out=indptr[1:])
    X = sp.csr_array((columns[:, 0], keys % width, indptr), shape=X.shape)
    return X, columns[:, 1], columns[:, 2:]


def _own_values(classifier: ClsAttentionClassifier, X: sp.csr_array) -> Array:
    values = classifier.token_values_
    return values[X.indices][:, None] if values.ndim == 1 else values.T[X.indices]


def _has_one_layer(
    classifier: ClsAttentionClassifier, X: sp.csr_array, attention: Array, terms: Array
) -> bool:
    """Whether contributions are attention times the tokens' own values.

    Seen in the numbers as well, because parameters may have been set after fitting.
    """
    own = attention[:, None] * _own_values(classifier, X)
    return classifier.n_layers == 1 and bool(np.allclose(terms, own, rtol=1e-9, atol=1e-300))


def _values(
    classifier: ClsAttentionClassifier,
    X: sp.csr_array,
    attention: Array,
    terms: Array,
    *,
    one_layer: bool,
) -> Array:
    if one_layer:
        return _own_values(classifier, X)
    shares = np.broadcast_to(attention[:, None], terms.shape)
    return np.divide(terms, shares, out=np.full_like(terms, np.nan), where=shares > 0)


def _cls_attention(
    classifier: ClsAttentionClassifier,
    X: sp.csr_array,
    attention: Array,
    rows: NDArray[np.intp],
    *,
    one_layer: bool,
) -> Array:
    """Return the share of attention that ``<cls>`` keeps in each document."""
    n_documents = X.shape[0]
    if not classifier.cls_weight_:
        return np.zeros(n_documents)
    of_tokens = row_sums(attention, rows, n_documents)
    shares = (1.0 - of_tokens).clip(min=0.0)
    if one_layer:
        # A small share from its odds against the token with the most attention: the difference
        # from 1 has lost its digits.
        small = np.flatnonzero(of_tokens > 0.5)
        most = np.lexsort((attention, rows))[X.indptr[small + 1] - 1]
        scores = classifier.attention_scores_[X.indices[most]]
        log_odds = np.log(classifier.cls_weight_ / X.data[most]) + classifier.cls_score_ - scores
        shares[small] = np.exp(log_odds + np.log(attention[most]))
    return shares


def _strongest(terms: Array, rows: NDArray[np.intp], top: int | None) -> NDArray[np.bool_]:
    """Return which entries are among the `top` of their document that move a decision most."""
    if top is None:
        return np.full(len(terms), True)
    order = np.lexsort((-np.abs(terms).max(axis=1), rows))
    starts = np.searchsorted(rows, rows)
    kept = np.full(len(terms), False)
    kept[order] = np.arange(len(terms)) - starts[order] < top
    return kept
