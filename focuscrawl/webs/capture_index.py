"""Writes the index of WARC files, with one line or row for each response, sorted by URL."""

from __future__ import annotations

import heapq
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.files import open_regular, refuse_links, replace_atomically
from focuscrawl.foundation.urls import MAX_URL_LENGTH, normalize, schemeless
from focuscrawl.page import read_content_type
from focuscrawl.webs.captures import (
    MAX_LINE_BYTES,
    REVISIT,
    Capture,
    format_cdxj_line,
    is_original,
    surt,
)
from focuscrawl.webs.http_response import header, parse_response, redirect_target
from focuscrawl.webs.revisits import Originals, RevisitReference
from focuscrawl.webs.wacz import RecordingScan
from focuscrawl.webs.warc_reading import (
    read_get_responses,
    read_timestamp,
    warn_of_damage,
)

if TYPE_CHECKING:
    from focuscrawl.webs.warc_reading import Record

ENDINGS = (".cdxj", ".parquet")  #: file name endings of indexes
_RUN = 250_000  # lines sorted in memory at once, about 100 MB
_NO_DATE = "19700101000000"  # of a record without a date


def write_index(archives: Sequence[Path], out: Path, base: Path) -> int:
    """Write the index of WARC files completely or not at all.

    Parameters
    ----------
    out : Path
        File name with one of `ENDINGS`.
    base : Path
        Folder that contains the WARC files; file names in the index are relative to `base`.

    Returns
    -------
    int
        Number of captures.

    Raises
    ------
    UserError
        A file is not a WARC file or is outside `base`, or the index cannot be written.
    """
    if out.suffix not in ENDINGS:
        raise UserError(
            f"{out} is not a name for an index: end the name in {' or '.join(ENDINGS)}"
        )
    named = [(path, _name(path, base)) for path in archives]
    if out.suffix == ".parquet":
        with require_extra("parquet", "an index in Parquet"):
            from focuscrawl.webs.columnar import write_columnar as write  # noqa: PLC0415
    else:
        write = write_cdxj
    count = 0

    def counted(lines: Iterable[bytes]) -> Iterator[bytes]:
        nonlocal count
        for count, line in enumerate(lines, 1):  # noqa: B007 - returned
            yield line

    try:
        with replace_atomically(out) as draft, ExitStack() as stack:
            write(counted(sorted_lines(chain.from_iterable(map(_lines, named)), stack)), draft)
    except OSError as error:
        raise UserError(
            f"cannot write {out}: {error.strerror or error}; name another file"
        ) from None
    return count


def write_cdxj(lines: Iterable[bytes], path: Path) -> None:
    """Write sorted CDXJ lines to a file."""
    with path.open("wb") as file:
        file.writelines(lines)


def list_captures(records: Iterable[Record], name: str) -> list[Capture]:
    """Return the captures (index entries) of the recorded responses in a WARC file."""
    originals: Originals[Capture] = Originals()
    references: dict[int, RevisitReference] = {}  # by the offset of the revisit record

    def read(record: Record) -> Capture | None:
        capture = _capture(record, name)
        if capture is not None and capture.mime == REVISIT:
            references[capture.offset] = RevisitReference.of(record)
        elif capture is not None and is_original(
            capture, schemeless(normalize(capture.url) or "")
        ):
            originals.add(record, capture)
        return capture

    return [
        _with_original(capture, originals.find(references[capture.offset]))
        if capture.offset in references
        else capture
        for capture in read_get_responses(records, read)
    ]


def _with_original(capture: Capture, original: Capture | None) -> Capture:
    if original is None:
        return capture
    return capture._replace(
        orig_filename=original.filename,
        orig_offset=original.offset,
        orig_length=original.length,
    )


def sorted_lines(lines: Iterable[bytes], stack: ExitStack) -> Iterator[bytes]:
    """Yield lines sorted by byte order; many lines are sorted in temporary files."""
    runs: list[Iterable[bytes]] = []
    run: list[bytes] = []
    for line in lines:
        run.append(line)
        if len(run) == _RUN:
            file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes the file
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
    with file:
        scan = RecordingScan(path, file)
        # disable=None: no bar where standard error is not a terminal
        shown = tqdm(scan, unit="record", desc=f"index {path.name}", disable=None)
        found = list_captures(shown, name)
        if not scan.records:
            raise UserError(
                f"{path} contains no complete WARC record: name a .warc or .warc.gz file"
            )
        size = os.fstat(file.fileno()).st_size
    warn_of_damage(path, size, scan.records, scan.truncated_at, scan.damaged)
    lines = map(format_cdxj_line, found)
    yield from (line for line in lines if len(line) < MAX_LINE_BYTES)


def _capture(record: Record, name: str) -> Capture | None:
    url = normalize(record.target)
    if url is None or max(len(url), len(record.target)) > MAX_URL_LENGTH:
        return None
    status: int | None = 200
    kind, redirect = record.headers.get("content-type", ""), None
    if record.type in {"response", "revisit"}:
        response = parse_response(record.block)
        if response is None and record.type == "response":
            return None
        headers = [] if response is None else response.headers
        status = None if response is None else response.status
        kind = header(headers, "content-type")
        redirect = redirect_target(url, headers) if status and status // 100 == 3 else None
    elif record.type != "resource":
        return None
    media_type, _ = read_content_type(kind)
    return Capture(
        key=surt(url),
        timestamp=read_timestamp(record.headers.get("warc-date", "")) or _NO_DATE,
        url=record.target,
        mime=REVISIT if record.type == "revisit" else media_type or "unk",
        status=status,
        digest=record.headers.get("warc-payload-digest", ""),
        filename=name,
        offset=record.offset,
        length=record.length,
        redirect=redirect or "",
    )


def _name(path: Path, base: Path) -> str:
    name = os.path.relpath(path, base)  # without resolving links
    if name.startswith(".."):
        raise UserError(
            f"{path} is not below the base folder {base} of the index: name another --base"
        )
    try:
        refuse_links(path, base)
    except UserError as error:
        raise UserError(f"{error}, or name the target of the link with another --base") from None
    return name
