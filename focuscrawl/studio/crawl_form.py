"""Starting crawls from a form or a script, and what they would start with."""

from __future__ import annotations

import atexit
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl_config import DEFAULT_BUDGET, DEFAULT_STRATEGY
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import write_whole
from focuscrawl.foundation.processes import start_python
from focuscrawl.foundation.urls import no_url, normalize
from focuscrawl.report.crawl_plan import CrawlPlan
from focuscrawl.strategies.registry import strategy_names
from focuscrawl.studio.jobs import PROCESS_ENVIRONMENT, JobState
from focuscrawl.studio.page_rendering import text_value, text_values
from focuscrawl.studio.served_folder import NamedCrawl, check_name
from focuscrawl.taxonomy import read_topics
from focuscrawl.topics import read_definition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.studio.jobs import Job
    from focuscrawl.studio.page_rendering import StudioContext
    from focuscrawl.studio.served_folder import StudioFolder


CRAWL = "crawl"  #: kind of these jobs
_CRAWLS_FOLDER = "crawls"  # where they are kept, in the folder
_SEEDS_FILE = "seeds.txt"
_NUMBER_PATTERN = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
_START_TIMEOUT, _POLL_INTERVAL = (
    60.0,
    0.05,
)  # seconds in which a crawl begins or says why not; between two looks
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
    def can_fetch_start_pages(self) -> bool:
        """Whether somebody has said where to start, or to read a recorded web."""
        return bool(self.seeds_argument) or not self.live


def parse_crawl_form(folder: StudioFolder, values: Mapping[str, Any]) -> NewCrawl:
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
    name = _parse_name(folder, text_value(values, "name"))
    definition = text_value(values, "definition")
    chosen = [unquote(each) for each in text_value(values, "of").partition("#")[::2]]
    critic, topic = (
        text_value(values, "critic") or chosen[0],
        text_value(values, "topic") or chosen[1],
    )
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
    seeds = [_parse_url(url) for url in text_values(values, "seeds")]
    if seeds:
        arguments["seeds"] = f"./{name}/{_SEEDS_FILE}"
    elif definition:
        path = folder.topic(definition)
        if read_definition(path).seeds:
            arguments["seeds"] = f"./{folder.name_of(path)}"
    web = text_value(values, "web")
    if web:
        arguments["web"] = folder.recording(web)
    arguments["strategy"] = _parse_strategy(text_value(values, "strategy", DEFAULT_STRATEGY))
    budget = parse_budget(text_value(values, "budget", str(DEFAULT_BUDGET)))
    arguments |= {"budget": str(budget), "crawl_dir": f"./{name}"}
    given = [part for key, value in arguments.items() for part in ("-a", f"{key}={value}")]
    for name_of_field, (setting, what) in SETTINGS.items():
        if value := text_value(values, name_of_field):
            if not _NUMBER_PATTERN.fullmatch(value):
                raise UserError(f"{what.lower()}: {value!r:.40} is no number")
            given += ["-s", f"{setting}={value}"]
    return NewCrawl(name, [CRAWL, *given], seeds, budget, live=not web)


def encode_class(critic: str, topic: str) -> str:
    """Return a class of a critic as one value of a form."""
    return f"{quote(critic, safe='')}#{quote(topic, safe='')}"


def start_crawl(context: StudioContext, crawl: NewCrawl) -> Job:
    """Begin a crawl, and wait until it has begun.

    Raises
    ------
    UserError
        It cannot be, for the reason that the command gives.
    """
    path = context.folder.safe_path(crawl.name)
    try:
        with context.job_lock():
            if _has_started(context, crawl.name):
                raise UserError(f"{crawl.name} has just been begun: take another name")
            _write_seeds(context, crawl)
            job = context.jobs.start(CRAWL, crawl.name, crawl.arguments)
        return _wait_until_crawling(context, NamedCrawl(crawl.name, path), job)
    except UserError:
        _remove_seeds(context, crawl)
        raise


def _has_started(context: StudioContext, name: str) -> bool:
    jobs = context.jobs.all(kind=CRAWL, subject=name)
    running = any(job.state is JobState.RUNNING for job in jobs)
    return running or CrawlFolder(context.folder.root / name).exists


def _write_seeds(context: StudioContext, crawl: NewCrawl) -> None:
    """Write the start URLs of a crawl where its arguments have them; UserError: it cannot be."""
    if not crawl.seeds:
        return
    path = context.folder.safe_path(crawl.name)
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_whole(path / _SEEDS_FILE, "\n".join([*crawl.seeds, ""]))
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None


