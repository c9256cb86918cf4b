"""Choosing pages to ask a person about, and answers in a CSV file."""

from __future__ import annotations

import csv
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.crawl.scope import can_be_page
from focuscrawl.critic.classifiers import as_matrix
from focuscrawl.critic.corpus import read_known
from focuscrawl.critic.critic_files import load_trained
from focuscrawl.critic.focused_critic import FocusedCritic
from focuscrawl.critic.page_vectors import PageVectors, word_vectors_installed
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.urls import host, no_url, normalize
from focuscrawl.foundation.user_input import read_rows
from focuscrawl.offline.link_graph import CrawlLinks
from focuscrawl.report.plain_text import escape_csv_cell, one_line, pluralize
from focuscrawl.taxonomy import lies_under
from focuscrawl.topics import train_definition
from focuscrawl.webs import read_page

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.offline.link_graph import CrawlGraph
    from focuscrawl.page import PageView
    from focuscrawl.store import CrawlStore
    from focuscrawl.topics import TopicDefinition
    from focuscrawl.webs.web_protocol import Web


#: the kind of questions that is asked where none is named
DEFAULT_KIND = "uncertain"

#: of doubt, added to every page's: a critic that is always sure is asked about unlike pages
_BASE_DOUBT = 0.1
_PRIOR_NEIGHBOURS = 2.0  # neighbours that the crawl's own mean counts for
_MIN_NEIGHBOURS = 2  # neighbours that can contradict a judgement
_READ_PER_QUESTION = 10  # pages for a question, of which it is chosen
_MAX_NEIGHBOURS_READ = 1000  # at most, those of the most examples first
_NEIGHBOUR = "neighbour"  # kind
_GOOD = frozenset({"good", "yes", "y", "1", "+", "on", "true"})
_BAD = frozenset({"bad", "no", "n", "0", "-", "off", "false"})
_NO_VERDICT = frozenset({"", "?", "skip"})


class Suggestion(NamedTuple):
    """A page to judge.

    Attributes
    ----------
    url, title, relevance : of the page, R by the present critic
    kind : of `KINDS`, why it is worth asking
    reason : the same in figures
    """

    url: str
    title: str
    relevance: float
    kind: str
    reason: str


class _Pages(NamedTuple):
    """Judged pages in the order fetched; duplicates and what is no HTML are left out."""

    ids: Ints
    urls: list[str]
    titles: list[str]
    relevance: Floats
    neighbour_relevance: Floats  # mean over fetched neighbours, shrunk to the mean of all pages
    n_neighbours: Ints


class _Candidates(NamedTuple):
    """What there is to choose from, for `n` questions; parameters of `suggest`."""

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
    """Choose pages to judge, in turn of each kind; the same crawl has the same ones.

    Of pages with one title on one host, as versions of a page are, only one is asked about.

    Parameters
    ----------
    store : of the crawl, which may be running
    webs : where its pages are read again, in the order to look for one
    n : how many, at most
    known : URLs of pages whose verdict is known, which are not asked about
    kinds : some of `KINDS`

    Raises
    ------
    UserError
        The crawl has no page to judge.
    """
    pages = _read_judged_pages(store)
    if not len(pages.ids):
        raise UserError(f"{store.where}: no HTML page was fetched yet: there is nothing to judge")
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
    """Pages asked about or known before, other versions of them included."""

    def __init__(self, pages: _Pages, known: Collection[str]) -> None:
        self._urls = set(known)
        titled = zip(pages.urls, pages.titles, strict=True)
        self._titles = {(host(url), title) for url, title in titled if title and url in known}

    def add(self, url: str, title: str) -> bool:
        """Add a page; return whether it is new."""
        if url in self._urls or (host(url), title) in self._titles:
            return False
        self._urls.add(url)
        if title:
            self._titles.add((host(url), title))
        return True


def _uncertain(crawl: _Candidates) -> Iterator[Suggestion]:
    """Pages that the critic is unsure of, unlike each other and those that were judged.

    Only the pages nearest to R = 1/2 are read; of equals, those that their neighbours contradict
    most.
    """
    pages = crawl.pages
    away = np.abs(pages.relevance - RELEVANT)
    against = -np.abs(pages.neighbour_relevance - pages.relevance)
    order = np.lexsort((against, away)).tolist()
    seen = _SeenPages(pages, crawl.known)
    new = (i for i in order if seen.add(pages.urls[i], pages.titles[i]))
    near = [*islice(new, _READ_PER_QUESTION * crawl.n)]
    names = [pages.urls[i] for i in near]
    read = read_known(crawl.webs, [*names, *crawl.known])
    near = [i for i in near if pages.urls[i] in read]
    bags = [read[pages.urls[i]].bag for i in near]
    judged = [read[url].bag for url in sorted(crawl.known) if url in read]
    for place in order_by_doubt(pages.relevance[near], bags, judged):
        i = near[place]
        yield _make_suggestion(pages, i, DEFAULT_KIND, f"R {pages.relevance[i]:.2f}")


