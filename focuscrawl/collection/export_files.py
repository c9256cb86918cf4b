"""Write an export as files: tables, a WARC or WACZ file, Markdown, and link graphs."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import uuid
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr
from zipfile import ZIP64_LIMIT, ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from focuscrawl import __version__
from focuscrawl.collection.collection import COLUMNS, NOT_RECORDED, to_row
from focuscrawl.collection.datasheet import datasheet
from focuscrawl.collection.origin import find_answer
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.files import (
    replace_atomically,
    reporting_write_errors,
    write_atomically,
)
from focuscrawl.foundation.urls import host
from focuscrawl.report.plain_text import escape_csv_field, one_line, pluralize
from focuscrawl.webs.capture_index import list_captures, write_cdxj
from focuscrawl.webs.captures import format_cdxj_line
from focuscrawl.webs.warc_reading import WarcScan
from focuscrawl.webs.warc_recorder import WarcRecorder

if TYPE_CHECKING:
    import pyarrow as pa

    from focuscrawl.collection.collection import Collection, ExportedPage
    from focuscrawl.store import CrawlStore

_DECODED_HEADERS = ("content-length", "content-encoding", "transfer-encoding")

#: endings of export files; a name without ending is a folder of Markdown files
ENDINGS = (".parquet", ".jsonl", ".csv", ".warc.gz", ".wacz")
_FRONT_MATTER = (  # columns at the top of a Markdown file
    *("url", "title", "author", "date", "language", "license", "robots", "relevance"),
    "fetched_at",
)
_ROWS = 1_000  # of a row group
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_LONGEST_SLUG = 60  # characters


def write_warc(collection: Collection, path: Path) -> None:
    """Write the pages of a collection as a compressed WARC 1.1 file, in the order fetched.

    Pages whose response was not recorded are moved to ``collection.skipped``. The WARC file does
    not contain the requests and the IP addresses of servers.
    """
    named = path.with_name(f"{path.name}.warc.gz")
    try:
        kept = []
        with WarcRecorder(named) as recorder:
            for page in collection.pages:
                answer = find_answer(collection.webs, page.url)
                if answer is None:
                    continue
                kept.append(page)
                headers = [h for h in answer.headers if h[0].lower() not in _DECODED_HEADERS]
                recorder.record(
                    request_method="GET",
                    url=page.url,
                    request_headers=[],
                    request_body=b"",
                    status=answer.status,
                    reason="OK",
                    response_headers=[*headers, ("Content-Length", str(len(answer.body)))],
                    body_raw=answer.body,
                    truncated="length" if answer.too_large else answer.truncated,
                    ip=None,
                    at=page.fetched_at,
                )
        if collection.pages and not kept:
            raise UserError(
                "no page of the export has a recorded response to write to a WARC file: name a "
                "recording of the pages with --web"
            )
        if lost := len(collection.pages) - len(kept):
            collection.skipped[NOT_RECORDED] += lost
        collection.pages = kept
        named.replace(path)
    finally:
        named.unlink(missing_ok=True)


def _write_wacz(collection: Collection, path: Path, title: str) -> None:
    warc = path.with_name(f"{path.name}.warc.gz")
    try:
        write_warc(collection, warc)
        write_package(path, warc, _cdxj_lines(warc, WARC_NAME), collection.pages, title)
    finally:
        warc.unlink(missing_ok=True)


def _cdxj_lines(archive: Path, name: str) -> list[bytes]:
    """Return the index of a WARC file, with a file name for the index."""
    with archive.open("rb") as file:
        return sorted(map(format_cdxj_line, list_captures(WarcScan(archive, file), name)))


#: (source, target): number of links
Edges = Counter[tuple[str, str]]

_GRAPHML_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="links" for="edge" attr.name="links" attr.type="long"/>
<graph edgedefault="directed">
"""


