"""Training of the path model (CRF), and its calibration on held-out sites."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from focuscrawl.apprentice.hashing import row_pointers
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import resolve_header
from focuscrawl.paths.crf import ChainCRF, Sequences
from focuscrawl.paths.path_features import (
    KINDS,
    FeatureKeys,
    FeatureVocabulary,
    ReadingLimits,
    split_url,
)
from focuscrawl.paths.path_model import Calibration, LikelihoodRatio, PathModel, log_odds
from focuscrawl.paths.states import FAIL, GOAL, PathStates, printed_rewards, rewards
from focuscrawl.webs.web_protocol import HtmlAnswer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.page import PageView
    from focuscrawl.paths.path_features import PathFeatureReader
    from focuscrawl.paths.training_paths import SitePath
    from focuscrawl.webs.web_protocol import Source


_KEPT = 3000  # pages in the cache
_REDIRECTS = 5  # redirects followed from a link
_SITES, _POSITIONS = 2, 3  # minimum number of sites and positions with a feature of the model
_PENALTY = 10.0  # C of the calibration; keeps the slope finite if models recognise all goals


class WebPages:
    """The given pages of a web, and the links between these pages.

    Pages of a recording are read again at each access, and pages of the live Web are cached.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.view = lru_cache(_KEPT)(self._view)
        self.targets = lru_cache(None)(self._targets)

    def _view(self, url: str) -> PageView | None:
        """Return the page that `url` leads to after redirects; None if there is none."""
        for _ in range(_REDIRECTS + 1):
            answer = self._source.fetch(url)
            if answer is None:
                return None
            location = answer.header("location")
            if location is None or not 300 <= answer.status < 400:
                page = HtmlAnswer.from_answer(answer, url)
                return None if page is None else page.parse()
            target = resolve_header(url, location)
            (known,) = [None] if target is None else self._source.resolve([target])
            if known is None:
                return None
            url = known
        return None

    def _targets(self, url: str) -> list[str | None]:
        """Return the target of each link of a page; None for targets that the source lacks."""
        view = self.view(url)
        return [] if view is None else self._source.resolve(view.links.urls)

    def links(self, url: str) -> list[str]:
        """Return the distinct other pages that a page links to, in document order."""
        found = dict.fromkeys(to for to in self.targets(url) if to is not None)
        return [to for to in found if to != url]


@dataclass(frozen=True)
class TrainingOptions:
    """Options for training a path model.

    Attributes
    ----------
    milestones : bool
        Page states are the pages' labels (fully supervised), not distances to the goal.
    farthest : int
        Largest distance with a state of its own.
    untied : bool
        Distances share no features.
    one_state : bool
        Each label has one state, and links are transitions (figure 1a).
    l2 : float
        Strength of the penalty, see `ChainCRF`.
    gamma : float
        Discount, see `focuscrawl.paths.states.rewards`.
    max_iter : int
        Maximum number of L-BFGS iterations.
    printed_rewards : bool
        Compute rewards by equations 3 to 5 exactly as printed.
    """

    milestones: bool = True
    farthest: int = 5
    untied: bool = False
    one_state: bool = False
    l2: float = 1.0
    gamma: float = 0.9
    max_iter: int = 60
    printed_rewards: bool = False
    reading: ReadingLimits = field(default_factory=ReadingLimits)


def train(
    corpus: Corpus, training: TrainingOptions, on_iteration: Callable[[], object] = lambda: None
) -> PathModel:
    """Train a model of paths.

    Raises
    ------
    UserError
        No path to a goal, or none to a fail, could be read.
    """
    ends = {path.labels[-1] for path in corpus.paths}
    for end, kind in ((GOAL, "goal"), (FAIL, "fail")):
        if end not in ends:
            raise UserError(
                f"none of the {len(corpus.paths)} readable paths ends at a {kind}: "
                f"add paths that end at a {kind}"
            )
    vocabulary = choose_features(corpus)
    if training.milestones:
        labels = [label for path in corpus.paths for label in path.labels if label is not None]
        states = PathStates.supervised(labels, one_state=training.one_state)
    else:
        states = PathStates.partially_supervised(
            training.farthest, one_state=training.one_state, tied=not training.untied
        )
    crf = ChainCRF(states.structure, l2=training.l2, max_iter=training.max_iter)
    crf.fit(*training_examples(corpus, vocabulary, states), on_iteration=on_iteration)
    model = PathModel(
        states,
        vocabulary,
        crf,
        np.zeros(len(states)),
        estimate_off_domain_share(corpus),
        training.reading,
    )
    return with_rewards(model, corpus, training)


