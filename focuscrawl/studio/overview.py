"""Routes of the first page: four steps to a corpus; lists of crawls, topics and jobs."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import closing
from pathlib import Path, PurePath
from threading import Lock
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from focuscrawl.crawl.rejudging import REDEFINED
from focuscrawl.crawl_config import DEFAULT_CRITIC
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.report.status import open_store
from focuscrawl.studio.corpora import list_corpora
from focuscrawl.studio.crawl_form import encode_choice, free_name
from focuscrawl.studio.exports import list_exports
from focuscrawl.studio.jobs import JobState
from focuscrawl.studio.listing import list_crawls, list_critics, list_topics
from focuscrawl.studio.topic_folder import read_origin, read_topics

if TYPE_CHECKING:
    from starlette.requests import Request

    from focuscrawl.store import CrawlStore
    from focuscrawl.studio.page_rendering import StudioContext
    from focuscrawl.studio.served_folder import StudioFolder

_N_JOBS = 20  # shown
_N_CARDS = 6  # crawls or topics shown at first
_MAX_TALLIED = 50  # latest crawls whose relevant pages are counted for their topics
_DEMO_TOPIC = "/Sports/Cycling"
_DEMO_BUDGET = 300  # fetches


def routes(context: StudioContext) -> list[Route]:
    """Return the routes of the first page and of its parts."""
    folder, tallies = context.folder, CrawlTallies()

    def jobs(_: Request) -> dict[str, Any]:
        found = context.jobs.latest(_N_JOBS)
        running = sum(job.state is JobState.RUNNING for job in found)
        return {"jobs": found, "n_running": running}

    def crawls(request: Request, n_tallied: int = _N_CARDS) -> dict[str, Any]:
        found, shows_all = list_crawls(folder), request.query_params.get("all") == "yes"
        for each in found[: None if shows_all else n_tallied]:
            if "error" not in each:
                each.update(tallies.read(folder.crawl(each["name"])))
        return {"crawls": found, "all": shows_all, "shown": _N_CARDS}

    def overview(request: Request) -> dict[str, Any]:
        found = crawls(request, _MAX_TALLIED) | read_steps(folder)
        files = {topic.name: topic for topic in read_topics(folder)}
        for each in found["topics"]:
            if (topic := files.get(each["name"])) is not None:
                of_topic = [crawl for crawl in found["crawls"] if topic.has_crawl(crawl)]
                each["n_crawls"] = len(of_topic)
                each["relevant"] = sum(crawl["relevant"] for crawl in of_topic)
                each["choice"] = topic.choice()
        found["corpora"] = list_corpora(context)
        return found | {"critics": list_critics(folder), "demo": _demo_crawl(folder)}

    return [
        Route("/", context.page_endpoint("overview", overview)),
        Route("/parts/crawls", context.page_endpoint("crawls", crawls)),
        Route("/parts/jobs", context.page_endpoint("jobs", jobs)),
    ]


def _demo_crawl(folder: StudioFolder) -> dict[str, str]:
    """Return the values of the form of a new crawl for a crawl of the demo web."""
    return {
        "name": free_name(folder, "demo"),
        "of": encode_choice(DEFAULT_CRITIC, _DEMO_TOPIC),
        "web": "demo",
        "budget": str(_DEMO_BUDGET),
    }


def read_steps(folder: StudioFolder) -> dict[str, Any]:
    """Return the topics that do not belong to a crawl, and which of the four steps are done.

    The four steps are ``topic``, ``crawl``, ``judge`` and ``export``. The result has the fields
    ``topics``, ``first_topic`` and ``first_crawl`` (names, or empty), ``done`` (steps), and
    ``next_step`` (the first step that is not done, or empty). If some topic has a critic,
    ``first_topic`` has a critic.
    """
    crawls = {folder.name_of(path): path for path in folder.crawls()}
    topics, judged = [], False
    for each in list_topics(folder):
        if PurePath(each["name"]).parent.as_posix() in crawls:
            judged = judged or bool(each.get("good") or each.get("bad"))
        else:
            topics.append(each)
    valid = read_topics(folder)
    trained = [topic for topic in valid if topic.choice() is not None]
    reached = {
        "topic": bool(topics or crawls),
        "crawl": bool(crawls),
        "judge": judged,
        "export": any(map(list_exports, crawls.values())),
    }
    return {
        "topics": topics,
        "first_topic": next((each.name for each in trained or valid), ""),
        "first_crawl": next(iter(crawls), ""),
        "done": [step for step, done in reached.items() if done],
        "next_step": next((step for step, done in reached.items() if not done), ""),
    }


_FIRST_WIDTH = 5  # fetches in a bin
_MAX_PAGES_READ = 100_000  # in one update: takes about half a second
_MAX_BINS = 60  # of a drawing
_MAX_CRAWLS = 200  # the least recently read is dropped first
_WIDTH, _HEIGHT = 100, 30  # of a drawing


class CrawlTally:
    """Number of relevant pages of a crawl, and sums of relevance over bins of successive fetches.

    If there are more than 60 bins, pairs of bins are merged.

    Attributes
    ----------
    relevant : int
        Number of pages whose relevance is above 0.5.
    fetched : int
        Number of fetches read so far.
    """

    def __init__(self) -> None:
        self._last_event = 0
        self.relevant = 0
        self.fetched = 0
        self._width = _FIRST_WIDTH
        self._bins: list[tuple[int, float]] = []  # fetches, sum of their relevance

    def update(self, store: CrawlStore) -> None:
        """Read up to 100,000 new pages from the store; start again if the topic has changed."""
        changes = "SELECT coalesce(max(id), 0), sum(kind = ?) FROM events WHERE id > ?"
        last_event, redefined = store.row(changes, (REDEFINED, self._last_event))
        if redefined:
            self.relevant, self.fetched, self._width, self._bins = 0, 0, _FIRST_WIDTH, []
        self._last_event = max(last_event, self._last_event)
        sums = """SELECT (seq - 1) / ?, count(*), sum(relevance), sum(relevance > ?), max(seq)
                  FROM page WHERE seq > ? AND seq <= ? GROUP BY 1 ORDER BY 1"""
        for place, n, relevance, relevant, last in store.rows(
            sums, (self._width, RELEVANT, self.fetched, self.fetched + _MAX_PAGES_READ)
        ):
            self._bins += [(0, 0.0)] * (place + 1 - len(self._bins))
            before = self._bins[place]
            self._bins[place] = (before[0] + n, before[1] + relevance)
            self.relevant += relevant
            self.fetched = last
        while len(self._bins) > _MAX_BINS:
            pairs = zip(self._bins[::2], [*self._bins[1::2], (0, 0.0)], strict=False)
            self._bins = [(a[0] + b[0], a[1] + b[1]) for a, b in pairs]
            self._width *= 2

    def draw(self) -> dict[str, Any] | None:
        """Return an SVG path that shows the harvest rate over the fetches, and the highest rate.

        The path is in a box with the width 100 and the height 30. The full height is the harvest
        rate 1. The result is None if there are fewer than two bins.
        """
        rates = [relevance / n for n, relevance in self._bins if n]
        if len(rates) < 2:
            return None
        step = _WIDTH / (len(rates) - 1)
        points = [f"{i * step:.1f} {(1.0 - rate) * _HEIGHT:.1f}" for i, rate in enumerate(rates)]
        return {"line": f"M{'L'.join(points)}", "most": max(rates)}


class CrawlTallies:
    """Keeps a `CrawlTally` of each crawl."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tallies: OrderedDict[tuple[Path, int], CrawlTally] = OrderedDict()

    def read(self, path: Path) -> dict[str, Any]:
        """Return ``relevant`` and ``spark`` (see `CrawlTally.draw`) of the crawl in `path`.

        The field ``tallied`` is the number of fetches that were counted so far. A large crawl is
        read in several calls. The fields ``critic`` and ``topic`` are those of `read_origin`.
        """
        with self._lock, closing(open_store(path)) as store:
            key = (path, (path / "crawl.db").stat().st_ino)  # another crawl may take the path
            tally = self._tallies.setdefault(key, CrawlTally())
            self._tallies.move_to_end(key)
            if len(self._tallies) > _MAX_CRAWLS:
                self._tallies.popitem(last=False)
            tally.update(store)
            return {
                "relevant": tally.relevant,
                "tallied": tally.fetched,
                "spark": tally.draw(),
                **read_origin(store, path),
            }
