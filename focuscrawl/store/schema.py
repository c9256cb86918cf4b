"""Tables and views of the crawl store, and the records that the crawl hands to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import (
    DDL,
    Column,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    event,
)


class NewUrl(NamedTuple):
    """A URL seen for the first time; ids are dense from 0 in order of discovery."""

    id: int
    url: str
    host: int
    depth: int
    referrer: int | None
    score: float | None
    state: int


class LinkRow(NamedTuple):
    """One link of a page, to a URL that entered the store."""

    id: int
    source: int
    target: int
    anchor: str
    dom_position: int
    score: float | None
    model_version: int


@dataclass(frozen=True, slots=True)
class PageRow:
    """One fetch; columns as in `focuscrawl.store.schema.page`."""

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


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """What the next crawl wants to know of a page; columns as in the table ``answer``."""

    content: bytes
    headings: str
    etag: str | None
    last_modified: str | None


@dataclass(frozen=True, slots=True)
class RevisitRow:
    """A page to be fetched once more, or that was; columns as in the table ``revisit``."""

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


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One lesson; columns as in `focuscrawl.store.schema.models`."""

    version: int
    trained_at_seq: int
    instances: int
    metrics: str
    state: bytes


@dataclass(slots=True)
class VisitRecord:
    """All that one fetch changes; written in one transaction or not at all.

    Attributes
    ----------
    page : the fetch itself; None where only URLs change (seeds, exclusions)
    hosts : (id, name) of hosts seen for the first time
    urls : URLs seen for the first time
    links : the page's links to URLs of the store
    changes : (url id, score, state) of known URLs of which one of these changed
    memo : what the strategy wants back of the page's links
    answer : what the next crawl wants to know of the page
    model : a lesson
    revisits : pages to be fetched once more, or that were; a row takes the place of an earlier one
    events : (seq, kind, detail)
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


# Tables and views of the crawl store.
#
# URLs and hosts are numbered, so that a link is three small integers and a text. The views are
# what people, notebooks and other programs read; the tables behind them may change.

#: raised by one with every change of the tables; stores of another version are refused
SCHEMA_VERSION = 4

QUEUED, FETCHED, EXCLUDED, UNFOLLOWED = range(4)
#: what becomes of a URL: waits in the frontier; has a row in `pages`; will never be fetched
#: (robots.txt, an alias of a page already here); known, but the strategy follows no link to it
STATES = ("queued", "fetched", "excluded", "unfollowed")

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

host = Table(
    "host",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False, unique=True),
)

url = Table(
    "url",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("url", Text, nullable=False, unique=True),
    Column("host", Integer, ForeignKey("host.id"), nullable=False),
    Column("depth", Integer, nullable=False),
    Column("referrer", Integer, ForeignKey("url.id")),
    Column("score", Float, doc="NULL for a seed, which comes before every link"),
    Column("state", SmallInteger, nullable=False),
)

page = Table(
    "page",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("url", Integer, ForeignKey("url.id"), nullable=False, unique=True),
    Column("status", Integer, nullable=False, doc="HTTP status; 0 where none was received"),
    Column("relevance", Float, nullable=False),
    Column("topic", Text, doc="the critic's most probable class"),
    Column("score", Float, doc="score it left the frontier with; NULL for a seed"),
    Column("fetched_at", Text, nullable=False, doc="UTC, ISO 8601"),
    Column("content_type", Text),
    Column("size", Integer, nullable=False, doc="bytes received"),
    Column("title", Text),
    Column("canonical", Text, doc="URL the page names as its canonical one"),
    Column("digest", LargeBinary, doc="of the body of an HTML page, 16 bytes; then its sketch"),
    Column("duplicate_of", Integer, ForeignKey("url.id")),
    Column("error", Text, doc="why there is no status, or no judgement"),
    Column("links", Integer, nullable=False, doc="links on the page"),
    Column("dropped", Integer, nullable=False, doc="of these, left out before the frontier"),
)

link = Table(
    "link",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("source", Integer, ForeignKey("url.id"), nullable=False),
    Column("target", Integer, ForeignKey("url.id"), nullable=False, index=True),
    Column("anchor", Text, nullable=False),
    Column("dom_position", Integer, nullable=False, doc="first DOM leaf of the link"),
    Column("score", Float, doc="NULL: the strategy does not follow it"),
    Column("model_version", Integer, nullable=False),
)

answer = Table(
    "answer",
    metadata,
    Column("seq", Integer, ForeignKey("page.seq"), primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False, doc="digest of the page's text"),
    Column("headings", Text, doc="one a line"),
    Column("etag", Text),
    Column("last_modified", Text),
)

memo = Table(
    "memo",
    metadata,
    Column("seq", Integer, ForeignKey("page.seq"), primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False, doc="the strategy's own, of the page's links"),
)

revisit = Table(
    "revisit",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("url", Integer, ForeignKey("url.id"), nullable=False, index=True),
    Column("asked_at", Integer, nullable=False, doc="pages fetched when it was decided on"),
    Column("seq", Integer, doc="pages fetched when it was over; NULL while it waits"),
    Column("status", Integer, doc="HTTP status; 0 where none was received; NULL: not asked for"),
    Column("relevance", Float, doc="NULL where nothing new was there to be judged"),
    Column("fetched_at", Text, doc="UTC, ISO 8601"),
    Column("size", Integer, nullable=False, doc="bytes received"),
    Column("error", Text, doc="why there is no status, or no page"),
    Column("etag", Text, doc="what the page is, or was, asked for by; as in `answer`"),
    Column("last_modified", Text),
    Column("links", Integer, nullable=False, doc="links that the page did not have before"),
    Column("first_link", Integer, doc="id of the first of them in `link`, the others follow"),
    Column("memo", LargeBinary, doc="the strategy's own, of these links"),
)

models = Table(
    "models",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("trained_at_seq", Integer, nullable=False),
    Column("instances", Integer, nullable=False),
    Column("metrics", Text, nullable=False, doc="JSON"),
    Column("state", LargeBinary, doc="the strategy's own; kept of the last model only"),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Text, nullable=False, doc="UTC, ISO 8601"),
    Column("seq", Integer, nullable=False, doc="pages fetched when it happened"),
    Column("kind", Text, nullable=False),
    Column("detail", Text, nullable=False),
)

_STATE_NAME = " ".join(f"WHEN {code} THEN '{name}'" for code, name in enumerate(STATES))

#: what the views of this name select
VIEWS = {
    "pages": """
        SELECT p.seq, u.url, p.status, p.relevance, p.topic, u.depth, p.score,
               r.url AS referrer, p.fetched_at, p.content_type, p.size AS bytes,
               p.title, d.url AS duplicate_of, p.error, p.links, p.dropped
        FROM page p JOIN url u ON u.id = p.url
        LEFT JOIN url r ON r.id = u.referrer
        LEFT JOIN url d ON d.id = p.duplicate_of""",
    "links": """
        SELECT s.url AS source, t.url AS target, l.anchor, l.dom_position, l.score,
               l.model_version
        FROM link l JOIN url s ON s.id = l.source JOIN url t ON t.id = l.target""",
    "frontier": f"""
        SELECT u.url, h.name AS host, u.score, CASE u.state {_STATE_NAME} END AS state
        FROM url u JOIN host h ON h.id = u.host WHERE u.state <> {FETCHED}""",
    "revisits": """
        SELECT r.seq, u.url, r.status, r.relevance, r.fetched_at, r.size AS bytes, r.links, r.error
        FROM revisit r JOIN url u ON u.id = r.url WHERE r.seq IS NOT NULL""",
}
for _name, _select in VIEWS.items():
    event.listen(metadata, "after_create", DDL(f"CREATE VIEW {_name} AS {_select}"))  # type: ignore[no-untyped-call]
