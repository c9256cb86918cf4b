"""The links between the pages of a crawl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from focuscrawl.crawl.redirects import has_moved
from focuscrawl.store import schema

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from focuscrawl.store import CrawlStore


@dataclass(frozen=True)
class CrawlGraph:
    """What a crawl has fetched, and how it hangs together.

    Attributes
    ----------
    starts : start pages, in the order fetched
    targets : for each page fetched the pages fetched that it links to, in document order
    """

    starts: list[str]
    targets: dict[str, list[str]]

    @classmethod
    def of(cls, store: CrawlStore) -> Self:
        """Read the links from the store of a crawl; redirects are links."""
        p, u, link = schema.page.c, schema.url.c, schema.link.c
        fetched = (
            sa.select(u.id, u.url, u.depth, u.referrer, p.status, p.error)
            .join(schema.page, p.url == u.id)
            .order_by(p.seq)
        )
        pages = list(store.rows(fetched))
        name = {page.id: page.url for page in pages}
        targets: dict[str, list[str]] = {page.url: [] for page in pages}
        redirects = {page.id for page in pages if has_moved(page.status, page.error)}
        for page in pages:
            if page.referrer in redirects:
                targets[name[page.referrer]].append(page.url)
        found = sa.select(link.source, link.target).order_by(link.id)
        for row in store.rows(found):
            if row.target in name:
                targets[name[row.source]].append(name[row.target])
        starts = [page.url for page in pages if page.depth == 0 and page.referrer is None]
        return cls(starts, targets)

    def links(self, url: str) -> list[str]:
        """Return the pages that a page links to, itself left out, each once."""
        return [to for to in dict.fromkeys(self.targets.get(url, [])) if to != url]

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Return each URL that was fetched, None for the others."""
        return [url if url in self.targets else None for url in urls]
