"""Extract the features of a page and of its links; find the words behind hashed features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.apprentice.hashing import SparseRows, hash_features, hstack, word_features
from focuscrawl.apprentice.link_features import (
    HASH_BITS,
    HASH_SIZE,
    OFFSET_SALT,
    PREFIX,
    PREFIXES,
    RELATION_FEATURES,
    RELATIONS,
    WORD,
    offset_features,
    site_features,
    url_features,
    url_key_table,
    url_set_keys,
    url_words,
    window,
)
from focuscrawl.apprentice.link_table import PageFeatures, pack_words
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.page.view import Links, PageView
from focuscrawl.page.words import WordColumn, recent_words, tokenize, word_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.options import Options
    from focuscrawl.critic.protocol import Critic, Judgement
    from focuscrawl.foundation.arrays import Bools


TITLE, CLASS, HEADING, ANCHOR, SECTION, PROBABILITY = 3, 4, 5, 6, 7, 9  # salts
_LINK, _URL, _PAGE = 0, HASH_SIZE, 2 * HASH_SIZE  # first feature of links, URLs and pages
_TOP = 3  # classes of a page in the group "classes"
_AROUND = 10  # words on either side of a link that the critic judges
_MIN_NAMED_PROBABILITY = 0.1  # of a class in the group "classes"
_MIN_STORED_PROBABILITY = 0.001  # of a class in the group "probabilities"
_MIN_PROBABILITY = 1e-9  # smaller posteriors are raised to this
_CACHE_SIZE = 200_000  # texts, about 50 MB
_START = np.zeros(1, np.int64)
_NONE, _FIRST = np.zeros(0, np.int32), np.zeros(1, np.int32)
_NO_LINKS = Links([], [], _NONE, _NONE, np.zeros(0, np.bool_))


class FeatureExtractor:
    """Extracts the features that an apprentice uses from judged pages."""

    def __init__(self, critic: Critic, options: Options) -> None:
        self._options = options
        self._groups = frozenset(options.groups)
        self._words = WordEvidence(critic, use_critic=getattr(critic, "reads_words", False))
        self._anchors = TextEvidence(self._words, tokenize)
        self._paths = TextEvidence(self._words, url_words)
        self._class_features = [
            hash_features(word_hashes(class_prefixes(name)), CLASS, HASH_BITS)
            for name in critic.classes
        ]
        self._probability_features = hash_features(
            word_hashes(critic.classes), PROBABILITY, HASH_BITS
        )

    def extract(
        self,
        view: PageView,
        links: Ints,
        targets: Ints,
        new: Bools,
        *,
        relevance: float,
        probabilities: Floats | None = None,
    ) -> PageFeatures:
        """Extract the features of a page and of its links.

        Parameters
        ----------
        links : int64 (n_links,), positions of the followable links in ``view.links``
        targets : int64 (n_links,), URL ids that these links lead to
        new : bool (n_links,), whether no earlier page links to the target
        probabilities : float64 (n_classes,), optional, posteriors of the page, for the groups
            ``classes`` and ``probabilities``
        """
        numbers = links.tolist()
        anchors = [view.links.anchors[i] for i in numbers]
        urls = [view.links.urls[i] for i in numbers]
        page_indices, page_values = self._page(view, probabilities)
        # the alternative text of an image in an anchor is not among the words of the page
        unseen = tokenize(anchors)[0] if "anchor" in self._groups else []
        return PageFeatures(
            relevance=np.array([relevance]),
            own_keys=url_key_table([view.url]),
            page_indices=page_indices,
            page_values=page_values,
            targets=targets,
            position=view.links.left[links],
            reading=self._read(anchors, urls),
            around=self._read_around(view, links),
            links=self._links(view, links, anchors, urls),
            **self._new_urls(targets[new], [urls[i] for i in new.nonzero()[0].tolist()]),
            vocabulary=pack_words(dict.fromkeys([*view.words.distinct, *unseen])),
        )

    def with_all_urls_new(self, features: PageFeatures, urls: Sequence[str]) -> PageFeatures:
        """Return a copy of `features` that has URL features of all link targets, new or known.

        The argument `urls` (n,) contains the URLs of the link targets.
        """
        return replace(features, sizes=None, **self._new_urls(features.targets, urls))

    def _new_urls(self, targets: Ints, urls: Sequence[str]) -> dict[str, Any]:
        """Return the URL features of the distinct `targets` (n,) with the addresses `urls`."""
        new, first = np.unique(targets, return_index=True)
        addresses = [urls[i] for i in first.tolist()]
        keys = url_key_table(addresses)
        if "url" in self._groups:
            features = url_features(addresses, keys)
        else:
            features = SparseRows.empty(len(addresses))
        return {"new": new, "urls": features, "url_keys": keys}

    def _read(self, anchors: list[str], urls: list[str]) -> NDArray[np.float32]:
        if "reading" not in self._groups:
            return np.zeros(len(urls), np.float32)
        evidence = self._anchors.read(anchors) + self._paths.read(urls)
        return self._words.log_odds(evidence).astype(np.float32)

    def _read_around(self, view: PageView, links: Ints) -> NDArray[np.float32]:
        if "surroundings" not in self._groups:
            return np.zeros(len(links), np.float32)
        evidence = self._words.evidence_around(view, links, _AROUND)
        return self._words.log_odds(evidence).astype(np.float32)

    def _links(
        self, view: PageView, links: Ints, anchors: list[str], urls: list[str]
    ) -> SparseRows:
        on = self._groups
        left, right = view.links.left[links], view.links.right[links]
        parts = [SparseRows.empty(len(links))]
        if "context" in on:
            near = window(
                None if self._options.counts else view.words.indices,
                view.token_leaf,
                left,
                right,
                d_max=self._options.d_max,
                max_tokens=self._options.tokens or None,
            )
            parts = [offset_features(near, view.words.hashes)]
        if "anchor" in on:
            parts.append(word_features(anchors, ANCHOR, HASH_BITS))
        if "section" in on:
            above = view.heading_leaf.searchsorted(left, side="right")
            headings = word_features(["", *view.headings], SECTION, HASH_BITS)
            parts.append(headings.take(above))
        if "site" in on:
            parts.append(site_features(view.url, urls))
        return hstack(*parts)[0] if len(parts) > 1 else parts[0]

    def _page(
        self, view: PageView, probabilities: Floats | None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the features of a page and their values; no values if all are 1."""
        found = [np.zeros(0, np.int32)]
        if "title" in self._groups:
            found.append(word_features([view.title], TITLE, HASH_BITS).indices)
        if "headings" in self._groups:
            words = dict.fromkeys(tokenize(view.headings)[0])
            found.append(hash_features(word_hashes([*words]), HEADING, HASH_BITS))
        if "classes" in self._groups and probabilities is not None:
            top = np.argsort(-probabilities, kind="stable")[:_TOP]
            found += [
                self._class_features[i]
                for i in top.tolist()
                if probabilities[i] > _MIN_NAMED_PROBABILITY
            ]
        features = np.unique(np.concatenate(found))
        if "probabilities" not in self._groups or probabilities is None:
            return features, np.zeros(0, np.float32)
        possible = np.flatnonzero(probabilities > _MIN_STORED_PROBABILITY)
        values = np.concatenate([np.ones(len(features)), probabilities[possible]])
        features = np.append(features, self._probability_features[possible])
        return features, values.astype(np.float32)


