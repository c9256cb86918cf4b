"""Exports crawls in background jobs; lists, previews and downloads files; shows datasheets."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from starlette.responses import StreamingResponse
from starlette.routing import Route

from focuscrawl.crawl import CrawlFolder
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.files import open_nofollow, reporting_write_errors, safe_join
from focuscrawl.report.plain_text import printable
from focuscrawl.report.status import open_store
from focuscrawl.studio.jobs import JobState
from focuscrawl.studio.listing import JOBS_CHANGED
from focuscrawl.studio.page_rendering import (
    PREFIX,
    FieldChecks,
    accepted_response,
    json_endpoint,
    post_route,
    text_value,
)
from focuscrawl.webs.wacz import RecordingScan

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from focuscrawl.studio.page_rendering import StudioContext

FOLDER = "exports"  #: folder of the exports, in the crawl's folder
#: formats of exported pages: suffix, label, and a sentence for whom it is
FORMATS = {
    "parquet": (".parquet", "Parquet", "A table for data frames in Python or R."),
    "jsonl": (".jsonl", "JSON lines", "One line per page, for scripts and language models."),
    "csv": (".csv", "CSV", "A table for spreadsheets."),
    "markdown": ("", "Markdown", "One text file per page, to read and to search."),
    "warc": (".warc.gz", "WARC", "The original responses of the servers, for web archives."),
    "wacz": (".wacz", "WACZ", "The original responses, in one file that ReplayWeb.page displays."),
}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,3}(,[a-z]{2,3}){0,9}", re.ASCII)
_MAX_FILES = 10_000  # listed files of a folder
_CHUNK = 1 << 18  # bytes
_N_JOBS = 10  # shown
_N_ROWS = 5  # of a preview
_FIRST_COLUMNS = ("url", "title", "text", "relevance", "verdict")  # of a preview, if they exist
_NUMBER = re.compile(r"-?\d+\.\d+")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d):\d\d\S*")
_N_CARDS = 5  # pages shown before an export
_LEAST = "0.5"  # default of the minimum relevance
_DATASHEET = ".datasheet.md"  # follows the name of an exported file
_MAX_DATASHEET = 1 << 19  # bytes shown
_MAX_PREVIEW = 1 << 20  # bytes read for a preview
_MAX_CELL, _MAX_TEXT = 200, 3000  # characters of a cell, bytes of a text


def routes(context: StudioContext, is_changing: Callable[[Path], bool]) -> list[Route]:
    """Return the routes of the page and of the JSON API for exports.

    The function `is_changing` returns whether judgements are being applied to a crawl.
    """

    def shown(request: Request) -> dict[str, Any]:
        crawl = context.requested_crawl(request)
        jobs = [job for job in context.jobs.all(subject=crawl.name) if job.kind in EXPORTS][
            :_N_JOBS
        ]
        return {
            "crawl": crawl.name,
            "exports": EXPORTS,
            "formats": FORMATS,
            "files": list_exports(crawl.path),
            "least": _LEAST,
            "jobs": jobs,
            "running": any(job.state is JobState.RUNNING for job in jobs),
        }

    def api(request: Request) -> dict[str, Any]:
        found = shown(request)
        offered = [
            {"name": each.name, "title": each.title, "about": each.about}
            for each in EXPORTS.values()
        ]
        jobs = [job.to_dict() for job in found["jobs"]]
        return {"exports": offered, "files": found["files"], "jobs": jobs}

    def start_export(request: Request, values: Mapping[str, Any]) -> Response:
        crawl, name = context.requested_crawl(request), text_value(values, "export")
        if name not in EXPORTS:
            raise UserError(f"no export {name!r:.40}: choose one of {', '.join(EXPORTS)}")
        identity = CrawlFolder(crawl.path).identity()
        # with "./", a folder's name cannot be read as an option
        arguments = EXPORTS[name].arguments(f"./{crawl.name}", identity, values)
        with context.job_lock():
            if context.jobs.running(name, crawl.name):
                raise UserError("this export is running already: wait until it has finished")
            create_export_folder(crawl.path)
            job = context.jobs.start(name, crawl.name, arguments)
        return accepted_response(job.to_dict(), JOBS_CHANGED)

    def file(request: Request) -> Response:
        name = request.query_params.get("file", "")
        path = find_export(context.requested_crawl(request).path, name)
        content, filename = open_download(path)
        headers = {
            "Content-Disposition": f'attachment; filename="{filename}"',
            "Content-Length": str(os.fstat(content.fileno()).st_size),
            "Content-Security-Policy": "sandbox",
            "Cache-Control": "no-store",
        }
        return StreamingResponse(
            read_chunks(content), media_type="application/octet-stream", headers=headers
        )

    def first_rows(request: Request) -> dict[str, Any]:
        crawl, name = context.requested_crawl(request), request.query_params.get("file", "")
        return {
            "crawl": crawl.name,
            "file": name,
            "shown": read_preview(find_export(crawl.path, name)),
        }

    def chosen_pages(request: Request) -> dict[str, Any]:
        crawl, least = context.requested_crawl(request), request.query_params.get("least", "")
        return choose_pages(crawl.path, _parse_share(least.strip() or _LEAST))

    def shown_pages(request: Request) -> dict[str, Any]:
        crawl = context.requested_crawl(request)
        shown = {"crawl": crawl.name, "changing": is_changing(crawl.path), "wrong": ""}
        try:
            return shown | {"found": chosen_pages(request)}
        except UserError as error:
            return shown | {"found": None, "wrong": str(error)}

    def datasheet(request: Request) -> dict[str, Any]:
        crawl, name = context.requested_crawl(request), request.query_params.get("file", "")
        path = find_datasheet(find_export(crawl.path, name))
        if path is None:
            raise UserError(f"the exported file {name} has no datasheet")
        with open(path, "rb", opener=open_nofollow) as file:
            sections = [*markdown_sections(printable(_read_start(file, _MAX_DATASHEET)))]
        # the datasheet of a folder is in the folder's ZIP file
        download = path.name if path.parent == crawl.path / FOLDER else ""
        return {"crawl": crawl.name, "file": name, "sections": sections, "download": download}

    at = "/crawls/{name:path}/exports"
    return [
        Route(f"{PREFIX}{at}/file", file),
        Route(
            f"{PREFIX}{at}/preview", json_endpoint(lambda request: first_rows(request)["shown"])
        ),
        Route(f"{PREFIX}{at}/choice", json_endpoint(chosen_pages)),
        Route(f"{PREFIX}{at}", json_endpoint(api)),
        post_route(f"{PREFIX}{at}", start_export),
        Route(at, context.page_endpoint("exports", shown)),
        Route(f"{at}/datasheet", context.page_endpoint("datasheet", datasheet)),
        Route(f"/parts{at}/choice", context.page_endpoint("export_pages", shown_pages)),
        Route(f"/parts{at}", context.page_endpoint("export_files", shown)),
        Route(f"/parts{at}/preview", context.page_endpoint("export_preview", first_rows)),
    ]


# -- exports -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Export:
    """A kind of export, which the studio offers for crawls."""

    name: str  # also the kind of the job
    title: str
    about: str
    action: str  # label of the button
    # command line after "focuscrawl", from the crawl's folder and identity, and posted values
    arguments: Callable[[str, Mapping[str, str], Mapping[str, Any]], list[str]]


def _collect_command(crawl: str, _: Mapping[str, str], values: Mapping[str, Any]) -> list[str]:
    format_ = text_value(values, "format", "parquet")
    least, language = text_value(values, "least"), text_value(values, "language").lower()
    checks, options = FieldChecks(), list[str]()
    with checks.field("format"):
        if format_ not in FORMATS:
            raise UserError(f"no format {format_!r:.40}: choose one of {', '.join(FORMATS)}")
    with checks.field("least"):
        if least:
            options += ["--min-relevance", str(_parse_share(least))]
    with checks.field("language"):
        if language and not _LANGUAGE.fullmatch(language):
            raise UserError(f"language {language!r:.40} is invalid: use codes such as en,de")
        options += ["--language", language] if language else []
    checks.finish()
    name = f"collection-{datetime.now(UTC):%Y%m%d-%H%M%S}{FORMATS[format_][0]}"
    return ["collect", crawl, "--out", f"{crawl}/{FOLDER}/{name}", *options]


def _report_command(crawl: str, _: Mapping[str, str], __: Mapping[str, Any]) -> list[str]:
    folder = f"{crawl}/{FOLDER}"
    return ["report", crawl, "--out", f"{folder}/report", "--csv", f"{folder}/fetches.csv"]


def _distill_command(crawl: str, _: Mapping[str, str], __: Mapping[str, Any]) -> list[str]:
    folder = f"{crawl}/{FOLDER}"
    return ["distill", crawl, "--csv", f"{folder}/hubs.csv", "--html", f"{folder}/hubs.html"]


def _knowledge_command(crawl: str, identity: Mapping[str, str], _: Mapping[str, Any]) -> list[str]:
    topic = identity.get("topic", "")
    if not topic.startswith("/"):
        raise UserError("the crawl records no topic, so other crawls cannot use its knowledge")
    out = f"{crawl}/{FOLDER}/knowledge.db"
    return ["knowledge", "learn", crawl, "--topic", topic, "--out", out]


def _parse_share(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0.0 <= found <= 1.0:
        raise UserError("the minimum relevance must be a number from 0 to 1")
    return found


#: by name, in the order of the page
EXPORTS = {
    each.name: each
    for each in (
        Export(
            "collect", "Pages", "Relevant pages with their text.", "Export pages", _collect_command
        ),
        Export(
            "report",
            "Report",
            "HTML page with curves, best pages and hosts, and a CSV file of all fetches.",
            "Create report",
            _report_command,
        ),
        Export(
            "hubs",
            "Hubs",
            "HTML page and CSV file of hubs, authorities and sites.",
            "Export hubs",
            _distill_command,
        ),
        Export(
            "knowledge",
            "Knowledge",
            "Start pages, words and link model for the next crawl of the topic. Each finished "
            "crawl is added once.",
            "Save for the next crawl",
            _knowledge_command,
        ),
    )
}


# -- pages to export -----------------------------------------------------------------------


def choose_pages(crawl: Path, least: float) -> dict[str, Any]:
    """Return how many pages an export would select, and the most relevant of these pages.

    The export leaves out near-duplicates and pages without text, so it may contain fewer pages.

    Returns
    -------
    dict
        ``count`` and ``rows`` (five pages with ``url``, ``title``, ``relevance``, ``topic``).
    """
    pages = """FROM page p JOIN url u ON u.id = p.url
               WHERE p.relevance >= ? AND p.duplicate_of IS NULL AND p.digest IS NOT NULL"""
    best = f"""SELECT u.url, p.title, p.relevance, p.topic {pages}
               ORDER BY p.relevance DESC, p.seq LIMIT ?"""
    with closing(open_store(crawl)) as store:
        (count,) = store.row(f"SELECT count(*) {pages}", (least,))
        rows = [dict(row) for row in store.rows(best, (least, _N_CARDS))]
    return {"count": count, "rows": rows}


# -- files ---------------------------------------------------------------------------------


def create_export_folder(crawl: Path) -> Path:
    """Return the path of a crawl's export folder, which is created if necessary."""
    folder = safe_join(crawl, FOLDER)
    with reporting_write_errors(folder):
        folder.mkdir(exist_ok=True)
    return folder


