"""Crawls from disjoint seeds: their overlap [F99 sections 4.3, 4.4], and top hubs [4.7]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.distiller import Distiller, top_pages
from studies.whole_crawls import best_first, hosts_of, link_graph, opened

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.lab.judged_web import JudgedWeb
    from studies.topic_tasks import Task


PAIRS = 5  # pairs of samples
SEEDS = 10  # maximum size of a sample; half of the examples if there are fewer than 20
TOP = 100
_MOST_PAGES = 5_000  # fetches of a crawl; [F99] has 10,000 on the live Web
SIZES = (100, 250, 500, 1000, 2000, 4000)  # numbers of fetches at which crawls are compared
HUBS = 10  # hubs whose unvisited citations are evaluated, as in a crawl with a distiller


def study_agreement(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl from pairs of disjoint samples of the examples, and compare the best authorities.

    Crawls are best-first with the study's budget. Sites are those of `focuscrawl distill`. On webs
    with several hosts, the hosts of the best pages are also compared, like servers in [F99].

    Returns
    -------
    dict[str, pd.DataFrame]
        ``agreement`` has rows by ``pair`` of samples and ``of`` (``pages`` or ``hosts``). Column
        ``overlap`` is the common share of the ``top`` n authorities. ``chance`` is the expected
        overlap of random relevant pages. ``fetched`` is the share of URLs in both crawls.

        ``shared`` has, for each pair after ``fetches``, the common share of ``urls``, of
        ``servers`` (hosts with a fetch) and ``servers_on`` (hosts with a relevant fetch), relative
        to the larger crawl; ``of_servers`` is the number of hosts.

        ``unvisited`` has, for each crawl after ``fetches``, the number of unfetched URLs that the
        ten best hubs cite (``cited``) and the share of relevant URLs among them (``relevant``).
        ``waits`` is that share among all ``waiting`` queued URLs.
    """
    _, critic, whole = opened(task)
    relevance = whole.relevance(task.topic)
    examples = whole.page_indices(critic.examples)
    hosts = hosts_of(whole)
    parts, shared_at, promised = [], [], []
    for pair in range(PAIRS):
        drawn = np.random.default_rng(pair).permutation(examples)
        size = min(SEEDS, len(drawn) // 2)
        crawls = []
        for seeds in (drawn[:size], drawn[size : 2 * size]):
            budget = min(task.budget, _MOST_PAGES)
            fetched = best_first(whole, relevance, seeds.tolist(), budget)
            crawls.append((fetched, authorities(whole, relevance, hosts, fetched)))
            promised += [
                {"pair": pair, "fetches": n, **unvisited(whole, relevance, hosts, fetched[:n])}
                for n in _sizes(len(fetched))
            ]
        (fetched_a, a), (fetched_b, b) = crawls
        shared = len({*fetched_a} & {*fetched_b}) / max(len({*fetched_a}), len({*fetched_b}), 1)
        least = min(len(fetched_a), len(fetched_b))
        for n in _sizes(least):
            common = in_common(relevance, hosts, fetched_a[:n], fetched_b[:n])
            shared_at.append({"pair": pair, "fetches": n, **common})
        lists = {"pages": (a, b)}
        if hosts.any():
            lists["hosts"] = (pd.unique(hosts[a]), pd.unique(hosts[b]))
        chance = _by_chance(whole, relevance, fetched_a, fetched_b)
        for of, (first, second) in lists.items():
            table = overlap(first, second)
            parts.append(table.assign(pair=pair, of=of, fetched=shared, chance=chance))
    return {
        "agreement": pd.concat(parts, ignore_index=True),
        "shared": pd.DataFrame(shared_at),
        "unvisited": pd.DataFrame(promised),
    }


def _sizes(fetches: int) -> list[int]:
    """Return the numbers of fetches at which a crawl is compared."""
    return [*(size for size in SIZES if size < fetches), fetches]


def in_common(
    relevance: Floats,
    hosts: Ints,
    one: Sequence[int],
    other: Sequence[int],
) -> dict[str, float]:
    """Return the overlap of two crawls; see `study_agreement`."""
    pages = [np.array(crawl, np.int64) for crawl in (one, other)]
    sets = {
        "urls": [set(each.tolist()) for each in pages],
        "servers": [set(hosts[each].tolist()) for each in pages],
        "servers_on": [set(hosts[each[relevance[each] > RELEVANT]].tolist()) for each in pages],
    }
    shares = {name: len(a & b) / max(len(a), len(b), 1) for name, (a, b) in sets.items()}
    return {**shares, "of_servers": float(max(map(len, sets["servers"])))}


def unvisited(
    whole: JudgedWeb,
    relevance: Floats,
    hosts: Ints,
    fetched: Sequence[int],
) -> dict[str, float]:
    """Return the relevance of unvisited citations of the top hubs; see `study_agreement`."""
    distiller = Distiller(link_graph(whole, relevance, hosts, fetched))
    promise = distiller.score_unfetched(distiller.distill(), HUBS)
    waiting = np.ones(len(relevance), np.bool_)
    waiting[np.isin(whole.content, whole.content[fetched])] = False
    known = np.zeros(len(relevance), np.bool_)
    for page in fetched:
        known[whole.links(page)] = True
    waiting &= known
    cited = waiting & (promise > 0.0)
    return {
        "cited": float(cited.sum()),
        "relevant": _share(relevance[cited]),
        "waiting": float(waiting.sum()),
        "waits": _share(relevance[waiting]),
    }


def _share(relevance: Floats) -> float:
    return float((relevance > RELEVANT).mean()) if len(relevance) else float("nan")


def authorities(
    whole: JudgedWeb,
    relevance: Floats,
    hosts: Ints,
    fetched: Sequence[int],
) -> Ints:
    """Return the authorities of a crawl that fetched these pages, best first."""
    found = Distiller(link_graph(whole, relevance, hosts, fetched)).distill().authorities
    return whole.content[top_pages(found, TOP)]


def overlap(first: Ints, second: Ints) -> pd.DataFrame:
    """Return the overlap of the n best of two lists, for n from 1 to `TOP`.

    Columns are ``top`` (n) and ``overlap``; n ends at the length of the shorter list.
    """
    most = min(len(first), len(second), TOP)
    shares = [len({*first[:n].tolist()} & {*second[:n].tolist()}) / n for n in range(1, most + 1)]
    return pd.DataFrame({"top": np.arange(1, most + 1), "overlap": np.array(shares, np.float64)})


def _by_chance(
    whole: JudgedWeb,
    relevance: Floats,
    one: Sequence[int],
    other: Sequence[int],
) -> float:
    """Return the expected overlap of random choices of as many pages from both crawls."""
    a, b = ({int(whole.content[p]) for p in crawl if relevance[p] > 0.5} for crawl in (one, other))
    n = min(len(a), len(b), TOP)
    return n * len(a & b) / max(len(a) * len(b), 1)
