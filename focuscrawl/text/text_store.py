"""Cache of extracted texts in a crawl's folder, so that exports extract each text only once.

A crawl and an export can use the cache at the same time, because each text is written in a
transaction.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from dataclasses import asdict, fields
from datetime import date
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Self

from focuscrawl.errors import UserError
from focuscrawl.foundation.databases import find_foreign_objects, open_database
from focuscrawl.foundation.model_folder import DECODING_ERRORS
from focuscrawl.text.extraction import PageText

FILE = "texts.db"  #: in the crawl's folder
_SCHEMA = """
CREATE TABLE IF NOT EXISTS text (digest BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS page (
    body BLOB NOT NULL, extractor TEXT NOT NULL, text BLOB, PRIMARY KEY (body, extractor)
) WITHOUT ROWID;
"""
_LARGEST_TEXT = 32 << 20  # bytes, decompressed
_LOCK_TIMEOUT = 60.0  # seconds to wait for another process that writes


class TextStore:
    """Stores the texts of pages by the digest of the page's body. Thread-safe.

    Raises
    ------
    UserError
        The file cannot be written, or is not a text cache.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = Lock()
        try:
            self._database = open_database(self._path, timeout=_LOCK_TIMEOUT)
            try:
                self._create_tables()
            except BaseException:
                self._database.close()
                raise
        except sqlite3.Error as error:
            raise self._user_error(error) from None

    def _create_tables(self) -> None:
        for name in find_foreign_objects(self._database, _SCHEMA):
            raise UserError(
                f"{self._path} is not a text cache of focuscrawl (it has {name}): move "
                "the file away, texts are extracted again"
            )
        # a crash of the machine may lose texts, which are then extracted again
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.executescript(_SCHEMA)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def get(self, body: bytes, extractor: str) -> PageText | None:
        """Return the text of a page, or None if no library could extract a text.

        Raises
        ------
        KeyError
            The cache lacks the page.
        """
        try:
            with self._lock:
                row = self._database.execute(
                    "SELECT p.text, t.content FROM page p LEFT JOIN text t ON t.digest = p.text "
                    "WHERE p.body = ? AND p.extractor = ?",
                    (body, extractor),
                ).fetchone()
            if row is not None:
                return None if row[0] is None else _unpack(row[1])
        except (sqlite3.Error, *DECODING_ERRORS) as error:
            raise self._user_error(error) from None
        raise KeyError(body)

    def put(self, body: bytes, extractor: str, text: PageText | None) -> None:
        """Store the text of a page; the text None records that no library can extract a text."""
        if text is None:
            rows, digest = [], None
        else:
            content = json.dumps(asdict(text), default=str, sort_keys=True).encode()
            digest = blake2b(content, digest_size=16).digest()
            rows = [(digest, zlib.compress(content, 6))]
        with self._lock:
            try:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.executemany("INSERT OR IGNORE INTO text VALUES (?, ?)", rows)
                page = (body, extractor, digest)
                self._database.execute("INSERT OR REPLACE INTO page VALUES (?, ?, ?)", page)
                self._database.execute("COMMIT")
            except sqlite3.Error as error:
                if self._database.in_transaction:
                    self._database.rollback()
                raise self._user_error(error) from None

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _user_error(self, error: Exception) -> UserError:
        """Return a `UserError`; recommend removing the file only if it is damaged."""
        code = getattr(error, "sqlite_errorcode", None)
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
            return UserError(
                f"{self._path} cannot be used ({error}): check the free disk space and the "
                "permissions of the folder; the file itself is intact"
            )
        return UserError(
            f"{self._path} is damaged ({error}): remove the file, texts are extracted again"
        )


def _unpack(packed: bytes) -> PageText:
    text = PageText.of(json.loads(zlib.decompressobj().decompress(packed, _LARGEST_TEXT)))
    for field in fields(text):
        kind = {"date": date | None, "confidence": float | int}.get(field.name, str)
        if not isinstance(getattr(text, field.name), kind):
            raise TypeError(f"{field.name} has a wrong type")
    return text