def list_exports(crawl: Path) -> list[dict[str, Any]]:
    """Return the exported files and folders of a crawl, latest first.

    Each exported file or folder is described by ``name``, ``bytes``, ``made`` (time in ISO 8601,
    UTC), ``files`` (number of files in a folder, or None for a file), and ``datasheet`` (whether
    there is a datasheet).
    """
    folder = crawl / FOLDER
    if folder.is_symlink():
        return []
    found: list[tuple[float, dict[str, Any]]] = []
    try:
        with os.scandir(folder) as entries:
            named = [each for each in entries if _NAME.fullmatch(each.name)]
    except OSError:
        return []
    for each in named:
        about = each.stat(follow_symlinks=False)
        size, files = about.st_size, None
        if each.is_dir(follow_symlinks=False):
            inner = list_files(Path(each.path))
            size, files = sum(path.lstat().st_size for path in inner), len(inner)
        elif not each.is_file(follow_symlinks=False):
            continue
        made = datetime.fromtimestamp(about.st_mtime, UTC).isoformat(timespec="seconds")
        row = {"name": each.name, "bytes": size, "made": made, "files": files}
        row["datasheet"] = find_datasheet(Path(each.path)) is not None
        found.append((about.st_mtime, row))
    return [row for _, row in sorted(found, key=lambda each: (-each[0], each[1]["name"]))]


