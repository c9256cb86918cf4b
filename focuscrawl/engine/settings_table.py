"""Every setting of focuscrawl: its name, what it may be, its default, and what it means.

A setting is declared in this table and nowhere else. Code that needs the value asks the entry,
``ANY_MEDIA.of(settings)``. `check_settings` refuses settings that are not in the table or cannot
be read, before a crawl is opened. ``python -m focuscrawl.engine.settings_table docs/settings.md``
writes the tables of that page. A setting named like a field of `CrawlPlan` goes into the plan
(`focuscrawl.engine.plan_from_settings`).
"""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from focuscrawl.completeness.stop_rules import STOP_EXPRESSION, StopExpression
from focuscrawl.errors import UserError
from focuscrawl.foundation.networks import Networks
from focuscrawl.foundation.user_input import (
    FLAG,
    IP_ADDRESS,
    NETWORKS,
    TEXT,
    URL_PATTERNS,
    Reader,
    file_name,
    json_object,
    number,
    one_of,
    some_of,
    whole_number,
)
from focuscrawl.foundation.user_input import HOSTS as HOST_LIST
from focuscrawl.foundation.user_input import LANGUAGES as LANGUAGE_LIST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from scrapy.settings import BaseSettings


T = TypeVar("T")

#: file in a crawl's folder that pages are recorded to, and the word for: where judging needs it
RECORDING, WHERE_JUDGED = "pages.warc.gz", "live"

