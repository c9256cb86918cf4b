"""Rounds of the live Web for tests: a plan for the local one, whether it was asked politely."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.report.measures import load_pages

from .impatience import impatient
from .running import BICYCLES, QUICK

if TYPE_CHECKING:
    from .conftest import LocalWeb

DELAY = 0.2
JITTER = 0.05  # seconds that the event loop may be held between its clock and that of the test
#: requests say when they were sent: what is seen when they arrive has waited for a processor
STAMPING = "server.downloadhandlers.Stamping"


def settings(local_web: LocalWeb) -> dict[str, object]:
    given = {
        "DOWNLOAD_DELAY": DELAY,
        "DOWNLOAD_DELAY_JITTER": 0,
        "RETRY_TIMES": 1,
        "DOWNLOAD_MAXSIZE": 100_000,
        "DOWNLOAD_HANDLERS": json.dumps(dict.fromkeys(("http", "https"), STAMPING)),
    }
    return QUICK | given | impatient(1, f"{local_web.origins['slow']}/", only=True)


def write_plan(path: Path, local_web: LocalWeb, **more: Any) -> Path:
    plan: dict[str, Any] = {
        **BICYCLES,
        "seeds": f"{local_web.origins['a']}/",
        "budget": 1000,
        "round": 24,
        "buckets": 2,
    } | more
    lines = [f"{key} = {json.dumps(value)}" for key, value in plan.items()]
    lines += ["[settings]", *(f"{k} = {json.dumps(v)}" for k, v in settings(local_web).items())]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def pages_of(folder: Path) -> dict[str, tuple[float, str | None]]:
    pages = load_pages(str(folder))
    rows = zip(pages["url"], pages["relevance"], pages["duplicate_of"], strict=True)
    return {url: (relevance, twin) for url, relevance, twin in rows}


def assert_polite(local_web: LocalWeb, since: int = 0) -> None:
    requests = local_web.requests()[since:]
    for site in ("a", "b", "c"):
        own = [each for each in requests if each["site"] == site]
        own.sort(key=lambda each: float(each["began"]))
        assert all(after["began"] >= before["ended"] for before, after in pairwise(own))
        # robots.txt is asked for just before the first page
        sent = [float(each["sent_at"]) for each in own if each["path"] != "/robots.txt"]
        least = min(after - before for before, after in pairwise(sent))
        print(f"{site}: {len(sent)} pages, {least:.3f} s apart at least")  # noqa: T201 - for -s
        assert least > DELAY - JITTER
        assert "/private/diary" not in {each["path"] for each in own}
