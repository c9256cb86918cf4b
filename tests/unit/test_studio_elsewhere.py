"""What a studio is told of where else crawls can run, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from focuscrawl.cli.main import main
from focuscrawl.errors import UserError
from focuscrawl.studio.crawling.beginning import check_arguments
from focuscrawl.studio.crawls import SharedCrawls
from focuscrawl.studio.desk import Desk
from focuscrawl.studio.folder import StudioFolder
from focuscrawl.studio.jobs import Jobs
from focuscrawl.studio.scrapyd import Scrapyd

if TYPE_CHECKING:
    from pathlib import Path

AWAY = "postgresql://crawler@127.0.0.1:9/crawls"  # nobody listens there


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--store", "postgresql://u:secret@127.0.0.1/d"], "PGPASSWORD"),
        (["--store", "mysql://127.0.0.1/d"], "PostgreSQL URL"),
        (["--store", AWAY], "refused"),
        (["--scrapyd", "127.0.0.1:6800"], "where it listens"),
        (["--scrapyd", "file:///etc/passwd"], "where it listens"),
        (["--scrapyd", "http://u:secret@127.0.0.1:6800"], "SCRAPYD_PASSWORD"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, options: list[str], why: str) -> None:
    done = CliRunner().invoke(main, ["studio", str(tmp_path), "--port", "0", *options])
    assert done.exit_code == 2
    assert why in done.output
    assert "secret" not in done.output
    assert len(done.output.splitlines()) == 1


@pytest.mark.parametrize(
    "store",
    [f"{AWAY}?crawl=other", "postgresql://crawler@elsewhere/crawls?crawl=hills", "crawl.db"],
)
def test_a_job_of_a_strangers_folder_joins_no_other_crawl(tmp_path: Path, store: str) -> None:
    job = tmp_path / ".studio" / "jobs" / "1"
    job.mkdir(parents=True)
    arguments = ["crawl", "-a", "topic=/x", "-a", f"store={store}"]
    order = {"kind": "crawl", "subject": "postgresql:hills", "arguments": arguments}
    (job / "order.json").write_text(json.dumps(order | {"begun": "2026"}))
    desk = Desk(StudioFolder(tmp_path), Jobs(tmp_path), False, SharedCrawls(AWAY))
    crawl = desk.crawl("postgresql:hills")
    with pytest.raises(UserError, match="in a way that the studio does not know"):
        check_arguments(desk.folder, crawl, desk.jobs.all()[0].arguments)
    check_arguments(desk.folder, crawl, ["crawl", "-a", f"store={AWAY}?crawl=hills"])


def test_an_answer_of_something_else_is_no_scrapyd(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not answer"):
        Scrapyd("http://127.0.0.1:9").jobs()
