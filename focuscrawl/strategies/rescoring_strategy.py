"""A base of strategies that work out the scores of the whole frontier anew now and then."""

from __future__ import annotations

import struct
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from focuscrawl.strategies.base import Strategy, latest
from focuscrawl.strategies.messages import Lesson
from focuscrawl.strategies.option_checks import check_count, check_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.strategies.link_history import LinkLog
    from focuscrawl.strategies.messages import Scores

Model = TypeVar("Model")

_STATE = struct.Struct("<qqq")


class RescoringStrategy(Strategy, Generic[Model]):
    """A strategy that learns a model which is a function of the pages taken in before the lesson.

    Between two lessons, links are scored by the model of the last one. Nothing of it has to be
    kept for a resumed crawl, which takes in the same pages and then works it out again. For
    that to hold, a subclass must take in a page only if the crawl will recall it: one with
    links, or one for which `expand` returns a memo.

    Parameters
    ----------
    name : of the strategy, for messages
    every, growth : fetches from one lesson to the next, at least and as a share of all fetches,
        so that the cost of all lessons stays in proportion to the number of fetches
    log : empty

    Attributes
    ----------
    log : the fetches, and the pages taken in
    before_lesson : True in a resumed crawl until the last lesson is held again: scores do not
        matter until then
    """

    learns = True
    #: how users name the option `every`
    period_option: ClassVar[str] = "every"

    def __init__(self, name: str, every: int, growth: float, log: LinkLog) -> None:
        check_count(f"{name}: {self.period_option}", every, 1)
        check_number(f"{name}: growth", growth, 0)
        self.every = every
        self.growth = growth
        self.log = log
        self._learned_at = 0  # fetches observed when the last lesson began
        self._extent = (0, 0)  # fetches and pages that the lesson under way is about
        self.before_lesson = False

    @abstractmethod
    def work_out(self, observed: int, pages: int) -> tuple[Model, Scores]:
        """Make the model of the first `pages` pages, and the scores of all URLs they link to.

        Runs in another thread while pages are taken in, and changes nothing.

        Parameters
        ----------
        observed : fetches when the lesson began
        """

    @abstractmethod
    def take_over(self, model: Model, pages: int) -> Scores:
        """Score by `model`, which was made of the first `pages` pages, from now on.

        Returns
        -------
        URLs whose scores differ from what `work_out` has returned, because of later pages
        """

    def describe(self, model: Model, pages: int) -> tuple[int, Mapping[str, float]]:
        """Return the number of instances of a lesson, and its metrics."""
        return pages, {}

    def interval(self) -> float:
        """Return how many fetches come between two lessons by now."""
        return max(self.every, self.growth * self.log.fetches)

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Take note of what came of a fetch; a duplicate is a fetch wasted like any other."""
        self.log.observe(url, relevance)

    def lesson_due(self) -> bool:
        """Tell whether it is time; if it is, the lesson will be about what is known now."""
        due = self.log.fetches - self._learned_at >= self.interval()
        if due:
            # not in `learn`, which may run while another page is half taken in
            self._extent = (self.log.fetches, self.log.pages)
        return due

    def learn(self) -> Lesson:
        """Work everything out anew."""
        observed, pages = self._extent
        model, (urls, scores) = self.work_out(observed, pages)
        version = self.model_version + 1
        instances, metrics = self.describe(model, pages)
        return Lesson(
            version=version,
            trained_at_seq=observed,
            instances=instances,
            metrics=metrics,
            state=_STATE.pack(version, observed, pages),
            urls=urls,
            scores=scores,
            model=(model, pages),
        )

    def adopt(self, lesson: Lesson) -> Scores:
        """Score with the lesson's model from now on."""
        self.model_version = lesson.version
        self._learned_at = lesson.trained_at_seq
        return self.take_over(*lesson.model)

    def load(self, state: bytes) -> None:
        """Take note of when the last lesson was; `rescore` holds it again."""
        self.model_version, self._learned_at, pages = _STATE.unpack(state)
        self._extent = (self._learned_at, pages)
        self.before_lesson = True

    def rescore(self) -> Scores:
        """Hold the last lesson again, when all its pages have been recalled."""
        self.before_lesson = False
        observed, pages = self._extent
        pages = min(pages, self.log.pages)  # there are more, if one was fetched again right after
        model, scores = self.work_out(observed, pages)
        return latest([scores, self.take_over(model, pages)])
