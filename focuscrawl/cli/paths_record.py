"""``focuscrawl paths record``: walk a site in the terminal, and keep the paths."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from focuscrawl.cli import options
from focuscrawl.errors import UserError
from focuscrawl.foundation.networks import Networks
from focuscrawl.foundation.urls import no_url, normalize
from focuscrawl.paths.recording import Walk, link_choices
from focuscrawl.paths.site_path import read_paths, write_paths
from focuscrawl.paths.states import FAIL, GOAL
from focuscrawl.paths.web_pages import WebPages
from focuscrawl.report.plain_text import counted, one_line
from focuscrawl.webs import open_web
from focuscrawl.webs.live import LiveWeb
from focuscrawl.webs.warc_recorder import WarcRecorder

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.paths.recording import LinkChoice

_KEYS = (
    "NUMBER: take a link   /WORDS: only links with these words   m LABEL: a milestone",
    "g: a goal   f: a dead end   b: back   u: undo   q: save and quit",
)
_SHOWN = 40  # links
_WIDTH = 60


@click.command()
@click.argument("start", metavar="START_URL")
@options.out("paths.jsonl; paths in it stay.")
@click.option("--web", help="Walk a recorded web, or `demo`.  [default: the live Web]")
@options.path(
    "--warc", "Live: where pages are recorded, to train on.  [default: beside --out, .warc.gz]"
)
@click.option("--agent", help="Live: the User-Agent to send.")
@click.option(
    "--private",
    default="",
    metavar="ADDRESSES",
    help="Live: private addresses that may be visited, comma-separated.",
)
def record(
    *, start: str, out: Path, web: str | None, warc: Path | None, agent: str | None, private: str
) -> None:
    """Walk a site, link by link, and save the paths to goals and to dead ends.

    A goal or a dead end ends a path, and you are back on the page before it. Pages on the way
    may be labelled as milestones (`m people`); sites of a kind should get the same labels.

    \b
    focuscrawl paths record https://example.org/ --out people.jsonl
    focuscrawl paths train people.jsonl --web people.warc.gz --out models/people
    """
    door = normalize(start)
    if door is None:
        raise UserError(f"{start} {no_url(start)}")
    kept = read_paths(out) if out.exists() else []
    with ExitStack() as opened:
        if web is not None:
            source = open_web(web)
            (known,) = source.resolve([door])
            if known is None:
                raise UserError(
                    f"{start} is not in {web}: `focuscrawl web urls {web}` lists what is"
                )
            pages, door = WebPages(source), known
        else:
            networks = Networks.of(filter(None, private.split(",")))
            recorder = opened.enter_context(
                WarcRecorder(warc or out.with_name(f"{out.name.partition('.')[0]}.warc.gz"))
            )
            pages = WebPages(LiveWeb(networks, recorder, *([] if agent is None else [agent])))
        session = _Session(pages, Walk.begin(door))
        try:
            session.run()
        finally:  # an interrupt must not lose what was clicked
            saved = session.walk.saved
            if saved:
                write_paths([*kept, *saved], out)
            click.echo(f"{counted(len(saved), 'path')} saved" + (f" in {out}" if saved else ""))


class _Session:
    """The dialogue: shows a page, reads a key, goes on."""

    def __init__(self, pages: WebPages, walk: Walk) -> None:
        self._pages = pages
        self._past: list[Walk] = []
        self._words = ""
        self.walk = walk
        if pages.view(walk.here) is None:
            raise UserError(f"{walk.here} is no page")

    def run(self) -> None:
        """Go on until the person quits, or there is no more input."""
        shown = self._show()
        while True:
            click.echo("> ", nl=False)
            line = sys.stdin.readline()
            if not line or line.strip() in {"q", "quit"}:
                return
            try:
                shown = self._obey(line.strip(), shown)
            except UserError as error:
                click.echo(one_line(str(error)))

    def _obey(self, line: str, shown: list[LinkChoice]) -> list[LinkChoice]:
        """Do what a line asks for; return the links that have numbers now."""
        if line.startswith("/"):
            self._words = line[1:].strip().lower()
            return self._show()
        if line.isdecimal():
            if not 1 <= int(line) <= len(shown):
                raise UserError(f"there is no link {line}: they go from 1 to {len(shown)}")
            to = shown[int(line) - 1].url
            if self._pages.view(to) is None:
                raise UserError(f"{to} is no page: take another link")
            return self._go(self.walk.follow(to))
        if line == "u" and self._past:
            self.walk = self._past.pop()
            return self._show()
        done = self._done(line)
        if done is not None:
            return self._go(done)
        click.echo("\n".join(_KEYS))
        return shown

    def _done(self, line: str) -> Walk | None:
        """Return the walk after a key that says what the page here is; None: no such key."""
        label = line.removeprefix("m ").strip()
        if line.startswith("m ") and label not in {"", GOAL, FAIL}:
            return self.walk.milestone(label)
        if line in {"g", "f"} and len(self.walk.pages) > 1:
            return self.walk.end(goal=line == "g")
        return self.walk.back() if line == "b" else None

    def _go(self, walk: Walk) -> list[LinkChoice]:
        self._past.append(self.walk)
        self.walk, self._words = walk, ""
        return self._show()

    def _show(self) -> list[LinkChoice]:
        """Show the page, and return the links that have a number."""
        walk = self.walk
        view = self._pages.view(walk.here)
        assert view is not None
        found = [
            door
            for door in link_choices(view, self._pages.targets(walk.here))
            if self._words in f"{door.anchor} {door.url}".lower()
        ]
        label = f"  [{walk.labels[-1]}]" if walk.labels[-1] else ""
        click.echo(f"\n{one_line(view.title, _WIDTH) or 'no title'}{label}")
        click.echo(
            f"{one_line(walk.here)}  (click {len(walk.pages) - 1}, {len(walk.saved)} saved)"
        )
        for number, door in enumerate(found[:_SHOWN], 1):
            click.echo(
                f"{number:>4}  {one_line(door.anchor, _WIDTH) or '-'}  {one_line(door.url)}"
            )
        if len(found) > _SHOWN:
            click.echo(f"      and {len(found) - _SHOWN} more: /WORDS shows those with the words")
        return found
