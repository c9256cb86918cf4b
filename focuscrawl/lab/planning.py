"""Plans a study: trains critics, samples start pages, computes budgets, and lists the crawls."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Sequence
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
from focuscrawl.lab.judged_web import judge_web
from focuscrawl.lab.study import Run
from focuscrawl.strategies import StrategyContext, find_strategy, make_strategy
from focuscrawl.taxonomy import lies_under, read_labels
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.critic.focused_critic import TrainedCritic
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.lab.judged_web import JudgedWeb
    from focuscrawl.lab.study import Contender, Study, StudyWeb
    from focuscrawl.webs.web_protocol import Web

T = TypeVar("T")


def plan_runs(study: Study, out: Path) -> list[Run]:
    """Return the crawls (runs) of a study, each after the crawls on which it depends.

    Parameters
    ----------
    study : Study
        Content of the study file.
    out : Path
        Folder of the results.

    Raises
    ------
    UserError
        The study names an unknown strategy, option, web or topic, or a web has no start URLs.
    """
    check_strategies(study)
    runs: list[Run] = []
    for study_web in study.webs:
        web = open_web(study_web.recording)
        critic = study_web.critic or str(
            load_or_train_critic(
                study_web.labels, web, study_web.kind, all_words=study_web.all_words
            )
        )
        judges = [load_critic(critic, topic) for topic in study_web.topics]
        check_option_values(study.contenders, judges[0], web, study_web.topics[0])
        # a user's callable has no classes, judges one topic only, and has no oracle
        whole = judge_web(web, judges[0]) if judges[0].classes else None
        for topic, judge in zip(study_web.topics, judges, strict=True):
            relevance = None if whole is None else whole.relevance(topic)
            for draw in range(study.draws):
                seeds = draw_seeds(study_web, web, topic, draw)
                reach = ReachablePages(whole, relevance, seeds)
                comparison_budget = reach.budget(study.budget, study.most)
                oracle_loss = reach.oracle_loss(comparison_budget)
                known = {contender.knows for contender in study.contenders}
                sets = {each.seeds: seeds for each in study.contenders}
                for number in sorted(sets.keys() - {0}):
                    before = [url for n in range(number) for url in sets.get(n, seeds)]
                    sets[number] = draw_other_seeds(study_web, web, topic, (draw, number), before)
                planned: dict[str, Run] = {}
                for contender in _in_dependency_order(study.contenders):
                    own = contender.budget
                    planned[contender.label] = Run(
                        web=study_web.name,
                        recording=study_web.recording,
                        critic=critic,
                        topic=topic,
                        draw=draw,
                        budget=comparison_budget if own is None else reach.budget(own, study.most),
                        comparison_budget=comparison_budget,
                        oracle_loss=oracle_loss,
                        seeds=tuple(sets[contender.seeds]),
                        contender=contender,
                        folder=out.joinpath(
                            "runs", study_web.name, slug(topic), str(draw), slug(contender.label)
                        ),
                        trained_on=planned.get(contender.trained_on or ""),
                        within=planned.get(contender.within or ""),
                        apprentice_options=_apprentice_options(contender, study),
                        knowledge_from=planned.get(contender.knows or ""),
                        saves_knowledge=contender.label in known,
                        fingerprint=f"{web.fingerprint} {judge.fingerprint}",
                    )
                runs += planned.values()
    return runs


def draw_seeds(study_web: StudyWeb, web: Web, topic: str, draw: int) -> list[str]:
    """Return the start URLs of the sample with the number `draw`.

    If the study names a file of portals (pages with links to pages on the topic) for the web, the
    start URLs are the URLs in this file. Otherwise sample 0 contains the URLs of the seeds file,
    and samples 1, 2, ... are random samples of the training examples.

    Raises
    ------
    UserError
        None of the start URLs is recorded in the web.
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
        raise UserError(
            f"{source}: no start URL of {topic} is recorded in the web {study_web.name}: "
            "add recorded URLs"
        )
    return seeds


def draw_other_seeds(
    study_web: StudyWeb, web: Web, topic: str, number: tuple[int, int], excluded: Sequence[str]
) -> list[str]:
    """Return a random sample of the training URLs that are not in `excluded`.

    Parameters
    ----------
    number : tuple[int, int]
        Number of the draw, and of the set of start URLs within the draw.
    excluded : Sequence[str]
        Start URLs of the other sets.

    Raises
    ------
    UserError
        All training examples are in `excluded`.
    """
    others = [url for url in _examples(study_web, web, topic) if url not in set(excluded)]
    if not others:
        raise UserError(
            f"{study_web.labels}: too few examples of {topic} for another set of start URLs: "
            "add labels, or use fewer values of seeds"
        )
    return sample(others, study_web.seeds_per_draw, number)


def _examples(study_web: StudyWeb, web: Web, topic: str) -> list[str]:
    examples = [
        label.url
        for label in read_labels(Path(study_web.labels))
        if label.split != "test" and lies_under(label.topic, [topic])
    ]
    return [url for url in web.resolve(examples) if url is not None]


