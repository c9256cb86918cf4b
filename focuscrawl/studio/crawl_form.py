"""Starts and resumes crawls from forms of the studio, and checks start pages before a crawl."""

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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from focuscrawl.collection.corpus_folder import ORDER_FILE
from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl_config import DEFAULT_BUDGET, DEFAULT_CRITIC, DEFAULT_STRATEGY
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import reporting_write_errors, write_atomically
from focuscrawl.foundation.processes import start_python
from focuscrawl.foundation.urls import parse_url
from focuscrawl.report.crawl_plan import CrawlPlan
from focuscrawl.strategies.base import describe_strategy, strategy_names
from focuscrawl.studio.jobs import PROCESS_ENVIRONMENT, JobState
from focuscrawl.studio.page_rendering import FieldChecks, text_value, text_values
from focuscrawl.studio.served_folder import DEMO, NamedCrawl, parse_name
from focuscrawl.taxonomy import parse_topics
from focuscrawl.topics import TopicDefinition, read_definition

if TYPE_CHECKING:
    from focuscrawl.studio.jobs import Job
    from focuscrawl.studio.page_rendering import StudioContext
    from focuscrawl.studio.served_folder import StudioFolder


CRAWL = "crawl"  #: kind of the jobs that crawl
_CRAWLS_FOLDER = "crawls"  # in the served folder
_SEEDS_FILE = "seeds.txt"
_RECOMMENDED = (DEFAULT_STRATEGY, "best-first", "hard-focus", "hubs")
_LIVE = "live"  # value of the field ``web`` for the live Web
_NUMBER_PATTERN = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
_START_TIMEOUT, _POLL_INTERVAL = 60.0, 0.05  # seconds
#: settings of a form: name of the field, Scrapy setting, label
SETTINGS = {
    "delay": ("DOWNLOAD_DELAY", "Seconds between two requests to a host"),
    "patience": ("FOCUSCRAWL_PATIENCE", "Seconds to wait for a busy host, per relevant page"),
    "stagnation": (
        "FOCUSCRAWL_STAGNATION",
        "Stop after this many fetches without a relevant page",
    ),
}


@dataclass(frozen=True)
class NewCrawl:
    """The arguments of a new crawl, read from a form of the studio."""

    name: str  # path below the served folder
    arguments: list[str]  # command line after "focuscrawl"
    seeds: list[str]  # start URLs of the form; empty: those of a file, or the critic's examples
    budget: int  # fetches; 0: no limit
    web: str | None  # recording as an argument of a command; None: the live Web

    @property
    def seeds_argument(self) -> list[str]:
        """The crawl argument ``seeds``; empty if the critic's examples are the start URLs."""
        return [each for each in self.arguments if each.startswith("seeds=")]

    @property
    def can_fetch_start_pages(self) -> bool:
        """Whether the start pages can be fetched before the crawl."""
        return bool(self.seeds_argument) or self.web is not None


