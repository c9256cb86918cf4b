"""A web in memory, a keyword critic, and real crawls of that web, for tests."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.crawl import Crawl, CrawlConfig, CrawlFolder
from focuscrawl.crawl.assembly import build_parts
from focuscrawl.crawl.loop import REPLAY_TIME, fetch_answer, process_answer
from focuscrawl.crawl.state import restore
from focuscrawl.critic.protocol import Judgement
from focuscrawl.foundation.urls import normalize
from focuscrawl.frontier import Frontier
from focuscrawl.strategies import StrategyContext, make_strategy
from focuscrawl.webs.warc_recorder import WarcRecorder
from focuscrawl.webs.web_protocol import Answer

if TYPE_CHECKING:
    from focuscrawl.crawl import Visit
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.page import PageView
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.web_protocol import Web


class TinyWeb:
    """Pages in memory that can be crawled like a recording of the Web (`webs.web_protocol.Web`).

    Parameters
    ----------
    pages : Mapping[str, str]
        HTML of each absolute URL.
    redirects : Mapping[str, str]
        Target of each redirected absolute URL.

    Attributes
    ----------
    name : str
        "tiny".
    fingerprint : str
        Hex digest; equal for webs with the same calls of `put`.
    """

    name = "tiny"

    def __init__(
        self, pages: Mapping[str, str] = {}, *, redirects: Mapping[str, str] = {}
    ) -> None:
        self._answers: dict[str, Answer] = {}
        self.fingerprint = ""
        for url, html in pages.items():
            self.put(url, html)
        for url, target in redirects.items():
            self.put(url, "", 301, location=target)

    def put(self, url: str, body: str, status: int = 200, **headers: str) -> None:
        """Add or replace the response for the absolute URL `url`; by default, it is HTML.

        Header fields are given as keyword arguments in lower case, as in
        ``content_type="text/plain"``.
        """
        known = normalize(url)
        if known is None:
            raise ValueError(f"{url!r} is not an absolute http(s) URL")
        given = {"content_type": "text/html", **headers}
        named = [(name.replace("_", "-").title(), value) for name, value in given.items()]
        answer = Answer(known, status, named, body.encode("utf-8", "surrogatepass"))
        self._answers[_without_scheme(known)] = answer
        digest = hashlib.sha256(f"{self.fingerprint} {answer!r}".encode())
        self.fingerprint = digest.hexdigest()

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Return each URL in the web's own spelling; None for URLs not in the web."""
        found = (self._answers.get(_without_scheme(url)) for url in urls)
        return [None if answer is None else answer.url for answer in found]

    def fetch(self, url: str) -> Answer | None:
        """Return the response for a URL that `resolve` returned; None for other URLs."""
        return self._answers.get(_without_scheme(url))

    def urls(self) -> Iterator[str]:
        """Yield the URLs of the web in the order in which `put` added the URLs."""
        return (answer.url for answer in self._answers.values())

    def write(self, path: Path) -> Path:
        """Write the web to a WARC file ``*.warc.gz``, for ``scrapy crawl ... -a web=PATH``."""
        with WarcRecorder(path) as recorder:
            for answer in self._answers.values():
                recorder.record(
                    request_method="GET",
                    url=answer.url,
                    request_headers=[],
                    request_body=b"",
                    status=answer.status,
                    reason="",
                    response_headers=answer.headers,
                    body_raw=answer.body,
                    ip=None,
                    at=datetime(2026, 1, 1, tzinfo=UTC),
                )
        return path


def _without_scheme(url: str) -> str:
    return url.partition("://")[2]


SEED = "http://leaf.example/"


def example_web() -> TinyWeb:
    """Return a web of 60 pages on three hosts; two thirds of the pages are about tea.

    Some pages have many links, and some pages have none. Some links are repeated, lead to their
    own page, or lead to missing pages. Two pages of the example web have the same body.
    """
    hosts = ("leaf", "cup", "form")
    urls = [SEED] + [
        f"http://{hosts[i % 3]}.example/{'ab'[i % 2]}/p{i}.html" for i in range(1, 59)
    ]
    about = ["tea leaf green" if i % 3 != 2 else "tax form income" for i in range(len(urls))]
    pages = {}
    for i, url in enumerate(urls):
        targets = [] if i % 11 == 10 else sorted({(3 * i + k * k) % len(urls) for k in range(7)})
        items = [f"<li><a href={urls[t]}>{about[t]} {t}</a> more {t % 5}" for t in targets]
        if i % 5 == 0:
            items += [*items[:1], f"<li><a href={url}>here</a><li><a href=/nowhere>lost</a>"]
        pages[url] = f"<title>{about[i]}</title><h1>p{i}</h1>{about[i]} {i % 7}{''.join(items)}"
    pages["http://cup.example/copy.html"] = pages[urls[1]]
    pages[urls[0]] += "<a href=http://cup.example/copy.html>a copy</a>"
    return TinyWeb(pages)