def write_edges(store: CrawlStore, collection: Collection, folder: Path, name: str) -> list[Path]:
    """Write the links between exported pages and between hosts, as Parquet and GraphML files.

    The link files are ``NAME.links.parquet``, ``NAME.links.graphml``, ``NAME.hosts.parquet`` and
    ``NAME.hosts.graphml``.
    """
    pages = _links(store, collection)
    hosts: Edges = Counter()
    for (source, target), number in pages.items():
        if host(source) != host(target):
            hosts[host(source), host(target)] += number
    written = []
    urls = [page.url for page in collection.pages]
    for kind, nodes, edges in (
        ("links", urls, pages),
        ("hosts", list(dict.fromkeys(map(host, urls))), hosts),
    ):
        table, graph = (folder / f"{name}.{kind}.{each}" for each in ("parquet", "graphml"))
        with reporting_write_errors(table):
            _write_edge_table(edges, table)
            write_atomically(graph, _graphml(nodes, edges))
        written += [table, graph]
    return written


def _links(store: CrawlStore, collection: Collection) -> Edges:
    exported = {page.url for page in collection.pages}
    rows = store.rows(
        "SELECT s.url, t.url FROM link l JOIN url s ON s.id = l.source "
        "JOIN url t ON t.id = l.target JOIN page p ON p.url = l.source "
        "WHERE p.relevance >= ? ORDER BY l.id",
        (collection.options.min_relevance,),
    )
    return Counter((a, b) for a, b in rows if a in exported and b in exported)


def _write_edge_table(edges: Edges, path: Path) -> None:
    with require_extra("text", "links as Parquet"):
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow.parquet import write_table  # noqa: PLC0415
    types = [("source", pa.string()), ("target", pa.string()), ("links", pa.int64())]
    rows = [{"source": a, "target": b, "links": n} for (a, b), n in edges.items()]
    with replace_atomically(path) as draft:
        write_table(pa.Table.from_pylist(rows, pa.schema(types)), draft, compression="zstd")


def _graphml(nodes: list[str], edges: Edges) -> str:
    lines = [f"<node id={_quoted(node)}/>\n" for node in nodes]
    lines += [
        f'<edge source={_quoted(a)} target={_quoted(b)}><data key="links">{number}</data></edge>\n'
        for (a, b), number in edges.items()
    ]
    return "".join([_GRAPHML_HEAD, *lines, "</graph>\n</graphml>\n"])


def _quoted(text: str) -> str:
    return quoteattr(one_line(text))  # `one_line` drops the characters that XML does not allow


def check_output(out: Path) -> None:
    """Raise `UserError` if `out` cannot be written; must be called before pages are read."""
    if out.suffix and not _ending(out):
        raise UserError(
            f"{out} is not an export format: name a file that ends in {', '.join(ENDINGS)}, or a "
            "folder without an ending for Markdown files"
        )
    if out.is_dir() and (out.suffix or any(out.iterdir())):
        raise UserError(f"folder {out} exists already: name a new folder with --out")
    if _ending(out) == ".parquet":
        arrow_schema()  # fails if PyArrow is not installed
    if not out.parent.is_dir():
        raise UserError(
            f"folder {out.parent} does not exist: create the folder or name another with --out"
        )


def write_collection(
    collection: Collection, out: Path, *, chunk: int = 0, command: str = ""
) -> list[Path]:
    """Write an export's pages completely or not at all; return the written files or folder.

    Parameters
    ----------
    out : Path
        File whose ending selects the format (`ENDINGS`), or a new folder.
    chunk : int
        Longest chunk in characters; 0: no chunks.
    command : str
        Command line printed in the datasheet.
    """
    check_output(out)
    ending = _ending(out)
    written = [out]
    columns = [*COLUMNS] if ending in _TABLES else [*_FRONT_MATTER] if not ending else []
    rows = (to_row(page, chunk) for page in collection.pages)
    with reporting_write_errors(out, "name another path with --out"):
        if not ending:
            sheet = datasheet(collection, datetime.now(UTC), command=command, columns=columns)
            _write_markdown(rows, out, sheet)
            return written
        with replace_atomically(out) as draft:
            if ending == ".warc.gz":
                written.append(out.with_name(f"{base_name(out)}.cdxj"))
                write_warc(collection, draft)
                with replace_atomically(written[-1]) as index:
                    write_cdxj(_cdxj_lines(draft, out.name), index)
            elif ending == ".wacz":
                _write_wacz(collection, draft, base_name(out))
            else:
                _TABLES[ending](rows, draft)
        written.append(out.with_name(f"{out.name}.datasheet.md"))
        # after `write_warc`, which skips pages without a recorded response
        sheet = datasheet(collection, datetime.now(UTC), command=command, columns=columns)
        write_atomically(written[-1], sheet)
    return written