def parse_crawl_form(folder: StudioFolder, values: Mapping[str, Any]) -> NewCrawl:
    """Parse and check the form of a new crawl; raise `UserError` if a value is invalid.

    The form has the fields ``name`` (empty: the name of the topic), ``budget``, ``web`` (a
    recording, ``live``, or empty), ``strategy``, and the fields in `SETTINGS`. The critic, the
    topic and a topic definition are in the fields ``critic``, ``topic`` and ``definition``, or
    together in the field ``of`` (a value of `encode_choice`). The field ``seeds`` contains the
    start URLs; if the field is empty, the crawl starts from the seeds of the topic definition.

    If ``web`` is empty, a crawl for a topic in the field ``of`` uses the recording that the topic
    definition names. If the start pages are pages of the demo web, the crawl uses the demo web.
    """
    checks, name, seeds, budget = FieldChecks(), "", list[str](), 0
    arguments: dict[str, str] = {}
    chosen = [unquote(each) for each in text_value(values, "of").split("#")]
    critic, topic, definition = (*chosen, "", "", "")[:3]
    critic = text_value(values, "critic") or critic
    with checks.field("critic" if "critic" in values else "of"):
        if not critic:
            raise UserError("no critic is chosen: create a topic, and train a critic first")
        found = folder.critic(critic)
        is_local = isinstance(found, Path) and found.is_relative_to(folder.root)
        arguments["critic"] = f"./{critic}" if is_local else critic
    with checks.field("topic" if text_value(values, "topic") else "of"):
        arguments["topic"] = ",".join(parse_topics(text_value(values, "topic") or topic))
        if critic and not arguments["topic"]:
            raise UserError("choose the class of the critic that is the topic")
    with checks.field("seeds"):
        seeds = [parse_url(url, f"{url!r:.120}") for url in text_values(values, "seeds")]
    known, in_field = TopicDefinition(), "definition" in values
    with checks.field("definition" if in_field else "of"):
        if definition or (definition := text_value(values, "definition")):
            known = read_definition(folder.topic(definition))
    with checks.field("name"):
        of = PurePath(definition).parent.name or PurePath(arguments.get("topic", "")).name
        name = _parse_name(folder, text_value(values, "name") or free_name(folder, of or CRAWL))
    if seeds:
        arguments["seeds"] = f"./{name}/{_SEEDS_FILE}"
    elif known.seeds:
        arguments["seeds"] = f"./{definition}"
    web, recording = text_value(values, "web"), None
    with checks.field("web"):
        if not web and not in_field:
            web = known.web or ""
        if not (web or seeds or known.seeds) and critic == DEFAULT_CRITIC:
            web = DEMO
        if web != _LIVE:
            recording = folder.recording_of(seeds or known.seeds, web)
        if recording is not None:
            arguments["web"] = recording
    with checks.field("strategy"):
        strategy = text_value(values, "strategy", DEFAULT_STRATEGY)
        arguments["strategy"] = _parse_strategy(strategy)
    with checks.field("budget"):
        budget = parse_budget(text_value(values, "budget", str(DEFAULT_BUDGET)))
    arguments |= {"budget": str(budget), "crawl_dir": f"./{name}"}
    given = [part for key, value in arguments.items() for part in ("-a", f"{key}={value}")]
    given += _parse_settings(values, checks)
    checks.finish()
    return NewCrawl(name, [CRAWL, *given], seeds, budget, recording)


def _parse_settings(values: Mapping[str, Any], checks: FieldChecks) -> list[str]:
    """Return the settings in a form as options of a command."""
    given = list[str]()
    for name, (setting, what) in SETTINGS.items():
        with checks.field(name):
            if value := text_value(values, name):
                if not _NUMBER_PATTERN.fullmatch(value):
                    raise UserError(f"{what}: {value!r:.40} is not a number")
                given += ["-s", f"{setting}={value}"]
    return given


def encode_choice(critic: str, topics: str, definition: str = "") -> str:
    """Return a form value that contains a critic, its on-topic classes and a topic definition."""
    return "#".join(quote(each, safe="") for each in (critic, topics, definition))


def group_strategies() -> dict[str, dict[str, str]]:
    """Return the strategies, grouped by purpose, each with a sentence that describes it."""
    names = strategy_names()
    groups = {
        "Recommended": [name for name in _RECOMMENDED if name in names],
        "For comparison": [name for name in names if name not in _RECOMMENDED],
    }
    return {
        group: {name: describe_strategy(name) for name in found} for group, found in groups.items()
    }


def start_crawl(context: StudioContext, crawl: NewCrawl) -> Job:
    """Start a new crawl, and wait until the crawl fetches pages."""
    path = context.folder.safe_path(crawl.name)
    try:
        with context.job_lock():
            if _has_started(context, crawl.name):
                raise UserError(f"{crawl.name} has already been started: choose another name")
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
    if not crawl.seeds:
        return
    path = context.folder.safe_path(crawl.name)
    with reporting_write_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        write_atomically(path / _SEEDS_FILE, "\n".join([*crawl.seeds, ""]))


def _remove_seeds(context: StudioContext, crawl: NewCrawl) -> None:
    """Remove the file of start URLs of a crawl that did not start."""
    path = context.folder.root / crawl.name
    with context.job_lock():
        if crawl.seeds and not _has_started(context, crawl.name):
            (path / _SEEDS_FILE).unlink(missing_ok=True)
            with suppress(OSError):  # the folder has other files
                path.rmdir()


