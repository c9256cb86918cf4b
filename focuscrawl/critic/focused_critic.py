"""Trained critics focused on topics, and the words that explain their judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from focuscrawl.critic.classifiers import LogisticModel, NaiveBayes
from focuscrawl.critic.corpus import PackedBags
from focuscrawl.critic.languages import COMMON, estimate_word_count, frequency, is_ngram
from focuscrawl.critic.phrase_model import OFF_TOPIC, PhraseModel
from focuscrawl.critic.protocol import Judgement
from focuscrawl.foundation.urls import host
from focuscrawl.page.words import LazyBag, WordColumn

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.critic.languages import LanguageShares
    from focuscrawl.foundation.arrays import Bools, Floats
    from focuscrawl.page.view import PageView


_MAX_EXAMPLE_WORDS = 50
_MAX_WORD_LENGTH = 40  # characters

_MIN_LEAF_WORDS = 5.0  # of a text of the main text; a shorter text is a label
_MIN_MAIN_WORDS = 10.0  # of a page that has a main text
#: log-odds by which the main text of a relevant page must exceed an empty page; half a standard
#: deviation of a few-shot critic
_MIN_EVIDENCE = 1.0
_MIN_HOST_WORD = 4  # letters of a word that is searched for inside host names
_SITE_NAME_COUNT = 2  # occurrences of a host word that are not counted


class TopicModel(Protocol):
    """A trained model that computes class probabilities from bags of words.

    Attributes
    ----------
    kind : name of the model's kind in its file
    classes : topic paths of the columns of the posteriors
    languages : languages of the pages
    """

    kind: ClassVar[str]
    classes: tuple[str, ...]
    languages: LanguageShares

    def log_posteriors(
        self, bags: Sequence[Bag], calibration: Calibration | None = None
    ) -> Floats:
        """Return log Pr(class|page) for each page and class, float64 (n_bags, n_classes)."""
        ...


@dataclass(eq=False)
class FocusedCritic:
    """A critic that judges pages by a trained model.

    Parameters
    ----------
    model : class posteriors
    marked : bool (n_classes,), whether a class belongs to the topics of the crawl
    examples : URLs of example pages of the marked classes
    fingerprint : hex digest of the model, the topics and the calibration
    calibration : applied to every judgement, if given
    phrases : words of each phrase that the model was trained from
    requires_main_text : whether only pages with relevant main text are relevant. Few-shot critics
        require this, because they have not seen the texts that all pages of a site share
    """

    model: TopicModel
    marked: Bools
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
        """Judge pages: relevance is the sum of the probabilities of relevant classes.

        With `requires_main_text`, a page is judged like an empty page if its main text is not
        relevant.
        """
        judged = self.judge_bags([LazyBag(page.words) for page in pages])
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
        """Judge single words of link texts; the empty word stands for a link without text."""
        bags: list[Bag] = [{word: 1} if word else {} for word in words]
        if not isinstance(self.model, LogisticModel):
            return self.judge_bags(bags)
        return _to_judgement(self.model.link_model.log_posteriors(bags), self.marked_of_words)

    def phrase_words(self) -> dict[str, float]:
        """Return the words of the user's phrases, each with the weight 1."""
        phrases = self.model.phrases if isinstance(self.model, PhraseModel) else self.phrases
        return {word: 1.0 for phrase in phrases for word in phrase}

    def example_words(self) -> dict[str, float]:
        """Return the words that best distinguish the examples of the topic from other pages.

        The weight of a word is p log(p/q), as for keywords (`focuscrawl.knowledge`). Here, p is
        the frequency of the word in the relevant classes, and q is the frequency in the other
        classes.

        Returns
        -------
        Up to 50 words with weights up to 1; empty if the model has no examples
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
        """Judge pages by their bags of words."""
        return _to_judgement(self.model.log_posteriors(bags, self.calibration), self.marked)


def count_main_words(page: PageView) -> dict[str, int]:
    """Return the bag of words of the main text of a page.

    The main text of a page consists of texts of at least five words outside links and title, and
    of adjacent texts, such as links in a sentence. The main text has no menus, labels and
    calendars. Numbers are not counted. The first two occurrences of a word of the host name are
    not counted, because they may be the site's name. A main text of fewer than ten words is
    ignored.
    """
    words, leaf, links, n = page.words, page.token_leaf, page.links, page.n_leaves
    name = host(page.url)
    parts = {*name.replace("-", ".").split(".")}
    # a loop over the words of a page would take as long as judging the page
    of_name = np.array(
        [w in parts or (len(w) >= _MIN_HOST_WORD and w in name) for w in words.distinct], np.bool_
    )
    sizes = words.values(_SIZES)
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


def _sizes(words: list[str]) -> Floats:
    # a token of a script without spaces is several words
    return np.array([0.0 if word.isdecimal() else estimate_word_count(word) for word in words])


_SIZES = WordColumn(_sizes, np.float64)


def _log_odds(relevance: Floats) -> Floats:
    bounded = relevance.clip(1e-12, 1.0 - 1e-12)
    odds: Floats = np.log(bounded) - np.log1p(-bounded)
    return odds


def _to_judgement(log_posteriors: Floats, marked: Bools) -> Judgement:
    probabilities = np.exp(log_posteriors)
    # rounding errors can make the sum of posteriors exceed 1
    relevance = np.minimum(probabilities[:, marked].sum(axis=1), 1.0)
    return Judgement(relevance, probabilities)


@dataclass(frozen=True, slots=True)
class TrainedCritic:
    """A trained critic, as saved under ``models/NAME``.

    Attributes
    ----------
    model : class posteriors
    examples : URLs and topics of the training pages, by topic, then URL
    training_set : hex digest of the examples and their words
    untrained_topics : topics of the label table without a readable example
    calibration : fitted to held-out training pages, if there were enough
    calibrated : whether the calibration is applied by default
    cross_validation : ``folds``, ``accuracy`` and ``mean_recall`` on the training pages; empty
        without examples
    skipped : number of examples that could not be used, by reason
    unread : URLs of judged pages that could not be read
    phrases : words of each phrase; few-shot critics only
    random_state : seed of the sample of unlabelled pages; few-shot critics only
    pages : words of the examples, in their order, then of the unlabelled pages; few-shot critics
        only
    """

    model: TopicModel
    examples: tuple[tuple[str, str], ...] = ()
    training_set: str = ""
    untrained_topics: tuple[str, ...] = ()
    calibration: Calibration | None = None
    calibrated: bool = False
    cross_validation: Mapping[str, float] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    random_state: int = 0
    pages: PackedBags = field(default_factory=PackedBags)


def is_few_shot(trained: TrainedCritic) -> bool:
    """Return whether a critic was trained from phrases, or from good and bad pages."""
    model = trained.model
    kinds = (LogisticModel, PhraseModel)
    return isinstance(model, kinds) and OFF_TOPIC in model.classes and not trained.training_set


class WordReason(NamedTuple):
    """A word of a page, and the amount that the word adds to the log-odds of the topic."""

    word: str
    weight: float


class WordReasons(NamedTuple):
    """The words of a page that change the log-odds of the topic most, in descending order.

    Attributes
    ----------
    on, off : words for the topic (positive weights) and against the topic (negative weights)
    meaning : contribution of the mean word embedding; 0 without embeddings
    empty : relevance of a page without words
    """

    on: list[WordReason]
    off: list[WordReason]
    meaning: float
    empty: float

    def to_dict(self) -> dict[str, Any]:
        """Return the words with their weights for JSON."""
        return {
            "on": [each._asdict() for each in self.on],
            "off": [each._asdict() for each in self.off],
            "meaning": self.meaning,
            "empty": self.empty,
        }


def explain_words(critic: FocusedCritic, bag: Bag, max_words: int = 12) -> WordReasons:
    """Return the words of a page that count for and against the topic, without function words.

    The contributions of all words add up to the log-odds of the most probable relevant class
    against the most probable other class. For models that are not linear, the contribution of a
    word is the difference in log-odds between a page of only this word and an empty page.

    Parameters
    ----------
    bag : words of the page
    max_words : number of words for the topic, and against it
    """
    model, marked = critic.model, critic.marked
    empty = float(critic.judge_bags([{}]).relevance[0])
    log = model.log_posteriors([bag])[0]
    if marked.all() or not marked.any() or not bag:
        return WordReasons([], [], 0.0, empty)
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
    order = np.argsort(-adds, kind="stable").tolist()
    reasons = [
        WordReason(words[i], float(adds[i]))
        for i in order
        if not is_ngram(words[i]) and frequency(words[i], model.languages) < COMMON
    ]
    return WordReasons(
        [each for each in reasons if each.weight > 0.0][:max_words],
        [each for each in reversed(reasons) if each.weight < 0.0][:max_words],
        meaning,
        empty,
    )
