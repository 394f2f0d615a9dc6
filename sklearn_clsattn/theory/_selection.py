"""The tokens that a direction of ``<cls>`` selects in every document."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..model.fitted import SELECTION_TOLERANCE, select_tokens


def selected_tokens(scores: ArrayLike, X: Any, tol: float = SELECTION_TOLERANCE) -> sp.csr_array:
    r"""Return which tokens of every document have its highest attention score, S_X(p).

    Parameters
    ----------
    scores : array-like of shape (n_tokens,)
        Attention scores :math:`a_s = E_s^\top p`. Infinite scores are ordered as they are.

    X : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        Non-negative token counts or weights. A document has the tokens that are positive.

    tol : float, default=1e-6
        Scores this close to a document's highest are selected with it. In exact arithmetic it
        would be 0.

    Returns
    -------
    selected : boolean CSR array of shape (n_documents, n_tokens)
        True where the token is selected; no False is stored. A document without tokens selects
        nothing.

    Raises
    ------
    ValueError
        If there is not one score for each token, if a score is NaN, if `X` has negative or NaN
        entries, or if `tol` is negative.

    See Also
    --------
    max_margin_direction : The direction that gradient flow tends to, given the selection.

    Notes
    -----
    The selected tokens of [1]_ (section 4; Theorem 4.3 speaks of them),
    :math:`S_X(p) = \{s \in X : p^\top E_s = \max_{s' \in X} p^\top E_{s'}\}`. The tolerance is
    ours.

    References
    ----------
    .. [1] D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained
       Embeddings Provably Selects Important Tokens. arXiv:2505.17282.

    Examples
    --------
    >>> from sklearn_clsattn.theory import selected_tokens
    >>> X = [[1, 2, 0], [0, 1, 3], [0, 0, 0]]
    >>> selected_tokens([0.5, -1.0, 2.0], X).toarray()
    array([[ True, False, False],
           [False, False,  True],
           [False, False, False]])
    """
    presence = as_presence(X)
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (presence.shape[1],):
        raise ValueError(
            f"scores must have shape ({presence.shape[1]},), one score for each column of X, "
            f"got {values.shape}."
        )
    if np.isnan(values).any():
        raise ValueError(
            f"scores must be numbers, but {int(np.isnan(values).sum())} are NaN, the first at "
            f"token {int(np.isnan(values).argmax())}."
        )
    if not tol >= 0:
        raise ValueError(f"tol must be 0 or more, got {tol!r}.")
    # Only the order of infinite scores matters, and differences of them would be NaN.
    finite = np.isfinite(values)
    if not finite.all():
        reach = 1.0 + 2.0 * float(np.abs(values[finite]).max(initial=0.0)) + 2.0 * tol
        values = np.where(finite, values, np.sign(values) * reach)
    documents, tokens = select_tokens(values, presence, tol)
    return from_entries(documents, tokens, presence.shape)


def as_presence(X: Any, name: str = "X") -> sp.csr_array:
    """Return as a boolean CSR array where `X` is positive, rows sorted, without duplicates.

    `X` is never changed. Negative and NaN entries are refused, by `name`.
    """
    if sp.issparse(X):
        if X.ndim != 2:
            raise ValueError(f"{name} must have two dimensions, got {X.ndim}.")
        rows = sp.csr_array(X)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
    else:
        dense = np.asarray(X)
        if dense.ndim != 2:
            raise ValueError(
                f"{name} must have shape (n_documents, n_tokens), got {dense.ndim} dimension(s)."
            )
        if dense.dtype.kind not in "biuf":
            raise ValueError(f"{name} must hold numbers, got dtype {dense.dtype}.")
        rows = sp.csr_array(dense)
    # NaN fails this comparison too.
    if rows.data.size and not rows.data.min() >= 0:
        raise ValueError(
            f"{name} must hold non-negative numbers (counts or weights), got a minimum of "
            f"{rows.data.min()}."
        )
    kept = rows.data > 0
    if kept.all():
        indices, indptr = rows.indices, rows.indptr
    else:
        indices = rows.indices[kept]
        indptr = np.concatenate([[0], np.cumsum(kept)])[rows.indptr].astype(rows.indptr.dtype)
    return sp.csr_array((np.ones(len(indices), bool), indices, indptr), shape=rows.shape)


def from_entries(documents: Any, tokens: Any, shape: tuple[int, int]) -> sp.csr_array:
    """Return the boolean CSR array of these entries, which are distinct and in row order."""
    indptr = np.zeros(shape[0] + 1, dtype=np.int32 if len(tokens) < 2**31 else np.int64)
    np.cumsum(np.bincount(documents, minlength=shape[0]), out=indptr[1:])
    flags = np.ones(len(tokens), dtype=bool)
    return sp.csr_array((flags, tokens.astype(indptr.dtype), indptr), shape=shape)
