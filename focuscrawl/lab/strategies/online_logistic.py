"""Scores links by online logistic regression on five features, mostly matches of keywords."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.strategies.base import Expansion, check_count
from focuscrawl.strategies.knowledge_strategy import TermMatcher, has_term, query_terms
from focuscrawl.strategies.rescoring import LinkLog, RescoringStrategy

if TYPE_CHECKING:
    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext


_PRIOR = np.array([2.0, 1.5, 1.0, 0.5, 0.5])  # weights of anchor, URL, line, page, phrase
_PRECISION = 0.25  # prior precision of each weight: one observation at p = 1/2
_SURE = 1.645  # standard deviations; 5 % one-sided
_DECAY = 0.9  # factor per click
_LEAST, _FIRST_PAGES = 0.15, 3  # smallest weight of a word; pages before words are weighted


class LinkMatches(NamedTuple):
    """The keywords in and near each of n links, and the relevance of the linking pages.

    Attributes
    ----------
    anchor, url, line : NDArray[np.int64] of shape (n,)
        Sets of keywords in each anchor, URL and line, as bits (`TermMatcher`).
    relevance : NDArray[np.float64] of shape (n,)
        Relevance R(u) of the page with the link.
    depth : NDArray[np.int64] of shape (n,)
        Clicks from a start page to the target.
    """

    anchor: Ints
    url: Ints
    line: Ints
    relevance: Floats
    depth: Ints

    def features(self, words: Floats) -> Floats:
        """Return the five features of each link, in [0, 1], computed from keyword weights."""
        total = max(float(words.sum()), 1e-9)
        found = [has_term(hits, len(words)) for hits in (self.anchor, self.url, self.line)]
        matches = [(hits @ words) / total for hits in found]
        phrase = found[0].sum(axis=1) >= 2
        return np.column_stack([*matches, self.relevance, phrase])


class Weights(NamedTuple):
    """Weights of the five link features and of the keywords."""

    features: Floats
    words: Floats

    def scores(self, signals: LinkMatches) -> Floats:
        """Return the score of each link, which is a weighted sum of the link's features."""
        scores = (signals.features(self.words) * self.features).sum(axis=1)
        decayed: Floats = np.round(scores * _DECAY**signals.depth, 9)
        return decayed


class OnlineRegression:
    """Online logistic regression on five link features, with weights of at least 0."""

    def __init__(self) -> None:
        self._mean = np.append(_PRIOR, 0.0)  # last is the intercept, which does not affect scores
        self._precision = np.full(6, _PRECISION)
        self.used = _PRIOR

    def learn(self, features: Floats, relevant: bool) -> None:
        """Update the regression with the features of a followed link."""
        x = np.append(features, 1.0)
        p = float(expit(self._mean @ x))
        self._precision += p * (1.0 - p) * x**2
        self._mean += (relevant - p) * x / self._precision
        mean = self._mean[:5]
        moved = np.abs(mean - self.used) > _SURE / np.sqrt(self._precision[:5])
        self.used = np.where(moved, np.maximum(mean, 0.0), self.used)


