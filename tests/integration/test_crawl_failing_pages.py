"""Pages that the critic or the strategy could fail on, in a live crawl by the default strategy."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from .running import QUICK, crawl
from .small_site import Answers, serve

CONTROLS = [chr(point) for point in [*range(0x20), *range(0x7F, 0xA0)]]


def answers(origin: str) -> Answers:
    """Return a site with control characters in addresses, anchors and titles, and poison."""
    links = [f'<a href="/x{quote(char)}y">a {char} b</a>' for char in CONTROLS]
    text = f"<p>{'a bicycle is what it says it is. ' * 30}</p>"  # or it is no text to anybody
    home = f"{text}<title>bicycle {''.join(CONTROLS)}</title>{' '.join(links)}"
    pages = {f"/x{quote(char)}y": f"bicycle {quote(char)}" for char in CONTROLS}
    pages |= {"/": f"{home} <a href=/poison>p</a> <a href=/last>l</a>"}
    pages |= {"/poison": "poison <a href=/unseen>u</a>", "/last": "bicycle, at last"}
    return {path: ("text/html", body.encode()) for path, body in pages.items()}


def test_no_page_ends_a_crawl(tmp_path: Path) -> None:
    with serve(answers) as site:
        runs = [
            crawl(
                tmp_path / "crawl",
                **QUICK,
                STATS_DUMP=1,
                topic="bicycle",
                critic="server.critic:choosy",
                seeds=f"{site.origin}/",
                budget=budget,
            )
            for budget in (60, 200)
        ]
        kept, said = runs[-1].kept, "".join(run.stderr for run in runs)
        assert kept.stop_reasons == ["budget", "frontier_empty"]
        paths = {url.removeprefix(site.origin) for url in kept.urls}
        assert paths == answers("").keys()
        assert sorted(set(site.asked)) == sorted({"/robots.txt", *paths})
        assert site.asked.count("/poison") == 1  # not again by the second run
    failure = f"{site.origin}/poison: critic failed: KeyError: 'poison'"
    told = kept.query("SELECT detail FROM events WHERE kind = 'page_failed'")
    assert told == [(failure,)]
    assert said.count("'focuscrawl/failed_on': 1") == 1
    assert f"failed on     1 page, last {failure}" in runs[-1].stderr
