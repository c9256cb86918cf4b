"""A crawl that is killed at random moments ends like one that was left alone."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from integration.running import crawl, start_up_to

from .lasting import LONG, assert_alike, assert_sound

if TYPE_CHECKING:
    from .conftest import Undisturbed

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
