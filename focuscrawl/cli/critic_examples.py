"""What commands that train critics share: their options, and the crawl that fetches examples."""

from __future__ import annotations

import json
import os
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import Bar, crawl
from focuscrawl.crawl.crawl_folder import CrawlFolder
from focuscrawl.critic.classifiers import KINDS, LogisticModel
from focuscrawl.critic.corpus import read_known
from focuscrawl.critic.focused_critic import TrainedCritic
from focuscrawl.critic.page_vectors import word_vectors_installed
from focuscrawl.critic.phrase_model import (
    OFF_TOPIC,
    ON_TOPIC,
    WordsModel,
    phrases_of,
    read_phrases,
    words_of,
)
from focuscrawl.critic.training import read_urls, topic_name, train_critic, train_from_little
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import write_whole
from focuscrawl.foundation.urls import normalize
from focuscrawl.foundation.user_input import lines_of, read_text, split_urls
from focuscrawl.report.plain_text import one_line, pluralize, shorten_middle
from focuscrawl.report.status import open_store
from focuscrawl.report.summary import Summary
from focuscrawl.taxonomy import Label
from focuscrawl.topics import read_bookmarks
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from focuscrawl.page import PageView
    from focuscrawl.topics import TopicDefinition
    from focuscrawl.webs.web_protocol import Web

    Command = Callable[..., None]

_RECORDING, _LOG, _SEEDS = "pages.warc.gz", "crawl.log", "examples.txt"
#: fetches reserved for the redirects of each page, where no link is followed
REDIRECTS = 5
_SHOWN, _WIDTH = 5, 100  # URLs listed, characters of each

#: settings of a project's own crawls that do not apply to a crawl of examples
_WITHOUT = [f"FOCUSCRAWL_{name}=" for name in ("KNOWLEDGE", "APPRENTICE", "WITHIN")]
#: one recording of all that is fetched, in the crawl's folder
_RECORDED = ["FOCUSCRAWL_WARC=1", "FOCUSCRAWL_WARC_SIZE=0"]


# -- options and what they name ------------------------------------------------------------


def live_options(command: Command) -> Command:
    """Add the options of a command that fetches pages, and others, where there is no ``--web``."""
    others = common_options.number(
        "--others", "Without --web: pages fetched beside the examples.", 200
    )
    return others(kept_options(command))


def kept_options(command: Command) -> Command:
    """Add the options of a command that fetches pages where there is no ``--web``."""
    kept = click.option(
        "--crawl-dir", help="Without --web: where they are kept.  [default: crawls/NAME-TIME]"
    )
    return kept(common_options.SETTINGS(command))


def bookmarked(path: Path | None, folder: str | None) -> list[str]:
    """Return the URLs of bookmarks; none without a file."""
    if path is None:
        if folder is not None:
            raise UserError("--folder goes with --bookmarks: name the file, too")
        return []
    return [bookmark.url for bookmark in read_bookmarks(path, folder)]


