"""What a few held-out examples say about all the pages of a topic, with its uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: examples on the topic; fewer are too few to measure a critic, or to call one mislabelled
FEWEST = 10
_CONFIDENCE = 0.9
#: what a held-out page counts in an interval: the critic that judges it is not quite the one
#: that is asked about
_WORTH = 0.6
#: The log-odds of a topic's pages are taken to be normally distributed, with mean 0 and this
#: standard deviation as if so many pages had been seen: by how much two of three examples lie
#: above zero says more than that they do.
_USUAL_SPREAD, _USUAL_PAGES = 3.0, 3.0


class Share(NamedTuple):
    """An estimated share of pages, and where it lies with 90 % probability; all in [0, 1]."""

    value: float
    low: float
    high: float


def too_few(examples: int) -> str:
    """Return why nothing is measured of a critic with so few examples on the topic; or empty."""
    if examples >= FEWEST:
        return ""
    are = "example on the topic is" if examples == 1 else "examples on the topic are"
    return f"{examples} {are} too few to measure; give {FEWEST} or more"


def share_of(hits: int, pages: int) -> Share:
    """Estimate a share from a sample of at least one page.

    Notes
    -----
    L. D. Brown, T. T. Cai and A. DasGupta, Interval estimation for a binomial proportion, 2001:
    Jeffreys' interval, which reaches to 0 or 1 where the sample does.
    """
    return _around(hits / pages, pages)


def recall_of(log_odds: NDArray[np.float64]) -> Share:
    """Estimate which share of a topic's pages has R > 1/2.

    Parameters
    ----------
    log_odds : (n,), of pages of the topic that were held out, n at least 1
    """
    from scipy.stats import norm  # noqa: PLC0415 - slow to import

    n = len(log_odds)
    mean = log_odds.sum() / (n + _USUAL_PAGES)
    squares = ((log_odds - mean) ** 2).sum() + _USUAL_PAGES * (_USUAL_SPREAD**2 + mean**2)
    spread = np.sqrt(squares / (n + _USUAL_PAGES))
    return _around(float(norm.cdf(mean / spread)), n)


def _around(value: float, pages: int) -> Share:
    from scipy.stats import beta  # noqa: PLC0415

    worth = _WORTH * pages
    low, high = beta.interval(_CONFIDENCE, value * worth + 0.5, (1.0 - value) * worth + 0.5)
    return Share(value, float(low) if value > 0.0 else 0.0, float(high) if value < 1.0 else 1.0)
