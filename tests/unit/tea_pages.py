"""Pages on tea and tax, a critic that reads them, and the strategies that go by both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.critic.protocol import Judgement
from focuscrawl.page import parse_page
from focuscrawl.strategies import JudgedPage, Strategy, StrategyContext, make_strategy

if TYPE_CHECKING:
    from focuscrawl.page import PageView
    from focuscrawl.strategies import Expansion


class Critic:
    """Reads words: each "tea" is evidence for the topic, each "tax" against it."""

    classes: tuple[str, ...] = ("/Tea", "/Other")
    examples: tuple[str, ...] = ()
    fingerprint = "7ea"
    marked = np.array([True, False])
    reads_words = True

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        words = [Counter(page.tokens) for page in pages]
        odds = np.array([4.0 * (count["tea"] - count["tax"]) for count in words])
        relevance = 1.0 / (1.0 + np.exp(-odds))
        return Judgement(relevance, np.column_stack([relevance, 1.0 - relevance]))


class DeafCritic(Critic):
    reads_words = False

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        raise AssertionError(pages)


class GreenTeaCritic(DeafCritic):
    classes = ("/Drinks/Green_Tea", "/Other")


def make(name: str, critic: Critic | None = None, **options: object) -> Strategy:
    context = StrategyContext(critic=critic or Critic(), random_state=0, web=None)
    return make_strategy(name, context, options)


def page(
    url: int, targets: Sequence[int], relevance: float = 0.9, *, depth: int = 1, html: str = ""
) -> JudgedPage:
    """A page with links to `targets`, unless `html` has them."""
    links = "".join(f"<p><a href=/{target}>to {target}</a></p>" for target in targets)
    view = parse_page((html or links).encode(), f"http://a.example/{url}")
    return JudgedPage(
        view=view,
        url=url,
        seq=1,
        depth=depth,
        relevance=relevance,
        probabilities=np.array([relevance, 1.0 - relevance]),
        links=np.arange(len(targets)),
        targets=np.array(targets, dtype=np.int64),
    )


def scores(expansion: Expansion) -> dict[int, float]:
    return dict(zip(expansion.urls.tolist(), expansion.scores.tolist(), strict=True))


def visit(strategy: Strategy, fetched: JudgedPage) -> dict[int, float]:
    strategy.observe(fetched.url, fetched.relevance, None)
    return scores(strategy.expand(fetched))


def teach(strategy: Strategy) -> dict[int, float]:
    """Have a lesson learned and adopted; return the scores it brought."""
    assert strategy.learns
    assert strategy.is_training_due()
    lesson = strategy.learn()
    found = dict(zip(lesson.urls.tolist(), lesson.scores.tolist(), strict=True))
    urls, new = strategy.adopt(lesson)
    return found | dict(zip(urls.tolist(), new.tolist(), strict=True))


def words(text: str, *targets: int) -> str:
    return f"<p>{text}</p>" + "".join(f"<a href=/{target}></a>" for target in targets)
