"""Opens a crawl from its configuration; checks the whole configuration before writing a file."""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl import __version__
from focuscrawl.crawl.crawl_folder import CrawlFolder
from focuscrawl.crawl.discovery import FEEDS, Discovery
from focuscrawl.crawl.distilling import Distilling, HubRevisits, has_revisits
from focuscrawl.crawl.exploration import Exploration
from focuscrawl.crawl.learning import Learning
from focuscrawl.crawl.loop import Crawl
from focuscrawl.crawl.rejudging import TopicChange, resumed_config
from focuscrawl.crawl.revisit_policy import KnownPages, copy_knowledge, open_knowledge
from focuscrawl.crawl.scope import Scope, read_seeds, scope_identity
from focuscrawl.crawl.state import restore
from focuscrawl.crawl.stopping import Completeness, StopRules
from focuscrawl.crawl.target_pages import (
    check_targets,
    choose_targets,
    read_targets,
    write_targets,
)
from focuscrawl.crawl.traps import NearDuplicates, Traps
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.crawl.waiting import PatientOrder, PriorityFidelity
from focuscrawl.crawl_config import DEFAULT_CRITIC
from focuscrawl.critic import load_critic
from focuscrawl.critic.critic_files import default_topic
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.urls import is_reserved, normalize, without_credentials
from focuscrawl.frontier import Frontier
from focuscrawl.paths.path_model import TOPIC as GOAL_TOPIC
from focuscrawl.paths.path_model import is_path_model, load_path_critic
from focuscrawl.store import CrawlStore
from focuscrawl.store.crawl_store import damage_error
from focuscrawl.store.schema import FETCHED
from focuscrawl.strategies import StrategyContext, make_strategy
from focuscrawl.strategies.knowledge_strategy import KNOWN_WEIGHT, CorrectedStrategy
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.crawl.part import Part
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.knowledge import Knowledge
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.web_protocol import Web

logger = logging.getLogger(__name__)

_DAY = 86_400.0  # seconds
_MAX_SHOWN = 3  # URLs in a message


def open_crawl(config: CrawlConfig) -> Crawl:
    """Check a configuration; open a new crawl or resume the crawl in `CrawlConfig.crawl_dir`.

    Raises
    ------
    UserError
        The configuration has an error. Nothing was written.
    """
    config = with_topic(config)
    name = config.crawl_dir or CrawlFolder.new_name(config.topics[0], datetime.now())
    folder = CrawlFolder(Path(name))
    knowledge = open_knowledge(config, folder)
    checked = check_config(config, knowledge, exists=folder.exists, folder=folder)
    config = checked.config
    store, strategy = folder.open_store(checked.identity, checked.about), checked.strategy
    now = _start_time(store, checked)
    known, urls = None, UrlTable()
    if knowledge is not None:
        known = KnownPages.of(knowledge, urls, config, now)
        copy_knowledge(knowledge, folder)
        if strategy.learns:
            strategy = CorrectedStrategy(
                strategy, known.scores, urls, 1.0 if config.revisit else KNOWN_WEIGHT
            )
    if config.targets is not None:
        write_targets(folder.path, checked.targets)
    crawl = Crawl(
        critic=checked.critic,
        strategy=strategy,
        frontier=Frontier(config.per_host, config.delay),
        store=store,
        folder=folder,
        web=checked.web,
        config=config.with_values(crawl_dir=str(folder.path)),
        within=checked.within,
        urls=urls,
        known=known,
    )
    crawl.parts = build_parts(crawl)
    restore(crawl)
    crawl.start(checked.seeds)
    if known is not None:
        known.queue_pages(crawl)
    return crawl


def _start_time(store: CrawlStore, checked: CheckedConfig) -> float:
    """Return the start time of the crawl, in the time scale of its knowledge file (days)."""
    written = store.identity().get("now", checked.about["now"])
    try:
        return float(written)
    except ValueError:
        raise damage_error(store.location, f"the start time {written} is not a number") from None


