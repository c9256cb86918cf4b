"""Topic paths and the topics they lie under."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def lies_under(path: str, topics: Iterable[str]) -> bool:
    """Tell whether `path` is one of `topics` or below one; all are normalised."""
    return any(f"{path}/".startswith(f"{topic.rstrip('/')}/") for topic in topics)
