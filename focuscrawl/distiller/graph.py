"""Links of a crawl, as the distiller takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """Pages by their numbers, and the links between them.

    Attributes
    ----------
    source, target : int64 (n_links,), the pages a link leads from, all fetched, and to; a link
        that is there several times counts once
    site : int64 (n_pages,), the site of each page, from 0 (`Sites.of_pages`)
    relevance : float64 (n_pages,), R in [0, 1]; NaN for a page that was not fetched
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    site: NDArray[np.int64]
    relevance: NDArray[np.float64]

    @property
    def n_pages(self) -> int:
        """Pages, fetched or not."""
        return len(self.site)

    def off_site(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the distinct links between different sites, by source, then by target."""
        off = self.site[self.source] != self.site[self.target]
        links = np.sort(self.source[off] * self.n_pages + self.target[off])
        links = links[np.diff(links, prepend=-1) > 0]  # np.unique takes ten times as long
        source, target = np.divmod(links, max(self.n_pages, 1))
        return source, target
