"""Crawls with and without judgements of a person, and remedies for a falling harvest [F99]."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from focuscrawl.critic import load_critic
from focuscrawl.critic.corpus import read_bags
from focuscrawl.critic.critic_files import save_critic
from focuscrawl.critic.focused_critic import FocusedCritic
from focuscrawl.critic.phrase_model import ON_TOPIC, parse_phrases
from focuscrawl.critic.training import train_few_shot
from focuscrawl.diagnosis import ALARM, HarvestMonitor
from focuscrawl.feedback.applying import apply_definition
from focuscrawl.feedback.suggestions import suggest
from focuscrawl.lab.planning import load_or_train_critic, sample
from focuscrawl.report.status import open_store
from focuscrawl.taxonomy import lies_under, read_labels
from focuscrawl.topics import TopicDefinition, training_urls
from focuscrawl.webs import open_web
from studies.critics import phrase_of
from studies.topic_tasks import crawled
from studies.whole_crawls import SoftCrawl, opened

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.diagnosis import Diagnosis
    from focuscrawl.foundation.arrays import Bools
    from focuscrawl.webs.web_protocol import Web
    from studies.topic_tasks import Task


JUDGEMENTS = 20
EXAMPLES = 3  # good pages that the critic is trained on, besides the phrase
DRAWS = 2
STRATEGIES = ("best-first", "apprentice")
_TESTED = 2000  # maximum number of test rows


class _Setting(NamedTuple):
    """Data shared by all crawls of a topic.

    Attributes
    ----------
    labels : dict[str, bool]
        Whether each labelled page is on the topic, by URL of the web.
    tests : dict[str, Bag]
        Words of the test rows by URL.
    judge
        Critic trained on all training rows, for pages without a label.
    """

    task: Task
    web: Web
    labels: Mapping[str, bool]
    good: Sequence[str]
    tests: Mapping[str, Bag]
    judge: FocusedCritic

    def truth(self, urls: Sequence[str]) -> Bools:
        """Return whether pages are on the topic; False for URLs without an HTML page."""
        unlabelled = [url for url in urls if url not in self.labels]
        bags = dict(zip(unlabelled, read_bags(self.web, unlabelled), strict=True))
        known = [url for url in unlabelled if bags[url]]
        relevance = self.judge.judge_bags([bags[url] or {} for url in known]).relevance
        said = dict(zip(known, (relevance > 0.5).tolist(), strict=True))
        return np.array([self.labels.get(url, said.get(url, False)) for url in urls], np.bool_)


def study_feedback(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl with a critic from a phrase and three pages, judge twenty pages, and continue.

    The crawl continues with and without the judgements. Judgements are the labels of pages, or for
    pages without a label those of a discriminative critic trained on all training rows. Both also
    measure the harvest. The critics are tested on up to 2,000 ``test`` rows that were not fetched
    before the judgements and are no copies of judged pages. The harvest after the judgements is
    that of later fetches. The phrase is the study's, or the topic's name.

    Returns
    -------
    dict[str, pd.DataFrame]
        ``feedback`` has a row for each draw and strategy: the number of pages ``judged`` and
        ``good``; ``precision`` and ``recall`` of relevance above 1/2 on the test rows,
        ``..._before`` and ``..._after`` the judgements; ``harvest``, the share of on-topic
        fetches, before and after, and ``harvest_without`` the judgements; and ``copies``, the
        number of test rows left out as copies.
    """
    setting = _read(task)
    phrases = parse_phrases(task.phrase or phrase_of(task.topic))
    rows = []
    for draw in range(DRAWS):
        good = sample(setting.good, EXAMPLES, np.random.default_rng(draw))
        with tempfile.TemporaryDirectory() as name:
            poor = train_few_shot(phrases, good, [], [setting.web], random_state=draw)
            save_critic(poor, Path(name, "poor"))
            rows += [
                {"draw": draw, **_crawl(setting, strategy, Path(name))} for strategy in STRATEGIES
            ]
    return {"feedback": pd.DataFrame(rows)}


def _read(task: Task) -> _Setting:
    web = open_web(task.recording)
    labels = read_labels(task.labels)
    known = zip(web.resolve([label.url for label in labels]), labels, strict=True)
    rows = [
        (url, lies_under(label.topic, [task.topic]), label.split == "test")
        for url, label in known
        if url is not None
    ]
    tests = sample([url for url, _, test in rows if test], _TESTED, 0)
    bags = zip(tests, read_bags(web, tests), strict=True)
    judge = load_critic(str(load_or_train_critic(task.labels, web, "discriminative")), task.topic)
    assert isinstance(judge, FocusedCritic)
    return _Setting(
        task=task,
        web=web,
        labels={url: yes for url, yes, _ in rows},
        good=[url for url, yes, test in rows if yes and not test],
        tests={url: bag for url, bag in bags if bag},
        judge=judge,
    )


