"""An index of an archive, by which replays find a page in it: CDXJ, a line an answer.

The format is that of https://specs.webrecorder.net/cdxj/0.1.0/, as pywb reads it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from focuscrawl.collection.surt import surt
from focuscrawl.page import read_content_type
from focuscrawl.webs.http_response import header, parse_response
from focuscrawl.webs.warc_scan import Scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from focuscrawl.webs.warc import Record


def write_index(archive: Path, index: Path, name: str) -> None:
    """Write the index of a WARC file, in the order of its lines' bytes.

    Parameters
    ----------
    archive : the WARC file
    index : is written
    name : by which the index calls the archive
    """
    with archive.open("rb") as file:
        lines = sorted(_lines(Scan(archive, file), name))
    index.write_text("".join(lines), encoding="ascii", newline="\n")


def _lines(records: Scan, name: str) -> Iterator[str]:
    for record in records:
        response = parse_response(record.block) if record.type == "response" else None
        if response is not None:
            media_type, _ = read_content_type(header(response.headers, "content-type"))
            about = {
                "url": record.target,
                "mime": media_type or "unk",
                "status": str(response.status),
                "digest": record.headers.get("warc-payload-digest", ""),
                "length": str(record.length),
                "offset": str(record.offset),
                "filename": name,
            }
            # no character beyond ASCII, no line break
            yield f"{surt(record.target)} {_second(record)} {json.dumps(about)}\n"


def _second(record: Record) -> str:
    at = datetime.fromisoformat(record.headers["warc-date"])
    return at.astimezone(UTC).strftime("%Y%m%d%H%M%S")
