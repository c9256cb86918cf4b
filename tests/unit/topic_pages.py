"""Bags of words of pages about a topic: its words among those that every page has."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag

_WORDS = {
    "birds": "bird birds feather nest wing song eagle owl beak hatch",
    "cooking": "recipe oven flour butter bake salt onion sauce kitchen",
    "engines": "engine piston valve torque diesel gear clutch turbo fuel",
}
WORDS = {topic: words.split() for topic, words in _WORDS.items()}
_EVERYWHERE = "page home contact news more site all new search work day"

#: words of other subjects, and of any text
SUBJECTS = {
    "birds": "bird wing nest feather egg song flight beak plumage owl eagle sparrow",
    "law": "court judge appeal verdict statute lawyer plaintiff trial jury crime contract clause",
    "cooking": "recipe oven flour butter sauce simmer bake onion garlic pepper dough roast",
    "music": "melody chord guitar concert rhythm orchestra violin singer album tune opera drum",
    "money": "bank loan interest stock market invoice profit tax budget price dividend credit",
    "sailing": "sail mast harbour tide anchor deck rudder wind boat keel knot voyage",
    "cycling": "cycling bicycle wheel saddle pedal gear rider climb race peloton tyre helmet",
}
COMMON = "the of and to in is it that was for on are with as at be this have from by"


def pages_of(topic: str | None, n: int, random_state: int = 0) -> list[Bag]:
    """Return the words of `n` pages; of no topic if it is None."""
    generator = np.random.default_rng([random_state, len(topic or "")])
    own, everywhere = WORDS[topic] if topic else [], _EVERYWHERE.split()
    return [
        Counter([*generator.choice(everywhere, 60), *(generator.choice(own, 25) if own else [])])
        for _ in range(n)
    ]
