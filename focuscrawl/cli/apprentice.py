"""``focuscrawl apprentice``: an apprentice for the next crawl."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click
import sqlalchemy as sa
from tqdm import tqdm

from focuscrawl.apprentice.files import save_apprentice
from focuscrawl.crawl.hindsight import learn_from
from focuscrawl.critic import load_critic
from focuscrawl.errors import UserError
from focuscrawl.report.opening import open_crawl
from focuscrawl.store import schema
from focuscrawl.webs import open_web


@click.group()
def apprentice() -> None:
    """Train apprentices on crawls that are over."""


@apprentice.command()
@click.argument("crawl_dir", metavar="CRAWL_DIR")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="models/NAME.")
@click.option("--web", help="Where the pages are, if another strategy crawled.")
@click.option("--critic", help="Who reads links, if another strategy crawled: the crawl's own.")
def train(crawl_dir: str, out: Path, web: str | None, critic: str | None) -> None:
    """Train an apprentice on the crawl in CRAWL_DIR and write it to --out.

    \b
    focuscrawl apprentice train crawls/first --out models/cycling-links
    scrapy crawl focused -a apprentice=models/cycling-links ...
    """
    if out.exists():
        raise UserError(f"{out} is there already: name another folder")
    with closing(open_crawl(crawl_dir)) as store:
        identity = store.identity()
        count = sa.select(sa.func.count().label("n")).select_from(schema.page)
        (pages,) = store.rows(count)
        judge = None
        if web is not None:
            judge = load_critic(critic or identity["critic_name"], identity["topic"])
        with tqdm(total=pages.n, desc="Reading", unit=" pages", disable=None) as bar:
            learned = learn_from(
                store,
                critic=judge,
                web=None if web is None else open_web(web),
                on_page=bar.update,
            )
    about: dict[str, str | int] = {
        "topic": identity["topic"],
        "instances": learned.judged,
        "crawl": crawl_dir,
    }
    save_apprentice(learned.graduate(), out, about)
    click.echo(f"{out}: learned from {learned.judged:,} URLs of {crawl_dir}")
