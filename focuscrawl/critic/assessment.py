"""Quality of a critic on labelled pages, or by cross-validation on its own examples.

A few-shot critic has no labelled pages except its examples, so its quality is measured by
cross-validation on the examples. This estimates recall. The precision of a critic also depends on
the share of relevant pages on the Web. To estimate precision, a person has to check some of the
pages that the critic judges relevant.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from focuscrawl.critic.calibration import (
    Reliability,
    reliability_of_classes,
    reliability_of_relevance,
)
from focuscrawl.critic.corpus import find_pages, find_urls, read_bags
from focuscrawl.critic.example_checks import (
    assess_few_shot,
    estimate_share,
    find_similar_pages,
    too_few_message,
)
from focuscrawl.critic.focused_critic import FocusedCritic, is_few_shot
from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.critic.training import (
    N_UNLABELLED,
    held_out_posteriors,
    sample_unlabelled_pages,
)
from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import NO_PROGRESS
from focuscrawl.taxonomy import Label, Taxonomy, lies_under
from focuscrawl.webs.web_protocol import read_page

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.critic.example_checks import FewExamplesReport, ShareEstimate, UrlBag
    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.critic.protocol import CustomCritic
    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.webs.web_protocol import Web

_BATCH = 256  # pages judged at once
_MAX_NAMED_TOPICS = 5  # topics in a message
_MAX_DOUBTFUL = 20  # examples listed
_MAX_CONFUSIONS = 10  # listed
_MAX_MOVED = 50  # listed
_MIN_TO_HOLD_OUT = 2  # classes, or relevant pages, that cross-validation needs


class ClassResult(NamedTuple):
    """Precision and recall of a class; NaN if no page is predicted or labelled as the class."""

    topic: str
    pages: int
    precision: float
    recall: float


class Prediction(NamedTuple):
    """Label and predicted class of a page, and the probability of the predicted class."""

    url: str
    topic: str
    predicted: str
    probability: float


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Results of checking a critic on labelled pages.

    Attributes
    ----------
    accuracy : share of correct predictions, in [0, 1]
    classes : results by class; a check of relevance has the classes ``off topic`` and ``on topic``
    confusions : label, predicted class and number of pages, most frequent first
    reliability : of the probabilities; keys ``raw`` and ``calibrated``, or ``relevance``
    predictions : one for each page, in the order of the labels
    skipped : number of skipped rows, by reason
    """

    accuracy: float
    classes: tuple[ClassResult, ...]
    confusions: tuple[tuple[str, str, int], ...]
    reliability: dict[str, Reliability]
    predictions: tuple[Prediction, ...]
    skipped: dict[str, int]


def check_classes(
    trained: TrainedCritic,
    labels: Sequence[Label],
    web: Web,
    *,
    progress: Progress = NO_PROGRESS,
) -> CheckReport:
    """Check the classes predicted by a critic on labelled pages that it was not trained on.

    Parameters
    ----------
    trained : the predictions are calibrated if the critic is calibrated by default
    labels : rows of the split ``test`` are used; all rows if no row has this split
    web : web that has the pages
    progress : reports the number of pages read

    Raises
    ------
    UserError
        If no row can be used.
    """
    model = trained.model
    rows, skipped = _select_rows(labels, web, {url for url, _ in trained.examples})
    tree = Taxonomy({path: [] for path in model.classes})
    leaf_of = {label.topic: tree.leaf_of(label.topic) for _, label in rows}
    known = [(url, label) for url, label in rows if leaf_of[label.topic] is not None]
    skipped["of a topic the critic has no class for"] = len(rows) - len(known)
    progress.start(len(known))
    found = read_bags(web, [url for url, _ in known], progress=progress)
    bags = [bag for bag in found if bag is not None]
    kept = _keep_readable(known, [bag is not None for bag in found], skipped, web)
    truth = np.array([model.classes.index(leaf_of[label.topic] or "") for label in kept])

    def probabilities(calibration: Calibration | None) -> Floats:
        return np.exp(model.log_posteriors(bags, calibration))

    given = {"raw": probabilities(None)}
    if trained.calibration is not None:
        given["calibrated"] = probabilities(trained.calibration)
    shown = given["calibrated" if trained.calibrated and trained.calibration else "raw"]
    return _build_report(
        classes=model.classes,
        urls=[label.url for label in kept],
        truth=truth,
        verdict=shown.argmax(axis=1),
        probability=shown.max(axis=1),
        reliability={name: reliability_of_classes(each, truth) for name, each in given.items()},
        skipped=skipped,
    )


