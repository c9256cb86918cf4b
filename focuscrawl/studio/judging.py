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
from focuscrawl.crawl.rejudging import REFUSED, REQUEST
from focuscrawl.errors import UserError
from focuscrawl.feedback.applying import DEFINITION, definition_of
from focuscrawl.foundation.files import plain_below
from focuscrawl.foundation.urls import host
from focuscrawl.report.status import open_store
from focuscrawl.report.url_tables import frontier_top
from focuscrawl.studio.jobs import JobState
from focuscrawl.studio.listing import listed_crawl
from focuscrawl.studio.page_cards import Questions
from focuscrawl.studio.page_rendering import PREFIX, json_of, post
from focuscrawl.studio.topic_routes import JUDGED, judged, judgement_of
from focuscrawl.topics import edit_definition, read_definition

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.report.url_tables import QueuedUrl
    from focuscrawl.studio.jobs import Job
    from focuscrawl.studio.page_rendering import Desk
    from focuscrawl.topics import TopicDefinition


logger = logging.getLogger(__name__)

_FOLLOW = "follow"  # kind of these jobs
_SMALL = 2000  # fetches; judging more anew takes long, and is done when somebody asks for it
_TOP = 20  # URLs of the frontier that are shown
_BEST = 2_000  # URLs of the frontier whose earlier ranks are known
_PAUSE = 0.5  # seconds between two checks whether a crawl has followed
_SOME = 5  # good pages: fewer may be on one host by chance


def routes(desk: Desk) -> list[Route]:
    """Return the routes of the page and its API."""
    questions, following = Questions(), Following(desk)

    def asked(path: Path) -> dict[str, Any]:
        """Return what there is to judge: ``choosing``, ``card``, ``left``, ``wrong``."""
        try:
            card, left = questions.next(path)
            choosing = card is None and not left and questions.begin(path)
            if not choosing and card is None:
                card, left = questions.next(path)
        except UserError as error:
            return {"choosing": False, "card": None, "left": 0, "wrong": str(error)}
        return {"choosing": choosing, "card": card, "left": left, "wrong": ""}

    def question(request: Request) -> dict[str, Any]:
        found = asked(desk.crawl_of(request).place)
        card = found.pop("card")
        return found | {"page": None if card is None else card.plain()}

    def judge(request: Request, values: Mapping[str, Any]) -> Response:
        crawl, (url, verdict) = desk.crawl_of(request), judgement_of(values)
        path = crawl.place
        if verdict is None:
            questions.settle(path, url, passed=True)
            return JSONResponse({"url": url}, headers=JUDGED)

        def begun() -> TopicDefinition:
            with closing(open_store(path)) as store:
                return definition_of(store, path)

        following.remember(path)
        definition = plain_below(path, DEFINITION)
        edit_definition(definition, lambda known: judged(known, url, good=verdict), begun)
        questions.settle(path, url, passed=False)
        if listed_crawl(crawl)["fetched"] <= _SMALL:
            following.keep_up(path)
        return JSONResponse({"url": url}, headers=JUDGED)

    def follow(request: Request, _: Mapping[str, Any]) -> Response:
        path = desk.crawl_of(request).place
        following.begin(path)
        return JSONResponse(following.state(path), headers=JUDGED)

    def moved(request: Request) -> dict[str, Any]:
        return following.state(desk.crawl_of(request).place)

    def shown(request: Request) -> dict[str, Any]:
        crawl = desk.crawl_of(request)
        fetched = listed_crawl(crawl)["fetched"]
        about = {"crawl": crawl.name, "name": crawl.name}
        return about | {"fetched": fetched, "small": fetched <= _SMALL}

    def shown_question(request: Request) -> dict[str, Any]:
        return shown(request) | asked(desk.crawl_of(request).place)

    one = "/crawls/{name:path}"
    return [
        post(f"{PREFIX}{one}/judge", judge),
        post(f"{PREFIX}{one}/follow", follow),
        Route(f"{PREFIX}{one}/question", json_of(question)),
        Route(f"{PREFIX}{one}/moved", json_of(moved)),
        Route(f"{one}/judge", desk.page("crawl_judge", shown)),
        Route(f"/parts{one}/question", desk.page("crawl_question", shown_question)),
        Route(
            f"/parts{one}/moved",
            desk.page("crawl_moved", lambda request: shown(request) | moved(request)),
        ),
    ]


@dataclass
class _Turn:
    """One ``topic apply``: what was judged by then, and the frontier after it."""

    judged: frozenset[str]
    refused: int  # time of an earlier refusal, see `_refused`
    after: list[QueuedUrl] | None = None


