"""Conditional requests to a web that is not the live one (RFC 9110, section 13)."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from focuscrawl.webs.protocol import Answer


def not_modified(answer: Answer, if_none_match: str | None, if_modified_since: str | None) -> bool:
    """Tell whether a server would answer 304 in place of `answer`.

    Parameters
    ----------
    answer : with its validators among its headers
    if_none_match, if_modified_since : fields of the request; the second counts only without
        the first
    """
    if answer.status != 200:
        return False
    fields = {name.lower(): value.strip() for name, value in answer.headers}
    if if_none_match is not None:
        etag = fields.get("etag")
        wanted = [_weak(each) for each in if_none_match.split(",")]
        return etag is not None and (_weak(etag) in wanted or wanted == ["*"])
    changed = _date(fields.get("last-modified"))
    since = _date(if_modified_since)
    return changed is not None and since is not None and changed <= since


def _weak(etag: str) -> str:
    return etag.strip().removeprefix("W/")


def _date(field: str | None) -> datetime | None:
    try:
        date = None if field is None else parsedate_to_datetime(field)
    except ValueError:
        return None
    # "-0000" gives a time without a zone, which cannot be compared with one that has a zone
    return date if date is not None and date.tzinfo is not None else None
