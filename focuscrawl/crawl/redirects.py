"""Redirects that lead in a circle, or on and on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.crawl.link_filter import fits
from focuscrawl.crawl.visit import META_REFRESH

if TYPE_CHECKING:
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.page import PageView

MOST = 20  # in a row, as browsers have it (WHATWG Fetch, HTTP-redirect fetch)


def refresh_target(view: PageView | None, longest: float) -> str | None:
    """Return where a page leads that shows another one in its place; None: it is a page itself.

    What refreshes soon is a redirect, written in HTML: what a reader comes to see is there. A
    page that loads itself again is none.

    Parameters
    ----------
    longest : seconds; a page that stays for as long, or longer, is a page. 0: every one is
    """
    if view is None or view.refresh in (None, view.url) or view.refresh_delay >= longest:
        return None
    return view.refresh


def has_moved(status: int, error: str | None) -> bool:
    """Tell whether a fetch came to a redirect, by its status and error in the store."""
    return 300 <= status < 400 or (error or "").startswith(META_REFRESH)


class Redirects:
    """Which URLs answered with a redirect, and by which of them a URL was reached."""

    def __init__(self, urls: UrlTable) -> None:
        self._urls = urls
        self._moved: set[int] = set()

    def add(self, number: int) -> None:
        """Take in a URL that redirected in an earlier run."""
        self._moved.add(number)

    def refusal(self, number: int, location: str | None, target: str | None) -> str | None:
        """Take in a redirect, and say why it leads nowhere; None if it does not.

        Parameters
        ----------
        number : of the URL that redirects
        location : where to, None if it does not say or says nonsense
        target : the same among the URLs that may be fetched, None if it is none

        Notes
        -----
        A URL is fetched once, so a circle ends by itself; but it is no answer, and a chain of
        ever new URLs would come before all else until the budget is spent.
        """
        self.add(number)
        if location is None:
            return "redirect to nowhere"
        if not fits(location):
            return f"redirect to nowhere: a URL of {len(location):,} characters"
        chain = [number]
        while (before := self._urls.found_on(chain[-1])) in self._moved and len(chain) < MOST:
            assert before is not None
            chain.append(before)
        if target is not None and target in [self._urls[each] for each in chain]:
            return f"redirect loop: back to {target}"
        if target is not None and len(chain) >= MOST:
            return f"redirects without end: {MOST} in a row"
        return None
