"""The configuration of a crawl: every argument and setting, declared and checked in one place.

Every field of `CrawlConfig` is a setting; those that `_argument` declares can be given with
``-a name=value``, too. Command line, settings modules, plans of rounds and tests all become
a `CrawlConfig`, which is passed inwards; nothing inside reads Scrapy's settings again.
``python -m focuscrawl.crawl_config docs/reference/settings.md`` writes the tables of that page.
"""

from __future__ import annotations

import re
import sys
import textwrap
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
from focuscrawl.taxonomy import parse_topics

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from pydantic.fields import FieldInfo

#: file in a crawl's folder that pages are recorded to
RECORDING_FILE = "pages.warc.gz"
#: value of `CrawlConfig.warc`: record the pages that a crawl may have to judge again
RECORD_LIVE = "live"
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
        "topic paths of the critic, separated by commas; topics below them are included. "
        "`/good` for a critic from keywords or from good and bad examples; any name for a "
        "callable",
        unset="required",
    )
    seeds: Text | None = _argument(
        None,
        "start URLs, separated by commas or spaces; or a file with one URL a line (blank "
        "lines and lines with `#` are skipped); or CSV with a column `url`, and optionally "
        "`topic`; or a [topic definition](../how-to/topics.md) (`.toml`) with `seeds`",
        unset="the critic's examples of the topic",
    )
    critic: Text = _argument(
        DEFAULT_CRITIC,
        "folder of a trained critic, or its name under `models/`; folder of a [path "
        "model](../how-to/paths.md); or `module:callable`",
    )
    strategy: Text = _argument(
        DEFAULT_STRATEGY,
        "name of a [strategy](strategies.md), or of an entry point in the group "
        "`focuscrawl.strategies`",
    )
    budget: WholeNumber = _argument(
        DEFAULT_BUDGET,
        "exact number of fetches over all runs of the crawl; 0: no limit",
    )
    web: Text | None = _argument(
        None,
        "recorded web to crawl: a `.warc` or `.warc.gz` file, an "
        "[archive](../how-to/recordings.md#archives) by its index (`.cdxj`, `.parquet`; "
        "`INDEX,BASE`; paths or URIs), `demo` or `demo:SCALE` (1 is 3,000 pages). "
        "`@VERSION` after each names a version of [a web that "
        "changes](../how-to/recrawls.md#a-web-that-changes). No network is used, except for "
        "the URI of an archive",
        unset="the live Web; `demo` for the critic `models/demo` without live seeds",
    )
    crawl_dir: Text | None = _argument(
        None,
        "folder of the crawl; it is created, or the crawl in it is resumed",
        unset="`crawls/<topic>-<time>`",
    )
    stop: Annotated[StopExpression, STOP_EXPRESSION] = _argument(
        StopExpression(),
        "[rules](../how-to/stopping.md) that stop the crawl, separated by commas: `recall "
        "0.9` (estimated recall), `next 100 < 0.1` (expected harvest of the next fetches), "
        "`time 8h` (of this run; `s`, `m`, `h`, `d`). The first rule that applies stops it. "
        "The budget and `FOCUSCRAWL_STAGNATION` apply as well",
        unset="none",
    )
    random_state: WholeNumber = _argument(
        0,
        "seed of everything random",
    )
    apprentice: Text | None = _argument(
        None,
        "folder of an apprentice trained on an earlier crawl (`focuscrawl apprentice "
        "train`); it continues to learn",
        unset="from scratch",
    )
    within: Text | None = _argument(
        None,
        "folder of an earlier crawl: only URLs that it fetched are followed (a recall crawl)",
        unset="no limit",
    )
    hosts: Annotated[tuple[str, ...], HOSTS] = _argument(
        (),
        "only [these hosts](../how-to/scope.md#scope) and their subdomains, separated by "
        "commas, or a file with one a line",
        unset="all",
    )
    deny: Patterns = _argument(
        (),
        "URLs that [contain one of these](../how-to/scope.md#scope) are skipped; `*` "
        "matches anything, `$` the end; separated by commas, or a file with one a line. "
        "Does not apply to requests of your own spider",
        unset="none",
    )
    languages: Annotated[tuple[str, ...], LANGUAGES] = _argument(
        (),
        "language codes, `en,de`: pages [in other languages](../how-to/scope.md#scope) "
        "have relevance 0",
        unset="all",
    )
    max_depth: WholeNumber | None = _argument(
        None,
        "[clicks from a start page](../how-to/scope.md#scope) beyond which no link is followed",
        unset="no limit",
    )
    discover: Annotated[tuple[str, ...], some_of("sitemaps", "feeds", "hreflang")] = _argument(
        (),
        "finds [pages that no page links "
        "to](../how-to/scope.md#site-maps-feeds-translations): in site maps and feeds of "
        "hosts with relevant pages, and translations (`hreflang`)",
        unset="nothing",
    )
    knowledge: Text | None = _argument(
        None,
        "file of what earlier crawls of the topic [learned](../how-to/recrawls.md); for "
        "`apprentice` and `learnable`",
        unset="none",
    )

    # settings only

    allow: Patterns = _setting(
        (),
        "follow [only links](../tutorials/scrapy-project.md#links-you-did-not-ask-for) "
        "whose URL contains one of these, written as for `deny`. Does not apply to requests "
        "of your own spider",
        unset="all",
    )
    any_media: Flag = _setting(
        False,
        "also download and follow what is not HTML: links with endings such as `.jpg`, and "
        "other Content-Types. Only HTML is judged",
    )
    backoff: Number = _setting(
        1.0,
        "seconds to [back off](../explanation/bad-web.md#hosts-that-do-not-answer) from a "
        "host that is busy (429, 502, 503, 504) or does not answer; doubled with every "
        "further failure in a row",
    )
    backoff_max: Number = _setting(
        120.0,
        "longest back-off in seconds; a host that asks for more with `Retry-After` is "
        "skipped until the crawl is resumed",
    )
    browser: Annotated[str, file_name("1")] | None = _setting(
        None,
        "render pages that have no text without scripts in [a "
        "browser](../how-to/documents.md#pages-that-need-a-browser); 1: the installed "
        "Chromium; or the path of a browser",
        unset="none",
    )
    calibrated: Flag | None = _setting(
        None,
        "use the critic's calibrated probabilities as relevance",
        unset="as the critic was trained",
    )
    callback: Text = _setting(
        DEFAULT_CALLBACK,
        "with `FOCUSCRAWL_FOLLOW`: method of [your "
        "spider](../tutorials/scrapy-project.md#links-you-did-not-ask-for) that receives "
        "pages it did not request; empty: none",
    )
    closed: Flag = _setting(
        True,
        "in a replay, drop links to pages that are not recorded; 0: such links answer 404 "
        "and cost a fetch",
    )
    distill: WholeNumber = _setting(
        0,
        "number of fetches after which links of the top "
        "[hubs](../explanation/distiller.md#while-crawling) are raised, again and again; 0: "
        "never",
    )
    distill_sites: Annotated[str, one_of("auto", "host", "domain", "none")] = _setting(
        "auto",
        "sites whose internal links do not count then: `host`, `domain`, `none`; `auto`: "
        "`host`, or `none` while all links stay on their host",
    )
    follow: Flag = _setting(
        False,
        "with the [add-on](../tutorials/scrapy-project.md#links-you-did-not-ask-for): "
        "follow all links of a page, not only requests of your spider",
    )
    host_failures: WholeNumber = _setting(
        8,
        "failures in a row after which a host is skipped until the crawl is resumed; 0: never",
    )
    instances: Text | None = _setting(
        None,
        "file of JSON lines, or `module:callable`, for every link (u, v) whose two pages "
        "were judged ([pipelines](../how-to/extending.md#pipelines-of-your-own))",
        unset="none",
    )
    limits: Flag = _setting(
        True,
        "hosts and URL patterns must [earn their "
        "fetches](../explanation/endurance.md#traps); 0: no limits",
    )
    log_json: Annotated[str, file_name("log.jsonl")] | None = _setting(
        None,
        "also write the log [as JSON](../how-to/deploy.md#how-it-is-doing) to this file, "
        "relative to the crawl's folder; 1: `log.jsonl`; `-`: standard error",
        unset="off",
    )
    meta: Annotated[Mapping[str, Any], json_object('{"playwright": true}')] = _setting(
        {},
        "meta of all requests of the crawl",
    )
    meta_refresh: Number = _setting(
        0.0,
        "a page that [refreshes to another](../explanation/bad-web.md#what-pages-ask-for) "
        "within less than this many seconds is a redirect; 0: none is",
        unset="`METAREFRESH_MAXDELAY`; 0 in a replay, or without `METAREFRESH_ENABLED`",
    )
    metrics_address: Annotated[str, IP_ADDRESS] = _setting(
        "127.0.0.1",
        "local address that serves the metrics; `0.0.0.0` or `::` for all addresses, as a "
        "container needs. There is no password",
    )
    metrics_port: Annotated[int, whole_number(0, 65535)] = _setting(
        0,
        "local port that serves [Prometheus metrics](../how-to/deploy.md#how-it-is-doing); "
        "0: none",
    )
    near_duplicates: Flag = _setting(
        True,
        "detect [near-duplicates](../explanation/endurance.md#traps) of earlier pages; they "
        "earn nothing",
    )
    not_modified_cost: Share = _setting(
        0.1,
        "what an answer 304 (not modified) costs, in fetches of the budget",
    )
    obey_meta_robots: Flag = _setting(
        False,
        "obey [robots meta tags](../explanation/bad-web.md#what-pages-ask-for): `nofollow` "
        "of pages and links, `noindex` of pages",
        unset="True; in a replay False",
    )
    patience: Number = _setting(
        5.0,
        "seconds that [one more relevant page](../how-to/live-crawls.md#patience) is worth in "
        "a live crawl while a better link waits for its host; 0: never wait",
    )
    pdf: Flag = _setting(
        False,
        "download PDF and judge it [by its text](../how-to/documents.md#pdf)",
    )
    private_addresses: Annotated[Networks, NETWORKS] = _setting(
        Networks(),
        "[private addresses](../explanation/security.md#addresses) that may be crawled: "
        "`127.0.0.1,10.1.0.0/16,fd00::/8`. `0.0.0.0/0,::/0` allows all",
        unset="none",
    )
    progress: Flag = _setting(
        True,
        "show a progress bar, or a line every ten seconds where the output is no terminal",
    )
    revisit: Flag = _setting(
        False,
        "[re-crawl](../how-to/recrawls.md#a-re-crawl): fetch known pages only where another "
        "visit is worth it, with conditional requests",
    )
    revisit_hubs: WholeNumber = _setting(
        0,
        "with `FOCUSCRAWL_DISTILL`: age in seconds (in a replay: in fetches) at which a top "
        "hub is [fetched again](../explanation/distiller.md#hubs-that-grow) for its new "
        "links; 0: never",
    )
    stagnation: WholeNumber = _setting(
        0,
        "stop after this many fetches without a page of relevance above 0.5; 0: never",
    )
    stop_timeout: Number = _setting(
        15.0,
        "seconds for requests in progress when a live crawl stops; after that they are "
        "cancelled and queued again",
    )
    options: Annotated[Mapping[str, Any], json_object('{"option": 1}')] = _setting(
        {},
        "options of the strategy: of the "
        "[apprentice](../explanation/apprentice.md#options), of [others](strategies.md). A "
        "crawl is resumed with the same options",
        name="STRATEGY_OPTIONS",
    )
    text: Flag = _setting(
        False,
        "extract the [main text of relevant pages during the "
        "crawl](../how-to/export.md#while-crawling), for items, feeds and `focuscrawl "
        "collect`",
    )
    text_extractor: Annotated[str, one_of(*_EXTRACTORS)] = _setting(
        _EXTRACTORS[0],
        "the extractor: `trafilatura` is better, [`resiliparse`](../how-to/export.md#text) "
        "is faster",
    )
    text_markdown: Flag = _setting(
        False,
        "texts of items are Markdown, with headings, lists and emphasis",
    )
    text_min_relevance: Share = _setting(
        0.5,
        "lowest relevance of pages whose text is extracted; 0: all pages",
    )
    text_processes: Annotated[int, whole_number(1, 64)] = _setting(
        1,
        "processes that extract text beside the crawl",
    )
    warc: Annotated[str, file_name(RECORDING_FILE, ".warc.gz", RECORD_LIVE)] | None = _setting(
        None,
        "record the crawl to this `.warc.gz` file, relative to the crawl's folder; 1: "
        "`pages.warc.gz`; `live`: as 1 in live crawls without `knowledge`, so that pages "
        "can be [judged again](../how-to/topics.md#how-a-crawl-follows)",
        unset="`live`; 0 in the [add-on](../tutorials/scrapy-project.md)",
    )
    warc_size: WholeNumber = _setting(
        0,
        "megabytes after which the recording continues in [another "
        "file](../how-to/recordings.md#record-and-replay), `pages-00001.warc.gz` and so on; "
        "0: one file",
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
        return parse_topics(self.topic)

    @property
    def strategy_options(self) -> dict[str, Any]:
        """The options of the strategy, with the apprentice that it starts with."""
        given = {} if self.apprentice is None else {"begin_with": self.apprentice}
        return {**self.options, **given}

    def with_values(self, **values: Any) -> Self:
        """Return the configuration with other values, which must be of the fields' types."""
        return self.model_copy(update=values)

    def describe(self) -> str:
        """Return what differs from the defaults, in one line for the crawl's log of events.

        `meta` is left out: it may hold passwords.
        """
        return without_credentials(
            ", ".join(
                f"{name if name in ARGUMENTS else setting_name(name)}={getattr(self, name)}"
                for name, field in type(self).model_fields.items()
                if getattr(self, name) != field.default and name != "meta"
            )
        )


def setting_name(field: str) -> str:
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
    setting_name(name): name
    for name, field in CrawlConfig.model_fields.items()
    if "unset" in _extra(field)
}
#: fields that can be given with ``-a``
ARGUMENTS = [
    name for name in SETTINGS.values() if _extra(CrawlConfig.model_fields[name]).get("argument")
]
#: fields from Scrapy's settings
SCRAPY_FIELDS = [
    name for name, field in CrawlConfig.model_fields.items() if "scrapy" in _extra(field)
]


