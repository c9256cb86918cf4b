"""Judging pages of a crawl, and how that changes the order of its frontier.

Which pages to ask about, and how a crawl follows its definition, is in `focuscrawl.feedback`.
"""

from __future__ import annotations

import logging
import time
from contextlib import closing
from dataclasses import dataclass
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.rejudging import REFUSED_FILE, REQUEST_FILE
from focuscrawl.errors import UserError
from focuscrawl.feedback.applying import DEFINITION_FILE, load_crawl_definition
from focuscrawl.foundation.files import plain_below
from focuscrawl.foundation.urls import host
from focuscrawl.report.status import open_store
from focuscrawl.report.url_tables import frontier_top
from focuscrawl.studio.jobs import JobState
from focuscrawl.studio.listing import crawl_summary
from focuscrawl.studio.page_cards import Questions
from focuscrawl.studio.page_rendering import PREFIX, json_endpoint, post_route
from focuscrawl.studio.topic_routes import JUDGED, parse_judgement, with_judgement
from focuscrawl.topics import edit_definition, read_definition

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.report.url_tables import QueuedUrl
    from focuscrawl.studio.jobs import Job
    from focuscrawl.studio.page_rendering import StudioContext
    from focuscrawl.topics import TopicDefinition


logger = logging.getLogger(__name__)

_APPLY = "follow"  # kind of these jobs
_MAX_AUTOMATIC = (
    2000  # fetches; judging more anew takes long, and is done when somebody asks for it
)
_N_SHOWN = 20  # URLs of the frontier that are shown
_N_RECORDED = 2_000  # URLs of the frontier whose earlier ranks are known
_CHECK_INTERVAL = 0.5  # seconds between two checks whether a crawl has followed
_MIN_GOOD = 5  # good pages: fewer may be on one host by chance


def routes(context: StudioContext) -> list[Route]:
    """Return the routes of the page and its API."""
    questions, applier = Questions(), JudgementApplier(context)

    def next_question(path: Path) -> dict[str, Any]:
        """Return what there is to judge: ``choosing``, ``card``, ``left``, ``wrong``."""
        try:
            card, left = questions.next(path)
            choosing = card is None and not left and questions.start_choosing(path)
            if not choosing and card is None:
                card, left = questions.next(path)
        except UserError as error:
            return {"choosing": False, "card": None, "left": 0, "wrong": str(error)}
        return {"choosing": choosing, "card": card, "left": left, "wrong": ""}

    def question(request: Request) -> dict[str, Any]:
        found = next_question(context.requested_crawl(request).path)
        card = found.pop("card")
        return found | {"page": None if card is None else card.to_dict()}

    def judge(request: Request, values: Mapping[str, Any]) -> Response:
        crawl, (url, verdict) = context.requested_crawl(request), parse_judgement(values)
        path = crawl.path
        if verdict is None:
            questions.settle(path, url, skipped=True)
            return JSONResponse({"url": url}, headers=JUDGED)

        def create() -> TopicDefinition:
            with closing(open_store(path)) as store:
                return load_crawl_definition(store, path)

        applier.record_frontier(path)
        definition = plain_below(path, DEFINITION_FILE)
        edit_definition(definition, lambda known: with_judgement(known, url, good=verdict), create)
        questions.settle(path, url, skipped=False)
        if crawl_summary(crawl)["fetched"] <= _MAX_AUTOMATIC:
            applier.apply_in_background(path)
        return JSONResponse({"url": url}, headers=JUDGED)

    def follow(request: Request, _: Mapping[str, Any]) -> Response:
        path = context.requested_crawl(request).path
        applier.start(path)
        return JSONResponse(applier.state(path), headers=JUDGED)

    def moved(request: Request) -> dict[str, Any]:
        return applier.state(context.requested_crawl(request).path)

    def shown(request: Request) -> dict[str, Any]:
        crawl = context.requested_crawl(request)
        fetched = crawl_summary(crawl)["fetched"]
        about = {"crawl": crawl.name, "name": crawl.name}
        return about | {"fetched": fetched, "small": fetched <= _MAX_AUTOMATIC}

    def shown_question(request: Request) -> dict[str, Any]:
        return shown(request) | next_question(context.requested_crawl(request).path)

    one = "/crawls/{name:path}"
    return [
        post_route(f"{PREFIX}{one}/judge", judge),
        post_route(f"{PREFIX}{one}/follow", follow),
        Route(f"{PREFIX}{one}/question", json_endpoint(question)),
        Route(f"{PREFIX}{one}/moved", json_endpoint(moved)),
        Route(f"{one}/judge", context.page_endpoint("crawl_judge", shown)),
        Route(f"/parts{one}/question", context.page_endpoint("crawl_question", shown_question)),
        Route(
            f"/parts{one}/moved",
            context.page_endpoint("crawl_moved", lambda request: shown(request) | moved(request)),
        ),
    ]


@dataclass
class _Application:
    """One ``topic apply``: what was judged by then, and the frontier after it."""

    judged: frozenset[str]
    refused: int  # time of an earlier refusal, see `_refused_at`
    after: list[QueuedUrl] | None = None


