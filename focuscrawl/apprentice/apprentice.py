"""The class `Apprentice`, which scores URLs, and functions that save and read apprentices."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from focuscrawl.apprentice.evidence import urls_without_links
from focuscrawl.apprentice.hashing import SparseRows, row_pointers
from focuscrawl.apprentice.instances import InstanceCache, JudgedUrls, TrainingSet, make_instances
from focuscrawl.apprentice.learners import (
    Instances,
    join_packs,
    pack,
    pack_options,
    select_prefix,
    split_packs,
    unpack_options,
)
from focuscrawl.apprentice.online_training import (
    CrawlMemory,
    ResumePoint,
    rescore_queued,
    select_contrasting,
    validate,
)
from focuscrawl.apprentice.options import Options
from focuscrawl.apprentice.scorer import Scorer, new_learner
from focuscrawl.foundation.arrays import pack_arrays, unpack_arrays, unpack_finite_arrays
from focuscrawl.foundation.model_folder import ModelFormat, find_model_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.learners import Learner
    from focuscrawl.apprentice.link_table import LinkTable, PageFeatures
    from focuscrawl.apprentice.online_training import ApprenticeUpdate, Snapshot
    from focuscrawl.foundation.arrays import Bools, Floats, Ints


_MIN_JUDGED = 5  # judged URLs before the first training
_ARRAYS = "apprentice.npz"
FORMAT = ModelFormat("apprentice", ("apprentice",), 5, (_ARRAYS,), "focuscrawl apprentice train")


class Apprentice:
    """A model that scores URLs and is trained while the crawl runs.

    The score of a URL is its expected training label. The label of a URL is the relevance of its
    page, or a reward if the page leads to relevant pages (`TunnelRewards`). The default model is a
    logistic regression with one instance per URL. The features of an instance are means over all
    links to the URL: hashed features of the links and of the linking pages. Further features are
    the words of the URL, and the numeric inputs `focuscrawl.apprentice.options.INPUTS`. Before the
    first training, the prior weights of the inputs (`PRIOR_WEIGHTS`) determine the scores of
    queued URLs.

    Training uses the values that the numeric inputs of a URL had when the URL was fetched. The
    input "relevance rate of the directory" of a URL never includes the relevance of the URL's own
    page.

    Attributes
    ----------
    memory : links, fetches and judged URLs of the crawl
    scorer : scores URLs with the present model
    version : version of the model; 0 before the first training
    lock : held while the apprentice changes
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
        self._fetches_since_training = 0  # since the start of the last training
        self._snapshot: Snapshot | None = None  # for the training that is due
        self._resume_point: ResumePoint | None = None
        # the state of the apprentice and the URL, and the URL's inputs and score
        self._last_score: tuple[tuple[int, ...], tuple[Floats, Floats]] | None = None

    @classmethod
    def warm_started(cls, options: Options, exported: bytes | None) -> Self:
        """Return an apprentice; if `exported` is a model, the apprentice starts with it.

        Parameters
        ----------
        options : the options of the exported model replace some of these
            (`Options.with_model_options`)
        """
        if exported is None:
            return cls(options)
        apprentice = cls(options.with_model_options(unpack_options(exported)))
        apprentice.warm_start(exported)
        return apprentice

    @property
    def table(self) -> LinkTable:
        """Table of the links and URLs that the apprentice knows."""
        return self.memory.table

    @property
    def n_judged(self) -> int:
        """Number of judged URLs in the training buffer."""
        return len(self.memory.buffer)

    # -- fetches and pages ---------------------------------------------------------------

    def is_new(self, targets: Ints) -> Bools:
        """Return a mask of the `targets` to which no known link leads, bool (n,)."""
        with self.lock:
            self.table.grow(int(targets.max(initial=-1)) + 1)
            return self.table.url_row.data[targets] < 0

    def observe(self, url: int, relevance: float) -> None:
        """Record the outcome of a fetch; the caller then calls `expand` for the fetched page."""
        with self.lock:
            self.table.grow(url + 1)
            if self._resume_point is None and self.scorer.evidence.has_links(url):
                urls = np.array([url])
                inputs, predicted = self._score_now(url)
                n_pages = np.array([self.table.pages_ever])
                self.memory.buffer.add(JudgedUrls(urls, inputs, predicted, n_pages))
            self.memory.observe(url, relevance)
            self._fetches_since_training += 1
            self._continue_resume()

    def score(self, url: int) -> float | None:
        """Return the present score of a URL; None if no link to the URL is known."""
        with self.lock:
            if not self.scorer.evidence.has_links(url):
                return None
            return float(self._score_now(url)[1][0])

    def _score_now(self, url: int) -> tuple[Floats, Floats]:
        """Return inputs and score of one URL; reuse the last result if nothing happened since."""
        now = (url, self.version, self.memory.observed, self.table.pages_ever)
        if self._last_score is None or self._last_score[0] != now:
            self._last_score = now, self._score(np.array([url]))
        return self._last_score[1]

    def _score(self, urls: Ints) -> tuple[Floats, Floats]:
        """Return the present dense inputs and scores of URLs with links."""
        inputs = self.scorer.inputs(urls)
        return inputs, self.scorer.scores(urls, inputs)

    def observe_earlier_fetch(self, url: int, relevance: float) -> None:
        """Record a fetch of an earlier round (batch of fetches); add no training instance."""
        with self.lock:
            self._last_score = None
            self.memory.observe_earlier_fetch(url, relevance)

    def expand(self, url: int, features: PageFeatures) -> tuple[Floats, Ints, Floats]:
        """Add the links of the page with the id `url`, and score the targets of the links.

        Returns
        -------
        link_scores : float64 (n_links,), score of each link from that link alone
        urls : int64 (m,), distinct targets of the links
        scores : float64 (m,), scores of `urls`
        """
        with self.lock:
            forget = self._resume_point is not None and self._resume_point.is_forgotten(
                self.table.pages_ever
            )
            first = self.memory.add(np.array([url]), features, forget=forget)
            urls = np.unique(features.targets)
            if self._resume_point is not None or not len(urls):
                self._continue_resume()
                return np.zeros(len(features.targets)), urls, np.zeros(len(urls))
            link_scores, scores = self.scorer.add_page(first, features.targets, urls)
            self.memory.store_scores(urls, scores)
            return link_scores, urls, scores

    def expand_pages(self, urls: Ints, features: PageFeatures) -> tuple[Ints, Floats]:
        """Add links of pages that another process fetched; return the targets and their scores."""
        with self.lock:
            first, targets = self.memory.add(urls, features), np.unique(features.targets)
            return targets, self._add_links(first, targets)

    def _add_links(self, first: int, urls: Ints) -> Floats:
        """Add the links from position `first` on, whose targets are `urls`; score `urls`."""
        self.scorer.add_new_links(first)
        _, scores = self._score(urls)
        self.memory.store_scores(urls, scores)
        return scores

    # -- training ------------------------------------------------------------------------

    def is_training_due(self) -> bool:
        """Return whether a training is due; if so, take a snapshot for the training."""
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
        """Train a new model on the judged URLs of the last snapshot.

        This method may run in a background thread, one training at a time. The apprentice does not
        change until `adopt` is called. Pages that arrive during the training do not affect the new
        model.
        """
        snapshot = self._pop_snapshot()
        learner, judged = copy.copy(self.scorer.learner), snapshot.judged
        n = len(judged.urls)
        chosen = np.arange(max(0, n - snapshot.new) if learner.accumulates else 0, n)
        if self.options.contrast < 1.0:
            chosen = select_contrasting(chosen, self.table, snapshot, self.options.contrast)
        some, each_link = judged.take(chosen), self.options.evidence == "first"
        if each_link:
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
        else:
            instances = self._instances.instances(self.table, snapshot.links, some)
            owner = np.arange(len(some.urls))
        training_set = TrainingSet(
            instances,
            labels=snapshot.value[chosen][owner],
            owner=owner,
            judged=some,
            relevance=snapshot.y[some.urls],
            table=self.table,
            n_links=snapshot.links,
            max_links=self.options.max_links_per_url,
            each_link=each_link,
        )
        learner.partial_fit(instances, training_set.labels)
        version = self.version + 1
        at = [version, snapshot.observed, snapshot.links_ever, snapshot.judged_ever]
        return rescore_queued(
            snapshot,
            self._scorer_of(learner),
            version=version,
            training_set=training_set,
            state=pack(learner, lesson=np.array(at), **judged._asdict()),
        )

    def load_trained(self, version: int, packed: bytes) -> ApprenticeUpdate:
        """Return an update with a model that another process trained and packed.

        This method may run in a background thread. The apprentice does not change until `adopt` is
        called.
        """
        scorer = self._scorer_of(self._learner_in(unpack_arrays(packed)))
        return rescore_queued(
            self._pop_snapshot(), scorer, version=version, training_set=None, state=b""
        )

    def adopt(self, update: ApprenticeUpdate) -> tuple[Ints, Floats]:
        """Use the model of an update; score the targets of links found during the training."""
        with self.lock:
            self.scorer, self.version = update.scorer, update.version
            self.memory.store_scores(update.urls, update.scores)
            links, table = update.snapshot.links, update.scorer.table
            if table is not self.table:
                links = len(table)
                table.append_rest(self.table, update.snapshot.links, update.snapshot.pages)
                self.memory.table = table
            return self._add_deferred(links)

    def _add_deferred(self, first: int) -> tuple[Ints, Floats]:
        """Apply the deferred outcomes; add the links from position `first` on."""
        self.memory.apply_deferred()
        urls = np.unique(self.table.target.data[first:])
        return urls, self._add_links(first, urls)

    # -- resuming ------------------------------------------------------------------------

    def state(self, update: ApprenticeUpdate) -> bytes:
        """Return the state for `load`; this method must be called right after `adopt`."""
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
        """Load the model that the last training of the resumed crawl produced.

        After `load`, the resumed crawl must repeat the calls of `observe` and `expand` for all its
        fetches. Return the number of fetches at the time when the crawl started to use the model.
        """
        learned, since = (unpack_finite_arrays(part) for part in split_packs(state))
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
        """Return all unfetched URLs to which known links lead, and the last scores of the URLs.

        After `load` and the repeated calls of `observe` and `expand`, the scores equal those of an
        uninterrupted crawl.
        """
        with self.lock:
            y = self.table.y.data
            unlinked = urls_without_links(self.table, self.scorer.evidence, y)
            urls = np.concatenate([self.scorer.queued_urls(y), unlinked])
            return urls, self.memory.score.data[urls].copy()

    def _continue_resume(self) -> None:
        """Repeat the start and the adoption of the last training when the crawl reaches them."""
        point, now = self._resume_point, (self.memory.observed, self.table.links_ever)
        if point is None:
            return
        if not self.memory.deferring and point.is_reached(point.training, now):
            self._fetches_since_training = 0
            self._resume_point = point = point._replace(links=len(self.table))
            self.memory.store_scores(*self.scorer.rebuild_evidence(point.links, self.table.y.data))
            self.memory.start_deferring()
        if self.memory.deferring and point.is_reached(point.adoption, now):
            self._resume_point = None
            self._add_deferred(point.links)

    # -- from crawl to crawl -------------------------------------------------------------

    def export(self) -> bytes:
        """Return the model and the relevance rates of URL prefixes and patterns, as bytes."""
        with self.lock:
            return pack(
                self.scorer.learner,
                options=pack_options(asdict(self.options)),
                **self.memory.outcomes.get_rates(),
            )

    def warm_start(self, exported: bytes) -> None:
        """Start with the exported model of an earlier crawl; raise an error if it is invalid."""
        arrays = unpack_finite_arrays(exported)
        learner = self._learner_in(arrays)
        self.memory.outcomes.set_rates(arrays)
        self.scorer = self._scorer_of(learner.use_as_prior())

    def _scorer_of(self, learner: Learner) -> Scorer:
        return Scorer(learner, self.options, self.table, self.memory.outcomes)

    def _learner_in(self, arrays: Mapping[str, NDArray[Any]]) -> Learner:
        return new_learner(self.options).set_state(select_prefix(arrays, "m_"))


