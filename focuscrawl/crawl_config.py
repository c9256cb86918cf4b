"""The configuration of a crawl: declaration and validation of every argument and setting.

Every field of `CrawlConfig` is a setting. Fields declared by `_argument` can also be given with
``-a NAME=VALUE``. The package reads settings only from `CrawlConfig`. The command ``python -m
focuscrawl.crawl_config docs/reference/settings.md`` updates the tables of the page.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import (
    Iterable,
    Mapping,
)
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, get_args

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
    ValueParser,
    file_name,
    json_object,
    number,
    one_of,
    some_of,
    whole_number,
)
from focuscrawl.taxonomy import parse_topics

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

#: default recording file in a crawl's folder
RECORDING_FILE = "pages.warc.gz"
#: value of `CrawlConfig.warc`: record live crawls, so that pages can be judged again
RECORD_LIVE = "live"
DEFAULT_CRITIC, DEFAULT_STRATEGY, DEFAULT_BUDGET = "models/demo", "apprentice", 1000
DEMO_BUDGET = 200  #: if no budget and no web is given; the demo web has about 240 pages of a topic
DEFAULT_CALLBACK = "parse"
PREFIX = "FOCUSCRAWL_"

#: copy of `focuscrawl.text.EXTRACTORS`, which is slow to import
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
    text : str
        Description in Markdown.
    unset : str
        Description of the default; empty: show the default itself.
    name : str
        Name of the setting without its prefix; empty: the name of the field.
    """
    extra |= {"unset": unset, "name": name}
    return Field(default, description=text, json_schema_extra=extra)


def _argument(default: Any, text: str, *, unset: str = "") -> Any:
    """Declare a setting that is an argument, too; an empty value means the default."""
    return _setting(default, text, unset=unset, argument=True)


def _scrapy_setting(default: Any, setting: str, text: str) -> Any:
    """Declare a field that is a setting of Scrapy."""
    return Field(default, description=text, json_schema_extra={"scrapy": setting})