class JudgementApplier:
    """Starts ``focuscrawl topic apply`` after judgements, one at a time for each crawl.

    Pages judged meanwhile are applied the next time: an answer never waits for the crawl.
    """

    def __init__(self, context: StudioContext) -> None:
        self._context = context
        self._applications: dict[Path, _Application] = {}
        self._before: dict[Path, list[QueuedUrl]] = {}
        self._in_background: set[Path] = set()
        self._lock = Lock()

    def record_frontier(self, crawl: Path) -> None:
        """Note the frontier of a crawl before the first judgement that is made here."""
        if crawl not in self._before:
            self._before.setdefault(crawl, _read_frontier(crawl, _N_RECORDED))

    def apply_in_background(self, crawl: Path) -> None:
        """Apply judgements in a thread, and again until none was made meanwhile."""
        with self._lock:
            if crawl in self._in_background:
                return
            self._in_background.add(crawl)
        Thread(target=self._apply_until_done, args=(crawl,), daemon=True).start()

    def _apply_until_done(self, crawl: Path) -> None:
        try:
            self.start(crawl)
            while not self._is_done(crawl):
                time.sleep(_CHECK_INTERVAL)
        except (UserError, OSError) as error:
            logger.warning("%s cannot follow what was judged: %s", crawl, error)
            with self._lock:
                self._in_background.discard(crawl)

    def _is_done(self, crawl: Path) -> bool:
        """Tell whether all judgements are applied; start again if pages were judged since."""
        with self._lock:
            if self._is_busy(crawl):
                return False
            application = self._applications.get(crawl)
            if application and (
                application.judged == _judged_urls(crawl) or self._failure(crawl, application)
            ):
                self._in_background.discard(crawl)
                return True
        self.start(crawl)
        return False

    def start(self, crawl: Path) -> Job | None:
        """Start to apply the definition of a crawl; None if that is being done."""
        name = self._context.folder.name_of(crawl)
        self.record_frontier(crawl)
        with self._lock, self._context.job_lock():
            if self._is_busy(crawl):
                return None
            refused, judged = _refused_at(crawl), _judged_urls(crawl)
            arguments = ["topic", "apply", f"./{name}", f"./{name}/{DEFINITION_FILE}"]
            job = self._context.jobs.start(_APPLY, name, arguments)
            self._applications[crawl] = _Application(judged, refused)
            return job

    def state(self, crawl: Path) -> dict[str, Any]:
        """Return how far the judgements of a crawl are applied.

        Returns
        -------
        ``busy``: they are being applied; ``failed``: why that failed, or empty; ``left``: whether
        pages were judged since; ``moved``: rows of ``url``, ``rank`` and ``score``, and
        ``rank_before`` and ``score_before``, of before the first judgement (None: it did not
        wait, or not among the best 2,000); ``one_host``: the host of all good pages, if there are
        some on no other, else empty
        """
        with self._lock:
            busy = crawl in self._in_background or self._is_busy(crawl)
            application = self._applications.get(crawl)
            failed = "" if busy else self._failure(crawl, application)
            if application is not None and application.after is None and not busy and not failed:
                application.after = _read_frontier(crawl, _N_SHOWN)
            left = (
                application is not None and not busy and application.judged != _judged_urls(crawl)
            )
        after = None if application is None else application.after
        moved = [] if after is None else _compare_ranks(self._before[crawl], after)
        found = {"busy": busy, "failed": failed, "left": left and not failed, "moved": moved}
        return found | {"one_host": _only_host(crawl)}

    def _is_busy(self, crawl: Path) -> bool:
        """Tell whether a critic is being trained, or the crawl has yet to load one."""
        running = self._context.jobs.running(_APPLY, self._name(crawl)) is not None
        return running or ((crawl / REQUEST_FILE).exists() and CrawlFolder(crawl).in_use)

    def _failure(self, crawl: Path, application: _Application | None) -> str:
        if application is not None and _refused_at(crawl) > application.refused:
            return "the crawl has refused it; its log says why"
        job = next(iter(self._context.jobs.all(kind=_APPLY, subject=self._name(crawl))), None)
        return job.output.split("\n")[-1] if job and job.state is JobState.FAILED else ""

    def _name(self, crawl: Path) -> str:
        return self._context.folder.name_of(crawl)


def _refused_at(crawl: Path) -> int:
    """Return when a crawl has refused a new critic, in nanoseconds; 0 if it never has."""
    try:
        return (crawl / REFUSED_FILE).stat().st_mtime_ns
    except OSError:
        return 0


def _read_frontier(crawl: Path, n: int) -> list[QueuedUrl]:
    with closing(open_store(crawl)) as store:
        return frontier_top(store, n)


def _judged_urls(crawl: Path) -> frozenset[str]:
    path = plain_below(crawl, DEFINITION_FILE)
    return read_definition(path).judged_urls if path.exists() else frozenset()


def _only_host(crawl: Path) -> str:
    """Return the host of all good pages: a critic would learn the site in place of the topic."""
    path = plain_below(crawl, DEFINITION_FILE)
    good = read_definition(path).good if path.exists() else ()
    hosts = {host(url) for url in good}
    return hosts.pop() if len(good) >= _MIN_GOOD and len(hosts) == 1 else ""


def _compare_ranks(before: list[QueuedUrl], after: list[QueuedUrl]) -> list[dict[str, Any]]:
    old = {each.url: (rank, each.score) for rank, each in enumerate(before, 1)}
    rows = []
    for rank, each in enumerate(after, 1):
        row = {"url": each.url, "rank": rank, "score": each.score}
        row["rank_before"], row["score_before"] = old.get(each.url, (None, None))
        rows.append(row)
    return rows
