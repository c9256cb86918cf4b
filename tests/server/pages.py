"""What the test servers answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

#: seconds that the site "slow" takes to answer; it is told to end before
NEVER = 86_400.0
#: bytes of a body that no crawler of HTML should load whole
LARGE = 50_000_000
#: pages of the sites "b" and "c", besides the front page
SECTIONS = 5
#: of the site "forum"
TOPICS, LISTS = 60, 10
#: pages of a site map of the site "forum", and when it says that they were changed
DATED = {
    "bicycle-1": "2024-03-01",
    "bicycle-2": None,
    "bicycle-3": "2025-11-30T23:30:00-02:00",
    "tax-4": "2025-12-24",
    "bicycle-5": "2025-12-01T01:00:00Z",
    "bicycle-6": "yesterday",
    "bicycle-7": "2023",
}
_UNDATED = [f"{kind}-{each}" for each in range(1, 60) for kind in ("tax", "bicycle")]
SITE_MAPS = {"/sitemap.xml": dict.fromkeys(_UNDATED), "/dated.xml": DATED}
_FRONT = """/start /missing /broken /flaky /download /huge /private/diary /twin-1 /twin-2 /alias
    /original /master /copy /dull /picture.png"""

_ASKING = "/stub /slide /dead-end /closed /tagged /unlisted /addressed"


@dataclass
class Reply:
    """An answer: `size` bytes are sent in pieces where it exceeds the body."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/html"})
    wait: float = 0.0
    size: int = 0


def page(title: str, *links: str, head: str = "") -> Reply:
    """Write a page on bicycles."""
    anchors = "".join(f'<li><a href="{link}">to {link}</a>' for link in links)
    text = f"<title>{title}</title>{head}<p>All about the bicycle: {title}.<ul>{anchors}</ul>"
    return Reply(f"<!doctype html><html>{text}</html>".encode())


def moved(to: str, status: int = 301) -> Reply:
    """Send the crawler on."""
    return Reply(status=status, headers={"Location": to})


def _canonical(url: str) -> str:
    return f'<link rel="canonical" href="{url}">'


def _fine(path: str, origins: dict[str, str], hits: int) -> Reply | None:
    """Answer for site "a", which has one of everything."""
    others = [f"{origins[name]}/" for name in ("b", "c", "slow", "dead")]
    replies: dict[str, Callable[[], Reply]] = {
        "/robots.txt": lambda: Reply(
            b"User-agent: *\nDisallow: /private/\n", headers={"Content-Type": "text/plain"}
        ),
        "/": lambda: page("Front", *others, *_FRONT.split(), "mailto:a@b.example"),
        "/start": lambda: moved("/middle"),
        "/middle": lambda: moved(f"{origins['a']}/end", 302),
        "/end": lambda: page("End of the chain"),
        "/broken": lambda: Reply(b"<p>bicycle", 500),
        "/flaky": lambda: Reply(b"busy", 503) if hits == 1 else page("Flaky"),
        "/download": lambda: Reply(
            headers={"Content-Type": "application/octet-stream"}, size=LARGE
        ),
        "/huge": lambda: Reply(size=LARGE),
        "/private/diary": lambda: page("Diary"),
        "/twin-1": lambda: page("Twin", "/below-the-twins"),
        "/twin-2": lambda: page("Twin", "/below-the-twins"),
        "/below-the-twins": lambda: page("Below the twins"),
        "/alias": lambda: page("Under an alias", head=_canonical("/original")),
        "/original": lambda: page("Never asked for", head=_canonical("/original")),
        "/master": lambda: page("Master", head=_canonical("/master")),
        "/copy": lambda: page("A copy", "/below-the-copy", head=_canonical("/master")),
        "/below-the-copy": lambda: page("Below the copy"),
        "/login": lambda: page("Welcome back"),
        "/api/clubs.json": lambda: Reply(
            b'{"clubs": ["wheelers"]}', headers={"Content-Type": "application/json"}
        ),
        "/dull": lambda: Reply(b"<title>Dull</title><p>Nothing of interest."),
    }
    make = replies.get(path)
    return make() if make is not None else None


def _asking(path: str) -> Reply | None:
    """Answer for a site whose pages ask things of robots, and of browsers."""
    links = """<a rel="nofollow" href="/advert">buy</a> <a rel="UGC" href="/comment">see</a>"""
    meta = '<meta name="robots" content="{}">'.format
    refresh = '<meta http-equiv="refresh" content="{}">'.format
    tagged = page("Tagged", "/below-tagged")
    tagged.headers = {"Content-Type": "text/html", "X-Robots-Tag": "otherbot: noindex"}
    addressed = page("For one crawler", "/below-addressed")
    dated = "unavailable_after: Wed, 03 Dec 2036 15:00:00 GMT, focuscrawl: nofollow"
    addressed.headers = {"Content-Type": "text/html", "X-Robots-Tag": dated}
    closed = page("Closed", "/below-closed")
    closed.headers = {"Content-Type": "text/html", "X-Robots-Tag": "nofollow"}
    return {
        "/": page("Front", *_ASKING.split(), head=links),
        "/stub": page("Moved", "/by-hand", head=refresh("0; url=/behind") + _canonical("/behind")),
        "/behind": page("Behind the stub"),
        "/slide": page("A slide", head=refresh("30; url=/next-slide")),
        "/dead-end": page("No links for robots", "/below-dead-end", head=meta("nofollow")),
        "/closed": closed,
        "/tagged": tagged,
        "/addressed": addressed,
        "/unlisted": page("Not to be listed", "/below-unlisted", head=meta("noindex")),
    }.get(path) or (page(path) if path != "/robots.txt" else None)


