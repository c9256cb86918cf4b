"""Options and functions of the commands that train critics; the crawl of example pages."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import ProgressBar, run_crawl
from focuscrawl.crawl.crawl_folder import CrawlFolder
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.critic.classifiers import KINDS, LogisticModel
from focuscrawl.critic.corpus import find_pages
from focuscrawl.critic.focused_critic import TrainedCritic
from focuscrawl.critic.page_vectors import word_vectors_installed
from focuscrawl.critic.phrase_model import (
    OFF_TOPIC,
    ON_TOPIC,
    PhraseModel,
    build_phrase_model,
    parse_description,
    parse_phrases,
)
from focuscrawl.critic.training import parse_topic_name, train_critic, train_few_shot
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import reporting_write_errors, write_atomically
from focuscrawl.foundation.urls import normalize
from focuscrawl.foundation.user_input import read_text
from focuscrawl.report.plain_text import one_line, pluralize, shorten_middle
from focuscrawl.report.status import open_store
from focuscrawl.report.summary import Summary
from focuscrawl.taxonomy import Label
from focuscrawl.topics import read_bookmarks
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.page import PageView
    from focuscrawl.topics import TopicDefinition
    from focuscrawl.webs.web_protocol import Web

    Command = Callable[..., None]

_RECORDING, _LOG, _SEEDS = "pages.warc.gz", "crawl.log", "examples.txt"
#: fetches reserved for the redirects of each page if no link is followed
REDIRECTS_PER_PAGE = 5
_SHOWN, _WIDTH = 5, 100  # URLs printed, characters of each

#: settings of a project that must not affect a crawl of examples
_RESET_SETTINGS = [f"FOCUSCRAWL_{name}=" for name in ("KNOWLEDGE", "APPRENTICE", "WITHIN")]
#: record all fetches in one file in the crawl's folder
_RECORDING_SETTINGS = ["FOCUSCRAWL_WARC=1", "FOCUSCRAWL_WARC_SIZE=0"]


# -- options -------------------------------------------------------------------------------


def example_crawl_options(command: Command) -> Command:
    """Add the options for crawling example pages and other pages if ``--web`` is not given."""
    others = common_options.integer_option(
        "--others",
        "Without --web: number of additional pages to fetch as off-topic examples.",
        200,
    )
    return others(crawl_folder_options(command))


def crawl_folder_options(command: Command) -> Command:
    """Add the options for crawling example pages if ``--web`` is not given."""
    crawl_dir = click.option(
        "--crawl-dir",
        metavar="FOLDER",
        help="Without --web: folder in which the command saves the pages that it fetches.  "
        "[default: crawls/NAME-TIME]",
    )
    return crawl_dir(common_options.SETTINGS(command))


def read_bookmark_urls(path: Path | None, folder: str | None) -> list[str]:
    """Return the URLs in a bookmarks file, or an empty list if no file is given."""
    if path is None:
        if folder is not None:
            raise UserError("--folder needs --bookmarks: name the bookmarks file")
        return []
    return [bookmark.url for bookmark in read_bookmarks(path, folder)]


def split_at_commas(text: str | None) -> tuple[str, ...]:
    """Split a text at commas; leave out empty parts."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def read_url_arguments(arguments: Iterable[str], name: str) -> list[str]:
    """Return the URLs in arguments, each of which is a list or a file as in `read_seeds`."""
    urls = (url for each in arguments for url in read_seeds(each, (), name))
    return [*dict.fromkeys(urls)]


def read_description(argument: str) -> str:
    """Return a topic description: the argument, or the text of the file it names."""
    if os.path.isfile(argument):  # noqa: PTH113 - a paragraph may be too long for a path
        text = read_text(argument)
        if not text.strip():
            raise UserError(f"--description {argument}: the file is empty; describe the topic")
        return text
    if len(argument.split()) < 2:
        raise UserError(
            f"--description {argument}: no such file; give a paragraph or the name of a text file"
        )
    return argument


# -- messages ------------------------------------------------------------------------------


def print_unread_examples(judged: Iterable[str], trained: TrainedCritic) -> None:
    """Print the example pages that could not be read when a critic was trained."""
    wanted = {normalize(url) or url for url in judged}
    for url in sorted(wanted - {url for url, _ in trained.examples}):
        click.echo(f"Skipped example, the page cannot be read: {one_line(url)}", err=True)


def warn_of_missing_embeddings(trained: TrainedCritic) -> None:
    """Warn that a critic was trained without word embeddings because they are not installed."""
    model = trained.model
    if not isinstance(model, LogisticModel) or word_vectors_installed():
        return
    if model.vectors.languages[0][0] == "en":  # the embeddings are poor in other languages
        click.echo(
            "Warning: the critic was trained without word embeddings. For a better critic, "
            "install them (pip install 'focuscrawl[embeddings]') and train again",
            err=True,
        )


