"""Harvest by the specificity of a topic [F99 section 6], and crawls without the largest hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.taxonomy import ROOT, ancestors
from studies.whole_crawls import SoftCrawl, hosts_of, opened

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.lab.judged_web import JudgedWeb
    from studies.topic_tasks import Task


WITHOUT = (0, 1, 3, 10)  # numbers of the largest hosts that an unfocused crawl leaves out


def study_specificity(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl a topic and the classes above it from the same seeds, and unfocused.

    Returns
    -------
    dict[str, pd.DataFrame]
        ``specificity`` has a row for the topic and for each class above it: ``above`` (0 for the
        topic), ``marked`` (the class), ``share`` (the share of relevant pages of the web) and
        ``harvest`` of a best-first crawl.

        ``unfocused`` has a row for each number of largest hosts that a breadth-first crawl leaves
        out (``without``): the number of ``fetches`` and their ``harvest``.
    """
    _, _, whole = opened(task)
    seeds = whole.page_indices(task.seeds)
    marked = [task.topic, *(path for path in ancestors(task.topic)[::-1] if path != ROOT)]
    levels = []
    for above, path in enumerate(marked):
        relevance = whole.relevance(path)
        fetches, harvest = _harvest(whole, relevance, relevance, seeds, task.budget)
        share = float((relevance > RELEVANT).mean())
        levels.append(
            {
                "above": above,
                "marked": path,
                "share": share,
                "fetches": fetches,
                "harvest": harvest,
            }
        )
    relevance, hosts = whole.relevance(task.topic), hosts_of(whole)
    same = np.zeros(len(relevance))  # links of equal score are followed in order of discovery
    unfocused = []
    for without in WITHOUT:
        left = without_hosts(whole, hosts, without)
        fetches, harvest = _harvest(left, same, relevance, seeds, task.budget)
        unfocused.append({"without": without, "fetches": fetches, "harvest": harvest})
    return {"specificity": pd.DataFrame(levels), "unfocused": pd.DataFrame(unfocused)}


def without_hosts(whole: JudgedWeb, hosts: Ints, largest: int) -> JudgedWeb:
    """Return the web without links to the hosts with the most pages; seeds stay reachable."""
    sizes = np.bincount(hosts)
    left_out = np.argsort(-sizes, kind="stable")[:largest]
    kept = ~np.isin(hosts[whole.targets], left_out)
    counts = np.concatenate([[0], np.cumsum(kept)])
    return replace(whole, bounds=counts[whole.bounds], targets=whole.targets[kept])


def _harvest(
    whole: JudgedWeb, scores: Floats, relevance: Floats, seeds: Sequence[int], fetches: int
) -> tuple[int, float]:
    """Crawl by `scores`; return the number of fetches and their mean relevance, copies as 0."""
    crawl = SoftCrawl(whole, scores, list(seeds))
    crawl.fetch(fetches)
    outcomes = [relevance[page] if new else 0.0 for page, new in crawl.fetched.items()]
    return len(outcomes), float(np.mean(outcomes)) if outcomes else 0.0
