"""What limits on hosts and patterns, and the search for near-duplicates, did in a crawl."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import sqlalchemy as sa

from focuscrawl.crawl.parts.near_duplicates import NEAR_DUPLICATE
from focuscrawl.crawl.parts.quotas import Quota, Quotas
from focuscrawl.crawl.parts.traps import LIMITED, RAISED
from focuscrawl.crawl.url_patterns import pattern
from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.foundation.urls import host
from focuscrawl.report.plain_text import counted
from focuscrawl.store import schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.store import CrawlStore

_HOSTS, _PATTERNS = "hosts", "patterns"


def trap_events(store: CrawlStore) -> dict[str, int]:
    """Return how many ``hosts`` and ``patterns`` were limited, and other events by their kind."""
    e = schema.events.c
    kinds = (LIMITED, RAISED, NEAR_DUPLICATE)
    counts: Counter[str] = Counter()
    for row in store.rows(sa.select(e.kind, e.detail).where(e.kind.in_(kinds))):
        name = row.detail.partition(": ")[0]
        of_limit = _PATTERNS if "/" in name else _HOSTS
        counts[of_limit if row.kind == LIMITED else row.kind] += 1
    return dict(counts)


def limits_in_words(events: Mapping[str, int]) -> str | None:
    """Return what `trap_events` tells of limits; None if none was reached."""
    held = [counted(events[name], name[:-1]) for name in (_HOSTS, _PATTERNS) if events.get(name)]
    if not held:
        return None
    words = f"{' and '.join(held)} held back"
    if events.get(RAISED):
        words += f", limits raised {counted(events[RAISED], 'time')}"
    return words


def near_duplicate(store: CrawlStore, seq: int, url: str) -> str | None:
    """Return what the page fetched as number `seq` is much alike, in words; None if nothing."""
    e = schema.events.c
    told = sa.select(e.detail).where(e.kind == NEAR_DUPLICATE, e.seq == seq)
    for row in [*store.rows(told.limit(1))]:
        return str(row.detail[len(url) + 2 :])
    return None


def held_back(store: CrawlStore, url: str) -> str | None:
    """Return which limit holds back a URL that waits, in words; None if none does.

    The accounts of the crawl are kept again from its pages, as a resumed crawl does.
    """
    e = schema.events.c
    limited = sa.select(e.detail).where(e.kind == LIMITED)
    names = {host(url), pattern(url)}
    if not any(row.detail.partition(": ")[0] in names for row in store.rows(limited)):
        return None
    account = _accounts(store).barred(url)
    return None if account is None else _in_words(account)


def _accounts(store: CrawlStore) -> Quotas:
    e, p, u, r = schema.events.c, schema.page.c, schema.url.c, schema.url.alias()
    near = sa.select(e.seq).where(e.kind == NEAR_DUPLICATE)
    nothing_new = {row.seq for row in store.rows(near)}
    raised_at = Counter(row.seq for row in store.rows(sa.select(e.seq).where(e.kind == RAISED)))
    pages = (
        sa.select(p.seq, u.url, p.relevance, p.duplicate_of, r.c.url.label("referrer"))
        .select_from(schema.page)
        .join(schema.url, u.id == p.url)
        .join(r, r.c.id == u.referrer, isouter=True)
        .order_by(p.seq)
    )
    allowances = Quotas()
    for row in store.rows(pages):
        repeats = row.seq in nothing_new or row.duplicate_of is not None
        earns = row.relevance > RELEVANT and not repeats
        for _ in allowances.count(row.url, row.referrer, earns=earns, repeats=repeats):
            pass
        for _ in range(raised_at[row.seq]):
            allowances.raise_all()
    return allowances


def _in_words(account: Quota) -> str:
    return f"held back: of {account.kind} {account.name}, {account.in_words}"
