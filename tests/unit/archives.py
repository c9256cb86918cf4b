"""Archives for tests: a web of few pages, a small synthetic one, their indices."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from focuscrawl.testing import TinyWeb
from focuscrawl.webs import RecordedWeb, WarcRecorder, open_web
from focuscrawl.webs.capture_index import write_index
from focuscrawl.webs.captures import Capture

if TYPE_CHECKING:
    from focuscrawl.webs import Answer, Web

Headers = list[tuple[str, str]]

INDICES = ["web.cdxj", "web.parquet"]
HTML: Headers = [("Content-Type", "text/html")]


def fetched(web: Web, url: str) -> Answer:
    """Return what a web answers for a URL, which it has."""
    answer = web.fetch(url)
    assert answer is not None
    return answer


def warc_record(
    name: str, block: bytes, *, kind: str = "response", length: object = None, more: str = ""
) -> bytes:
    """Return a record of ``http://a.example/NAME``; `more` are fields, each after a line break."""
    lines = [
        "WARC/1.1",
        f"WARC-Type: {kind}",
        f"WARC-Target-URI: <http://a.example/{name}>",
        f"WARC-Record-ID: <urn:uuid:{name}>{more}",
        f"Content-Length: {len(block) if length is None else length}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


class Recording:
    """Writes one WARC file with warcio, a record a call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("wb")
        self.writer = WARCWriter(self.file, gzip=path.suffix == ".gz", warc_version="1.1")

    def add(
        self,
        url: str,
        body: bytes = b"",
        *,
        status: str | None = "200 OK",
        headers: Headers = HTML,
        kind: str = "response",
        about: dict[str, str] | None = None,
        content_type: str = "",
    ) -> str:
        """Write a record and return its id."""
        head = None
        if status is not None:
            head = StatusAndHeaders(status, list(headers), protocol="HTTP/1.1")
        record = self.writer.create_warc_record(
            url,
            kind,
            payload=BytesIO(body),
            length=len(body),
            http_headers=head,
            warc_headers_dict=about or {},
            warc_content_type=content_type,
        )
        self.writer.write_record(record)
        return str(record.rec_headers.get_header("WARC-Record-ID"))

    def open(self) -> RecordedWeb:
        self.file.close()
        return RecordedWeb(self.path)


def tiny_web() -> TinyWeb:
    """Return pages of two hosts, a redirect and an error: 13 captures."""
    pages = {f"http://www.a.example/Dir/{n}?b={n}&a=1": f"<p>page {n}" for n in range(9)}
    web = TinyWeb(
        {**pages, "https://b.example/": "b", "http://b.example/%C3%A9": "é"},
        redirects={"http://a.example/old": "https://b.example/"},
    )
    web.put("http://a.example/gone", "gone", 404)
    return web


def record_demo(folder: Path) -> Path:
    """Record a small synthetic web in a folder, with both indices."""
    web = open_web("demo:0.1")
    with WarcRecorder(folder / "web.warc.gz") as recorder:
        for answer in map(web.fetch, web.urls()):
            assert answer is not None
            recorder.record(
                url=answer.url,
                at=datetime(2026, 1, 1, tzinfo=UTC),
                status=answer.status,
                response_headers=answer.headers,
                body_raw=answer.body,
            )
    for name in INDICES:
        write_index([folder / "web.warc.gz"], folder / name, folder)
    return folder


def archive(web: TinyWeb, folder: Path, index: str) -> Path:
    """Record a web in ``folder/warcs``, and write its index beside them."""
    warc = web.write(folder / "warcs" / "pages.warc.gz")
    write_index([warc], folder / index, folder)
    return folder / index


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return what each line of a CDXJ says."""
    lines = [line.split(" ", 2) for line in path.read_text(encoding="ascii").splitlines()]
    return [{"key": key, "at": at, **json.loads(about)} for key, at, about in lines]


def change(path: Path, **changes: Any) -> None:
    """Have every line of a CDXJ say something else."""
    lines = []
    for line in lines_of(path):
        about = {name: value for name, value in line.items() if name not in {"key", "at"}}
        lines.append(f"{line['key']} {line['at']} {json.dumps(about | changes)}\n")
    path.write_text("".join(lines), encoding="ascii")


def capture(url: str = "http://a.example/", at: int = 2020, **said: Any) -> Capture:
    """Return a capture of a page."""
    about: dict[str, Any] = {"mime": "text/html", "status": 200, "digest": "", "redirect": ""}
    where = {"filename": "a.warc.gz", "offset": 0, "length": 1}
    return Capture(key="k", timestamp=f"{at}0101000000", url=url, **(about | where | said))


def write_blocks(lines: list[bytes], folder: Path, *, per_block: int, per_file: int) -> Path:
    """Write CDXJ lines as Common Crawl does: compressed blocks, and the index of the blocks.

    Parameters
    ----------
    lines : sorted lines with line ends
    per_block, per_file : number of lines of a block, and of blocks of a file
    """
    index = []
    for number, at in enumerate(range(0, len(lines), per_block)):
        path = folder / f"cdx-{number // per_file:05}.gz"
        offset = path.stat().st_size if path.exists() else 0
        block = gzip.compress(b"".join(lines[at : at + per_block]))
        with path.open("ab") as file:
            file.write(block)
        first = b" ".join(lines[at].split(b" ", 2)[:2]).decode()
        index.append(f"{first}\t{path.name}\t{offset}\t{len(block)}\t{number + 1}\n")
    (folder / "cluster.idx").write_text("".join(index))
    return folder / "cluster.idx"
