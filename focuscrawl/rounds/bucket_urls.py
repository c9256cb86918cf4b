"""The URLs of a bucket: all that are known, and what a round changes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from focuscrawl.foundation.urls import host, identity
from focuscrawl.rounds.tables import URL, last_rows
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.rounds.tables import Tables


_REFERRER = URL.get_field_index("referrer")
#: rows as they are held: many have one referrer, whose text is read once
_HELD = URL.set(_REFERRER, pa.field("referrer", pa.dictionary(pa.int32(), pa.string())))


def bucket_of(url: str, buckets: int) -> int:
    """Return the bucket that a URL's host belongs to."""
    return identity(host(url)) % buckets


class BucketUrls:
    """The URLs of a bucket in columns, as they are after some round.

    Attributes
    ----------
    ids : int64 (n,), ascending
    score, state, found, relevance : float64, int8, int64, float64 (n,), see `URL`
    """

    def __init__(self, tables: Tables, bucket: int, until: int) -> None:
        names = tables.of_bucket("urls", bucket, until)
        parts = [tables.read(name, dictionaries=["referrer"]) for name in names]
        # rows stay as they were read, old ones of a URL, too: to move texts takes long
        self._rows = pa.concat_tables([_HELD.empty_table(), *parts])
        self.ids, self._row = last_rows(self._rows["id"].to_numpy())
        self.score: Floats = self._rows["score"].to_numpy()[self._row]
        self.state: Ints = self._rows["state"].to_numpy()[self._row]
        self.found: Ints = self._rows["found"].to_numpy()[self._row]
        self.relevance: Floats = self._rows["relevance"].to_numpy()[self._row]
        self._changed: Bools = np.zeros(len(self.ids), bool)

    def __len__(self) -> int:
        return len(self.ids)

    def places(self, ids: Ints) -> Ints:
        """Return the places of known URLs, int64 (n,)."""
        return np.searchsorted(self.ids, ids)

    def known(self, ids: Ints) -> Bools:
        """Tell which URLs are known, bool (n,)."""
        at = np.minimum(self.places(ids), max(len(self.ids) - 1, 0))
        return self.ids[at] == ids if len(self.ids) else np.zeros(len(ids), bool)

    def knows(self, url: str) -> bool:
        """Tell whether a URL is known."""
        return bool(self.known(np.array([identity(url)], np.int64))[0])

    def rows(self, places: Ints) -> pa.Table:
        """Return rows as they are now, see `URL`."""
        rows = self._rows.take(pa.array(self._row[places]))
        for name, values in (
            ("score", pa.array(self.score[places])),
            ("state", pa.array(self.state[places])),
            ("relevance", pa.array(self.relevance[places], from_pandas=True)),
        ):
            rows = rows.set_column(rows.column_names.index(name), name, values)
        return rows.cast(URL)

    def urls(self, places: Ints) -> list[str]:
        """Return the URLs themselves."""
        urls: list[str] = self._rows["url"].take(pa.array(self._row[places])).to_pylist()
        return urls

    # -- what a round changes --------------------------------------------------------------

    def take_names(self, names: pa.Table) -> None:
        """Take in URLs that pages link to; those that come first wait from now on."""
        names = names.sort_by("found")
        ids, first_row = np.unique(names["id"].to_numpy(), return_index=True)
        new = ~self.known(ids)
        rows = names.take(pa.array(first_row[new])).drop_columns(["first"])
        n = len(rows)
        for name, values in (
            ("score", pa.array(np.full(n, np.nan))),
            ("state", pa.array(np.full(n, UNFOLLOWED, np.int8))),
            ("relevance", pa.nulls(n, pa.float64())),
        ):
            rows = rows.append_column(name, values)
        self._extend(rows.select(URL.names).cast(URL))
        first = np.unique(names["id"].to_numpy()[names["first"].to_numpy(zero_copy_only=False)])
        at = self.places(first)
        at = at[np.isin(self.state[at], (UNFOLLOWED, QUEUED))]
        self.score[at], self.state[at], self._changed[at] = np.inf, QUEUED, True

    def _extend(self, rows: pa.Table) -> None:
        ids = np.concatenate([self.ids, rows["id"].to_numpy()])
        order = np.argsort(ids, kind="stable")
        row = np.concatenate([self._row, len(self._rows) + np.arange(len(rows))])
        referrers = rows["referrer"].dictionary_encode()
        self._rows, self._row, self.ids = (
            pa.concat_tables([self._rows, rows.set_column(_REFERRER, "referrer", referrers)]),
            row[order],
            ids[order],
        )
        for name in ("score", "state", "found", "relevance"):
            grown = np.concatenate([getattr(self, name), rows[name].to_numpy()])
            setattr(self, name, grown[order])
        self._changed = np.concatenate([self._changed, np.ones(len(rows), bool)])[order]

    def take_fetched(self, pages: pa.Table, excluded: Iterable[int]) -> None:
        """Take in what was fetched, what may not be, and other names of what was."""
        at = self.places(pages["id"].to_numpy())
        self.state[at], self.relevance[at] = FETCHED, pages["relevance"].to_numpy()
        self._changed[at] = True
        names = pages["names"].combine_chunks().flatten().to_numpy()
        gone = np.concatenate([np.array([*excluded], np.int64), names])
        gone = self.places(gone[self.known(gone)])
        gone = gone[self.state[gone] != FETCHED]
        self.state[gone], self._changed[gone] = EXCLUDED, True

    def take_scores(self, ids: Ints, scores: Floats) -> None:
        """Take in new scores; what was not followed and now is waits."""
        at = self.places(ids)
        keep = np.isin(self.state[at], (UNFOLLOWED, QUEUED)) & ~np.isposinf(self.score[at])
        at, scores = at[keep], scores[keep]
        self._changed[at] |= self.score[at] != scores
        self.score[at] = scores
        self.state[at] = np.where(np.isfinite(scores), QUEUED, UNFOLLOWED)

    def waiting(self, most: int) -> Ints:
        """Return the places of the best that waits, best first; of two as good the first found."""
        at = np.flatnonzero(self.state == QUEUED)
        if most < len(at):  # to sort all would take longer than what is done with them
            at = at[self.score[at] >= -np.partition(-self.score[at], most - 1)[most - 1]]
        return at[np.lexsort([self.found[at], -self.score[at]])][:most]

    def changed(self) -> pa.Table:
        """Return the rows that the round has changed."""
        return self.rows(np.flatnonzero(self._changed))
