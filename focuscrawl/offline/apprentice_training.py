"""Offline training: an apprentice taught by the links of a finished crawl [A02 section 3.5]."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.apprentice.apprentice import Apprentice, read_apprentice
from focuscrawl.apprentice.feature_extraction import FeatureExtractor
from focuscrawl.apprentice.learners import options_in
from focuscrawl.apprentice.link_table import PageFacts
from focuscrawl.apprentice.options import CLASS_GROUPS, Options
from focuscrawl.crawl.page_source import PageSource
from focuscrawl.crawl.revisit_policy import KNOWLEDGE_FILE
from focuscrawl.errors import UserError
from focuscrawl.knowledge import apprentice_in
from focuscrawl.store.crawl_store import taking_in
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Callable

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.web_protocol import Web

LESSONS = 5  # over the same instances: each is a few steps of the minimiser
_ALL = 1_000_000  # judged URLs learned from: offline there is time


def options_of(store: CrawlStore) -> Options | None:
    """Return the options that the apprentice crawled with; None if another strategy did.

    What it kept of the pages was made with them.

    Raises
    ------
    UserError
        It started with what an earlier crawl had learned, and that is no longer there.
    """
    identity = store.identity()
    if identity.get("strategy") != "apprentice":
        return None
    with taking_in(store.where):
        options = Options.of(json.loads(identity.get("options", "{}")))
    graduate = begun_with(store)
    return options if graduate is None else options.following(options_in(graduate))


def begun_with(store: CrawlStore) -> bytes | None:
    """Return what the crawl's apprentice started with; None if it started with nothing.

    Raises
    ------
    UserError
        That is no longer there.
    """
    with taking_in(store.where):
        folder = json.loads(store.identity().get("options", "{}")).get("begin_with")
    if folder is not None:
        return read_apprentice(Path(folder))
    known = Path(store.where).parent / KNOWLEDGE_FILE
    return apprentice_in(known) if known.exists() else None


def learn_from(
    store: CrawlStore,
    *,
    options: Options | None = None,
    critic: Critic | None = None,
    web: Web | None = None,
    on_page: Callable[[], object] = lambda: None,
    go_on: bool = False,
) -> Apprentice:
    """Train an apprentice on all links (u,v) of a crawl with both ends fetched.

    Parameters
    ----------
    store : of the finished crawl
    options : of the apprentice, `memory` apart; None: those of the crawl (`options_of`), or the
        defaults after another strategy
    critic, web : by whom and where the pages are read again, where the crawl has not kept what
        these options look at: it was another strategy's, or of other `Options.of_pages`
    on_page : called for every page
    go_on : start with what the crawl's apprentice started with, so that nothing learned before
        is lost; else with nothing

    Raises
    ------
    UserError
        The crawl judged too few URLs, or it takes `critic` and `web` and they are not given.
    """
    kept = options_of(store)
    options = options or kept or Options()
    apprentice = Apprentice(replace(options, memory=_ALL))
    exported = begun_with(store) if go_on else None
    if exported is not None:
        apprentice.warm_start(exported)
    remembered = kept is not None and kept.of_pages == options.of_pages
    reader = None
    if not remembered:
        if critic is None or web is None:
            why = "has kept other features of the pages"
            if kept is None:
                why = "is another strategy's than the apprentice"
            raise UserError(
                f"{store.where}: this crawl {why}; name the web to read its pages again with --web"
            )
        reader = _FactsReader(store, critic, web, apprentice)
    history = History(store)
    n_urls = history.n_urls()
    for fetch in history.fetches(links=False, memos=reader is None):
        if not fetch.again:
            on_page()
            apprentice.observe(fetch.url, fetch.relevance)
        facts = None
        if reader is None:
            with taking_in(store.where):
                facts = None if fetch.memo is None else PageFacts.from_bytes(fetch.memo, n_urls)
        elif fetch.is_page:
            facts = reader.read(fetch.url, fetch.relevance)
        if facts is not None:
            with taking_in(store.where):
                apprentice.expand(fetch.url, facts)
    if not apprentice.n_judged:
        raise UserError(
            f"{store.where}: no link of this crawl was followed: nothing to learn from"
        )
    for _ in range(LESSONS):
        apprentice.adopt(apprentice.learn())
    return apprentice


class _FactsReader:
    """Takes the facts from pages of a finished crawl, read again."""

    def __init__(
        self, store: CrawlStore, critic: Critic, web: Web, apprentice: Apprentice
    ) -> None:
        options = apprentice.options
        self._apprentice = apprentice
        self._reader = FeatureExtractor(critic, options)
        self._judge = critic if CLASS_GROUPS & set(options.groups) else None
        names = [url.url for url in History(store).urls()]
        self._pages = PageSource([web], names)

    def read(self, number: int, relevance: float) -> PageFacts | None:
        """Return the facts of a page; None if the web no longer has it."""
        page = self._pages.read_with_links(number, self._judge)
        if page is None:
            return None
        return self._reader.read(
            page.view,
            page.links,
            page.targets,
            new=self._apprentice.new(page.targets),
            relevance=relevance,
            probabilities=page.probabilities,
        )
