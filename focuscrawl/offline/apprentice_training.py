"""Offline training: an apprentice taught by the links of a finished crawl [A02 section 3.5]."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.apprentice.apprentice import Apprentice, read_apprentice
from focuscrawl.apprentice.feature_extraction import FeatureExtractor
from focuscrawl.apprentice.learners import unpack_options
from focuscrawl.apprentice.link_table import PageFeatures
from focuscrawl.apprentice.options import CLASS_GROUPS, Options
from focuscrawl.crawl.page_source import PageSource
from focuscrawl.crawl.revisit_policy import KNOWLEDGE_FILE
from focuscrawl.errors import UserError
from focuscrawl.knowledge import read_trained_apprentice
from focuscrawl.store.crawl_store import taking_in
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Callable

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.web_protocol import Web

TRAINING_PASSES = 5  # over the same instances: each is a few steps of the minimiser
_MAX_JUDGED = 1_000_000  # judged URLs learned from: offline there is time


def crawl_options(store: CrawlStore) -> Options | None:
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
        options = Options.from_mapping(json.loads(identity.get("options", "{}")))
    trained_apprentice = initial_apprentice(store)
    return (
        options
        if trained_apprentice is None
        else options.with_model_options(unpack_options(trained_apprentice))
    )


def initial_apprentice(store: CrawlStore) -> bytes | None:
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
    return read_trained_apprentice(known) if known.exists() else None


def train_apprentice(
    store: CrawlStore,
    *,
    options: Options | None = None,
    critic: Critic | None = None,
    web: Web | None = None,
    on_page: Callable[[], object] = lambda: None,
    warm_start: bool = False,
) -> Apprentice:
    """Train an apprentice on all links (u,v) of a crawl with both ends fetched.

    Parameters
    ----------
    store : of the finished crawl
    options : of the apprentice, `memory` apart; None: those of the crawl (`crawl_options`), or the
        defaults after another strategy
    critic, web : by whom and where the pages are read again, where the crawl has not kept what
        these options look at: it was another strategy's, or of other `Options.page_options`
    on_page : called for every page
    go_on : start with what the crawl's apprentice started with, so that nothing learned before
        is lost; else with nothing

    Raises
    ------
    UserError
        The crawl judged too few URLs, or it takes `critic` and `web` and they are not given.
    """
    kept = crawl_options(store)
    options = options or kept or Options()
    apprentice = Apprentice(replace(options, memory=_MAX_JUDGED))
    exported = initial_apprentice(store) if warm_start else None
    if exported is not None:
        apprentice.warm_start(exported)
    remembered = kept is not None and kept.page_options == options.page_options
    reader = None
    if not remembered:
        if critic is None or web is None:
            why = "has kept other features of the pages"
            if kept is None:
                why = "is another strategy's than the apprentice"
            raise UserError(
                f"{store.where}: this crawl {why}; name the web to read its pages again with --web"
            )
        reader = _FeatureReader(store, critic, web, apprentice)
    history = History(store)
    n_urls = history.n_urls()
    for fetch in history.fetches(links=False, memos=reader is None):
        if not fetch.again:
            on_page()
            apprentice.observe(fetch.url, fetch.relevance)
        features = None
        if reader is None:
            with taking_in(store.where):
                features = (
                    None if fetch.memo is None else PageFeatures.from_bytes(fetch.memo, n_urls)
                )
        elif fetch.is_page:
            features = reader.read(fetch.url, fetch.relevance)
        if features is not None:
            with taking_in(store.where):
                apprentice.expand(fetch.url, features)
    if not apprentice.n_judged:
        raise UserError(
            f"{store.where}: no link of this crawl was followed: nothing to learn from"
        )
    for _ in range(TRAINING_PASSES):
        apprentice.adopt(apprentice.learn())
    return apprentice


class _FeatureReader:
    """Takes the facts from pages of a finished crawl, read again."""

    def __init__(
        self, store: CrawlStore, critic: Critic, web: Web, apprentice: Apprentice
    ) -> None:
        options = apprentice.options
        self._apprentice = apprentice
        self._extractor = FeatureExtractor(critic, options)
        self._judge = critic if CLASS_GROUPS & set(options.groups) else None
        names = [url.url for url in History(store).urls()]
        self._pages = PageSource([web], names)

    def read(self, number: int, relevance: float) -> PageFeatures | None:
        """Return the facts of a page; None if the web no longer has it."""
        page = self._pages.read_with_links(number, self._judge)
        if page is None:
            return None
        return self._extractor.extract(
            page.view,
            page.links,
            page.targets,
            new=self._apprentice.is_new(page.targets),
            relevance=relevance,
            probabilities=page.probabilities,
        )
