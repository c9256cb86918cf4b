"""A trained model of paths: label probabilities of pages and links from their features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.paths.url_parts import parts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.page import PageView
    from focuscrawl.paths.calibration import Calibration
    from focuscrawl.paths.crf import ChainCRF
    from focuscrawl.paths.features import FeatureVocabulary, Observed, PathReader, ReadingLimits
    from focuscrawl.paths.states import PathStates


@dataclass(frozen=True)
class PathModel:
    """The chain model with its features and rewards.

    Attributes
    ----------
    states : K labels
    vocabulary : features, by number
    crf : fitted
    rewards : float64 (K,), of each label (eq. 5)
    away : share of goals that are not on the registered domain of their site's start
    reading : how much of a page is read
    calibration : what its Pr(goal) is worth on other sites; None: not known
    """

    states: PathStates
    vocabulary: FeatureVocabulary
    crf: ChainCRF
    rewards: NDArray[np.float64]
    away: float
    reading: ReadingLimits
    calibration: Calibration | None = None

    def page(self, reader: PathReader, view: PageView, start: str) -> NDArray[np.float64]:
        """Return what a page's features say for each label: log-potentials, float64 (K,)."""
        return _first(self._scores(reader.page(view, start), slice(0, len(self.states))))

    def links(
        self, reader: PathReader, view: PageView, start: str, links: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return what the features of links say for each link state: log-potentials, float64."""
        seen = reader.links(view, start, links)
        return self._scores(seen, slice(len(self.states), self.crf.structure.states))

    def stays(self, view: PageView, start: str, links: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what each link keeps of its score for where it leads, float64 (n,).

        1 on the registered domain of the site's start, `away` elsewhere. Which domain a link
        leads to is a feature as well, but one of many: on the site of another department, which
        looks like those learned from, the others would outweigh it.
        """
        home = parts_of(start).domain
        urls = view.links.urls
        at_home = np.array([parts_of(urls[i]).domain == home for i in links.tolist()], np.bool_)
        kept: NDArray[np.float64] = np.where(at_home, 1.0, self.away)
        return kept

    def onward(self, page: NDArray[np.float64], links: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Pr(label) of links, float64 (n, K): one step of eq. 6, normalised.

        Parameters
        ----------
        page : float64 (K,), Pr(label) of the page they are on
        links : log-potentials as from `links`
        """
        with np.errstate(divide="ignore"):
            logs = links + np.log(page @ self._onward)
        if not self.states.one_state:
            return _normalised(logs)
        # the label of the page that the link is on is summed out
        logs += self._arriving
        top = logs.max(axis=1, keepdims=True, initial=-np.inf)
        k = len(self.states)
        ways = np.exp(logs - top).reshape(-1, k, k).sum(axis=1)
        labels: NDArray[np.float64] = ways / ways.sum(axis=1, keepdims=True)
        return labels

    def arrived(self, link: NDArray[np.float64], page: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Pr(label) of a page, float64 (K,).

        Parameters
        ----------
        link : float64 (K,), Pr(label) of the links that led to it
        page : log-potentials as from `page`
        """
        with np.errstate(divide="ignore"):
            before = np.log(link)
        if not self.states.one_state:
            before += self._arriving
        return _first(_normalised((page + before)[None, :]))

    def alone(self, reader: PathReader, view: PageView) -> NDArray[np.float64]:
        """Return Pr(label) of a page that nobody knows the site of, float64 (K,)."""
        seen = self._scores(reader.page(view, None), slice(0, len(self.states)))
        return _first(_normalised(seen))

    def begun(self, page: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Pr(label) of a page that a site begins with, float64 (K,)."""
        starts = self.crf.structure.starts[: len(self.states)]
        return _first(_normalised(np.where(starts, page, -np.inf)[None, :]))

    def begun_as_printed(self, page: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Pr(label) of such a page by eq. 6: each state weighs 1 at the place before."""
        k = len(self.states)
        ways = np.exp(self.crf.edge_[k:, :k])
        if self.states.one_state:  # a page is before it, not a link
            ways = np.exp(self.crf.edge_[:k, k:]) @ ways
        with np.errstate(divide="ignore"):
            before = np.log(ways.sum(axis=0))
        return _first(_normalised((page + before)[None, :]))

    @cached_property
    def _onward(self) -> NDArray[np.float64]:
        """Exponentials of the log-potentials from page states to link states."""
        k = len(self.states)
        edges = self.crf.edge_[:k, k:]
        onward: NDArray[np.float64] = np.exp(edges - edges.max())
        return onward

    @cached_property
    def _arriving(self) -> NDArray[np.float64]:
        """Log-potentials from each link state to the page state it leads to."""
        k = len(self.states)
        arriving: NDArray[np.float64] = self.crf.edge_[k:, :k].max(axis=1)
        return arriving

    def _scores(self, observed: Observed, states: slice) -> NDArray[np.float64]:
        rows = self.vocabulary.rows(observed)
        # sums of rows by differences of running sums: a sparse product is slow to set up
        sums = np.zeros((len(rows.indices) + 1, states.stop - states.start))
        weights = self.crf.state_[rows.indices, states] * self.vocabulary.values(rows)[:, None]
        np.cumsum(weights, axis=0, out=sums[1:])
        scores: NDArray[np.float64] = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
        return scores


def _normalised(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    probabilities: NDArray[np.float64] = np.exp(
        logs - logs.max(axis=1, keepdims=True, initial=-np.inf)
    )
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities


def _first(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    row: NDArray[np.float64] = rows[0]
    return row
