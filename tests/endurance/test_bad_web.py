"""Every case of the bad web in a crawl of its own; ends with the table of the docs.

Long form only: `tests/integration/test_bad_web_*.py` crawl many cases at once.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from integration.badweb import BadWeb, explore, good_pages, listening
from integration.badweb_expected import OUTCOMES, TRAPS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    os.environ.get("FOCUSCRAWL_ENDURANCE") != "1", reason="make endurance"
)

BUDGET = 300
REDIRECTS = {
    "loop": "redirect loop: 1",
    "endless-chain": "redirects without end: 1",
    "chain": "none",
    "to-nowhere": "redirect to nowhere: 3",
}
REFUSED = {"statuses": "no HTTP: 7", "long-urls": "redirect to nowhere: 2"}
BUSY = {
    **dict.fromkeys(("busy-seconds", "busy-date", "busy-unsaid", "busy-nonsense"), "none"),
    "busy-for-a-day": "none",
    "busy-for-ever": "HTTP 503: 2",
}
#: why a crawl ends, if not because nothing is left
ENDS = {
    **dict.fromkeys(("busy-for-a-day", "busy-for-ever"), "hosts_unavailable"),
    "many-links": "budget",
}
NAMES = {"nowhere.example": [[]], "silent.example": [None]}


def _errors(case: str) -> str:
    """Return what the summary says of errors."""
    outcome = OUTCOMES[case]
    return "none" if outcome in ("page", "no HTML") else f"{outcome}: 1"


EXPECTED = {
    **{case: _errors(case) for case in OUTCOMES},
    **REDIRECTS,
    **REFUSED,
    **BUSY,
    **dict.fromkeys((*TRAPS, "robots-forbids"), "none"),
    "nowhere.example": "host not found: 1",
    "silent.example": "timed out: 1",
}


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BadWeb]:
    with listening(tmp_path_factory.mktemp("bad-web") / "requests.jsonl") as web:
        yield web


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    rows = ["| case | fetches | good pages | errors | stopped | s | MB |", "|---|" + "---|" * 6]
    yield rows
    print("\n" + "\n".join(rows))


@pytest.mark.parametrize("case", EXPECTED)
def test_the_crawl_goes_on_and_says_what_was_wrong(
    web: BadWeb, table: list[str], tmp_path: Path, case: str
) -> None:
    front = f"http://{case}/" if case in NAMES else web.seeds(case)
    run = explore(
        tmp_path / "crawl",
        f"{front},{web.seeds('good')}",
        budget=BUDGET,
        DOWNLOAD_TIMEOUT=5 if EXPECTED[case].startswith("timed out") else 60,
        RETRY_TIMES=2,
        TWISTED_DNS_RESOLVER="server.names.Names",
        TEST_NAMES=json.dumps(NAMES),
    )
    good, (reason,) = good_pages(run, web), run.kept.stop_reasons
    errors = run.summary("errors")
    table.append(
        f"| {case} | {len(run.kept.order)} | {good} of 9 | {errors} | {reason} "
        f"| {run.seconds:.1f} | {run.peak / 1e6:.0f} |"
    )
    assert (run.returncode, good, errors) == (0, 9, EXPECTED[case])
    assert "Traceback" not in run.stderr
    assert run.peak < 450_000_000
    if case in TRAPS:
        assert len(run.kept.order) <= BUDGET
    else:
        assert reason == ENDS.get(case, "frontier_empty")
    assert ("no HTML" in OUTCOMES.get(case, "")) == ("1 no HTML" in run.summary("duplicates"))
