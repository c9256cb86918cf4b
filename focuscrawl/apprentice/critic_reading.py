"""Log-odds of the topic by single words and short texts, asked of the critic once a word.

A link shows a handful of words: too few calls of a critic can be afforded to have each link
judged, but the words come again and again. So the critic judges every new word once, as a page of
that one word, and what it says of a link is put together from that: for a naive Bayes critic
this is just what it would say of the link's words as a page, because its log-posteriors add up
(METHODS 2); for any other black box it is a first guess.
"""

from __future__ import annotations

from itertools import count, repeat
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.page.view import Links, PageView

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.protocol import Critic, Judgement

_SURE = 1e-9  # no posterior is taken for smaller
_REMEMBERED = 200_000  # texts, about 50 MB
_REMEMBERED_WORDS = 500_000  # about 100 MB
_START = np.zeros(1, np.int64)


class WordReader:
    """Evidence of words for each class: log Pr(c|word) - log Pr(c), learned from the critic.

    Parameters
    ----------
    critic : a black box; asked with pages of no word and of one word
    ask : False for a critic that is slow, or that single words mean nothing to: it is not asked,
        and no word speaks for or against anything

    Attributes
    ----------
    columns : classes told apart: those of the critic, or (off, on) topic if it has none
    """

    def __init__(self, critic: Critic, *, ask: bool = True) -> None:
        self._critic = critic
        self._may_ask = ask
        self._number: dict[str, int] = {}
        self._prior = self._ask([""])[0]
        self._evidence = GrowingArray(np.float32)  # (n_words, columns), row after row
        marked = np.asarray(getattr(critic, "marked_of_words", critic.marked), bool)
        self._marked = marked if len(marked) == len(self._prior) else np.array([False, True])

    @property
    def columns(self) -> int:
        """Number of classes told apart."""
        return len(self._prior)

    def evidence(
        self, words: Sequence[str], owner: NDArray[np.integer], n: int
    ) -> NDArray[np.float32]:
        """Add up the evidence of the words of n owners.

        Parameters
        ----------
        words : may repeat
        owner : (n_words,), whose each word is, ascending

        Returns
        -------
        float32 (n, columns)
        """
        each = self._of(words)
        total = np.zeros((n, self.columns), np.float32)
        if len(each):
            starts = np.concatenate([_START, (owner[1:] != owner[:-1]).nonzero()[0] + 1])
            total[owner[starts]] = np.add.reduceat(each, starts, axis=0)
        return total

    def evidence_around(self, view: PageView, links: Ints, most: int) -> NDArray[np.float32]:
        """Add up the evidence of the words in and around each of n links of a page.

        Parameters
        ----------
        links : int64 (n,), places among ``view.links``
        most : words on either side

        Returns
        -------
        float32 (n, columns)
        """
        n = len(view.tokens)
        until = np.zeros((n + 1, self.columns))
        self._of(view.words.distinct).take(view.words.number, axis=0).cumsum(axis=0, out=until[1:])
        begin, end = view.words_around(links, most)
        around: NDArray[np.float32] = (until[end] - until[begin]).astype(np.float32)
        return around

    def log_odds(self, evidence: NDArray[np.float32]) -> Floats:
        """Return log Pr(c*)/(1 - Pr(c*)) of owners with this `evidence` (n, columns)."""
        log = evidence + self._prior
        return _log_sum(log[:, self._marked]) - _log_sum(log[:, ~self._marked])

    def _of(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the evidence of each word, float32 (n_words, columns)."""
        known = self._number
        if len(known) > _REMEMBERED_WORDS:
            known.clear()
            self._evidence = GrowingArray(np.float32)
        at = np.fromiter(map(known.get, words, repeat(-1)), np.int64, len(words))
        unknown = (at < 0).nonzero()[0]
        if len(unknown):
            new = [words[i] for i in unknown.tolist()]
            self._learn(sorted(set(new)))
            at[unknown] = [known[word] for word in new]
        return self._evidence.data.reshape(-1, self.columns).take(at, axis=0)

    def _learn(self, words: list[str]) -> None:
        self._evidence.extend((self._ask(words) - self._prior).astype(np.float32).ravel())
        self._number.update(zip(words, count(len(self._number)), strict=False))

    def _ask(self, words: Sequence[str]) -> Floats:
        if not self._may_ask:
            classes = max(2, len(self._critic.classes))
            return np.full((len(words), classes), -np.log(classes))
        read = getattr(self._critic, "judge_words", None)
        if read is None:
            judgement = self._critic.judge([_page_of(word) for word in words])
        else:
            judgement = read(words)
        return np.log(np.maximum(_distribution(judgement), _SURE))


class TextReader:
    """Evidence of short texts, remembered: anchors and addresses come again on every page.

    Parameters
    ----------
    words : the critic's reading of their words
    split : from n texts to their words and the number of each word's text
    """

    def __init__(
        self,
        words: WordReader,
        split: Callable[[list[str]], tuple[list[str], NDArray[np.int32]]],
    ) -> None:
        self._words = words
        self._split = split
        self._known: dict[str, int] = {}
        self._evidence = GrowingArray(np.float32)  # (n_texts, columns), row after row

    def read(self, texts: list[str]) -> NDArray[np.float32]:
        """Return the evidence of n texts, float32 (n, columns)."""
        known = self._known
        new = list(dict.fromkeys(text for text in texts if text not in known))
        if new:
            if len(known) + len(new) > _REMEMBERED:
                known.clear()
                self._evidence = GrowingArray(np.float32)
                new = list(dict.fromkeys(texts))
            words, owner = self._split(new)
            self._evidence.extend(self._words.evidence(words, owner, len(new)).ravel())
            known.update(zip(new, count(len(known)), strict=False))
        at = np.fromiter(map(known.__getitem__, texts), np.int64, len(texts))
        return self._evidence.data.reshape(-1, self._words.columns).take(at, axis=0)


def _distribution(judgement: Judgement) -> Floats:
    if judgement.probabilities is not None:
        return judgement.probabilities
    return np.column_stack([1.0 - judgement.relevance, judgement.relevance])


def _log_sum(log: Floats) -> Floats:
    if not log.shape[1]:
        return np.full(len(log), np.log(_SURE))
    total: Floats = np.logaddexp.reduce(log, axis=1)
    return total


_NONE, _FIRST = np.zeros(0, np.int32), np.zeros(1, np.int32)
_NO_LINKS = Links([], [], _NONE, _NONE, np.zeros(0, np.bool_))


def _page_of(word: str) -> PageView:
    return PageView(
        url="http://word.invalid/",
        title="",
        tokens=[word] if word else [],
        token_leaf=_FIRST if word else _NONE,
        n_leaves=1,
        links=_NO_LINKS,
        canonical=None,
        refresh=None,
        noindex=False,
        nofollow=False,
        encoding="utf-8",
    )