def _odd_links(path: str) -> Reply | None:
    """Answer for a site whose links and redirects are unusual."""
    russian = page(
        "Велосипед", "/поиск?q=велосипед", "/moved", "/linking", "/waiting", "/hurrying"
    )
    russian.body = russian.body.decode().encode("cp1251")
    russian.headers = {"Content-Type": "text/html; charset=windows-1251"}
    linking = Reply(
        b"""<title>Bicycle</title><base href=/base/><p>
        <iframe srcdoc="&lt;a href=/frame&gt;bicycle&lt;/a&gt;"></iframe>
        <svg><a xlink:href=/svg><text>bicycle</text></a></svg>
        <form action=/form><input type=hidden name=page value=2><button>Go</button></form>
        <form action=/login method=post><button>Go</button></form>
        <form action=/search><input name=q><button>Go</button></form>
        <meta http-equiv=refresh content="15; url=/later">""",
        headers={
            "Content-Type": "text/html",
            "Link": "<next>; rel=next, </style.css>; rel=stylesheet, </api>; rel=pingback",
            "Content-Location": "/location.html",
        },
    )
    waiting, hurrying = page("Wait"), Reply(b"bicycle", headers={"Content-Type": "text/plain"})
    waiting.headers = {"Content-Type": "text/html", "Refresh": "10; url=/after-10"}
    hurrying.headers["Refresh"] = "0; url=/at-once"
    return {
        "/": russian,
        "/moved": moved("/caf\xe9?q=\xe2\xe5\xeb\xee"),
        "/linking": linking,
        "/waiting": waiting,
        "/hurrying": hurrying,
    }.get(path) or (page(path) if path != "/robots.txt" else None)


def _plain(site: str, path: str) -> Reply | None:
    """Answer for a site that thinks a little before each of its few pages."""
    sections = [f"/section-{number}" for number in range(SECTIONS)]
    if path == "/":
        reply = page(f"Site {site}", *sections)
    elif path in sections:
        reply = page(f"{path} of {site}", "/", *sections)
    else:
        return None
    reply.wait = 0.2
    return reply


def _forum(path: str) -> Reply | None:
    """Answer for a site of many pages, some of which nobody should ask for.

    Topic n leads to topics 2n and 2n + 1; ``/list/1`` to ``/list/LISTS``, each to the next and to
    topics.
    """
    kind, _, rest = path[1:].partition("/")
    name, _, number = kind.partition("-")
    n = int(rest or number) if (rest or number).isdecimal() else 0
    below = [f"/topic-{each}" for each in (2 * n, 2 * n + 1) if 0 < each <= TOPICS]
    hands_off = ["/logout", f"/members/delete?lesson={n}"]
    advert = f"""<a rel="nofollow" href="/topic-advert-{n}">buy a bicycle</a>"""
    if path == "/":
        return page("Forum", "/list/1", "/topic-1", *hands_off, head=advert)
    if kind == "list" and 0 < n <= LISTS:
        further = [f"/list/{n + 1}"] if n < LISTS else []
        return page(f"List {n}", *further, f"/topic-{n + 20}", *hands_off)
    if name == "topic" and 0 < n <= TOPICS:
        return page(f"Topic {n}", *below, *hands_off, head=advert)
    if path in SITE_MAPS:
        return _sitemap(SITE_MAPS[path])
    if name == "bicycle":
        return page(f"Bicycle {n}")
    return Reply(b"<title>Tax</title><p>About taxes.") if name == "tax" else None


_FORUM_MOVES = {
    "/moved": moved("/topic-1", 302),
    "/refreshing": page("Go on", head='<meta http-equiv="refresh" content="0; url=/topic-1">'),
}


def _sitemap(urls: Mapping[str, str | None]) -> Reply:
    """Write a site map of pages, and when each was changed."""
    rows = (
        f"<url><loc>ORIGIN/{url}</loc>{f'<lastmod>{at}</lastmod>' if at else ''}</url>"
        for url, at in urls.items()
    )
    xml = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{"".join(rows)}</urlset>'
    return Reply(xml.encode(), headers={"Content-Type": "application/xml"})


def answer(site: str, path: str, origins: dict[str, str], hits: int) -> Reply:
    """Return what `site` answers.

    Parameters
    ----------
    site : "a", "b", "c", "slow", "asks", "forum" or "odd links"
    path : path asked for
    origins : where each site is, ``http://address:port``
    hits : how often this path was asked for, this time included
    """
    if site == "slow":
        robots = path == "/robots.txt"
        return Reply(b"gone", 404) if robots else Reply(page("Too late").body, wait=NEVER)
    if site == "asks":
        found = _asking(path)
    elif site == "odd links":
        found = _odd_links(path)
    elif site == "forum":
        found = _FORUM_MOVES.get(path.partition("?")[0]) or _forum(path)
        if found is not None:
            found.body = found.body.replace(b"ORIGIN", origins["forum"].encode())
    else:
        found = _fine(path, origins, hits) if site == "a" else _plain(site, path)
    return found or Reply(b"<p>no such bicycle", 404)