def check_relevance(
    critic: FocusedCritic | CustomCritic,
    topics: Sequence[str],
    labels: Sequence[Label],
    web: Web,
    *,
    progress: Progress = NO_PROGRESS,
) -> CheckReport:
    """Check whether a critic gives pages of `topics`, and only these, a relevance above 1/2.

    The function `check_classes` describes the other parameters and the errors.
    """
    rows, skipped = _select_rows(labels, web, set(critic.examples))
    progress.start(len(rows))
    urls = [url for url, _ in rows]
    if isinstance(critic, FocusedCritic):
        bags = read_bags(web, urls, progress=progress)
        readable = [bag is not None for bag in bags]
        relevance = critic.judge_bags([bag for bag in bags if bag is not None]).relevance
    else:
        readable, relevance = _judge_pages(critic, web, urls, progress)
    kept = _keep_readable(rows, readable, skipped, web)
    truth = np.array([lies_under(label.topic, topics) for label in kept])
    if not truth.any():
        others = sorted({label.topic for label in kept})
        more = "" if len(others) <= _MAX_NAMED_TOPICS else ", ..."
        raise UserError(
            f"none of the {len(kept)} labelled pages has a topic in {', '.join(topics)}; the "
            f"topics of the labels are {', '.join(others[:_MAX_NAMED_TOPICS])}{more}"
        )
    verdict = relevance > 0.5
    return _build_report(
        classes=("off topic", "on topic"),
        urls=[label.url for label in kept],
        truth=truth.astype(np.int64),
        verdict=verdict.astype(np.int64),
        probability=np.where(verdict, relevance, 1.0 - relevance),
        reliability={"relevance": reliability_of_relevance(relevance, truth)},
        skipped=skipped,
    )


def _select_rows(
    labels: Sequence[Label], web: Web, training_urls: set[str]
) -> tuple[list[tuple[str, Label]], Counter[str]]:
    """Return the usable rows with their URLs in the web, and the number of skipped rows."""
    rows = [label for label in labels if label.split == "test"] or list(labels)
    found = find_urls(web, [label.url for label in rows])
    skipped = Counter({"not in the web": found.count(None)})
    readable = [(url, label) for url, label in zip(found, rows, strict=True) if url is not None]
    held_out = [(url, label) for url, label in readable if url not in training_urls]
    skipped["training examples"] = len(readable) - len(held_out)
    return held_out, skipped


def _keep_readable(
    rows: Sequence[tuple[str, Label]], readable: Sequence[bool], skipped: Counter[str], web: Web
) -> list[Label]:
    """Return the labels of `readable` pages; `UserError` if no page is readable."""
    kept = [label for (_, label), is_page in zip(rows, readable, strict=True) if is_page]
    skipped["not HTML"] = len(rows) - len(kept)
    if not kept:
        raise UserError(
            f"no labelled page of {web.name} can be used; give labels of topics that the critic "
            "has, for pages that are not its training examples"
        )
    return kept


def _judge_pages(
    critic: CustomCritic, web: Web, urls: Sequence[str], progress: Progress
) -> tuple[list[bool], Floats]:
    """Judge pages by a user's callable, which may use more than their words."""
    readable: list[bool] = []
    found = [np.zeros(0)]
    for start in range(0, len(urls), _BATCH):
        views = [read_page(web, url) for url in urls[start : start + _BATCH]]
        readable.extend(view is not None for view in views)
        found.append(critic.judge([view for view in views if view is not None]).relevance)
        progress.advance(len(views))
    return readable, np.concatenate(found)


