"""Effect of each knowledge base of the learnable crawler, and of its keywords [L]."""

from __future__ import annotations

import hashlib
import heapq
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.distiller import Distiller
from focuscrawl.knowledge import CrawlRecord, FetchRecord, Knowledge, add_crawl
from focuscrawl.lab.planning import sample
from focuscrawl.strategies import JudgedPage, StrategyContext, make_strategy
from focuscrawl.webs.web_protocol import HtmlAnswer
from studies.whole_crawls import hosts_of, link_graph, opened

if TYPE_CHECKING:
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.lab.judged_web import JudgedWeb
    from focuscrawl.page import PageView
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.web_protocol import Web
    from studies.topic_tasks import Task


_ANCHORS = 20  # maximum number of distinct anchors per page


class Contender(NamedTuple):
    """A crawl of the ablation.

    Attributes
    ----------
    label : str
        Label in tables.
    options : dict
        Options of the strategy `learnable`.
    second : bool
        The crawl follows the first crawl and has other start URLs.
    knows : bool
        The crawl starts with knowledge of the first crawl.
    starts : bool
        The crawl starts at URLs that the knowledge proposes.
    """

    label: str
    options: dict[str, Any]
    second: bool = False
    knows: bool = False
    starts: bool = False


_BY_KEYWORDS = {"page": "keywords"}
FIRST = Contender("1: all of these", {})
CONTENDERS = (
    Contender("1: no keywords", {"first": []}),
    Contender("1: words of the name", {"first": ["topic"]}),
    Contender("1: of the examples", {"first": ["examples"]}),
    Contender("1: of the start pages", {"first": ["seeds"]}),
    FIRST,
    Contender("1: page by keywords", _BY_KEYWORDS),
    Contender("2: alone", {}, second=True),
    Contender("2: keywords", {"bases": ["keywords"]}, second=True, knows=True),
    Contender("2: prediction", {"bases": ["prediction"]}, second=True, knows=True),
    Contender("2: seeds", {"bases": []}, second=True, knows=True, starts=True),
    Contender("2: keywords, prediction", {}, second=True, knows=True),
    Contender("2: all three", {}, second=True, knows=True, starts=True),
    Contender("2: all three, page by keywords", _BY_KEYWORDS, True, True, True),
)


