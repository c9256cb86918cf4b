"""From a user's words to a crawl that can start: every check comes before anything is written."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl import __version__
from focuscrawl.crawl.crawl import Crawl
from focuscrawl.crawl.folder import CrawlFolder
from focuscrawl.crawl.seeds import read_seeds
from focuscrawl.critic import load_critic
from focuscrawl.errors import UserError
from focuscrawl.frontier import Frontier
from focuscrawl.strategies import StrategyContext, find_strategy
from focuscrawl.urls import normalize
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.webs.protocol import Web


@dataclass(frozen=True)
class CrawlPlan:
    """What to crawl and how; the arguments of ``scrapy crawl focused``.

    Attributes
    ----------
    topic : topic paths, comma-separated
    seeds : see `focuscrawl.crawl.seeds.read_seeds`; None: the critic's examples of the topic
    critic : a trained critic or ``module:callable``
    strategy : name of a strategy
    budget : exact number of fetches; 0: no limit
    web : a recorded web, ``demo``, or None for the live Web
    closed : drop links to what `web` does not know
    crawl_dir : folder of the crawl; None: a new one under ``crawls/``
    random_state : seed of everything random
    calibrated : let the critic's calibrated probabilities be the relevance
    per_host, delay : politeness, see `Frontier`
    stagnation : stop after so many fetches without a relevant page; 0: never
    any_media : follow links whose ending promises no HTML page, too
    """

    topic: str
    seeds: str | None = None
    critic: str = "models/demo"
    strategy: str = "best-first"
    budget: int = 1000
    web: str | None = None
    closed: bool = True
    crawl_dir: str | None = None
    random_state: int = 0
    calibrated: bool = False
    per_host: int = 1
    delay: float = 0.0
    stagnation: int = 0
    any_media: bool = False

    @staticmethod
    def whole_number(name: str, text: str) -> int:
        """Read the whole number >= 0 that the user gave as `name`."""
        if not text.strip().isdecimal():
            raise UserError(f"{name} must be a whole number, 0 or more, not {text!r}")
        return int(text)

    def describe(self) -> str:
        """Return the plan in one line, for the crawl's log of events."""
        return ", ".join(
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        )

    @property
    def topics(self) -> tuple[str, ...]:
        """The topic paths."""
        return tuple(part.strip() for part in self.topic.split(",") if part.strip())

    def open(self) -> Crawl:
        """Check everything, then open the crawl: a new one, or the one in `crawl_dir`.

        Raises
        ------
        UserError
            Anything the user has to put right; nothing has been written then.
        """
        if not self.topics:
            raise UserError("no topic given: add -a topic=..., a topic path of the critic")
        strategy_class = find_strategy(self.strategy)
        web = open_web(self.web) if self.web is not None else None
        critic = load_critic(self.critic, self.topic, calibrated=self.calibrated)
        seeds = self._seeds(critic, web)
        context = StrategyContext(critic=critic, random_state=self.random_state, web=web)
        strategy = strategy_class(context)
        name = self.crawl_dir or CrawlFolder.new_name(self.topics[0], datetime.now())
        folder = CrawlFolder(Path(name))
        store = folder.open_store(
            {
                "topic": ",".join(self.topics),
                "critic": critic.fingerprint,
                "strategy": self.strategy,
                "web": web.fingerprint if web is not None else "live",
                "random_state": str(self.random_state),
            },
            {
                "web_name": self.web or "the live Web",
                "critic_name": self.critic,
                "focuscrawl_version": __version__,
                "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
            },
        )
        crawl = Crawl(
            critic=critic,
            strategy=strategy,
            frontier=Frontier(self.per_host, self.delay),
            store=store,
            folder=folder,
            web=web,
            plan=replace(self, crawl_dir=str(folder.path)),
        )
        crawl.add_seeds(seeds)
        return crawl

    def _seeds(self, critic: Critic, web: Web | None) -> list[str]:
        if self.seeds is None:
            if not critic.examples:
                raise UserError(
                    "the critic has no example pages to start from: add -a seeds=URL,... or a file"
                )
            found = [normalize(example) for example in critic.examples]
            seeds = [url for url in found if url is not None]
        else:
            seeds = read_seeds(self.seeds, self.topics)
        if web is None or not self.closed:
            return seeds
        known = [url for url in web.resolve(seeds) if url is not None]
        if not known:
            raise UserError(f"none of the {len(seeds)} seeds is in the recorded web {self.web}")
        return known
