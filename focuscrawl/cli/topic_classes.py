"""``focuscrawl topic classify`` and ``refine``: find the classes of pages, split a class."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click
import numpy as np

from focuscrawl.cli import options
from focuscrawl.cli.example_crawl import REDIRECTS, fetch_examples, kept_options
from focuscrawl.cli.progress_bars import Bar
from focuscrawl.cli.topic_text import bookmarked
from focuscrawl.critic.corpus import read_known
from focuscrawl.critic.files import read_critic
from focuscrawl.critic.loading import find_model
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import no_url, normalize
from focuscrawl.report.plain_text import counted, middle, one_line, table
from focuscrawl.taxonomy import read_labels, read_topics
from focuscrawl.topics import edit_definition, fit_classes
from focuscrawl.topics.refining import refined
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from pathlib import Path

_EACH = 3  # classes shown of a page


@click.command()
@click.argument("urls", metavar="URL...", nargs=-1)
@click.option("--critic", required=True, help="Whose classes: a folder, or a name in models/.")
@click.option("--web", help=options.EXAMPLES_WEB)
@kept_options
@options.path("--bookmarks", "Also the pages of a bookmarks.html.")
@options.BOOKMARK_FOLDER
@options.top("Rows.")
def classify(
    *,
    urls: tuple[str, ...],
    critic: str,
    web: str | None,
    crawl_dir: str | None,
    settings: tuple[str, ...],
    bookmarks: Path | None,
    folder: str | None,
    top: int,
) -> None:
    """Propose the classes that pages fit best, to be marked in a definition.

    Pages are read from --web; without it they are fetched, by a polite crawl that is kept.

    \b
    focuscrawl topic classify https://bikes.example/ --critic models/dmoz
    focuscrawl topic classify --bookmarks bookmarks.html --critic models/dmoz --web pages.warc.gz
    """
    wanted = list(dict.fromkeys([*urls, *bookmarked(bookmarks, folder)]))
    if not wanted:
        raise UserError("classify which pages? Give URLs, or --bookmarks")
    wrong = [url for url in wanted if normalize(url) is None]
    if wrong:
        raise UserError(f"{wrong[0]} {no_url(wrong[0])}")
    trained, _ = read_critic(find_model(critic))
    if web is None:
        opened = fetch_examples(
            wanted,
            out="classify",
            others=REDIRECTS * len(wanted),
            crawl_dir=crawl_dir,
            settings=settings,
            reach=0,
        )
    else:
        opened = open_web(web)
    with closing(Bar("Reading")) as shown:
        shown.start(len(wanted))
        read = read_known([opened], wanted, progress=shown)
    if not read:
        raise UserError(
            f"none of {counted(len(wanted), 'page')} is in {web}: leave out --web to fetch them"
        )
    bags = [page.bag for page in read.values()]
    probabilities = np.exp(trained.model.log_posteriors(bags, trained.calibration))
    for url, row in zip(read, probabilities, strict=True):
        best = np.argsort(-row, kind="stable")[:_EACH]
        classes = ", ".join(f"{trained.model.classes[i]} {row[i]:.2f}" for i in best.tolist())
        click.echo(f"{middle(one_line(url), 90)}\n  {classes}")
    rows = [["pages", "share", "class"]]
    rows += [
        [str(fit.pages), f"{fit.share:.2f}", fit.topic]
        for fit in fit_classes(trained.model.classes, probabilities)[:top]
    ]
    click.echo(f"\nof {counted(len(read), 'page')}:")
    click.echo("\n".join(table(rows, left={2})))
    if web is not None and len(read) < len(wanted):
        click.echo(f"left out: {counted(len(wanted) - len(read), 'page')} not in {web}", err=True)


@click.command()
@options.DEFINITION
@click.argument("pages", metavar="PAGES.csv", type=options.PATH)
@click.option("--mark", help="Mark only these sub-classes, comma-separated; the rest is off.")
def refine(*, definition: Path, pages: Path, mark: str | None) -> None:
    """Split a class that is too broad: move pages into sub-classes of it.

    PAGES.csv has the columns url and topic, the path of a sub-class. What stays of the class
    becomes its sub-class Other. Marked is what was, unless --mark says which sub-classes are.

    \b
    focuscrawl topic refine cycling.toml moved.csv --mark /Sports/Cycling/Mountain
    focuscrawl topic apply crawls/cycling cycling.toml
    """
    moved: dict[str, list[str]] = {}
    for number, label in enumerate(read_labels(pages), 1):
        url = normalize(label.url)
        if url is None:
            raise UserError(f"{pages}: row {number}: {label.url!r} {no_url(label.url)}")
        moved.setdefault(label.topic, []).append(url)
    marks = None if mark is None else read_topics(mark)
    made = edit_definition(definition, lambda known: refined(known, moved, marks))
    for path, urls in sorted(made.classes.items()):
        click.echo(f"{path}: {counted(len(urls), 'page')}")
