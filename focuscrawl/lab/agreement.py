"""Agreement on authorities of crawls from disjoint seeds [F99 section 4.4, figure 7]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.critic import load_critic
from focuscrawl.distiller import Distiller, best
from focuscrawl.lab.page_studies.authorities import hosts_of, link_graph
from focuscrawl.lab.page_studies.instances import best_first
from focuscrawl.lab.whole_web import whole_web
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.lab.topic_tasks import Task
    from focuscrawl.lab.whole_web import WholeWeb

PAIRS = 5  # of samples
SEEDS = 10  # of a sample, at most; half of the examples if there are fewer than twice as many
TOP = 100
_MOST_PAGES = 5_000  # of a crawl: [F99] has 10,000, of a Web that has no end


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
    ``fetched``: the share of URLs that both crawls fetched
    """
    web = open_web(task.recording)
    critic = load_critic(task.critic, task.topic)
    whole = whole_web(web, critic)
    relevance = whole.relevance(task.topic)
    examples = whole.numbers(critic.examples)
    hosts = hosts_of(whole)
    parts = []
    for pair in range(PAIRS):
        drawn = np.random.default_rng(pair).permutation(examples)
        size = min(SEEDS, len(drawn) // 2)
        crawls = []
        for seeds in (drawn[:size], drawn[size : 2 * size]):
            budget = min(task.budget, _MOST_PAGES)
            fetched = best_first(whole, relevance, seeds.tolist(), budget)
            crawls.append((fetched, authorities(whole, relevance, hosts, fetched)))
        (fetched_a, a), (fetched_b, b) = crawls
        shared = len({*fetched_a} & {*fetched_b}) / max(len({*fetched_a}), len({*fetched_b}), 1)
        lists = {"pages": (a, b)}
        if hosts.any():
            lists["hosts"] = (pd.unique(hosts[a]), pd.unique(hosts[b]))
        chance = _by_chance(whole, relevance, fetched_a, fetched_b)
        for of, (first, second) in lists.items():
            table = overlap(first, second)
            parts.append(table.assign(pair=pair, of=of, fetched=shared, chance=chance))
    return {"agreement": pd.concat(parts, ignore_index=True)}


def authorities(
    whole: WholeWeb,
    relevance: NDArray[np.float64],
    hosts: NDArray[np.int64],
    fetched: Sequence[int],
) -> NDArray[np.int64]:
    """Return the best authorities of a crawl that fetched these pages, the best first."""
    found = Distiller(link_graph(whole, relevance, hosts, fetched)).distill().authorities
    return whole.content[best(found, TOP)]


def overlap(first: NDArray[np.int64], second: NDArray[np.int64]) -> pd.DataFrame:
    """Return what the n best of two lists have in common, for n from 1 to `TOP`.

    Returns
    -------
    ``top`` n, ``overlap``; up to the length of the shorter list
    """
    most = min(len(first), len(second), TOP)
    shares = [len({*first[:n].tolist()} & {*second[:n].tolist()}) / n for n in range(1, most + 1)]
    return pd.DataFrame({"top": np.arange(1, most + 1), "overlap": np.array(shares, np.float64)})


def _by_chance(
    whole: WholeWeb,
    relevance: NDArray[np.float64],
    one: Sequence[int],
    other: Sequence[int],
) -> float:
    """Return the share that as many pages of either crawl, chosen blindly, have in common."""
    a, b = ({int(whole.content[p]) for p in crawl if relevance[p] > 0.5} for crawl in (one, other))
    n = min(len(a), len(b), TOP)
    return n * len(a & b) / max(len(a) * len(b), 1)
