"""``focuscrawl knowledge`` and ``focuscrawl recrawl``."""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import crawl, reading
from focuscrawl.crawl.crawl_folder import CrawlFolder
from focuscrawl.critic.critic_files import refuse_program
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import changing
from focuscrawl.foundation.urls import no_url, normalize
from focuscrawl.foundation.user_input import whole_number
from focuscrawl.knowledge import Knowledge, LearnedAlreadyError, learn
from focuscrawl.offline.knowledge_export import collection_of
from focuscrawl.report.plain_text import align_columns, one_line, pluralize, shorten_middle
from focuscrawl.report.status import open_store
from focuscrawl.store.history import History
from focuscrawl.taxonomy import read_topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from focuscrawl.knowledge import UpdateCounts


_URL = 90  # characters


@click.group()
def knowledge() -> None:
    """Learn from crawls what the next ones can use."""


@knowledge.command(name="learn")
@common_options.CRAWL_DIRS
@click.option("--topic", required=True, help="Topic path(s) of the crawls.")
@common_options.path("--out", "The file.  [default: knowledge/TOPIC.db]")
def learn_crawls(*, crawl_dirs: tuple[str, ...], topic: str, out: Path | None) -> None:
    """Take finished crawls of a topic, the oldest first, into one file of knowledge.

    A file that is there is learned on: it keeps what earlier crawls have taught. It is
    replaced when a crawl is learned as a whole, and else stays as it was. Of several crawls those
    that it has already are passed over.

    \b
    focuscrawl knowledge learn crawls/first --topic /Sports/Cycling
    focuscrawl crawl -a knowledge=knowledge/Sports_Cycling.db -a topic=/Sports/Cycling
    """
    topics = _topics_of(topic)
    path = out or _default_path(topics)
    for crawl_dir in crawl_dirs:  # before the first is learned
        _check_topic(Path(crawl_dir), topics)
    for crawl_dir in crawl_dirs:
        try:
            learned = _learn_crawl(Path(crawl_dir), topics, path)
        except LearnedAlreadyError as error:
            if len(crawl_dirs) == 1:
                raise
            click.echo(str(error))  # a command that was interrupted is repeated: the rest is new
        else:
            click.echo(f"{path}: {_in_words(learned)} in {crawl_dir}")


def _topics_of(topic: str) -> str:
    """Return topic paths as a crawl keeps them."""
    topics = ",".join(read_topics(topic))
    if not topics:
        raise UserError("no topic given: name the topic path of the crawl")
    return topics


def _default_path(topics: str) -> Path:
    return Path("knowledge") / (topics.strip("/").replace("/", "_").replace(",_", "+") + ".db")


def _check_topic(folder: Path, topics: str) -> None:
    """Raise `UserError` unless there is a crawl of these topics."""
    with closing(open_store(folder)) as store:
        found = store.identity().get("topic", "")
    if found != topics:
        raise UserError(f"{folder} is a crawl of {found or 'no topic'}, not of {topics}")


def _learn_crawl(folder: Path, topics: str, path: Path) -> UpdateCounts:
    _check_topic(folder, topics)
    with closing(open_store(folder)) as store, reading(store, "Learning") as bar:
        return learn(path, collection_of(store, name=str(folder), on_page=bar.update))


def _in_words(learned: UpdateCounts) -> str:
    return (
        f"{pluralize(learned.fetches, 'fetch')}, "
        f"{learned.relevant:,} relevant; {pluralize(learned.new, 'new page')}, "
        f"{learned.changed:,} changed, {learned.unchanged:,} unchanged, {learned.failed:,} failed"
    )


@knowledge.command()
@click.argument("file", metavar="FILE", type=common_options.PATH)
@click.argument("urls", metavar="[URL...]", nargs=-1)
@common_options.top()
def show(file: Path, urls: tuple[str, ...], top: int) -> None:
    """Say what a file of knowledge holds, or what it knows of single URLs."""
    known = Knowledge(file)
    with closing(known):
        for url in urls:
            click.echo("\n".join(_of_url(known, url)))
        if not urls:
            click.echo("\n".join(_of_all(known, top)))


