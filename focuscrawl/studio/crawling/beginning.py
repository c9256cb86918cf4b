"""Begins crawls: what a form or a script says becomes the command that people would type."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.plan import CrawlPlan
from focuscrawl.errors import UserError
from focuscrawl.foundation.drafts import write_whole
from focuscrawl.foundation.urls import no_url, normalize
from focuscrawl.strategies.registry import strategy_names
from focuscrawl.studio.crawls import NamedCrawl
from focuscrawl.studio.folder import check_name
from focuscrawl.studio.jobs import JobState
from focuscrawl.studio.posted import text_of, texts_of
from focuscrawl.taxonomy import read_topics
from focuscrawl.topics import read_definition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.studio.desk import Desk
    from focuscrawl.studio.folder import StudioFolder
    from focuscrawl.studio.jobs import Job

CRAWL = "crawl"  #: kind of these jobs
_CRAWLS = "crawls"  # where they are kept, in the folder
_SEEDS = "seeds.txt"
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
_LONG, _BETWEEN = 60.0, 0.05  # seconds in which a crawl begins or says why not; between two looks
#: what else a form may set: name of the field, setting, and what it is called to people
SETTINGS = {
    "delay": ("DOWNLOAD_DELAY", "Seconds between two pages of a host"),
    "patience": ("FOCUSCRAWL_PATIENCE", "Seconds to wait for one more relevant page"),
    "stagnation": ("FOCUSCRAWL_STAGNATION", "End after so many fetches without a relevant page"),
}


@dataclass(frozen=True)
class NewCrawl:
    """A crawl that is to begin.

    Attributes
    ----------
    name : in the folder
    arguments : what is typed after ``focuscrawl``
    seeds : start URLs of its own; empty: they come from a file, or from the critic
    budget : fetches; 0: no limit
    live : whether it crawls the live Web
    """

    name: str
    arguments: list[str]
    seeds: list[str]
    budget: int
    live: bool

    @property
    def seeds_argument(self) -> list[str]:
        """The argument that names its start URLs; none where the critic's examples are those."""
        return [each for each in self.arguments if each.startswith("seeds=")]

    @property
    def is_told_where(self) -> bool:
        """Whether somebody has said where to begin, or to read a recorded web."""
        return bool(self.seeds_argument) or not self.live


def read_crawl(folder: StudioFolder, values: Mapping[str, Any]) -> NewCrawl:
    """Check what was said of a crawl.

    Parameters
    ----------
    values : ``name``; ``critic``, one of the folder or ``models/demo``, and ``topic``, classes of
        it, or both as `choice` puts them in ``of``; ``definition``, whose seeds it takes;
        ``seeds``, URLs; ``budget``; ``web``, empty for the live Web; ``strategy``; and those of
        `SETTINGS`

    Raises
    ------
    UserError
        Something makes no sense.
    """
    name = _new_name(folder, text_of(values, "name"))
    definition = text_of(values, "definition")
    chosen = [unquote(each) for each in text_of(values, "of").partition("#")[::2]]
    critic, topic = text_of(values, "critic") or chosen[0], text_of(values, "topic") or chosen[1]
    if not critic:
        raise UserError("choose what to crawl: train a critic for your topic first")
    found = folder.critic(critic)
    here = isinstance(found, Path) and found.is_relative_to(folder.root)
    arguments = {
        "critic": f"./{critic}" if here else critic,
        "topic": ",".join(read_topics(topic)),
    }
    if not arguments["topic"]:
        raise UserError("say which class of the critic is the topic")
    seeds = [_checked(url) for url in texts_of(values, "seeds")]
    if seeds:
        arguments["seeds"] = f"./{name}/{_SEEDS}"
    elif definition:
        path = folder.topic(definition)
        if read_definition(path).seeds:
            arguments["seeds"] = f"./{folder.name_of(path)}"
    web = text_of(values, "web")
    if web:
        arguments["web"] = folder.recording(web)
    arguments["strategy"] = _strategy(text_of(values, "strategy", CrawlPlan.strategy))
    budget = read_budget(text_of(values, "budget", str(CrawlPlan.budget)))
    arguments |= {"budget": str(budget), "crawl_dir": f"./{name}"}
    given = [part for key, value in arguments.items() for part in ("-a", f"{key}={value}")]
    for field, (setting, what) in SETTINGS.items():
        if value := text_of(values, field):
            if not _NUMBER.fullmatch(value):
                raise UserError(f"{what.lower()}: {value!r:.40} is no number")
            given += ["-s", f"{setting}={value}"]
    return NewCrawl(name, [CRAWL, *given], seeds, budget, live=not web)


def choice(critic: str, topic: str) -> str:
    """Return a class of a critic as one value of a form."""
    return f"{quote(critic, safe='')}#{quote(topic, safe='')}"


def begin(desk: Desk, crawl: NewCrawl) -> Job:
    """Begin a crawl, and wait until it has begun.

    Raises
    ------
    UserError
        It cannot be, for the reason that the command gives.
    """
    path = desk.folder.place(crawl.name)
    try:
        with desk.beginning():
            if _is_begun(desk, crawl.name):
                raise UserError(f"{crawl.name} has just been begun: take another name")
            _keep_seeds(desk, crawl)
            job = desk.jobs.begin(CRAWL, crawl.name, crawl.arguments)
        return _begun(desk, NamedCrawl(crawl.name, path), job)
    except UserError:
        _discard_seeds(desk, crawl)
        raise


def _is_begun(desk: Desk, name: str) -> bool:
    jobs = desk.jobs.all(kind=CRAWL, subject=name)
    running = any(job.state is JobState.RUNNING for job in jobs)
    return running or CrawlFolder(desk.folder.root / name).exists


