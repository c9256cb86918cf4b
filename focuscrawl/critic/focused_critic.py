"""The critic of a crawl: a trained model, topics in focus, words and reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np

from focuscrawl.critic.classifiers import LogisticModel, NaiveBayes
from focuscrawl.critic.corpus import PackedBags
from focuscrawl.critic.languages import COMMON, estimate_word_count, frequency, is_ngram
from focuscrawl.critic.phrase_model import OFF_TOPIC, PhraseModel
from focuscrawl.critic.protocol import Judgement
from focuscrawl.foundation.urls import host

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.page.view import PageView


_MAX_EXAMPLE_WORDS = 50  # words of the examples
_MAX_WORD_LENGTH = 40  # characters: what is longer is no word

_MIN_LEAF_WORDS = 5.0  # words: a shorter text is a label
_MIN_MAIN_WORDS = 10.0  # words: less is no main text
#: log-odds of the topic, half a standard deviation of a critic from little: by so much main text
#: must say more than nothing does
_MIN_EVIDENCE = 1.0
_MIN_HOST_WORD = 4  # of a word that is found inside a host's name
_SITE_NAME_COUNT = 2  # times that such a word may be the name of the site


class TopicModel(Protocol):
    """What every trained critic can do: class posteriors of bags of words.

    Attributes
    ----------
    kind : name of the model's kind in its file
    classes : topic paths, the columns of the posteriors
    """

    kind: ClassVar[str]
    classes: tuple[str, ...]

    def log_posteriors(
        self, bags: Sequence[Bag], calibration: Calibration | None = None
    ) -> NDArray[np.float64]:
        """Return log Pr(c|u), float64 (n_bags, n_classes), each row a distribution."""
        ...


@dataclass(eq=False)
class FocusedCritic:
    """A `Critic` over a trained model.

    Parameters
    ----------
    model : judges pages
    marked : bool (n_classes,), the leaves the focus covers
    examples : example URLs of the marked leaves
    fingerprint : tells this model with this focus and this calibration from any other
    calibration : applied to every judgement, if any
    phrases : the words of each phrase that the model was learned from
    requires_main_text : whether a page is relevant only where its main text says so, too; for a
        critic from little, which has not seen what sites have on all of their pages

    Attributes
    ----------
    classes, marked, examples, fingerprint, reads_words, marked_of_words : as `Critic` has them
    """

    model: TopicModel
    marked: NDArray[np.bool_]
    examples: tuple[str, ...]
    fingerprint: str
    calibration: Calibration | None = None
    phrases: tuple[tuple[str, ...], ...] = ()
    requires_main_text: bool = False
    reads_words = True

    def __post_init__(self) -> None:
        self.classes = self.model.classes
        self.marked_of_words = self.marked
        if isinstance(self.model, LogisticModel):
            self.marked_of_words = self.model.marked_link_classes(self.marked)

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        """Judge `pages`: R(u) is the sum of the posteriors of the marked leaves (methods 1).

        Where it is to go by the main text, a page with R > 1/2 whose main text hardly speaks for
        the topic is judged as one that says nothing.
        """
        judged = self.judge_bags([page.words.bag for page in pages])
        relevant = np.flatnonzero(judged.relevance > 0.5)
        if self.requires_main_text and len(relevant):
            main = self.judge_bags([*(count_main_words(pages[i]) for i in relevant.tolist()), {}])
            odds = _log_odds(main.relevance)
            rejected = relevant[odds[:-1] < odds[-1] + _MIN_EVIDENCE]
            judged.relevance[rejected] = main.relevance[-1]
            if judged.probabilities is not None and main.probabilities is not None:
                judged.probabilities[rejected] = main.probabilities[-1]
        return judged

    def judge_words(self, words: Sequence[str]) -> Judgement:
        """Judge single words as links say them; "" is a link that says nothing."""
        bags: list[Bag] = [{word: 1} if word else {} for word in words]
        if not isinstance(self.model, LogisticModel):
            return self.judge_bags(bags)
        return _to_judgement(self.model.link_model.log_posteriors(bags), self.marked_of_words)

    def phrase_words(self) -> dict[str, float]:
        """Return the words by which the user has named the topic, all of weight 1."""
        phrases = self.model.phrases if isinstance(self.model, PhraseModel) else self.phrases
        return {word: 1.0 for phrase in phrases for word in phrase}

    def example_words(self) -> dict[str, float]:
        """Return the words that tell the examples of the topic from all others.

        The weight is p log(p/q), as of the keywords that crawls learn (`focuscrawl.knowledge`),
        with p and q the shares of a word among those of the marked classes and of the others. The
        others are pages of the same web, so no language is taken for granted.

        Returns
        -------
        50 words at most, the greatest weight 1; none of a model that has no examples
        """
        word_model, marked = self.model, self.marked_of_words
        if isinstance(word_model, LogisticModel):
            word_model = word_model.link_model
        if not isinstance(word_model, NaiveBayes) or marked.all() or not marked.any():
            return {}
        counts, words = word_model.counts.counts, word_model.counts.words
        inside = counts[:, marked].sum(axis=1)
        outside = counts.sum(axis=1) - inside
        p = inside / max(inside.sum(), 1)
        q = (1.0 + outside) / (len(words) + outside.sum())
        with np.errstate(divide="ignore"):
            weight = np.where(inside > 1, p * np.log(np.where(inside > 0, p, 1.0) / q), 0.0)
        found: dict[str, float] = {}
        for i in np.argsort(-weight, kind="stable").tolist():
            word = words[i]
            if weight[i] <= 0.0 or len(found) == _MAX_EXAMPLE_WORDS:
                break
            is_word = (
                1 < len(word) <= _MAX_WORD_LENGTH and not word.isdecimal() and not is_ngram(word)
            )
            if is_word and frequency(word, word_model.languages) < COMMON:
                found[word] = float(weight[i])
        top = max(found.values(), default=1.0)
        return {word: each / top for word, each in found.items()}

    def judge_bags(self, bags: Sequence[Bag]) -> Judgement:
        """Judge pages of which only the words are known."""
        return _to_judgement(self.model.log_posteriors(bags, self.calibration), self.marked)


def count_main_words(page: PageView) -> dict[str, int]:
    """Return how often each word is in the main text of a page, as far as one page tells.

    Main text is every text of five words or more that is no link and not the title, and what
    stands right beside it, as links in a sentence do. What is left out are menus, labels and days
    of a calendar. Numbers do not count. Words of the host's name count from the third time on:
    before, they may be the name of the site. Less than ten words are no main text.
    """
    words, leaf, links, n = page.words, page.token_leaf, page.links, page.n_leaves
    name = host(page.url)
    parts = {*name.replace("-", ".").split(".")}
    # a page has hundreds of words: a function call for each would take as long as judging them
    of_name = np.array(
        [w in parts or (len(w) >= _MIN_HOST_WORD and w in name) for w in words.distinct], np.bool_
    )
    sizes = 1.0 - np.array([w.isdecimal() for w in words.distinct], np.float64)
    if not "".join(words.distinct).isascii():  # one without spaces is several
        sizes *= [estimate_word_count(w) for w in words.distinct]
    of_token = (sizes * ~of_name).take(words.indices)
    text = np.bincount(leaf, of_token, minlength=n) >= _MIN_LEAF_WORDS
    opened = np.bincount(links.left, minlength=n + 1)
    closed = np.bincount(links.right + 1, minlength=n + 1)
    text &= (opened - closed).cumsum()[:n] == 0
    first = int(bool(page.title))  # leaf 0 is the title
    text[:first] = False
    main = text.copy()
    main[1:] |= text[:-1]
    main[first:-1] |= text[first + 1 :]
    kept = main.take(leaf)
    if of_token[kept].sum() < _MIN_MAIN_WORDS:
        return {}
    times = np.bincount(words.indices[kept], minlength=len(sizes)) - _SITE_NAME_COUNT * of_name
    times[sizes == 0.0] = 0
    return {words.distinct[i]: int(times[i]) for i in (times > 0).nonzero()[0].tolist()}


def _log_odds(relevance: NDArray[np.float64]) -> NDArray[np.float64]:
    bounded = relevance.clip(1e-12, 1.0 - 1e-12)
    odds: NDArray[np.float64] = np.log(bounded) - np.log1p(-bounded)
    return odds


def _to_judgement(log_posteriors: NDArray[np.float64], marked: NDArray[np.bool_]) -> Judgement:
    probabilities = np.exp(log_posteriors)
    # rounding can carry a sum of posteriors past 1
    relevance = np.minimum(probabilities[:, marked].sum(axis=1), 1.0)
    return Judgement(relevance, probabilities)


@dataclass(frozen=True, slots=True)
class TrainedCritic:
    """A trained critic, as it is saved under ``models/NAME``.

    Attributes
    ----------
    model : the judge
    examples : (url, topic) of the training pages, by topic, then URL
    training_set : hex digest of the examples and their words
    untrained_topics : topics of the label table none of whose examples could be read
    calibration : fitted on held-out training pages; None if there were too few, or none
    calibrated : whether judgements are calibrated unless relevant otherwise
    cross_validation : ``folds``, ``accuracy`` and the like, measured on the training pages;
        empty without examples
    skipped : examples that could not be used: ``not in the web``, ``not HTML``
    phrases : words of each phrase that it was learned from, where it was learned from little
    random_state : seed of the other pages that it was learned from then
    pages : words of the pages of `examples`, in that order, and of these others; none where it
        was not learned from little
    """

    model: TopicModel
    examples: tuple[tuple[str, str], ...] = ()
    training_set: str = ""
    untrained_topics: tuple[str, ...] = ()
    calibration: Calibration | None = None
    calibrated: bool = False
    cross_validation: Mapping[str, float] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    phrases: tuple[tuple[str, ...], ...] = ()
    random_state: int = 0
    pages: PackedBags = field(default_factory=PackedBags)


def is_few_shot(trained: TrainedCritic) -> bool:
    """Return whether a critic has one topic, learned from words, good or bad pages."""
    model = trained.model
    kinds = (LogisticModel, PhraseModel)
    return isinstance(model, kinds) and OFF_TOPIC in model.classes and not trained.training_set


class WordReason(NamedTuple):
    """A word of a page, and by how much it moves the log-odds of the topic."""

    word: str
    weight: float


class WordReasons(NamedTuple):
    """The words of a page that weigh max_words, the top_words first.

    Attributes
    ----------
    on, off : what speaks for the topic (weights above 0), and against it (below)
    meaning : what the mean meaning of the words adds; 0 where there are no embeddings
    """

    on: list[WordReason]
    off: list[WordReason]
    meaning: float


def explain_words(
    model: TopicModel, marked: NDArray[np.bool_], bag: Bag, max_words: int = 12
) -> WordReasons:
    """Return the words of a page that speak for the topic and against it.

    The odds are those of the marked class that is max_words probable on this page against the one
    that is max_words probable of the others. A discriminative model adds up words; of any other, a
    word counts what it says as often as it is there, but alone.

    Parameters
    ----------
    marked : bool (n_classes,), the classes on the topic
    bag : words of the page
    max_words : words on either side
    """
    log = model.log_posteriors([bag])[0]
    if marked.all() or not marked.any() or not bag:
        return WordReasons([], [], 0.0)
    on = int(np.argmax(np.where(marked, log, -np.inf)))
    off = int(np.argmax(np.where(marked, -np.inf, log)))
    if isinstance(model, LogisticModel):
        weights = model.linear.weights
        towards = weights[:, on] - weights[:, off] if weights.shape[1] > 1 else weights[:, 0]
        if weights.shape[1] == 1 and on == 0:
            towards = -towards
        rows = model.vectors.transform([bag])
        known = model.vectors.words
        words = [known[i] for i in rows.words.ids.tolist()]
        adds = rows.words.counts * towards[rows.words.ids]
        meaning = float(rows.meaning[0] @ towards[len(known) :])
    else:
        words, meaning = list(bag), 0.0
        alone = model.log_posteriors([{}, *({word: bag[word]} for word in words)])
        odds = alone[:, on] - alone[:, off]
        adds = odds[1:] - odds[0]
    return WordReasons(
        _top_reasons(words, adds, max_words),
        _top_reasons(words, -adds, max_words, sign=-1.0),
        meaning,
    )


def _top_reasons(
    words: Sequence[str], adds: NDArray[np.float64], max_words: int, sign: float = 1.0
) -> list[WordReason]:
    """Return the words that add max_words, of those that add anything."""
    order = np.argsort(-adds, kind="stable").tolist()
    whole = [i for i in order if adds[i] > 0.0 and not is_ngram(words[i])]
    return [WordReason(words[i], sign * float(adds[i])) for i in whole[:max_words]]