def _crawl(setting: _Setting, strategy: str, scratch: Path) -> dict[str, object]:
    task = setting.task
    poor = str(scratch / "poor")
    first, second = scratch / strategy, scratch / f"{strategy}-after"
    plan = {"topic": ON_TOPIC, "critic": poor, "strategy": strategy}
    fetched = set(crawled(task, first, **plan)["url"])
    shutil.copytree(first, second)
    definition = TopicDefinition(critic=poor, topics=(ON_TOPIC,))
    known = training_urls(definition)
    with closing(open_store(second)) as store:
        pages = [page.url for page in suggest(store, [setting.web], JUDGEMENTS, known=known)]
    verdicts = setting.truth(pages).tolist()
    judged = definition.with_judgements(
        [url for url, yes in zip(pages, verdicts, strict=True) if yes],
        [url for url, yes in zip(pages, verdicts, strict=True) if not yes],
    )
    applied = apply_definition(judged, second)
    before, without = _continue_crawl(setting, first, **plan)
    _, after = _continue_crawl(setting, second, **plan)
    found: dict[str, object] = {
        "strategy": strategy,
        "judged": len(pages),
        "good": sum(verdicts),
        "harvest_before": before,
        "harvest_without": without,
        "harvest_after": after,
    }
    unseen = {url: bag for url, bag in setting.tests.items() if url not in fetched}
    tests = without_copies(unseen, [bag for bag in read_bags(setting.web, pages) if bag])
    found["copies"] = len(unseen) - len(tests)
    true = np.array([setting.labels[url] for url in tests], np.bool_)
    for when, critic in (("before", poor), ("after", str(applied.critic))):
        judge = load_critic(critic, ON_TOPIC)
        assert isinstance(judge, FocusedCritic)
        said = judge.judge_bags([setting.tests[url] for url in tests]).relevance > 0.5
        found[f"precision_{when}"] = float(true[said].mean()) if said.any() else np.nan
        found[f"recall_{when}"] = float(said[true].mean()) if true.any() else np.nan
    return found


def without_copies(tests: Mapping[str, Bag], judged: Sequence[Bag]) -> list[str]:
    """Return the URLs of test rows whose words differ from those of all judged pages."""
    told = {frozenset(bag.items()) for bag in judged}
    return [url for url, bag in tests.items() if frozenset(bag.items()) not in told]


def _continue_crawl(setting: _Setting, folder: Path, **plan: str) -> tuple[float, float]:
    """Continue a crawl to twice its budget; return the true harvest rate of each half."""
    n = setting.task.budget
    pages = crawled(setting.task, folder, budget=2 * n, **plan)
    first = pages["duplicate_of"].isna().to_numpy()
    true = setting.truth(pages["url"].tolist()) & first
    return float(true[:n].sum() / n), float(true[n:].sum() / n)


MOST = 4000  # maximum number of fetches until the alarm
NEXT = 200  # fetches after the alarm


def study_restored(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl best-first until the harvest rate falls, then continue with and without the remedy.

    The crawl is the soft focus of [F99] with the alarm of `focuscrawl.diagnosis`. The remedy adds
    the class that the alarm proposes first to the topic, and judges the crawl again, as
    ``focuscrawl topic mark`` does.

    Returns
    -------
    dict[str, pd.DataFrame]
        ``restored`` has one row if an alarm proposed a class: ``fetches`` until the alarm, its
        ``cause``, the class ``marked`` and its ``relation``, and the harvest rate ``before`` the
        fall and ``at`` the alarm. Harvest rates of the next `NEXT` fetches are ``unmarked`` (the
        topic unchanged), ``wider`` (by the wider topic) and ``of_topic`` (of the crawl with the
        wider topic, by the original topic).
    """
    whole = opened(task).whole
    own = whole.relevance(task.topic)
    crawl = SoftCrawl(whole, own, whole.page_indices(task.seeds))
    alarm = first_alarm(crawl, task.topic)
    if alarm is None or not alarm.proposals:
        return {"restored": pd.DataFrame()}
    proposed = alarm.proposals[0]
    wide = np.maximum(own, whole.relevance(proposed.topic))
    wider = crawl.rejudged(wide)
    unmarked = [own[page] for page, _ in crawl.fetch(NEXT)]
    marked = [page for page, _ in wider.fetch(NEXT)]
    row = {
        "fetches": alarm.seq,
        "cause": alarm.cause,
        "marked": proposed.topic,
        "relation": proposed.relation,
        "before": alarm.before,
        "at": alarm.now,
        "unmarked": sum(unmarked) / NEXT,
        "wider": float(wide[marked].sum()) / NEXT,
        "of_topic": float(own[marked].sum()) / NEXT,
    }
    return {"restored": pd.DataFrame([row])}


def first_alarm(crawl: SoftCrawl, topic: str) -> Diagnosis | None:
    """Crawl until the harvest rate falls; None if it does not within `MOST` fetches."""
    watch = HarvestMonitor([topic])
    whole = crawl.whole
    while len(crawl.fetched) < MOST and (found := crawl.fetch(1)):
        ((page, referrer),) = found
        new = crawl.fetched[page] and bool(whole.probabilities[page].any())
        told = watch.add_fetch(
            page,
            referrer,
            relevance=float(crawl.relevance[page]) if new else 0.0,
            topic=whole.classes[int(whole.probabilities[page].argmax())] if new else None,
            judged=new,
        )
        if told == ALARM:
            return watch.alarm
    return None
