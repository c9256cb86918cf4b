"""``focuscrawl studio``: topics, critics and crawls of a folder, in a browser."""

from __future__ import annotations

import json
import os
import webbrowser
from pathlib import Path

import click

from focuscrawl.cli import common_options
from focuscrawl.errors import UserError
from focuscrawl.foundation.processes import SETTINGS
from focuscrawl.studio.access import PublicUrl
from focuscrawl.studio.served_folder import StudioFolder
from focuscrawl.studio.serving import Studio, has_browser


@click.command()
@click.argument("folder", type=common_options.PATH, default=Path())
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Others than this machine's own let the network in.",
)
@click.option(
    "--port",
    default=8222,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 for one that is free.",
)
@click.option(
    "--public-url",
    metavar="URL",
    help="Address that browsers use where a proxy stands before the studio, as for TLS: "
    "https://studio.example.org, or a path below one.",
)
@common_options.SETTINGS
@click.option("--read-only", is_flag=True, help="Show everything, change nothing.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
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
    """Serve FOLDER, else the current one, to a browser on this machine, until Ctrl-C.

    The address that is printed holds a token: who has it can do what you can.

    Crawls that begin here have the settings given with -s, and none of a project:
    -s USER_AGENT="cycling-survey (+https://example.org/about-our-crawler)"
    """
    pairs = [each.partition("=") for each in settings]
    if wrong := [name for name, equals, _ in pairs if not (name and equals)]:
        raise UserError(f"-s {wrong[0]!r:.100} is no setting: give NAME=VALUE")
    served = Studio(
        StudioFolder(folder),
        host,
        port,
        read_only=read_only,
        public_url=None if public_url is None else PublicUrl.parse(public_url),
    )
    os.environ[SETTINGS] = json.dumps({name: value for name, _, value in pairs})
    os.chdir(folder)  # paths in definitions and crawls are relative to it
    click.echo(f"The studio is at {served.address}\nCtrl-C ends it; crawls go on without it.")
    if has_browser() and not no_browser:
        webbrowser.open(served.address)
    served.serve()
