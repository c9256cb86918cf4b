"""Routes of the studio for judging pages of a crawl and for applying the judgements.

The package `focuscrawl.feedback` chooses the pages to judge, and applies a topic definition to a
crawl.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.responses import JSONResponse
from starlette.routing import Route

from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.rejudging import REDEFINED, REFUSED_FILE, REQUEST_FILE
from focuscrawl.errors import UserError
from focuscrawl.feedback.applying import load_crawl_definition
from focuscrawl.foundation.files import safe_join
from focuscrawl.foundation.urls import host
from focuscrawl.report.status import open_store
from focuscrawl.report.url_tables import frontier_top
from focuscrawl.store.history import History
from focuscrawl.studio.crawl_watch import describe_moved
from focuscrawl.studio.jobs import JobState
from focuscrawl.studio.listing import crawl_summary
from focuscrawl.studio.page_cards import Questions, load_crawl_critic
from focuscrawl.studio.page_rendering import PREFIX, json_endpoint, post_route
from focuscrawl.studio.topic_folder import TopicFiles, count_new_judgements, find_topic
from focuscrawl.studio.topic_jobs import retrain
from focuscrawl.studio.topic_routes import (
    JUDGED,
    Judgement,
    filter_judgements,
    judgements_shown,
)
from focuscrawl.topics import DEFINITION_FILE, edit_definition, read_verdicts

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.report.url_tables import QueuedUrl
    from focuscrawl.store import CrawlStore
    from focuscrawl.studio.jobs import Job
    from focuscrawl.studio.page_rendering import StudioContext
    from focuscrawl.topics import TopicDefinition


logger = logging.getLogger(__name__)

_APPLY = "follow"  # kind of the jobs that apply judgements
_MAX_AUTOMATIC = 2000  # fetches; a larger crawl takes long, so a person starts the job
_N_SHOWN = 20  # queued URLs
_N_RECORDED = 2_000  # queued URLs with known earlier ranks
_CHECK_INTERVAL = 0.5  # seconds between two checks of a job
_APPLY_AFTER = 10  # judgements on a large crawl, after which applying them is proposed
_FETCHED = """SELECT u.url, p.title, p.relevance FROM url u JOIN page p ON p.url = u.id
              WHERE u.url IN (SELECT value FROM json_each(?))"""
_MIN_GOOD = 5  # good pages; fewer may be on one host by chance


def routes(context: StudioContext, applier: JudgementApplier) -> list[Route]:
    """Return the routes of the page and its API."""
    questions = Questions()

    def next_question(request: Request) -> dict[str, Any]:
        """Return the state of the suggestions: ``choosing``, ``card``, ``left``, ``wrong``."""
        path = context.requested_crawl(request).path
        person = request.query_params.get("tab", "")
        try:
            found, left = questions.next(path, person)
            choosing = found is None and not left and questions.start_choosing(path)
            if not choosing and found is None:
                found, left = questions.next(path, person)
            card = None if found is None else found.judge(load_crawl_critic(path))
        except UserError as error:
            return {"choosing": False, "card": None, "left": 0, "wrong": str(error)}
        return {"choosing": choosing, "card": card, "left": left, "wrong": ""}

    def question(request: Request) -> dict[str, Any]:
        found = next_question(request)
        card = found.pop("card")
        return found | {"page": None if card is None else card.to_dict()}

    def judge(request: Request, values: Mapping[str, Any]) -> Response:
        crawl, judgement = context.requested_crawl(request), Judgement.parse(values)
        path, before = crawl.path, dict[str, str]()

        def create() -> TopicDefinition:
            with closing(open_store(path)) as store:
                return load_crawl_definition(store, path)

        def change(known: TopicDefinition) -> TopicDefinition:
            for url, verdict in judgement.before(known).items():
                if before.get(url, "none") == "none":
                    before[url] = verdict
            return judgement.change(known)

        if judgement.verdict == "skip":
            before = dict.fromkeys(judgement.urls, "none")
        else:
            applier.record_frontier(path)
            edit_definition(safe_join(path, DEFINITION_FILE), change, create)
            topic = find_topic(context.folder, path)
            if topic is not None:
                edit_definition(topic.path, change)
                retrain(context, topic)
        for url in judgement.urls:
            questions.settle(path, url, judged=judgement.verdict != "none")
        is_small = crawl_summary(crawl)["fetched"] <= _MAX_AUTOMATIC
        if is_small and judgement.verdict != "skip" and applier.count_unapplied(path):
            applier.apply_in_background(path)
        return judgement.response(before)

    def apply(request: Request, _: Mapping[str, Any]) -> Response:
        path = context.requested_crawl(request).path
        applier.start(path)
        return JSONResponse(applier.state(path), headers=JUDGED)

    def effect(request: Request) -> dict[str, Any]:
        return applier.state(context.requested_crawl(request).path)

    def shown(request: Request) -> dict[str, Any]:
        crawl = context.requested_crawl(request)
        known = crawl_summary(crawl)
        about: dict[str, Any] = {name: known[name] for name in ("name", "fetched", "running")}
        about |= {"crawl": crawl.name, "topic": find_topic(context.folder, crawl.path)}
        return about | {"small": known["fetched"] <= _MAX_AUTOMATIC, "enough": _APPLY_AFTER}

    def shown_question(request: Request) -> dict[str, Any]:
        return shown(request) | next_question(request)

    one = "/crawls/{name:path}"
    return [
        post_route(f"{PREFIX}{one}/judge", judge),
        post_route(f"{PREFIX}{one}/follow", apply),
        Route(f"{PREFIX}{one}/question", json_endpoint(question)),
        Route(f"{PREFIX}{one}/moved", json_endpoint(effect)),
        *_judgement_routes(context),
        Route(f"{one}/judge", context.page_endpoint("crawl_judge", shown)),
        Route(f"/parts{one}/question", context.page_endpoint("crawl_question", shown_question)),
        Route(
            f"/parts{one}/moved",
            context.page_endpoint("crawl_moved", lambda request: shown(request) | effect(request)),
        ),
    ]


def _judgement_routes(context: StudioContext) -> list[Route]:
    """Return the routes of the list of judgements of a crawl."""

    def judgements(request: Request) -> dict[str, Any]:
        crawl = context.requested_crawl(request)
        with closing(open_store(crawl.path)) as store:
            return list_judgements(store, crawl.path, request.query_params)

    def shown(request: Request) -> dict[str, Any]:
        crawl, query = context.requested_crawl(request), dict(request.query_params)
        at = f"/parts/crawls/{quote(crawl.name)}/judgements"
        return judgements_shown(judgements(request), query) | {"crawl": crawl.name, "at": at}

    one = "/crawls/{name:path}/judgements"
    return [
        Route(f"{PREFIX}{one}", json_endpoint(judgements)),
        Route(f"/parts{one}", context.page_endpoint("judgements", shown)),
    ]


def list_judgements(store: CrawlStore, crawl: Path, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the judgements of a crawl that match a query: first of bad, then of good pages.

    Parameters
    ----------
    query : mapping of str to str
        ``q`` (words in title or URL), ``verdict`` (``good``, ``bad``), ``n`` (number of rows).

    Returns
    -------
    dict
        ``total`` (number of matching judgements), and ``rows`` with ``url``, ``verdict``,
        ``title``, ``relevance`` (None: not fetched) and ``differs`` (the critic disagrees).
    """
    verdicts = read_verdicts(crawl)
    urls = json.dumps([*verdicts])
    fetched = {row["url"]: row for row in store.rows(_FETCHED, (urls,))}
    return filter_judgements(verdicts, fetched, query)


