"""``focuscrawl corpus``: from keywords to a corpus, with the files of all steps in one folder."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.collect_command import describe_exported, export_crawl
from focuscrawl.cli.common_options import command_line, run_crawl
from focuscrawl.cli.critic_examples import read_url_arguments
from focuscrawl.collection import ExportOptions
from focuscrawl.collection.corpus_folder import CorpusFolder, CorpusOrder
from focuscrawl.collection.export_files import base_name, check_output
from focuscrawl.commands.corpus_topic import CorpusTopic
from focuscrawl.commands.plan import make_plan, print_plan
from focuscrawl.completeness.recall_estimate import MIN_TARGETS
from focuscrawl.completeness.stop_rules import (
    RECALL_RULE_STUDY,
    STOP_EXPRESSION,
    TARGETS_REACHED,
    TIME_OVER,
    check_reachable,
)
from focuscrawl.crawl import CrawlFolder
from focuscrawl.critic.phrase_model import parse_phrases
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.files import write_atomically
from focuscrawl.foundation.user_input import LANGUAGES
from focuscrawl.page.words import count_words
from focuscrawl.report.crawl_plan import format_fact
from focuscrawl.report.outcomes import (
    HARVEST_FELL,
    SEEDS_UNREACHABLE,
    STOPPED_EARLY,
    stop_reason,
)
from focuscrawl.report.plain_text import one_line, pluralize, shorten_middle
from focuscrawl.report.status import open_store
from focuscrawl.report.summary import Summary
from focuscrawl.search import default_source
from focuscrawl.search.queries import RESULTS, TUPLE_SIZE, TUPLES
from focuscrawl.text import EXTRACTORS
from focuscrawl.topics import read_definition

if TYPE_CHECKING:
    from focuscrawl.collection import Collection

_MOST_START_PAGES = 50  # fetched for the plan
_WIDTH = 90  # characters of the printed keywords
_SEARCHES = 3  # further searches during a crawl
#: stop reasons after which a crawl does not search for more start pages
_FINAL_REASONS = ("budget", TARGETS_REACHED, TIME_OVER)
_STOP, _LATER, _CERTIFIED = "recall 0.9, next 100 < 0.1", "recall 0.95", "targets 0.8"


@click.command()
@click.argument("keywords")
@click.argument("urls", metavar="[URL]...", nargs=-1)
@common_options.out_option(
    "Export file (.parquet, .jsonl, .csv, .warc.gz or .wacz), or a new folder for Markdown files."
)
@common_options.integer_option("--pages", "Maximum number of pages to fetch.", 500)
@click.option(
    "--web",
    help="Recording to crawl: a WARC file, an index of WARC files, or `demo` (a synthetic "
    "web).  [default: the live Web]",
)
@click.option(
    "--search",
    metavar="SOURCE",
    help="Source of start pages: searxng (a search engine), common-crawl:HOST,... (Common "
    "Crawl's index), another installed source, a file of URLs, or - (standard input).  [default: "
    "searxng if you give no URL and the address of SearXNG is set]",
)
@click.option(
    "--search-more",
    is_flag=True,
    help="When the harvest rate falls, use words from relevant pages as queries to search for "
    "more start pages.",
)
@common_options.integer_option(
    "--tuples",
    "Number of search queries that are random combinations of KEYWORDS.",
    TUPLES,
    least=0,
)
@common_options.integer_option(
    "--tuple-size", "Number of keywords in each random search query.", TUPLE_SIZE
)
@common_options.integer_option(
    "--results", "Number of search results that the command uses from each search query.", RESULTS
)
@common_options.integer_option(
    "--per-site", "Maximum number of search results that the command uses from the same site.", 3
)
@common_options.integer_option(
    "--others",
    "On the live Web: number of off-topic pages to fetch as training examples of the critic.",
    200,
)
@click.option(
    "--stop",
    default=_STOP,
    show_default=True,
    metavar="RULES",
    help="Rules that stop the crawl, in the format of the argument `stop` of `focuscrawl crawl`.",
)
@common_options.urls_option(
    "--targets",
    "Target pages (relevant pages that you know), which certify the recall of the crawl",
)
@click.option(
    "--all-examples",
    is_flag=True,
    help="Use all given URLs as start pages and training examples, and none as target pages.",
)
@common_options.LANGUAGE
@common_options.path_option(
    "--folder",
    "Folder for the files of all steps.  [default: the name of the export file without the file "
    "ending]",
    metavar="FOLDER",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check the start pages, and estimate the time and disk space of the crawl, but do not "
    "run the crawl.",
)
@common_options.random_state_option()
@common_options.processes_option(
    "Largest number of processes that extract text from pages at the same time."
)
@common_options.SETTINGS
def corpus(
    *,
    keywords: str,
    urls: tuple[str, ...],
    out: Path,
    pages: int,
    search: str | None,
    search_more: bool,
    stop: str,
    targets: tuple[str, ...],
    language: str | None,
    folder: Path | None,
    dry_run: bool,
    processes: int,
    settings: tuple[str, ...],
    **options: Any,
) -> None:
    """Create a corpus of pages on a topic.

    KEYWORDS are phrases that describe the topic, separated by commas. The command finds start
    pages, trains a critic (page classifier), checks the start pages, crawls the Web, and exports
    the relevant pages. The command also writes a datasheet, which describes the corpus.

    Each URL is the address of a page on the topic, or the name of a file of such addresses. The
    pages that you give are start pages of the crawl and training examples of the critic. If
    you give 17 or more URLs, the command sets aside two thirds of them, or 14 if that is more,
    as target pages. From the share of target pages that the crawl finds, the command computes
    a lower bound of the recall. If you give no URL, a search engine finds pages, and the
    critic chooses the start pages.

    The command writes the files of all steps to one folder. To continue after an interruption,
    repeat the command; the command skips finished steps.

    \b
    focuscrawl corpus "road cycling, bicycle racing" --pages 500 --out cycling.parquet
    focuscrawl corpus "road cycling" https://bikes.example/ --out cycling.parquet --dry-run
    """
    check_output(out)
    with require_extra("text", "focuscrawl corpus"):  # the export would report it after the crawl
        import trafilatura  # noqa: F401, PLC0415
    if keywords.lower().startswith(("http:", "https:")):
        raise UserError(f"no keywords before {keywords:.200}: give phrases on the topic")
    parse_phrases(keywords)
    rule = STOP_EXPRESSION.parse("--stop", stop)
    languages = () if language is None else LANGUAGES.parse("--language", language)
    given = tuple(read_url_arguments(urls, "seeds"))
    held_out = tuple(read_url_arguments(targets, "targets"))
    twice = [url for url in held_out if url in given]
    if twice:
        raise UserError(f"{twice[0]:.200} is a start page and a target page: name it only once")
    files = CorpusFolder(folder or _default_folder(out))
    files.check_output(out)
    further = (search or default_source()) if search_more else None
    if search_more and further is None:
        raise UserError("--search-more needs a source: set FOCUSCRAWL_SEARXNG_URL, or --search")
    if search is None and not given:
        search = files.known_source() or default_source()
        if search is None:
            raise UserError(
                "no start pages: give URLs of pages on the topic, set FOCUSCRAWL_SEARXNG_URL to "
                "an instance of SearXNG, or name another source with --search"
            )
    order = CorpusOrder(keywords=keywords, urls=given, targets=held_out, search=search, **options)
    unreachable = check_reachable(rule, len(order.split_pages()[1]))
    if unreachable is not None:
        raise UserError(unreachable)
    run = _CorpusRun(order, files, settings, {"budget": str(pages), "stop": stop})
    run.topic.check_given_pages()
    files.open(order)
    command = command_line(without="dry_run")
    try:
        run.topic.define()
        run.make_plan()
        if dry_run:
            click.echo(f"\nNext: {command}")
            return
        run.crawl(further)
        files.add_output(out)
        exported, written = export_crawl(
            str(files.crawl),
            out,
            ExportOptions(languages=languages, extractor=EXTRACTORS[0]),
            web=order.web,
            processes=processes,
            command=command,
        )
    except KeyboardInterrupt:
        click.echo(f"The command was interrupted. To resume it: {command}", err=True)
        raise
    click.echo("\n" + "\n".join(run.summary_lines(exported, written)))
    if run.target_warning is not None:
        click.echo(f"Warning: {run.target_warning}", err=True)


def _default_folder(out: Path) -> Path:
    name = base_name(out)
    return out.with_name(name if name != out.name else f"{name}-corpus")


class _CorpusRun:
    """Runs the steps from keywords to a crawl, and skips finished steps."""

    def __init__(
        self,
        order: CorpusOrder,
        files: CorpusFolder,
        settings: Sequence[str],
        limits: Mapping[str, str],
    ) -> None:
        self._order, self._files, self._settings = order, files, settings
        self._limits = limits  # arguments of the crawl that may change when it is resumed
        self.topic = CorpusTopic(order, files, settings)
        self.stopped: str | None = None  # why the crawl stopped

    @property
    def _arguments(self) -> dict[str, str]:
        """Arguments of the crawl."""
        definition = str(self._files.topic)
        arguments = {
            "topic": self._order.topic,
            "critic": str(self._files.crawl_critic()),
            "seeds": definition,
            "crawl_dir": str(self._files.crawl),
            "random_state": str(self._order.random_state),
            **self._limits,
        }
        if read_definition(self._files.topic).targets:
            arguments["targets"] = definition
        if self._order.web is not None:
            arguments["web"] = self._order.web
        return arguments

    def make_plan(self) -> None:
        """Check the start pages, and print the plan with its warnings, unless the crawl exists."""
        if CrawlFolder(self._files.crawl).exists:
            return
        recordings = self._files.recordings()
        plan, budget = make_plan(
            self._arguments,
            self._settings,
            _MOST_START_PAGES,
            recording=str(recordings[0]) if recordings else None,
        )
        # that warning names an argument of `crawl`, and this command has the rule by default
        warnings = [each for each in plan.warnings if each != RECALL_RULE_STUDY]
        plan = replace(plan, warnings=tuple(warnings))
        write_atomically(self._files.plan, json.dumps(plan.to_dict(), indent=1) + "\n")
        print_plan(plan, budget)
        click.echo(
            format_fact("export", "after the crawl, some seconds for each 100 relevant pages")
        )

    def crawl(self, source: str | None) -> None:
        """Crawl; search for more start pages if the harvest rate falls or the crawl ends early."""
        for searches in range(1 + _SEARCHES):
            may_search = source is not None and searches < _SEARCHES
            self._crawl_once(f"FOCUSCRAWL_STOP_AT_ALARM={may_search:d}")
            if source is None or not may_search or self.stopped in _FINAL_REASONS:
                return
            if not self.topic.search_again(source) and self.stopped != HARVEST_FELL:
                return

    def _crawl_once(self, *settings: str) -> None:
        files = self._files
        files.crawl.mkdir(exist_ok=True)
        click.echo(f"Crawling into {files.crawl}; log: {files.log}", err=True)
        settings = (f"LOG_FILE={files.log}", *settings, *self._settings)
        run_crawl(self._arguments, settings, allow_unreachable_seeds=True)
        with closing(open_store(files.crawl)) as store:
            self.stopped = stop_reason(store)
            if self.stopped == SEEDS_UNREACHABLE:
                errors = Summary.of(store).describe_errors()
                click.echo(
                    f"focuscrawl: the crawl could fetch no start page ({errors}): see {files.log}",
                    err=True,
                )
                raise SystemExit(common_options.SEEDS_UNREACHABLE)
        if self.stopped in STOPPED_EARLY:
            raise KeyboardInterrupt

    def summary_lines(self, exported: Collection, written: Sequence[Path]) -> list[str]:
        """Return the summary for a terminal, with the next commands."""
        order, files, summary = self._order, self._files, self._summary
        known, facts = read_definition(files.topic), dict(summary.lines())
        quality = exported.origin.critic
        hosts = [
            f"{shorten_middle(one_line(row[0]), 40)} ({pluralize(row[1], 'fetch')})"
            for row in summary.best_hosts
        ]
        n_words = sum(count_words(page.content.text) for page in exported.pages)
        pages, already = int(self._limits["budget"]), ""
        if summary.fetched > pages:
            already = f"{summary.fetched:,} fetches exist already, more than --pages {pages:,}"
        in_export, uncounted = exported.count_targets(), self._uncounted_targets(known.targets)
        lines = [
            ("topic", f"{order.topic}: {one_line(order.keywords, _WIDTH)}"),
            ("start pages", f"{len(known.seeds)}, in {files.topic}"),
            ("critic", f"{files.crawl_critic()}, {_describe_quality(quality)}"),
            ("stopped", already or self._describe_stop(facts["stopped"])),
            ("fetched", facts["fetched"]),
            ("harvest rate", f"{facts['harvest rate']}, the mean relevance of all fetches"),
            *((name, facts[name]) for name in ("relevant", "targets") if name in facts),
            *([] if uncounted is None else [("not counted", uncounted)]),
            *([] if in_export is None else [("in the export", in_export.describe())]),
            *((name, facts[name]) for name in ("errors", "alarm") if name in facts),
            ("best hosts", ", ".join(hosts) or "none"),
            ("exported", f"{describe_exported(exported)}"),
            ("words", f"{n_words:,.0f}"),
            ("written", ", ".join(map(str, written))),
            ("steps in", str(files.path)),
        ]
        crawl, topic = self._quoted_paths
        targets = summary.targets
        certifies = targets is not None and targets.targets >= MIN_TARGETS
        later = _CERTIFIED if certifies and self.stopped != TARGETS_REACHED else _LATER
        changed: dict[str, Any] = {}
        if already or self.stopped == "budget":
            changed["pages"] = 2 * summary.fetched
        if already or self.stopped != "budget":
            changed["stop"] = later
        return [
            *(f"{name:<13} {value}" for name, value in lines),
            "Next:",
            f"  judge pages   focuscrawl topic suggest {crawl} --topic {topic}",
            f"  loss curve    focuscrawl report {crawl}",
            f"  browser       focuscrawl studio {shlex.quote(str(files.path.absolute().parent))}",
            *(
                [f"  more pages    {command_line(**changed)}"]
                if self.target_warning is None
                else []
            ),
        ]

    def _describe_stop(self, reason: str) -> str:
        """Return why the crawl stopped, for a user who may not have named a stop rule."""
        is_default = self._limits["stop"] == _STOP
        return reason.replace("by the rule", "by the default rule", 1) if is_default else reason

    def _uncounted_targets(self, named: Sequence[str]) -> str | None:
        """Describe which of the named target pages the crawl does not count, if there are any."""
        counts = self._summary.targets
        if counts is None or counts.targets == len(named):
            return None
        web = self._order.web
        missing = "" if web is None else f"{web} lacks them, or "
        return (
            f"{len(named) - counts.targets} of {pluralize(len(named), 'target page')}, because "
            f"{missing}the crawl knew them from its start pages or examples"
        )

    @cached_property
    def _summary(self) -> Summary:
        with closing(open_store(self._files.crawl)) as store:
            return Summary.of(store)

    @property
    def _quoted_paths(self) -> tuple[str, str]:
        """Paths of the crawl and of the topic definition, for commands."""
        return shlex.quote(str(self._files.crawl)), shlex.quote(str(self._files.topic))

    @property
    def target_warning(self) -> str | None:
        """Warning if the critic judges more than half of the target pages found off-topic."""
        targets, (crawl, topic) = self._summary.targets, self._quoted_paths
        if targets is None or 2 * (targets.relevant or 0) >= targets.fetched:
            return None
        return (
            f"the critic judges only {targets.relevant} of the {targets.fetched} target pages "
            "found relevant, so the export lacks many pages on your topic. Judge pages with the "
            f"first command above, or add examples: focuscrawl topic add {topic} --good FILE && "
            f"focuscrawl topic apply {crawl} {topic}. Then repeat the command"
        )


def _describe_quality(quality: Any) -> str:
    if quality.precision is None:
        why_not = quality.why_not or "no page is judged off topic"
        return f"precision not measured: {why_not}"
    value, low, high = quality.precision
    return f"precision {value:.2f} ({low:.2f}–{high:.2f})"
