"""Judging pages of a crawl, and what that moves in its frontier."""

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
from focuscrawl.studio import listing
from focuscrawl.studio.jobs import JobState
from focuscrawl.studio.page_cards import Questions
from focuscrawl.studio.page_rendering import PREFIX, render, with_values
from focuscrawl.studio.topic_api import JUDGED, judged, judgement_of
from focuscrawl.topics import edit_definition, read_definition

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.report.url_tables import WaitingUrl
    from focuscrawl.studio.jobs import Job
    from focuscrawl.studio.page_rendering import Desk
    from focuscrawl.topics import TopicDefinition


# Judging pages of a crawl in the studio, and what that moves in its frontier.
#
# Which pages are asked about is `focuscrawl.feedback`'s; how a crawl follows, too.


logger = logging.getLogger(__name__)

FOLLOW = "follow"
_TOP = 20  # of the frontier, shown
_BEST = 2_000  # of it, whose places of before are known
_PAUSE = 0.5  # seconds between two looks whether a crawl has followed
_SOME = 5  # good pages: fewer may be of one host by chance


@dataclass
class _Turn:
    """One time that a crawl is made to follow: what was judged then, and its frontier after."""

    judged: frozenset[str]
    refused: int  # when the crawl refused one before, see `_refused`
    after: list[WaitingUrl] | None = None


class Following:
    """Begins ``focuscrawl topic apply`` when pages were judged, one at a time for a crawl.

    What is judged meanwhile is followed the next time: an answer never waits for the crawl.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._turns: dict[Path, _Turn] = {}
        self._before: dict[Path, list[WaitingUrl]] = {}
        self._keeping_up: set[Path] = set()
        self._lock = Lock()

    def remember(self, crawl: Path) -> None:
        """Note what a crawl would fetch next, before the first judgement that comes in here."""
        if crawl not in self._before:
            self._before.setdefault(crawl, _top(crawl, _BEST))

    def keep_up(self, crawl: Path) -> None:
        """Have a crawl follow in a thread, and again until nothing was judged meanwhile."""
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
        """Tell whether a crawl has followed all; begin again if pages were judged since."""
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
        """Have a crawl follow its definition; None if it does so at the moment."""
        name = self._desk.folder.name_of(crawl)
        self.remember(crawl)
        with self._lock, self._desk.beginning():
            if self._busy(crawl):
                return None
            refused, judged = _refused(crawl), _judged(crawl)
            arguments = ["topic", "apply", f"./{name}", f"./{name}/{DEFINITION}"]
            job = self._desk.jobs.begin(FOLLOW, name, arguments)
            self._turns[crawl] = _Turn(judged, refused)
            return job

    def state(self, crawl: Path) -> dict[str, Any]:
        """Return what following has come to.

        Returns
        -------
        ``busy``: it is under way; ``failed``: why the last one did, or empty; ``left``: whether
        pages were judged since; ``moved``: rows of ``url``, ``rank`` and ``score``, and
        ``rank_before`` and ``score_before``, of before the first judgement (None: it did not
        wait, or not among the best 2,000);
        ``one_host``: the host that all good pages are of, where there are some, else empty
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
        """Tell whether a critic is trained for a crawl, or the crawl has word of one."""
        jobs = self._desk.jobs.all(kind=FOLLOW, subject=self._name(crawl))
        running = bool(jobs) and jobs[0].state is JobState.RUNNING
        return running or ((crawl / REQUEST).exists() and _runs(crawl))

    def _why_not(self, crawl: Path, turn: _Turn | None) -> str:
        """Return why the last time failed, or empty."""
        if turn is not None and _refused(crawl) > turn.refused:
            return "the crawl has refused it; its log says why"
        job = next(iter(self._desk.jobs.all(kind=FOLLOW, subject=self._name(crawl))), None)
        return job.said.split("\n")[-1] if job and job.state is JobState.FAILED else ""

    def _name(self, crawl: Path) -> str:
        return self._desk.folder.name_of(crawl)


