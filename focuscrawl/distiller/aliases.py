"""URL aliases: duplicates and redirects, for which the page they stand for gets the links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Ints

_CHAIN = 5  # doublings: longer chains of redirects than 32 are loops


def stand_ins(fetched: Ints, duplicate_of: Ints, referrer: Ints, source: Ints) -> Ints:
    """Return for each URL its alias: the URL whose page it repeats or redirects to.

    For a duplicate that is the page it repeats. For a redirect it is where it leads, if nothing
    had linked there before: the crawl then keeps the redirect as the referrer of its target, and
    only a redirect is the referrer of anything without having a link.

    Parameters
    ----------
    fetched : int64 (n_fetched,), numbers of the URLs fetched
    duplicate_of : int64 (n_fetched,), the page each repeats; -1: none
    referrer : int64 (n_urls,), where each URL was first found; -1: nowhere
    source : int64 (n_links,), URLs that links were found on

    Returns
    -------
    int64 (n_urls,); a URL's own number where nothing stands for it
    """
    stands = np.arange(len(referrer))
    redirects = np.zeros(len(referrer), np.bool_)
    redirects[fetched] = True
    redirects[source] = False
    found = np.flatnonzero(referrer >= 0)[::-1]  # the first target of a redirect comes last, wins
    found = found[redirects[referrer[found]]]
    stands[referrer[found]] = found
    repeats = duplicate_of >= 0
    stands[fetched[repeats]] = duplicate_of[repeats]
    for _ in range(_CHAIN):
        stands = stands[stands]
    return stands
