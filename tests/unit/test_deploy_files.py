"""What a server installs is what the program needs."""

from __future__ import annotations

import configparser
import re
import subprocess
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

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


def test_the_images_get_what_they_are_made_of() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "*"
    admitted = {line[1:].split("/")[0] for line in lines if line.startswith("!")}
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    for copied in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        for path in copied.split():
            assert path == "." or path.split("/")[0] in admitted, path
            assert (ROOT / path).exists()
    assert {"focuscrawl", "pyproject.toml", "README.md", "LICENSE", "models"} <= admitted


def test_packages_are_made_smaller_by_what_no_crawl_needs(tmp_path: Path) -> None:
    kept = ("a/__init__.py", "a/test.py", "a/testing/x.py", "wordfreq/data/large_en.msgpack.gz")
    gone = ("a/tests/x.py", "a/b/test/deep/x.py", "a/x.pyx", "wordfreq/data/large_de.msgpack.gz")
    for name in (*kept, *gone):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    subprocess.run([ROOT / "deploy" / "slim", tmp_path], check=True)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == set(kept)


class Locked(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(401)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("answers", [True, False])
def test_a_port_that_answers_is_healthy(answers: bool) -> None:
    with HTTPServer(("127.0.0.1", 0), Locked) as server:
        port = server.server_port
        if answers:
            threading.Thread(target=server.handle_request).start()
        else:
            server.server_close()
        done = subprocess.run([ROOT / "deploy" / "healthy", str(port)], check=False)
    assert done.returncode == (0 if answers else 1)
