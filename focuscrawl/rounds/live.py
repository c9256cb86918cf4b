"""A round's fetches in one bucket of the live Web: by a process of Scrapy."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

from focuscrawl.crawl import CrawlFolder
from focuscrawl.errors import UserError
from focuscrawl.foundation.python_processes import start_python
from focuscrawl.rounds.under_way import UnderWay

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.rounds.context import RoundsContext

_SPIDER = "focuscrawl.round_spider"  # not among the spiders of the project: nobody else needs it
# not `scrapy crawl`: that reads the `scrapy.cfg` of the current folder, and imports from there
_PROGRAM = (
    "import sys; from focuscrawl.commands.anywhere import crawl_round; crawl_round(sys.argv[1:])"
)
_LOOK = 0.5  # seconds between two looks at the process
_PATIENCE = 30.0  # seconds in which whoever did this before has come to its end


def fetch_live(context: RoundsContext, bucket: int, round_: int) -> None:
    """Have the spider ``round`` fetch what was chosen of a bucket.

    What it has fetched is kept until the round is over, see `UnderWay`: a process that is killed
    is gone on with. It ends with this one, however that ends, as it reads the other end of a
    pipe: no host is ever asked by it and by whoever does the task again.

    Raises
    ------
    UserError
        The process ended before the round did.
    """
    tables = context.tables
    under_way = UnderWay(tables, bucket, round_)
    log = under_way.folder / "scrapy.log"
    given = {"tables": tables.root, "bucket": bucket, "number": round_}
    settings = {"LOG_LEVEL": "WARNING", "FOCUSCRAWL_PROGRESS": 0} | context.settings
    command = ["-c", _PROGRAM, "-s", f"SPIDER_MODULES={_SPIDER}"]
    command += [part for key, value in given.items() for part in ("-a", f"{key}={value}")]
    command += ["-a", f"crawl_dir={under_way.folder}"]
    command += [part for key, value in settings.items() for part in ("-s", f"{key}={value}")]
    _wait_until_free(under_way.folder)
    with (
        log.open("ab") as said,
        start_python(command, stdin=subprocess.PIPE, stdout=said, stderr=said) as process,
    ):
        while _runs(process):
            under_way.copy_if_due()
    if not tables.has(f"pages/{bucket:03}/{round_:05}"):
        under_way.copy()
        lines = log.read_text("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        raise UserError(f"round {round_} was not fetched in bucket {bucket}: {lines[-1]} ({log})")
    under_way.close()


def _runs(process: subprocess.Popen[bytes]) -> bool:
    """Tell, after a while, whether a process still runs."""
    try:
        process.wait(_LOOK)
    except subprocess.TimeoutExpired:
        return True
    return False


def _wait_until_free(folder: Path) -> None:
    """Wait until nobody fetches in a folder; one who does not end is refused, not waited for."""
    last = time.monotonic() + _PATIENCE
    while CrawlFolder(folder).in_use and time.monotonic() < last:
        time.sleep(_LOOK)
