"""Opens the store of a crawl by what a user calls it: its folder, or the URL of a database."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from focuscrawl.crawl import CrawlFolder
from focuscrawl.report.shared_status import SharedStatus
from focuscrawl.report.status import Status
from focuscrawl.store import CrawlStore
from focuscrawl.store.postgres import is_database_url, read_database, read_database_url


def open_store(crawl_dir: str | os.PathLike[str]) -> CrawlStore:
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
    if "://" in name or is_database_url(name):
        return read_database(read_database_url(name))
    return CrawlStore.open(CrawlFolder(Path(crawl_dir)).store_path, read_only=True)


def status_of(crawl_dir: str | os.PathLike[str]) -> Status | SharedStatus:
    """Return how a crawl is doing; takes and raises what `open_store` does."""
    with closing(open_store(crawl_dir)) as store:
        if is_database_url(os.fspath(crawl_dir)):
            return SharedStatus.of(store)
        return Status.of(store)


def shown(crawl_dir: str) -> str:
    """Return the name of a crawl as it may be shown: a URL without user and password."""
    return read_database_url(crawl_dir).shown if is_database_url(crawl_dir) else crawl_dir
