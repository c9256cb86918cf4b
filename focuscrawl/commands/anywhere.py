"""``focuscrawl crawl``: the same as ``scrapy crawl focused``, without a project."""

from __future__ import annotations

import json
import os

import click
from scrapy.settings import Settings
from scrapy.utils.project import get_project_settings

from focuscrawl.commands.crawl import Command
from focuscrawl.engine.private import run_command
from focuscrawl.foundation.processes import SETTINGS
from focuscrawl.settings import COMMANDS_MODULE, SPIDER_MODULES

_ENVIRONMENT = "SCRAPY_SETTINGS_MODULE"
_OURS = "focuscrawl.settings"


# every option is Scrapy's, --help included
@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def crawl(arguments: tuple[str, ...]) -> None:
    """Crawl the pages of a topic."""
    Command.called = "focuscrawl crawl"
    run_command(["focuscrawl", "crawl", "focused", *arguments], project_settings())


def project_settings() -> Settings:
    """Return the settings of the present Scrapy project, or ours if it has no focused crawl.

    If the environment names ours, no project is searched: Scrapy would read its ``scrapy.cfg``
    all the same, and import modules from its folder.
    """
    settings = None if os.environ.get(_ENVIRONMENT) == _OURS else get_project_settings()
    if settings is None or not {*SPIDER_MODULES} & {*settings.getlist("SPIDER_MODULES")}:
        settings = _own_settings()
    settings.set("COMMANDS_MODULE", COMMANDS_MODULE, priority="cmdline")
    return settings


def run_round(arguments: list[str]) -> None:
    """Crawl a bucket's share of a round, for `focuscrawl.rounds.live_rounds`: by our settings."""
    run_command(["scrapy", "crawl", "round", *arguments], _own_settings())


def _own_settings() -> Settings:
    os.environ[_ENVIRONMENT] = _OURS
    settings = Settings()
    settings.setmodule(_OURS, priority="project")
    settings.setdict(json.loads(os.environ.get(SETTINGS, "{}")), priority="project")
    return settings
