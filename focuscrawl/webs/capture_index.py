"""Writes the index of WARC files: an answer a line or row, in the order of their keys."""

from __future__ import annotations

import heapq
import os
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from tqdm import tqdm

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.files import draft_of, open_regular, refuse_links
from focuscrawl.foundation.urls import normalize, resolve
from focuscrawl.page import read_content_type
from focuscrawl.webs.captures import LONGEST_LINE, REVISIT, Capture, line_of, surt
from focuscrawl.webs.http_response import header, parse_response
from focuscrawl.webs.warc_reading import Scan, warn_of_damage
from focuscrawl.webs.web_protocol import LONGEST_URL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from focuscrawl.webs.warc_reading import Record

ENDINGS = (".cdxj", ".parquet")  #: of indices
_RUN = 250_000  # lines that are sorted in memory, about 100 MB
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # of a record that does not say when


def write_index(archives: Sequence[Path], out: Path, base: Path) -> int:
    """Write the index of WARC files, whole or not at all; return how many captures it has.

    Parameters
    ----------
    out : ends in one of `ENDINGS`
    base : folder below which the files are, and which their names begin at

    Raises
    ------
    UserError
        A file is no WARC file, or not below `base`; the index cannot be written.
    """
    if out.suffix not in ENDINGS:
        raise UserError(f"{out}: an index ends in {' or '.join(ENDINGS)}")
    named = [(path, _name(path, base)) for path in archives]
    if out.suffix == ".parquet":
        with needs("parquet", "an index in Parquet"):
            from focuscrawl.webs.columnar import write_columnar as write  # noqa: PLC0415
    else:
        write = write_cdxj
    count = 0

    def counted(lines: Iterable[bytes]) -> Iterator[bytes]:
        nonlocal count
        for count, line in enumerate(lines, 1):  # noqa: B007 - returned
            yield line

    try:
        with draft_of(out) as draft, ExitStack() as stack:
            write(counted(in_order(chain.from_iterable(map(_lines, named)), stack)), draft)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror or error}") from None
    return count


def write_cdxj(lines: Iterable[bytes], path: Path) -> None:
    """Write sorted lines."""
    with path.open("wb") as file:
        file.writelines(lines)


def captures_of(records: Iterable[Record], name: str) -> list[Capture]:
    """Return the captures of a WARC file, in its order.

    Records of what was not asked for with GET are left out, as nobody can find them by a URL.

    Parameters
    ----------
    name : of the file, as the index has it
    """
    captures: list[tuple[Capture, set[str]]] = []
    not_get: set[str] = set()
    for record in records:
        headers = record.headers
        ids = {headers.get("warc-record-id", ""), headers.get("warc-concurrent-to", "")} - {""}
        if record.type == "request":
            if not record.block.startswith(b"GET "):
                not_get |= ids
        elif (capture := _capture(record, name)) is not None:
            captures.append((capture, ids))
    return [capture for capture, ids in captures if not_get.isdisjoint(ids)]


def in_order(lines: Iterable[bytes], stack: ExitStack) -> Iterator[bytes]:
    """Yield lines in the order of their bytes; many are sorted in files that `stack` closes."""
    runs: list[Iterable[bytes]] = []
    run: list[bytes] = []
    for line in lines:
        run.append(line)
        if len(run) == _RUN:
            file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack does
            file.writelines(sorted(run))
            file.seek(0)
            runs.append(file)
            run.clear()
    yield from heapq.merge(*runs, sorted(run))


def _lines(archive: tuple[Path, str]) -> Iterator[bytes]:
    path, name = archive
    try:
        file = open(path, "rb", buffering=1 << 20, opener=open_regular)  # noqa: SIM115
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    # disable=None: no bar where standard error is not a terminal
    with file, tqdm(unit="record", desc=f"index {path.name}", disable=None) as progress:
        scan = Scan(path, file)
        found = captures_of((record for record in scan if not progress.update()), name)
        if not scan.records:
            raise UserError(f"{path} holds no whole WARC record: name a .warc or .warc.gz file")
        size = os.fstat(file.fileno()).st_size
    warn_of_damage(path, size, scan.records, scan.truncated_at, scan.damaged)
    lines = map(line_of, found)
    yield from (line for line in lines if len(line) < LONGEST_LINE)


def _capture(record: Record, name: str) -> Capture | None:
    url = normalize(record.target)
    if url is None or max(len(url), len(record.target)) > LONGEST_URL:
        return None
    response = parse_response(record.block)
    if record.type == "resource":
        status: int | None = 200
        kind, location = record.headers.get("content-type", ""), ""
    elif record.type in {"response", "revisit"} and (response or record.type == "revisit"):
        status = None if response is None else response.status
        kind = header([] if response is None else response.headers, "content-type")
        location = "" if response is None else header(response.headers, "location")
    else:
        return None
    media_type, _ = read_content_type(kind)
    redirect = resolve(url, [location])[0] if location else None
    return Capture(
        key=surt(url),
        timestamp=_second(record.headers.get("warc-date", "")),
        url=record.target,
        mime=REVISIT if record.type == "revisit" else media_type or "unk",
        status=status,
        digest=record.headers.get("warc-payload-digest", ""),
        filename=name,
        offset=record.offset,
        length=record.length,
        redirect=redirect if redirect and status and status // 100 == 3 else "",
    )


def _second(date: str) -> str:
    try:
        at = datetime.fromisoformat(date)
        at = at.astimezone(UTC) if at.tzinfo is not None else at
    except (ValueError, OverflowError):
        at = _EPOCH
    return at.strftime("%Y%m%d%H%M%S").zfill(14)


def _name(path: Path, base: Path) -> str:
    name = os.path.relpath(path, base)  # of links as they are named
    if name.startswith(".."):
        raise UserError(
            f"{path} is not below {base}, where its name in the index begins: name another --base"
        )
    try:
        refuse_links(path, base)
    except UserError as error:
        raise UserError(f"{error}, or name what it leads to, with another --base") from None
    return name