class Following:
    """Starts ``focuscrawl topic apply`` after judgements, one at a time for each crawl.

    Pages judged meanwhile are applied the next time: an answer never waits for the crawl.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._turns: dict[Path, _Turn] = {}
        self._before: dict[Path, list[QueuedUrl]] = {}
        self._keeping_up: set[Path] = set()
        self._lock = Lock()

    def remember(self, crawl: Path) -> None:
        """Note the frontier of a crawl before the first judgement that is made here."""
        if crawl not in self._before:
            self._before.setdefault(crawl, _top(crawl, _BEST))

    def keep_up(self, crawl: Path) -> None:
        """Apply judgements in a thread, and again until none was made meanwhile."""
        with self._lock:
            if crawl in self._keeping_up:
                return
            self._keeping_up.add(crawl)
        Thread(target=self._keep_up, args=(crawl,), daemon=True).start()

    def _keep_up(self, crawl: Path) -> None:
        try:
            self.begin(crawl)
            while not self._is_through(crawl):
                time.sleep(_PAUSE)
        except (UserError, OSError) as error:
            logger.warning("%s cannot follow what was judged: %s", crawl, error)
            with self._lock:
                self._keeping_up.discard(crawl)

    def _is_through(self, crawl: Path) -> bool:
        """Tell whether all judgements are applied; start again if pages were judged since."""
        with self._lock:
            if self._busy(crawl):
                return False
            turn = self._turns.get(crawl)
            if turn and (turn.judged == _judged(crawl) or self._why_not(crawl, turn)):
                self._keeping_up.discard(crawl)
                return True
        self.begin(crawl)
        return False

    def begin(self, crawl: Path) -> Job | None:
        """Start to apply the definition of a crawl; None if that is being done."""
        name = self._desk.folder.name_of(crawl)
        self.remember(crawl)
        with self._lock, self._desk.beginning():
            if self._busy(crawl):
                return None
            refused, judged = _refused(crawl), _judged(crawl)
            arguments = ["topic", "apply", f"./{name}", f"./{name}/{DEFINITION}"]
            job = self._desk.jobs.begin(_FOLLOW, name, arguments)
            self._turns[crawl] = _Turn(judged, refused)
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
            busy = crawl in self._keeping_up or self._busy(crawl)
            turn = self._turns.get(crawl)
            failed = "" if busy else self._why_not(crawl, turn)
            if turn is not None and turn.after is None and not busy and not failed:
                turn.after = _top(crawl, _TOP)
            left = turn is not None and not busy and turn.judged != _judged(crawl)
        after = None if turn is None else turn.after
        moved = [] if after is None else _moved(self._before[crawl], after)
        found = {"busy": busy, "failed": failed, "left": left and not failed, "moved": moved}
        return found | {"one_host": _one_host(crawl)}

    def _busy(self, crawl: Path) -> bool:
        """Tell whether a critic is being trained, or the crawl has yet to load one."""
        running = self._desk.jobs.running(_FOLLOW, self._name(crawl)) is not None
        return running or ((crawl / REQUEST).exists() and CrawlFolder(crawl).in_use)

    def _why_not(self, crawl: Path, turn: _Turn | None) -> str:
        if turn is not None and _refused(crawl) > turn.refused:
            return "the crawl has refused it; its log says why"
        job = next(iter(self._desk.jobs.all(kind=_FOLLOW, subject=self._name(crawl))), None)
        return job.said.split("\n")[-1] if job and job.state is JobState.FAILED else ""

    def _name(self, crawl: Path) -> str:
        return self._desk.folder.name_of(crawl)


def _refused(crawl: Path) -> int:
    """Return when a crawl has refused a new critic, in nanoseconds; 0 if it never has."""
    try:
        return (crawl / REFUSED).stat().st_mtime_ns
    except OSError:
        return 0


def _top(crawl: Path, n: int) -> list[QueuedUrl]:
    with closing(open_store(crawl)) as store:
        return frontier_top(store, n)


def _judged(crawl: Path) -> frozenset[str]:
    path = plain_below(crawl, DEFINITION)
    return read_definition(path).judged if path.exists() else frozenset()


def _one_host(crawl: Path) -> str:
    """Return the host of all good pages: a critic would learn the site in place of the topic."""
    path = plain_below(crawl, DEFINITION)
    good = read_definition(path).good if path.exists() else ()
    hosts = {host(url) for url in good}
    return hosts.pop() if len(good) >= _SOME and len(hosts) == 1 else ""


def _moved(before: list[QueuedUrl], after: list[QueuedUrl]) -> list[dict[str, Any]]:
    old = {each.url: (rank, each.score) for rank, each in enumerate(before, 1)}
    rows = []
    for rank, each in enumerate(after, 1):
        row = {"url": each.url, "rank": rank, "score": each.score}
        row["rank_before"], row["score_before"] = old.get(each.url, (None, None))
        rows.append(row)
    return rows
