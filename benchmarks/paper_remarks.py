"""Remarks of [A02] and [F99] on links and topics, checked on the webs of a study.

Run: ``python benchmarks/paper_remarks.py studies/papers.toml FOLDER`` (some minutes; judged webs
come from the lab's cache). The script prints three tables with a line per topic:

- *locality* [A02 section 1.2]: mean relevance of all pages, of pages that relevant pages link to,
  and along a random walk from a relevant page; how often two links of a page, adjacent or any,
  lead to the same class.
- *citations* [F99 section 1]: targets of links of the topic's pages by their most probable class:
  the topic itself, and the two other classes with the most citations relative to their size.
- *discriminants* [A02 section 3.8]: class names of u, and their prefixes, among the features
  (t, d) around links at d_max 5, ranked by mutual information with R(v) > 1/2, first positive
  features, then negative ones.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic import load_critic
from focuscrawl.lab.judged_web import judge_web
from focuscrawl.lab.study_file import read_study
from focuscrawl.webs import open_web
from studies.page_studies import sample_instances
from studies.topic_tasks import plan_tasks

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.lab.judged_web import JudgedWeb
    from studies.page_studies import Instances
    from studies.topic_tasks import Task

STEPS = (1, 2, 4, 8)  # of the random walk
D_MAX = 5
NAMED, LIKELY = 3, 0.1  # maximum number of classes of u, and their minimum probability


class Links(NamedTuple):
    """Links between distinct pages of a web, by page, in document order."""

    source: Ints
    target: Ints


def links_of(whole: JudgedWeb) -> Links:
    source = np.repeat(np.arange(len(whole.urls)), np.diff(whole.bounds))
    other = source != whole.targets
    return Links(source[other], whole.targets[other])


def locality(whole: JudgedWeb, links: Links, relevance: Floats) -> str:
    judged = whole.probabilities.max(axis=1) > 0
    high = relevance > 0.5
    linked = relevance[links.target[high[links.source]]].mean()
    walkers: Floats = high.astype(np.float64) / high.sum()
    degree = np.bincount(links.source, minlength=len(high))
    walk = []
    for step in range(1, max(STEPS) + 1):
        share = (walkers / np.maximum(degree, 1))[links.source]
        walkers = np.bincount(links.target, share, len(high)).astype(np.float64)
        walkers = walkers / walkers.sum()  # walks end at pages without links
        if step in STEPS:
            walk.append(f"{walkers @ relevance:.2f}")
    return f"all {relevance[judged].mean():.2f}, linked {linked:.2f}, walk {' '.join(walk)}"


def proximity(whole: JudgedWeb, links: Links) -> str:
    """Return how often two links of a page lead to pages of the same class."""
    judged = whole.probabilities.max(axis=1) > 0
    kept = judged[links.target]
    source, target = links.source[kept], whole.probabilities.argmax(axis=1)[links.target[kept]]
    rng = np.random.default_rng(0)
    mixed = np.lexsort((rng.random(len(source)), source))
    beside = np.diff(source) == 0
    near = (np.diff(target)[beside] == 0).mean()
    anywhere = (np.diff(target[mixed])[beside] == 0).mean()
    return f"the same class: links side by side {near:.3f}, any two of a page {anywhere:.3f}"


def citations(whole: JudgedWeb, links: Links, topic: str) -> str:
    judged = whole.probabilities.max(axis=1) > 0
    best = whole.probabilities.argmax(axis=1)
    kept = judged[links.source] & judged[links.target]
    cited = best[links.target[kept]]
    n = len(whole.classes)
    size = np.bincount(cited, minlength=n) / len(cited)
    own = np.array([f"{name}/".startswith(f"{topic}/") for name in whole.classes])
    ours = own[best[links.source[kept]]]
    share = np.bincount(cited[ours], minlength=n) / ours.sum()
    lift = np.where(own | (size == 0), 0.0, share / np.maximum(size, 1e-12))
    others = [f"{whole.classes[c]} {share[c]:.2f} ({lift[c]:.1f})" for c in np.argsort(-lift)[:2]]
    return f"itself {share[own].sum():.2f} ({share[own].sum() / size[own].sum():.1f}), {others}"


def information(feature: Ints, owner: Ints, high: Bools) -> tuple[Floats, Bools]:
    """Return the mutual information of each feature and `high`, and whether it is positive."""
    pairs = np.unique(np.stack([feature, owner]), axis=1)
    n, k = len(high), int(feature.max()) + 1
    having = np.bincount(pairs[0], minlength=k)
    good = np.bincount(pairs[0], high[pairs[1]], k)
    bits = np.zeros(k)
    for there, among in ((True, good), (False, having - good)):
        of = high.sum() if there else n - high.sum()
        for count, total in ((among, having), (of - among, n - having)):
            with np.errstate(divide="ignore", invalid="ignore"):
                each = count / n * np.log2(count * n / (of * total))
            bits += np.nan_to_num(each)
    return bits, good * n > having * high.sum()


def discriminants(instances: Instances, whole: JudgedWeb) -> str:
    offsets = instances.tokens.offsets
    owner = np.repeat(np.arange(len(instances)), np.diff(instances.tokens.indptr))
    near = np.abs(offsets) <= D_MAX
    words = (instances.tokens.words << np.uint64(8)) | (offsets + 128).astype(np.uint64)
    keys, feature = np.unique(words[near], return_inverse=True)
    names: dict[str, int] = {}
    named: dict[int, list[int]] = defaultdict(list)
    for u in np.unique(instances.source).tolist():
        top = np.argsort(-whole.probabilities[u], kind="stable")[:NAMED]
        for c in top[whole.probabilities[u, top] >= LIKELY].tolist():
            parts = whole.classes[c].split("/")
            paths = ["/".join(parts[: i + 1]) for i in range(1, len(parts))]
            named[u] += [names.setdefault(path, len(names)) + len(keys) for path in paths]
    of = [(each, i) for i, u in enumerate(instances.source.tolist()) for each in named[u]]
    classes = np.array(of, np.int64).reshape(-1, 2)
    bits, speaks_for = information(
        np.concatenate([feature, classes[:, 0]]),
        np.concatenate([owner[near], classes[:, 1]]),
        instances.high,
    )
    path_of = {number + len(keys): path for path, number in names.items()}
    said = []
    for word, chosen in (("for", speaks_for), ("against", ~speaks_for)):
        order = np.argsort(-np.where(chosen, bits, -1.0), kind="stable")[:100].tolist()
        ranks = [(rank, path_of[f]) for rank, f in enumerate(order, 1) if f in path_of]
        first = ", ".join(f"{path} {rank}." for rank, path in ranks[:2])
        ten = sum(rank <= 10 for rank, _ in ranks)
        said.append(f"{word}: {ten} of the first 10, {len(ranks)} of 100; {first}")
    return f"{len(keys)} pairs, {len(names)} names; " + "; ".join(said)


def report(task: Task) -> list[str]:
    web = open_web(task.recording)
    whole = judge_web(web, load_critic(task.critic, task.topic))
    links = links_of(whole)
    instances = sample_instances(web, whole, task.topic, task.seeds)
    return [
        f"{task.web} {task.topic}",
        f"  locality: {locality(whole, links, whole.relevance(task.topic))}",
        f"  {proximity(whole, links)}",
        f"  citations: {citations(whole, links, task.topic)}",
        f"  discriminants: {discriminants(instances, whole)}",
    ]


def main() -> None:
    study, folder = sys.argv[1:]
    for task in plan_tasks(read_study(Path(study)), Path(folder), "remarks"):
        print("\n".join(report(task)), flush=True)


if __name__ == "__main__":
    main()
