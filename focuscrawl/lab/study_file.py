"""Study files: TOML, read strictly, so that a slip is found before an hour has passed.

What may be said are the fields of `Study`, `StudyWeb` and `Contender`.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from focuscrawl.crawl.revisit_policy import STRATEGIES as KNOWING
from focuscrawl.critic.classifiers import NaiveBayes
from focuscrawl.critic.training import TRAINABLE
from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import read_rows, read_toml, text_of
from focuscrawl.lab.planning import slug
from focuscrawl.lab.study import Contender, Study, StudyWeb
from focuscrawl.taxonomy import normalise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_LONGEST = 120  # characters of a label
_KINDS: dict[type, str] = {
    str: "a text in quotes",
    int: "a whole number",
    float: "a number",
    dict: "a table, as in {batch = 5}",
    tuple: "a list, as in ['/Science', '/Arts']",
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
        text = os.path.expandvars(text_of(path))
        given = read_toml(text)
    except OSError as error:
        raise UserError(f"study {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"study {path} is no TOML file: {error}") from None
    _check_variables(path, given)
    name = f"study {path}"
    contenders = tuple(_contender(*each) for each in _tables(name, given, "strategies"))
    webs = tuple(_web(*each) for each in _tables(name, given, "webs"))
    said = _read(name, given, Study, also=["webs", "strategies"])
    default = {"title": path.stem, "baseline": contenders[0].label}
    study = Study(**default | said, webs=webs, contenders=contenders)
    labels = [contender.label for contender in contenders]
    _check_distinct(path, "strategies", labels)
    _check_distinct(path, "webs", [web.name for web in study.webs])
    if study.baseline not in labels:
        raise UserError(f"study {path} has no strategy labelled {study.baseline!r}")
    _check_order(path, {contender.label: contender for contender in contenders})
    return study


def _tables(name: str, given: Mapping[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the tables ``[[key]]``, each with a name for messages; there is at least one."""
    if key not in given:
        raise UserError(f"{name} does not say {key!r}")
    found = given[key]
    if (
        not isinstance(found, list)
        or not found
        or not all(isinstance(each, dict) for each in found)
    ):
        raise UserError(f"{name}: {key} must be tables that begin with [[{key}]]")
    return [(f"{name}, {key} {i}", each) for i, each in enumerate(found, 1)]


def _read(
    name: str,
    given: Mapping[str, Any],
    kind: type[Study | StudyWeb | Contender],
    *,
    needed: Sequence[str] = (),
    also: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what a table says of the fields of `kind`; refuse what it does not know.

    Parameters
    ----------
    needed : what it has to say
    also : keys that are no fields, or are tables themselves
    """
    kinds = {key: _plain(hint) for key, hint in get_type_hints(kind).items()}
    known = [key for key in kinds if key not in ("webs", "contenders")] + [*also]
    for key in needed:
        if key not in given:
            raise UserError(f"{name} does not say {key!r}")
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"keys are {', '.join(known)}"
            raise UserError(f"{name} knows no {key!r}: {hint}")
    return {
        key: _checked(f"{name}: {key}", value, kinds[key])
        for key, value in given.items()
        if key not in also
    }


def _plain(hint: Any) -> type:
    """Return the class behind the type of a field."""
    if get_origin(hint) is UnionType:  # X | None
        hint = get_args(hint)[0]
    plain: type = get_origin(hint) or hint
    return plain


def _checked(name: str, value: Any, kind: type) -> Any:
    """Return a value if it is of a kind; numbers are above 0 and, from 1 on, whole."""
    accepted: Any = {float: (int, float), tuple: list}.get(kind, kind)
    if not isinstance(value, accepted) or isinstance(value, bool):
        raise UserError(f"{name} must be {_KINDS[kind]}, not {value!r}")
    for each in value if kind is tuple else ():
        if not isinstance(each, str):
            raise UserError(f"{name} must be a list of texts, not {each!r}")
    if kind in (int, float) and not (0 < value <= 1 or (1 < value < math.inf and value % 1 == 0)):
        must = "a whole number" if kind is int else "a whole number, or a share below 1,"
        raise UserError(f"{name} must be {must} above 0, not {value!r}")
    return kind(value)


def _contender(name: str, given: Mapping[str, Any]) -> Contender:
    said = _read(name, given, Contender, needed=["strategy"])
    contender = Contender(**{"label": said["strategy"]} | said)
    if contender.trained_on is not None and contender.strategy != "apprentice":
        raise UserError(f"{name}: trained_on goes with the strategy apprentice")
    if contender.knows is not None and contender.strategy not in KNOWING:
        raise UserError(f"{name}: knows goes with the strategies {' and '.join(KNOWING)}")
    return contender


def _web(name: str, given: Mapping[str, Any]) -> StudyWeb:
    needed = ["name", "recording", "labels", *([] if "portal" in given else ["seeds"])]
    said = _read(name, given, StudyWeb, needed=needed, also=["without"])
    if Path(said["name"]).name != said["name"] or said["name"] in {"", ".."}:
        raise UserError(f"{name}: name {said['name']!r} is to be a folder's: take one without /")
    if "portal" in said and not Path(said["portal"]).is_file():
        raise UserError(f"{name}: portal {said['portal']} is no file: name one with a URL a line")
    if said.get("kind", NaiveBayes.kind) not in TRAINABLE:
        known = ", ".join(TRAINABLE)
        raise UserError(f"{name}: kind must be one of {known}, not {said['kind']!r}")
    of_seeds = _topics_of(name, said["seeds"]) if "seeds" in said else []
    without = _checked(f"{name}: without", given.get("without", []), tuple)
    without = {normalise(topic) for topic in without}
    topics = [normalise(topic) for topic in said.get("topics", of_seeds)]
    said["topics"] = tuple(dict.fromkeys(topic for topic in topics if topic not in without))
    if not said["topics"]:
        raise UserError(f"{name} has no topic: name some with topics = ['/Science']")
    return StudyWeb(**said)


def _topics_of(name: str, seeds: str) -> list[str]:
    try:
        return list(dict.fromkeys(row["topic"] for _, row in read_rows(seeds, ["topic"])))
    except UserError as error:
        raise UserError(f"{name}: seeds: {error}") from None


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
    folders = [slug(name) for name in names]
    for name, folder in zip(names, folders, strict=True):
        if folder.strip(".") == "" or len(folder) > _LONGEST or not folder.isprintable():
            raise UserError(
                f"study {path}: {name!r:.120} names no folder, as {kind} do: letters and digits, "
                f"{_LONGEST} at most"
            )
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