def _keep_seeds(desk: Desk, crawl: NewCrawl) -> None:
    """Write the start URLs of a crawl where its arguments have them; UserError: it cannot be."""
    if not crawl.seeds:
        return
    path = desk.folder.place(crawl.name)
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_whole(path / _SEEDS, "\n".join([*crawl.seeds, ""]))
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None


def _discard_seeds(desk: Desk, crawl: NewCrawl) -> None:
    """Remove what `_keep_seeds` wrote for a crawl that was refused."""
    path = desk.folder.root / crawl.name
    with desk.beginning():
        if crawl.seeds and not _is_begun(desk, crawl.name):
            (path / _SEEDS).unlink(missing_ok=True)
            with suppress(OSError):  # what else is in the folder is somebody's
                path.rmdir()


def go_on(desk: Desk, name: str, budget: int | None = None) -> Job:
    """Go on with a crawl that was begun here and has ended, with another budget if one is given.

    Raises
    ------
    UserError
        It was begun elsewhere, it runs, or it cannot go on.
    """
    crawl, until = desk.crawl(name), time.monotonic() + _LONG

    def running() -> bool:
        jobs = desk.jobs.all(kind=CRAWL, subject=name)
        return bool(jobs) and jobs[0].state is JobState.RUNNING

    while running() and not crawl.control.in_use and time.monotonic() < until:
        time.sleep(_BETWEEN)  # the process is about to begin or to be gone
    with desk.beginning():
        earlier = desk.jobs.all(kind=CRAWL, subject=name)
        if running() or crawl.control.in_use:
            raise UserError(f"{name} is being crawled: it goes on")
        if not earlier:
            given = "" if budget is None else f", with -a budget={budget}"
            raise UserError(
                f"{name} was begun on the command line: give the command that began it "
                f"again{given}"
            )
        arguments = earlier[0].arguments
        check_arguments(desk.folder, crawl, arguments)
        if budget is not None:
            said = f"budget={budget}"
            arguments = [said if each.startswith("budget=") else each for each in arguments]
        job = desk.jobs.begin(CRAWL, crawl.name, arguments)
    return _begun(desk, crawl, job)


def give_budget(desk: Desk, crawl: NamedCrawl, budget: int) -> None:
    """Give a crawl another budget, and wait until it has it: as it runs, or by going on.

    Raises
    ------
    UserError
        It can have none.
    """
    control, asked, until = crawl.control, False, time.monotonic() + _LONG
    while control.in_use:
        if time.monotonic() >= until:
            if asked:
                return  # it has it when it looks
            raise UserError(f"{crawl.name} is starting: give it a budget when it crawls")
        if not asked and not control.starting:
            control.extend(budget)
            asked = True
        elif asked and not control.extending:
            return
        time.sleep(_BETWEEN)
    go_on(desk, crawl.name, budget)  # it was at rest, or has ended before it looked


def _begun(desk: Desk, crawl: NamedCrawl, job: Job) -> Job:
    """Wait until a process crawls; UserError: it has ended at once."""
    until = time.monotonic() + _LONG
    while time.monotonic() < until:
        if job.state is JobState.FAILED:
            raise UserError(job.said.rpartition("\n")[2] or f"{crawl.name} has not begun")
        if job.state is JobState.DONE or _is_crawled(crawl):
            break
        time.sleep(_BETWEEN)
        job = desk.jobs.job(job.id)
    return job


def _is_crawled(crawl: NamedCrawl) -> bool:
    folder = CrawlFolder(crawl.place)
    return folder.in_use and folder.exists


def read_budget(text: str) -> int:
    """Return a budget; UserError if it is none."""
    if not text.isascii() or not text.isdecimal() or len(text) > 12:
        raise UserError(f"a budget is a number of fetches, 0 for no limit, not {text!r:.40}")
    return int(text)


def check_arguments(folder: StudioFolder, crawl: NamedCrawl, arguments: list[str]) -> None:
    """Refuse what a form cannot have said: who has sent the folder may have written it."""
    odd = UserError(
        f"{crawl.name} was begun in a way that the studio does not know: begin it by hand"
    )
    if arguments[:1] != [CRAWL] or len(arguments) % 2 == 0:
        raise odd
    settings = {setting for setting, _ in SETTINGS.values()}
    for option, said in zip(arguments[1::2], arguments[2::2], strict=True):
        key, _, value = said.partition("=")
        match option, key:
            case "-a", "critic":
                folder.critic(value.removeprefix("./"))
            case "-a", "topic":
                read_topics(value)
            case "-a", "seeds" if folder.holds(value):
                pass
            case "-a", "web":
                folder.recording(value.removeprefix("./"))
            case "-a", "strategy":
                _strategy(value)
            case "-a", "budget":
                read_budget(value)
            case "-a", "crawl_dir" if value == f"./{crawl.name}":
                pass
            case "-s", _ if key in settings and _NUMBER.fullmatch(value):
                pass
            case _:
                raise odd


def _new_name(folder: StudioFolder, name: str) -> str:
    check_name(name)
    path = folder.place(f"{_CRAWLS}/{name}")
    if CrawlFolder(path).exists:
        raise UserError(
            f"{_CRAWLS}/{name} is a crawl already: take another name, or go on with it"
        )
    return f"{_CRAWLS}/{name}"


def _checked(line: str) -> str:
    url = normalize(line)
    if url is None:
        raise UserError(f"{line!r:.120} {no_url(line)}")
    return url


def _strategy(name: str) -> str:
    if name not in strategy_names():
        raise UserError(f"there is no strategy {name!r:.40}")
    return name
