"""The model of the apprentice: its prior, its weights, and what they say of all links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.cocitation import cocitation, hub_rates, near_links
from focuscrawl.apprentice.dense_inputs import INPUTS, input_names, prior_of, switched_on
from focuscrawl.apprentice.evidence import UrlEvidence
from focuscrawl.apprentice.instances import (
    N_FEATURES,
    SPACE,
    address_margins,
    bags,
    link_margins,
    margins_of_links,
)
from focuscrawl.apprentice.learners.linear import LinearRegressor, LogisticLearner
from focuscrawl.apprentice.learners.naive_bayes import NaiveBayesLearner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.evidence import FetchOutcomes
    from focuscrawl.apprentice.learners.protocol import Learner
    from focuscrawl.apprentice.link_table import LinkTable
    from focuscrawl.apprentice.options import Options


def fresh_learner(options: Options) -> Learner:
    """Return a learner that knows the prior only.

    The one that predicts relevance itself has the logistic prior's tangent at 1/2. The paper's has
    the baseline: R(u).
    """
    prior = prior_of(options)
    if options.learner == "nb":
        baseline = [float(name == "best_relevance") for name in input_names(options)]
        return NaiveBayesLearner(N_FEATURES, prior=[*baseline, -0.5])
    if options.learner == "regression":
        tangent = [weight / 4.0 for weight in prior]
        return LinearRegressor(N_FEATURES, prior=[*tangent[:-1], 0.5 + tangent[-1]])
    return LogisticLearner(N_FEATURES, prior=prior)


class ApprenticeModel:
    """A learner as it scores: nothing in it changes any more.

    Attributes
    ----------
    learner : to learn on from
    weights : float64 (N_FEATURES,) of hashed features
    dense : float64 (k + 1,) of the inputs, and the intercept
    """

    def __init__(self, learner: Learner, options: Options) -> None:
        self.learner = learner
        self.options = options
        self.weights, self.dense = learner.linear()
        # half the memory to go through, when a million links are scored
        self._of_links = self.weights[:SPACE].astype(np.float32)
        self._on = switched_on(options)

    def inputs(
        self,
        standing: UrlEvidence,
        known: LinkTable,
        fetched: FetchOutcomes,
        urls: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Return the inputs (n, k) of URLs that have links; 0 where their group is off."""
        inputs: NDArray[np.float64] = standing.inputs(urls, known.keys(urls), fetched)
        inputs *= self._on
        return inputs

    def margins(
        self,
        standing: UrlEvidence,
        known: LinkTable,
        urls: NDArray[np.int64],
        inputs: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the linear sums of URLs that have links, float64 (n,)."""
        margin = standing.margins(urls)
        margin += self.dense_margins(inputs)
        margin += self.address_margins(known, urls)
        return margin

    def dense_margins(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what inputs (n, k) and the intercept say.

        Not by a matrix product, whose last bits depend on n: scores must not depend on how many
        are asked for at a time.
        """
        margin: NDArray[np.float64] = (inputs * self.dense[:-1]).sum(axis=1)
        margin += self.dense[-1]
        return margin

    def address_margins(self, known: LinkTable, urls: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what the words of addresses say."""
        return address_margins(self.weights, known, urls, unit_length=self.learner.unit_length)

    def link_margins(self, known: LinkTable, first: int, end: int) -> NDArray[np.float64]:
        """Return what the hashed features of links and their pages say."""
        of_pages, unit_length = self.weights[2 * SPACE :], self.learner.unit_length
        return link_margins(self._of_links, of_pages, known, first, end, unit_length=unit_length)

    def _open_margins(self, known: LinkTable, waits: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return what the first n links say that lead to URLs that wait (n,), 0 for the others.

        Late in a crawl of a small site nearly all links lead to what was fetched.
        """
        if 2 * np.count_nonzero(waits) > len(waits):
            return self.link_margins(known, 0, len(waits))
        links, margins = np.flatnonzero(waits), np.zeros(len(waits))
        margins[links] = margins_of_links(
            self._of_links,
            self.weights[2 * SPACE :],
            known,
            links,
            unit_length=self.learner.unit_length,
        )
        return margins

    def new_standing(self) -> UrlEvidence:
        """Return one without links."""
        return UrlEvidence(len(input_names(self.options)) - len(INPUTS))

    def add_links(
        self, standing: UrlEvidence, known: LinkTable, first: int
    ) -> NDArray[np.float64]:
        """Add the links from number `first` on, whose pages' links nobody has followed yet.

        Returns
        -------
        What each says by its words: float64 (n,)
        """
        end = len(known)
        margin = self.link_margins(known, first, end)
        relevance = known.relevance.data[first:end]
        kept = self._evidence(known, first, end)
        standing.add(
            known.n_urls,
            known.target.data[first:end][kept],
            known.weight.data[first:end][kept],
            relevance[kept],
            reading=known.reading.data[first:end][kept],
            hub=relevance[kept],
            margin=margin[kept],
        )
        return margin

    def stand(
        self, known: LinkTable, n_links: int, n_urls: int, y: NDArray[np.float64]
    ) -> UrlEvidence:
        """Add up the first `n_links` links, by what is known of their targets.

        Words of links to what was fetched are left out: nobody asks for its score.
        """
        target = known.target.data[:n_links]
        page = known.page.data[:n_links]
        relevance = known.relevance.data[:n_links]
        # a page's link to itself says nothing of its links
        seen = np.where(target == known.source.data[:n_links], np.nan, y[target])
        kept = self._evidence(known, 0, n_links)
        near, near_known = near_links(page, seen)
        standing = self.new_standing()
        counts = None
        if "cocitation" in self.options.groups:
            position = known.position.data[:n_links]
            counts = cocitation(page, position, seen, self.options.d_max)[kept]
        standing.add(
            n_urls,
            target[kept],
            known.weight.data[:n_links][kept],
            relevance[kept],
            reading=known.reading.data[:n_links][kept],
            hub=hub_rates(page, relevance, seen)[kept],
            margin=self._open_margins(known, np.isnan(y[target]))[kept],
            near=(near[kept], near_known[kept]),
            counts=counts,
        )
        return standing

    def parts(
        self, standing: UrlEvidence, known: LinkTable, url: int, inputs: NDArray[np.float64]
    ) -> dict[str, float]:
        """Return what adds up to the linear sum of a URL; see `Apprentice.explain`."""
        names, urls = input_names(self.options), np.array([url])
        parts = dict(zip(names, (inputs[0] * self.dense[:-1]).tolist(), strict=True))
        parts["links (words)"] = float(standing.margins(urls)[0])
        parts["address (words)"] = float(self.address_margins(known, urls)[0])
        parts["intercept"] = float(self.dense[-1])
        return parts

    def features(
        self, known: LinkTable, url: int, inputs: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the hashed features of a URL and what each adds; see `Apprentice.features`."""
        instances, _ = bags(
            known,
            len(known),
            np.array([url]),
            inputs,
            unit_length=self.learner.unit_length,
            only_first=self.options.evidence == "first",
            most=len(known),
        )
        features, at = np.unique(instances.rows.indices, return_inverse=True)
        weights = self.weights[instances.rows.indices] * instances.values
        total = np.bincount(at, weights, len(features)).astype(np.float64)
        return features.astype(np.int64), total

    def _evidence(self, known: LinkTable, first: int, end: int) -> NDArray[np.bool_] | slice:
        """Tell which links count as evidence."""
        if self.options.evidence == "first":
            kept: NDArray[np.bool_] = known.first.data[first:end]
            return kept
        return slice(None)