def order_by_doubt(
    relevance: Floats, pages: Sequence[Bag], judged: Sequence[Bag]
) -> Iterator[int]:
    """Yield the places of pages, each time that with the largest doubt times distance.

    Doubt is the standard deviation of a verdict that is yes with probability R; distance is one
    less the cosine (the mean of two, by words and by meaning) with the nearest page that was
    judged or yielded: so many pages like one doubtful page are one question.

    Parameters
    ----------
    relevance : (n,), R of the pages
    pages : n bags of words
    judged : those of pages whose verdict is known
    """
    if not len(pages):
        return
    vectors = PageVectors.learn(pages, embeddings=word_vectors_installed())
    rows = as_matrix(vectors.read([*pages, *judged]), len(vectors.words))
    asked = rows[: len(pages)]
    doubt = np.sqrt(np.maximum(relevance * (1.0 - relevance), 0.0)) + _BASE_DOUBT
    parts = 2.0 if vectors.dimensions else 1.0  # of a vector, each of length 1
    alike = np.asarray((asked @ rows.T).todense()) / parts
    nearest = alike[:, len(pages) :].max(axis=1, initial=0.0)
    left = np.ones(len(pages), np.bool_)
    while left.any():
        best = int(np.argmax(np.where(left, doubt * (1.0 - nearest), -1.0)))
        left[best] = False
        yield best
        nearest = np.maximum(nearest, alike[:, best])


def _false_positives(crawl: _Candidates) -> Iterator[Suggestion]:
    """Relevant pages whose neighbours are the least relevant."""
    pages = crawl.pages
    doubtful = np.flatnonzero(
        (pages.relevance > RELEVANT) & (pages.n_neighbours >= _MIN_NEIGHBOURS)
    )
    for i in doubtful[np.argsort(pages.neighbour_relevance[doubtful], kind="stable")].tolist():
        yield _make_suggestion(pages, i, "doubtful", _describe_neighbours(pages, i))


def _false_negatives(crawl: _Candidates) -> Iterator[Suggestion]:
    """Irrelevant pages whose neighbours are the most relevant [F99: misclassified hubs]."""
    pages = crawl.pages
    missed = np.flatnonzero(
        (pages.relevance <= RELEVANT) & (pages.n_neighbours >= _MIN_NEIGHBOURS)
    )
    for i in missed[np.argsort(-pages.neighbour_relevance[missed], kind="stable")].tolist():
        yield _make_suggestion(pages, i, "missed", _describe_neighbours(pages, i))


def _distilled(crawl: _Candidates, *, score: str) -> Iterator[Suggestion]:
    """Hubs, or authorities, the best first."""
    with needs("report", "asking about hubs and authorities"):
        from focuscrawl.report.prestige import Distillation  # noqa: PLC0415
    try:
        found = Distillation.of(crawl.store)
    except UserError:
        return  # no links between relevant pages
    pages = crawl.pages
    place = {name: i for i, name in enumerate(pages.urls)}
    for rank, url in enumerate(found.best(score, len(place))["url"], 1):
        if url in place:
            yield _make_suggestion(pages, place[url], score, f"number {rank}")


#: kinds of suggestions, in the order in which they take turns
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
    return f"neighbours' R {pages.neighbour_relevance[i]:.2f} ({pages.n_neighbours[i]} pages)"


def _read_judged_pages(store: CrawlStore) -> _Pages:
    crawl = CrawlLinks.of(store)
    url = crawl.pages[crawl.judged[crawl.pages]]
    relevance = crawl.relevance[url]
    place = np.full(len(crawl.names), -1)
    place[url] = np.arange(len(url))
    ends = np.sort(place[np.stack([crawl.source, crawl.target], axis=1)], axis=1)
    ends = ends[(ends[:, 0] >= 0) & (ends[:, 0] != ends[:, 1])]
    one, other = np.unique(ends, axis=0).T  # a pair counts once, whoever links
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
    """Write pages to judge, one a row; their column ``verdict`` is empty, to be filled in.

    Raises
    ------
    UserError
        If the file cannot be written, or is there already.
    """
    try:
        with Path(path).open("x", encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["url", "verdict", "kind", "relevance", "title"])
            for page in suggestions:
                title = escape_csv_cell(one_line(page.title))
                rows.writerow([page.url, "", page.kind, f"{page.relevance:.3f}", title])
    except FileExistsError:
        raise UserError(f"{path} is there already: name another file") from None
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None


