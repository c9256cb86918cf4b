"""Strategies that use what earlier crawls of the topic have learned (methods 8)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.knowledge import Keywords
from focuscrawl.knowledge.keywords import WordCount, distinct_words
from focuscrawl.page.words import tokenize
from focuscrawl.strategies.base import Strategy, check_number, is_list_of_texts
from focuscrawl.strategies.baselines import LinkStrategy, Maximum

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from focuscrawl.foundation.arrays import Bools
    from focuscrawl.strategies.base import (
        Expansion,
        JudgedPage,
        ModelUpdate,
        Scores,
        StoredPage,
        StrategyContext,
    )


_CRITIC, _KEYWORDS = "critic", "keywords"  # what scores a page
_TOPIC, _EXAMPLES, _SEEDS = INITIAL_SOURCES = (
    "topic",
    "examples",
    "seeds",
)  # keywords of a first crawl
_PREDICTION = "prediction"
BASES = (_KEYWORDS, _PREDICTION)  # what a later one takes of its knowledge
MAX_START_KEYWORDS = 50  # keywords of start pages
_BETWEEN = "\n"
_RELEVANT = 0.5
KNOWN_WEIGHT = 0.9  # share of a known URL's score that what is known of it decides
MAX_QUERY_TERMS = 16  # words of a query


class Learnable(LinkStrategy):
    """Priority of v by the anchor's words, by what is known of v, and by its page (methods 8).

    Without knowledge, in a first crawl of a topic,

        score(u, v) = alpha sim(keywords, anchor) + (1 - alpha) R(u),

    later, with keywords and predictions of the earlier crawls,

        score(u, v) = alpha sim(keywords, anchor) + beta predicted(v) + gamma R(u).

    Angkawattanawit and Rungsawang, Learnable crawling: an efficient approach to topic-specific
    web resource discovery (2002). The paper holds a page against the keywords; R(u) is the
    critic's here as in all strategies, unless `page` says otherwise. The keywords of a first crawl
    are those the user names; or else those of the topic's definition or of its name, those that
    tell its examples from others, and those of titles and headings of several start pages on the
    topic, as these come. Of several links to a URL the best decides.

    Parameters
    ----------
    alpha : weight of the anchor's similarity to the keywords
    beta : weight of what is predicted of the URL
    gamma : weight of the page; the three add up to 1
    keywords : of a first crawl: phrases of the topic; none: see `first`
    first : where those come from: ``topic``, ``examples``, ``seeds``, several or none of them
    bases : what of its knowledge a later crawl uses: ``keywords``, ``prediction``; without one it
        does as a first crawl does. Start URLs are the third: they are known where none are given
    page : how a page is scored: ``critic``, R(u), or ``keywords``, the paper's sim(keywords, page)
    """

    expects_relevance = True

    def __init__(
        self,
        context: StrategyContext,
        *,
        alpha: float = 0.25,
        beta: float = 0.5,
        gamma: float = 0.25,
        keywords: Sequence[str] = (),
        first: Sequence[str] = INITIAL_SOURCES,
        bases: Sequence[str] = BASES,
        page: str = _CRITIC,
    ) -> None:
        for name, value in (("alpha", alpha), ("beta", beta), ("gamma", gamma)):
            check_number(f"learnable: {name}", value, 0, 1)
        if abs(alpha + beta + gamma - 1.0) > 1e-9:
            raise UserError(
                "strategy learnable: alpha, beta and gamma must add up to 1, not "
                f"{alpha + beta + gamma:g}"
            )
        if not is_list_of_texts(keywords):
            raise UserError(f"learnable: keywords must be a list of texts, not {keywords!r:.80}")
        for name, chosen, some in (("first", first, INITIAL_SOURCES), ("bases", bases, BASES)):
            if not is_list_of_texts(chosen) or not set(chosen) <= set(some):
                raise UserError(
                    f"learnable: {name} must be a list of some of {', '.join(some)}, "
                    f"not {chosen!r:.80}"
                )
        if page not in (_CRITIC, _KEYWORDS):
            raise UserError(f"learnable: page must be {_CRITIC} or {_KEYWORDS}, not {page!r:.80}")
        self._by_keywords = page == _KEYWORDS
        self.evidence = Maximum()
        known = context.knowledge
        self._predict = None if known is None or _PREDICTION not in bases else known.predict
        self._weights = (
            (alpha, 0.0, 1.0 - alpha) if self._predict is None else (alpha, beta, gamma)
        )
        # in how many start pages on the topic a word is, where that counts
        self._start_page_counts: Counter[str] | None = None
        self._n_start_pages = 0
        self._initial: dict[str, float] = {}
        if known is not None and _KEYWORDS in bases:
            self._keywords = known.keywords
        elif keywords:
            self._keywords = Keywords.from_phrases(keywords)
        else:
            self._initial = initial_keywords(context, first)
            self._keywords = Keywords(self._initial)
            if _SEEDS in first:
                self._start_page_counts = Counter()

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links; a start page on the topic adds to the keywords first."""
        memo = None
        if self._start_page_counts is not None and not page.depth and page.relevance > RELEVANT:
            words = sorted(distinct_words([page.view.title, *page.view.headings]))
            self._learn(words)
            memo = _BETWEEN.join(words).encode()
        return replace(super().expand(page), memo=memo)

    def restore_page(self, page: StoredPage) -> Scores:
        """Take in the links again, and the words of a start page."""
        if page.memo and self._start_page_counts is not None:
            self._learn(page.memo.decode().split(_BETWEEN))
        return super().restore_page(page)

    def _learn(self, words: Sequence[str]) -> None:
        assert self._start_page_counts is not None
        self._start_page_counts.update(words)
        self._n_start_pages += 1
        counts = {word: WordCount(n, 0) for word, n in self._start_page_counts.items()}
        learned = Keywords.from_counts(counts, self._n_start_pages, 0, most=MAX_START_KEYWORDS)
        self._keywords = Keywords.merge(self._initial, learned.weights)

    def score_links(self, page: JudgedPage) -> Floats:
        """Score links by their anchors, their URLs and their page."""
        links = page.view.links
        anchors = [links.anchors[i] for i in page.links.tolist()]
        alpha, beta, gamma = self._weights
        worth = page.relevance
        if self._by_keywords:
            worth = float(self._keywords.similarity([" ".join(page.view.tokens)])[0])
        scores = alpha * self._keywords.similarity(anchors) + gamma * worth
        if self._predict is not None:
            urls = [links.urls[i] for i in page.links.tolist()]
            scores += beta * self._predict(urls, anchors)
        return np.asarray(scores, np.float64)


