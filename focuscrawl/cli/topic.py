"""``focuscrawl topic``: write definitions of topics, and train their critics."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from focuscrawl.cli import options
from focuscrawl.cli.critic_from_little import read_description
from focuscrawl.cli.example_crawl import REDIRECTS, fetch_examples, live_options
from focuscrawl.cli.progress_bars import Bar
from focuscrawl.cli.topic_classes import classify, refine
from focuscrawl.cli.topic_feedback import apply, mark, suggest_command
from focuscrawl.cli.topic_neighbours import neighbours_command
from focuscrawl.cli.topic_seeds import seeds_command
from focuscrawl.cli.topic_text import (
    bookmarked,
    in_words,
    parts,
    say_left_out,
    urls_of,
    warn_of_missing_embeddings,
)
from focuscrawl.cli.topic_tree import tree
from focuscrawl.critic.files import FORMAT, save_critic
from focuscrawl.errors import UserError
from focuscrawl.topics import (
    TopicDefinition,
    check_marked,
    edit_definition,
    pages_learned_from,
    read_definition,
    train_definition,
    write_definition,
)
from focuscrawl.webs.by_name import open_webs

_GOOD = click.option("--good", multiple=True, help="URLs on the topic, or a file of them.")
_BAD = click.option("--bad", multiple=True, help="URLs off the topic, or a file of them.")


@click.group()
def topic() -> None:
    """Define a topic, judge pages of a crawl, and have it follow."""


for command in (
    apply,
    classify,
    mark,
    neighbours_command,
    refine,
    seeds_command,
    suggest_command,
    tree,
):
    topic.add_command(command)


@topic.command()
@options.DEFINITION
@click.option("--critic", help="A trained critic: its classes are the taxonomy.")
@click.option("--topic", "marked", help="Classes of it to mark, comma-separated.")
@click.option("--web", help="Where the pages of its examples are.")
@options.WORDS
@options.DESCRIPTION
@options.NAME
@click.option("--seeds", multiple=True, help="Start URLs, or a file of them.")
@_GOOD
@_BAD
@options.BOOKMARKS
@options.BOOKMARK_FOLDER
def new(
    *,
    definition: Path,
    critic: str | None,
    marked: str | None,
    web: str | None,
    words: str | None,
    description: str | None,
    name: str | None,
    seeds: tuple[str, ...],
    good: tuple[str, ...],
    bad: tuple[str, ...],
    bookmarks: Path | None,
    folder: str | None,
) -> None:
    """Write a definition of a topic to TOPIC.toml.

    \b
    focuscrawl topic new cycling.toml --critic models/demo --topic /Sports/Cycling
    focuscrawl topic new cycling.toml --words "road cycling, peloton" --good good.txt
    focuscrawl topic new mine.toml --bookmarks bookmarks.html --folder Bikes --bad bad.txt
    """
    if definition.exists():
        raise UserError(f"{definition} is there already: add to it with focuscrawl topic add")
    liked = [*urls_of(good), *bookmarked(bookmarks, folder)]
    made = TopicDefinition(
        critic=critic,
        web=web,
        topics=parts(marked),
        words=parts(words),
        seeds=tuple(urls_of(seeds)),
        name=name,
        description=None if description is None else read_description(description),
    ).judging(liked, urls_of(bad))
    if made.topics and critic is None:
        raise UserError("--topic marks classes of a critic: name it with --critic")
    check_marked(made)
    write_definition(made, definition)
    click.echo(f"{definition}: {in_words(made)}")


@topic.command()
@options.DEFINITION
@_GOOD
@_BAD
@options.BOOKMARKS
@options.BOOKMARK_FOLDER
def add(
    *,
    definition: Path,
    good: tuple[str, ...],
    bad: tuple[str, ...],
    bookmarks: Path | None,
    folder: str | None,
) -> None:
    """Add examples to TOPIC.toml; of two judgements of a page the latest counts."""
    liked, disliked = [*urls_of(good), *bookmarked(bookmarks, folder)], urls_of(bad)
    if not liked and not disliked:
        raise UserError("nothing to add: give --good, --bad or --bookmarks")
    made = edit_definition(definition, lambda known: known.judging(liked, disliked))
    click.echo(f"{definition}: {in_words(made)}")


@topic.command()
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option("--crawl-dir", required=True, help="Where they are kept.")
@click.option("--web", help="Take them from this recording instead of the Web.")
@options.SETTINGS
def fetch(
    *, urls: tuple[str, ...], crawl_dir: str, web: str | None, settings: tuple[str, ...]
) -> None:
    """Fetch pages that are to be judged, or files of their URLs: no link is followed.

    It is a polite crawl that is kept; `topic train` learns from it with --web.

    \b
    focuscrawl topic fetch https://bikes.example/ --crawl-dir crawls/bikes
    """
    wanted = urls_of(urls)
    fetch_examples(
        wanted,
        out="examples",
        others=REDIRECTS * len(wanted),
        crawl_dir=crawl_dir,
        settings=settings,
        reach=0,
        web=web,
    )


@topic.command()
@options.DEFINITION
@click.option("--out", required=True, help="Folder of the critic, like models/NAME.")
@click.option(
    "--web",
    "named",
    multiple=True,
    help="Where the pages are, if the definition names no web; may be repeated.",
)
@live_options
def train(*, definition: Path, out: str, named: tuple[str, ...], **live: Any) -> None:
    """Train the critic of TOPIC.toml, for a new crawl.

    Pages that no web is named for are fetched, by a polite crawl that is kept.

    \b
    focuscrawl topic train cycling.toml --out models/cycling
    focuscrawl topic train cycling.toml --web pages.warc.gz --out models/cycling
    focuscrawl crawl -a critic=models/cycling -a topic=/good -a seeds=cycling.toml
    """
    FORMAT.check_out(Path(out))
    known = read_definition(definition)
    webs = open_webs(known.web, definition, named)
    pages = () if webs else pages_learned_from(known)
    if pages:
        webs = [fetch_examples(pages, out=out, **live)]
    with closing(Bar("Reading")) as shown:
        trained, topics = train_definition(known, webs, progress=shown)
    save_critic(trained, out)
    say_left_out(known.judged, trained)
    warn_of_missing_embeddings(trained)
    click.echo(f"{out}: topics {', '.join(topics)}")
