"""From a study to its runs: critics, draws of seeds, budgets."""

from __future__ import annotations

import hashlib
import inspect
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from focuscrawl import __version__
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.critic import load_critic
from focuscrawl.critic.classifiers import NaiveBayes
from focuscrawl.critic.critic_files import save_critic
from focuscrawl.critic.training import train_critic
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import cache_dir
from focuscrawl.lab.study import Run
from focuscrawl.lab.whole_web import whole_web
from focuscrawl.strategies import StrategyContext, find_strategy, make_strategy
from focuscrawl.taxonomy import lies_under, read_labels
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.lab.study import Contender, Study, StudyWeb
    from focuscrawl.lab.whole_web import WholeWeb
    from focuscrawl.webs.web_protocol import Web

T = TypeVar("T")


def plan_runs(study: Study, out: Path) -> list[Run]:
    """Return every run of `study`, to be kept under `out`; each behind those it needs.

    Raises
    ------
    UserError
        The study names what there is not: a strategy, an option, a web, a topic, seeds.
    """
    check_strategies(study)
    runs: list[Run] = []
    for study_web in study.webs:
        web = open_web(study_web.recording)
        critic = study_web.critic or str(critic_of_labels(study_web.labels, web, study_web.kind))
        judges = [load_critic(critic, topic) for topic in study_web.topics]
        check_values(study.contenders, judges[0], web, study_web.topics[0])
        # a critic without classes, a user's callable, judges one topic and has no oracle
        whole = whole_web(web, judges[0]) if judges[0].classes else None
        for topic, judge in zip(study_web.topics, judges, strict=True):
            relevance = None if whole is None else whole.relevance(topic)
            for draw in range(study.draws):
                seeds = draw_seeds(study_web, web, topic, draw)
                reach = Reach(whole, relevance, seeds)
                compared = reach.budget(study.budget, study.most)
                oracle_loss = reach.oracle_loss(compared)
                known = {contender.knows for contender in study.contenders}
                sets = {each.seeds: seeds for each in study.contenders}
                for number in sorted(sets.keys() - {0}):
                    before = [url for n in range(number) for url in sets.get(n, seeds)]
                    sets[number] = more_seeds(study_web, web, topic, (draw, number), before)
                planned: dict[str, Run] = {}
                for contender in _in_order(study.contenders):
                    own = contender.budget
                    planned[contender.label] = Run(
                        web=study_web.name,
                        recording=study_web.recording,
                        critic=critic,
                        topic=topic,
                        draw=draw,
                        budget=compared if own is None else reach.budget(own, study.most),
                        compared=compared,
                        oracle_loss=oracle_loss,
                        seeds=tuple(sets[contender.seeds]),
                        contender=contender,
                        folder=out.joinpath(
                            "runs", study_web.name, slug(topic), str(draw), slug(contender.label)
                        ),
                        trained_on=planned.get(contender.trained_on or ""),
                        within=planned.get(contender.within or ""),
                        teaches=_taught_by(contender, study),
                        knows=planned.get(contender.knows or ""),
                        remembers=contender.label in known,
                        fingerprint=f"{web.fingerprint} {judge.fingerprint}",
                    )
                runs += planned.values()
    return runs


def draw_seeds(study_web: StudyWeb, web: Web, topic: str, draw: int) -> list[str]:
    """Return the start URLs of a draw.

    Those of the portal, if there is one; else first those of the seeds file, then samples of the
    examples.

    Raises
    ------
    UserError
        The web has none of them.
    """
    if study_web.portal is not None:
        source, found = study_web.portal, read_seeds(study_web.portal, (topic,))
    elif draw == 0:
        assert study_web.seeds is not None
        source, found = study_web.seeds, read_seeds(study_web.seeds, (topic,))
    else:
        source = study_web.labels
        found = sample(_examples(study_web, web, topic), study_web.seeds_per_draw, draw)
    seeds = [url for url in web.resolve(found) if url is not None]
    if not seeds:
        raise UserError(f"{source} has no start URL for {topic} that {study_web.name} has")
    return seeds


def more_seeds(
    study_web: StudyWeb, web: Web, topic: str, number: tuple[int, int], taken: Sequence[str]
) -> list[str]:
    """Return start URLs that have none in common with those `taken`; a sample of the examples.

    Parameters
    ----------
    number : of the draw, and of the set of start URLs in it

    Raises
    ------
    UserError
        There are no other examples.
    """
    others = [url for url in _examples(study_web, web, topic) if url not in set(taken)]
    if not others:
        raise UserError(
            f"{study_web.labels} has no more examples of {topic} for another set of start URLs"
        )
    return sample(others, study_web.seeds_per_draw, number)


