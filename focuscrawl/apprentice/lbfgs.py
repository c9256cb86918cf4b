"""L-BFGS: a bounded number of steps down a smooth convex function, from a warm start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from focuscrawl.foundation.arrays import Floats


_MEMORY = 8  # steps that shape the next one
_ENOUGH = 1e-4  # share of the promised descent a step must bring (Armijo)
_SHORTEST = 1e-6


def descend(
    function: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    *,
    steps: int,
    tolerance: float = 1e-5,
) -> Floats:
    """Minimise a smooth convex function, warm from `start`, by at most `steps` steps.

    Parameters
    ----------
    function : returns value and gradient at a point (n,)
    start : (n,)
    steps : bounds the cost; the best point so far is returned
    tolerance : stop when a step brings less than this share of the value

    Notes
    -----
    Unlike `scipy.optimize.minimize` it knows no bounds, and costs nothing beside the
    function: there the bookkeeping takes longer than a sparse logistic loss does.
    """
    point = start
    value, gradient = function(point)
    moves: list[tuple[Floats, Floats, float]] = []
    for _ in range(steps):
        direction = _direction(gradient, moves)
        slope = float(gradient @ direction)
        if slope >= 0.0:
            break
        step = 1.0 if moves else min(1.0, 1.0 / (float(np.abs(gradient).sum()) + 1e-12))
        while True:
            candidate = point + step * direction
            new_value, new_gradient = function(candidate)
            if new_value <= value + _ENOUGH * step * slope:
                break
            step *= 0.4
            if step < _SHORTEST:
                return point
        move, change = candidate - point, new_gradient - gradient
        curvature = float(move @ change)
        if curvature > 1e-12:
            moves = [*moves[1 - _MEMORY :], (move, change, curvature)]
        gain = value - new_value
        point, value, gradient = candidate, new_value, new_gradient
        if gain <= tolerance * max(abs(value), 1.0):
            break
    return point


def _direction(gradient: Floats, moves: list[tuple[Floats, Floats, float]]) -> Floats:
    """Return minus the gradient times the inverse Hessian that the last moves suggest."""
    direction = -gradient
    shares = []
    for move, change, curvature in reversed(moves):
        share = float(move @ direction) / curvature
        shares.append(share)
        direction = direction - share * change
    if moves:
        _, change, curvature = moves[-1]
        direction *= curvature / float(change @ change)
    for (move, change, curvature), share in zip(moves, reversed(shares), strict=True):
        direction = direction + (share - float(change @ direction) / curvature) * move
    return direction