def save_apprentice(exported: bytes, out: Path, meta: dict[str, str | int]) -> None:
    """Write an apprentice to a model folder, completely or not at all.

    Parameters
    ----------
    meta : information for people: topic, instances, crawl
    """
    FORMAT.write(out, "apprentice", {**meta}, {_ARRAYS: exported})


def apprentice_digest(folder: Path) -> str:
    """Return a digest of the apprentice in `folder`; raises the errors of `read_apprentice`."""
    return hashlib.sha256(read_apprentice(folder)).hexdigest()[:16]


def read_apprentice(folder: Path) -> bytes:
    """Read an apprentice that `save_apprentice` wrote; the file has arrays and no code.

    Parameters
    ----------
    folder : folder of the apprentice, or its name in ``models``

    Raises
    ------
    UserError
        The folder does not exist, is damaged or has another format.
    """
    found = find_model_folder(str(folder)) or folder
    exported, _ = FORMAT.read(found, lambda _, files: validate_export(files[_ARRAYS]))
    return exported


def validate_export(exported: bytes) -> bytes:
    """Return `exported` if it is a valid export of an apprentice; raise an error otherwise."""
    Apprentice.warm_started(Options(), exported)
    return exported


def pack_judged_batch(apprentice: Apprentice) -> bytes | None:
    """Pack an apprentice's judged URLs for a `TrainingPool`; return None if no URL was judged."""
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
        "label": value[owner],  # one per instance; the arrays below have one row per URL
        "y": own,
        "predicted": judged.predicted,
    }
    return pack_arrays(batch, compressed=False)


class TrainingPool:
    """Training data: approximately the last ``options.memory`` judged URLs, from all processes."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._batches: list[dict[str, NDArray[Any]]] = []

    def __len__(self) -> int:
        return sum(len(batch["y"]) for batch in self._batches)

    def add(self, data: bytes) -> None:
        """Add a batch of judged URLs that `pack_judged_batch` packed."""
        self._batches.append(unpack_arrays(data))
        while len(self) - len(self._batches[0]["y"]) >= self.options.memory:
            self._batches.pop(0)

    def fit(self, learner: Learner) -> tuple[Learner, int, dict[str, float]]:
        """Return a trained copy of `learner`, the number of instances, and quality metrics."""
        names = self._batches[0]
        pooled = {name: np.concatenate([each[name] for each in self._batches]) for name in names}
        rows = SparseRows(pooled["indices"], row_pointers(pooled["lengths"]))
        instances = Instances(rows, pooled["values"].astype(np.float64), pooled["dense"])
        learner = copy.copy(learner).partial_fit(instances, pooled["label"])
        return learner, len(instances), validate(pooled["predicted"], pooled["y"])
