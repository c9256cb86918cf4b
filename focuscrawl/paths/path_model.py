"""A trained model of paths, calibrated, on disk, and as a critic."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.critic.protocol import Judgement
from focuscrawl.errors import UserError
from focuscrawl.foundation.arrays import (
    array_of_lines,
    expect,
    lines_of,
    pack_arrays,
    unpack_arrays,
)
from focuscrawl.foundation.model_folder import ModelFormat
from focuscrawl.paths.crf import ChainCRF
from focuscrawl.paths.path_features import (
    KINDS,
    FeatureVocabulary,
    PathFeatureReader,
    ReadingLimits,
    split_url,
)
from focuscrawl.paths.states import PathStates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.page import PageView
    from focuscrawl.paths.path_features import FeatureKeys


TOPIC = "/goal"
_ARRAYS = "model.npz"
FORMAT = ModelFormat("model of paths", ("paths",), 5, (_ARRAYS,), "focuscrawl paths train")
_SURE = 1e-4  # nothing is surer, goal or not
_MOST = 50.0  # evidence that a float can hold


@dataclass(frozen=True, slots=True)
class LikelihoodRatio:
    """How much more often goals than others are given a probability p: exp(slope x + offset).

    x are the log-odds of p.
    """

    slope: float
    offset: float

    def __call__(self, probabilities: Floats) -> Floats:
        """Return Pr(p | goal) / Pr(p | no goal), float64, for each of `probabilities`."""
        evidence = self.slope * log_odds(probabilities) + self.offset
        odds: Floats = np.exp(np.minimum(evidence, _MOST))
        return odds


@dataclass(frozen=True, slots=True)
class Calibration:
    """What Pr(goal) is worth on a site that the model did not learn from.

    The model is fitted to paths with a few fails for each goal, and shrunk by its penalty: it
    gives a page of a new site that is nothing .1, and a goal .5, where a forage meets one goal in
    a hundred pages. `focuscrawl.paths.path_training.calibrate` fits what that is worth.

    Attributes
    ----------
    link, page : evidence by the model's Pr(goal) of links whose page is not fetched, and of pages
    prior : share of goals among what it was fitted to
    goals : on paths of the site learned from that has the fewest
    """

    link: LikelihoodRatio
    page: LikelihoodRatio
    prior: float
    goals: int


def log_odds(probabilities: Floats) -> Floats:
    """Return log p / (1 - p), float64, of probabilities; none is taken to be sure."""
    kept = np.clip(probabilities, _SURE, 1.0 - _SURE)
    odds: Floats = np.log(kept / (1.0 - kept))
    return odds


@dataclass(frozen=True)
class PathModel:
    """The chain model with its features and rewards.

    Attributes
    ----------
    states : K labels
    vocabulary : features, by number
    crf : fitted
    rewards : float64 (K,), of each label (eq. 5)
    off_domain_share : share of goals that are not on the registered domain of their site's start
    reading : how much of a page is read
    calibration : what its Pr(goal) is worth on other sites; None: not known
    """

    states: PathStates
    vocabulary: FeatureVocabulary
    crf: ChainCRF
    rewards: Floats
    off_domain_share: float
    reading: ReadingLimits
    calibration: Calibration | None = None

    def page_potentials(
        self, reader: PathFeatureReader, view: PageView, start: str | None
    ) -> Floats:
        """Return the log-potential of each label by a page's features, float64 (K,).

        Parameters
        ----------
        start : where the site begins; None: not known
        """
        (row,) = self._scores(reader.page(view, start), slice(0, len(self.states)))
        return np.asarray(row)

    def link_potentials(
        self, reader: PathFeatureReader, view: PageView, start: str, links: Ints
    ) -> Floats:
        """Return the log-potential of each link state by the features of links, float64."""
        seen = reader.links(view, start, links)
        return self._scores(seen, slice(len(self.states), self.crf.structure.states))

    def domain_factors(self, view: PageView, start: str, links: Ints) -> Floats:
        """Return what each link keeps of its score for where it leads, float64 (n,).

        1 on the registered domain of the site's start, `away` elsewhere. Which domain a link
        leads to is a feature as well, but one of many: on the site of another department, which
        looks like those learned from, the others would outweigh it.
        """
        home = split_url(start).domain
        urls = view.links.urls
        at_home = np.array([split_url(urls[i]).domain == home for i in links.tolist()], np.bool_)
        kept: Floats = np.where(at_home, 1.0, self.off_domain_share)
        return kept

    def link_label_probabilities(self, page: Floats, links: Floats) -> Floats:
        """Return Pr(label) of links, float64 (n, K): one step of eq. 6, normalised.

        Parameters
        ----------
        page : float64 (K,), Pr(label) of the page they are on
        links : log-potentials as from `links`
        """
        with np.errstate(divide="ignore"):
            logs = links + np.log(page @ self._onward)
        if not self.states.one_state:
            return _normalised(logs)
        # the label of the page that the link is on is summed out
        logs += self._arriving
        top = logs.max(axis=1, keepdims=True, initial=-np.inf)
        k = len(self.states)
        ways = np.exp(logs - top).reshape(-1, k, k).sum(axis=1)
        labels: Floats = ways / ways.sum(axis=1, keepdims=True)
        return labels

    def page_label_probabilities(self, link: Floats, page: Floats) -> Floats:
        """Return Pr(label) of a page, float64 (K,).

        Parameters
        ----------
        link : float64 (K,), Pr(label) of the links that led to it
        page : log-potentials as from `page`
        """
        with np.errstate(divide="ignore"):
            before = np.log(link)
        if not self.states.one_state:
            before += self._arriving
        return _normalised(page + before)

    def page_only_probabilities(self, reader: PathFeatureReader, view: PageView) -> Floats:
        """Return Pr(label) of a page whose site is not known, float64 (K,)."""
        return _normalised(self.page_potentials(reader, view, None))

    def start_label_probabilities(self, page: Floats) -> Floats:
        """Return Pr(label) of the start page of a site, float64 (K,)."""
        starts = self.crf.structure.starts[: len(self.states)]
        return _normalised(np.where(starts, page, -np.inf))

    def start_label_probabilities_as_printed(self, page: Floats) -> Floats:
        """Return Pr(label) of such a page by eq. 6: each state weighs 1 at the place before."""
        k = len(self.states)
        ways = np.exp(self.crf.edge_[k:, :k])
        if self.states.one_state:  # a page is before it, not a link
            ways = np.exp(self.crf.edge_[:k, k:]) @ ways
        with np.errstate(divide="ignore"):
            before = np.log(ways.sum(axis=0))
        return _normalised(page + before)

    @cached_property
    def _onward(self) -> Floats:
        """Exponentials of the log-potentials from page states to link states."""
        k = len(self.states)
        edges = self.crf.edge_[:k, k:]
        onward: Floats = np.exp(edges - edges.max())
        return onward

    @cached_property
    def _arriving(self) -> Floats:
        """Log-potentials from each link state to the page state it leads to."""
        k = len(self.states)
        arriving: Floats = self.crf.edge_[k:, :k].max(axis=1)
        return arriving

    def _scores(self, observed: FeatureKeys, states: slice) -> Floats:
        rows = self.vocabulary.rows(observed)
        # sums of rows by differences of running sums: a sparse product is slow to set up
        sums = np.zeros((len(rows.indices) + 1, states.stop - states.start))
        weights = self.crf.state_[rows.indices, states] * self.vocabulary.values(rows)[:, None]
        np.cumsum(weights, axis=0, out=sums[1:])
        scores: Floats = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
        return scores


def _normalised(logs: Floats) -> Floats:
    """Return exp(logs) (..., K), scaled to the sum 1."""
    probabilities: Floats = np.exp(logs - logs.max(axis=-1, keepdims=True, initial=-np.inf))
    probabilities /= probabilities.sum(axis=-1, keepdims=True)
    return probabilities


class PathCritic:
    """A `Critic`: R(u) = Pr(u is a goal | the page alone).

    The site of a page is known by its path only (`focuscrawl.strategies.path_strategy`).

    Parameters
    ----------
    model : what was learned
    fingerprint : of the model

    Attributes
    ----------
    classes : labels of pages, as topic paths
    marked, examples, fingerprint : as `Critic` has them; no examples
    """

    def __init__(self, model: PathModel, fingerprint: str) -> None:
        self.model = model
        self.classes: tuple[str, ...] = tuple(
            f"/{label.strip('/')}" for label in model.states.labels
        )
        self.marked = np.array([path == TOPIC for path in self.classes], np.bool_)
        self.examples: tuple[str, ...] = ()
        self.fingerprint = fingerprint
        self._reader = PathFeatureReader(model.reading)

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        """Judge `pages`."""
        if not pages:
            return Judgement(np.zeros(0), np.zeros((0, len(self.classes))))
        found = np.array(
            [self.model.page_only_probabilities(self._reader, page) for page in pages]
        )
        return Judgement(found[:, 0], found)


def save_model(model: PathModel, out: Path, about: Mapping[str, Any]) -> None:
    """Write a model to the folder `out`, whole or not at all.

    Parameters
    ----------
    about : for people: how many paths it is from, say

    Raises
    ------
    UserError
        `out` is there already, or cannot be written.
    """
    facts = {
        "labels": model.states.labels,
        "distances": model.states.distances,
        "one_state": model.states.one_state,
        "tied": model.states.tied,
        "away": model.off_domain_share,
        "words": model.reading.words,
        "near": model.reading.near,
        "calibration": None if model.calibration is None else asdict(model.calibration),
        **about,
    }
    arrays = {
        "shared": model.crf.shared_.astype(np.float32),
        "edge": np.where(model.crf.structure.edges, model.crf.edge_, 0.0),
        "rewards": model.rewards,
        "names": array_of_lines(model.vocabulary.names),
    }
    FORMAT.write(out, "paths", facts, {_ARRAYS: pack_arrays(arrays)})


def is_path_model(folder: str) -> bool:
    """Tell whether there is a model of paths in a folder."""
    return FORMAT.is_in(Path(folder))


def load_path_critic(folder: str, topic: str) -> PathCritic:
    """Load a model of paths as a critic.

    Raises
    ------
    UserError
        There is none, it is damaged or of another format, or `topic` is not its topic.
    """
    if topic.strip().strip("/") != TOPIC.strip("/"):
        raise UserError(f"{folder}: a model of paths has one topic: add -a topic={TOPIC}")
    model, digest = read_model(Path(folder))
    return PathCritic(model, digest)


def read_model(folder: Path) -> tuple[PathModel, str]:
    """Return the model in a folder, and a hex digest of it.

    Raises
    ------
    UserError
        There is none, it is damaged, or of another format.
    """
    return FORMAT.read(folder, _unpack)


def _unpack(manifest: dict[str, Any], files: dict[str, bytes]) -> PathModel:
    labels = [str(label) for label in manifest["labels"]]
    one_state = bool(manifest["one_state"])
    if manifest["distances"]:
        tied = bool(manifest["tied"])
        states = PathStates.partially_supervised(len(labels) - 2, one_state=one_state, tied=tied)
    else:
        states = PathStates.supervised(labels, one_state=one_state)
    if list(states.labels) != labels or not all(label.isprintable() for label in labels):
        raise ValueError("labels that no model has")
    arrays = unpack_arrays(files[_ARRAYS])
    names = lines_of(arrays, "names")
    if not {name.partition(" ")[0] for name in names} <= set(KINDS):
        raise ValueError("a feature of no kind")
    structure = states.structure
    crf = ChainCRF(structure)
    crf.set_weights(
        expect(arrays, "shared", (len(names), len(structure.groups)), "f").astype(np.float64),
        expect(arrays, "edge", structure.edges.shape, "f").astype(np.float64),
    )
    rewards = expect(arrays, "rewards", (len(labels),), "f").astype(np.float64)
    reading = ReadingLimits(int(manifest["words"]), int(manifest["near"]))
    away = float(manifest["away"])
    if not 0.0 <= away <= 1.0:
        raise ValueError("a share that is none")
    calibration = _calibration(manifest["calibration"])
    return PathModel(states, FeatureVocabulary(names), crf, rewards, away, reading, calibration)


def _calibration(found: dict[str, Any] | None) -> Calibration | None:
    if found is None:
        return None
    link, page = (
        LikelihoodRatio(float(found[kind]["slope"]), float(found[kind]["offset"]))
        for kind in ("link", "page")
    )
    numbers = [link.slope, link.offset, page.slope, page.offset]
    read = Calibration(link, page, float(found["prior"]), int(found["goals"]))
    if not (0.0 < read.prior < 1.0 and read.goals > 0 and np.isfinite(numbers).all()):
        raise ValueError("a calibration that is none")
    return read
