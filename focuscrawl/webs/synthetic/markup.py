"""HTML in three designs: of today, of divisions, and of tables with tags left open."""

from __future__ import annotations

from html import escape

from focuscrawl.webs.synthetic.addressing import page_url
from focuscrawl.webs.synthetic.content import Content, Link, Listing, Paragraph


def render(content: Content) -> str:
    """Return a page's HTML."""
    return _DESIGNS[content.page.host.style](content)


def head(content: Content) -> str:
    """Return what every design has in ``<head>``."""
    page = content.page
    parts = [f"<title>{page.title} | {page.host.title}</title>"]
    if page.host.declared == "meta":
        parts.append(f'<meta charset="{page.host.encoding}">')
    if not page.host.sessions:  # the software that makes sessions knows no canonical links
        parts.append(f'<link rel="canonical" href="{page_url(page)}">')
    return "\n".join(parts)


def anchor(link: Link) -> str:
    """Return a link's HTML."""
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
        column = aside if part.aside else main
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
            column = left if part.aside else right
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
