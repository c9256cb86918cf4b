"""All that an apprentice has seen of a crawl: links, outcomes of fetches, what they were worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.dense_inputs import input_names
from focuscrawl.apprentice.evidence import FetchOutcomes
from focuscrawl.apprentice.labels import Labels
from focuscrawl.apprentice.link_table import LinkTable
from focuscrawl.apprentice.training_buffer import TrainingBuffer
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.options import Options
    from focuscrawl.apprentice.page_facts import PageFacts
    from focuscrawl.apprentice.training_buffer import JudgedUrls


class Snapshot(NamedTuple):
    """What a lesson is about: all that was known when it began. Nothing in it changes.

    Attributes
    ----------
    observed : fetches
    links, pages : known links and pages
    links_ever, pages_ever : the same, those forgotten included
    new : URLs judged since the last lesson
    judged_ever : URLs ever judged
    y : float64 by URL, R(v), NaN where it was not fetched
    judged : those of the training buffer
    own, value : their labels, see `Labels.of`
    score : float64 by URL, as last given out
    """

    observed: int
    links: int
    pages: int
    links_ever: int
    pages_ever: int
    new: int
    judged_ever: int
    y: Floats
    judged: JudgedUrls
    own: Floats
    value: Floats
    score: Floats


class CrawlMemory:
    """Takes in fetches and pages; while a lesson is under way, outcomes are deferred.

    Attributes
    ----------
    table : links and URLs
    outcomes : rates of relevance by path prefix and URL pattern
    labels : what fetches were worth
    buffer : URLs that were judged, with the inputs they had before
    score : float64 by URL, as last given out
    observed : fetches
    """

    def __init__(self, options: Options) -> None:
        self.table = LinkTable()
        self.outcomes = FetchOutcomes()
        self.labels = Labels(options)
        self.buffer = TrainingBuffer(options.memory, len(input_names(options)))
        self.score = GrowingArray(np.float64)
        self.observed = 0
        self.learned_from = 0  # URLs ever judged when the last lesson began
        self._deferred: list[tuple[int, NDArray[np.uint32] | None, float]] | None = None

    @property
    def deferring(self) -> bool:
        """True while outcomes are deferred."""
        return self._deferred is not None

    def observe(self, url: int, relevance: float) -> None:
        """Take in a fetch."""
        self.labels.observe(url, relevance)
        self._note(url, self._keys(url), relevance)
        self.observed += 1

    def fetched_before(self, url: int, relevance: float) -> None:
        """Take in a fetch of an earlier round, if its URL has links here."""
        self.table.grow(url + 1)
        if not np.isnan(self.table.y.data[url]):
            return  # known from the links on its page
        self.labels.observe(url, relevance)
        keys = self._keys(url)
        if keys is not None:
            self._note(url, keys, relevance)

    def add(self, url: int, facts: PageFacts, *, forget: bool = False) -> int:
        """Take in the page of a URL; return the number of its first link.

        Parameters
        ----------
        forget : keep nothing of its links
        """
        is_new = self._keys(url) is None
        first = len(self.table)
        self.table.add(url, facts, forget=forget)
        self.labels.found(url, facts.new, self.table.n_urls)
        if is_new:  # a seed: nothing was known of its address when it was observed
            self._note(url, facts.own_keys[0], float(facts.relevance[0]))
        return first

    def keep_scores(self, urls: Ints, scores: Floats) -> None:
        """Note the scores that are given out."""
        self.score.grow(self.table.n_urls)
        self.score.data[urls] = scores

    def defer(self) -> None:
        """Defer outcomes from now on: the lesson is about what was known when it began."""
        self._deferred = []

    def take_in_deferred(self) -> None:
        """Take in what was deferred."""
        deferred, self._deferred = self._deferred, None
        for each in deferred or ():
            self._note(*each)

    def snapshot(self) -> Snapshot:
        """Return what is known now, for a lesson about it."""
        table, buffer = self.table, self.buffer
        y = table.y.data[: table.n_urls]
        judged = buffer.judged
        own, value = self.labels.of(judged.urls, y[judged.urls])
        new, self.learned_from = buffer.ever - self.learned_from, buffer.ever
        return Snapshot(
            observed=self.observed,
            links=len(table),
            pages=len(table.pages),
            links_ever=table.links_ever,
            pages_ever=table.pages_ever,
            new=new,
            judged_ever=buffer.ever,
            y=y,
            judged=judged,
            own=own,
            value=value,
            score=self.score.data.copy(),
        )

    def _keys(self, url: int) -> NDArray[np.uint32] | None:
        return self.table.keys(np.array([url]))[0] if self.table.has_keys(url) else None

    def _note(self, url: int, keys: NDArray[np.uint32] | None, relevance: float) -> None:
        if self._deferred is not None:
            self._deferred.append((url, keys, relevance))
            return
        self.table.y.data[url] = relevance
        if keys is not None:
            self.outcomes.observe(keys, relevance)
