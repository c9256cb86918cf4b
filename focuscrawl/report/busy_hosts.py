"""What a live crawl passed over for want of a free host when it fetched a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from focuscrawl.crawl.page_source import LIVE
from focuscrawl.report.plain_text import counted, one_line
from focuscrawl.store import schema
from focuscrawl.store.schema import QUEUED

if TYPE_CHECKING:
    from typing import Any

    from focuscrawl.store import CrawlStore

_SHOWN = 3  # hosts


def busy_hosts(store: CrawlStore, row: sa.Row[Any], page: sa.Row[Any]) -> str | None:
    """Say which URLs of other hosts scored better than a page when it came; None if none did.

    Those are meant that were found before and came later, or wait still, by the scores they left
    the frontier with, or wait with now.

    Parameters
    ----------
    row, page : of the URL and of its fetch
    """
    if page.score is None or store.identity().get("web", LIVE) != LIVE:
        return None
    u, p, found = schema.url.c, schema.page.c, schema.page.alias()
    score = sa.func.coalesce(p.score, u.score)
    better = (
        sa.select(schema.host.c.name, sa.func.count().label("urls"))
        .select_from(schema.url)
        .join(schema.host, schema.host.c.id == u.host)
        .join(found, found.c.url == u.referrer)
        .join(schema.page, p.url == u.id, isouter=True)
        .where(found.c.seq < page.seq, score > page.score, u.host != row.host)
        .where(sa.or_(p.seq > page.seq, u.state == QUEUED))
        .group_by(schema.host.c.name)
        .order_by(sa.func.max(score).desc(), schema.host.c.name)
    )
    hosts = list(store.rows(better))
    if not hosts:
        return None
    names = [one_line(host.name) for host in hosts[:_SHOWN]]
    if len(hosts) > _SHOWN:
        names.append(f"{len(hosts) - _SHOWN:,} more")
    number = sum(host.urls for host in hosts)
    learned = [*store.rows(sa.select(sa.literal(1)).select_from(schema.models).limit(1))]
    since = "; or were scored higher later" if learned else ""
    urls = counted(number, "URL")
    return f"{urls} of busy hosts had better scores ({', '.join(names)}){since}"
