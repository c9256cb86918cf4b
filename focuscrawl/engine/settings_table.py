"""Every setting of focuscrawl: its name, what it may be, its default, and what it means.

The table is the one place where a setting is declared. Whoever wants the value asks the entry,
``ANY_MEDIA.of(settings)``; `check_settings` refuses whatever is not in the table or cannot be
read, before a crawl is opened; the tables in ``docs/settings.md`` are made from it
(``python -m focuscrawl.engine.settings_reference docs/settings.md``). A setting that has the name
of a field of `CrawlPlan` goes there (`focuscrawl.engine.plan`).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from focuscrawl.errors import UserError
from focuscrawl.foundation.networks import Networks
from focuscrawl.foundation.values import (
    Addresses,
    FileName,
    Flag,
    JsonObject,
    Number,
    OneOf,
    Reader,
    Text,
    Whole,
    read,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

T = TypeVar("T")

_PREFIX = "FOCUSCRAWL_"


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One setting.

    Attributes
    ----------
    name : in settings
    reader : of what users write
    default : value where nothing is set
    text : what it means, in Markdown
    unset : the default in words, where its value says little
    is_argument : it can be given with ``-a``, too
    """

    name: str
    reader: Reader[T]
    default: T
    text: str
    unset: str = ""
    is_argument: bool = False

    @property
    def key(self) -> str:
        """The name as an argument, or as a field of a plan."""
        return self.name.removeprefix(_PREFIX).lower()

    def of(self, settings: BaseSettings) -> T:
        """Return the value in `settings`.

        Raises
        ------
        UserError
            It is not what the setting may be.
        """
        written = settings.get(self.name)
        # as in a settings module that names all of a crawl and leaves some of it open
        blank = self.is_argument and not str(written).strip()
        if written is None or blank:
            return self.default
        return read(self.reader, self.name, written)


# The arguments of a crawl: ``scrapy crawl focused -a topic=...``, or these settings.

TOPIC = Setting(
    "FOCUSCRAWL_TOPIC",
    Text(),
    "",
    "topic path(s) of the critic, comma-separated; those below them are marked too. `/good` "
    "for a critic from words or from good and bad examples; any name for a callable",
    unset="required",
    is_argument=True,
)
SEEDS: Setting[str | None] = Setting(
    "FOCUSCRAWL_SEEDS",
    Text(),
    None,
    "URLs, comma-separated; a file with one URL a line (blank lines and `#` are skipped); "
    "CSV with a column `url`, and with a column `topic` of which the rows at and below "
    "`topic` are taken; a [definition](topics.md) (`.toml`) with `seeds`",
    unset="the critic's examples of the topic",
    is_argument=True,
)
CRITIC = Setting(
    "FOCUSCRAWL_CRITIC",
    Text(),
    "models/demo",
    "folder of a trained critic, its name under `models/` (here or in the project), folder "
    "of a [model of paths](paths.md), or `module:callable`",
    is_argument=True,
)
STRATEGY = Setting(
    "FOCUSCRAWL_STRATEGY",
    Text(),
    "apprentice",
    "name of one of the [strategies](strategies.md), or of any entry point in the group "
    "`focuscrawl.strategies`",
    is_argument=True,
)
BUDGET = Setting(
    "FOCUSCRAWL_BUDGET",
    Whole(),
    1000,
    "exact number of fetches over all runs of the crawl; 0: no limit",
    is_argument=True,
)
WEB: Setting[str | None] = Setting(
    "FOCUSCRAWL_WEB",
    Text(),
    None,
    "a `.warc` or `.warc.gz` file, `demo`, `demo:SCALE` (a number; 1 is 3,000 pages); each "
    "with `@VERSION` for a version of it as [a web that "
    "changes](knowledge.md#a-web-that-changes); a local file or nothing is read, no network",
    unset="the live Web",
    is_argument=True,
)
CRAWL_DIR: Setting[str | None] = Setting(
    "FOCUSCRAWL_CRAWL_DIR",
    Text(),
    None,
    "folder of the crawl; made if need be, resumed if it holds this crawl",
    unset="`crawls/<topic>-<time>`",
    is_argument=True,
)
STORE: Setting[str | None] = Setting(
    "FOCUSCRAWL_STORE",
    Text(),
    None,
    "`postgresql://USER@HOST/DATABASE?crawl=NAME`: the crawl is kept there instead of in the "
    "folder, and [any number of processes](workers.md) may be at it",
    unset="the folder",
    is_argument=True,
)
RANDOM_STATE = Setting(
    "FOCUSCRAWL_RANDOM_STATE",
    Whole(),
    0,
    "whole number",
    is_argument=True,
)
APPRENTICE: Setting[str | None] = Setting(
    "FOCUSCRAWL_APPRENTICE",
    Text(),
    None,
    "folder of an apprentice trained on an earlier crawl (`focuscrawl apprentice train`); it "
    "goes on learning",
    unset="from scratch",
    is_argument=True,
)
WITHIN: Setting[str | None] = Setting(
    "FOCUSCRAWL_WITHIN",
    Text(),
    None,
    "folder of an earlier crawl: only URLs that it fetched are followed (a recall crawl)",
    unset="no limit",
    is_argument=True,
)
KNOWLEDGE: Setting[str | None] = Setting(
    "FOCUSCRAWL_KNOWLEDGE",
    Text(),
    None,
    "file of what earlier crawls of the topic have learned ([knowledge](knowledge.md)); with "
    "`apprentice` and `learnable`",
    unset="none",
    is_argument=True,
)

