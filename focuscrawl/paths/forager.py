"""Scores of URLs by the paths into them, rates of directories, when to stop [C 3.2]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.evidence import RelevanceRates
from focuscrawl.apprentice.link_features import PREFIXES, url_key_table
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.paths.path_model import Calibration, PathModel


#: fetches that what is known of the larger directory counts for
_WEIGHT = 0.5
#: fetches that are looked back at, and ahead
WINDOW = 50
#: of the goals of the poorest site learned from, the share that is to be found before a site is
#: given up
MIN_GOAL_SHARE = 0.25
#: looks in a row that are to say so: a list of goals may be behind a page that looks like nothing
PATIENCE = 10
_EVERY = 10  # fetches from one look to the next
_STEPS = 20  # of expectation maximisation, at most
_EXACT = 1e-4
_NO_PAGE = -1
_RESCORED = 10  # fetches of a site after which all that waits there is scored again
_MOST_PATHS = 64  # to a page that are followed by themselves, those that promise most
#: how the scores of several paths to one URL make one
EVIDENCE_MODES = ("sum", "max", "mean")


class SiteRates:
    """Rewards that the directories of a site brought, against what the links into them promised.

    The model knows other sites. On this one a directory of pictures may look like one of people,
    and the other way round; a few fetches there tell them apart. The rewards of the pages that
    were fetched, by their labels, and those that their links had promised are averaged along the
    same chain of directories; their ratio is a factor on the scores of what waits there. URLs are
    dense numbers.
    """

    def __init__(self) -> None:
        self._brought = RelevanceRates(_WEIGHT)
        self._promised = RelevanceRates(_WEIGHT)
        self._keys = [GrowingArray(np.uint32) for _ in range(PREFIXES)]

    def grow(self, length: int) -> None:
        """Make room for so many URLs."""
        for column in self._keys:
            column.grow(length)

    def set_directories(self, urls: Ints, directories: NDArray[np.uint32]) -> None:
        """Take note of where URLs are; `directories` as from `directory_keys`."""
        for column, numbers in zip(self._keys, directories.T, strict=True):
            column.data[urls] = numbers

    def observe(self, url: int, promised: float, brought: float) -> None:
        """Take in the reward of a page that was fetched, and what the links to it had promised."""
        keys = self._directories(np.array([url]))[0]
        self._promised.observe(keys, promised)
        self._brought.observe(keys, brought)

    def factors(self, urls: Ints) -> Floats:
        """Return how much more than promised the directory of each URL brings, float64 (n,)."""
        keys = self._directories(urls)
        brought = self._brought.rates(keys)
        promised = self._promised.rates(keys)
        factors: Floats = np.round(brought / promised, 9)
        return factors

    def _directories(self, urls: Ints) -> NDArray[np.uint32]:
        return np.stack([column.data[urls] for column in self._keys], axis=1)


def directory_keys(urls: Sequence[str]) -> NDArray[np.uint32]:
    """Return numbers of host and directories of URLs, uint32 (n, `PREFIXES`); 0 after the last."""
    return url_key_table(urls)[:, :PREFIXES]


class SiteStopRule:
    """What fetches of a site brought, and whether its next ones are worth it [C 3.2].

    The paper stops when no link scores above a threshold. Scores are sums of rewards of a model
    that knows other sites, so that no threshold means the same on two of them. Here the model's
    probabilities are first made evidence by its calibration, and how many goals there are is
    learned from the site: the share of goals among the last fetches is the one under which their
    evidence is most probable, and the prior of what waits.

    Parameters
    ----------
    calibration : of the model
    least : goals a fetch below which the next fetches are not worth it
    """

    def __init__(self, calibration: Calibration, least: float) -> None:
        self._calibration = calibration
        self._least = least
        self._evidence: list[float] = []
        self._at: dict[int, int] = {}
        self._seen = 0  # fetches at the last look
        self._found = 0.0
        self._poor = 0  # looks in a row that expected too little

    def record_fetch(self, url: int) -> None:
        """Take note of a fetch: no goal until it is judged."""
        self._at[url] = len(self._evidence)
        self._evidence.append(0.0)

    def record_page(self, url: int, goal: float) -> None:
        """Take note of the model's Pr(goal) of a page that was fetched."""
        at = self._at.pop(url, None)
        if at is not None:
            self._evidence[at] = float(self._calibration.page(np.array([goal]))[0])

    @property
    def is_due(self) -> bool:
        """Whether there were enough fetches for another look."""
        return len(self._evidence) >= self._seen + _EVERY

    def should_stop(self, goals: Floats) -> bool:
        """Tell whether to give the site up; to be asked when it is `due`.

        Parameters
        ----------
        goals : the model's Pr(goal) of the `WINDOW` best links that wait
        """
        evidence = np.array(self._evidence[-WINDOW:])
        share = self._share(evidence)
        new = len(self._evidence) - self._seen
        self._seen = len(self._evidence)
        self._found += float(_posterior(evidence[-new:], share).sum())
        ahead = self._calibration.link(goals)
        if _posterior(ahead, self._calibration.prior).max(initial=0.0) < self._least:
            return True  # not even were goals as frequent as on the paths learned from
        expected = float(_posterior(ahead, share).sum()) / WINDOW
        enough = self._seen >= WINDOW and self._found >= MIN_GOAL_SHARE * self._calibration.goals
        self._poor = self._poor + 1 if enough and expected < self._least else 0
        return self._poor >= PATIENCE

    def _share(self, evidence: Floats) -> float:
        """Return the share of goals by which the evidence is most probable.

        By expectation maximisation, with one goal added to those seen, as rare as in the paths
        learned from: a share of 0 would never see another goal.
        """
        share = prior = self._calibration.prior
        for _ in range(_STEPS):
            goals = _posterior(evidence, share).sum() + 1.0
            before, share = share, float(goals / (len(evidence) + 1.0 / prior))
            if abs(share - before) < _EXACT:
                break
        return share


