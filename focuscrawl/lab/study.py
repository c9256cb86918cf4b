"""A study: which webs, topics, seeds and strategies are compared."""

from __future__ import annotations

import csv
import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from focuscrawl.errors import UserError
from focuscrawl.taxonomy import normalise


@dataclass(frozen=True)
class StudyWeb:
    """A recorded web of a study.

    Attributes
    ----------
    name : short name
    recording : path of its WARC file, or ``demo``
    labels, seeds : CSV files, as `focuscrawl.taxonomy.read_labels` and
        `focuscrawl.crawl.seeds.read_seeds` read them
    critic : a trained critic; None: one is trained from `labels`
    seeds_per_draw : seeds of the draws after the first, which takes those of `seeds`
    topics : what to crawl
    """

    name: str
    recording: str
    labels: str
    seeds: str
    critic: str | None
    seeds_per_draw: int
    topics: tuple[str, ...]


@dataclass(frozen=True)
class Contender:
    """A strategy with its options, under the label it has in tables."""

    label: str
    strategy: str
    options: dict[str, Any] = field(default_factory=dict)


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
    """

    title: str
    draws: int
    budget: float
    most: int
    baseline: str
    webs: tuple[StudyWeb, ...]
    contenders: tuple[Contender, ...]


def read_study(path: Path) -> Study:
    """Read a study file (TOML); ``$NAME`` and ``${NAME}`` in it are environment variables.

    Raises
    ------
    UserError
        The file cannot be read, or lacks something, or names a variable that is not set.
    """
    try:
        text = os.path.expandvars(path.read_text(encoding="utf-8"))
        given = tomllib.loads(text)
    except OSError as error:
        raise UserError(f"study {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"study {path} is no TOML file: {error}") from None
    if "$" in text:
        name = text.partition("$")[2].strip("{").split("}")[0].split("/")[0]
        raise UserError(f"study {path} needs the environment variable {name}: set it")
    try:
        contenders = tuple(
            Contender(
                label=each.get("label", each["strategy"]),
                strategy=each["strategy"],
                options=each.get("options", {}),
            )
            for each in given["strategies"]
        )
        study = Study(
            title=given.get("title", path.stem),
            draws=int(given.get("draws", 1)),
            budget=float(given.get("budget", 0.6)),
            most=int(given.get("most", 1000)),
            baseline=given.get("baseline", contenders[0].label),
            webs=tuple(_web(each) for each in given["webs"]),
            contenders=contenders,
        )
    except KeyError as error:
        raise UserError(f"study {path} does not say {error.args[0]!r}") from None
    labels = [contender.label for contender in contenders]
    for kind, names in (("strategies", labels), ("webs", [web.name for web in study.webs])):
        folders = [name.replace("/", "_") for name in names]
        twice = [
            name for name, folder in zip(names, folders, strict=True) if folders.count(folder) > 1
        ]
        if twice:
            raise UserError(f"study {path} has two {kind} called {twice[0]!r}: label them")
    if study.baseline not in labels:
        raise UserError(f"study {path} has no strategy labelled {study.baseline!r}")
    return study


def _web(given: dict[str, Any]) -> StudyWeb:
    seeds = given["seeds"]
    try:
        with Path(seeds).open(encoding="utf-8", newline="") as file:
            of_seeds = list(dict.fromkeys(row["topic"] for row in csv.DictReader(file)))
    except (OSError, KeyError):
        raise UserError(f"seeds {seeds} cannot be read, or have no column 'topic'") from None
    without = {normalise(topic) for topic in given.get("without", ())}
    topics = [normalise(topic) for topic in given.get("topics", of_seeds)]
    return StudyWeb(
        name=given["name"],
        recording=given["recording"],
        labels=given["labels"],
        seeds=seeds,
        critic=given.get("critic"),
        seeds_per_draw=int(given.get("seeds_per_draw", 5)),
        topics=tuple(topic for topic in topics if topic not in without),
    )
