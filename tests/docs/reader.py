"""A reader of the documentation, who types its commands on a machine without a network."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from integration import warm

from .printed_commands import FENCED, ROOT, RUN, SECTIONS

BUDGET = 25  # fetches, at most
IN_PLACE = "in-place"  # folder of what stands in for packages
_OF_A_SHELL = re.compile(r"[|<>*?$`;&~#\\]")
_Done = subprocess.CompletedProcess[str]


class Reader:
    """Reads a document from the beginning, and types every command."""

    def __init__(self, document: Path, folder: Path, origin: str) -> None:
        self._document, self.folder, self._origin = document, folder, origin
        self._left = [section for path, section in SECTIONS if path == document]
        for _, name, body in FENCED.findall(document.read_text(encoding="utf-8")):
            if name:
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(body, encoding="utf-8")
        for command in RUN:
            for made in re.findall(r"--out (models/\S+)", command.text):
                if command.document == document:
                    shutil.rmtree(folder / made, ignore_errors=True)

    def read(self, section: str) -> None:
        """Run what leads to the end of a section and was not run yet."""
        while section in self._left:
            now = self._left.pop(0)
            commands = [c.text for c in RUN if (c.document, c.section) == (self._document, now)]
            type_commands(self.folder, "\n".join(_here(each, self._origin) for each in commands))


def _here(command: str, origin: str) -> str:
    """Return a command as it can be run on a machine without a network, in seconds."""
    command = re.sub(r"https://example\.(org|net)", origin, command)
    if "-a stop=" in command or "--pages 1000" in command:  # which are not what ends it
        return command
    return re.sub(
        r"(-a budget=|--budget |--pages )(\d+)",
        lambda m: m[1] + str(min(int(m[2]), BUDGET)),
        command,
    ).replace("/var/lib/", "")


def type_commands(folder: Path, script: str) -> None:
    """Type commands one after another."""
    packages = [_as_installed(path) for path in folder.glob("*/pyproject.toml")]
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        # this tree, wherever the environment's own focuscrawl is
        "PYTHONPATH": os.pathsep.join(map(str, [*packages, folder / IN_PLACE, ROOT])),
    }
    for line in script.splitlines():
        program, *words = shlex.split(line)
        if program == "cd":
            folder /= words[0]
        elif program in ("focuscrawl", "scrapy") and not _OF_A_SHELL.search(line):
            _check(warm.run(words, cwd=folder, env=environment, program=program))
        else:
            _check(_in_a_shell(line, folder, environment))


def _in_a_shell(line: str, folder: Path, environment: dict[str, str]) -> _Done:
    return subprocess.run(
        ["bash", "-e", "-c", line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        check=False,
        capture_output=True,
        text=True,
    )


def _check(done: _Done) -> None:
    assert done.returncode == 0, f"{done.args}: {done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr, f"{done.args}: {done.stderr[-3000:]}"


def _as_installed(pyproject: Path) -> Path:
    """Make the folder of a package look as if pip had installed it."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    info = pyproject.parent / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines.append(f"[{group}]")
        lines += [f"{entry} = {target}" for entry, target in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return pyproject.parent
