"""From a crawl's folder to its store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.crawl import CrawlFolder
from focuscrawl.store import CrawlStore

if TYPE_CHECKING:
    import os


def open_crawl(crawl_dir: str | os.PathLike[str]) -> CrawlStore:
    """Open the store of the crawl kept in `crawl_dir`, which may be running.

    Raises
    ------
    UserError
        There is no crawl, or none this version can read.
    """
    return CrawlStore.open(CrawlFolder(Path(crawl_dir)).store_path, read_only=True)
