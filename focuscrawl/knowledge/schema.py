"""Tables of a knowledge file, a SQLite database."""

from __future__ import annotations

#: raised by one with every change of the tables; see CHANGELOG
SCHEMA_VERSION = 1
#: says in `meta` what the file is
KIND = "focuscrawl knowledge"

# `key` is the 64-bit hash of a URL without its scheme. As the row's own number it needs no index,
# and all keys together are an array that is searched in memory.
TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE crawl (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    learned_at TEXT NOT NULL,
    fetches INTEGER NOT NULL,
    relevant INTEGER NOT NULL,
    new INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    unchanged INTEGER NOT NULL,
    failed INTEGER NOT NULL
);
CREATE TABLE page (
    key INTEGER PRIMARY KEY,
    url TEXT NOT NULL,
    relevance REAL NOT NULL,
    content BLOB,
    etag TEXT,
    last_modified TEXT,
    visited REAL NOT NULL,
    changed REAL,
    accesses INTEGER NOT NULL DEFAULT 0,
    changes INTEGER NOT NULL DEFAULT 0,
    span REAL NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    hub REAL NOT NULL DEFAULT 0,
    authority REAL NOT NULL DEFAULT 0
);
CREATE TABLE waiting (key INTEGER PRIMARY KEY, url TEXT NOT NULL, score REAL NOT NULL);
CREATE TABLE seed (rank INTEGER PRIMARY KEY, url TEXT NOT NULL, hub REAL, authority REAL);
CREATE TABLE word (
    word TEXT PRIMARY KEY, relevant INTEGER NOT NULL, other INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE exemplar (key INTEGER PRIMARY KEY, relevance REAL NOT NULL, words BLOB NOT NULL);
CREATE TABLE model (kind TEXT PRIMARY KEY, digest TEXT NOT NULL, data BLOB NOT NULL) WITHOUT ROWID;
"""
