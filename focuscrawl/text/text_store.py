"""Texts of a crawl's pages, kept beside it: extracted once, exported as often as one likes.

A crawl and an export may use it at the same time: each text is a transaction of its own.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from dataclasses import asdict, fields
from datetime import date
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Self

from focuscrawl.errors import UserError
from focuscrawl.foundation.databases import find_foreign_objects, open_database
from focuscrawl.foundation.model_folder import DECODING_ERRORS
from focuscrawl.text.extraction import PageText

if TYPE_CHECKING:
    from pathlib import Path


FILE = "texts.db"  #: in the crawl's folder
_SCHEMA = """
CREATE TABLE IF NOT EXISTS text (digest BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS page (
    body BLOB NOT NULL, extractor TEXT NOT NULL, text BLOB, PRIMARY KEY (body, extractor)
) WITHOUT ROWID;
"""
_LARGEST = 32 << 20  # bytes of a text unpacked
_PATIENCE = 60.0  # seconds that others may take to write


class TextStore:
    """Texts by what their pages were made of; a text that several pages have is kept once.

    Any thread may use it.

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
        self._one = Lock()
        try:
            self._database = open_database(self._path, timeout=_PATIENCE)
            try:
                self._begin()
            except BaseException:
                self._database.close()
                raise
        except sqlite3.Error as error:
            raise self._trouble(error) from None

    def _begin(self) -> None:
        for name in find_foreign_objects(self._database, _SCHEMA):
            raise UserError(
                f"{self._path} is no store of texts of ours (it has {name}): remove it, texts are "
                "extracted anew"
            )
        # A text that a crash of the machine takes away is extracted anew.
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.executescript(_SCHEMA)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def get(self, body: bytes, extractor: str) -> PageText | None:
        """Return the text of a page by the digest of its body; KeyError if it is not here.

        None: no library could read it.
        """
        try:
            with self._one:
                row = self._database.execute(
                    "SELECT p.text, t.content FROM page p LEFT JOIN text t ON t.digest = p.text "
                    "WHERE p.body = ? AND p.extractor = ?",
                    (body, extractor),
                ).fetchone()
            if row is not None:
                return None if row[0] is None else _unpacked(row[1])
        except (sqlite3.Error, *DECODING_ERRORS) as error:
            raise self._trouble(error) from None
        raise KeyError(body)

    def put(self, body: bytes, extractor: str, text: PageText | None) -> None:
        """Keep the text of a page; None: no library can read it."""
        if text is None:
            kept, digest = [], None
        else:
            content = json.dumps(asdict(text), default=str, sort_keys=True).encode()
            digest = blake2b(content, digest_size=16).digest()
            kept = [(digest, zlib.compress(content, 6))]
        with self._one:
            try:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.executemany("INSERT OR IGNORE INTO text VALUES (?, ?)", kept)
                page = (body, extractor, digest)
                self._database.execute("INSERT OR REPLACE INTO page VALUES (?, ?, ?)", page)
                self._database.execute("COMMIT")
            except sqlite3.Error as error:
                if self._database.in_transaction:
                    self._database.rollback()
                raise self._trouble(error) from None

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _trouble(self, error: Exception) -> UserError:
        """Return the error for the user, who should remove only what is damaged."""
        code = getattr(error, "sqlite_errorcode", None)
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
            return UserError(
                f"{self._path} cannot be used ({error}): see whether the disk has room and the "
                "folder can be written; the texts in it are good"
            )
        return UserError(f"{self._path} is damaged ({error}): remove it, texts are extracted anew")


def _unpacked(packed: bytes) -> PageText:
    text = PageText.of(json.loads(zlib.decompressobj().decompress(packed, _LARGEST)))
    for field in fields(text):
        kind = {"date": date | None, "confidence": float | int}.get(field.name, str)
        if not isinstance(getattr(text, field.name), kind):
            raise TypeError(f"{field.name} is none of a text")
    return text
