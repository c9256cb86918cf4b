"""``focuscrawl new``: create a Scrapy project."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import write_files
from focuscrawl.errors import UserError

_SCRAPY = """\
[settings]
default = crawl_settings
"""

_SETTINGS = '''\
"""Settings of the crawls in this folder."""

from focuscrawl.settings import *  # polite defaults of focuscrawl

# Name your crawler, with a page or an address where site owners can reach you.
# USER_AGENT = "cycling-survey (+https://example.org/about-our-crawler)"

# The synthetic demo web, for trying out focuscrawl. Delete this line to crawl the live Web.
FOCUSCRAWL_WEB = "demo"

# Arguments given with `focuscrawl crawl -a` override these settings.
FOCUSCRAWL_TOPIC = "/good"
FOCUSCRAWL_CRITIC = "models/topic"
FOCUSCRAWL_SEEDS = "seeds.txt"
FOCUSCRAWL_BUDGET = 100
'''

_TOPIC = """\
# The topic: phrases that occur on its pages. You can also add example pages:
# good = ["https://..."] for relevant pages, bad = ["https://..."] for off-topic pages.
# After a change, train a new critic and name its folder in crawl_settings.py:
#     focuscrawl topic train topic.toml --out models/topic-2

words = ["road cycling", "bicycle", "peloton"]
"""

_SEEDS = """\
# Start pages, one URL per line. These URLs are pages of the synthetic demo web.
https://peloton-37.demo.example/
https://spokes-6.demo.example/
"""

FILES = {
    "scrapy.cfg": _SCRAPY,
    "crawl_settings.py": _SETTINGS,
    "topic.toml": _TOPIC,
    "seeds.txt": _SEEDS,
}


@click.command()
@click.argument("folder", metavar="DIR", type=common_options.PATH)
def new(*, folder: Path) -> None:
    """Create a Scrapy project with settings, a topic definition and start pages in the folder DIR.

    At first, the new project crawls a synthetic web instead of the live Web. Comments in the files
    of the project explain what to change for your own topic.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UserError(f"{folder} exists and is not an empty folder: name a new folder")
    write_files(folder, {name: text.encode() for name, text in FILES.items()}, "DIR")
    click.echo(
        f"wrote {', '.join(FILES)}. Next:\n"
        f"    cd {shlex.quote(str(folder))}\n"
        "    focuscrawl topic train topic.toml --out models/topic\n"
        "    focuscrawl crawl"
    )