def _build_report(
    *,
    classes: Sequence[str],
    urls: Sequence[str],
    truth: Ints,
    verdict: Ints,
    probability: Floats,
    reliability: dict[str, Reliability],
    skipped: Counter[str],
) -> CheckReport:
    from sklearn.metrics import precision_recall_fscore_support  # noqa: PLC0415

    precision, recall, _, pages = precision_recall_fscore_support(
        truth, verdict, labels=np.arange(len(classes)), zero_division=np.nan
    )
    labelled = [classes[i] for i in truth.tolist()]
    judged = [classes[i] for i in verdict.tolist()]
    return CheckReport(
        float((truth == verdict).mean()),
        tuple(map(ClassResult, classes, pages.tolist(), precision.tolist(), recall.tolist())),
        _confusions(labelled, judged),
        reliability,
        tuple(map(Prediction, urls, labelled, judged, probability.tolist())),
        dict(+skipped),
    )


def _confusions(
    labelled: Iterable[str], judged: Iterable[str], most: int | None = None
) -> tuple[tuple[str, str, int], ...]:
    """Return label, predicted class and number of wrongly judged pages, most frequent first."""
    pairs = Counter((a, b) for a, b in zip(labelled, judged, strict=True) if a != b)
    return tuple((*pair, n) for pair, n in sorted(pairs.items(), key=lambda i: (-i[1], i[0])))[
        :most
    ]


class Example(NamedTuple):
    """A page on which a few-shot critic was trained."""

    url: str
    good: bool
    title: str
    tokens: list[str]


def read_examples(trained: TrainedCritic, web: Web) -> list[Example]:
    """Read the training pages of a critic from `web`; leave out pages that `web` does not have."""
    found = find_urls(web, [url for url, _ in trained.examples])
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
    progress: Progress = NO_PROGRESS,
) -> FewExamplesReport:
    """Check a few-shot critic by cross-validation on its examples.

    Parameters
    ----------
    examples : distinct examples of the critic
    web : web that has the examples and other pages
    progress : reports the number of other pages read

    Raises
    ------
    UserError
        If the web has no good example (no example at all, for a critic with phrases), or no other
        pages.
    """
    good = [example for example in examples if example.good]
    if trained.examples and not (good or (examples and trained.phrases)):
        raise UserError(f"{web.name} has no good example of the critic: name another --web")
    known = {url for url, _ in trained.examples}
    progress.start(N_UNLABELLED)
    others = sample_unlabelled_pages(
        [web], known, random_state=trained.random_state, progress=progress
    )
    if not others:
        raise UserError(f"{web.name} has no pages besides the examples: name another --web")
    sides: tuple[list[UrlBag], list[UrlBag]] = ([], [])
    for each in examples:
        sides[not each.good].append((each.url, Counter(each.tokens)))
    return assess_few_shot(trained, *sides, others)


@dataclass(frozen=True)
class Comparison:
    """Comparison of a newly trained critic with the previous critic, on the new examples.

    The previous critic was not trained on the new examples; the new critic is cross-validated on
    the examples.

    Attributes
    ----------
    pages : number of new examples
    right_before, right : number of new examples that each critic judges correctly
    precision_before, precision : of each critic; None if it judges no new example relevant
    """

    pages: int
    right_before: int
    right: int
    precision_before: float | None
    precision: float | None


