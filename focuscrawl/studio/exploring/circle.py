"""The hosts of a crawl on a circle, those that link to each other side by side."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.foundation.arrays import Ints

_RADIUS = 250.0
_GAP = 9.0  # between a host and its name
_LARGEST, _SMALLEST = 11.0, 3.0  # radius of a host
_DRAWN = 120  # links; more of them hide each other


def draw_circle(hosts: Sequence[dict[str, Any]], links: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return what a drawing of `focuscrawl.report.host_map.HostMap` consists of.

    Returns
    -------
    ``hosts`` with ``place``, ``name``, ``x``, ``y``, ``size``, ``degrees`` (of its name),
    ``flipped`` (the name ends at the host), ``gap``; and ``links``, the heaviest 120, with
    ``source``, ``target``, ``path`` (of SVG), ``width``; around (0, 0), in the same unit.
    """
    n = len(hosts)
    around = _around(n, links)
    angle = np.empty(n)
    angle[around] = np.arange(n) * (2 * math.pi / max(n, 1)) - math.pi / 2
    x, y = _RADIUS * np.cos(angle), _RADIUS * np.sin(angle)
    most = max((each["relevant"] for each in hosts), default=0) or 1
    drawn = [
        {
            "place": i,
            "name": each["name"],
            "x": round(float(x[i]), 1),
            "y": round(float(y[i]), 1),
            "size": round(max(_SMALLEST, _LARGEST * math.sqrt(each["relevant"] / most)), 1),
            "degrees": round(math.degrees(angle[i]) + (180.0 if math.cos(angle[i]) < 0 else 0), 1),
            "flipped": math.cos(angle[i]) < 0,
            "gap": _GAP + _LARGEST,
        }
        for i, each in enumerate(hosts)
    ]
    drawn_links = links[:_DRAWN]  # the heaviest come first
    heaviest = max((count for *_, count in drawn_links), default=1)
    lines = [
        {
            "source": a,
            "target": b,
            "path": f"M{x[a]:.1f} {y[a]:.1f}Q{(x[a] + x[b]) / 5:.1f} {(y[a] + y[b]) / 5:.1f} "
            f"{x[b]:.1f} {y[b]:.1f}",
            "width": round(0.6 + 3.4 * math.log1p(count) / math.log1p(heaviest), 2),
        }
        for a, b, count in drawn_links
    ]
    return {"hosts": drawn, "links": lines}


def _around(n: int, links: Sequence[Sequence[int]]) -> Ints:
    """Return the order of n hosts: by the second eigenvector of the graph's Laplacian.

    It is the order in which the squared distances of linked hosts add up to least (Hall 1970).
    """
    weight = np.zeros((n, n))
    for a, b, count in links:
        weight[a, b] += math.log1p(count)
    weight += weight.T
    laplacian = np.diag(weight.sum(axis=0)) - weight
    # hosts that nothing links to are kept together as well
    laplacian += 1e-3 * (n * np.eye(n) - np.ones((n, n)))
    if n < 3:
        return np.arange(n)
    _, vectors = np.linalg.eigh(laplacian)
    return np.argsort(vectors[:, 1], kind="stable")
