"""A crawl that is killed, stopped, out of room or out of power ends like one left alone."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration.running import (
    DEMO,
    QUICK,
    ROOT,
    TOPIC,
    Kept,
    Run,
    command,
    crawl,
    crawl_until,
    environment,
    start,
    start_up_to,
)

from .lasting import LONG, assert_alike, assert_sound


@dataclass(frozen=True)
class Undisturbed:
    """Arguments of a crawl, and what it keeps if nothing happens to it."""

    arguments: dict[str, object]
    kept: Kept

    @property
    def budget(self) -> int:
        return int(str(self.arguments["budget"]))

    def resume(self, folder: Path) -> Run:
        return crawl(folder, **self.arguments)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """An apprentice on the synthetic web, with its calendars, sessions and copies."""
    arguments: dict[str, object] = DEMO | {
        "strategy": "apprentice",
        "budget": 1000 if LONG else 100,
    }
    done = crawl(tmp_path_factory.mktemp("undisturbed") / "crawl", fresh=True, **arguments)
    return Undisturbed(arguments, done.kept)


# -- killed ------------------------------------------------------------------------------------

KILLS = 30 if LONG else 3
#: moments of a second in which a page is committed, a lesson learned and adopted
_WITHIN = 0.12
#: pages that it may have fetched more by then, on a machine that is slow to kill it
_FURTHER = 30


def kill_often(folder: Path, last: int, kills: int, seed: int, **arguments: object) -> int:
    """Kill a crawl so often and resume it each time; return how many kills it lived to see.

    The moments are drawn by `seed`: a number of pages up to `last`, and a fraction of a second.
    Every fifth comes while the crawl is being opened.
    """
    rng = random.Random(seed)
    moments = sorted(rng.sample(range(1, last), kills))
    killed = 0
    for i, moment in enumerate(moments):
        with start_up_to(moment + _FURTHER, folder, **arguments) as running:
            if i % 5 == 4:
                time.sleep(rng.uniform(0.0, 2.0))
            else:
                running.wait_for(moment)
                time.sleep(rng.uniform(0.0, _WITHIN))
            run = running.stop(signal.SIGKILL)
        if run.returncode == -signal.SIGKILL:
            killed += 1
        assert_sound(run.kept)
    return killed


def test_killed_at_random_moments(tmp_path: Path, undisturbed: Undisturbed) -> None:
    folder = tmp_path / "crawl"
    killed = kill_often(folder, undisturbed.budget * 3 // 4, KILLS, 0, **undisturbed.arguments)
    done = undisturbed.resume(folder)
    print(f"killed and resumed {killed} of {KILLS} times")
    assert killed == KILLS
    assert_alike(done.kept, undisturbed.kept)


@pytest.mark.webs
@pytest.mark.skipif(not LONG, reason="make endurance")
def test_killed_on_a_recorded_web(tmp_path: Path, uci_warc: Path, webs_dir: Path) -> None:
    arguments: dict[str, object] = {
        "web": uci_warc,
        "critic": "models/demo",
        "topic": "/Computers",
        "seeds": webs_dir / "uci" / "portal.txt",
        "budget": 1000,
    }
    whole = crawl(tmp_path / "whole", **arguments)
    folder = tmp_path / "crawl"
    assert kill_often(folder, 750, 10, 1, **arguments) == 10
    assert_alike(crawl(folder, **arguments).kept, whole.kept)


# -- stopped by signals: once, it ends in order; twice, at once --------------------------------


# Ctrl-C is SIGINT; that SIGTERM does the same is among the integration tests
@pytest.mark.parametrize("once", [signal.SIGINT, signal.SIGTERM] if LONG else [signal.SIGINT])
def test_once_it_ends_in_order(tmp_path: Path, undisturbed: Undisturbed, once: int) -> None:
    folder = tmp_path / "crawl"
    stopped = crawl_until(folder, 40, once, **undisturbed.arguments)
    assert stopped.returncode == 0
    assert stopped.kept.stop_reasons == ["interrupted"]
    assert "Traceback" not in stopped.stderr
    assert "\nstopped       interrupted" in stopped.stderr
    assert 40 <= assert_sound(stopped.kept) < undisturbed.budget
    assert_alike(undisturbed.resume(folder).kept, undisturbed.kept)


@pytest.fixture
def silent_server() -> Iterator[socket.socket]:
    """A server that takes in requests and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        server.settimeout(600)  # seconds after which a crawl hangs
        yield server


def test_twice_it_does_not_wait_for_an_answer(
    tmp_path: Path, silent_server: socket.socket
) -> None:
    silent_site = f"http://127.0.0.1:{silent_server.getsockname()[1]}/"
    patient = QUICK | {"ROBOTSTXT_OBEY": 0, "DOWNLOAD_TIMEOUT": 3600}
    kept, states = Kept(tmp_path / "crawl"), "SELECT url, state FROM frontier"
    with start(kept.folder, **patient, topic=TOPIC, seeds=silent_site) as running:
        connection, _ = silent_server.accept()
        with connection:
            assert connection.recv(4096).startswith(b"GET / ")
            while not kept.query(states):
                time.sleep(0.05)  # the store is written beside
            running.signal(signal.SIGINT)
            running.wait_until_said("Received SIGINT")
            stopped = running.stop(signal.SIGINT)
    assert "forcing unclean shutdown" in stopped.stderr
    assert assert_sound(stopped.kept) == 0
    assert kept.query(states) == [(silent_site, "queued")]


