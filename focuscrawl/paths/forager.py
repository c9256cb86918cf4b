"""Scores of URLs by the paths into them, while a site is foraged [C 3.2]."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.foundation.arrays import GrowingArray
from focuscrawl.paths.site_rates import SiteRates, directories_of
from focuscrawl.paths.stopping import SPAN, Prospect

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.paths.model import PathModel

_NOBODY = -1
_RESCORED = 10  # fetches of a site after which all that waits there is scored anew
_MOST_PATHS = 64  # to a page that are followed by themselves, those that promise most
#: how the scores of several paths to one URL make one
EVIDENCE = ("sum", "max", "mean")


class Expanded(NamedTuple):
    """What a page's links bring.

    Attributes
    ----------
    link_scores : float64 (n,), eq. 7
    urls, scores : int64 (m,), float64 (m,), URLs with new scores; -inf: not worth a fetch any more
    """

    link_scores: NDArray[np.float64]
    urls: NDArray[np.int64]
    scores: NDArray[np.float64]


class Forager:
    """Per-site beliefs about pages, and scores of the URLs that wait.

    A URL belongs to the site from which it was reached first; paths of other sites to it do not
    count. URLs are dense numbers.

    Parameters
    ----------
    model : what was learned
    evidence : ``sum`` adds the scores of all links into a URL [C 3.2]; ``max`` takes the best;
        ``mean`` takes the mean of what the links say
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
        self._judged: list[int] = []
        self._paths: dict[int, list[NDArray[np.float64]]] = {}
        self._evidence = evidence
        self._threshold = threshold
        self._per_site = per_site
        self._stop = stop
        self._site = GrowingArray(np.int64, fill=_NOBODY)
        self._score = GrowingArray(np.float64)
        self._links = GrowingArray(np.int64)
        self._fetched = GrowingArray(np.bool_, fill=False)
        self._said = [GrowingArray(np.float64) for _ in model.states.labels]
        self._best = GrowingArray(np.float64, fill=-1.0)
        self._parent = GrowingArray(np.int64, fill=_NOBODY)
        self._starts: list[str] = []
        self._spent: list[int] = []
        self._prospects: list[Prospect] = []
        self._exhausted: list[bool] = []

    def arrive(self, url: int, referrer: int, address: str) -> None:
        """Take note that a page is here; must come before all else that is asked about it.

        Parameters
        ----------
        referrer : where it was first found; -1: nowhere, it begins a site
        address : of the page
        """
        self._make_room(max(url, referrer))
        if self._rates is not None:
            self._rates.note(np.array([url]), directories_of([address]))
        site = int(self._site.data[url])
        if site != _NOBODY and (referrer >= 0 or self._starts[site] == address):
            return
        if referrer >= 0 and self._site.data[referrer] != _NOBODY:
            # a redirect led here: what was said of the one URL is said of the other
            for column in (self._site, self._links, self._best, self._parent, *self._said):
                column.data[url] = column.data[referrer]
            if self._printed:
                self._paths[url] = [*self._paths.get(referrer, ())]
            return
        # whatever other sites said of it, this one begins here
        self._site.data[url], self._links.data[url] = len(self._starts), 0
        self._parent.data[url] = _NOBODY
        self._paths.pop(url, None)
        self._starts.append(address)
        self._spent.append(1)
        self._judged.append(0)
        self._exhausted.append(False)
        if self._stop:
            assert self._model.calibration is not None
            self._prospects.append(Prospect(self._model.calibration, self._stop))

    def start_of(self, url: int) -> str:
        """Return where the site of a page begins."""
        return self._starts[int(self._site.data[url])]

    def parent(self, url: int) -> int:
        """Return the page with the best link to a URL so far; -1: none."""
        return int(self._parent.data[url])

    def fetched(self, url: int) -> None:
        """Take note of a fetch, whatever it brought."""
        self._make_room(url)
        self._fetched.data[url] = True
        site = int(self._site.data[url])
        if site != _NOBODY:
            self._spent[site] += 1
            if self._stop:
                self._prospects[site].fetched(url)

    def judged(self, url: int, goal: float, reward: float) -> None:
        """Take note of a page that is here, before its links are taken in.

        Parameters
        ----------
        goal, reward : Pr(goal), and the mean reward over its labels
        """
        site = int(self._site.data[url])
        if self._stop:
            self._prospects[site].judged(url, goal)
        if self._rates is not None and self._links.data[url]:
            said = np.array([each.data[url] for each in self._said])
            promised = float(said @ self._model.rewards / self._links.data[url])
            self._rates.observe(url, promised, reward)
            self._judged[site] += 1

    def belief(self, url: int, page: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Pr(label) of a page by the paths to it and its features, float64 (paths, K).

        One row for all paths, or as printed one for each.

        Parameters
        ----------
        page : log-potentials of its features, float64 (K,)
        """
        links = int(self._links.data[url])
        if self._printed:
            return self._beliefs(url, page)
        if not links:
            return self._model.begun(page)[None, :]
        said = np.array([each.data[url] for each in self._said]) / links
        return self._model.arrived(said, page)[None, :]

    def _beliefs(self, url: int, page: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Pr(label) of a page by each path to it, float64 (paths, K)."""
        if url not in self._paths:
            return self._model.begun_as_printed(page)[None, :]
        said = np.concatenate(self._paths.pop(url))
        best = np.argsort(-np.round(said @ self._model.rewards, 9), kind="stable")[:_MOST_PATHS]
        return np.array([self._model.arrived(each, page) for each in said[best]])

    def expand(
        self,
        url: int,
        targets: NDArray[np.int64],
        labels: NDArray[np.float64],
        directories: NDArray[np.uint32] | None = None,
    ) -> Expanded:
        """Take in the links of a page.

        Parameters
        ----------
        url : the page
        targets : int64 (n,), where its links lead
        labels : float64 (paths, n, K), Pr(label) of the links, by each path to the page
        directories : uint32 (n, depth), see `directories_of`; needed to adapt
        """
        self._make_room(int(targets.max(initial=0)))
        site = int(self._site.data[url])
        summed = labels.sum(axis=0)
        link_scores: NDArray[np.float64] = np.round(summed @ self._model.rewards, 9)
        # of several links from a page to another the best one is a path, not each
        order = np.lexsort((np.arange(len(targets)), -link_scores, targets))
        first = order[np.flatnonzero(np.diff(targets[order], prepend=-1))]
        free = (self._site.data[targets[first]] == _NOBODY) & ~self._fetched.data[targets[first]]
        self._site.data[targets[first[free]]] = site
        first = first[self._site.data[targets[first]] == site]
        urls = targets[first]
        before = self._score.data[urls]
        for said, column in zip(self._said, summed[first].T, strict=True):
            said.data[urls] += column
        self._links.data[urls] += len(labels)
        if self._printed:
            self._remember(urls, labels[:, first])
        better = link_scores[first] > self._best.data[urls]
        self._best.data[urls[better]] = link_scores[first[better]]
        self._parent.data[urls[better]] = url
        self._score.data[urls] = self._combined(urls, before, link_scores[first])
        if self._rates is not None:
            assert directories is not None
            self._rates.note(urls, directories[first])
            if self._judged[site] % _RESCORED == 0:
                urls = self._waiting(site)
            self._factor.data[urls] = self._rates.factors(urls)
        return Expanded(link_scores, *self._worth(site, urls))

    def _remember(self, urls: NDArray[np.int64], labels: NDArray[np.float64]) -> None:
        """Keep what each path says of URLs that are yet to be fetched."""
        for i in np.flatnonzero(~self._fetched.data[urls]).tolist():
            self._paths.setdefault(int(urls[i]), []).append(labels[:, i])

    def _combined(
        self, urls: NDArray[np.int64], before: NDArray[np.float64], new: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if self._evidence == "sum":
            return before + new
        if self._evidence == "max":
            return np.maximum(before, new)
        said = np.stack([each.data[urls] for each in self._said], axis=1)
        mean: NDArray[np.float64] = said @ self._model.rewards / self._links.data[urls]
        return np.round(mean, 9)

    def _worth(
        self, site: int, urls: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        if self._over(site):
            waiting = self._waiting(site)
            return waiting, np.full(len(waiting), -np.inf)
        urls = urls[~self._fetched.data[urls]]
        scores = self._score.data[urls] * self._factor.data[urls]
        return urls, np.where(scores >= self._threshold, scores, -np.inf)

    def _over(self, site: int) -> bool:
        """Tell whether a site is given up."""
        if self._per_site and self._spent[site] >= self._per_site:
            return True
        if self._stop and not self._exhausted[site] and self._prospects[site].due:
            waiting = self._waiting(site)
            scores = self._score.data[waiting] * self._factor.data[waiting]
            best = waiting[np.argsort(-scores, kind="stable")[:SPAN]]
            goals = self._said[0].data[best] / self._links.data[best]
            self._exhausted[site] = self._prospects[site].exhausted(goals)
        return self._exhausted[site]

    def _waiting(self, site: int) -> NDArray[np.int64]:
        return np.flatnonzero((self._site.data == site) & ~self._fetched.data)

    def _make_room(self, url: int) -> None:
        if url >= len(self._site):
            arrays = (self._site, self._score, self._links, self._fetched, *self._said)
            for array in (*arrays, self._best, self._parent, self._factor):
                array.grow(url + url // 8 + 64)
            if self._rates is not None:
                self._rates.make_room(len(self._site))
