"""Training documents whose labels may be wrong, by their leave-one-out margins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.utils.validation import check_consistent_length

from .._base import checked_documents, documents_in_memory, fitted_attention
from .._classifier import ClsAttentionClassifier
from .._sklearn import _check_sample_weight
from .._targets import Targets
from .._types import Array
from .._validation import encode_labels, encode_targets, label_array, plain_labels
from .feature_origins import split_pipeline


def label_issues(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    top: int | None = None,
) -> pd.DataFrame:
    r"""Rank training documents by how strongly the other documents contradict their labels.

    Parameters
    ----------
    estimator : ClsAttentionClassifier, or Pipeline
        The fitted classifier, or a fitted Pipeline (or search) that ends in one.
    X : matrix of shape (n_documents, n_tokens), or sequence of length n_documents
        All training documents, exactly as in the fit.
    y : array-like of shape (n_documents,) or (n_documents, n_labels)
        Their labels.
    sample_weight : array-like of shape (n_documents,), default=None
        The weights used in the fit.
    top : int, default=None
        Number of documents to return; by default all.

    Returns
    -------
    issues : DataFrame
        One row per document, the most suspicious first, with the index of `y` (or else of `X`) if
        that is a Series or data frame: `document` (its position), `label`, the
        most probable class without it (`suggested`), the `margin` of its label over the best other
        class in log-odds, and the `probability` of its label. With several labels, one row per
        document and label: whether the document has it (`given`), `margin` and `probability`.

    Notes
    -----
    The outputs without document i are approximated by one Newton step from the fit,
    :math:`F_{ik} + (p_{ik} - [y_i = k]) J_{ik} D^{-1} J_{ik}^\top`, with the derivative J of its
    outputs and the diagonal D of the curvature. The step is too long if tokens occur together, so
    trust the ranking, not the number of negative margins. The part from token vectors is constant.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.inspection import label_issues
    >>> X, y = make_token_classification(400, random_state=0)
    >>> y[7] = 1 - y[7]  # a wrong label
    >>> issues = label_issues(ClsAttentionClassifier().fit(X, y), X, y, top=40)
    >>> 7 in issues["document"].tolist()
    True
    """
    steps, classifier = split_pipeline(estimator)
    if not isinstance(classifier, ClsAttentionClassifier):
        raise TypeError(
            "expected a ClsAttentionClassifier, or a Pipeline that ends in one, got "
            f"{type(classifier).__name__}"
        )
    given = [one.index for one in (y, X) if isinstance(one, pd.Series | pd.DataFrame)]
    index = given[0] if given else None
    for _, step in steps:
        X = step.transform(X)
    X = checked_documents(classifier, X)
    labels = label_array(y) if classifier.multilabel_ else np.asarray(plain_labels(y))
    check_consistent_length(X, labels)
    if classifier.multilabel_:
        outputs = _left_out(classifier, X, encode_targets(y, labels), sample_weight)
        document, label = np.indices(outputs.shape).reshape(2, -1)
        has_label = labels != 0
        margin = np.where(has_label, outputs, -outputs).ravel()
        rows: dict[str, Any] = {
            "document": document,
            "label": classifier.classes_[label],
            "given": has_label.ravel(),
            "margin": margin,
            "probability": expit(margin),
        }
        return _ordered(rows, top, index)
    codes = encode_labels(labels, classifier.classes_)
    if (codes < 0).any():
        raise ValueError(
            f"label {labels[codes < 0].tolist()[0]!r} in y is not a class of the model, which has "
            f"{classifier.classes_.tolist()}"
        )
    present = np.unique(codes)
    if len(present) < 2:
        raise ValueError(
            f"all labels in y are {classifier.classes_[present].tolist()[0]!r}: label_issues "
            "compares each document with all others, so pass all training documents, of all "
            f"classes {classifier.classes_.tolist()}, with the labels that the model was fitted on"
        )
    outputs = _left_out(classifier, X, Targets(classifier.classes_, codes), sample_weight)
    own = np.arange(len(labels)), codes
    others = outputs.copy()
    others[own] = -np.inf
    issues = {
        "document": own[0],
        "label": labels,
        "suggested": classifier.classes_[outputs.argmax(axis=1)],
        "margin": outputs[own] - others.max(axis=1),
        "probability": softmax(outputs, axis=1)[own],
    }
    return _ordered(issues, top, index)


def _ordered(issues: dict[str, Any], top: int | None, index: pd.Index | None) -> pd.DataFrame:
    """Return the rows with the least margins, with the documents' names from an index."""
    order = np.argsort(issues["margin"], kind="stable")[:top]
    names = None if index is None else index[issues["document"][order]]
    return pd.DataFrame({name: column[order] for name, column in issues.items()}, index=names)


