"""``focuscrawl topic``: write definitions of topics, train their critics."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import ProgressBar
from focuscrawl.cli.critic_examples import (
    REDIRECTS_PER_PAGE,
    crawl_folder_options,
    describe_definition,
    example_crawl_options,
    fetch_examples,
    print_unread_examples,
    read_bookmark_urls,
    read_description,
    read_url_arguments,
    split_at_commas,
    warn_of_missing_embeddings,
)
from focuscrawl.cli.feedback_commands import apply, mark, neighbours_command, suggest_command
from focuscrawl.critic import load_critic
from focuscrawl.critic.corpus import read_known
from focuscrawl.critic.critic_files import FORMAT, find_model, read_critic, save_critic
from focuscrawl.critic.phrase_model import phrases_of, words_of
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import no_url, normalize
from focuscrawl.knowledge import Keywords
from focuscrawl.knowledge.keywords import ranked, read_candidates
from focuscrawl.report.plain_text import align_columns, one_line, pluralize, shorten_middle
from focuscrawl.taxonomy import ROOT, normalise, read_labels, read_topics
from focuscrawl.topics import (
    TopicDefinition,
    check_marked_classes,
    edit_definition,
    rank_classes,
    read_definition,
    train_definition,
    training_urls,
    write_definition,
)
from focuscrawl.topics.definition import class_tree, count_examples, split_classes
from focuscrawl.webs import open_web
from focuscrawl.webs.opening import open_webs

if TYPE_CHECKING:
    from collections.abc import Callable

_WIDTH = 100  # characters of a URL
_QUERY = 8  # keywords of the query that a callable gets
_EACH = 3  # classes shown of a page


@click.group()
def topic() -> None:
    """Define a topic, judge pages of a crawl, and have it follow."""


for command in (apply, mark, neighbours_command, suggest_command):
    topic.add_command(command)


def _judged_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name examples; the command gets the URLs as ``good`` and ``bad``."""

    @click.option("--good", multiple=True, help="URLs on the topic, or a file of them.")
    @click.option("--bad", multiple=True, help="URLs off the topic, or a file of them.")
    @common_options.BOOKMARKS
    @common_options.BOOKMARK_FOLDER
    @wraps(command)
    def judged(
        *,
        good: tuple[str, ...],
        bad: tuple[str, ...],
        bookmarks: Path | None,
        folder: str | None,
        **others: Any,
    ) -> None:
        liked = [*read_url_arguments(good), *read_bookmark_urls(bookmarks, folder)]
        command(good=liked, bad=read_url_arguments(bad), **others)

    return judged


@topic.command()
@common_options.DEFINITION
@click.option("--critic", help="A trained critic: its classes are the taxonomy.")
@click.option("--topic", "marked", help="Classes of it to mark, comma-separated.")
@click.option("--web", help="Where the pages of its examples are.")
@common_options.WORDS
@common_options.DESCRIPTION
@common_options.NAME
@click.option("--seeds", multiple=True, help="Start URLs, or a file of them.")
@_judged_options
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
    good: list[str],
    bad: list[str],
) -> None:
    """Write a definition of a topic to TOPIC.toml.

    \b
    focuscrawl topic new cycling.toml --critic models/demo --topic /Sports/Cycling
    focuscrawl topic new cycling.toml --words "road cycling, peloton" --good good.txt
    focuscrawl topic new mine.toml --bookmarks bookmarks.html --folder Bikes --bad bad.txt
    """
    if definition.exists():
        raise UserError(f"{definition} is there already: add to it with focuscrawl topic add")
    made = TopicDefinition(
        critic=critic,
        web=web,
        topics=split_at_commas(marked),
        words=split_at_commas(words),
        seeds=tuple(read_url_arguments(seeds)),
        name=name,
        description=None if description is None else read_description(description),
    ).with_judgements(good, bad)
    if made.topics and critic is None:
        raise UserError("--topic marks classes of a critic: name it with --critic")
    check_marked_classes(made)
    write_definition(made, definition)
    click.echo(f"{definition}: {describe_definition(made)}")


@topic.command()
@common_options.DEFINITION
@_judged_options
def add(*, definition: Path, good: list[str], bad: list[str]) -> None:
    """Add examples to TOPIC.toml; of two judgements of a page the latest counts."""
    if not good and not bad:
        raise UserError("nothing to add: give --good, --bad or --bookmarks")
    made = edit_definition(definition, lambda known: known.with_judgements(good, bad))
    click.echo(f"{definition}: {describe_definition(made)}")


