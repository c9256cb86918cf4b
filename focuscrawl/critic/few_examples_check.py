"""Checking a critic learned from few examples, before a night is spent on a crawl.

Nobody has labelled pages to check it with. So its examples are held out in turn, each time with
a part of the other pages, and judged by what the rest teaches. How many of the pages that it
calls relevant are not, no such experiment tells: it depends on how many relevant ones there are.
Somebody has to look at some.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.corpus import resolve
from focuscrawl.critic.discriminative import LogisticModel
from focuscrawl.critic.example_groups import cohesion_of
from focuscrawl.critic.few_examples_estimates import FEWEST, recall_of
from focuscrawl.critic.few_examples_warnings import warnings_of
from focuscrawl.critic.from_little import read_little
from focuscrawl.critic.held_out import hold_out
from focuscrawl.critic.languages import languages_of
from focuscrawl.critic.little_training import OTHERS, draw_other_pages, missing_others
from focuscrawl.critic.phrase_model import OFF_TOPIC, WordsModel
from focuscrawl.critic.pieces import is_part
from focuscrawl.critic.word_vectors import word_vectors_installed
from focuscrawl.errors import UserError
from focuscrawl.foundation.progress_listener import SILENT
from focuscrawl.webs.pages import read_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.example_groups import Cohesion
    from focuscrawl.critic.few_examples_estimates import Share
    from focuscrawl.critic.focused_critic import TopicModel
    from focuscrawl.critic.trained import TrainedCritic
    from focuscrawl.foundation.progress_listener import Progress
    from focuscrawl.webs.protocol import Web

    UrlBag = tuple[str, Bag]

_WORDS = 12  # that weigh most, for and against


class Example(NamedTuple):
    """A page that a critic was learned from."""

    url: str
    good: bool
    title: str
    tokens: list[str]


class JudgedPage(NamedTuple):
    """A page and its relevance by a critic that has not learned from it.

    Attributes
    ----------
    label : its topic; empty if nobody has said
    """

    url: str
    label: str
    relevance: float


@dataclass(frozen=True, slots=True)
class FewExamplesReport:
    """What is known of a critic from few examples.

    Attributes
    ----------
    topic : its topic
    examples : those held out; empty where there are too few for that
    others : a sample of the web's other pages, in random order
    recall : share of relevant pages with R > 1/2; None with fewer than `FEWEST` good examples
    words_for, words_against : those that weigh most; none where the critic has no weights
    warnings : sentences
    """

    topic: str
    examples: tuple[JudgedPage, ...]
    others: tuple[JudgedPage, ...]
    recall: Share | None
    words_for: list[str]
    words_against: list[str]
    warnings: tuple[str, ...]

    def called(self) -> list[JudgedPage]:
        """Return the other pages that are called relevant, in random order."""
        return [page for page in self.others if page.relevance > 0.5]

    def doubtful(self, most: int) -> list[JudgedPage]:
        """Return the examples that are judged least as they are labelled, the worst first.

        None where there are too few to measure anything.
        """
        if self.recall is None:
            return []
        right = {page: _agreement(page, self.topic) for page in self.examples}
        return sorted(self.examples, key=right.__getitem__)[:most]


def read_examples(trained: TrainedCritic, web: Web) -> list[Example]:
    """Read the examples of a critic again; those that `web` does not have are left out."""
    found = resolve(web, [url for url, _ in trained.examples])
    pages = [None if url is None else read_page(web, url) for url in found]
    return [
        Example(url, topic != OFF_TOPIC, page.title, page.tokens)
        for (url, topic), page in zip(trained.examples, pages, strict=True)
        if page is not None and page.tokens
    ]


def check_few_examples(
    trained: TrainedCritic,
    examples: Sequence[Example],
    web: Web,
    *,
    progress: Progress = SILENT,
) -> FewExamplesReport:
    """Check a critic by what it was learned from.

    Parameters
    ----------
    trained : the critic
    examples : its examples, each once
    web : where they and other pages are
    progress : told how many others will be read, and of every few that were

    Raises
    ------
    UserError
        The web has none of the examples, or of the good ones where there is no phrase either; or
        it has nothing else.
    """
    good = [example for example in examples if example.good]
    if trained.examples and not (good or (examples and trained.phrases)):
        raise UserError(f"{web.name} has none of the critic's good examples: name another --web")
    known = {url for url, _ in trained.examples}
    progress.start(OTHERS)
    others = draw_other_pages([web], known, random_state=trained.random_state, progress=progress)
    if not others:
        raise UserError(f"{web.name} has no other pages than the examples: name another --web")
    sides: tuple[list[UrlBag], list[UrlBag]] = ([], [])
    for each in examples:
        sides[not each.good].append((each.url, Counter(each.tokens)))
    return assess(trained, *sides, others)


def assess(
    trained: TrainedCritic,
    good: Sequence[UrlBag],
    bad: Sequence[UrlBag],
    others: Sequence[UrlBag],
) -> FewExamplesReport:
    """Assess a critic from little by pages: its examples, and others.

    Parameters
    ----------
    trained : the critic
    good, bad : URL and words of its examples, each once
    others : of pages that stand for all others, at least one; a URL may be empty
    """
    topic = next(path for path in trained.model.classes if path != OFF_TOPIC)
    on_topic, off_topic, beside = ([bag for _, bag in side] for side in (good, bad, others))
    judged = judge_held_out(trained, on_topic, off_topic, beside, topic)
    held_out = len(judged.examples) > 0
    recall = None
    if len(good) >= FEWEST and held_out:
        recall = recall_of(judged.examples[: len(good)])
    if not good:
        on_topic = [bag for bag, odds in zip(beside, judged.others, strict=True) if odds > 0]
    words_for, words_against = weightiest(trained.model, topic, on_topic, beside)
    labelled = [(url, topic) for url, _ in good] + [(url, OFF_TOPIC) for url, _ in bad]
    return FewExamplesReport(
        topic=topic,
        examples=tuple(
            JudgedPage(url, label, relevance)
            for (url, label), relevance in zip(
                labelled, relevance_of(judged.examples), strict=held_out
            )
        ),
        others=tuple(
            JudgedPage(url, "", relevance)
            for (url, _), relevance in zip(others, relevance_of(judged.others), strict=True)
        ),
        recall=recall,
        words_for=words_for,
        words_against=words_against,
        warnings=tuple(
            warnings_of(
                phrases_of_critic(trained),
                [url for url, _ in good],
                others,
                judged.cohesion,
                recall,
            )
        ),
    )


def phrases_of_critic(trained: TrainedCritic) -> Sequence[Sequence[str]]:
    """Return the words of the phrases that a critic was learned from."""
    model = trained.model
    return model.phrases if isinstance(model, WordsModel) else trained.phrases


class Judged(NamedTuple):
    """Log-odds of the examples, good ones first, or of none of them, and of other pages."""

    examples: NDArray[np.float64]
    others: NDArray[np.float64]
    cohesion: Cohesion | None


def judge_held_out(
    trained: TrainedCritic,
    good: Sequence[Bag],
    bad: Sequence[Bag],
    others: Sequence[Bag],
    topic: str,
) -> Judged:
    """Hold pages out where there are enough of them; else let the critic judge as it is."""
    if not (good or bad) or (len(good) < 2 and not trained.phrases):
        log = trained.model.log_posteriors(others)
        yes = trained.model.classes.index(topic)
        return Judged(np.zeros(0), log[:, yes] - log[:, 1 - yes], None)
    languages = languages_of(others, [*good, *bad], trained.phrases)
    filled = [*others, *missing_others(len(others), trained.random_state, languages)]
    vectors, pages = read_little(
        trained.phrases,
        good,
        bad,
        filled,
        embeddings=word_vectors_installed(),
        languages=languages,
    )
    odds = hold_out(vectors, trained.phrases, pages, trained.random_state)
    return Judged(
        np.concatenate([odds.good, odds.bad]),
        odds.unlabelled[: len(others)],
        cohesion_of(vectors, pages) if len(good) > 1 else None,
    )


def relevance_of(log_odds: NDArray[np.float64]) -> list[float]:
    """Return R of log-odds."""
    relevance: list[float] = (0.5 + 0.5 * np.tanh(log_odds / 2.0)).tolist()
    return relevance


def _agreement(page: JudgedPage, topic: str) -> float:
    return page.relevance if page.label == topic else 1.0 - page.relevance


def weightiest(
    model: TopicModel, topic: str, on_topic: Sequence[Bag], others: Sequence[Bag]
) -> tuple[list[str], list[str]]:
    """Return the words that part pages on the topic from others, for the topic and against it.

    The mean log-odds of both differ by a sum over words; these have the largest terms.
    """
    if not isinstance(model, LogisticModel) or not on_topic:
        return [], []
    weights = model.linear.weights[: len(model.vectors.words), 0]
    if model.classes[1] != topic:
        weights = -weights
    means = []
    for bags in (on_topic, others):
        words = model.vectors.read(bags).words
        means.append(np.bincount(words.ids, words.counts, len(weights)) / len(bags))
    found = model.vectors.words
    parting = weights * (means[0] - means[1])
    parting[[is_part(word) for word in found]] = 0.0
    best = np.argsort(-parting, kind="stable")[: np.count_nonzero(parting > 0.0)]
    towards, away = best[weights[best] > 0.0][:_WORDS], best[weights[best] < 0.0][:_WORDS]
    return [found[i] for i in towards.tolist()], [found[i] for i in away.tolist()]