def study_bases(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl a topic with each knowledge base of [L] alone, with all, and without any.

    Crawls run in memory on the recorded web with the study's budget, one request at a time, like
    replays. The first crawl starts at the seeds of the study. The second crawl starts at as many
    other examples, or at URLs that the knowledge of the first crawl proposes.

    Returns
    -------
    dict[str, pd.DataFrame]
        ``bases`` has a row for each crawl: ``label``, ``fetches``, mean relevance ``harvest``, and
        ``new``, the share of fetches that are relevant and not in the first crawl.
    """
    web, critic, whole = opened(task)
    walker = _Walker(web, whole, task.topic)
    seeds = walker.whole.page_indices(task.seeds)
    examples = [n for n in walker.whole.page_indices(critic.examples) if n not in set(seeds)]
    others = sample(examples, len(seeds), (0, 1))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "knowledge.db")
        strategy = _strategy(critic, web, task.topic, FIRST, None)
        first = walker.crawl(strategy, seeds, task.budget)
        add_crawl(path, walker.record(first, task.topic, critic.fingerprint))
        rows = []
        with closing(Knowledge(path)) as knowledge:
            for each in CONTENDERS:
                known = knowledge if each.knows else None
                begin = others if each.second else seeds
                if each.starts:
                    begin = walker.whole.page_indices(knowledge.seeds()) or begin
                strategy = _strategy(critic, web, task.topic, each, known)
                made = first if each is FIRST else walker.crawl(strategy, begin, task.budget)
                fresh = made.fetched.keys() - first.fetched.keys()
                gained = sum(made.fetched[page] > RELEVANT for page in fresh)
                rows.append(
                    {
                        "label": each.label,
                        "fetches": len(made.fetched),
                        "harvest": sum(made.fetched.values()) / task.budget,
                        "new": gained / task.budget if each.second else np.nan,
                    }
                )
    return {"bases": pd.DataFrame(rows)}


def _strategy(
    critic: Critic, web: Web, topic: str, contender: Contender, knowledge: Knowledge | None
) -> Strategy:
    context = StrategyContext(critic, 0, web, (topic,), knowledge)
    return make_strategy("learnable", context, contender.options)


class _CrawlResult(NamedTuple):
    """A crawl: relevance of each fetch (0 for copies), in order, and link texts by target."""

    fetched: dict[int, float]
    anchors: dict[int, list[str]]


class _Walker:
    """Crawls a recorded web in memory and parses each page once for all crawls."""

    def __init__(self, web: Web, whole: JudgedWeb, topic: str) -> None:
        self.whole = whole
        self._web = web
        self._relevance = whole.relevance(topic)
        self._hosts = hosts_of(whole)
        self._number = {url: i for i, url in enumerate(whole.urls)}
        self._views: dict[int, PageView | None] = {}

    def crawl(self, strategy: Strategy, seeds: Sequence[int], budget: int) -> _CrawlResult:
        """Crawl like a replay: redirects and copies are fetches of relevance 0."""
        made = _CrawlResult({}, defaultdict(list))
        contents: set[int] = set()
        depth = dict.fromkeys(seeds, 0)
        heap = [(-np.inf, n, page) for n, page in enumerate(seeds)]
        count = len(heap)
        while heap and len(made.fetched) < budget:
            _, _, page = heapq.heappop(heap)
            if page in made.fetched:
                continue
            view = self._view(page)
            content = int(self.whole.content[page])
            judged = view is not None and content not in contents
            made.fetched[page] = float(self._relevance[page]) if judged else 0.0
            strategy.observe(page, made.fetched[page], None)
            if view is None:
                waiting: Iterator[tuple[int, float]] = iter(
                    (target, np.inf) for target in self.whole.links(page)
                )
                below = depth[page]
            elif not judged:
                continue
            else:
                contents.add(content)
                waiting = self._expanded(strategy, made, page, view, depth[page])
                below = depth[page] + 1
            for target, score in waiting:
                depth.setdefault(target, below)
                if target not in made.fetched:
                    count += 1
                    heapq.heappush(heap, (-score, count, target))
        return made

    def _expanded(
        self, strategy: Strategy, made: _CrawlResult, page: int, view: PageView, depth: int
    ) -> Iterator[tuple[int, float]]:
        known = self._web.resolve(view.links.urls)
        reachable = set(self.whole.links(page))
        at = [self._number.get(url or "", -1) for url in known]
        links = np.array([i for i, n in enumerate(at) if n in reachable], np.int64)
        targets = np.array([at[i] for i in links.tolist()], np.int64)
        for i, target in zip(links.tolist(), targets.tolist(), strict=True):
            text = view.links.anchors[i]
            if text and len(made.anchors[target]) < _ANCHORS:
                made.anchors[target].append(text)
        seq, relevance = len(made.fetched), made.fetched[page]
        judged = JudgedPage(view, page, seq, depth, relevance, None, links, targets)
        expansion = strategy.expand(judged)
        return zip(expansion.urls.tolist(), expansion.scores.tolist(), strict=True)

    def _view(self, page: int) -> PageView | None:
        if page not in self._views:
            url = self.whole.urls[page]
            answer = HtmlAnswer.from_answer(self._web.fetch(url), url)
            self._views[page] = None if answer is None else answer.parse()
        return self._views[page]

    def record(self, made: _CrawlResult, topic: str, critic: str) -> CrawlRecord:
        """Return the record of a crawl from which knowledge is learned."""
        graph = link_graph(self.whole, self._relevance, self._hosts, list(made.fetched))
        scores = Distiller(graph).distill()
        hub, authority = (
            each / max(float(each.max(initial=0.0)), 1e-12)
            for each in (scores.hubs, scores.authorities)
        )
        fetches = []
        for page, relevance in made.fetched.items():
            view = self._view(page)
            text = "" if view is None else " ".join(view.tokens)
            fetches.append(
                FetchRecord(
                    url=self.whole.urls[page],
                    status=200 if view is not None else 301,
                    relevance=relevance,
                    content=hashlib.blake2b(text.encode(), digest_size=8).digest()
                    if view is not None
                    else None,
                    etag=None,
                    last_modified=None,
                    day=0.0,
                    texts=() if view is None else (view.title, *view.headings),
                    anchors=tuple(dict.fromkeys(made.anchors[page])),
                    hub=float(hub[page]),
                    authority=float(authority[page]),
                )
            )
        return CrawlRecord("first", "first", topic, critic, "", True, "", fetches)


def bases_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return means over topics, by web and label: ``harvest``, ``new``, and ``above``.

    ``above`` is the number of topics on which a second crawl has more new relevant pages than a
    second crawl without knowledge, or a first crawl more harvest than one by the topic's name.
    """
    of = table.set_index(["web", "topic", "label"])
    wide = of["new"].where(of["new"].notna(), of["harvest"]).unstack("label")
    rows = []
    for web, part in table.groupby("web", sort=False):
        topics = wide.loc[str(web)]
        for label, same in part.groupby("label", sort=False):
            beside = "2: alone" if str(label).startswith("2") else "1: words of the name"
            rows.append(
                {
                    "web": web,
                    "label": label,
                    "harvest": same["harvest"].mean(),
                    "new": same["new"].mean(),
                    "above": int((topics[label] > topics[beside] + 0.0005).sum()),
                    "topics": len(same),
                }
            )
    return pd.DataFrame(rows)
