"""Crawls from disjoint seeds: what they share [F99 sections 4.3, 4.4], what hubs promise [4.7]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.distiller import Distiller, top_pages
from studies.whole_crawls import best_first, hosts_of, link_graph, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.lab.judged_web import JudgedWeb
    from studies.topic_tasks import Task


PAIRS = 5  # of samples
SEEDS = 10  # of a sample, at most; half of the examples if there are fewer than twice as many
TOP = 100
_MOST_PAGES = 5_000  # of a crawl: [F99] has 10,000, of a Web that has no end
SIZES = (100, 250, 500, 1000, 2000, 4000)  # fetches after which crawls are compared
HUBS = 10  # whose unvisited citations are looked at, as a crawl that distils does


def study_agreement(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl from pairs of disjoint samples of the examples, and compare the best authorities.

    Crawls are best-first, of the study's budget. Sites are told apart as `focuscrawl distill`
    does; hosts of the best-rated pages are compared as [F99] compares servers, where there are
    several.

    Returns
    -------
    ``agreement``: rows by ``pair`` of samples and ``of`` (``pages``, ``hosts``): ``top`` n and
    the ``overlap`` of the n best, those of both as a share of n, or of what there is if that is
    less; ``chance``: what two random choices among the relevant pages of each crawl would share;
    ``fetched``: the share of URLs that both crawls fetched. ``shared``: of each pair what both
    have in common after ``fetches``, as shares of the larger: of ``urls``, of ``servers`` (hosts
    that anything was fetched from), and ``servers_on``, of those that anything relevant was;
    ``of_servers``, how many there are. ``unvisited``: of each crawl after ``fetches`` the URLs
    that its ten best hubs cite and it has not fetched, how many (``cited``) and which share is
    relevant (``relevant``), beside the share of all that ``waits``, ``waiting`` URLs
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
    """Return after how many fetches a crawl of so many is looked at."""
    return [*(size for size in SIZES if size < fetches), fetches]


def in_common(
    relevance: Floats,
    hosts: Ints,
    one: Sequence[int],
    other: Sequence[int],
) -> dict[str, float]:
    """Return what two crawls have in common; see `study_agreement`."""
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
    """Return how good the unvisited citations of the top hubs are; see `study_agreement`."""
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
    """Return the best authorities of a crawl that fetched these pages, the best first."""
    found = Distiller(link_graph(whole, relevance, hosts, fetched)).distill().authorities
    return whole.content[top_pages(found, TOP)]


def overlap(first: Ints, second: Ints) -> pd.DataFrame:
    """Return what the n best of two lists have in common, for n from 1 to `TOP`.

    Returns
    -------
    ``top`` n, ``overlap``; up to the length of the shorter list
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
    """Return the share that as many pages of either crawl, chosen blindly, have in common."""
    a, b = ({int(whole.content[p]) for p in crawl if relevance[p] > 0.5} for crawl in (one, other))
    n = min(len(a), len(b), TOP)
    return n * len(a & b) / max(len(a) * len(b), 1)
