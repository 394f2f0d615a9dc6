r"""Training documents whose labels look wrong: their margins as if each had been left out.

Without document i the loss is least at about one Newton step from the fitted numbers,

.. math:: F_{ik}^{(-i)} \approx F_{ik} + r_{ik} \, J_{ik} D^{-1} J_{ik}^\top ,

with the derivative J of its outputs, the residual :math:`r_{ik} = p_{ik} - [y_i = k]`, and the
diagonal D of the curvature: to neglect that tokens occur together makes the leverage larger by
about as much as to take the document's own curvature out of it would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight

from .._base import checked_documents, documents_in_memory, fitted_attention
from .._classifier import ClsAttentionClassifier
from .._core.fitted import probabilities
from .._validation import codes_of
from ..importance import signed_frequency
from .feature_origins import split_pipeline

if TYPE_CHECKING:
    from .._core.documents import Documents

Array = NDArray[np.float64]


def label_issues(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    top: int | None = None,
) -> pd.DataFrame:
    """Rank training documents by how much the others' labels contradict theirs.

    Every document is judged as by the model without it, from one fit: nothing is fitted again.

    Parameters
    ----------
    estimator : ClsAttentionClassifier, or Pipeline
        The fitted classifier, or a fitted Pipeline (or search) that ends in one.
    X : matrix of shape (n_documents, n_tokens), or sequence of length n_documents
        The training documents, all of them, as the estimator was fitted on them.
    y : array-like of shape (n_documents,)
        Their labels.
    sample_weight : array-like of shape (n_documents,), default=None
        The weights with which it was fitted.
    top : int, default=None
        How many documents to return; None for all.

    Returns
    -------
    issues : DataFrame
        A row for each document, those to look at first: `document` (its position), `label`, the
        most probable class without it (`suggested`), the `margin` of its label over the best other
        class in log-odds, and the `probability` of its label; both to rank by, as the Notes say.

    Raises
    ------
    ValueError
        If the documents, labels or weights are not those of the fit.

    See Also
    --------
    explain : What every token of a document adds to its decision.

    Notes
    -----
    The model without a document is approximated by a Newton step with a diagonal curvature. Where
    tokens occur together, and where few labels are wrong, the step is too long: the ranking is that
    of cross-validation, but more margins are negative, and their number says nothing about how
    many labels are wrong.
    ``benchmarks/bench_minimal.py --labels`` compares it with five-fold cross-validation. A document
    that is there several times tells the others' labels as well.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.inspection import label_issues
    >>> X, y = make_token_classification(400, random_state=0)
    >>> y[7] = 1 - y[7]  # a wrong label
    >>> issues = label_issues(ClsAttentionClassifier().fit(X, y), X, y)
    >>> bool(issues["margin"].is_monotonic_increasing)
    True
    >>> 7 in issues["document"].head(40).tolist()
    True
    """
    steps, classifier = split_pipeline(estimator)
    if not isinstance(classifier, ClsAttentionClassifier):
        raise TypeError(
            "expected a ClsAttentionClassifier, whose training loss is known, got "
            f"{type(classifier).__name__}"
        )
    for _, step in steps:
        X = step.transform(X)
    labels = np.asarray(y)
    fit = _fit_of(classifier, X, labels, sample_weight)
    outputs = fit.left_out()
    chances = probabilities(outputs[:, 0] if outputs.shape[1] == 1 else outputs)
    if outputs.shape[1] == 1:
        outputs = np.column_stack([np.zeros(len(outputs)), outputs[:, 0]])
    documents = np.arange(len(labels))
    others = outputs.copy()
    others[documents, fit.codes] = -np.inf
    margins = outputs[documents, fit.codes] - others.max(axis=1)
    order = np.argsort(margins, kind="stable")[:top]
    return pd.DataFrame(
        {
            "document": order,
            "label": labels[order],
            "suggested": classifier.classes_[outputs.argmax(axis=1)[order]],
            "margin": margins[order],
            "probability": chances[documents, fit.codes][order],
        }
    )


def _fit_of(classifier: ClsAttentionClassifier, X: Any, y: NDArray[Any], sample_weight: Any) -> Fit:
    """Return the fit of a classifier, or raise ValueError if it was fitted on other data."""
    model, X = fitted_attention(classifier), checked_documents(classifier, X)
    if y.shape != (X.shape[0],):
        raise ValueError(
            f"expected one label in y for each of {X.shape[0]} documents, got shape {y.shape}"
        )
    codes = codes_of(y, classifier.classes_)
    if (codes < 0).any():
        raise ValueError(
            f"label {y[codes < 0].tolist()[0]!r} in y is not a class of the model, which has "
            f"{classifier.classes_.tolist()}"
        )
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    classes, scale = classifier.classes_, getattr(classifier, "entry_scale_", None)
    documents, _ = documents_in_memory(classifier, X, codes, classes, weights, scale)
    statistics = documents.statistics
    importance = signed_frequency(statistics.shares, statistics.class_weights)
    if not np.allclose(importance, classifier.token_importance_, rtol=1e-5, atol=1e-8):
        raise ValueError(
            "the token importances of X and y are not those of the fit: pass all documents, "
            "labels and weights that the model was fitted on, and nothing else"
        )
    shares = sp.csr_array(model.attention(X))
    cls_shares = (1.0 - shares.sum(axis=1)).clip(min=0.0) if model.cls_weight else np.zeros(len(y))
    return Fit(
        shares,
        cls_shares,
        model.intercept,
        *_training(classifier, documents),
        codes,
        documents.weights,
    )


def _training(
    classifier: ClsAttentionClassifier, documents: Documents
) -> tuple[Array, Array, Array, tuple[float, float, float]]:
    """Return `values`, `evidence`, `scales` and `penalties` of a :class:`Fit`."""
    from .._core.path import AttentionPath

    path = AttentionPath(
        documents.trained_in(np.float64, "cpu"),
        np.float64,
        "cpu",
        attention_C=classifier.attention_C,
        attend_cls=classifier.attend_cls,
        scaling=classifier.token_scaling,
    )
    objective = path.set_C(classifier.C_)
    model: Any = fitted_attention(classifier)
    values = model.values if path.mean is None else path.mean.subtracted_from(model).values
    evidence = np.zeros((documents.X.shape[0], values.shape[1]))
    (chunk,) = objective.loss.corpus.chunks
    added = chunk.trained_loss.evidence
    if added is not None:
        mass = np.asarray(documents.X @ np.exp(model.scores), dtype=np.float64)
        if model.cls_weight:
            mass += model.cls_weight * np.exp(model.cls_score)
        evidence = added.cpu().numpy() / np.where(mass > 0, mass, 1.0)[:, None]
    scores, of_values, cls_score = (
        objective.total_weight * block.penalty for block in objective.blocks[:3]
    )
    scales = objective.value_scales.cpu().numpy().astype(np.float64)
    return values, evidence, scales, (scores, of_values, cls_score)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit and its training documents, n of them, of V tokens, for K outputs."""

    shares: sp.csr_array  # (n, V), attention of the tokens
    cls_shares: Array  # (n,), that of <cls>
    intercept: Array  # (K,)
    values: Array  # (V, K), token values less their prior mean
    evidence: Array  # (n, K), what the prior mean, learned from all other documents, adds
    scales: Array  # (V, K), units of the trained values
    penalties: tuple[float, float, float]  # on scores, values, <cls>, in units of a document
    codes: NDArray[np.intp]  # (n,)
    weights: Array  # (n,)

    @property
    def means(self) -> Array:
        """The outputs in training without intercepts, (n, K)."""
        return np.asarray(self.shares @ self.values + self.evidence)

    def left_out(self) -> Array:
        """Return every document's outputs by a Newton step without it, (n, K)."""
        outputs = self.means + self.intercept
        n_outputs = outputs.shape[1]
        chances = probabilities(outputs[:, 0] if n_outputs == 1 else outputs)[:, -n_outputs:]
        first = 1 if n_outputs == 1 else 0
        residuals = chances - (self.codes[:, None] == np.arange(first, first + n_outputs))
        leverages = self._leverages(chances * (1 - chances) * self.weights[:, None])
        return np.asarray(outputs + leverages * residuals * self.weights[:, None])

    def _leverages(self, own: Array) -> Array:
        """Return J / D J^T, (n, K), from the weighted variances of the outputs, (n, K)."""
        squares = self.shares.power(2)
        by_document = squares.T
        on_scores, on_values, on_cls = self.penalties
        values, means = self.values, self.means
        # The diagonal: by values, by scores, by the score of <cls>, by intercepts.
        by_value = on_values + self.scales**2 * (by_document @ own)
        by_score = on_scores + (
            values**2 * (by_document @ own)
            - 2 * values * (by_document @ (own * means))
            + by_document @ (own * means**2)
        ).sum(axis=1)
        slopes = self.cls_shares[:, None] * means
        by_cls = on_cls + (own * slopes**2).sum()
        by_intercept = own.sum(axis=0).clip(min=np.finfo(float).tiny)
        of_scores = 1.0 / by_score[:, None]
        return np.asarray(
            squares @ (self.scales**2 / by_value + values**2 * of_scores)
            - 2 * means * (squares @ (values * of_scores))
            + means**2 * (squares @ of_scores)
            + slopes**2 / by_cls
            + 1.0 / by_intercept
        )
