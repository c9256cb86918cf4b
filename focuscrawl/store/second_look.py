"""A second look at large stores when something has failed: they may be why, or a fault of ours."""

from __future__ import annotations

from pathlib import Path

from focuscrawl.errors import UserError
from focuscrawl.store import soundness
from focuscrawl.store.store import CrawlStore


def find_damage() -> UserError | None:
    """Look at every value of the stores that were opened without that.

    Returns
    -------
    What is wrong with the first one that is damaged; None: they are all sound
    """
    for where in soundness.half_seen:
        try:
            CrawlStore.open(Path(where), read_only=True, whole=True).close()
        except UserError as error:
            return error
    return None
