"""Strategies that use what earlier crawls have learned about a topic (methods.md 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.knowledge import Keywords
from focuscrawl.knowledge.keywords import WordCount, distinct_words
from focuscrawl.page.words import tokenize
from focuscrawl.strategies.base import Strategy, check_number, is_list_of_strings
from focuscrawl.strategies.baselines import LinkStrategy, Maximum

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Bools
    from focuscrawl.strategies.base import (
        Expansion,
        JudgedPage,
        ModelUpdate,
        Scores,
        StoredPage,
        StrategyContext,
    )


_CRITIC, _KEYWORDS = "critic", "keywords"  # values of the option `page`
#: sources of the keywords of a first crawl
_TOPIC, _EXAMPLES, _SEEDS = INITIAL_SOURCES = ("topic", "examples", "seeds")
_PREDICTION = "prediction"
BASES = (_KEYWORDS, _PREDICTION)  # parts of the knowledge that a later crawl uses
MAX_START_KEYWORDS = 50  # keywords from start pages
_SEPARATOR = "\n"
KNOWN_WEIGHT = 0.9  # weight of the known score of a URL
MAX_QUERY_TERMS = 16


class Learnable(LinkStrategy):
    """Score links by keywords in the anchor, the page's relevance and results of earlier crawls.

    The strategy is that of Angkawattanawit and Rungsawang, Learnable crawling: an efficient
    approach to topic-specific web resource discovery (2002); see methods.md 8. In the following
    formulas, a link leads from a page u to a URL v. The first formula scores links in a first
    crawl. The second formula scores links in a crawl that uses earlier crawls::

        score(u, v) = alpha sim(keywords, anchor) + (1 - alpha) R(u)
        score(u, v) = alpha sim(keywords, anchor) + beta predicted(v) + gamma R(u)

    The score of a URL is the maximum score of all links to the URL. R(u) is the relevance of the
    linking page u. The parameter `page` can replace R(u) by the similarity of the page and the
    keywords, as in the paper of Angkawattanawit and Rungsawang. A first crawl uses the keywords in
    the parameter `keywords`. If `keywords` is not set, the crawl takes keywords from the sources
    that the parameter `first` names.

    Parameters
    ----------
    alpha : weight of the similarity of anchor and keywords
    beta : weight of the prediction for the URL
    gamma : weight of the page; the three weights add up to 1
    keywords : phrases of the topic for a first crawl
    first : sources of keywords for a first crawl without `keywords`: ``topic`` (definition or name
        of the topic), ``examples`` (words that distinguish its examples) and ``seeds`` (titles and
        headings of relevant start pages)
    bases : parts of the knowledge that a later crawl uses: ``keywords``, ``prediction``. For a
        missing part, the crawl does the same as a first crawl
    page : score of a page: ``critic``, R(u), or ``keywords``, sim(keywords, page)
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
        if not is_list_of_strings(keywords):
            raise UserError(
                f"strategy learnable: keywords must be a list of strings, not {keywords!r:.80}"
            )
        for name, chosen, some in (("first", first, INITIAL_SOURCES), ("bases", bases, BASES)):
            if not is_list_of_strings(chosen) or not set(chosen) <= set(some):
                raise UserError(
                    f"strategy learnable: {name} must be a list with values from "
                    f"{', '.join(some)}, not {chosen!r:.80}"
                )
        if page not in (_CRITIC, _KEYWORDS):
            raise UserError(
                f"strategy learnable: page must be {_CRITIC} or {_KEYWORDS}, not {page!r:.80}"
            )
        self._by_keywords = page == _KEYWORDS
        self.evidence = Maximum()
        knowledge = context.knowledge
        predicts = _PREDICTION in bases
        self._predict = knowledge.predict if knowledge is not None and predicts else None
        self._weights = (
            (alpha, 0.0, 1.0 - alpha) if self._predict is None else (alpha, beta, gamma)
        )
        # number of relevant start pages with each word; None if start pages give no keywords
        self._start_page_counts: Counter[str] | None = None
        self._n_start_pages = 0
        self._initial: dict[str, float] = {}
        if knowledge is not None and _KEYWORDS in bases:
            self._keywords = knowledge.keywords
        elif keywords:
            self._keywords = Keywords.from_phrases(keywords)
        else:
            self._initial = initial_keywords(context, first)
            self._keywords = Keywords(self._initial)
            if _SEEDS in first:
                self._start_page_counts = Counter()

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`; first add its keywords if it is a relevant start page."""
        memo = None
        if self._start_page_counts is not None and not page.depth and page.relevance > RELEVANT:
            words = sorted(distinct_words([page.view.title, *page.view.headings]))
            self._learn(words)
            memo = _SEPARATOR.join(words).encode()
        return replace(super().expand(page), memo=memo)

    def restore_page(self, page: StoredPage) -> Scores:
        """Add the links of a page from an earlier run, and the keywords of a start page."""
        if page.memo and self._start_page_counts is not None:
            self._learn(page.memo.decode().split(_SEPARATOR))
        return super().restore_page(page)

    def _learn(self, words: Sequence[str]) -> None:
        assert self._start_page_counts is not None
        self._start_page_counts.update(words)
        self._n_start_pages += 1
        counts = {word: WordCount(n, 0) for word, n in self._start_page_counts.items()}
        learned = Keywords.from_counts(counts, self._n_start_pages, 0, most=MAX_START_KEYWORDS)
        self._keywords = Keywords.merge(self._initial, learned.weights)

    def score_links(self, page: JudgedPage) -> Floats:
        """Score links by the anchor text, the URL and the linking page."""
        links = page.view.links
        anchors = [links.anchors[i] for i in page.links.tolist()]
        alpha, beta, gamma = self._weights
        page_score = page.relevance
        if self._by_keywords:
            page_score = float(self._keywords.similarity([" ".join(page.view.tokens)])[0])
        scores = alpha * self._keywords.similarity(anchors) + gamma * page_score
        if self._predict is not None:
            urls = [links.urls[i] for i in page.links.tolist()]
            scores += beta * self._predict(urls, anchors)
        return np.asarray(scores, np.float64)


def initial_keywords(
    context: StrategyContext, sources: Sequence[str] = INITIAL_SOURCES
) -> dict[str, float]:
    """Return the keywords of a topic before the first crawl, with their weights.

    Parameters
    ----------
    sources : ``topic``: words of the phrases that the critic was trained from, or else of the
        topic's name; ``examples``: words that distinguish the examples of the topic
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
    """Interface of objects that map URL ids to URLs."""

    def __getitem__(self, url_id: int) -> str: ...


class CorrectedStrategy(Strategy):
    """Wraps a strategy that learns, and mixes its scores with the known scores of URLs.

    If earlier knowledge gives a URL v the score known(v), the new score of v is w known(v) + (1 -
    w) s(v). Here s(v) is the score of v by the wrapped strategy, and w is the parameter `weight`.
    The wrapper does not change the scores of links.

    Parameters
    ----------
    learner : the wrapped strategy
    known : returns the known scores of URLs, NaN for other URLs
    urls : URLs of the crawl by id
    weight : w
    """

    learns = True

    def __init__(
        self,
        learner: Strategy,
        known: Callable[[Sequence[str]], Floats],
        urls: UrlLookup,
        weight: float = KNOWN_WEIGHT,
    ) -> None:
        self._learner = learner
        self._known_scores = known
        self._urls = urls
        self._weight = weight
        self._known = GrowingArray(np.float64, fill=np.nan)
        self._looked_up = GrowingArray(np.bool_, fill=False)
        self.lag = learner.lag
        self.expects_relevance = learner.expects_relevance

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Pass the outcome of a fetch to the wrapped strategy."""
        self._learner.observe(url, relevance, duplicate_of)

    def is_training_due(self) -> bool:
        """Return whether the wrapped strategy should start a training."""
        return self._learner.is_training_due()

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page` and their targets."""
        self._look_up(page.targets)
        expansion = self._learner.expand(page)
        _, scores = self._corrected((expansion.urls, expansion.scores))
        return replace(expansion, scores=scores)

    def restore_page(self, page: StoredPage) -> Scores:
        """Add the links of an earlier run."""
        self._look_up(page.targets)
        return self._corrected(self._learner.restore_page(page))

    def learn(self) -> ModelUpdate:
        """Train a new model."""
        update = self._learner.learn()
        _, update.scores = self._corrected((update.urls, update.scores))
        return update

    def adopt(self, update: ModelUpdate) -> Scores:
        """Replace the current model by the model of `update`."""
        self.model_version = update.version
        return self._corrected(self._learner.adopt(update))

    def load(self, state: bytes) -> int | None:
        """Load the last model of an earlier run."""
        adopted_at = self._learner.load(state)
        self.model_version = self._learner.model_version
        return adopted_at

    def rescore(self) -> Scores:
        """Return the scores of all URLs to which links are known."""
        return self._corrected(self._learner.rescore())

    def _look_up(self, targets: Ints) -> None:
        """Look up the known scores of URLs that appear for the first time."""
        size = int(targets.max(initial=-1)) + 1
        self._looked_up.grow(size)
        self._known.grow(size)
        new = np.unique(targets[~self._looked_up.data[targets]])
        if len(new):
            self._known.data[new] = self._known_scores([self._urls[i] for i in new.tolist()])
            self._looked_up.data[new] = True

    def _corrected(self, given: Scores) -> Scores:
        urls, scores = given
        known = self._known.data[urls]  # all URLs with links have been looked up
        corrected = self._weight * known + (1.0 - self._weight) * scores
        mixed = np.where(np.isnan(known), scores, corrected)
        return urls, np.round(mixed, 9).astype(np.float64, copy=False)


def topic_name_keywords(context: StrategyContext) -> Keywords:
    """Return the words in the topic's name as keywords."""
    critic = context.critic
    marked = [c for c, on in zip(critic.classes, critic.marked, strict=True) if on]
    return Keywords.from_topics(context.topics or marked)


