"""``focuscrawl topic``: write topic definitions and train their critics."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import click
import numpy as np

from focuscrawl import __version__
from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import ProgressBar
from focuscrawl.cli.critic_examples import (
    REDIRECTS_PER_PAGE,
    crawl_folder_options,
    describe_definition,
    example_crawl_options,
    fetch_examples,
    list_urls,
    print_unread_examples,
    read_bookmark_urls,
    read_description,
    read_url_arguments,
    split_at_commas,
    warn_of_missing_embeddings,
)
from focuscrawl.cli.feedback_commands import apply, mark, neighbours_command, suggest_command
from focuscrawl.completeness.recall_estimate import MIN_TARGETS, split_examples
from focuscrawl.critic import load_critic
from focuscrawl.critic.corpus import find_pages
from focuscrawl.critic.critic_files import FORMAT, find_model, read_critic, save_critic
from focuscrawl.critic.phrase_model import parse_description, parse_phrases
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import parse_url
from focuscrawl.knowledge import Keywords
from focuscrawl.report.plain_text import align_columns, one_line, pluralize, shorten_middle
from focuscrawl.search import open_source
from focuscrawl.search.candidates import rank_candidates
from focuscrawl.taxonomy import ROOT, Taxonomy, normalise, parse_topics, read_labels
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
from focuscrawl.topics.definition import (
    class_tree,
    count_examples,
    load_base_critic,
    move_class,
    move_examples,
)
from focuscrawl.webs import open_web
from focuscrawl.webs.opening import open_webs

_WIDTH = 100  # characters of a URL
_QUERY = 8  # keywords in the query for a source
_PER_SEED = 5  # search results for each start page to add
_CLASSES = 3  # classes printed for each page


@click.group()
def topic() -> None:
    """Define a topic, judge pages of a crawl, and apply the judgements to the crawl."""


for command in (apply, mark, neighbours_command, suggest_command):
    topic.add_command(command)


def _example_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for example pages; the command gets the URLs as ``good`` and ``bad``."""

    @common_options.urls_option("--good", "Relevant pages")
    @common_options.urls_option("--bad", "Off-topic pages")
    @common_options.BOOKMARKS
    @common_options.BOOKMARK_FOLDER
    @wraps(command)
    def with_examples(
        *,
        good: tuple[str, ...],
        bad: tuple[str, ...],
        bookmarks: Path | None,
        folder: str | None,
        **others: Any,
    ) -> None:
        good_urls = [*read_url_arguments(good, "good"), *read_bookmark_urls(bookmarks, folder)]
        command(good=good_urls, bad=read_url_arguments(bad, "bad"), **others)

    return with_examples


@topic.command()
@common_options.DEFINITION
@click.option(
    "--critic",
    help="Trained critic; the option --topic chooses the relevant classes among its classes.",
)
@click.option(
    "--topic",
    "marked",
    metavar="CLASSES",
    help="Relevant classes of the critic --critic, separated by commas.",
)
@common_options.web_option("that contains the example pages.")
@common_options.WORDS
@common_options.DESCRIPTION
@common_options.NAME
@common_options.urls_option("--seeds", "Start pages for crawls of the topic")
@common_options.urls_option(
    "--targets",
    "Target pages (relevant pages that you know), by which a crawl measures its recall",
)
@click.option(
    "--hold-out",
    is_flag=True,
    help="Use two thirds of the good pages not as examples, but as target pages, by which a "
    "crawl measures its recall.",
)
@_example_options
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
    targets: tuple[str, ...],
    hold_out: bool,
    good: list[str],
    bad: list[str],
) -> None:
    """Create a topic definition in the file TOPIC.toml.

    \b
    focuscrawl topic new cycling.toml --critic models/demo --topic /Sports/Cycling
    focuscrawl topic new cycling.toml --words "road cycling, peloton" --good good.txt
    focuscrawl topic new mine.toml --bookmarks bookmarks.html --folder Bikes --bad bad.txt
    """
    if definition.exists():
        raise UserError(
            f"{definition} exists already: add examples with `focuscrawl topic add {definition}`"
        )
    target_urls = read_url_arguments(targets, "targets")
    if hold_out:
        good, held_out = split_examples(good)
        target_urls += held_out
        if not held_out:
            click.echo(
                f"Warning: {pluralize(len(good), 'good page')}, fewer than {MIN_TARGETS}: no page "
                "is held out, and no recall can be certified",
                err=True,
            )
    created = TopicDefinition(
        critic=critic,
        web=web,
        topics=split_at_commas(marked),
        words=split_at_commas(words),
        seeds=tuple(read_url_arguments(seeds, "seeds")),
        targets=tuple(target_urls),
        name=name,
        description=None if description is None else read_description(description),
    ).with_judgements(good, bad)
    if created.topics and critic is None:
        raise UserError("--topic needs --critic: name the critic that has the classes")
    check_marked_classes(created)
    write_definition(created, definition)
    click.echo(f"{definition}: {describe_definition(created)}")


