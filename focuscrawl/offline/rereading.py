"""Pages of a crawl that is over, read again from the web they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sqlalchemy as sa

from focuscrawl.page import is_html, parse_page, read_content_type
from focuscrawl.store import schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.page import PageView
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.protocol import Web


class Reread(NamedTuple):
    """A page, and where its links led in the crawl.

    Attributes
    ----------
    view : the page
    links : int64 (n,), which of its links lead to URLs the crawl knew
    targets : int64 (n,), the numbers of these
    probabilities : float64 (n_classes,), posteriors of the page; None if nobody asked, or the
        critic has none
    """

    view: PageView
    links: NDArray[np.int64]
    targets: NDArray[np.int64]
    probabilities: NDArray[np.float64] | None


class Rereader:
    """Reads pages of a finished crawl again.

    Parameters
    ----------
    store : of the crawl
    web : where the pages are
    critic : judges them again, for their class probabilities; None: no need
    """

    def __init__(self, store: CrawlStore, web: Web, *, critic: Critic | None) -> None:
        u = schema.url.c
        self.urls = [row.url for row in store.rows(sa.select(u.url).order_by(u.id))]
        self._numbers: dict[str | None, int] = {url: i for i, url in enumerate(self.urls)}
        self._web = web
        self._critic = critic

    def read(self, number: int) -> Reread | None:
        """Read the page of a URL; None if the web has no such page any more."""
        url = self.urls[number]
        known = self._web.resolve([url])[0]
        answer = None if known is None else self._web.fetch(known)
        if answer is None:
            return None
        header = next((v for name, v in answer.headers if name.lower() == "content-type"), None)
        media_type, encoding = read_content_type(header)
        if not is_html(media_type, answer.body):
            return None
        view = parse_page(answer.body, url, encoding=encoding)
        found = [self._numbers.get(link) for link in self._web.resolve(view.links.urls)]
        links = [i for i, target in enumerate(found) if target is not None]
        targets = [target for target in found if target is not None]
        judged = None if self._critic is None else self._critic.judge([view]).probabilities
        return Reread(
            view,
            np.array(links, np.int64),
            np.array(targets, np.int64),
            None if judged is None else judged[0],
        )
