"""An apprentice that learns from a crawl that is over [A02 section 3.5: offline training]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.facts import PageFacts
from focuscrawl.apprentice.options import Options
from focuscrawl.apprentice.page_reader import PageReader
from focuscrawl.apprentice.reading import WordReader
from focuscrawl.errors import UserError
from focuscrawl.page import is_html, parse_page, read_content_type
from focuscrawl.store import schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.protocol import Web

_ALL = 1_000_000  # judged URLs learned from: offline there is time
_LESSONS = 5  # over the same instances: each is a few steps of the minimiser


def learn_from(
    store: CrawlStore,
    *,
    critic: Critic | None = None,
    web: Web | None = None,
    on_page: Callable[[], object] = lambda: None,
) -> Apprentice:
    """Train an apprentice on all links (u,v) of a crawl with both ends fetched.

    Parameters
    ----------
    store : of the finished crawl
    critic, web : where a crawl of another strategy than the apprentice has its pages read again,
        and by whom; a crawl of the apprentice has kept what it took from them
    on_page : called for every page

    Raises
    ------
    UserError
        The crawl judged too few URLs, or it takes `critic` and `web` and they are not given.
    """
    apprentice = Apprentice(Options(memory=_ALL))
    p, memo = schema.page.c, schema.memo.c
    pages = (
        sa.select(p.seq, p.url, p.relevance, p.digest, p.duplicate_of, memo.data)
        .outerjoin(schema.memo, memo.seq == p.seq)
        .order_by(p.seq)
    )
    reader = None
    for page in store.rows(pages):
        on_page()
        apprentice.observe(page.url, page.relevance)
        if page.data is not None:
            apprentice.expand(page.url, PageFacts.from_bytes(page.data))
        elif page.digest is not None and page.duplicate_of is None:
            if reader is None:
                if critic is None or web is None:
                    raise UserError(
                        f"{store.where}: another strategy than the apprentice crawled here; "
                        "name the web to read its pages again with --web"
                    )
                reader = _Rereader(store, critic, web, apprentice)
            facts = reader.read(page.url, page.relevance)
            if facts is not None:
                apprentice.expand(page.url, facts)
    if not apprentice.judged:
        raise UserError(
            f"{store.where}: no link of this crawl was followed: nothing to learn from"
        )
    for _ in range(_LESSONS):
        apprentice.adopt(apprentice.learn())
    return apprentice


class _Rereader:
    """Reads pages of a finished crawl again."""

    def __init__(
        self, store: CrawlStore, critic: Critic, web: Web, apprentice: Apprentice
    ) -> None:
        u = schema.url.c
        self._urls = [row.url for row in store.rows(sa.select(u.url).order_by(u.id))]
        self._numbers: dict[str | None, int] = {url: i for i, url in enumerate(self._urls)}
        self._web = web
        self._apprentice = apprentice
        words = WordReader(critic, ask=getattr(critic, "reads_words", False))
        self._reader = PageReader(words, classes=critic.classes)

    def read(self, number: int, relevance: float) -> PageFacts | None:
        """Return the facts of a page; None if the web no longer has it."""
        url = self._urls[number]
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
        links = np.array([i for i, target in enumerate(found) if target is not None], np.int64)
        targets = np.array([target for target in found if target is not None], np.int64)
        return self._reader.read(
            view, links, targets, new=self._apprentice.new(targets), relevance=relevance
        )
