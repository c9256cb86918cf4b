"""Servers that answer badly: the crawl goes on, in bounded memory, and says what was wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.report.outcomes import is_error, outcome

from .badweb import Measured, explore, good_pages
from .badweb_expected import HEAVY, OUTCOMES, SLOW
from .impatience import impatient

if TYPE_CHECKING:
    from .badweb import BadWeb

NO_LOOK_UP = "http://silent.example/"
MEGABYTE = 1_000_000
LIGHT = [case for case in OUTCOMES if case not in {*HEAVY, *SLOW}]
CHAINS = ("loop", "endless-chain", "chain", "to-nowhere")


@pytest.fixture(scope="module")
def slow(bad_web: BadWeb, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A crawl of all that never comes to an end, and of a good site; impatient."""
    folder = tmp_path_factory.mktemp("slow") / "crawl"
    return explore(
        folder,
        f"{bad_web.seeds('good', *SLOW)},{NO_LOOK_UP}",
        **impatient(2, NO_LOOK_UP, *(f"{bad_web.origins[case]}/" for case in SLOW)),
        weighed=False,
        RETRY_TIMES=0,
        TWISTED_DNS_RESOLVER="server.names.Names",
        TEST_NAMES=json.dumps({"silent.example": [None]}),
    )


@pytest.fixture(scope="module")
def light(bad_web: BadWeb, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A crawl of everything that is no matter of size, and of a good site."""
    folder = tmp_path_factory.mktemp("light") / "crawl"
    return explore(folder, bad_web.seeds(*LIGHT, *CHAINS, "good"), CONCURRENT_REQUESTS=32)


@pytest.fixture(scope="module")
def heavy(bad_web: BadWeb, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A crawl of everything that is too much, at the same time, and of a good site."""
    folder = tmp_path_factory.mktemp("heavy") / "crawl"
    seeds = bad_web.seeds(*HEAVY, "good")
    return explore(folder, seeds, budget=60)


def _outcome(row: dict[str, Any]) -> str:
    return outcome(row["status"], row["error"], row["duplicate_of"] is not None)


def _outcomes(run: Measured, web: BadWeb, cases: Iterable[str]) -> dict[str, str]:
    """Return what became of the front pages of some hosts."""
    pages = run.pages(web)
    return {case: _outcome(pages[f"{case}/"]) for case in cases}


def test_what_takes_too_long_is_given_up(slow: Measured, bad_web: BadWeb) -> None:
    assert _outcomes(slow, bad_web, SLOW) == {case: OUTCOMES[case] for case in SLOW}
    assert _outcome(slow.pages(bad_web)[NO_LOOK_UP]) == "timed out"  # a look-up, too


def test_the_cause_is_recorded(light: Measured, bad_web: BadWeb) -> None:
    assert _outcomes(light, bad_web, LIGHT) == {case: OUTCOMES[case] for case in LIGHT}


def test_what_is_too_much_is_cut_or_refused(heavy: Measured, bad_web: BadWeb) -> None:
    assert _outcomes(heavy, bad_web, HEAVY) == {case: OUTCOMES[case] for case in HEAVY}


def test_the_crawl_goes_on(
    slow: Measured, light: Measured, heavy: Measured, bad_web: BadWeb
) -> None:
    for run in (slow, light, heavy):
        assert run.returncode == 0
        assert "Traceback" not in run.stderr
        assert good_pages(run, bad_web) == 9
    assert light.kept.stop_reasons == ["frontier_empty"]
    assert heavy.kept.stop_reasons == ["budget"]


def test_the_summary_counts_the_causes(light: Measured, bad_web: BadWeb) -> None:
    counts = Counter(_outcome(row) for row in light.pages(bad_web).values())
    said = dict(part.rsplit(": ", 1) for part in light.summary("errors").split(", "))
    assert sum(map(int, said.values())) == sum(n for name, n in counts.items() if is_error(name))
    del said["other"]
    assert len(said) == 5
    assert said == {name: str(counts[name]) for name in said}


def test_memory_is_bounded(light: Measured, heavy: Measured) -> None:
    assert light.peak < 250 * MEGABYTE
    assert heavy.peak < 500 * MEGABYTE


def test_no_more_is_taken_than_can_be_used(heavy: Measured, bad_web: BadWeb) -> None:
    sent = {entry["case"]: entry["sent"] for entry in bad_web.requests() if entry["path"] == "/"}
    # beyond the 10 MB of a page, no more than the sockets of this machine hold unread
    limits = (Path(f"/proc/sys/net/ipv4/tcp_{end}mem").read_text() for end in "rw")
    held = sum(int(limit.split()[-1]) for limit in limits)
    for case in ("endless-chunks", "endless-body", "large", "large-unsaid"):
        assert sent[case] < 11 * MEGABYTE + held
    pages = heavy.pages(bad_web)
    assert pages["many-links/"]["links"] > 100_000  # of 680,000, in the part that is read
    assert pages["many-links/"]["links"] - pages["many-links/"]["dropped"] == 10_000


def test_redirects_end(light: Measured, bad_web: BadWeb) -> None:
    pages = light.pages(bad_web)
    assert _outcome(pages["loop-back/"]) == "redirect loop"
    chain = [name for name in pages if name.startswith("endless-chain")]
    assert len(chain) == 20
    assert Counter(map(_outcome, (pages[name] for name in chain))) == {
        "redirect": 19,
        "too many redirects": 1,
    }
    assert pages["chain/12"]["relevance"] == 0.9
    nowhere = [_outcome(pages[f"to-nowhere/{name}"]) for name in ("broken", "empty", "mail")]
    assert nowhere == ["redirect without target"] * 3


def test_a_page_in_the_wrong_encoding_is_read(light: Measured, bad_web: BadWeb) -> None:
    pages = light.pages(bad_web)
    for case in (case for case in LIGHT if case.startswith("charset")):
        assert pages[f"{case}/next"]["status"] == 200
        if case != "charset-wrong":
            assert "Fahrräder" in pages[f"{case}/"]["title"]
