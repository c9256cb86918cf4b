"""How good a critic is, measured on its own examples."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from focuscrawl.critic.calibration import reliability_of_relevance
from focuscrawl.critic.classifiers import LogisticModel
from focuscrawl.critic.corpus import read_known, resolve
from focuscrawl.critic.example_checks import (
    FEWEST,
    cohesion_of,
    hold_out,
    recall_of,
    share_of,
    too_few,
    warnings_of,
)
from focuscrawl.critic.few_shot import read_little
from focuscrawl.critic.focused_critic import is_from_little
from focuscrawl.critic.languages import is_part, languages_of
from focuscrawl.critic.page_vectors import word_vectors_installed
from focuscrawl.critic.phrase_model import OFF_TOPIC, WordsModel
from focuscrawl.critic.training import (
    OTHERS,
    draw_other_pages,
    held_out_posteriors,
    missing_others,
)
from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import SILENT
from focuscrawl.taxonomy import lies_under
from focuscrawl.webs.web_protocol import read_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.example_checks import Share
    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.webs.web_protocol import Web


# Checking a critic learned from few examples, before a night is spent on a crawl.
#
# Nobody has labelled pages to check it with. So its examples are held out in turn, each time with
# a part of the other pages, and judged by what the rest teaches. How many of the pages that it
# calls relevant are not, no such experiment tells: it depends on how many relevant ones there are.
# Somebody has to look at some.

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.example_checks import Cohesion, Share
    from focuscrawl.critic.focused_critic import TopicModel, TrainedCritic
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.webs.web_protocol import Web

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


_DOUBTFUL = 20
_CONFUSIONS = 10
_FEWEST = 2  # pages on the topic, so that one can be held out


@dataclass(frozen=True)
class Change:
    """Two critics on the examples that only the later has learned from, each held out there.

    Attributes
    ----------
    pages : how many
    right_before, right : on how many R > 1/2 was true, by the critic before and by this one
    precision_before, precision : share of those with R > 1/2 that are on the topic; None: none has
    """

    pages: int
    right_before: int
    right: int
    precision_before: float | None
    precision: float | None


class Before(NamedTuple):
    """The critic that was there before, and its marked classes."""

    trained: TrainedCritic
    topics: Sequence[str]


@dataclass(frozen=True)
class Quality:
    """What cross-validation says of a critic; all shares are of R > 1/2.

    Attributes
    ----------
    on, off : examples on the topic, and off it
    others : pages beside them that stand for all others; nobody has said what they are
    why_not : why nothing is measured, above all because of too few examples; empty: it is
    precision, recall : share of the examples with its 90 % interval; None: not measured. There is
        no precision without examples off the topic, or where none is called relevant
    called : of `others`, how many are called relevant
    change : of the critic before, if it was given
    bins : the reliability table: ``low``, ``high``, ``pages``, ``confidence``, ``frequency``
    brier, ece : see `focuscrawl.critic.calibration`; None where there is no table
    confusions : label, verdict, number of pages, the most frequent first
    words_for, words_against : words that weigh most; none where the critic has no weights
    doubtful : examples judged least as they are labelled, the worst first: ``url``, ``label``,
        ``relevance``
    warnings : what may be wrong with the examples, in sentences; only of a critic from little
    """

    on: int
    off: int
    others: int = 0
    why_not: str = ""
    precision: Share | None = None
    recall: Share | None = None
    called: int = 0
    change: Change | None = None
    bins: tuple[dict[str, float], ...] = ()
    brier: float | None = None
    ece: float | None = None
    confusions: tuple[tuple[str, str, int], ...] = ()
    words_for: tuple[str, ...] = ()
    words_against: tuple[str, ...] = ()
    doubtful: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        trained: TrainedCritic,
        topics: Sequence[str],
        webs: Sequence[Web] = (),
        *,
        before: Before | None = None,
        progress: Progress = SILENT,
    ) -> Self:
        """Measure a critic.

        A critic from little has kept the words of its pages; those of another's examples are
        read again.

        Parameters
        ----------
        topics : marked classes, normalised
        webs : where examples are, in the order to look for one
        before : a critic to compare with
        progress : told how many pages will be read, and of every few that were

        Raises
        ------
        UserError
            The examples cannot be read.
        """
        if is_from_little(trained):
            return cls._of_little(trained, before)
        urls = [url for url, _ in trained.examples]
        progress.start(len(urls))
        pages = read_known(webs, urls, progress=progress)
        usable = [((url, path), pages[url].bag) for url, path in trained.examples if url in pages]
        if len({path for (_, path), _ in usable}) < _FEWEST:
            raise UserError(
                f"{len(usable)} of {len(urls)} examples of the critic can be read: name the "
                "recording that it was learned from with --web"
            )
        held_out = np.exp(
            held_out_posteriors(
                usable,
                kind=trained.model.kind,
                uniform_prior=getattr(trained.model, "uniform_prior", False),
            )
        )
        classes = sorted({path for (_, path), _ in usable})
        marked = np.array([lies_under(path, topics) for path in classes])
        relevance = np.minimum(held_out[:, marked].sum(axis=1), 1.0)
        labels = [path for (_, path), _ in usable]
        verdicts = [classes[i] for i in held_out.argmax(axis=1).tolist()]
        pairs = Counter((a, b) for a, b in zip(labels, verdicts, strict=True) if a != b)
        truth = np.array([lies_under(path, topics) for path in labels])
        return cls._measured(
            [(url, bag) for (url, _), bag in usable],
            relevance,
            truth,
            labels=labels,
            before=before,
            confusions=tuple((a, b, n) for (a, b), n in pairs.most_common(_CONFUSIONS)),
        )

    @classmethod
    def _of_little(cls, trained: TrainedCritic, before: Before | None) -> Self:
        bags = trained.pages.bags()
        n = min(len(trained.examples), len(bags))
        # what is one page twice would be learned from itself
        seen: set[tuple[tuple[str, int], ...]] = set()
        sides: dict[bool, list[tuple[str, Bag]]] = {True: [], False: []}
        for (url, path), bag in zip(trained.examples[:n], bags[:n], strict=True):
            words = tuple(sorted(bag.items()))
            if words not in seen:
                sides[path != OFF_TOPIC].append((url, bag))
            seen.add(words)
        good, bad, others = sides[True], sides[False], bags[n:]
        if len(good) < _FEWEST or not others:
            why_not = too_few(len(good)) or "there are no other pages to tell them from"
            return cls(len(good), len(bad), len(others), why_not=why_not)
        found = assess(trained, good, bad, [("", bag) for bag in others])  # URLs are not kept
        return cls._measured(
            [*good, *bad],
            np.array([page.relevance for page in found.examples]),
            np.arange(len(found.examples)) < len(good),
            labels=[page.label for page in found.examples],
            before=before,
            recall=found.recall,
            others=len(others),
            called=len(found.called()),
            warnings=found.warnings,
            words_for=tuple(found.words_for),
            words_against=tuple(found.words_against),
        )

    @classmethod
    def _measured(
        cls,
        pages: Sequence[tuple[str, Bag]],
        relevance: NDArray[np.float64],
        truth: NDArray[np.bool_],
        *,
        labels: Sequence[str],
        before: Before | None,
        recall: Share | None = None,
        **more: Any,
    ) -> Self:
        called, hits = int((relevance > 0.5).sum()), int((relevance[truth] > 0.5).sum())
        on = int(truth.sum())
        why_not = too_few(on)
        both = not (why_not or truth.all())
        table = reliability_of_relevance(relevance, truth) if both else None
        wrong = np.where(truth, relevance, 1.0 - relevance)
        worst = [i for i in np.argsort(wrong, kind="stable").tolist() if wrong[i] < 0.5]
        return cls(
            on=on,
            off=len(truth) - on,
            why_not=why_not,
            precision=share_of(hits, called) if called and both else None,
            recall=recall if why_not or recall is not None else share_of(hits, on),
            change=None if before is None else _change(before, pages, relevance, truth),
            bins=() if table is None else tuple(each._asdict() for each in table.bins),
            brier=None if table is None else table.brier,
            ece=None if table is None else table.ece,
            doubtful=tuple(
                {"url": pages[i][0], "label": labels[i], "relevance": float(relevance[i])}
                for i in ([] if why_not else worst[:_DOUBTFUL])
            ),
            **more,
        )

    def json(self) -> str:
        """Return it as JSON, of the names of the attributes."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n"


def _change(
    before: Before,
    pages: Sequence[tuple[str, Bag]],
    relevance: NDArray[np.float64],
    truth: NDArray[np.bool_],
) -> Change | None:
    """Compare with the critic before on the pages that it has not learned from; None: none."""
    known = {url for url, _ in before.trained.examples}
    new = [i for i, (url, _) in enumerate(pages) if url not in known]
    if not new:
        return None
    model = before.trained.model
    calibration = before.trained.calibration if before.trained.calibrated else None
    log = model.log_posteriors([pages[i][1] for i in new], calibration)
    marked = np.array([lies_under(path, before.topics) for path in model.classes])
    then, now, true = np.exp(log)[:, marked].sum(axis=1) > 0.5, relevance[new] > 0.5, truth[new]
    return Change(
        pages=len(new),
        right_before=int((then == true).sum()),
        right=int((now == true).sum()),
        precision_before=float(true[then].mean()) if then.any() else None,
        precision=float(true[now].mean()) if now.any() else None,
    )
