"""Falls of a crawl's harvest rate and their causes, from its store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.crawl.parts.priority_fidelity import OVERTAKEN
from focuscrawl.crawl.parts.topic_change import REDEFINED
from focuscrawl.diagnosis import ALARM, RECOVERED, SLOW, SPEEDY, HarvestWatch
from focuscrawl.report.outcome import PAGE, outcome
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from focuscrawl.diagnosis import Diagnosis
    from focuscrawl.store import CrawlStore

_START = "start"  # kind of the event that a run begins


def watch_again(store: CrawlStore) -> tuple[HarvestWatch, list[Diagnosis]]:
    """Watch a crawl again as it is judged now; return the watch, and every alarm it gave.

    An alarm of the store's events may be missing here: the crawl has followed another
    definition of its topic since.
    """
    topics = store.identity().get("topic", "")
    watch = HarvestWatch([topic for topic in topics.split(",") if topic])
    alarms = []
    history = History(store)
    overtakes = {event.seq: event.detail for event in history.events(OVERTAKEN)}
    for fetch in history.first_fetches():
        told = watch.visited(
            fetch.url,
            fetch.referrer,
            relevance=fetch.relevance,
            topic=fetch.topic,
            judged=is_page(fetch.status, fetch.error, fetch.duplicate_of),
            overtakes=overtakes.get(fetch.seq),
        )
        if told == ALARM and watch.alarm is not None:
            alarms.append(watch.alarm)
    return watch, alarms


def is_page(status: int, error: str | None, duplicate_of: object) -> bool:
    """Tell whether a fetch brought a page, and a new one."""
    return outcome(status, error, duplicate_of is not None) == PAGE


def last_alarm(store: CrawlStore) -> str | None:
    """Return what the last alarm of a crawl told, if it is not over; else of its speed."""
    history = History(store)
    for told, over in ((ALARM, (RECOVERED, REDEFINED)), (SLOW, (SPEEDY, _START))):
        for event in history.events(told, *over, last=1):
            if event.kind == told:
                return event.detail
    return None
