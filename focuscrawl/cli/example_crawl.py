"""A crawl that fetches the pages that a critic is to learn from, and others."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from focuscrawl.cli import options
from focuscrawl.cli.crawling import crawl
from focuscrawl.crawl.folder import CrawlFolder
from focuscrawl.critic.corpus import read_known
from focuscrawl.errors import UserError
from focuscrawl.foundation.drafts import write_whole
from focuscrawl.foundation.urls import normalize
from focuscrawl.report.plain_text import counted, middle, one_line
from focuscrawl.report.stores import open_store
from focuscrawl.report.summary import Summary
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from focuscrawl.page import PageView
    from focuscrawl.webs.protocol import Web

_RECORDING, _LOG, _SEEDS = "pages.warc.gz", "crawl.log", "examples.txt"
REDIRECTS = 5  #: of a page that there is room for, where no link is followed
_SHOWN, _WIDTH = 5, 100  # URLs, characters of one

#: what a project may have set for its own crawls, and such a crawl is without
_WITHOUT = [f"FOCUSCRAWL_{name}=" for name in ("KNOWLEDGE", "APPRENTICE", "WITHIN")]
#: one recording of all that is fetched, in the crawl's folder
_RECORDED = ["FOCUSCRAWL_WARC=1", "FOCUSCRAWL_WARC_SIZE=0"]


def live_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a command that fetches pages, and others, where there is no ``--web``."""
    return options.number("--others", "Without --web: pages fetched beside the examples.", 200)(
        kept_options(command)
    )


def kept_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a command that fetches pages where there is no ``--web``."""
    kept = click.option(
        "--crawl-dir", help="Without --web: where they are kept.  [default: crawls/NAME-TIME]"
    )
    return kept(options.SETTINGS(command))


def judge(pages: Sequence[PageView]) -> list[float]:
    """Judge nothing: which pages are on the topic is what is to be learned."""
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
    urls : of the examples; what is none is left out
    out : folder of the critic to be, whose name the crawl gets
    others : pages to fetch beside the examples
    crawl_dir : folder of the crawl; None: a new one in ``crawls``
    settings : of the crawl, ``NAME=VALUE`` each
    reach : links that the others are away from the examples, at most, as many of each example;
        0: only where the examples are redirected to; None: any number, at random
    web : recording to take them from; None: the Web

    Raises
    ------
    UserError
        None of the pages can be had, or the folder is there already. Those that cannot are
        named in a line.
    """
    wanted = {normalize(url) or url: normalize(url) for url in urls}
    seeds = [url for url in wanted.values() if url is not None]
    if not seeds:
        raise UserError(f"{one_line(urls[0], _WIDTH)} is no http(s) URL: name pages to learn from")
    source = None if web is None else open_web(web)
    folder = _made(crawl_dir or CrawlFolder.new_name(Path(out).name, datetime.now()), seeds)
    recording = folder / _RECORDING
    beside = f" and {counted(others, 'other page')}" if reach != 0 else ""
    into = recording if source is None else folder
    click.echo(f"Fetching {counted(len(seeds), 'example')}{beside} into {into}", err=True)
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
    # its summary is of a topic, and says nothing here
    said = [f"LOG_FILE={folder / _LOG}", *settings, *order, *_WITHOUT]
    try:
        crawl(arguments, [*said, *(_RECORDED if source is None else ())], may_fail=True)
    except SystemExit:
        _discard_refused(folder)
        raise
    try:
        opened = open_web(str(recording)) if source is None else source
    except UserError as error:
        why = _errors(folder) or error
        raise UserError(f"{_none_of(seeds)} ({why}); see {folder / _LOG}") from None
    read = read_known([opened], seeds)
    missing = [url for url in wanted if url not in read]
    if not read:
        raise UserError(f"{_none_of(seeds)}: {_listed(missing)}; see {folder / _LOG}")
    if missing:
        told = counted(len(missing), "example")
        click.echo(f"{told} could not be fetched as a page: {_listed(missing)}", err=True)
    return opened


def _made(folder: str | Path, seeds: Sequence[str]) -> Path:
    """Make the folder of the crawl, with its start pages in it."""
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
    """Remove what was written for a crawl that was refused; what else is there stays."""
    if not CrawlFolder(folder).exists:
        for name in (_SEEDS, _LOG):
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()


def _errors(folder: Path) -> str:
    """Return why fetches failed; empty where the crawl has not begun."""
    try:
        with closing(open_store(folder)) as store:
            found = Summary.of(store)
    except UserError:
        return ""
    return found.errors_in_words() if found.fetched else ""


def _none_of(seeds: Sequence[str]) -> str:
    return f"none of {counted(len(seeds), 'example')} could be fetched as a page"


def _listed(urls: Sequence[str]) -> str:
    shown = [middle(one_line(url), _WIDTH) for url in urls[:_SHOWN]]
    more = len(urls) - len(shown)
    return ", ".join([*shown, *([f"and {more:,} more"] if more else [])])
