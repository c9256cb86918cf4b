"""``focuscrawl corpus``: from keywords to a corpus, with the files of all steps in one folder."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.collect_command import describe_exported, export_crawl
from focuscrawl.cli.common_options import ProgressBar, command_line, run_crawl
from focuscrawl.cli.critic_examples import (
    REDIRECTS_PER_PAGE,
    fetch_examples,
    print_unread_examples,
    read_url_arguments,
    split_at_commas,
    warn_of_missing_embeddings,
)
from focuscrawl.collection import ExportOptions
from focuscrawl.collection.export_files import base_name, check_output
from focuscrawl.commands.anywhere import project_settings
from focuscrawl.commands.plan import make_plan, parse_pairs, print_plan
from focuscrawl.completeness.stop_rules import STOP_EXPRESSION
from focuscrawl.crawl import CrawlFolder
from focuscrawl.critic.critic_files import load_trained, save_critic
from focuscrawl.critic.phrase_model import parse_phrases
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.files import write_atomically
from focuscrawl.foundation.urls import host, normalize
from focuscrawl.foundation.user_input import LANGUAGES
from focuscrawl.page.words import count_words
from focuscrawl.report.crawl_plan import start_pages
from focuscrawl.report.outcomes import HARVEST_FELL, PAGE, stop_reason
from focuscrawl.report.plain_text import escape_csv_cell, one_line, pluralize, shorten_middle
from focuscrawl.report.status import open_store
from focuscrawl.report.summary import Summary
from focuscrawl.search import (
    Candidate,
    JudgedCandidate,
    ask_queries,
    choose_candidates,
    default_source,
    judge_candidates,
    make_tuples,
)
from focuscrawl.search.proposals import propose_queries
from focuscrawl.search.queries import RESULTS, TUPLE_SIZE, TUPLES
from focuscrawl.text import EXTRACTORS
from focuscrawl.topics import TopicDefinition, edit_definition, read_definition, train_definition
from focuscrawl.topics.definition import write_definition
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from focuscrawl.collection import Collection
    from focuscrawl.webs.web_protocol import Web

_MOST_START_PAGES = 50  # fetched for the plan
_SHOWN, _WIDTH = 10, 90  # refused candidates printed, characters of a URL
_SEARCHES = 3  # further searches during a crawl
_CRITIC = re.compile(r"critic-(\d{1,9})")
_STOPPED_EARLY = ("interrupted", "stopped", None)  # stop reasons that the same command resumes
_STOP, _STOP_LATER = "recall 0.9, next 100 < 0.1", "recall 0.95"


@dataclass(frozen=True)
class CorpusOrder:
    """The options that determine the topic and the start pages of a corpus."""

    keywords: str
    urls: tuple[str, ...]
    web: str | None
    search: str | None
    tuples: int
    tuple_size: int
    results: int
    per_site: int
    others: int
    random_state: int

    @property
    def phrases(self) -> list[str]:
        """The phrases of the topic."""
        return list(split_at_commas(self.keywords))

    @property
    def topic(self) -> str:
        """Path of the critic's class of the topic, named after the first phrase."""
        words = parse_phrases(self.keywords)[0]
        return f"/{'_'.join(words).capitalize()}"


