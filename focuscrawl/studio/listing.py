"""Topics, critics and crawls of a folder as plain values, for the API and the pages alike."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl.remote_control import Command
from focuscrawl.errors import UserError
from focuscrawl.foundation.model_folder import MANIFEST
from focuscrawl.foundation.plain_files import read_regular
from focuscrawl.report.stores import open_store
from focuscrawl.studio.crawls import NamedCrawl
from focuscrawl.topics.definition import read_definition

if TYPE_CHECKING:
    from focuscrawl.studio.desk import Desk
    from focuscrawl.studio.folder import StudioFolder

_TOPIC = "topic.toml"  # a file of this name is meant for a topic, so it is said what is wrong


def topics(folder: StudioFolder) -> list[dict[str, Any]]:
    """Return the definitions of topics: ``name`` and what they say, or ``name`` and ``error``."""
    found: list[dict[str, Any]] = []
    for path in folder.toml_files():
        name = folder.name_of(path)
        try:
            definition = read_definition(path)
        except UserError as error:
            if path.name == _TOPIC:
                found.append({"name": name, "error": str(error)})
            continue
        found.append(
            {
                "name": name,
                "topics": list(definition.topics),
                "words": list(definition.words),
                "critic": definition.critic,
                "seeds": len(definition.seeds),
                "good": len(definition.good),
                "bad": len(definition.bad),
            }
        )
    return found


def critics(folder: StudioFolder) -> list[dict[str, Any]]:
    """Return ``name``, ``kind`` and ``classes`` of critics, by their manifests alone."""
    found: list[dict[str, Any]] = []
    for path in folder.critics():
        manifest = json.loads(read_regular(path / MANIFEST))
        classes = manifest.get("classes")
        found.append(
            {
                "name": folder.name_of(path),
                "kind": manifest["kind"],
                "classes": list(map(str, classes)) if isinstance(classes, list) else [],
            }
        )
    return found


def crawls(desk: Desk) -> list[dict[str, Any]]:
    """Return the crawls, those that run first, then by when they fetched last; see `crawl`.

    One that cannot be read has ``name`` and ``error``.
    """
    folder = desk.folder
    named = [NamedCrawl(folder.name_of(path), path) for path in folder.crawls()]
    found: list[dict[str, Any]] = []
    for each in named:
        try:
            found.append(crawl(each))
        except UserError as error:
            found.append({"name": each.name, "running": False, "error": str(error)})
    by_time = sorted(found, key=lambda each: each.get("last_fetch") or "", reverse=True)
    return sorted(by_time, key=lambda each: not each["running"])


def crawl(named: NamedCrawl) -> dict[str, Any]:
    """Return how a crawl is doing; what is read does not grow with the crawl.

    Returns
    -------
    ``name``, ``about``, ``state`` in words, ``running``, ``wanted`` (``run``,
    ``pause`` or ``stop``), ``fetched``, and of late ``harvest_rate``, ``pages_per_second``,
    ``last_fetch`` (ISO 8601, UTC).

    Raises
    ------
    UserError
        It cannot be read.
    """
    with closing(open_store(named.place)) as store:
        current = named.current(store)
    last = current.last_fetch
    return {
        "name": named.name,
        "about": current.about,
        "state": current.state,
        "running": current.running,
        "wanted": str(named.control.wanted),
        "fetched": current.fetched,
        "harvest_rate": current.recent.harvest_rate,
        "pages_per_second": current.recent.pages_per_second,
        "last_fetch": None if last is None else last.isoformat(timespec="seconds"),
    }


def ask(named: NamedCrawl, wanted: Command) -> dict[str, Any]:
    """Ask something of a crawl, as ``focuscrawl pause``, ``resume``, ``stop`` do.

    Returns
    -------
    See `crawl`.

    Raises
    ------
    UserError
        There is nothing to resume or stop, or it cannot be asked.
    """
    control = named.control
    if wanted is Command.RUN and control.wanted is not Command.PAUSE:
        raise UserError(f"{named.name} is not paused: nothing to resume")
    if wanted is Command.STOP and not control.in_use:
        raise UserError(f"nobody crawls in {named.name}: nothing to stop")
    control.ask(wanted)
    return crawl(named)
