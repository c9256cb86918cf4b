"""Pages with a Content-Type that is repeated, invalid or missing, live and in a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .running import BICYCLES, QUICK, crawl
from .small_site import Answers, serve

if TYPE_CHECKING:
    from pathlib import Path

_NEXT = "\r\nContent-Type: "
PAGES = {
    "twice": "text/html, text/html",
    "two-fields": f"text/plain{_NEXT}text/html; charset=utf-8",
    "last-invalid": f"text/html{_NEXT}html",
    "no-semicolon": "text/html charset=utf-8",
    "comma": "text/html,",
    "any": "*/*",
    "subtype": "html",
    "unknown": "unknown/unknown",
    "quoted": '"text/html"',
    "empty": "",
    "xml": "application/xml",
}
OTHERS = {
    "text": "text/plain",
    "text-last": f"text/html{_NEXT}text/plain",
    "json": "application/json, */*",
    "svg": "application/xml",
}
_SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><title>bicycle</title></svg>"


def answers(_: str) -> Answers:
    links = " ".join(f"<a href=/{path}>{path}</a>" for path in PAGES | OTHERS)
    page = '<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><title>{}</title>bicycle {}'
    found = {f"/{path}": (kind, page.format(path, path)) for path, kind in PAGES.items()}
    found |= {f"/{path}": (kind, page.format(path, path)) for path, kind in OTHERS.items()}
    found |= {"/": ("text/html", page.format("home", links))}
    encoded = {path: (kind, text.encode()) for path, (kind, text) in found.items()}
    return encoded | {"/svg": (OTHERS["svg"], _SVG)}


def test_pages_are_recognised_whatever_their_content_type(tmp_path: Path) -> None:
    """A recording has the same pages as the live crawl, because one rule reads both."""
    sql = "SELECT url, title, relevance, content_type FROM pages WHERE error IS NULL ORDER BY url"
    with serve(answers) as site:
        live = crawl(
            tmp_path / "live",
            **BICYCLES | QUICK | {"FOCUSCRAWL_WARC": 1},
            seeds=f"{site.origin}/",
            budget=50,
        )
    assert live.returncode == 0, live.stderr
    found = live.kept.query(sql)
    assert {url.rpartition("/")[2] for url, *_ in found} == {"", *PAGES}
    assert {relevance for _, _, relevance, _ in found} == {0.9}
    web = live.kept.folder / "pages.warc.gz"
    replay = crawl(tmp_path / "replay", **BICYCLES, web=web, seeds=f"{site.origin}/", budget=50)
    assert replay.kept.query(sql) == found
