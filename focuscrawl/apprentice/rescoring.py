"""What a lesson makes of all that waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.drift import drift
from focuscrawl.apprentice.forgetting import least_promising, lost
from focuscrawl.apprentice.lesson import Taught
from focuscrawl.apprentice.validation import validate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.evidence import FetchOutcomes, UrlEvidence
    from focuscrawl.apprentice.lesson import Prepared
    from focuscrawl.apprentice.link_table import LinkTable
    from focuscrawl.apprentice.model import ApprenticeModel

_RECENT = slice(-200, None)  # the latest predictions, by which a lesson is judged


def teach(
    at: Prepared,
    known: LinkTable,
    fetched: FetchOutcomes,
    model: ApprenticeModel,
    *,
    version: int,
    instances: int,
    state: bytes,
) -> Taught:
    """Work out what a model says of all that waited when a lesson began; changes nothing.

    With more links than the model's options allow, the least promising pages are forgotten. What
    only they link to has the score 0 from then on.

    Parameters
    ----------
    version, instances, state : see `Taught`
    """
    y, kept = at.y, None
    standing, waiting, scores = _scored(model, known, fetched, at.links, y)
    if at.links > model.options.links:
        promise = np.full(len(y), -1.0)
        promise[waiting] = scores
        out = least_promising(known, at.links, at.pages, promise, model.options.links)
        known = kept = known.without(out, at.links)
        standing, waiting, scores = _scored(model, known, fetched, len(known), y)
    nowhere = lost(known, standing, y)
    return Taught(
        version=version,
        observed=at.observed,
        links=at.links,
        instances=instances,
        metrics={
            **validate(at.predicted[_RECENT], at.own[_RECENT]),
            **drift(at.score[waiting], scores),
        },
        state=state,
        judged=at.judged,
        urls=np.concatenate([waiting, nowhere]),
        scores=np.concatenate([scores, np.zeros(len(nowhere))]),
        model=model,
        standing=standing,
        pages=at.pages,
        kept=kept,
        forgotten=known.forgotten(at.pages if kept is None else len(kept.pages), at.expanded),
    )


def _scored(
    model: ApprenticeModel,
    known: LinkTable,
    fetched: FetchOutcomes,
    n_links: int,
    y: NDArray[np.float64],
) -> tuple[UrlEvidence, NDArray[np.int64], NDArray[np.float64]]:
    """Return what links say together, the URLs that wait, and their scores."""
    standing = model.stand(known, n_links, len(y), y)
    waiting = standing.urls()
    waiting = waiting[np.isnan(y[waiting])]
    inputs = model.inputs(standing, known, fetched, waiting)
    scores = model.learner.response(model.margins(standing, known, waiting, inputs))
    return standing, waiting, scores