def _refused(crawl: Path) -> int:
    """Return when a crawl has refused to follow, in nanoseconds; 0: it never has."""
    try:
        return (crawl / REFUSED).stat().st_mtime_ns
    except OSError:
        return 0


def _runs(crawl: Path) -> bool:
    return CrawlFolder(crawl).in_use


def _top(crawl: Path, n: int) -> list[WaitingUrl]:
    with closing(open_store(crawl)) as store:
        return frontier_top(store, n)


def _judged(crawl: Path) -> frozenset[str]:
    path = plain_below(crawl, DEFINITION)
    return read_definition(path).judged if path.exists() else frozenset()


def _one_host(crawl: Path) -> str:
    """Return the host that all good pages are of: a critic would learn the site."""
    path = plain_below(crawl, DEFINITION)
    good = read_definition(path).good if path.exists() else ()
    hosts = {host(url) for url in good}
    return hosts.pop() if len(good) >= _SOME and len(hosts) == 1 else ""


def _moved(before: list[WaitingUrl], after: list[WaitingUrl]) -> list[dict[str, Any]]:
    old = {each.url: (rank, each.score) for rank, each in enumerate(before, 1)}
    rows = []
    for rank, each in enumerate(after, 1):
        rank_before, score_before = old.get(each.url, (None, None))
        rows.append(
            {
                "url": each.url,
                "rank": rank,
                "score": each.score,
                "rank_before": rank_before,
                "score_before": score_before,
            }
        )
    return rows


#: fetches: judging more than these anew takes so long that it waits until somebody asks for it
SMALL = 2000


def routes(desk: Desk) -> list[Route]:
    """Return the routes of the page where pages of a crawl are judged, and of its API."""
    questions, following = Questions(), Following(desk)

    def crawl(request: Request) -> Path:
        return desk.folder.crawl(request.path_params["name"])

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

    def question(request: Request) -> JSONResponse:
        found = asked(crawl(request))
        card = found.pop("card")
        return JSONResponse(found | {"page": None if card is None else card.plain()})

    def moved(request: Request) -> JSONResponse:
        return JSONResponse(following.state(crawl(request)))

    def judge(request: Request, values: Mapping[str, Any]) -> JSONResponse:
        path, (url, verdict) = crawl(request), judgement_of(values)
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
        if _state(desk, path)["fetched"] <= SMALL:
            following.keep_up(path)
        return JSONResponse({"url": url}, headers=JUDGED)

    def follow(request: Request, _: Mapping[str, Any]) -> JSONResponse:
        following.begin(crawl(request))
        return JSONResponse(following.state(crawl(request)), headers=JUDGED)

    def shown(request: Request) -> dict[str, Any]:
        path = crawl(request)
        state = _state(desk, path)
        return {
            "crawl": state["name"],
            "name": state["name"],
            "fetched": state["fetched"],
            "small": state["fetched"] <= SMALL,
        }

    def page(request: Request) -> Response:
        return render(desk, "crawl_judge", shown(request))

    def part_question(request: Request) -> Response:
        return render(desk, "crawl_question", {**shown(request), **asked(crawl(request))})

    def part_moved(request: Request) -> Response:
        return render(desk, "crawl_moved", {**shown(request), **following.state(crawl(request))})

    one = f"{PREFIX}/crawls/{{name:path}}"
    return [
        Route(f"{one}/judge", with_values(judge), methods=["POST"]),
        Route(f"{one}/follow", with_values(follow), methods=["POST"]),
        Route(f"{one}/question", question),
        Route(f"{one}/moved", moved),
        Route("/crawls/{name:path}/judge", page),
        Route("/parts/crawls/{name:path}/question", part_question),
        Route("/parts/crawls/{name:path}/moved", part_moved),
    ]


def _state(desk: Desk, path: Path) -> dict[str, Any]:
    return listing.listed_crawl(desk.crawl(desk.folder.name_of(path)))