@topic.command()
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option("--crawl-dir", required=True, help="Where they are kept.")
@click.option("--web", help="Take them from this recording instead of the Web.")
@common_options.SETTINGS
def fetch(
    *, urls: tuple[str, ...], crawl_dir: str, web: str | None, settings: tuple[str, ...]
) -> None:
    """Fetch pages that are to be judged, or files of their URLs: no link is followed.

    It is a polite crawl that is kept; `topic train` learns from it with --web.

    \b
    focuscrawl topic fetch https://bikes.example/ --crawl-dir crawls/bikes
    """
    wanted = read_url_arguments(urls)
    fetch_examples(
        wanted,
        out="examples",
        others=REDIRECTS_PER_PAGE * len(wanted),
        crawl_dir=crawl_dir,
        settings=settings,
        max_distance=0,
        web=web,
    )


@topic.command()
@common_options.DEFINITION
@click.option("--out", required=True, help="Folder of the critic, like models/NAME.")
@click.option(
    "--web",
    "named",
    multiple=True,
    help="Where the pages are, if the definition names no web; may be repeated.",
)
@example_crawl_options
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
    pages = () if webs else training_urls(known)
    if pages:
        webs = [fetch_examples(pages, out=out, **live)]
    with closing(ProgressBar("Reading")) as shown:
        trained, topics = train_definition(known, webs, progress=shown)
    save_critic(trained, out)
    print_unread_examples(known.judged_urls, trained)
    warn_of_missing_embeddings(trained)
    click.echo(f"{out}: topics {', '.join(topics)}")


@topic.command()
@click.argument("critic", metavar="CRITIC")
@click.option("--under", help="Only this class and those below it.")
@common_options.integer_option("--examples", "Example URLs shown of a class.", 2, least=0)
def tree(*, critic: str, under: str | None, examples: int) -> None:
    """List the classes of CRITIC, a folder or a name in models/: what can be marked.

    Each with the number of the pages that it was learned from, those below it included, and
    some of them. Of a critic that was learned from little, the phrases as well.

    \b
    focuscrawl topic tree models/demo
    focuscrawl topic tree models/dmoz --under /Sports --examples 5
    """
    trained, _ = read_critic(find_model(critic))
    classes = class_tree(trained)
    top = ROOT if under is None else normalise(under)
    if top not in classes:
        near = classes.nearest(top) or list(classes.leaves[:5])
        raise UserError(f"{critic} has no class {top}; near it: {', '.join(near)}")
    shown = [path for path in (top, *classes.descendants(top)) if path != ROOT]
    pages = count_examples(classes)
    leaves = len(classes.leaves_under(top))
    click.echo(
        f"{critic}: {trained.model.kind}, {pluralize(leaves, 'topic')}, "
        f"{pluralize(pages[top], 'example')}"
    )
    if trained.phrases:
        said = ", ".join(" ".join(phrase) for phrase in trained.phrases)
        click.echo(f"phrases: {one_line(said, 200)}")
    least = min((path.count("/") for path in shown), default=0)
    for path in shown:
        indent = "  " * (path.count("/") - least)
        count = f"  {pages[path]:,}" if trained.examples else ""
        click.echo(f"{indent}{one_line(path)}{count}")
        for url in classes.examples(path)[:examples]:
            click.echo(f"{indent}    {shorten_middle(one_line(url), _WIDTH)}")
    for path in trained.absent:
        click.echo(f"{one_line(path)}: had no example that could be read; it cannot be marked")
    if not trained.examples:
        click.echo("learned from words alone: there is no example")