def check_not_empty(collection: Collection) -> None:
    """Raise `UserError` with the reasons if a crawl has no page to export."""
    if collection.pages:
        return
    least = f"relevance ≥ {collection.options.min_relevance:g}"
    if not collection.fetched:
        raise UserError(
            f"nothing to export: no page of the crawl has {least}; lower --min-relevance"
        )
    raise UserError(
        f"nothing to export: all of {pluralize(collection.fetched, 'page')} with {least} were "
        f"skipped ({describe_skipped(collection)})"
    )


def describe_skipped(collection: Collection) -> str:
    """Return the numbers of skipped pages by reason as text; empty if no page was skipped."""
    return ", ".join(f"{n:,} {reason}" for reason, n in collection.skipped.most_common())


def base_name(out: Path) -> str:
    """Return the name of an export file without its file extension."""
    return out.name.removesuffix(_ending(out))


def _ending(out: Path) -> str:
    return next((each for each in ENDINGS if out.name.endswith(each)), "")


def arrow_schema() -> pa.Schema:
    """Return the Parquet schema of an export."""
    with require_extra("text", "an export as Parquet"):
        import pyarrow as pa  # noqa: PLC0415
    chunk = pa.struct([("start", pa.int64()), ("end", pa.int64())])
    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "date": pa.date32(),
        "list<string>": pa.list_(pa.string()),
        "list<chunk>": pa.list_(chunk),
    }
    return pa.schema([(name, types[kind]) for name, (kind, _) in COLUMNS.items()])


def _write_pages_parquet(rows: Iterator[dict[str, Any]], path: Path) -> None:
    schema = arrow_schema()
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415

    with ParquetWriter(path, schema, compression="zstd") as writer:
        group: list[dict[str, Any]] = []
        for row in rows:
            group.append({**row, "chunks": [each._asdict() for each in row["chunks"]]})
            if len(group) == _ROWS:
                writer.write_table(pa.Table.from_pylist(group, schema))
                group.clear()
        writer.write_table(pa.Table.from_pylist(group, schema))


