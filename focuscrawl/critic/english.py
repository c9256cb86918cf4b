"""English as it is written (`wordfreq`): what is said of words by pages that nobody has seen."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag

_LENGTH = 500  # words of a page
_EVERYDAY = 1e-6


def share_of_pages(words: Sequence[str]) -> NDArray[np.float64]:
    """Return how likely each word is on an English page of 500 words, float64 (n_words,)."""
    frequency = _frequencies()
    each = np.array([frequency.get(word, 0.0) for word in words])
    share: NDArray[np.float64] = -np.expm1(-_LENGTH * each)
    return share


def everyday_words() -> tuple[str, ...]:
    """Return the words of English that come more often than once in a million, some 30,000."""
    return tuple(word for word, share in _frequencies().items() if share >= _EVERYDAY)


def english_pages(n: int, random_state: int) -> list[Bag]:
    """Draw the words of `n` pages of 500 words, each on its own: grammar and everyday words."""
    frequency = _frequencies()
    words = list(frequency)
    weights = np.fromiter(frequency.values(), np.float64, len(words))
    generator = np.random.default_rng(random_state)
    drawn = generator.choice(len(words), (n, _LENGTH), p=weights / weights.sum())
    return [Counter(words[i] for i in page) for page in drawn.tolist()]


@lru_cache(maxsize=1)
def _frequencies() -> dict[str, float]:
    from wordfreq import get_frequency_dict  # noqa: PLC0415 - slow to import, rarely needed

    return dict(get_frequency_dict("en"))