@topic.command("seeds")
@common_options.DEFINITION
@click.option(
    "--candidates",
    required=True,
    help="A JSON file of an engine's answers, a CSV of url,title,description, or module:callable.",
)
@click.option("--query", help="What a callable is asked with; usual: the topic's first words.")
@common_options.integer_option("--n", "Start URLs to take.", 20)
def seeds_command(*, definition: Path, candidates: str, query: str | None, n: int) -> None:
    """Take the start URLs of TOPIC.toml from candidates: those most like the topic's words.

    Words are those of the definition, and those that tell the examples of its critic from others;
    a candidate is as like them as its title and description are.

    \b
    focuscrawl topic seeds cycling.toml --candidates answers.json
    focuscrawl topic seeds cycling.toml --candidates mysearch:ask --query "road cycling"
    """
    known = read_definition(definition)
    keywords = _keywords(known)
    if not keywords.weights:
        raise UserError(
            f"{definition} has no words to rank by: add words = [...] or a description to it"
        )
    asked = query or " ".join([*keywords.weights][:_QUERY])
    found = read_candidates(candidates, asked)
    best = ranked(found, keywords)
    if not best:
        words = ", ".join([*keywords.weights][:_QUERY])
        raise UserError(
            f"none of {pluralize(len(found), 'candidate')} has a word of the topic ({words}): "
            "give it more words, or other candidates"
        )
    for each, score in best[:n]:
        click.echo(
            f"{score:.2f}  {shorten_middle(one_line(each.url), 90)}  {one_line(each.title, 60)}"
        )
    urls = [each.url for each, _ in best[:n]]

    def with_seeds(now: TopicDefinition) -> TopicDefinition:
        return replace(now, seeds=tuple(dict.fromkeys([*now.seeds, *urls])))

    made = edit_definition(definition, with_seeds)
    click.echo(f"{definition}: {describe_definition(made)}")


def _keywords(known: TopicDefinition) -> Keywords:
    phrases = phrases_of(", ".join(known.words)) if known.words else []
    if known.description is not None:
        phrases.append(words_of(known.description))
    sources = [dict.fromkeys((word for phrase in phrases for word in phrase), 1.0)]
    if known.critic is not None and known.topics:
        critic = load_critic(known.critic, ",".join(known.topics))
        sources += [getattr(critic, of, dict)() for of in ("phrase_words", "example_words")]
    if not any(sources):
        sources.append(Keywords.of_topics([*known.topics, known.name or ""]).weights)
    return Keywords.of_all(*sources)


@topic.command()
@click.argument("urls", metavar="URL...", nargs=-1)
@click.option("--critic", required=True, help="Whose classes: a folder, or a name in models/.")
@click.option("--web", help=common_options.EXAMPLES_WEB)
@crawl_folder_options
@common_options.path_option("--bookmarks", "Also the pages of a bookmarks.html.")
@common_options.BOOKMARK_FOLDER
@common_options.top_option("Rows.")
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
    wanted = list(dict.fromkeys([*urls, *read_bookmark_urls(bookmarks, folder)]))
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
            others=REDIRECTS_PER_PAGE * len(wanted),
            crawl_dir=crawl_dir,
            settings=settings,
            max_distance=0,
        )
    else:
        opened = open_web(web)
    with closing(ProgressBar("Reading")) as shown:
        shown.start(len(wanted))
        read = read_known([opened], wanted, progress=shown)
    if not read:
        raise UserError(
            f"none of {pluralize(len(wanted), 'page')} is in {web}: leave out --web to fetch them"
        )
    bags = [page.bag for page in read.values()]
    probabilities = np.exp(trained.model.log_posteriors(bags, trained.calibration))
    for url, row in zip(read, probabilities, strict=True):
        best = np.argsort(-row, kind="stable")[:_EACH]
        classes = ", ".join(f"{trained.model.classes[i]} {row[i]:.2f}" for i in best.tolist())
        click.echo(f"{shorten_middle(one_line(url), 90)}\n  {classes}")
    rows = [["pages", "share", "class"]]
    rows += [
        [str(fit.pages), f"{fit.share:.2f}", fit.topic]
        for fit in rank_classes(trained.model.classes, probabilities)[:top]
    ]
    click.echo(f"\nof {pluralize(len(read), 'page')}:")
    click.echo("\n".join(align_columns(rows, left={2})))
    if web is not None and len(read) < len(wanted):
        click.echo(
            f"left out: {pluralize(len(wanted) - len(read), 'page')} not in {web}", err=True
        )


@topic.command()
@common_options.DEFINITION
@click.argument("pages", metavar="PAGES.csv", type=common_options.PATH)
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
    made = edit_definition(definition, lambda known: split_classes(known, moved, marks))
    for path, urls in sorted(made.classes.items()):
        click.echo(f"{path}: {pluralize(len(urls), 'page')}")
