"""ReplayWeb.page displays an exported WACZ file in a browser."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from .archive_server import ArchiveServer
from .running import ROOT
from .studio import tab
from .typed import focuscrawl

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("trafilatura")
pytest.importorskip("resiliparse")

PROGRAM = ROOT / ".venv-replay" / "package"
_LOADS = 5  # of the page: beside other work, its service worker may start too late
_TRIES = 150  # with a fifth of a second in between
PAGE = """<!doctype html><replay-web-page source="c.wacz" url="{url}" replayBase="/replay/"
embed="default">
</replay-web-page><script src="/ui.js"></script>"""


def test_a_page_of_a_wacz_file_is_displayed(
    folder: Path, tmp_path: Path, browser: Browser
) -> None:
    if not (PROGRAM / "ui.js").is_file():
        pytest.skip("ReplayWeb.page is not installed: make .venv-replay/.installed")
    focuscrawl("collect", folder, "--out", tmp_path / "c.wacz", "--processes", 1)
    with ZipFile(tmp_path / "c.wacz") as file:
        pages = [*map(json.loads, file.read("pages/pages.jsonl").splitlines())]
    page = pages[-1]
    (tmp_path / "replay").mkdir()
    shutil.copy(PROGRAM / "ui.js", tmp_path)
    shutil.copy(PROGRAM / "sw.js", tmp_path / "replay")
    (tmp_path / "index.html").write_text(PAGE.format(url=page["url"]))
    with ArchiveServer(tmp_path).serving() as server, tab(browser) as opened:
        for attempt in range(_LOADS * _TRIES):
            if attempt % _TRIES == 0:
                opened.goto(f"{server.url}/index.html")
            shown = [each for each in opened.frames if each.url.endswith(f"mp_/{page['url']}")]
            if shown:
                break
            opened.wait_for_timeout(200)
        assert shown, [each.url for each in opened.frames]
        shown[0].wait_for_load_state()
        assert shown[0].title() == page["title"]
