"""What workers that are there at the same time agree on: the budget, and politeness."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from focuscrawl.errors import UserError
from focuscrawl.store.schema import meta
from focuscrawl.store.worker_tables import ALIVE, crawl, worker

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from focuscrawl.crawl import CrawlPlan


def agree(connection: Connection, plan: CrawlPlan, where: str) -> None:
    """Take the terms of the workers that are there for a worker's own; if none is, set them.

    In the transaction in which the worker joins.

    Parameters
    ----------
    where : how to name the store in messages

    Raises
    ------
    UserError
        The plan has other terms: by them the worker would spend another budget, or ask hosts
        that it is handed more often than was promised.
    """
    connection.execute(sa.select(crawl.c.id).with_for_update())  # one at a time
    left = sa.func.max(sa.extract("epoch", worker.c.expires - sa.func.clock_timestamp()))
    lease_left = connection.execute(sa.select(left).where(worker.c.state == ALIVE)).scalar()
    terms = _terms(plan)
    if lease_left is None or lease_left <= 0:
        connection.execute(sa.delete(meta).where(meta.c.key.in_(list(terms))))
        rows = [{"key": key, "value": value} for key, value in terms.items()]
        connection.execute(sa.insert(meta), rows)
        return
    found = connection.execute(sa.select(meta.c.key, meta.c.value))
    kept = {str(key): str(value) for key, value in found}
    for name, value in terms.items():
        if kept.get(name, value) != value:
            raise UserError(
                f"store {where}: workers are at this crawl with {name} {kept[name]}, not {value}; "
                "start this one like them, or when they have ended (one that was killed counts "
                f"for {lease_left:.0f} s yet)"
            )


def _terms(plan: CrawlPlan) -> dict[str, str]:
    return {
        "budget": str(plan.budget),
        "DOWNLOAD_DELAY": str(plan.delay),
        "requests at a time to a host": str(plan.per_host),
        "robots meta tags obeyed": str(plan.obey_meta_robots),
    }
