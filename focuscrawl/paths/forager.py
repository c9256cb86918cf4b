"""Scores URLs by the link paths that lead to them; decides when to leave a site [C 3.2]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.evidence import RelevanceRates
from focuscrawl.apprentice.link_features import PREFIXES, url_key_table
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.paths.path_model import Calibration, PathModel


#: weight of the rate of the parent directory, in fetches
_WEIGHT = 0.5
#: recent fetches, and queued links, that a stopping check considers
WINDOW = 50
#: share of the goals of the training site with the fewest goals that must be found before a crawl
#: leaves a site
MIN_GOAL_SHARE = 0.25
#: consecutive checks that must vote to stop: an unpromising page may link to a list of goals
PATIENCE = 10
_EVERY = 10  # fetches between two checks
_STEPS = 20  # maximum number of steps of expectation maximisation
_TOLERANCE = 1e-4
_NO_PAGE = -1
_RESCORED = 10  # fetches of a site between two re-scorings of the site's queued URLs
_MOST_PATHS = 64  # paths to a page that are followed separately; those with the highest rewards
#: how the scores of several paths to one URL are combined
EVIDENCE_MODES = ("sum", "max", "mean")


class SiteRates:
    """Compares observed rewards with predicted rewards for each directory of a site.

    The path model is trained on other sites than the crawled site. On a new site a directory of
    pictures may look like a directory of people, until a few pages are fetched. The observed
    reward of a fetched page is computed from the label probabilities of the page. The predicted
    reward of a page is computed from the link to the page. Observed and predicted rewards are
    averaged for each directory, with smoothing towards the parent directory. The scores of queued
    URLs in a directory are multiplied by the ratio of observed to predicted rewards.
    """

    def __init__(self) -> None:
        self._observed = RelevanceRates(_WEIGHT)
        self._predicted = RelevanceRates(_WEIGHT)
        self._keys = [GrowingArray(np.uint32) for _ in range(PREFIXES)]

    def grow(self, length: int) -> None:
        """Allocate memory for the URLs with ids below `length`."""
        for column in self._keys:
            column.grow(length)

    def set_directories(self, urls: Ints, directories: NDArray[np.uint32]) -> None:
        """Record the directories of URLs, as `directory_keys` returns them."""
        for column, numbers in zip(self._keys, directories.T, strict=True):
            column.data[urls] = numbers

    def observe(self, url: int, predicted: float, observed: float) -> None:
        """Record the predicted and the observed reward of a fetched page."""
        keys = self._directories(np.array([url]))[0]
        self._predicted.observe(keys, predicted)
        self._observed.observe(keys, observed)

    def factors(self, urls: Ints) -> Floats:
        """Return the ratio of observed to predicted rewards in the directory of each URL."""
        keys = self._directories(urls)
        ratio = self._observed.rates(keys) / self._predicted.rates(keys)
        return np.round(ratio, 9)

    def _directories(self, urls: Ints) -> NDArray[np.uint32]:
        return np.stack([column.data[urls] for column in self._keys], axis=1)


def directory_keys(urls: Sequence[str]) -> NDArray[np.uint32]:
    """Return ids of the host and the directories of each URL, uint32 (n, `PREFIXES`)."""
    return url_key_table(urls)[:, :PREFIXES]


class SiteStopRule:
    """Decides when to stop fetching pages of a site [C section 3.2].

    In the paper [C], fetching stops when no link scores above a threshold. A score is a sum of
    rewards by a model that was trained on other sites, so the same threshold has a different
    effect on each site. The class `SiteStopRule` converts the model's probabilities to likelihood
    ratios with a calibration. The class `SiteStopRule` estimates the share of goal pages among the
    site's recent fetches by maximum likelihood. The share of goal pages is the prior probability
    that a queued link leads to a goal page.

    Parameters
    ----------
    calibration : Calibration
        Calibration of the model.
    least : float
        Expected goals per fetch below which the next fetches are not worth their cost.
    """

    def __init__(self, calibration: Calibration, least: float) -> None:
        self._calibration = calibration
        self._least = least
        self._evidence: list[float] = []
        self._at: dict[int, int] = {}
        self._seen = 0  # fetches at the last check
        self._found = 0.0
        self._poor = 0  # consecutive checks with too few expected goals

    def record_fetch(self, url: int) -> None:
        """Record a fetch of the site; it counts as no goal unless `record_page` is called."""
        self._at[url] = len(self._evidence)
        self._evidence.append(0.0)

    def record_page(self, url: int, goal: float) -> None:
        """Record the model's probability that a fetched page is a goal page."""
        at = self._at.pop(url, None)
        if at is not None:
            self._evidence[at] = float(self._calibration.page(np.array([goal]))[0])

    @property
    def is_due(self) -> bool:
        """Whether enough pages of the site were fetched since the last call of `should_stop`."""
        return len(self._evidence) >= self._seen + _EVERY

    def should_stop(self, goals: Floats) -> bool:
        """Return whether to stop fetching pages of the site; call the method if `is_due` is true.

        The array `goals` contains the probability that each of the `WINDOW` best queued links
        leads to a goal page.
        """
        evidence = np.array(self._evidence[-WINDOW:])
        share = self._share(evidence)
        new = len(self._evidence) - self._seen
        self._seen = len(self._evidence)
        self._found += float(_posterior(evidence[-new:], share).sum())
        ahead = self._calibration.link(goals)
        if _posterior(ahead, self._calibration.prior).max(initial=0.0) < self._least:
            return True  # too few, even if goals were as frequent as on the training paths
        expected = float(_posterior(ahead, share).sum()) / WINDOW
        enough = self._seen >= WINDOW and self._found >= MIN_GOAL_SHARE * self._calibration.goals
        self._poor = self._poor + 1 if enough and expected < self._least else 0
        return self._poor >= PATIENCE

    def _share(self, evidence: Floats) -> float:
        """Return the maximum-likelihood share of goals, by expectation maximisation.

        One more goal, as rare as on the training paths, keeps the share above 0.
        """
        share = prior = self._calibration.prior
        for _ in range(_STEPS):
            goals = _posterior(evidence, share).sum() + 1.0
            before, share = share, float(goals / (len(evidence) + 1.0 / prior))
            if abs(share - before) < _TOLERANCE:
                break
        return share


