"""From a crawl's folder to its store."""

from __future__ import annotations

import os
from pathlib import Path

from focuscrawl.crawl import CrawlFolder
from focuscrawl.store import CrawlStore
from focuscrawl.store.postgres import is_database_url, read_database, read_database_url


def open_crawl(crawl_dir: str | os.PathLike[str]) -> CrawlStore:
    """Open the store of the crawl kept in `crawl_dir`, which may be running.

    Parameters
    ----------
    crawl_dir : the folder; or, of a crawl that workers share, the URL of its database

    Raises
    ------
    UserError
        There is no crawl, or none this version can read.
    """
    name = os.fspath(crawl_dir)
    if is_database_url(name):
        return read_database(read_database_url(name))
    return CrawlStore.open(CrawlFolder(Path(crawl_dir)).store_path, read_only=True)