def _write_lines(rows: Iterator[dict[str, Any]], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            plain = {**row, "chunks": [each._asdict() for each in row["chunks"]]}
            file.write(json.dumps(plain, ensure_ascii=False, default=_isoformat) + "\n")


def _write_csv(rows: Iterator[dict[str, Any]], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(COLUMNS)
        for row in rows:
            lists = {
                "duplicates": " ".join(row["duplicates"]),
                "chunks": " ".join(f"{start}-{end}" for start, end in row["chunks"]),
            }
            writer.writerow(
                escape_csv_field(name, _isoformat(value))
                for name, value in {**row, **lists}.items()
            )


_TABLES = {".parquet": _write_pages_parquet, ".jsonl": _write_lines, ".csv": _write_csv}


def _write_markdown(rows: Iterator[dict[str, Any]], out: Path, sheet: str) -> None:
    with replace_atomically(out, folder=True) as draft:
        for number, row in enumerate(rows, 1):
            slug = _NOT_SLUG.sub("-", row["title"].lower())[:_LONGEST_SLUG].strip("-") or "page"
            content = _front_matter(row) + row["markdown"] + "\n"
            (draft / f"{number:06}-{slug}.md").write_text(content, encoding="utf-8")
        (draft / "datasheet.md").write_text(sheet, encoding="utf-8")


def _front_matter(row: dict[str, Any]) -> str:
    """Return the YAML front matter of a page; JSON strings are valid YAML."""
    front = io.StringIO()
    front.write("---\n")
    for name in _FRONT_MATTER:
        if row[name] not in ("", None):
            value = one_line(row[name]) if isinstance(row[name], str) else _isoformat(row[name])
            front.write(f"{name}: {json.dumps(value, ensure_ascii=False)}\n")
    front.write("---\n\n")
    return front.getvalue()


def _isoformat(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value


# WACZ files (https://specs.webrecorder.net/wacz/1.1.1/). The library py-wacz is not used, because
# it depends on the package ``surt``, which has an AGPL licence and no wheel.
WARC_NAME = "data.warc.gz"  #: file name of the WARC file in the package
_VERSION = "1.1.1"  # of the format
_INDEX_NAME = "index.cdx.gz"
_LINES = 1024  # of a block of the index
_CHUNK = 1 << 20


def write_package(
    path: Path, warc: Path, cdxj: Sequence[bytes], pages: Iterable[ExportedPage], title: str
) -> None:
    """Write a WACZ file, which programs such as ReplayWeb.page display.

    Parameters
    ----------
    warc : Path
        Compressed WARC file with the pages.
    cdxj : sequence of bytes
        Sorted CDXJ lines of the WARC file, with the file name `WARC_NAME`.
    pages : iterable of ExportedPage
        The pages to list.
    title : str
        Title of the package.
    """
    blocks = [b"".join(cdxj[at : at + _LINES]) for at in range(0, len(cdxj), _LINES)]
    compressed = [zlib.compress(block, wbits=31) for block in blocks]
    with ZipFile(path, "w") as file:
        package = _Package(file)
        package.add(f"archive/{WARC_NAME}", warc)
        package.add(f"indexes/{_INDEX_NAME}", b"".join(compressed))
        package.add("indexes/index.idx", b"".join(_block_lines(blocks, compressed)), ZIP_DEFLATED)
        package.add("pages/pages.jsonl", b"".join(_page_lines(pages)), ZIP_DEFLATED)
        package.finish(title)


class _Package:
    """Adds files to a zip file, and lists them with their hashes in ``datapackage.json``."""

    def __init__(self, file: ZipFile) -> None:
        self._file = file
        self._now = datetime.now(UTC)
        self._resources: list[dict[str, Any]] = []

    def add(self, name: str, content: Path | bytes, method: int = ZIP_STORED) -> str:
        """Add a file; return its hash."""
        about = ZipInfo(name, self._now.timetuple()[:6])
        about.compress_type = method
        digest = hashlib.sha256()
        with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as source:
            size = source.seek(0, os.SEEK_END)
            source.seek(0)
            # ReplayWeb.page ignores the extra field of zip64 in the head of a member, unless the
            # list of members has an extra field, too, which `ZipFile` writes above this limit
            with self._file.open(about, "w", force_zip64=size > ZIP64_LIMIT) as member:
                while data := source.read(_CHUNK):
                    digest.update(data)
                    member.write(data)
        listed = f"sha256:{digest.hexdigest()}"
        self._resources.append(
            {"name": name.rpartition("/")[2], "path": name, "hash": listed, "bytes": size}
        )
        return listed

    def finish(self, title: str) -> None:
        about = {
            "profile": "data-package",
            "wacz_version": _VERSION,
            "title": title,
            "created": self._now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "software": f"focuscrawl {__version__}",
            "resources": [*self._resources],
        }
        name = "datapackage.json"
        digest = self.add(name, _json(about), ZIP_DEFLATED)
        described = {"path": name, "hash": digest}
        self.add("datapackage-digest.json", _json(described), ZIP_DEFLATED)


def _block_lines(blocks: Sequence[bytes], compressed: Sequence[bytes]) -> Iterator[bytes]:
    """Yield a line for each block of the index, with the first key and the place of the block."""
    yield b"!meta 0 " + _json({"format": "cdxj-gzip-1.0", "filename": _INDEX_NAME})
    offset = 0
    for block, data in zip(blocks, compressed, strict=True):
        place = {"offset": offset, "length": len(data), "filename": _INDEX_NAME}
        yield b" ".join(block.split(b" ", 2)[:2]) + b" " + _json(place)
        offset += len(data)


def _page_lines(pages: Iterable[ExportedPage]) -> Iterator[bytes]:
    yield _json({"format": "json-pages-1.0", "id": "pages", "title": "Pages"})
    for page in pages:
        fetched = page.fetched_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        yield _json({"id": uuid.uuid4().hex, "url": page.url, "ts": fetched, "title": page.title})


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"
