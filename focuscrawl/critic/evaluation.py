"""Checking a critic against labelled pages it has not learned from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.calibration import (
    Reliability,
    reliability_of_classes,
    reliability_of_relevance,
)
from focuscrawl.critic.corpus import read_bags, resolve
from focuscrawl.critic.focused_critic import FocusedCritic
from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import SILENT
from focuscrawl.taxonomy import Label, Taxonomy, lies_under
from focuscrawl.webs.web_protocol import read_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.critic.protocol import CustomCritic
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.webs.web_protocol import Web

_CHUNK = 256  # pages judged at once
_NAMED = 5  # topics in a message


class ClassResult(NamedTuple):
    """How one class fared; precision is NaN if nothing was judged to be it, recall likewise."""

    topic: str
    pages: int
    precision: float
    recall: float


class Prediction(NamedTuple):
    """One page checked: its label, the verdict and the probability given to it."""

    url: str
    topic: str
    predicted: str
    probability: float


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found.

    Attributes
    ----------
    accuracy : share of pages judged right, in [0, 1]
    classes : by class; for a check of relevance, on and off the topic
    confusions : (label, verdict, pages), the most frequent first
    reliability : of the probabilities as the critic gives them, by ``raw`` or ``calibrated``
    predictions : one a page, in the order of the labels
    skipped : rows left out, by reason
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
    progress: Progress = SILENT,
) -> CheckReport:
    """Check the classes of a trained critic on the rows of `labels` it has not learned from.

    Parameters
    ----------
    trained : the critic; the predictions reported are calibrated if it is so by default
    labels : the ``test`` rows are used; if there are none, all that are no examples of it
    web : where the pages are
    progress : told how many pages will be read, and of every few that were

    Raises
    ------
    UserError
        If no row is left to check with.
    """
    model = trained.model
    pages, skipped = _select(labels, web, {url for url, _ in trained.examples})
    tree = Taxonomy({path: [] for path in model.classes})
    leaf_of = {topic: tree.leaf_of(topic) for topic in {label.topic for _, label in pages}}
    known = [(url, label) for url, label in pages if leaf_of[label.topic] is not None]
    skipped["of a topic the critic does not know"] = len(pages) - len(known)
    progress.start(len(known))
    bags = read_bags(web, [url for url, _ in known], progress=progress)
    kept = [(page, bag) for page, bag in zip(known, bags, strict=True) if bag is not None]
    skipped["not HTML"] = len(known) - len(kept)
    _require_pages(len(kept), web)
    number = {path: i for i, path in enumerate(model.classes)}
    truth = np.array([number[leaf_of[label.topic] or ""] for (_, label), _ in kept])

    def probabilities(calibration: Calibration | None) -> NDArray[np.float64]:
        return np.exp(model.log_posteriors([bag for _, bag in kept], calibration))

    given = {"raw": probabilities(None)}
    if trained.calibration is not None:
        given["calibrated"] = probabilities(trained.calibration)
    shown = given["calibrated" if trained.calibrated and trained.calibration else "raw"]
    return _report(
        classes=model.classes,
        urls=[label.url for (_, label), _ in kept],
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
    progress: Progress = SILENT,
) -> CheckReport:
    """Check R(u) of any critic: it should be above ½ on pages of `topics` and only there.

    Parameters and errors are those of `check_classes`.
    """
    pages, skipped = _select(labels, web, set(critic.examples))
    progress.start(len(pages))
    urls = [url for url, _ in pages]
    if isinstance(critic, FocusedCritic):
        bags = read_bags(web, urls, progress=progress)
        there = [bag is not None for bag in bags]
        found = critic.judge_bags([bag for bag in bags if bag is not None]).relevance
    else:
        there, found = _judge_pages(critic, web, urls, progress)
    kept = [label for (_, label), is_page in zip(pages, there, strict=True) if is_page]
    skipped["not HTML"] = len(pages) - len(kept)
    _require_pages(len(kept), web)
    truth = np.array([lies_under(label.topic, topics) for label in kept])
    if not truth.any():
        others = sorted({label.topic for label in kept})
        more = "" if len(others) <= _NAMED else ", ..."
        raise UserError(
            f"none of the {len(kept)} labelled pages is on {', '.join(topics)}; they are on "
            f"{', '.join(others[:_NAMED])}{more}"
        )
    verdict = found > 0.5
    return _report(
        classes=("off topic", "on topic"),
        urls=[label.url for label in kept],
        truth=truth.astype(np.int64),
        verdict=verdict.astype(np.int64),
        probability=np.where(verdict, found, 1.0 - found),
        reliability={"relevance": reliability_of_relevance(found, truth)},
        skipped=skipped,
    )


def _select(
    labels: Sequence[Label], web: Web, learned: set[str]
) -> tuple[list[tuple[str, Label]], Counter[str]]:
    """Return the rows to check with and the URLs the web has them under."""
    rows = [label for label in labels if label.split == "test"] or list(labels)
    found = resolve(web, [label.url for label in rows])
    skipped = Counter({"not in the web": found.count(None)})
    there = [(url, label) for url, label in zip(found, rows, strict=True) if url is not None]
    fresh = [(url, label) for url, label in there if url not in learned]
    skipped["learned from"] = len(there) - len(fresh)
    return fresh, skipped


def _require_pages(n: int, web: Web) -> None:
    if not n:
        raise UserError(
            f"no labelled page of {web.name} is left to check with; the labels need rows of "
            "topics the critic knows that it did not learn from"
        )


def _judge_pages(
    critic: CustomCritic,
    web: Web,
    urls: Sequence[str],
    progress: Progress,
) -> tuple[list[bool], NDArray[np.float64]]:
    """Judge whole pages: a user's callable may look at more than their words."""
    there: list[bool] = []
    found = [np.zeros(0)]
    for start in range(0, len(urls), _CHUNK):
        views = [read_page(web, url) for url in urls[start : start + _CHUNK]]
        there.extend(view is not None for view in views)
        found.append(critic.judge([view for view in views if view is not None]).relevance)
        progress.advance(len(views))
    return there, np.concatenate(found)


def _report(
    *,
    classes: Sequence[str],
    urls: Sequence[str],
    truth: NDArray[np.int64],
    verdict: NDArray[np.int64],
    probability: NDArray[np.float64],
    reliability: dict[str, Reliability],
    skipped: Counter[str],
) -> CheckReport:
    from sklearn.metrics import precision_recall_fscore_support  # noqa: PLC0415

    precision, recall, _, pages = precision_recall_fscore_support(
        truth, verdict, labels=np.arange(len(classes)), zero_division=np.nan
    )
    pairs = Counter(zip(truth.tolist(), verdict.tolist(), strict=True))
    return CheckReport(
        float((truth == verdict).mean()),
        tuple(map(ClassResult, classes, pages.tolist(), precision.tolist(), recall.tolist())),
        tuple(
            (classes[label], classes[guess], n)
            for (label, guess), n in sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
            if label != guess
        ),
        reliability,
        tuple(
            Prediction(url, classes[label], classes[guess], float(p))
            for url, label, guess, p in zip(urls, truth, verdict, probability, strict=True)
        ),
        dict(+skipped),
    )
