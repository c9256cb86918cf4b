"""Pages of a crawl, read again where they came from."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.webs import open_web, read_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.page import PageView
    from focuscrawl.webs.protocol import Web

LIVE = "live"  # what the identity of a crawl of the live Web calls it


def web_of(identity: Mapping[str, str], folder: Path, named: str | None = None) -> Web:
    """Open the web that holds a crawl's pages.

    Parameters
    ----------
    identity : of the crawl, see `CrawlStore.identity`
    folder : of the crawl; a live one has its pages there if it recorded them
    named : where the user says they are

    Raises
    ------
    UserError
        A live crawl recorded nothing, or a recording is another one by now.
    """
    if named is not None:
        return open_web(named)
    if identity.get("web", LIVE) == LIVE:
        recorded = sorted(folder.glob("*.warc.gz"))
        if len(recorded) != 1:
            if recorded:
                raise UserError(
                    f"{folder} holds {len(recorded)} recordings: name one with --web; if they are "
                    f"one in parts, put them together (cat {folder}/*.warc.gz >all.warc.gz)"
                )
            raise UserError(
                f"{folder} holds no recording of its pages: crawl with -s FOCUSCRAWL_WARC=1, or "
                "name a recording with --web"
            )
        return open_web(str(recorded[0]))
    web = open_web(identity.get("web_name", ""))
    if web.fingerprint != identity["web"]:
        raise UserError(f"{web.name} is not what {folder} crawled: name that with --web")
    return web


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
    """Reads pages of a crawl again, with the links that led into it.

    Parameters
    ----------
    web : where the pages are
    urls : all URLs of the crawl, by number
    """

    def __init__(self, web: Web, urls: Sequence[str]) -> None:
        self._web = web
        self._urls = urls

    @cached_property
    def _numbers(self) -> dict[str | None, int]:
        return {url: number for number, url in enumerate(self._urls)}

    def read(
        self, number: int, digest: bytes, targets: Sequence[int] = ()
    ) -> tuple[PageView, NDArray[np.int64]] | None:
        """Read the page of a URL as the crawl got it.

        Parameters
        ----------
        digest : of the page as the crawl got it
        targets : numbers of the URLs that its links led to, in their order

        Returns
        -------
        The page, and which of its links these were, int64 (n_targets,); None if the web has no
        such page, or another by now
        """
        view = read_page(self._web, self._urls[number], digest=digest)
        links = None if view is None else self._links(view, targets)
        return None if view is None or links is None else (view, links)

    def read_with_links(self, number: int, critic: Critic | None = None) -> ReadPage | None:
        """Read the page of a URL as it is now, with all its links to URLs of the crawl.

        Parameters
        ----------
        critic : judges it again, for its class probabilities; None: no need

        Returns
        -------
        None if the web has no such page any more
        """
        view = read_page(self._web, self._urls[number])
        if view is None:
            return None
        found = [self._numbers.get(url, -1) for url in self._web.resolve(view.links.urls)]
        targets = np.array(found, np.int64)
        links = np.flatnonzero(targets >= 0)
        judged = None if critic is None else critic.judge([view]).probabilities
        return ReadPage(view, links, targets[links], None if judged is None else judged[0])

    def _links(self, view: PageView, targets: Sequence[int]) -> NDArray[np.int64] | None:
        """Find the links that led to `targets`: the crawl kept some of them, in their order."""
        written = view.links.urls
        resolved = self._web.resolve(written)
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
