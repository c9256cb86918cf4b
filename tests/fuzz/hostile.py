"""Folders that a stranger gives away: a crawl, a critic, an archive, knowledge, made to do harm.

What is drawn is put into a sound folder: links, pipes, folders and huge files in place of files,
journals of SQLite, triggers, tables without an end, values that no program wrote, odd names.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from unit.archives import INDICES, change, record_demo
from unit.damaged_stores import SAID, endless, hot_journal

from . import ROOT

if TYPE_CHECKING:
    from random import Random

TOPIC = "/Sports/Cycling"
FETCHES = 25
_HUGE = 1 << 42  # bytes, all of them a hole
_MOST = 3  # harms in a folder

#: what commands write, or look for, in the folder of a crawl
_WRITTEN = (
    *("crawl.lock", "control.json", "follow.json", "follow.refused", "log.jsonl", "critic-1"),
    *("completeness.csv", "report", "report/loss.png", "report/report.html", "knowledge.db"),
    *("topic.toml", "texts.db", "teacher.jsonl", "requests.jsonl", "critic-quality.json"),
    *("pages.warc.gz", "more.warc.gz", ".examples", ".knowledge.db.new", ".crawl.db.0.draft"),
    *(f"{name}{ending}" for name in ("crawl.db", "texts.db") for ending in ("-wal", "-shm")),
)
_ODD = (b"-rf", b"a\nb", b"\x1b[2J", b"%41?mode=memory", b"x" * 250, "ü\u202e".encode(), b"\xff")
_TRIGGER = """
    CREATE TRIGGER evil AFTER INSERT ON {0} BEGIN INSERT INTO {0} SELECT * FROM (
    WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT 1 FROM n); END"""
_FILENAMES = ("../../outside/precious", "/etc/passwd", "s3://b/x", "a\0b", "..", "web.warc.gz/x")


def make_sound(folder: Path, focuscrawl: Callable[..., object]) -> None:
    """Make a folder of which everything is as it should be.

    Parameters
    ----------
    focuscrawl : runs a command in a folder
    """
    archive = folder / "archive"
    archive.mkdir(parents=True)
    record_demo(archive)
    crawl = ["-a", f"topic={TOPIC}", "-a", "seeds=models/demo/seeds.csv", "-a", "crawl_dir=crawl"]
    text = ["-s", "FOCUSCRAWL_TEXT=1"]
    focuscrawl(folder, "crawl", *crawl, "-a", "web=demo", "-a", f"budget={FETCHES}", *text)
    focuscrawl(folder, "knowledge", "learn", "crawl", "--topic", TOPIC, "--out", "knowledge.db")
    focuscrawl(folder, "apprentice", "train", "crawl", "--out", "apprentice", "--web", "demo")
    shutil.copytree(ROOT / "models" / "demo", folder / "critic")
    (folder / "topic.toml").write_text(
        f'critic = "models/demo"\ntopics = ["{TOPIC}"]\nweb = "demo"\n'
    )
    order = {"keywords": "bicycle, peloton", "urls": ["http://a.example/"], "web": "demo"}
    (folder / "corpus.json").write_text(json.dumps(order | {"search": "evil:search"}))
    for path in folder.rglob("*.db"):
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


class Harm:
    """Makes harm in a folder.

    Parameters
    ----------
    folder : a sound one
    outside : a folder of the user's that is to be left as it is; it has a file ``precious``
    port : where somebody listens that nobody is to connect to
    rng : draws
    """

    def __init__(self, folder: Path, outside: Path, port: int, rng: Random) -> None:
        self._folder, self._outside, self._port, self._rng = folder, outside, port, rng
        self.done: list[str] = []

    def do(self) -> None:
        """Do one thing, or some."""
        kinds = (self._in_place, self._in_place, self._beside, self._said, self._identity)
        for _ in range(self._rng.randint(1, _MOST)):
            self._rng.choice((*kinds, self._archived, self._defined, self._named, self._asked))()

    def _draw(self, among: Sequence[str]) -> str:
        return self._rng.choice(among)

    def _note(self, what: str, path: Path) -> None:
        self.done.append(f"{what}: {str(path.relative_to(self._folder))[:60]!r}")

    def _in_place(self) -> None:
        """Put something else in the place of a file, or where one would be written."""
        files = [path for path in self._folder.rglob("*") if not path.is_symlink()]
        files += [self._folder / "crawl" / name for name in _WRITTEN]
        self._replace(self._rng.choice(sorted(files)))

    def _replace(self, path: Path) -> None:
        content = path.read_bytes() if path.is_file() and path.stat().st_size < _HUGE else b""
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        with suppress(OSError):  # something else is in the place of the folder
            path.parent.mkdir(parents=True, exist_ok=True)
            what = self._draw(
                ("link", "link", "pipe", "folder", "socket", "huge", "cut", "flipped")
            )
            self._note(what, path)
            match what:
                case "link":
                    to = ("precious", "", "none", "precious.db")
                    path.symlink_to(self._outside / self._draw(to))
                case "pipe":
                    os.mkfifo(path)
                case "folder":
                    path.mkdir()
                case "socket":
                    with socket.socket(socket.AF_UNIX) as mine:
                        mine.bind(f"/proc/self/fd/{_opened(path.parent)}/{path.name}")
                case "huge":
                    path.write_bytes(content)
                    os.truncate(path, _HUGE)
                case "cut":
                    path.write_bytes(content[: self._rng.randint(0, len(content))])
                case "flipped":
                    flipped = bytearray(content)
                    for _ in range(len(content) // 500 + 1 if content else 0):
                        flipped[self._rng.randrange(len(content))] = self._rng.randrange(256)
                    path.write_bytes(flipped)

    def _databases(self) -> list[Path]:
        names = ("crawl/crawl.db", "crawl/texts.db", "knowledge.db")
        paths = [self._folder / name for name in names]
        return [
            p for p in paths if p.is_file() and not p.is_symlink() and p.stat().st_size < _HUGE
        ]

    def _beside(self) -> None:
        """Put a journal beside a database, or something in its place."""
        for path in self._rng.sample(found := self._databases(), min(1, len(found))):
            beside = path.with_name(path.name + self._draw(("-journal", "-wal", "-shm")))
            if self._rng.random() < 0.5 and path.stat().st_size > 100:
                beside = path.with_name(f"{path.name}-journal")
                with suppress(OSError, ValueError, ZeroDivisionError):
                    beside.write_bytes(hot_journal(path, self._outside / "precious"))
                    self._note("journal of precious", beside)
            else:
                self._replace(beside)

    def _said(self) -> None:
        """Say something to a database in SQL, or have a table without an end."""
        for path in self._rng.sample(found := self._databases(), min(1, len(found))):
            with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as database:
                tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
                table = self._draw(sorted(str(name) for (name,) in database.execute(tables)))
                what = self._draw([*SAID, "a trigger without an end", "rows without an end"])
                self._note(f"{what} ({table})", path)
                if what == "rows without an end":
                    database.close()
                    endless(path, table)
                else:
                    database.executescript(SAID.get(what) or _TRIGGER.format(table))

    def _identity(self) -> None:
        """Have the crawl say something else of itself."""
        path = self._folder / "crawl" / "crawl.db"
        remote = f"endpoint_override=127.0.0.1:{self._port}&scheme=http"
        webs = (
            *(f"s3://b/x.cdxj?{remote}", f"s3://b/x.parquet?{remote}", f"x.cdxj,s3://b?{remote}"),
            *(f"hdfs://127.0.0.1:{self._port}/x.cdxj", f"http://127.0.0.1:{self._port}/x.cdxj"),
            *(
                str(self._outside / "precious"),
                "/dev/zero",
                "/proc/kmsg",
                "demo:1e300",
                "a\0.warc",
            ),
            *("demo@99999999999999999999", "../archive/web.cdxj", "../archive/web.warc.gz", ""),
        )
        values = {
            "web_name": webs,
            "web": ("live", "0" * 32),
            "critic_name": ("evil:judge", "../critic", "/dev/zero", "critic", "", "\x1b[2J"),
            "strategy": ("evil:Strategy", "paths", "tfidf", "\n"),
            "topic": ("/", "..", "/Nothing", ",", "\x1b]0;x\x07"),
            "options": ("{", "[" * 100_000, '{"model": "/dev/zero"}', "7"),
            "tables": (f"s3://b/t?{remote}",),
            "apprentice": ("/dev/zero", "../apprentice"),
            "random_state": ("x", "9" * 5_000, "-1"),
            "languages": ("..", "\0"),
        }
        key = self._draw(("web_name", "web_name", *values))
        value = self._draw(values[key])
        with (
            suppress(sqlite3.Error, OSError),
            closing(sqlite3.connect(path)) as database,
            database,
        ):
            database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
            self.done.append(f"{key} = {value[:80]!r}")

    def _archived(self) -> None:
        """Have the index of the archive name something else, or the archive lead elsewhere."""
        path = self._folder / "archive" / INDICES[0]
        name = self._draw(_FILENAMES)
        with suppress(OSError, ValueError):
            change(path, filename=name)
            self._note(f"filename {name!r}", path)

    def _defined(self) -> None:
        """Have a definition name something else."""
        remote = f"s3://b/x.cdxj?endpoint_override=127.0.0.1:{self._port}&scheme=http"
        web = self._draw((remote, "/dev/zero", "/proc/kmsg", str(self._outside), "demo:1e9"))
        critic = self._draw(("models/demo", "critic", "evil:judge", "/dev/zero", ".."))
        path = self._folder / self._draw(("topic.toml", "crawl/topic.toml"))
        said = {"critic": critic, "topics": [TOPIC], "web": web}
        with suppress(OSError):
            path.unlink(missing_ok=True)
            lines = (f"{key} = {json.dumps(value)}\n" for key, value in said.items())
            path.write_text("".join(lines))
            self._note(f"web {web!r}, critic {critic!r}", path)

    def _named(self) -> None:
        """Call files what nobody calls files."""
        for folder in (self._folder, self._folder / "crawl", self._folder / "archive"):
            name = self._rng.choice(_ODD) + self._draw(("", ".warc.gz", ".toml", ".db")).encode()
            with suppress(OSError):
                descriptor = os.open(os.fsencode(folder) + b"/" + name, os.O_CREAT | os.O_EXCL)
                os.close(descriptor)
                self.done.append(f"a file {name[:40]!r}")

    def _asked(self) -> None:
        """Leave word for the crawl, or a job for the studio."""
        remote = f"s3://b/x.cdxj?endpoint_override=127.0.0.1:{self._port}&scheme=http"
        follow = {"critic": self._draw(("critic-1", "../critic", "evil:judge")), "topic": TOPIC}
        follow["web"] = self._draw((remote, "demo", "/dev/zero"))
        job = [
            "crawl",
            "-a",
            f"web={remote}",
            "-a",
            "critic=evil:judge",
            "-a",
            "crawl_dir=./crawl",
        ]
        jobs = self._folder / ".studio" / "jobs" / "0"
        with suppress(OSError):
            if self._rng.random() < 0.5:
                (self._folder / "crawl" / "follow.json").write_text(json.dumps(follow))
                self.done.append(f"follow {follow}")
            else:
                jobs.mkdir(parents=True)
                (jobs / "job.json").write_text(json.dumps({"kind": "crawl", "arguments": job}))
                self._replace(self._rng.choice([jobs / "log", jobs, jobs.parent]))


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
