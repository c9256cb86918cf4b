"""Bags of words of pages about a topic: its words among those that every page has."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag

WORDS = {
    "birds": ["bird", "birds", "feather", "nest", "wing", "song", "eagle", "owl", "beak", "hatch"],
    "cooking": ["recipe", "oven", "flour", "butter", "bake", "salt", "onion", "sauce", "kitchen"],
    "engines": [
        "engine",
        "piston",
        "valve",
        "torque",
        "diesel",
        "gear",
        "clutch",
        "turbo",
        "fuel",
    ],
}
_COMMON = [
    "page",
    "home",
    "contact",
    "news",
    "more",
    "site",
    "all",
    "new",
    "search",
    "work",
    "day",
]


def pages_of(topic: str | None, n: int, random_state: int = 0) -> list[Bag]:
    """Return the words of `n` pages; of no topic if it is None."""
    generator = np.random.default_rng([random_state, len(topic or "")])
    own = WORDS[topic] if topic else []
    return [
        Counter([*generator.choice(_COMMON, 60), *(generator.choice(own, 25) if own else [])])
        for _ in range(n)
    ]
