"""Chooses pages for a person or a teacher to judge, and reads judgements from CSV files."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.crawl.scope import can_be_page
from focuscrawl.critic.classifiers import as_matrix
from focuscrawl.critic.corpus import find_pages
from focuscrawl.critic.critic_files import load_trained
from focuscrawl.critic.focused_critic import FocusedCritic
from focuscrawl.critic.page_vectors import PageVectors, word_vectors_installed
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.urls import host, parse_url
from focuscrawl.foundation.user_input import read_csv_rows
from focuscrawl.offline.link_graph import CrawlLinks
from focuscrawl.report.plain_text import escape_csv_cell, one_line, pluralize
from focuscrawl.taxonomy import lies_under
from focuscrawl.topics import train_definition
from focuscrawl.webs import read_page

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.offline.link_graph import CrawlGraph
    from focuscrawl.page import PageView
    from focuscrawl.store import CrawlStore
    from focuscrawl.topics import TopicDefinition
    from focuscrawl.webs.web_protocol import Web


#: kind of suggestions where none is named
DEFAULT_KIND = "uncertain"

_BASE_DOUBT = 0.1  # added to the doubt of each page: matters if a critic is always certain
_PRIOR_NEIGHBOURS = 2.0  # weight of the crawl's mean relevance, in neighbours
_MIN_NEIGHBOURS = 2  # of a page that its neighbours can contradict
_READ_PER_QUESTION = 10  # candidate pages read per suggestion
_MAX_NEIGHBOURS_READ = 1000
_NEIGHBOUR = "neighbour"  # kind
_GOOD = frozenset({"good", "yes", "y", "1", "+", "on", "true"})
_BAD = frozenset({"bad", "no", "n", "0", "-", "off", "false"})
_NO_VERDICT = frozenset({"", "?", "skip"})


class Suggestion(NamedTuple):
    """A page to judge."""

    url: str
    title: str
    relevance: float  # by the current critic
    kind: str  # key of `KINDS`
    reason: str  # why the page was chosen, in figures


class _Pages(NamedTuple):
    """HTML pages of a crawl in the order fetched, without duplicates."""

    ids: Ints
    urls: list[str]
    titles: list[str]
    relevance: Floats
    neighbour_relevance: Floats  # mean over fetched neighbours, shrunk to the mean of all pages
    n_neighbours: Ints


class _Candidates(NamedTuple):
    """Parameters of `suggest`, and the pages to choose from."""

    store: CrawlStore
    webs: Sequence[Web]
    known: Collection[str]
    n: int
    pages: _Pages


def suggest(
    store: CrawlStore,
    webs: Sequence[Web],
    n: int = 20,
    *,
    known: Collection[str] = (),
    kinds: Sequence[str] = (DEFAULT_KIND,),
) -> list[Suggestion]:
    """Choose pages to judge: in turn one page of each kind in `kinds`.

    If several pages of a host have the same title, only one of these pages is chosen.

    Parameters
    ----------
    store : CrawlStore
        Store of the crawl, which may be running.
    webs : sequence of Web
        Webs to read the crawl's pages from, in this order.
    n : int
        Maximum number of pages.
    known : collection of str
        URLs of pages with a known verdict, which are not chosen.
    kinds : sequence of str
        Keys of `KINDS`.

    Raises
    ------
    UserError
        The crawl has no page to judge.
    """
    pages = _read_judged_pages(store)
    if not len(pages.ids):
        raise UserError(f"{store.location} has no HTML page to judge yet: let it fetch more pages")
    crawl = _Candidates(store, webs, known, n, pages)
    orders = [KINDS[kind](crawl) for kind in kinds]
    chosen, seen = list[Suggestion](), _SeenPages(pages, known)
    while orders and len(chosen) < n:
        for order in list(orders):
            for page in order:
                if seen.add(page.url, page.title):
                    chosen.append(page)
                    break
            else:
                orders.remove(order)
            if len(chosen) == n:
                break
    return chosen


class _SeenPages:
    """Pages that were chosen or judged before, with other versions of these pages."""

    def __init__(self, pages: _Pages, known: Collection[str]) -> None:
        self._urls = set(known)
        titled = zip(pages.urls, pages.titles, strict=True)
        self._titles = {(host(url), title) for url, title in titled if title and url in known}

    def add(self, url: str, title: str) -> bool:
        """Add a page; return False if the same page or title of the host was added before."""
        if url in self._urls or (host(url), title) in self._titles:
            return False
        self._urls.add(url)
        if title:
            self._titles.add((host(url), title))
        return True


def _uncertain(crawl: _Candidates) -> Iterator[Suggestion]:
    """Yield pages of uncertain relevance that differ from each other and from judged pages.

    Only the pages with relevance nearest to 1/2 are read. Of equal pages, those whose neighbours
    contradict them most come first.
    """
    pages = crawl.pages
    away = np.abs(pages.relevance - RELEVANT)
    against = -np.abs(pages.neighbour_relevance - pages.relevance)
    order = np.lexsort((against, away)).tolist()
    seen = _SeenPages(pages, crawl.known)
    new = (i for i in order if seen.add(pages.urls[i], pages.titles[i]))
    near = [*islice(new, _READ_PER_QUESTION * crawl.n)]
    names = [pages.urls[i] for i in near]
    read = find_pages(crawl.webs, [*names, *crawl.known])
    near = [i for i in near if pages.urls[i] in read]
    bags = [read[pages.urls[i]].bag for i in near]
    judged = [read[url].bag for url in sorted(crawl.known) if url in read]
    for place in order_by_doubt(pages.relevance[near], bags, judged):
        i = near[place]
        yield _make_suggestion(pages, i, DEFAULT_KIND, f"relevance {pages.relevance[i]:.2f}")


def order_by_doubt(
    relevance: Floats, pages: Sequence[Bag], judged: Sequence[Bag]
) -> Iterator[int]:
    """Yield positions of pages; the next page has the largest product of doubt and distance.

    The doubt about a page is the standard deviation of its verdict, if the verdict is positive
    with the probability `relevance`. The distance of a page is 1 minus its cosine similarity to
    the most similar page that was judged or yielded before. The cosine similarity is the mean of
    the similarities by words and by word vectors.

    Parameters
    ----------
    relevance : NDArray[np.float64] of shape (n_pages,)
    pages : sequence of Bag of length n_pages
        Bags of words.
    judged : sequence of Bag
        Bags of words of the judged pages.
    """
    if not len(pages):
        return
    vectors = PageVectors.fit(pages, embeddings=word_vectors_installed())
    rows = as_matrix(vectors.transform([*pages, *judged]), len(vectors.words))
    asked = rows[: len(pages)]
    doubt = np.sqrt(np.maximum(relevance * (1.0 - relevance), 0.0)) + _BASE_DOUBT
    n_parts = 2.0 if vectors.dimensions else 1.0  # unit vectors of which a row consists
    similarity = np.asarray((asked @ rows.T).todense()) / n_parts
    nearest = similarity[:, len(pages) :].max(axis=1, initial=0.0)
    left = np.ones(len(pages), np.bool_)
    while left.any():
        best = int(np.argmax(np.where(left, doubt * (1.0 - nearest), -1.0)))
        left[best] = False
        yield best
        nearest = np.maximum(nearest, similarity[:, best])


def _false_positives(crawl: _Candidates) -> Iterator[Suggestion]:
    """Yield relevant pages, those with the least relevant neighbours first."""
    pages = crawl.pages
    known = pages.n_neighbours >= _MIN_NEIGHBOURS
    doubtful = np.flatnonzero((pages.relevance > RELEVANT) & known)
    for i in doubtful[np.argsort(pages.neighbour_relevance[doubtful], kind="stable")].tolist():
        yield _make_suggestion(pages, i, "doubtful", _describe_neighbours(pages, i))


def _false_negatives(crawl: _Candidates) -> Iterator[Suggestion]:
    """Yield off-topic pages, those with the most relevant neighbours first [F99, hubs]."""
    pages = crawl.pages
    known = pages.n_neighbours >= _MIN_NEIGHBOURS
    missed = np.flatnonzero((pages.relevance <= RELEVANT) & known)
    for i in missed[np.argsort(-pages.neighbour_relevance[missed], kind="stable")].tolist():
        yield _make_suggestion(pages, i, "missed", _describe_neighbours(pages, i))


def _distilled(crawl: _Candidates, *, score: str) -> Iterator[Suggestion]:
    with require_extra("report", "choosing hubs and authorities to judge"):
        from focuscrawl.report.prestige import Distillation  # noqa: PLC0415
    try:
        found = Distillation.of(crawl.store)
    except UserError:
        return  # no links between relevant pages
    pages = crawl.pages
    place = {name: i for i, name in enumerate(pages.urls)}
    for rank, url in enumerate(found.best(score, len(place))["url"], 1):
        if url in place:
            yield _make_suggestion(pages, place[url], score, f"rank {rank}")


#: kinds of suggestions
KINDS: dict[str, Callable[[_Candidates], Iterator[Suggestion]]] = {
    DEFAULT_KIND: _uncertain,
    "doubtful": _false_positives,
    "missed": _false_negatives,
    "hub": partial(_distilled, score="hub"),
    "authority": partial(_distilled, score="authority"),
}


def _make_suggestion(pages: _Pages, i: int, kind: str, reason: str) -> Suggestion:
    relevance = float(pages.relevance[i])
    return Suggestion(pages.urls[i], pages.titles[i], relevance, kind, reason)


def _describe_neighbours(pages: _Pages, i: int) -> str:
    mean = pages.neighbour_relevance[i]
    return f"mean relevance of neighbours {mean:.2f} ({pages.n_neighbours[i]} pages)"


def _read_judged_pages(store: CrawlStore) -> _Pages:
    crawl = CrawlLinks.from_store(store)
    url = crawl.pages[crawl.judged[crawl.pages]]
    relevance = crawl.relevance[url]
    place = np.full(len(crawl.names), -1)
    place[url] = np.arange(len(url))
    ends = np.sort(place[np.stack([crawl.source, crawl.target], axis=1)], axis=1)
    ends = ends[(ends[:, 0] >= 0) & (ends[:, 0] != ends[:, 1])]
    one, other = np.unique(ends, axis=0).T  # links in both directions count once
    one, other = np.concatenate([one, other]), np.concatenate([other, one])
    n = len(url)
    neighbours = np.bincount(one, minlength=n)
    mean = float(relevance.mean()) if n else 0.0
    sums = np.bincount(one, relevance[other], minlength=n)
    return _Pages(
        ids=url,
        urls=[crawl.names[each] for each in url.tolist()],
        titles=[crawl.titles[each] or "" for each in url.tolist()],
        relevance=relevance,
        neighbour_relevance=(sums + _PRIOR_NEIGHBOURS * mean) / (neighbours + _PRIOR_NEIGHBOURS),
        n_neighbours=neighbours,
    )


def write_questions(suggestions: Sequence[Suggestion], path: str | Path) -> None:
    """Write pages to a CSV file whose column ``verdict`` a person fills in.

    Raises
    ------
    UserError
        The file exists or cannot be written.
    """
    try:
        with Path(path).open("x", encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["url", "verdict", "kind", "relevance", "title"])
            for page in suggestions:
                title = escape_csv_cell(one_line(page.title))
                rows.writerow([page.url, "", page.kind, f"{page.relevance:.3f}", title])
    except FileExistsError:
        raise UserError(f"{path} exists already: name another file") from None
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None


def read_verdict(text: str) -> bool | None:
    """Parse a verdict: True for good, False for bad, None if empty; else raise ValueError."""
    word = text.strip().lower()
    if word in _NO_VERDICT:
        return None
    if word in _GOOD or word in _BAD:
        return word in _GOOD
    raise ValueError(text)


def read_judgements(path: str | Path) -> tuple[list[str], list[str]]:
    """Read judgements from a CSV file with the columns ``url`` and ``verdict``.

    Returns
    -------
    good, bad : list of str
        Judged URLs. Rows without a verdict are skipped.

    Raises
    ------
    UserError
        The file cannot be read, lacks a column, or has an invalid verdict or URL.
    """
    judged = {True: list[str](), False: list[str]()}
    for row_number, row in read_csv_rows(path, ["url", "verdict"]):
        where = f"{path}, row {row_number}"
        try:
            verdict = read_verdict(row["verdict"])
        except ValueError:
            text = row["verdict"]
            raise UserError(
                f"{where}: verdict {text!r} is not good, bad or empty: change it"
            ) from None
        url = parse_url(row["url"], f"{where}: {row['url']!r}")
        if verdict is not None:
            judged[verdict].append(url)
    both = sorted(set(judged[True]) & set(judged[False]))
    if both:
        raise UserError(f"{path}: {both[0]} is both good and bad: remove one row")
    return judged[True], judged[False]


def find_page(webs: Sequence[Web], url: str) -> PageView | None:
    """Read a page from the first recording that contains the page; None if no recording does."""
    return next(filter(None, (read_page(web, url) for web in webs)), None)


def neighbour_sources(definition: TopicDefinition) -> list[str]:
    """Return the good pages and start pages of a topic definition, to find their neighbours.

    Raises
    ------
    UserError
        The definition has no good page and no seed.
    """
    examples = list(dict.fromkeys([*definition.good, *definition.seeds]))
    if not examples:
        raise UserError(
            "the definition has no good pages: add pages with focuscrawl topic add --good URL"
        )
    return examples


def suggest_neighbours(
    definition: TopicDefinition,
    webs: Sequence[Web],
    n: int = 20,
    *,
    crawls: Sequence[CrawlGraph] = (),
) -> list[Suggestion]:
    """Choose the most relevant of the pages that link to examples or to which examples link.

    The critic of the topic definition judges the pages. If the topic definition names no critic, a
    critic is trained. Pages of equal relevance are sorted by the number of examples that link to
    them or that they link to.

    Parameters
    ----------
    webs : sequence of Web
        Webs to read pages from, in this order.
    n : int
        Maximum number of pages.
    crawls : sequence of CrawlGraph
        Link graphs that show which pages link to the examples.

    Raises
    ------
    UserError
        The definition has no examples, or none of their neighbours can be read.
    """
    examples = neighbour_sources(definition)
    cited, citing = _count_links(examples, webs, crawls)
    n_examples = cited + citing
    for url in definition.judged_urls | set(examples):
        del n_examples[url]
    wanted = [url for url, _ in sorted(n_examples.items(), key=lambda item: (-item[1], item[0]))]
    known = find_pages(webs, wanted[:_MAX_NEIGHBOURS_READ])
    first = {page.url: url for url, page in reversed(known.items())}  # one URL per page
    read = {url: page for url, page in known.items() if first[page.url] == url}
    if not read:
        count = pluralize(len(examples), "example")
        raise UserError(f"no page linked with {count} can be read: name another --web")
    judged = _load_critic(definition, webs).judge_bags([page.bag for page in read.values()])
    relevance = dict(zip(read, judged.relevance.tolist(), strict=True))
    order = sorted(read, key=lambda url: (-round(relevance[url], 6), -n_examples[url], url))
    found = []
    for url in order[:n]:
        page = find_page(webs, read[url].url)
        links = [
            *([f"linked by {pluralize(cited[url], 'example')}"] if cited[url] else []),
            *([f"links to {pluralize(citing[url], 'example')}"] if citing[url] else []),
        ]
        reason = f"relevance {relevance[url]:.2f}, {', '.join(links)}"
        title = "" if page is None else page.title
        found.append(Suggestion(url, title, relevance[url], _NEIGHBOUR, reason))
    return found


def _count_links(
    examples: Sequence[str], webs: Sequence[Web], crawls: Sequence[CrawlGraph]
) -> tuple[Counter[str], Counter[str]]:
    """Count, for each page, the examples that link to the page and the examples it links to."""
    cited, citing = Counter[str](), Counter[str]()
    for url, page in find_pages(webs, examples).items():
        view = find_page(webs, page.url)
        links = [] if view is None else view.links.urls
        cited.update({to for to in links if can_be_page(to)} - {url, page.url})
    for crawl in crawls:
        for source, targets in crawl.targets.items():
            reached = len(set(examples) & set(targets) - {source})
            if reached:
                citing[source] = max(citing[source], reached)
    return cited, citing


def _load_critic(definition: TopicDefinition, webs: Sequence[Web]) -> FocusedCritic:
    if definition.critic is not None:
        return load_trained(definition.critic, ",".join(definition.topics))
    trained, topics = train_definition(definition, webs)
    classes = trained.model.classes
    marked = np.array([lies_under(path, topics) for path in classes])
    return FocusedCritic(trained.model, marked, (), "", trained.calibration)
