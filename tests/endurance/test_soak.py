"""A long crawl uses no more of anything at its end than at its beginning."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from integration.running import TOPIC, Kept

from focuscrawl.webs.synthetic import SyntheticWeb

from .lasting import LONG, assert_sound
from .soaking import Sample, between, pages_a_second, soak

_OUT = Path(os.environ.get("FOCUSCRAWL_ENDURANCE_OUT", "endurance")) / "soak"
_PAGES = int(os.environ.get("FOCUSCRAWL_SOAK", "100000"))


def arguments(scale: int) -> dict[str, object]:
    web = SyntheticWeb(scale)
    return {
        "web": f"demo:{scale}",
        "topic": TOPIC,
        "seeds": ",".join(web.seeds(TOPIC)),
        "strategy": "apprentice",
    }


def most(samples: Sequence[Sample], what: str) -> float:
    return max(float(getattr(each, what)) for each in samples)


def test_no_descriptor_and_no_thread_is_left_behind(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    samples = soak(folder, 150, 0.05, **arguments(1))
    assert assert_sound(Kept(folder)) == 150
    first, last = between(samples, 0.2, 0.5), between(samples, 0.5, 1.0)
    for what in ("descriptors", "threads"):
        assert most(last, what) <= most(first, what) + 2


@pytest.mark.skipif(not LONG, reason="make endurance")
def test_a_hundred_thousand_pages() -> None:
    shutil.rmtree(_OUT, ignore_errors=True)
    _OUT.mkdir(parents=True)
    folder = _OUT / "crawl"
    # a web hardly larger than the crawl: what is known of it is known early
    samples = soak(folder, _PAGES, 2.0, **arguments(round(_PAGES / 3000 * 1.5)))
    assert assert_sound(Kept(folder)) == _PAGES
    parts = {
        name: between(samples, begin, end)
        for name, begin, end in (("first", 0.02, 0.2), ("middle", 0.4, 0.6), ("last", 0.82, 1.0))
    }
    for name, part in parts.items():
        print(
            f"\n{name} fifth: {pages_a_second(part, of_processor=False):.1f} pages/s, "
            f"{pages_a_second(part, of_processor=True):.1f} a second of processor, "
            f"{most(part, 'resident_mb'):,.0f} MB, {most(part, 'urls'):,.0f} URLs, "
            f"{most(part, 'descriptors'):.0f} files, {most(part, 'threads'):.0f} threads"
        )
    for what in ("descriptors", "threads"):
        assert most(parts["last"], what) <= most(parts["first"], what) + 2
