"""``focuscrawl crawl``: the same as ``scrapy crawl focused``, without a project."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
from scrapy.utils.project import get_project_settings

from focuscrawl.commands.crawl import Command
from focuscrawl.engine.private import run_command
from focuscrawl.settings import COMMANDS_MODULE, SPIDER_MODULES

if TYPE_CHECKING:
    from scrapy.settings import Settings


# every option is Scrapy's, --help included
@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def crawl(arguments: tuple[str, ...]) -> None:
    """Crawl the pages of a topic."""
    Command.called = "focuscrawl crawl"
    run_command(["focuscrawl", "crawl", "focused", *arguments], project_settings())


def project_settings() -> Settings:
    """Return the settings of the Scrapy project we are in, or ours if it has no focused crawl."""
    settings = get_project_settings()
    if not {*SPIDER_MODULES} & {*settings.getlist("SPIDER_MODULES")}:
        os.environ["SCRAPY_SETTINGS_MODULE"] = "focuscrawl.settings"
        settings = get_project_settings()
    settings.set("COMMANDS_MODULE", COMMANDS_MODULE, priority="cmdline")
    return settings
