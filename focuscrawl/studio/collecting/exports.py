"""What can be made of a crawl to be taken home, and the command that makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.studio.collecting.files import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class Export:
    """One thing that can be taken home.

    Attributes
    ----------
    name : of the job's kind, one word
    title, about : for people
    arguments : the command, of the crawl's folder as the command is to name it, and the
        crawl's identity
    """

    name: str
    title: str
    about: str
    arguments: Callable[[str, Mapping[str, str]], list[str]]


def _report(crawl: str, _: Mapping[str, str]) -> list[str]:
    home = f"{crawl}/{FOLDER}"
    return ["report", crawl, "--out", f"{home}/report", "--csv", f"{home}/fetches.csv"]


def _hubs(crawl: str, _: Mapping[str, str]) -> list[str]:
    home = f"{crawl}/{FOLDER}"
    return ["distill", crawl, "--csv", f"{home}/hubs.csv", "--html", f"{home}/hubs.html"]


def _knowledge(crawl: str, identity: Mapping[str, str]) -> list[str]:
    topic = identity.get("topic", "")
    if not topic.startswith("/"):
        raise UserError("the crawl names no topic: what it has learned is of no use to others")
    return [
        "knowledge",
        "learn",
        crawl,
        "--topic",
        topic,
        "--out",
        f"{crawl}/{FOLDER}/knowledge.db",
    ]


#: by their names, in the order they are offered
EXPORTS = {
    each.name: each
    for each in (
        Export(
            "report",
            "Report",
            "Curves, best pages and hosts as one HTML page; and all fetches as a table.",
            _report,
        ),
        Export("hubs", "Hubs", "Hubs, authorities and sites: a page, and a table of all.", _hubs),
        Export(
            "knowledge",
            "Knowledge",
            "What the next crawl of the topic can begin with. A finished crawl is learned once.",
            _knowledge,
        ),
    )
}
