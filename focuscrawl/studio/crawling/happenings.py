"""What happened in a crawl beside its fetches: each event of its store is read once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import sqlalchemy as sa

from focuscrawl.crawl.parts.priority_fidelity import OVERTAKEN
from focuscrawl.crawl.parts.topic_change import REDEFINED
from focuscrawl.crawl.plan import CrawlPlan
from focuscrawl.store import schema
from focuscrawl.store.history import StoredEvent

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore

BUDGET = "budget"  #: kind of the events that tell of another one

_KINDS = ("start", BUDGET, OVERTAKEN, REDEFINED)
_SAID = re.compile(r"(?:^|, )budget=(\d+)")


class Happenings:
    """Events of a crawl, as far as they have been read.

    Attributes
    ----------
    budget : of the last run, as it was given or as it was changed; 0: no limit
    """

    def __init__(self) -> None:
        self.budget = CrawlPlan.budget
        self._last = 0
        self._overtakes: dict[int, str] = {}

    def read(self, store: CrawlStore) -> bool:
        """Read what is new; tell whether the crawl follows another topic since."""
        e = schema.events.c
        new = sa.select(e.id, e.seq, e.kind, e.detail, e.at)
        new = new.where(e.id > self._last, e.kind.in_(_KINDS)).order_by(e.id)
        redefined = False
        for row in store.rows(new):
            self._last = row.id
            event = StoredEvent(row.seq, row.kind, row.detail, row.at)
            if event.kind == OVERTAKEN:
                self._overtakes[event.seq] = event.detail
            elif event.kind == REDEFINED:
                redefined = True
            elif event.kind == BUDGET:
                self.budget = int(event.detail)
            else:
                given = _SAID.search(event.detail)
                self.budget = int(given[1]) if given else CrawlPlan.budget
        return redefined

    def overtakes(self, seq: int) -> str | None:
        """Return the host of the best link that waited during a fetch; it is asked for once."""
        return self._overtakes.pop(seq, None)
