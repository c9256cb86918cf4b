"""What limits on hosts and patterns, and the search for near-duplicates, did in a crawl."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from focuscrawl.crawl.parts.near_duplicates import NEAR_DUPLICATE
from focuscrawl.crawl.parts.traps import LIMITED, RAISED
from focuscrawl.crawl.quotas import Quota, Quotas
from focuscrawl.crawl.url_patterns import pattern
from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.foundation.urls import host
from focuscrawl.report.plain_text import counted
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.store import CrawlStore

_HOSTS, _PATTERNS = "hosts", "patterns"


def trap_events(store: CrawlStore) -> dict[str, int]:
    """Return how many ``hosts`` and ``patterns`` were limited, and other events by their kind."""
    counts: Counter[str] = Counter()
    for event in History(store).events(LIMITED, RAISED, NEAR_DUPLICATE):
        name = event.detail.partition(": ")[0]
        of_limit = _PATTERNS if "/" in name else _HOSTS
        counts[of_limit if event.kind == LIMITED else event.kind] += 1
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
    told = History(store).events(NEAR_DUPLICATE)
    return next((event.detail[len(url) + 2 :] for event in told if event.seq == seq), None)


def held_back(store: CrawlStore, url: str) -> str | None:
    """Return which limit holds back a URL that waits, in words; None if none does.

    The accounts of the crawl are kept again from its pages, as a resumed crawl does.
    """
    history, names = History(store), {host(url), pattern(url)}
    if not any(event.detail.partition(": ")[0] in names for event in history.events(LIMITED)):
        return None
    account = _accounts(history).barred(url)
    return None if account is None else _in_words(account)


def _accounts(history: History) -> Quotas:
    nothing_new = {event.seq for event in history.events(NEAR_DUPLICATE)}
    raised_at = Counter(event.seq for event in history.events(RAISED))
    name = {url.id: url.url for url in history.urls()}
    quotas = Quotas()
    for fetch in history.first_fetches():
        repeats = fetch.seq in nothing_new or fetch.duplicate_of is not None
        earns = fetch.relevance > RELEVANT and not repeats
        referrer = None if fetch.referrer is None else name[fetch.referrer]
        for _ in quotas.count(fetch.name, referrer, earns=earns, repeats=repeats):
            pass
        for _ in range(raised_at[fetch.seq]):
            quotas.raise_all()
    return quotas


def _in_words(account: Quota) -> str:
    return f"held back: of {account.kind} {account.name}, {account.in_words}"
