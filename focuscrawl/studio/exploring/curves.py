"""Curves of two crawls as lines of one drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, HEIGHT = 640.0, 240.0
_TICKS = 4


def draw_curves(curves: Sequence[Sequence[Sequence[float | None]]]) -> dict[str, Any]:
    """Return what a drawing consists of.

    Parameters
    ----------
    curves : of each crawl (fetches, harvest rate so far, of late), see
        `focuscrawl.report.two_crawls.two_crawls`

    Returns
    -------
    ``so_far`` and ``late``, points of a polyline of each crawl; ``across``, (x, fetches); ``up``,
    (y, rate); ``width``, ``height``.
    """
    most = max((points[-1][0] or 0.0 for points in curves if points), default=1.0) or 1.0

    def line(points: Sequence[Sequence[float | None]], column: int) -> str:
        return " ".join(
            f"{(each[0] or 0.0) / most * WIDTH:.1f},{(1.0 - value) * HEIGHT:.1f}"
            for each in points
            if (value := each[column]) is not None
        )

    return {
        "so_far": [line(points, 1) for points in curves],
        "late": [line(points, 2) for points in curves],
        "across": [(WIDTH * i / _TICKS, round(most * i / _TICKS)) for i in range(_TICKS + 1)],
        "up": [(HEIGHT * (1.0 - i / _TICKS), i / _TICKS) for i in range(_TICKS + 1)],
        "width": WIDTH,
        "height": HEIGHT,
    }
