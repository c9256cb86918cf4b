"""A crawl of an archive in Common Crawl's layout, which a web server serves by byte ranges.

The lines of the index are those of cdxj-indexer, if it is installed beside pywb.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
from unit.archives import record_demo, write_blocks

from focuscrawl.errors import UserError
from focuscrawl.foundation import api_client
from focuscrawl.webs import archive_web, open_web

from .archive_server import ArchiveServer
from .running import ROOT, crawl
from .typed import focuscrawl, mistaken

INDEXER = ROOT / ".venv-pywb" / "bin" / "cdxj-indexer"
INDEXES = "cc-index/collections/CC-MAIN-2026-05/indexes"
WARCS = "crawl-data/CC-MAIN-2026-05/segments/1/warc"
FAST = "?per_minute=60000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in Common Crawl's layout."""
    if not INDEXER.is_file():
        pytest.skip("cdxj-indexer is not installed: make .venv-pywb/.installed")
    root = tmp_path_factory.mktemp("archive")
    (root / WARCS).mkdir(parents=True)
    (root / INDEXES).mkdir(parents=True)
    record_demo(root / WARCS)
    written = subprocess.run(
        [INDEXER, "--sort", "--dir-root", root, root / WARCS / "web.warc.gz"],
        check=True,
        capture_output=True,
    )
    lines = written.stdout.splitlines(keepends=True)
    write_blocks(lines, root / INDEXES, per_block=30, per_file=7)
    return root


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ArchiveServer]:
    monkeypatch.setattr(api_client, "_MIN_WAIT", 0.01)
    with ArchiveServer(folder).serving() as server:
        yield server


def web_of(server: ArchiveServer, options: str = FAST) -> str:
    return f"{server.url}/{INDEXES}/cluster.idx{options},{server.url}{options}"


def test_a_crawl_of_it_is_that_of_the_recording(
    server: ArchiveServer, folder: Path, tmp_path: Path
) -> None:
    given = {"topic": "/Sports/Cycling", "seeds": "models/demo/seeds.csv", "budget": 40}
    recording = folder / WARCS / "web.warc.gz"
    expected = crawl(tmp_path / "recording", web=recording, **given).kept.urls
    assert len(expected) == 40
    assert crawl(tmp_path / "archive", web=web_of(server), **given).kept.urls == expected


def test_it_has_the_urls_and_responses_of_the_recording(
    server: ArchiveServer, folder: Path
) -> None:
    web, recording = open_web(web_of(server)), open_web(str(folder / WARCS / "web.warc.gz"))
    urls = [*recording.urls()]
    assert sorted(web.urls()) == sorted(urls)
    assert web.resolve([*urls, "http://none.example/"]) == [*urls, None]
    assert [*map(web.fetch, urls[::40])] == [*map(recording.fetch, urls[::40])]
    assert f"{len(urls):,} pages" in focuscrawl("web", "info", web_of(server)).output


def test_an_index_here_leads_to_files_there(server: ArchiveServer, folder: Path) -> None:
    index = folder / INDEXES / "cluster.idx"
    web = open_web(f"{index},{server.url}{FAST}")
    url = next(web.urls())
    assert web.fetch(url) == open_web(f"{index},{folder}").fetch(url) is not None


def test_an_uncompressed_index_may_be_on_the_server(server: ArchiveServer, folder: Path) -> None:
    web = open_web(f"{server.url}/{WARCS}/web.cdxj{FAST}")
    expected = open_web(str(folder / WARCS / "web.cdxj"))
    urls = [*expected.urls()]
    assert [*web.urls()] == urls
    assert web.fetch(urls[3]) == expected.fetch(urls[3]) is not None


def test_requests_wait_while_the_server_is_busy(server: ArchiveServer) -> None:
    web = open_web(web_of(server))
    url = next(web.urls())
    server.busy = [503, 503, 429]
    asked = len(server.asked)
    answer = web.fetch(url)
    assert answer is not None
    assert not answer.failure
    paths = [path for path, _ in server.asked[asked:]]
    assert paths[0] == paths[1] == paths[2] == paths[3]
    server.busy = [503] * 99
    with pytest.raises(UserError, match=r"answers 503: try again later$"):
        open_web(web_of(server))


def test_requests_keep_the_rate(server: ArchiveServer) -> None:
    web = open_web(web_of(server, "?per_minute=1200"))
    web.fetch(next(web.urls()))
    times = [at for _, at in server.asked]
    assert len(times) > 4
    assert times[-1] - times[0] >= 0.05 * (len(times) - 2)


def test_what_cannot_be_read_is_one_line(server: ArchiveServer) -> None:
    for web, said in (
        (f"{server.url}/none/cluster.idx{FAST}", "none/cluster.idx does not exist"),
        (f"{server.url}/{INDEXES}/cdx-00000.gz,{server.url}", "there is no recorded web"),
        (web_of(server, "?per_minute=0"), "the only option is per_minute"),
        (web_of(server, "?key=1"), "the only option is per_minute"),
        (f"http://me:secret@127.0.0.1/{INDEXES}/cluster.idx", "remove name and password"),
        (f"{server.url}/a.parquet", "an index in Parquet cannot be read from a web server"),
    ):
        line = mistaken("web", "info", web)
        assert said in line
        assert "secret" not in line
    server.ignores_ranges = True
    assert "sends no byte ranges" in mistaken("web", "info", web_of(server))


def test_a_crawl_stops_if_the_server_refuses_and_is_resumed_later(
    server: ArchiveServer, folder: Path, tmp_path: Path
) -> None:
    given = {"topic": "/Sports/Cycling", "seeds": "models/demo/seeds.csv", "budget": 20}
    expected = crawl(tmp_path / "whole", web=web_of(server), **given).kept.urls
    for refused in (".warc.gz", "cdx-"):  # the page, or the links of a page
        server.refuses, server.refuse_after = refused, len(server.asked) + 30
        run = crawl(tmp_path / "stopped", code=1, web=web_of(server), **given)
        assert run.stderr.count("refuses requests (403): try again later") == 1
        assert "Traceback" not in run.stderr
        assert run.kept.stop_reasons[-1] == "error"
        assert len(run.kept.urls) < 20
    server.refuse_after = None
    assert crawl(tmp_path / "stopped", web=web_of(server), **given).kept.urls == expected


def test_an_index_of_millions_of_urls_is_only_searched(
    server: ArchiveServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_web, "_MAX_REQUESTS", 3)
    web = open_web(web_of(server))
    (url,) = [*open_web(str(folder / WARCS / "web.warc.gz")).urls()][7:8]
    assert web.resolve([url]) == [url]
    assert "lists too many URLs to read them all" in mistaken("web", "urls", web_of(server))
    here = focuscrawl("web", "urls", f"{folder / INDEXES / 'cluster.idx'},{folder}").output
    assert url in here.splitlines()


def test_a_missing_warc_file_fails_the_fetch(server: ArchiveServer, tmp_path: Path) -> None:
    web = open_web(f"{server.url}/{INDEXES}/cluster.idx{FAST},{server.url}/elsewhere{FAST}")
    answer = web.fetch(next(web.urls()))
    assert answer is not None
    assert re.search(r"elsewhere/crawl-data\S+ does not exist", answer.failure)
