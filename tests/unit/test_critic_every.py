"""Every critic holds to every check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


def critics() -> Iterator[tuple[str, Critic]]:
    flat, levels = NaiveBayes(COUNTS), HierarchicalNaiveBayes(COUNTS)
    calibration = Calibration(2.0, 0.9)
    yield "flat", FocusedCritic(flat, MARKED, ("http://a.example/",), "f1a7")
    yield "hierarchical", FocusedCritic(levels, MARKED, (), "41e2")
    yield "calibrated", FocusedCritic(flat, MARKED, (), "ca11", calibration)
    phrases = build_phrase_model("tea leaf, cup")
    yield "phrases", FocusedCritic(phrases, np.array([True, False]), (), "9425")
    yield "callable", CustomCritic(relevance, "own:relevance", ["/Drink"], "ca77")
    yield "callable with classes", CustomCritic(Classes(), "own:Classes", ["/Drink"], "ca78")
    yield "keyword", KeywordCritic("tea")


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{kind}-{name}")
        for kind, critic in critics()
        for name, check in critic_checks(critic)
    ],
)
def test_every_critic_holds_to_every_check(check: Callable[[], None]) -> None:
    check()
