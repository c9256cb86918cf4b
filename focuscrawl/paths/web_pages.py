"""Pages and links of a web, recorded or live, fetched and parsed when paths need them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from focuscrawl.foundation.urls import resolve
from focuscrawl.webs.pages import HtmlAnswer

if TYPE_CHECKING:
    from focuscrawl.page import PageView
    from focuscrawl.webs.protocol import Source

_KEPT = 3000  # pages in memory
_REDIRECTS = 5  # followed from one link


class WebPages:
    """Pages and the links between them; links to what the source does not have are left out.

    Parameters
    ----------
    source : a recorded web is read again and again; what comes from the live one is kept
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.view = lru_cache(_KEPT)(self._view)
        self.targets = lru_cache(None)(self._targets)

    def _view(self, url: str) -> PageView | None:
        """Return the page that a link to `url` leads to, None if there is none."""
        for _ in range(_REDIRECTS + 1):
            answer = self._source.fetch(url)
            if answer is None:
                return None
            location = answer.header("location")
            if location is None or not 300 <= answer.status < 400:
                page = HtmlAnswer.of(answer, url)
                return None if page is None else page.parse()
            (to,) = self._source.resolve(
                [each for each in resolve(url, [location]) if each is not None]
            ) or (None,)
            if to is None:
                return None
            url = to
        return None

    def _targets(self, url: str) -> list[str | None]:
        """Return where each link of a page leads, None: to nothing that the source has."""
        view = self.view(url)
        return [] if view is None else self._source.resolve(view.links.urls)

    def links(self, url: str) -> list[str]:
        """Return the pages that a page links to, itself left out, each once, in order."""
        found = dict.fromkeys(to for to in self.targets(url) if to is not None)
        return [to for to in found if to != url]