class CorpusFolder:
    """The folder with the files of all steps.

    Topic definition and critics have the names that the studio uses, so that each step can be
    repeated in the studio.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.order = path / "corpus.json"
        self.topic = path / "topic.toml"
        self.answers = path / "search.jsonl"
        self.plan = path / "plan.json"
        self.crawl = path / "crawl"
        self.log = self.crawl / "crawl.log"

    def candidates(self) -> Path:
        """Return a new file for the judged candidates of a search."""
        number = 1 + len([*self.path.glob("candidates*.csv")])
        return self.path / ("candidates.csv" if number == 1 else f"candidates-{number}.csv")

    def critics(self) -> list[Path]:
        """Return the folders of the critics, from the oldest to the latest."""
        found = {path: _CRITIC.fullmatch(path.name) for path in self.path.glob("critic-*")}
        return sorted((p for p, match in found.items() if match), key=lambda p: int(p.name[7:]))

    def examples(self, number: int) -> Path:
        """Return the folder of a crawl that fetches candidates."""
        return self.path / ".examples" / str(number)

    def next_examples(self) -> Path:
        """Return the folder for a crawl that fetches candidates of a further search."""
        return self.examples(1 + len([*self.path.glob(".examples/*")]))

    def recordings(self) -> list[Path]:
        """Return the recordings of the fetched candidates."""
        return sorted(self.path.glob(".examples/*/pages.warc.gz"))

    def known_source(self) -> str | None:
        """Return the source of start pages of the corpus in the folder, if any."""
        try:
            known = json.loads(self.order.read_text(encoding="utf-8"))
            return str(known["search"]) if known["search"] else None
        except (OSError, ValueError, TypeError, LookupError):
            return None

    def open(self, order: CorpusOrder) -> None:
        """Create the folder, or check that the folder has the files of the same order.

        Raises
        ------
        UserError
            The folder belongs to another corpus, or cannot be written.
        """
        given: dict[str, Any] = json.loads(json.dumps(asdict(order)))
        try:
            if self.order.exists():
                known = json.loads(self.order.read_text(encoding="utf-8"))
                self._check(known, given)
            elif self.path.exists() and any(self.path.iterdir()):
                raise UserError(
                    f"{self.path} contains other files: name another folder with --folder"
                )
            else:
                self.path.mkdir(parents=True, exist_ok=True)
                write_atomically(self.order, json.dumps(given, indent=1) + "\n")
        except OSError as error:
            raise UserError(f"{self.path} cannot be written: {error.strerror}") from None
        except ValueError:
            raise UserError(
                f"{self.order} is damaged: name another folder with --folder"
            ) from None

    def _check(self, known: Any, given: Mapping[str, Any]) -> None:
        for name, value in given.items():
            before = known.get(name) if isinstance(known, dict) else None
            if before != value:
                raise UserError(
                    f"{self.path} has the corpus of another command: {name} was {before!r:.200}, "
                    f"not {value!r:.200}; name another folder with --folder"
                )


# -- the command ---------------------------------------------------------------------------


@click.command()
@click.argument("keywords")
@click.argument("urls", metavar="[URL]...", nargs=-1)
@common_options.out_option(
    "Export file (.parquet, .jsonl, .csv, .warc.gz or .wacz), or a new folder for Markdown files."
)
@common_options.integer_option("--pages", "Maximum number of pages to fetch.", 500)
@click.option(
    "--web", help="Recording (WARC file, index or `demo`) to crawl.  [default: the live Web]"
)
@click.option(
    "--search",
    metavar="SOURCE",
    help="Source of start pages: searxng, common-crawl:HOST,... or another installed source; a "
    "file of URLs; - for URLs from standard input.  [default: searxng if its address is set and "
    "no URL is given]",
)
@click.option(
    "--search-more",
    is_flag=True,
    help="Search again with words of relevant pages when the harvest rate falls.",
)
@common_options.integer_option(
    "--tuples", "Number of queries that combine keywords at random.", TUPLES, least=0
)
@common_options.integer_option("--tuple-size", "Keywords in each of these queries.", TUPLE_SIZE)
@common_options.integer_option("--results", "Number of results for each query.", RESULTS)
@common_options.integer_option("--per-site", "Maximum number of results of a site.", 3)
@common_options.integer_option(
    "--others", "On the live Web: number of off-topic pages to fetch for the critic.", 200
)
@click.option(
    "--stop",
    default=_STOP,
    show_default=True,
    metavar="RULES",
    help="Stop rules of the crawl, as for `focuscrawl crawl -a stop=`.",
)
@click.option(
    "--targets",
    metavar="FILE",
    help="Known relevant pages that certify the recall, as for `focuscrawl crawl -a targets=`.",
)
@click.option(
    "--language",
    metavar="CODES",
    help="Languages of exported pages, separated by commas.  [default: all languages]",
)
@common_options.path_option(
    "--folder",
    "Folder for the files of all steps.  [default: --out without its ending]",
    metavar="FOLDER",
)
@click.option("--dry-run", is_flag=True, help="Stop after the plan, before the crawl.")
@common_options.random_state_option()
@common_options.processes_option("Number of processes that extract text.")
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
    targets: str | None,
    language: str | None,
    folder: Path | None,
    dry_run: bool,
    processes: int,
    settings: tuple[str, ...],
    **options: Any,
) -> None:
    """Create a corpus from KEYWORDS: phrases of the topic, separated by commas.

    The command finds start pages, trains a critic, checks the start pages, crawls, and exports the
    relevant pages with a datasheet. Each URL is a page on the topic, or a file of such URLs; they
    are start pages and examples. Without a URL, a search engine finds start pages, which the
    critic judges.

    All steps write their files to one folder. The same command continues after an interruption,
    and skips finished steps.

    \b
    focuscrawl corpus "road cycling, bicycle racing" --pages 500 --out cycling.parquet
    focuscrawl corpus "road cycling" https://bikes.example/ --out cycling.parquet --dry-run
    """
    check_output(out)
    with require_extra("text", "focuscrawl corpus"):  # the export would report it after the crawl
        import trafilatura  # noqa: F401, PLC0415
    parse_phrases(keywords)
    STOP_EXPRESSION.parse("--stop", stop)
    languages = () if language is None else LANGUAGES.parse("--language", language)
    given = tuple(read_url_arguments(urls))
    wrong = [url for url in given if normalize(url) is None]
    if wrong:
        raise UserError(f"{wrong[0]:.200} is no http(s) URL: start pages begin with https://")
    files = CorpusFolder(folder or _default_folder(out))
    further = search or (default_source() if search_more else None)
    if search_more and further is None:
        raise UserError("--search-more needs a source: set FOCUSCRAWL_SEARXNG_URL, or --search")
    if search is None and not given:
        search = files.known_source() or default_source()
        if search is None:
            raise UserError(
                "no start pages: give URLs of pages on the topic, set FOCUSCRAWL_SEARXNG_URL to "
                "an instance of SearXNG, or name another source with --search"
            )
    order = CorpusOrder(keywords=keywords, urls=given, search=search, **options)
    files.open(order)
    limits = {"budget": str(pages), "stop": stop}
    if targets is not None:
        limits["targets"] = targets
    run = _CorpusRun(order, files, settings, limits)
    run.define_topic()
    run.make_plan()
    command = command_line(without="dry_run")
    if dry_run:
        click.echo(f"\nNext: {command}")
        return
    run.crawl(further)
    if run.stopped in _STOPPED_EARLY:
        click.echo(f"The crawl was interrupted. To resume it: {command}", err=True)
        return
    options_of_export = ExportOptions(languages=languages, extractor=EXTRACTORS[0])
    exported, written = export_crawl(
        str(files.crawl),
        out,
        options_of_export,
        web=order.web,
        processes=processes,
        command=command,
    )
    click.echo("\n" + "\n".join(run.summary_lines(exported, written)))


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
        scrapy_settings = project_settings()
        scrapy_settings.update(parse_pairs(settings), priority="cmdline")
        self._agent = str(scrapy_settings["USER_AGENT"])
        self.stopped: str | None = None  # why the crawl stopped

    # -- topic -----------------------------------------------------------------------------

    def define_topic(self) -> None:
        """Find start pages, train the critic, and write the topic definition."""
        order, files = self._order, self._files
        if files.topic.exists() and files.critics():
            click.echo(f"Topic of {files.topic}, critic {files.critics()[-1]}")
            return
        candidates, refused = list[Candidate](), list[JudgedCandidate]()
        if order.search is not None:
            phrases = [" ".join(words) for words in parse_phrases(order.keywords)]
            tuples = make_tuples(
                parse_phrases(order.keywords), order.tuples, order.tuple_size, order.random_state
            )
            candidates, refused = self._search(order.search, phrases, tuples)
        pages = [*order.urls, *(each.url for each in candidates)]
        definition = TopicDefinition(
            web=order.web if order.web and "://" not in order.web else None,
            words=tuple(order.phrases),
            seeds=order.urls,
            good=order.urls,
            name=order.topic,
        )
        webs, errors = self._fetch(pages, files.examples(1), others=order.others)
        folder = files.path / "critic-1"
        self._train(definition, webs, folder, relevant=pages)
        if candidates:
            critic = load_trained(str(folder), order.topic)
            judged = judge_candidates(candidates, webs, critic, errors)
            accepted = [each.url for each in judged if not each.reason]
            table = self._report_candidates([*judged, *refused])
            if not accepted and not order.urls:
                raise UserError(
                    f"none of {pluralize(len(judged), 'candidate')} is on the topic: see {table}; "
                    "use other keywords, or give URLs of pages on the topic"
                )
            definition = replace(definition, seeds=tuple(dict.fromkeys([*order.urls, *accepted])))
        write_definition(definition, files.topic)

    def _search(
        self, source: str, phrases: Sequence[str], tuples: Sequence[str]
    ) -> tuple[list[Candidate], list[JudgedCandidate]]:
        """Ask the source for candidates; return the chosen and the refused candidates."""
        with closing(ProgressBar(f"Asking {source}", unit="queries")) as progress:
            asked = ask_queries(
                source,
                phrases,
                tuples,
                self._order.results,
                record=self._files.answers,
                agent=self._agent,
                progress=progress,
            )
        for problem in asked.problems:
            click.echo(f"Warning: {one_line(problem)}", err=True)
        chosen, refused = choose_candidates(asked.answers, self._order.per_site)
        if not chosen:
            raise UserError(
                f"{source} found nothing for {pluralize(len(asked.queries), 'query')}: use "
                "other keywords, or give URLs of pages on the topic"
            )
        return chosen, [
            JudgedCandidate(each.url, each.title, None, reason) for each, reason in refused
        ]

    def _fetch(
        self, pages: Sequence[str], folder: Path, **options: Any
    ) -> tuple[list[Web], dict[str, str]]:
        """Return the webs that have the pages, and why pages could not be fetched."""
        if self._order.web is not None:
            return [open_web(self._order.web)], {}
        fetched = fetch_examples(
            pages,
            out=str(self._files.path),
            crawl_dir=str(folder),
            settings=self._settings,
            random_state=self._order.random_state,
            resume=True,
            **options,
        )
        with closing(open_store(folder)) as store:
            errors = {page.url: page.outcome for page in start_pages(store)}
        return [fetched], {url: why for url, why in errors.items() if why != PAGE}

    def _train(
        self,
        definition: TopicDefinition,
        webs: Sequence[Web],
        folder: Path,
        *,
        relevant: Iterable[str],
    ) -> None:
        with closing(ProgressBar("Training the critic")) as progress:
            trained, _ = train_definition(
                definition, webs, relevant=frozenset(relevant), progress=progress
            )
        save_critic(trained, folder, force=True)
        print_unread_examples(definition.good, trained)
        warn_of_missing_embeddings(trained)

    def _report_candidates(self, judged: Sequence[JudgedCandidate]) -> Path:
        """Print the refused candidates, and write all candidates to a new CSV file."""
        table = self._files.candidates()
        accepted = [each for each in judged if not each.reason]
        hosts = {host(each.url) for each in accepted}
        click.echo(
            f"{pluralize(len(accepted), 'start page')} on {pluralize(len(hosts), 'host')} of "
            f"{pluralize(len(judged), 'candidate')}; refused ({table}):"
        )
        refused = [each for each in judged if each.reason]
        for each in refused[:_SHOWN]:
            shown = "-   " if each.relevance is None else f"{each.relevance:.2f}"
            click.echo(f"  {shown}  {shorten_middle(one_line(each.url), _WIDTH)}  ({each.reason})")
        if len(refused) > _SHOWN:
            click.echo(f"  and {len(refused) - _SHOWN} more")
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(["url", "title", "relevance", "refused"])
        for each in judged:
            value = "" if each.relevance is None else f"{each.relevance:.3f}"
            writer.writerow([*map(escape_csv_cell, (each.url, each.title)), value, each.reason])
        write_atomically(table, text.getvalue())
        return table

    # -- plan and crawl --------------------------------------------------------------------

    @property
    def _arguments(self) -> dict[str, str]:
        """Arguments of the crawl."""
        critic = self._files.critics()[-1]
        arguments = {
            "topic": self._order.topic,
            "critic": str(critic),
            "seeds": str(self._files.topic),
            "crawl_dir": str(self._files.crawl),
            "random_state": str(self._order.random_state),
            **self._limits,
        }
        return arguments if self._order.web is None else {**arguments, "web": self._order.web}

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
        write_atomically(self._files.plan, json.dumps(plan.to_dict(), indent=1) + "\n")
        print_plan(plan, budget)

    def crawl(self, source: str | None) -> None:
        """Crawl; search a source again when the harvest falls or a stop rule applies."""
        for searches in range(1 + _SEARCHES):
            may_search = source is not None and searches < _SEARCHES
            self._crawl_once(f"FOCUSCRAWL_STOP_AT_ALARM={may_search:d}")
            if source is None or not may_search or self.stopped in (*_STOPPED_EARLY, "budget"):
                return
            if not self._find_more(source) and self.stopped != HARVEST_FELL:
                return

    def _crawl_once(self, *settings: str) -> None:
        files = self._files
        files.crawl.mkdir(exist_ok=True)
        click.echo(f"Crawling into {files.crawl}; log: {files.log}", err=True)
        run_crawl(self._arguments, [f"LOG_FILE={files.log}", *settings, *self._settings])
        with closing(open_store(files.crawl)) as store:
            self.stopped = stop_reason(store)

    def _find_more(self, source: str) -> bool:
        """Search with words of the relevant pages; return whether start pages were found."""
        files, order = self._files, self._order
        known = read_definition(files.topic)
        with closing(open_store(files.crawl)) as store:
            queries = propose_queries(store)
            fetched = {url for (url,) in store.rows("SELECT url FROM pages")}
        if not queries:
            return False
        click.echo(f"Searching for {'; '.join(queries)}", err=True)
        try:
            candidates, refused = self._search(source, queries, ())
        except UserError as error:  # the crawl has found enough for an export
            click.echo(f"Warning: {error}", err=True)
            return False
        new = [each for each in candidates if each.url not in fetched.union(known.seeds)]
        if not new:
            return False
        webs, errors = self._fetch(
            [each.url for each in new],
            files.next_examples(),
            others=REDIRECTS_PER_PAGE * len(new),
            max_distance=0,
        )
        critic = load_trained(str(files.critics()[-1]), order.topic)
        judged = judge_candidates(new, webs, critic, errors)
        accepted = [each.url for each in judged if not each.reason]
        self._report_candidates([*judged, *refused])
        if not accepted:
            return False

        def with_seeds(now: TopicDefinition) -> TopicDefinition:
            return replace(now, seeds=tuple(dict.fromkeys([*now.seeds, *accepted])))

        edit_definition(files.topic, with_seeds)
        return True

    # -- summary ---------------------------------------------------------------------------

    def summary_lines(self, exported: Collection, written: Sequence[Path]) -> list[str]:
        """Return the summary for a terminal, with the next commands."""
        order, files = self._order, self._files
        with closing(open_store(files.crawl)) as store:
            summary = Summary.of(store)
        known, facts = read_definition(files.topic), dict(summary.lines())
        quality = exported.origin.critic
        hosts = [
            f"{shorten_middle(one_line(row[0]), 40)} ({row[1]})" for row in summary.best_hosts
        ]
        n_words = sum(count_words(page.content.text) for page in exported.pages)
        lines = [
            ("topic", f"{order.topic}: {one_line(', '.join(order.phrases), _WIDTH)}"),
            ("start pages", f"{len(known.seeds)}, in {files.topic}"),
            ("critic", f"{files.critics()[-1]}, {_describe_quality(quality)}"),
            *((name, facts[name]) for name in ("stopped", "fetched", "harvest rate")),
            *(
                (name, facts[name])
                for name in ("relevant", "targets", "errors", "alarm")
                if name in facts
            ),
            ("best hosts", ", ".join(hosts) or "none"),
            ("exported", f"{describe_exported(exported)}"),
            ("words", f"{n_words:,.0f}"),
            ("written", ", ".join(map(str, written))),
            ("steps in", str(files.path)),
        ]
        crawl, topic = shlex.quote(str(files.crawl)), shlex.quote(str(files.topic))
        spent = self.stopped == "budget"
        more = command_line(pages=2 * summary.fetched) if spent else command_line(stop=_STOP_LATER)
        return [
            *(f"{name:<13} {value}" for name, value in lines),
            "Next:",
            f"  judge pages   focuscrawl topic suggest {crawl} --topic {topic}",
            f"  loss curve    focuscrawl report {crawl}",
            f"  browser       focuscrawl studio {shlex.quote(str(files.path.absolute().parent))}",
            f"  more pages    {more}",
        ]


def _describe_quality(quality: Any) -> str:
    if quality.precision is None:
        why_not = quality.why_not or "no page is judged off topic"
        return f"precision not measured: {why_not}"
    value, low, high = quality.precision
    return f"precision {value:.2f} ({low:.2f}–{high:.2f})"