def build_parts(crawl: CrawlState) -> list[Part]:
    """Return the parts of a crawl (`Part`) in the order in which the crawl loop calls them."""
    config = crawl.config
    parts: list[Part] = [StopRules(crawl), TopicChange(crawl)]
    if config.near_duplicates:
        parts.append(NearDuplicates(crawl))
    if config.limits:
        parts.append(Traps(crawl))
    if config.discover:
        parts.append(Discovery(crawl))
    parts.append(Completeness(crawl))
    if crawl.web is None or config.delay > 0.0:  # otherwise no link waits for its host
        parts += [PatientOrder(crawl), PriorityFidelity(crawl)]
    if config.explore and crawl.strategy.expects_relevance:
        parts.append(Exploration(crawl))
    if config.revisit_hubs or has_revisits(crawl.store):
        parts.append(HubRevisits(crawl))
    elif config.distill:
        parts.append(Distilling(crawl))
    if crawl.strategy.learns:  # last, so that training uses all changes by a fetch
        parts.append(Learning(crawl))
    return parts


class CheckedConfig(NamedTuple):
    """A checked configuration, with the critic, strategy, page source and start pages it names.

    The list ``targets`` has the target pages that the argument `targets` names. The class
    `focuscrawl.crawl.state.CrawlState` describes the attribute ``within``. The list ``seeds`` is
    empty for a resumed crawl, whose start pages are already in the store.
    """

    config: CrawlConfig
    web: Web | None
    critic: Critic
    strategy: Strategy
    seeds: list[str]
    targets: list[str]
    within: frozenset[str] | None
    identity: dict[str, str]
    about: dict[str, str]


def with_topic(config: CrawlConfig) -> CrawlConfig:
    """Return a configuration with a topic; the default is the topic of the critic.

    Raises
    ------
    UserError
        There is no topic, and the critic has several topics.
    """
    if config.topics:
        return config
    has_goals = is_path_model(config.critic)
    remedy = "add -a topic=TOPIC or set FOCUSCRAWL_TOPIC"
    topic = GOAL_TOPIC if has_goals else default_topic(config.critic, remedy)
    return config.with_values(topic=topic)


