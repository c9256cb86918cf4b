"""The class of trained path models, with calibration, saving, loading and use as a critic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.critic.protocol import Judgement
from focuscrawl.errors import UserError
from focuscrawl.foundation.arrays import (
    decode_lines,
    encode_lines,
    pack_arrays,
    require_array,
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
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.page import PageView
    from focuscrawl.paths.path_features import FeatureKeys


TOPIC = "/goal"
_ARRAYS = "model.npz"
FORMAT = ModelFormat("model of paths", ("paths",), 5, (_ARRAYS,), "focuscrawl paths train")
_SURE = 1e-4  # probabilities are clipped to [_SURE, 1 - _SURE]
_MOST = 50.0  # largest log-likelihood ratio


@dataclass(frozen=True, slots=True)
class LikelihoodRatio:
    """Converts log-odds x to a likelihood ratio of goal pages to other pages."""

    slope: float
    offset: float

    def __call__(self, probabilities: Floats) -> Floats:
        """Return Pr(p | goal) / Pr(p | no goal) for each p of `probabilities`."""
        evidence = self.slope * log_odds(probabilities) + self.offset
        return np.exp(np.minimum(evidence, _MOST))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibrates the model's goal probabilities for sites on which the model is not trained.

    The training paths have only a few failure pages per goal page, and the L2 penalty shrinks the
    weights. So on a new site the model gives off-topic pages a goal probability of about 0.1,
    although only about one page in a hundred is a goal page. The function
    `focuscrawl.paths.path_training.calibrate` fits the likelihood ratios.

    Attributes
    ----------
    link, page : LikelihoodRatio
        Likelihood ratios of links whose page is not fetched, and of pages.
    prior : float
        Share of goals among the training examples.
    goals : int
        Number of goals of the training site with the fewest goals.
    """

    link: LikelihoodRatio
    page: LikelihoodRatio
    prior: float
    goals: int


def log_odds(probabilities: Floats) -> Floats:
    """Return the log-odds log(p / (1 - p)) of probabilities p, clipped to a finite range."""
    kept = np.clip(probabilities, _SURE, 1.0 - _SURE)
    return np.log(kept / (1.0 - kept))


@dataclass(frozen=True)
class PathModel:
    """A trained path model (CRF), with its features and the rewards of its states.

    Attributes
    ----------
    rewards : NDArray[np.float64] of shape (n_labels,)
        Reward of each label (eq. 5).
    off_domain_share : float
        Share of goals outside the registered domain of their site's start page.
    calibration : Calibration or None
        Calibration for sites that the model is not trained on; None if the model has none.
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
        """Return the log-potential of each label, given the features of a page.

        The argument `start` is the start page of the site, or None if the site is unknown.
        """
        (row,) = self._scores(reader.page(view, start), slice(0, len(self.states)))
        return np.asarray(row)

    def link_potentials(
        self, reader: PathFeatureReader, view: PageView, start: str, links: Ints
    ) -> Floats:
        """Return the log-potential of each link state, given the features of links."""
        seen = reader.links(view, start, links)
        return self._scores(seen, slice(len(self.states), self.crf.structure.states))

    def domain_factors(self, view: PageView, start: str, links: Ints) -> Floats:
        """Return a factor for the score of each link, which is lower for links to other domains.

        The factor is 1 on the registered domain of the site's start page, and `off_domain_share`
        on other domains. The domain is also a feature of the path model (CRF). But on a site that
        resembles the training sites, other features would outweigh the domain.
        """
        home = split_url(start).domain
        urls = view.links.urls
        at_home = np.array([split_url(urls[i]).domain == home for i in links.tolist()], np.bool_)
        return np.where(at_home, 1.0, self.off_domain_share)

    def link_label_probabilities(self, page: Floats, links: Floats) -> Floats:
        """Return the label probabilities of links, computed by one step of equation 6 of [C].

        Parameters
        ----------
        page : NDArray[np.float64] of shape (n_labels,)
            Pr(label) of the page that contains the links.
        links : NDArray[np.float64] of shape (n_links, n_link_states)
            Log-potentials from `link_potentials`.
        """
        with np.errstate(divide="ignore"):
            logs = links + np.log(page @ self._page_to_link)
        if not self.states.one_state:
            return _normalised(logs)
        # sum over the labels of the page that contains the link
        logs += self._link_to_page
        top = logs.max(axis=1, keepdims=True, initial=-np.inf)
        k = len(self.states)
        ways = np.exp(logs - top).reshape(-1, k, k).sum(axis=1)
        labels: Floats = ways / ways.sum(axis=1, keepdims=True)
        return labels

    def page_label_probabilities(self, link: Floats, page: Floats) -> Floats:
        """Return the probability Pr(label) of each label of a page.

        Parameters
        ----------
        link : NDArray[np.float64] of shape (n_labels,)
            Pr(label) of the links to the page.
        page : NDArray[np.float64] of shape (n_labels,)
            Log-potentials from `page_potentials`.
        """
        with np.errstate(divide="ignore"):
            before = np.log(link)
        if not self.states.one_state:
            before += self._link_to_page
        return _normalised(page + before)

    def page_only_probabilities(self, reader: PathFeatureReader, view: PageView) -> Floats:
        """Return the probability Pr(label) of each label of a page of an unknown site."""
        return _normalised(self.page_potentials(reader, view, None))

    def start_label_probabilities(self, page: Floats) -> Floats:
        """Return the label probabilities of a site's start page, given its log-potentials."""
        starts = self.crf.structure.starts[: len(self.states)]
        return _normalised(np.where(starts, page, -np.inf))

    def start_label_probabilities_as_printed(self, page: Floats) -> Floats:
        """Return the label probabilities of a start page by equation 6 as printed in [C]."""
        k = len(self.states)
        ways = np.exp(self.crf.edge_[k:, :k])
        if self.states.one_state:  # the preceding state is a page, not a link
            ways = np.exp(self.crf.edge_[:k, k:]) @ ways
        with np.errstate(divide="ignore"):
            before = np.log(ways.sum(axis=0))
        return _normalised(page + before)

    @cached_property
    def _page_to_link(self) -> Floats:
        """Exponentials of the log-potentials from page states to link states."""
        k = len(self.states)
        edges = self.crf.edge_[:k, k:]
        factors: Floats = np.exp(edges - edges.max())
        return factors

    @cached_property
    def _link_to_page(self) -> Floats:
        """Log-potentials of the edge from each link state to the page state that follows."""
        k = len(self.states)
        potentials: Floats = self.crf.edge_[k:, :k].max(axis=1)
        return potentials

    def _scores(self, observed: FeatureKeys, states: slice) -> Floats:
        rows = self.vocabulary.rows(observed)
        # sums of rows as differences of cumulative sums: a sparse product is slow to set up
        sums = np.zeros((len(rows.indices) + 1, states.stop - states.start))
        weights = self.crf.state_[rows.indices, states] * self.vocabulary.values(rows)[:, None]
        np.cumsum(weights, axis=0, out=sums[1:])
        return sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]