def _of_all(known: Knowledge, top: int) -> list[str]:
    about = known.about
    judged = int(about["relevant_pages"]) + int(about["other_pages"])
    facts = {
        "topic": one_line(about["topic"]),
        "critic": one_line(about["critic_name"]),
        "URLs": f"{len(known):,}, {len(known.waiting(1_000_000)):,} more never fetched",
        "judged": f"{judged:,} pages in all crawls, {int(about['relevant_pages']):,} relevant",
        "apprentice": "none" if known.graduate is None else "kept",
        "time": f"counted in {one_line(about['clock'])}",
    }
    rows = [["crawl", "fetches", "relevant", "new", "changed", "unchanged", "failed", "of", "in"]]
    for number, name, at, *numbers in known.history():
        counts = [f"{n:,}" for n in numbers]
        rows.append(
            [str(number), *counts, str(at), shorten_middle(one_line(str(name)), _URL // 2)]
        )
    weights = list(known.keywords.weights.items())[:top]
    keywords = ", ".join(f"{one_line(word)} {weight:.2f}" for word, weight in weights)
    lines = [
        *(f"{name:<11}{value}" for name, value in facts.items()),
        "",
        *align_columns(rows, {7, 8}),
    ]
    lines += [
        "",
        "seeds",
        *(f"  {shorten_middle(one_line(url), _URL)}" for url in known.seeds(top)),
    ]
    return [*lines, "", "keywords", f"  {keywords}"]


def _of_url(known: Knowledge, given: str) -> list[str]:
    url = normalize(given)
    if url is None:
        raise UserError(f"{given} {no_url(given)}")
    page = known.page(url)
    if page is None:
        expected = float(known.predict([url], [""])[0])
        return [f"{url}", f"  never fetched; by its nearest pages R = {expected:.3f}"]
    lines = [
        f"{one_line(page.url)}",
        f"  relevance {page.relevance:.3f}, hub {page.hub:.3f}, authority {page.authority:.3f}",
        f"  visited at {page.visited:.2f}, {pluralize(page.accesses, 'visit')} more than one, "
        f"{page.changes} found a change"
        + ("" if page.changed is None else f", the last at {page.changed:.2f}"),
    ]
    if page.failures:
        lines.append(f"  failed {page.failures} times in a row")
    if page.etag or page.last_modified:
        validators = one_line(f"ETag {page.etag}, Last-Modified {page.last_modified}")
        lines.append(f"  {validators}")
    return lines


@click.command()
@click.argument("topic")
@click.option("--budget", required=True, help="Fetches; 0: no limit.")
@common_options.path("--knowledge", "File of what is known.  [default: knowledge/TOPIC.db]")
@click.option("--critic", help="Who judges.  [default: who judged before; at first models/demo]")
@click.option("--seeds", help="Start URLs, or a file, of the first time.  [default: the critic's]")
@click.option("--web", help="A recorded web.  [default: the live Web]")
@click.option("--crawl-dir", help="[default: crawls/TOPIC-TIME]")
@common_options.SETTINGS
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
    topics = _topics_of(topic)
    path = knowledge or _default_path(topics)
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
        arguments = {"topic": topics, "budget": budget, "crawl_dir": str(folder)}
        others = {"knowledge": known_at, "critic": critic, "seeds": seeds, "web": web}
        crawl(arguments | others, settings)
        with closing(open_store(folder)) as store:
            if not History(store).n_fetches():
                click.echo(f"{path}: nothing was due, nothing was fetched")
                return
        learned = _learn_crawl(folder, topics, path)
    click.echo(f"{path}: {_in_words(learned)}")


def _who_judged(known: Knowledge) -> str:
    """Return the critic that judged before; a file from a stranger names no program to run."""
    name = known.about.get("critic_name", "")
    return refuse_program(name, str(known.path), "--critic ")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Allow one recrawl of a topic at a time: cron jobs may overtake each other."""
    made = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    busy = f"another recrawl with {path} is running: wait for it, or name another file"
    try:
        # not the lock of the file itself, which learning the crawl takes at the end
        with changing(path.with_name(f"{path.name}.recrawl"), patience=0.0, busy=busy):
            yield
    finally:
        if made:
            with suppress(OSError):  # a folder that holds something stays
                path.parent.rmdir()
