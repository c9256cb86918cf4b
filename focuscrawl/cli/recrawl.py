"""``focuscrawl recrawl``: crawl a topic again with what is known of it; for cron jobs."""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from focuscrawl.cli import options
from focuscrawl.cli.crawling import crawl
from focuscrawl.cli.knowledge import default_path, in_words, learn_crawl, topics_of
from focuscrawl.crawl.folder import CrawlFolder
from focuscrawl.critic.loading import refuse_program
from focuscrawl.errors import UserError
from focuscrawl.foundation.locks import changing
from focuscrawl.foundation.values import whole_number
from focuscrawl.knowledge import Knowledge
from focuscrawl.report.stores import open_store
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command()
@click.argument("topic")
@click.option("--budget", required=True, help="Fetches; 0: no limit.")
@options.path("--knowledge", "File of what is known.  [default: knowledge/TOPIC.db]")
@click.option("--critic", help="Who judges.  [default: who judged before; at first models/demo]")
@click.option("--seeds", help="Start URLs, or a file, of the first time.  [default: the critic's]")
@click.option("--web", help="A recorded web.  [default: the live Web]")
@click.option("--crawl-dir", help="[default: crawls/TOPIC-TIME]")
@options.SETTINGS
def recrawl(
    *,
    topic: str,
    budget: str,
    knowledge: Path | None,
    critic: str | None,
    seeds: str | None,
    web: str | None,
    crawl_dir: str | None,
    settings: tuple[str, ...],
) -> None:
    """Crawl TOPIC again: what is new or has changed, then learn from it.

    The first time, when nothing is known yet, this is a crawl like any other. Later it fetches
    known pages where they have probably changed, asks servers for them only if they have, and
    follows new links. What it finds goes into the knowledge, which is replaced at the end.

    \b
    focuscrawl recrawl /Sports/Cycling --budget 500 --critic models/cycling
    """
    topics = topics_of(topic)
    path = knowledge or default_path(topics)
    whole_number().read("--budget", budget)
    folder = Path(crawl_dir) if crawl_dir else CrawlFolder.new_name(topics, datetime.now())
    known_at = None
    if path.exists():
        with closing(Knowledge(path)) as known:
            critic = critic or _who_judged(known)
            if known.about.get("topic") != topics:
                raise UserError(
                    f"knowledge {path} is of topic {known.about.get('topic')}, not {topics}: "
                    "name the file of this topic with --knowledge"
                )
        known_at = str(path)
        settings = ("FOCUSCRAWL_REVISIT=1", *settings)
        seeds = None
    with _alone(path):
        crawl(
            {
                "topic": topics,
                "budget": budget,
                "crawl_dir": str(folder),
                "knowledge": known_at,
                "critic": critic,
                "seeds": seeds,
                "web": web,
            },
            settings,
        )
        with closing(open_store(folder)) as store:
            if not History(store).n_fetches():
                click.echo(f"{path}: nothing was due, nothing was fetched")
                return
        learned = learn_crawl(folder, topics, path)
    click.echo(f"{path}: {in_words(learned)}")


def _who_judged(known: Knowledge) -> str:
    """Return the critic that judged before; a file from a stranger names no program to run."""
    name = known.about.get("critic_name", "")
    return refuse_program(name, str(known.path), "--critic ")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep a second one of the same topic from running: cron jobs may overtake each other."""
    made = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    busy = f"another recrawl with {path} is running: wait for it, or name another file"
    try:
        # not the lock of the file itself: the crawl is learned there in the end
        with changing(path.with_name(f"{path.name}.recrawl"), patience=0.0, busy=busy):
            yield
    finally:
        if made:
            with suppress(OSError):  # it stays if there is something in it
                path.parent.rmdir()