def initial_keywords(
    context: StrategyContext, sources: Sequence[str] = INITIAL_SOURCES
) -> dict[str, float]:
    """Return what is known of a topic's words before anything was crawled, by weight.

    Parameters
    ----------
    sources : ``topic``: the words of the phrases that the critic was learned from, else those of
        the topic's name; ``examples``: those that tell its examples from others
    """
    found: list[Mapping[str, float]] = []
    critic = context.critic
    if _TOPIC in sources:
        named: Mapping[str, float] = getattr(critic, "phrase_words", dict)()
        found.append(named or topic_name_keywords(context).weights)
    if _EXAMPLES in sources:
        found.append(getattr(critic, "example_words", dict)())
    return Keywords.merge(*found).weights


class UrlLookup(Protocol):
    """Gives URLs by their numbers."""

    def __getitem__(self, number: int) -> str: ...


class CorrectedStrategy(Strategy):
    """A strategy that learns, with scores corrected of URLs of which something is known.

    score(v) = sure known(v) + (1 - sure) s(v), with s(v) the strategy's own. Links keep the
    scores the strategy gives them.

    Parameters
    ----------
    learner : the strategy
    known : scores of URLs; NaN where nothing is known
    names : of the crawl's URLs
    sure : 1 leaves nothing to the strategy
    """

    learns = True

    def __init__(
        self,
        learner: Strategy,
        known: Callable[[Sequence[str]], Floats],
        names: UrlLookup,
        sure: float = KNOWN_WEIGHT,
    ) -> None:
        self._learner = learner
        self._ask = known
        self._names = names
        self._sure = sure
        self._known = GrowingArray(np.float64, fill=np.nan)
        self._looked_up = GrowingArray(np.bool_, fill=False)
        self.lag = learner.lag
        self.expects_relevance = learner.expects_relevance

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Pass on the outcome of a fetch."""
        self._learner.observe(url, relevance, duplicate_of)

    def page_value(self, url: int, relevance: float) -> float:
        """Return what a page was worth."""
        return self._learner.page_value(url, relevance)

    def is_training_due(self) -> bool:
        """Tell whether to start a lesson."""
        return self._learner.is_training_due()

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page` and where they lead."""
        self._look_up(page.targets)
        expansion = self._learner.expand(page)
        _, scores = self._corrected((expansion.urls, expansion.scores))
        return replace(expansion, scores=scores)

    def restore_page(self, page: StoredPage) -> Scores:
        """Take in the links of an earlier run."""
        self._look_up(page.targets)
        return self._corrected(self._learner.restore_page(page))

    def learn(self) -> ModelUpdate:
        """Learn from all that was observed."""
        update = self._learner.learn()
        _, update.scores = self._corrected((update.urls, update.scores))
        return update

    def adopt(self, update: ModelUpdate) -> Scores:
        """Score with the lesson's model from now on."""
        self.model_version = update.version
        return self._corrected(self._learner.adopt(update))

    def load(self, state: bytes) -> int | None:
        """Take up the model of the last lesson."""
        adopted_at = self._learner.load(state)
        self.model_version = self._learner.model_version
        return adopted_at

    def rescore(self) -> Scores:
        """Return the scores of all URLs that have links."""
        return self._corrected(self._learner.rescore())

    def _look_up(self, targets: Ints) -> None:
        """Ask once for each URL what is known of it."""
        size = int(targets.max(initial=-1)) + 1
        self._looked_up.grow(size)
        self._known.grow(size)
        new = np.unique(targets[~self._looked_up.data[targets]])
        if len(new):
            self._known.data[new] = self._ask([self._names[i] for i in new.tolist()])
            self._looked_up.data[new] = True

    def _corrected(self, given: Scores) -> Scores:
        # all URLs with links have been looked up; the array may have grown beyond them since
        urls, scores = given
        known = self._known.data[urls]
        corrected = self._sure * known + (1.0 - self._sure) * scores
        found = np.where(np.isnan(known), scores, corrected)
        return urls, np.round(found, 9).astype(np.float64, copy=False)