def with_rewards(model: PathModel, corpus: Corpus, training: TrainingOptions) -> PathModel:
    """Return the model with rewards of its labels, which are computed from training paths.

    The reward of a label is the reward of the label's link state. If `one_state` is set, the
    reward is that of the label's page state.
    """
    observed, k = feature_sequences(corpus, model.vocabulary), len(model.states)
    one_state = model.states.one_state
    if training.printed_rewards:
        values = printed_rewards(model.crf, observed, gamma=training.gamma, pages_only=one_state)
    else:
        values = rewards(model.crf, observed, gamma=training.gamma)
    return replace(model, rewards=values[:k] if one_state else values[k:])


class Corpus(NamedTuple):
    """The observed features of the pages and links of n paths.

    Attributes
    ----------
    paths : list[SitePath]
        Paths whose pages could be read.
    observed : list[NDArray[np.uint64]]
        Keys of the features at each position, path after path.
    bounds : NDArray[np.int64] of shape (n + 1,)
        Path i has the positions from ``bounds[i]`` to ``bounds[i + 1]``.
    sites : NDArray[np.int64] of shape (n,)
        Id of each path's site.
    names : dict[int, str]
        ``kind word`` of each key.
    """

    paths: list[SitePath]
    observed: list[NDArray[np.uint64]]
    bounds: Ints
    sites: Ints
    names: dict[int, str]


def select_sites(corpus: Corpus, sites: Sequence[int]) -> Corpus:
    """Return the paths of the sites with the given ids."""
    chosen = np.flatnonzero(np.isin(corpus.sites, sites))
    lengths = np.diff(corpus.bounds)[chosen]
    observed = [
        keys
        for path in chosen.tolist()
        for keys in corpus.observed[corpus.bounds[path] : corpus.bounds[path + 1]]
    ]
    return Corpus(
        [corpus.paths[path] for path in chosen.tolist()],
        observed,
        row_pointers(lengths),
        np.searchsorted(np.unique(corpus.sites[chosen]), corpus.sites[chosen]),
        corpus.names,
    )


def read_corpus(paths: Sequence[SitePath], pages: WebPages, reader: PathFeatureReader) -> Corpus:
    """Read the features of all pages and links of paths.

    A path is left out if `pages` lacks one of its pages or a link from a page to the next page.
    The argument `reader` must store the words of all features.
    """
    kept: list[SitePath] = []
    observed: list[NDArray[np.uint64]] = []
    lengths: list[int] = []
    seen: dict[tuple[str, ...], NDArray[np.uint64] | None] = {}
    for path in paths:
        steps: list[tuple[str, ...]] = [(path.start, path.pages[0])]
        for page, to in pairwise(path.pages):
            steps += [(path.start, page, to), (path.start, to)]
        for step in steps:
            if step not in seen:
                seen[step] = _observed(pages, reader, *step)
        of_path = [keys for step in steps if (keys := seen[step]) is not None]
        if len(of_path) == len(steps):
            kept.append(path)
            observed += of_path
            lengths.append(len(steps))
    starts = {start: i for i, start in enumerate(dict.fromkeys(path.start for path in kept))}
    sites = np.array([starts[path.start] for path in kept], np.int64)
    return Corpus(
        kept, observed, row_pointers(np.array(lengths, np.int64)), sites, reader.names(observed)
    )


def _observed(
    pages: WebPages, reader: PathFeatureReader, start: str, page: str, to: str | None = None
) -> NDArray[np.uint64] | None:
    """Return the features of a page, or of all its links to page `to`; None if missing."""
    view = pages.view(page)
    if view is None:
        return None
    if to is None:
        return np.unique(reader.page(view, start).keys)
    there = np.array([i for i, url in enumerate(pages.targets(page)) if url == to], np.int64)
    return np.unique(reader.links(view, start, there).keys) if len(there) else None