def _posterior(evidence: Floats, share: float) -> Floats:
    """Return Pr(goal) by Bayes' rule."""
    weighed = evidence * share
    probabilities: Floats = weighed / (weighed + 1.0 - share)
    return probabilities


class ScoredLinks(NamedTuple):
    """What a page's links bring.

    Attributes
    ----------
    link_scores : float64 (n,), eq. 7
    urls, scores : int64 (m,), float64 (m,), URLs with new scores; -inf: not worth a fetch any more
    """

    link_scores: Floats
    urls: Ints
    scores: Floats


@dataclass(slots=True)
class _Site:
    """A site that is foraged, by where it starts; with `stop_rule` it may be given up early."""

    start: str
    stop_rule: SiteStopRule | None
    fetches: int = 1
    judged: int = 0
    exhausted: bool = False


class Forager:
    """Per-site beliefs about pages, and scores of the URLs that wait.

    A URL belongs to the site from which it was reached first; paths of other sites to it do not
    count. URLs are dense numbers.

    Parameters
    ----------
    model : what was learned
    evidence : ``sum`` adds the scores of all links into a URL [C 3.2]; ``max`` takes the best;
        ``mean`` takes the mean over the links
    threshold : URLs that score below it are not worth a fetch
    per_site : fetches after which a site is given up; 0: never
    stop : goals a fetch below which a site is given up; 0: never. The model must be calibrated
    printed : whether equations 6 and 7 are taken as the paper prints them: a page has a belief
        for each path to it, and a URL the sum over all paths. There is no end to the paths of a
        site: what is followed are those known when a page is here, 64 of each page at most
    adapt : whether scores go by what the directories of the site brought so far, too
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
        """Take note that a page is here; must come before all else that is asked about it.

        Parameters
        ----------
        referrer : where it was first found; -1: nowhere, it starts a site
        address : of the page
        """
        self._grow(max(url, referrer))
        if self._rates is not None:
            self._rates.set_directories(np.array([url]), directory_keys([address]))
        site = int(self._site.data[url])
        if site != _NO_PAGE and (referrer >= 0 or self._sites[site].start == address):
            return
        if referrer >= 0 and self._site.data[referrer] != _NO_PAGE:
            # a redirect led here: what is known of the one URL holds for the other
            for column in (self._site, self._links, self._best, self._parent, *self._label_sums):
                column.data[url] = column.data[referrer]
            if self._printed:
                self._paths[url] = [*self._paths.get(referrer, ())]
            return
        # whatever other sites have of it, this one starts here
        self._site.data[url], self._links.data[url] = len(self._sites), 0
        self._parent.data[url] = _NO_PAGE
        self._paths.pop(url, None)
        known = self._model.calibration
        stop_rule = SiteStopRule(known, self._stop) if known is not None and self._stop else None
        self._sites.append(_Site(address, stop_rule))

    def site_start(self, url: int) -> str:
        """Return where the site of a page begins."""
        return self._sites[int(self._site.data[url])].start

    def parent(self, url: int) -> int:
        """Return the page with the best link to a URL so far; -1: none."""
        return int(self._parent.data[url])

    def record_fetch(self, url: int) -> None:
        """Take note of a fetch, whatever it brought."""
        self._grow(url)
        self._fetched.data[url] = True
        number = int(self._site.data[url])
        if number != _NO_PAGE:
            site = self._sites[number]
            site.fetches += 1
            if site.stop_rule is not None:
                site.stop_rule.record_fetch(url)

    def record_page(self, url: int, goal: float, reward: float) -> None:
        """Take note of a page that is here, before its links are taken in.

        Parameters
        ----------
        goal, reward : Pr(goal), and the mean reward over its labels
        """
        site = self._sites[int(self._site.data[url])]
        if site.stop_rule is not None:
            site.stop_rule.record_page(url, goal)
        if self._rates is not None and self._links.data[url]:
            sums = np.array([each.data[url] for each in self._label_sums])
            promised = float(sums @ self._model.rewards / self._links.data[url])
            self._rates.observe(url, promised, reward)
            site.judged += 1

    def label_probabilities(self, url: int, page: Floats) -> Floats:
        """Return Pr(label) of a page by the paths to it and its features, float64 (paths, K).

        One row for all paths, or as printed one for each.

        Parameters
        ----------
        page : log-potentials of its features, float64 (K,)
        """
        links = int(self._links.data[url])
        if self._printed:
            return self._probabilities_by_path(url, page)
        if not links:
            return self._model.start_label_probabilities(page)[None, :]
        of_links = np.array([each.data[url] for each in self._label_sums]) / links
        return self._model.page_label_probabilities(of_links, page)[None, :]

    def _probabilities_by_path(self, url: int, page: Floats) -> Floats:
        """Return Pr(label) of a page by each path to it, float64 (paths, K)."""
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
        """Take in the links of a page.

        Parameters
        ----------
        url : the page
        targets : int64 (n,), where its links lead
        labels : float64 (paths, n, K), Pr(label) of the links, by each path to the page
        directories : uint32 (n, depth), see `directory_keys`; needed to adapt
        """
        self._grow(int(targets.max(initial=0)))
        site = int(self._site.data[url])
        summed = labels.sum(axis=0)
        link_scores: Floats = np.round(summed @ self._model.rewards, 9)
        # of several links from a page to another the best one is a path, not each
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
        self._score.data[urls] = self._combined(urls, before, link_scores[first])
        if self._rates is not None:
            assert directories is not None
            self._rates.set_directories(urls, directories[first])
            if self._sites[site].judged % _RESCORED == 0:
                urls = self._queued_urls(site)
            self._factor.data[urls] = self._rates.factors(urls)
        return ScoredLinks(link_scores, *self._changed_scores(site, urls))

    def _store_paths(self, urls: Ints, labels: Floats) -> None:
        """Keep Pr(label) by each path of URLs that are yet to be fetched."""
        for i in np.flatnonzero(~self._fetched.data[urls]).tolist():
            self._paths.setdefault(int(urls[i]), []).append(labels[:, i])

    def _combined(self, urls: Ints, before: Floats, new: Floats) -> Floats:
        if self._evidence == "sum":
            return before + new
        if self._evidence == "max":
            return np.maximum(before, new)
        sums = np.stack([each.data[urls] for each in self._label_sums], axis=1)
        mean: Floats = sums @ self._model.rewards / self._links.data[urls]
        return np.round(mean, 9)

    def _changed_scores(self, site: int, urls: Ints) -> tuple[Ints, Floats]:
        if self._is_finished(site):
            waiting = self._queued_urls(site)
            return waiting, np.full(len(waiting), -np.inf)
        urls = urls[~self._fetched.data[urls]]
        scores = self._score.data[urls] * self._factor.data[urls]
        return urls, np.where(scores >= self._threshold, scores, -np.inf)

    def _is_finished(self, number: int) -> bool:
        """Tell whether a site is given up."""
        site = self._sites[number]
        if self._per_site and site.fetches >= self._per_site:
            return True
        if site.stop_rule is not None and not site.exhausted and site.stop_rule.is_due:
            waiting = self._queued_urls(number)
            scores = self._score.data[waiting] * self._factor.data[waiting]
            best = waiting[np.argsort(-scores, kind="stable")[:WINDOW]]
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
