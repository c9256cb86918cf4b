"""``focuscrawl plan``: check the start pages of a crawl, and estimate its time and disk space."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import SEEDS_UNREACHABLE, run_crawl
from focuscrawl.commands.anywhere import project_settings
from focuscrawl.completeness.stop_rules import RECALL_RULE_STUDY
from focuscrawl.crawl.assembly import load_config_critic, open_crawl, with_topic
from focuscrawl.crawl.loop import replay
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.crawl_config import RECORDING_FILE
from focuscrawl.critic.corpus import find_pages
from focuscrawl.critic.focused_critic import FocusedCritic
from focuscrawl.engine.config_from_settings import read_config
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import normalize
from focuscrawl.report.crawl_plan import CrawlPlan, plan_warnings, start_pages
from focuscrawl.report.outcomes import STOPPED_EARLY, stop_reason
from focuscrawl.report.plain_text import one_line
from focuscrawl.report.status import open_store
from focuscrawl.report.summary import Summary
from focuscrawl.store.history import History
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.crawl_config import CrawlConfig
    from focuscrawl.critic.corpus import FoundPage
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.report.crawl_plan import StartPage
    from focuscrawl.webs.web_protocol import Web

#: arguments of a crawl that do not affect its start pages, or would add other start pages
_IGNORED_ARGUMENTS = ("budget", "crawl_dir", "discover", "knowledge", "stop", "targets")
_MOST_REDIRECTS = 5  # in a row
_WORDS, _SHOWN = 300, 12  # frequent words judged, words printed
_KEYWORDS_WIDTH = 90  # characters of the keywords in a warning
_EMPTY_CRAWL = 110_000  # bytes


@click.command()
@click.option(
    "-a",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="Argument of the crawl, such as topic=/Sports/Cycling; repeatable. `focuscrawl crawl "
    "--help` lists all arguments.",
)
@common_options.SETTINGS
@common_options.integer_option("--most", "Maximum number of start pages to fetch.", 50)
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def plan(
    *, arguments: tuple[str, ...], settings: tuple[str, ...], most: int, as_json: bool
) -> None:
    """Check the start pages of a crawl, and estimate the time and disk space that the crawl needs.

    The command takes the same arguments as `focuscrawl crawl`. Like a crawl, the command fetches
    the start pages from the live Web or from a recording. The command saves no files.

    \b
    focuscrawl plan -a topic=/Sports/Cycling -a seeds=seeds.txt -a critic=models/cycling
    """
    outlook, budget = make_plan(parse_pairs(arguments), settings, most)
    if as_json:
        click.echo(json.dumps(outlook.to_dict()))
    else:
        print_plan(outlook, budget)
    if all(page.relevance is None for page in outlook.pages):
        raise SystemExit(SEEDS_UNREACHABLE)


def make_plan(
    arguments: dict[str, str],
    settings: Sequence[str],
    most: int,
    *,
    recording: str | None = None,
) -> tuple[CrawlPlan, int]:
    """Fetch the start pages of a crawl, and estimate the costs of the crawl.

    Parameters
    ----------
    arguments : dict of str to str
        Arguments of the crawl.
    settings : sequence of str
        Settings of the crawl, each ``NAME=VALUE``.
    most : int
        Maximum number of start pages to fetch.
    recording : str or None
        Recording from which the start pages of a live crawl are read instead of fetched.

    Returns
    -------
    plan : CrawlPlan
    budget : int
        Budget of the crawl; 0: no limit.

    Raises
    ------
    UserError
        An argument or a setting is invalid, or there are no start pages.
    """
    config = with_topic(_read_config(arguments, settings))
    critic = load_config_critic(config)
    examples = [url for url in map(normalize, critic.examples) if url is not None]
    seeds = examples if config.seeds is None else read_seeds(config.seeds, config.topics)
    if not seeds:
        raise UserError(
            "no start pages, and the critic has no examples to start from: add -a seeds=URL,... "
            "or -a seeds=FILE"
        )
    if config.browser is not None:
        recording = None  # the browser renders pages of the live Web only
    recorded_size = 0.0  # bytes for each page
    if recording is not None:
        arguments = {**arguments, "web": recording}
        n_recorded = sum(1 for _ in open_web(recording).urls())
        recorded_size = Path(recording).stat().st_size / max(n_recorded, 1)
    with tempfile.TemporaryDirectory(prefix="focuscrawl-plan-") as name:
        folder = Path(name)
        _fetch_start_pages(arguments, settings, seeds[:most], folder)
        with closing(open_store(folder / "crawl")) as store:
            pages, fetched = start_pages(store), Summary.of(store).fetched
        recorded = folder / "crawl" / RECORDING_FILE
        web = config.web or recording or (str(recorded) if recorded.exists() else None)
        fetched_urls = [page.url for page in pages if page.relevance is not None]
        found = find_pages([open_web(web)], fetched_urls) if web and fetched_urls else {}
        size = sum(path.stat().st_size for path in folder.glob("crawl/*") if path.is_file())
        outlook = CrawlPlan(
            pages=tuple(pages),
            seeds=len(seeds),
            most=most,
            words=_find_topic_words(critic, pages, found),
            size=max(size - _EMPTY_CRAWL, 0) / max(fetched, 1) + recorded_size,
            live=config.web is None,
            delay=config.delay,
            at_once=config.concurrency,
            warnings=(
                *plan_warnings(pages, examples),
                *_keyword_warnings(critic, found),
                *([] if config.stop.recall is None else [RECALL_RULE_STUDY]),
            ),
        )
    return outlook, config.budget


def _read_config(arguments: Mapping[str, str], settings: Sequence[str]) -> CrawlConfig:
    crawl_settings = project_settings()
    crawl_settings.update(parse_pairs(settings), priority="cmdline")
    return read_config(crawl_settings, arguments, may_be_demo=True)


def print_plan(outlook: CrawlPlan, budget: int) -> None:
    """Print a plan, and its warnings on standard error."""
    click.echo("\n".join(outlook.format_lines(budget)))
    for warning in outlook.warnings:
        click.echo(f"Warning: {warning}", err=True)


def parse_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """Parse arguments or settings of the form ``NAME=VALUE``."""
    for each in pairs:
        if "=" not in each:
            raise UserError(f"{each} is not an argument or a setting: write NAME=VALUE")
    return dict(each.split("=", 1) for each in pairs)


def _fetch_start_pages(
    arguments: dict[str, str], settings: Sequence[str], seeds: list[str], folder: Path
) -> None:
    """Crawl only the start pages and the targets of their redirects.

    A crawl fetches start pages and targets of redirects before any link, so a budget of their
    number excludes all other pages. Only a crawl of the live Web or of a recording with robots.txt
    files needs Scrapy, and a child process.
    """
    seeds_file, budget = folder / "seeds.txt", len(seeds)
    seeds_file.write_text("\n".join(seeds), encoding="utf-8")
    given = {name: value for name, value in arguments.items() if name not in _IGNORED_ARGUMENTS}
    given |= {"seeds": str(seeds_file), "crawl_dir": str(folder / "crawl")}
    quiet = (f"LOG_FILE={folder / 'crawl.log'}", "FOCUSCRAWL_KNOWLEDGE=", "FOCUSCRAWL_PROGRESS=0")
    settings = [*settings, *quiet]
    for _ in range(1 + _MOST_REDIRECTS):
        given["budget"] = str(budget)
        config = _read_config(given, settings)
        if config.web is None or _has_robots(open_web(config.web), seeds):
            run_crawl(given, settings, allow_unreachable_seeds=True)
        else:
            replay(open_crawl(config))
        with closing(open_store(folder / "crawl")) as store:
            if stop_reason(store) in STOPPED_EARLY:
                raise KeyboardInterrupt
            history = History(store)
            waiting = sum(url.score is None and url.state == 0 for url in history.urls())
            budget = history.n_fetches() + waiting
        if not waiting:
            return


def _has_robots(web: Web, urls: Sequence[str]) -> bool:
    """Return whether a web has the robots.txt of one of the hosts of URLs."""
    asked = {urljoin(url, "/robots.txt") for url in urls}
    answers = [web.fetch(url) for url in web.resolve([*asked]) if url is not None]
    return any(answer is not None and answer.status < 400 for answer in answers)


def _keyword_warnings(critic: Critic, found: Mapping[str, FoundPage]) -> Iterator[str]:
    """Yield a warning if no start page contains a keyword of the critic."""
    keywords = critic.phrase_words() if isinstance(critic, FocusedCritic) else {}
    if keywords and found and not any(page.bag.keys() & keywords for page in found.values()):
        shown = one_line(", ".join(keywords), _KEYWORDS_WIDTH)
        yield (
            f"no start page contains a keyword ({shown}): check the keywords, or choose other "
            "start pages"
        )


def _find_topic_words(
    critic: Critic, pages: list[StartPage], found: Mapping[str, FoundPage]
) -> str | None:
    """Return the words of relevant start pages that the critic judges most relevant."""
    judge = getattr(critic, "judge_words", None)
    good = [found[page.url] for page in pages if page.is_relevant and page.url in found]
    if judge is None:
        return None
    counts: Counter[str] = Counter()
    for page in good:
        counts.update(dict.fromkeys(page.bag, 1))
    words = [word for word, _ in counts.most_common() if len(word) > 2 and word.isalpha()]
    if not (words := words[:_WORDS]):
        return None
    relevance = judge(words).relevance.tolist()
    ranked = sorted(zip(relevance, words, strict=True), key=lambda each: -each[0])
    return ", ".join(word for _, word in ranked[:_SHOWN])
