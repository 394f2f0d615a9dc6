"""The tokens that a direction of ``<cls>`` selects in every document."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from .._core.fitted import SELECTION_TOLERANCE, select_tokens
from ._documents import as_presence


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
    The selected tokens of [1]_ (section 4 and Theorem 4.3),
    :math:`S_X(p) = \{s \in X : p^\top E_s = \max_{s' \in X} p^\top E_{s'}\}`.

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
    indptr = np.zeros(len(presence.indptr), dtype=presence.indptr.dtype)
    np.cumsum(np.bincount(documents, minlength=presence.shape[0]), out=indptr[1:])
    flags = np.ones(len(tokens), dtype=bool)
    return sp.csr_array((flags, tokens.astype(indptr.dtype), indptr), shape=presence.shape)