def _remove_seeds(context: StudioContext, crawl: NewCrawl) -> None:
    """Remove what `_write_seeds` wrote for a crawl that was refused."""
    path = context.folder.root / crawl.name
    with context.job_lock():
        if crawl.seeds and not _has_started(context, crawl.name):
            (path / _SEEDS_FILE).unlink(missing_ok=True)
            with suppress(OSError):  # what else is in the folder is somebody's
                path.rmdir()


def resume_crawl(context: StudioContext, name: str, budget: int | None = None) -> Job:
    """Go on with a crawl that was begun here and has ended, with another budget if one is given.

    Raises
    ------
    UserError
        It was begun elsewhere, it runs, or it cannot go on.
    """
    crawl, until = context.crawl(name), time.monotonic() + _START_TIMEOUT

    def running() -> bool:
        jobs = context.jobs.all(kind=CRAWL, subject=name)
        return bool(jobs) and jobs[0].state is JobState.RUNNING

    while running() and not crawl.control.in_use and time.monotonic() < until:
        time.sleep(_POLL_INTERVAL)  # the process is about to begin or to be gone
    with context.job_lock():
        earlier = context.jobs.all(kind=CRAWL, subject=name)
        if running() or crawl.control.in_use:
            raise UserError(f"{name} is being crawled: it goes on")
        if not earlier:
            given = "" if budget is None else f", with -a budget={budget}"
            raise UserError(
                f"{name} was begun on the command line: give the command that began it "
                f"again{given}"
            )
        arguments = earlier[0].arguments
        check_arguments(context.folder, crawl, arguments)
        if budget is not None:
            said = f"budget={budget}"
            arguments = [said if each.startswith("budget=") else each for each in arguments]
        job = context.jobs.start(CRAWL, crawl.name, arguments)
    return _wait_until_crawling(context, crawl, job)


def change_budget(context: StudioContext, crawl: NamedCrawl, budget: int) -> None:
    """Give a crawl another budget, and wait until it has it: as it runs, or by going on.

    Raises
    ------
    UserError
        It can have none.
    """
    control, asked, until = crawl.control, False, time.monotonic() + _START_TIMEOUT
    while control.in_use:
        if time.monotonic() >= until:
            if asked:
                return  # it has it when it looks
            raise UserError(f"{crawl.name} is starting: give it a budget when it crawls")
        if not asked and not control.is_starting:
            control.extend(budget)
            asked = True
        elif asked and not control.is_extending:
            return
        time.sleep(_POLL_INTERVAL)
    resume_crawl(context, crawl.name, budget)  # it was at rest, or has ended before it looked


def _wait_until_crawling(context: StudioContext, crawl: NamedCrawl, job: Job) -> Job:
    """Wait until a process crawls; UserError: it has ended at once."""
    until = time.monotonic() + _START_TIMEOUT
    while time.monotonic() < until:
        if job.state is JobState.FAILED:
            raise UserError(job.output.rpartition("\n")[2] or f"{crawl.name} has not begun")
        if job.state is JobState.DONE or _is_running(crawl):
            break
        time.sleep(_POLL_INTERVAL)
        job = context.jobs.job(job.id)
    return job


def _is_running(crawl: NamedCrawl) -> bool:
    folder = CrawlFolder(crawl.path)
    return folder.in_use and folder.exists


def parse_budget(text: str) -> int:
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
            case "-a", "seeds" if folder.has_file(value):
                pass
            case "-a", "web":
                folder.recording(value.removeprefix("./"))
            case "-a", "strategy":
                _parse_strategy(value)
            case "-a", "budget":
                parse_budget(value)
            case "-a", "crawl_dir" if value == f"./{crawl.name}":
                pass
            case "-s", _ if key in settings and _NUMBER_PATTERN.fullmatch(value):
                pass
            case _:
                raise odd


def _parse_name(folder: StudioFolder, name: str) -> str:
    check_name(name)
    path = folder.safe_path(f"{_CRAWLS_FOLDER}/{name}")
    if CrawlFolder(path).exists:
        raise UserError(
            f"{_CRAWLS_FOLDER}/{name} is a crawl already: take another name, or go on with it"
        )
    return f"{_CRAWLS_FOLDER}/{name}"


def _parse_url(line: str) -> str:
    url = normalize(line)
    if url is None:
        raise UserError(f"{line!r:.120} {no_url(line)}")
    return url


def _parse_strategy(name: str) -> str:
    if name not in strategy_names():
        raise UserError(f"there is no strategy {name!r:.40}")
    return name


_MAX_RESULTS = 32  # outlooks
_MAX_START_PAGES = 20  # start pages
_OUTLOOK_TIMEOUT = 180.0  # seconds
_FORM_TIMEOUT = (
    4.0  # seconds for which a form that has asked is taken to wait: it asks every second
)
_UNREACHABLE_CODE = 3  # exit code of a plan that could fetch no page
#: arguments of a crawl on which the start pages, or what becomes of them, depend
_OUTLOOK_ARGUMENTS = ("critic=", "topic=", "web=", "DOWNLOAD_DELAY=")


