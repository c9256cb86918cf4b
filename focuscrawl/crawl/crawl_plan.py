"""What to crawl and how."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from focuscrawl.completeness.stop_rules import StopExpression
from focuscrawl.foundation.urls import without_credentials
from focuscrawl.taxonomy import read_topics

if TYPE_CHECKING:
    from collections.abc import Mapping


#: what is no argument of a crawl, as its settings call it
_AS_WRITTEN = {
    "options": "FOCUSCRAWL_STRATEGY_OPTIONS",
    "per_host": "CONCURRENT_REQUESTS_PER_DOMAIN",
    "delay": "DOWNLOAD_DELAY",
    "concurrency": "CONCURRENT_REQUESTS",
}


@dataclass(frozen=True)
class CrawlPlan:
    """What to crawl and how; the arguments of ``scrapy crawl focused``.

    Attributes
    ----------
    topic : topic paths, comma-separated
    seeds : see `focuscrawl.crawl.scope.read_seeds`; None: the critic's examples of the topic;
        empty: none, as those come with a spider's requests
    critic : a trained critic or ``module:callable``
    strategy : name of a strategy
    options : what to set of the strategy's options
    budget : exact number of fetches; 0: no limit
    web : a recorded web, ``demo``, or None for the live Web
    closed : drop links to what `web` does not know
    crawl_dir : folder of the crawl; None: a new one under ``crawls/``
    random_state : seed of everything random
    calibrated : whether the relevance is the critic's calibrated probability; None: as the
        critic was trained
    per_host, delay : politeness, see `Frontier`
    patience : seconds that one more relevant page is worth, while better links wait for their
        hosts, see `focuscrawl.frontier.patience.Patience`; 0: none
    concurrency : URLs that may be under way at once, until their visits are recorded; 0: no limit
    within : folder of an earlier crawl: only URLs that it fetched are followed [A02 section
        3.6, the recall crawl]
    hosts : names as `focuscrawl.foundation.user_input.HOSTS` reads them; only URLs there, and on
        hosts below them, are followed; empty: all
    deny : parts of URLs as `URL_PATTERNS` reads them; a URL with one of them is not followed
    languages : codes; a page in another language has a relevance of 0; empty: all
    max_depth : clicks from a seed; links of pages there are not followed; None: no limit
    discover : what leads to pages that no page links to, of
        `focuscrawl.crawl.discovery`; empty: nothing
    pdf : read the text of PDF, too
    stop : rules by which the crawl ends itself
    stagnation : stop after so many fetches without a relevant page; 0: never
    limits, near_duplicates : see `focuscrawl.crawl.traps.Traps`
    any_media : follow links whose ending promises no HTML page, too
    obey_meta_robots : do not follow links that pages ask robots not to follow, and mark pages that
        ask not to be indexed; robots.txt is obeyed or not whatever this is
    meta_refresh : a page that leads to another within less than so many seconds is a redirect;
        0: none is
    knowledge : file of what earlier crawls of the topic have learned
    revisit : fetch pages that it knows only where another visit is worth it
    not_modified_cost : what an answer "not modified" counts against the budget, in fetches
    distill, distill_sites : see `focuscrawl.crawl.distilling.Distilling`
    revisit_hubs : fetch top hubs of the distiller again when their last fetch is so many seconds
        ago, fetches where `web` is given; 0: never
    own_names : names may be looked up elsewhere than on the Internet: start pages may have names
        that are reserved there
    spider : name of the spider whose requests are kept with the crawl; empty: it has none
    """

    topic: str
    seeds: str | None = None
    critic: str = "models/demo"
    strategy: str = "apprentice"
    options: Mapping[str, Any] = field(default_factory=dict)
    budget: int = 1000
    web: str | None = None
    closed: bool = True
    crawl_dir: str | None = None
    random_state: int = 0
    calibrated: bool | None = None
    per_host: int = 1
    delay: float = 0.0
    patience: float = 5.0
    concurrency: int = 0
    within: str | None = None
    hosts: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    max_depth: int | None = None
    discover: tuple[str, ...] = ()
    pdf: bool = False
    stop: StopExpression = field(default_factory=StopExpression)
    stagnation: int = 0
    any_media: bool = False
    obey_meta_robots: bool = False
    meta_refresh: float = 0.0
    limits: bool = True
    near_duplicates: bool = True
    knowledge: str | None = None
    revisit: bool = False
    not_modified_cost: float = 0.1
    distill: int = 0
    distill_sites: str = "auto"
    revisit_hubs: int = 0
    own_names: bool = False
    spider: str = ""

    def describe(self) -> str:
        """Return the plan in one line, for the crawl's log of events."""
        return without_credentials(
            ", ".join(
                f"{_AS_WRITTEN.get(each.name, each.name)}={getattr(self, each.name)}"
                for each in fields(self)
                if getattr(self, each.name) not in (each.default, {}, (), StopExpression())
            )
        )

    @property
    def topics(self) -> tuple[str, ...]:
        """The topic paths, normalised."""
        return read_topics(self.topic)
