"""An apprentice that is not alone: others crawl beside it, and one of them trains for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.instances import bags
from focuscrawl.apprentice.model import ApprenticeModel
from focuscrawl.apprentice.pool import Judgements, Pool, learner_of
from focuscrawl.apprentice.rescoring import teach
from focuscrawl.apprentice.serialization import pack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.apprentice.lesson import Taught
    from focuscrawl.apprentice.page_facts import PageFacts


class DistributedApprentice(Apprentice):
    """An `Apprentice` that can hand in what it has judged, and take up what others made of it."""

    _handed = 0  # URLs judged when it last handed in

    def expand_all(
        self, pages: Sequence[tuple[int, PageFacts]]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Take in links of pages that others fetched; all URLs are scored once, at the end.

        Parameters
        ----------
        pages : URL and facts of each, at least one

        Returns
        -------
        The distinct targets and their scores: int64 (m,), float64 (m,)
        """
        with self._lock:
            first = min([self._add(url, facts) for url, facts in pages])
            urls = np.unique(np.concatenate([facts.targets for _, facts in pages]))
            if not len(urls):
                return urls, np.zeros(0)
            self._model.add_links(self._standing, self.known, first)
            scores = self._scores(urls, self._inputs_of(urls))
            self._keep(urls, scores)
            return urls, scores

    def hear(self, url: int, relevance: float) -> None:
        """Take note of what came of a fetch by somebody else, who will learn from it."""
        with self._lock:
            self.known.grow(url + 1)
            if not np.isnan(self.known.y.data[url]):
                return  # known from the links on its page
            self.values.observe(url, relevance)
            if self.known.has_keys(url):
                self._note(url, self.known.keys(np.array([url]))[0], relevance)

    def hand_in(self) -> Judgements | None:
        """Return what was judged since the last call; None if nothing was.

        May run in another thread, but not beside `take_up`, or between it and `adopt`.
        """
        with self._lock:
            new = min(self._judged.ever - self._handed, len(self._judged))
            self._handed = self._judged.ever
            urls, inputs = self._judged.urls, self._judged.inputs
            predicted, n_links = self._judged.predicted, len(self.known)
            own, window = self.values.of(urls, self.known.y.data[urls])
        if not new:
            return None
        fresh = slice(len(urls) - new, None)
        instances, owner = bags(
            self.known,
            n_links,
            urls[fresh],
            inputs[fresh],
            unit_length=self._model.learner.unit_length,
            each_link=self.options.evidence == "first",
        )
        return Judgements(
            indices=instances.rows.indices,
            lengths=instances.rows.lengths.astype(np.int32),
            values=instances.values.astype(np.float32),
            dense=instances.dense,
            owner=owner.astype(np.int32),
            y=own[fresh],
            predicted=predicted[fresh],
            window=window,
        )

    def train(self, pool: Pool) -> tuple[bytes, int, dict[str, float]]:
        """Learn for all from what all have judged; changes nothing here, see `take_up`.

        Returns
        -------
        The learner, packed; instances; metrics
        """
        learner, instances, metrics = pool.fit(self._model.learner)
        return pack(learner), instances, metrics

    def take_up(self, version: int, state: bytes) -> Taught:
        """Work out what a learner of another apprentice says of all that waits here.

        May run in another thread; nothing changes until `adopt`.

        Parameters
        ----------
        version : of the model
        state : as `train` returned it
        """
        self._prepare()
        at, self._prepared = self._prepared, None
        assert at is not None
        model = ApprenticeModel(learner_of(state, self.options), self.options)
        return teach(at, self.known, self._fetched, model, version=version, instances=0, state=b"")
