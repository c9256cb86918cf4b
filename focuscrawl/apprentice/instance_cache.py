"""Instances kept from lesson to lesson: few URLs have got new links since the last one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.instances import make_instances
from focuscrawl.apprentice.learners.matrix import Instances
from focuscrawl.apprentice.options import MAX_LINKS
from focuscrawl.apprentice.sparse_rows import SparseRows, pointers

if TYPE_CHECKING:
    from focuscrawl.apprentice.link_table import LinkTable
    from focuscrawl.foundation.arrays import Floats, Ints

_NOTHING = Instances(SparseRows.empty(0), np.zeros(0), np.zeros((0, 0)))


class InstanceCache:
    """Does what `make_instances` does, of all links and one a URL, from the instances of before.

    Parameters
    ----------
    unit_length, most : see `make_instances`
    """

    def __init__(self, *, unit_length: bool, most: int = MAX_LINKS) -> None:
        self._unit_length = unit_length
        self._most = most
        self._table: LinkTable | None = None
        self._n_links = 0
        self._urls = np.zeros(0, np.int64)
        self._made = _NOTHING

    def instances(self, table: LinkTable, n_links: int, urls: Ints, inputs: Floats) -> Instances:
        """Return one instance a URL; parameters as in `make_instances`.

        Only what was asked for the last time is remembered.
        """
        if table is not self._table or n_links < self._n_links:  # links were forgotten
            self._urls, self._made, self._n_links = np.zeros(0, np.int64), _NOTHING, 0
        row_of = np.full(table.n_urls, -1)
        row_of[self._urls] = np.arange(len(self._urls))
        row_of[self._changed(table.target.data[:n_links])] = -1
        row = row_of[urls]
        missing = np.flatnonzero(row < 0)
        new, _ = make_instances(
            table,
            n_links,
            urls[missing],
            np.zeros((len(missing), 0)),
            unit_length=self._unit_length,
            most=self._most,
        )
        row[missing] = len(self._urls) + np.arange(len(missing))
        self._made = _joined(self._made, new, row)
        self._table, self._n_links, self._urls = table, n_links, urls
        return Instances(self._made.rows, self._made.values, inputs)

    def _changed(self, target: Ints) -> Ints:
        """Return the URLs that have new links to learn from; only their first ones count."""
        before, new = target[: self._n_links], target[self._n_links :]
        count = np.bincount(before, minlength=int(new.max(initial=0)) + 1)
        return new[count[new] < self._most]


def _joined(before: Instances, new: Instances, row: Ints) -> Instances:
    """Return the instances numbered `row`, those of `new` being numbered after those of before.

    Most of them follow one another as they did: they are copied stretch by stretch.
    """
    n = len(before.rows)
    cuts = np.flatnonzero((np.diff(row) != 1) | (row[1:] == n)) + 1
    bounds = [0, *cuts.tolist(), len(row)]
    indices, values = [before.rows.indices[:0]], [before.values[:0]]
    for start, end in pairwise(bounds):
        if start < end:
            first = int(row[start])
            part, first = (new, first - n) if first >= n else (before, first)
            a, b = part.rows.indptr[first], part.rows.indptr[first + end - start]
            indices.append(part.rows.indices[a:b])
            values.append(part.values[a:b])
    lengths = np.concatenate([before.rows.lengths, new.rows.lengths])[row]
    rows = SparseRows(np.concatenate(indices), pointers(lengths))
    return Instances(rows, np.concatenate(values), np.zeros((len(row), 0)))