def query_terms(context: StrategyContext) -> list[str]:
    """Return the best keywords from earlier crawls, or else the words in the topic's name."""
    knowledge = context.knowledge
    keywords = topic_name_keywords(context) if knowledge is None else knowledge.keywords
    return list(keywords.weights)[:MAX_QUERY_TERMS]


class TermMatcher:
    """Finds given lower-case words (terms), at most 62, in texts."""

    def __init__(self, terms: Sequence[str]) -> None:
        self._bit_of = {term: i for i, term in enumerate(terms)}

    def match_texts(self, texts: list[str]) -> Ints:
        """Return an integer per text, in which bit k is set if term k is a word of the text."""
        words, owner = tokenize(texts)
        hits = np.zeros(len(texts), np.int64)
        np.bitwise_or.at(hits, owner, self.match_words(words))
        return hits

    def match_words(self, words: Sequence[str]) -> Ints:
        """Return an integer per word, in which bit k is set if the word is term k."""
        bits = np.array([self._bit_of.get(word, -1) for word in words], np.int64)
        return np.where(bits < 0, 0, 1 << np.maximum(bits, 0))

    def __len__(self) -> int:
        return len(self._bit_of)


def has_term(hits: Ints, terms: int) -> Bools:
    """Convert the bit sets of a `TermMatcher` to a Boolean array of shape (n, terms)."""
    return (hits[:, None] >> np.arange(terms)) & 1 > 0