class KeywordCritic:
    """A `Critic` that judges a page as on topic if the page contains a given word.

    Parameters
    ----------
    word : str
        Word in lower case.
    high, low : float
        Relevance of pages with and without the word.
    classes : tuple[str, str]
        Names of the topic and of the off-topic class.
    reads_words : bool
        See `focuscrawl.critic.protocol.Critic`.
    """

    marked = np.array([True, False])
    examples: tuple[str, ...] = ()
    fingerprint = "c417"

    def __init__(
        self,
        word: str,
        *,
        high: float = 0.9,
        low: float = 0.2,
        classes: tuple[str, str] = ("/Topic", "/Other"),
        reads_words: bool = False,
    ) -> None:
        self.classes: tuple[str, ...] = classes
        self.reads_words = reads_words
        self._word, self._high, self._low = word, high, low

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        """Judge `pages`."""
        found = [self._high if self._word in page.tokens else self._low for page in pages]
        relevance = np.array(found, np.float64)
        return Judgement(relevance, np.stack([relevance, 1.0 - relevance], axis=1))


def new_crawl(
    folder: Path,
    web: Web | None,
    seeds: Sequence[str],
    *,
    critic: Critic,
    strategy: str | Callable[[StrategyContext], Strategy] = "best-first",
    **config: Any,
) -> Crawl:
    """Create or resume a crawl of `web`; then call `step` to fetch pages.

    Parameters
    ----------
    folder : Path
        Folder of the crawl.
    web : Web or None
        Web to crawl; None for a live crawl, whose pages the caller fetches.
    seeds : Sequence[str]
        Normalised start URLs.
    critic : Critic
        Critic of the crawl.
    strategy : str or Callable[[StrategyContext], Strategy]
        Name of an installed strategy, or a function that creates the strategy.
    config : Any
        Other attributes of `focuscrawl.crawl.CrawlConfig`, such as ``budget=10``.
    """
    name = strategy if isinstance(strategy, str) else getattr(strategy, "__name__", "own")
    given = CrawlConfig(**{"topic": critic.classes[0], "closed": True, "strategy": name, **config})
    context = StrategyContext(critic, given.random_state, web, given.topics)
    kept = CrawlFolder(folder)
    crawl = Crawl(
        critic=critic,
        strategy=strategy(context)
        if callable(strategy)
        else make_strategy(strategy, context, given.options),
        frontier=Frontier(given.per_host, given.delay),
        store=kept.open_store({"strategy": name}, {}),
        folder=kept,
        web=web,
        config=given,
    )
    crawl.parts = build_parts(crawl)
    restore(crawl)
    crawl.start(list(seeds))
    return crawl


def step(crawl: Crawl) -> Visit | None:
    """Fetch and judge the next page of a crawl; return None if no URL or no budget is left."""
    while True:
        fetch = crawl.next(REPLAY_TIME)
        if fetch is not None:
            return process_answer(crawl, fetch, fetch_answer(crawl, fetch))
        if not crawl.is_waiting:
            return None
        time.sleep(crawl.wait_time)  # until a training or the store is done


def crawl(
    folder: Path,
    web: Web,
    seeds: Sequence[str],
    *,
    critic: Critic,
    strategy: str | Callable[[StrategyContext], Strategy] = "best-first",
    **config: Any,
) -> list[Visit]:
    """Crawl `web` until the frontier is empty or the budget is spent, and return the fetches.

    The parameters are the same as for `new_crawl`. A second call with the same folder resumes the
    crawl.
    """
    opened = new_crawl(folder, web, seeds, critic=critic, strategy=strategy, **config)
    visits = list(iter(lambda: step(opened), None))
    opened.close(opened.stop_reason or "frontier_empty")
    return visits
