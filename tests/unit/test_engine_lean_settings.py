"""What of Scrapy a crawl goes without, and what stays."""

from __future__ import annotations

from typing import Any

from scrapy.downloadermiddlewares.useragent import UserAgentMiddleware
from scrapy.settings import Settings

from focuscrawl.engine.lean_settings import use_lean_settings

CONTROL = "scrapy.extensions.remote_control.RemoteControl"
AGENT = "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware"


def test_extensions_that_are_off_are_not_looked_at() -> None:
    for on in (False, True):
        settings = Settings({"REMOTE_CONTROL_ENABLED": on})
        known = CONTROL in settings["EXTENSIONS_BASE"]  # not in every Scrapy
        use_lean_settings(settings, replays=False)
        assert (CONTROL in settings["EXTENSIONS_BASE"]) == (on and known)
    assert "scrapy.extensions.corestats.CoreStats" in settings["EXTENSIONS_BASE"]


def test_requests_for_a_network_have_what_it_wants_and_what_the_user_wants_stays() -> None:
    def place(*, replays: bool, **given: dict[str, int]) -> int | None:
        settings = Settings(given)
        use_lean_settings(settings, replays=replays)
        found: Any = settings.get_component_priority_dict_with_base("DOWNLOADER_MIDDLEWARES")
        placed: int | None = found.get(AGENT, found.get(UserAgentMiddleware))
        return placed

    assert place(replays=False) is not None
    assert place(replays=True) is None
    assert place(replays=True, DOWNLOADER_MIDDLEWARES={AGENT: 7}) == 7
