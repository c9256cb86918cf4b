"""A study: which webs, topics, seeds and strategies are compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from focuscrawl.critic.naive_bayes import NaiveBayes


@dataclass(frozen=True)
class StudyWeb:
    """A recorded web of a study.

    Attributes
    ----------
    name : short name
    recording : path of its WARC file, or ``demo``
    labels, seeds : CSV files, as `focuscrawl.taxonomy.read_labels` and
        `focuscrawl.crawl.seeds.read_seeds` read them; `seeds` is None where `portal` is given
    critic : a trained critic; None: one is trained from `labels`, of `kind`
    kind : of that critic; naive Bayes, as the papers have it, unless said otherwise
    seeds_per_draw : seeds of the draws after the first, which takes those of `seeds`
    topics : what to crawl
    portal : file of start URLs that every topic and draw begins with, in place of examples;
        draws then differ by their random state only
    phrases : of topics, for critics from little; without one it is the topic's name
    evaluator : another trained critic, of the same classes, that guides no crawl but judges what
        they fetched; None: one is trained from the ``test`` rows of `labels`
    """

    name: str
    recording: str
    labels: str
    seeds: str | None = None
    critic: str | None = None
    seeds_per_draw: int = 5
    topics: tuple[str, ...] = ()
    portal: str | None = None
    phrases: dict[str, str] = field(default_factory=dict)
    evaluator: str | None = None
    kind: str = NaiveBayes.kind


@dataclass(frozen=True)
class Contender:
    """A strategy with its options, under the label it has in tables.

    Attributes
    ----------
    label, strategy, options : what crawls, and how it is called
    trained_on : label of the contender from whose crawl of the same web, topic and draw an
        apprentice is trained that this one begins with [A02 section 3.5, offline training]; with
        the `options`, if there are any, else with those of that crawl
    within : label of the contender to whose fetched URLs this one is confined [A02 section 3.6,
        the recall crawl]
    budget : of its own, as `Study.budget`; None: the study's
    knows : label of the contender whose crawl of the same web, topic and draw it has learned
        from, and whatever that one had [METHODS 8]
    seeds : which set of start URLs it begins with: 0 those of the draw, 1, 2, ... others that
        have none in common
    """

    label: str
    strategy: str
    options: dict[str, Any] = field(default_factory=dict)
    trained_on: str | None = None
    within: str | None = None
    budget: float | None = None
    knows: str | None = None
    seeds: int = 0

    @property
    def after(self) -> list[str]:
        """Labels of the contenders whose crawls come before its own."""
        labels = (self.trained_on, self.within, self.knows)
        return [label for label in labels if label is not None]


@dataclass(frozen=True)
class Study:
    """What a study file says.

    Attributes
    ----------
    title : for people
    draws : draws of seeds a topic
    budget : fetches; below 1, a share of the relevant pages within reach of the seeds
    most : the largest budget that a share may come to
    baseline : label of the contender the others are measured against
    contenders : in the order of the file
    """

    title: str
    draws: int = 1
    budget: float = 0.6
    most: int = 1000
    baseline: str = ""
    webs: tuple[StudyWeb, ...] = ()
    contenders: tuple[Contender, ...] = ()
