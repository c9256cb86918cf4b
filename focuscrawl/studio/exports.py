"""Exports of a crawl: jobs that make them, a list of their files, previews, downloads."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import tempfile
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from starlette.responses import StreamingResponse
from starlette.routing import Route

from focuscrawl.crawl import CrawlFolder
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.files import open_nofollow, safe_join
from focuscrawl.report.plain_text import printable
from focuscrawl.studio.jobs import JobState
from focuscrawl.studio.listing import JOBS_CHANGED
from focuscrawl.studio.page_rendering import PREFIX, accepted, json_of, post, text_of
from focuscrawl.webs.warc_reading import WarcScan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.page_rendering import Desk


FOLDER = "take-home"  #: in the crawl's
#: formats of a collection: ending, and description
FORMATS = {
    "parquet": (".parquet", "Parquet, for data frames"),
    "jsonl": (".jsonl", "JSON lines, one a page"),
    "csv": (".csv", "CSV, for spreadsheets"),
    "markdown": ("", "Markdown, a file a page"),
    "warc": (".warc.gz", "WARC, the pages as they came"),
}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,3}(,[a-z]{2,3}){0,9}", re.ASCII)
_COUNTED = 10_000  # files of a folder that are listed
_CHUNK = 1 << 18  # bytes
_JOBS = 10  # shown
_ROWS = 10  # of a preview
_READ = 1 << 20  # bytes that a preview reads
_CELL, _TEXT = 200, 3000  # characters of a cell, of a text


def routes(desk: Desk) -> list[Route]:
    """Return the routes of the page and its API."""

    def shown(request: Request) -> dict[str, Any]:
        crawl = desk.crawl_of(request)
        jobs = [job for job in desk.jobs.all(subject=crawl.name) if job.kind in EXPORTS][:_JOBS]
        return {
            "crawl": crawl.name,
            "exports": EXPORTS,
            "formats": FORMATS,
            "files": listed(crawl.place),
            "jobs": jobs,
            "running": any(job.state is JobState.RUNNING for job in jobs),
        }

    def api(request: Request) -> dict[str, Any]:
        found = shown(request)
        offered = [
            {"name": each.name, "title": each.title, "about": each.about}
            for each in EXPORTS.values()
        ]
        jobs = [job.plain() for job in found["jobs"]]
        return {"exports": offered, "files": found["files"], "jobs": jobs}

    def begin(request: Request, values: Mapping[str, Any]) -> Response:
        crawl, what = desk.crawl_of(request), text_of(values, "export")
        if what not in EXPORTS:
            raise UserError(f"no export {what!r:.40}: take one of {', '.join(EXPORTS)}")
        identity = CrawlFolder(crawl.place).identity()
        # "./": never an option, whatever the name of the folder
        arguments = EXPORTS[what].arguments(f"./{crawl.name}", identity, values)
        with desk.beginning():
            if desk.jobs.running(what, crawl.name):
                raise UserError("it is being made at this moment: wait for its end")
            home_of(crawl.place)
            job = desk.jobs.begin(what, crawl.name, arguments)
        return accepted(job.plain(), JOBS_CHANGED)

    def file(request: Request) -> Response:
        name = request.query_params.get("file", "")
        content, called = opened(find(desk.crawl_of(request).place, name))
        headers = {
            "Content-Disposition": f'attachment; filename="{called}"',
            "Content-Length": str(os.fstat(content.fileno()).st_size),
            "Content-Security-Policy": "sandbox",
            "Cache-Control": "no-store",
        }
        return StreamingResponse(
            chunks(content), media_type="application/octet-stream", headers=headers
        )

    def first_rows(request: Request) -> dict[str, Any]:
        crawl, name = desk.crawl_of(request), request.query_params.get("file", "")
        return {"crawl": crawl.name, "file": name, "shown": preview(find(crawl.place, name))}

    at = "/crawls/{name:path}/take-home"
    return [
        Route(f"{PREFIX}{at}/file", file),
        Route(f"{PREFIX}{at}/preview", json_of(lambda request: first_rows(request)["shown"])),
        Route(f"{PREFIX}{at}", json_of(api)),
        post(f"{PREFIX}{at}", begin),
        Route(at, desk.page("take_home", shown)),
        Route(f"/parts{at}", desk.page("take_home_files", shown)),
        Route(f"/parts{at}/preview", desk.page("take_home_preview", first_rows)),
    ]


# -- exports -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Export:
    """One kind of export.

    Attributes
    ----------
    name : also the kind of the job
    title, about : for people
    arguments : returns the command, from the name of the crawl's folder, the crawl's identity,
        and the posted values
    """

    name: str
    title: str
    about: str
    arguments: Callable[[str, Mapping[str, str], Mapping[str, Any]], list[str]]


def _collect(crawl: str, _: Mapping[str, str], values: Mapping[str, Any]) -> list[str]:
    format_ = text_of(values, "format", "parquet")
    if format_ not in FORMATS:
        raise UserError(f"no format {format_!r:.40}: take one of {', '.join(FORMATS)}")
    name = f"collection-{datetime.now(UTC):%Y%m%d-%H%M%S}{FORMATS[format_][0]}"
    arguments = ["collect", crawl, "--out", f"{crawl}/{FOLDER}/{name}"]
    least, language = text_of(values, "least"), text_of(values, "language").lower()
    if least:
        arguments += ["--min-relevance", str(_share(least))]
    if language:
        if not _LANGUAGE.fullmatch(language):
            raise UserError("a language is named by its code, as en")
        arguments += ["--language", language]
    return arguments


def _report(crawl: str, _: Mapping[str, str], __: Mapping[str, Any]) -> list[str]:
    home = f"{crawl}/{FOLDER}"
    return ["report", crawl, "--out", f"{home}/report", "--csv", f"{home}/fetches.csv"]


def _hubs(crawl: str, _: Mapping[str, str], __: Mapping[str, Any]) -> list[str]:
    home = f"{crawl}/{FOLDER}"
    return ["distill", crawl, "--csv", f"{home}/hubs.csv", "--html", f"{home}/hubs.html"]


def _knowledge(crawl: str, identity: Mapping[str, str], _: Mapping[str, Any]) -> list[str]:
    topic = identity.get("topic", "")
    if not topic.startswith("/"):
        raise UserError("the crawl names no topic: what it has learned is of no use to others")
    out = f"{crawl}/{FOLDER}/knowledge.db"
    return ["knowledge", "learn", crawl, "--topic", topic, "--out", out]


def _share(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0.0 <= found <= 1.0:
        raise UserError("the least relevance has to be a number from 0 to 1")
    return found


#: by their names, in the order they are offered
EXPORTS = {
    each.name: each
    for each in (
        Export("collect", "Collection", "The pages on the topic, with their text.", _collect),
        Export(
            "report",
            "Report",
            "Curves, best pages and hosts as one HTML page; and all fetches as a table.",
            _report,
        ),
        Export("hubs", "Hubs", "Hubs, authorities and sites: a page, and a table of all.", _hubs),
        Export(
            "knowledge",
            "Knowledge",
            "What the next crawl of the topic can begin with. A finished crawl is learned once.",
            _knowledge,
        ),
    )
}


# -- files ---------------------------------------------------------------------------------


def home_of(crawl: Path) -> Path:
    """Create the folder of the exports if it does not exist; return it.

    UserError if it is a link, or cannot be created.
    """
    home = safe_join(crawl, FOLDER)
    try:
        home.mkdir(exist_ok=True)
    except OSError as error:
        raise UserError(f"{home} cannot be written: {error.strerror}") from None
    return home


def listed(crawl: Path) -> list[dict[str, Any]]:
    """Return ``name``, ``bytes`` and ``made`` (ISO 8601, UTC) of the exports, the newest first.

    ``files`` is the number of files in a folder, None of a file.
    """
    home = crawl / FOLDER
    if home.is_symlink():
        return []
    found: list[tuple[float, dict[str, Any]]] = []
    try:
        with os.scandir(home) as entries:
            named = [each for each in entries if _NAME.fullmatch(each.name)]
    except OSError:
        return []
    for each in named:
        about = each.stat(follow_symlinks=False)
        size, files = about.st_size, None
        if each.is_dir(follow_symlinks=False):
            held = inside(Path(each.path))
            size, files = sum(path.lstat().st_size for path in held), len(held)
        elif not each.is_file(follow_symlinks=False):
            continue
        made = datetime.fromtimestamp(about.st_mtime, UTC).isoformat(timespec="seconds")
        row = {"name": each.name, "bytes": size, "made": made, "files": files}
        found.append((about.st_mtime, row))
    return [row for _, row in sorted(found, key=lambda each: (-each[0], each[1]["name"]))]


def find(crawl: Path, name: str) -> Path:
    """Return the file or folder of this name; UserError if there is none."""
    if not _NAME.fullmatch(name):
        raise UserError(f"no file {name!r:.100} to take home: see the list")
    path = safe_join(crawl, f"{FOLDER}/{name}")
    if not path.exists():
        raise UserError(f"no file {name} to take home: see the list")
    return path


def opened(path: Path) -> tuple[IO[bytes], str]:
    """Open what `find` returned, a folder as a ZIP of its files; return also the file's name."""
    if not path.is_dir():
        return open(path, "rb", opener=open_nofollow), path.name
    packed = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it has been sent
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in inside(path, most=None):
            with (
                open(each, "rb", opener=open_nofollow) as file,
                archive.open(each.relative_to(path.parent).as_posix(), "w") as into,
            ):
                while chunk := file.read(_CHUNK):
                    into.write(chunk)
    packed.seek(0)
    return packed, f"{path.name}.zip"


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file, and close it."""
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk


def inside(folder: Path, most: int | None = _COUNTED) -> list[Path]:
    """Return the plain files in a folder and below it, by name; no link is followed."""
    found: list[Path] = []
    for parent, folders, files in os.walk(folder):  # follows no link to a folder
        folders.sort()
        paths = (Path(parent) / name for name in sorted(files))
        found += [path for path in paths if not path.is_symlink() and path.is_file()]
        if most is not None and len(found) >= most:
            return found[:most]
    return found


# -- previews ------------------------------------------------------------------------------


def preview(path: Path) -> dict[str, Any]:
    """Return the beginning of a file; UserError if its content is not what its name says.

    Returns
    -------
    ``columns`` and ``rows`` of texts; or ``text``; or ``note``, why there is nothing to show
    """
    if path.is_dir():
        files = inside(path)
        for each in files:
            if each.suffix in _PLAIN:
                return _text(each)
        return {"columns": ["file"], "rows": [[each.name] for each in files[:_ROWS]]}
    if path.suffix in _PLAIN:
        return _text(path)
    shown = _SHOWN.get(path.suffix)
    if shown is None:
        return {"note": "It has no rows to show: download it."}
    try:
        with open(path, "rb", opener=open_nofollow) as file:
            return shown(path, file)
    except (ValueError, OSError, csv.Error, RecursionError) as error:
        raise UserError(f"{path.name} cannot be read: {error!s:.200}") from None


def _csv(_: Path, file: BinaryIO) -> dict[str, Any]:
    rows = [*islice(csv.reader(io.StringIO(_head(file, _READ))), _ROWS + 1)]
    return _table(rows[0] if rows else [], rows[1:])


def _jsonl(_: Path, file: BinaryIO) -> dict[str, Any]:
    lines = _head(file, _READ).split("\n")[:-1][:_ROWS]  # the last may be cut
    records = [json.loads(line) for line in lines if line.strip()]
    if not all(isinstance(each, dict) for each in records):
        raise ValueError("a line is no JSON object")
    names = list(dict.fromkeys(name for each in records for name in each))
    return _table(names, [[each.get(name) for name in names] for each in records])


def _parquet(path: Path, file: BinaryIO) -> dict[str, Any]:
    with require_extra("parquet", f"a preview of {path.name}"):
        import pyarrow.parquet as pq  # noqa: PLC0415 - only where asked for
    with pq.ParquetFile(file) as table:
        batch = next(table.iter_batches(batch_size=_ROWS), None)
        names = list(map(str, table.schema_arrow.names))
    return _table(names, [list(row.values()) for row in batch.to_pylist()] if batch else [])


def _warc(path: Path, file: BinaryIO) -> dict[str, Any]:
    records = [*islice(WarcScan(path, file), _ROWS)]
    return _table(
        ["record", "URL", "date", "bytes"],
        [[r.type, r.target, r.headers.get("warc-date", ""), len(r.block)] for r in records],
    )


def _table(columns: Iterable[Any], rows: Iterable[Iterable[Any]]) -> dict[str, Any]:
    return {
        "columns": [_cell(each) for each in columns],
        "rows": [[_cell(c) for c in r] for r in rows],
    }


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text[:_CELL] + ("…" if len(text) > _CELL else "")


def _text(path: Path) -> dict[str, Any]:
    with open(path, "rb", opener=open_nofollow) as file:
        return {"text": printable(_head(file, _TEXT))}


def _head(file: BinaryIO, most: int) -> str:
    return file.read(most).decode(errors="replace")


_PLAIN = (".md", ".txt")
_SHOWN = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet, ".gz": _warc, ".warc": _warc}
