"""Dates as the W3C has them, in site maps and feeds (NOTE-datetime)."""

from __future__ import annotations

from datetime import UTC, datetime


def changed_at(written: str) -> float | None:
    """Return the seconds since 1970 of a W3C date, such as 2024, 2024-05-01T10:00+02:00.

    Without a time zone it is UTC; None if it is no such date.
    """
    missing = {4: "-01-01", 7: "-01"}.get(len(written), "")
    try:
        at = datetime.fromisoformat(written + missing)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
