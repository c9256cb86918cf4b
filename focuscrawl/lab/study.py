"""A study and its runs: webs, topics, seeds and strategies that are compared."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict

from focuscrawl import __version__
from focuscrawl.crawl_config import WholeNumber  # noqa: TC001 - pydantic reads the annotations
from focuscrawl.critic.classifiers import NaiveBayes
from focuscrawl.foundation.user_input import ValueParser

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def _text(written: object) -> str:
    if not isinstance(written, str):
        raise TypeError
    return written


def _texts(written: object) -> tuple[str, ...]:
    if not isinstance(written, list | tuple):
        raise TypeError
    return tuple(map(_text, written))


def _table(written: object) -> dict[str, Any]:
    if not isinstance(written, dict):
        raise TypeError
    return written


def _above_0(written: object, *, share: bool = False) -> float:
    if isinstance(written, bool) or not isinstance(written, int | float):
        raise TypeError
    whole = 1 <= written < math.inf and written % 1 == 0
    if not whole and not (share and 0 < written < 1):
        raise ValueError
    return written


# what the fields of a study file may be
TEXTS = ValueParser("a list of texts, as in ['/Science', '/Arts']", _texts)
_Text = Annotated[str, ValueParser("a text in quotes", _text)]
_Table = Annotated[dict[str, Any], ValueParser("a table, as in {batch = 5}", _table)]
_Count = Annotated[int, ValueParser("a whole number above 0", lambda each: int(_above_0(each)))]
_Fetches = Annotated[
    float,
    ValueParser(
        "a whole number above 0, or a share below 1",
        lambda each: float(_above_0(each, share=True)),
    ),
]
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class StudyWeb:
    """A recorded web of a study.

    Attributes
    ----------
    name : short name
    recording : path of its WARC file, or ``demo``
    labels, seeds : CSV files, as `focuscrawl.taxonomy.read_labels` and
        `focuscrawl.crawl.scope.read_seeds` read them; `seeds` is None where `portal` is given
    critic : a trained critic; None: one is trained from `labels`, of `kind`
    kind : of that critic; naive Bayes, as the papers have it, by default
    seeds_per_draw : seeds of the draws after the first, which takes those of `seeds`
    topics : what to crawl
    portal : file of start URLs that every topic and draw begins with, in place of examples;
        draws then differ by their random state only
    phrases : of topics, for critics from little; without one it is the topic's name
    evaluator : another trained critic, of the same classes, that guides no crawl but judges what
        they fetched; None: one is trained from the ``test`` rows of `labels`
    """

    __pydantic_config__ = _STRICT

    name: _Text
    recording: _Text
    labels: _Text
    seeds: _Text | None = None
    critic: _Text | None = None
    seeds_per_draw: _Count = 5
    topics: Annotated[tuple[str, ...], TEXTS] = ()
    portal: _Text | None = None
    phrases: _Table = field(default_factory=dict)
    evaluator: _Text | None = None
    kind: _Text = NaiveBayes.kind


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
        from, and whatever that one had [methods 8]
    seeds : which set of start URLs it begins with: 0 those of the draw, 1, 2, ... others that
        have none in common
    """

    __pydantic_config__ = _STRICT

    label: _Text
    strategy: _Text
    options: _Table = field(default_factory=dict)
    trained_on: _Text | None = None
    within: _Text | None = None
    budget: _Fetches | None = None
    knows: _Text | None = None
    seeds: WholeNumber = 0

    @property
    def after(self) -> list[str]:
        """Labels of the contenders whose crawls come before its own."""
        labels = (self.trained_on, self.within, self.knows)
        return [label for label in labels if label is not None]


@dataclass(frozen=True)
class Study:
    """The content of a study file.

    Attributes
    ----------
    title : for people
    draws : draws of seeds a topic
    budget : fetches; below 1, a share of the relevant pages within reach of the seeds
    most : the largest budget that a share may come to
    baseline : label of the contender the others are measured against
    contenders : in the order of the file
    """

    __pydantic_config__ = _STRICT

    title: _Text
    draws: _Count = 1
    budget: _Fetches = 0.6
    most: _Count = 1000
    baseline: _Text = ""
    webs: tuple[StudyWeb, ...] = ()
    contenders: tuple[Contender, ...] = ()


_MAGIC = b"PAR1"  # of Parquet
_RECORD = "run.json"


