"""Tables that several workers on one crawl need besides those of every crawl.

They are made in PostgreSQL only. `docs/workers.md` says what each is for.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    false,
)

ALIVE, LEFT, LOST = "alive", "left", "lost"

metadata = MetaData()

#: one row: what all workers count together
crawl = Table(
    "crawl",
    metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("fetched", Integer, nullable=False, doc="pages recorded"),
    Column("granted", Integer, nullable=False, doc="recorded, or allowed to a worker"),
    Column("posted", BigInteger, nullable=False, doc="rows ever put into `evidence`"),
    Column("handed_in", BigInteger, nullable=False, doc="rows ever put into `instances`"),
    Column("relevance", Float, nullable=False, doc="sum over the pages"),
    Column("last_relevant", Integer, nullable=False, doc="seq of the last relevant page"),
    Column("trainer", Integer, doc="the worker that trains"),
    Column("paused", Boolean, nullable=False, server_default=false(), doc="a person wants it"),
)

worker = Table(
    "worker",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, doc="machine and process"),
    Column("state", Text, nullable=False, doc="alive, left or lost"),
    Column("joined_at", DateTime(timezone=True), nullable=False),
    Column("renewed_at", DateTime(timezone=True), nullable=False),
    Column("expires", DateTime(timezone=True), nullable=False, doc="end of its leases"),
    Column("batch", BigInteger, nullable=False, doc="transactions of its writer"),
    Column("outstanding", Integer, nullable=False, doc="fetches allowed and not recorded"),
    Column("fetched", Integer, nullable=False, doc="pages it recorded"),
    Column("pace", Float, nullable=False, doc="pages a second, of late"),
    Column("offers", LargeBinary, nullable=False, doc="float64, its best scores, descending"),
    Column("queued", Integer, nullable=False, doc="URLs that wait"),
    Column(
        "idle_at",
        BigInteger,
        doc="`crawl.posted` up to which it has nothing to do; -1 - posted: but what is deferred",
    ),
    Column("model_version", Integer, nullable=False),
    Column("budget", Integer, doc="of the crawl, as it was told; NULL: it knew no such column"),
    Column("taken_in", BigInteger, doc="`crawl.posted` up to which it has; NULL: it is loading"),
    Column("in_flight", Integer, nullable=False, server_default="0", doc="requests under way"),
    Column("paused", Boolean, nullable=False, server_default=false(), doc="it fetches nothing"),
    Column("stop", Boolean, nullable=False, server_default=false(), doc="a person wants it to"),
)

#: every host belongs to one shard, every shard to one worker at a time
shard = Table(
    "shard",
    metadata,
    Column("number", SmallInteger, primary_key=True, autoincrement=False),
    Column("owner", Integer, doc="worker; NULL: nobody"),
)

#: who held which shard when
lease = Table(
    "lease",
    metadata,
    Column("shard", SmallInteger, primary_key=True, autoincrement=False),
    Column("taken_at", DateTime(timezone=True), primary_key=True),
    Column("worker", Integer, nullable=False),
    Column("released_at", DateTime(timezone=True)),
)

#: what the links of a page say of URLs of one shard; in the order of its transactions
evidence = Table(
    "evidence",
    metadata,
    Column("shard", SmallInteger, primary_key=True, autoincrement=False),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("applied_by", Integer, nullable=False, doc="worker that knows it already; 0: none"),
    Column("source", BigInteger, doc="page; NULL for start URLs"),
    Column("relevance", Float, nullable=False, doc="of the page"),
    Column("targets", LargeBinary, nullable=False, doc="int64 (n,), URLs"),
    Column("scores", LargeBinary, nullable=False, doc="float64 (n,), of the links; inf: next"),
    Column("memo", LargeBinary, doc="the strategy's own, of these links"),
)

#: what workers give the one that trains
instances = Table(
    "instances",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("worker", Integer, nullable=False),
    Column("count", Integer, nullable=False, doc="URLs learned from that are new in it"),
    Column("data", LargeBinary, nullable=False, doc="the strategy's own"),
)
