"""Pages of the studio as HTML. What a crawl or a page is called is never markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse

from focuscrawl.report.templates import load_template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.studio.desk import Desk

PREFIX = "/api/v1"  #: of addresses of the API


def render(desk: Desk, name: str, values: Mapping[str, Any]) -> HTMLResponse:
    """Return ``templates/<name>.html.j2`` with `values`, and with what all pages show."""
    everywhere = {"folder": str(desk.folder.root), "read_only": desk.read_only}
    return _render(desk, name, {**everywhere, **values}, 200)


def message(desk: Desk, heading: str, text: str, status: int) -> HTMLResponse:
    """Return a page that says one thing."""
    return _render(desk, "message", {"heading": heading, "text": text}, status)


def _render(desk: Desk, name: str, values: dict[str, Any], status: int) -> HTMLResponse:
    template = load_template(f"templates/{name}.html.j2", "focuscrawl.studio")
    addresses = {"base": desk.base, "api": f"{desk.base}{PREFIX}"}
    return HTMLResponse(template.render(addresses | values), status)
