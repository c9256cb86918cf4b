"""Pages of the bad web: all are about the bicycle, so that the critic wants more of them."""

from __future__ import annotations

from collections.abc import Iterable


def html(title: str, links: Iterable[str] = (), text: str = "") -> bytes:
    """Write a page."""
    anchors = "".join(f'<li><a href="{link}">to {link}</a>' for link in links)
    body = f"<title>{title}</title><p>All about the bicycle: {title}. {text}<ul>{anchors}</ul>"
    return f"<!doctype html><html>{body}".encode()
