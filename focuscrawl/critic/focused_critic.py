"""The critic of a crawl: a trained model of topic classes, and those that are in focus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from focuscrawl.critic.discriminative import LogisticModel
from focuscrawl.critic.protocol import Judgement
from focuscrawl.critic.topic_words import words_of_examples, words_of_phrases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.page.view import PageView


class TopicModel(Protocol):
    """What every trained critic can do: class posteriors of bags of words.

    Attributes
    ----------
    kind : name of the model's kind in its file
    classes : topic paths, the columns of the posteriors
    """

    kind: ClassVar[str]
    classes: tuple[str, ...]

    def log_posteriors(
        self, bags: Sequence[Bag], calibration: Calibration | None = None
    ) -> NDArray[np.float64]:
        """Return log Pr(c|u), float64 (n_bags, n_classes), each row a distribution."""
        ...


@dataclass(eq=False)
class FocusedCritic:
    """A `Critic` over a trained model.

    Parameters
    ----------
    model : judges pages
    marked : bool (n_classes,), the leaves the focus covers
    examples : example URLs of the marked leaves
    fingerprint : tells this model with this focus and this calibration from any other
    calibration : applied to every judgement, if any
    phrases : the words of each phrase that the model was learned from

    Attributes
    ----------
    classes, marked, examples, fingerprint, reads_words, marked_of_words : as `Critic` has them
    """

    model: TopicModel
    marked: NDArray[np.bool_]
    examples: tuple[str, ...]
    fingerprint: str
    calibration: Calibration | None = None
    phrases: tuple[tuple[str, ...], ...] = ()
    reads_words = True

    def __post_init__(self) -> None:
        self.classes = self.model.classes
        self.marked_of_words = self.marked
        if isinstance(self.model, LogisticModel):
            self.marked_of_words = self.model.marked_of_reader(self.marked)

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        """Judge `pages`: R(u) is the sum of the posteriors of the marked leaves (METHODS 1)."""
        return self.judge_bags([page.words.bag for page in pages])

    def judge_words(self, words: Sequence[str]) -> Judgement:
        """Judge single words as links say them; "" is a link that says nothing."""
        bags: list[Bag] = [{word: 1} if word else {} for word in words]
        if not isinstance(self.model, LogisticModel):
            return self.judge_bags(bags)
        return _judgement(self.model.log_posteriors_of_words(bags), self.marked_of_words)

    def phrase_words(self) -> dict[str, float]:
        """Return the words by which the user has named the topic, if that is how."""
        return words_of_phrases(self.model, self.phrases)

    def example_words(self) -> dict[str, float]:
        """Return the words that tell the examples of the topic from others, if there are any."""
        return words_of_examples(self.model, self.marked)

    def judge_bags(self, bags: Sequence[Bag]) -> Judgement:
        """Judge pages of which only the words are known."""
        return _judgement(self.model.log_posteriors(bags, self.calibration), self.marked)


def _judgement(log_posteriors: NDArray[np.float64], marked: NDArray[np.bool_]) -> Judgement:
    probabilities = np.exp(log_posteriors)
    # rounding can carry a sum of posteriors past 1
    relevance = np.minimum(probabilities[:, marked].sum(axis=1), 1.0)
    return Judgement(relevance, probabilities)
