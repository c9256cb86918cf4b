"""From a plan to a worker that can start: a new crawl, or one that others are at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from focuscrawl.crawl import Crawl, CrawlFolder
from focuscrawl.crawl.assembly import Checked, check, hosts_keep_waiting, page_parts
from focuscrawl.crawl.parts.patience import PatientOrder
from focuscrawl.crawl.parts.priority_fidelity import PriorityFidelity
from focuscrawl.crawl.parts.traps import Traps
from focuscrawl.errors import UserError
from focuscrawl.frontier import Frontier
from focuscrawl.store.postgres import holds_crawl, open_database, read_database_url, refused
from focuscrawl.workers.agreement import agree
from focuscrawl.workers.budget import BudgetShare
from focuscrawl.workers.distributed_learning import DistributedLearning
from focuscrawl.workers.duplicates import SharedDuplicates
from focuscrawl.workers.heartbeat import Heartbeat
from focuscrawl.workers.inbox import InboxReader
from focuscrawl.workers.membership import Membership
from focuscrawl.workers.outage import Outage
from focuscrawl.workers.shared_distilling import SharedDistilling
from focuscrawl.workers.url_ids import SharedUrlTable
from focuscrawl.workers.worker import Worker
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


def open_shared_crawl(plan: CrawlPlan, store: str, options: SharingOptions) -> Crawl:
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
    if plan.revisit_hubs:
        raise UserError(
            "FOCUSCRAWL_REVISIT_HUBS is for crawls of one worker: leave out store, or this"
        )
    if plan.options.get("contrast", 1.0) != 1.0:
        raise UserError(
            "the option contrast is for crawls of one worker: leave out store, or this"
        )
    if plan.discover:
        raise UserError("discover is for crawls of one worker: leave out store, or this")
    if plan.stop:
        raise UserError("stop is for crawls of one worker: leave out store, or this")
    if plan.knowledge is not None or plan.revisit:
        raise UserError("knowledge is for crawls of one worker: leave out store, or this")
    checked = check(plan, None, exists=holds_crawl(database))
    if not checked.strategy.shareable:
        raise UserError(
            f"strategy {plan.strategy} has to see the whole crawl, and a worker sees its shards: "
            "take apprentice, best-first or another one that judges links by their pages"
        )
    about = {**checked.about, "shards": str(options.shards)}
    kept, _ = open_database(database, checked.identity, about)
    try:
        shared = replace(plan, store=database.shown)
        return _join(shared, checked, kept, options, database.name)
    except sa.exc.DBAPIError as error:
        kept.close()
        raise refused(error, database, _RIGHTS) from None
    except BaseException:
        kept.close()
        raise


def _join(
    plan: CrawlPlan, checked: Checked, store: CrawlStore, options: SharingOptions, name: str
) -> Crawl:
    shards = int(store.identity()["shards"])
    with store.engine.begin() as connection:
        agree(connection, plan, store.where)
        membership = Membership.join(
            connection,
            seconds=options.lease,
            shards=shards,
            budget=plan.budget,
            learns=checked.strategy.learns,
        )
    folder = CrawlFolder(Path(plan.crawl_dir or f"crawls/{name}/worker-{membership.me}"))
    try:
        folder.claim()
        plan = replace(plan, crawl_dir=str(folder.path))
        return _begin(plan, checked, store, folder, membership)
    except BaseException:
        folder.release()
        with store.engine.begin() as connection:
            membership.leave(connection)
        raise


def _begin(
    plan: CrawlPlan,
    checked: Checked,
    store: CrawlStore,
    folder: CrawlFolder,
    membership: Membership,
) -> Crawl:
    me, urls = membership.me, SharedUrlTable(membership.shards)
    budget, outage = BudgetShare(limited=plan.budget > 0), Outage()
    writer = SharedWriter(
        store.engine,
        urls,
        me=me,
        limited=plan.budget > 0,
        parts=checked.strategy.parts,
        patience=_PATIENCE,
        outage=outage,
    )
    heartbeat = Heartbeat(
        store.engine,
        membership,
        InboxReader(urls, me),
        budget,
        lease=membership.seconds,
        patience=_PATIENCE,
        outage=outage,
    )
    duplicates = SharedDuplicates(urls)
    crawl = Crawl(
        critic=checked.critic,
        strategy=checked.strategy,
        frontier=Frontier(plan.per_host, plan.delay),
        store=store,
        folder=folder,
        web=checked.web,
        plan=plan,
        within=checked.within,
        urls=urls,
        duplicates=duplicates,
        writer=writer,
    )
    order = None
    if hosts_keep_waiting(crawl):
        order = PatientOrder(crawl, share=lambda: len(urls.held) / urls.shards)
    worker = Worker(
        crawl,
        urls=urls,
        duplicates=duplicates,
        heartbeat=heartbeat,
        budget=budget,
        order=order,
        me=me,
    )
    crawl.control = worker
    crawl.parts = [worker, *page_parts(crawl)]
    if order is not None:
        crawl.parts += [order, PriorityFidelity(crawl)]
    if plan.distill:
        crawl.parts.append(SharedDistilling(crawl, urls, heartbeat))
    if checked.strategy.learns:
        crawl.parts.append(DistributedLearning(crawl, heartbeat, me))
    for part in crawl.parts:
        part.reset()
        if isinstance(part, Traps):
            part.join()
    worker.restored()
    crawl.start(checked.seeds)
    return crawl
