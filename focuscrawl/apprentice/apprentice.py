"""The apprentice at work: takes in judged pages, scores URLs, learns batch by batch."""

from __future__ import annotations

import copy
import io
from dataclasses import asdict
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.dense_inputs import input_names
from focuscrawl.apprentice.evidence import FetchOutcomes
from focuscrawl.apprentice.forgetting import lost
from focuscrawl.apprentice.instance_cache import InstanceCache
from focuscrawl.apprentice.instances import bags
from focuscrawl.apprentice.labels import Labels
from focuscrawl.apprentice.lesson import Prepared, Replay, Taught, contrasting
from focuscrawl.apprentice.link_table import LinkTable
from focuscrawl.apprentice.model import ApprenticeModel, fresh_learner
from focuscrawl.apprentice.options import Options
from focuscrawl.apprentice.rescoring import teach
from focuscrawl.apprentice.serialization import (
    join,
    pack,
    pack_arrays,
    pack_options,
    part_of,
    parts_of,
)
from focuscrawl.apprentice.training_buffer import TrainingBuffer
from focuscrawl.foundation.arrays import GrowingArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.page_facts import PageFacts

_ENOUGH = 5  # judged URLs before the first lesson


class Apprentice:
    """Scores of URLs, learned while crawling.

    The score of v is the value to be expected of it: the chance that R(v) is high, or else that
    it leads to what is (`Rewards`). By default a logistic regression over one instance a URL:
    the mean of the hashed features of all links into v and of their pages, the words of
    v's address, and the inputs of `focuscrawl.apprentice.dense_inputs.INPUTS`. These last have a
    prior, which orders the frontier until there is something to learn from and holds the model
    back while there is little: see `PRIOR_WEIGHTS`.

    The inputs of a judged URL are those it had when it was fetched, so that learning sees what
    deciding will see (no rate of a directory counts the page it predicts).
    """

    def __init__(self, options: Options = Options()) -> None:  # noqa: B008 - it is frozen
        self.options = options
        self.version = 0
        self.known = LinkTable()
        self.observed = 0
        self.values = Labels(options)
        self._fetched = FetchOutcomes()
        self._model = ApprenticeModel(fresh_learner(options), options)
        self._standing = self._model.new_standing()
        self._judged = TrainingBuffer(options.memory, len(input_names(options)))
        self._bags = InstanceCache(unit_length=self._model.learner.unit_length)
        self._taught = 0  # URLs judged when the last lesson began
        self._score = GrowingArray(np.float64)  # as last given out
        self._due = 0
        self._prepared: Prepared | None = None  # for the lesson that is due or under way
        self._late: list[tuple[int, NDArray[np.uint32] | None, float]] | None = None
        self._replay: Replay | None = None
        self._lock = Lock()

    # -- what the crawl tells ------------------------------------------------------------

    def new(self, targets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which URLs were not met before, bool (n,)."""
        with self._lock:
            self.known.grow(int(targets.max(initial=-1)) + 1)
            return self.known.address.data[targets] < 0

    def observe(self, url: int, relevance: float) -> None:
        """Take note of what came of a fetch, whatever it was; before `expand` of its page."""
        with self._lock:
            self.known.grow(url + 1)
            if self._replay is None and self._standing.has_links(url):
                urls = np.array([url])
                inputs = self._inputs_of(urls)
                self._judged.add(urls, inputs, self._scores(urls, inputs))
            self.values.observe(url, relevance)
            keys = self.known.keys(np.array([url]))[0] if self.known.has_keys(url) else None
            self._note(url, keys, relevance)
            self.observed += 1
            self._due += 1
            self._go_on_replaying()

    def expand(
        self, url: int, facts: PageFacts
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
        """Take in the links of a page numbered `url`.

        Returns
        -------
        link_scores : float64 (n,), what each link by itself says of its target
        urls, scores : int64 (m,), float64 (m,): the distinct targets and their scores
        """
        with self._lock:
            first = self._add(url, facts)
            urls = np.unique(facts.targets)
            if self._replay is not None or not len(urls):
                self._go_on_replaying()
                return np.zeros(len(facts.targets)), urls, np.zeros(len(urls))
            model, standing = self._model, self._standing
            margins = model.add_links(standing, self.known, first)
            inputs = self._inputs_of(urls)
            dense = model.dense_margins(inputs)
            address = model.address_margins(self.known, urls)
            scores = model.learner.response(standing.margins(urls) + dense + address)
            self._keep(urls, scores)
            place = np.searchsorted(urls, facts.targets)
            return model.learner.response((dense + address)[place] + margins), urls, scores

    def _add(self, url: int, facts: PageFacts) -> int:
        late = not (url < self.known.n_urls and self.known.has_keys(url))
        first = len(self.known)
        forget = self._replay is not None and self._replay.forgets(self.known.expanded)
        self.known.add(url, facts, forget=forget)
        self.values.found(url, facts.new, self.known.n_urls)
        if late:  # a seed: nothing was known of its address when it was observed
            self._note(url, facts.own_keys[0], float(facts.relevance[0]))
        return first

    def _note(self, url: int, keys: NDArray[np.uint32] | None, relevance: float) -> None:
        """Take in the relevance of a URL; while a lesson is under way, only after it.

        So that the lesson is about what was known when it began, whatever it takes.
        """
        if self._late is not None:
            self._late.append((url, keys, relevance))
            return
        self.known.y.data[url] = relevance
        if keys is not None:
            self._fetched.observe(keys, relevance)

    # -- learning ------------------------------------------------------------------------

    def lesson_due(self) -> bool:
        """Tell whether a batch is complete and there is enough to learn from.

        If so, the next lesson is about what is known now.
        """
        batch = max(self.options.batch, int(self.options.growth * self.observed))
        if self._due < batch or len(self._judged) < _ENOUGH or self._replay is not None:
            return False
        self._prepare()
        return True

    def _prepare(self) -> None:
        with self._lock:
            self._due = 0
            self._late = []
            n_urls = self.known.n_urls
            y, urls = self.known.y.data[:n_urls], self._judged.urls
            own, value = self.values.of(urls, y[urls])
            self._prepared = Prepared(
                observed=self.observed,
                links=len(self.known),
                pages=len(self.known.pages),
                found=self.known.found,
                expanded=self.known.expanded,
                new=self._judged.ever - self._taught,
                judged=self._judged.ever,
                y=y,
                urls=urls,
                inputs=self._judged.inputs,
                predicted=self._judged.predicted,
                own=own,
                value=value,
                score=self._score.data.copy(),
            )
            self._taught = self._judged.ever

    def learn(self) -> Taught:
        """Learn from the judged URLs; may run in another thread, once at a time.

        The apprentice can be used meanwhile, and changes nothing until `adopt`; what is learned
        does not depend on what comes meanwhile.
        """
        if self._prepared is None:
            self._prepare()
        at, self._prepared = self._prepared, None
        assert at is not None
        learner, n_links, urls = copy.copy(self._model.learner), at.links, at.urls
        kept = np.arange(max(0, len(urls) - at.new) if learner.remembers else 0, len(urls))
        if self.options.contrast < 1.0:
            kept = contrasting(kept, self.known, at, self.options.contrast)
        if self.options.evidence == "first":
            instances, owner = bags(
                self.known,
                n_links,
                urls[kept],
                at.inputs[kept],
                unit_length=learner.unit_length,
                each_link=True,
            )
            kept = kept[owner]
        else:
            instances = self._bags.instances(self.known, n_links, urls[kept], at.inputs[kept])
        learner.partial_fit(instances, at.value[kept])
        return teach(
            at,
            self.known,
            self._fetched,
            ApprenticeModel(learner, self.options),
            version=self.version + 1,
            instances=len(instances),
            state=pack(
                learner,
                lesson=np.array([self.version + 1, at.observed, at.found, at.judged]),
                urls=urls,
                inputs=at.inputs,
                predicted=at.predicted,
            ),
        )

    def adopt(self, taught: Taught) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Score by what was learned from now on.

        Returns
        -------
        The URLs that got links while it was learned, and their scores: int64 (m,), float64 (m,)
        """
        with self._lock:
            self._model, self._standing = taught.model, taught.standing
            self.version = taught.version
            self._keep(taught.urls, taught.scores)
            links = taught.links
            if taught.kept is not None:
                links = len(taught.kept)
                taught.kept.go_on_from(self.known, taught.links, taught.pages)
                self.known = taught.kept
            return self._catch_up(links)

    def _catch_up(self, links: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Take in what came while a lesson was under way that knew so many links."""
        late, self._late = self._late, None
        for each in late or ():
            self._note(*each)
        urls = np.unique(self.known.target.data[links:])
        self._model.add_links(self._standing, self.known, links)
        scores = self._scores(urls, self._inputs_of(urls))
        self._keep(urls, scores)
        return urls, scores

    def state(self, taught: Taught) -> bytes:
        """Return what `load` needs, right after the lesson was adopted."""
        since = self._judged.ever - taught.judged
        window = slice(max(0, len(self._judged) - since), None)
        return join(
            taught.state,
            pack_arrays(
                adopted=np.array([self.observed, self.known.found]),
                forgotten=np.packbits(taught.forgotten),
                urls=self._judged.urls[window],
                inputs=self._judged.inputs[window],
                predicted=self._judged.predicted[window],
            ),
        )

    def rescore(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return all URLs with links that were not fetched, and their scores as last returned.

        After `load` and all that was repeated: as if the crawl had not been interrupted.
        """
        with self._lock:
            nowhere = lost(self.known, self._standing, self.known.y.data)
            urls = np.concatenate([self._waiting(), nowhere])
            return urls, self._score.data[urls].copy()

    def load(self, state: bytes) -> int:
        """Take up the model of the last lesson, before all `expand` and `observe` are repeated.

        Returns
        -------
        How many fetches there were when it was adopted
        """
        learned, since = (np.load(io.BytesIO(part)) for part in parts_of(state))
        self._model = self._model_of(part_of(learned, "m_"))
        self.version, observed, links, self._taught = (int(x) for x in learned["lesson"])
        self._judged.add(learned["urls"], learned["inputs"], learned["predicted"])
        self._judged.add(since["urls"], since["inputs"], since["predicted"])
        self._judged.ever = self._taught + len(since["urls"])
        adopted = tuple(int(x) for x in since["adopted"])
        # crawls that began before anything was forgotten have no such array
        forgotten = np.unpackbits(since.get("forgotten", np.zeros(0, np.uint8))).astype(bool)
        self._replay = Replay((observed, links), (adopted[0], adopted[1]), forgotten)
        return adopted[0]

    # -- from crawl to crawl -------------------------------------------------------------

    def graduate(self) -> bytes:
        """Return what another crawl can begin with: model, and rates of places and shapes."""
        with self._lock:
            places = self._fetched.places.get_state()
            shapes = self._fetched.shapes.get_state()
            return pack(
                self._model.learner,
                options=pack_options(asdict(self.options)),
                **{f"p_{name}": value for name, value in places.items()},
                **{f"s_{name}": value for name, value in shapes.items()},
            )

    def begin_with(self, graduate: bytes) -> None:
        """Begin a crawl with what an earlier one has learned; see `graduate`."""
        with np.load(io.BytesIO(graduate)) as arrays:
            learner = self._model_of(part_of(arrays, "m_")).learner
            self._fetched.places.set_state(part_of(arrays, "p_"))
            self._fetched.shapes.set_state(part_of(arrays, "s_"))
        self._model = ApprenticeModel(learner.believe(), self.options)

    # -- what is asked -------------------------------------------------------------------

    @property
    def judged(self) -> int:
        """Judged URLs that a lesson would learn from."""
        return len(self._judged)

    @property
    def model(self) -> ApprenticeModel:
        """What scores links now."""
        return self._model

    def has_links(self, url: int) -> bool:
        """Tell whether a link into `url` is known."""
        with self._lock:
            return self._standing.has_links(url)

    def explain(self, url: int) -> dict[str, float]:
        """Return what speaks for (above 0) and against fetching a URL that has links.

        The parts add up to the linear sum that its score comes of: each of `input_names`,
        ``links (words)``: the hashed features of links and their pages, ``address (words)`` and
        ``intercept``.
        """
        with self._lock:
            inputs = self._inputs_of(np.array([url]))
            return self._model.parts(self._standing, self.known, url, inputs)

    def features(self, url: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return what `explain` adds up as words, feature by feature.

        Returns
        -------
        features : int64 (n,), distinct numbers in the space of `bags`
        weights : float64 (n,), what each says for (above 0) or against the URL
        """
        with self._lock:
            return self._model.features(self.known, url, self._inputs_of(np.array([url])))

    # -- inside --------------------------------------------------------------------------

    def _model_of(self, state: dict[str, NDArray[np.generic]]) -> ApprenticeModel:
        learner = fresh_learner(self.options)
        learner.set_state(state)
        return ApprenticeModel(learner, self.options)

    def _go_on_replaying(self) -> None:
        """Stand where the crawl stood when the lesson began, and later when it was adopted."""
        replay, now = self._replay, (self.observed, self.known.found)
        if replay is None:
            return
        if self._late is None and replay.has_come_to(replay.lesson, now):
            self._due = 0
            known, links = self.known, len(self.known)
            self._standing = self._model.stand(known, links, known.n_urls, known.y.data)
            self._replay = replay = replay._replace(links=links)
            waiting = self._waiting()
            self._keep(waiting, self._scores(waiting, self._inputs_of(waiting)))
            self._late = []
        if self._late is not None and replay.has_come_to(replay.adoption, now):
            self._replay = None
            self._catch_up(replay.links)

    def _waiting(self) -> NDArray[np.int64]:
        urls = self._standing.urls()
        waiting: NDArray[np.int64] = urls[np.isnan(self.known.y.data[urls])]
        return waiting

    def _keep(self, urls: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        self._score.grow(self.known.n_urls)
        self._score.data[urls] = scores

    def _inputs_of(self, urls: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._model.inputs(self._standing, self.known, self._fetched, urls)

    def _scores(self, urls: NDArray[np.int64], inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        margins = self._model.margins(self._standing, self.known, urls, inputs)
        return self._model.learner.response(margins)
