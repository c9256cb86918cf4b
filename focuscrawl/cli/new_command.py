"""``focuscrawl new``: create a project."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import write_files
from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


_SCRAPY = """\
[settings]
default = crawl_settings
"""

_SETTINGS = '''\
"""Settings of the crawls in this folder."""

from focuscrawl.settings import *  # a crawl that is decent to the sites it visits

# Say who is crawling: a page or an address where people can reach you.
# USER_AGENT = "cycling-survey (+https://example.org/about-our-crawler)"

# The synthetic web, to try things out. Take this line out for the live Web.
FOCUSCRAWL_WEB = "demo"

# What `focuscrawl crawl` is told with -a comes before these.
FOCUSCRAWL_TOPIC = "/good"
FOCUSCRAWL_CRITIC = "models/topic"
FOCUSCRAWL_SEEDS = "seeds.txt"
FOCUSCRAWL_BUDGET = 100
'''

_TOPIC = """\
# What the topic is: phrases that its pages have. Pages can be added, too:
# good = ["https://..."] on the topic, bad = ["https://..."] beside it.
# After a change, train a critic anew, and name its folder in crawl_settings.py:
#     focuscrawl topic train topic.toml --out models/topic-2

words = ["road cycling", "bicycle", "peloton"]
"""

_SEEDS = """\
# Start pages, one a line. These are of the synthetic web.
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
    """Write a project to DIR: scrapy.cfg, settings, a topic and start pages, to go on from.

    As they are written they crawl the synthetic web; what to change for your own topic is in them.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UserError(f"{folder} is there already: name a new folder, or an empty one")
    write_files(folder, {name: text.encode() for name, text in FILES.items()}, "DIR")
    click.echo(
        f"wrote {', '.join(FILES)}; go on there:\n"
        f"    cd {shlex.quote(str(folder))}\n"
        "    focuscrawl topic train topic.toml --out models/topic\n"
        "    focuscrawl crawl"
    )