@topic.command()
@common_options.DEFINITION
@_example_options
def add(*, definition: Path, good: list[str], bad: list[str]) -> None:
    """Add good or bad example pages to TOPIC.toml."""
    if not good and not bad:
        raise UserError("no examples to add: give --good, --bad or --bookmarks")
    updated = edit_definition(definition, lambda known: known.with_judgements(good, bad))
    click.echo(f"{definition}: {describe_definition(updated)}")


@topic.command()
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option(
    "--crawl-dir",
    metavar="FOLDER",
    required=True,
    help="Folder in which the command saves the pages that it fetches.",
)
@common_options.web_option("that contains the pages.  [default: the live Web]")
@common_options.SETTINGS
def fetch(
    *, urls: tuple[str, ...], crawl_dir: str, web: str | None, settings: tuple[str, ...]
) -> None:
    """Fetch example pages politely, without following links.

    Each URL is the address of a page, or the name of a file of such addresses. The command saves
    the fetched pages in the folder --crawl-dir, in the format of a crawl. To train a critic on the
    fetched pages, run `focuscrawl topic train` with the option `--web CRAWL_DIR/pages.warc.gz`.

    \b
    focuscrawl topic fetch https://bikes.example/ --crawl-dir crawls/bikes
    """
    wanted = read_url_arguments(urls, "seeds")
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
@common_options.CRITIC_OUT
@click.option(
    "--web",
    "named",
    multiple=True,
    help="Recording (WARC file or index) that contains the pages, if TOPIC.toml names no "
    "recording; repeatable.",
)
@example_crawl_options
def train(*, definition: Path, out: str, named: tuple[str, ...], **crawl_options: Any) -> None:
    """Train a critic for the topic that TOPIC.toml defines.

    Without --web, the command fetches the example pages with a polite crawl, and saves the pages
    in the folder --crawl-dir.

    \b
    focuscrawl topic train cycling.toml --out models/cycling
    focuscrawl topic train cycling.toml --web pages.warc.gz --out models/cycling
    focuscrawl crawl -a critic=models/cycling -a topic=/good -a seeds=cycling.toml
    """
    FORMAT.check_output(Path(out))
    known = read_definition(definition)
    webs = open_webs(known.web, definition, named)
    pages = () if webs else training_urls(known)
    if pages:
        webs = [fetch_examples(pages, out=out, **crawl_options)]
    with closing(ProgressBar("Reading")) as progress:
        trained, topics = train_definition(known, webs, progress=progress)
    if trained.unread and not trained.examples:
        raise UserError(
            f"none of the example pages can be read ({list_urls(trained.unread)}): correct or "
            "remove these URLs, or name the recording that contains the pages"
        )
    save_critic(trained, out)
    print_unread_examples(known.judged_urls, trained)
    warn_of_missing_embeddings(trained)
    marked = ",".join(topics)
    click.echo(f"Saved critic {out}. Crawl with -a critic={out} -a topic={shlex.quote(marked)}")


