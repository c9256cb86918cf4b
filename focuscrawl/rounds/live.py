"""A round's fetches in one bucket of the live Web: by a process of Scrapy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from focuscrawl.rounds.context import RoundsContext

_SPIDER = "focuscrawl.round_spider"  # not among the spiders of the project: nobody else needs it


def fetch_live(context: RoundsContext, bucket: int, round_: int) -> None:
    """Have ``scrapy crawl round`` fetch what was chosen of a bucket.

    What it has fetched is kept beside the tables until the round is over, where that is a folder
    of this machine: a process that is killed is gone on with, and fetches nothing twice.

    Raises
    ------
    UserError
        The process ended before the round did.
    """
    tables, name = context.tables, f"{bucket:03}-{round_:05}"
    scratch = tables.local(f"under-way/{name}") or Path(tempfile.mkdtemp())
    scratch.mkdir(parents=True, exist_ok=True)
    log = scratch / "scrapy.log"
    given = {"tables": tables.root, "bucket": bucket, "number": round_}
    settings = {"LOG_LEVEL": "WARNING", "FOCUSCRAWL_PROGRESS": 0} | context.settings
    command = [sys.executable, "-m", "scrapy", "crawl", "round", "-s", f"SPIDER_MODULES={_SPIDER}"]
    command += [part for key, value in given.items() for part in ("-a", f"{key}={value}")]
    command += ["-a", f"crawl_dir={scratch}"]
    command += [part for key, value in settings.items() for part in ("-s", f"{key}={value}")]
    with log.open("ab") as said:
        environment = {"SCRAPY_SETTINGS_MODULE": "focuscrawl.settings"} | os.environ
        subprocess.run(command, stdout=said, stderr=said, env=environment, check=False)
    if not tables.has(f"pages/{bucket:03}/{round_:05}"):
        lines = log.read_text("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        raise UserError(f"round {round_} was not fetched in bucket {bucket}: {lines[-1]} ({log})")
    shutil.rmtree(scratch, ignore_errors=True)
