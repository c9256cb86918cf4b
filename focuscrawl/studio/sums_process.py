"""The program that makes a sum over whole crawls, and writes it as JSON; see `background`."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.report.status import open_store
from focuscrawl.report.url_tables import host_map

if TYPE_CHECKING:
    from collections.abc import Callable

    from focuscrawl.store import CrawlStore


_TOP = 100  # of each list
_NICE = 10  # the crawl beside it comes first


def _hubs(store: CrawlStore, *, option: str) -> dict[str, Any]:
    from focuscrawl.report.prestige import Distillation  # noqa: PLC0415 - pandas takes a while

    found = Distillation.of(store, option or None)

    def listed(score: str) -> list[dict[str, Any]]:
        rows = found.best(score, _TOP).rename(columns={score: "best"})
        rows = rows.astype(object).where(rows.notna(), None)
        return [{str(name): row[name] for name in row} for row in rows.to_dict("records")]

    sites = found.popular.head(_TOP).reset_index().to_dict("records")
    return {
        "facts": found.facts,
        "between_sites": found.between_sites,
        "hubs": listed("hub"),
        "authorities": listed("authority"),
        "sites": sites,
    }


def _hosts(store: CrawlStore, *, option: str) -> dict[str, Any]:
    del option
    found = host_map(store)
    return {"hosts": [each._asdict() for each in found.hosts], "links": found.links}


def _compare(a: CrawlStore, b: CrawlStore, *, option: str) -> dict[str, Any]:
    from focuscrawl.report.comparison import two_crawls  # noqa: PLC0415 - pandas takes a while

    return two_crawls(a, b, Path(option))


#: what can be asked for, of how many crawls
SUMS: dict[str, Callable[..., dict[str, Any]]] = {
    "hubs": _hubs,
    "hosts": _hosts,
    "compare": _compare,
}


def main(what: str, option: str, *folders: str) -> None:
    """Write ``{"value": ...}`` or ``{"error": one sentence}``."""
    os.nice(_NICE)
    found: dict[str, Any]
    try:
        with ExitStack() as opened:
            stores = [opened.enter_context(closing(open_store(Path(each)))) for each in folders]
            found = {"value": SUMS[what](*stores, option=option)}
    except UserError as error:
        found = {"error": str(error)}
    with suppress(BrokenPipeError):  # the studio has ended
        sys.stdout.write(json.dumps(found, default=_plain))
        sys.stdout.flush()


def _plain(value: Any) -> Any:
    """Return a number of numpy as one of Python."""
    return value.item()


if __name__ == "__main__":
    main(*sys.argv[1:])
