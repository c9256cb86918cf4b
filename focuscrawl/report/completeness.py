"""How complete a crawl is, by the estimates that it has made of itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.completeness import FILE, read_estimates

if TYPE_CHECKING:
    from focuscrawl.completeness import Estimate
    from focuscrawl.store import CrawlStore


def estimates_of(store: CrawlStore) -> list[Estimate]:
    """Return the estimates of a crawl."""
    return read_estimates(Path(store.where).parent / FILE)
