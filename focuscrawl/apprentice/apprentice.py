"""The apprentice at work: takes in judged pages, scores URLs, learns batch by batch."""

from __future__ import annotations

import copy
import io
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.bags import address_margins, bags, link_margins
from focuscrawl.apprentice.known import Known
from focuscrawl.apprentice.learners.linear import LogisticLearner, logistic
from focuscrawl.apprentice.model import fresh_learner, stand, weights_of
from focuscrawl.apprentice.packing import pack, part_of
from focuscrawl.apprentice.standing import INPUTS, Fetched, Standing
from focuscrawl.apprentice.validation import validate
from focuscrawl.arrays import GrowingArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.facts import PageFacts

_VALIDATED = 200  # the latest predictions that a lesson is judged by
_ENOUGH = 5  # judged URLs before the first lesson


@dataclass(frozen=True, slots=True)
class Taught:
    """What a lesson brought; see `Apprentice.learn`.

    Attributes
    ----------
    version : of the model
    observed : fetches known when the lesson began
    links : links known when the lesson began
    instances : judged URLs learned from
    metrics : progressive validation: how well fetches were predicted before they were learned
    state : for `Apprentice.load`
    urls, scores : int64 (m,), float64 (m,): all URLs with links that were not fetched
    learner, standing : for `Apprentice.adopt`
    """

    version: int
    observed: int
    links: int
    instances: int
    metrics: dict[str, float]
    state: bytes
    urls: NDArray[np.int64]
    scores: NDArray[np.float64]
    learner: LogisticLearner
    standing: Standing