def topic_name_keywords(context: StrategyContext) -> Keywords:
    """Return the words of the topic's name."""
    critic = context.critic
    marked = [c for c, on in zip(critic.classes, critic.marked, strict=True) if on]
    return Keywords.from_topics(context.topics or marked)


def query_terms(context: StrategyContext) -> list[str]:
    """Return the heaviest keywords that earlier crawls learned, else words of the topic's name."""
    known = context.knowledge
    keywords = topic_name_keywords(context) if known is None else known.keywords
    return list(keywords.weights)[:MAX_QUERY_TERMS]


class TermMatcher:
    """Finds the terms of a query in texts.

    Parameters
    ----------
    terms : words in lower case, at most 62
    """

    def __init__(self, terms: Sequence[str]) -> None:
        self._number = {term: i for i, term in enumerate(terms)}

    def match_texts(self, texts: list[str]) -> Ints:
        """Return int64 (n_texts,): bit k is set where term k is a word of the text."""
        words, owner = tokenize(texts)
        hits = np.zeros(len(texts), np.int64)
        np.bitwise_or.at(hits, owner, self.match_words(words))
        return hits

    def match_words(self, words: Sequence[str]) -> Ints:
        """Return int64 (n_words,): bit k is set where the word is term k."""
        numbers = [self._number.get(word, -1) for word in words]
        number = np.array(numbers, np.int64)
        return np.where(number < 0, 0, 1 << np.maximum(number, 0))

    def __len__(self) -> int:
        return len(self._number)


def has_term(hits: Ints, terms: int) -> Bools:
    """Return bool (n, terms) from n sets of terms as `TermMatcher` gives them."""
    found: Bools = (hits[:, None] >> np.arange(terms)) & 1 > 0
    return found
