"""The harvest that comes back when a crawl marks what its alarm proposes."""

from __future__ import annotations

import numpy as np

from focuscrawl.lab.whole_web import WholeWeb
from studies.feedback import SoftCrawl, first_alarm

ON, SIBLING, FAR = "/Money/Funds", "/Money/Shares", "/Sport"


def line_of(*classes: str) -> WholeWeb:
    """A web in which page i links to i + 1, and every tenth to one that is far from it all."""
    n = len(classes)
    names = [ON, SIBLING, FAR]
    probabilities = np.zeros((2 * n, 3), np.float32)
    for i, path in enumerate(classes):
        probabilities[i, names.index(path)] = 1.0
    probabilities[n:, 2] = 1.0
    links = [[i + 1, n + i] if i + 1 < n else [] for i in range(n)] + [[]] * n
    return WholeWeb(
        urls=[f"http://h.example/{i}" for i in range(2 * n)],
        classes=names,
        probabilities=probabilities,
        content=np.arange(2 * n),
        bounds=np.cumsum([0, *map(len, links)]),
        targets=np.array([target for each in links for target in each]),
    )


def test_a_crawl_judged_anew_goes_where_the_wider_topic_leads() -> None:
    whole = line_of(*[ON] * 120, *[SIBLING] * 200)
    own = whole.relevance(ON)
    crawl = SoftCrawl(whole, own, [0])
    alarm = first_alarm(crawl, ON)
    assert alarm is not None
    assert alarm.proposals[0].topic in (SIBLING, "/Money")
    wide = whole.relevance("/Money")
    wider = crawl.again(wide)
    assert wider.fetched == crawl.fetched
    marked = [page for page, _ in wider.go_on(50)]
    assert wide[marked].mean() > 0.4
    assert not set(marked) & set(crawl.fetched)