@dataclass(frozen=True, eq=False)  # known by identity: its options are no key
class Run:
    """One crawl of a study.

    Attributes
    ----------
    web, recording, critic, topic, draw, contender : what is crawled and how
    budget : fetches it may make
    compared : fetches at which the study compares its contenders
    oracle_loss : of greedy best-first on the true R after `compared` fetches (methods 1); NaN
        where the critic does not know the topic
    seeds : start URLs
    folder : where it is kept: ``fetches.parquet`` once it is done, the crawl itself in ``crawl/``
    trained_on, within : the runs of the contenders that `contender` names
    teaches : options of the apprentices that are trained on its crawl, each once for all that
        begin with it
    knows : the run of the contender whose knowledge it begins with
    remembers : its crawl is taken into knowledge, for all that begin with that
    fingerprint : of what recording and critic hold now
    """

    web: str
    recording: str
    critic: str
    topic: str
    draw: int
    budget: int
    compared: int
    oracle_loss: float
    seeds: tuple[str, ...]
    contender: Contender
    folder: Path
    trained_on: Run | None = None
    within: Run | None = None
    teaches: tuple[Mapping[str, Any], ...] = ()
    knows: Run | None = None
    remembers: bool = False
    fingerprint: str = ""

    @property
    def name(self) -> str:
        """How the run is named in messages."""
        return f"{self.web} {self.topic}, draw {self.draw}, {self.contender.label}"

    @property
    def after(self) -> list[Run]:
        """The runs whose crawls it needs."""
        runs = (self.trained_on, self.within, self.knows)
        return [run for run in runs if run is not None]

    @property
    def fetches(self) -> Path:
        """Where its result is."""
        return self.folder / "fetches.parquet"

    @property
    def crawl_dir(self) -> Path:
        """Where the crawl itself is, while anybody needs it."""
        return self.folder / "crawl"

    def apprentice(self, options: Mapping[str, Any]) -> Path:
        """Return where the apprentice with `options` is, trained on its crawl, while needed."""
        if not options:
            return self.folder / "apprentice"
        digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()
        return self.folder / f"apprentice-{digest[:8]}"

    @property
    def knowledge(self) -> Path:
        """Where the knowledge is that its crawl was taken into, while anybody needs it."""
        return self.folder / "knowledge.db"

    @property
    def log(self) -> Path:
        """Where the output of its process goes."""
        return self.folder / "crawl.log"

    @property
    def terms(self) -> dict[str, Any]:
        """What its result depends on; a result under other terms does not count."""
        return {
            "recording": self.recording,
            "critic": self.critic,
            "fingerprint": self.fingerprint,
            "topic": self.topic,
            "seeds": list(self.seeds),
            "budget": self.budget,
            "random_state": self.draw,
            "strategy": self.contender.strategy,
            "options": self.contender.options,
            "trained_on": self.trained_on and self.trained_on.terms,
            "within": self.within and self.within.terms,
            **({"knows": self.knows.terms} if self.knows else {}),
            "focuscrawl": __version__,
        }

    @property
    def done(self) -> bool:
        """True if it is over, in this call or an earlier one, under the same terms."""
        # as JSON has them: a list of options may come out of the study as a tuple
        record = read_record(self.folder / _RECORD)
        same = record.get("terms") == json.loads(json.dumps(self.terms))
        return same and isinstance(record.get("cost"), dict) and _is_whole(self.fetches)

    @property
    def cost(self) -> dict[str, float]:
        """Time and memory of its process: ``seconds``, ``cpu_seconds``, ``megabytes`` at most."""
        cost: dict[str, float] = read_record(self.folder / _RECORD)["cost"]
        return cost

    @property
    def gone(self) -> bool:
        """True if what others need of it is not there, or not any more."""
        lacks_apprentice = any(not self.apprentice(each).exists() for each in self.teaches)
        lacks_knowledge = self.remembers and not self.knowledge.exists()
        return not self.crawl_dir.exists() or lacks_apprentice or lacks_knowledge

    def finish(self, cost: dict[str, float]) -> None:
        """Note that it is done; the last thing its process does."""
        unfinished = self.folder / f"{_RECORD}.part"
        unfinished.write_text(json.dumps({"terms": self.terms, "cost": cost}), encoding="utf-8")
        unfinished.replace(self.folder / _RECORD)

    def crawl_command(self) -> list[str]:
        """Return the command line that crawls."""
        arguments = {
            "topic": self.topic,
            "seeds": self.folder / "seeds.txt",
            "critic": self.critic,
            "strategy": self.contender.strategy,
            "budget": self.budget,
            "web": self.recording,
            "crawl_dir": self.crawl_dir,
            "random_state": self.draw,
        }
        if self.trained_on is not None:
            arguments["apprentice"] = self.trained_on.apprentice(self.contender.options)
        if self.within is not None:
            arguments["within"] = self.within.crawl_dir
        if self.knows is not None:
            arguments["knowledge"] = self.knows.knowledge
        settings = {
            "FOCUSCRAWL_STRATEGY_OPTIONS": json.dumps(self.contender.options),
            "FOCUSCRAWL_PROGRESS": 0,
            "FOCUSCRAWL_LIMITS": 0,  # strategies are compared by what they choose themselves
            "FOCUSCRAWL_NEAR_DUPLICATES": 0,
            "LOG_LEVEL": "WARNING",
        }
        given = [part for key, value in arguments.items() for part in ("-a", f"{key}={value}")]
        given += [part for key, value in settings.items() for part in ("-s", f"{key}={value}")]
        return ["scrapy", "crawl", "focused", *given]

    def train_command(self, options: Mapping[str, Any]) -> list[str]:
        """Return the command line that trains an apprentice on the crawl [A02 section 3.5].

        Parameters
        ----------
        options : of the apprentice; what they do not say is as the crawl's own, or as the default
        """
        command = ["focuscrawl", "apprentice", "train", str(self.crawl_dir)]
        if options:
            command += ["--options", json.dumps(options)]
        if options or self.contender.strategy != "apprentice":  # only its own keeps what it takes
            command += ["--web", self.recording]
        return [*command, "--out", str(self.apprentice(options))]

    def learn_command(self) -> list[str]:
        """Return the command line that takes the crawl into its knowledge [methods 8]."""
        command = ["focuscrawl", "knowledge", "learn", str(self.crawl_dir)]
        return [*command, "--topic", self.topic, "--out", str(self.knowledge)]


def _is_whole(parquet: Path) -> bool:
    """Tell whether a file starts and ends as Parquet does: one cut short has no end."""
    try:
        with parquet.open("rb") as file:
            begin = file.read(len(_MAGIC))
            file.seek(-len(_MAGIC), os.SEEK_END)
            return begin == file.read() == _MAGIC
    except OSError:
        return False


def read_record(path: Path) -> dict[str, Any]:
    """Return what was noted of work that is done; nothing if it is not."""
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}