_PREFIX = "FOCUSCRAWL_"
_TEXT_OR_NONE: Reader[str | None] = TEXT
#: `focuscrawl.text.EXTRACTORS`, without what that imports: the add-on reads this table, too
_EXTRACTORS = ("trafilatura", "resiliparse")


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One setting.

    Attributes
    ----------
    name : in settings
    reader : of what users write
    default : value where nothing is set
    unset : the default in words, where its value says little
    text : what it means, in Markdown
    """

    name: str
    reader: Reader[T]
    default: T
    unset: str = ""
    text: str = ""

    def means(self, text: str) -> Self:
        """Return the setting with its text."""
        return replace(self, text=text)

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
        return self.default if written is None else self.reader.read(self.name, written)


class Argument(Setting[T]):
    """A setting that can be given with ``-a``, too; an empty one stands for the default."""

    def of(self, settings: BaseSettings) -> T:
        """Return the value in `settings`."""
        blank = not str(settings.get(self.name)).strip()
        return self.default if blank else super().of(settings)


# The arguments of a crawl: ``scrapy crawl focused -a topic=...``, or these settings.

TOPIC = Argument("FOCUSCRAWL_TOPIC", TEXT, "", unset="required").means(
    "topic path(s) of the critic, comma-separated; those below them are marked too. `/good` "
    "for a critic from words or from good and bad examples; any name for a callable"
)
SEEDS = Argument(
    "FOCUSCRAWL_SEEDS", _TEXT_OR_NONE, None, unset="the critic's examples of the topic"
).means(
    "URLs with commas or blanks between; a file with one URL a line (blank lines and `#` are "
    "skipped); CSV with a column `url`, and with a column `topic` of which the rows at and below "
    "`topic` are taken; a [definition](topics.md) (`.toml`) with `seeds`"
)
CRITIC = Argument("FOCUSCRAWL_CRITIC", TEXT, "models/demo").means(
    "folder of a trained critic, its name under `models/` (here or in the project), folder "
    "of a [model of paths](paths.md), or `module:callable`"
)
STRATEGY = Argument("FOCUSCRAWL_STRATEGY", TEXT, "apprentice").means(
    "name of one of the [strategies](strategies.md), or of any entry point in the group "
    "`focuscrawl.strategies`"
)
BUDGET = Argument("FOCUSCRAWL_BUDGET", whole_number(), 1000).means(
    "exact number of fetches over all runs of the crawl; 0: no limit"
)
WEB = Argument(
    "FOCUSCRAWL_WEB",
    _TEXT_OR_NONE,
    None,
    unset="the live Web; `demo` for the critic `models/demo` without live seeds",
).means(
    "a `.warc` or `.warc.gz` file, an [archive](usage.md#archives) by its index (`.cdxj`, "
    "`.parquet`; `INDEX,BASE`; paths or URIs), `demo`, `demo:SCALE` (a number; 1 is 3,000 "
    "pages); each with `@VERSION` for a version of it as [a web that "
    "changes](knowledge.md#a-web-that-changes); a local file or nothing is read, no network but "
    "for the URI of an archive"
)
CRAWL_DIR = Argument(
    "FOCUSCRAWL_CRAWL_DIR", _TEXT_OR_NONE, None, unset="`crawls/<topic>-<time>`"
).means("folder of the crawl; made if need be, resumed if it holds this crawl")
STOP = Argument("FOCUSCRAWL_STOP", STOP_EXPRESSION, StopExpression(), unset="none").means(
    "[when the crawl ends itself](stopping.md), rules with commas between: `recall 0.9` (so much "
    "of what is in reach is here, by estimate), `next 100 < 0.1` (less harvest is expected of so "
    "many next fetches), `time 8h` (of this run; `s`, `m`, `h`, `d`). The first that applies "
    "does; budget and stagnation hold as well"
)
RANDOM_STATE = Argument("FOCUSCRAWL_RANDOM_STATE", whole_number(), 0).means("whole number")
APPRENTICE = Argument("FOCUSCRAWL_APPRENTICE", _TEXT_OR_NONE, None, unset="from scratch").means(
    "folder of an apprentice trained on an earlier crawl (`focuscrawl apprentice train`); it "
    "goes on learning"
)
WITHIN = Argument("FOCUSCRAWL_WITHIN", _TEXT_OR_NONE, None, unset="no limit").means(
    "folder of an earlier crawl: only URLs that it fetched are followed (a recall crawl)"
)
HOSTS: Setting[tuple[str, ...]] = Argument("FOCUSCRAWL_HOSTS", HOST_LIST, (), unset="all").means(
    "only [these hosts](usage.md#scope) and those below them: with commas, or a file with one a "
    "line"
)
DENY: Setting[tuple[str, ...]] = Argument("FOCUSCRAWL_DENY", URL_PATTERNS, (), unset="none").means(
    "no URL that [one of these](usage.md#scope) is found in, `*` for anything and `$` for its "
    "end: with commas, or a file with one a line. Not what your own spider asks for"
)
LANGUAGES: Setting[tuple[str, ...]] = Argument(
    "FOCUSCRAWL_LANGUAGES", LANGUAGE_LIST, (), unset="all"
).means("codes with commas, `en,de`: a page in [another language](usage.md#scope) has relevance 0")
MAX_DEPTH: Setting[int | None] = Argument(
    "FOCUSCRAWL_MAX_DEPTH", whole_number(), None, unset="no limit"
).means("clicks from a seed: [no link](usage.md#scope) of a page that far is followed")
DISCOVER: Setting[tuple[str, ...]] = Argument(
    "FOCUSCRAWL_DISCOVER", some_of("sitemaps", "feeds", "hreflang"), (), unset="nothing"
).means(
    "[pages that no page links to](usage.md#site-maps-feeds-translations): in site maps and "
    "feeds of hosts that have brought a relevant page, and in other languages (`hreflang`)"
)
KNOWLEDGE = Argument("FOCUSCRAWL_KNOWLEDGE", _TEXT_OR_NONE, None, unset="none").means(
    "file of what earlier crawls of the topic have learned ([knowledge](knowledge.md)); with "
    "`apprentice` and `learnable`"
)

# Settings only.

ALLOW: Setting[tuple[str, ...]] = Setting("FOCUSCRAWL_ALLOW", URL_PATTERNS, (), unset="all").means(
    "of the links that your spider did not ask for, [only "
    "those](addon.md#links-you-did-not-ask-for) whose URL one of these is found in, written as "
    "for `deny`"
)
ANY_MEDIA = Setting("FOCUSCRAWL_ANY_MEDIA", FLAG, False).means(
    "load and follow what is no HTML, too: no link is left out for its ending (`.pdf`, "
    "`.jpg`, ...), no download is broken off for its Content-Type. Only HTML is judged"
)
BACKOFF = Setting("FOCUSCRAWL_BACKOFF", number(), 1.0).means(
    "seconds that a host which is busy (429, 502, 503, 504) or gives no answer is [left in "
    "peace](bad-web.md#hosts-that-do-not-answer); doubled with every further such request in "
    "a row"
)
BACKOFF_MAX = Setting("FOCUSCRAWL_BACKOFF_MAX", number(), 120.0).means(
    "longest such wait; a host that asks for more in `Retry-After` is left alone until the "
    "crawl is resumed"
)
BROWSER: Setting[str | None] = Setting(
    "FOCUSCRAWL_BROWSER", file_name("1"), None, unset="none"
).means(
    "pages that have no text without their scripts are shown to "
    "[a browser](usage.md#pages-that-need-a-browser): 1: Chromium, where it is installed; or the "
    "path of one"
)
CALIBRATED: Setting[bool | None] = Setting(
    "FOCUSCRAWL_CALIBRATED", FLAG, None, unset="as the critic was trained"
).means("whether the critic's calibrated probabilities are the relevance")
CALLBACK = Setting("FOCUSCRAWL_CALLBACK", TEXT, "parse").means(
    "with `FOCUSCRAWL_FOLLOW`: method of [your spider](addon.md#links-you-did-not-ask-for) that "
    "is given the pages it did not ask for; empty: nobody is"
)
CLOSED = Setting("FOCUSCRAWL_CLOSED", FLAG, True).means(
    "in a replay, drop links to what is not recorded; otherwise they answer 404 and cost a fetch"
)
DISTILL = Setting("FOCUSCRAWL_DISTILL", whole_number(), 0).means(
    "after every so many fetches, what the top [hubs](distiller.md#while-crawling) link to "
    "comes first; 0: never"
)
DISTILL_SITES = Setting(
    "FOCUSCRAWL_DISTILL_SITES", one_of("auto", "host", "domain", "none"), "auto"
).means(
    "whose links do not count then: `host`, `domain`, `none`; `auto`: `host`, and `none` "
    "while every link stays on its host"
)
FOLLOW = Setting("FOCUSCRAWL_FOLLOW", FLAG, False).means(
    "with the [add-on](addon.md#links-you-did-not-ask-for): follow all links of a page, not only "
    "those that your spider asks for"
)
HOST_FAILURES = Setting("FOCUSCRAWL_HOST_FAILURES", whole_number(), 8).means(
    "so many such requests in a row, and a host is left alone until the crawl is resumed; 0: never"
)
INSTANCES = Setting("FOCUSCRAWL_INSTANCES", _TEXT_OR_NONE, None, unset="none").means(
    "file of JSON lines, or `module:callable`, that is given every link (u,v) of this run with "
    "both ends judged, see [pipelines](usage.md#pipelines-of-your-own)"
)
LIMITS = Setting("FOCUSCRAWL_LIMITS", FLAG, True).means(
    "a host, and a pattern of URLs, must [earn its fetches](endurance.md#traps); 0: no limits"
)
LOG_JSON = Setting("FOCUSCRAWL_LOG_JSON", file_name("log.jsonl"), None, unset="off").means(
    "the log once more [as JSON](deploy.md#how-it-is-doing): a file, taken from the crawl's "
    "folder; 1: `log.jsonl` there; `-`: standard error"
)
META = Setting("FOCUSCRAWL_META", json_object('{"playwright": true}'), {}).means(
    "meta of the requests that links become"
)
META_REFRESH: Setting[float | None] = Setting(
    "FOCUSCRAWL_META_REFRESH",
    number(),
    None,
    unset="`METAREFRESH_MAXDELAY`; 0 in a replay, or without `METAREFRESH_ENABLED`",
).means(
    "a page that [refreshes to another](bad-web.md#what-pages-ask-for) within less than so many "
    "seconds is a redirect; 0: none is"
)
METRICS_ADDRESS = Setting("FOCUSCRAWL_METRICS_ADDRESS", IP_ADDRESS, "127.0.0.1").means(
    "address of this machine at which the numbers are: `0.0.0.0` or `::` is all it has, which a "
    "container needs. Whoever reaches it can read them, without a password"
)
METRICS_PORT = Setting("FOCUSCRAWL_METRICS_PORT", whole_number(0, 65535), 0).means(
    "port of this machine at which [numbers for Prometheus](deploy.md#how-it-is-doing) are; "
    "0: none"
)
NEAR_DUPLICATES = Setting("FOCUSCRAWL_NEAR_DUPLICATES", FLAG, True).means(
    "look for pages that say [nearly the same](endurance.md#traps) as an earlier one, which "
    "earn nothing"
)
NOT_MODIFIED_COST = Setting("FOCUSCRAWL_NOT_MODIFIED_COST", number(0, 1), 0.1).means(
    'what an answer "not modified" (304) counts against the budget, in fetches'
)
OBEY_META_ROBOTS: Setting[bool | None] = Setting(
    "FOCUSCRAWL_OBEY_META_ROBOTS", FLAG, None, unset="True; in a replay False"
).means(
    "obey [what pages ask of robots](bad-web.md#what-pages-ask-for): `nofollow` of a page and of "
    "a link, `noindex` of a page"
)
PATIENCE = Setting("FOCUSCRAWL_PATIENCE", number(), 5.0).means(
    "seconds that a live crawl gives for [one more relevant page](usage.md#patience): while a "
    "better link waits for its host, the budget is not spent on what is far below; 0: none"
)
PDF = Setting("FOCUSCRAWL_PDF", FLAG, False).means(
    "load PDF, too, and judge it [by its text](usage.md#pdf)"
)
PRIVATE_ADDRESSES = Setting(
    "FOCUSCRAWL_PRIVATE_ADDRESSES", NETWORKS, Networks(), unset="none"
).means(
    "what may be crawled though it is [not "
    "public](security.md#addresses): `127.0.0.1,10.1.0.0/16,fd00::/8`. `0.0.0.0/0,::/0` "
    "opens all"
)
PROGRESS = Setting("FOCUSCRAWL_PROGRESS", FLAG, True).means(
    "show a progress bar, or a line every ten seconds where the output is no terminal"
)
REVISIT = Setting("FOCUSCRAWL_REVISIT", FLAG, False).means(
    "[re-crawl](knowledge.md#a-re-crawl): fetch pages that the knowledge has only where "
    "another visit is worth it, and ask for them only if they have changed"
)
REVISIT_HUBS = Setting("FOCUSCRAWL_REVISIT_HUBS", whole_number(), 0).means(
    "with `FOCUSCRAWL_DISTILL`: a top hub whose last fetch is so many seconds ago (in a "
    "replay: so many fetches) is [fetched again](distiller.md#hubs-that-grow) for its new "
    "links; 0: never"
)
STAGNATION = Setting("FOCUSCRAWL_STAGNATION", whole_number(), 0).means(
    "stop after so many fetches without a page of relevance above 0.5; 0: never"
)
STOP_TIMEOUT = Setting("FOCUSCRAWL_STOP_TIMEOUT", number(), 15.0).means(
    "seconds for what is under way when a live crawl is told to end; then it is given up and "
    "queued again"
)
STRATEGY_OPTIONS = Setting("FOCUSCRAWL_STRATEGY_OPTIONS", json_object('{"option": 1}'), {}).means(
    "options of the strategy. Those of the apprentice are [here](apprentice.md#options), those "
    "of the others [here](strategies.md). Part of what a crawl is resumed by"
)
TEXTS = Setting("FOCUSCRAWL_TEXT", FLAG, False).means(
    "take the [main text of relevant pages while crawling](collect.md#while-crawling): into the "
    "items, and so into feeds, and into the crawl's folder, for `focuscrawl collect`"
)
TEXT_EXTRACTOR = Setting("FOCUSCRAWL_TEXT_EXTRACTOR", one_of(*_EXTRACTORS), _EXTRACTORS[0]).means(
    "what finds the text: the better one, or [the faster one](collect.md#text)"
)
TEXT_MARKDOWN = Setting("FOCUSCRAWL_TEXT_MARKDOWN", FLAG, False).means(
    "texts of items are Markdown: with headings, lists and emphasis"
)
TEXT_MIN_RELEVANCE = Setting("FOCUSCRAWL_TEXT_MIN_RELEVANCE", number(0, 1), 0.5).means(
    "R of pages whose text is taken, at least; 0: all pages"
)
TEXT_PROCESSES = Setting("FOCUSCRAWL_TEXT_PROCESSES", whole_number(1, 64), 1).means(
    "processes that take texts beside the crawl"
)
WARC = Setting(
    "FOCUSCRAWL_WARC",
    file_name(RECORDING, ".warc.gz", WHERE_JUDGED),
    None,
    unset="`live`; 0 in the [add-on](addon.md)",
).means(
    "record to this `.warc.gz` file, taken from the crawl's folder; 1: `pages.warc.gz` there; "
    "`live`: as 1, where pages can be [judged anew](topics.md#how-a-crawl-follows) and are kept "
    "nowhere else: in live crawls, but for those with `knowledge`"
)
WARC_SIZE = Setting("FOCUSCRAWL_WARC_SIZE", whole_number(), 0).means(
    "megabytes from which on the recording goes on in [another file](usage.md#record-and-replay): "
    "`pages-00001.warc.gz`, `pages-00002.warc.gz`, ...; 0: it is one file"
)

SETTINGS: dict[str, Setting[Any]] = {
    each.name: each for each in list(globals().values()) if isinstance(each, Setting)
}
#: by name behind ``-a``
ARGUMENTS = {each.key: each for each in SETTINGS.values() if isinstance(each, Argument)}


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
        arguments[name] = ARGUMENTS[name].reader.read(name, written)
    return arguments


# The tables of arguments and settings in ``docs/settings.md``, from `settings_table`.
#
# ``python -m focuscrawl.engine.settings_table docs/settings.md`` writes them anew.


def argument_rows() -> str:
    """Return the rows of the table of arguments."""
    return _rows([[f"`{each.key}`", each.text, _default(each)] for each in ARGUMENTS.values()])


def setting_rows() -> str:
    """Return the rows of the table of settings that are no arguments, by name."""
    settings = [each for each in SETTINGS.values() if not isinstance(each, Argument)]
    return _rows(
        [f"`{each.name}`", each.reader.accepts, each.text, _default(each)] for each in settings
    )


def with_tables(document: str) -> str:
    """Return the text of the reference with the rows as they are to be."""
    for heading, rows in (("`-a`", argument_rows()), ("setting", setting_rows())):
        head = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[-|]+\|\n", document, re.MULTILINE)
        if head is not None:
            after = re.sub(r"\A(?:\|.*\n)+", "", document[head.end() :])
            document = document[: head.end()] + rows + after
    return document


def _rows(cells: Iterable[list[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def _default(setting: Setting[Any]) -> str:
    if setting.unset:
        return setting.unset
    default = setting.default
    if isinstance(default, str | dict):
        return f"`{default}`"
    return f"{default:g}" if isinstance(default, float) else str(default)


if __name__ == "__main__":
    reference = Path(sys.argv[1])
    text = reference.read_text(encoding="utf-8")
    reference.write_text(with_tables(text), encoding="utf-8")
