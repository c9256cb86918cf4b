"""What browsers load of the studio."""

from __future__ import annotations

import hashlib
import json
import re
from importlib.resources import files

from focuscrawl.studio.page_rendering import ASSETS, read_asset

STATIC = files("focuscrawl.studio") / "static"


def test_what_is_taken_over_is_unchanged_and_has_its_licence() -> None:
    vendored = json.loads((STATIC / "vendored.json").read_text())
    assert {name for name in ASSETS if ".min." in name} == vendored.keys()
    for name, about in vendored.items():
        assert hashlib.sha256(read_asset(name)).hexdigest() == about["sha256"]
        assert (STATIC / about["license_file"]).read_text().strip()
    assert sum(len(read_asset(name)) for name in ASSETS) < 250_000


def test_no_page_names_another_server_or_runs_anything_inline() -> None:
    for template in (files("focuscrawl.studio") / "templates").iterdir():
        text = template.read_text()
        assert not re.search(r"""(src|href|action)=["']?(https?:)?//""", text), template.name
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text), (
            template.name
        )
        assert "|safe" not in text.replace(" ", "")


def test_addresses_in_pages_begin_with_the_base() -> None:
    """The cookie belongs to it, and a proxy may have the studio below a path."""
    elsewhere = r"base|api|address|page\.url|card\.url|each\.log"
    other = re.compile(rf'(?:href|src|action|hx-get|hx-post)="(/|{{{{ (?!{elsewhere})[^}}]*)')
    for template in (files("focuscrawl.studio") / "templates").iterdir():
        assert other.findall(template.read_text()) == [], template.name
    for name in ASSETS:
        if name.endswith(".js") and ".min." not in name:
            assert not re.search(rb"[\"'`]/(api|parts|crawls|topics)", read_asset(name)), name