def argument_help(width: int = 96) -> str:
    """Return the arguments for ``--help``: a name, its meaning and default each."""
    lines = []
    for name in ARGUMENTS:
        field = CrawlConfig.model_fields[name]
        text = f"{field.description} (default: {_default(field)})"
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "")
        head = f"  -a {name}=..."
        indent = " " * 24
        wrapped = textwrap.wrap(plain, width - len(indent))
        lines += [f"{head:<24}{wrapped[0]}", *(indent + line for line in wrapped[1:])]
    return "\n".join(lines)


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
            describe_accepted(field.annotation, field.metadata),
            str(field.description),
            _default(field),
        ]
        for setting, field in sorted(fields.items())
    )


def update_tables(document: str) -> str:
    """Return the text of the reference with the rows as they are to be."""
    for heading, rows in (("`-a`", argument_rows()), ("setting", setting_rows())):
        head = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[-|]+\|\n", document, re.MULTILINE)
        if head is not None:
            after = re.sub(r"\A(?:\|.*\n)+", "", document[head.end() :])
            document = document[: head.end()] + rows + after
    return document


def _rows(cells: Iterable[list[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def describe_accepted(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """Return what a field of some type accepts, in words."""
    for each in (*metadata, *get_args(annotation)):
        if isinstance(each, Reader):
            return each.accepts
        if found := describe_accepted(each):
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
    reference.write_text(update_tables(reference.read_text(encoding="utf-8")), encoding="utf-8")
