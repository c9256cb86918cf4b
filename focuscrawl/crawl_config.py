"""The configuration of a crawl: every argument and setting, declared and checked in one place.

A field of `CrawlConfig` is a setting ``FOCUSCRAWL_NAME``; those made by `_argument` can be given
with ``-a name=value``, too. Command line, settings modules, plans of rounds and tests all become
a `CrawlConfig`, which is passed inwards; nothing inside reads Scrapy's settings again.
``python -m focuscrawl.crawl_config docs/settings.md`` writes the tables of that page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from focuscrawl.completeness.stop_rules import STOP_EXPRESSION, StopExpression
from focuscrawl.errors import UserError
from focuscrawl.foundation.networks import Networks
from focuscrawl.foundation.urls import without_credentials
from focuscrawl.foundation.user_input import (
    FLAG,
    HOSTS,
    IP_ADDRESS,
    LANGUAGES,
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
from focuscrawl.taxonomy import read_topics

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from pydantic.fields import FieldInfo

#: file in a crawl's folder that pages are recorded to
RECORDING = "pages.warc.gz"
#: value of `CrawlConfig.warc`: record the pages that a crawl may have to judge again
WHERE_JUDGED = "live"
DEFAULT_CRITIC, DEFAULT_STRATEGY, DEFAULT_BUDGET = "models/demo", "apprentice", 1000
DEFAULT_CALLBACK = "parse"
PREFIX = "FOCUSCRAWL_"

#: `focuscrawl.text.EXTRACTORS`, without what that imports: the add-on reads this module, too
_EXTRACTORS = ("trafilatura", "resiliparse")

Flag = Annotated[bool, FLAG]
Text = Annotated[str, TEXT]
WholeNumber = Annotated[int, whole_number()]
Number = Annotated[float, number()]
Share = Annotated[float, number(0, 1)]
Patterns = Annotated[tuple[str, ...], URL_PATTERNS]


def _setting(default: Any, text: str, *, unset: str = "", name: str = "", **extra: Any) -> Any:
    """Declare a field that is a setting.

    Parameters
    ----------
    text : what it means, in Markdown
    unset : the default in words, where its value says little
    name : of the setting without its prefix, where it is not that of the field
    """
    extra |= {"unset": unset, "name": name}
    return Field(default, description=text, json_schema_extra=extra)


def _argument(default: Any, text: str, *, unset: str = "") -> Any:
    """Declare a setting that ``-a`` can give, too; an empty one stands for the default."""
    return _setting(default, text, unset=unset, argument=True)


def _of_scrapy(default: Any, setting: str, text: str) -> Any:
    """Declare a field that comes from one of Scrapy's settings."""
    return Field(default, description=text, json_schema_extra={"scrapy": setting})


