"""Opens the store of a crawl by its folder."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.crawl import CrawlFolder
from focuscrawl.report.status import Status
from focuscrawl.store import CrawlStore

if TYPE_CHECKING:
    import os


def open_store(crawl_dir: str | os.PathLike[str]) -> CrawlStore:
    """Open the store of the crawl kept in `crawl_dir`, which may be running.

    Parameters
    ----------
    crawl_dir : the folder

    Raises
    ------
    UserError
        There is no crawl, or none this version can read.
    """
    return CrawlStore.open(CrawlFolder(Path(crawl_dir)).store_path, read_only=True)


def status_of(crawl_dir: str | os.PathLike[str]) -> Status:
    """Return how a crawl is doing; takes and raises what `open_store` does."""
    with closing(open_store(crawl_dir)) as store:
        return Status.of(store)
