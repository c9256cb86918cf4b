"""Reads study files (TOML), which describe the crawls of a study.

Errors in a study file are found before the first crawl starts.

The keys of a study file are the fields of `Study`, `StudyWeb` and `Contender`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from focuscrawl.crawl.revisit_policy import KNOWLEDGE_STRATEGIES
from focuscrawl.critic.classifiers import KINDS
from focuscrawl.critic.training import TRAINABLE_KINDS
from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import parse_toml, read_csv_rows, read_regular_text, validate
from focuscrawl.lab.planning import slug
from focuscrawl.lab.study import TEXTS, Contender, Study, StudyWeb
from focuscrawl.taxonomy import normalise

_LONGEST = 120  # characters


def read_study(path: Path) -> Study:
    """Read a study file (TOML); ``$NAME`` and ``${NAME}`` are environment variables.

    Raises
    ------
    UserError
        The file cannot be read, lacks a key, has an unknown key or a wrong value, or names an
        environment variable that is not set.
    """
    try:
        text = os.path.expandvars(read_regular_text(path))
        given = parse_toml(text)
    except OSError as error:
        raise UserError(f"study {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"study {path} is not a valid TOML file: {error}") from None
    _check_variables(path, given)
    name = f"study {path}"
    contenders = tuple(_contender(*each) for each in _tables(name, given, "strategies"))
    webs = tuple(_web(*each) for each in _tables(name, given, "webs"))
    for key in ("webs", "strategies"):
        del given[key]
    default = {"title": path.stem, "baseline": contenders[0].label}
    study = replace(validate(Study, default | given, name), webs=webs, contenders=contenders)
    labels = [contender.label for contender in contenders]
    _check_distinct(path, "strategies", labels)
    _check_distinct(path, "webs", [web.name for web in study.webs])
    if study.baseline not in labels:
        raise UserError(f"study {path} has no strategy labelled {study.baseline!r}")
    _check_order(path, {contender.label: contender for contender in contenders})
    return study


def _tables(name: str, given: Mapping[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the tables ``[[key]]``, at least one, each with a name for error messages."""
    if key not in given:
        raise UserError(f"{name} lacks {key!r}: add a table [[{key}]]")
    found = given[key]
    if (
        not isinstance(found, list)
        or not found
        or not all(isinstance(each, dict) for each in found)
    ):
        raise UserError(f"{name}: {key} must be tables that start with [[{key}]]")
    return [(f"{name}, {key} {i}", each) for i, each in enumerate(found, 1)]


def _contender(name: str, given: Mapping[str, Any]) -> Contender:
    contender = validate(Contender, {"label": given.get("strategy", ""), **given}, name)
    if contender.trained_on is not None and contender.strategy != "apprentice":
        raise UserError(f"{name}: trained_on requires strategy = 'apprentice'")
    if contender.knows is not None and contender.strategy not in KNOWLEDGE_STRATEGIES:
        raise UserError(
            f"{name}: knows requires one of the strategies {', '.join(KNOWLEDGE_STRATEGIES)}"
        )
    return contender


def _web(name: str, given: dict[str, Any]) -> StudyWeb:
    without = TEXTS.parse(f"{name}: without", given.pop("without", []))
    web = validate(StudyWeb, given, name)
    if web.seeds is None and web.portal is None:
        raise UserError(f"{name} lacks 'seeds': add seeds or portal")
    if Path(web.name).name != web.name or web.name in {"", ".."}:
        raise UserError(f"{name}: name {web.name!r} must be a folder name without /")
    if web.portal is not None and not Path(web.portal).is_file():
        raise UserError(f"{name}: portal {web.portal} not found: give a file with one URL a line")
    if web.kind not in TRAINABLE_KINDS:
        raise UserError(
            f"{name}: kind must be one of {', '.join(TRAINABLE_KINDS)}, not {web.kind!r}"
        )
    if web.all_words and web.kind not in KINDS:
        raise UserError(f"{name}: all_words requires the kind {' or '.join(KINDS)}")
    named = web.topics if "topics" in given else _topics_of(name, web.seeds or "")
    left_out = set(map(normalise, without))
    topics = dict.fromkeys(each for each in map(normalise, named) if each not in left_out)
    if not topics:
        raise UserError(f"{name} has no topic: add topics, as in topics = ['/Science']")
    return replace(web, topics=tuple(topics))


def _topics_of(name: str, seeds: str) -> list[str]:
    if not seeds:
        return []
    try:
        return list(dict.fromkeys(row["topic"] for _, row in read_csv_rows(seeds, ["topic"])))
    except UserError as error:
        raise UserError(f"{name}: seeds: {error}") from None


def _check_variables(path: Path, value: object) -> None:
    """Raise `UserError` for a variable that is not set; variables in comments do not count."""
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
                f"study {path}: {name!r:.120} cannot name a folder, as names of {kind} must: "
                f"use at most {_LONGEST} letters and digits"
            )
        if folders.count(folder) > 1:
            raise UserError(
                f"study {path} has two {kind} called {name!r}: give each its own label"
            )


def _check_order(path: Path, contenders: Mapping[str, Contender]) -> None:
    """Raise `UserError` for an unknown dependency or a dependency cycle."""
    for contender in contenders.values():
        for first in contender.depends_on:
            if first not in contenders:
                raise UserError(
                    f"study {path}: {contender.label!r} depends on {first!r}, which is not the "
                    f"label of a strategy. Available: {', '.join(contenders)}"
                )
    try:
        TopologicalSorter({label: each.depends_on for label, each in contenders.items()}).prepare()
    except CycleError as error:
        label = error.args[1][0]
        raise UserError(
            f"study {path}: {label!r} depends on its own crawl: remove one of trained_on, within "
            "and knows"
        ) from None
