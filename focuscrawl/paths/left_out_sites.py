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
    numbers = np.arange(int(corpus.sites.max(initial=-1)) + 1)
    parts = [of_sites(corpus, [each]) for each in numbers.tolist()]
    told = [{path.succeeds for path in part.paths} == {True, False} for part in parts]
    numbers = numbers[told]
    if len(numbers) < 2:
        return None
    links, pages = [], []
    for left_out in numbers.tolist():
        model = train(of_sites(corpus, [n for n in numbers.tolist() if n != left_out]), training)
        k = len(model.states)
        found = examples(parts[left_out], model.vocabulary, model.states)
        said = model.crf.marginals(found.sequences)
        ends = found.sequences.bounds[1:] - 1
        ahead = np.diff(found.sequences.observed.indptr)[ends] == 0  # page not yet seen
        known = found.known[ends, :k]
        goal = known[:, 0] & (known.sum(axis=1) == 1)
        pairs = np.stack([said[ends, 0], goal], axis=1)
        links.append(pairs[ahead])
        pages.append(pairs[~ahead])
    link, page = np.concatenate(links), np.concatenate(pages)
    goals = min(
        len({path.pages[-1] for path in parts[n].paths if path.succeeds}) for n in numbers.tolist()
    )
    return Calibration(_fit(link), _fit(page), float(page[:, 1].mean()), goals)


def _fit(pairs: NDArray[np.float64]) -> Evidence:
    """Fit to rows of Pr(goal) and whether it was one; both occur."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - slow to import

    said, goal = pairs.T
    fitted = LogisticRegression(C=_PENALTY).fit(log_odds(said)[:, None], goal)
    share = goal.mean()
    return Evidence(
        float(fitted.coef_[0, 0]), float(fitted.intercept_[0] - np.log(share / (1.0 - share)))
    )
