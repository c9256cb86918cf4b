"""Signals: once, the crawl ends in order; twice, at once; either way it goes on alike."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from integration.running import QUICK, TOPIC, Kept, crawl_until, start, start_up_to

from .lasting import LONG, assert_alike, assert_sound

if TYPE_CHECKING:
    from .conftest import Undisturbed


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
