"""Study files: TOML, read strictly, so that a slip is found before an hour has passed."""

from __future__ import annotations

import csv
import difflib
import os
import re
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from focuscrawl.crawl.parts.revisit_policy import STRATEGIES as KNOWING
from focuscrawl.errors import UserError
from focuscrawl.lab.study import Contender, Study, StudyWeb
from focuscrawl.taxonomy import normalise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind = TypeVar("Kind")
_NEEDED: Any = object()
_KINDS = {
    str: "a text in quotes",
    int: "a whole number",
    float: "a number",
    dict: "a table, as in {batch = 5}",
    list: "a list, as in ['/Science', '/Arts']",
}


def read_study(path: Path) -> Study:
    """Read a study file (TOML); ``$NAME`` and ``${NAME}`` in it are environment variables.

    Raises
    ------
    UserError
        The file cannot be read, lacks something, says something that there is not, or names a
        variable that is not set.
    """
    try:
        text = os.path.expandvars(path.read_text(encoding="utf-8"))
        given = tomllib.loads(text)
    except OSError as error:
        raise UserError(f"study {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"study {path} is no TOML file: {error}") from None
    _check_variables(path, given)
    part = _Part(f"study {path}", given)
    contenders = tuple(map(_contender, part.parts("strategies")))
    study = Study(
        title=part.take("title", str, path.stem),
        draws=part.number("draws", int, 1),
        budget=part.number("budget", float, 0.6),
        most=part.number("most", int, 1000),
        baseline=part.take("baseline", str, contenders[0].label),
        webs=tuple(map(_web, part.parts("webs"))),
        contenders=contenders,
    )
    part.end()
    labels = [contender.label for contender in contenders]
    _check_distinct(path, "strategies", labels)
    _check_distinct(path, "webs", [web.name for web in study.webs])
    if study.baseline not in labels:
        raise UserError(f"study {path} has no strategy labelled {study.baseline!r}")
    _check_order(path, {contender.label: contender for contender in contenders})
    return study


class _Part:
    """One table of a study file; what is never taken from it is a mistake."""

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        self.name = name
        self._given = given
        self._known: list[str] = []

    def take(self, key: str, kind: type[Kind], default: Kind = _NEEDED) -> Kind:
        """Return what is said under `key`."""
        self._known.append(key)
        if key not in self._given:
            if default is _NEEDED:
                raise UserError(f"{self.name} does not say {key!r}")
            return default
        value = self._given[key]
        accepted = (int, float) if kind is float else kind
        if not isinstance(value, accepted) or isinstance(value, bool):
            raise UserError(f"{self.name}: {key} must be {_KINDS[kind]}, not {value!r}")
        return value  # type: ignore[return-value]  # an int where a float is asked for

    def maybe(self, key: str, kind: type[Kind]) -> Kind | None:
        """Return what is said under `key`; None if nothing is."""
        if key in self._given:
            return self.take(key, kind)
        self._known.append(key)
        return None

    def number(self, key: str, kind: type[Kind], default: Kind) -> Kind:
        """Return the number above 0 under `key`; as a float, whole from 1 on."""
        value: Any = self.take(key, kind, default)
        if value <= 0 or (value > 1 and value != int(value)):
            must = "a whole number" if kind is int else "a whole number, or a share below 1,"
            raise UserError(f"{self.name}: {key} must be {must} above 0, not {value!r}")
        return kind(value)  # type: ignore[call-arg]

    def texts(self, key: str, default: Sequence[str]) -> list[str]:
        """Return the list of texts under `key`."""
        found = self.take(key, list, list(default))
        for each in found:
            if not isinstance(each, str):
                raise UserError(f"{self.name}: {key} must be a list of texts, not {each!r}")
        return found

    def parts(self, key: str) -> list[_Part]:
        """Return the tables ``[[key]]``; there is at least one."""
        found = self.take(key, list)
        if not found or not all(isinstance(each, dict) for each in found):
            raise UserError(f"{self.name}: {key} must be tables that begin with [[{key}]]")
        return [_Part(f"{self.name}, {key} {i}", each) for i, each in enumerate(found, 1)]

    def end(self) -> None:
        """Refuse what nobody asked for."""
        for key in self._given:
            if key not in self._known:
                near = difflib.get_close_matches(key, self._known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"keys are {', '.join(self._known)}"
                raise UserError(f"{self.name} knows no {key!r}: {hint}")


def _contender(part: _Part) -> Contender:
    strategy = part.take("strategy", str)
    contender = Contender(
        label=part.take("label", str, strategy),
        strategy=strategy,
        options=part.take("options", dict, {}),
        trained_on=part.maybe("trained_on", str),
        within=part.maybe("within", str),
        budget=None if part.maybe("budget", float) is None else part.number("budget", float, 1.0),
        knows=part.maybe("knows", str),
        seeds=0 if part.maybe("seeds", int) is None else part.number("seeds", int, 1),
    )
    part.end()
    if contender.trained_on is not None and strategy != "apprentice":
        raise UserError(f"{part.name}: trained_on goes with the strategy apprentice")
    if contender.knows is not None and strategy not in KNOWING:
        raise UserError(f"{part.name}: knows goes with the strategies {' and '.join(KNOWING)}")
    return contender


def _web(part: _Part) -> StudyWeb:
    portal = part.maybe("portal", str)
    seeds = part.take("seeds", str) if portal is None else part.maybe("seeds", str)
    if portal is not None and not Path(portal).is_file():
        raise UserError(f"{part.name}: portal {portal} is no file: name one with a URL a line")
    of_seeds = [] if seeds is None else _topics_of(part.name, seeds)
    without = {normalise(topic) for topic in part.texts("without", ())}
    topics = [normalise(topic) for topic in part.texts("topics", of_seeds)]
    web = StudyWeb(
        name=part.take("name", str),
        recording=part.take("recording", str),
        labels=part.take("labels", str),
        seeds=seeds,
        critic=part.maybe("critic", str),
        seeds_per_draw=part.number("seeds_per_draw", int, 5),
        topics=tuple(dict.fromkeys(topic for topic in topics if topic not in without)),
        portal=portal,
    )
    part.end()
    if not web.topics:
        raise UserError(f"{part.name} has no topic: name some with topics = ['/Science']")
    return web


def _topics_of(name: str, seeds: str) -> list[str]:
    try:
        with Path(seeds).open(encoding="utf-8", newline="") as file:
            return list(dict.fromkeys(row["topic"] for row in csv.DictReader(file)))
    except (OSError, KeyError, UnicodeDecodeError):
        raise UserError(f"{name}: seeds {seeds} cannot be read, or have no 'topic'") from None


def _check_variables(path: Path, value: object) -> None:
    """Refuse a variable that is not set; one in a comment does not matter."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            _check_variables(path, each)
    elif isinstance(value, str) and (named := re.search(r"\$\{?(\w+)", value)):
        raise UserError(f"study {path} needs the environment variable {named[1]}: set it")


def _check_distinct(path: Path, kind: str, names: list[str]) -> None:
    folders = [name.replace("/", "_") for name in names]  # as `focuscrawl.lab.planning` does
    for name, folder in zip(names, folders, strict=True):
        if folders.count(folder) > 1:
            raise UserError(f"study {path} has two {kind} called {name!r}: label them")


def _check_order(path: Path, contenders: Mapping[str, Contender]) -> None:
    """Refuse a contender that comes after none of the study, or after itself."""
    for contender in contenders.values():
        for first in contender.after:
            if first not in contenders:
                raise UserError(
                    f"study {path}: {contender.label!r} comes after {first!r}, and no strategy "
                    f"is labelled so: there are {', '.join(contenders)}"
                )
    try:
        TopologicalSorter({label: each.after for label, each in contenders.items()}).prepare()
    except CycleError as error:
        label = error.args[1][0]
        raise UserError(f"study {path}: {label!r} comes after its own crawl: a circle") from None
