"""Bags kept from lesson to lesson: few URLs have got new links since the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.bags import MAX_LINKS, bags
from focuscrawl.apprentice.learners.instances import Instances
from focuscrawl.apprentice.rows import Rows, pointers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.known import Known


class BagMemory:
    """Makes the instances that `bags` makes, of all links and one a URL, from those of before.

    Parameters
    ----------
    unit_length : see `bags`
    """

    def __init__(self, *, unit_length: bool) -> None:
        self._unit_length = unit_length
        self._known: Known | None = None
        self._n_links = 0
        self._bags: dict[int, tuple[NDArray[np.int32], NDArray[np.float64]]] = {}

    def instances(
        self,
        known: Known,
        n_links: int,
        urls: NDArray[np.int64],
        inputs: NDArray[np.float64],
    ) -> Instances:
        """Return one instance a URL; parameters as in `bags`.

        Only what was asked for the last time is remembered.
        """
        if known is not self._known or n_links < self._n_links:  # links were forgotten
            self._bags, self._n_links = {}, 0
        old, wanted = self._bags, urls.tolist()
        for url in self._changed(known.target.data[:n_links]).tolist():
            old.pop(url, None)
        self._known, self._n_links = known, n_links
        missing = np.array([url for url in wanted if url not in old], np.int64)
        made, _ = bags(
            known,
            n_links,
            missing,
            np.zeros((len(missing), 0)),
            unit_length=self._unit_length,
        )
        (indices, indptr), values = made.rows, made.values
        at = zip(missing.tolist(), indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)
        old.update((url, (indices[a:b].copy(), values[a:b].copy())) for url, a, b in at)
        self._bags = {url: old[url] for url in wanted}
        parts = [*self._bags.values()]
        lengths = np.array([len(part) for part, _ in parts], np.int64)
        rows = Rows(
            np.concatenate([np.zeros(0, np.int32), *(part for part, _ in parts)]),
            pointers(lengths),
        )
        return Instances(rows, np.concatenate([np.zeros(0), *(v for _, v in parts)]), inputs)

    def _changed(self, target: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the URLs that have new links to learn from; only their first ones count."""
        before, new = target[: self._n_links], target[self._n_links :]
        count = np.bincount(before, minlength=int(new.max(initial=0)) + 1)
        return new[count[new] < MAX_LINKS]
