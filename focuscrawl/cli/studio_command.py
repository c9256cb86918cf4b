"""``focuscrawl studio``: manage the topics, critics and crawls of a folder in a browser."""

from __future__ import annotations

import json
import os
import webbrowser
from pathlib import Path

import click

from focuscrawl.cli import common_options
from focuscrawl.errors import UserError
from focuscrawl.foundation.processes import SETTINGS_VARIABLE
from focuscrawl.studio.access import PublicUrl
from focuscrawl.studio.served_folder import StudioFolder
from focuscrawl.studio.serving import Studio, has_browser


@click.command()
@click.argument("folder", type=common_options.PATH, default=Path())
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="IP address on which the studio listens; with another address than 127.0.0.1, other "
    "machines can reach the studio.",
)
@click.option(
    "--port",
    default=8222,
    show_default=True,
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Port on which the studio listens; 0: any free port.",
)
@click.option(
    "--public-url",
    metavar="URL",
    help="Public URL of the studio, such as https://studio.example.org/focuscrawl, if the studio "
    "is behind a reverse proxy.",
)
@common_options.SETTINGS
@click.option(
    "--read-only",
    is_flag=True,
    help="Show all pages of the studio, but do not let users change anything.",
)
@click.option(
    "--no-browser", is_flag=True, help="Print the URL of the studio, but do not open a browser."
)
def studio(
    folder: Path,
    host: str,
    port: int,
    *,
    public_url: str | None,
    settings: tuple[str, ...],
    read_only: bool,
    no_browser: bool,
) -> None:
    """Start the studio, a web interface for the topics and crawls in FOLDER.

    FOLDER is the current folder by default. Ctrl-C stops the studio. The command prints the URL of
    the studio, which contains a secret token. Anybody who knows the URL of the studio can start
    crawls and delete data.

    Crawls that you start in the studio use the settings that you give with -s, but not the
    settings of a Scrapy project. Example: -s USER_AGENT="cycling-survey
    (+https://example.org/about-our-crawler)"
    """
    pairs = [each.partition("=") for each in settings]
    if wrong := [name for name, equals, _ in pairs if not (name and equals)]:
        raise UserError(f"-s {wrong[0]!r:.100} is not a setting: write NAME=VALUE")
    served = Studio(
        StudioFolder(folder),
        host,
        port,
        read_only=read_only,
        public_url=None if public_url is None else PublicUrl.parse(public_url),
    )
    os.environ[SETTINGS_VARIABLE] = json.dumps({name: value for name, _, value in pairs})
    os.chdir(folder)  # paths in definitions and crawls are relative to the served folder
    click.echo(
        f"The studio is at {served.address}\nCtrl-C stops the studio; crawls continue to run."
    )
    if has_browser() and not no_browser:
        webbrowser.open(served.address)
    served.serve()
