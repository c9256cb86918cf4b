"""A lesson of the apprentice: what it is about, what it brings, where it is when replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.evidence import UrlEvidence
    from focuscrawl.apprentice.link_table import LinkTable
    from focuscrawl.apprentice.model import ApprenticeModel


@dataclass(frozen=True, slots=True)
class Taught:
    """What a lesson brought; see `Apprentice.learn`.

    Attributes
    ----------
    version : of the model
    observed : fetches known when the lesson began
    links : links known when the lesson began
    instances : judged URLs learned from, or links if each is an instance
    metrics : progressive validation, how well fetches were predicted before they were learned, and
        how far the scores of what waits moved: see `validate` and `drift`
    state : a part of `Apprentice.state`
    judged : URLs ever judged when the lesson began
    urls, scores : int64 (m,), float64 (m,): all URLs with links that were not fetched
    model, standing : for `Apprentice.adopt`
    pages : pages known when the lesson began
    kept : what is left of the links and pages after some were forgotten; None: nothing was
    forgotten : bool (m,), which of all pages ever known by then are not known any more; m = 0 as
        long as all are
    """

    version: int
    observed: int
    links: int
    instances: int
    metrics: dict[str, float | list[int]]
    state: bytes
    judged: int
    urls: NDArray[np.int64]
    scores: NDArray[np.float64]
    model: ApprenticeModel
    standing: UrlEvidence
    pages: int
    kept: LinkTable | None
    forgotten: NDArray[np.bool_]


class Prepared(NamedTuple):
    """What a lesson is about; nothing of it changes while the lesson is under way."""

    observed: int
    links: int
    pages: int
    found: int  # links ever known
    expanded: int  # pages ever known
    new: int  # URLs judged since the last lesson
    judged: int
    y: NDArray[np.float64]
    urls: NDArray[np.int64]
    inputs: NDArray[np.float64]
    predicted: NDArray[np.float64]
    own: NDArray[np.float64]  # see `Values.of`
    value: NDArray[np.float64]
    score: NDArray[np.float64]


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
    forgotten: NDArray[np.bool_]
    links: int = -1

    def forgets(self, nth: int) -> bool:
        """Tell whether the n-th page, from 0, had been forgotten by then."""
        return nth < len(self.forgotten) and bool(self.forgotten[nth])

    @staticmethod
    def has_come_to(point: tuple[int, int], now: tuple[int, int]) -> bool:
        """Tell whether what was known at `point` has been repeated."""
        return now[0] >= point[0] and now[1] >= point[1]


def contrasting(
    kept: NDArray[np.int64], known: LinkTable, at: Prepared, share: float
) -> NDArray[np.int64]:
    """Keep the share of instances with the largest |R(u) - R(v)| [A02 section 4].

    Parameters
    ----------
    kept : int64 (n,), ascending, instances to choose from, as places in ``at.urls``
    """
    best = np.zeros(len(at.y))  # R(u); not the input, which is 0 where its group is off
    links = slice(at.links)
    np.maximum.at(best, known.target.data[links], known.relevance.data[links])
    contrast = np.abs(best[at.urls[kept]] - at.y[at.urls[kept]])
    most = np.argsort(-contrast, kind="stable")
    return np.sort(kept[most[: max(1, round(share * len(kept)))]]) if len(kept) else kept
