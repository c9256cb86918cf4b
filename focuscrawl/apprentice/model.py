"""The model of the apprentice: its prior, its weights, and what they say of all links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.bags import N_FEATURES, link_margins
from focuscrawl.apprentice.hubs import hub_rates, near_links
from focuscrawl.apprentice.learners.linear import LogisticLearner
from focuscrawl.apprentice.standing import INPUTS, PRIOR_INTERCEPT, PRIOR_WEIGHTS, Standing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.known import Known


def fresh_learner() -> LogisticLearner:
    """Return a learner that knows the prior only."""
    prior = [*(PRIOR_WEIGHTS.get(name, 0.0) for name in INPUTS), PRIOR_INTERCEPT]
    return LogisticLearner(N_FEATURES, prior=prior)


def weights_of(learner: LogisticLearner) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return hashed and dense weights, those of the prior before anything was learned."""
    if not hasattr(learner, "weights_"):
        return np.zeros(N_FEATURES), np.array(learner.prior, np.float64)
    return learner.weights_, learner.dense_


def stand(
    known: Known, n_links: int, n_urls: int, y: NDArray[np.float64], weights: NDArray[np.float64]
) -> Standing:
    """Add up the first `n_links` links anew, by what is known of their targets."""
    target = known.target.data[:n_links]
    page = known.page.data[:n_links]
    relevance = known.relevance.data[:n_links]
    # a page's link to itself says nothing of its links
    seen = np.where(target == known.source.data[:n_links], np.nan, y[target])
    standing = Standing()
    standing.add(
        n_urls,
        target,
        known.weight.data[:n_links],
        relevance,
        reading=known.reading.data[:n_links],
        hub=hub_rates(page, relevance, seen),
        margin=link_margins(weights, known, 0, n_links),
        near=near_links(page, seen),
    )
    return standing
