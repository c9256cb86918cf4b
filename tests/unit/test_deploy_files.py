"""What a server installs is what the program needs."""

from __future__ import annotations

import configparser
import re
import tomllib
from pathlib import Path

from focuscrawl.foundation.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[2]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def of_extra(extra: str) -> list[str]:
    """Return the requirements of an extra, those of the extras in it included."""
    found = []
    for each in PROJECT["optional-dependencies"][extra]:
        if inner := re.fullmatch(r"focuscrawl\[(.*)\]", each):
            found += [other for name in inner[1].split(",") for other in of_extra(name)]
        else:
            found.append(each)
    return found


def names_of(requirements: list[str]) -> set[str]:
    """Return the names of packages, as a module that is imported would be called."""
    return {re.split(r"[\[<>=]", each)[0].replace("-", "_") for each in requirements}


def test_a_server_installs_what_a_crawl_needs() -> None:
    lines = (ROOT / "deploy" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted = [line.partition("#")[0].strip() for line in lines]
    named = [each for each in wanted if each]
    extras = [each for name in ("workers", "metrics", "parquet") for each in of_extra(name)]
    assert named[: len(PROJECT["dependencies"])] == PROJECT["dependencies"]
    rest = named[len(PROJECT["dependencies"]) :]
    assert rest[: len(extras)] == extras
    assert names_of(rest[len(extras) :]) == {"scrapyd", "setuptools"}


def test_the_message_for_a_missing_extra_knows_what_is_in_it() -> None:
    no_modules = {"ipykernel"}  # a notebook is run by it, nothing imports it
    found = {extra: names_of(of_extra(extra)) - no_modules for extra in EXTRAS}
    assert found == {extra: set(modules) for extra, modules in EXTRAS.items()}
    assert PROJECT["optional-dependencies"].keys() == {*EXTRAS, "all"}
    every = {module for modules in EXTRAS.values() for module in modules}
    assert names_of(of_extra("all")) - no_modules == every
    assert not every & names_of(PROJECT["dependencies"])


def test_all_that_may_be_installed_is_pinned() -> None:
    lines = (ROOT / "deploy" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower().replace("_", "-")
    for line in [*lines, *PROJECT["dependencies"], *of_extra("all")]:
        name = re.split(r"[\[<>#]", line)[0].strip().lower()
        assert not name or f"\n{name.replace('_', '-')}==" in pins, name


def test_scrapyd_is_kept_on_loopback() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "deploy" / "scrapyd.conf", encoding="utf-8")
    assert settings["scrapyd"]["bind_address"] == "127.0.0.1"
