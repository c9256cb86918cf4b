"""Archives and crawls in rounds on S3: a server of it on this machine, and PyArrow's client."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from unit.archives import record_demo

from focuscrawl.report.measures import load_pages
from focuscrawl.webs import open_web

from .live_rounds import write_plan
from .ports import await_listener, free_port
from .running import ROOT, Kept
from .spark import LONG, begin, crawl
from .typed import focuscrawl, mistaken

if TYPE_CHECKING:
    from .conftest import LocalWeb

fs = pytest.importorskip("pyarrow.fs")

SERVER = ROOT / ".venv-s3" / "bin" / "moto_server"
PLAN = """
topic = "/Sports/Cycling"
seeds = "models/demo/seeds.csv"
web = "{web}"
budget = 20
round = 10
buckets = 2
strategy = "best-first"
"""


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start an S3 with a bucket; yield what URIs end with that are on it."""
    if not SERVER.exists():
        pytest.skip("no S3 is installed: make .venv-s3/.installed")
    forkserver.ensure_running()  # as other tests do: it keeps the environment of this moment
    port, folder = free_port(), tmp_path_factory.mktemp("s3")
    with (
        pytest.MonkeyPatch.context() as patch,
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [SERVER, "-H", "127.0.0.1", "-p", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        ) as process,
    ):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "of-a-test")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        try:
            await_listener(port)
            ending = f"?endpoint_override=127.0.0.1:{port}&scheme=http"
            files, _ = fs.FileSystem.from_uri(f"s3://b{ending}&allow_bucket_creation=true")
            files.create_dir("bucket")
            yield ending
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_demo(tmp_path_factory.mktemp("demo"))


def in_rounds(web: str, root: str, folder: Path, name: str) -> list[tuple[str, float]]:
    (folder / f"{name}.toml").write_text(PLAN.format(web=web), encoding="utf-8")
    given = ("--master", "processes[2]", "--folder", str(folder / name))
    focuscrawl("rounds", folder / f"{name}.toml", "--out", root, *given)
    pages = load_pages(str(folder / name))
    return list(zip(pages["url"], pages["relevance"].round(6), strict=True))


@pytest.mark.long
def test_an_archive_and_the_tables_of_its_crawl_may_be_on_s3(
    demo: Path, options: str, tmp_path: Path
) -> None:
    files, _ = fs.FileSystem.from_uri(f"s3://b{options}")
    for path in demo.iterdir():
        fs.copy_files(
            str(path),
            f"bucket/webs/{path.name}",
            source_filesystem=fs.LocalFileSystem(),
            destination_filesystem=files,
        )
    recorded = open_web(str(demo / "web.warc.gz"))
    urls = [*recorded.urls()]
    for index in ("web.cdxj", "web.parquet", "*.parquet"):
        web = open_web(f"s3://bucket/webs/{index}{options}")
        assert web.resolve(urls) == urls
        assert [*map(web.fetch, urls[::30])] == [*map(recorded.fetch, urls[::30])]
    here = open_web(f"{demo / 'web.cdxj'},s3://bucket/webs{options}")  # the files only are there
    assert here.fetch(urls[0]) == recorded.fetch(urls[0])
    expected = in_rounds(str(demo / "web.warc.gz"), str(tmp_path / "tables"), tmp_path, "here")
    assert len(expected) == 20
    there = f"s3://bucket/webs/web.parquet{options}"
    assert in_rounds(there, f"s3://bucket/crawl{options}", tmp_path, "there") == expected


def test_what_is_not_on_s3_is_one_line(demo: Path, options: str, tmp_path: Path) -> None:
    for name in ("bucket/none.cdxj", "none/none.cdxj", "none/a/*.parquet"):
        assert "cannot read s3://" in mistaken("web", "info", f"s3://{name}{options}")
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(web=demo / "web.warc.gz"), encoding="utf-8")
    given = ("--out", f"s3://none/crawl{options}", "--master", "processes[1]")
    line = mistaken("rounds", plan, *given)
    assert line.startswith("focuscrawl: none/crawl/")
    assert "cannot be accessed" in line


@pytest.mark.long
def test_a_live_round_of_tables_on_s3_is_gone_on_with_from_its_last_copy(
    options: str, local_web: LocalWeb, tmp_path: Path
) -> None:
    files, _ = fs.FileSystem.from_uri(f"s3://b{options}")
    plan = write_plan(tmp_path / "plan.toml", local_web, round=1000, buckets=1)
    slower = plan.read_text(encoding="utf-8").replace("DOWNLOAD_DELAY = 0.2", "DOWNLOAD_DELAY = 4")
    plan.write_text(slower, encoding="utf-8")
    root, copy = f"s3://bucket/live{options}", "bucket/live/under-way/000-00002/crawl.db"

    def take(path: str, name: str) -> Path:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with files.open_input_stream(path) as file:
            (tmp_path / name).write_bytes(file.read())
        return tmp_path / name

    def has_some() -> bool:
        if files.get_file_info(copy).type == fs.FileType.NotFound:
            return False
        return len(Kept(take(copy, "copy/crawl.db").parent).urls) > 5

    process = begin(plan, root)
    while not has_some():  # the first copy of a busy machine may have the seeds only
        assert process.poll() is None
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=LONG)
    before = len(local_web.requests())
    kept = Kept(take(copy, "copy/crawl.db").parent)
    crawl(plan, root, "--folder", str(tmp_path / "crawl"))
    requests = local_web.requests()[before:]
    asked = [f"{local_web.origins[each['site']]}{each['path']}" for each in requests]
    assert not {*kept.urls} & {*asked}
    assert {*kept.urls} < {*Kept(tmp_path / "crawl").urls}
    recording = open_web(str(take("bucket/live/recorded/000/00002-pages.warc.gz", "all.warc.gz")))
    answered = kept.query("SELECT url FROM pages WHERE status = 200")
    assert {url for (url,) in answered} <= {*recording.urls()}
    kinds = {each.base_name for each in files.get_file_info(fs.FileSelector("bucket/live"))}
    assert "pages" in kinds
    assert "under-way" not in kinds
