"""Data classes of a study and its runs: one crawl per web, topic, seed sample and strategy."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, StrictBool

from focuscrawl import __version__
from focuscrawl.crawl_config import WholeNumber  # noqa: TC001 - pydantic reads the annotations
from focuscrawl.critic.classifiers import NaiveBayes
from focuscrawl.foundation.user_input import ValueParser


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


# readers of the fields of a study file
TEXTS = ValueParser("a list of strings, as in ['/Science', '/Arts']", _texts)
_Text = Annotated[str, ValueParser("a string in quotes", _text)]
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
    """A recording (saved web pages) of a study, with its page labels, topics and seeds.

    Attributes
    ----------
    name : str
        Short name.
    recording : str
        Path of the WARC file, or ``demo``.
    labels, seeds : str, str or None
        CSV files, as `focuscrawl.taxonomy.read_labels` and `focuscrawl.crawl.scope.read_seeds`
        read them. ``seeds`` is None if `portal` is given.
    critic : str or None
        Trained critic; None trains a critic from `labels`.
    kind : str
        Kind of the trained critic; naive Bayes, the papers' critic, by default.
    all_words : bool
        Whether naive Bayes is trained on all words, as in the papers, and not on a pruned
        vocabulary.
    seeds_per_draw : int
        Number of seeds in each draw after the first, which uses `seeds`.
    topics : tuple[str, ...]
        Topics to crawl.
    portal : str or None
        File of start URLs for every topic and draw. Draws then differ by their random state only.
    phrases : dict[str, str]
        Phrases of topics, for few-shot critics; the topic's name by default.
    evaluator : str or None
        Trained critic with the same classes that guides no crawl and judges the fetched pages.
        None trains a classifier on the ``test`` rows of `labels`.
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
    all_words: StrictBool = False


