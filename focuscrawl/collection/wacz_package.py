"""Write an export as a WACZ file: a zip file with the WARC file, its index and a list of pages.

The format is that of https://specs.webrecorder.net/wacz/1.1.1/. The library py-wacz is not used:
it depends on the package ``surt``, which has an AGPL licence and no wheel.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import uuid
import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zipfile import ZIP64_LIMIT, ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from focuscrawl import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from focuscrawl.collection.collection import ExportedPage

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
