"""A reliability table as a curve, in the units of a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SIDE = 220  # of the square that the curve is in
_LEFT, _TOP = 46, 12
_SMALLEST, _LARGEST = 3.0, 11.0  # radii


def curve(bins: Sequence[Mapping[str, float]]) -> dict[str, Any] | None:
    """Return where the points of a reliability table are; None if it is empty.

    Parameters
    ----------
    bins : ``pages``, ``confidence`` and ``frequency`` of each

    Returns
    -------
    ``points``: ``x``, ``y``, ``r`` (their area is as their number of pages) and ``said``, in
    words; ``line``: through them; ``left``, ``top``, ``side`` of the square
    """
    if not bins:
        return None
    most = max(each["pages"] for each in bins)
    points = [
        {
            "x": round(_LEFT + _SIDE * each["confidence"], 1),
            "y": round(_TOP + _SIDE * (1.0 - each["frequency"]), 1),
            "r": round(max(_SMALLEST, _LARGEST * (each["pages"] / most) ** 0.5), 1),
            "said": f"R around {each['confidence']:.2f}: {each['frequency']:.0%} of "
            f"{each['pages']:,.0f} pages are on the topic",
        }
        for each in bins
    ]
    line = " ".join(f"{each['x']},{each['y']}" for each in points)
    return {"points": points, "line": line, "left": _LEFT, "top": _TOP, "side": _SIDE}
