"""Foraging by learned paths: Sarawagi and Vydiswaran, sequential models of websites [C 3.2]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.paths.forager import EVIDENCE_MODES, Forager, directory_keys
from focuscrawl.paths.path_features import PathFeatureReader
from focuscrawl.paths.path_model import PathCritic
from focuscrawl.strategies.base import Expansion, Strategy, check_count, check_number

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext


class Paths(Strategy):
    """Priority of v = what the paths into v promise, by a model of paths (eq. 7).

    The model is the crawl's critic (`focuscrawl paths train`): it judges pages on their own, which
    is R(u), and paths, which orders the frontier. Every start page starts a site of its own, to
    which only what is on a path from it belongs.

    Parameters
    ----------
    evidence : ``sum`` of all links into a URL, the ``max``, or the ``mean``
    threshold : URLs that score less are not fetched; the forage ends when no other is left
    per_site : fetches after which a site is given up; 0: never
    stop : goals a fetch; a site is given up when its next fetches are expected to bring fewer.
        0: never
    printed_scores : whether scores are those of equations 6 and 7 as printed, every path to a
        page by itself, and the domain of a link is no factor; with ``evidence`` ``sum`` only
    adapt : whether scores depend on what the directories of the site brought so far, too
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
            raise UserError("strategy paths: adapt is not as printed: leave out one of the two")
        if printed_scores and evidence != "sum":
            raise UserError(
                f"strategy paths: printed_scores adds up what paths say: leave out "
                f"evidence={evidence}"
            )
        check_number("paths: threshold", threshold, 0.0)
        check_count("paths: per_site", per_site, 0)
        check_number("paths: stop", stop, 0.0)
        if not isinstance(context.critic, PathCritic):
            raise UserError(
                "strategy paths needs a model of paths as its critic: "
                "train one with `focuscrawl paths train` and name it with -a critic=FOLDER"
            )
        self._model = context.critic.model
        if stop and self._model.calibration is None:
            raise UserError(
                "strategy paths: stop needs a model that was trained on paths of two sites or "
                "more, to goals and to fails each: train it again, or leave stop out"
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
        self._worth: dict[int, float] = {}

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Take note of a fetch."""
        self._forager.record_fetch(url)

    def page_value(self, url: int, relevance: float) -> float:
        """Return Pr(not a fail) of a page by the path to it: see `Strategy.page_value`."""
        return self._worth.get(url, 0.0)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and the URLs they lead to."""
        forager = self._forager
        referrer = -1 if page.referrer is None else page.referrer
        forager.add_page(page.url, referrer, page.view.url)
        start, parent = forager.site_start(page.url), forager.parent(page.url)
        seen = self._model.page_potentials(self._reader, page.view, start)
        # in the precision of the store, so that a resumed forage computes with the same numbers
        belief = forager.label_probabilities(page.url, seen).astype(np.float32)
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
        self._worth[page.url] = 1.0 - fail
        rows = labels.reshape(-1, labels.shape[2])
        reward = float(belief.mean(axis=0) @ self._model.rewards)
        of_links = [page.view.links.urls[i] for i in page.links.tolist()] if self._adapt else []
        directories = directory_keys(of_links)
        memo = PathMemo(referrer, parent, page.view.url, goal, fail, reward, rows, directories)
        forager.record_page(page.url, goal, reward)
        found = forager.expand(page.url, page.targets, labels.astype(np.float64), directories)
        return Expansion(found.link_scores, found.urls, found.scores, memo=memo.to_bytes())

    def restore_page(self, page: StoredPage) -> Scores:
        """Take in the links of an earlier run."""
        assert page.memo is not None
        memo = PathMemo.from_bytes(page.memo)
        self._worth[page.url] = 1.0 - memo.fail
        self._forager.add_page(page.url, memo.referrer, memo.url)
        self._forager.record_page(page.url, memo.goal, memo.reward)
        links = len(page.targets)
        labels = memo.labels.astype(np.float64)
        labels = labels.reshape(len(labels) // max(links, 1), links, labels.shape[1])
        found = self._forager.expand(page.url, page.targets, labels, memo.directories)
        return found.urls, found.scores


@dataclass(frozen=True, slots=True)
class PathMemo:
    """What the store keeps of a page on a path.

    Attributes
    ----------
    referrer : as in `JudgedPage`; -1: nowhere
    parent : number of the page with the best link to this one when it was fetched; -1: none
    url : of the page
    goal, fail, reward : Pr(goal), Pr(fail), mean reward of the page
    labels : float32 (paths n, K), Pr(label) of its n links by each path to it
    directories : uint32 (n, depth), of its links; none unless the forage adapts
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
        """Pack it, for the store."""
        url = self.url.encode()
        links, depth = self.directories.shape
        sizes = [self.labels.shape[1], len(url), links, depth]
        head = np.array([self.referrer, self.parent, *sizes], "<i8").tobytes()
        head += np.array([self.goal, self.fail, self.reward], "<f8").tobytes()
        labels, directories = self.labels.astype("<f4"), self.directories.astype("<u4")
        return head + url + directories.tobytes() + labels.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Unpack what `to_bytes` packed."""
        referrer, parent, k, length, links, depth = np.frombuffer(data, "<i8", 6).tolist()
        goal, fail, reward = np.frombuffer(data, "<f8", 3, offset=48).tolist()
        url = data[72 : 72 + length].decode()
        at = 72 + length
        directories = np.frombuffer(data, "<u4", links * depth, offset=at).reshape(links, depth)
        labels = np.frombuffer(data[at + 4 * links * depth :], "<f4").astype(np.float32)
        labels = labels.reshape(-1, k)
        return cls(referrer, parent, url, goal, fail, reward, labels, directories)
