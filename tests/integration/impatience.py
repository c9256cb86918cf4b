"""Settings of a crawl that gives up soon where nobody answers, and waits long for all others."""

from __future__ import annotations

import json
import re

from focuscrawl.settings import DOWNLOADER_MIDDLEWARES


def impatient(seconds: float, *beginnings: str, only: bool = False) -> dict[str, object]:
    """Return settings.

    Parameters
    ----------
    seconds : to wait for answers from URLs that begin so
    only : these URLs themselves are meant, and no others that begin so
    """
    middlewares = {**DOWNLOADER_MIDDLEWARES, "server.downloadermiddlewares.Impatient": 600}
    return {
        "DOWNLOAD_TIMEOUT": 120,
        "DOWNLOADER_MIDDLEWARES": json.dumps(middlewares),
        "TEST_SECONDS": seconds,
        "TEST_IMPATIENT": f"({'|'.join(map(re.escape, beginnings))}){'' if only else '.*'}",
    }