def _examples(study_web: StudyWeb, web: Web, topic: str) -> list[str]:
    """Return the training examples of a topic that the web has."""
    examples = [
        label.url
        for label in read_labels(Path(study_web.labels))
        if label.split != "test" and lies_under(label.topic, [topic])
    ]
    return [url for url in web.resolve(examples) if url is not None]


def sample(
    items: Sequence[T], size: int, seed: int | tuple[int, int] | np.random.Generator
) -> list[T]:
    """Return `size` of `items`, or all if there are fewer, in their order."""
    size = min(size, len(items))
    chosen = np.random.default_rng(seed).choice(len(items), size, replace=False)
    return [items[i] for i in sorted(chosen)]


class Reach:
    """What is within reach of a draw's seeds.

    Parameters
    ----------
    whole, relevance : the web as a whole, and R of its pages; None for a critic without classes
    seeds : start URLs
    """

    def __init__(self, whole: WholeWeb | None, relevance: Floats | None, seeds: list[str]) -> None:
        self._whole = whole
        self._relevance = relevance
        self._seeds = [] if whole is None else whole.numbers(seeds)

    def budget(self, wanted: float, most: int) -> int:
        """Return a budget in fetches; `wanted` may be a share of the relevant pages."""
        if wanted >= 1:
            return int(wanted)
        if self._whole is None or self._relevance is None:
            raise UserError(
                f"the critic has no classes to count relevant pages by: say a number of fetches, "
                f"not budget = {wanted}"
            )
        reachable = self._whole.reachable(self._seeds)
        relevant = int((self._relevance[reachable] > 0.5).sum())
        return max(1, min(most, round(wanted * relevant)))

    def oracle_loss(self, budget: int) -> float:
        """Return the loss of the greedy oracle; NaN for a critic without classes."""
        if self._whole is None or self._relevance is None:
            return math.nan
        return self._whole.oracle_loss(self._seeds, self._relevance, budget)


def check_strategies(study: Study) -> None:
    """Refuse a strategy or an option that there is not, before anything is run."""
    for contender in study.contenders:
        known = [*inspect.signature(find_strategy(contender.strategy)).parameters][1:]
        for option in contender.options:
            if option not in known:
                raise UserError(
                    f"{contender.label}: strategy {contender.strategy} has no option {option!r}: "
                    + (f"there are {', '.join(known)}" if known else "it has none")
                )


def check_values(contenders: Sequence[Contender], critic: Critic, web: Web, topic: str) -> None:
    """Refuse a value that a strategy does not take for an option, before anything is run."""
    context = StrategyContext(critic, 0, web, (topic,))
    for each in contenders:
        if each.options:
            try:
                make_strategy(each.strategy, context, each.options)
            except UserError as error:
                raise UserError(f"{each.label}: {error}") from None


def _in_order(contenders: Sequence[Contender]) -> list[Contender]:
    by_label = {contender.label: contender for contender in contenders}
    order: dict[str, Contender] = {}

    def add(contender: Contender) -> None:
        for label in contender.after:
            add(by_label[label])
        order.setdefault(contender.label, contender)

    for contender in contenders:
        add(contender)
    return list(order.values())


def _taught_by(teacher: Contender, study: Study) -> tuple[dict[str, Any], ...]:
    """Return the options of the apprentices that learn from a contender's crawls, each once."""
    taught: list[dict[str, Any]] = []
    for each in study.contenders:
        if each.trained_on == teacher.label and each.options not in taught:
            taught.append(each.options)
    return tuple(taught)


def slug(name: str) -> str:
    """Return the name of a folder for a topic or a label."""
    return name.strip("/").replace("/", "_")


def critic_of_labels(labels: str, web: Web, kind: str = NaiveBayes.kind) -> Path:
    """Return the critic of a web's own labels, trained when it is not in the cache yet.

    Parameters
    ----------
    labels : CSV file
    kind : of critic; naive Bayes, as the papers have it, by default

    Raises
    ------
    UserError
        There is no such file.
    """
    folder = critic_folder(labels, web, "" if kind == NaiveBayes.kind else f"-{kind}")
    if not folder.exists():
        keep_critic(train_critic(read_labels(labels), web, kind=kind), folder)
    return folder


def critic_folder(labels: str, web: Web, ending: str) -> Path:
    """Return where in the cache a critic is that learned from a web's labels."""
    try:
        digest = hashlib.sha256(Path(labels).read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(
            f"labels {labels} cannot be read ({error.strerror}): name a CSV of url,topic,split"
        ) from None
    name = f"{web.fingerprint[:16]}-{digest[:16]}-{__version__}{ending}"
    return cache_dir() / "critics" / name


def keep_critic(trained: TrainedCritic, folder: Path) -> None:
    """Save a critic in the cache, unless another process was first: its own is as good."""
    try:
        save_critic(trained, folder)
    except UserError:
        if not folder.exists():
            raise
