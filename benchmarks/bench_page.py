"""Milliseconds per page by stage, and their sum relative to parsing the page with lxml.

Run: ``pytest benchmarks/bench_page.py -s`` after the tests, which unpack the webs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any

import lxml.html
import pytest

from focuscrawl.foundation import urls
from focuscrawl.foundation.files import cache_dir
from focuscrawl.page import parse_page
from focuscrawl.page.encoding import to_utf8
from focuscrawl.page.parse import to_links
from focuscrawl.page.walk import Outline, build_outline, parse_tree
from focuscrawl.page.words import tokenize
from focuscrawl.webs import RecordedWeb

PAGES = {"uci": 300, "wikipedia": 60}
ROUNDS = 7


@dataclass
class Sample:
    name: str
    pages: list[tuple[bytes, str]]


@pytest.fixture(params=sorted(PAGES))
def sample(request: pytest.FixtureRequest) -> Sample:
    """HTML pages spread evenly over a recording."""
    name = str(request.param)
    path = cache_dir() / "recorded" / f"{name}.warc"
    if not path.exists():
        pytest.skip(f"no recorded web at {path}")
    web = RecordedWeb(path)
    answers = [web.fetch(url) for url in islice(web.urls(), 0, None, len(web) // PAGES[name])]
    pages = [
        (answer.body, answer.url)
        for answer in answers
        if answer is not None and b"<html" in answer.body[:2000].lower()
    ]
    return Sample(name, pages)


def milliseconds(stage: Callable[..., object], arguments: list[tuple[Any, ...]]) -> float:
    """Mean over the pages, of the fastest round."""
    fastest = float("inf")
    for _ in range(ROUNDS):
        start = perf_counter()
        for each in arguments:
            stage(*each)
        fastest = min(fastest, perf_counter() - start)
    return 1e3 * fastest / len(arguments)


def stages(pages: list[tuple[bytes, str]]) -> dict[str, float]:
    clean = [to_utf8(body)[0] for body, _ in pages]
    trees = [parse_tree(each) for each in clean]
    outlines = [Outline() if tree is None else build_outline(tree) for tree in trees]
    references = [(url, o.references) for (_, url), o in zip(pages, outlines, strict=True)]
    targets = [urls.resolve(*each) for each in references]
    return {
        "encoding": milliseconds(to_utf8, [(body,) for body, _ in pages]),
        "parse": milliseconds(parse_tree, [(each,) for each in clean]),
        "walk": milliseconds(build_outline, [(tree,) for tree in trees if tree is not None]),
        "tokens": milliseconds(tokenize, [(o.leaves,) for o in outlines]),
        "URLs": milliseconds(urls.resolve, references),
        "links": milliseconds(to_links, list(zip(outlines, targets, strict=True))),
    }


def test_parse_page(benchmark: Any, sample: Sample) -> None:
    pages = sample.pages
    bare = milliseconds(lxml.html.fromstring, [(body,) for body, _ in pages])
    whole = milliseconds(parse_page, pages)  # in the same minute as the bare parse
    parts = ", ".join(f"{name} {ms:.3f}" for name, ms in stages(pages).items())
    print(f"\n{sample.name}, {len(pages)} pages, ms a page: {parts}")
    print(f"all {whole:.3f}, lxml.html alone {bare:.3f}: ratio {whole / bare:.2f}")
    benchmark.extra_info["ratio"] = whole / bare
    benchmark.pedantic(lambda: [parse_page(*page) for page in pages], rounds=3)
