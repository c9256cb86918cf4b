"""Applies a topic definition to a crawl: trains the critic and judges the fetched pages again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.crawl_folder import CrawlPhase
from focuscrawl.crawl.page_source import LIVE, open_page_webs
from focuscrawl.crawl.rejudging import (
    check_readable,
    check_topic_changeable,
    read_request,
    rejudge_crawl,
    remove_request,
    request_topic_change,
)
from focuscrawl.critic.critic_files import load_trained, save_critic
from focuscrawl.critic.protocol import RELEVANT, is_callable_spec
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import update_lock
from focuscrawl.foundation.user_input import NO_PROGRESS
from focuscrawl.report.status import open_store
from focuscrawl.store import CrawlStore
from focuscrawl.store.history import History
from focuscrawl.taxonomy import parse_topics
from focuscrawl.topics import (
    DEFINITION_FILE,
    TopicDefinition,
    check_trainable,
    read_definition,
    train_definition,
)
from focuscrawl.webs import open_web
from focuscrawl.webs.opening import open_web_from_file

if TYPE_CHECKING:
    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.webs.web_protocol import Web


_STOP_TIMEOUT = 60.0  # seconds to wait for a crawl that is stopping


def load_crawl_definition(
    store: CrawlStore, crawl_dir: Path, web: str | None = None
) -> TopicDefinition:
    """Return the definition of a crawl's topic: its ``topic.toml``, or its critic and topic.

    Parameters
    ----------
    web : str, optional
        Recorded web that has the critic's examples, for the new definition of a live crawl.

    Raises
    ------
    UserError
        The file is invalid, or the crawl's critic is a program.
    """
    path = crawl_dir / DEFINITION_FILE
    if path.exists():
        return read_definition(path)
    identity = store.identity()
    critic, named = identity.get("critic_name", ""), identity.get("web_name")
    if not critic:
        raise UserError(f"{crawl_dir} records no critic: name a topic definition")
    if is_callable_spec(critic) and not Path(critic).exists():
        raise UserError(f"the crawl's critic {critic} is a program, so judgements cannot train it")
    live = identity.get("web", LIVE) == LIVE
    return TopicDefinition(
        critic=critic, web=web if live else named, topics=parse_topics(identity["topic"])
    )


class AppliedDefinition(NamedTuple):
    """The new critic of a crawl, and how the crawl has changed."""

    critic: Path  # folder of the critic
    topics: tuple[str, ...]  # marked classes of the critic
    trained: TrainedCritic
    outcome: str | None  # the changes in one line; None: the running crawl judges its pages later


class _PageSources(NamedTuple):
    pages: list[Web]  # webs that have the crawl's pages
    more: list[Web]  # webs that may have more examples of the critic


def check_applicable(
    definition: TopicDefinition, crawl_dir: str | Path, *, web: str | None = None
) -> list[Web]:
    """Check, before a person judges pages, whether a topic definition can be applied to a crawl.

    Returns
    -------
    list of Web
        Webs that have the crawl's pages and the critic's examples, in the order to read them.

    Raises
    ------
    UserError
        The crawl's pages or the critic's examples cannot be read, or the crawl's topic cannot be
        changed.
    """
    with closing(open_store(crawl_dir)) as store:
        webs = _open_checked(definition, store, CrawlFolder(Path(crawl_dir)).path, web)
    return [*webs.pages, *webs.more]


def _open_checked(
    definition: TopicDefinition, store: CrawlStore, folder: Path, web: str | None
) -> _PageSources:
    identity = store.identity()
    check_topic_changeable(store, identity)
    typed = [] if web is None else [open_web(web)]
    more = []
    if definition.web is not None and definition.web != web:
        more = [open_web_from_file(definition.web, "the definition")]
    webs = _PageSources(open_page_webs(identity, folder, typed), more)
    check_trainable(definition, [*webs.pages, *webs.more])
    check_readable(store, webs.pages)
    return webs


def apply_definition(
    definition: TopicDefinition,
    crawl_dir: str | Path,
    *,
    web: str | None = None,
    examples: Progress = NO_PROGRESS,
    pages: Progress = NO_PROGRESS,
) -> AppliedDefinition:
    """Train the critic of a topic definition, and apply the critic to a stopped or running crawl.

    The critic is saved as ``critic-N`` in the crawl's folder, with N from 1. The pages of a
    stopped crawl are judged again immediately. A running crawl gets a request, and judges its
    pages again before its next fetch.

    Parameters
    ----------
    web : str, optional
        Recorded web that has pages and examples that the crawl did not record.
    examples : Progress
        Gets the number of examples to read, and the examples read.
    pages : Progress
        Gets the number of pages to judge again, and the pages judged.

    Raises
    ------
    UserError
        Pages or examples cannot be read. The crawl is unchanged.
    """
    folder = CrawlFolder(Path(crawl_dir))
    with closing(open_store(crawl_dir)) as store:
        identity = store.identity()
        webs = _open_checked(definition, store, folder.path, web)
        history = History(store)
        fetches = history.n_fetches()
        relevant = {
            fetch.url_text for fetch in history.first_fetches() if fetch.relevance > RELEVANT
        }
    trained, topics = train_definition(
        definition, [*webs.pages, *webs.more], relevant=relevant, progress=examples
    )
    trained = replace(trained, calibrated=_was_calibrated(identity, trained))
    with update_lock(folder.path / "critic"):  # another process may apply a definition, too
        taken = {path.name for path in folder.path.glob("critic-*")}
        name = next(name for i in count(1) if (name := f"critic-{i}") not in taken)
        save_critic(trained, folder.path / name)
    topic = ",".join(topics)
    try:
        is_running = not _lock_crawl(folder)
    except UserError:
        shutil.rmtree(folder.path / name, ignore_errors=True)
        raise
    if is_running:
        request_topic_change(folder.path, name, topic, web)
        return AppliedDefinition(folder.path / name, topics, trained, None)
    try:
        earlier = read_request(folder.path)  # left by a crawl that was killed
        pages.start(fetches)
        with closing(CrawlStore.open(folder.store_path)) as store:
            _, _, found = rejudge_crawl(
                store, folder.path, name, topic, webs=webs.pages, on_page=pages.advance
            )
        remove_request(folder.path, earlier)
    except BaseException:
        shutil.rmtree(folder.path / name, ignore_errors=True)
        raise
    finally:
        folder.release()
    return AppliedDefinition(folder.path / name, topics, trained, found.describe())


def _lock_crawl(folder: CrawlFolder) -> bool:
    """Lock the folder of a stopped or stopping crawl; return False if the crawl is running."""
    until = time.monotonic() + _STOP_TIMEOUT
    while True:
        try:
            folder.acquire(CrawlPhase.REJUDGING)
        except UserError:
            doing = folder.phase
            if doing is CrawlPhase.REJUDGING:
                raise UserError(
                    f"another process is applying a definition to {folder.path}: try again later"
                ) from None
            if doing in (CrawlPhase.STARTING, CrawlPhase.CRAWLING) or time.monotonic() >= until:
                return False
            continue  # a stopping crawl does not read requests any more
        return True


def _was_calibrated(identity: Mapping[str, str], trained: TrainedCritic) -> bool:
    """Return whether the crawl uses calibrated relevance, which the new critic must keep."""
    name = identity.get("critic_name", "")
    if trained.calibration is None or is_callable_spec(name):
        return False
    for calibrated in (False, True):
        try:
            critic = load_trained(name, identity.get("topic", ""), calibrated=calibrated)
        except UserError:
            continue
        if critic.fingerprint == identity.get("critic"):
            return calibrated
    return trained.calibrated