@topic.command()
@click.argument("critic", metavar="CRITIC")
@click.option("--under", metavar="CLASS", help="List only CLASS and its subclasses.")
@common_options.integer_option(
    "--examples", "Number of example URLs to print for each class.", 2, least=0
)
def tree(*, critic: str, under: str | None, examples: int) -> None:
    """List the classes of the critic CRITIC.

    CRITIC is the folder of a critic, or a name in models/. For each class, the command prints the
    number of training examples and the URLs of some examples. The number of training examples of a
    class includes the examples of its subclasses. For a few-shot critic (trained on a few
    examples), the command also prints the phrases that describe the topic.

    \b
    focuscrawl topic tree models/demo
    focuscrawl topic tree models/dmoz --under /Sports --examples 5
    """
    trained, _ = read_critic(find_model(critic))
    classes = class_tree(trained)
    top = ROOT if under is None else normalise(under)
    if top not in classes:
        near = classes.nearest(top) or list(classes.leaves[:5])
        raise UserError(f"critic {critic} has no class {top}. Similar: {', '.join(near)}")
    shown = [path for path in (top, *classes.descendants(top)) if path != ROOT]
    pages = count_examples(classes)
    leaves = len(classes.leaves_under(top))
    click.echo(
        f"{critic}: {trained.model.kind}, {pluralize(leaves, 'topic')}, "
        f"{pluralize(pages[top], 'example')}"
    )
    if trained.phrases:
        phrases = ", ".join(" ".join(phrase) for phrase in trained.phrases)
        click.echo(f"phrases: {one_line(phrases, 200)}")
    least = min((path.count("/") for path in shown), default=0)
    for path in shown:
        indent = "  " * (path.count("/") - least)
        count = f"  {pages[path]:,}" if trained.examples else ""
        click.echo(f"{indent}{one_line(path)}{count}")
        for url in classes.examples(path)[:examples]:
            click.echo(f"{indent}    {shorten_middle(one_line(url), _WIDTH)}")
    for path in trained.untrained_topics:
        click.echo(f"{one_line(path)}: no example could be read, so the critic has no such class")
    if not trained.examples:
        click.echo("The critic was trained on phrases only and has no examples")


@topic.command("seeds")
@common_options.DEFINITION
@click.option(
    "--candidates",
    required=True,
    metavar="SOURCE",
    help="Source of search results: searxng (a search engine) or another installed source, a "
    "JSON file, a CSV file with the columns url, title and description, or a Python function "
    "(module:callable).",
)
@click.option(
    "--query",
    metavar="TEXT",
    help="Search query that the command sends to the source of search results.  [default: the "
    "topic's keywords that have the largest weights]",
)
@common_options.integer_option(
    "--n", "Maximum number of start pages that the command adds to TOPIC.toml.", 20
)
def seeds_command(*, definition: Path, candidates: str, query: str | None, n: int) -> None:
    """Search for start pages, and add the best pages to TOPIC.toml.

    The command adds the search results that are most similar to the topic. The command compares
    the title and description of each search result with the words in TOPIC.toml and with typical
    words of the critic's examples.

    \b
    focuscrawl topic seeds cycling.toml --candidates answers.json
    focuscrawl topic seeds cycling.toml --candidates mysearch:ask --query "road cycling"
    """
    known = read_definition(definition)
    keywords = _keywords(known)
    if not keywords.weights:
        raise UserError(
            f"{definition} has no words to rank search results by: add words = [...] or "
            "description = ..."
        )
    with closing(open_source(candidates, f"focuscrawl/{__version__}")) as source:
        answer = source.search(query or " ".join([*keywords.weights][:_QUERY]), _PER_SEED * n)
    found = answer.candidates
    best = rank_candidates(found, keywords)
    if not best:
        words = ", ".join([*keywords.weights][:_QUERY])
        raise UserError(
            f"none of {pluralize(len(found), 'search result')} contains a word of the topic "
            f"({words}): add words to {definition}, or give other search results"
        )
    for each, score in best[:n]:
        click.echo(
            f"{score:.2f}  {shorten_middle(one_line(each.url), 90)}  {one_line(each.title, 60)}"
        )
    urls = [each.url for each, _ in best[:n]]

    def with_seeds(now: TopicDefinition) -> TopicDefinition:
        return replace(now, seeds=tuple(dict.fromkeys([*now.seeds, *urls])))

    updated = edit_definition(definition, with_seeds)
    click.echo(f"{definition}: {describe_definition(updated)}")


def _keywords(known: TopicDefinition) -> Keywords:
    phrases = parse_phrases(", ".join(known.words)) if known.words else []
    if known.description is not None:
        phrases.append(parse_description(known.description))
    sources = [dict.fromkeys((word for phrase in phrases for word in phrase), 1.0)]
    if known.critic is not None and known.topics:
        critic = load_critic(known.critic, ",".join(known.topics))
        sources += [getattr(critic, of, dict)() for of in ("phrase_words", "example_words")]
    if not any(sources):
        sources.append(Keywords.from_topics([*known.topics, known.name or ""]).weights)
    return Keywords.merge(*sources)