def estimate_off_domain_share(corpus: Corpus) -> float:
    """Return the share of goal pages outside the registered domain of their site's start page.

    For smoothing, half a goal page inside and half a goal page outside the domain are added.
    """
    goals = {(path.start, path.pages[-1]) for path in corpus.paths if path.labels[-1] == GOAL}
    away = sum(split_url(start).domain != split_url(goal).domain for start, goal in goals)
    return (away + 0.5) / (len(goals) + 1.0)


def choose_features(corpus: Corpus) -> FeatureVocabulary:
    """Return the features that occur at three or more positions, and on two or more sites.

    Features of a single site are mostly the site's own words, which do not help on other sites.
    """
    sites = min(_SITES, len(set(corpus.sites.tolist())))
    seen: Counter[int] = Counter()
    on: dict[int, set[int]] = {}
    distinct: dict[bytes, None] = {}
    for path, (start, end) in enumerate(zip(corpus.bounds[:-1], corpus.bounds[1:], strict=True)):
        for keys in corpus.observed[start:end]:
            at = bytes([corpus.sites[path]]) + keys.tobytes()
            if at in distinct:
                continue  # the same page on several paths counts once
            distinct[at] = None
            for key in keys.tolist():
                seen[key] += 1
                on.setdefault(key, set()).add(int(corpus.sites[path]))
    chosen = [key for key, n in seen.items() if n >= _POSITIONS and len(on[key]) >= sites]
    names = sorted((corpus.names[key] for key in chosen), key=_by_kind)
    return FeatureVocabulary(names)


def feature_sequences(corpus: Corpus, vocabulary: FeatureVocabulary) -> Sequences:
    """Return the observed features of all paths, by their indices in a vocabulary."""
    lengths = np.array([len(keys) for keys in corpus.observed], np.int64)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    observed = FeatureKeys(np.concatenate(corpus.observed), owner, len(lengths))
    rows = vocabulary.rows(observed)
    shape = (len(rows), len(vocabulary))
    matrix = csr_array((vocabulary.values(rows), rows.indices, rows.indptr), shape=shape)
    return Sequences(matrix, corpus.bounds)


class Examples(NamedTuple):
    """Training examples, as arguments of the method `ChainCRF.fit`."""

    sequences: Sequences
    known: Bools
    weight: Floats


def training_examples(
    corpus: Corpus, vocabulary: FeatureVocabulary, states: PathStates
) -> Examples:
    """Return whole paths, and paths that are cut off after a link, as training examples.

    A crawl scores a link before the page is fetched. In whole paths the many words of pages
    explain the labels so well that the weights of the few words of links stay small. In a path
    that is cut off after a link, only the link predicts the label of the next page.

    If m training examples have the same pages except the last page, each example has the weight 1
    / m. With the weight 1 for each example, the model would memorise the words of a page that is
    on a hundred paths. A cut-off path with which n paths start has the weight sqrt(n) / m instead,
    because otherwise the few cut-off paths to lists of goal pages would count little.
    """
    whole = feature_sequences(corpus, vocabulary)
    labels_of = allowed_path_states(corpus, states)
    unseen = whole.observed.shape[0]
    rows: list[Ints] = []
    known: list[Bools] = []
    prefixes: dict[tuple[str, ...], int] = {}
    left: list[tuple[bool, tuple[str, ...]]] = []  # whether a whole path; all pages but the last
    onward: Counter[int] = Counter()
    for number, path in enumerate(corpus.paths):
        positions = np.arange(corpus.bounds[number], corpus.bounds[number + 1])
        labels = labels_of[number]
        rows.append(positions)
        known.append(labels)
        left.append((True, path.pages[:-1]))
        for end in range(1, len(path.pages)):
            prefix = path.pages[: end + 1]
            if prefix not in prefixes:
                prefixes[prefix] = len(rows)
                rows.append(np.append(positions[: 2 * end], unseen))
                known.append(labels[: 2 * end + 1])
                left.append((False, prefix[:-1]))
            onward[prefixes[prefix]] += 1
    siblings = Counter(left)
    weight = np.array(
        [math.sqrt(onward.get(i, 1)) / siblings[each] for i, each in enumerate(left)]
    )
    observed = vstack([whole.observed, csr_array((1, len(vocabulary)))], format="csr")
    bounds = row_pointers(np.array([len(each) for each in rows], np.int64))
    return Examples(
        Sequences(observed[np.concatenate(rows)], bounds), np.concatenate(known), weight
    )


