"""Reads the pages of a crawl again, from the crawled recording or the crawl's WARC files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.webs import RecordedWeb, read_page
from focuscrawl.webs.opening import open_web_from_file

if TYPE_CHECKING:
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.page import PageView
    from focuscrawl.webs.web_protocol import Web

LIVE = "live"  # value of ``web`` in the identity of a live crawl


def open_page_webs(
    identity: Mapping[str, str], folder: Path, others: Sequence[Web] = ()
) -> list[Web]:
    """Open the recordings that contain a crawl's pages, in the order in which they are searched.

    Parameters
    ----------
    identity : mapping of str to str
        Identity of the crawl, see `CrawlStore.identity`.
    folder : Path
        Folder of the crawl, with the WARC files of a live crawl.
    others : sequence of Web
        Webs that the user names for pages that the crawl did not record.

    Raises
    ------
    UserError
        A live crawl recorded no pages, or its recorded web was replaced or may be named by the
        user only (`focuscrawl.webs.opening.check_web_from_file`); and ``others`` is empty.
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
                f"{folder} has no recording (WARC) of its pages: name a recording with --web; new "
                "crawls record with -s FOCUSCRAWL_WARC=1"
            )
        return [RecordedWeb(path, no_links=True) for path in recorded]
    web = open_web_from_file(identity.get("web_name", ""), folder)
    if web.fingerprint != identity["web"]:
        raise UserError(
            f"{web.name} has changed since {folder} crawled it: name the original recording with "
            "--web"
        )
    return [web]


class ReadPage(NamedTuple):
    """A page that was read again, with only the links that lead to URLs of the crawl."""

    view: PageView
    links: Ints  # positions of these links among all links of the page
    targets: Ints  # URL ids of their targets
    probabilities: Floats | None  # posteriors of the classes, if requested


class PageSource:
    """Reads pages of a crawl again; the argument ``urls`` lists the crawl's URLs by id."""

    def __init__(self, webs: Sequence[Web], urls: Sequence[str]) -> None:
        self._webs = webs
        self._urls = urls

    @cached_property
    def _url_ids(self) -> dict[str | None, int]:
        return {url: url_id for url_id, url in enumerate(self._urls)}

    def read(
        self, url_id: int, digest: bytes, targets: Sequence[int] = ()
    ) -> tuple[PageView, Ints] | None:
        """Read the version of a page that was fetched during the crawl.

        Parameters
        ----------
        digest : bytes
            Digest of the fetched version.
        targets : sequence of int
            URL ids of the targets of its links, in the order of the links.

        Returns
        -------
        tuple of (PageView, int64 array of shape (n_targets,)) or None
            The page, and the positions of the links to ``targets``; None if no web has this
            version of the page.
        """
        for web in self._webs:
            view = read_page(web, self._urls[url_id], digest=digest)
            links = None if view is None else self._links(web, view, targets)
            if view is not None and links is not None:
                return view, links
        return None

    def read_with_links(self, url_id: int, critic: Critic | None = None) -> ReadPage | None:
        """Read the recorded version of a page, with all its links to URLs of the crawl.

        If a critic is given, the result also has class probabilities. The method returns None if
        no recording contains the page.
        """
        for web in self._webs:
            view = read_page(web, self._urls[url_id])
            if view is None:
                continue
            found = [self._url_ids.get(url, -1) for url in web.resolve(view.links.urls)]
            targets = np.array(found, np.int64)
            links = np.flatnonzero(targets >= 0)
            judged = None if critic is None else critic.judge([view]).probabilities
            return ReadPage(view, links, targets[links], None if judged is None else judged[0])
        return None

    def _links(self, web: Web, view: PageView, targets: Sequence[int]) -> Ints | None:
        """Return the positions of the links to ``targets``, a subsequence of the page's links."""
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
