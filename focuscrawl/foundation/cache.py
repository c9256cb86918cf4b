"""Where things that can be computed again are kept: indices of recorded webs and the like."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """Return the cache folder: ``FOCUSCRAWL_CACHE``, or the platform's own place for caches."""
    named = os.environ.get("FOCUSCRAWL_CACHE")
    return Path(named) if named else platformdirs.user_cache_path("focuscrawl")
