"""``focuscrawl plan``: what a crawl would begin with, before a night is spent on it."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import run_crawl
from focuscrawl.commands.anywhere import project_settings
from focuscrawl.crawl.assembly import load_config_critic
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.crawl_config import RECORDING_FILE
from focuscrawl.critic.corpus import read_known
from focuscrawl.engine.config_from_settings import read_config
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import normalize
from focuscrawl.report.crawl_plan import CrawlPlan, plan_warnings, start_pages
from focuscrawl.report.status import open_store
from focuscrawl.report.summary import Summary
from focuscrawl.store.history import History
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.report.crawl_plan import StartPage

#: what has no say in how a crawl begins, or would have it begin elsewhere
_LEFT_OUT = ("budget", "crawl_dir", "discover", "knowledge", "stop")
_REDIRECTS = 5  # one after the other
_WORDS, _SHOWN = 300, 12  # that are tried, and shown
_UNREACHABLE = 3  # exit code
_EMPTY = 110_000  # bytes of a crawl without a page


@click.command()
@click.option("-a", "given", multiple=True, metavar="NAME=VALUE", help="As for a crawl.")
@common_options.SETTINGS
@common_options.integer_option("--most", "Start pages to fetch.", 50)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def plan(*, given: tuple[str, ...], settings: tuple[str, ...], most: int, as_json: bool) -> None:
    """Judge the start pages of a crawl, and say what it would take.

    The arguments are those of `focuscrawl crawl`. Start pages are fetched as it would fetch
    them, from the live Web or a recorded one, and nothing is kept.

    \b
    focuscrawl plan -a topic=/Sports/Cycling -a seeds=seeds.txt -a critic=models/cycling
    """
    written, of_project = _read(given), project_settings()
    of_project.update(_read(settings), priority="cmdline")
    config = read_config(of_project, written, may_be_demo=True)
    if not config.topics:
        raise UserError("no topic given: add -a topic=..., as for focuscrawl crawl")
    critic = load_config_critic(config)
    examples = [url for url in map(normalize, critic.examples) if url is not None]
    seeds = examples if config.seeds is None else read_seeds(config.seeds, config.topics)
    if not seeds:
        raise UserError(
            "the critic has no example pages to start from: add -a seeds=URL,... or a file"
        )
    with tempfile.TemporaryDirectory(prefix="focuscrawl-plan-") as name:
        folder = Path(name)
        _fetch(written, settings, seeds[:most], folder)
        with closing(open_store(folder / "crawl")) as store:
            pages, fetched = start_pages(store), Summary.of(store).fetched
        recording = folder / "crawl" / RECORDING_FILE
        web = config.web or (str(recording) if recording.exists() else None)
        kept = sum(path.stat().st_size for path in folder.glob("crawl/*") if path.is_file())
        outlook = CrawlPlan(
            pages=tuple(pages),
            seeds=len(seeds),
            most=most,
            words=_words(critic, pages, web),
            size=max(kept - _EMPTY, 0) / max(fetched, 1),
            live=config.web is None,
            delay=config.delay,
            at_once=config.concurrency,
            warnings=tuple(plan_warnings(pages, examples)),
        )
    if as_json:
        click.echo(json.dumps(outlook.to_dict()))
    else:
        click.echo("\n".join(outlook.format_lines(config.budget)))
        for warning in outlook.warnings:
            click.echo(f"warning: {warning}", err=True)
    if all(page.relevance is None for page in pages):
        raise SystemExit(_UNREACHABLE)


def _read(given: tuple[str, ...]) -> dict[str, str]:
    """Return what was given as NAME=VALUE."""
    for each in given:
        if "=" not in each:
            raise UserError(f"what is {each}? Arguments and settings are given as NAME=VALUE")
    return dict(each.split("=", 1) for each in given)


def _fetch(
    written: dict[str, str], settings: tuple[str, ...], seeds: list[str], folder: Path
) -> None:
    """Crawl the start pages and where they are redirected to, and nothing else.

    Seeds come before every link, and so do the targets of redirects: a budget of as many as
    there are is spent on them.
    """
    listed, budget = folder / "seeds.txt", len(seeds)
    listed.write_text("\n".join(seeds), encoding="utf-8")
    arguments = {name: value for name, value in written.items() if name not in _LEFT_OUT}
    quiet = (f"LOG_FILE={folder / 'crawl.log'}", "FOCUSCRAWL_KNOWLEDGE=")
    for _ in range(1 + _REDIRECTS):
        run_crawl(
            {
                **arguments,
                "seeds": str(listed),
                "budget": str(budget),
                "crawl_dir": str(folder / "crawl"),
            },
            [*settings, *quiet, "FOCUSCRAWL_PROGRESS=0"],
            allow_unreachable_seeds=True,
        )
        with closing(open_store(folder / "crawl")) as store:
            history = History(store)
            waiting = sum(url.score is None and url.state == 0 for url in history.urls())
            budget = history.n_fetches() + waiting
        if not waiting:
            return


def _words(critic: Critic, pages: list[StartPage], web: str | None) -> str | None:
    """Return the words of the good start pages by which the critic knows its topic."""
    judge = getattr(critic, "judge_words", None)
    good = [page.url for page in pages if page.is_relevant]
    if web is None or judge is None or not good:
        return None
    counts: Counter[str] = Counter()
    for page in read_known([open_web(web)], good).values():
        counts.update(dict.fromkeys(page.bag, 1))
    words = [word for word, _ in counts.most_common() if len(word) > 2 and word.isalpha()]
    if not (words := words[:_WORDS]):
        return None
    relevance = judge(words).relevance.tolist()
    ranked = sorted(zip(relevance, words, strict=True), key=lambda each: -each[0])
    return ", ".join(word for _, word in ranked[:_SHOWN])
