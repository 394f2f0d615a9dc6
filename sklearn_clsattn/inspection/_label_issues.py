"""Training documents whose labels may be wrong, by their leave-one-out margins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length

from .._base import class_offsets, prepared
from .._classifier import ClsAttentionClassifier
from .._targets import Targets
from .._types import Array
from .._validation import checked_groups, checked_weights, targets_of_batch, targets_of_labels
from .decision_sums import AttentionSum
from .inner_classifiers import members_of

if TYPE_CHECKING:
    from ..training.documents import Documents


def label_issues(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    top: int | None = None,
) -> pd.DataFrame:
    r"""Rank training documents by how strongly the other documents contradict their labels.

    Parameters
    ----------
    estimator : TextClassifier, ClsAttentionClassifier, or Pipeline
        The fitted classifier, or a fitted Pipeline (or search) that ends in one.
    X : matrix of shape (n_documents, n_tokens), or sequence of length n_documents
        All training documents, exactly as in the fit.
    y : array-like of shape (n_documents,) or (n_documents, n_labels)
        Their labels.
    sample_weight : array-like of shape (n_documents,), default=None
        The weights used in the fit.
    groups : array-like of shape (n_documents,), default=None
        The groups used in the fit: documents of one group are not evidence for each other. Other
        groups than those are not noticed.
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
    :math:`F_{ik} + (p_{ik} - [y_i = k]) J_{ik} H_{-i}^{-1} J_{ik}^\top`, with the derivative J of
    the output and the curvature H of the other documents, of which some 1,000 stand for all if
    there are more. The importance of tokens and the part from token vectors stay those of the fit.
    The step is too long for documents of tokens whose scores only they have raised: trust the order
    of the first documents more than their margins.

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
    from ..training.documents import Documents

    if np.any(getattr(estimator, "teacher_weights_", 0.0)):
        raise ValueError("The model had a teacher, after whose answers labels cannot be judged.")
    # 1) The documents, as the classifier reads them, and their names.
    steps, classifier = _classifier_inside(estimator)
    index = None
    if isinstance(y, pd.Series | pd.DataFrame):
        index = y.index
    elif isinstance(X, pd.Series | pd.DataFrame):
        index = X.index
    bags = AttentionSum(steps, classifier).read(X)
    bags.trusted = getattr(classifier, "_trusted_tokens", None)
    # 2) The outputs without each document, compared with its labels, or with its only one.
    has_several_labels = classifier.multilabel_
    given = y if has_several_labels else targets_of_labels(y)
    targets = targets_of_batch(given, None, classifier.classes_, multilabel=has_several_labels)
    check_consistent_length(bags.units, targets.values)
    weights = checked_weights(bags.units, sample_weight)
    documents = Documents(bags, targets, weights, given_groups=checked_groups(bags.units, groups))
    outputs = _left_out(classifier, documents)
    compare = _issues_of_labels if has_several_labels else _issues_of_classes
    # 3) The most suspicious first.
    return _ordered(compare(targets, outputs), top, index)


def _issues_of_classes(targets: Targets, outputs: Array) -> dict[str, Any]:
    """Return the columns of issues, with a row per document."""
    classes = targets.classes
    codes = targets.values
    documents = np.arange(len(codes))
    output_of_label = outputs[documents, codes]
    rivals = outputs.copy()
    rivals[documents, codes] = -np.inf
    probabilities = softmax(outputs, axis=1)
    return {
        "document": documents,
        "label": classes[codes],
        "suggested": classes[outputs.argmax(axis=1)],
        "margin": output_of_label - rivals.max(axis=1),
        "probability": probabilities[documents, codes],
    }


def _issues_of_labels(targets: Targets, outputs: Array) -> dict[str, Any]:
    """Return the columns of issues, with a row per document and label."""
    has_label = targets.values > 0
    document, label = np.indices(outputs.shape).reshape(2, -1)
    margin = np.where(has_label, outputs, -outputs).ravel()
    return {
        "document": document,
        "label": targets.classes[label],
        "given": has_label.ravel(),
        "margin": margin,
        "probability": expit(margin),
    }