@dataclass(frozen=True)
class Contender:
    """A strategy that a study compares, with its options and its label in tables.

    Attributes
    ----------
    label, strategy, options : str, str, dict[str, Any]
        Label, and name and options of the strategy.
    trained_on : str or None
        Label of the contender whose crawl of the same web, topic and draw trains this contender's
        apprentice [A02 section 3.5, offline training]. The apprentice has the `options` of this
        contender, or of that crawl if there are none.
    within : str or None
        Label of the contender whose fetched URLs this contender is confined to [A02 section 3.6,
        the recall crawl].
    budget : float or None
        Own budget, as `Study.budget`; None uses the study's.
    knows : str or None
        Label of the contender whose crawl of the same web, topic and draw has filled the knowledge
        that this contender starts with [methods.md 8].
    seeds : int
        Set of start URLs: 0 is the set of the draw; 1, 2, ... are disjoint sets.
    settings : dict[str, Any]
        Settings of the crawl, as in ``-s NAME=VALUE``.
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
    settings: _Table = field(default_factory=dict)

    @property
    def depends_on(self) -> list[str]:
        """Labels of the strategies whose crawls must finish before the crawls of this strategy."""
        labels = (self.trained_on, self.within, self.knows)
        return [label for label in labels if label is not None]


@dataclass(frozen=True)
class Study:
    """The content of a study file, which describes the crawls of a study.

    Attributes
    ----------
    title : str
        Title in reports.
    draws : int
        Draws of seeds for each topic.
    budget : float
        Budget in fetches; below 1, a share of the reachable relevant pages.
    most : int
        Upper limit of a budget that is given as a share.
    baseline : str
        Label of the contender that the others are compared with.
    contenders : tuple[Contender, ...]
        Contenders in the order of the file.
    """

    __pydantic_config__ = _STRICT

    title: _Text
    draws: _Count = 1
    budget: _Fetches = 0.6
    most: _Count = 1000
    baseline: _Text = ""
    webs: tuple[StudyWeb, ...] = ()
    contenders: tuple[Contender, ...] = ()


_MAGIC = b"PAR1"  # first and last bytes of a Parquet file
_RECORD = "run.json"


@dataclass(frozen=True, eq=False)  # compared by identity, since options are not hashable
class Run:
    """One crawl of a study, with its inputs, its files and its dependencies.

    Attributes
    ----------
    web, recording, critic, topic, draw, contender :: Input of the crawl.
    budget : int
        Fetches that the crawl may make.
    comparison_budget : int
        Fetches at which the study compares its contenders.
    oracle_loss : float
        Loss of greedy best-first on the true relevance after `comparison_budget` fetches (methods
        1); NaN if the critic does not know the topic.
    seeds : tuple[str, ...]
        Start URLs.
    folder : Path
        Folder of the run, with ``fetches.parquet`` once the run is done, and ``crawl/``.
    trained_on, within, knowledge_from : Run or None
        Runs of the contenders that `contender` names.
    apprentice_options : tuple[Mapping[str, Any], ...]
        Distinct options of the apprentices to train on this crawl for later runs.
    saves_knowledge : bool
        Whether later runs start with knowledge of this crawl.
    fingerprint : str
        Fingerprint of the recording and the critic.
    """

    web: str
    recording: str
    critic: str
    topic: str
    draw: int
    budget: int
    comparison_budget: int
    oracle_loss: float
    seeds: tuple[str, ...]
    contender: Contender
    folder: Path
    trained_on: Run | None = None
    within: Run | None = None
    apprentice_options: tuple[Mapping[str, Any], ...] = ()
    knowledge_from: Run | None = None
    saves_knowledge: bool = False
    fingerprint: str = ""

    @property
    def name(self) -> str:
        """Name of the crawl in messages, with web, topic, seed sample and strategy."""
        return f"{self.web} {self.topic}, draw {self.draw}, {self.contender.label}"

    @property
    def depends_on(self) -> list[Run]:
        """The runs (crawls) that must finish before this run starts."""
        runs = (self.trained_on, self.within, self.knowledge_from)
        return [run for run in runs if run is not None]

    @property
    def fetches_path(self) -> Path:
        """Path of the file with the table of the crawl's fetches."""
        return self.folder / "fetches.parquet"

    @property
    def crawl_dir(self) -> Path:
        """Folder of the crawl, which is deleted when no other run needs the folder."""
        return self.folder / "crawl"

    def apprentice_path(self, options: Mapping[str, Any]) -> Path:
        """Return the folder of the apprentice that is trained on this crawl with `options`."""
        if not options:
            return self.folder / "apprentice"
        digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()
        return self.folder / f"apprentice-{digest[:8]}"

    @property
    def knowledge_path(self) -> Path:
        """Path of the knowledge file to which the crawl is added."""
        return self.folder / "knowledge.db"

    @property
    def log_path(self) -> Path:
        """Path of the log file of the process that runs the crawl."""
        return self.folder / "crawl.log"

    @property
    def conditions(self) -> dict[str, Any]:
        """Inputs that determine the fetches; results are reused only for equal inputs."""
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
            "settings": self.contender.settings,
            "trained_on": self.trained_on and self.trained_on.conditions,
            "within": self.within and self.within.conditions,
            **({"knows": self.knowledge_from.conditions} if self.knowledge_from else {}),
            "focuscrawl": __version__,
        }

    @property
    def is_done(self) -> bool:
        """Whether the folder has a finished result of a crawl with the same `conditions`."""
        # through JSON, since a list of options may be a tuple in the study
        record = read_run_record(self.folder / _RECORD)
        same = record.get("terms") == json.loads(json.dumps(self.conditions))
        return (
            same
            and isinstance(record.get("cost"), dict)
            and _is_complete_parquet(self.fetches_path)
        )

    @property
    def cost(self) -> dict[str, float]:
        """Cost of the crawl: ``seconds``, ``cpu_seconds``, and peak memory in ``megabytes``."""
        cost: dict[str, float] = read_run_record(self.folder / _RECORD)["cost"]
        return cost

    @property
    def has_missing_outputs(self) -> bool:
        """Whether a crawl, an apprentice or a knowledge file is missing that later runs need."""
        lacks_apprentice = any(
            not self.apprentice_path(each).exists() for each in self.apprentice_options
        )
        lacks_knowledge = self.saves_knowledge and not self.knowledge_path.exists()
        return not self.crawl_dir.exists() or lacks_apprentice or lacks_knowledge

    def record_done(self, cost: dict[str, float]) -> None:
        """Write a file with the cost of the crawl, which marks the crawl as finished."""
        unfinished = self.folder / f"{_RECORD}.part"
        unfinished.write_text(
            json.dumps({"terms": self.conditions, "cost": cost}), encoding="utf-8"
        )
        unfinished.replace(self.folder / _RECORD)

    def crawl_command(self) -> list[str]:
        """Return the command line that runs the crawl."""
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
            arguments["apprentice"] = self.trained_on.apprentice_path(self.contender.options)
        if self.within is not None:
            arguments["within"] = self.within.crawl_dir
        if self.knowledge_from is not None:
            arguments["knowledge"] = self.knowledge_from.knowledge_path
        settings = {
            "FOCUSCRAWL_STRATEGY_OPTIONS": json.dumps(self.contender.options),
            "FOCUSCRAWL_PROGRESS": 0,
            "LOG_LEVEL": "WARNING",
            **self.contender.settings,
        }
        given = [part for key, value in arguments.items() for part in ("-a", f"{key}={value}")]
        given += [part for key, value in settings.items() for part in ("-s", f"{key}={value}")]
        return ["scrapy", "crawl", "focused", *given]

    def train_command(self, options: Mapping[str, Any]) -> list[str]:
        """Return the command line that trains an apprentice on the crawl [A02 section 3.5].

        Parameters
        ----------
        options : Mapping[str, Any]
            Options of the apprentice; the crawl's own options are the defaults.
        """
        command = ["focuscrawl", "apprentice", "train", str(self.crawl_dir)]
        if options:
            command += ["--options", json.dumps(options)]
        if options or self.contender.strategy != "apprentice":  # other crawls store no features
            command += ["--web", self.recording]
        return [*command, "--out", str(self.apprentice_path(options))]

    def learn_command(self) -> list[str]:
        """Return the command line that adds the crawl to the knowledge file [methods.md 8]."""
        command = ["focuscrawl", "knowledge", "learn", str(self.crawl_dir)]
        return [*command, "--topic", self.topic, "--out", str(self.knowledge_path)]


def _is_complete_parquet(parquet: Path) -> bool:
    """Tell whether a file starts and ends like Parquet; a truncated file lacks the end."""
    try:
        with parquet.open("rb") as file:
            begin = file.read(len(_MAGIC))
            file.seek(-len(_MAGIC), os.SEEK_END)
            return begin == file.read() == _MAGIC
    except OSError:
        return False


def read_run_record(path: Path) -> dict[str, Any]:
    """Read the JSON file that a finished run or task has written; {} if there is no such file."""
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}
