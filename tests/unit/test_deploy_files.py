"""What a server installs is what the program needs."""

from __future__ import annotations

import configparser
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_server_installs_the_dependencies_of_the_program() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "deploy" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted = [line.partition("#")[0].strip() for line in lines]
    named = [each for each in wanted if each]
    assert named[: len(project["dependencies"])] == project["dependencies"]
    rest = {each.partition(">")[0].partition("<")[0] for each in named} - {
        each.partition(">")[0] for each in project["dependencies"]
    }
    assert rest == {"scrapyd", "setuptools"}


def test_all_that_may_be_installed_is_pinned() -> None:
    lines = (ROOT / "deploy" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower().replace("_", "-")
    for line in lines:
        name = re.split(r"[\[<>#]", line)[0].strip().lower()
        assert not name or f"\n{name.replace('_', '-')}==" in pins, name


def test_scrapyd_is_kept_on_loopback() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "deploy" / "scrapyd.conf", encoding="utf-8")
    assert settings["scrapyd"]["bind_address"] == "127.0.0.1"
