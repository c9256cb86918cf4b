"""Links (u,v) with both ends fetched, and the words around them: what a page study looks at."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.link_context import window
from focuscrawl.apprentice.sparse_rows import pointers
from focuscrawl.webs.pages import read_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.lab.whole_web import WholeWeb
    from focuscrawl.page import PageView
    from focuscrawl.webs.protocol import Web

D_MAX = 8  # DOM offsets looked at on either side, as far as figure 6 of [A02] goes
FETCHES = 1000  # of the crawl whose links are looked at
MOST = 20_000  # instances
MOST_INTO = 20  # instances with the same target: a template repeats a link on all pages of a site
_NEAREST = 200  # words before, inside and after a link, the nearest: a leaf can be a chapter


class Tokens(NamedTuple):
    """Words around links, link after link.

    Attributes
    ----------
    words : uint64 (nnz,), their hashes
    offsets : int64 (nnz,), DOM offset d of each
    indptr : int64 (n + 1,), those of link i are at ``indptr[i]:indptr[i + 1]``
    """

    words: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    indptr: NDArray[np.int64]


@dataclass(frozen=True)
class Instances:
    """A sample of the links (u,v) of a best-first crawl with both ends fetched.

    Attributes
    ----------
    source, target : int64 (n,), numbers of u and v in the web
    relevance : float64 (n,), R(v)
    left, right : int64 (n,), first and last DOM leaf of the link on u
    tokens : words around each link
    cocited : int64 (k, 3): instance, DOM offset, and 1 (high) or 0 (low) for R(w) > 1/2, for each
        other link (u,w) within `D_MAX` leaves whose w was fetched before v [A02 section 3.8]
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    relevance: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    tokens: Tokens
    cocited: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.source)

    @property
    def high(self) -> NDArray[np.bool_]:
        """Which lead to a relevant page: the upper of the two buckets [A02 section 2.3]."""
        return self.relevance > 0.5


class _Link(NamedTuple):
    """Columns of the links of one page whose targets were fetched."""

    target: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]


def best_first(
    whole: WholeWeb, relevance: NDArray[np.float64], seeds: Sequence[int], fetches: int
) -> list[int]:
    """Return the pages that the baseline [A02 section 2.1] fetches of `whole`, in their order.

    A page whose content was fetched already is a fetch, but its links are not followed.
    """
    heap = [(-1.0, n, page) for n, page in enumerate(seeds)]
    best = dict.fromkeys(seeds, 1.0)
    fetched: dict[int, None] = {}
    contents: set[int] = set()
    count = len(heap)
    while heap and len(fetched) < fetches:
        _, _, page = heapq.heappop(heap)
        if page in fetched:
            continue
        fetched[page] = None
        if int(whole.content[page]) in contents:
            continue
        contents.add(int(whole.content[page]))
        score = float(relevance[page])
        for target in whole.links(page):
            if target not in fetched and score > best.get(target, -1.0):
                best[target] = score
                count += 1
                heapq.heappush(heap, (-score, count, target))
    return list(fetched)


def sample_instances(
    web: Web,
    whole: WholeWeb,
    topic: str,
    seeds: Sequence[str],
    *,
    fetches: int = FETCHES,
    most: int = MOST,
    random_state: int = 0,
) -> Instances:
    """Crawl `whole` best-first from `seeds` and sample the links with both ends fetched.

    Parameters
    ----------
    web : has the pages that `whole` was made of
    topic : of the critic that `whole` was judged by
    fetches, most : bounds of the crawl and of the sample
    """
    relevance = whole.relevance(topic)
    fetched = best_first(whole, relevance, whole.numbers(seeds), fetches)
    order = np.full(len(whole.urls), -1)
    order[fetched] = np.arange(len(fetched))
    first = np.unique(whole.content[fetched], return_index=True)[1]
    is_copy = np.ones(len(whole.urls), bool)
    is_copy[np.array(fetched, np.int64)[first]] = False
    outcome = np.where(is_copy, 0.0, relevance)  # a duplicate is a fetch of no relevance

    numbers: dict[str | None, int] = {url: i for i, url in enumerate(whole.urls)}
    pages, links = [], []
    for page in (page for page in fetched if not is_copy[page]):
        view = read_page(web, whole.urls[page])
        if view is None:
            continue
        found = [numbers.get(url, page) for url in web.resolve(view.links.urls)]
        target = np.array(found, np.int64)
        kept = (order[target] >= 0) & (target != page)
        if kept.any():
            pages.append((page, view))
            left, right = view.links.left[kept], view.links.right[kept]
            links.append(_Link(target[kept], left.astype(np.int64), right.astype(np.int64)))
    chosen = _choose(links, most, np.random.default_rng(random_state))
    return _gather(pages, links, chosen, order, outcome)


