"""Applying a definition to a crawl: its critic is trained, and the crawl judged again."""

from __future__ import annotations

import shutil
import time
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
from focuscrawl.foundation.files import changing
from focuscrawl.foundation.user_input import SILENT
from focuscrawl.report.status import open_store
from focuscrawl.store import CrawlStore
from focuscrawl.store.history import History
from focuscrawl.taxonomy import read_topics
from focuscrawl.topics import TopicDefinition, check_trainable, read_definition, train_definition
from focuscrawl.webs import open_web
from focuscrawl.webs.opening import open_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.webs.web_protocol import Web


DEFINITION_FILE = "topic.toml"  #: of a crawl, in its folder

_STOP_TIMEOUT = 60.0  # seconds for which one waits for the end of a crawl that ends


def load_crawl_definition(
    store: CrawlStore, crawl_dir: Path, web: str | None = None
) -> TopicDefinition:
    """Return what a crawl follows: ``topic.toml`` in its folder, or what it was started with.

    Parameters
    ----------
    store, crawl_dir : of the crawl
    web : where pages and examples are that a live crawl has not, for a definition that is new

    Raises
    ------
    UserError
        The file makes no sense, or the crawl's critic is a program.
    """
    path = crawl_dir / DEFINITION_FILE
    if path.exists():
        return read_definition(path)
    identity = store.identity()
    critic, named = identity.get("critic_name", ""), identity.get("web_name")
    if not critic:
        raise UserError(f"{crawl_dir} does not say which critic it had: name a definition")
    if is_callable_spec(critic) and not Path(critic).exists():
        raise UserError(f"the crawl's critic {critic} is a program: it cannot be trained")
    live = identity.get("web", LIVE) == LIVE
    return TopicDefinition(
        critic=critic, web=web if live else named, topics=read_topics(identity["topic"])
    )


class AppliedDefinition(NamedTuple):
    """The critic that a crawl follows now, and what that changed in the crawl.

    Attributes
    ----------
    critic : folder of the new critic
    topics : classes of it that are marked
    trained : the critic
    outcome : what changed in the crawl, in one line; None: it runs, and will see to it itself
    """

    critic: Path
    topics: tuple[str, ...]
    trained: TrainedCritic
    outcome: str | None


class _PageSources(NamedTuple):
    """Where the pages of a crawl are, and where examples of its critic may be besides."""

    pages: list[Web]
    more: list[Web]


def check_applicable(
    definition: TopicDefinition, crawl_dir: str | Path, *, web: str | None = None
) -> list[Web]:
    """Find out, before anybody is asked to judge, whether a crawl could follow a definition.

    Parameters
    ----------
    definition, crawl_dir, web : as for `apply_definition`

    Returns
    -------
    Where the pages of the crawl and the critic's examples are, in the order to look for one

    Raises
    ------
    UserError
        As it would: the pages of the crawl or the critic's examples cannot be read, or the crawl
        follows no other definition.
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
        more = [open_named(definition.web, "the definition")]
    webs = _PageSources(open_page_webs(identity, folder, typed), more)
    check_trainable(definition, [*webs.pages, *webs.more])
    check_readable(store, webs.pages)
    return webs


def apply_definition(
    definition: TopicDefinition,
    crawl_dir: str | Path,
    *,
    web: str | None = None,
    examples: Progress = SILENT,
    pages: Progress = SILENT,
) -> AppliedDefinition:
    """Train the critic of a definition and have a crawl follow it, at rest or running.

    The critic becomes ``critic-N`` in the crawl's folder, with N from 1. A crawl at rest is
    judged again here; a running one finds the request, and does so before its next fetch.

    Parameters
    ----------
    crawl_dir : folder of the crawl
    web : where pages and examples are that the crawl does not have
    examples : reports how many examples will be read, and every few that were
    pages : reports how many pages will be judged again, and each that was

    Raises
    ------
    UserError
        The pages or examples cannot be read; the crawl has not been changed then.
    """
    folder = CrawlFolder(Path(crawl_dir))
    with closing(open_store(crawl_dir)) as store:
        identity = store.identity()
        webs = _open_checked(definition, store, folder.path, web)
        history = History(store)
        fetches = history.n_fetches()
        relevant = {fetch.name for fetch in history.first_fetches() if fetch.relevance > RELEVANT}
    trained, topics = train_definition(
        definition, [*webs.pages, *webs.more], relevant=relevant, progress=examples
    )
    trained = replace(trained, calibrated=_was_calibrated(identity, trained))
    with changing(folder.path / "critic"):  # others may apply definitions, too
        taken = {path.name for path in folder.path.glob("critic-*")}
        name = next(name for i in count(1) if (name := f"critic-{i}") not in taken)
        save_critic(trained, folder.path / name)
    topic = ",".join(topics)
    try:
        runs = not _lock_crawl(folder)
    except UserError:
        shutil.rmtree(folder.path / name, ignore_errors=True)
        raise
    if runs:
        request_topic_change(folder.path, name, topic, web)
        return AppliedDefinition(folder.path / name, topics, trained, None)
    try:
        earlier = read_request(folder.path)  # for a crawl that was killed before it
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
    """Claim the folder of a crawl at rest, or of one that ends at this moment.

    Returns
    -------
    False if it runs

    Raises
    ------
    UserError
        Another program judges it again.
    """
    until = time.monotonic() + _STOP_TIMEOUT
    while True:
        try:
            folder.acquire(CrawlPhase.REJUDGING)
        except UserError:
            doing = folder.phase
            if doing is CrawlPhase.REJUDGING:
                raise UserError(
                    f"{folder.path} is judged anew by somebody else just now: apply again after "
                    "that"
                ) from None
            if doing in (CrawlPhase.STARTING, CrawlPhase.CRAWLING) or time.monotonic() >= until:
                return False
            continue  # it stops, and would not see a request any more
        return True


def _was_calibrated(identity: Mapping[str, str], trained: TrainedCritic) -> bool:
    """Return whether the crawl's relevance was calibrated, so that it stays what it was."""
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
