"""Pages of a crawl, read again where they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.errors import UserError
from focuscrawl.page import is_html, parse_page, read_content_type
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

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
            found = f"{len(recorded)} recordings" if recorded else "no recording"
            raise UserError(
                f"{folder} holds {found} of its pages: crawl with -s FOCUSCRAWL_WARC=1, or name "
                "a recording with --web"
            )
        return open_web(str(recorded[0]))
    web = open_web(identity.get("web_name", ""))
    if web.fingerprint != identity["web"]:
        raise UserError(f"{web.name} is not what {folder} crawled: name that with --web")
    return web


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

    def read(
        self, number: int, digest: bytes, targets: Sequence[int] = ()
    ) -> tuple[PageView, NDArray[np.int64]] | None:
        """Read the page of a URL.

        Parameters
        ----------
        digest : of the page as the crawl got it
        targets : numbers of the URLs that its links led to, in their order

        Returns
        -------
        The page, and which of its links these were, int64 (n_targets,); None if the web has no
        such page, or another by now
        """
        (known,) = self._web.resolve([self._urls[number]])
        answer = None if known is None else self._web.fetch(known)
        if answer is None or Duplicates.digest(answer.body) != digest:
            return None
        header = next((v for name, v in answer.headers if name.lower() == "content-type"), None)
        media_type, encoding = read_content_type(header)
        if not is_html(media_type, answer.body):
            return None
        url = self._urls[number]
        view = parse_page(answer.body, url, encoding=encoding)
        links = self._links(view, targets)
        return None if links is None else (view, links)

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
