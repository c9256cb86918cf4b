"""The strategy ``apprentice``, which learns during the crawl which links to follow [A02]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.apprentice.apprentice import (
    Apprentice,
    TrainingPool,
    pack_judged_batch,
    read_apprentice,
)
from focuscrawl.apprentice.feature_extraction import FeatureExtractor
from focuscrawl.apprentice.learners import pack
from focuscrawl.apprentice.link_table import PageFeatures
from focuscrawl.apprentice.options import Options, with_options_signature
from focuscrawl.errors import UserError
from focuscrawl.foundation.arrays import pack_arrays, unpack_finite_arrays
from focuscrawl.strategies.base import Expansion, ModelUpdate, Strategy

if TYPE_CHECKING:
    from focuscrawl.apprentice.online_training import ApprenticeUpdate
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext


_FIRST = np.zeros(1, np.int64)
_LAG = 3  # fetches of a replay from the start of a training to the adoption of its model


class ApprenticeStrategy(Strategy):
    """Learn during the crawl which links lead to relevant pages.

    The score of a URL is its expected relevance, given all known links to the URL.

    The class `ApprenticeStrategy` connects `focuscrawl.apprentice.apprentice.Apprentice` to a
    crawl (methods.md 4 and 5).

    Parameters
    ----------
    begin_with : folder of a trained apprentice whose model, features and learner the crawl
        continues to train; by default the apprentice in the knowledge of the topic
    options : see `focuscrawl.apprentice.options.Options`
    """

    learns = True
    emits_instances = True
    expects_relevance = True
    in_rounds = True

    @with_options_signature
    def __init__(
        self, context: StrategyContext, *, begin_with: str | None = None, **options: Any
    ) -> None:
        checked = Options(**options)
        knowledge = context.knowledge
        exported = None if knowledge is None else knowledge.trained_apprentice
        if begin_with is not None:
            if not isinstance(begin_with, str):
                raise UserError(
                    f"strategy apprentice: begin_with must be a folder, not {begin_with!r:.80}"
                )
            exported = read_apprentice(Path(begin_with))
        self._apprentice = Apprentice.warm_started(checked, exported)
        self.lag = min(_LAG, checked.batch // 2)
        used = self._apprentice.options
        if used not in context.shared:  # the critic judges each word only once
            context.shared[used] = FeatureExtractor(context.critic, used)
        self._extractor: FeatureExtractor = context.shared[used]

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Record a fetch; a duplicate counts like any irrelevant fetch."""
        self._apprentice.observe(url, relevance)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and score each link target by all links to the target."""
        new = self._apprentice.is_new(page.targets)
        features = self._extractor.extract(
            page.view,
            page.links,
            page.targets,
            new=np.ones_like(new) if self.self_contained else new,
            relevance=page.relevance,
            probabilities=page.probabilities,
        )
        link_scores, urls, scores = self._apprentice.expand(page.url, features)
        return Expansion(link_scores, urls, _rounded(scores), memo=features.to_bytes())

    def score_at_request(self, url: int, score: float) -> float:
        """Return the URL's score by the present model; return `score` if no link to it is known.

        The score in the frontier may be older: it was computed when the last link to the URL was
        found, or after the last training.
        """
        present = self._apprentice.score(url)
        return score if present is None else present

    def restore_page(self, page: StoredPage) -> Scores:
        """Restore the links of a page from an earlier run of the crawl."""
        assert page.memo is not None
        features = PageFeatures.from_bytes(page.memo).with_targets(page.targets)
        _, urls, scores = self._apprentice.expand(page.url, features)
        return urls, _rounded(scores)

    def is_training_due(self) -> bool:
        """Return whether there are enough new fetches for the next training."""
        return self._apprentice.is_training_due()

    def learn(self) -> ModelUpdate:
        """Train a new model on links whose targets were fetched."""
        update = self._apprentice.learn()
        return _model_update(update, update.snapshot.observed)

    def adopt(self, update: ModelUpdate) -> Scores:
        """Replace the current model by the model of `update`."""
        self.model_version = update.version
        urls, scores = self._apprentice.adopt(update.model)
        update.state = self._apprentice.state(update.model)
        return urls, _rounded(scores)

    def load(self, state: bytes) -> int:
        """Load the last model that an earlier run of the crawl has stored."""
        adopted_at = self._apprentice.load(state)
        self.model_version = self._apprentice.version
        return adopted_at

    def rescore(self) -> Scores:
        """Return the scores of all unfetched URLs to which links are known."""
        urls, scores = self._apprentice.rescore()
        return urls, _rounded(scores)

    # -- in rounds ---------------------------------------------------------------------------

    def split_memos(
        self, memos: Sequence[bytes | None], parts: Sequence[Ints]
    ) -> Iterator[list[bytes | None]]:
        """Split the memos (stored features) of pages into one memo per part of their links."""
        features = PageFeatures.from_records([memo or b"" for memo in memos])
        part, page = np.concatenate(parts), features.page_of("targets")
        order = np.lexsort((part, page))
        part, page = part[order], page[order]
        is_first = (np.diff(part, prepend=-1) != 0) | (np.diff(page, prepend=-1) != 0)
        origin = page[is_first]
        packed = features.regroup(order, np.cumsum(is_first) - 1, origin).to_records()
        ends = origin.searchsorted(np.arange(len(memos)), side="right").tolist()
        return ([*packed[start:end]] for start, end in pairwise([0, *ends]))

    def make_self_contained(self, memo: bytes | None, urls: Sequence[str]) -> bytes:
        """Return a page's memo (stored features) with the features of all link targets added."""
        assert memo is not None
        return self._extractor.with_all_urls_new(PageFeatures.from_bytes(memo), urls).to_bytes()

    def join_memos(self, parts: Sequence[StoredPage]) -> bytes:
        """Join memos (stored features) of different links of one page to one memo."""
        features = _features_of(parts)
        n_links = len(features.targets)
        whole = features.regroup(np.arange(n_links), np.zeros(n_links, np.int64), _FIRST)
        return whole.to_bytes()

    def restore_pages(self, pages: Sequence[StoredPage]) -> Scores:
        """Add the links of pages that other buckets (groups of hosts) have fetched."""
        urls = np.array([page.url for page in pages], np.int64)
        first = np.flatnonzero(np.diff(urls, prepend=-1))
        features = _features_of(pages).merge(first)
        urls, scores = self._apprentice.expand_pages(urls[first], features)
        return urls, _rounded(scores)

    def observe_earlier_fetch(self, url: int, relevance: float) -> None:
        """Record the relevance of a URL that an earlier round (batch of fetches) has fetched."""
        self._apprentice.observe_earlier_fetch(url, relevance)

    def export_judged(self) -> bytes | None:
        """Return the training data (judged URLs) of the current bucket (group of hosts)."""
        return pack_judged_batch(self._apprentice)

    def new_pool(self) -> TrainingPool:
        """Return an empty pool."""
        return TrainingPool(self._apprentice.options)

    def train_on_pool(self, pool: TrainingPool) -> tuple[bytes, int, dict[str, float]]:
        """Train a model on the judged URLs of all buckets (groups of hosts)."""
        learner, instances, metrics = pool.fit(self._apprentice.scorer.learner)
        return pack(learner), instances, metrics

    def load_trained(self, version: int, state: bytes) -> ModelUpdate:
        """Return an update with the model that `train_on_pool` has trained."""
        return _model_update(self._apprentice.load_trained(version, state), 0)

    def export_outcomes(self) -> bytes:
        """Return the rates of relevant fetches per directory and URL pattern as bytes."""
        return pack_arrays(self._apprentice.memory.outcomes.get_state(), compressed=False)

    def load_outcomes(self, outcomes: bytes) -> None:
        """Load the rates of relevant fetches per directory and URL pattern from bytes."""
        self._apprentice.memory.outcomes.set_state(unpack_finite_arrays(outcomes))


def _model_update(learned: ApprenticeUpdate, trained_at: int) -> ModelUpdate:
    return ModelUpdate(
        version=learned.version,
        trained_at_seq=trained_at,
        instances=learned.instances,
        metrics=learned.metrics,
        state=b"",
        urls=learned.urls,
        scores=_rounded(learned.scores),
        model=learned,
        training_set=learned.training_set,
    )


def _features_of(parts: Sequence[StoredPage]) -> PageFeatures:
    features = PageFeatures.from_records([each.memo or b"" for each in parts])
    return features.with_targets(np.concatenate([each.targets for each in parts]))


def _rounded(scores: Floats) -> Floats:
    """Drop the last bits, which depend on the number of URLs scored at once."""
    return np.round(scores, 9)