def allowed_path_states(corpus: Corpus, states: PathStates) -> list[Bools]:
    """Return the possible states of each page and link of each path, given known labels."""
    ahead = _clicks_to_goal(corpus)
    return [states.allowed_states(path.labels, ahead[i]) for i, path in enumerate(corpus.paths)]


def _clicks_to_goal(corpus: Corpus) -> list[list[int | None]]:
    """Return the clicks from each page of each path to the next goal.

    Pages of a path without a goal ahead get their distance from the last page of the path that
    also lies on a path to a goal of the same site.
    """
    clicks: dict[tuple[str, str], int] = {}
    found: list[list[int | None]] = []
    for path in corpus.paths:
        goals = [i for i, label in enumerate(path.labels) if label == GOAL]
        own = [next((g - i for g in goals if g >= i), None) for i in range(len(path.pages))]
        found.append(own)
        for page, near in zip(path.pages, own, strict=True):
            if near is not None:
                at = path.start, page
                clicks[at] = min(near, clicks.get(at, near))
    for path, own in zip(corpus.paths, found, strict=True):
        far: int | None = None
        for i in range(len(own) - 1, -1, -1):
            if own[i] is None and path.labels[i] != FAIL:
                far = clicks.get((path.start, path.pages[i])) if far is None else far + 1
                own[i] = far
    return found


def _by_kind(name: str) -> tuple[int, str]:
    kind, _, word = name.partition(" ")
    return KINDS.index(kind), word


def calibrate(corpus: Corpus, training: TrainingOptions) -> Calibration | None:
    """Calibrate the model's goal probabilities by cross-validation over sites.

    For each site, a model trained on the other sites predicts the site's pages and links.

    Parameters
    ----------
    corpus : Corpus
        Paths of several sites.
    training : TrainingOptions
        Options of the models.

    Returns
    -------
    Calibration or None
        None if fewer than two sites have both paths to goals and paths to fails.
    """
    links, pages, most = [], [], []
    for rest, held in split_by_site(corpus):
        model = train(rest, training)
        k = len(model.states)
        found = training_examples(held, model.vocabulary, model.states)
        marginals = model.crf.marginals(found.sequences)
        ends = found.sequences.bounds[1:] - 1
        ahead = np.diff(found.sequences.observed.indptr)[ends] == 0  # page not fetched yet
        known = found.known[ends, :k]
        goal = known[:, 0] & (known.sum(axis=1) == 1)
        pairs = np.stack([marginals[ends, 0], goal], axis=1)
        links.append(pairs[ahead])
        pages.append(pairs[~ahead])
        most.append(len({path.pages[-1] for path in held.paths if path.succeeds}))
    if not most:
        return None
    link, page = np.concatenate(links), np.concatenate(pages)
    return Calibration(
        _fit_likelihood_ratio(link),
        _fit_likelihood_ratio(page),
        float(page[:, 1].mean()),
        min(most),
    )


def split_by_site(corpus: Corpus) -> Iterator[tuple[Corpus, Corpus]]:
    """Yield for each held-out site the paths of all other sites and the paths of the site.

    Sites without paths to goal pages, or without paths to failure pages, are left out. If fewer
    than two sites remain, the function yields nothing.
    """
    numbers = range(int(corpus.sites.max(initial=-1)) + 1)
    parts = {each: select_sites(corpus, [each]) for each in numbers}
    both = [n for n in numbers if len({path.succeeds for path in parts[n].paths}) == 2]
    if len(both) > 1:
        for held in both:
            yield select_sites(corpus, [n for n in both if n != held]), parts[held]


def _fit_likelihood_ratio(pairs: Floats) -> LikelihoodRatio:
    """Fit a ratio to rows of Pr(goal) and whether the page was a goal."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - slow to import

    probabilities, goal = pairs.T
    fitted = LogisticRegression(C=_PENALTY).fit(log_odds(probabilities)[:, None], goal)
    share = goal.mean()
    return LikelihoodRatio(
        float(fitted.coef_[0, 0]), float(fitted.intercept_[0] - np.log(share / (1.0 - share)))
    )
