"""Calibration of a model of paths on the sites that it was learned from, each left out in turn.

Models are learned from the other sites, and what they say of the site left out is set against
what its pages are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.paths.calibration import Calibration, Evidence, log_odds
from focuscrawl.paths.training import examples, of_sites, train

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from focuscrawl.paths.training import Corpus, TrainingOptions

_PENALTY = 10.0  # inverse; keeps the slope finite where models tell all goals


def calibrate(corpus: Corpus, training: TrainingOptions) -> Calibration | None:
    """Set what models say of sites left out against what their pages are.

    Parameters
    ----------
    corpus : paths of several sites
    training : as for `train`

    Returns
    -------
    None, if fewer than two sites have paths to goals as well as to fails
    """
    links, pages, most = [], [], []
    for rest, held in left_out(corpus):
        model = train(rest, training)
        k = len(model.states)
        found = examples(held, model.vocabulary, model.states)
        said = model.crf.marginals(found.sequences)
        ends = found.sequences.bounds[1:] - 1
        ahead = np.diff(found.sequences.observed.indptr)[ends] == 0  # page not yet seen
        known = found.known[ends, :k]
        goal = known[:, 0] & (known.sum(axis=1) == 1)
        pairs = np.stack([said[ends, 0], goal], axis=1)
        links.append(pairs[ahead])
        pages.append(pairs[~ahead])
        most.append(len({path.pages[-1] for path in held.paths if path.succeeds}))
    if not most:
        return None
    link, page = np.concatenate(links), np.concatenate(pages)
    return Calibration(_fit(link), _fit(page), float(page[:, 1].mean()), min(most))


def left_out(corpus: Corpus) -> Iterator[tuple[Corpus, Corpus]]:
    """Give the paths of all sites but one, and of that one; each in turn.

    Of sites that have paths to goals as well as to fails; nothing, if fewer than two have.
    """
    numbers = range(int(corpus.sites.max(initial=-1)) + 1)
    parts = {each: of_sites(corpus, [each]) for each in numbers}
    told = [n for n in numbers if len({path.succeeds for path in parts[n].paths}) == 2]
    if len(told) > 1:
        for held in told:
            yield of_sites(corpus, [n for n in told if n != held]), parts[held]


def _fit(pairs: NDArray[np.float64]) -> Evidence:
    """Fit to rows of Pr(goal) and whether it was one; both occur."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - slow to import

    said, goal = pairs.T
    fitted = LogisticRegression(C=_PENALTY).fit(log_odds(said)[:, None], goal)
    share = goal.mean()
    return Evidence(
        float(fitted.coef_[0, 0]), float(fitted.intercept_[0] - np.log(share / (1.0 - share)))
    )
