"""The instances that learners fit: sparse hashed features beside dense inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.sparse_rows import SparseRows
    from focuscrawl.foundation.arrays import Floats, Ints


class Instances(NamedTuple):
    """n instances of hashed features and of dense inputs.

    Attributes
    ----------
    rows : the hashed features of each
    values : float64 (nnz,), their values
    dense : float64 (n, k), k may be 0
    """

    rows: SparseRows
    values: Floats
    dense: Floats

    def __len__(self) -> int:
        return len(self.rows)

    def dot(self, weights: Floats) -> Floats:
        """Multiply the hashed part by `weights` (n_features,); returns (n,)."""
        return row_sums(weights[self.rows.indices] * self.values, self.rows.indptr)


def unit(rows: SparseRows) -> Floats:
    """Return what gives each row the length 1 when it is multiplied by it; float64 (n,)."""
    if rows.values is None:
        return 1.0 / np.sqrt(np.maximum(rows.lengths, 1))
    squares = row_sums(rows.values.astype(np.float64) ** 2, rows.indptr)
    return 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))


def row_sums(values: NDArray[np.floating], indptr: Ints) -> Floats:
    """Add up the values of each row; an empty row has the sum 0."""
    total = np.zeros(len(indptr) - 1)
    some = (indptr[1:] > indptr[:-1]).nonzero()[0]
    if len(some):
        total[some] = np.add.reduceat(values, indptr[some])
    return total
