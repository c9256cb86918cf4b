"""A machine that loses power: whatever was not synced to the disk may be missing or in pieces.

SQLite syncs the write-ahead log before it copies pages of it into the database, and not at each
commit (``synchronous = NORMAL``). So what may be lost is the log after the last frame that a
checkpoint has begun to copy, and of that any part: a disk writes blocks in the order it likes.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from integration.running import Kept, start_up_to

from .lasting import LONG, assert_alike, assert_sound

if TYPE_CHECKING:
    from .conftest import Undisturbed

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