def find_export(crawl: Path, name: str) -> Path:
    """Return the path of an export with a given name; raise `UserError` if there is none."""
    path = safe_join(crawl, f"{FOLDER}/{name}") if _NAME.fullmatch(name) else None
    if path is None or not path.exists():
        raise UserError(f"no exported file {name!r:.100}: see the list of files")
    return path


def find_datasheet(export: Path) -> Path | None:
    """Return the path of the datasheet of an exported file or folder, or None."""
    inside = export / "datasheet.md"
    path = inside if export.is_dir() else export.with_name(f"{export.name}{_DATASHEET}")
    return path if path.is_file() and not path.is_symlink() else None


def open_download(path: Path) -> tuple[IO[bytes], str]:
    """Open an export for download, and return the open file and the file name."""
    if not path.is_dir():
        return open(path, "rb", opener=open_nofollow), path.name
    packed = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the archive has been sent
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in list_files(path, most=None):
            with (
                open(each, "rb", opener=open_nofollow) as file,
                archive.open(each.relative_to(path.parent).as_posix(), "w") as into,
            ):
                while chunk := file.read(_CHUNK):
                    into.write(chunk)
    packed.seek(0)
    return packed, f"{path.name}.zip"


def read_chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file, then close the file."""
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk


def list_files(folder: Path, most: int | None = _MAX_FILES) -> list[Path]:
    """Return the files in a folder and its subfolders, sorted by name, without symbolic links."""
    found: list[Path] = []
    for parent, folders, files in os.walk(folder):  # does not follow links to folders
        folders.sort()
        paths = (Path(parent) / name for name in sorted(files))
        found += [path for path in paths if not path.is_symlink() and path.is_file()]
        if most is not None and len(found) >= most:
            return found[:most]
    return found


# -- previews ------------------------------------------------------------------------------


def read_preview(path: Path) -> dict[str, Any]:
    """Return a preview of an exported file, as table rows, as text or as a note.

    The note explains why a file has no preview.
    """
    if path.is_dir():
        files = list_files(path)
        for each in files:
            if each.suffix in _TEXT_SUFFIXES:
                return _preview_text(each)
        return {"columns": ["file"], "rows": [[each.name] for each in files[:_N_ROWS]]}
    if path.suffix in _TEXT_SUFFIXES:
        return _preview_text(path)
    preview = _PREVIEWS.get(path.suffix)
    if preview is None:
        return {"note": "Files of this format have no preview: download the file."}
    try:
        with open(path, "rb", opener=open_nofollow) as file:
            return preview(path, file)
    except (ValueError, OSError, csv.Error, RecursionError) as error:
        raise UserError(f"{path.name} cannot be read: {error!s:.200}") from None


def _preview_csv(_: Path, file: BinaryIO) -> dict[str, Any]:
    rows = [*islice(csv.reader(io.StringIO(_read_start(file, _MAX_PREVIEW))), _N_ROWS + 1)]
    return _table(rows[0] if rows else [], rows[1:])


def _preview_jsonl(_: Path, file: BinaryIO) -> dict[str, Any]:
    lines = _read_start(file, _MAX_PREVIEW).split("\n")[:-1][
        :_N_ROWS
    ]  # the last line may be cut off
    records = [json.loads(line) for line in lines if line.strip()]
    if not all(isinstance(each, dict) for each in records):
        raise ValueError("a line is not a JSON object")
    names = list(dict.fromkeys(name for each in records for name in each))
    return _table(names, [[each.get(name) for name in names] for each in records])


def _preview_parquet(path: Path, file: BinaryIO) -> dict[str, Any]:
    with require_extra("parquet", f"a preview of {path.name}"):
        import pyarrow.parquet as pq  # noqa: PLC0415 - an optional dependency
    with pq.ParquetFile(file) as table:
        batch = next(table.iter_batches(batch_size=_N_ROWS), None)
        names = list(map(str, table.schema_arrow.names))
    return _table(names, [list(row.values()) for row in batch.to_pylist()] if batch else [])


def _preview_warc(path: Path, file: BinaryIO) -> dict[str, Any]:
    records = [*islice(RecordingScan(path, file), _N_ROWS)]
    return _table(
        ["record", "URL", "date", "bytes"],
        [[r.type, r.target, r.headers.get("warc-date", ""), len(r.block)] for r in records],
    )


def _table(columns: Iterable[Any], rows: Iterable[Iterable[Any]]) -> dict[str, Any]:
    """Return the columns that have values, and the rows as short texts."""
    names = [_cell(each) for each in columns]
    cells = [[_cell(each) for each in row] for row in rows]
    order = [names.index(each) for each in _FIRST_COLUMNS if each in names]
    order += [i for i in range(len(names)) if i not in order]
    shown = [i for i in order if any(i < len(row) and row[i] for row in cells)]
    return {
        "columns": [names[i] for i in shown],
        "rows": [[row[i] if i < len(row) else "" for i in shown] for row in cells],
    }


def _cell(value: Any) -> str:
    """Return a value as a short text: numbers with three decimals, times without seconds."""
    if value is None or value == []:
        return ""
    if isinstance(value, str | date):
        text = str(value)
    else:
        text = json.dumps(value, default=str, ensure_ascii=False)
    if _NUMBER.fullmatch(text):
        return f"{float(text):.3f}"
    if found := _TIME.fullmatch(text):
        return f"{found[1]} {found[2]}"
    return text[:_MAX_CELL] + ("…" if len(text) > _MAX_CELL else "")


def _preview_text(path: Path) -> dict[str, Any]:
    with open(path, "rb", opener=open_nofollow) as file:
        return {"text": printable(_read_start(file, _MAX_TEXT))}


def _read_start(file: BinaryIO, most: int) -> str:
    return file.read(most).decode(errors="replace")


_TEXT_SUFFIXES = (".md", ".txt")
_PREVIEWS = {
    ".csv": _preview_csv,
    ".jsonl": _preview_jsonl,
    ".parquet": _preview_parquet,
    ".gz": _preview_warc,
    ".warc": _preview_warc,
    ".wacz": _preview_warc,
}


_HEADING = re.compile(r"(#{1,6}) +(.*)")
_ITEM = re.compile(r"( *)[-*] +(.*)")
_RULE = re.compile(r"\|[-:| ]+\|")  # below the heading of a table
_CELL = re.compile(r"(?<!\\)\|")
_ESCAPED = re.compile(r"\\([\\`*_\[\]<>|#])")


def markdown_blocks(text: str) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a text in Markdown, in order.

    Parameters
    ----------
    text : str
        Headings, paragraphs, lists and tables, as `focuscrawl.collection.datasheet` writes them.

    Yields
    ------
    dict
        ``kind`` and its values: ``heading`` with ``level`` and ``text``, ``paragraph`` with
        ``text``, ``list`` with ``items`` (``depth``, ``text``), or ``table`` with ``rows`` (the
        first row is the heading).
    """
    block: dict[str, Any] = {}
    for line in [*text.splitlines(), ""]:
        kind, values = _parse_line(line)
        if block and (kind != block["kind"] or kind == "heading"):
            yield block
            block = {}
        if kind == "heading":
            block = {"kind": kind, **values}
        elif kind == "paragraph" and block:
            block["text"] += f" {values['text']}"
        elif kind == "paragraph":
            block = {"kind": kind, **values}
        elif kind:
            name = "items" if kind == "list" else "rows"
            block = block or {"kind": kind, name: []}
            if values:
                block[name].append(values["cells"] if kind == "table" else values)