class CrawlConfig(BaseModel):
    """What to crawl and how, checked.

    Values are checked, and read from text where they are text, when an instance is made.
    `read_config` (`focuscrawl.engine.config_from_settings`) makes one from arguments and settings.

    Raises
    ------
    UserError
        Values that do not go together. (A value that a field cannot have is pydantic's
        `ValidationError`; `focuscrawl.foundation.user_input.validated` makes it a `UserError`.)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    # arguments, in the order in which the reference lists them

    topic: Text = _argument(
        "",
        "topic path(s) of the critic, comma-separated; those below them are marked too. "
        "`/good` for a critic from words or from good and bad examples; any name for a "
        "callable",
        unset="required",
    )
    seeds: Text | None = _argument(
        None,
        "URLs with commas or blanks between; a file with one URL a line (blank lines and `#` "
        "are skipped); CSV with a column `url`, and with a column `topic` of which the rows "
        "at and below `topic` are taken; a [definition](topics.md) (`.toml`) with `seeds`",
        unset="the critic's examples of the topic",
    )
    critic: Text = _argument(
        DEFAULT_CRITIC,
        "folder of a trained critic, its name under `models/` (here or in the project), "
        "folder of a [model of paths](paths.md), or `module:callable`",
    )
    strategy: Text = _argument(
        DEFAULT_STRATEGY,
        "name of one of the [strategies](strategies.md), or of any entry point in the group "
        "`focuscrawl.strategies`",
    )
    budget: WholeNumber = _argument(
        DEFAULT_BUDGET,
        "exact number of fetches over all runs of the crawl; 0: no limit",
    )
    web: Text | None = _argument(
        None,
        "a `.warc` or `.warc.gz` file, an [archive](usage.md#archives) by its index (`.cdxj`,"
        " `.parquet`; `INDEX,BASE`; paths or URIs), `demo`, `demo:SCALE` (a number; 1 is "
        "3,000 pages); each with `@VERSION` for a version of it as [a web that "
        "changes](knowledge.md#a-web-that-changes); a local file or nothing is read, no "
        "network but for the URI of an archive",
        unset="the live Web; `demo` for the critic `models/demo` without live seeds",
    )
    crawl_dir: Text | None = _argument(
        None,
        "folder of the crawl; made if need be, resumed if it holds this crawl",
        unset="`crawls/<topic>-<time>`",
    )
    stop: Annotated[StopExpression, STOP_EXPRESSION] = _argument(
        StopExpression(),
        "[when the crawl ends itself](stopping.md), rules with commas between: `recall 0.9` "
        "(so much of what is in reach is here, by estimate), `next 100 < 0.1` (less harvest "
        "is expected of so many next fetches), `time 8h` (of this run; `s`, `m`, `h`, `d`). "
        "The first that applies does; budget and stagnation hold as well",
        unset="none",
    )
    random_state: WholeNumber = _argument(
        0,
        "whole number",
    )
    apprentice: Text | None = _argument(
        None,
        "folder of an apprentice trained on an earlier crawl (`focuscrawl apprentice train`);"
        " it goes on learning",
        unset="from scratch",
    )
    within: Text | None = _argument(
        None,
        "folder of an earlier crawl: only URLs that it fetched are followed (a recall crawl)",
        unset="no limit",
    )
    hosts: Annotated[tuple[str, ...], HOSTS] = _argument(
        (),
        "only [these hosts](usage.md#scope) and those below them: with commas, or a file with"
        " one a line",
        unset="all",
    )
    deny: Patterns = _argument(
        (),
        "no URL that [one of these](usage.md#scope) is found in, `*` for anything and `$` for"
        " its end: with commas, or a file with one a line. Not what your own spider asks for",
        unset="none",
    )
    languages: Annotated[tuple[str, ...], LANGUAGES] = _argument(
        (),
        "codes with commas, `en,de`: a page in [another language](usage.md#scope) has relevance 0",
        unset="all",
    )
    max_depth: WholeNumber | None = _argument(
        None,
        "clicks from a seed: [no link](usage.md#scope) of a page that far is followed",
        unset="no limit",
    )
    discover: Annotated[tuple[str, ...], some_of("sitemaps", "feeds", "hreflang")] = _argument(
        (),
        "[pages that no page links to](usage.md#site-maps-feeds-translations): in site maps "
        "and feeds of hosts that have brought a relevant page, and in other languages "
        "(`hreflang`)",
        unset="nothing",
    )
    knowledge: Text | None = _argument(
        None,
        "file of what earlier crawls of the topic have learned ([knowledge](knowledge.md)); "
        "with `apprentice` and `learnable`",
        unset="none",
    )

    # settings only

    allow: Patterns = _setting(
        (),
        "of the links that your spider did not ask for, [only those](addon.md#links-you-did-"
        "not-ask-for) whose URL one of these is found in, written as for `deny`",
        unset="all",
    )
    any_media: Flag = _setting(
        False,
        "load and follow what is no HTML, too: no link is left out for its ending (`.pdf`, "
        "`.jpg`, ...), no download is broken off for its Content-Type. Only HTML is judged",
    )
    backoff: Number = _setting(
        1.0,
        "seconds that a host which is busy (429, 502, 503, 504) or gives no answer is [left "
        "in peace](bad-web.md#hosts-that-do-not-answer); doubled with every further such "
        "request in a row",
    )
    backoff_max: Number = _setting(
        120.0,
        "longest such wait; a host that asks for more in `Retry-After` is left alone until "
        "the crawl is resumed",
    )
    browser: Annotated[str, file_name("1")] | None = _setting(
        None,
        "pages that have no text without their scripts are shown to [a "
        "browser](usage.md#pages-that-need-a-browser): 1: Chromium, where it is installed; or"
        " the path of one",
        unset="none",
    )
    calibrated: Flag | None = _setting(
        None,
        "whether the critic's calibrated probabilities are the relevance",
        unset="as the critic was trained",
    )
    callback: Text = _setting(
        DEFAULT_CALLBACK,
        "with `FOCUSCRAWL_FOLLOW`: method of [your spider](addon.md#links-you-did-not-ask-"
        "for) that is given the pages it did not ask for; empty: nobody is",
    )
    closed: Flag = _setting(
        True,
        "in a replay, drop links to what is not recorded; otherwise they answer 404 and cost "
        "a fetch",
    )
    distill: WholeNumber = _setting(
        0,
        "after every so many fetches, what the top [hubs](distiller.md#while-crawling) link "
        "to comes first; 0: never",
    )
    distill_sites: Annotated[str, one_of("auto", "host", "domain", "none")] = _setting(
        "auto",
        "whose links do not count then: `host`, `domain`, `none`; `auto`: `host`, and `none` "
        "while every link stays on its host",
    )
    follow: Flag = _setting(
        False,
        "with the [add-on](addon.md#links-you-did-not-ask-for): follow all links of a page, "
        "not only those that your spider asks for",
    )
    host_failures: WholeNumber = _setting(
        8,
        "so many such requests in a row, and a host is left alone until the crawl is resumed;"
        " 0: never",
    )
    instances: Text | None = _setting(
        None,
        "file of JSON lines, or `module:callable`, that is given every link (u,v) of this run"
        " with both ends judged, see [pipelines](usage.md#pipelines-of-your-own)",
        unset="none",
    )
    limits: Flag = _setting(
        True,
        "a host, and a pattern of URLs, must [earn its fetches](endurance.md#traps); 0: no limits",
    )
    log_json: Annotated[str, file_name("log.jsonl")] | None = _setting(
        None,
        "the log once more [as JSON](deploy.md#how-it-is-doing): a file, taken from the "
        "crawl's folder; 1: `log.jsonl` there; `-`: standard error",
        unset="off",
    )
    meta: Annotated[Mapping[str, Any], json_object('{"playwright": true}')] = _setting(
        {},
        "meta of the requests that links become",
    )
    meta_refresh: Number = _setting(
        0.0,
        "a page that [refreshes to another](bad-web.md#what-pages-ask-for) within less than "
        "so many seconds is a redirect; 0: none is",
        unset="`METAREFRESH_MAXDELAY`; 0 in a replay, or without `METAREFRESH_ENABLED`",
    )
    metrics_address: Annotated[str, IP_ADDRESS] = _setting(
        "127.0.0.1",
        "address of this machine at which the numbers are: `0.0.0.0` or `::` is all it has, "
        "which a container needs. Whoever reaches it can read them, without a password",
    )
    metrics_port: Annotated[int, whole_number(0, 65535)] = _setting(
        0,
        "port of this machine at which [numbers for Prometheus](deploy.md#how-it-is-doing) "
        "are; 0: none",
    )
    near_duplicates: Flag = _setting(
        True,
        "look for pages that say [nearly the same](endurance.md#traps) as an earlier one, "
        "which earn nothing",
    )
    not_modified_cost: Share = _setting(
        0.1,
        'what an answer "not modified" (304) counts against the budget, in fetches',
    )
    obey_meta_robots: Flag = _setting(
        False,
        "obey [what pages ask of robots](bad-web.md#what-pages-ask-for): `nofollow` of a page"
        " and of a link, `noindex` of a page",
        unset="True; in a replay False",
    )
    patience: Number = _setting(
        5.0,
        "seconds that a live crawl gives for [one more relevant page](usage.md#patience): "
        "while a better link waits for its host, the budget is not spent on what is far "
        "below; 0: none",
    )
    pdf: Flag = _setting(
        False,
        "load PDF, too, and judge it [by its text](usage.md#pdf)",
    )
    private_addresses: Annotated[Networks, NETWORKS] = _setting(
        Networks(),
        "what may be crawled though it is [not public](security.md#addresses): "
        "`127.0.0.1,10.1.0.0/16,fd00::/8`. `0.0.0.0/0,::/0` opens all",
        unset="none",
    )
    progress: Flag = _setting(
        True,
        "show a progress bar, or a line every ten seconds where the output is no terminal",
    )
    revisit: Flag = _setting(
        False,
        "[re-crawl](knowledge.md#a-re-crawl): fetch pages that the knowledge has only where "
        "another visit is worth it, and ask for them only if they have changed",
    )
    revisit_hubs: WholeNumber = _setting(
        0,
        "with `FOCUSCRAWL_DISTILL`: a top hub whose last fetch is so many seconds ago (in a "
        "replay: so many fetches) is [fetched again](distiller.md#hubs-that-grow) for its new"
        " links; 0: never",
    )
    stagnation: WholeNumber = _setting(
        0,
        "stop after so many fetches without a page of relevance above 0.5; 0: never",
    )
    stop_timeout: Number = _setting(
        15.0,
        "seconds for what is under way when a live crawl is told to end; then it is given up "
        "and queued again",
    )
    options: Annotated[Mapping[str, Any], json_object('{"option": 1}')] = _setting(
        {},
        "options of the strategy. Those of the apprentice are [here](apprentice.md#options), "
        "those of the others [here](strategies.md). Part of what a crawl is resumed by",
        name="STRATEGY_OPTIONS",
    )
    text: Flag = _setting(
        False,
        "take the [main text of relevant pages while crawling](collect.md#while-crawling): "
        "into the items, and so into feeds, and into the crawl's folder, for `focuscrawl "
        "collect`",
    )
    text_extractor: Annotated[str, one_of(*_EXTRACTORS)] = _setting(
        _EXTRACTORS[0],
        "what finds the text: the better one, or [the faster one](collect.md#text)",
    )
    text_markdown: Flag = _setting(
        False,
        "texts of items are Markdown: with headings, lists and emphasis",
    )
    text_min_relevance: Share = _setting(
        0.5,
        "R of pages whose text is taken, at least; 0: all pages",
    )
    text_processes: Annotated[int, whole_number(1, 64)] = _setting(
        1,
        "processes that take texts beside the crawl",
    )
    warc: Annotated[str, file_name(RECORDING, ".warc.gz", WHERE_JUDGED)] | None = _setting(
        None,
        "record to this `.warc.gz` file, taken from the crawl's folder; 1: `pages.warc.gz` "
        "there; `live`: as 1, where pages can be [judged anew](topics.md#how-a-crawl-follows)"
        " and are kept nowhere else: in live crawls, but for those with `knowledge`",
        unset="`live`; 0 in the [add-on](addon.md)",
    )
    warc_size: WholeNumber = _setting(
        0,
        "megabytes from which on the recording goes on in [another file](usage.md#record-and-"
        "replay): `pages-00001.warc.gz`, `pages-00002.warc.gz`, ...; 0: it is one file",
    )

    # what comes from elsewhere than settings of the project's own

    per_host: WholeNumber = _of_scrapy(
        1, "CONCURRENT_REQUESTS_PER_DOMAIN", "requests to a host at a time"
    )
    delay: Number = _of_scrapy(0.0, "DOWNLOAD_DELAY", "seconds between two requests to a host")
    concurrency: WholeNumber = _of_scrapy(
        0,
        "CONCURRENT_REQUESTS",
        "URLs that may be in progress at once, until they are recorded; 0: no limit",
    )
    own_names: bool = Field(
        default=False,
        description="names may be looked up elsewhere than on the Internet, so start pages may "
        "have names that are reserved there",
    )
    spider: str = Field(
        default="",
        description="name of the spider whose requests are kept with the crawl; empty: none",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse values that do not go together."""
        if self.revisit_hubs and not self.distill:
            raise UserError(
                "FOCUSCRAWL_REVISIT_HUBS needs to know the hubs: set FOCUSCRAWL_DISTILL, too"
            )
        if self.apprentice is not None and self.strategy != DEFAULT_STRATEGY:
            raise UserError("argument apprentice goes with the strategy apprentice: leave one out")
        if self.browser is not None and self.web is not None:
            raise UserError("FOCUSCRAWL_BROWSER is for the live Web: leave out web, or this")
        return self

    @property
    def topics(self) -> tuple[str, ...]:
        """The topic paths, normalised."""
        return read_topics(self.topic)

    @property
    def strategy_options(self) -> dict[str, Any]:
        """The options of the strategy, with the apprentice that it starts with."""
        given = {} if self.apprentice is None else {"begin_with": self.apprentice}
        return {**self.options, **given}

    def changed(self, **values: Any) -> Self:
        """Return the configuration with other values, which must be of the fields' types."""
        return self.model_copy(update=values)

    def describe(self) -> str:
        """Return what differs from the defaults, in one line for the crawl's log of events.

        `meta` is left out: it may hold passwords.
        """
        return without_credentials(
            ", ".join(
                f"{name if name in ARGUMENTS else setting_of(name)}={getattr(self, name)}"
                for name, field in type(self).model_fields.items()
                if getattr(self, name) != field.default and name != "meta"
            )
        )


