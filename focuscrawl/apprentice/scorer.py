"""Scores of URLs: the weights of a learner, over the evidence of all links known (methods 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.evidence import UrlEvidence
from focuscrawl.apprentice.instances import (
    N_FEATURES,
    SPACE,
    link_margins,
    make_instances,
    row_margins,
)
from focuscrawl.apprentice.learners import LinearRegressor, LogisticLearner, NaiveBayesLearner
from focuscrawl.apprentice.link_features import cocitation
from focuscrawl.apprentice.options import INPUTS, active_inputs, input_names, prior_weights

if TYPE_CHECKING:
    from focuscrawl.apprentice.evidence import FetchOutcomes
    from focuscrawl.apprentice.learners import Learner
    from focuscrawl.apprentice.link_table import LinkTable
    from focuscrawl.apprentice.options import Options
    from focuscrawl.foundation.arrays import Bools, Floats, Ints


def new_learner(options: Options) -> Learner:
    """Return a learner that knows the prior only.

    The one that predicts relevance itself has the logistic prior's tangent at 1/2. The paper's has
    the baseline: R(u).
    """
    prior = prior_weights(options)
    if options.learner == "nb":
        baseline = [float(name == "best_relevance") for name in input_names(options)]
        return NaiveBayesLearner(N_FEATURES, prior=[*baseline, -0.5])
    if options.learner == "regression":
        tangent = [weight / 4.0 for weight in prior]
        return LinearRegressor(N_FEATURES, prior=[*tangent[:-1], 0.5 + tangent[-1]])
    return LogisticLearner(N_FEATURES, prior=prior)


class Scorer:
    """Scores URLs by a learner as it is: its weights do not change any more.

    Parameters
    ----------
    learner : whose weights these are; to learn on from
    options : of the apprentice
    table : links and URLs known
    outcomes : rates of relevance of path prefixes and URL patterns

    Attributes
    ----------
    weights : float64 (N_FEATURES,) of hashed features
    dense : float64 (k + 1,) of the inputs, and the intercept
    evidence : of all links that were added, by URL
    """

    def __init__(
        self, learner: Learner, options: Options, table: LinkTable, outcomes: FetchOutcomes
    ) -> None:
        self.learner, self.options = learner, options
        self.table, self.outcomes = table, outcomes
        self.weights, self.dense = learner.linear()
        # half the memory to go through, when a million links are scored
        self._link_weights = self.weights[:SPACE].astype(np.float32)
        self._active = active_inputs(options)
        self.evidence = self._no_evidence()

    def with_table(self, table: LinkTable) -> Scorer:
        """Return a scorer with these weights over another table, without evidence."""
        return Scorer(self.learner, self.options, table, self.outcomes)

    def _no_evidence(self) -> UrlEvidence:
        width = len(input_names(self.options)) - len(INPUTS)
        return UrlEvidence(width, only_first=self.options.evidence == "first")

    # -- evidence --------------------------------------------------------------------------

    def add_new_links(self, first: int) -> Floats:
        """Add the links from number `first` on, none of whose pages' links was followed yet.

        Returns
        -------
        Their margins: float64 (n,)
        """
        table, links = self.table, slice(first, len(self.table))
        margin = self._link_margins(range(first, len(table)))
        self.evidence.add(table.n_urls, table, links, margin=margin)
        return margin

    def add_page(self, first: int, targets: Ints, urls: Ints) -> tuple[Floats, Floats]:
        """Add the links of a page, the last in the table; score them and the URLs they lead to.

        Parameters
        ----------
        first : number of the first of the links
        targets : int64 (n,), where they lead
        urls : int64 (m,), these without repetitions, ascending

        Returns
        -------
        float64 (n,): score of each link by itself; float64 (m,): scores of `urls`
        """
        margins = self.add_new_links(first)
        dense, address = self._dense_margins(self.inputs(urls)), self._url_margins(urls)
        scores = self.learner.response(self.evidence.margins(urls) + dense + address)
        of_target = (dense + address)[urls.searchsorted(targets)]
        return self.learner.response(of_target + margins), scores

    def rebuild_evidence(self, n_links: int, y: Floats) -> tuple[Ints, Floats]:
        """Add up the evidence of the first `n_links` links anew; score what waits.

        Words of links to what was fetched are left out: nobody asks for its score.

        Parameters
        ----------
        y : float64 by URL, R(v), NaN where it was not fetched

        Returns
        -------
        The URLs with links that were not fetched, and their scores: int64 (m,), float64 (m,)
        """
        table = self.table
        target, counts = table.target.data[:n_links], None
        if "cocitation" in self.options.groups:
            # a page's link to itself does not count for its other links
            seen = np.where(target == table.source.data[:n_links], np.nan, y[target])
            page, position = table.page.data[:n_links], table.position.data[:n_links]
            counts = cocitation(page, position, seen, self.options.d_max)
        self.evidence = self._no_evidence()
        self.evidence.add(
            len(y),
            table,
            slice(n_links),
            margin=self._margins_where(np.isnan(y[target])),
            counts=counts,
        )
        waiting = self.queued_urls(y)
        return waiting, self.scores(waiting, self.inputs(waiting))

    def queued_urls(self, y: Floats) -> Ints:
        """Return the URLs that have links and, by `y`, were not fetched."""
        urls = self.evidence.urls()
        return urls[np.isnan(y[urls])]

    # -- scores, of URLs that have links -----------------------------------------------------

    def inputs(self, urls: Ints) -> Floats:
        """Return the inputs (n, k) of URLs; 0 where their group is off."""
        inputs = self.evidence.inputs(urls, self.table.keys(urls), self.outcomes)
        inputs *= self._active
        return inputs

    def scores(self, urls: Ints, inputs: Floats) -> Floats:
        """Return the scores of URLs with these inputs, float64 (n,)."""
        margin = self.evidence.margins(urls)
        margin += self._dense_margins(inputs)
        margin += self._url_margins(urls)
        return self.learner.response(margin)

    def _dense_margins(self, inputs: Floats) -> Floats:
        # no matrix product: its last bits depend on n, and scores must not
        margin: Floats = (inputs * self.dense[:-1]).sum(axis=1)
        margin += self.dense[-1]
        return margin

    def _url_margins(self, urls: Ints) -> Floats:
        of_addresses = self.weights[SPACE : 2 * SPACE]
        return row_margins(
            of_addresses, self.table.features_of_urls(urls), self.learner.unit_length
        )

    def explain(self, url: int) -> dict[str, float]:
        """Return the parts of the linear sum behind the score of a URL that has links.

        They are each of `input_names`, ``links (words)``: the hashed features of links and their
        pages, ``address (words)`` and ``intercept``.
        """
        urls = np.array([url])
        parts = (self.inputs(urls)[0] * self.dense[:-1]).tolist()
        return {
            **dict(zip(input_names(self.options), parts, strict=True)),
            "links (words)": float(self.evidence.margins(urls)[0]),
            "address (words)": float(self._url_margins(urls)[0]),
            "intercept": float(self.dense[-1]),
        }

    def features(self, url: int) -> tuple[Ints, Floats]:
        """Return what `explain` adds up as words, feature by feature.

        Returns
        -------
        features : int64 (n,), distinct numbers in the space of `make_instances`
        weights : float64 (n,), what each adds to the margin
        """
        instances, _ = make_instances(
            self.table,
            len(self.table),
            np.array([url]),
            np.zeros((1, 0)),
            unit_length=self.learner.unit_length,
            only_first=self.options.evidence == "first",
            max_links=len(self.table),
        )
        features, at = np.unique(instances.rows.indices, return_inverse=True)
        weights = self.weights[instances.rows.indices] * instances.values
        total = np.bincount(at, weights, len(features)).astype(np.float64)
        return features.astype(np.int64), total

    def _link_margins(self, links: Ints | range) -> Floats:
        of_pages, unit_length = self.weights[2 * SPACE :], self.learner.unit_length
        return link_margins(
            self._link_weights, of_pages, self.table, links, unit_length=unit_length
        )

    def _margins_where(self, wanted: Bools) -> Floats:
        """Return the margins of those of the first n links that are `wanted` (n,), else 0.

        Late in a crawl of a small site nearly all links lead to what was fetched.
        """
        if 2 * np.count_nonzero(wanted) > len(wanted):
            return self._link_margins(range(len(wanted)))
        links, margins = np.flatnonzero(wanted), np.zeros(len(wanted))
        margins[links] = self._link_margins(links)
        return margins
