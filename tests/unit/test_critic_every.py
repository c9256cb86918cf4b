"""Every critic holds to every check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from focuscrawl.critic.bag_of_words import TrainingRows
from focuscrawl.critic.calibration import Calibration
from focuscrawl.critic.classifiers import HierarchicalNaiveBayes, NaiveBayes
from focuscrawl.critic.focused_critic import FocusedCritic
from focuscrawl.critic.phrase_model import build_phrase_model
from focuscrawl.critic.protocol import CustomCritic, Judgement
from focuscrawl.testing import KeywordCritic, critic_checks

if TYPE_CHECKING:
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.page import PageView

COUNTS = TrainingRows.from_bags(
    [{"tea": 3, "leaf": 2}, {"tea": 1, "cup": 4}, {"tax": 2, "form": 3}, {"income": 5}],
    ["/Drink/Tea", "/Drink/Cups", "/Money/Tax", "/Money/Income"],
).count()
MARKED = np.array([True, False, False, False])


class Classes:
    """A user's callable that gives class probabilities."""

    classes = ("/Drink/Tea", "/Other")

    def __call__(self, pages: Sequence[PageView]) -> Judgement:
        share = np.array([page.tokens.count("tea") / (1 + len(page.tokens)) for page in pages])
        return Judgement(share, np.stack([share, 1.0 - share], axis=-1))


def relevance(pages: Sequence[PageView]) -> list[float]:
    return [min(1.0, page.tokens.count("tea") / 3) for page in pages]


def naive_bayes() -> FocusedCritic:
    return FocusedCritic(NaiveBayes(COUNTS), MARKED, ("http://a.example/",), "f1a7")


def hierarchical() -> FocusedCritic:
    return FocusedCritic(HierarchicalNaiveBayes(COUNTS), MARKED, (), "41e2")


def calibrated() -> FocusedCritic:
    return FocusedCritic(NaiveBayes(COUNTS), MARKED, (), "ca11", Calibration(2.0, 0.9))


def phrases() -> FocusedCritic:
    model = build_phrase_model("tea leaf, cup")
    return FocusedCritic(model, np.array([True, False]), (), "9425")


def custom() -> CustomCritic:
    return CustomCritic(relevance, "own:relevance", ["/Drink"], "ca77")


def custom_with_classes() -> CustomCritic:
    return CustomCritic(Classes(), "own:Classes", ["/Drink"], "ca78")


def keyword() -> KeywordCritic:
    return KeywordCritic("tea")


@pytest.mark.parametrize(
    "make",
    [naive_bayes, hierarchical, calibrated, phrases, custom, custom_with_classes, keyword],
)
def test_every_critic_holds_to_every_check(make: Callable[[], Critic]) -> None:
    for _, check in critic_checks(make()):
        check()
