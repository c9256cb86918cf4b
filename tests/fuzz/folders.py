"""Commands, and the studio, with the folder of a stranger.

Each ends, with an exit code of its own, says no traceback, leaves everything outside of the folder
as it was, and connects to nobody.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from random import Random
from urllib.parse import quote

from integration import warm
from integration.serving import asked
from integration.studio import serving

from . import ROOT
from .hostile import FETCHES, TOPIC, Harm, make_sound

_PATIENCE = 600.0  # seconds after which something hangs; the longest takes some
_CODES = (0, 1, 2)
_CRAWL = ("-a", f"topic={TOPIC}", "-a", "seeds=models/demo/seeds.csv", "-a", "web=demo")
_ON = (*_CRAWL, "-a", f"budget={FETCHES + 2}")
#: `G` is the stranger's folder
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("status", "G/crawl", "--json"),
    ("report", "G/crawl"),
    ("report", "G/crawl", "--out", "report", "--csv", "fetches.csv"),
    ("why", "G/crawl", "=U"),
    ("why", "G/crawl", "http://nowhere.example/"),
    ("distill", "G/crawl", "--csv", "hubs.csv", "--html", "hubs.html"),
    ("collect", "G/crawl", "--out", "pages.jsonl"),
    ("collect", "G/crawl", "--out", "pages.warc.gz"),
    ("collect", "G/crawl", "--out", "links.csv", "--links"),
    ("knowledge", "learn", "G/crawl", "--topic", TOPIC, "--out", "knowledge.db"),
    ("knowledge", "learn", "G/crawl", "--topic", TOPIC, "--out", "G/knowledge.db"),
    ("knowledge", "show", "G/knowledge.db"),
    ("apprentice", "train", "G/crawl", "--out", "apprentice"),
    ("topic", "train", "G/topic.toml", "--out", "critic"),
    ("topic", "apply", "G/crawl", "G/topic.toml"),
    ("topic", "suggest", "G/crawl", "--out", "questions.csv"),
    ("topic", "mark", "G/crawl", "/Sports/Hockey"),
    ("topic", "neighbours", "G/topic.toml", "--crawl", "G/crawl", "--out", "around.csv"),
    ("topic", "add", "G/topic.toml", "--good", "=U"),
    ("topic", "tree", "G/critic"),
    ("critic", "check", "G/critic", "--web", "demo"),
    ("critic", "quality", "G/critic", "--topic", TOPIC, "--web", "demo"),
    ("web", "info", "G/archive/web.cdxj"),
    ("web", "info", "G/archive/web.parquet"),
    ("web", "info", "G/archive/web.warc.gz"),
    ("web", "get", "G/archive/web.cdxj", "=U"),
    ("web", "index", "G/archive/web.warc.gz", "--out", "G/archive/new.cdxj"),
    ("pause", "G/crawl", "--wait", "1"),
    ("resume", "G/crawl"),
    ("stop", "G/crawl", "--wait", "1"),
    ("crawl", *_ON, "-a", "crawl_dir=G/crawl"),
    ("crawl", *_ON, "-a", "crawl_dir=G/crawl", "-s", "FOCUSCRAWL_TEXT=1"),
    ("crawl", *_ON, "-a", "crawl_dir=a", "-a", "apprentice=G/apprentice"),
    ("crawl", *_ON, "-a", "crawl_dir=b", "-a", "within=G/crawl"),
    ("crawl", *_ON, "-a", "crawl_dir=c", "-a", "knowledge=G/knowledge.db"),
    ("crawl", *_ON, "-a", "crawl_dir=d", "-a", "critic=G/critic"),
    ("recrawl", TOPIC, "--budget", "5", "--web", "demo", "--knowledge", "G/knowledge.db"),
    ("plan", *_CRAWL, "-a", "critic=G/critic", "--most", "2"),
    ("lab", "report", "G/crawl"),
)
_PAGES = (
    *("/", "/api/v1/topics", "/api/v1/critics", "/api/v1/crawls", "/api/v1/jobs", "/topics/new"),
    *("/crawls/new", "/corpora/new", "/parts/crawls", "/parts/jobs"),
)
_OF_A_CRAWL = (
    *("", "/live", "/question", "/moved", "/hubs", "/hosts", "/pages", "/frontier", "/exports"),
    *("/page?url=U", "/page/why?url=U", "/page/text?url=U"),
)
#: what is posted for a crawl
_POSTED: dict[str, dict[str, object]] = {
    **{verb: {} for verb in ("go-on", "follow", "pause", "stop", "resume")},
    "judge": {"url": "U", "verdict": "good"},
    "budget": {"budget": "30"},
    "exports": {"export": "collect", "format": "jsonl"},
}


class World:
    """A stranger's folder, what is the user's beside it, and somebody who listens.

    Parameters
    ----------
    where : an empty folder
    """

    def __init__(self, where: Path) -> None:
        self._where = where
        self._sound = where / "sound"
        self.tries = 0
        for name in ("outside/deeper", "home", "tmp", "here"):
            (where / name).mkdir(parents=True)
        outside = where / "outside"
        for name in ("precious", "deeper/precious", "precious.db"):
            (outside / name).write_text("precious\n")
        make_sound(self._sound, self._command)
        with closing(sqlite3.connect(self._sound / "crawl" / "crawl.db")) as database:
            found = database.execute("SELECT url FROM pages WHERE status = 200 LIMIT 1")
            ((self._url,),) = found.fetchall()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setblocking(False)
        self._port = self._listening.getsockname()[1]

    def close(self) -> None:
        """Listen no more."""
        self._listening.close()

    def try_commands(self, seed: int, most: int | None = None) -> None:
        """Give a folder to commands.

        Parameters
        ----------
        seed : what is drawn by
        most : so many of `COMMANDS`, drawn; None: all
        """
        rng = Random(seed)
        given, done = self._given(rng, "given")
        commands = COMMANDS if most is None else rng.sample(COMMANDS, most)
        before = self._seen()
        for command in commands:
            words = [word.replace("G/", f"{given}/").replace("=U", self._url) for word in command]
            said = f"seed {seed}, {done}: focuscrawl {' '.join(command)}"
            self._command(self._where / "here", *words, said=said)
            if command[0] == "pause":  # a crawl would wait, as it was asked to
                with suppress(OSError):
                    (given / "crawl" / "control.json").unlink()
            assert self._seen() == before, f"{said}: something outside has changed"
            self._nobody_came(said)

    def try_studio(self, seeds: range) -> None:
        """Serve some such folders to who clicks at everything."""
        folders = self._where / "served"
        shutil.rmtree(folders, ignore_errors=True)
        folders.mkdir()
        done = {seed: self._given(Random(seed), f"served/{seed}")[1] for seed in seeds}
        before = self._seen()
        with _environment(self._environment()), serving(folders) as address:
            base, _, token = address.partition("/?token=")
            headers = {"Authorization": f"Bearer {token}", "Origin": base}
            headers["Content-Type"] = "application/json"
            for path, data in self._asks(seeds):
                said = f"seeds {seeds}, {done}: {path} {data or ''}"
                status, text = asked(
                    base + path, None if data is None else json.dumps(data).encode(), headers
                )
                assert status < 500, f"{said}: {status} {text[-3000:]}"
                assert self._seen() == before, f"{said}: something outside has changed"
                self._nobody_came(said)
                self.tries += 1
            until = time.monotonic() + _PATIENCE
            while '"running"' in (text := asked(f"{base}/api/v1/jobs", None, headers)[1]):
                assert time.monotonic() < until, f"seeds {seeds}, {done}: jobs hang: {text}"
                time.sleep(0.2)
            assert self._seen() == before, f"{done}: a job has changed something outside"
            self._nobody_came(f"seeds {seeds}, {done}: a job")

    def _asks(self, seeds: range) -> Iterator[tuple[str, dict[str, object] | None]]:
        """Yield what is asked for, and what is posted."""
        for path in self._paths(seeds):
            yield path.replace("=U", f"={quote(self._url, safe='')}"), None
        for seed in seeds:
            for verb, data in _POSTED.items():
                said = {key: self._url if value == "U" else value for key, value in data.items()}
                yield f"/api/v1/crawls/{seed}/crawl/{verb}", said
            yield f"/api/v1/topics/{seed}/topic.toml/train", {}
            yield f"/api/v1/corpora/{seed}/go-on", {"pages": "5"}

    def _paths(self, seeds: range) -> Iterator[str]:
        yield from _PAGES
        for seed in seeds:
            for of_it in _OF_A_CRAWL:
                yield f"/api/v1/crawls/{seed}/crawl{of_it}"
                if not of_it.startswith("/page/"):
                    yield f"/crawls/{seed}/crawl{of_it}"
            yield from (f"/api/v1/corpora/{seed}", f"/corpora/{seed}")
            for topic in ("topic.toml", "crawl/topic.toml"):
                yield from (f"/api/v1/topics/{seed}/{topic}", f"/topics/{seed}/{topic}/definition")
                yield from (f"/topics/{seed}/{topic}/{what}" for what in ("examples", "quality"))
            yield from (
                f"/api/v1/critics/{seed}/critic/classes",
                f"/critics/{seed}/critic/classes",
            )

    def _given(self, rng: Random, name: str) -> tuple[Path, list[str]]:
        given, here = self._where / name, self._where / "here"
        for folder in (given, here):
            shutil.rmtree(folder, ignore_errors=True)
        here.mkdir()
        shutil.copytree(self._sound, given, symlinks=True)
        harm = Harm(given, self._where / "outside", self._port, rng)
        harm.do()
        return given, harm.done

    def _command(self, here: Path, *words: str, said: str = "") -> None:
        self.tries += 1
        with Path(os.devnull).open("w", encoding="utf-8") as nothing:
            process = warm.WarmProcess(
                list(words),
                cwd=here,
                env=self._environment(),
                stdout=nothing.fileno(),
                program="focuscrawl",
            )
            with process:
                began = time.monotonic()
                err = process.communicate(_PATIENCE)[1]
                code = process.wait()
        assert time.monotonic() - began < _PATIENCE, f"{said}: it hangs\n{err[-3000:]}"
        assert code in _CODES, f"{said}: exit code {code}\n{err[-3000:]}"
        assert "Traceback" not in err, f"{said}: {err[-5000:]}"
        if not said:
            assert code == 0, f"{words}: {err}"

    def _environment(self) -> dict[str, str]:
        kept = ("PATH", "LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        return {name: os.environ[name] for name in kept if name in os.environ} | {
            "PYTHONPATH": str(ROOT),
            "HOME": str(self._where / "home"),
            "XDG_STATE_HOME": str(self._where / "home"),
            "TMPDIR": str(self._where / "tmp"),
            "FOCUSCRAWL_CACHE": str(self._where / "cache"),
            "AWS_ACCESS_KEY_ID": "a-key-of-the-user",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def _seen(self) -> dict[str, object]:
        """Return what there is of the user's: names, kinds, times and contents."""
        names = [path for path in self._where.iterdir() if path.name in {"outside", "sound"}]
        seen: dict[str, object] = {path.name: None for path in self._where.iterdir()}
        for path in [*names, *(self._where / "outside").rglob("*")]:
            about = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            seen[str(path)] = (about.st_mode, about.st_ino, about.st_mtime_ns, content)
        seen.pop("cache", None)
        return seen

    def _nobody_came(self, said: str) -> None:
        with suppress(BlockingIOError):
            connection, _ = self._listening.accept()
            connection.close()
            raise AssertionError(f"{said}: it connected to where a file said")


@contextmanager
def _environment(wanted: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def main(seconds: float) -> int:
    """Search for so long, or until something is found."""
    until, seed, finds = time.monotonic() + seconds, time.time_ns(), 0
    with tempfile.TemporaryDirectory() as where, ExitStack() as stack:
        world = World(Path(where))
        stack.callback(world.close)
        try:
            while time.monotonic() < until:
                world.try_commands(seed)
                world.try_studio(range(seed, seed + 5))
                seed += 5
        except AssertionError as error:
            finds = 1
            print(f"folders: {error}")  # noqa: T201
    warm.close()
    print(f"folders: {world.tries:,} executions; {finds} finds")  # noqa: T201
    return finds
