"""Recorded webs of departments, made by arithmetic: a front door, lists, homes, and all the rest.

Every department has words of its own and links that lead to other departments, so that what holds
for one and not for the others can be told from what holds for all.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from focuscrawl.webs import open_web
from focuscrawl.webs.warc_recorder import WarcRecorder

NAMES = ("northmoor", "saltmarsh", "highfell", "oakhollow")
_SURNAMES = [
    "Abel",
    "Brandt",
    "Castro",
    "Dima",
    "Eskola",
    "Farkas",
    "Grieg",
    "Hamid",
    "Ito",
    "Jansen",
    "Kaya",
    "Lund",
]
_RESEARCH = ["compilers", "proofs", "networks", "vision", "storage", "robotics"]


@dataclass(frozen=True)
class Departments:
    """A recorded web and what its pages are.

    Attributes
    ----------
    warc, labels, starts : files: recording; CSV url,kind,site; front doors, one a line
    doors : the front doors
    professors : homes of professors by front door
    """

    warc: Path
    labels: Path
    starts: Path
    doors: list[str]
    professors: dict[str, set[str]]


def make(folder: Path, *, professors: int = 8, others: int = 24) -> Departments:
    """Write the web of all departments to `folder`."""
    pages: dict[str, str] = {}
    kinds: dict[str, tuple[str, str]] = {}
    doors = [_at(name, "") for name in NAMES]
    homes: dict[str, set[str]] = {}
    for number, name in enumerate(NAMES):
        staff = _at(name, ("people.html", "staff/", "who/index.html", "folk.html")[number])
        faculty = _at(
            name, ("people/faculty.html", "staff/prof.html", "who/fac/", "fac.html")[number]
        )
        news, away = _at(name, "news.html"), doors[(number + 1) % len(NAMES)]
        homes[doors[number]] = set()
        listed = []
        for i in range(professors):
            surname = _SURNAMES[(i * 5 + number * 3) % len(_SURNAMES)]
            home = _at(name, f"~{surname.lower()}{i}/")
            homes[doors[number]].add(home)
            kinds[home] = ("professor", name)
            topic = _RESEARCH[(i + number) % len(_RESEARCH)]
            listed.append((home, f"Ada {surname}"))
            pages[home] = _page(
                f"{surname}",
                f"Professor of computing at {name}. Research interests: {topic}. Office hours, "
                f"phone and fax. Selected publications on {topic}.",
                [(doors[number], "Department")],
            )
        rest = []
        for i in range(others):
            kind = ("report", "notice", "photo")[i % 3]
            page = _at(name, f"{kind}s/{kind}{i}.html")
            kinds[page] = ("other", name)
            rest.append((page, f"{kind} {i}"))
            pages[page] = _page(
                f"{kind} {i}",
                f"A {kind} of {name}, number {i}, about the building, the garden and the weather.",
                [(news, "more news"), (away, "our neighbours")],
            )
        kinds[doors[number]] = ("department", name)
        kinds[staff] = kinds[faculty] = kinds[news] = ("other", name)
        pages[doors[number]] = _page(
            f"Department of Computing, {name}",
            f"Welcome to {name}.",
            [(news, "News"), (staff, "People"), (away, "Neighbours"), *rest[:6]],
        )
        pages[staff] = _page("People", "Who works here.", [(faculty, "Faculty"), (news, "News")])
        pages[faculty] = _page("Faculty", "All professors.", listed)
        pages[news] = _page("News", f"What happens at {name}.", rest)
    record_pages(folder / "departments.warc.gz", pages)
    with (folder / "labels.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["url", "kind", "site"])
        rows.writerows([url, *kind] for url, kind in kinds.items())
    (folder / "starts.txt").write_text("\n".join(doors) + "\n")
    return Departments(
        folder / "departments.warc.gz", folder / "labels.csv", folder / "starts.txt", doors, homes
    )


def _at(name: str, path: str) -> str:
    return f"http://www.{name}.example/{path}"


def _page(title: str, text: str, links: list[tuple[str, str]]) -> str:
    items = "".join(f'<li><a href="{url}">{anchor}</a></li>' for url, anchor in links)
    return f"<title>{title}</title><h1>{title}</h1><p>{text}</p><ul>{items}</ul>"


def bodies(web: Departments) -> dict[str, str]:
    """Return the pages of a web again, by URL."""
    recorded = open_web(str(web.warc))
    answers = ((url, recorded.fetch(url)) for url in recorded.urls())
    return {url: answer.body.decode() for url, answer in answers if answer is not None}


def record_pages(
    path: Path, pages: dict[str, str], redirects: dict[str, str] | None = None
) -> None:
    """Record pages, and redirects from URL to URL."""
    html, moved = ("Content-Type", "text/html; charset=utf-8"), redirects or {}
    with WarcRecorder(path) as recorder:
        for url, body in (pages | dict.fromkeys(moved, "")).items():
            location = [("Location", moved[url])] if url in moved else []
            recorder.record(
                request_method="GET",
                url=url,
                request_headers=[],
                request_body=b"",
                status=301 if url in moved else 200,
                reason="OK",
                response_headers=[html, *location],
                body_raw=body.encode(),
                ip=None,
                at=datetime(2026, 1, 1, tzinfo=UTC),
            )