class Apprentice:
    """Scores of URLs, learned while crawling.

    The score of v is the chance that R(v) is high, by a logistic regression over one instance
    a URL: the mean of the hashed features of all links into v and of their pages, the words of
    v's address, and the inputs of `focuscrawl.apprentice.standing.INPUTS`. These last have a
    prior, which orders the frontier until there is something to learn from and holds the model
    back while there is little: see `PRIOR_WEIGHTS`.

    The inputs of a judged URL are those it had when it was fetched, so that learning sees what
    deciding will see (no rate of a directory counts the page it predicts).

    Parameters
    ----------
    batch, growth : fetches from one lesson to the next: `batch`, and later `growth` times those
        made, since a lesson costs in proportion to the links known
    memory : judged URLs learned from, the latest: bounds the cost of a lesson
    learner : a fresh one, to study other settings
    """

    def __init__(
        self,
        *,
        batch: int = 10,
        growth: float = 0.01,
        memory: int = 3000,
        learner: LogisticLearner | None = None,
    ) -> None:
        self.batch = batch
        self.growth = growth
        self.memory = memory
        self.version = 0
        self.known = Known()
        self.observed = 0
        self._fetched = Fetched()
        self._standing = Standing()
        self._learner = fresh_learner() if learner is None else learner
        self._weights, self._dense = weights_of(self._learner)
        self._urls: list[int] = []  # judged URLs that had links when fetched
        self._inputs: list[NDArray[np.float64]] = []
        self._predicted: list[float] = []
        self._score = GrowingArray(np.float64)  # as last given out
        self._due = 0
        self._lesson_at: tuple[int, int] | None = None  # replayed up to there without scores
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
            if self._lesson_at is None and self._standing.has_links(url):
                inputs = self._standing.inputs(
                    np.array([url]), self.known.keys(np.array([url])), self._fetched
                )
                self._urls.append(url)
                self._inputs.append(inputs[0])
                self._predicted.append(float(self._scores(np.array([url]), inputs)[0]))
                del self._urls[: -self.memory]
                del self._inputs[: -self.memory]
                del self._predicted[: -self.memory]
            self.known.y.data[url] = relevance
            if self.known.has_keys(url):
                self._fetched.observe(self.known.keys(np.array([url]))[0], relevance)
            self.observed += 1
            self._due += 1
            self._reach_lesson()

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
            if self._lesson_at is not None or not len(urls):
                self._reach_lesson()
                return np.zeros(len(facts.targets)), urls, np.zeros(len(urls))
            margins = link_margins(self._weights, self.known, first, len(self.known))
            relevance = np.full(len(margins), facts.relevance[0])
            self._standing.add(
                self.known.n_urls,
                facts.targets,
                self.known.weight.data[first:],
                relevance,
                reading=facts.reading,
                hub=relevance,
                margin=margins,
            )
            inputs = self._standing.inputs(urls, self.known.keys(urls), self._fetched)
            rest = _dot(inputs, self._dense)
            rest += address_margins(self._weights, self.known, urls)
            scores = logistic(rest + self._standing.margins(urls))
            self._keep(urls, scores)
            place = np.searchsorted(urls, facts.targets)
            return logistic(rest[place] + margins), urls, scores

    def _add(self, url: int, facts: PageFacts) -> int:
        late = not (url < self.known.n_urls and self.known.has_keys(url))
        first = len(self.known)
        self.known.add(url, facts)
        if late:  # a seed: nothing was known of its address when it was observed
            self._fetched.observe(facts.own_keys[0], float(facts.relevance[0]))
        return first

    # -- learning ------------------------------------------------------------------------

    def lesson_due(self) -> bool:
        """Tell whether a batch is complete and there is enough to learn from."""
        batch = max(self.batch, int(self.growth * self.observed))
        return self._due >= batch and len(self._urls) >= _ENOUGH

    def learn(self) -> Taught:
        """Learn from the judged URLs; may run in another thread, once at a time.

        The apprentice can be used meanwhile, and changes nothing until `adopt`.
        """
        with self._lock:
            self._due = 0
            known, n_links, observed = self.known, len(self.known), self.observed
            n_urls = known.n_urls
            y = known.y.data.copy()
            fetched = self._fetched.copy()
            urls = np.array(self._urls, np.int64)
            inputs = np.array(self._inputs)
            predicted = np.array(self._predicted)
            learner = copy.deepcopy(self._learner)
        learner.partial_fit(bags(known, n_links, urls, inputs), y[urls])
        weights, dense = weights_of(learner)
        standing = stand(known, n_links, n_urls, y, weights)
        waiting = standing.urls()
        waiting = waiting[np.isnan(y[waiting])]
        margin = _dot(standing.inputs(waiting, known.keys(waiting), fetched), dense)
        margin += standing.margins(waiting) + address_margins(weights, known, waiting)
        version = self.version + 1
        recent = slice(-_VALIDATED, None)
        return Taught(
            version=version,
            observed=observed,
            links=n_links,
            instances=len(urls),
            metrics=validate(predicted[recent], y[urls[recent]]),
            state=pack(
                learner,
                lesson=np.array([version, observed, n_links]),
                urls=urls,
                inputs=inputs.reshape(-1, len(INPUTS)),
                predicted=predicted,
            ),
            urls=waiting,
            scores=logistic(margin),
            learner=learner,
            standing=standing,
        )

    def adopt(self, taught: Taught) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Score by what was learned from now on.

        Returns
        -------
        The URLs that got links while it was learned, and their scores: int64 (m,), float64 (m,)
        """
        with self._lock:
            self._take_up(taught.learner, taught.standing, taught.version)
            self._keep(taught.urls, taught.scores)
            urls = np.unique(self.known.target.data[taught.links :])
            self._add_since(taught.links)
            scores = self._scores(urls)
            self._keep(urls, scores)
            return urls, scores

    def rescore(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return all URLs with links that were not fetched, and their scores as last returned.

        After `load` and all that was repeated: as if the crawl had not been interrupted.
        """
        with self._lock:
            urls = self._waiting()
            return urls, self._score.data[urls].copy()

    def load(self, state: bytes) -> None:
        """Take up the model of the last lesson, before all `expand` and `observe` are repeated."""
        with np.load(io.BytesIO(state)) as arrays:
            self._learner.set_state(part_of(arrays, "m_"))
            self.version, observed, links = (int(x) for x in arrays["lesson"])
            self._urls = arrays["urls"].tolist()
            self._inputs = list(arrays["inputs"])
            self._predicted = arrays["predicted"].tolist()
        self._weights, self._dense = weights_of(self._learner)
        self._lesson_at = (observed, links)

    def graduate(self) -> bytes:
        """Return what another crawl can begin with: model, and rates of places and shapes."""
        with self._lock:
            places = self._fetched.places.get_state()
            shapes = self._fetched.shapes.get_state()
            return pack(
                self._learner,
                **{f"p_{name}": value for name, value in places.items()},
                **{f"s_{name}": value for name, value in shapes.items()},
            )

    def begin_with(self, graduate: bytes) -> None:
        """Begin a crawl with what an earlier one has learned; see `graduate`."""
        with np.load(io.BytesIO(graduate)) as arrays:
            self._learner.set_state(part_of(arrays, "m_")).believe()
            self._fetched.places.set_state(part_of(arrays, "p_"))
            self._fetched.shapes.set_state(part_of(arrays, "s_"))
        self._weights, self._dense = weights_of(self._learner)

    @property
    def judged(self) -> int:
        """Judged URLs that a lesson would learn from."""
        return len(self._urls)

    def has_links(self, url: int) -> bool:
        """Tell whether a link into `url` is known."""
        with self._lock:
            return self._standing.has_links(url)

    def explain(self, url: int) -> dict[str, float]:
        """Return what speaks for (above 0) and against fetching a URL that has links.

        The parts add up to the log-odds of its score: each of `INPUTS`, ``links (words)``: the
        hashed features of links and their pages, ``address (words)`` and ``intercept``.
        """
        with self._lock:
            urls = np.array([url])
            inputs = self._standing.inputs(urls, self.known.keys(urls), self._fetched)[0]
            parts = dict(zip(INPUTS, (inputs * self._dense[:-1]).tolist(), strict=True))
            parts["links (words)"] = float(self._standing.margins(urls)[0])
            parts["address (words)"] = float(address_margins(self._weights, self.known, urls)[0])
            parts["intercept"] = float(self._dense[-1])
            return parts

    def _reach_lesson(self) -> None:
        """Once what the lesson knew is repeated, stand where it left off."""
        if self._lesson_at is None:
            return
        observed, links = self._lesson_at
        if self.observed >= observed and len(self.known) >= links:
            self._lesson_at = None
            self._due = 0
            known = self.known
            self._standing = stand(known, links, known.n_urls, known.y.data, self._weights)

            waiting = self._waiting()
            self._keep(waiting, self._scores(waiting))

    def _waiting(self) -> NDArray[np.int64]:
        urls = self._standing.urls()
        waiting: NDArray[np.int64] = urls[np.isnan(self.known.y.data[urls])]
        return waiting

    def _keep(self, urls: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        self._score.grow(self.known.n_urls)
        self._score.data[urls] = scores

    def _take_up(self, learner: LogisticLearner, standing: Standing, version: int) -> None:
        self._learner, self._standing, self.version = learner, standing, version
        self._weights, self._dense = weights_of(learner)

    def _add_since(self, first: int) -> None:
        """Add the links found since link number `first`."""
        known, end = self.known, len(self.known)
        self._standing.add(
            known.n_urls,
            known.target.data[first:end],
            known.weight.data[first:end],
            known.relevance.data[first:end],
            reading=known.reading.data[first:end],
            hub=known.relevance.data[first:end],
            margin=link_margins(self._weights, known, first, end),
        )

    def _scores(
        self, urls: NDArray[np.int64], inputs: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        known = self.known
        if inputs is None:
            inputs = self._standing.inputs(urls, known.keys(urls), self._fetched)
        margin = self._standing.margins(urls)
        margin += _dot(inputs, self._dense)
        return logistic(margin + address_margins(self._weights, known, urls))


def _dot(inputs: NDArray[np.float64], dense: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply, and add the intercept: row by row, so that bits do not depend on other rows."""
    margin: NDArray[np.float64] = (inputs * dense[:-1]).sum(axis=1)
    margin += dense[-1]
    return margin