class OnlineLogistic(RescoringStrategy[Weights]):
    """Score links by a weighted sum of five features, with weights trained after each fetch.

    The score formula is that of the Rust library pagesift-frontier 1.x
    (<https://docs.rs/crate/pagesift-frontier>, modules focus, focus::model and focus::weights):

        score(v) = 0.9^depth (w1 anchor + w2 URL + w3 line + w4 R(u) + w5 phrase),

    The features anchor, URL and line are the weighted shares of the keywords found in the anchor,
    in the URL and in the words near the link. In the formula, R(u) is the relevance of the linking
    page u. The feature phrase is 1 if the anchor contains two or more keywords. After N >= 3
    fetched pages, a keyword that occurs in df pages has the weight ln((N + 1) / (df + 1/2)) /
    ln(N+1), clipped to [0.15, 1]. Every keyword has the weight 1 before the third page is fetched.
    The feature weights w1 to w5 start at 2, 1.5, 1, 0.5 and 0.5, in this order. The precision q of
    each weight starts at 1/4. A followed link to a page v has a feature vector x, which includes
    an intercept. The link updates the weights w and precisions q as follows:

        p = expit(w x),  q += p (1 - p) x^2,  w += ([R(v) > 1/2] - p) x / q

    The update is algorithm 3 of Chapelle and Li, An empirical evaluation of Thompson sampling,
    NIPS 2011, with one step per sample. Scores use the new value of a feature weight only when the
    weight has changed by more than its standard error. Feature weights below 0 are used as 0. If
    several links lead to a URL, only the link with the best score by the initial weights counts.

    Unlike pagesift, `OnlineLogistic` has no rules for kinds of pages (news, footers, language
    portals) and does not rotate among parts of a site. The keywords of the topic are those that
    `focuscrawl.strategies.knowledge_strategy.query_terms` returns.

    Parameters
    ----------
    near : int
        Number of words on either side of a link in its line.
    every, growth : int, float
        Fetches between two re-scorings: at least `every`, and at least this share of all fetches.
    """

    def __init__(
        self, context: StrategyContext, *, near: int = 10, every: int = 10, growth: float = 0.05
    ) -> None:
        super().__init__("online-logistic", every, growth, LinkLog())
        check_count("online-logistic: near", near, 0)
        self._near = near
        self._terms = TermMatcher(query_terms(context))
        self._model = Weights(_PRIOR, np.ones(len(self._terms)))
        self._regression = OnlineRegression()
        self._used = GrowingArray(np.float64)  # five weights after each fetch
        self._page_hits = GrowingArray(np.int64)
        self._pages_with = np.zeros(len(self._terms))
        # for the best link into each URL: its matches, and its score by the initial weights
        types = (np.int64, np.int64, np.int64, np.float64, np.int64)
        self._columns = [GrowingArray(each) for each in types]
        self._best = GrowingArray(np.float64, fill=-np.inf)
        self._fetched = GrowingArray(np.bool_, fill=False)

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Train the regression on the best link to a fetched URL."""
        super().observe(url, relevance, duplicate_of)
        self._fetched.grow(url + 1)
        known = url < len(self._best) and np.isfinite(self._best.data[url])
        if known and not self._fetched.data[url]:
            words = word_weights(self._pages_with, self.log.n_pages)
            x = self._matches_of(np.array([url])).features(words)[0]
            self._regression.learn(x, relevance > RELEVANT)
        self._fetched.data[url] = True
        self._used.extend(self._regression.used)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score links by five features, and each URL by the best link to the URL."""
        hits = self._read_terms(page)
        memo = np.concatenate([[page.depth], hits]).astype("<i4").tobytes()
        signals = self._add_page(page, hits, page.depth)
        urls = np.unique(page.targets)
        of_urls = self._model.scores(self._matches_of(urls))
        return Expansion(self._model.scores(signals), urls, of_urls, memo=memo)

    def restore_page(self, page: StoredPage) -> Scores:
        """Restore the links of a page that an earlier run of the crawl has fetched."""
        assert page.memo is not None
        memo = np.frombuffer(page.memo, "<i4").astype(np.int64)
        self._add_page(page, memo[1:], int(memo[0]))
        urls = np.unique(page.targets)
        return urls, self._model.scores(self._matches_of(urls))

    def fit_model(self, observed: int, pages: int) -> tuple[Weights, Scores]:
        """Train on the first `observed` fetches; return the weights and the scores of all URLs."""
        used = self._used.data[5 * observed - 5 : 5 * observed] if observed else _PRIOR
        with_term = has_term(self._page_hits.data[:pages], len(self._terms)).sum(axis=0)
        model = Weights(used.copy(), word_weights(with_term.astype(np.float64), pages))
        urls = np.unique(self.log.links(pages)[1])
        return model, (urls, model.scores(self._matches_of(urls)))

    def use_model(self, model: Weights, pages: int) -> Scores:
        """Use the weights in `model`; return new scores of links found after the training."""
        self._model = model
        later = [targets for _, targets in self.log.pages_since(pages)]
        urls = np.unique(np.concatenate(later)) if later else np.zeros(0, np.int64)
        return urls, model.scores(self._matches_of(urls))

    def _read_terms(self, page: JudgedPage) -> Ints:
        """Return the keywords of a page, then those of each link's anchor, URL and line."""
        links, chosen = page.view.links, page.links.tolist()
        anchors = self._terms.match_texts([links.anchors[i] for i in chosen])
        urls = self._terms.match_texts([links.urls[i].partition("//")[2] for i in chosen])
        of_words = self._terms.match_words(page.view.tokens)
        lines = _any_between(of_words, *page.view.words_around(page.links, self._near))
        whole = np.bitwise_or.reduce(of_words, initial=0)
        return np.concatenate([[whole], anchors, urls, lines])

    def _add_page(self, page: JudgedPage | StoredPage, hits: Ints, depth: int) -> LinkMatches:
        n = len(page.targets)
        anchor, url, line = hits[1:].reshape(3, n)
        signals = LinkMatches(
            anchor, url, line, np.full(n, page.relevance), np.full(n, depth + 1, np.int64)
        )
        self._page_hits.extend(hits[:1])
        self._pages_with += has_term(hits[:1], len(self._terms))[0]
        self.log.add_links(page.url, page.targets)
        self._keep_best(page.targets, signals)
        return signals

    def _keep_best(self, targets: Ints, signals: LinkMatches) -> None:
        at_first = Weights(_PRIOR, np.ones(len(self._terms))).scores(signals)
        columns, size = (*self._columns, self._best), int(targets.max(initial=-1)) + 1
        for column in columns:
            column.grow(size)
        # the first of equally good links comes last and wins
        order = np.lexsort((-np.arange(len(targets)), at_first))
        better = order[at_first[order] > self._best.data[targets[order]]]
        for column, values in zip(columns, (*signals, at_first), strict=True):
            column.data[targets[better]] = values[better]

    def _matches_of(self, urls: Ints) -> LinkMatches:
        """Return the matches of the best links into some URLs."""
        return LinkMatches(*(column.data[urls] for column in self._columns))


def word_weights(pages_with: Floats, pages: int) -> Floats:
    """Return keyword weights, computed from the number of pages that contain each keyword."""
    if pages < _FIRST_PAGES:
        return np.ones(len(pages_with))
    rarity = np.log((pages + 1.0) / (pages_with + 0.5)) / np.log(pages + 1.0)
    weights: Floats = np.clip(rarity, _LEAST, 1.0)
    return weights


def _any_between(hits: Ints, begin: Ints, end: Ints) -> Ints:
    """Return the keywords among the words from each `begin` to its `end`."""
    padded = np.append(hits, 0)
    bounds = np.column_stack([begin, end]).ravel()
    if not len(bounds):
        return np.zeros(0, np.int64)
    between = np.bitwise_or.reduceat(padded, bounds)[::2]
    return np.where(end > begin, between, 0)