class WordEvidence:
    """Computes the evidence of each word for each class c: log Pr(c|word) - log Pr(c).

    Judging the full text of every link would take too long. The critic judges each word of link
    texts once, as a page that contains only that word. The evidence of a text is the sum of the
    evidence of its words. For naive Bayes, the sum over the words equals the judgement of the
    whole text (methods.md 2). For critics other than naive Bayes, the sum over the words of a text
    is an approximation.

    Parameters
    ----------
    critic : judges pages of no word and of one word
    use_critic : False for a critic that is slow or cannot judge single words: all evidence is then
        0
    """

    def __init__(self, critic: Critic, *, use_critic: bool = True) -> None:
        self._critic = critic
        self._use_critic = use_critic
        self._prior = self._log_probabilities([""])[0]
        self._column = WordColumn(
            lambda words: (self._log_probabilities(words) - self._prior).astype(np.float32),
            np.float32,
            self.columns,
        )
        marked = np.asarray(getattr(critic, "marked_of_words", critic.marked), bool)
        self._marked = marked if len(marked) == len(self._prior) else np.array([False, True])

    @property
    def columns(self) -> int:
        """Number of classes of the critic; 2 (off topic, relevant) if the critic has none."""
        return len(self._prior)

    def evidence(
        self, words: Sequence[str], owner: NDArray[np.integer], n: int
    ) -> NDArray[np.float32]:
        """Return the evidence of n texts: the sum of the evidence of the words of each text.

        Parameters
        ----------
        words : length n_words, words of all texts
        owner : (n_words,), position of the text of each word, ascending

        Returns
        -------
        NDArray[np.float32] of shape (n, columns)
        """
        table = recent_words()
        each = table.take(self._column, table.number(words))
        total = np.zeros((n, self.columns), np.float32)
        if len(each):
            starts = np.concatenate([_START, (owner[1:] != owner[:-1]).nonzero()[0] + 1])
            total[owner[starts]] = np.add.reduceat(each, starts, axis=0)
        return total

    def evidence_around(self, view: PageView, links: Ints, n_words: int) -> NDArray[np.float32]:
        """Return the evidence of the words of links, and of the words around the links.

        Parameters
        ----------
        links : int64 (n_links,), positions in ``view.links``
        n_words : words on either side of a link

        Returns
        -------
        NDArray[np.float32] of shape (n_links, columns)
        """
        sums = np.zeros((len(view.tokens) + 1, self.columns))
        evidence = view.words.values(self._column)
        evidence.take(view.words.indices, axis=0).cumsum(axis=0, out=sums[1:])
        start, end = view.words_around(links, n_words)
        return (sums[end] - sums[start]).astype(np.float32)

    def log_odds(self, evidence: NDArray[np.float32]) -> Floats:
        """Return the log-odds of relevance of texts from their `evidence` (n, columns)."""
        log = evidence + self._prior
        return _log_sum(log[:, self._marked]) - _log_sum(log[:, ~self._marked])

    def _log_probabilities(self, words: Sequence[str]) -> Floats:
        if not self._use_critic:
            classes = max(2, len(self._critic.classes))
            return np.full((len(words), classes), -np.log(classes))
        judge_words = getattr(self._critic, "judge_words", None)
        if judge_words is None:
            judgement = self._critic.judge([_page_of(word) for word in words])
        else:
            judgement = judge_words(words)
        return np.log(np.maximum(_distribution(judgement), _MIN_PROBABILITY))


