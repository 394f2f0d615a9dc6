r"""Which training documents speak for and against a prediction.

With the attention held fixed, values of the least penalised loss are sums over training documents:
with residuals :math:`r_{ik} = p_{ik} - [y_i = k]`, document weights :math:`\omega_i`, units
:math:`\sigma`, the penalty :math:`\lambda` and the prior mean :math:`\bar b`,

.. math:: b_{sk} = \bar b_{sk} - \frac{\sigma_{sk}^2}{\lambda} \sum_i \omega_i r_{ik} q_{is} .

A fit stops before that; so values and intercepts are solved for first.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from .._core.fitted import log_losses
from ._label_issues import Fit, fit_of

Array = NDArray[np.float64]

_GRADIENT = 1e-8  # in nats per document
_MAX_ITER = 500


def training_documents(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    documents: Any,
    *,
    target: Any = None,
    top: int = 5,
    sample_weight: ArrayLike | None = None,
) -> pd.DataFrame:
    """Say which training documents speak for and against predictions: decisions as sums of them.

    Parameters
    ----------
    estimator : ClsAttentionClassifier, or Pipeline
        The fitted classifier, or a fitted Pipeline (or search) that ends in one.
    X : matrix of shape (n_training, n_tokens), or sequence of length n_training
        The training documents, all of them, as the estimator was fitted on them.
    y : array-like of shape (n_training,)
        Their labels.
    documents : matrix of shape (n_documents, n_tokens), or sequence of length n_documents
        The documents to explain.
    target : label, default=None
        The class whose decision to explain; None for the predicted one of each document.
    top : int, default=5
        How many training documents for it, and how many against it, to list.
    sample_weight : array-like of shape (n_training,), default=None
        The weights with which it was fitted.

    Returns
    -------
    terms : DataFrame
        A row for each term of each document's decision, which the terms sum to: `document`,
        `target`, `kind`, `training` (a position in X, -1 for none), its `label`, and what it
        `adds`. `kind` is "training", "others" (all other training documents together), "prior"
        (the prior mean of the values, of which the share of one document is not known) or
        "intercept".
        ``terms.attrs`` has the check: "gradient", the largest that is left, and "change", by how
        much the decisions differ at most from the model's own, which stopped before.

    Raises
    ------
    TypeError
        If the estimator is or ends in something else, or `top` is no integer.
    ValueError
        If the training documents, labels or weights are not those of the fit, or the class is
        unknown.

    See Also
    --------
    label_issues : Training labels that the other documents contradict.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.inspection import training_documents
    >>> X, y = make_token_classification(200, random_state=0)
    >>> model = ClsAttentionClassifier(tol=1e-6).fit(X, y)
    >>> terms = training_documents(model, X, y, X[:1], target=1, top=2)
    >>> terms["kind"].tolist()
    ['training', 'training', 'training', 'training', 'others', 'prior', 'intercept']
    >>> bool(abs(terms["adds"].sum() - model.decision_function(X[:1])[0]) < 0.1)
    True
    """
    check_scalar(top, "top", Integral, min_val=0)
    fit, steps, classifier = fit_of(estimator, X, y, sample_weight)
    for _, step in steps:
        documents = step.transform(documents)
    fitted, given = classifier._checked(documents)
    own = fitted.outputs(given)
    classes = classifier.classes_.tolist()
    if target is not None and target not in classes:
        raise ValueError(f"target must be None or one of the classes {classes}, got {target!r}")
    values, intercept, gradient = _solved(fit)
    shares = fitted.attention(given)
    prior = shares @ (fitted.values - fit.values)
    outputs = shares @ (values + fitted.values - fit.values) + intercept
    weights = -fit.weights[:, None] * fit.residuals(fit.evidence + fit.shares @ values + intercept)
    weights /= fit.penalties[1]
    labels = np.asarray(y).tolist()
    rows: list[tuple[Any, ...]] = []
    for i in range(outputs.shape[0]):
        k, sign, name = _explained(outputs[i], classes, target)
        attention = shares[[i]].toarray()[0] * fit.scales[:, k] ** 2
        added = sign * weights[:, k] * (fit.shares @ attention)
        order = np.argsort(-added, kind="stable")
        best = [at for at in order[:top] if added[at] > 0]
        worst = [at for at in order[::-1][:top] if added[at] < 0]
        named = np.array(best + worst, dtype=np.intp)
        rows += [(i, name, "training", at, labels[at], added[at]) for at in named.tolist()]
        rows.append((i, name, "others", -1, None, added.sum() - added[named].sum()))
        rows.append((i, name, "prior", -1, None, sign * prior[i, k]))
        rows.append((i, name, "intercept", -1, None, sign * intercept[k]))
    columns = ["document", "target", "kind", "training", "label", "adds"]
    terms = pd.DataFrame(rows, columns=columns)
    terms["label"] = pd.Series([row[4] for row in rows], dtype=object)  # integers beside None
    terms.attrs = {"gradient": gradient, "change": float(np.abs(outputs - own).max(initial=0.0))}
    return terms


def _explained(outputs: Array, classes: list[Any], target: Any) -> tuple[int, float, Any]:
    """Return the output, the sign and the class that is explained of one document's outputs."""
    if len(classes) > 2:
        k = int(outputs.argmax()) if target is None else classes.index(target)
        return k, 1.0, classes[k]
    code = int(outputs[0] > 0) if target is None else classes.index(target)
    return 0, 2.0 * code - 1.0, classes[code]


def _solved(fit: Fit) -> tuple[Array, Array, float]:
    """Return values (V, K), intercepts (K,) and the gradient left, with the attention fixed."""
    from scipy.optimize import minimize

    n_tokens, n_outputs = fit.values.shape
    total, penalty = fit.weights.sum(), fit.penalties[1]
    # Numbers in which the penalty is that of the fit: values are scales times these.
    start = np.divide(fit.values, fit.scales, out=np.zeros_like(fit.values), where=fit.scales > 0)

    def outputs(x: Array) -> Array:
        parts = x.reshape(n_tokens + 1, n_outputs)
        return fit.shares @ (fit.scales * parts[:-1]) + parts[-1]

    def transposed(by_output: Array, x: Array) -> Array:
        parts = x.reshape(n_tokens + 1, n_outputs).copy()
        parts[:-1] = fit.scales * (fit.shares.T @ by_output) + penalty * parts[:-1]
        parts[-1] = by_output.sum(axis=0)
        return parts.ravel() / total

    def loss(x: Array) -> tuple[float, Array]:
        found = fit.evidence + outputs(x)
        value = fit.weights @ log_losses(found, fit.codes)
        value += 0.5 * penalty * float(np.square(x[: n_tokens * n_outputs]).sum())
        return value / total, transposed(fit.weights[:, None] * fit.residuals(found), x)

    def curvature(x: Array, step: Array) -> Array:
        chances = fit.chances(fit.evidence + outputs(x))
        change = outputs(step)
        if n_outputs == 1:
            by_output = chances * (1 - chances) * change
        else:
            by_output = chances * (change - (chances * change).sum(axis=1, keepdims=True))
        return transposed(fit.weights[:, None] * by_output, step)

    found = minimize(
        loss,
        np.vstack([start, fit.intercept]).ravel(),
        jac=True,
        hessp=curvature,
        method="trust-ncg",
        options={"gtol": _GRADIENT, "maxiter": _MAX_ITER},
    )
    x = found.x.reshape(n_tokens + 1, n_outputs)
    return fit.scales * x[:-1], x[-1], float(np.abs(found.jac).max())