def _normalised(logs: Floats) -> Floats:
    """Return exp(logs), scaled to the sum 1 over the last axis."""
    probabilities: Floats = np.exp(logs - logs.max(axis=-1, keepdims=True, initial=-np.inf))
    probabilities /= probabilities.sum(axis=-1, keepdims=True)
    return probabilities


class PathCritic:
    """A `Critic` that uses the probability that a page is a goal page as the page's relevance.

    The critic reads only the page, while `focuscrawl.strategies.path_strategy` also uses the path
    to the page. The classes of the critic are the labels of pages, written as topic paths.
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
    """Write a path model to the new folder `out`.

    Parameters
    ----------
    model : PathModel
        Trained model.
    out : Path
        Folder of the model.
    about : Mapping[str, Any]
        Facts about the training for users, such as the number of paths.

    Raises
    ------
    UserError
        `out` exists, or cannot be written.
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
        "names": encode_lines(model.vocabulary.names),
    }
    FORMAT.write(out, "paths", facts, {_ARRAYS: pack_arrays(arrays)})


def is_path_model(folder: str) -> bool:
    """Tell whether a folder contains a model of paths."""
    return FORMAT.exists_in(Path(folder))


def load_path_critic(folder: str, topic: str) -> PathCritic:
    """Load a model of paths as a critic.

    Raises
    ------
    UserError
        The folder has no model, the model is damaged or has another format, or `topic` is not
        the model's topic.
    """
    if topic.strip().strip("/") != TOPIC.strip("/"):
        raise UserError(f"{folder}: a model of paths has a single topic: add -a topic={TOPIC}")
    model, digest = read_model(Path(folder))
    return PathCritic(model, digest)


def read_model(folder: Path) -> tuple[PathModel, str]:
    """Return the path model in a folder, and a hexadecimal digest of the model.

    Raises
    ------
    UserError
        The folder has no model, or the model is damaged or has another format.
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
        raise ValueError("unknown labels")
    arrays = unpack_arrays(files[_ARRAYS])
    names = decode_lines(arrays, "names")
    if not {name.partition(" ")[0] for name in names} <= set(KINDS):
        raise ValueError("a feature of unknown kind")
    structure = states.structure
    crf = ChainCRF(structure)
    crf.set_weights(
        require_array(arrays, "shared", (len(names), len(structure.groups)), "f").astype(
            np.float64
        ),
        require_array(arrays, "edge", structure.edges.shape, "f").astype(np.float64),
    )
    rewards = require_array(arrays, "rewards", (len(labels),), "f").astype(np.float64)
    reading = ReadingLimits(int(manifest["words"]), int(manifest["near"]))
    away = float(manifest["away"])
    if not 0.0 <= away <= 1.0:
        raise ValueError("away is not a share")
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
        raise ValueError("invalid calibration")
    return read
