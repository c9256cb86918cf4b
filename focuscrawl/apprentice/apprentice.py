"""The apprentice: scores URLs by what it has learned; its folder; its training in rounds."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import asdict
from threading import Lock
from typing import TYPE_CHECKING, Self

import numpy as np

from focuscrawl.apprentice.evidence import urls_without_links
from focuscrawl.apprentice.hashing import SparseRows, row_pointers
from focuscrawl.apprentice.instances import InstanceCache, JudgedUrls, make_instances
from focuscrawl.apprentice.learners import (
    Instances,
    join_packs,
    pack,
    pack_options,
    select_prefix,
    split_packs,
    unpack_options,
)
from focuscrawl.apprentice.options import Options
from focuscrawl.apprentice.scorer import Scorer, new_learner
from focuscrawl.apprentice.training import (
    CrawlMemory,
    ResumePoint,
    rescore_queued,
    select_contrasting,
    validate,
)
from focuscrawl.foundation.arrays import pack_arrays, unpack_arrays, unpack_numbers
from focuscrawl.foundation.model_folder import ModelFormat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from numpy.typing import NDArray

    from focuscrawl.apprentice.learners import Learner
    from focuscrawl.apprentice.link_table import LinkTable, PageFeatures
    from focuscrawl.apprentice.training import ApprenticeUpdate, Snapshot
    from focuscrawl.foundation.arrays import Bools, Floats, Ints


_MIN_JUDGED = 5  # judged URLs before the first lesson
_ARRAYS = "apprentice.npz"
FORMAT = ModelFormat("apprentice", ("apprentice",), 5, (_ARRAYS,), "focuscrawl apprentice train")


class Apprentice:
    """Scores of URLs, learned while crawling.

    The score of v is the value to be expected of it: the chance that R(v) is high, or else that
    it leads to what is (`TunnelRewards`). By default it is a logistic regression over one instance
    a URL: the mean of the hashed features of all links into v and of their pages, the words of v's
    address, and the inputs of `focuscrawl.apprentice.options.INPUTS`. The inputs have a prior
    (`PRIOR_WEIGHTS`), which orders the frontier until there is something to learn from.

    The inputs of a judged URL are those it had when it was fetched, so that learning sees what
    deciding will see (no rate of a directory counts the page it predicts).

    Attributes
    ----------
    memory : all that it has seen
    scorer : what scores links now
    version : of the model; 0 before the first lesson
    lock : held while anything of this changes
    """

    def __init__(self, options: Options = Options()) -> None:  # noqa: B008 - it is frozen
        self.options = options
        self.version = 0
        self.lock = Lock()
        self.memory = CrawlMemory(options)
        self.scorer = self._scorer_of(new_learner(options))
        self._instances = InstanceCache(
            unit_length=self.scorer.learner.unit_length, max_links=options.max_links_per_url
        )
        self._fetches_since_training = 0  # fetches since the last lesson started
        self._snapshot: Snapshot | None = None  # for the lesson that is due or under way
        self._resume_point: ResumePoint | None = None

    @classmethod
    def warm_started(cls, options: Options, exported: bytes | None) -> Self:
        """Return an apprentice that continues what another has learned, if that is given.

        Parameters
        ----------
        options : the kinds of features and the learner are those of the other one, see
            `Options.with_model_options`
        exported : see `export`
        """
        if exported is None:
            return cls(options)
        apprentice = cls(options.with_model_options(unpack_options(exported)))
        apprentice.warm_start(exported)
        return apprentice

    @property
    def table(self) -> LinkTable:
        """The links and URLs it knows."""
        return self.memory.table

    @property
    def n_judged(self) -> int:
        """Judged URLs that a lesson would learn from."""
        return len(self.memory.buffer)

    # -- fetches and pages ---------------------------------------------------------------

    def is_new(self, targets: Ints) -> Bools:
        """Tell which URLs were not met before, bool (n,)."""
        with self.lock:
            self.table.grow(int(targets.max(initial=-1)) + 1)
            return self.table.url_row.data[targets] < 0

    def observe(self, url: int, relevance: float) -> None:
        """Take in the outcome of a fetch, whatever it was; before `expand` of its page."""
        with self.lock:
            self.table.grow(url + 1)
            if self._resume_point is None and self.scorer.evidence.has_links(url):
                urls = np.array([url])
                inputs = self.scorer.inputs(urls)
                predicted = self.scorer.scores(urls, inputs)
                n_pages = np.array([self.table.pages_ever])
                self.memory.buffer.add(JudgedUrls(urls, inputs, predicted, n_pages))
            self.memory.observe(url, relevance)
            self._fetches_since_training += 1
            self._continue_resume()

    def observe_earlier_fetch(self, url: int, relevance: float) -> None:
        """Take in the outcome of a fetch of an earlier round, which was learned from there."""
        with self.lock:
            self.memory.observe_earlier_fetch(url, relevance)

    def expand(self, url: int, features: PageFeatures) -> tuple[Floats, Ints, Floats]:
        """Take in the links of a page numbered `url`.

        Returns
        -------
        link_scores : float64 (n,), the score of each link by itself
        urls, scores : int64 (m,), float64 (m,): the distinct targets and their scores
        """
        with self.lock:
            forget = self._resume_point is not None and self._resume_point.is_forgotten(
                self.table.pages_ever
            )
            first = self.memory.add(url, features, forget=forget)
            urls = np.unique(features.targets)
            if self._resume_point is not None or not len(urls):
                self._continue_resume()
                return np.zeros(len(features.targets)), urls, np.zeros(len(urls))
            link_scores, scores = self.scorer.add_page(first, features.targets, urls)
            self.memory.store_scores(urls, scores)
            return link_scores, urls, scores

    def expand_pages(self, pages: Sequence[tuple[int, PageFeatures]]) -> tuple[Ints, Floats]:
        """Take in links of pages that other processes fetched; URLs are scored once, at the end.

        Parameters
        ----------
        pages : URL and facts of each, at least one

        Returns
        -------
        The distinct targets and their scores: int64 (m,), float64 (m,)
        """
        with self.lock:
            first = min([self.memory.add(url, features) for url, features in pages])
            urls = np.unique(np.concatenate([features.targets for _, features in pages]))
            return urls, self._add_links(first, urls)

    def _add_links(self, first: int, urls: Ints) -> Floats:
        """Add the links from number `first` on, which lead to `urls`; score these."""
        self.scorer.add_new_links(first)
        scores = self.scorer.scores(urls, self.scorer.inputs(urls))
        self.memory.store_scores(urls, scores)
        return scores

    # -- lessons -------------------------------------------------------------------------

    def is_training_due(self) -> bool:
        """Tell whether a batch is complete; if so, the next lesson is about what is known now."""
        batch = max(self.options.batch, int(self.options.growth * self.memory.observed))
        if (
            self._fetches_since_training < batch
            or self.n_judged < _MIN_JUDGED
            or self._resume_point is not None
        ):
            return False
        self._snapshot = self._take_snapshot()
        return True

    def _take_snapshot(self) -> Snapshot:
        with self.lock:
            self._fetches_since_training = 0
            self.memory.start_deferring()
            return self.memory.snapshot()

    def _pop_snapshot(self) -> Snapshot:
        snapshot, self._snapshot = self._snapshot or self._take_snapshot(), None
        return snapshot

    def learn(self) -> ApprenticeUpdate:
        """Learn from the judged URLs; may run in another thread, once at a time.

        Nothing changes until `adopt`, and what is learned does not depend on what comes meanwhile.
        """
        snapshot = self._pop_snapshot()
        learner, judged = copy.copy(self.scorer.learner), snapshot.judged
        n = len(judged.urls)
        chosen = np.arange(max(0, n - snapshot.new) if learner.accumulates else 0, n)
        if self.options.contrast < 1.0:
            chosen = select_contrasting(chosen, self.table, snapshot, self.options.contrast)
        some = judged.take(chosen)
        if self.options.evidence == "first":
            instances, owner = make_instances(
                self.table,
                snapshot.links,
                some.urls,
                some.inputs,
                unit_length=learner.unit_length,
                each_link=True,
                max_links=self.options.max_links_per_url,
                n_pages=some.n_pages,
            )
            chosen = chosen[owner]
        else:
            instances = self._instances.instances(self.table, snapshot.links, some)
        learner.partial_fit(instances, snapshot.value[chosen])
        version = self.version + 1
        at = [version, snapshot.observed, snapshot.links_ever, snapshot.judged_ever]
        return rescore_queued(
            snapshot,
            self._scorer_of(learner),
            version=version,
            instances=len(instances),
            state=pack(learner, lesson=np.array(at), **judged._asdict()),
        )

    def load_trained(self, version: int, packed: bytes) -> ApprenticeUpdate:
        """Return a lesson with a learner that was trained elsewhere, packed.

        May run in another thread; nothing changes until `adopt`.
        """
        scorer = self._scorer_of(self._learner_in(unpack_arrays(packed)))
        return rescore_queued(
            self._pop_snapshot(), scorer, version=version, instances=0, state=b""
        )

    def adopt(self, update: ApprenticeUpdate) -> tuple[Ints, Floats]:
        """Score by what was learned from now on.

        Returns
        -------
        The URLs that got links while it was learned, and their scores: int64 (m,), float64 (m,)
        """
        with self.lock:
            self.scorer, self.version = update.scorer, update.version
            self.memory.store_scores(update.urls, update.scores)
            links, left = update.snapshot.links, update.scorer.table
            if left is not self.table:
                links = len(left)
                left.append_rest(self.table, update.snapshot.links, update.snapshot.pages)
                self.memory.table = left
            return self._add_deferred(links)

    def _add_deferred(self, links: int) -> tuple[Ints, Floats]:
        """Take in what came during a lesson that knew so many links."""
        self.memory.apply_deferred()
        urls = np.unique(self.table.target.data[links:])
        return urls, self._add_links(links, urls)

    # -- resuming ------------------------------------------------------------------------

    def state(self, update: ApprenticeUpdate) -> bytes:
        """Return what `load` needs, right after the lesson was adopted."""
        buffer = self.memory.buffer
        since = buffer.judged.latest(buffer.n_added - update.snapshot.judged_ever)
        return join_packs(
            update.state,
            pack_arrays(
                {
                    "adopted": np.array([self.memory.observed, self.table.links_ever]),
                    "forgotten": np.packbits(update.forgotten),
                    **since._asdict(),
                },
                compressed=False,
            ),
        )

    def load(self, state: bytes) -> int:
        """Take up the model of the last lesson, before all `expand` and `observe` are repeated.

        Returns
        -------
        How many fetches there were when it was adopted
        """
        learned, since = (unpack_numbers(part) for part in split_packs(state))
        self.scorer = self._scorer_of(self._learner_in(learned))
        memory, buffer = self.memory, self.memory.buffer
        self.version, observed, links, memory.judged_at_training = (
            int(x) for x in learned["lesson"]
        )
        for judged in (JudgedUrls.from_arrays(learned), JudgedUrls.from_arrays(since)):
            buffer.add(judged)
        buffer.n_added = memory.judged_at_training + len(since["urls"])
        adopted = tuple(int(x) for x in since["adopted"])
        forgotten = np.unpackbits(since["forgotten"]).astype(bool)
        self._resume_point = ResumePoint((observed, links), (adopted[0], adopted[1]), forgotten)
        return adopted[0]

    def rescore(self) -> tuple[Ints, Floats]:
        """Return all URLs with links that were not fetched, and their scores as last returned.

        After `load` and all that was repeated: as if the crawl had not been interrupted.
        """
        with self.lock:
            y = self.table.y.data
            nowhere = urls_without_links(self.table, self.scorer.evidence, y)
            urls = np.concatenate([self.scorer.queued_urls(y), nowhere])
            return urls, self.memory.score.data[urls].copy()

    def _continue_resume(self) -> None:
        """Do what was done when the last lesson started, and when it was adopted."""
        replay, now = self._resume_point, (self.memory.observed, self.table.links_ever)
        if replay is None:
            return
        if not self.memory.deferring and replay.is_reached(replay.update, now):
            self._fetches_since_training = 0
            self._resume_point = replay = replay._replace(links=len(self.table))
            self.memory.store_scores(
                *self.scorer.rebuild_evidence(replay.links, self.table.y.data)
            )
            self.memory.start_deferring()
        if self.memory.deferring and replay.is_reached(replay.adoption, now):
            self._resume_point = None
            self._add_deferred(replay.links)

    # -- from crawl to crawl -------------------------------------------------------------

    def export(self) -> bytes:
        """Return what another crawl can start with: model, and rates of prefixes and patterns."""
        with self.lock:
            return pack(
                self.scorer.learner,
                options=pack_options(asdict(self.options)),
                **self.memory.outcomes.get_rates(),
            )

    def warm_start(self, exported: bytes) -> None:
        """Start with what an earlier crawl has learned; conversion errors if it is no `export`."""
        arrays = unpack_numbers(exported)
        learner = self._learner_in(arrays)
        self.memory.outcomes.set_rates(arrays)
        self.scorer = self._scorer_of(learner.use_as_prior())

    def _scorer_of(self, learner: Learner) -> Scorer:
        return Scorer(learner, self.options, self.table, self.memory.outcomes)

    def _learner_in(self, arrays: Mapping[str, NDArray[Any]]) -> Learner:
        return new_learner(self.options).set_state(select_prefix(arrays, "m_"))


def save_apprentice(exported: bytes, out: Path, meta: dict[str, str | int]) -> None:
    """Write the folder of an apprentice; it appears whole or not at all.

    Parameters
    ----------
    graduate : see `Apprentice.export`
    about : for people: topic, instances, crawl
    """
    FORMAT.write(out, "apprentice", {**meta}, {_ARRAYS: exported})


def apprentice_digest(folder: Path) -> str:
    """Return a digest of the apprentice in `folder`; raises as `read_apprentice`."""
    return hashlib.sha256(read_apprentice(folder)).hexdigest()[:16]


def read_apprentice(folder: Path) -> bytes:
    """Return what `save_apprentice` was given; it is plain arrays and runs nobody's code.

    Raises
    ------
    UserError
        There is none, it is damaged, or of another format.
    """
    exported, _ = FORMAT.read(folder, lambda _, files: validate_export(files[_ARRAYS]))
    return exported


def validate_export(exported: bytes) -> bytes:
    """Return what `Apprentice.export` has returned; errors of conversions if it is not that."""
    Apprentice.warm_started(Options(), exported)
    return exported


def pack_judged_batch(apprentice: Apprentice) -> bytes | None:
    """Pack the judged URLs of an apprentice for a `TrainingPool`; return None without any."""
    memory = apprentice.memory
    with apprentice.lock:
        n_links, judged = len(memory.table), memory.buffer.judged
        own, value = memory.labels.label(judged.urls, memory.table.y.data[judged.urls])
    if not len(judged.urls):
        return None
    instances, owner = make_instances(
        memory.table,
        n_links,
        judged.urls,
        judged.inputs,
        unit_length=apprentice.scorer.learner.unit_length,
        each_link=apprentice.options.evidence == "first",
        max_links=apprentice.options.max_links_per_url,
        n_pages=judged.n_pages,
    )
    batch: dict[str, NDArray[Any]] = {
        "indices": instances.rows.indices,
        "lengths": instances.rows.lengths.astype(np.int32),
        "values": instances.values.astype(np.float32),
        "dense": instances.dense,
        "label": value[owner],  # one an instance, the following one a URL
        "y": own,
        "predicted": judged.predicted,
    }
    return pack_arrays(batch, compressed=False)


class TrainingPool:
    """The latest judged URLs of all buckets, in the order added.

    Parameters
    ----------
    options : of the apprentice; `memory` bounds what is kept
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._batches: list[dict[str, NDArray[Any]]] = []

    def __len__(self) -> int:
        return sum(len(batch["y"]) for batch in self._batches)

    def add(self, data: bytes) -> None:
        """Take in what `pack_judged_batch` has returned."""
        self._batches.append(unpack_arrays(data))
        while len(self) - len(self._batches[0]["y"]) >= self.options.memory:
            self._batches.pop(0)

    def fit(self, learner: Learner) -> tuple[Learner, int, dict[str, float]]:
        """Learn from the pool; the learner given stays as it is.

        Returns
        -------
        A learner, the number of instances, and how well they had been predicted
        """
        names = self._batches[0]
        pooled = {name: np.concatenate([each[name] for each in self._batches]) for name in names}
        rows = SparseRows(pooled["indices"], row_pointers(pooled["lengths"]))
        instances = Instances(rows, pooled["values"].astype(np.float64), pooled["dense"])
        learner = copy.copy(learner).partial_fit(instances, pooled["label"])
        return learner, len(instances), validate(pooled["predicted"], pooled["y"])
