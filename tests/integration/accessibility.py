"""What WCAG 2.2 AA asks of a page, as a browser shows it: contrast, names, headings, focus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEXT, LARGE, PARTS = 4.5, 3.0, 3.0  # contrast: success criteria 1.4.3 and 1.4.11

_LOOK = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


def assert_accessible(page: Page) -> None:
    """Hold a page against what WCAG asks, in light and in dark."""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        wrong = page.evaluate(_LOOK, [TEXT, LARGE, PARTS])
        assert not wrong, f"{page.url}, {scheme}: {'; '.join(wrong)}"
