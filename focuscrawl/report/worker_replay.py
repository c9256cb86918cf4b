"""The replay of a shared crawl for one apprentice: what all workers have found together."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from focuscrawl.apprentice.distributed_training import SharedTraining
from focuscrawl.apprentice.page_facts import PageFacts, unpack_words
from focuscrawl.store import schema
from focuscrawl.store.worker_tables import evidence

if TYPE_CHECKING:
    from focuscrawl.apprentice.apprentice import Apprentice
    from focuscrawl.store import CrawlStore

_ROWS = 100  # of evidence on a URL whose words are looked through


def replay_workers(store: CrawlStore, apprentice: Apprentice, url: int) -> tuple[int, list[str]]:
    """Tell an apprentice all that workers have told each other, except what came of `url`.

    Returns
    -------
    The number that the URL has for the apprentice, and the words of pages that link to it
    """
    numbers: defaultdict[int, int] = defaultdict(lambda: len(numbers))
    number, words = numbers[url], dict[str, None]()
    m, p, e = schema.models.c, schema.page.c, evidence.c
    last = sa.select(m.version, m.state).where(m.state.is_not(None)).order_by(m.version.desc())
    for model in store.rows(last.limit(1)):
        apprentice.adopt(SharedTraining(apprentice).take_up(model.version, model.state))
    left = _ROWS
    told = sa.select(e.source, e.targets, e.memo).where(e.memo.is_not(None)).order_by(e.id)
    for row in store.rows(told):
        of_targets = [numbers[each] for each in np.frombuffer(row.targets, "<i8").tolist()]
        facts = PageFacts.from_bytes(row.memo).numbered(np.array(of_targets, np.int64))
        apprentice.expand(numbers[row.source], facts)
        if left and number in of_targets:
            words.update(dict.fromkeys(unpack_words(facts.vocabulary)))
            left -= 1
    for page in store.rows(sa.select(p.url, p.relevance).order_by(p.seq)):
        if page.url != url:  # what the fetch itself has shown is no reason for it
            apprentice.hear(numbers[page.url], page.relevance)
    return number, [*words]
