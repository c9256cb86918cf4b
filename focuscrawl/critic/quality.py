"""How good a critic is, told from its own examples: each judged by what the others teach."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from focuscrawl.critic.corpus import read_known
from focuscrawl.critic.few_examples_check import assess
from focuscrawl.critic.few_examples_estimates import share_of, too_few
from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.critic.reliability import reliability_of_relevance
from focuscrawl.critic.trained import is_from_little
from focuscrawl.critic.training import held_out_posteriors
from focuscrawl.errors import UserError
from focuscrawl.foundation.progress_listener import SILENT
from focuscrawl.taxonomy import lies_under

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.few_examples_estimates import Share
    from focuscrawl.critic.trained import TrainedCritic
    from focuscrawl.foundation.progress_listener import Progress
    from focuscrawl.webs.protocol import Web

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
    brier, ece : see `focuscrawl.critic.reliability`; None where there is no table
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