def resume_crawl(context: StudioContext, name: str, budget: int | None = None) -> Job:
    """Resume a stopped crawl that was started in the studio, optionally with a new budget."""
    crawl, until = context.crawl(name), time.monotonic() + _START_TIMEOUT

    def running() -> bool:
        jobs = context.jobs.all(kind=CRAWL, subject=name)
        return bool(jobs) and jobs[0].state is JobState.RUNNING

    while running() and not crawl.control.in_use and time.monotonic() < until:
        time.sleep(_POLL_INTERVAL)  # the process is starting or exiting
    with context.job_lock():
        earlier = context.jobs.all(kind=CRAWL, subject=name)
        if running() or crawl.control.in_use:
            raise UserError(f"{name} is running already")
        if not earlier:
            if context.folder.has_file(f"{name.rpartition('/')[0]}/{ORDER_FILE}"):
                raise UserError(
                    f"{name} belongs to a corpus: resume the crawl on the page of the corpus"
                )
            option = "" if budget is None else f" with -a budget={budget}"
            raise UserError(
                f"{name} was started on the command line: run the same command again{option}"
            )
        arguments = earlier[0].arguments
        check_arguments(context.folder, crawl, arguments)
        if budget is not None:
            new = f"budget={budget}"
            arguments = [new if each.startswith("budget=") else each for each in arguments]
        job = context.jobs.start(CRAWL, crawl.name, arguments)
    return _wait_until_crawling(context, crawl, job)


def change_budget(context: StudioContext, crawl: NamedCrawl, budget: int) -> None:
    """Change the budget of a running crawl, or resume a stopped crawl with a new budget."""
    control, asked, until = crawl.control, False, time.monotonic() + _START_TIMEOUT
    while control.in_use:
        if time.monotonic() >= until:
            if asked:
                return  # the crawl will read the request later
            raise UserError(f"{crawl.name} is still starting: set the budget after the start")
        if not asked and not control.is_starting:
            control.set_budget(budget)
            asked = True
        elif asked and control.budget is None:
            return
        time.sleep(_POLL_INTERVAL)
    # the crawl was stopped, or stopped before it read the request
    resume_crawl(context, crawl.name, budget)


def _wait_until_crawling(context: StudioContext, crawl: NamedCrawl, job: Job) -> Job:
    """Wait until a job is crawling; raise `UserError` if it fails."""
    until = time.monotonic() + _START_TIMEOUT
    while time.monotonic() < until:
        if job.state is JobState.FAILED:
            raise UserError(job.message or f"{crawl.name} did not start")
        if job.state is JobState.DONE or _is_running(crawl):
            break
        time.sleep(_POLL_INTERVAL)
        job = context.jobs.job(job.id)
    return job


def _is_running(crawl: NamedCrawl) -> bool:
    folder = CrawlFolder(crawl.path)
    return folder.in_use and folder.exists


def parse_budget(text: str) -> int:
    """Parse the budget in a form; raise `UserError` if the budget is invalid."""
    if not text.isascii() or not text.isdecimal() or len(text) > 12:
        raise UserError(f"budget {text!r:.40} is not a number of fetches (0: no limit)")
    return int(text)


def check_arguments(folder: StudioFolder, crawl: NamedCrawl, arguments: list[str]) -> None:
    """Raise `UserError` for crawl arguments that no form of the studio produces."""
    unknown = UserError(
        f"{crawl.name} has arguments that the studio does not know: resume it on the command line"
    )
    if arguments[:1] != [CRAWL] or len(arguments) % 2 == 0:
        raise unknown
    settings = {setting for setting, _ in SETTINGS.values()}
    for option, argument in zip(arguments[1::2], arguments[2::2], strict=True):
        key, _, value = argument.partition("=")
        match option, key:
            case "-a", "critic":
                folder.critic(value.removeprefix("./"))
            case "-a", "topic":
                parse_topics(value)
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
                raise unknown


def free_name(folder: StudioFolder, name: str) -> str:
    """Return the name of a new crawl: `name`, or `name` with a number if the name is taken."""
    numbered = (f"{name}-{number}" for number in count(2))
    names = chain([name], numbered)
    return next(each for each in names if not (folder.root / _CRAWLS_FOLDER / each).exists())


def _parse_name(folder: StudioFolder, name: str) -> str:
    name = parse_name(name)
    path = folder.safe_path(f"{_CRAWLS_FOLDER}/{name}")
    if CrawlFolder(path).exists:
        raise UserError(
            f"{_CRAWLS_FOLDER}/{name} exists already: choose another name, or resume the crawl"
        )
    return f"{_CRAWLS_FOLDER}/{name}"


def _parse_strategy(name: str) -> str:
    if name not in strategy_names():
        raise UserError(f"no strategy {name!r:.40}. Strategies: {', '.join(strategy_names())}")
    return name