def read_verdict(text: str) -> bool | None:
    """Return what a verdict says: True for good, False for bad, None for neither; ValueError."""
    word = text.strip().lower()
    if word in _NO_VERDICT:
        return None
    if word in _GOOD or word in _BAD:
        return word in _GOOD
    raise ValueError(text)


def read_judgements(path: str | Path) -> tuple[list[str], list[str]]:
    """Read the answers in a CSV file with the columns ``url`` and ``verdict``.

    Returns
    -------
    URLs judged good, and URLs judged bad; rows without a verdict are left out

    Raises
    ------
    UserError
        If it cannot be read, lacks a column, or has a verdict or URL that is none.
    """
    judged = {True: list[str](), False: list[str]()}
    for number, row in read_rows(path, ["url", "verdict"]):
        where = f"{path}, row {number}"
        try:
            verdict = read_verdict(row["verdict"])
        except ValueError:
            text = row["verdict"]
            raise UserError(f"{where}: verdict {text!r} is neither good nor bad") from None
        url = normalize(row["url"])
        if url is None:
            raise UserError(f"{where}: {row['url']!r} {no_url(row['url'])}")
        if verdict is not None:
            judged[verdict].append(url)
    both = sorted(set(judged[True]) & set(judged[False]))
    if both:
        raise UserError(f"{path}: {both[0]} is both good and bad; take one row out")
    return judged[True], judged[False]


def find_page(webs: Sequence[Web], url: str) -> PageView | None:
    """Read a page where it is found first; None if no web has it."""
    return next(filter(None, (read_page(web, url) for web in webs)), None)


def neighbour_sources(definition: TopicDefinition) -> list[str]:
    """Return the pages whose neighbours are looked at: the good ones and the seeds.

    Raises
    ------
    UserError
        There are none.
    """
    examples = list(dict.fromkeys([*definition.good, *definition.seeds]))
    if not examples:
        raise UserError("neighbours of which pages? Add some: focuscrawl topic add --good URL")
    return examples


def suggest_neighbours(
    definition: TopicDefinition,
    webs: Sequence[Web],
    n: int = 20,
    *,
    crawls: Sequence[CrawlGraph] = (),
) -> list[Suggestion]:
    """Choose pages that examples link to, or that link to them: the most relevant.

    They are judged by the critic of the definition, or one that is learned from what it says. Of
    equals come first those next to the most examples.

    Parameters
    ----------
    webs : where pages are read, in the order to look for one
    n : how many, at most
    crawls : that know which pages link to the examples

    Raises
    ------
    UserError
        There is no example, or none that can be read; or no neighbour of one.
    """
    examples = neighbour_sources(definition)
    cited, citing = _count_links(examples, webs, crawls)
    around = cited + citing
    for url in definition.judged_urls | set(examples):
        del around[url]
    wanted = [url for url, _ in sorted(around.items(), key=lambda item: (-item[1], item[0]))]
    known = read_known(webs, wanted[:_MAX_NEIGHBOURS_READ])
    first = {page.url: url for url, page in reversed(known.items())}  # of several to one page
    read = {url: page for url, page in known.items() if first[page.url] == url}
    if not read:
        raise UserError(f"no neighbour of {pluralize(len(examples), 'example')} can be read")
    judged = _load_critic(definition, webs).judge_bags([page.bag for page in read.values()])
    relevance = dict(zip(read, judged.relevance.tolist(), strict=True))
    order = sorted(read, key=lambda url: (-round(relevance[url], 6), -around[url], url))
    found = []
    for url in order[:n]:
        page = find_page(webs, read[url].url)
        said = [
            *([f"{pluralize(cited[url], 'example')} link to it"] if cited[url] else []),
            *([f"it links to {pluralize(citing[url], 'example')}"] if citing[url] else []),
        ]
        reason = f"R {relevance[url]:.2f}, {', '.join(said)}"
        title = "" if page is None else page.title
        found.append(Suggestion(url, title, relevance[url], _NEIGHBOUR, reason))
    return found


def _count_links(
    examples: Sequence[str], webs: Sequence[Web], crawls: Sequence[CrawlGraph]
) -> tuple[Counter[str], Counter[str]]:
    """Return how many examples link to each page, and to how many it links."""
    cited, citing = Counter[str](), Counter[str]()
    for url, page in read_known(webs, examples).items():
        view = find_page(webs, page.url)
        links = [] if view is None else view.links.urls
        around = {to for to in links if can_be_page(to)}
        cited.update(around - {url, page.url})
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
