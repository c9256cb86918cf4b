"""``focuscrawl recrawl``: one command a cron job can run."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from focuscrawl.cli.knowledge import default_path, in_words, learn_crawl, topics_of
from focuscrawl.crawl import CrawlFolder, CrawlPlan
from focuscrawl.critic.callable_critic import is_callable_spec
from focuscrawl.errors import UserError
from focuscrawl.knowledge import Knowledge
from focuscrawl.report.stores import open_store
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command()
@click.argument("topic")
@click.option("--budget", required=True, help="Fetches; 0: no limit.")
@click.option(
    "--knowledge",
    type=click.Path(path_type=Path),
    help="File of what is known.  [default: knowledge/TOPIC.db]",
)
@click.option("--critic", help="Who judges.  [default: who judged before; at first models/demo]")
@click.option("--seeds", help="Start URLs, or a file, of the first time.  [default: the critic's]")
@click.option("--web", help="A recorded web.  [default: the live Web]")
@click.option("--crawl-dir", help="[default: crawls/TOPIC-TIME]")
@click.option("-s", "settings", multiple=True, metavar="NAME=VALUE", help="A Scrapy setting.")
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
    CrawlPlan.whole_number("--budget", budget)
    folder = Path(crawl_dir) if crawl_dir else CrawlFolder.new_name(topics, datetime.now())
    arguments = {"topic": topics, "budget": budget, "crawl_dir": str(folder)}
    if path.exists():
        with closing(Knowledge(path)) as known:
            critic = critic or _who_judged(known)
            if known.about.get("topic") != topics:
                raise UserError(
                    f"knowledge {path} is of topic {known.about.get('topic')}, not {topics}: "
                    "name the file of this topic with --knowledge"
                )
        arguments["knowledge"] = str(path)
        settings = ("FOCUSCRAWL_REVISIT=1", *settings)
        seeds = None
    given = {"critic": critic, "seeds": seeds, "web": web}
    arguments |= {name: value for name, value in given.items() if value is not None}
    with _alone(path):
        _crawl(arguments, settings)
        if _fetched_nothing(folder):
            click.echo(f"{path}: nothing was due, nothing was fetched")
            return
        learned = learn_crawl(folder, topics, path)
    click.echo(f"{path}: {in_words(learned)}")


def _who_judged(known: Knowledge) -> str:
    """Return the critic that judged before; a file from a stranger names no program to run."""
    name = known.about.get("critic_name", "")
    if is_callable_spec(name):
        raise UserError(
            f"the critic {name} of {known.path} is a program: run it with --critic {name}"
        )
    return name


def _crawl(arguments: dict[str, str], settings: tuple[str, ...]) -> None:
    """Run the crawl in a process of its own; end with its exit code if it fails.

    Told to end, by Ctrl-C or a signal, the crawl does so cleanly, and is learned.
    """
    command = [sys.executable, "-m", "scrapy", "crawl", "focused"]
    command += [part for name, value in arguments.items() for part in ("-a", f"{name}={value}")]
    command += [part for setting in settings for part in ("-s", setting)]
    environment = {"SCRAPY_SETTINGS_MODULE": "focuscrawl.settings"} | os.environ
    with subprocess.Popen(command, env=environment) as process:
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        while process.poll() is None:
            with suppress(KeyboardInterrupt):  # the terminal tells the crawl, too
                process.wait()
    if process.returncode:
        raise SystemExit(process.returncode if process.returncode > 0 else 1)


def _fetched_nothing(folder: Path) -> bool:
    with closing(open_store(folder)) as store:
        return History(store).n_fetches() == 0


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep a second one of the same topic from running: cron jobs may overtake each other."""
    lock_path = path.with_name(f".{path.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = lock_path.open("w")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another recrawl with {path} is running: wait for it, or name another file"
            ) from None
        yield
