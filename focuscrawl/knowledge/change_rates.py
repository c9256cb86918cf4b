"""Change rates of pages from past visits, and the worth of another visit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Bools, Floats

FORGIVEN = 3  # failures in a row after which a page is given up
DUE = 0.1  # chance that a page has changed, below which it is not visited again
_SHORTEST = 1e-6  # of an interval: nothing changes between visits a moment apart
_TRUST = 2.0  # visits that what is known of all pages counts for, in judging one


def change_rate(accesses: Floats, changes: Floats, span: Floats) -> Floats:
    """Estimate how often pages change, as a Poisson process.

    Cho and Garcia-Molina, Estimating frequency of change, ACM TOIT 3 (2003), section 4.2: of n
    visits at intervals I, X found a change; the rate is -log((n - X + 0.5) / (n + 0.5)) / I, whose
    bias is much below that of X / (n I), since several changes between two visits look like
    one. I is the mean interval here. To n and X are added `_TRUST` visits that found changes as
    often as those of all pages (of none, every other one): a page visited once has hardly told
    anything.

    Parameters
    ----------
    accesses : (n,), visits after the first
    changes : (n,), how many of them found another content
    span : (n,), time from the first of all visits to the last

    Returns
    -------
    float64 (n,), changes in a unit of the time of `span`
    """
    often = (changes.sum() + 0.5) / (accesses.sum() + 1.0)
    n, found = accesses + _TRUST, changes + _TRUST * often
    usual = float(span.sum() / accesses.sum()) if accesses.any() else 1.0
    interval = np.where(accesses > 0, span / np.maximum(accesses, 1.0), usual)
    rate: Floats = -np.log((n - found + 0.5) / (n + 0.5))
    rate /= np.maximum(interval, _SHORTEST)
    return rate


class ChangeHistory(NamedTuple):
    """What visits have shown of n pages, all columns (n,).

    Attributes
    ----------
    relevance : R, as last judged
    visited : when last, in the time of the knowledge
    accesses, changes, span : see `change_rate`
    failures : visits in a row that brought nothing
    hub : hub score over the greatest of all pages
    validated : the server gave an ETag or Last-Modified: a visit in vain is cheap
    """

    relevance: Floats
    visited: Floats
    accesses: Floats
    changes: Floats
    span: Floats
    failures: Floats
    hub: Floats
    validated: Bools

    def changed(self, now: float) -> Floats:
        """Return the chance that each page has changed by now: 1 - exp(-rate * time)."""
        rate = change_rate(self.accesses, self.changes, self.span)
        return -np.expm1(-rate * np.maximum(now - self.visited, 0.0))

    def worth(self, now: float, cheap: float) -> Floats:
        """Return what a visit to each page is worth, in relevant new pages a fetch.

        With chance p it has changed and is worth its relevance, and what a hub is worth besides: a
        changed hub has new links. An unchanged one is worth nothing, but costs only `cheap` if it
        can be asked for on condition: p (R + h) / (p + (1 - p) cheap). Each failure halves it;
        after `FORGIVEN`, and while p is below `DUE`, it is 0.

        Parameters
        ----------
        now : in the time of the knowledge
        cheap : what "not modified" costs, in fetches
        """
        p = self.changed(now)
        p = np.where(p < DUE, 0.0, p)
        cost = np.where(self.validated, p + (1.0 - p) * cheap, 1.0)
        worth = np.where(p > 0.0, p * (self.relevance + self.hub) / np.maximum(cost, 1e-9), 0.0)
        worth *= np.where(self.failures >= FORGIVEN, 0.0, 0.5**self.failures)
        return np.round(worth, 9).astype(np.float64)
