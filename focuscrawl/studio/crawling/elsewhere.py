"""Crawls that are begun elsewhere than in a folder: by workers on a database, by Scrapyd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.store.postgres import holds_crawl, read_database_url
from focuscrawl.studio.crawling.beginning import (
    begin,
    begin_job,
    discard_seeds,
    given_in,
    keep_seeds,
)
from focuscrawl.studio.posted import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from focuscrawl.studio.crawling.beginning import NewCrawl
    from focuscrawl.studio.desk import Desk

HERE, WORKERS, SCRAPYD = "here", "workers", "scrapyd"
_MOST = 16  # workers that a form begins


def begin_where(desk: Desk, crawl: NewCrawl, values: Mapping[str, Any]) -> dict[str, Any]:
    """Begin a crawl where `values` say: ``run``, and for workers ``workers``, their number.

    Returns
    -------
    ``crawl``, its name, and ``job`` (one of the studio's), or ``scrapyd`` (what it calls its own)

    Raises
    ------
    UserError
        There is no such place, or what begins it says why not.
    """
    run = text_of(values, "run", HERE)
    if run == HERE:
        return {"crawl": crawl.name, "job": begin(desk, crawl).plain()}
    if run == WORKERS:
        return _begin_workers(desk, crawl, text_of(values, "workers", "2"))
    if run == SCRAPYD:
        return _schedule(desk, crawl)
    raise UserError(f"nothing is run as {run!r:.40}: take {HERE}, {WORKERS} or {SCRAPYD}")


def _begin_workers(desk: Desk, crawl: NewCrawl, number: str) -> dict[str, Any]:
    if desk.database is None:
        raise UserError("no database is named for workers: start the studio with --store")
    if not number.isdecimal() or not 1 <= int(number[:9]) <= _MOST:
        raise UserError(f"workers are 1 to {_MOST}, not {number!r:.40}")
    shared = desk.database.crawl(crawl.name.rpartition("/")[2])
    if holds_crawl(read_database_url(str(shared.place))):
        raise UserError(f"{shared.name} is a crawl already: take another name, or go on with it")
    keep_seeds(desk, crawl)
    store = f"store={shared.place}"
    arguments = [store if each.startswith("crawl_dir=") else each for each in crawl.arguments]
    job = begin_job(desk, shared, arguments)
    for _ in range(int(number) - 1):
        desk.jobs.begin(job.kind, shared.name, arguments)
    return {"crawl": shared.name, "job": job.plain()}


def _schedule(desk: Desk, crawl: NewCrawl) -> dict[str, Any]:
    if desk.scrapyd is None:
        raise UserError("no Scrapyd is named: start the studio with --scrapyd")
    keep_seeds(desk, crawl)
    given = []
    for option, key, value in given_in(crawl.arguments):
        # Scrapyd runs in another folder
        whole = str(desk.folder.root / value) if value.startswith("./") else value
        given.append((key, whole) if option == "-a" else ("setting", f"{key}={value}"))
    try:
        job = desk.scrapyd.schedule(crawl.name.rpartition("/")[2], given)
    except UserError:
        discard_seeds(desk, crawl)
        raise
    return {"crawl": crawl.name, "scrapyd": job}
