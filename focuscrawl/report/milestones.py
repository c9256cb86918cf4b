"""What happened to a crawl that its curve does not tell: alarms, restarts, changes of topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.crawl.parts.topic_change import REDEFINED
from focuscrawl.diagnosis import ALARM, SLOW
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore

_KINDS = {ALARM: "alarm", SLOW: "slow", "start": "restart", REDEFINED: "topic changed"}


class Milestone(NamedTuple):
    """Something that happened after a fetch.

    Attributes
    ----------
    seq : number of the fetch
    kind : ``alarm``, ``slow``, ``restart`` or ``topic changed``
    """

    seq: int
    kind: str


def milestones(store: CrawlStore) -> list[Milestone]:
    """Return the milestones of a crawl in their order; its beginning is none."""
    events = History(store).events(*_KINDS)
    return [Milestone(event.seq, _KINDS[event.kind]) for event in events if event.seq]
