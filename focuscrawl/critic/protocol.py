"""What the rest of the program knows of a critic: a black box [A02 section 1.1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from focuscrawl.page.view import PageView


@dataclass(frozen=True, slots=True)
class Judgement:
    """The critic's verdict on n pages.

    Attributes
    ----------
    relevance : float64 (n,), R(u) = Pr(c*|u) in [0, 1] (METHODS 1)
    probabilities : float64 (n, n_classes), posteriors of the critic's leaf classes, or None
        from a critic that has none
    """

    relevance: NDArray[np.float64]
    probabilities: NDArray[np.float64] | None = None


class Critic(Protocol):
    """Maps pages to relevance and, if it can, to class probabilities.

    Attributes
    ----------
    classes : names of the columns of `Judgement.probabilities`: topic paths; () if none
    marked : bool (n_classes,), the leaves the user's focus covers
    examples : example URLs of the focus topics, the default seeds; may be empty
    fingerprint : hex digest that tells this critic with this focus from any other
    reads_words : optional; True of a critic so fast that it may be asked about thousands of
        pages of a single word, and to which these mean something. The apprentice then has it
        read the words of links
    judge_words : optional, of one that reads words otherwise than as pages of one word: takes a
        sequence of words, "" among them, and returns a `Judgement`
    marked_of_words : optional, beside `judge_words`, if its columns are others than `classes`:
        which of them the focus covers
    phrase_words, example_words : optional, of one that can tell the words of its topic: each
        returns their weights above 0, 1 at most, by word in lower case; the first those by which
        the user has named the topic, the second those that the examples have
    """

    classes: tuple[str, ...]
    marked: NDArray[np.bool_]
    examples: tuple[str, ...]
    fingerprint: str

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        """Judge `pages`."""
        ...
