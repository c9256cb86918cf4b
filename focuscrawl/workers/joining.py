"""From a plan to a worker that can start: a new crawl, or one that others are at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from focuscrawl.crawl.assembly import Parts, check
from focuscrawl.crawl.folder import CrawlFolder
from focuscrawl.errors import UserError
from focuscrawl.frontier import Frontier
from focuscrawl.store.postgres import holds_crawl, open_database, read_database_url, refused
from focuscrawl.workers.budget import BudgetShare
from focuscrawl.workers.heartbeat import Heartbeat
from focuscrawl.workers.inbox import InboxReader
from focuscrawl.workers.membership import Membership
from focuscrawl.workers.url_ids import SharedUrlTable
from focuscrawl.workers.worker import SharedCrawl
from focuscrawl.workers.writer import SharedWriter

if TYPE_CHECKING:
    from focuscrawl.crawl import CrawlPlan
    from focuscrawl.store import CrawlStore

_RIGHTS = "a worker needs all rights on the tables: take the role that made the crawl"
_PATIENCE = 600.0  # seconds for which the database may be away


@dataclass(frozen=True)
class SharingOptions:
    """How workers share a crawl.

    Attributes
    ----------
    lease : seconds after which a worker that does not renew its lease is given up
    shards : into how many parts the hosts of a new crawl are split
    """

    lease: float = 60.0
    shards: int = 64


def open_shared_crawl(plan: CrawlPlan, store: str, options: SharingOptions) -> SharedCrawl:
    """Check everything, then join the crawl in the database `store`; the first worker makes it.

    Parameters
    ----------
    store : see `focuscrawl.store.postgres.read_database_url`

    Raises
    ------
    UserError
        Anything the user has to put right.
    """
    database = read_database_url(store)
    if plan.distill:
        raise UserError("FOCUSCRAWL_DISTILL is for crawls of one worker: leave out store, or this")
    if plan.options.get("contrast", 1.0) != 1.0:
        raise UserError(
            "the option contrast is for crawls of one worker: leave out store, or this"
        )
    if plan.knowledge is not None or plan.revisit:
        raise UserError("knowledge is for crawls of one worker: leave out store, or this")
    parts = check(plan, None, exists=holds_crawl(database))
    _check_strategy(plan, parts)
    about = {**parts.about, "shards": str(options.shards)}
    kept, _ = open_database(database, parts.identity, about)
    try:
        # a worker sees only what its own hosts have brought: no judging of the others by it
        shared = replace(plan, store=database.shown, limits=False, near_duplicates=False)
        return _join(shared, parts, kept, options, database.name)
    except sa.exc.DBAPIError as error:
        kept.close()
        raise refused(error, database, _RIGHTS) from None
    except BaseException:
        kept.close()
        raise


def _check_strategy(plan: CrawlPlan, parts: Parts) -> None:
    if not parts.strategy.shareable:
        raise UserError(
            f"strategy {plan.strategy} has to see the whole crawl, and a worker sees its shards: "
            "take apprentice, best-first or another one that judges links by their pages"
        )


def _join(
    plan: CrawlPlan, parts: Parts, store: CrawlStore, options: SharingOptions, name: str
) -> SharedCrawl:
    shards = int(store.identity()["shards"])
    with store.engine.begin() as connection:
        me = Membership.join(connection, options.lease, plan.budget)
    membership = Membership(
        me,
        seconds=options.lease,
        shards=shards,
        budget=plan.budget,
        learns=parts.strategy.learns,
    )
    folder = CrawlFolder(Path(plan.crawl_dir or f"crawls/{name}/worker-{me}"))
    try:
        folder.claim()
        return _begin(replace(plan, crawl_dir=str(folder.path)), parts, store, folder, membership)
    except BaseException:
        folder.release()
        with store.engine.begin() as connection:
            membership.leave(connection)
        raise


def _begin(
    plan: CrawlPlan,
    parts: Parts,
    store: CrawlStore,
    folder: CrawlFolder,
    membership: Membership,
) -> SharedCrawl:
    me, shards = membership.me, membership.shards
    urls = SharedUrlTable(shards)
    allowance = BudgetShare(limited=plan.budget > 0)
    writer = SharedWriter(
        store.engine,
        urls,
        me=me,
        limited=plan.budget > 0,
        parts=parts.strategy.parts,
        patience=_PATIENCE,
    )
    courier = Heartbeat(
        store.engine,
        membership,
        InboxReader(urls, me),
        allowance,
        lease=membership.seconds,
        patience=_PATIENCE,
    )
    crawl = SharedCrawl(
        courier=courier,
        allowance=allowance,
        writer=writer,
        urls=urls,
        me=me,
        critic=parts.critic,
        strategy=parts.strategy,
        frontier=Frontier(plan.per_host, plan.delay),
        store=store,
        folder=folder,
        web=parts.web,
        plan=plan,
        within=parts.within,
    )
    crawl.catch_up()
    crawl.start(parts.seeds)
    return crawl