@dataclass(frozen=True)
class Quality:
    """Quality of a critic by cross-validation; a page with relevance above 1/2 counts as relevant.

    Attributes
    ----------
    on, off : number of relevant and of off-topic examples
    others : number of unlabelled pages that represent the rest of the Web
    why_not : why quality is not measured, such as too few examples; empty if it is measured
    precision, recall : share with a 90 % interval; None if not measured. Precision needs off-topic
        examples, and examples that the critic judges relevant
    called : number of `others` that the critic judges relevant
    change : comparison with the previous critic, if given
    bins : the reliability table: ``low``, ``high``, ``pages``, ``confidence``, ``frequency``
    brier, ece : see `focuscrawl.critic.calibration.Reliability`; None without a table
    confusions : label, predicted class and number of pages, most frequent first
    words_for, words_against : words with the highest weights; empty if the critic has no weights
    doubtful : examples whose relevance contradicts their label, worst first: ``url``, ``label``,
        ``relevance``
    warnings : problems of the examples of a few-shot critic, one sentence each
    alike : pairs of examples with nearly the same words, most similar first: ``a``, ``b`` (URLs),
        ``similarity``
    moved : examples on which this critic and the previous critic differ, the largest difference
        first: ``url``, ``label``, ``before`` and ``now`` (relevance)
    """

    on: int
    off: int
    others: int = 0
    why_not: str = ""
    precision: ShareEstimate | None = None
    recall: ShareEstimate | None = None
    called: int = 0
    change: Comparison | None = None
    bins: tuple[dict[str, float], ...] = ()
    brier: float | None = None
    ece: float | None = None
    confusions: tuple[tuple[str, str, int], ...] = ()
    words_for: tuple[str, ...] = ()
    words_against: tuple[str, ...] = ()
    doubtful: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    alike: tuple[dict[str, Any], ...] = ()
    moved: tuple[dict[str, Any], ...] = ()

    @classmethod
    def measure(
        cls,
        trained: TrainedCritic,
        topics: Sequence[str],
        webs: Sequence[Web] = (),
        *,
        previous: TrainedCritic | None = None,
        progress: Progress = NO_PROGRESS,
    ) -> Self:
        """Measure the quality of a critic by cross-validation on its examples.

        A few-shot critic stores the words of its examples. The example pages of critics that are
        not few-shot are read from `webs`.

        Parameters
        ----------
        topics : normalised topic paths of the marked classes
        webs : webs that have the examples, searched in this order
        previous : critic to compare with; the same topics are marked
        progress : reports the number of pages read

        Raises
        ------
        UserError
            If the examples cannot be read.
        """
        if is_few_shot(trained):
            return cls._measure_few_shot(trained, topics, previous)
        urls = [url for url, _ in trained.examples]
        progress.start(len(urls))
        pages = find_pages(webs, urls, progress=progress)
        usable = [((url, path), pages[url].bag) for url, path in trained.examples if url in pages]
        if len({path for (_, path), _ in usable}) < _MIN_TO_HOLD_OUT:
            raise UserError(
                f"only {len(usable)} of {len(urls)} examples of the critic can be read: name the "
                "recording of its training pages with --web"
            )
        log = held_out_posteriors(
            usable,
            kind=trained.model.kind,
            uniform_prior=getattr(trained.model, "uniform_prior", False),
        )
        classes = sorted({path for (_, path), _ in usable})
        marked = np.array([lies_under(path, topics) for path in classes])
        relevance = np.minimum(np.exp(log)[:, marked].sum(axis=1), 1.0)
        labels = [path for (_, path), _ in usable]
        verdicts = [classes[i] for i in log.argmax(axis=1).tolist()]
        truth = np.array([lies_under(path, topics) for path in labels])
        judged = [(url, bag) for (url, _), bag in usable]
        return cls._from_judgements(
            [url for url, _ in judged],
            relevance,
            truth,
            labels=labels,
            change=_compare(previous, topics, judged, relevance > 0.5, truth),
            confusions=_confusions(labels, verdicts, _MAX_CONFUSIONS),
            alike=find_similar_pages(judged),
            moved=_changed_sides(trained, previous, topics, judged, labels),
        )

    @classmethod
    def _measure_few_shot(
        cls, trained: TrainedCritic, topics: Sequence[str], previous: TrainedCritic | None
    ) -> Self:
        bags = trained.pages.bags()
        n = min(len(trained.examples), len(bags))
        # a copy of a held-out page must not be among the training pages
        seen: set[tuple[tuple[str, int], ...]] = set()
        sides: dict[bool, list[tuple[str, Bag]]] = {True: [], False: []}
        for (url, path), bag in zip(trained.examples[:n], bags[:n], strict=True):
            words = tuple(sorted(bag.items()))
            if words not in seen:
                sides[path != OFF_TOPIC].append((url, bag))
            seen.add(words)
        good, bad, others = sides[True], sides[False], bags[n:]
        urls, labels = zip(*trained.examples[:n], strict=True) if n else ((), ())
        pages = [*zip(urls, bags[:n], strict=True)]
        compared: dict[str, Any] = {
            "alike": find_similar_pages(pages),
            "moved": _changed_sides(trained, previous, topics, pages, labels),
        }
        if len(good) < _MIN_TO_HOLD_OUT or not others:
            why_not = too_few_message(len(good)) or "the critic has no unlabelled pages"
            return cls(len(good), len(bad), len(others), why_not=why_not, **compared)
        # a critic does not store the URLs of its unlabelled pages
        found = assess_few_shot(trained, good, bad, [("", bag) for bag in others])
        relevance = np.array([page.relevance for page in found.examples])
        truth = np.arange(len(relevance)) < len(good)
        return cls._from_judgements(
            [page.url for page in found.examples],
            relevance,
            truth,
            labels=[page.label for page in found.examples],
            change=_compare(previous, topics, [*good, *bad], relevance > 0.5, truth),
            recall=found.recall,
            others=len(others),
            called=len(found.called_relevant()),
            warnings=found.warnings,
            words_for=found.words_for,
            words_against=found.words_against,
            **compared,
        )

    @classmethod
    def _from_judgements(
        cls,
        urls: Sequence[str],
        relevance: Floats,
        truth: Bools,
        *,
        labels: Sequence[str],
        change: Comparison | None,
        recall: ShareEstimate | None = None,
        **more: Any,
    ) -> Self:
        called, hits = int((relevance > 0.5).sum()), int((relevance[truth] > 0.5).sum())
        on = int(truth.sum())
        why_not = too_few_message(on)
        both = not (why_not or truth.all())
        table = reliability_of_relevance(relevance, truth) if both else None
        wrong = np.where(truth, relevance, 1.0 - relevance)
        worst = [i for i in np.argsort(wrong, kind="stable").tolist() if wrong[i] < 0.5]
        return cls(
            on=on,
            off=len(truth) - on,
            why_not=why_not,
            precision=estimate_share(hits, called) if called and both else None,
            recall=recall if why_not or recall is not None else estimate_share(hits, on),
            change=change,
            bins=() if table is None else tuple(each._asdict() for each in table.bins),
            brier=None if table is None else table.brier,
            ece=None if table is None else table.ece,
            doubtful=tuple(
                {"url": urls[i], "label": labels[i], "relevance": float(relevance[i])}
                for i in ([] if why_not else worst[:_MAX_DOUBTFUL])
            ),
            **more,
        )

    def json(self) -> str:
        """Return the attributes as a JSON object."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n"


def _changed_sides(
    trained: TrainedCritic,
    previous: TrainedCritic | None,
    topics: Sequence[str],
    pages: Sequence[UrlBag],
    labels: Sequence[str],
) -> tuple[dict[str, Any], ...]:
    """Return the pages that only one of two critics judges relevant, see `Quality.moved`."""
    if previous is None or not pages:
        return ()
    bags = [bag for _, bag in pages]
    before, now = (_relevance(critic, topics, bags) for critic in (previous, trained))
    changed = np.flatnonzero((before > RELEVANT) != (now > RELEVANT))
    order = changed[np.argsort(-np.abs(now - before)[changed], kind="stable")][:_MAX_MOVED]
    return tuple(
        {"url": pages[i][0], "label": labels[i], "before": float(before[i]), "now": float(now[i])}
        for i in order.tolist()
    )


def _relevance(critic: TrainedCritic, topics: Sequence[str], bags: Sequence[Bag]) -> Floats:
    log = critic.model.log_posteriors(bags, critic.calibration if critic.calibrated else None)
    marked = np.array([lies_under(path, topics) for path in critic.model.classes])
    relevance: Floats = np.minimum(np.exp(log)[:, marked].sum(axis=1), 1.0)
    return relevance


def _compare(
    previous: TrainedCritic | None,
    topics: Sequence[str],
    pages: Sequence[UrlBag],
    now: Bools,
    truth: Bools,
) -> Comparison | None:
    """Compare with the previous critic on pages that are not its examples; None without such."""
    known = {url for url, _ in previous.examples} if previous else set()
    new = [i for i, (url, _) in enumerate(pages) if url not in known]
    if previous is None or not new:
        return None
    then = _relevance(previous, topics, [pages[i][1] for i in new]) > RELEVANT
    now, truth = now[new], truth[new]
    return Comparison(
        pages=len(new),
        right_before=int((then == truth).sum()),
        right=int((now == truth).sum()),
        precision_before=float(truth[then].mean()) if then.any() else None,
        precision=float(truth[now].mean()) if now.any() else None,
    )