def _ordered(issues: dict[str, Any], top: int | None, index: pd.Index | None) -> pd.DataFrame:
    """Return the rows with the least margins, with the documents' names from an index."""
    order = np.argsort(issues["margin"], kind="stable")[:top]
    names = None if index is None else index[issues["document"][order]]
    columns = {name: column[order] for name, column in issues.items()}
    return pd.DataFrame(columns, index=names)


def _left_out(classifier: ClsAttentionClassifier, documents: Documents) -> Array:
    """Return each document's outputs (n, n_classes) after a Newton step without it."""
    import torch

    from ..training.leverages import leverages
    from ..training.regularization_path import AttentionPath

    # 1) The documents and the objective, as in the fit.
    model = classifier._model()
    matrix = documents.bags.matrix()
    targets = documents.targets
    documents, _ = prepared(
        documents,
        classifier.class_weight,
        damps_counts=model.entry_scale is not None,
        entry_scale=model.entry_scale,
        weighs_documents=False,
    )
    importance = documents.statistics.importance
    if not np.allclose(importance, classifier.token_importance_, rtol=1e-5, atol=1e-8):
        raise ValueError(
            "The model's token importances are not those of X and y: pass exactly the documents, "
            "labels and weights that it was fitted on."
        )
    path = AttentionPath(
        documents,
        np.float64,
        "cpu",
        attention_C=classifier.attention_C_,
        attend_cls=classifier.attend_cls,
        token_scaling=classifier.token_scaling,
    )
    objective = path.set_C(classifier.C_)
    # 2) The outputs. Values are less their prior mean, which adds the evidence of other documents.
    values = model.values if path.mean is None else path.mean.subtracted_from(model).values
    attention = model.attention(matrix)
    means = np.asarray(attention @ values)
    if objective.loss.evidence is not None:
        mass = documents.bags.dot(np.exp(model.scores))
        if model.cls_weight:
            mass += model.cls_weight * np.exp(model.cls_score)
        evidence = objective.loss.evidence.cpu().numpy()
        divisors = np.where(mass > 0, mass, 1.0)
        means += evidence / divisors[:, None]
    offsets = np.zeros(1)
    if not targets.multilabel:
        class_sizes = documents.class_sizes()
        offsets = class_offsets(classifier.class_weight, targets.classes, class_sizes)
    outputs = means + model.intercept - offsets
    # 3) The gradient of the loss in the outputs, and its curvature in each.
    output_loss = objective.loss.output_loss
    fitted = torch.from_numpy(outputs)
    gradient = output_loss(fitted)[1].numpy()
    probabilities = output_loss.probabilities(fitted).numpy()
    curvature = probabilities * (1 - probabilities) * documents.weights[:, None]
    # 4) The Newton step without each document.
    value_scales = objective.value_scales.cpu().numpy().astype(np.float64)
    penalties = [objective.total_weight * block.penalty for block in objective.blocks[:3]]
    cls_attention = np.zeros(len(means))
    if model.cls_weight:
        cls_attention = (1.0 - attention.sum(axis=1)).clip(min=0.0)
    outputs += gradient * leverages(
        attention, cls_attention, means, values, value_scales, curvature, penalties
    )
    outputs += offsets
    is_of_two = outputs.shape[1] < targets.n_classes
    return np.pad(outputs, ((0, 0), (1, 0))) if is_of_two else outputs  # the first has 0


def _classifier_inside(estimator: Any) -> tuple[list[Any], ClsAttentionClassifier]:
    """Return the steps before the only classifier inside a fitted estimator, and the classifier."""
    inside = members_of(estimator)
    member = inside.members[0]
    if not inside.decides or not isinstance(member.classifier, ClsAttentionClassifier):
        inner = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        raise TypeError(
            "expected a TextClassifier or ClsAttentionClassifier, or a Pipeline that ends in one, "
            f"got {type(inner).__name__}"
        )
    return member.steps, member.classifier
