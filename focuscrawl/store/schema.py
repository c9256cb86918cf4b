"""Tables and views of the crawl store.

URLs and hosts are numbered, so that a link is three small integers and a text. The views are
what people, notebooks and other programs read; the tables behind them may change.
"""

from __future__ import annotations

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
