"""What is said where there is no browser to be had."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scrapy.settings import Settings

from focuscrawl.engine.browser import configure_browser
from focuscrawl.errors import UserError


def test_without_a_browser_the_way_out_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt-get install chromium"):
        configure_browser(Settings(), "1")


def test_what_is_named_has_to_be_a_program(tmp_path: Path) -> None:
    no_program = tmp_path / "chromium"
    no_program.touch()
    for path in (no_program, tmp_path / "none"):
        with pytest.raises(UserError, match=f"{path} is not an executable file"):
            configure_browser(Settings(), str(path))


def test_the_browser_that_is_found_has_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "chromium-browser"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    settings, another = Settings(), {"executable_path": "/another"}
    settings.set("PLAYWRIGHT_LAUNCH_OPTIONS", another, priority="cmdline")
    settings.set("PLAYWRIGHT_CDP_URL", "http://localhost:9222", priority="cmdline")
    configure_browser(settings, "1")
    launch = settings.getdict("PLAYWRIGHT_LAUNCH_OPTIONS")
    assert launch["executable_path"] == str(program)
    assert settings["PLAYWRIGHT_CDP_URL"] is None
    assert "--host-resolver-rules=MAP * ~NOTFOUND" in launch["args"]


def test_without_what_drives_it_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scrapy_playwright", None)
    with pytest.raises(UserError, match=r"FOCUSCRAWL_BROWSER needs .*focuscrawl\[browser\]"):
        configure_browser(Settings(), "1")
