"""Foraging by learned paths: Sarawagi and Vydiswaran, sequential models of websites [C 3.2]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.errors import UserError
from focuscrawl.paths.critic import PathCritic
from focuscrawl.paths.features import PathReader
from focuscrawl.paths.forager import EVIDENCE, Forager
from focuscrawl.strategies.base import Strategy
from focuscrawl.strategies.messages import Expansion
from focuscrawl.strategies.option_checks import check_count, check_number

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    from focuscrawl.strategies.messages import JudgedPage, RecalledPage, Scores, StrategyContext


class Paths(Strategy):
    """Priority of v = what the paths into v promise, by a model of paths (eq. 7).

    The model comes as the crawl's critic (`focuscrawl paths train`): what it knows of pages on
    their own is R(u), what it knows of paths orders the frontier. Every start page begins a
    site, and what is on no path from it does not count there.

    Parameters
    ----------
    evidence : ``sum`` of all links into a URL, the ``max``, or the ``mean``
    threshold : URLs that score less are not fetched; the forage ends when no other is left
    per_site : fetches after which a site is given up, 0: never; with several sites the frontier
        is that of all that are left
    stop : goals a fetch; a site is given up when its next fetches will bring fewer, as far as
        those before tell. 0: never
    printed_scores : whether scores are those of equations 6 and 7 as printed, every path to a
        page by itself, and the domain of a link is no factor; with ``evidence`` ``sum`` only
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
    ) -> None:
        if evidence not in EVIDENCE:
            raise UserError(
                f"strategy paths: evidence must be one of {', '.join(EVIDENCE)}, not {evidence!r}"
            )
        if not isinstance(printed_scores, bool):
            raise UserError("strategy paths: printed_scores must be true or false")
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
        self._reader = PathReader(self._model.reading)
        self._printed = printed_scores
        self._forager = Forager(
            self._model,
            evidence=evidence,
            threshold=threshold,
            per_site=per_site,
            stop=stop,
            printed=printed_scores,
        )
        self._worth: dict[int, float] = {}

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Take note of a fetch."""
        self._forager.fetched(url)

    def worth(self, url: int, relevance: float) -> float:
        """Return Pr(not a fail) of a page by the path to it: see `Strategy.worth`."""
        return self._worth.get(url, 0.0)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and the URLs they lead to."""
        forager = self._forager
        referrer = -1 if page.referrer is None else page.referrer
        forager.arrive(page.url, referrer, page.view.url)
        start, parent = forager.start_of(page.url), forager.parent(page.url)
        seen = self._model.page(self._reader, page.view, start)
        # in the precision of the store, so that a resumed forage computes with the same numbers
        belief = forager.belief(page.url, seen).astype(np.float32)
        links = self._model.links(self._reader, page.view, start, page.links)
        onward = np.array([self._model.onward(each, links) for each in belief.astype(np.float64)])
        if not self._printed:
            onward *= self._model.stays(page.view, start, page.links)[:, None]
        labels = onward.astype(np.float32)
        goal, fail = belief.mean(axis=0)[:2].tolist()
        self._worth[page.url] = 1.0 - fail
        rows = labels.reshape(-1, labels.shape[2])
        memo = PathMemo(referrer, parent, page.view.url, goal, fail, rows)
        forager.judged(page.url, goal)
        found = forager.expand(page.url, page.targets, labels.astype(np.float64))
        return Expansion(found.link_scores, found.urls, found.scores, memo=memo.to_bytes())

    def recall(self, page: RecalledPage) -> Scores:
        """Take in the links of an earlier run."""
        assert page.memo is not None
        memo = PathMemo.from_bytes(page.memo)
        self._worth[page.url] = 1.0 - memo.fail
        self._forager.arrive(page.url, memo.referrer, memo.url)
        self._forager.judged(page.url, memo.goal)
        links = len(page.targets)
        labels = memo.labels.astype(np.float64)
        labels = labels.reshape(len(labels) // max(links, 1), links, labels.shape[1])
        found = self._forager.expand(page.url, page.targets, labels)
        return found.urls, found.scores


@dataclass(frozen=True, slots=True)
class PathMemo:
    """What the store keeps of a page on a path.

    Attributes
    ----------
    referrer : as in `JudgedPage`; -1: nowhere
    parent : number of the page with the best link to this one when it was fetched; -1: none
    url : of the page
    goal, fail : Pr(goal), Pr(fail) of the page
    labels : float32 (paths n, K), Pr(label) of its n links by each path to it
    """

    referrer: int
    parent: int
    url: str
    goal: float
    fail: float
    labels: NDArray[np.float32]

    def to_bytes(self) -> bytes:
        """Pack it, for the store."""
        url = self.url.encode()
        head = np.array([self.referrer, self.parent, self.labels.shape[1], len(url)], "<i8")
        goal = np.array([self.goal, self.fail], "<f8").tobytes()
        return head.tobytes() + goal + url + self.labels.astype("<f4").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Unpack what `to_bytes` packed."""
        referrer, parent, k, length = np.frombuffer(data, "<i8", 4).tolist()
        goal, fail = np.frombuffer(data, "<f8", 2, offset=32).tolist()
        url = data[48 : 48 + length].decode()
        labels = np.frombuffer(data[48 + length :], "<f4").astype(np.float32)
        return cls(referrer, parent, url, goal, fail, labels.reshape(-1, k))