def sample(
    items: Sequence[T], size: int, seed: int | tuple[int, int] | np.random.Generator
) -> list[T]:
    """Return a random sample of at most `size` items, in the same order as in `items`."""
    size = min(size, len(items))
    chosen = np.random.default_rng(seed).choice(len(items), size, replace=False)
    return [items[i] for i in sorted(chosen)]


class ReachablePages:
    """Pages of a recording that a crawl can reach from given start pages.

    Parameters
    ----------
    whole : JudgedWeb or None
        The judged web; None for a critic without classes.
    relevance : NDArray[np.float64] of shape (n_pages,), or None
        Relevance of each page of `whole`.
    seeds : list[str]
        Start URLs.
    """

    def __init__(
        self, whole: JudgedWeb | None, relevance: Floats | None, seeds: list[str]
    ) -> None:
        self._whole = whole
        self._relevance = relevance
        self._seeds = [] if whole is None else whole.page_indices(seeds)

    def budget(self, wanted: float, most: int) -> int:
        """Return a budget in fetches; a `wanted` below 1 is a share of the relevant pages."""
        if wanted >= 1:
            return int(wanted)
        if self._whole is None or self._relevance is None:
            raise UserError(
                f"budget = {wanted} is a share of the relevant pages, which a critic without "
                "classes cannot count: give a number of fetches"
            )
        reachable = self._whole.reachable(self._seeds)
        relevant = int((self._relevance[reachable] > 0.5).sum())
        return max(1, min(most, round(wanted * relevant)))

    def oracle_loss(self, budget: int) -> float:
        """Return the loss rate of a greedy crawl that knows all relevances, or NaN if unknown."""
        if self._whole is None or self._relevance is None:
            return math.nan
        return self._whole.oracle_loss(self._seeds, self._relevance, budget)


def check_strategies(study: Study) -> None:
    """Raise `UserError` if a study names an unknown strategy or strategy option."""
    for contender in study.contenders:
        known = [*inspect.signature(find_strategy(contender.strategy)).parameters][1:]
        for option in contender.options:
            if option not in known:
                raise UserError(
                    f"{contender.label}: strategy {contender.strategy} has no option {option!r}. "
                    + (f"Available: {', '.join(known)}" if known else "It has no options")
                )


def check_option_values(
    contenders: Sequence[Contender], critic: Critic, web: Web, topic: str
) -> None:
    """Raise `UserError` if a strategy of a study rejects the value of an option."""
    context = StrategyContext(critic, 0, web, (topic,))
    for each in contenders:
        if each.options:
            try:
                make_strategy(each.strategy, context, each.options)
            except UserError as error:
                raise UserError(f"{each.label}: {error}") from None


def _in_dependency_order(contenders: Sequence[Contender]) -> list[Contender]:
    by_label = {contender.label: contender for contender in contenders}
    order: dict[str, Contender] = {}

    def add(contender: Contender) -> None:
        for label in contender.depends_on:
            add(by_label[label])
        order.setdefault(contender.label, contender)

    for contender in contenders:
        add(contender)
    return list(order.values())


def _apprentice_options(teacher: Contender, study: Study) -> tuple[dict[str, Any], ...]:
    """Return the distinct options of the apprentices that are trained on a contender's crawls."""
    taught: list[dict[str, Any]] = []
    for each in study.contenders:
        if each.trained_on == teacher.label and each.options not in taught:
            taught.append(each.options)
    return tuple(taught)


def slug(name: str) -> str:
    """Return the folder name for a topic path or a strategy's label."""
    return name.strip("/").replace("/", "_")


def load_or_train_critic(
    labels: str, web: Web, kind: str = NaiveBayes.kind, *, all_words: bool = False
) -> Path:
    """Return the folder of the critic for a web's labels; train the critic if it is not cached.

    Parameters
    ----------
    labels : str
        CSV file of page labels.
    web : Web
        Recording (saved web pages) that contains the labelled pages.
    kind : str
        Kind of critic; naive Bayes, the papers' critic, by default.
    all_words : bool
        Whether naive Bayes keeps every word of the training pages.

    Raises
    ------
    UserError
        The CSV file cannot be read.
    """
    ending = ("" if kind == NaiveBayes.kind else f"-{kind}") + "-all-words" * all_words
    folder = critic_cache_folder(labels, web, ending)
    if not folder.exists():
        trained = train_critic(read_labels(labels), web, kind=kind, all_words=all_words)
        cache_critic(trained, folder)
    return folder


def critic_cache_folder(labels: str, web: Web, ending: str) -> Path:
    """Return the folder in the cache for a critic trained on a web's labels."""
    try:
        digest = hashlib.sha256(Path(labels).read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(
            f"labels {labels} cannot be read ({error.strerror}): "
            "give a CSV file with the columns url, topic and split"
        ) from None
    name = f"{web.fingerprint[:16]}-{digest[:16]}-{__version__}{ending}"
    return cache_dir() / "critics" / name


def cache_critic(trained: TrainedCritic, folder: Path) -> None:
    """Save a critic in the cache, unless another process has saved the same critic meanwhile."""
    try:
        save_critic(trained, folder)
    except UserError:
        if not folder.exists():
            raise