def markdown_sections(text: str) -> Iterator[dict[str, Any]]:
    """Yield the sections of a text: ``title`` (a heading) and ``blocks`` (see `markdown_blocks`).

    Blocks before the first heading are in a section with an empty title.
    """
    section: dict[str, Any] = {"title": "", "blocks": []}
    for block in markdown_blocks(text):
        if block["kind"] == "heading":
            if section["title"] or section["blocks"]:
                yield section
            section = {"title": block["text"], "blocks": []}
        else:
            section["blocks"].append(block)
    yield section


def _parse_line(line: str) -> tuple[str, dict[str, Any]]:
    """Return the kind of a line, which is empty for an empty line, and its values."""
    if found := _HEADING.fullmatch(line):
        return "heading", {"level": len(found[1]), "text": _plain(found[2])}
    if found := _ITEM.fullmatch(line):
        return "list", {"depth": len(found[1]) // 2, "text": _plain(found[2])}
    bare = line.strip()
    if _RULE.fullmatch(bare):
        return "table", {}
    if bare.startswith("|") and bare.endswith("|") and len(bare) > 1:
        return "table", {"cells": [_plain(each) for each in _CELL.split(bare)[1:-1]]}
    return ("paragraph", {"text": _plain(bare)}) if bare else ("", {})


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text.strip()).replace("`", "")
