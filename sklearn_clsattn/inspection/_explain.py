"""Explain predictions: compute every term of every decision, and the positions of its words."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils import check_scalar

from .._base import BaseAttentionClassifier, checked_documents, fitted_attention
from .._core.fitted import FittedAttention, FittedModel, most_probable, probabilities
from .._documents import canonical
from .explanation import Explanation
from .feature_origins import FeatureOrigins, feature_origins
from .removal import decisions_without_by_removing, decisions_without_in_closed_form, row_sums
from .terms import ExplainedModel
from .token_positions import document_texts

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

    The model's decision is a sum over the document's tokens, so that nothing is approximated. What
    a token *contributes* and what its *removal* changes are different, as the attention share of a
    removed token is distributed over the others.

    Parameters
    ----------
    estimator : classifier of this package, or Pipeline
        A fitted classifier, a fitted Pipeline that ends in one, or a fitted search over either;
        also frozen, with a threshold of its own (``TunedThresholdClassifierCV``), or calibrated by
        one sigmoid or temperature (``CalibratedClassifierCV(ensemble=False)``), whose calibrated
        log-odds are explained. Not one with an MLP, whose decision is no sum over tokens.
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
        Whether to compute the decision without each token, its count being 0 for the classifier.
        None does so for one layer of attention, where it has a closed form; with two layers, True
        takes as many predictions as there are tokens.
    places : bool, default=True
        Whether to keep raw texts and find the positions of the tokens in them, to be shown by
        ``to_text()`` and ``to_html()``. False is faster.

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
    origins = feature_origins(estimator, wrapped=True)
    classifier, outcome = origins.classifier, origins.outcome
    outputs, classes, sign = _explained(classifier.classes_, target)
    if top is not None:
        check_scalar(top, "top", Integral, min_val=0)
    documents = _checked_documents(documents, origins)
    names = origins.columns.names
    if token_names is not None:
        names = np.array([str(name) for name in token_names], dtype=object)
        if len(names) != len(origins.columns):
            raise ValueError(
                f"expected {len(origins.columns)} token_names, one a column of the classifier, got "
                f"{len(names)}"
            )

    given = origins.transform(documents)
    fitted = fitted_attention(classifier)
    X = canonical(checked_documents(classifier, given))
    decision, intercept = outcome.of(fitted.outputs(X)), outcome.of(classifier.intercept_)
    attention = fitted.attention(X).data.astype(np.float64, copy=False)
    terms = np.column_stack([output.data for output in fitted.contributions(X)]).astype(np.float64)
    terms *= outcome.scale
    X = sp.csr_array((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
    n_documents = X.shape[0]
    true = None if y_true is None else np.array(y_true)
    if true is not None and true.shape != (n_documents,):
        raise ValueError(
            f"expected one label in y_true for each of {n_documents} documents, got an array of "
            f"shape {true.shape}"
        )
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

    def of(by_output: Array) -> Array:
        """Return the numbers of the classes explained."""
        return sign * by_output[..., outputs] + 0.0  # so that no zero is negative

    listed = _strongest(terms[:, outputs], rows, top)
    others = ~listed
    return Explanation(
        classes=classifier.classes_.copy(),
        targets=classifier.classes_[classes],
        intercept=of(intercept),
        index=np.arange(n_documents),
        indptr=np.searchsorted(rows[listed], np.arange(n_documents + 1)),
        columns=X.indices[listed].astype(np.intp),
        tokens=names[X.indices[listed]],
        counts=X.data[listed],
        attention=attention[listed],
        values=of(values[listed]),
        contributions=of(terms[listed]),
        decision_without=None if without is None else of(without[listed]),
        cls_attention=cls_attention,
        others_count=np.bincount(rows[others], minlength=n_documents),
        others_attention=row_sums(attention[others], rows[others], n_documents),
        others_contributions=of(row_sums(terms[others], rows[others], n_documents)),
        decision=of(decision),
        probability=probability[:, classes],
        predicted=predicted,
        predicted_probability=probability.max(axis=1),
        true=true,
        texts=document_texts(origins, documents, X, listed) if places else ((),) * n_documents,
        model=ExplainedModel(names, fitted, outputs, sign * outcome.scale) if one_layer else None,
        threshold=sign * outcome.threshold + 0.0,
    )


def _explained(
    classes: NDArray[Any], target: Any
) -> tuple[NDArray[np.intp], NDArray[np.intp], float]:
    """Return which outputs are explained, the numbers of their classes, and the sign of outputs."""
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


def _checked_documents(documents: Any, origins: FeatureOrigins) -> Any:
    """Return documents with a length, or raise ValueError for unexpected input."""
    if isinstance(documents, str | bytes):
        raise ValueError("expected a sequence of documents, got one text: pass [text]")
    if not hasattr(documents, "shape") and not hasattr(documents, "__len__"):
        documents = list(documents)
    shape = getattr(documents, "shape", None) or (len(documents),)
    if not shape[0]:
        raise ValueError("there are no documents to explain: expected one or more")
    first = origins.transformers[0] if origins.transformers else origins.classifier
    if hasattr(first, "n_features_in_"):
        rows = getattr(documents, "iloc", documents)
        if len(shape) == 1 and isinstance(rows[0], str | bytes):
            advice = "pass them in the layout in which the Pipeline was fitted"
            if first is origins.classifier:
                advice = "pass the Pipeline that has the vectorizer, or what it makes of them"
            raise ValueError(
                f"expected a matrix or data frame of {first.n_features_in_} columns for "
                f"{type(first).__name__}, got texts: {advice}"
            )
        return documents
    for vectorizer, text_input in origins.sources:
        if text_input.steps:  # it reads what the steps make of the documents
            continue
        if len(shape) > 1:
            raise ValueError(
                f"expected raw texts for the Pipeline's {type(vectorizer).__name__}, got "
                f"{type(documents).__name__} of shape {shape}: to explain a token matrix, "
                "pass the classifier, pipeline[-1]"
            )
        if isinstance(vectorizer, CountVectorizer):
            if vectorizer.preprocessor is not None or callable(vectorizer.analyzer):
                continue  # which may read anything
            kinds: Any = (str, bytes) if vectorizer.input == "content" else object
        else:
            kinds = str
        for at, text in enumerate(documents):
            if not isinstance(text, kinds):
                raise ValueError(f"expected texts, but document {at} is {text!r}")
    return documents


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
    listed = np.full(len(terms), top is None)
    if top is not None:
        order = np.lexsort((-np.abs(terms).max(axis=1), rows))
        listed[order] = np.arange(len(terms)) - np.searchsorted(rows, rows) < top
    return listed