@dataclass
class _Application:
    """A run of ``topic apply``."""

    judged: frozenset[tuple[str, str]]  # URLs and verdicts before the run
    refused: int  # time of an earlier refusal, see `_refused_at`
    after: list[QueuedUrl] | None = None  # the frontier after the run


class JudgementApplier:
    """Runs ``focuscrawl topic apply`` after judgements, one run at a time for each crawl.

    Judgements that a person makes during a run are applied by the next run, so the person never
    waits.
    """

    def __init__(self, context: StudioContext) -> None:
        self._context = context
        self._applications: dict[Path, _Application] = {}
        self._before: dict[Path, list[QueuedUrl]] = {}
        self._in_background: set[Path] = set()
        self._lock = Lock()

    def record_frontier(self, crawl: Path) -> None:
        """Record the best queued URLs of a crawl before the first judgement changes the queue."""
        if crawl not in self._before:
            self._before.setdefault(crawl, _read_frontier(crawl, _N_RECORDED))

    def apply_in_background(self, crawl: Path) -> None:
        """Apply judgements in a background thread until all judgements are applied."""
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
            logger.warning("The judgements of %s could not be applied: %s", crawl, error)
            with self._lock:
                self._in_background.discard(crawl)

    def _is_done(self, crawl: Path) -> bool:
        """Return whether all judgements are applied; start another run if some are not."""
        with self._lock:
            if self._is_busy(crawl):
                return False
            application = self._applications.get(crawl)
            if application and (
                application.judged == _read_judgements(crawl) or self._failure(crawl, application)
            ):
                self._in_background.discard(crawl)
                return True
        self.start(crawl)
        return False

    def start(self, crawl: Path) -> Job | None:
        """Start a job that applies the topic definition of a crawl; None if a job is running."""
        name = self._context.folder.name_of(crawl)
        self.record_frontier(crawl)
        with self._lock, self._context.job_lock():
            if self._is_busy(crawl):
                return None
            refused, judged = _refused_at(crawl), _read_judgements(crawl)
            arguments = ["topic", "apply", f"./{name}", f"./{name}/{DEFINITION_FILE}"]
            job = self._context.jobs.start(_APPLY, name, arguments)
            self._applications[crawl] = _Application(judged, refused)
            return job

    def count_unapplied(self, crawl: Path) -> int:
        """Return the number of judged pages that are not applied to the crawl yet."""
        application = self._applications.get(crawl)
        if application is not None:
            changed = application.judged ^ _read_judgements(crawl)
            return len({url for url, _ in changed})
        path = safe_join(crawl, DEFINITION_FILE)
        if not path.exists():
            return 0
        return count_new_judgements(TopicFiles(self._context.folder, path))

    def state(self, crawl: Path) -> dict[str, Any]:
        """Return whether a crawl's judgements are applied, and how they changed the queue.

        Returns
        -------
        dict
            ``busy``: whether judgements are being applied. ``failed``: why the last run failed, or
            empty. ``left``: whether some judgements are not applied. ``unapplied``: their number.
            ``judged``: the number of all judged pages. ``moved``: the best queued
            URLs with ``url``, ``rank``, ``score``, and ``rank_before`` and ``score_before`` of the
            time before the first judgement (None: not among the best 2,000). ``one_host``: the
            host if all good pages are on one host, or empty. ``changed``: sentences about
            the pages that became relevant or off-topic, or empty.
        """
        with self._lock:
            busy = crawl in self._in_background or self._is_busy(crawl)
            application = self._applications.get(crawl)
            failed = "" if busy else self._failure(crawl, application)
            if application is not None and application.after is None and not busy and not failed:
                application.after = _read_frontier(crawl, _N_SHOWN)
            left = (
                application is not None
                and not busy
                and application.judged != _read_judgements(crawl)
            )
        after = None if application is None else application.after
        moved = [] if after is None else _compare_ranks(self._before[crawl], after)
        found = {"busy": busy, "failed": failed, "left": left and not failed, "moved": moved}
        found |= {"unapplied": self.count_unapplied(crawl), "judged": len(_read_judgements(crawl))}
        with closing(open_store(crawl)) as store:
            details = [event.detail for event in History(store).events(REDEFINED)]
        return found | {"one_host": _only_host(crawl), "changed": describe_moved(details)}

    def is_busy(self, crawl: Path) -> bool:
        """Return whether judgements are being applied to a crawl."""
        with self._lock:
            return crawl in self._in_background or self._is_busy(crawl)

    def _is_busy(self, crawl: Path) -> bool:
        """Return whether a job is running, or the crawl has a request that it has not read."""
        running = self._context.jobs.running(_APPLY, self._name(crawl)) is not None
        return running or ((crawl / REQUEST_FILE).exists() and CrawlFolder(crawl).in_use)

    def _failure(self, crawl: Path, application: _Application | None) -> str:
        if application is not None and _refused_at(crawl) > application.refused:
            return "the crawl refused the new critic: see the reason in the log of the crawl"
        job = next(iter(self._context.jobs.all(kind=_APPLY, subject=self._name(crawl))), None)
        return job.message if job and job.state is JobState.FAILED else ""

    def _name(self, crawl: Path) -> str:
        return self._context.folder.name_of(crawl)


def _refused_at(crawl: Path) -> int:
    """Return the time in ns at which a crawl last refused a new critic; 0: never."""
    try:
        return (crawl / REFUSED_FILE).stat().st_mtime_ns
    except OSError:
        return 0


def _read_frontier(crawl: Path, n: int) -> list[QueuedUrl]:
    with closing(open_store(crawl)) as store:
        return frontier_top(store, n)


def _read_judgements(crawl: Path) -> frozenset[tuple[str, str]]:
    return frozenset(read_verdicts(crawl).items())


def _only_host(crawl: Path) -> str:
    """Return the host of all good pages, from which a critic may learn the site, or empty."""
    good = [url for url, verdict in read_verdicts(crawl).items() if verdict == "good"]
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