_MAX_RESULTS = 32
_MAX_START_PAGES = 20
_OUTLOOK_TIMEOUT = 180.0  # seconds
_FORM_TIMEOUT = 4.0  # seconds after the last request; a form that waits sends one each second
_UNREACHABLE_CODE = 3  # exit code of a plan that could fetch no page
#: arguments that change the result of ``focuscrawl plan``
_OUTLOOK_ARGUMENTS = ("critic=", "topic=", "web=", "DOWNLOAD_DELAY=")


@dataclass
class StartPagesResult:
    """Result of ``focuscrawl plan`` for the start pages in a form."""

    outlook: CrawlPlan | None = None  # None: not known yet, or failed
    error: str | None = None  # why the plan failed, a sentence
    requested_at: float = field(default_factory=time.monotonic)  # time of the last request

    def is_known(self) -> bool:
        """Return whether ``focuscrawl plan`` has finished or failed."""
        return self.outlook is not None or self.error is not None


class OutlookRunner:
    """Checks the start pages of new crawls with ``focuscrawl plan``, one crawl at a time.

    Results are cached, so start pages are fetched once while a person changes other fields of the
    form. Before a new ``focuscrawl plan`` starts, a running ``focuscrawl plan`` that no form needs
    any more is cancelled. The child processes run in the folder `root`.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._results: OrderedDict[tuple[str, ...], StartPagesResult] = OrderedDict()
        self._lock = threading.Lock()
        self._current: tuple[StartPagesResult, subprocess.Popen[str]] | None = None
        atexit.register(self.cancel)

    def get(self, crawl: NewCrawl, *, start: bool) -> StartPagesResult | None:
        """Return the result for a form, or None; run ``focuscrawl plan`` if `start` is True."""
        given = [each for each in crawl.arguments if each.startswith(_OUTLOOK_ARGUMENTS)]
        given += [] if crawl.seeds else crawl.seeds_argument
        key = (*given, *crawl.seeds)
        with self._lock:
            found = self._results.get(key)
            if found is not None:
                found.requested_at = time.monotonic()
            elif start and self._is_busy():
                found = StartPagesResult()  # the form repeats its request
            elif start:
                self._cancel()
                found = self._results[key] = StartPagesResult()
                arguments = (found, given, crawl.seeds)
                threading.Thread(target=self._run_plan, args=arguments, daemon=True).start()
                while len(self._results) > _MAX_RESULTS:
                    self._results.popitem(last=False)
            return found

    def cancel(self) -> None:
        """Cancel the running ``focuscrawl plan``."""
        with self._lock:
            self._cancel()

    def _is_busy(self) -> bool:
        """Return whether a plan is running that a form has requested recently."""
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
                file = Path(name, _SEEDS_FILE)
                file.write_text("\n".join(seeds), encoding="utf-8")
                arguments.append(f"seeds={file}")
            command = ["-m", "focuscrawl", "plan", "--json"]
            command += ["--most", str(_MAX_START_PAGES)]
            for each in arguments:
                command += ["-s" if each.startswith("DOWNLOAD_DELAY=") else "-a", each]
            with self._lock:
                if found.is_known():  # cancelled for another form
                    return
                process = start_python(
                    command,
                    variables={**PROCESS_ENVIRONMENT, "TMPDIR": name},
                    cwd=self._root,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,  # killed as a process group
                )
                self._current = found, process
            try:
                output, errors = process.communicate(timeout=_OUTLOOK_TIMEOUT)
            except subprocess.TimeoutExpired:
                _kill(process)
                output, errors = "", f"no result after {_OUTLOOK_TIMEOUT / 60:.0f} minutes"
            with self._lock:
                if found.is_known():
                    return
                self._current = None
                _store_result(found, process.returncode, output, errors)

    def _cancel(self) -> None:
        """Kill the running plan; the lock is held."""
        for key, each in [*self._results.items()]:
            if not each.is_known():
                each.error = "The studio is checking the start pages of another form."
                del self._results[key]
        if self._current is not None:
            _kill(self._current[1])
            self._current = None


def _store_result(found: StartPagesResult, code: int, output: str, errors: str) -> None:
    try:
        if code not in (0, _UNREACHABLE_CODE):
            raise UserError(errors.strip().rpartition("\n")[2] or "unknown error")
        found.outlook = CrawlPlan.from_dict(json.loads(output.strip().rpartition("\n")[2]))
    except (UserError, ValueError) as error:
        found.error = f"The start pages could not be checked: {error}"


def _kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
