"""Intelligent crawling: Aggarwal, Al-Garawi, Yu, WWW10, 2001."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from focuscrawl.apprentice.learners.matrix import row_sums
from focuscrawl.foundation.arrays import Floats, Ints, sums
from focuscrawl.strategies.batch_learner import BatchLearner, FittedModel
from focuscrawl.strategies.link_history import PathFacts
from focuscrawl.strategies.link_words import PathWords
from focuscrawl.strategies.option_checks import check_number
from focuscrawl.strategies.word_naive_bayes import BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.strategies.link_history import Past
    from focuscrawl.strategies.messages import JudgedPage, StrategyContext

_SIGNIFICANT = 2.0  # standard deviations by which a word has to stand out
_SPACE = 1 << BITS


class Intelligent(BatchLearner):
    """Priority of v = the product of its interest ratios, of four kinds.

    An interest ratio is Pr(R(v) > 1/2 | what is known of v) / Pr(R(v) > 1/2), over what was
    fetched. *Content*: the words of the pages that link to v, those that stand out; pages count
    by their mean. *URL*: the words of v's address, likewise. *Link*: how many relevant and other
    pages link to v, a ratio for each. *Sibling*: relevant among the fetched URLs which these
    pages link to, against what was to be expected. The logarithms are weighed so that each kind
    moves the scores of the frontier equally on average, then as the options say, and added.

    While nothing relevant is known all scores are 0: the crawl is breadth-first.

    Parameters
    ----------
    content, url, link, sibling : weights of the four kinds
    batch, growth : see `BatchLearner`
    """

    join: ClassVar[np.ufunc] = np.add
    columns: ClassVar[int] = 6

    def __init__(
        self,
        context: StrategyContext,
        *,
        content: float = 1.0,
        url: float = 1.0,
        link: float = 1.0,
        sibling: float = 1.0,
        batch: int = 25,
        growth: float = 0.02,
    ) -> None:
        check_number("intelligent: content", content, 0.0)
        check_number("intelligent: url", url, 0.0)
        check_number("intelligent: link", link, 0.0)
        check_number("intelligent: sibling", sibling, 0.0)
        self._weights = np.array([content, url, link, sibling])
        self._words = PathWords()
        super().__init__("intelligent", batch, growth)

    def read(self, page: JudgedPage) -> PathFacts:
        """Take the words of the page and of the URLs it links to."""
        return PathFacts(page.targets, self._words.page(page), self._words.addresses(page))

    def unlearned(self) -> Interest:
        """Return the model to which all URLs are equal."""
        none = np.zeros(_SPACE)
        return Interest(0.5, none, none, np.zeros(2), np.zeros(4))

    def fit(self, past: Past) -> Interest:
        """Learn the ratios from the URLs fetched so far that had links."""
        links = np.flatnonzero(past.first & ~np.isnan(past.relevance[past.target]))
        target, page = past.target[links], past.page[links]
        urls, first, of = np.unique(target, return_index=True, return_inverse=True)
        good = past.relevance[urls] > 0.5
        base = (good.sum() + 1.0) / (len(urls) + 2.0)
        share = 1.0 / np.bincount(of)[of] if len(links) else np.zeros(0)
        lengths = past.page_words.lengths

        def count(each: Floats) -> Floats:
            """Count the words of the pages that links with these weights are on."""
            of_pages = sums(page, each, len(lengths))
            return sums(past.page_words.indices, np.repeat(of_pages, lengths), _SPACE)

        addresses = past.link_words.take(links[first])
        seen = np.ones(len(addresses.indices))
        marked = np.repeat(good.astype(np.float64), addresses.lengths)
        words = addresses.indices
        from_good = (past.relevance[past.source[links]] > 0.5).astype(np.int64)
        model = Interest(
            base=float(base),
            words=_outstanding(count(share * good[of]), count(share), base),
            addresses=_outstanding(sums(words, marked, _SPACE), sums(words, seen, _SPACE), base),
            sources=log_ratio(
                sums(from_good, good[of], 2), sums(from_good, np.ones(len(of)), 2), base
            ),
            weights=np.ones(4),
            instances=len(urls),
            metrics={"relevant": float(good.sum()), "outstanding_words": 0.0},
        )
        model.metrics["outstanding_words"] = float(np.count_nonzero(model.words))
        return replace(model, weights=self._weights / self._spread(model, past))

    def _spread(self, model: Interest, past: Past) -> Floats:
        """Return how far each kind moves the scores of what waits, on average; float64 (4,)."""
        waiting = past.waiting
        if not len(waiting):
            return np.ones(4)
        links = np.flatnonzero(np.isnan(past.relevance[past.target]))
        evidence = model.evidence(past, links)
        joined = [
            sums(past.target[links], column, len(past.relevance))[waiting] for column in evidence.T
        ]
        spread = np.abs(model.logs(np.stack(joined, axis=1))).mean(axis=0)
        return np.where(spread > 0.0, spread, 1.0)


@dataclass(frozen=True, slots=True)
class Interest(FittedModel):
    """Logarithms of interest ratios.

    Attributes
    ----------
    base : share of relevant URLs, about 1/2 before anything is known
    words, addresses : float64 (2^BITS,), of words of pages and addresses, 0 unless outstanding
    sources : float64 (2,), of a link from a page that is not relevant, and one that is
    weights : float64 (4,), of content, URL, link and sibling
    """

    base: float
    words: Floats
    addresses: Floats
    sources: Floats
    weights: Floats

    def evidence(self, past: Past, links: Ints) -> Floats:
        """Return of each link 1, content, URL, link, siblings and relevant siblings."""
        pages, at = np.unique(past.page[links], return_inverse=True)
        rows = past.page_words.take(pages)
        content = row_sums(self.words[rows.indices], rows.indptr)[at]
        addresses = past.link_words.take(links)
        url = row_sums(self.addresses[addresses.indices], addresses.indptr)
        source = self.sources[(past.relevance[past.source[links]] > 0.5).astype(np.int64)]
        begin, end = np.searchsorted(past.page, [pages[0], pages[-1] + 1])
        children = begin + np.flatnonzero(past.first[begin:end])
        seen = past.relevance[past.target[children]]
        page = past.page[children]
        fetched = np.bincount(page, ~np.isnan(seen), int(pages[-1]) + 1)[pages]
        relevant = np.bincount(page, seen > 0.5, int(pages[-1]) + 1)[pages]
        columns = [np.ones(len(links)), content, url, source, fetched[at], relevant[at]]
        return np.stack(columns, axis=1) * past.first[links][:, None]

    def logs(self, evidence: Floats) -> Floats:
        """Return the logarithms of the four ratios of URLs, (n, 4), by all links into them."""
        links, content, url, source, fetched, relevant = evidence.T
        links = np.maximum(links, 1.0)
        sibling = np.log((relevant + 1.0) / (self.base * fetched + 1.0))
        return np.stack([content / links, url / links, source, sibling], axis=1)

    def scores(self, urls: Ints, evidence: Floats) -> Floats:
        """Return the weighted sum of the four logarithms."""
        total: Floats = (self.logs(evidence) * self.weights).sum(axis=1)
        return total


def log_ratio(relevant: NDArray[np.floating], seen: NDArray[np.number], base: float) -> Floats:
    """Return the logarithms of interest ratios.

    One more case, as relevant as any, is taken as seen.

    Parameters
    ----------
    relevant, seen : (n,), relevant and all URLs of which something is known
    base : share of relevant URLs among all
    """
    ratio: Floats = np.log((relevant + base) / (seen + 1.0) / base)
    return ratio


def _outstanding(relevant: Floats, seen: Floats, base: float) -> Floats:
    """Return the logarithms of interest ratios, 0 where chance can explain them."""
    spread = np.sqrt(seen * base * (1.0 - base))
    stands_out = (seen > 0) & (np.abs(relevant - base * seen) >= _SIGNIFICANT * spread)
    return np.where(stands_out, log_ratio(relevant, seen, base), 0.0)