class CrawlConfig(BaseModel):
    """Validated configuration of a crawl: one field for each argument and setting.

    The constructor parses values that are text, and validates all values. The function
    `focuscrawl.engine.config_from_settings.read_config` creates a configuration from arguments and
    settings.

    Raises
    ------
    UserError
        Values contradict each other. For an invalid value, pydantic raises a `ValidationError`,
        which `focuscrawl.foundation.user_input.validated` turns into a `UserError`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    # arguments, in the order of the reference

    topic: Text = _argument(
        "",
        "relevant topics: class names of the critic (page classifier), such as "
        "`/Sports/Cycling`, separated by commas. Subtopics of a relevant topic are relevant as "
        "well. A critic trained on a few example pages has a single topic, which is named "
        "`/good` by default. If the critic is a Python callable, the topic may have any name",
        unset="the topic of the critic, if the critic has a single topic",
    )
    seeds: Text | None = _argument(
        None,
        "start pages: URLs separated by commas or spaces, or the name of a file of URLs. A text "
        "file of start pages has one URL per line (`#` starts a comment). A CSV file of start "
        "pages has a column `url` and an optional column `topic`. A [topic "
        "definition](../how-to/topics.md) (a `.toml` file) lists start pages under the key "
        "`seeds`",
        unset="the critic's training pages on the topic",
    )
    critic: Text = _argument(
        DEFAULT_CRITIC,
        "critic (page classifier) that judges pages: folder of a trained critic, name of a "
        "critic in `models/`, folder of a [path model](../how-to/paths.md) trained with "
        "`focuscrawl paths train`, or a Python callable (`module:callable`)",
    )
    strategy: Text = _argument(
        DEFAULT_STRATEGY,
        "name of the [crawl strategy](strategies.md), which orders the queued URLs: a built-in "
        "strategy, or a Python entry point in the group `focuscrawl.strategies`",
    )
    budget: WholeNumber = _argument(
        DEFAULT_BUDGET,
        "number of fetches after which the crawl stops, including the fetches before an "
        "interruption; 0: no limit",
        unset=f"{DEFAULT_BUDGET:,}, but {DEMO_BUDGET} for a crawl that uses the synthetic web "
        "because the argument `web` is not given",
    )
    web: Text | None = _argument(
        None,
        "recording (saved pages) to crawl instead of the live Web: a `.warc`, `.warc.gz` or "
        "`.wacz` file, or an [index of WARC files](../how-to/recordings.md#archives) (`.cdxj`, "
        "`.idx` or `.parquet`). In a value `web=INDEX,BASE`, BASE is the folder or URI of the "
        "WARC files that the file INDEX lists. The value `web=demo` means a synthetic web of "
        "3,000 pages, and `web=demo:10` means a synthetic web with ten times as many pages. The "
        "suffix `@VERSION`, as in `web=demo@2`, simulates a [later state of a "
        "recording](../how-to/recrawls.md#a-web-that-changes), in which some pages have changed. "
        "A crawl of a recording needs a network only if the recording is stored at a URI",
        unset="`demo` with the critic `models/demo`, unless `seeds` contains URLs of the live "
        "Web; otherwise the live Web",
    )
    crawl_dir: Text | None = _argument(
        None,
        "folder for the data of the crawl. If the folder `crawl_dir` contains a crawl, the "
        "command resumes the crawl; otherwise the command starts a new crawl",
        unset="`crawls/<topic>-<time>`",
    )
    stop: Annotated[StopExpression, STOP_EXPRESSION] = _argument(
        StopExpression(),
        "[rules](../how-to/stopping.md) that stop the crawl, separated by commas. The rule "
        "`recall 0.9` stops the crawl when the estimated recall reaches 0.9. The rule `targets "
        "0.8` stops the crawl when the share of found target pages (argument `targets`) shows "
        "that recall is at least 0.8. The rule `next 100 < 0.1` stops the crawl when the "
        "expected harvest rate of "
        "the next 100 fetches is below 0.1. The rule `time 8h` stops this run of the crawl after "
        "8 hours (units: `s`, `m`, `h` and `d`). A crawl with several stop rules stops as soon "
        "as any of the rules applies. The budget and the setting `FOCUSCRAWL_STAGNATION` can "
        "also stop "
        "the crawl",
        unset="no stop rule",
    )
    targets: Text | None = _argument(
        None,
        "[target pages](../how-to/stopping.md#recall-certified-by-target-pages): relevant pages "
        "that you know and do not use as start pages. From the share of target pages that it "
        "finds, the crawl computes a lower bound of its recall. The argument `targets` "
        "accepts the same formats as the argument `seeds`. A topic definition lists target pages "
        "under the key `targets`",
        unset="no target pages",
    )
    random_state: WholeNumber = _argument(0, "seed of the random number generator")
    apprentice: Text | None = _argument(
        None,
        "folder of an apprentice (link classifier) that `focuscrawl apprentice train` has "
        "trained on an earlier crawl. The apprentice continues to learn in the new crawl",
        unset="an untrained apprentice",
    )
    within: Text | None = _argument(
        None,
        "folder of an earlier crawl. The new crawl follows only URLs that the earlier crawl "
        "fetched, so that its recall can be measured",
        unset="no limit",
    )
    hosts: Annotated[tuple[str, ...], HOSTS] = _argument(
        (),
        "[hosts to crawl](../how-to/scope.md#scope), including their subdomains: host names "
        "separated by commas, or a file with one host name per line",
        unset="all hosts",
    )
    deny: Patterns = _argument(
        (),
        "[URL patterns to skip](../how-to/scope.md#scope): parts of URLs, separated by commas, "
        "or a file with one pattern per line. In a URL pattern, `*` matches any text, and `$` "
        "matches the end of the URL. The argument `deny` does not apply to requests that your "
        "own spider creates",
        unset="no pattern",
    )
    languages: Annotated[tuple[str, ...], LANGUAGES] = _argument(
        (),
        "codes of the languages in which a page can be relevant, such as `en,de`. Pages [in "
        "languages](../how-to/scope.md#scope) that you do not list have the relevance 0",
        unset="all languages",
    )
    max_depth: WholeNumber | None = _argument(
        None,
        "maximum [number of links](../how-to/scope.md#scope) on the path from a start page to a "
        "fetched page",
        unset="no limit",
    )
    discover: Annotated[tuple[str, ...], some_of("sitemaps", "feeds", "hreflang")] = _argument(
        (),
        "[additional sources of URLs](../how-to/scope.md#site-maps-feeds-translations), "
        "separated by commas: `sitemaps`, `feeds` or `hreflang` (links to translations). The "
        "crawl reads the sitemaps and feeds of hosts with relevant pages",
        unset="no additional source",
    )
    knowledge: Text | None = _argument(
        None,
        "[knowledge file](../how-to/recrawls.md) with the results of earlier crawls of the "
        "topic. Only the crawl strategies `apprentice` and `learnable` use the knowledge file",
        unset="no knowledge file",
    )

    # settings only

    allow: Patterns = _setting(
        (),
        "URL patterns of [links to "
        "follow](../tutorials/scrapy-project.md#links-you-did-not-ask-for), written as for "
        "`deny`. The patterns do not apply to requests that your own spider creates",
        unset="all",
    )
    any_media: Flag = _setting(
        False,
        "also follow [links to files](../how-to/scope.md#files) such as `.jpg`, and download "
        "other Content-Types than HTML. Only HTML pages are judged",
    )
    backoff: Number = _setting(
        1.0,
        "seconds to [back off](../explanation/bad-web.md#hosts-that-do-not-answer) from a host "
        "that is busy (429, 502, 503, 504) or does not answer. Each further failure in a row "
        "doubles the time",
    )
    backoff_max: Number = _setting(
        120.0,
        "longest back-off in seconds. A host that demands a longer one with `Retry-After` is "
        "skipped until the crawl is resumed",
    )
    browser: Annotated[str, file_name("1")] | None = _setting(
        None,
        "[browser](../how-to/documents.md#pages-that-need-a-browser) that renders pages without "
        "text in their HTML; 1: the installed Chromium; or the path of a browser",
        unset="none",
    )
    calibrated: Flag | None = _setting(
        None,
        "use the critic's calibrated probabilities as relevance",
        unset="the choice made when the critic was trained",
    )
    callback: Text = _setting(
        DEFAULT_CALLBACK,
        "with `FOCUSCRAWL_FOLLOW`: method of [your "
        "spider](../tutorials/scrapy-project.md#links-you-did-not-ask-for) that receives pages "
        "that the spider did not request; empty: no method",
    )
    closed: Flag = _setting(
        True,
        "in a replay, drop links to pages that are not recorded; 0: fetch them, with the status "
        "404",
    )
    distill: WholeNumber = _setting(
        0,
        "interval, in fetches, at which the crawl finds the top "
        "[hubs](../explanation/distiller.md#while-crawling) and raises the scores of their links; "
        "0: never",
    )
    distill_sites: Annotated[str, one_of("auto", "host", "domain", "none")] = _setting(
        "auto",
        "with `FOCUSCRAWL_DISTILL`: ignore links within a `host` or a registered `domain`, or "
        "ignore no links (`none`). `auto`: `host`, or `none` while all links stay on their host",
    )
    explore: Flag = _setting(
        True,
        "while a crawl from a portal has no good link, fetch every second page from the directory "
        "with the [fewest fetches](../explanation/endurance.md#when-no-link-is-good)",
    )
    follow: Flag = _setting(
        False,
        "with the [add-on](../tutorials/scrapy-project.md#links-you-did-not-ask-for): follow all "
        "links of a page, not only the requests of your spider",
    )
    host_failures: WholeNumber = _setting(
        8, "failures in a row after which a host is skipped until the crawl is resumed; 0: never"
    )
    instances: Text | None = _setting(
        None,
        "JSON Lines file or `module:callable` that receives the [training "
        "instances](../how-to/extending.md#training-instances) of the apprentice",
        unset="none",
    )
    limits: Flag = _setting(
        True,
        "discount URLs of hosts and URL patterns that bring [repeats or irrelevant "
        "pages](../explanation/endurance.md#traps); 0: no discounts",
    )
    log_json: Annotated[str, file_name("log.jsonl")] | None = _setting(
        None,
        "file for a copy of the log [as JSON](../how-to/deploy.md#how-it-is-doing), relative to "
        "the crawl's folder; 1: `log.jsonl`; `-`: standard error",
        unset="off",
    )
    meta: Annotated[Mapping[str, Any], json_object('{"playwright": true}')] = _setting(
        {}, "`Request.meta` of all requests of the crawl"
    )
    meta_refresh: Number = _setting(
        0.0,
        "seconds below which a page that [refreshes to another "
        "page](../explanation/bad-web.md#what-pages-ask-for) counts as a redirect; 0: never",
        unset="`METAREFRESH_MAXDELAY`; 0 in a replay, or without `METAREFRESH_ENABLED`",
    )
    metrics_address: Annotated[str, IP_ADDRESS] = _setting(
        "127.0.0.1",
        "local address that serves the metrics, without a password. In a container, `0.0.0.0` or "
        "`::` serves all addresses",
    )
    metrics_port: Annotated[int, whole_number(0, 65535)] = _setting(
        0,
        "local port that serves [Prometheus metrics](../how-to/deploy.md#how-it-is-doing); "
        "0: none",
    )
    near_duplicates: Flag = _setting(
        True,
        "detect [near-duplicates](../explanation/endurance.md#traps) of earlier pages, which "
        "count as repeats",
    )
    not_modified_cost: Share = _setting(
        0.1, "part of a fetch that a response 304 (not modified) takes from the budget"
    )
    obey_meta_robots: Flag = _setting(
        False,
        "obey [robots meta tags](../explanation/bad-web.md#what-pages-ask-for) (`nofollow`, "
        "`noindex`) and `nofollow` of links",
        unset="True; in a replay False",
    )
    patience: Number = _setting(
        5.0,
        "longest time in seconds that a live crawl [waits for a busy "
        "host](../how-to/live-crawls.md#patience) to gain one relevant page; 0: never wait",
    )
    pdf: Flag = _setting(
        False, "download PDF files and judge them [by their text](../how-to/documents.md#pdf)"
    )
    private_addresses: Annotated[Networks, NETWORKS] = _setting(
        Networks(),
        "[private addresses](../explanation/security.md#addresses) that may be crawled: "
        "`127.0.0.1,10.1.0.0/16,fd00::/8`. `0.0.0.0/0,::/0` allows all",
        unset="none",
    )
    progress: Flag = _setting(
        True, "show a progress bar; if the output is no terminal, print a line every ten seconds"
    )
    revisit: Flag = _setting(
        False,
        "[re-crawl](../how-to/recrawls.md#a-re-crawl): fetch known pages again if they have "
        "probably changed, with conditional requests",
    )
    revisit_hubs: WholeNumber = _setting(
        0,
        "with `FOCUSCRAWL_DISTILL`: age in seconds (in a replay: in fetches) at which the crawl "
        "[fetches a top hub again](../explanation/distiller.md#hubs-that-grow) for new links; 0: "
        "never",
    )
    stagnation: WholeNumber = _setting(
        0,
        "number of fetches in a row without relevance above 0.5 after which the crawl stops; 0: "
        "never",
    )
    stop_at_alarm: Flag = _setting(
        False,
        "stop the crawl when the [harvest alarm](../how-to/alarms.md) is raised",
    )
    stop_timeout: Number = _setting(
        15.0,
        "seconds that a stopping live crawl waits for requests in progress before it cancels and "
        "requeues them",
    )
    options: Annotated[Mapping[str, Any], json_object('{"option": 1}')] = _setting(
        {},
        "options of the strategy: for the [apprentice](../explanation/apprentice.md#options) or "
        "for [other strategies](strategies.md). Resume a crawl with the same options",
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
        "library that extracts the main text: `trafilatura` is better, "
        "[`resiliparse`](../how-to/export.md#text) is faster",
    )
    text_markdown: Flag = _setting(
        False, "write the texts of items as Markdown, with headings, lists and emphasis"
    )
    text_min_relevance: Share = _setting(
        0.5, "lowest relevance of pages whose text is extracted; 0: all pages"
    )
    text_processes: Annotated[int, whole_number(1, 64)] = _setting(
        1, "number of processes that extract text during the crawl"
    )
    warc: Annotated[str, file_name(RECORDING_FILE, ".warc.gz", RECORD_LIVE)] | None = _setting(
        None,
        "`.warc.gz` file that records the crawl, relative to the crawl's folder. 1: "
        "`pages.warc.gz`. `live`: the same, but only for live crawls without `knowledge`, so that "
        "pages can be [judged again](../how-to/topics.md#how-a-crawl-follows)",
        unset="`live`; 0 in the [add-on](../tutorials/scrapy-project.md)",
    )
    warc_size: WholeNumber = _setting(
        0,
        "size in megabytes after which the recording continues in [another "
        "file](../how-to/recordings.md#record-and-replay), such as `pages-00001.warc.gz`; 0: one "
        "file",
    )

    # settings of Scrapy, and values that `read_config` derives

    per_host: WholeNumber = _scrapy_setting(
        1, "CONCURRENT_REQUESTS_PER_DOMAIN", "number of requests to a host at a time"
    )
    delay: Number = _scrapy_setting(
        0.0, "DOWNLOAD_DELAY", "seconds between two requests to a host"
    )
    concurrency: WholeNumber = _scrapy_setting(
        0,
        "CONCURRENT_REQUESTS",
        "number of URLs in progress at a time, until they are recorded; 0: no limit",
    )
    own_names: bool = Field(
        default=False,
        description="host names are resolved privately, so start pages may have reserved names",
    )
    agent: str = Field(
        default="focuscrawl",
        description="product token of the crawler, by which rules for robots may name it",
    )
    spider: str = Field(
        default="",
        description="name of the spider whose requests are saved with the crawl; empty: none",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Reject values that contradict each other."""
        if self.revisit_hubs and not self.distill:
            raise UserError(
                "FOCUSCRAWL_REVISIT_HUBS needs FOCUSCRAWL_DISTILL, which finds the hubs: set both"
            )
        if self.apprentice is not None and self.strategy != DEFAULT_STRATEGY:
            raise UserError(
                f"argument apprentice does not work with the strategy {self.strategy}: leave out "
                "one of them"
            )
        if self.browser is not None and self.web is not None:
            raise UserError(
                "FOCUSCRAWL_BROWSER works on the live Web only: leave out the setting, or the "
                "argument web"
            )
        return self

    @property
    def topics(self) -> tuple[str, ...]:
        """The topic paths, normalised."""
        return parse_topics(self.topic)

    @property
    def strategy_options(self) -> dict[str, Any]:
        """The options of the strategy, including the trained apprentice if one is given."""
        given = {} if self.apprentice is None else {"begin_with": self.apprentice}
        return {**self.options, **given}

    def with_values(self, **values: Any) -> Self:
        """Return a copy with some values replaced; the new values are not validated."""
        return self.model_copy(update=values)

    def describe(self) -> str:
        """Return the values that differ from the defaults, in one line, for an event ``start``.

        The field `meta` is omitted because it may contain passwords.
        """
        return without_credentials(
            ", ".join(
                f"{name if name in ARGUMENTS else setting_name(name)}={getattr(self, name)}"
                for name, field in type(self).model_fields.items()
                if getattr(self, name) != field.default and name != "meta"
            )
        )