@topic.command()
@click.argument("urls", metavar="URL...", nargs=-1)
@click.option(
    "--critic",
    required=True,
    help="Critic (page classifier) that predicts the classes: a folder or a name in models/.",
)
@click.option("--web", help=common_options.EXAMPLES_WEB)
@crawl_folder_options
@common_options.path_option(
    "--bookmarks",
    "File of browser bookmarks (bookmarks.html); the command also classifies the "
    "bookmarked pages.",
)
@common_options.BOOKMARK_FOLDER
@common_options.top_option("Maximum number of classes in the summary that the command prints.")
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
    """Predict the classes of pages with a critic.

    The predicted classes show which classes of the critic are relevant to your topic. The command
    reads the pages from the recording --web, such as a WARC file. Without --web, the command
    fetches the pages with a polite crawl, and saves the pages in the folder --crawl-dir.

    \b
    focuscrawl topic classify https://bikes.example/ --critic models/dmoz
    focuscrawl topic classify --bookmarks bookmarks.html --critic models/dmoz --web pages.warc.gz
    """
    wanted = list(dict.fromkeys([*urls, *read_bookmark_urls(bookmarks, folder)]))
    if not wanted:
        raise UserError("no pages to classify: give URLs or --bookmarks")
    for url in wanted:
        parse_url(url)  # only checks
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
    with closing(ProgressBar("Reading")) as progress:
        progress.start(len(wanted))
        read = find_pages([opened], wanted, progress=progress)
    if not read:
        raise UserError(
            f"none of {pluralize(len(wanted), 'page')} is in {web}: leave out --web to fetch them"
        )
    bags = [page.bag for page in read.values()]
    probabilities = np.exp(trained.model.log_posteriors(bags, trained.calibration))
    for url, row in zip(read, probabilities, strict=True):
        best = np.argsort(-row, kind="stable")[:_CLASSES]
        classes = ", ".join(f"{trained.model.classes[i]} {row[i]:.2f}" for i in best.tolist())
        click.echo(f"{shorten_middle(one_line(url), 90)}\n  {classes}")
    rows = [["pages", "share", "class"]]
    rows += [
        [str(fit.pages), f"{fit.share:.2f}", fit.topic]
        for fit in rank_classes(trained.model.classes, probabilities)[:top]
    ]
    click.echo(f"\nClasses of {pluralize(len(read), 'page')}:")
    click.echo("\n".join(align_columns(rows, left={2})))
    if web is not None and len(read) < len(wanted):
        missing = pluralize(len(wanted) - len(read), "page")
        click.echo(f"Skipped {missing} missing from {web}", err=True)


@topic.command()
@common_options.DEFINITION
@click.argument("pages", metavar="PAGES.csv", type=common_options.PATH)
@click.option(
    "--mark",
    metavar="CLASSES",
    help="Classes in PAGES.csv that are relevant, separated by commas.  [default: the new "
    "subclasses of relevant classes]",
)
def refine(*, definition: Path, pages: Path, mark: str | None) -> None:
    """Move example pages of TOPIC.toml to other or new classes.

    PAGES.csv has the columns url and topic. The column topic of PAGES.csv contains the new class
    of each page, such as /Sports/Cycling. If PAGES.csv moves only some examples of a class to
    subclasses, the other examples of the class form a subclass named Other.

    \b
    focuscrawl topic refine cycling.toml moved.csv --mark /Sports/Cycling/Mountain
    focuscrawl topic apply crawls/cycling cycling.toml
    """
    moved: dict[str, list[str]] = {}
    for number, label in enumerate(read_labels(pages), 1):
        url = parse_url(label.url, f"{pages}: row {number}: {label.url!r}")
        moved.setdefault(label.topic, []).append(url)
    marks = None if mark is None else parse_topics(mark)
    _print_classes(edit_definition(definition, lambda known: move_examples(known, moved, marks)))


@topic.command()
@common_options.DEFINITION
@click.argument("path", metavar="CLASS")
@click.argument("new_path", metavar="NEW_CLASS")
def move(*, definition: Path, path: str, new_path: str) -> None:
    """Move the class CLASS in TOPIC.toml to NEW_CLASS.

    The command also moves the subclasses and the examples of CLASS.

    \b
    focuscrawl topic move cycling.toml /Sports/Cycling /Transport/Cycling
    """
    old, new = normalise(path), normalise(new_path)
    _print_classes(edit_definition(definition, lambda known: move_class(known, old, new)))


def _print_classes(definition: TopicDefinition) -> None:
    """Print the classes to which a definition moves pages, and which of them are new."""
    base = load_base_critic(definition)
    known = Taxonomy({}) if base is None else class_tree(base)
    for path, urls in sorted(definition.classes.items()):
        new = "" if path in known else ", new class"
        click.echo(f"{path}: {pluralize(len(urls), 'page')}{new}")
