"""Judging every page by what a critic learns from few examples without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.from_little import LittlePages, learn_judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.page_vectors import PageVectors

_ALL_IN_TURN = 20  # examples; of more, a tenth is held out at once
_FOLDS = 10


class LittleOdds(NamedTuple):
    """Log-odds of the topic of `LittlePages`, each float64 (n_pages,)."""

    good: NDArray[np.float64]
    bad: NDArray[np.float64]
    unlabelled: NDArray[np.float64]


def hold_out(
    vectors: PageVectors,
    phrases: Sequence[Sequence[str]],
    pages: LittlePages,
    random_state: int,
) -> LittleOdds:
    """Cross-validate: leave one example out after the other, and a part of the others each time.

    Parameters
    ----------
    vectors : has made `pages`
    phrases : words of each phrase of the topic; without any, two good pages at least
    pages : of more than 20 good or bad ones, a tenth is left out at once
    random_state : seed of what is left out with what
    """
    most = max(pages.good.shape[0], pages.bad.shape[0])
    folds = max(most, 2) if most <= _ALL_IN_TURN else _FOLDS
    generator = np.random.default_rng(random_state)
    fold_of = [generator.permutation(rows.shape[0]) % folds for rows in pages]
    judged = LittleOdds(*(np.zeros(rows.shape[0]) for rows in pages))
    for fold in range(folds):
        rest = [rows[of != fold] for rows, of in zip(pages, fold_of, strict=True)]
        judge = learn_judge(vectors, phrases, LittlePages(*rest))
        for rows, of, odds in zip(pages, fold_of, judged, strict=True):
            odds[of == fold] = judge.log_odds(rows[of == fold])
    return judged
