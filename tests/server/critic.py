"""A user's own critic, as ``-a critic=server.critic:judge`` names it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.page import PageView


def judge(pages: Sequence[PageView]) -> NDArray[np.float64]:
    """Find pages relevant that speak of bicycles."""
    return np.array([0.9 if "bicycle" in page.tokens else 0.1 for page in pages])


def choosy(pages: Sequence[PageView]) -> NDArray[np.float64]:
    """Do the same, but fail on a page that speaks of poison."""
    if any("poison" in page.tokens for page in pages):
        raise KeyError("poison")
    return judge(pages)
