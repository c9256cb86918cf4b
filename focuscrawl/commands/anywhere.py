"""``focuscrawl crawl``: run ``scrapy crawl focused`` in any folder, without a Scrapy project."""

from __future__ import annotations

import json
import os

import click
from scrapy.settings import Settings
from scrapy.utils.project import get_project_settings

from focuscrawl.commands.crawl import Command
from focuscrawl.engine.private import run_command
from focuscrawl.foundation.processes import SETTINGS_VARIABLE
from focuscrawl.settings import COMMANDS_MODULE, SPIDER_MODULES

_ENVIRONMENT = "SCRAPY_SETTINGS_MODULE"
_OURS = "focuscrawl.settings"


# Scrapy parses all options, including --help
@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def crawl(arguments: tuple[str, ...]) -> None:
    """Crawl the Web for pages on a topic."""
    Command.program = "focuscrawl crawl"
    run_command(["focuscrawl", "crawl", "focused", *arguments], project_settings())


def project_settings() -> Settings:
    """Return the settings of the current Scrapy project, or the module `focuscrawl.settings`.

    The module `focuscrawl.settings` is used if the project has no focuscrawl spider. If the
    environment variable ``SCRAPY_SETTINGS_MODULE`` names `focuscrawl.settings`, the project's
    ``scrapy.cfg`` and modules are not loaded.
    """
    settings = None if os.environ.get(_ENVIRONMENT) == _OURS else get_project_settings()
    if settings is None or not {*SPIDER_MODULES} & {*settings.getlist("SPIDER_MODULES")}:
        settings = _own_settings()
    settings.set("COMMANDS_MODULE", COMMANDS_MODULE, priority="cmdline")
    return settings


def run_round(arguments: list[str]) -> None:
    """Crawl one bucket (group of hosts) of a round (batch of fetches), in a child process."""
    run_command(["scrapy", "crawl", "round", *arguments], _own_settings())


def _own_settings() -> Settings:
    os.environ[_ENVIRONMENT] = _OURS
    settings = Settings()
    settings.setmodule(_OURS, priority="project")
    settings.setdict(json.loads(os.environ.get(SETTINGS_VARIABLE, "{}")), priority="project")
    return settings