# Settings only.

ANY_MEDIA = Setting(
    "FOCUSCRAWL_ANY_MEDIA",
    Flag(),
    False,
    "load and follow what is no HTML, too: no link is left out for its ending (`.pdf`, "
    "`.jpg`, ...), no download is broken off for its Content-Type. Only HTML is judged",
)
BACKOFF = Setting(
    "FOCUSCRAWL_BACKOFF",
    Number(),
    1.0,
    "seconds that a host which is busy (429, 502, 503, 504) or gives no answer is [left in "
    "peace](bad-web.md#hosts-that-do-not-answer); doubled with every further such request in "
    "a row",
)
BACKOFF_MAX = Setting(
    "FOCUSCRAWL_BACKOFF_MAX",
    Number(),
    120.0,
    "longest such wait; a host that asks for more in `Retry-After` is left alone until the "
    "crawl is resumed",
)
CALIBRATED: Setting[bool | None] = Setting(
    "FOCUSCRAWL_CALIBRATED",
    Flag(),
    None,
    "whether the critic's calibrated probabilities are the relevance",
    unset="as the critic was trained",
)
CALLBACK = Setting(
    "FOCUSCRAWL_CALLBACK",
    Text(),
    "parse",
    "method of [your spider](addon.md#pages-you-did-not-ask-for) that is given the pages it "
    "did not ask for; empty: nobody is",
)
CLOSED = Setting(
    "FOCUSCRAWL_CLOSED",
    Flag(),
    True,
    "in a replay, drop links to what is not recorded; otherwise they answer 404 and cost a fetch",
)
DISTILL = Setting(
    "FOCUSCRAWL_DISTILL",
    Whole(),
    0,
    "after every so many fetches, what the top [hubs](distiller.md#while-crawling) link to "
    "comes first; 0: never",
)
DISTILL_SITES = Setting(
    "FOCUSCRAWL_DISTILL_SITES",
    OneOf(("auto", "host", "domain", "none")),
    "auto",
    "whose links do not count then: `host`, `domain`, `none`; `auto`: `host`, and `none` "
    "while every link stays on its host",
)
HOST_FAILURES = Setting(
    "FOCUSCRAWL_HOST_FAILURES",
    Whole(),
    8,
    "so many such requests in a row, and a host is left alone until the crawl is resumed; 0: "
    "never",
)
LEASE = Setting(
    "FOCUSCRAWL_LEASE",
    Whole(2),
    60,
    "with `store`: seconds after which a worker that gives no sign of life is given up; at "
    "least twice `DOWNLOAD_TIMEOUT`, and the same for all workers",
)
LIMITS = Setting(
    "FOCUSCRAWL_LIMITS",
    Flag(),
    True,
    "a host, and a pattern of URLs, must [earn its fetches](endurance.md#traps); 0: no limits",
)
LOG_JSON: Setting[str | None] = Setting(
    "FOCUSCRAWL_LOG_JSON",
    FileName("log.jsonl"),
    None,
    "the log once more [as JSON](deploy.md#how-it-is-doing): a file, taken from the crawl's "
    "folder; 1: `log.jsonl` there; `-`: standard error",
    unset="off",
)
META: Setting[Mapping[str, Any]] = Setting(
    "FOCUSCRAWL_META",
    JsonObject('{"playwright": true}'),
    {},
    "meta of the requests that links become",
)
METRICS_PORT = Setting(
    "FOCUSCRAWL_METRICS_PORT",
    Whole(0, 65535),
    0,
    "port of this machine at which [numbers for Prometheus](deploy.md#how-it-is-doing) are; "
    "0: none",
)
NEAR_DUPLICATES = Setting(
    "FOCUSCRAWL_NEAR_DUPLICATES",
    Flag(),
    True,
    "look for pages that say [nearly the same](endurance.md#traps) as an earlier one, which "
    "earn nothing",
)
NOT_MODIFIED_COST = Setting(
    "FOCUSCRAWL_NOT_MODIFIED_COST",
    Number(0, 1),
    0.1,
    'what an answer "not modified" (304) counts against the budget, in fetches',
)
PRIVATE_ADDRESSES = Setting(
    "FOCUSCRAWL_PRIVATE_ADDRESSES",
    Addresses(),
    Networks(),
    "what may be crawled though it is [not "
    "public](security.md#addresses): `127.0.0.1,10.1.0.0/16,fd00::/8`. `0.0.0.0/0,::/0` "
    "opens all",
    unset="none",
)
PROGRESS = Setting(
    "FOCUSCRAWL_PROGRESS",
    Flag(),
    True,
    "show a progress bar, or a line every ten seconds where the output is no terminal",
)
REVISIT = Setting(
    "FOCUSCRAWL_REVISIT",
    Flag(),
    False,
    "[re-crawl](knowledge.md#a-re-crawl): fetch pages that the knowledge has only where "
    "another visit is worth it, and ask for them only if they have changed",
)
REVISIT_HUBS = Setting(
    "FOCUSCRAWL_REVISIT_HUBS",
    Whole(),
    0,
    "with `FOCUSCRAWL_DISTILL`: a top hub whose last fetch is so many seconds ago (in a "
    "replay: so many fetches) is [fetched again](distiller.md#hubs-that-grow) for its new "
    "links; 0: never",
)
SHARDS = Setting(
    "FOCUSCRAWL_SHARDS",
    Whole(1, 10_000),
    64,
    "with `store`, when the crawl is made: parts that the hosts are split into; several "
    "times as many as there will be workers",
)
STAGNATION = Setting(
    "FOCUSCRAWL_STAGNATION",
    Whole(),
    0,
    "stop after so many fetches without a page of relevance above 0.5; 0: never",
)
STOP_TIMEOUT = Setting(
    "FOCUSCRAWL_STOP_TIMEOUT",
    Number(),
    15.0,  # of the thirty that a supervisor gives; the rest is for lesson and store
    "seconds for what is under way when a live crawl is told to end; then it is given up and "
    "queued again",
)
STRATEGY_OPTIONS: Setting[Mapping[str, Any]] = Setting(
    "FOCUSCRAWL_STRATEGY_OPTIONS",
    JsonObject('{"option": 1}'),
    {},
    "options of the strategy. Those of the apprentice are [here](apprentice.md#options), those "
    "of the others [here](strategies.md). Part of what a crawl is resumed by",
)
WARC: Setting[str | None] = Setting(
    "FOCUSCRAWL_WARC",
    FileName("pages.warc.gz", ".warc.gz"),
    None,
    "record to this `.warc.gz` file, taken from the crawl's folder; 1: `pages.warc.gz` there",
    unset="off",
)