class TextEvidence:
    """Caches the evidence of link texts and URLs, because many pages repeat the same texts.

    The cache is cleared beyond `_CACHE_SIZE` texts.

    Parameters
    ----------
    words : evidence of single words
    split : splits texts into words; returns the words and the position of the text of each word
    """

    def __init__(
        self,
        words: WordEvidence,
        split: Callable[[list[str]], tuple[list[str], NDArray[np.int32]]],
    ) -> None:
        self._words, self._split = words, split
        self._row_of: dict[str, int] = {}
        self._rows = GrowingArray(np.float32)  # (n_texts, columns), row after row

    def read(self, texts: list[str]) -> NDArray[np.float32]:
        """Return the evidence of n short texts, float32 (n, columns)."""
        row_of = self._row_of
        if len(row_of) > _CACHE_SIZE:
            row_of.clear()
            self._rows = GrowingArray(np.float32)
        at = np.fromiter(map(row_of.get, texts, repeat(-1)), np.int64, len(texts))
        unknown = (at < 0).nonzero()[0]
        if len(unknown):
            new = [texts[i] for i in unknown.tolist()]
            distinct = [*dict.fromkeys(new)]
            evidence = self._words.evidence(*self._split(distinct), len(distinct))
            self._rows.extend(evidence.ravel())
            row_of.update(zip(distinct, count(len(row_of)), strict=False))
            at[unknown] = [row_of[text] for text in new]
        return self._rows.data.reshape(-1, self._words.columns).take(at, axis=0)


