"""Score URLs by the weights of a learner and the evidence of all known links (methods.md 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.evidence import UrlEvidence
from focuscrawl.apprentice.instances import (
    N_FEATURES,
    link_margins,
    make_instances,
    row_margins,
)
from focuscrawl.apprentice.learners import LinearRegressor, LogisticLearner, NaiveBayesLearner
from focuscrawl.apprentice.link_features import HASH_SIZE, cocitation
from focuscrawl.apprentice.options import INPUTS, active_inputs, input_names, prior_weights

if TYPE_CHECKING:
    from focuscrawl.apprentice.evidence import FetchOutcomes
    from focuscrawl.apprentice.learners import Learner
    from focuscrawl.apprentice.link_table import LinkTable
    from focuscrawl.apprentice.options import Options
    from focuscrawl.foundation.arrays import Bools, Floats, Ints


def new_learner(options: Options) -> Learner:
    """Return an untrained learner with its prior weights.

    The prior of the linear regression is that of the logistic regression, but the logistic
    function is replaced by its tangent at 0. With the prior weights of naive Bayes, the score of a
    link is the relevance of the linking page, as in best-first search.
    """
    prior = prior_weights(options)
    if options.learner == "nb":
        baseline = [float(name == "best_relevance") for name in input_names(options)]
        return NaiveBayesLearner(
            N_FEATURES, prior=[*baseline, -0.5], equal_buckets=options.buckets == "equal"
        )
    if options.learner == "regression":
        tangent = [weight / 4.0 for weight in prior]
        return LinearRegressor(N_FEATURES, prior=[*tangent[:-1], 0.5 + tangent[-1]])
    return LogisticLearner(N_FEATURES, prior=prior)


class Scorer:
    """Scores URLs with the weights of a trained learner.

    Parameters
    ----------
    learner : the trained learner
    table : known links and URLs
    outcomes : rates of relevance by path prefix and URL pattern

    Attributes
    ----------
    weights : float64 (N_FEATURES,), weights of the hashed features
    dense : float64 (k + 1,), weights of the dense inputs, then the intercept
    evidence : sums over the added links, by URL
    """

    def __init__(
        self, learner: Learner, options: Options, table: LinkTable, outcomes: FetchOutcomes
    ) -> None:
        self.learner, self.options = learner, options
        self.table, self.outcomes = table, outcomes
        self.weights, self.dense = learner.linear()
        # float32 halves the memory traffic when a million links are scored
        self._link_weights = self.weights[:HASH_SIZE].astype(np.float32)
        self._active = active_inputs(options)
        self.evidence = self._no_evidence()

    def with_table(self, table: LinkTable) -> Scorer:
        """Return a scorer for another link table with the same weights, but no evidence yet."""
        return Scorer(self.learner, self.options, table, self.outcomes)

    def _no_evidence(self) -> UrlEvidence:
        width = len(input_names(self.options)) - len(INPUTS)
        return UrlEvidence(width, only_first=self.options.evidence == "first")

    # -- evidence --------------------------------------------------------------------------

    def add_new_links(self, first: int) -> Floats:
        """Add new pages' links from the position `first`; return the links' margins (n,).

        A page is new if no link of the page was followed yet.
        """
        table, links = self.table, slice(first, len(self.table))
        margin = self._link_margins(range(first, len(table)))
        self.evidence.add(table.n_urls, table, links, margin=margin)
        return margin

    def add_page(self, first: int, targets: Ints, urls: Ints) -> tuple[Floats, Floats]:
        """Add the links of the last page in the table; return the scores of links and of targets.

        Parameters
        ----------
        first : position of the first link
        targets : int64 (n_links,), targets of the links
        urls : int64 (m,), distinct targets, ascending

        Returns
        -------
        link_scores : float64 (n_links,), score of each link from that link alone
        scores : float64 (m,), scores of `urls`
        """
        margins = self.add_new_links(first)
        dense, address = self._dense_margins(self.inputs(urls)), self._url_margins(urls)
        scores = self.learner.response(self.evidence.margins(urls) + dense + address)
        of_target = (dense + address)[urls.searchsorted(targets)]
        return self.learner.response(of_target + margins), scores

    def rebuild_evidence(self, n_links: int, y: Floats) -> tuple[Ints, Floats]:
        """Recompute sums over the first `n_links` links; return unfetched URLs and their scores.

        The hashed features of links to fetched URLs are skipped, because fetched URLs need no
        scores.

        Parameters
        ----------
        n_links : number of links to add
        y : float64 (n_urls,), relevance by URL id; NaN for unfetched URLs
        """
        table = self.table
        target, counts = table.target.data[:n_links], None
        if "cocitation" in self.options.groups:
            # links of a page to itself do not count
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
        urls = self.queued_urls(y)
        return urls, self.scores(urls, self.inputs(urls))

    def queued_urls(self, y: Floats) -> Ints:
        """Return the unfetched URLs to which links lead; `y` is NaN for unfetched URLs."""
        urls = self.evidence.urls()
        return urls[np.isnan(y[urls])]

    # -- scores of URLs with links -----------------------------------------------------------

    def inputs(self, urls: Ints) -> Floats:
        """Return the dense inputs (n, k) of URLs; the inputs of inactive feature groups are 0."""
        inputs = self.evidence.inputs(urls, self.table.keys(urls), self.outcomes)
        inputs *= self._active
        return inputs

    def scores(self, urls: Ints, inputs: Floats) -> Floats:
        """Return the scores of URLs from their dense inputs, float64 (n,)."""
        margin = self.evidence.margins(urls)
        margin += self._dense_margins(inputs)
        margin += self._url_margins(urls)
        return self.learner.response(margin)

    def _dense_margins(self, inputs: Floats) -> Floats:
        # no matrix product, since its last bits depend on n
        margin: Floats = (inputs * self.dense[:-1]).sum(axis=1)
        margin += self.dense[-1]
        return margin

    def _url_margins(self, urls: Ints) -> Floats:
        url_weights = self.weights[HASH_SIZE : 2 * HASH_SIZE]
        return row_margins(
            url_weights, self.table.features_of_urls(urls), self.learner.unit_length
        )

    def explain(self, url: int) -> dict[str, float]:
        """Return the terms whose sum is a URL's log-odds (for linear regression: its score).

        The names of the terms are `input_names`, ``links (words)`` for the hashed features of
        links and their pages, ``address (words)`` for the hashed features of the URL, and
        ``intercept``.
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
        """Return the distinct hashed features of a URL, and each feature's part of the score."""
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
        page_weights, unit_length = self.weights[2 * HASH_SIZE :], self.learner.unit_length
        return link_margins(
            self._link_weights, page_weights, self.table, links, unit_length=unit_length
        )

    def _margins_where(self, wanted: Bools) -> Floats:
        """Return the margins of the first n links where `wanted` (n,) is True, 0 elsewhere.

        Late in a crawl of a small site, nearly all links lead to fetched URLs.
        """
        if 2 * np.count_nonzero(wanted) > len(wanted):
            return self._link_margins(range(len(wanted)))
        links, margins = np.flatnonzero(wanted), np.zeros(len(wanted))
        margins[links] = self._link_margins(links)
        return margins
