"""Pages with a strange Content-Type or file extension, live and in a recording."""

from __future__ import annotations

from pathlib import Path

from .running import BICYCLES, QUICK, crawl
from .small_site import Answers, serve

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


NAMES = ("/wiki/Node.js", "/people/john.doc", "/wiki/File:Cat.jpg", "/sites/a.zip")
FILE_SIZE = 8 << 20


def named_like_files(_: str) -> Answers:
    files = {"/report.doc": "application/msword", "/cat.jpg": "image/jpeg", "/js/a.js": "text/js"}
    links = " ".join(f"<a href={path}>x</a>" for path in (*NAMES, *files))
    pages = {path: ("text/html", f"bicycle {path}".encode()) for path in NAMES}
    home = {"/": ("text/html", f"bicycle {links}".encode())}
    return home | pages | {path: (kind, bytes(FILE_SIZE)) for path, kind in files.items()}


def test_pages_with_names_like_files_are_found(tmp_path: Path) -> None:
    """Of a file, at most the headers are fetched."""
    with serve(named_like_files) as site:
        live = crawl(tmp_path / "live", **BICYCLES | QUICK, seeds=f"{site.origin}/", budget=50)
    assert live.returncode == 0, live.stderr
    found = live.kept.query("SELECT url, relevance, bytes FROM pages")
    fetched = {url.removeprefix(site.origin): relevance for url, relevance, _ in found}
    assert fetched == {"/": 0.9, "/report.doc": 0.0, **dict.fromkeys(NAMES, 0.9)}
    assert max(size for *_, size in found) < FILE_SIZE / 2