def class_prefixes(name: str) -> list[str]:
    """Return the topic path of a class and all prefixes of the path [A02 section 3.8]."""
    parts = name.split("/")
    return ["/".join(parts[: i + 1]) or "/" for i in range(len(parts))]


def name_features(
    features: NDArray[np.integer],
    *,
    url: str,
    words: Sequence[str],
    classes: Sequence[str],
    options: Options,
) -> dict[int, str]:
    """Find the words behind hashed features by hashing all candidate words.

    Parameters
    ----------
    features : (n,), features of `focuscrawl.apprentice.instances.make_instances`
    url : the URL that has these features
    words : words of the pages that link to `url`
    classes : classes of the critic

    Returns
    -------
    dict[int, str]
        Name of each feature; features of words outside `words` are left out.
    """
    wanted = np.unique(features)
    names: dict[int, str] = {}

    def name(space: int, salt: int, texts: Sequence[str], form: str) -> None:
        if not len(texts):
            return
        numbers = hash_features(word_hashes(texts), salt, HASH_BITS) + space
        for at in np.flatnonzero(np.isin(numbers, wanted)).tolist():
            names.setdefault(int(numbers[at]), form.format(texts[at]))

    for space, salt, form in _word_forms(options):
        name(space, salt, words, form)
    prefixes = [prefix for each in classes for prefix in class_prefixes(each)]
    name(_PAGE, CLASS, [*dict.fromkeys(prefixes)], "on a page of {}")
    name(_PAGE, PROBABILITY, classes, "probability of {} of a linking page")
    name(_URL, WORD, url_words([url])[0], "'{}' in the URL")
    parts = url.partition("//")[2].partition("?")[0].split("/")
    keys = np.array(url_set_keys(url)[:PREFIXES], np.uint64)
    for i, feature in enumerate(hash_features(keys[keys > 0], PREFIX, HASH_BITS).tolist()):
        names.setdefault(feature + _URL, "on " + "/".join(parts[: i + 1]))
    for feature, relation in zip(RELATION_FEATURES.tolist(), RELATIONS, strict=True):
        names.setdefault(feature, f"link to {relation}")
    return {feature: names[feature] for feature in wanted.tolist() if feature in names}


def _word_forms(options: Options) -> Iterable[tuple[int, int, str]]:
    on = options.groups
    for group, space, salt, form in (
        ("anchor", _LINK, ANCHOR, "'{}' in the anchor"),
        ("section", _LINK, SECTION, "'{}' in the heading above"),
        ("title", _PAGE, TITLE, "'{}' in the page's title"),
        ("headings", _PAGE, HEADING, "'{}' in a heading"),
    ):
        if group in on:
            yield space, salt, form
    if "context" in on:
        for d in sorted(range(-options.d_max, options.d_max + 1), key=abs):
            where = "in the link" if d == 0 else f"{abs(d)} {'before' if d < 0 else 'after'}"
            yield _LINK, OFFSET_SALT + d, f"'{{}}' {where}"


def _distribution(judgement: Judgement) -> Floats:
    if judgement.probabilities is not None:
        return judgement.probabilities
    return np.column_stack([1.0 - judgement.relevance, judgement.relevance])


def _log_sum(log: Floats) -> Floats:
    if not log.shape[1]:
        return np.full(len(log), np.log(_MIN_PROBABILITY))
    total: Floats = np.logaddexp.reduce(log, axis=1)
    return total


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
