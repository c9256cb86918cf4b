"""What a server installs is what the program needs."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
import threading
import tomllib
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from zipfile import ZipFile

import pytest

from focuscrawl.foundation.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[2]


PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, GROUPS = PYPROJECT["project"], PYPROJECT["dependency-groups"]


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


def test_a_server_installs_what_a_crawl_can_need() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (extras,) = re.findall(r"^SERVER := (.*)$", makefile, re.MULTILINE)
    wanted = {each for name in extras.split() for each in of_extra(name)}
    wanted |= {*PROJECT["dependencies"], *GROUPS["server"]}
    found = {package.replace("-", "_") for package in locked("server.txt")}
    assert names_of([*wanted]) <= found
    assert "focuscrawl" not in found  # an installed one is found before the one in the egg


def test_the_message_for_a_missing_extra_knows_what_is_in_it() -> None:
    no_modules = {"ipykernel"}  # a notebook is run by it, nothing imports it
    found = {extra: names_of(of_extra(extra)) - no_modules for extra in EXTRAS}
    assert found == {extra: set(modules) for extra, modules in EXTRAS.items()}
    assert PROJECT["optional-dependencies"].keys() == {*EXTRAS, "all"}
    # 450 MB, for few
    every = {module for modules in EXTRAS.values() for module in modules} - {"pyspark"}
    assert names_of(of_extra("all")) - no_modules == every
    assert not every & names_of(PROJECT["dependencies"])


def locked(name: str) -> dict[str, list[str]]:
    """Return the packages of a lock in one version each, and the digests that each may have."""
    packages: dict[str, list[str]] = {}
    for line in (ROOT / "locks" / name).read_text(encoding="utf-8").splitlines():
        if digest := re.fullmatch(r"    --hash=sha256:([0-9a-f]{64})( \\)?", line):
            packages[name].append(digest[1])
        elif not line.startswith("#"):
            name = line.split("==")[0]
            assert re.fullmatch(r"[a-z0-9-]+==[^=<>~,]+( ; .*)? \\", line), line
            packages[name] = []
    return packages


@pytest.mark.parametrize(
    "path", sorted((ROOT / "locks").glob("*.txt")), ids=lambda path: path.stem
)
def test_a_lock_says_what_each_file_has_to_be(path: Path) -> None:
    packages = locked(path.name)
    assert packages
    assert all(packages.values())
    assert "://" not in path.read_text(encoding="utf-8")


def test_the_package_from_npm_is_locked() -> None:
    (line,) = (ROOT / "locks" / "replaywebpage.sha512").read_text(encoding="utf-8").splitlines()
    digest, name = line.split()
    assert re.fullmatch("[0-9a-f]{128}", digest)
    assert name in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_all_that_may_be_installed_is_locked() -> None:
    dev = [*PROJECT["dependencies"], *of_extra("all"), *GROUPS["dev"]]
    wanted = {
        "server.txt": [*PROJECT["dependencies"], *GROUPS["server"]],
        "dev.txt": dev,
        "oldest-scrapy.txt": dev,
        "docs.txt": GROUPS["docs"],
        "fuzz.txt": GROUPS["fuzz"],
        "lock.txt": GROUPS["lock"],
        "pywb.txt": GROUPS["pywb"],
        "s3.txt": [each.replace("[s3]", "") for each in GROUPS["s3"]],
        "surt.txt": ["surt"],  # no wheel, which is installed in a step of its own
        "spark.txt": ["py4j", "setuptools"],
        "pyspark.txt": ["pyspark"],  # no wheel either
        "build.txt": PYPROJECT["build-system"]["requires"],
    }
    assert wanted.keys() == {path.name for path in (ROOT / "locks").glob("*.txt")}
    for name, requirements in wanted.items():
        found = {package.replace("-", "_") for package in locked(name)}
        assert {each.lower() for each in names_of(requirements)} <= found, name


@pytest.mark.parametrize("name", ["Makefile", "Containerfile", "docs/how-to/deploy.md"])
def test_nothing_is_installed_that_is_not_locked(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    installs = re.findall(r"pip (?:install|wheel) [^\n&]*", text)
    assert installs
    for each in installs:
        checked = "--require-hashes" in each and "--only-binary :all:" in each
        assert checked or {"--no-index", "--no-deps"} <= set(each.split()), each


def test_who_installs_it_has_a_choice_of_versions() -> None:
    ranges = [*PROJECT["dependencies"], *of_extra("all")]
    assert not [each for each in ranges if "==" in each or "://" in each]


@pytest.mark.parametrize(
    ("package", "modules"),
    [
        ("can_ada", {"foundation/urls.py"}),
        ("tldextract", {"distiller.py"}),
        ("tomlkit", {"topics/definition.py"}),
        ("charset_normalizer", {"page/encoding.py"}),
        ("wordfreq", {"critic/languages.py"}),
    ],
)
def test_what_has_few_hands_behind_it_can_be_left(package: str, modules: set[str]) -> None:
    importing = re.compile(rf"^\s*(?:from|import) {package}\b", re.MULTILINE)
    package_folder = ROOT / "focuscrawl"
    found = {
        path.relative_to(package_folder).as_posix()
        for path in package_folder.rglob("*.py")
        if importing.search(path.read_text(encoding="utf-8"))
    }
    assert found == modules


def test_what_is_not_what_the_lock_says_is_not_installed(tmp_path: Path) -> None:
    wheel = tmp_path / "given-1-py3-none-any.whl"
    files = {
        "given.py": "",
        "given-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: given\nVersion: 1\n",
        "given-1.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
        "given-1.dist-info/RECORD": "",
    }
    with ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    (flags,) = re.findall(r"^LOCKED := pip (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    command = [sys.executable, "-m", "pip", *flags.split(), "--no-index"]
    lock, target = tmp_path / "lock.txt", tmp_path / "there"
    command += ["--find-links", str(tmp_path), "--target", str(target), "-r", str(lock)]
    own = sha256(wheel.read_bytes()).hexdigest()
    digests = {"": 1, f" --hash=sha256:{'0' * 64}": 1, f" --hash=sha256:{own}": 0}
    for said, code in digests.items():
        lock.write_text(f"given==1{said}\n", encoding="utf-8")
        done = subprocess.run(command, check=False)
        assert done.returncode == code
        assert target.exists() == (code == 0)


def test_the_image_is_built_on_what_a_digest_names() -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["$BASE", "base", "base", "base"]
    assert 'RUN case "$BASE" in *@sha256:*) ;; *)' in text


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
    lists = [f"wordfreq/data/{name}.msgpack.gz" for name in ("large_en", "small_de")]
    kept = ("a/__init__.py", "a/test.py", "a/testing/x.py", *lists)
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


def test_the_package_names_the_systems_that_it_runs_on() -> None:
    systems = {each for each in PYPROJECT["project"]["classifiers"] if "Operating System" in each}
    assert systems == {"Operating System :: POSIX"}
    for page in ("README.md", "docs/get-started.md"):
        assert "POSIX" in (ROOT / page).read_text(encoding="utf-8")