def parts(text: str | None) -> tuple[str, ...]:
    """Split a text at its commas."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def urls_of(given: Iterable[str]) -> list[str]:
    """Return the URLs given, with commas between or in files."""
    found: list[str] = []
    for each in (part for text in given for part in split_urls(text)):
        if each.lower().startswith(("http:", "https:")):
            found.append(each)
            continue
        if not Path(each).exists():
            raise UserError(f"{each} is no URL, and no file of URLs")
        found += lines_of(read_text(each)).values()
    return [normalize(url) or url for url in found]  # the definition refuses what is no URL


def read_description(given: str) -> str:
    """Return a description: the text given, or that in a file of this name.

    Raises
    ------
    UserError
        It is one word that names no file, or the file cannot be read, or is empty.
    """
    if os.path.isfile(given):  # noqa: PTH113 - a paragraph may be too long for a path
        text = read_text(given)
        if not text.strip():
            raise UserError(f"--description {given}: nothing in it; write what the topic is about")
        return text
    if len(given.split()) < 2:
        raise UserError(f"--description {given}: no such file; give a paragraph, or a file of it")
    return given


# -- what is printed -----------------------------------------------------------------------


def print_unread(judged: Iterable[str], trained: TrainedCritic) -> None:
    """Name the judged pages that a critic could not learn from."""
    wanted = {normalize(url) or url for url in judged}
    for url in sorted(wanted - {url for url, _ in trained.examples}):
        click.echo(f"left out, it cannot be read: {one_line(url)}", err=True)


def warn_of_missing_embeddings(trained: TrainedCritic) -> None:
    """Warn if a critic would have used word embeddings that are not installed."""
    model = trained.model
    if not isinstance(model, LogisticModel) or word_vectors_installed():
        return
    if model.vectors.languages[0][0] == "en":  # they know no other language well
        click.echo(
            "Warning: this critic knows words, but not what they mean: "
            "pip install 'focuscrawl[embeddings]', and train again",
            err=True,
        )


def in_words(definition: TopicDefinition) -> str:
    """Return what a definition holds, in one line."""
    held = [
        *([f"topics {', '.join(definition.topics)}"] if definition.topics else []),
        *([pluralize(len(definition.words), "phrase")] if definition.words else []),
        pluralize(len(definition.good), "good page"),
        pluralize(len(definition.bad), "bad page"),
    ]
    return ", ".join(held)


# -- fetching examples ---------------------------------------------------------------------


def judge(pages: Sequence[PageView]) -> list[float]:
    """Return 0 for every page: the critic of a crawl of examples has nothing to go by."""
    return [0.0] * len(pages)


def fetch_examples(
    urls: Sequence[str],
    *,
    out: str,
    others: int,
    crawl_dir: str | None,
    settings: Sequence[str],
    random_state: int = 0,
    reach: int | None = None,
    web: str | None = None,
) -> Web:
    """Crawl pages, and others that their links lead to; return the recording.

    It is a crawl like any other: polite, within the same limits, kept in a folder.

    Parameters
    ----------
    urls : of the examples; what is no URL is skipped
    out : folder of the critic to be trained; the crawl gets its name
    others : pages to fetch beside the examples
    crawl_dir : folder of the crawl; None: a new one in ``crawls``
    settings : of the crawl, ``NAME=VALUE`` each
    reach : most links from the examples to the other pages, as many of each example;
        0: only where the examples are redirected to; None: any number, at random
    web : recording to take the pages from; None: the Web

    Raises
    ------
    UserError
        No page could be fetched, or the folder holds a crawl. Single pages that could not be
        fetched are named in a line.
    """
    wanted = {normalize(url) or url: normalize(url) for url in urls}
    seeds = [url for url in wanted.values() if url is not None]
    if not seeds:
        raise UserError(f"{one_line(urls[0], _WIDTH)} is no http(s) URL: name pages to learn from")
    source = None if web is None else open_web(web)
    folder = _made(crawl_dir or CrawlFolder.new_name(Path(out).name, datetime.now()), seeds)
    recording = folder / _RECORDING
    beside = f" and {pluralize(others, 'other page')}" if reach != 0 else ""
    into = recording if source is None else folder
    click.echo(f"Fetching {pluralize(len(seeds), 'example')}{beside} into {into}", err=True)
    strategy, order = "random", list[str]()
    if reach is not None:
        share = {"depth": reach, "width": -(-others // len(seeds))}
        strategy, order = "fish-search", [f"FOCUSCRAWL_STRATEGY_OPTIONS={json.dumps(share)}"]
    arguments = {
        "topic": "/good",
        "critic": f"{__name__}:{judge.__name__}",
        "strategy": strategy,
        "seeds": str(folder / _SEEDS),
        "budget": str(len(seeds) + others),
        "crawl_dir": str(folder),
        "random_state": str(random_state),
        "web": web,
    }
    # the summary that a crawl prints is about its topic: here it goes into the log
    given = [f"LOG_FILE={folder / _LOG}", *settings, *order, *_WITHOUT]
    try:
        crawl(arguments, [*given, *(_RECORDED if source is None else ())], may_fail=True)
    except SystemExit:
        _discard_refused(folder)
        raise
    none = f"none of {pluralize(len(seeds), 'example')} could be fetched as a page"
    try:
        opened = open_web(str(recording)) if source is None else source
    except UserError as error:
        why = _errors(folder) or error
        raise UserError(f"{none} ({why}); see {folder / _LOG}") from None
    read = read_known([opened], seeds)
    missing = [url for url in wanted if url not in read]
    if not read:
        raise UserError(f"{none}: {_listed(missing)}; see {folder / _LOG}")
    if missing:
        click.echo(
            f"{pluralize(len(missing), 'example')} could not be fetched as a page: "
            f"{_listed(missing)}",
            err=True,
        )
    return opened


def _made(folder: str | Path, seeds: Sequence[str]) -> Path:
    """Create the folder of the crawl, with its start pages in it."""
    folder = Path(folder)
    if CrawlFolder(folder).exists:
        raise UserError(
            f"{folder} is there already: learn from its pages with --web {folder / _RECORDING}, "
            "or name another --crawl-dir"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / _SEEDS, "\n".join(seeds))
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}") from None
    return folder


def _discard_refused(folder: Path) -> None:
    """Remove what was written for a crawl that was refused; other files stay."""
    if not CrawlFolder(folder).exists:
        for name in (_SEEDS, _LOG):
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()


def _errors(folder: Path) -> str:
    """Return why fetches failed; empty if the crawl has not started."""
    try:
        with closing(open_store(folder)) as store:
            found = Summary.of(store)
    except UserError:
        return ""
    return found.describe_errors() if found.fetched else ""


def _listed(urls: Sequence[str]) -> str:
    shown = [shorten_middle(one_line(url), _WIDTH) for url in urls[:_SHOWN]]
    more = len(urls) - len(shown)
    return ", ".join([*shown, *([f"and {more:,} more"] if more else [])])


# -- critics of one topic ------------------------------------------------------------------


@dataclass(frozen=True)
class FewExamples:
    """What the user has of one topic: phrases and some pages.

    Attributes
    ----------
    words, description : as given
    phrases : words of each phrase; the description is one
    good, bad : URLs
    name : of the topic's class, as given
    """

    words: str | None
    description: str | None
    phrases: list[list[str]]
    good: list[str]
    bad: list[str]
    name: str | None

    @property
    def given(self) -> bool:
        """Whether there is any of it."""
        return bool(self.phrases or self.good or self.bad or self.name is not None)

    @property
    def labels(self) -> list[Label]:
        """The pages as a table of two classes."""
        sides = ((ON_TOPIC, self.good), (OFF_TOPIC, self.bad))
        return [Label(url, topic, "train") for topic, urls in sides for url in urls]


def few_examples_options(command: Command) -> Command:
    """Add the options that say what a topic is; the command gets ``few``.

    `UserError` is raised if a file that they name cannot be read, or is empty.
    """

    @common_options.WORDS
    @common_options.DESCRIPTION
    @click.option("--good", help="File of URLs on the topic, one a line.")
    @click.option("--bad", help="File of URLs off the topic, one a line.")
    @common_options.BOOKMARKS
    @common_options.BOOKMARK_FOLDER
    @common_options.NAME
    @wraps(command)
    def of_topic(
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
        phrases = phrases_of(words) if words is not None else []
        if description is not None:
            phrases.append(words_of(read_description(description)))
        liked = [*(read_urls(good) if good is not None else []), *bookmarked(bookmarks, folder)]
        disliked = read_urls(bad) if bad is not None else []
        command(few=FewExamples(words, description, phrases, liked, disliked, name), **others)

    return of_topic


def train_few_examples(
    few: FewExamples,
    live: Mapping[str, Any],
    *,
    web: str | None,
    kind: str | None,
    random_state: int,
    **learning: Any,
) -> TrainedCritic:
    """Train the critic of one topic.

    Parameters
    ----------
    live : parameters of `fetch_examples`, if pages are given and no web
    """
    _check_kind(kind, few, web)
    if kind == WordsModel.kind:
        return TrainedCritic(model=read_phrases(few.words or ""))
    topic = topic_name(few.name)
    pages = [*few.good, *few.bad]
    webs = []
    if web is not None:
        webs = [open_web(web)]
    elif pages:
        webs = [fetch_examples(pages, random_state=random_state, **live)]
    with closing(Bar("Reading")) as shown:
        common: dict[str, Any] = {"random_state": random_state, "progress": shown}
        if kind in KINDS:
            return train_critic(few.labels, webs[0], kind=kind, **common, **learning)
        return train_from_little(few.phrases, few.good, few.bad, webs, topic=topic, **common)


def _check_kind(kind: str | None, few: FewExamples, web: str | None) -> None:
    """Raise `UserError` if a kind of critic cannot learn from what is given."""
    pages, text = few.good or few.bad, few.words or few.description
    if kind == WordsModel.kind and (pages or few.description or few.name or web):
        raise UserError("--kind words learns from --words alone")
    if kind in KINDS and (text or few.name or not (few.good and few.bad)):
        raise UserError(f"--kind {kind} learns from good and bad pages, both and alone")
    if kind not in {None, LogisticModel.kind, WordsModel.kind, *KINDS}:
        known = ", ".join([LogisticModel.kind, *KINDS, WordsModel.kind])
        raise UserError(f"unknown kind of critic {kind!r}: choose one of {known}")
    good, bad = ({normalize(url) or url for url in urls} for urls in (few.good, few.bad))
    both = sorted(good & bad)
    if both:
        raise UserError(f"{both[0]} is both good and bad; take it out of one")
