"""``focuscrawl topic``: what a topic is, in one file, and what a person says of a crawl."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from focuscrawl.cli.bars import bar
from focuscrawl.cli.topic_classes import classify, refine
from focuscrawl.critic.custom import is_callable_spec
from focuscrawl.errors import UserError
from focuscrawl.feedback import (
    KINDS,
    apply_definition,
    read_judgements,
    suggest,
    write_questions,
)
from focuscrawl.feedback.judgements import read_verdict
from focuscrawl.report.opening import open_crawl
from focuscrawl.report.plain import counted, middle, one_line
from focuscrawl.topics import (
    TopicDefinition,
    read_bookmarks,
    read_definition,
    write_definition,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from focuscrawl.feedback import Suggestion
    from focuscrawl.store import CrawlStore

DEFINITION = "topic.toml"  # of a crawl, in its folder

_DEFINITION = click.argument("definition", metavar="TOPIC.toml", type=click.Path(path_type=Path))
_CRAWL = click.argument("crawl_dir", metavar="CRAWL_DIR", type=click.Path(path_type=Path))
_WEB = click.option("--web", help="Where the crawl's pages are, if it cannot tell itself.")
_BOOKMARKS = click.option(
    "--bookmarks",
    type=click.Path(path_type=Path),
    help="A browser's bookmarks.html: examples of the topic.",
)
_FOLDER = click.option("--folder", help="Only bookmarks in a folder of this name.")
_GOOD = click.option("--good", multiple=True, help="URL on the topic, or a file of them.")
_BAD = click.option("--bad", multiple=True, help="URL off the topic, or a file of them.")


@click.group()
def topic() -> None:
    """Define a topic, judge pages of a crawl, and have it follow."""


topic.add_command(classify)
topic.add_command(refine)


@topic.command()
@_DEFINITION
@click.option("--critic", help="A trained critic: its classes are the taxonomy.")
@click.option("--topic", "marked", help="Classes of it to mark, comma-separated.")
@click.option("--web", help="Where the pages of its examples are.")
@click.option("--words", help="Comma-separated phrases of the topic.")
@click.option("--seeds", multiple=True, help="Start URL, or a file of them.")
@_GOOD
@_BAD
@_BOOKMARKS
@_FOLDER
def new(
    *,
    definition: Path,
    critic: str | None,
    marked: str | None,
    web: str | None,
    words: str | None,
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
    liked = [*_urls(good), *_bookmarked(bookmarks, folder)]
    made = TopicDefinition(
        critic=critic,
        web=web,
        topics=_parts(marked),
        words=_parts(words),
        seeds=tuple(_urls(seeds)),
    ).judging(liked, _urls(bad))
    _write_checked(made, definition)
    click.echo(f"{definition}: {_in_words(made)}")


@topic.command()
@_DEFINITION
@_GOOD
@_BAD
@_BOOKMARKS
@_FOLDER
def add(
    *,
    definition: Path,
    good: tuple[str, ...],
    bad: tuple[str, ...],
    bookmarks: Path | None,
    folder: str | None,
) -> None:
    """Add examples to TOPIC.toml; of two judgements of a page the latest counts."""
    liked, disliked = [*_urls(good), *_bookmarked(bookmarks, folder)], _urls(bad)
    if not liked and not disliked:
        raise UserError("nothing to add: give --good, --bad or --bookmarks")
    made = read_definition(definition).judging(liked, disliked)
    _write_checked(made, definition)
    click.echo(f"{definition}: {_in_words(made)}")


@topic.command()
@_CRAWL
@_DEFINITION
@_WEB
def apply(*, crawl_dir: Path, definition: Path, web: str | None) -> None:
    """Have the crawl in CRAWL_DIR follow TOPIC.toml.

    Trains the critic, judges the pages of the crawl anew and re-scores what waits. A crawl that
    runs does so by itself; one at rest is resumed by the command that began it.
    """
    _apply(read_definition(definition), crawl_dir, web)


@topic.command("suggest")
@_CRAWL
@click.option(
    "--topic",
    "definition",
    type=click.Path(path_type=Path),
    help=f"The definition.  [default: CRAWL_DIR/{DEFINITION}, made if need be]",
)
@click.option("--n", default=20, show_default=True, type=click.IntRange(1), help="Pages to judge.")
@click.option(
    "--kind", multiple=True, type=click.Choice(list(KINDS)), help="Only these.  [default: all]"
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the questions to this CSV.")
@click.option("--answers", type=click.Path(path_type=Path), help="Take the answers from this CSV.")
@_WEB
def suggest_command(
    *,
    crawl_dir: Path,
    definition: Path | None,
    n: int,
    kind: tuple[str, ...],
    out: Path | None,
    answers: Path | None,
    web: str | None,
) -> None:
    """Ask about pages of a crawl, and have it follow the answers; works while it runs.

    Asked are pages that the critic is unsure of, that their neighbours speak against or for, and
    the top hubs and authorities. Without --out and --answers it asks here.

    \b
    focuscrawl topic suggest crawls/cycling
    focuscrawl topic suggest crawls/cycling --out questions.csv
    focuscrawl topic suggest crawls/cycling --answers questions.csv
    """
    if out is not None and answers is not None:
        raise UserError("--out asks and --answers tells: give one of them")
    path = crawl_dir / DEFINITION if definition is None else definition
    with closing(open_crawl(crawl_dir)) as store:
        if definition is None and not path.exists():
            known = _of_crawl(store)
        else:
            known = read_definition(path)
        pages = []
        if answers is None:
            pages = suggest(store, n, known=known.judged, kinds=kind or None)
    if not pages and answers is None:
        raise UserError(f"{crawl_dir}: every page worth asking about was judged already")
    if out is not None:
        write_questions(pages, out)
        click.echo(f"wrote {out}: fill in the column verdict (good or bad), then give --answers")
        return
    good, bad = _ask(pages) if answers is None else read_judgements(answers)
    if not good and not bad:
        click.echo("no judgement, no change")
        return
    made = known.judging(good, bad)
    _apply(made, crawl_dir, web)
    write_definition(made, path)
    click.echo(f"{path}: {_in_words(made)}")


def _ask(pages: Sequence[Suggestion]) -> tuple[list[str], list[str]]:
    """Ask in the terminal; ``q`` ends the questions, and what was said counts."""
    judged = {True: list[str](), False: list[str]()}
    for number, page in enumerate(pages, 1):
        click.echo(f"{number}/{len(pages)}  {page.kind}, {page.reason}")
        click.echo(f"  {one_line(page.title, 90)}")
        click.echo(f"  {middle(one_line(page.url), 110)}")
        answer = click.prompt(
            "  on the topic? yes, no, skip, quit", type=click.Choice(list("ynsq")), default="s"
        )
        if answer == "q":
            break
        verdict = read_verdict("?" if answer == "s" else answer)
        if verdict is not None:
            judged[verdict].append(page.url)
    return judged[True], judged[False]


def _apply(definition: TopicDefinition, crawl_dir: Path, web: str | None) -> None:
    with bar("Reading") as examples, bar("Judging") as pages:
        applied = apply_definition(
            definition,
            crawl_dir,
            web=web,
            on_examples=examples.start,
            on_example=examples.advance,
            on_start=pages.start,
            on_page=lambda: pages.advance(1),
        )
    for url in sorted(definition.judged - {url for url, _ in applied.trained.examples}):
        click.echo(f"left out, it cannot be read: {one_line(url)}", err=True)
    click.echo(f"{applied.critic}: topics {', '.join(applied.topics)}")
    click.echo(applied.outcome or "the crawl is running: it follows before its next fetch")


def _of_crawl(store: CrawlStore) -> TopicDefinition:
    """Return the definition of a crawl that was begun without one."""
    identity = store.identity()
    critic, web = identity["critic_name"], identity.get("web_name")
    if is_callable_spec(critic) and not Path(critic).exists():
        raise UserError(f"the crawl's critic {critic} is a program: it cannot be trained")
    live = identity.get("web", "live") == "live"
    return TopicDefinition(
        critic=critic, web=None if live else web, topics=_parts(identity["topic"])
    )


def _write_checked(definition: TopicDefinition, path: Path) -> None:
    """Write a definition that can be read again, or leave the file as it was."""
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    write_definition(definition, draft)
    try:
        read_definition(draft)
    except UserError as error:
        raise UserError(str(error).replace(str(draft), str(path))) from None
    finally:
        draft.unlink(missing_ok=True)
    write_definition(definition, path)


def _in_words(definition: TopicDefinition) -> str:
    parts = [
        *([f"topics {', '.join(definition.topics)}"] if definition.topics else []),
        *([counted(len(definition.words), "phrase")] if definition.words else []),
        counted(len(definition.good), "good page"),
        counted(len(definition.bad), "bad page"),
    ]
    return ", ".join(parts)


def _parts(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _bookmarked(path: Path | None, folder: str | None) -> list[str]:
    if path is None:
        if folder is not None:
            raise UserError("--folder goes with --bookmarks: name the file, too")
        return []
    return [bookmark.url for bookmark in read_bookmarks(path, folder)]


def _urls(given: Iterable[str]) -> list[str]:
    """Return the URLs given, those in files included."""
    found: list[str] = []
    for each in given:
        if each.lower().startswith(("http:", "https:")):
            found.append(each)
            continue
        try:
            lines = Path(each).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{each} is no URL, and no file of URLs ({error})") from None
        found += [line.strip() for line in lines if line.strip() and line.lstrip()[0] != "#"]
    return found