@pytest.mark.skipif(not LONG, reason="make endurance")
def test_twice_in_a_replay(tmp_path: Path, undisturbed: Undisturbed) -> None:
    folder = tmp_path / "crawl"
    with start_up_to(150, folder, **undisturbed.arguments) as running:
        running.wait_for(100)
        running.signal(signal.SIGINT)
        running.stop(signal.SIGINT)
    assert_alike(undisturbed.resume(folder).kept, undisturbed.kept)


# -- no room -----------------------------------------------------------------------------------


def starved(folder: Path, undisturbed: Undisturbed, limit: int | None) -> tuple[int, str]:
    """Crawl with files that may not grow beyond `limit` bytes; return exit code and output."""

    def confine() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        command(folder, **undisturbed.arguments),
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
        check=False,
        preexec_fn=confine,
    )
    return done.returncode, done.stderr


def assert_says_why(code: int, said: str) -> None:
    assert code == 1
    assert "The crawl database cannot be written" in said
    assert "Traceback" not in said


def test_a_file_that_may_not_grow(tmp_path: Path, undisturbed: Undisturbed) -> None:
    folder = tmp_path / "crawl"
    pages = []
    size = (undisturbed.kept.folder / "crawl.db").stat().st_size
    for share in (0.3, 0.6) if LONG else (0.5,):
        assert_says_why(*starved(folder, undisturbed, int(share * size)))
        pages.append(assert_sound(Kept(folder)))
    assert 0 < pages[0] <= pages[-1] < undisturbed.budget
    assert_alike(undisturbed.resume(folder).kept, undisturbed.kept)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "focuscrawl", str(mounted)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system")
    yield mounted
    subprocess.run(["umount", str(mounted)], check=True)


@pytest.mark.skipif(not LONG, reason="make endurance")
def test_a_full_disk(tmp_path: Path, small_disk: Path, undisturbed: Undisturbed) -> None:
    folder = small_disk / "crawl"
    assert_says_why(*starved(folder, undisturbed, None))
    assert_says_why(*starved(folder, undisturbed, None))  # still full
    roomier = tmp_path / "crawl"
    shutil.copytree(folder, roomier)
    assert 0 < assert_sound(Kept(roomier)) < undisturbed.budget
    assert_alike(undisturbed.resume(roomier).kept, undisturbed.kept)


# -- no power ----------------------------------------------------------------------------------
#
# SQLite syncs the write-ahead log before it copies pages of it into the database, and not at each
# commit (``synchronous = NORMAL``). So what may be lost is the log after the last frame that a
# checkpoint has begun to copy, and of that any part: a disk writes blocks in the order it likes.

LOSSES = 30 if LONG else 3
_HEADER, _FRAME_HEADER = 32, 24  # bytes, of the log and of each frame
_COPYING = 128  # where the index of the log says up to which frame it is being copied
_BLOCK = 4096


def test_power_is_lost_between_two_writes(tmp_path: Path, undisturbed: Undisturbed) -> None:
    rng = random.Random(2)
    moments = sorted(rng.sample(range(1, undisturbed.budget * 3 // 4), LOSSES))
    folders = [tmp_path / f"lost-{moment}" for moment in moments]
    last = moments[-1] + 10
    with start_up_to(
        last, tmp_path / "crawl", fresh=True, **undisturbed.arguments
    ) as running:  # a child of this process, which can tell that it has stopped
        for moment, folder in zip(moments, folders, strict=True):
            running.wait_for(moment)
            running.signal(signal.SIGSTOP)
            os.waitid(os.P_PID, running.pid, os.WSTOPPED)  # none of its threads goes on
            shutil.copytree(tmp_path / "crawl", folder)
            running.signal(signal.SIGCONT)
    lost = [lose_power(folder, rng) for folder in folders]
    assert any(lost)
    resumed = folders[2::4] if LONG else folders[-1:]
    left = [assert_sound(Kept(folder)) for folder in folders]
    print(f"{sum(lost):,} bytes lost at {LOSSES} moments; pages left: {left}")
    for folder in resumed:
        assert_alike(undisturbed.resume(folder).kept, undisturbed.kept)


def lose_power(folder: Path, rng: random.Random) -> int:
    """Do to a crawl's files, copied while it ran, what a power cut may do; return bytes lost."""
    log, index = folder / "crawl.db-wal", folder / "crawl.db-shm"
    if not log.exists():
        return 0
    data = bytearray(log.read_bytes())
    shared = index.read_bytes()
    index.unlink()  # memory shared by processes: no file that outlives the machine
    if len(data) <= _HEADER:
        return 0
    page_size = struct.unpack_from(">I", data, 8)[0]
    copying = struct.unpack_from("=I", shared, _COPYING)[0]
    synced = _HEADER + copying * (page_size + _FRAME_HEADER)
    if synced >= len(data):
        return 0
    end = rng.randrange(synced, len(data) + 1)
    torn = 0
    for block in range(-(-synced // _BLOCK), end // _BLOCK):
        if rng.random() < 0.02:
            data[block * _BLOCK : (block + 1) * _BLOCK] = bytes(_BLOCK)
            torn += _BLOCK
    log.write_bytes(data[:end])
    return len(data) - end + torn
