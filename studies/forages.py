"""Foraging a site with learned paths: results, their figure, an oracle and other models [C]."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.naive_bayes import MultinomialNB

from focuscrawl.paths.crf import ChainCRF
from focuscrawl.paths.path_features import split_url
from focuscrawl.paths.path_model import PathModel
from focuscrawl.paths.path_training import (
    allowed_path_states,
    choose_features,
    estimate_off_domain_share,
    feature_sequences,
)
from focuscrawl.paths.states import PathStates
from focuscrawl.report.figures import LineStyle, add_legend, escape_label, single_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.paths.path_training import Corpus, TrainingOptions

    Links = Callable[[str], list[str]]

ORACLE = "oracle"
_GAMMA = 0.5  # discount per click, as in Rennie and McCallum 1999
_NEVER = -50.0  # log-potential of transitions that do not occur


@dataclass(frozen=True)
class TargetSite:
    """A site to forage, with the goals and pages that can be reached from its start page."""

    goal: str
    site: str
    goals: set[str]
    pages: set[str]

    @property
    def own(self) -> int:
        """Number of pages on the registered domain of the start page."""
        return len(same_domain(self.site, self.pages))


@dataclass(frozen=True)
class Forage:
    """Result of a strategy on the held-out site.

    Attributes
    ----------
    goal, site, strategy : str
        Goal, start page and strategy.
    stop : float
        Expected goals per fetch below which the crawl stops; 0 disables the rule.
    reachable, pages : int
        Number of goals and of pages that can be reached from the start page.
    own : int
        Number of these pages on the registered domain of the start page.
    fetches : int
        Number of fetches.
    on_the_way : int
        Number of fetches that were goals or pages on the path to a goal.
    found : NDArray[np.int64]
        Fetches that found goals, from 1.
    """

    goal: str
    site: str
    strategy: str
    stop: float
    reachable: int
    pages: int
    own: int
    fetches: int
    on_the_way: int
    found: Ints

    def until(self, recall: float) -> int | None:
        """Return the number of fetches until this recall; None if the recall was not reached."""
        wanted = goals_for(recall, self.reachable)
        return int(self.found[wanted - 1]) if len(self.found) >= wanted else None


def goals_for(recall: float, reachable: int) -> int:
    """Return the number of goals at this recall, at least one."""
    return max(int(np.ceil(recall * reachable - 1e-9)), 1)


def foraged(target_site: TargetSite, strategy: str, fetches: Mapping[str, str | None]) -> Forage:
    """Return the result of fetches.

    Parameters
    ----------
    target_site, strategy : TargetSite, str
        Site and strategy.
    fetches : Mapping[str, str or None]
        Page that first linked to each fetched URL, in the order of the fetches.
    """
    found: list[int] = []
    on_the_way: set[str] = set()
    for seq, url in enumerate(fetches, 1):
        if url in target_site.goals:
            found.append(seq)
            at: str | None = url
            while at is not None and at not in on_the_way:
                on_the_way.add(at)
                at = fetches.get(at)
    return Forage(
        target_site.goal,
        target_site.site,
        strategy,
        stop=0.0,
        reachable=len(target_site.goals),
        pages=len(target_site.pages),
        own=target_site.own,
        fetches=len(fetches),
        on_the_way=len(on_the_way),
        found=np.array(found, np.int64),
    )


def same_domain(site: str, pages: Iterable[str]) -> set[str]:
    """Return the pages on the registered domain of a start page."""
    home = split_url(site).domain
    return {url for url in pages if split_url(url).domain == home}


def reachable(start: str, links: Links) -> set[str]:
    """Return the pages that can be reached from a start page, and the start page."""
    return set(clicks({start}, links))


def clicks(starts: Iterable[str], links: Links) -> dict[str, str | None]:
    """Return the predecessor of each page on a shortest path, nearest pages first."""
    before: dict[str, str | None] = dict.fromkeys(starts)
    waiting = deque(before)
    while waiting:
        page = waiting.popleft()
        for to in links(page):
            if to not in before:
                before[to] = page
                waiting.append(to)
    return before


def best_forage(target_site: TargetSite, links: Links, recall: float) -> Forage:
    """Forage a site along short paths to its goals, until a share `recall` of them is found.

    The smallest set of pages that connects a start page with its goals is a Steiner tree, which is
    hard to compute. This oracle is greedy: of all pages that list goals it visits the page with
    the most goals per fetch, with the fetches of the goals, and repeats. So this result can be
    reached. More than one goal per fetch, after the shortest path to a goal, cannot.
    """
    lists = {
        page: found
        for page in target_site.pages
        if (found := target_site.goals & set(links(page)))
    }
    fetched: dict[str, str | None] = {target_site.site: None}
    wanted = goals_for(recall, len(target_site.goals)) if target_site.goals else 0
    missing = wanted - len(target_site.goals & fetched.keys())
    while missing > 0:
        before = clicks(fetched, links)
        ways = {page: _new(page, before) for page in lists}
        worth = {
            page: min(len(found - fetched.keys() - set(ways[page])), missing)
            for page, found in lists.items()
        }
        best = max(
            (page for page in lists if worth[page]),
            key=lambda page: (worth[page] / (worth[page] + len(ways[page])), page),
        )
        for page in ways[best]:
            fetched[page] = before[page]
        left = [goal for goal in links(best) if goal in target_site.goals and goal not in fetched]
        missing = wanted - len(target_site.goals & fetched.keys())
        fetched.update(dict.fromkeys(left[: max(missing, 0)], best))
        missing = wanted - len(target_site.goals & fetched.keys())
    return foraged(target_site, ORACLE, fetched)


def _new(page: str, before: Mapping[str, str | None]) -> list[str]:
    """Return the pages to fetch on the path to a page, with the page."""
    way = []
    at: str | None = page
    while at is not None and before[at] is not None:
        way.append(at)
        at = before[at]
    return way[::-1]


def q_values(corpus: Corpus, training: TrainingOptions) -> PathModel:
    """Return a model of the value of a link by the link's words (Rennie and McCallum 1999).

    Naive Bayes predicts the distance from the link to the next goal. The score is the mean of
    ``gamma ** distance``, 0 for a fail. The page that contains the link does not matter.
    """
    model = _untrained(corpus, training)
    k = len(model.states)
    words, prior = _naive_bayes(corpus, model, links=True)
    state, edge = np.zeros_like(model.crf.shared_), np.zeros_like(model.crf.edge_)
    state[:, k:] = words
    edge[:k, k:] = prior
    model.crf.set_weights(state, edge)
    return model


def context_graphs(corpus: Corpus, training: TrainingOptions) -> PathModel:
    """Return a model of the layer of a page by the page's words (Diligenti et al. 2000).

    All links of a page have the layer of the page, and the value ``gamma ** layer``. The layer of
    the previous page has little influence next to naive Bayes on the page's words.
    """
    model = _untrained(corpus, training)
    k = len(model.states)
    words, _ = _naive_bayes(corpus, model, links=False)
    state, edge = np.zeros_like(model.crf.shared_), np.zeros_like(model.crf.edge_)
    state[:, :k] = words
    edge[:k, k:] = np.where(np.eye(k, dtype=np.bool_), 0.0, _NEVER)
    model.crf.set_weights(state, edge)
    return model


def _untrained(corpus: Corpus, training: TrainingOptions) -> PathModel:
    """Return a model without weights, whose labels are distances to the next goal [C 1.1]."""
    vocabulary = choose_features(corpus)
    states = PathStates.supervised([str(i) for i in range(1, training.farthest + 1)])
    crf = ChainCRF(states.structure)
    crf.set_weights(np.zeros((len(vocabulary), 2 * len(states))), np.zeros((2 * len(states),) * 2))
    rewards = np.array([1.0, 0.0, *(_GAMMA**i for i in range(1, training.farthest + 1))])
    return PathModel(
        states, vocabulary, crf, rewards, estimate_off_domain_share(corpus), training.reading
    )


def _naive_bayes(corpus: Corpus, model: PathModel, *, links: bool) -> tuple[Floats, Floats]:
    """Return log Pr(feature | label) and log Pr(label) of pages or links with known distance."""
    k = len(model.states)
    distances = PathStates.partially_supervised(k - 2)
    known = np.concatenate(allowed_path_states(corpus, distances))
    known = known[:, k:] if links else known[:, :k]
    there = known.sum(axis=1) == 1
    observed = feature_sequences(corpus, model.vocabulary).observed[there]
    fitted = MultinomialNB().fit(observed, known[there].argmax(axis=1))
    words = np.full((observed.shape[1], k), fitted.feature_log_prob_.min())
    words[:, fitted.classes_] = fitted.feature_log_prob_.T
    prior = np.full(k, _NEVER)
    prior[fitted.classes_] = fitted.class_log_prior_
    return words, prior


def recall_curve(forage: Forage, fetches: int) -> Floats:
    """Return the share of reachable goals found after 0, 1, ... `fetches` fetches."""
    brought = np.bincount(forage.found, minlength=fetches + 1)[: fetches + 1]
    curve: Floats = np.cumsum(brought) / max(forage.reachable, 1)
    return curve


def recall_figure(forages: Mapping[str, Sequence[Forage]], title: str, fetches: int) -> Figure:
    """Draw mean recall over sites by fetches, with thin lines for sites of the first strategy."""
    x = np.arange(fetches + 1)
    with single_plot(height=4.4) as (figure, plot):
        for number, (strategy, select_sites) in enumerate(forages.items()):
            line = LineStyle.of(number)
            curves = [recall_curve(each, fetches) for each in select_sites]
            if not number and len(curves) > 1:
                for curve in curves:
                    plot.plot(x, curve, color=line.colour, lw=0.7, alpha=0.45)
            line.draw(plot, x, np.mean(curves, axis=0), strategy)
        first = next(iter(forages))
        if len(forages[first]) > 1:
            plot.plot([], [], color="0.4", lw=0.7, label=f"thin: {first}, each site")
        plot.axhline(0.9, color="0.6", lw=0.8)
        plot.set(
            xlabel="fetches",
            ylabel="share of reachable goals found",
            xlim=(0, fetches),
            ylim=(-0.01, 1.01),
            title=escape_label(title),
        )
        add_legend(figure, columns=3)
    return figure
