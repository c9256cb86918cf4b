"""Texts of a crawl's pages, kept beside it: extracted once, exported as often as one likes."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import suppress
from dataclasses import asdict
from datetime import date
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self

from focuscrawl.errors import UserError
from focuscrawl.foundation.plain_files import refuse_link
from focuscrawl.text.extraction import PageText

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE = "texts.db"  #: in the crawl's folder
_SCHEMA = """
CREATE TABLE IF NOT EXISTS text (digest BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS page (
    body BLOB NOT NULL, extractor TEXT NOT NULL, text BLOB, PRIMARY KEY (body, extractor)
) WITHOUT ROWID;
"""
_LARGEST = 32 << 20  # bytes of a text unpacked


class TextStore:
    """Texts by what their pages were made of; a text that several pages have is kept once.

    Parameters
    ----------
    folder : of the crawl

    Raises
    ------
    UserError
        It cannot be written, or is none of ours.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        for name in (FILE, f"{FILE}-journal", f"{FILE}-wal", f"{FILE}-shm"):
            refuse_link(folder / name)
        try:
            self._database = sqlite3.connect(self._path)
            self._database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise UserError(
                f"{self._path} cannot be used ({error}): remove it, texts are extracted anew"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._database.commit()
        self._database.close()

    def get(self, body: bytes, extractor: str) -> PageText | None:
        """Return the text of a page by the digest of its body; KeyError if it is not here.

        None: no library could read it.
        """
        try:
            row = self._database.execute(
                "SELECT p.text, t.content FROM page p LEFT JOIN text t ON t.digest = p.text "
                "WHERE p.body = ? AND p.extractor = ?",
                (body, extractor),
            ).fetchone()
            if row is None:
                raise KeyError(body)
            if row[0] is None:
                return None
            return _unpacked(zlib.decompressobj().decompress(row[1], _LARGEST))
        except (sqlite3.Error, zlib.error, ValueError, TypeError, AttributeError) as error:
            raise UserError(
                f"{self._path} is damaged ({error}): remove it, texts are extracted anew"
            ) from None

    def put(self, body: bytes, extractor: str, text: PageText | None) -> None:
        """Keep the text of a page; it is safe from the next `commit` on."""
        digest = None
        if text is not None:
            content = json.dumps(asdict(text), default=str, sort_keys=True).encode()
            digest = blake2b(content, digest_size=16).digest()
            packed = zlib.compress(content, 6)
            self._write("INSERT OR IGNORE INTO text VALUES (?, ?)", (digest, packed))
        self._write("INSERT OR REPLACE INTO page VALUES (?, ?, ?)", (body, extractor, digest))

    def commit(self) -> None:
        """Have all that was put on disk."""
        self._database.commit()

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._database.rollback()
            raise UserError(f"{self._path} cannot be written ({error})") from None


def _unpacked(content: bytes) -> PageText:
    said: Mapping[str, Any] = json.loads(content)
    published = said["date"]
    day = None if published is None else date.fromisoformat(published)
    return PageText(**{**said, "date": day})
