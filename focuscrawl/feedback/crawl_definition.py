"""The definition that a crawl follows: its own file, or what it was begun with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.crawl.page_source import LIVE
from focuscrawl.critic.callable_critic import is_callable_spec
from focuscrawl.errors import UserError
from focuscrawl.taxonomy import read_topics
from focuscrawl.topics import TopicDefinition, read_definition

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore

DEFINITION = "topic.toml"  #: of a crawl, in its folder


def definition_of(store: CrawlStore, crawl_dir: Path, web: str | None = None) -> TopicDefinition:
    """Return what a crawl follows: ``topic.toml`` in its folder, or what it was begun with.

    Parameters
    ----------
    store, crawl_dir : of the crawl
    web : where pages and examples are that a live crawl has not, for a definition that is new

    Raises
    ------
    UserError
        The file makes no sense, or the crawl's critic is a program.
    """
    path = crawl_dir / DEFINITION
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
