"""The apprentice: learns, while the crawl runs, which links are worth following [A02]."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.apprentice.apprentice import Apprentice, Pool, judged_batch, read_apprentice
from focuscrawl.apprentice.feature_extraction import FeatureExtractor
from focuscrawl.apprentice.learners import pack
from focuscrawl.apprentice.link_table import PageFacts
from focuscrawl.apprentice.options import Options, with_options
from focuscrawl.errors import UserError
from focuscrawl.foundation.arrays import pack_arrays, unpack_finite_arrays
from focuscrawl.strategies.base import Expansion, Lesson, Strategy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from focuscrawl.apprentice.lessons import ApprenticeLesson
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.strategies.base import JudgedPage, RecalledPage, Scores, StrategyContext


_LAG = 3  # fetches of a replay from the start of a lesson to its adoption


class ApprenticeStrategy(Strategy):
    """Priority of v = its expected value, by all known links into it (methods 4 and 5).

    It gives `focuscrawl.apprentice.apprentice.Apprentice` the pages and outcomes of a crawl, and
    the crawl its scores.

    Parameters
    ----------
    begin_with : folder of an apprentice trained on an earlier crawl, which goes on learning, with
        its features and its learner; by default the apprentice of the `context`'s knowledge
    options : see `focuscrawl.apprentice.options.Options`
    """

    learns = True
    expects_relevance = True
    in_rounds = True

    @with_options
    def __init__(
        self, context: StrategyContext, *, begin_with: str | None = None, **options: Any
    ) -> None:
        checked = Options(**options)
        known = context.knowledge
        exported = None if known is None else known.graduate
        if begin_with is not None:
            if not isinstance(begin_with, str):
                raise UserError(
                    f"strategy apprentice: begin_with must be a file, not {begin_with!r:.80}"
                )
            exported = read_apprentice(Path(begin_with))
        self._apprentice = Apprentice.warm_started(checked, exported)
        self.lag = min(_LAG, checked.batch // 2)
        self._reader = FeatureExtractor(context.critic, self._apprentice.options)

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Take in the outcome of a fetch; a duplicate is a fetch wasted like any other."""
        self._apprentice.observe(url, relevance)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and the URLs they lead to, by all links into them."""
        new = self._apprentice.new(page.targets)
        facts = self._reader.read(
            page.view,
            page.links,
            page.targets,
            new=np.ones_like(new) if self.self_contained else new,
            relevance=page.relevance,
            probabilities=page.probabilities,
        )
        link_scores, urls, scores = self._apprentice.expand(page.url, facts)
        return Expansion(link_scores, urls, _rounded(scores), memo=facts.to_bytes())

    def recall(self, page: RecalledPage) -> Scores:
        """Take in the links of an earlier run."""
        assert page.memo is not None
        facts = PageFacts.from_bytes(page.memo).numbered(page.targets)
        _, urls, scores = self._apprentice.expand(page.url, facts)
        return urls, _rounded(scores)

    def lesson_due(self) -> bool:
        """Tell whether a batch of fetches is complete."""
        return self._apprentice.lesson_due()

    def learn(self) -> Lesson:
        """Learn from all that was observed."""
        lesson = self._apprentice.learn()
        return _lesson(lesson, lesson.about.observed)

    def adopt(self, lesson: Lesson) -> Scores:
        """Score with the lesson's model from now on."""
        self.model_version = lesson.version
        urls, scores = self._apprentice.adopt(lesson.model)
        lesson.state = self._apprentice.state(lesson.model)
        return urls, _rounded(scores)

    def load(self, state: bytes) -> int:
        """Load the model of the last lesson of an earlier run."""
        adopted_at = self._apprentice.load(state)
        self.model_version = self._apprentice.version
        return adopted_at

    def rescore(self) -> Scores:
        """Return the scores of all URLs that have links and were not fetched."""
        urls, scores = self._apprentice.rescore()
        return urls, _rounded(scores)

    # -- in rounds ---------------------------------------------------------------------------

    def parts(self, memo: bytes | None, groups: Sequence[Ints]) -> Iterator[bytes | None]:
        """Split a memo by groups of links."""
        assert memo is not None
        return (each.to_bytes() for each in PageFacts.from_bytes(memo).parts(groups))

    def contained(self, memo: bytes | None, urls: Sequence[str]) -> bytes:
        """Return a memo with the address of every URL that the page links to."""
        assert memo is not None
        return self._reader.with_addresses(PageFacts.from_bytes(memo), urls).to_bytes()

    def joined(self, parts: Sequence[RecalledPage]) -> bytes:
        """Return the memo of a page whose links came in parts."""
        return _facts_of(parts).to_bytes()

    def recall_all(self, pages: Sequence[RecalledPage]) -> Scores:
        """Take in links of pages that were fetched in other buckets."""
        found = [
            (url, _facts_of([*parts]).in_order())
            for url, parts in groupby(pages, key=attrgetter("url"))
        ]
        urls, scores = self._apprentice.expand_all(found)
        return urls, _rounded(scores)

    def fetched_before(self, url: int, relevance: float) -> None:
        """Take in the outcome of a fetch of an earlier round."""
        self._apprentice.fetched_before(url, relevance)

    def judged(self) -> bytes | None:
        """Return what was judged in this bucket."""
        return judged_batch(self._apprentice)

    def pool(self) -> Pool:
        """Return an empty pool."""
        return Pool(self._apprentice.options)

    def train(self, pool: Pool) -> tuple[bytes, int, dict[str, float]]:
        """Learn from what was judged in all buckets."""
        learner, instances, metrics = pool.fit(self._apprentice.scorer.learner)
        return pack(learner), instances, metrics

    def take_up(self, version: int, state: bytes) -> Lesson:
        """Return a lesson with what was learned from all buckets."""
        return _lesson(self._apprentice.lesson_of(version, state), 0)

    def outcomes(self) -> bytes:
        """Return the rates of directories and URL patterns."""
        return pack_arrays(self._apprentice.memory.outcomes.get_state())

    def take_outcomes(self, outcomes: bytes) -> None:
        """Load the rates of directories and URL patterns."""
        self._apprentice.memory.outcomes.set_state(unpack_finite_arrays(outcomes))


def _lesson(learned: ApprenticeLesson, trained_at: int) -> Lesson:
    return Lesson(
        version=learned.version,
        trained_at_seq=trained_at,
        instances=learned.instances,
        metrics=learned.metrics,
        state=b"",
        urls=learned.urls,
        scores=_rounded(learned.scores),
        model=learned,
    )


def _facts_of(parts: Sequence[RecalledPage]) -> PageFacts:
    """Return the facts of a page whose links came in parts, in their order."""
    facts = PageFacts.together([PageFacts.from_bytes(each.memo or b"") for each in parts])
    return facts.numbered(np.concatenate([each.targets for each in parts]))


def _rounded(scores: Floats) -> Floats:
    """Drop the last bits, which depend on how many URLs were scored in one go."""
    return np.round(scores, 9)
