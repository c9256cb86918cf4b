"""The tables and views of the crawl store, and the records that a crawl writes.

URLs and hosts have ids, so a stored link consists of three small integers and a text. Users,
notebooks and other programs read the views; the tables behind the views may change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from focuscrawl.foundation.databases import memory_database

#: version of the tables; every change increases it, and stores of other versions are refused
SCHEMA_VERSION = 4

QUEUED, FETCHED, EXCLUDED, UNFOLLOWED = range(4)
#: states of a URL: in the frontier; with a row in `pages`; never to be fetched (such as by
#: robots.txt); known, but the strategy follows no link to the URL
STATES = ("queued", "fetched", "excluded", "unfollowed")

_SCRIPT = """
CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE host (
    id INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

CREATE TABLE url (
    id INTEGER NOT NULL PRIMARY KEY,
    url TEXT NOT NULL UNIQUE,
    host INTEGER NOT NULL REFERENCES host (id),
    depth INTEGER NOT NULL,
    referrer INTEGER REFERENCES url (id),
    score FLOAT,  -- NULL for a seed, which comes before every link
    state SMALLINT NOT NULL  -- index into STATES
);

CREATE TABLE page (
    seq INTEGER NOT NULL PRIMARY KEY,
    url INTEGER NOT NULL UNIQUE REFERENCES url (id),
    status INTEGER NOT NULL,  -- HTTP status; 0 without a response
    relevance FLOAT NOT NULL,
    topic TEXT,  -- the critic's most probable class
    score FLOAT,  -- score when the URL left the frontier; NULL for a seed
    fetched_at TEXT NOT NULL,  -- UTC, ISO 8601
    content_type TEXT,
    size INTEGER NOT NULL,  -- bytes received
    title TEXT,
    canonical TEXT,  -- URL the page names as its canonical one
    digest BLOB,  -- of the body of an HTML page, 16 bytes; then the signature of its text
    duplicate_of INTEGER REFERENCES url (id),
    error TEXT,  -- reason for a missing status or judgement
    links INTEGER NOT NULL,  -- links on the page
    dropped INTEGER NOT NULL  -- links that were not queued or stored
);

CREATE TABLE link (
    id INTEGER NOT NULL PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES url (id),
    target INTEGER NOT NULL REFERENCES url (id),
    anchor TEXT NOT NULL,
    dom_position INTEGER NOT NULL,  -- first DOM leaf of the link
    score FLOAT,  -- NULL: the strategy does not follow the link
    model_version INTEGER NOT NULL
);
CREATE INDEX ix_link_target ON link (target);

CREATE TABLE answer (
    seq INTEGER NOT NULL PRIMARY KEY REFERENCES page (seq),
    content BLOB NOT NULL,  -- digest of the page's text
    headings TEXT,  -- one a line
    etag TEXT,
    last_modified TEXT
);

CREATE TABLE memo (
    seq INTEGER NOT NULL PRIMARY KEY REFERENCES page (seq),
    data BLOB NOT NULL  -- bytes of the strategy about the page's links
);

CREATE TABLE revisit (
    id INTEGER NOT NULL PRIMARY KEY,
    url INTEGER NOT NULL REFERENCES url (id),
    asked_at INTEGER NOT NULL,  -- pages fetched when the revisit was planned
    seq INTEGER,  -- pages fetched when the revisit ended; NULL while queued
    status INTEGER,  -- HTTP status; 0 without a response; NULL: not requested
    relevance FLOAT,  -- NULL if nothing new had to be judged
    fetched_at TEXT,  -- UTC, ISO 8601
    size INTEGER NOT NULL,  -- bytes received
    error TEXT,  -- reason for a missing status or page
    etag TEXT,  -- validator of the conditional request; as in `answer`
    last_modified TEXT,
    links INTEGER NOT NULL,  -- new links of the page
    first_link INTEGER,  -- id of the first new link in `link`; the others follow
    memo BLOB  -- bytes of the strategy about the new links
);
CREATE INDEX ix_revisit_url ON revisit (url);

CREATE TABLE models (
    version INTEGER NOT NULL PRIMARY KEY,
    trained_at_seq INTEGER NOT NULL,
    instances INTEGER NOT NULL,
    metrics TEXT NOT NULL,  -- JSON
    state BLOB  -- bytes of the strategy; only the last model has them
);

CREATE TABLE events (
    id INTEGER NOT NULL PRIMARY KEY,
    at TEXT NOT NULL,  -- UTC, ISO 8601
    seq INTEGER NOT NULL,  -- pages fetched before the event
    kind TEXT NOT NULL,
    detail TEXT NOT NULL
);

CREATE VIEW pages AS
    SELECT p.seq, u.url, p.status, p.relevance, p.topic, u.depth, p.score,
           r.url AS referrer, p.fetched_at, p.content_type, p.size AS bytes,
           p.title, d.url AS duplicate_of, p.error, p.links, p.dropped
    FROM page p JOIN url u ON u.id = p.url
    LEFT JOIN url r ON r.id = u.referrer
    LEFT JOIN url d ON d.id = p.duplicate_of;

CREATE VIEW links AS
    SELECT s.url AS source, t.url AS target, l.anchor, l.dom_position, l.score,
           l.model_version
    FROM link l JOIN url s ON s.id = l.source JOIN url t ON t.id = l.target;

CREATE VIEW frontier AS
    SELECT u.url, h.name AS host, u.score,
           CASE u.state WHEN 0 THEN 'queued' WHEN 1 THEN 'fetched' WHEN 2 THEN 'excluded'
                        WHEN 3 THEN 'unfollowed' END AS state
    FROM url u JOIN host h ON h.id = u.host WHERE u.state <> 1;

CREATE VIEW revisits AS
    SELECT r.seq, u.url, r.status, r.relevance, r.fetched_at, r.size AS bytes, r.links, r.error
    FROM revisit r JOIN url u ON u.id = r.url WHERE r.seq IS NOT NULL;
"""
#: script of the schema; SQLite saves the statements in each store, so the comments are removed
SCHEMA = re.sub(r" *--.*", "", _SCRIPT)


class NewUrl(NamedTuple):
    """A URL that was found for the first time; ids are counted from 0 in the order found."""

    id: int
    url: str
    host: int
    depth: int
    referrer: int | None
    score: float | None
    state: int


class LinkRow(NamedTuple):
    """A link of a page, as stored in the table ``link``."""

    id: int
    source: int
    target: int
    anchor: str
    dom_position: int
    score: float | None
    model_version: int


class PageRow(NamedTuple):
    """A fetch; the fields are the columns of the table ``page``."""

    seq: int
    url: int
    status: int
    relevance: float
    topic: str | None
    score: float | None
    fetched_at: str
    content_type: str | None
    size: int
    title: str | None = None
    canonical: str | None = None
    digest: bytes | None = None
    duplicate_of: int | None = None
    error: str | None = None
    links: int = 0
    dropped: int = 0


class AnswerRow(NamedTuple):
    """The data of a page that a later crawl reuses, as stored in the table ``answer``."""

    content: bytes
    headings: str
    etag: str | None
    last_modified: str | None


class RevisitRow(NamedTuple):
    """A planned or finished repeated fetch, as stored in the table ``revisit``."""

    id: int
    url: int
    asked_at: int
    etag: str | None
    last_modified: str | None
    seq: int | None = None
    status: int | None = None
    relevance: float | None = None
    fetched_at: str | None = None
    size: int = 0
    error: str | None = None
    links: int = 0
    first_link: int | None = None
    memo: bytes | None = None


class ModelRow(NamedTuple):
    """A training of the strategy; the fields are the columns of the table ``models``."""

    version: int
    trained_at_seq: int
    instances: int
    metrics: str
    state: bytes | None


@dataclass(slots=True)
class VisitRecord:
    """All changes of the store caused by one fetch, which are written in one transaction.

    Attributes
    ----------
    page : PageRow or None
        The fetch; None if only URLs change (seeds, exclusions).
    hosts : list of (int, str)
        Id and name of new hosts.
    urls : list of NewUrl
    links : list of LinkRow
    changes : list of (int, float or None, int)
        Id, score and state of known URLs whose score or state changed.
    memo : bytes or None
        Bytes of the strategy about the page's links.
    answer : AnswerRow or None
    model : ModelRow or None
    revisits : list of RevisitRow
        A row replaces an earlier row with the same id.
    events : list of (int, str, str)
        Number of fetched pages, kind, and detail of each event.
    """

    page: PageRow | None = None
    hosts: list[tuple[int, str]] = field(default_factory=list)
    urls: list[NewUrl] = field(default_factory=list)
    links: list[LinkRow] = field(default_factory=list)
    changes: list[tuple[int, float | None, int]] = field(default_factory=list)
    memo: bytes | None = None
    answer: AnswerRow | None = None
    model: ModelRow | None = None
    revisits: list[RevisitRow] = field(default_factory=list)
    events: list[tuple[int, str, str]] = field(default_factory=list)


#: INSERT statement of each table, with values in the order of the records above
INSERT = {
    table: f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    for table, columns in {
        "host": ("id", "name"),
        "url": NewUrl._fields,
        "page": PageRow._fields,
        "link": LinkRow._fields,
        "memo": ("seq", "data"),
        "answer": ("seq", *AnswerRow._fields),
        "revisit": RevisitRow._fields,
        "models": ModelRow._fields,
        "events": ("at", "seq", "kind", "detail"),
        "meta": ("key", "value"),
    }.items()
}


class Column(NamedTuple):
    """A column of a table; `is_indexed` is True if the column has an index."""

    table: str
    name: str
    type: str
    nullable: bool
    is_indexed: bool


class Layout(NamedTuple):
    """The columns of each table and the SQL statement of each view of the store."""

    tables: dict[str, list[Column]]
    views: dict[str, str]


@cache
def layout() -> Layout:
    """Return the tables and views that SQLite creates from `SCHEMA`."""
    with memory_database(SCHEMA) as empty:
        tables: dict[str, list[Column]] = {}
        for row in empty.execute(_COLUMNS):
            tables.setdefault(row[0], []).append(Column(*row))
        views = empty.execute("SELECT name, sql FROM sqlite_master WHERE type = 'view'")
        return Layout(tables, dict(views))


_COLUMNS = """
SELECT t.name, c.name, c.type, NOT c."notnull",
       c.pk OR c.name IN (SELECT of.name FROM pragma_index_list(t.name) i
                          JOIN pragma_index_info(i.name) of)
FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'
"""