def check_config(
    config: CrawlConfig,
    knowledge: Knowledge | None,
    *,
    exists: bool,
    folder: CrawlFolder | None = None,
) -> CheckedConfig:
    """Load the critic, strategy, web and start pages that a configuration names; write no file.

    Parameters
    ----------
    knowledge : Knowledge or None
        Knowledge of the topic from earlier crawls.
    exists : bool
        True if the crawl exists and is resumed.
    folder : CrawlFolder or None
        Folder of the crawl, which may have another critic since the crawl started.

    Raises
    ------
    UserError
        The configuration has an error.
    """
    config = with_topic(config)
    _check_extras(config)
    web = open_web(config.web) if config.web is not None else None
    critic: Critic = load_config_critic(config)
    if knowledge is not None:
        knowledge.check(",".join(config.topics), critic.fingerprint)
    resumes = config.seeds is None and exists
    scope = Scope(config)
    seeds = (
        [] if resumes else _drop_seeds_out_of_scope(scope, _seeds(config, critic, web, knowledge))
    )
    if folder is not None:
        config, critic = resumed_config(folder, config, critic)
    targets = choose_targets(config, critic=critic, web=web, knowledge=knowledge, seeds=seeds)
    stored = [] if folder is None else read_targets(folder.path)
    check_targets(config, targets if config.targets is not None else stored)
    within = None if config.within is None else _fetched_urls(Path(config.within))
    context = StrategyContext(critic, config.random_state, web, config.topics, knowledge)
    strategy = make_strategy(config.strategy, context, config.strategy_options)
    identity = {
        "topic": ",".join(config.topics),
        "critic": critic.fingerprint,
        "strategy": config.strategy,
        "options": json.dumps(config.strategy_options, sort_keys=True),
        "web": web.fingerprint if web is not None else "live",
        "within": config.within or "",
        "random_state": str(config.random_state),
        **scope_identity(config),
    }
    if "begin_with" in config.strategy_options:  # the file at a path can be replaced
        from focuscrawl.apprentice.apprentice import apprentice_digest  # noqa: PLC0415 - slow to import

        identity["apprentice"] = apprentice_digest(Path(config.strategy_options["begin_with"]))
    if config.spider:
        identity["spider"] = config.spider
    if knowledge is not None:
        identity["knowledge"] = knowledge.meta["state"]
        identity["revisit"] = str(config.revisit)
    now = knowledge.now if knowledge is not None and web is not None else time.time() / _DAY
    about = {
        "now": repr(now),
        "web_name": config.web or "the live Web",
        "critic_name": config.critic,
        "focuscrawl_version": __version__,
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if web is None and config.critic == DEFAULT_CRITIC:
        logger.warning(
            "critic %s knows only the topics of the synthetic web: train a critic for the live "
            "Web (focuscrawl train)",
            config.critic,
        )
    return CheckedConfig(config, web, critic, strategy, seeds, targets, within, identity, about)


def load_config_critic(config: CrawlConfig) -> Critic:
    """Load the critic, or the path model, that a configuration names."""
    if is_path_model(config.critic):
        if config.calibrated:
            raise UserError(
                f"critic {config.critic} is a path model, which cannot be calibrated: remove the "
                "setting FOCUSCRAWL_CALIBRATED"
            )
        return load_path_critic(config.critic, config.topic)
    return load_critic(config.critic, config.topic, calibrated=config.calibrated)


def _seeds(
    config: CrawlConfig, critic: Critic, web: Web | None, knowledge: Knowledge | None
) -> list[str]:
    if config.seeds == "":
        return []
    if config.seeds is None and config.revisit:
        return []  # `KnownPages.queue_pages` queues the known pages
    if config.seeds is None and knowledge is not None and knowledge.seeds():
        seeds = knowledge.seeds()
    elif config.seeds is None:
        if not critic.examples:
            raise UserError(
                "no start pages: the critic has no example pages, so add -a seeds=URL,URL or "
                "-a seeds=FILE"
            )
        found = [normalize(example) for example in critic.examples]
        seeds = [url for url in found if url is not None]
    else:
        seeds = read_seeds(config.seeds, config.topics)
    if web is None and not config.own_names and seeds and all(map(is_reserved, seeds)):
        raise UserError(
            f"seeds: the hosts of all {len(seeds)} start pages are reserved for examples and "
            f"tests, and not on the live Web: {_first_few(seeds)}; name other start pages, or "
            "crawl a recorded web with -a web=..."
        )
    if web is None or not config.closed:
        return seeds
    resolved = web.resolve(seeds)
    known = [url for url in resolved if url is not None]
    if not known:
        raise UserError(
            f"seeds: none of the {len(seeds)} start pages is in the recorded web {config.web}: "
            f"{_first_few(seeds)}; name start pages of that web"
        )
    absent = [url for url, found in zip(seeds, resolved, strict=True) if found is None]
    if absent and config.seeds is not None:
        logger.warning(
            "%d of %d start pages are skipped, because they are not in the recorded web: %s",
            len(absent),
            len(seeds),
            _first_few(absent),
        )
    return known


def _first_few(urls: list[str]) -> str:
    named = [without_credentials(url) for url in urls[:_MAX_SHOWN]]
    return ", ".join(named if len(urls) <= _MAX_SHOWN else [*named, "..."])


def _check_extras(config: CrawlConfig) -> None:
    """Raise `UserError` if a library is missing that another process of the crawl will import."""
    if FEEDS in config.discover:
        with require_extra("feeds", "discover=feeds"):
            import feedparser  # noqa: F401, PLC0415
    if config.pdf:
        with require_extra("pdf", "FOCUSCRAWL_PDF"):
            import pypdf  # noqa: F401, PLC0415


def _drop_seeds_out_of_scope(scope: Scope, seeds: list[str]) -> list[str]:
    in_scope = scope.filter_seeds(seeds)
    if len(in_scope) < len(seeds):
        logger.warning(
            "%d of %d start pages are skipped, because they are not in the scope of the crawl",
            len(seeds) - len(in_scope),
            len(seeds),
        )
    return in_scope


def _fetched_urls(folder: Path) -> frozenset[str]:
    store = CrawlStore.open(CrawlFolder(folder).store_path, read_only=True)
    try:
        rows = store.rows("SELECT url FROM url WHERE state = ?", (FETCHED,))
        return frozenset(url for (url,) in rows)
    finally:
        store.close()