@dataclass
class StartPagesResult:
    """What is known of a crawl's start pages.

    Attributes
    ----------
    outlook : None: not known yet, or not to be had
    error : why it is not to be had, a sentence
    requested_at : when it was last asked for, on the clock of this process
    """

    outlook: CrawlPlan | None = None
    error: str | None = None
    requested_at: float = field(default_factory=time.monotonic)

    def is_known(self) -> bool:
        """Tell whether the pages have been judged, or cannot be."""
        return self.outlook is not None or self.error is not None


class OutlookRunner:
    """Has `focuscrawl plan` judge start pages, of one crawl at a time; for any thread.

    What is known is kept, so pages are fetched once, whatever else of the form is changed. What
    no form asks for any more is given up for the next.

    Parameters
    ----------
    root : folder that the processes work in
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._results: OrderedDict[tuple[str, ...], StartPagesResult] = OrderedDict()
        self._lock = threading.Lock()
        self._current: tuple[StartPagesResult, subprocess.Popen[str]] | None = None
        atexit.register(self.cancel)

    def get(self, crawl: NewCrawl, *, start: bool) -> StartPagesResult | None:
        """Return what is known by now; None: nothing, and nobody is to find out.

        Parameters
        ----------
        start : have the start pages judged if they are not
        """
        given = [each for each in crawl.arguments if each.startswith(_OUTLOOK_ARGUMENTS)]
        given += [] if crawl.seeds else crawl.seeds_argument
        key = (*given, *crawl.seeds)
        with self._lock:
            found = self._results.get(key)
            if found is not None:
                found.requested_at = time.monotonic()
            elif start and self._is_busy():
                found = StartPagesResult()  # whoever asks for it asks again
            elif start:
                self._cancel()
                found = self._results[key] = StartPagesResult()
                arguments = (found, given, crawl.seeds)
                threading.Thread(target=self._run_plan, args=arguments, daemon=True).start()
                while len(self._results) > _MAX_RESULTS:
                    self._results.popitem(last=False)
            return found

    def cancel(self) -> None:
        """Give up what is being judged, as when the crawl itself begins."""
        with self._lock:
            self._cancel()

    def _is_busy(self) -> bool:
        """Tell whether pages are being judged that somebody waits for."""
        since = time.monotonic() - _FORM_TIMEOUT
        return any(
            not each.is_known() and each.requested_at > since for each in self._results.values()
        )

    def _run_plan(
        self, found: StartPagesResult, given: Sequence[str], seeds: Sequence[str]
    ) -> None:
        with tempfile.TemporaryDirectory(
            prefix="focuscrawl-studio-", ignore_cleanup_errors=True
        ) as name:
            arguments = [*given]
            if seeds:
                listed = Path(name, "seeds.txt")
                listed.write_text("\n".join(seeds), encoding="utf-8")
                arguments.append(f"seeds={listed}")
            command = ["-m", "focuscrawl", "plan", "--json"]
            command += ["--most", str(_MAX_START_PAGES)]
            for each in arguments:
                command += ["-s" if each.startswith("DOWNLOAD_DELAY=") else "-a", each]
            with self._lock:
                if found.is_known():  # another form has come first
                    return
                process = start_python(
                    command,
                    variables={**PROCESS_ENVIRONMENT, "TMPDIR": name},
                    cwd=self._root,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,  # it has processes of its own, which end with it
                )
                self._current = found, process
            try:
                said, wrong = process.communicate(timeout=_OUTLOOK_TIMEOUT)
            except subprocess.TimeoutExpired:
                _kill(process)
                said, wrong = "", f"they were not there after {_OUTLOOK_TIMEOUT / 60:.0f} minutes"
            with self._lock:
                if found.is_known():
                    return
                self._current = None
                _store_result(found, process.returncode, said, wrong)

    def _cancel(self) -> None:
        """End what judges pages that nobody asks for any more; it is asked anew if need be."""
        for key, each in [*self._results.items()]:
            if not each.is_known():
                each.error = "Others were asked for."
                del self._results[key]
        if self._current is not None:
            _kill(self._current[1])
            self._current = None


def _store_result(found: StartPagesResult, code: int, said: str, wrong: str) -> None:
    try:
        if code not in (0, _UNREACHABLE_CODE):
            raise UserError(wrong.strip().rpartition("\n")[2] or "nothing was said")
        found.outlook = CrawlPlan.from_dict(json.loads(said.strip().rpartition("\n")[2]))
    except (UserError, ValueError) as error:
        found.error = f"The start pages could not be judged: {error}"


def _kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