def setting_of(field: str) -> str:
    """Return the name of the setting that a field comes from, or of the field if from none."""
    extra = _extra(CrawlConfig.model_fields[field])
    if "scrapy" in extra:
        return str(extra["scrapy"])
    return f"{PREFIX}{extra['name'] or field.upper()}" if extra else field


def _extra(field: FieldInfo) -> dict[str, Any]:
    extra = field.json_schema_extra
    return extra if isinstance(extra, dict) else {}


#: fields by the names of their settings
SETTINGS = {
    setting_of(name): name
    for name, field in CrawlConfig.model_fields.items()
    if "unset" in _extra(field)
}
#: fields that can be given with ``-a``
ARGUMENTS = [
    name for name in SETTINGS.values() if _extra(CrawlConfig.model_fields[name]).get("argument")
]
#: fields from Scrapy's settings
SCRAPYS = [name for name, field in CrawlConfig.model_fields.items() if "scrapy" in _extra(field)]


def argument_rows() -> str:
    """Return the rows of the table of arguments in the reference."""
    fields = CrawlConfig.model_fields
    return _rows(
        [f"`{name}`", str(fields[name].description), _default(fields[name])] for name in ARGUMENTS
    )


def setting_rows() -> str:
    """Return the rows of the table of settings that are no arguments, by name."""
    fields = {
        setting: CrawlConfig.model_fields[name]
        for setting, name in SETTINGS.items()
        if name not in ARGUMENTS
    }
    return _rows(
        [
            f"`{setting}`",
            accepts_of(field.annotation, field.metadata),
            str(field.description),
            _default(field),
        ]
        for setting, field in sorted(fields.items())
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


def accepts_of(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """Return what a field of some type accepts, in words."""
    for each in (*metadata, *get_args(annotation)):
        if isinstance(each, Reader):
            return each.accepts
        if found := accepts_of(each):
            return found
    return ""


def _default(field: FieldInfo) -> str:
    default, unset = field.default, _extra(field)["unset"]
    if unset:
        return str(unset)
    if isinstance(default, str | dict):
        return f"`{default}`"
    return f"{default:g}" if isinstance(default, float) else str(default)


if __name__ == "__main__":
    reference = Path(sys.argv[1])
    reference.write_text(with_tables(reference.read_text(encoding="utf-8")), encoding="utf-8")