def setting_name(field: str) -> str:
    """Return the name of the setting for a field, or the field's name if it has no setting."""
    extra = _extra(CrawlConfig.model_fields[field])
    if "scrapy" in extra:
        return str(extra["scrapy"])
    return f"{PREFIX}{extra['name'] or field.upper()}" if extra else field


def _extra(field: FieldInfo) -> dict[str, Any]:
    extra = field.json_schema_extra
    return extra if isinstance(extra, dict) else {}


#: name of a setting: name of its field
SETTINGS = {
    setting_name(name): name
    for name, field in CrawlConfig.model_fields.items()
    if "unset" in _extra(field)
}
#: names of the fields that are arguments
ARGUMENTS = [
    name for name in SETTINGS.values() if _extra(CrawlConfig.model_fields[name]).get("argument")
]
#: names of the fields that are settings of Scrapy
SCRAPY_FIELDS = [
    name for name, field in CrawlConfig.model_fields.items() if "scrapy" in _extra(field)
]


def argument_help(width: int = 96) -> str:
    """Return the names, descriptions and defaults of all arguments, for ``--help``."""
    lines = []
    for name in ARGUMENTS:
        field = CrawlConfig.model_fields[name]
        text = f"{field.description}. [default: {_default(field)}]"
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "'")
        head = f"  -a {name}=..."
        indent = " " * 24
        wrapped = textwrap.wrap(plain, width - len(indent))
        lines += [f"{head:<24}{wrapped[0]}", *(indent + line for line in wrapped[1:])]
    return "\n".join(lines)


def update_tables(document: str) -> str:
    """Return the text of the reference page of settings with updated tables."""
    fields = {name: CrawlConfig.model_fields[name] for name in SETTINGS.values()}
    ends = {name: f"{field.description} | {_default(field)} |\n" for name, field in fields.items()}
    arguments = [f"| `{name}` | {ends[name]}" for name in ARGUMENTS]
    settings = [
        f"| `{setting}` | {describe_accepted(field.annotation, field.metadata)} | {ends[name]}"
        for setting, name in sorted(SETTINGS.items())
        if (field := fields[name]) and name not in ARGUMENTS
    ]
    for heading, rows in (("`-a`", arguments), ("setting", settings)):
        head = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[-|]+\|\n", document, re.MULTILINE)
        if head is not None:
            after = re.sub(r"\A(?:\|.*\n)+", "", document[head.end() :])
            document = document[: head.end()] + "".join(rows) + after
    return document


def describe_accepted(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """Describe which values a field accepts, from the type annotation of the field."""
    for each in (*metadata, *get_args(annotation)):
        if isinstance(each, ValueParser):
            return each.expected
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
