"""Blocks of rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from reference import counts

from sklearn_clsattn._documents import row_blocks


@given(st.integers(0, 10**6), st.integers(0, 9), st.integers(1, 40))
def test_blocks_are_the_rows_in_order(seed, n_rows, n_entries):
    X = counts(seed, n_rows + 1, 5, 0.4)[:n_rows].tocsr()
    found = []
    for rows, part in row_blocks(X, n_entries):
        assert rows.start == len(found)
        assert_array_equal(part.toarray(), X[rows].toarray())
        assert not part.nnz or np.shares_memory(part.data, X.data)
        # As many entries as asked for, and those of the row that goes beyond.
        assert part.nnz <= n_entries + max(np.diff(part.indptr), default=0)
        found += part.toarray().tolist()
    assert_array_equal(np.reshape(found, (-1, 5)), X.toarray())
