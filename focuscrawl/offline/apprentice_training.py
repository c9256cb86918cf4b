"""Offline training of an apprentice on the links of a finished crawl [A02 section 3.5]."""

from __future__ import annotations

import json
from collections.abc import Callable
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
from focuscrawl.store.crawl_store import reporting_damage
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.store import CrawlStore
    from focuscrawl.webs.web_protocol import Web

TRAINING_PASSES = 5  # over the same instances, with a few L-BFGS steps each
_MAX_JUDGED = 1_000_000  # judged URLs in an offline training


def crawl_options(store: CrawlStore) -> Options | None:
    """Return the options of a crawl with the strategy ``apprentice``; None for other strategies.

    Raises
    ------
    UserError
        The apprentice that the crawl started with no longer exists.
    """
    identity = store.identity()
    if identity.get("strategy") != "apprentice":
        return None
    with reporting_damage(store.location):
        options = Options.from_mapping(json.loads(identity.get("options", "{}")))
    trained_apprentice = initial_apprentice(store)
    return (
        options
        if trained_apprentice is None
        else options.with_model_options(unpack_options(trained_apprentice))
    )


def initial_apprentice(store: CrawlStore) -> bytes | None:
    """Return the trained apprentice that the crawl started with, or None.

    Raises
    ------
    UserError
        The trained apprentice no longer exists.
    """
    with reporting_damage(store.location):
        folder = json.loads(store.identity().get("options", "{}")).get("begin_with")
    if folder is not None:
        return read_apprentice(Path(folder))
    known = Path(store.location).parent / KNOWLEDGE_FILE
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
    """Train an apprentice on all links between fetched pages of a finished crawl.

    Parameters
    ----------
    options : options of the apprentice, except `memory`; None: those of the crawl
        (`crawl_options`), or the defaults after another strategy
    critic, web : critic and web to read the pages again; needed if the store lacks the features of
        the pages: after another strategy, or with other `Options.page_options`
    warm_start : whether to start from the apprentice that the crawl started with

    Raises
    ------
    UserError
        The crawl followed no link, or `critic` and `web` are needed but missing.
    """
    kept = crawl_options(store)
    options = options or kept or Options()
    apprentice = Apprentice(replace(options, memory=_MAX_JUDGED))
    exported = initial_apprentice(store) if warm_start else None
    if exported is not None:
        apprentice.warm_start(exported)
    is_stored = kept is not None and kept.page_options == options.page_options
    reader = None
    if not is_stored:
        if critic is None or web is None:
            reason = "its store has other features of the pages"
            if kept is None:
                reason = "the crawl used another strategy"
            raise UserError(
                f"{store.location} lacks features for training, as {reason}: use --web to read "
                "the pages again"
            )
        reader = _FeatureReader(store, critic, web, apprentice)
    history = History(store)
    n_urls = history.n_urls()
    for fetch in history.fetches(links=False, memos=reader is None):
        if not fetch.is_revisit:
            on_page()
            apprentice.observe(fetch.url, fetch.relevance)
        features = None
        if reader is None:
            with reporting_damage(store.location):
                features = (
                    None if fetch.memo is None else PageFeatures.from_bytes(fetch.memo, n_urls)
                )
        elif fetch.is_page:
            features = reader.read(fetch.url, fetch.relevance)
        if features is not None:
            with reporting_damage(store.location):
                apprentice.expand(fetch.url, features)
    if not apprentice.n_judged:
        raise UserError(
            f"{store.location}: this crawl followed no links, so there is no training data: use a "
            "longer crawl"
        )
    for _ in range(TRAINING_PASSES):
        apprentice.adopt(apprentice.learn())
    return apprentice


class _FeatureReader:
    """Reads the pages of a finished crawl again and extracts their features."""

    def __init__(
        self, store: CrawlStore, critic: Critic, web: Web, apprentice: Apprentice
    ) -> None:
        options = apprentice.options
        self._apprentice = apprentice
        self._extractor = FeatureExtractor(critic, options)
        self._judge = critic if CLASS_GROUPS & set(options.groups) else None
        names = [url.url for url in History(store).urls()]
        self._pages = PageSource([web], names)

    def read(self, url_id: int, relevance: float) -> PageFeatures | None:
        """Return the features of a page's links; None if the page cannot be read any more."""
        page = self._pages.read_with_links(url_id, self._judge)
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