def _posterior(evidence: Floats, share: float) -> Floats:
    """Return Pr(goal) by Bayes' rule."""
    weighed = evidence * share
    return weighed / (weighed + 1.0 - share)


class ScoredLinks(NamedTuple):
    """Scores of a page's links, and new scores of the link targets.

    Attributes
    ----------
    link_scores : NDArray[np.float64] of shape (n_links,)
        Score of each link (eq. 7).
    urls, scores : NDArray[np.int64], NDArray[np.float64] of shape (n_urls,)
        URLs with new scores, and the scores; -inf removes a URL from the queue.
    """

    link_scores: Floats
    urls: Ints
    scores: Floats


@dataclass(slots=True)
class _Site:
    """A site in the crawl, identified by its start page."""

    start: str
    stop_rule: SiteStopRule | None
    fetches: int = 1
    judged: int = 0
    exhausted: bool = False


class Forager:
    """Estimates the labels of the pages of each site, and scores the queued URLs.

    A URL belongs to the site on which the first link to the URL was found. Links to the URL from
    other sites are ignored.

    Parameters
    ----------
    model : PathModel
        Trained model of paths.
    evidence : str
        How scores of several links into a URL are combined: ``sum`` [C 3.2], ``max`` or ``mean``.
    threshold : float
        URLs with lower scores are not fetched.
    per_site : int
        Maximum number of fetches per site; 0 sets no limit.
    stop : float
        Expected goals per fetch below which a site is left; 0 disables the rule. The rule needs a
        calibrated model.
    printed : bool
        Follow equations 6 and 7 as printed: a page has label probabilities for each path to the
        page, and the score of a URL is the sum over all paths. As the number of paths is not
        bounded, the forager follows those known when the page is fetched, at most 64 per page.
    adapt : bool
        Multiply scores by the rates of the site's directories, see `SiteRates`.
    """

    def __init__(
        self,
        model: PathModel,
        *,
        evidence: str = "sum",
        threshold: float = 0.0,
        per_site: int = 0,
        stop: float = 0.0,
        printed: bool = False,
        adapt: bool = False,
    ) -> None:
        self._model = model
        self._printed = printed
        self._rates = SiteRates() if adapt else None
        self._factor = GrowingArray(np.float64, fill=1.0)
        self._paths: dict[int, list[Floats]] = {}
        self._evidence = evidence
        self._threshold = threshold
        self._per_site = per_site
        self._stop = stop
        self._site = GrowingArray(np.int64, fill=_NO_PAGE)
        self._score = GrowingArray(np.float64)
        self._links = GrowingArray(np.int64)
        self._fetched = GrowingArray(np.bool_, fill=False)
        self._label_sums = [GrowingArray(np.float64) for _ in model.states.labels]
        self._best = GrowingArray(np.float64, fill=-1.0)
        self._parent = GrowingArray(np.int64, fill=_NO_PAGE)
        self._sites: list[_Site] = []

    def add_page(self, url: int, referrer: int, address: str) -> None:
        """Add a fetched page, before any other method is called for the page.

        The argument `referrer` is the id of the URL that first linked to the page, or -1 if the
        page starts a site. The argument `address` is the URL of the page.
        """
        self._grow(max(url, referrer))
        if self._rates is not None:
            self._rates.set_directories(np.array([url]), directory_keys([address]))
        site = int(self._site.data[url])
        if site != _NO_PAGE and (referrer >= 0 or self._sites[site].start == address):
            return
        if referrer >= 0 and self._site.data[referrer] != _NO_PAGE:
            # after a redirect, the page has the paths of the redirected URL
            for column in (self._site, self._links, self._best, self._parent, *self._label_sums):
                column.data[url] = column.data[referrer]
            if self._printed:
                self._paths[url] = [*self._paths.get(referrer, ())]
            return
        # a start page belongs to its own site, even if other sites link to the page
        self._site.data[url], self._links.data[url] = len(self._sites), 0
        self._parent.data[url] = _NO_PAGE
        self._paths.pop(url, None)
        known = self._model.calibration
        stop_rule = SiteStopRule(known, self._stop) if known is not None and self._stop else None
        self._sites.append(_Site(address, stop_rule))

    def site_start(self, url: int) -> str:
        """Return the start page of a page's site."""
        return self._sites[int(self._site.data[url])].start

    def parent(self, url: int) -> int:
        """Return the page with the best link to a URL so far; -1 if no page links to the URL."""
        return int(self._parent.data[url])

    def record_fetch(self, url: int) -> None:
        """Record the fetch of a URL with any outcome."""
        self._grow(url)
        self._fetched.data[url] = True
        number = int(self._site.data[url])
        if number != _NO_PAGE:
            site = self._sites[number]
            site.fetches += 1
            if site.stop_rule is not None:
                site.stop_rule.record_fetch(url)

    def record_page(self, url: int, goal: float, reward: float) -> None:
        """Record the estimated goal probability and reward of a fetched page, before `expand`."""
        site = self._sites[int(self._site.data[url])]
        if site.stop_rule is not None:
            site.stop_rule.record_page(url, goal)
        if self._rates is not None and self._links.data[url]:
            sums = np.array([each.data[url] for each in self._label_sums])
            predicted = float(sums @ self._model.rewards / self._links.data[url])
            self._rates.observe(url, predicted, reward)
            site.judged += 1

    def label_probabilities(self, url: int, page: Floats) -> Floats:
        """Return the label probabilities of a page, given its features and the paths to the page.

        Parameters
        ----------
        url : int
            Id of the URL.
        page : NDArray[np.float64] of shape (n_labels,)
            Log-potentials of the page's features.

        Returns
        -------
        NDArray[np.float64] of shape (n_paths, n_labels)
            One row for each path with `printed`, otherwise one row for all paths.
        """
        links = int(self._links.data[url])
        if self._printed:
            return self._probabilities_by_path(url, page)
        if not links:
            return self._model.start_label_probabilities(page)[None, :]
        of_links = np.array([each.data[url] for each in self._label_sums]) / links
        return self._model.page_label_probabilities(of_links, page)[None, :]

    def _probabilities_by_path(self, url: int, page: Floats) -> Floats:
        if url not in self._paths:
            return self._model.start_label_probabilities_as_printed(page)[None, :]
        paths = np.concatenate(self._paths.pop(url))
        best = np.argsort(-np.round(paths @ self._model.rewards, 9), kind="stable")[:_MOST_PATHS]
        return np.array([self._model.page_label_probabilities(each, page) for each in paths[best]])

    def expand(
        self,
        url: int,
        targets: Ints,
        labels: Floats,
        directories: NDArray[np.uint32] | None = None,
    ) -> ScoredLinks:
        """Add the links of a page; return the scores of the links.

        Parameters
        ----------
        url : int
            Id of the page's URL.
        targets : NDArray[np.int64] of shape (n_links,)
            Id of the URL that each link leads to.
        labels : NDArray[np.float64] of shape (n_paths, n_links, n_labels)
            Pr(label) of each link, by each path to the page.
        directories : NDArray[np.uint32] of shape (n_links, depth), or None
            Directories of the targets from `directory_keys`; required with `adapt`.
        """
        self._grow(int(targets.max(initial=0)))
        site = int(self._site.data[url])
        summed = labels.sum(axis=0)
        link_scores: Floats = np.round(summed @ self._model.rewards, 9)
        # of several links from a page to the same URL only the best counts as a path
        order = np.lexsort((np.arange(len(targets)), -link_scores, targets))
        first = order[np.flatnonzero(np.diff(targets[order], prepend=-1))]
        free = (self._site.data[targets[first]] == _NO_PAGE) & ~self._fetched.data[targets[first]]
        self._site.data[targets[first[free]]] = site
        first = first[self._site.data[targets[first]] == site]
        urls = targets[first]
        before = self._score.data[urls]
        for column, values in zip(self._label_sums, summed[first].T, strict=True):
            column.data[urls] += values
        self._links.data[urls] += len(labels)
        if self._printed:
            self._store_paths(urls, labels[:, first])
        better = link_scores[first] > self._best.data[urls]
        self._best.data[urls[better]] = link_scores[first[better]]
        self._parent.data[urls[better]] = url
        self._score.data[urls] = self._combine_scores(urls, before, link_scores[first])
        if self._rates is not None:
            assert directories is not None
            self._rates.set_directories(urls, directories[first])
            if self._sites[site].judged % _RESCORED == 0:
                urls = self._queued_urls(site)
            self._factor.data[urls] = self._rates.factors(urls)
        return ScoredLinks(link_scores, *self._changed_scores(site, urls))

    def _store_paths(self, urls: Ints, labels: Floats) -> None:
        """Keep Pr(label) by each path of URLs that are not fetched yet."""
        for i in np.flatnonzero(~self._fetched.data[urls]).tolist():
            self._paths.setdefault(int(urls[i]), []).append(labels[:, i])

    def _combine_scores(self, urls: Ints, before: Floats, new: Floats) -> Floats:
        if self._evidence == "sum":
            return before + new
        if self._evidence == "max":
            return np.maximum(before, new)
        sums = np.stack([each.data[urls] for each in self._label_sums], axis=1)
        mean: Floats = sums @ self._model.rewards / self._links.data[urls]
        return np.round(mean, 9)

    def _changed_scores(self, site: int, urls: Ints) -> tuple[Ints, Floats]:
        if self._is_finished(site):
            queued = self._queued_urls(site)
            return queued, np.full(len(queued), -np.inf)
        urls = urls[~self._fetched.data[urls]]
        scores = self._score.data[urls] * self._factor.data[urls]
        return urls, np.where(scores >= self._threshold, scores, -np.inf)

    def _is_finished(self, number: int) -> bool:
        """Tell whether to leave a site."""
        site = self._sites[number]
        if self._per_site and site.fetches >= self._per_site:
            return True
        if site.stop_rule is not None and not site.exhausted and site.stop_rule.is_due:
            queued = self._queued_urls(number)
            scores = self._score.data[queued] * self._factor.data[queued]
            best = queued[np.argsort(-scores, kind="stable")[:WINDOW]]
            goals = self._label_sums[0].data[best] / self._links.data[best]
            site.exhausted = site.stop_rule.should_stop(goals)
        return site.exhausted

    def _queued_urls(self, site: int) -> Ints:
        return np.flatnonzero((self._site.data == site) & ~self._fetched.data)

    def _grow(self, url: int) -> None:
        if url >= len(self._site):
            arrays = (self._site, self._score, self._links, self._fetched, *self._label_sums)
            for array in (*arrays, self._best, self._parent, self._factor):
                array.grow(url + url // 8 + 64)
            if self._rates is not None:
                self._rates.grow(len(self._site))
