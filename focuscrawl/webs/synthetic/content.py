"""Creates the content of synthetic pages, and renders the content as HTML in three designs."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

from focuscrawl.webs.synthetic.layout import (
    ABOUT,
    FIRST_HUB,
    HOME,
    NEWS,
    PRIVACY,
    SHOPPING,
    SLOTS,
    Page,
    Role,
    Targets,
    WebLayout,
    page_url,
    write_href,
)
from focuscrawl.webs.synthetic.vocabulary import (
    SECTION_NAMES,
    TOPICS,
    VAGUE_ANCHORS,
    RandomStream,
    filler_sentence,
    hash_ints,
    sentence,
    title,
)

# Headings of lists of links; some headings are ambiguous.
_ON_TOPIC = ("Related reading", "More on this", "See also", "You may also like")
_OFF_TOPIC = ("Trending now", "Sponsored", "From our partners", "You may also like")
_LEADS = ("More in", "Compare this with", "Also worth reading:", "As told in", "Background:")


class Link(NamedTuple):
    """A link in the content of a synthetic page."""

    href: str
    text: str
    nofollow: bool = False


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of text with links."""

    pieces: list[str | Link]


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of links with a heading; each link has a snippet of text, which may be empty.

    Attributes
    ----------
    items : list of (Link, str)
    in_sidebar : bool
        Whether the list is in the sidebar, if the design has one.
    """

    heading: str
    items: list[tuple[Link, str]]
    in_sidebar: bool = False


@dataclass(slots=True)
class Content:
    """All content of a synthetic page, from top to bottom."""

    page: Page
    navigation: list[Link]
    body: list[Paragraph | Listing] = field(default_factory=list)
    footer: list[Link] = field(default_factory=list)


class Author:
    """Generates the content of a synthetic page, such as paragraphs and lists of links."""

    def __init__(self, places: WebLayout, page: Page) -> None:
        self._places = places
        self._page = page
        self._draws = RandomStream(hash_ints(places.seed, 8, page.number))
        self._targets = Targets(places, page, self._draws)
        # pages with a low focus mislead a critic
        self._focus = 0.05 + 0.5 * self._draws.unit()

    def write(self) -> Content:
        """Return the generated content of the page."""
        page = self._page
        content = Content(page, self._navigation(), footer=self._footer())
        body = content.body
        match page.role:
            case Role.SERVICE:
                body.append(Paragraph([filler_sentence(self._draws) for _ in range(6)]))
                return content
            case Role.HOME:
                self._home(body)
            case Role.HUB:
                self._hub(body)
            case Role.ROUNDUP:
                self._roundup(body)
            case _:
                self._article(body)
        return content

    def _home(self, body: list[Paragraph | Listing]) -> None:
        page, places = self._page, self._places
        body.append(self._text(page.topic, 3))
        for section in range(page.host.sections):
            pages = places.section_pages(page.host, section)
            hub = places.hub(page.host, section)
            newest = [hub, *(places.page_at(page.host, index) for index in pages[-2:])]
            body.append(Listing(hub.title, [(self._link(p, plain=True), "") for p in newest]))
        if page.host.portal:
            self._directory(body)
        friends = [self._targets.home(page.topic) for _ in range(2)]
        friends.append(self._targets.home(self._draws.pick(SLOTS)))
        body.append(self._listing("Friends of this site", friends, plain=True))
        self._off_topic(body)

    def _directory(self, body: list[Paragraph | Listing]) -> None:
        places, block = self._places, self._page.host.block
        homes = [places.page_at(places.host_at(block, slot), HOME) for slot in range(len(SLOTS))]
        homes.append(places.page_at(places.portal(block + 1), HOME))
        body.append(self._listing("Directory of sites", homes, plain=True))

    def _hub(self, body: list[Paragraph | Listing]) -> None:
        page, places, targets = self._page, self._places, self._targets
        body.append(self._text(page.topic, 2))
        pages = [
            places.page_at(page.host, index)
            for index in places.section_pages(page.host, page.section)
        ]
        items = [(self._link(p, plain=True), self._snippet(p.topic)) for p in pages]
        body.append(Listing(f"All {SECTION_NAMES[page.section]}", items))
        elsewhere = [targets.on_topic(page.topic) for _ in range(self._draws.between(5, 9))]
        body.append(self._listing("On other sites", elsewhere))
        self._off_topic(body)

    def _article(self, body: list[Paragraph | Listing]) -> None:
        page, draws, targets = self._page, self._draws, self._targets
        note = page.role is Role.NOTE
        body += [
            self._text(page.topic, draws.between(2, 4), links=draws.between(0, 1))
            for _ in range(1 if note else draws.between(2, 5))
        ]
        related = []
        for _ in range(1 if note else draws.between(4, 7)):
            where = draws.unit()
            related.append(
                targets.same_section()
                if where < 0.4
                else targets.on_topic(page.topic)
                if where < 0.9
                else targets.related_topic(page.topic)
            )
        body.append(self._listing(self._heading(_ON_TOPIC), related))
        if not note:
            here = [targets.same_host() for _ in range(2)]
            body.append(self._listing(f"Elsewhere on {page.host.title}", here, in_sidebar=True))
            self._extras(body)
        self._off_topic(body)

    def _roundup(self, body: list[Paragraph | Listing]) -> None:
        page, draws, targets = self._page, self._draws, self._targets
        body.append(self._text(page.topic, 2))
        topics = [page.topic, page.topic, draws.pick(SLOTS), draws.pick(SLOTS)]
        turn = draws.between(0, 3)
        for topic in topics[turn:] + topics[:turn]:
            found = [targets.on_topic(topic) for _ in range(draws.between(3, 5))]
            heading = title(TOPICS[topic], hash_ints(page.number, len(body)))
            body.append(self._text(topic, 1))
            body.append(self._listing(heading, found, snippets=True))
        self._off_topic(body)

    def _text(self, topic: int, sentences: int, links: int = 0) -> Paragraph:
        draws, targets = self._draws, self._targets
        pieces: list[str | Link] = [sentence(topic, self._focus, draws) for _ in range(sentences)]
        for _ in range(links):
            near = draws.unit()
            target = (
                targets.same_section()
                if near < 0.3
                else targets.on_topic(topic)
                if near < 0.7
                else targets.anywhere()
            )
            pieces += [draws.pick(_LEADS), self._link(target), "."]
        return Paragraph(pieces)

    def _off_topic(self, body: list[Paragraph | Listing]) -> None:
        draws, targets = self._draws, self._targets
        few, many = (40, 60) if self._page.host.general else (1, 3)
        if self._page.role is Role.NOTE:
            few, many = 1, 2
        found = [targets.anywhere() for _ in range(draws.between(few, many))]
        panel = self._listing(self._heading(_OFF_TOPIC), found, in_sidebar=True)
        panel.items[:] = [(self._mislead(link), text) for link, text in panel.items]
        if draws.chance(0.15):
            dead = draws.between(FIRST_HUB + self._page.host.sections, self._page.host.size - 1)
            href = f"/past/{draws.between(2003, 2012)}/{dead}.html"
            panel.items.append((Link(href, title(TOPICS[self._page.topic], hash_ints(dead))), ""))
        body.append(panel)

    def _extras(self, body: list[Paragraph | Listing]) -> None:
        draws, page = self._draws, self._page
        if draws.chance(0.1):
            body.append(Paragraph([Link(f"/files/{page.index}.pdf", "This page as PDF")]))
        if draws.chance(0.1):
            picture = Link(f"/images/{page.index}.gif", "Picture: " + page.title)
            body.append(Paragraph([picture]))

    def _heading(self, usual: tuple[str, ...]) -> str:
        """Return the heading of this host for such a list; one page in eight has another."""
        if self._draws.chance(0.125):
            return self._draws.pick(usual)
        return usual[hash_ints(self._places.seed, self._page.host.number) % len(usual)]

    def _listing(
        self,
        heading: str,
        pages: list[Page],
        *,
        in_sidebar: bool = False,
        plain: bool = False,
        snippets: bool = False,
    ) -> Listing:
        items = [
            (self._link(page, plain=plain), self._snippet(page.topic) if snippets else "")
            for page in pages
            if page.number != self._page.number
        ]
        return Listing(heading, items, in_sidebar)

    def _snippet(self, topic: int) -> str:
        return sentence(topic, self._focus, self._draws) if self._draws.chance(0.4) else ""

    def _link(self, target: Page, *, plain: bool = False) -> Link:
        draws = self._draws
        text = target.title
        style = 0.0 if plain else draws.unit()
        if style > 0.75:
            text = draws.pick(VAGUE_ANCHORS)
        elif style > 0.6:
            text = draws.pick(TOPICS[target.topic].urns["n"])
        return Link(write_href(target, self._page.host, draws), text)

    def _mislead(self, link: Link) -> Link:
        """Give some advertisements an anchor text on the topic, which misleads classifiers."""
        draws = self._draws
        if not draws.chance(0.3):
            return link
        text = title(TOPICS[self._page.topic], hash_ints(self._page.number, draws.between(0, 999)))
        return link._replace(text=text)

    def _navigation(self) -> list[Link]:
        host = self._page.host
        banner = self._targets.home(self._draws.pick((NEWS, SHOPPING)))
        return [
            Link(write_href(banner, host, self._draws), f"Ad: {banner.title}", nofollow=True),
            Link("/", "Home"),
        ]

    def _footer(self) -> list[Link]:
        host, places = self._page.host, self._places
        shown = set(range(host.sections if host.general else 1)) | {max(self._page.section, 0)}
        hubs = [places.hub(host, section) for section in sorted(shown)]
        links = [
            *(Link(hub.path, hub.title) for hub in hubs),
            Link(places.page_at(host, ABOUT).path, "About"),
            # a service outside this web, which replays skip
            Link(f"https://share.example/?u={self._page.number}&from=web", "Share"),
        ]
        if self._page.section < 0:
            links.append(Link(places.page_at(host, PRIVACY).path, "Privacy", nofollow=True))
            portal = places.portal(host.block)
            links.append(Link(f"{portal.scheme}://{portal.name}/", f"Listed in {portal.title}"))
        if host.calendar:
            links.append(Link("/calendar/?month=24292", "Calendar"))
        return links


def render(content: Content) -> str:
    """Return the HTML of a synthetic page with the given content."""
    return _DESIGNS[content.page.host.style](content)


def head(content: Content) -> str:
    """Return the HTML inside ``<head>``, which is the same in all designs."""
    page = content.page
    parts = [f"<title>{page.title} | {page.host.title}</title>"]
    if page.host.declared == "meta":
        parts.append(f'<meta charset="{page.host.encoding}">')
    if not page.host.sessions:  # session software writes no canonical links
        parts.append(f'<link rel="canonical" href="{page_url(page)}">')
    return "\n".join(parts)


def anchor(link: Link) -> str:
    """Return the HTML of a link (element ``a``)."""
    rel = ' rel="nofollow"' if link.nofollow else ""
    return f'<a href="{escape(link.href)}"{rel}>{link.text}</a>'


def _pieces(paragraph: Paragraph) -> str:
    text = " ".join(
        anchor(piece) if isinstance(piece, Link) else piece for piece in paragraph.pieces
    )
    return text.replace("</a> .", "</a>.")


def _item(item: tuple[Link, str]) -> str:
    link, text = item
    return f"{anchor(link)} {text}" if text else anchor(link)


def _modern(content: Content) -> str:
    main: list[str] = []
    aside: list[str] = []
    for part in content.body:
        if isinstance(part, Paragraph):
            main.append(f"<p>{_pieces(part)}</p>")
            continue
        items = "\n".join(f"<li>{_item(item)}</li>" for item in part.items)
        column = aside if part.in_sidebar else main
        column.append(f"<section><h2>{part.heading}</h2>\n<ul>\n{items}\n</ul></section>")
    return "\n".join(
        [
            "<!DOCTYPE html>",
            f'<html lang="en"><head>{head(content)}</head><body>',
            "<nav>" + " ".join(anchor(link) for link in content.navigation) + "</nav>",
            f"<main><h1>{content.page.title}</h1>",
            *main,
            "</main><aside>",
            *aside,
            "</aside>",
            "<footer>" + " · ".join(anchor(link) for link in content.footer) + "</footer>",
            "<script>var visited = '/ads/visited.html';</script></body></html>",
        ]
    )


def _divisions(content: Content) -> str:
    parts = []
    for part in content.body:
        if isinstance(part, Paragraph):
            parts.append(f"<div class=text>{_pieces(part)}</div>")
        else:
            items = "".join(f"<div class=row>{_item(item)}</div>\n" for item in part.items)
            parts.append(f"<div class=box><b>{part.heading}</b>\n{items}</div>")
    return "\n".join(
        [
            f"<html><head>{head(content)}</head><body>",
            f"<div id=top>{' | '.join(anchor(link) for link in content.navigation)}</div>",
            f"<div id=title>{content.page.title}</div>",
            *parts,
            "<div id=ad>Advertisement</div>",
            f"<div id=end>{' | '.join(anchor(link) for link in content.footer)}</div>",
            "</body></html>",
        ]
    )


def _tables(content: Content) -> str:
    left: list[str] = []
    right: list[str] = []
    for part in content.body:
        if isinstance(part, Listing):
            items = "\n".join(f"<LI>{_item(item)}" for item in part.items)
            column = left if part.in_sidebar else right
            column.append(f"<H3>{part.heading}</H3>\n<UL>\n{items}\n</UL>")
        else:
            right.append(f"<P>{_pieces(part)}")
    return "\n".join(
        [
            f"<HTML><HEAD>{head(content)}</HEAD><BODY BGCOLOR=white>",
            "<TABLE WIDTH=100%><TR><TD VALIGN=top WIDTH=160>",
            *(f"{anchor(link)}<BR>" for link in content.navigation),
            *left,
            f"<TD><H1>{content.page.title}</H1>",
            *right,
            "</TABLE><HR>",
            *(anchor(link) for link in content.footer),
        ]
    )


_DESIGNS = (_modern, _divisions, _tables)