def around(
    words: NDArray[np.uint64],
    token_leaf: NDArray[np.int32],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
) -> Tokens:
    """Return the words within `D_MAX` leaves of n links of a page [A02 section 2.2.1].

    Parameters
    ----------
    words, token_leaf : (n_tokens,), the page's words, and the leaf each lies in, ascending
    left, right : (n,), first and last leaf of each link
    """
    near = window(
        words,
        token_leaf,
        left.astype(np.int32),
        right.astype(np.int32),
        d_max=D_MAX,
        max_tokens=_NEAREST,
        repeats=True,
    )
    return Tokens(near.words, near.offset.astype(np.int64), pointers(near.lengths))


def _choose(links: list[_Link], most: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Choose links evenly, a page's in document order, `MOST_INTO` a target at most."""
    target = np.concatenate([np.zeros(0, np.int64), *(each.target for each in links)])
    shuffled = rng.permutation(len(target))
    by_target = shuffled[np.argsort(target[shuffled], kind="stable")]
    of = target[by_target]
    rank = np.arange(len(of)) - np.searchsorted(of, of)
    left = np.sort(by_target[rank < MOST_INTO])
    if len(left) > most:
        left = np.sort(rng.choice(left, most, replace=False))
    bounds = pointers(np.array([len(each.target) for each in links], np.int64))
    cuts = np.searchsorted(left, bounds)
    return [left[cuts[i] : cuts[i + 1]] - bounds[i] for i in range(len(links))]


def _gather(
    pages: list[tuple[int, PageView]],
    links: list[_Link],
    chosen: list[NDArray[np.int64]],
    order: NDArray[np.int64],
    outcome: NDArray[np.float64],
) -> Instances:
    none = np.zeros(0, np.int64)
    parts = [(none, none, none, none, none.view(np.uint64), none, none)]
    cocited = [np.zeros((0, 3), np.int64)]
    count = 0
    for (page, view), link, at in zip(pages, links, chosen, strict=True):
        target, left, right = (column[at] for column in link)
        tokens = around(view.words.hashes, view.token_leaf, left, right)
        lengths = np.diff(tokens.indptr)
        source = np.full(len(at), page)
        parts.append((source, target, left, right, tokens.words, tokens.offsets, lengths))
        cocited.append(_cocited(link, at, order, outcome) + np.array([count, 0, 0]))
        count += len(at)
    source, target, left, right, words, offsets, lengths = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    return Instances(
        source,
        target,
        outcome[target],
        left,
        right,
        Tokens(words, offsets, pointers(lengths)),
        np.concatenate(cocited),
    )


def _cocited(
    link: _Link, at: NDArray[np.int64], order: NDArray[np.int64], outcome: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return (row of `at`, offset, high) of the links near each whose targets came before."""
    after = link.left[None, :] - link.right[at][:, None]
    before = link.right[None, :] - link.left[at][:, None]
    offset = np.maximum(after, 0) + np.minimum(before, 0)
    earlier = order[link.target][None, :] < order[link.target[at]][:, None]
    row, other = np.nonzero(earlier & (np.abs(offset) <= D_MAX))
    high = outcome[link.target[other]] > 0.5
    return np.stack([row, offset[row, other], high.astype(np.int64)], axis=1)
