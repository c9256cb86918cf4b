"""Words around a link as predictors of its target's relevance [A02 section 3.4], by distance."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from focuscrawl.apprentice.hashing import SparseRows, row_pointers
from focuscrawl.apprentice.learners import Instances as Learned
from focuscrawl.apprentice.learners import NaiveBayesLearner
from focuscrawl.apprentice.link_features import window
from focuscrawl.distiller import Distiller, top_pages
from focuscrawl.foundation.urls import host
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.walk import build_outline, parse_tree
from focuscrawl.webs.web_protocol import read_page
from studies.whole_crawls import best_first, hosts_of, link_graph, opened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.lab.judged_web import JudgedWeb
    from focuscrawl.page import PageView
    from focuscrawl.webs.web_protocol import Web
    from studies.topic_tasks import Task


D_MAX = 8  # largest DOM offset on either side, as in figure 6 of [A02]
FETCHES = 1000  # fetches of the crawl that the links come from
MOST = 20_000  # maximum number of instances
MOST_INTO = 20  # per target, since a template repeats a link on all pages of a site
_NEAREST = 200  # words before, inside and after a link; a leaf can be as long as a chapter


class Tokens(NamedTuple):
    """Words around links, concatenated.

    Attributes
    ----------
    words : NDArray[np.uint64]
        Hashes of the words.
    offsets : NDArray[np.int64]
        DOM offset d of each word.
    indptr : NDArray[np.int64] of shape (n + 1,)
        Link i has the words ``indptr[i]:indptr[i + 1]``.
    """

    words: NDArray[np.uint64]
    offsets: Ints
    indptr: Ints


@dataclass(frozen=True)
class Instances:
    """A sample of n links (u,v) of a best-first crawl with both ends fetched.

    Attributes
    ----------
    source, target : NDArray[np.int64] of shape (n,)
        Pages u and v.
    relevance : NDArray[np.float64] of shape (n,)
        Relevance R(v).
    left, right : NDArray[np.int64] of shape (n,)
        First and last DOM leaf of the link on u.
    tokens : Tokens
        Words around each link.
    cocited : NDArray[np.int64] of shape (k, 3)
        Instance, DOM offset, and 1 if R(w) > 1/2 else 0, for each other link (u,w) within `D_MAX`
        leaves whose target w was fetched before v [A02 section 3.8].
    """

    source: Ints
    target: Ints
    relevance: Floats
    left: Ints
    right: Ints
    tokens: Tokens
    cocited: Ints

    def __len__(self) -> int:
        return len(self.source)

    @property
    def high(self) -> Bools:
        """Whether each link leads to a relevant page, the upper of two buckets [A02 2.3]."""
        return self.relevance > 0.5


class _Link(NamedTuple):
    """Columns of the links of one page with fetched targets."""

    target: Ints
    left: Ints
    right: Ints


def sample_instances(
    web: Web,
    whole: JudgedWeb,
    topic: str,
    seeds: Sequence[str],
    *,
    fetches: int = FETCHES,
) -> Instances:
    """Crawl `whole`, judged for `topic`, best-first, and sample links with both ends fetched."""
    relevance = whole.relevance(topic)
    fetched = best_first(whole, relevance, whole.page_indices(seeds), fetches)
    order = np.full(len(whole.urls), -1)
    order[fetched] = np.arange(len(fetched))
    first = np.unique(whole.content[fetched], return_index=True)[1]
    is_copy = np.ones(len(whole.urls), bool)
    is_copy[np.array(fetched, np.int64)[first]] = False
    outcome = np.where(is_copy, 0.0, relevance)  # a duplicate is a fetch of relevance 0

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
    chosen = _choose(links, np.random.default_rng(0))
    return _gather(pages, links, chosen, order, outcome)


def around(
    words: NDArray[np.uint64],
    token_leaf: NDArray[np.int32],
    left: Ints,
    right: Ints,
) -> Tokens:
    """Return the words within `D_MAX` leaves of n links of a page [A02 section 2.2.1].

    Parameters
    ----------
    words, token_leaf : NDArray of shape (n_tokens,)
        The page's words, and the leaf of each word in ascending order.
    left, right : NDArray[np.int64] of shape (n,)
        First and last leaf of each link.
    """
    near = window(
        None,
        token_leaf,
        left.astype(np.int32),
        right.astype(np.int32),
        d_max=D_MAX,
        max_tokens=_NEAREST,
    )
    return Tokens(words[near.tokens], near.offset.astype(np.int64), row_pointers(near.lengths))


def _choose(links: list[_Link], rng: np.random.Generator) -> list[Ints]:
    """Sample `MOST` links uniformly, at most `MOST_INTO` per target, in document order."""
    target = np.concatenate([np.zeros(0, np.int64), *(each.target for each in links)])
    shuffled = rng.permutation(len(target))
    by_target = shuffled[np.argsort(target[shuffled], kind="stable")]
    of = target[by_target]
    rank = np.arange(len(of)) - np.searchsorted(of, of)
    left = np.sort(by_target[rank < MOST_INTO])
    if len(left) > MOST:
        left = np.sort(rng.choice(left, MOST, replace=False))
    bounds = row_pointers(np.array([len(each.target) for each in links], np.int64))
    cuts = np.searchsorted(left, bounds)
    return [left[cuts[i] : cuts[i + 1]] - bounds[i] for i in range(len(links))]


def _gather(
    pages: list[tuple[int, PageView]],
    links: list[_Link],
    chosen: list[Ints],
    order: Ints,
    outcome: Floats,
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
        Tokens(words, offsets, row_pointers(lengths)),
        np.concatenate(cocited),
    )


def _cocited(link: _Link, at: Ints, order: Ints, outcome: Floats) -> Ints:
    """Return (row of `at`, offset, high) of nearby links whose targets were fetched earlier."""
    after = link.left[None, :] - link.right[at][:, None]
    before = link.right[None, :] - link.left[at][:, None]
    offset = np.maximum(after, 0) + np.minimum(before, 0)
    earlier = order[link.target][None, :] < order[link.target[at]][:, None]
    row, other = np.nonzero(earlier & (np.abs(offset) <= D_MAX))
    high = outcome[link.target[other]] > 0.5
    return np.stack([row, offset[row, other], high.astype(np.int64)], axis=1)


# empty elements of these kinds are no leaves and must stay empty; their text is not the page's
_PAGE = frozenset({"body", "head", "html", "noframes"})
_AS_IT_IS = _PAGE | {"base", "link", "meta", "script", "style", "template", "title"}


def leaf_tags(body: bytes) -> tuple[NDArray[np.str_], Bools]:
    """Return the element that each leaf is or belongs to, and whether the leaf is a text.

    Leaves are those of `focuscrawl.page.parse_page`, in order [A02 section 2.2.1].
    """
    utf8 = to_utf8(body, None)[0]
    root = parse_tree(utf8)
    if root is None:
        return np.zeros(0, np.str_), np.zeros(0, bool)
    texts = [bool(leaf.strip()) for leaf in build_outline(root).leaves]
    root = parse_tree(utf8)  # the walk may have changed the tree
    assert root is not None
    # each text is replaced by the name of its element, so the walk returns names for leaves
    for element in root.iter():
        if element.tag not in _AS_IT_IS:
            text = element.text
            if (text and not text.isspace()) or not len(element):
                element.text = element.tag
        elif element.tag in ("body", "title") and element.text and not element.text.isspace():
            element.text = element.tag
        parent, tail = element.getparent(), element.tail
        if parent is not None and tail and not tail.isspace():
            element.tail = parent.tag
    return np.array(build_outline(root).leaves, np.str_), np.array(texts, bool)


_FOLDS = 5
_TOP = 3  # maximum number of classes of u used as features
_LIKELY = 0.1  # minimum probability of these classes
_SETTLED = 5  # d_max of [A02 section 3.8]
_KERNEL = {-1: 0.25, 0: 0.5, 1: 0.25}  # weight of a word at an offset, at the offsets beside
_WHOLE = 2_000  # maximum number of links whose whole pages are read
_FAR = 127  # offset that stands for all larger than d_max


def accuracy_table(instances: Instances, whole: JudgedWeb) -> pd.DataFrame:
    """Cross-validate the paper's apprentice, naive Bayes in two buckets [A02 section 2.3].

    Returns
    -------
    pd.DataFrame
        One row for each kind of folds, features, and d_max. With ``folds`` = ``links``, links are
        assigned to folds at random; with ``pages``, all links to a page are in the same fold.
        ``features`` are ``offsets``, pairs (t, d) [figure 6]; ``text``, words without d
        [figure 7]; and, at d_max = 5, ``offsets`` with ``class names`` of u, ``class prefixes``
        or ``co-citation`` [section 3.8], with ``smoothing`` of each word over d - 1, d and d + 1,
        and with counts scaled to a ``constant length`` [section 2.3]. ``positive``, ``negative``
        and ``average`` are the shares predicted correctly of links to relevant pages, to other
        pages, and of all links.
        ``instances`` and ``high`` are the numbers of links, and of links to relevant pages.
    """
    rng = np.random.default_rng(0)
    return pd.concat(
        [
            _table(instances, whole, _folds(each, rng)).assign(folds=name)
            for name, each in (("links", np.arange(len(instances))), ("pages", instances.target))
        ],
        ignore_index=True,
    )


def _table(instances: Instances, whole: JudgedWeb, fold: Ints) -> pd.DataFrame:
    offsets, words = instances.tokens.offsets, instances.tokens.words
    owner = np.repeat(np.arange(len(instances)), np.diff(instances.tokens.indptr))
    pairs = (words << np.uint64(8)) | (offsets + D_MAX).astype(np.uint64)
    rows = []
    for name, keys in (("offsets", pairs), ("text", words)):
        feature = np.unique(keys, return_inverse=True)[1]
        for d_max in range(D_MAX + 1):
            near = np.abs(offsets) <= d_max
            told = _told(feature[near], owner[near], instances.high, fold)
            rows.append({"features": name, "d_max": d_max, **told})
    near = np.abs(offsets) <= _SETTLED
    of_near, kept = owner[near], words[near] << np.uint64(8)
    beside = [kept | (offsets[near] + D_MAX + step).astype(np.uint64) for step in _KERNEL]
    length = np.bincount(of_near, minlength=len(instances))
    smooth = np.repeat([*_KERNEL.values()], len(kept))
    even = (length.mean() / np.maximum(length, 1))[of_near]
    variants = (
        ("smoothing", np.concatenate(beside), np.tile(of_near, len(_KERNEL)), smooth),
        ("constant length", pairs[near], of_near, even),
    )
    for name, keys, whose, weight in variants:
        feature = np.unique(keys, return_inverse=True)[1]
        told = _told(feature, whose, instances.high, fold, weight)
        rows.append({"features": f"offsets + {name}", "d_max": _SETTLED, **told})
    for name, keys, whose in _others(instances, whole):
        apart = keys | np.uint64(1 << 63)  # different from all words
        both = np.concatenate([pairs[near], apart])
        feature = np.unique(both, return_inverse=True)[1]
        told = _told(feature, np.concatenate([owner[near], whose]), instances.high, fold)
        rows.append({"features": f"offsets + {name}", "d_max": _SETTLED, **told})
    return pd.DataFrame(rows).assign(instances=len(instances), high=int(instances.high.sum()))


def _others(instances: Instances, whole: JudgedWeb) -> list[tuple[str, NDArray[np.uint64], Ints]]:
    """Return the name, keys, and owning instances of each other kind of features."""
    probabilities = whole.probabilities[instances.source]
    top = np.argsort(-probabilities, axis=1, kind="stable")[:, :_TOP]
    row, place = np.nonzero(np.take_along_axis(probabilities, top, axis=1) >= _LIKELY)
    names = top[row, place]
    prefixes, of_class = _prefixes(whole.classes)
    lengths = np.diff(of_class)[names]
    every = np.concatenate(
        [np.zeros(0, np.int64), *(prefixes[of_class[c] : of_class[c + 1]] for c in names.tolist())]
    )
    cocited = instances.cocited[np.abs(instances.cocited[:, 1]) <= _SETTLED]
    kinds = (cocited[:, 1] + D_MAX) * 2 + cocited[:, 2]
    return [
        ("class names", names.astype(np.uint64), row),
        ("class prefixes", every.astype(np.uint64), np.repeat(row, lengths)),
        ("co-citation", kinds.astype(np.uint64), cocited[:, 0]),
    ]


def _prefixes(classes: list[str]) -> tuple[Ints, Ints]:
    """Return ids of the prefixes of class names, with ``/`` and the whole name."""
    numbers: dict[str, int] = {}
    found, lengths = [], []
    for name in classes:
        parts = name.split("/")
        paths = ["/".join(parts[: i + 1]) or "/" for i in range(len(parts))]
        found += [numbers.setdefault(path, len(numbers)) for path in paths]
        lengths.append(len(paths))
    return np.array(found, np.int64), row_pointers(np.array(lengths, np.int64))


def _folds(group: Ints, rng: np.random.Generator) -> Ints:
    groups, place = np.unique(group, return_inverse=True)
    folds: Ints = rng.permutation(len(groups))[place] % _FOLDS
    return folds


def _told(
    feature: Ints,
    owner: Ints,
    high: Bools,
    fold: Ints,
    weight: Floats | None = None,
) -> dict[str, float]:
    """Cross-validate naive Bayes on (feature, owner) pairs; repeated pairs count again.

    A pair counts 1, or its `weight`.
    """
    order = np.argsort(owner, kind="stable")
    indices = feature[order].astype(np.int32)
    each = np.ones(len(feature)) if weight is None else weight[order]
    rows = SparseRows(
        indices,
        row_pointers(np.bincount(owner, minlength=len(high))),
        each.astype(np.float32),
    )
    n_features = int(feature.max(initial=0)) + 1
    right = np.zeros(len(high), bool)
    for number in range(_FOLDS):
        test = fold == number
        learner = NaiveBayesLearner(n_features)
        learner.partial_fit(_of(rows, ~test), high[~test].astype(np.float64))
        right[test] = (learner.predict(_of(rows, test)) > 0.5) == high[test]
    return {
        "positive": float(right[high].mean()) if high.any() else np.nan,
        "negative": float(right[~high].mean()) if not high.all() else np.nan,
        "average": float(right.mean()) if len(high) else np.nan,
    }


def _of(rows: SparseRows, chosen: Bools) -> Learned:
    taken = rows.take(np.flatnonzero(chosen))
    assert taken.values is not None
    return Learned(taken, taken.values.astype(np.float64), np.zeros((len(taken), 0)))


def rest_table(web: Web, whole: JudgedWeb, instances: Instances) -> pd.DataFrame:
    """Cross-validate naive Bayes with the words of the whole page u [A02 section 2.2.3].

    Rows by ``folds`` (see `accuracy_table`) have ``features``: ``offsets`` up to d_max = 5, or
    ``offsets + rest``, with one more offset, infinity, for all other words of u. ``distinct`` is
    the number of distinct features. Both are of the same sample of up to 2,000 links.
    """
    rng = np.random.default_rng(0)
    size = min(_WHOLE, len(instances))
    chosen = np.sort(rng.choice(len(instances), size, replace=False))
    words, offsets, lengths = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)], []
    for page in dict.fromkeys(instances.source[chosen].tolist()):
        view = read_page(web, whole.urls[page])
        assert view is not None
        links = chosen[instances.source[chosen] == page]
        around = window(
            None,
            view.token_leaf,
            instances.left[links].astype(np.int32),
            instances.right[links].astype(np.int32),
            d_max=int(view.token_leaf.max(initial=0)) + 1,
            max_tokens=None,
        )
        words.append(view.words.hashes[around.tokens])
        offsets.append(around.offset.astype(np.int64))
        lengths += around.lengths.tolist()
    offset, high = np.concatenate(offsets), instances.high[chosen]
    owner = np.repeat(np.arange(size), lengths)
    near = np.abs(offset) <= _SETTLED
    keys = np.concatenate(words) << np.uint64(8)
    keys |= np.where(near, offset + D_MAX, _FAR).astype(np.uint64)
    rows = []
    for folds, group in (("links", chosen), ("pages", instances.target[chosen])):
        fold = _folds(group, rng)
        for name, kept in (("offsets", near), ("offsets + rest", near | ~near)):
            distinct, feature = np.unique(keys[kept], return_inverse=True)
            told = _told(feature, owner[kept], high, fold)
            rows.append({"folds": folds, "features": name, "distinct": len(distinct), **told})
    return pd.DataFrame(rows)


_SEEN = 5  # minimum number of links with a word at an offset
_PAGES = 200  # pages whose tags are counted


def gain_table(instances: Instances) -> pd.DataFrame:
    """Return the mean information gain of words by offset [A02 figure 8].

    This is the mutual information, in bits, of "word t is at offset d of the link" and "the target
    is relevant". Rows by offset have ``terms``, the number of words at five or more links, and the
    mean (``gain``) and sum (``total``) over these words. The gain does not depend on d_max.
    """
    high = instances.high
    owner = np.repeat(np.arange(len(instances)), np.diff(instances.tokens.indptr))
    offset = (instances.tokens.offsets + D_MAX).astype(np.uint64)
    keys, feature = np.unique(
        (instances.tokens.words << np.uint64(8)) | offset, return_inverse=True
    )
    once = np.unique(feature.astype(np.int64) * (len(instances) + 1) + owner)
    feature, owner = once // (len(instances) + 1), once % (len(instances) + 1)
    present = np.bincount(feature, minlength=len(keys))
    in_high = np.bincount(feature, high[owner], len(keys))
    gain = mutual_information(present, in_high, len(high), int(high.sum()))
    at = (keys & np.uint64(255)).astype(np.int64)
    counted = present >= _SEEN
    terms = np.bincount(at[counted], minlength=2 * D_MAX + 1)
    total = np.bincount(at[counted], gain[counted], 2 * D_MAX + 1)
    return pd.DataFrame(
        {
            "offset": np.arange(-D_MAX, D_MAX + 1),
            "terms": terms,
            "gain": total / np.maximum(terms, 1),
            "total": total,
        }
    )


def mutual_information(
    present: NDArray[np.integer], in_high: NDArray[np.number], n: int, n_high: int
) -> Floats:
    """Return the mutual information, in bits, of each word's presence and the bucket.

    Parameters
    ----------
    present, in_high : NDArray of shape (k,)
        Number of instances with each word, and of those in the high bucket.
    n, n_high : int
        Number of all instances, and of those in the high bucket.
    """
    total = np.zeros(len(present))
    for with_word, word in ((True, present), (False, n - present)):
        for is_high, bucket in ((True, n_high), (False, n - n_high)):
            both = in_high if is_high else present - in_high
            if not with_word:
                both = bucket - both
            joint = both / max(n, 1)
            apart = word / max(n, 1) * (bucket / max(n, 1))
            some = joint > 0
            total[some] += joint[some] * np.log2(joint[some] / apart[some])
    return np.maximum(total, 0.0)


def rate_table(instances: Instances) -> pd.DataFrame:
    """Return the rates of the words around links by offset [A02 figure 9a].

    Rows by offset d have ``rate``, the sum of theta(t, d) over the words t at d, and ``share``,
    the share of all words within `D_MAX` leaves at d. theta(t, d) = (1 + n(t, d)) / (T + n(d)) is
    the rate of t among the n(d) words at d [A02 equation 1], where T is the number of distinct
    words at all offsets.
    """
    at = instances.tokens.offsets + D_MAX
    count = np.bincount(at, minlength=2 * D_MAX + 1)
    keys = (instances.tokens.words << np.uint64(8)) | at.astype(np.uint64)
    of_distinct = (np.unique(keys) & np.uint64(255)).astype(np.int64)
    distinct = np.bincount(of_distinct, minlength=2 * D_MAX + 1)
    vocabulary = len(np.unique(keys >> np.uint64(8)))
    return pd.DataFrame(
        {
            "offset": np.arange(-D_MAX, D_MAX + 1),
            "rate": (distinct + count) / np.maximum(vocabulary + count, 1),
            "share": count / max(int(count.sum()), 1),
        }
    )


def tag_table(web: Web, whole: JudgedWeb, instances: Instances) -> pd.DataFrame:
    """Return the elements of the leaves around links [A02 figure 9b].

    Rows by offset and tag have ``share``, the element's share of the leaves at that offset, and
    ``empty``, the part of that share without text, as of ``br`` and ``img``. Only the first 200
    pages are counted.
    """
    counts: dict[tuple[int, str], list[int]] = {}
    at = np.arange(-D_MAX, D_MAX + 1)
    leaves = np.zeros(len(at), np.int64)
    pages = list(dict.fromkeys(instances.source.tolist()))[:_PAGES]
    for page in pages:
        answer = web.fetch(whole.urls[page])
        assert answer is not None
        tags, texts = leaf_tags(answer.body)
        of_page = instances.source == page
        left, right = instances.left[of_page], instances.right[of_page]
        place = np.where(at[:, None] < 0, left + at[:, None], right + at[:, None])
        inside = (place >= 0) & (place < len(tags))
        leaves += inside.sum(axis=1)
        names, number = np.unique(tags, return_inverse=True)
        offset, link = np.nonzero(inside)
        leaf = place[offset, link]
        shape = (len(at), len(names))
        flat = offset * len(names) + number[leaf]
        seen = np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)
        silent = np.bincount(flat, ~texts[leaf], shape[0] * shape[1]).reshape(shape)
        for i, j in zip(*np.nonzero(seen), strict=True):
            pair = counts.setdefault((int(at[i]), str(names[j])), [0, 0])
            pair[0] += int(seen[i, j])
            pair[1] += int(silent[i, j])
    total = dict(zip(at.tolist(), np.maximum(leaves, 1).tolist(), strict=True))
    rows = [
        (offset, tag, seen / total[offset], silent / total[offset])
        for (offset, tag), (seen, silent) in sorted(counts.items())
    ]
    return pd.DataFrame(rows, columns=["offset", "tag", "share", "empty"])


_TOP_AUTHORITIES = 100


def authority_table(whole: JudgedWeb, topic: str, seeds: Sequence[str]) -> pd.DataFrame:
    """Distil a best-first crawl, and return up to 100 authorities, best first.

    Columns are ``url``, ``host``, ``score`` and ``distance``, the clicks from the nearest seed
    over the links that the crawl has found.
    """
    relevance = whole.relevance(topic)
    start = whole.page_indices(seeds)
    fetched = best_first(whole, relevance, start, FETCHES)
    known = set(fetched)
    distance = dict.fromkeys(start, 0)
    waiting = deque(start)
    while waiting:
        page = waiting.popleft()
        for target in whole.links(page) if page in known else ():
            if target not in distance:
                distance[target] = distance[page] + 1
                waiting.append(target)
    scores = Distiller(link_graph(whole, relevance, hosts_of(whole), fetched)).distill()
    chosen = top_pages(scores.authorities, _TOP_AUTHORITIES).tolist()
    return pd.DataFrame(
        {
            "url": [whole.urls[page] for page in chosen],
            "host": [host(whole.urls[page]) for page in chosen],
            "score": scores.authorities[chosen],
            "distance": np.array([distance[page] for page in chosen], np.int64),
        }
    )


def study_pages(task: Task) -> dict[str, pd.DataFrame]:
    """Return the tables of a topic by name: [A02] figures 6 to 9 and section 3.8, and [F99]."""
    web, _, whole = opened(task)
    instances = sample_instances(web, whole, task.topic, task.seeds)
    return {
        "accuracy": accuracy_table(instances, whole),
        "rest": rest_table(web, whole, instances),
        "gain": gain_table(instances),
        "rates": rate_table(instances),
        "tags": tag_table(web, whole, instances),
        "authorities": authority_table(whole, task.topic, task.seeds),
    }
