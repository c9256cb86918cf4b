"""Pages of a crawl, read again from its web or its recordings."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.webs import RecordedWeb, read_page
from focuscrawl.webs.opening import open_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.page import PageView
    from focuscrawl.webs.web_protocol import Web

LIVE = "live"  # what the identity of a crawl of the live Web calls it


def open_page_webs(
    identity: Mapping[str, str], folder: Path, others: Sequence[Web] = ()
) -> list[Web]:
    """Open the webs that hold a crawl's pages, in the order to look for a page.

    Parameters
    ----------
    identity : of the crawl, see `CrawlStore.identity`
    folder : of the crawl; a live one has its pages there if it recorded them
    others : webs named by the user for pages that the crawl does not have itself

    Raises
    ------
    UserError
        Nothing is named, and a live crawl recorded nothing, or a recording has been replaced; or
        only the user may name it, see `focuscrawl.webs.opening.check_named`.
    """
    try:
        return [*_own(identity, folder), *others]
    except UserError:
        if not others:
            raise
        return [*others]


def _own(identity: Mapping[str, str], folder: Path) -> list[Web]:
    if identity.get("web", LIVE) == LIVE:
        recorded = sorted(folder.glob("*.warc.gz"))
        if not recorded:
            raise UserError(
                f"{folder} holds no recording of its pages: crawl with -s FOCUSCRAWL_WARC=1, or "
                "name a recording of them with --web"
            )
        return [RecordedWeb(path, plain=True) for path in recorded]
    web = open_named(identity.get("web_name", ""), folder)
    if web.fingerprint != identity["web"]:
        raise UserError(f"{web.name} is not what {folder} crawled: name that with --web")
    return [web]


class ReadPage(NamedTuple):
    """A page read again, and where its links led in the crawl.

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


class PageSource:
    """Reads pages of a crawl again, with their links to URLs of the crawl.

    Parameters
    ----------
    webs : where the pages are, in the order to look for one
    urls : all URLs of the crawl, by number
    """

    def __init__(self, webs: Sequence[Web], urls: Sequence[str]) -> None:
        self._webs = webs
        self._urls = urls

    @cached_property
    def _numbers(self) -> dict[str | None, int]:
        return {url: number for number, url in enumerate(self._urls)}

    def read(
        self, url_id: int, digest: bytes, targets: Sequence[int] = ()
    ) -> tuple[PageView, NDArray[np.int64]] | None:
        """Read the page of a URL as the crawl got it.

        Parameters
        ----------
        digest : of the page as the crawl got it
        targets : numbers of the URLs that its links led to, in their order

        Returns
        -------
        The page, and which of its links these were, int64 (n_targets,); None if no web has this
        version of the page
        """
        for web in self._webs:
            view = read_page(web, self._urls[url_id], digest=digest)
            links = None if view is None else self._links(web, view, targets)
            if view is not None and links is not None:
                return view, links
        return None

    def read_with_links(self, url_id: int, critic: Critic | None = None) -> ReadPage | None:
        """Read the page of a URL as it is now, with all its links to URLs of the crawl.

        Parameters
        ----------
        critic : judges it again, for its class probabilities; None: not needed

        Returns
        -------
        None if no web has such a page any more
        """
        for web in self._webs:
            view = read_page(web, self._urls[url_id])
            if view is None:
                continue
            found = [self._numbers.get(url, -1) for url in web.resolve(view.links.urls)]
            targets = np.array(found, np.int64)
            links = np.flatnonzero(targets >= 0)
            judged = None if critic is None else critic.judge([view]).probabilities
            return ReadPage(view, links, targets[links], None if judged is None else judged[0])
        return None

    def _links(self, web: Web, view: PageView, targets: Sequence[int]) -> NDArray[np.int64] | None:
        """Find the links to `targets`, which are some of the page's links, in their order."""
        written = view.links.urls
        resolved = web.resolve(written)
        found, at = [], 0
        for target in targets:
            url = self._urls[target]
            while at < len(written) and url not in (written[at], resolved[at]):
                at += 1
            if at == len(written):
                return None
            found.append(at)
            at += 1
        return np.array(found, np.int64)