def _left_out(
    classifier: ClsAttentionClassifier, X: Any, targets: Targets, sample_weight: Any
) -> Array:
    """Return each document's outputs (n, n_classes) after a Newton step without it."""
    from .._core.path import AttentionPath

    model: Any = fitted_attention(classifier)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    scale = getattr(classifier, "entry_scale_", None)
    documents, _ = documents_in_memory(classifier, X, targets, weights, scale)
    statistics, weights = documents.statistics, documents.weights[:, None]
    importance = statistics.importance
    if not np.allclose(importance, classifier.token_importance_, rtol=1e-5, atol=1e-8):
        raise ValueError(
            "X and y are not the training data, whose token importances differ: pass exactly the "
            "documents, labels and weights that the model was fitted on"
        )
    path = AttentionPath(
        documents,
        np.float64,
        "cpu",
        attention_C=classifier.attention_C_,
        attend_cls=classifier.attend_cls,
        scaling=classifier.token_scaling,
    )
    objective = path.set_C(classifier.C_)
    # Token values minus their prior mean, (V, K); the mean adds the evidence of other documents.
    values = model.values if path.mean is None else path.mean.subtracted_from(model).values
    n_outputs = values.shape[1]
    shares = sp.csr_array(model.attention(X))
    means = np.asarray(shares @ values)
    (shard,) = objective.loss.shards.chunks
    if shard.loss.evidence is not None:
        mass = np.asarray(documents.X @ np.exp(model.scores), dtype=np.float64)
        if model.cls_weight:
            mass += model.cls_weight * np.exp(model.cls_score)
        evidence = shard.loss.evidence.cpu().numpy()
        means += evidence / np.where(mass > 0, mass, 1.0)[:, None]
    outputs = means + model.intercept
    if targets.multilabel:
        chances = expit(outputs)
    else:
        if n_outputs == 1:  # the first of two classes has 0
            outputs = np.pad(outputs, ((0, 0), (1, 0)))
        chances = softmax(outputs, axis=1)
    residuals = (chances - targets.by_class(np.ones(len(targets))))[:, -n_outputs:]
    own = (chances * (1 - chances) * weights)[:, -n_outputs:]
    # The diagonal: values, scores, the score of <cls>, intercepts.
    on_scores, on_values, on_cls = (
        objective.total_weight * block.penalty for block in objective.blocks[:3]
    )
    squares, scales = shares.power(2), objective.value_scales.cpu().numpy().astype(np.float64)
    of_own, of_slopes, of_both = (squares.T @ (own * means**power) for power in (0, 1, 2))
    by_value = on_values + scales**2 * of_own
    curvature = values**2 * of_own - 2 * values * of_slopes + of_both
    by_score = on_scores + curvature.sum(axis=1, keepdims=True)
    cls_shares = np.zeros(len(means))
    if model.cls_weight:
        cls_shares = (1.0 - shares.sum(axis=1)).clip(min=0.0)
    slopes = cls_shares[:, None] * means
    leverages = (
        squares @ (scales**2 / by_value + values**2 / by_score)
        - 2 * means * (squares @ (values / by_score))
        + means**2 * (squares @ (1.0 / by_score))
        + slopes**2 / (on_cls + (own * slopes**2).sum())
        + 1.0 / own.sum(axis=0).clip(min=np.finfo(float).tiny)
    )
    outputs[:, -n_outputs:] += residuals * weights * leverages
    return outputs