def describe_definition(definition: TopicDefinition) -> str:
    """Summarise a topic definition in one line."""
    contents = [
        *([f"topics {', '.join(definition.topics)}"] if definition.topics else []),
        *([pluralize(len(definition.words), "phrase")] if definition.words else []),
        pluralize(len(definition.good), "good page"),
        pluralize(len(definition.bad), "bad page"),
        *([pluralize(len(definition.targets), "target page")] if definition.targets else []),
    ]
    return ", ".join(contents)


# -- fetching examples ---------------------------------------------------------------------


def judge_irrelevant(pages: Sequence[PageView]) -> list[float]:
    """Critic that judges every page irrelevant, for crawls that only fetch example pages."""
    return [0.0] * len(pages)


def fetch_examples(
    urls: Sequence[str],
    *,
    out: str,
    others: int,
    crawl_dir: str | None,
    settings: Sequence[str],
    random_state: int = 0,
    max_distance: int | None = None,
    web: str | None = None,
    resume: bool = False,
) -> Web:
    """Crawl example pages and the pages they link to, politely; return the recording (WARC file).

    Parameters
    ----------
    urls : Sequence[str]
        URLs of the examples; invalid URLs are skipped.
    out : str
        Folder of the critic to be trained; the crawl is named after the folder.
    others : int
        Number of pages to fetch in addition to the examples.
    crawl_dir : str | None
        Folder of the crawl; None: a new folder in ``crawls``.
    settings : Sequence[str]
        Settings of the crawl, each ``NAME=VALUE``.
    max_distance : int | None
        Most links between an example and another page; every example gets the same number of
        other pages. 0: follow only redirects; None: follow links at random, without a limit.
    web : str | None
        Recorded web to read the pages from; None: the live Web.
    resume : bool
        Resume the crawl if the folder contains one with the same examples.

    Raises
    ------
    UserError
        No page could be fetched, or the folder contains a crawl already.
    """
    wanted = {normalize(url) or url: normalize(url) for url in urls}
    seeds = [url for url in wanted.values() if url is not None]
    if not seeds:
        raise UserError(
            f"{one_line(urls[0], _WIDTH)} is not an http(s) URL: name the URLs of example pages"
        )
    source = None if web is None else open_web(web)
    folder = _create_crawl_folder(
        crawl_dir or CrawlFolder.new_name(Path(out).name, datetime.now()), seeds, resume=resume
    )
    recording = folder / _RECORDING
    and_others = f" and {pluralize(others, 'other page')}" if max_distance != 0 else ""
    target = recording if source is None else folder
    click.echo(f"Fetching {pluralize(len(seeds), 'example')}{and_others} into {target}", err=True)
    strategy, strategy_settings = "random", list[str]()
    if max_distance is not None:
        options = {"depth": max_distance, "width": -(-others // len(seeds))}
        strategy = "fish-search"
        strategy_settings = [f"FOCUSCRAWL_STRATEGY_OPTIONS={json.dumps(options)}"]
    arguments = {
        "topic": "/good",
        "critic": f"{__name__}:{judge_irrelevant.__name__}",
        "strategy": strategy,
        "seeds": str(folder / _SEEDS),
        "budget": str(len(seeds) + others),
        "crawl_dir": str(folder),
        "random_state": str(random_state),
        "web": web,
    }
    # the log, not the terminal, gets the summary: it is about the topic of the crawl
    all_settings = [
        f"LOG_FILE={folder / _LOG}",
        *settings,
        *strategy_settings,
        *_RESET_SETTINGS,
        *(_RECORDING_SETTINGS if source is None else ()),
    ]
    try:
        run_crawl(arguments, all_settings, allow_unreachable_seeds=True)
    except SystemExit:
        _remove_unstarted_crawl(folder)
        raise
    none = f"none of {pluralize(len(seeds), 'example')} could be fetched as a page"
    try:
        opened = open_web(str(recording)) if source is None else source
    except UserError as error:
        reason = _fetch_errors(folder) or error
        raise UserError(f"{none} ({reason}); see the log {folder / _LOG}") from None
    read = find_pages([opened], seeds)
    missing = [url for url in wanted if url not in read]
    if not read:
        raise UserError(f"{none}: {list_urls(missing)}; see the log {folder / _LOG}")
    if missing:
        click.echo(
            f"{pluralize(len(missing), 'example')} could not be fetched as a page: "
            f"{list_urls(missing)}",
            err=True,
        )
    return opened


def _create_crawl_folder(folder: str | Path, seeds: Sequence[str], *, resume: bool) -> Path:
    folder = Path(folder)
    if CrawlFolder(folder).exists and not resume:
        raise UserError(
            f"folder {folder} contains a crawl already: read its pages with --web "
            f"{folder / _RECORDING}, or name another folder with --crawl-dir"
        )
    with reporting_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / _SEEDS, "\n".join(seeds))
    return folder


def _remove_unstarted_crawl(folder: Path) -> None:
    """Remove the files written for a crawl that did not start; keep other files."""
    if not CrawlFolder(folder).exists:
        for name in (_SEEDS, _LOG):
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()


def _fetch_errors(folder: Path) -> str:
    """Return why fetches failed; empty if the crawl has not started."""
    try:
        with closing(open_store(folder)) as store:
            summary = Summary.of(store)
    except UserError:
        return ""
    return summary.describe_errors() if summary.fetched else ""


def list_urls(urls: Sequence[str]) -> str:
    """Return the first URLs as text, and the number of the other URLs."""
    shown = [shorten_middle(one_line(url), _WIDTH) for url in urls[:_SHOWN]]
    more = len(urls) - len(shown)
    return ", ".join([*shown, *([f"and {more:,} more"] if more else [])])


# -- critics of one topic ------------------------------------------------------------------


@dataclass(frozen=True)
class TopicExamples:
    """The phrases and example pages of one topic that the user gave on the command line."""

    words: str | None
    description: str | None
    phrases: list[list[str]]  # words of each phrase; the description is the last phrase
    good: list[str]  # URLs of relevant pages
    bad: list[str]  # URLs of off-topic pages
    name: str | None

    @property
    def given(self) -> bool:
        """Whether the user gave any option that describes the topic."""
        return bool(self.phrases or self.good or self.bad or self.name is not None)

    @property
    def labels(self) -> list[Label]:
        """The good and bad pages, as labelled examples of the two classes."""
        sides = ((ON_TOPIC, self.good), (OFF_TOPIC, self.bad))
        return [Label(url, topic, "train") for topic, urls in sides for url in urls]


def topic_examples_options(command: Command) -> Command:
    """Add the options that describe a topic; the command gets the values as ``examples``."""

    @common_options.WORDS
    @common_options.DESCRIPTION
    @click.option(
        "--good",
        metavar="FILE",
        help="Text file with the URLs of relevant pages, one URL per line.",
    )
    @click.option(
        "--bad",
        metavar="FILE",
        help="Text file with the URLs of off-topic pages, one URL per line.",
    )
    @common_options.BOOKMARKS
    @common_options.BOOKMARK_FOLDER
    @common_options.NAME
    @wraps(command)
    def with_examples(
        *,
        words: str | None,
        description: str | None,
        good: str | None,
        bad: str | None,
        bookmarks: Path | None,
        folder: str | None,
        name: str | None,
        **others: Any,
    ) -> None:
        phrases = parse_phrases(words) if words is not None else []
        if description is not None:
            phrases.append(parse_description(read_description(description)))
        good_urls = read_seeds(good, (), "good") if good is not None else []
        good_urls += read_bookmark_urls(bookmarks, folder)
        bad_urls = read_seeds(bad, (), "bad") if bad is not None else []
        examples = TopicExamples(words, description, phrases, good_urls, bad_urls, name)
        command(examples=examples, **others)

    return with_examples


def train_on_topic_examples(
    examples: TopicExamples,
    crawl: Mapping[str, Any],
    *,
    web: str | None,
    kind: str | None,
    random_state: int,
    **training: Any,
) -> TrainedCritic:
    """Train the critic of one topic.

    If `web` is None, `fetch_examples` crawls the pages with the parameters `crawl`.
    """
    _check_kind(kind, examples, web)
    if kind == PhraseModel.kind:
        return TrainedCritic(model=build_phrase_model(examples.words or ""))
    topic = parse_topic_name(examples.name)
    good, bad = examples.good, examples.bad
    webs = []
    if web is not None:
        webs = [open_web(web)]
    elif good or bad:
        webs = [fetch_examples([*good, *bad], random_state=random_state, **crawl)]
    with closing(ProgressBar("Reading")) as progress:
        common: dict[str, Any] = {"random_state": random_state, "progress": progress}
        if kind in KINDS:
            return train_critic(examples.labels, webs[0], kind=kind, **common, **training)
        return train_few_shot(examples.phrases, good, bad, webs, topic=topic, **common)


def _check_kind(kind: str | None, examples: TopicExamples, web: str | None) -> None:
    """Raise `UserError` if a kind of critic cannot be trained on the examples."""
    pages, text = examples.good or examples.bad, examples.words or examples.description
    if kind == PhraseModel.kind and (pages or examples.description or examples.name or web):
        raise UserError("--kind words trains on --words only: leave out the other options")
    if kind in KINDS and (text or examples.name or not (examples.good and examples.bad)):
        raise UserError(
            f"--kind {kind} trains on --good and --bad pages only: give both, leave out the rest"
        )
    if kind not in {None, LogisticModel.kind, PhraseModel.kind, *KINDS}:
        known = ", ".join([LogisticModel.kind, *KINDS, PhraseModel.kind])
        raise UserError(f"unknown kind of critic {kind!r}: choose one of {known}")
    good, bad = ({normalize(url) or url for url in urls} for urls in (examples.good, examples.bad))
    both = sorted(good & bad)
    if both:
        raise UserError(f"{both[0]} is both a good and a bad page: remove the URL from one list")
