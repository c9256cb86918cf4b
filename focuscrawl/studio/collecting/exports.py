"""What can be made of a crawl to be taken home, and the command that makes it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.studio.collecting.files import FOLDER
from focuscrawl.studio.posted import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: endings of a collection by what it is asked for as, and what that is for people
FORMATS = {
    "parquet": (".parquet", "Parquet, for data frames"),
    "jsonl": (".jsonl", "JSON lines, one a page"),
    "csv": (".csv", "CSV, for spreadsheets"),
    "markdown": ("", "Markdown, a file a page"),
    "warc": (".warc.gz", "WARC, the pages as they came"),
}
_LANGUAGE = re.compile(r"[a-z]{2,3}(,[a-z]{2,3}){0,9}", re.ASCII)


@dataclass(frozen=True)
class Export:
    """One thing that can be taken home.

    Attributes
    ----------
    name : of the job's kind, one word
    title, about : for people
    arguments : the command, of the crawl's folder as the command is to name it, the crawl's
        identity, and what was posted
    """

    name: str
    title: str
    about: str
    arguments: Callable[[str, Mapping[str, str], Mapping[str, Any]], list[str]]


def _collect(crawl: str, _: Mapping[str, str], values: Mapping[str, Any]) -> list[str]:
    format_ = text_of(values, "format", "parquet")
    if format_ not in FORMATS:
        raise UserError(f"no format {format_!r:.40}: take one of {', '.join(FORMATS)}")
    name = f"collection-{datetime.now(UTC):%Y%m%d-%H%M%S}{FORMATS[format_][0]}"
    arguments = ["collect", crawl, "--out", f"{crawl}/{FOLDER}/{name}"]
    least, language = text_of(values, "least"), text_of(values, "language").lower()
    if least:
        arguments += ["--min-relevance", str(_share(least))]
    if language:
        if not _LANGUAGE.fullmatch(language):
            raise UserError("a language is named by its code, as en")
        arguments += ["--language", language]
    return arguments


def _report(crawl: str, _: Mapping[str, str], __: Mapping[str, Any]) -> list[str]:
    home = f"{crawl}/{FOLDER}"
    return ["report", crawl, "--out", f"{home}/report", "--csv", f"{home}/fetches.csv"]


def _hubs(crawl: str, _: Mapping[str, str], __: Mapping[str, Any]) -> list[str]:
    home = f"{crawl}/{FOLDER}"
    return ["distill", crawl, "--csv", f"{home}/hubs.csv", "--html", f"{home}/hubs.html"]


def _knowledge(crawl: str, identity: Mapping[str, str], _: Mapping[str, Any]) -> list[str]:
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
        Export("collect", "Collection", "The pages on the topic, with their text.", _collect),
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


def _share(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0.0 <= found <= 1.0:
        raise UserError("the least relevance has to be a number from 0 to 1")
    return found
