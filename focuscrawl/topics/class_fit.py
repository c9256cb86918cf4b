"""Ranking the classes of a taxonomy by how well pages fit them [F99 section 2]."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.taxonomy import ROOT, Taxonomy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Fit(NamedTuple):
    """How well a node of the taxonomy fits some pages.

    Attributes
    ----------
    topic : path
    share : mean posterior of the node over the pages, in [0, 1]; of an inner node, the sum of
        the leaves below it
    pages : of how many of them it is, or holds, the most probable leaf
    """

    topic: str
    share: float
    pages: int


def fit_classes(classes: Sequence[str], probabilities: NDArray[np.float64]) -> list[Fit]:
    """Rank the nodes of a taxonomy, leaves and inner ones, by how well they fit pages.

    Parameters
    ----------
    classes : leaf paths
    probabilities : (n_pages, n_classes), posteriors

    Returns
    -------
    Nodes with a share, the largest first; of equals the one lowest in the tree first: an inner
    node that holds what one leaf below it holds says nothing new, and is left out
    """
    tree = Taxonomy({path: [] for path in classes})
    number = {path: i for i, path in enumerate(classes)}
    if not len(probabilities):
        return []
    best = probabilities.argmax(axis=1)
    fits: dict[str, Fit] = {}
    for path in tree.topics:
        leaves = [number[leaf] for leaf in tree.leaves_under(path)]
        if path == ROOT or not leaves:
            continue
        share = float(probabilities[:, leaves].sum(axis=1).mean())
        fits[path] = Fit(path, min(share, 1.0), int(np.isin(best, leaves).sum()))
    kept = [
        fit
        for path, fit in fits.items()
        if not any(fits[below].pages == fit.pages for below in tree.children(path))
    ]
    return sorted(kept, key=lambda fit: (-fit.pages, -fit.share, -fit.topic.count("/"), fit.topic))
