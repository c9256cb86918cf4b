"""A lesson of the apprentice: what it brings, and where it was when a crawl is resumed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.forgetting import least_promising, without_links
from focuscrawl.apprentice.lesson_quality import drift, validate

if TYPE_CHECKING:
    from focuscrawl.apprentice.link_table import LinkTable
    from focuscrawl.apprentice.memory import Snapshot
    from focuscrawl.apprentice.scorer import Scorer
    from focuscrawl.foundation.arrays import Bools, Floats, Ints

_RECENT = slice(-200, None)  # the latest predictions, by which a lesson is judged


@dataclass(frozen=True, slots=True)
class ApprenticeLesson:
    """A new model, and the scores it gives to all that waits; see `Apprentice.learn`.

    Attributes
    ----------
    version : of the model
    about : what was known when the lesson began
    instances : judged URLs learned from, or links if each is an instance
    metrics : progressive validation, how well fetches were predicted before they were learned, and
        how far the scores of what waits moved: see `validate` and `drift`
    state : a part of `Apprentice.state`
    urls, scores : int64 (m,), float64 (m,): all URLs with links that were not fetched
    scorer : for `Apprentice.adopt`; its table is another one if links were forgotten
    forgotten : bool (m,), which of all pages ever known by then are not known any more; m = 0 as
        long as all are
    """

    version: int
    about: Snapshot
    instances: int
    metrics: dict[str, float | list[int]]
    state: bytes
    urls: Ints
    scores: Floats
    scorer: Scorer
    forgotten: Bools


def rescore_waiting(
    about: Snapshot, scorer: Scorer, *, version: int, instances: int, state: bytes
) -> ApprenticeLesson:
    """Score by a new model all that waited when a lesson began; changes nothing but `scorer`.

    With more links than the options allow, the least promising pages are forgotten. What only they
    link to has the score 0 from then on.

    Parameters
    ----------
    scorer : without evidence yet
    version, instances, state : see `ApprenticeLesson`
    """
    y, pages = about.y, about.pages
    waiting, scores = scorer.rebuild(about.links, y)
    if about.links > scorer.options.links:
        promise = np.full(len(y), -1.0)
        promise[waiting] = scores
        out = least_promising(
            scorer.table, about.links, about.pages, promise, scorer.options.links
        )
        scorer = scorer.over(scorer.table.without(out, about.links))
        waiting, scores = scorer.rebuild(len(scorer.table), y)
        pages = len(scorer.table.pages)
    nowhere = without_links(scorer.table, scorer.evidence, y)
    return ApprenticeLesson(
        version=version,
        about=about,
        instances=instances,
        metrics={
            **validate(about.judged.predicted[_RECENT], about.own[_RECENT]),
            **drift(about.score[waiting], scores),
        },
        state=state,
        urls=np.concatenate([waiting, nowhere]),
        scores=np.concatenate([scores, np.zeros(len(nowhere))]),
        scorer=scorer,
        forgotten=scorer.table.forgotten(pages, about.pages_ever),
    )


class Replay(NamedTuple):
    """Where the last lesson was, in (fetches observed, links ever known).

    Nothing is scored before.

    Attributes
    ----------
    lesson, adoption : when it began, and when the crawl went on by it
    forgotten : bool (m,), which of the first pages had been forgotten by then
    links : links known when it began, as far as they were not forgotten; -1 before
    """

    lesson: tuple[int, int]
    adoption: tuple[int, int]
    forgotten: Bools
    links: int = -1

    def forgets(self, nth: int) -> bool:
        """Tell whether the n-th page, from 0, had been forgotten by then."""
        return nth < len(self.forgotten) and bool(self.forgotten[nth])

    @staticmethod
    def has_come_to(point: tuple[int, int], now: tuple[int, int]) -> bool:
        """Tell whether what was known at `point` has been repeated."""
        return now[0] >= point[0] and now[1] >= point[1]


def most_contrasting(chosen: Ints, table: LinkTable, about: Snapshot, share: float) -> Ints:
    """Keep the share of instances with the largest |R(u) - R(v)| [A02 section 4].

    Parameters
    ----------
    chosen : int64 (n,), ascending, instances to choose from, as places in ``about.judged``
    """
    if not len(chosen):
        return chosen
    best = np.zeros(len(about.y))  # R(u); not the input, which is 0 where its group is off
    links, urls = slice(about.links), about.judged.urls[chosen]
    np.maximum.at(best, table.target.data[links], table.relevance.data[links])
    most = np.argsort(-np.abs(best[urls] - about.y[urls]), kind="stable")
    return np.sort(chosen[most[: max(1, round(share * len(chosen)))]])
