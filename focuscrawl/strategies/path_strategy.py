"""The strategy ``paths``, which scores URLs by a sequential model of paths [C section 3.2].

The source is Sarawagi and Vydiswaran, Learning to extract information from large websites using
sequential models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.paths.forager import EVIDENCE_MODES, Forager, directory_keys
from focuscrawl.paths.path_features import PathFeatureReader
from focuscrawl.paths.path_model import PathCritic
from focuscrawl.strategies.base import Expansion, Strategy, check_count, check_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext


class Paths(Strategy):
    """The score of a URL is the reward that a path model expects from the paths to the URL.

    The critic of the crawl contains the path model, which `focuscrawl paths train` creates. The
    path model computes the relevance of a page from the page alone, but the scores of URLs from
    the paths to them. All pages that are reached by links from one start page form a site.

    Parameters
    ----------
    evidence : ``sum``, ``max`` or ``mean`` of the scores of all links into a URL
    threshold : URLs with lower scores are not fetched
    per_site : largest number of fetches a site; 0: no limit
    stop : a site is stopped when fewer goals a fetch are expected; 0: never
    printed_scores : whether to use equations 6 and 7 as printed: each path to a page separately,
        and no factor for the domain of a link; requires ``evidence`` ``sum``
    adapt : whether scores also depend on the goals found in the directories of the site
    """

    def __init__(
        self,
        context: StrategyContext,
        *,
        evidence: str = "sum",
        threshold: float = 0.0,
        per_site: int = 0,
        stop: float = 0.0,
        printed_scores: bool = False,
        adapt: bool = False,
    ) -> None:
        if evidence not in EVIDENCE_MODES:
            raise UserError(
                f"strategy paths: evidence must be one of {', '.join(EVIDENCE_MODES)}, "
                f"not {evidence!r}"
            )
        for name, given in (("printed_scores", printed_scores), ("adapt", adapt)):
            if not isinstance(given, bool):
                raise UserError(f"strategy paths: {name} must be true or false")
        if printed_scores and adapt:
            raise UserError(
                "strategy paths: adapt and printed_scores exclude each other: remove one of them"
            )
        if printed_scores and evidence != "sum":
            raise UserError(
                f"strategy paths: printed_scores needs evidence=sum: remove evidence={evidence}"
            )
        check_number("paths: threshold", threshold, 0.0)
        check_count("paths: per_site", per_site, 0)
        check_number("paths: stop", stop, 0.0)
        if not isinstance(context.critic, PathCritic):
            raise UserError(
                "strategy paths needs a model of paths as critic: train a model with "
                "`focuscrawl paths train` and set -a critic=FOLDER"
            )
        self._model = context.critic.model
        if stop and self._model.calibration is None:
            raise UserError(
                "strategy paths: stop needs a model that was trained on at least two sites, each "
                "with paths to goals and to fails: train the model again, or remove stop"
            )
        self._reader = PathFeatureReader(self._model.reading)
        self._printed = printed_scores
        self._adapt = adapt
        self._forager = Forager(
            self._model,
            evidence=evidence,
            threshold=threshold,
            per_site=per_site,
            stop=stop,
            printed=printed_scores,
            adapt=adapt,
        )

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Record a fetch."""
        self._forager.record_fetch(url)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page` and their targets."""
        forager = self._forager
        referrer = -1 if page.referrer is None else page.referrer
        forager.add_page(page.url, referrer, page.view.url)
        start, parent = forager.site_start(page.url), forager.parent(page.url)
        potentials = self._model.page_potentials(self._reader, page.view, start)
        # in the precision of the store, so that a resumed crawl computes the same numbers
        belief = forager.label_probabilities(page.url, potentials).astype(np.float32)
        links = self._model.link_potentials(self._reader, page.view, start, page.links)
        onward = np.array(
            [
                self._model.link_label_probabilities(each, links)
                for each in belief.astype(np.float64)
            ]
        )
        if not self._printed:
            onward *= self._model.domain_factors(page.view, start, page.links)[:, None]
        labels = onward.astype(np.float32)
        goal, fail = belief.mean(axis=0)[:2].tolist()
        rows = labels.reshape(-1, labels.shape[2])
        reward = float(belief.mean(axis=0) @ self._model.rewards)
        of_links = [page.view.links.urls[i] for i in page.links.tolist()] if self._adapt else []
        directories = directory_keys(of_links)
        memo = PathMemo(referrer, parent, page.view.url, goal, fail, reward, rows, directories)
        forager.record_page(page.url, goal, reward)
        found = forager.expand(page.url, page.targets, labels.astype(np.float64), directories)
        return Expansion(found.link_scores, found.urls, found.scores, memo=memo.to_bytes())

    def restore_page(self, page: StoredPage) -> Scores:
        """Add the links of an earlier run."""
        assert page.memo is not None
        memo = PathMemo.from_bytes(page.memo)
        self._forager.add_page(page.url, memo.referrer, memo.url)
        self._forager.record_page(page.url, memo.goal, memo.reward)
        links = len(page.targets)
        labels = memo.labels.astype(np.float64)
        labels = labels.reshape(len(labels) // max(links, 1), links, labels.shape[1])
        found = self._forager.expand(page.url, page.targets, labels, memo.directories)
        return found.urls, found.scores


@dataclass(frozen=True, slots=True)
class PathMemo:
    """The data of a page that a resumed crawl needs, stored as the memo of the page.

    Attributes
    ----------
    referrer : as in `JudgedPage`; -1: none
    parent : id of the page with the best link to the page at the time of the fetch; -1: none
    goal, fail, reward : Pr(goal), Pr(fail) and expected reward of the page
    labels : float32 (n_paths * n_links, K), Pr(label) of each link by each path to the page
    directories : uint32 (n_links, depth), keys of the directories of the links; empty without
        ``adapt``
    """

    referrer: int
    parent: int
    url: str
    goal: float
    fail: float
    reward: float
    labels: NDArray[np.float32]
    directories: NDArray[np.uint32]

    def to_bytes(self) -> bytes:
        """Convert the memo (the stored data of a page) to bytes."""
        url = self.url.encode()
        links, depth = self.directories.shape
        sizes = [self.labels.shape[1], len(url), links, depth]
        head = np.array([self.referrer, self.parent, *sizes], "<i8").tobytes()
        head += np.array([self.goal, self.fail, self.reward], "<f8").tobytes()
        labels, directories = self.labels.astype("<f4"), self.directories.astype("<u4")
        return head + url + directories.tobytes() + labels.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Create a memo (the stored data of a page) from the bytes of `to_bytes`."""
        referrer, parent, k, length, links, depth = np.frombuffer(data, "<i8", 6).tolist()
        goal, fail, reward = np.frombuffer(data, "<f8", 3, offset=48).tolist()
        url = data[72 : 72 + length].decode()
        at = 72 + length
        directories = np.frombuffer(data, "<u4", links * depth, offset=at).reshape(links, depth)
        labels = np.frombuffer(data[at + 4 * links * depth :], "<f4").astype(np.float32)
        labels = labels.reshape(-1, k)
        return cls(referrer, parent, url, goal, fail, reward, labels, directories)
