"""``focuscrawl knowledge`` and ``focuscrawl recrawl``: use earlier crawls of a topic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import history_progress_bar, run_crawl
from focuscrawl.crawl.crawl_folder import CrawlFolder
from focuscrawl.critic.critic_files import reject_callable_spec
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import reporting_write_errors, update_lock
from focuscrawl.foundation.urls import parse_url
from focuscrawl.foundation.user_input import whole_number
from focuscrawl.knowledge import AlreadyLearnedError, Knowledge, add_crawl
from focuscrawl.offline.knowledge_export import read_crawl_record
from focuscrawl.report.plain_text import align_columns, one_line, pluralize, shorten_middle
from focuscrawl.report.status import open_store
from focuscrawl.store.history import History
from focuscrawl.taxonomy import parse_topics

if TYPE_CHECKING:
    from focuscrawl.knowledge import UpdateCounts


_URL = 90  # characters


@click.group()
def knowledge() -> None:
    """Save the results of crawls of a topic in a knowledge file, which later crawls can use."""


@knowledge.command(name="learn")
@common_options.CRAWL_DIRS
@click.option(
    "--topic",
    metavar="TOPICS",
    required=True,
    help="Topics of the crawls, such as /Sports/Cycling, separated by commas.",
)
@common_options.path_option(
    "--out", "Knowledge file to create or update.  [default: knowledge/TOPIC.db]"
)
def learn_crawls(*, crawl_dirs: tuple[str, ...], topic: str, out: Path | None) -> None:
    """Add the results of finished crawls to a knowledge file.

    Give the folders of the crawls in the order in which the crawls ran. If the knowledge file does
    not exist, the command creates the file. The command saves the knowledge file after each added
    crawl; a later error does not damage the file. The command skips crawls that the knowledge file
    already contains.

    \b
    focuscrawl knowledge learn crawls/first --topic /Sports/Cycling
    focuscrawl crawl -a knowledge=knowledge/Sports_Cycling.db -a topic=/Sports/Cycling
    """
    topics = _normalise_topics(topic)
    path = out or _default_path(topics)
    for crawl_dir in crawl_dirs:  # check all crawls before the file changes
        _check_topic(Path(crawl_dir), topics)
    for crawl_dir in crawl_dirs:
        try:
            update = _learn_crawl(Path(crawl_dir), topics, path)
        except AlreadyLearnedError as error:
            if len(crawl_dirs) == 1:
                raise
            click.echo(str(error))  # the user may repeat an interrupted command
        else:
            click.echo(f"{path}: {_describe_update(update)} in {crawl_dir}")


def _normalise_topics(topic: str) -> str:
    """Return topic paths as the store of a crawl has them."""
    topics = ",".join(parse_topics(topic))
    if not topics:
        raise UserError("no topic given: name the topic path of the crawl with --topic")
    return topics


def _default_path(topics: str) -> Path:
    return Path("knowledge") / (topics.strip("/").replace("/", "_").replace(",_", "+") + ".db")


def _check_topic(folder: Path, topics: str) -> None:
    """Raise `UserError` unless the folder contains a crawl of the topics."""
    with closing(open_store(folder)) as store:
        topic = store.identity().get("topic", "")
    if topic != topics:
        raise UserError(
            f"the crawl in {folder} has the topic {topic or '(none)'}, not {topics}: "
            "correct --topic or leave the crawl out"
        )


def _learn_crawl(folder: Path, topics: str, path: Path) -> UpdateCounts:
    _check_topic(folder, topics)
    with closing(open_store(folder)) as store, history_progress_bar(store, "Learning") as bar:
        return add_crawl(path, read_crawl_record(store, name=str(folder), on_page=bar.update))


def _describe_update(update: UpdateCounts) -> str:
    return (
        f"{pluralize(update.fetches, 'fetch')}, "
        f"{update.relevant:,} relevant; {pluralize(update.new, 'new page')}, "
        f"{update.changed:,} changed, {update.unchanged:,} unchanged, {update.failed:,} failed"
    )


@knowledge.command()
@click.argument("file", metavar="FILE", type=common_options.PATH)
@click.argument("urls", metavar="[URL...]", nargs=-1)
@common_options.top_option()
def show(file: Path, urls: tuple[str, ...], top: int) -> None:
    """Print a summary of the knowledge file FILE.

    If you give URLs, the command prints what the knowledge file contains about each URL instead.
    """
    with closing(Knowledge(file)) as known:
        for url in urls:
            click.echo("\n".join(_describe_url(known, url)))
        if not urls:
            click.echo("\n".join(_describe_knowledge(known, top)))


def _describe_knowledge(known: Knowledge, top: int) -> list[str]:
    about = known.meta
    judged = int(about["relevant_pages"]) + int(about["other_pages"])
    facts = {
        "topic": one_line(about["topic"]),
        "critic": one_line(about["critic_name"]),
        "URLs": f"{len(known):,}, {len(known.queued_urls(1_000_000)):,} more never fetched",
        "judged": f"{judged:,} pages in all crawls, {int(about['relevant_pages']):,} relevant",
        "apprentice": "none" if known.trained_apprentice is None else "saved",
        "time": f"measured in {one_line(about['clock'])}",
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


def _describe_url(known: Knowledge, argument: str) -> list[str]:
    url = parse_url(argument)
    page = known.page(url)
    if page is None:
        expected = float(known.predict([url], [""])[0])
        return [url, f"  never fetched; predicted relevance {expected:.3f} (by similar pages)"]
    lines = [
        f"{one_line(page.url)}",
        f"  relevance {page.relevance:.3f}, hub {page.hub:.3f}, authority {page.authority:.3f}",
        f"  fetched at time {page.visited:.2f}; fetched again {pluralize(page.accesses, 'time')}, "
        f"{pluralize(page.changes, 'change')} found"
        + ("" if page.changed is None else f", the latest at time {page.changed:.2f}"),
    ]
    if page.failures:
        lines.append(f"  failed {page.failures} times in a row")
    if page.etag or page.last_modified:
        validators = one_line(f"ETag {page.etag}, Last-Modified {page.last_modified}")
        lines.append(f"  {validators}")
    return lines


@click.command()
@click.argument("topic")
@click.option(
    "--budget", metavar="N", required=True, help="Maximum number of fetches; 0: no limit."
)
@common_options.path_option(
    "--knowledge",
    "Knowledge file, which contains the results of earlier crawls of the topic.  "
    "[default: knowledge/TOPIC.db]",
)
@click.option(
    "--critic",
    help="Critic (page classifier) that judges the pages.  [default: the critic of the earlier "
    "crawls; for the first crawl: models/demo]",
)
@click.option(
    "--seeds",
    metavar="URLS|FILE",
    help="Start pages of the first crawl: URLs or a file of URLs.  [default: the critic's "
    "training pages on the topic]",
)
@common_options.web_option("to crawl.  [default: the live Web]")
@click.option(
    "--crawl-dir",
    metavar="FOLDER",
    help="Folder for the data of the crawl.  [default: crawls/TOPIC-TIME]",
)
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
    """Crawl the topic TOPIC again to find new and changed pages.

    If the topic has no knowledge file, the command runs a first crawl. If the topic has a
    knowledge file, the command uses conditional requests to fetch known pages that have probably
    changed. The new crawl also follows links that earlier crawls did not find. After the crawl,
    the command adds the results of the crawl to the knowledge file.

    \b
    focuscrawl recrawl /Sports/Cycling --budget 500 --critic models/cycling
    """
    topics = _normalise_topics(topic)
    path = knowledge or _default_path(topics)
    whole_number().parse("--budget", budget)
    folder = Path(crawl_dir) if crawl_dir else CrawlFolder.new_name(topics, datetime.now())
    existing_file = None
    if path.exists():
        with closing(Knowledge(path)) as known:
            critic = critic or _critic_of(known)
            if known.meta.get("topic") != topics:
                raise UserError(
                    f"knowledge file {path} has the topic {known.meta.get('topic')}, not "
                    f"{topics}: name the file of the topic with --knowledge"
                )
        existing_file = str(path)
        settings = ("FOCUSCRAWL_REVISIT=1", *settings)
        seeds = None
    with _lock_recrawl(path):
        arguments = {"topic": topics, "budget": budget, "crawl_dir": str(folder)}
        others = {"knowledge": existing_file, "critic": critic, "seeds": seeds, "web": web}
        run_crawl(arguments | others, settings)
        with closing(open_store(folder)) as store:
            if not History(store).n_fetches():
                click.echo(f"{path}: no page was due for a fetch, so nothing was fetched")
                return
        update = _learn_crawl(folder, topics, path)
    click.echo(f"{path}: {_describe_update(update)}")


def _critic_of(known: Knowledge) -> str:
    """Return the critic of a knowledge file, which may come from a stranger: no callable."""
    name = known.meta.get("critic_name", "")
    return reject_callable_spec(name, str(known.path), "--critic ")


@contextmanager
def _lock_recrawl(path: Path) -> Iterator[None]:
    """Allow one recrawl of a topic at a time: cron jobs may overlap."""
    is_new_folder = not path.parent.exists()
    with reporting_write_errors(path, "name another file with --knowledge"):
        path.parent.mkdir(parents=True, exist_ok=True)
    busy = f"another recrawl with {path} is running: wait for its end, or name another file"
    try:
        # the lock of the knowledge file itself is needed at the end, to add the crawl
        with update_lock(path.with_name(f"{path.name}.recrawl"), timeout=0.0, busy=busy):
            yield
    finally:
        if is_new_folder:
            with suppress(OSError):  # the folder is not empty
                path.parent.rmdir()
