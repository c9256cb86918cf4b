"""What reaches a worker from the store, read in a thread of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from focuscrawl.crawl.part import HeardFetch
from focuscrawl.store.history import DIGEST
from focuscrawl.store.schema import FETCHED, UNFOLLOWED, models, page, url
from focuscrawl.store.worker_tables import evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray
    from sqlalchemy import Connection, Row

    from focuscrawl.workers.url_ids import SharedUrlTable

_CHUNK = 20_000  # numbers in one question


class StoredUrl(NamedTuple):
    """A URL as the store has it."""

    id: int
    url: str
    depth: int
    score: float | None
    state: int


class Links(NamedTuple):
    """A row of the table ``evidence``."""

    shard: int
    source: int | None
    relevance: float
    targets: list[int]
    scores: NDArray[np.float64]
    memo: bytes | None

    @property
    def names_only(self) -> bool:
        """True where nothing is said of the URLs but that they come next."""
        return self.memo is None and bool(np.isposinf(self.scores).all())

    @classmethod
    def of(cls, row: Row[Any]) -> Links:
        """Read a row."""
        return cls(
            row.shard,
            row.source,
            row.relevance,
            np.frombuffer(row.targets, "<i8").tolist(),
            np.frombuffer(row.scores, "<f8"),
            row.memo,
        )


class PublishedModel(NamedTuple):
    """A model that a worker has trained for all, and the number of fetches when that began."""

    version: int
    state: bytes
    trained_at: int


@dataclass(slots=True)
class Outcome(HeardFetch):
    """A page that another worker fetched, and which it is.

    Attributes
    ----------
    id : of the URL in the store; its `number` here is not known yet
    digest : of its body; None for a duplicate and for no page
    new : False where it is told once more, with the shard that it is of
    """

    id: int
    digest: bytes | None
    canonical: str | None
    new: bool


@dataclass(slots=True)
class Delivery:
    """What came at once; to be taken in in this order.

    Attributes
    ----------
    named : URLs that are not known here, and occur below
    links : what links say, in the order of their pages
    outcomes : what other workers fetched
    taken : shards that belong to this worker from now on
    theirs : what the store says of the URLs of these that are not waiting to be found by links
    posted : evidence up to this has been read
    """

    named: list[StoredUrl] = field(default_factory=list)
    links: list[Links] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    theirs: list[StoredUrl] = field(default_factory=list)
    posted: int = 0


class InboxReader:
    """Reads what is new for a worker, each thing once.

    Parameters
    ----------
    urls : asked which URLs are known, from this thread
    me : number of the worker
    """

    def __init__(self, urls: SharedUrlTable, me: int) -> None:
        self._urls = urls
        self._me = me
        self._posted = 0  # evidence read of all shards held
        self._seen: dict[int, int] = {}  # of shards that were held once
        self._seq = 0  # pages heard of

    def read(
        self,
        connection: Connection,
        held: Sequence[int],
        taken: Sequence[int],
        posted: int,
        fetched: int,
    ) -> Delivery:
        """Read what came since the last call.

        Parameters
        ----------
        held : shards whose evidence has been followed since they were taken
        taken : new ones
        posted, fetched : evidence and pages that are there; later ones are left for the next call
        """
        delivery = Delivery(taken=list(taken), posted=posted)
        if posted > self._posted and held:
            self._evidence(connection, held, self._posted, posted, delivery)
        for shard in taken:
            self._evidence(connection, [shard], self._seen.get(shard, 0), posted, delivery)
        if taken:
            self._load(connection, taken, delivery)
        if fetched > self._seq:
            self._outcomes(connection, fetched, delivery)
        self._name(connection, delivery)
        self._posted, self._seq = posted, fetched  # now that nothing can fail any more
        return delivery

    def released(self, shards: Iterable[int]) -> None:
        """Remember how far the evidence on shards was read that are given away."""
        self._seen.update(dict.fromkeys(shards, self._posted))

    def model(self, connection: Connection, known: int) -> PublishedModel | None:
        """Return the latest model if its version is later than `known`."""
        m = models.c
        later = sa.select(m.version, m.state, m.trained_at_seq).where(m.version > known)
        row = connection.execute(later.order_by(m.version.desc()).limit(1)).first()
        return None if row is None or row.state is None else PublishedModel(*row)

    def _evidence(
        self, connection: Connection, shards: Sequence[int], after: int, upto: int, into: Delivery
    ) -> None:
        """Read what came on shards after one transaction, up to another."""
        e, held = evidence.c, sa.cast(list(shards), sa.ARRAY(sa.SmallInteger))
        rows = connection.execute(
            sa.select(evidence)
            .where(e.shard == sa.any_(held), e.id > after, e.id <= upto, e.applied_by != self._me)
            .order_by(e.id)
        )
        into.links.extend(map(Links.of, rows))

    def _load(self, connection: Connection, taken: Sequence[int], into: Delivery) -> None:
        """Read the URLs of shards, and what came of those that were fetched."""
        of_shards = (url.c.host % self._urls.shards).in_(list(taken))
        fetched = connection.execute(_OUTCOMES.where(of_shards).order_by(page.c.seq))
        outcomes = [_outcome(row, new=False) for row in fetched]
        into.outcomes.extend(outcomes)
        done = {outcome.id for outcome in outcomes}
        rows = connection.execute(sa.select(*_KNOWN).where(of_shards, url.c.state != UNFOLLOWED))
        for known in map(StoredUrl._make, rows):
            # workers once left some as queued that they had fetched
            into.theirs.append(known._replace(state=FETCHED) if known.id in done else known)

    def _outcomes(self, connection: Connection, fetched: int, into: Delivery) -> None:
        """Read what others fetched."""
        rows = connection.execute(
            _OUTCOMES.where(page.c.seq > self._seq, page.c.seq <= fetched)
            .where(page.c.worker.is_distinct_from(self._me))
            .order_by(page.c.seq)
        )
        into.outcomes.extend(_outcome(row, new=True) for row in rows)

    def _name(self, connection: Connection, into: Delivery) -> None:
        """Read the URLs that nobody here has met."""
        wanted = {target for links in into.links for target in links.targets}
        wanted.update(links.source for links in into.links if links.source is not None)
        unknown = [each for each in wanted if self._urls.number(each) is None]
        for start in range(0, len(unknown), _CHUNK):
            some = sa.cast(unknown[start : start + _CHUNK], sa.ARRAY(sa.BigInteger))
            rows = connection.execute(sa.select(*_KNOWN).where(url.c.id == sa.any_(some)))
            into.named.extend(map(StoredUrl._make, rows))


_KNOWN = (url.c.id, url.c.url, url.c.depth, url.c.score, url.c.state)
_referrer = url.alias("referrer")
_OUTCOMES = (
    sa.select(
        url.c.url,
        url.c.id,
        page.c.relevance,
        page.c.digest,
        page.c.canonical,
        page.c.duplicate_of,
        _referrer.c.url.label("found_on"),
    )
    .join(page, page.c.url == url.c.id)
    .outerjoin(_referrer, _referrer.c.id == url.c.referrer)
)


def _outcome(row: Any, *, new: bool) -> Outcome:
    repeats = row.duplicate_of is not None
    digest = None if repeats else row.digest
    return Outcome(
        number=-1,
        url=row.url,
        id=row.id,
        relevance=row.relevance,
        digest=None if digest is None else digest[:DIGEST],
        minhash=b"" if digest is None else digest[DIGEST:],
        canonical=row.canonical,
        referrer=row.found_on,
        repeats=repeats,
        new=new,
    )
