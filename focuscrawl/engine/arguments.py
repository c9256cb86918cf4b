"""The arguments of a crawl as settings: for other people's spiders, and for a settings module."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

#: by the argument of ``scrapy crawl focused``, the setting that stands for it
SETTINGS = {
    "topic": "FOCUSCRAWL_TOPIC",
    "seeds": "FOCUSCRAWL_SEEDS",
    "critic": "FOCUSCRAWL_CRITIC",
    "strategy": "FOCUSCRAWL_STRATEGY",
    "budget": "FOCUSCRAWL_BUDGET",
    "web": "FOCUSCRAWL_WEB",
    "crawl_dir": "FOCUSCRAWL_CRAWL_DIR",
    "random_state": "FOCUSCRAWL_RANDOM_STATE",
    "apprentice": "FOCUSCRAWL_APPRENTICE",
    "within": "FOCUSCRAWL_WITHIN",
    "knowledge": "FOCUSCRAWL_KNOWLEDGE",
    "store": "FOCUSCRAWL_STORE",
}


def from_settings(settings: BaseSettings) -> dict[str, str]:
    """Return the arguments that settings name, as they would be written behind ``-a``.

    Lists become comma-separated; None and empty texts stand for nothing.
    """
    arguments = {}
    for argument, name in SETTINGS.items():
        value = settings.get(name)
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
        if text is not None and str(text).strip():
            arguments[argument] = str(text)
    return arguments
