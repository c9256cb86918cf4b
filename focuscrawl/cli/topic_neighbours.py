"""``focuscrawl topic neighbours``: further examples from around those that there are."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from focuscrawl.cli import options
from focuscrawl.cli.example_crawl import fetch_examples, live_options
from focuscrawl.cli.topic_feedback import ask_here
from focuscrawl.cli.topic_text import in_words
from focuscrawl.crawl.page_source import webs_of
from focuscrawl.errors import UserError
from focuscrawl.feedback import read_judgements, write_questions
from focuscrawl.feedback.neighbours import examples_of, neighbours
from focuscrawl.offline.link_graph import CrawlGraph
from focuscrawl.report.stores import open_store
from focuscrawl.topics import edit_definition, read_definition
from focuscrawl.webs.by_name import open_webs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.feedback import Suggestion
    from focuscrawl.topics import TopicDefinition


@click.command("neighbours")
@options.DEFINITION
@click.option("--web", help="Where the pages are, if the definition names no web.")
@click.option("--crawl", "crawls", multiple=True, help="A crawl that knows who links to them.")
@options.number("--n", "Pages to judge.", 20)
@options.path("--out", "Write the questions to this CSV.")
@options.path("--answers", "Take the answers from this CSV.")
@live_options
def neighbours_command(
    *,
    definition: Path,
    web: str | None,
    crawls: tuple[str, ...],
    n: int,
    out: Path | None,
    answers: Path | None,
    others: int,
    crawl_dir: str | None,
    settings: tuple[str, ...],
) -> None:
    """Propose pages around the examples of TOPIC.toml as further examples, before a crawl.

    Pages that good pages and seeds link to and, with --crawl, pages that link to them: the most
    relevant are asked about, here or with --out and --answers, and join the definition. Where no
    web and no crawl is named they are fetched, by a polite crawl that is kept.

    \b
    focuscrawl topic neighbours cycling.toml
    focuscrawl topic neighbours cycling.toml --crawl crawls/cycling --out questions.csv
    """
    if out is not None and answers is not None:
        raise UserError("--out asks and --answers tells: give one of them")
    known = read_definition(definition)
    if answers is None:
        live = {"out": definition.stem, "others": others, "crawl_dir": crawl_dir}
        pages = _around(known, web, crawls, n, {**live, "settings": settings})
        if out is not None:
            write_questions(pages, out)
            click.echo(
                f"wrote {out}: fill in the column verdict (good or bad), then give --answers"
            )
            return
        good, bad = ask_here(pages)
    else:
        good, bad = read_judgements(answers)
    if not good and not bad:
        click.echo("no judgement, no change")
        return
    made = edit_definition(definition, lambda now: now.judging(good, bad), lambda: known)
    click.echo(f"{definition}: {in_words(made)}")


def _around(
    known: TopicDefinition,
    web: str | None,
    crawls: Sequence[str],
    n: int,
    live: Mapping[str, Any],
) -> list[Suggestion]:
    """Return the pages to ask about; `live` says how they are fetched where no web is named."""
    examples = examples_of(known)
    webs = open_webs(known.web, "the definition", [web])
    graphs = []
    with ExitStack() as stack:
        for each in crawls:
            store = stack.enter_context(closing(open_store(each)))
            graphs.append(CrawlGraph.of(store))
            webs += webs_of(store.identity(), Path(each))
        if not webs:
            webs = [fetch_examples(examples, reach=1, **live)]
        return neighbours(known, webs, n, crawls=graphs)
