"""Front doors of webkb's other domains, by a rule that looks at links and at no label.

Run: ``python benchmarks/unseen_doors.py > doors.txt`` after the tests, which unpack the webs, and
forage from them by ``focuscrawl paths check ... --unseen doors.txt`` (see the studies of paths).

The rule: of each registered domain the door is the page from which links within the domain lead
to most of its pages, the one with the shortest URL where several do; the domain counts where
these are ten or more. Left out are the four universities that are learned from, and the eight
departments that were looked at when settings were chosen. Settings were written down with it
before any was foraged: those that stand, all four goals, a budget of 400, stops at 0.03 and 0.3.
"""

from __future__ import annotations

from collections import defaultdict

from replays import recording

from focuscrawl.crawl.scope import can_be_page
from focuscrawl.paths.path_features import split_url
from focuscrawl.paths.path_training import WebPages
from focuscrawl.webs import open_web
from studies.forages import reachable

#: by registered domain
LOOKED_AT = frozenset(
    """
    cornell.edu utexas.edu washington.edu wisc.edu
    umass.edu uiuc.edu rice.edu umd.edu uoregon.edu umich.edu nyu.edu uidaho.edu
    """.split()  # noqa: SIM905 - a dozen quoted lines are harder to read
)
_FEWEST = 10


def doors() -> list[str]:
    """Return the front doors, by domain."""
    web = open_web(str(recording("webkb")))
    pages = WebPages(web)
    domains: dict[str, set[str]] = defaultdict(set)
    for url in web.urls():
        domains[split_url(url).domain].add(url)
    left = sorted(domains.keys() - LOOKED_AT)
    found = [_door(domains[domain], pages) for domain in left]
    return [door for door in found if door is not None]


def _door(urls: set[str], pages: WebPages) -> str | None:
    """Return the door of a domain by its pages; None: too few can be reached."""
    within = {
        url: [to for to in pages.links(url) if to in urls and can_be_page(to)] for url in urls
    }
    reach = {url: len(reachable(url, within.__getitem__)) for url in urls}
    door = min(urls, key=lambda url: (-reach[url], len(url), url))
    return door if reach[door] >= _FEWEST else None


if __name__ == "__main__":
    print("\n".join(doors()))
