"""A progress bar of the pages that a crawl has recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from tqdm import tqdm

from focuscrawl.store.history import History

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore


def reading(store: CrawlStore, what: str) -> tqdm[NoReturn]:
    """Return a progress bar of the pages of a crawl."""
    return tqdm(total=History(store).n_fetches(), desc=what, unit=" pages", disable=None)
