"""Computes coordinates of the studio's figures, which templates draw as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Ints

_MAX_RADIUS, _MIN_RADIUS = 11.0, 3.0  # of hosts and points
_RADIUS = 250.0  # of the circle of hosts
_GAP = 9.0  # between a host and its name
_MAX_LINKS = 120  # more lines would hide each other
_WIDTH, _HEIGHT, _TICKS = 640.0, 240.0, 4  # of the curves of two crawls
_SIDE, _LEFT, _TOP = 220, 46, 12  # of the square of the reliability curve


def draw_circle(hosts: Sequence[dict[str, Any]], links: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return coordinates that place the hosts of a `HostMap` on a circle around (0, 0).

    Returns
    -------
    dict
        ``hosts``, each with ``place`` (index), ``name``, ``x``, ``y``, ``size`` (radius),
        ``degrees`` (rotation of the name), ``flipped`` (the name ends at the host), ``gap``; and
        ``links``, the 120 pairs with the most links, each with ``source``, ``target``, ``path``
        (of SVG), ``width``.
    """
    n = len(hosts)
    order = _circle_order(n, links)
    angle = np.empty(n)
    angle[order] = np.arange(n) * (2 * math.pi / max(n, 1)) - math.pi / 2
    x, y = _RADIUS * np.cos(angle), _RADIUS * np.sin(angle)
    most = max((each["relevant"] for each in hosts), default=0) or 1
    drawn = [
        {
            "place": i,
            "name": each["name"],
            "x": round(float(x[i]), 1),
            "y": round(float(y[i]), 1),
            "size": round(max(_MIN_RADIUS, _MAX_RADIUS * math.sqrt(each["relevant"] / most)), 1),
            "degrees": round(math.degrees(angle[i]) + (180.0 if math.cos(angle[i]) < 0 else 0), 1),
            "flipped": math.cos(angle[i]) < 0,
            "gap": _GAP + _MAX_RADIUS,
        }
        for i, each in enumerate(hosts)
    ]
    drawn_links = links[:_MAX_LINKS]  # pairs with the most links come first
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


def _circle_order(n: int, links: Sequence[Sequence[int]]) -> Ints:
    """Order n hosts by the second eigenvector of the link graph's Laplacian.

    This order minimises the sum of squared distances between linked hosts (Hall 1970).
    """
    weight = np.zeros((n, n))
    for a, b, count in links:
        weight[a, b] += math.log1p(count)
    weight += weight.T
    laplacian = np.diag(weight.sum(axis=0)) - weight
    # connects hosts without links, too
    laplacian += 1e-3 * (n * np.eye(n) - np.ones((n, n)))
    if n < 3:
        return np.arange(n)
    _, vectors = np.linalg.eigh(laplacian)
    return np.argsort(vectors[:, 1], kind="stable")


def draw_curves(curves: Sequence[Sequence[Sequence[float | None]]]) -> dict[str, Any]:
    """Return the coordinates of the harvest-rate curves of two crawls.

    Parameters
    ----------
    curves : sequence of sequence
        For each crawl rows of fetches, harvest rate of all fetches, and recent harvest rate, see
        `focuscrawl.report.comparison.compare_two_crawls`.

    Returns
    -------
    dict
        ``so_far`` and ``late``: points of a polyline for each crawl; ``across``: ticks
        (x, fetches); ``up``: ticks (y, rate); ``width``, ``height``.
    """
    most = max((points[-1][0] or 0.0 for points in curves if points), default=1.0) or 1.0

    def line(points: Sequence[Sequence[float | None]], column: int) -> str:
        return " ".join(
            f"{(each[0] or 0.0) / most * _WIDTH:.1f},{(1.0 - value) * _HEIGHT:.1f}"
            for each in points
            if (value := each[column]) is not None
        )

    return {
        "so_far": [line(points, 1) for points in curves],
        "late": [line(points, 2) for points in curves],
        "across": [(_WIDTH * i / _TICKS, round(most * i / _TICKS)) for i in range(_TICKS + 1)],
        "up": [(_HEIGHT * (1.0 - i / _TICKS), i / _TICKS) for i in range(_TICKS + 1)],
        "width": _WIDTH,
        "height": _HEIGHT,
    }


def draw_reliability(bins: Sequence[Mapping[str, float]]) -> dict[str, Any] | None:
    """Return the coordinates of a critic's reliability curve (calibration curve).

    Returns
    -------
    dict or None
        ``points``, each with ``x``, ``y``, ``r`` (radius; the area is proportional to the number
        of pages) and ``text``; ``line`` through the points; ``left``, ``top``, ``side`` of the
        square. None if there are no bins.
    """
    if not bins:
        return None
    most = max(each["pages"] for each in bins)
    points = [
        {
            "x": round(_LEFT + _SIDE * each["confidence"], 1),
            "y": round(_TOP + _SIDE * (1.0 - each["frequency"]), 1),
            "r": round(max(_MIN_RADIUS, _MAX_RADIUS * (each["pages"] / most) ** 0.5), 1),
            "text": f"relevance around {each['confidence']:.2f}: {each['frequency']:.0%} of "
            f"{each['pages']:,.0f} pages are on topic",
        }
        for each in bins
    ]
    line = " ".join(f"{each['x']},{each['y']}" for each in points)
    return {"points": points, "line": line, "left": _LEFT, "top": _TOP, "side": _SIDE}