SETTINGS: dict[str, Setting[Any]] = {
    each.name: each for each in list(globals().values()) if isinstance(each, Setting)
}
#: by name behind ``-a``
ARGUMENTS = {each.key: each for each in SETTINGS.values() if each.is_argument}


def check_settings(settings: BaseSettings) -> None:
    """Refuse a setting that does not exist, and a value that a setting cannot have.

    Raises
    ------
    UserError
        There is one.
    """
    unknown = [name for name in settings if name.upper().startswith(_PREFIX)]
    for name in sorted(set(unknown) - SETTINGS.keys()):
        (nearest,) = difflib.get_close_matches(name.upper(), SETTINGS, n=1, cutoff=0.0)
        raise UserError(f"there is no setting {name}: do you mean {nearest}?")
    for setting in SETTINGS.values():
        setting.of(settings)


def read_arguments(
    settings: BaseSettings, given: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the arguments of a crawl by their names: as given, or else as in the settings.

    Parameters
    ----------
    given : with ``-a``

    Raises
    ------
    UserError
        There is no such argument, it is empty, or it cannot be read.
    """
    arguments = {name: setting.of(settings) for name, setting in ARGUMENTS.items()}
    for name, written in (given or {}).items():
        if name not in ARGUMENTS:
            raise UserError(f"unknown argument {name}: there are {', '.join(ARGUMENTS)}")
        if not written.strip():
            raise UserError(f"argument {name} is empty: give it a value or leave it out")
        arguments[name] = read(ARGUMENTS[name].reader, name, written)
    return arguments
