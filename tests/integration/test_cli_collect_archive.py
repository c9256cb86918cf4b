"""A collection as an archive: a replay that is not ours, pywb, finds its pages by our index."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from unit.archives import record_demo

from focuscrawl.cli.main import main
from focuscrawl.foundation.urls import normalize
from focuscrawl.webs.captures import surt
from focuscrawl.webs.opening import open_web

from .ports import await_listener, free_port
from .running import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("trafilatura")
pytest.importorskip("resiliparse")

PYWB = ROOT / ".venv-pywb" / "bin"
CONFIG = "collections: {c: {index_paths: c.cdxj, archive_paths: ./}}\n"
ADDRESSES = [
    *("http://www.A.example", "http://www2.a.example:8080//B/../c/", "https://[::1]:8443/x"),
    *("http://10.0.0.1/?b=2&a=1&&a", "http://a.example/x?=&..&c=%26&B", "http://www.com/a?"),
    *("http://a.example/%2541%2f%2E%2E/..%2f..%2f%20%0a%E9é?q=%23 \"'", "http://a.example/%zz%"),
    *(f"http://a.example/x?{name}={'a1' * 16}&y" for name in ("jsessionid", "PHPSESSID", "sid")),
    "http://a.example/x?ASPSESSIONIDABCDEFGH=ABCDEFGHIJKLMNOPQRSTUVWX&cfid=1&cftoken=2&z",
    f"http://a.example/(S({'a1' * 12}))/({'a1' * 12})/x.aspx?y",
]


@pytest.fixture(scope="module")
def pywb() -> Path:
    """Folder of pywb's programs, in an environment of its own: it has pins that we have not."""
    if not (PYWB.parent / ".installed").is_file():
        pytest.skip("pywb is not installed: make .venv-pywb/.installed")
    return PYWB


class Line(NamedTuple):
    """A line of an index."""

    key: str
    timestamp: str
    about: dict[str, str]


@contextmanager
def replaying(programs: Path, folder: Path) -> Iterator[str]:
    """Serve the collection ``c`` of a folder."""
    (folder / "config.yaml").write_text(CONFIG)
    port = free_port()
    with (
        (folder / "pywb.log").open("wb") as log,
        subprocess.Popen(
            [programs / "wayback", "-b", "127.0.0.1", "-p", str(port)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            await_listener(port)
            yield f"http://127.0.0.1:{port}/c"
        finally:
            process.terminate()


def test_pywb_serves_what_is_taken_home(pywb: Path, folder: Path, tmp_path: Path) -> None:
    given = ["collect", str(folder), "--out", str(tmp_path / "c.warc.gz"), "--processes", "1"]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 0, result.output
    assert "c.cdxj" in result.output
    text = (tmp_path / "c.cdxj").read_text()
    assert text.splitlines() == sorted(text.splitlines())
    parts = [line.split(" ", 2) for line in text.splitlines()]
    lines = [Line(key, at, json.loads(about)) for key, at, about in parts]
    demo = open_web("demo")
    urls = [line.about["url"] for line in lines]
    assert {*urls} == {*open_web(str(tmp_path / "c.warc.gz")).urls()}
    with replaying(pywb, tmp_path) as replay:
        for line in (lines[0], lines[len(lines) // 2], lines[-1]):
            url = line.about["url"]
            expected = demo.fetch(url)
            assert expected is not None
            with urlopen(f"{replay}/{line.timestamp}id_/{url}") as answer:
                assert answer.read() == expected.body
            with urlopen(f"{replay}/{line.timestamp}mp_/{url}") as answer:  # links lead into it
                assert replay.rpartition(":")[2].encode() in answer.read()


@pytest.mark.long
def test_an_index_that_pywb_writes_makes_an_archive(pywb: Path, tmp_path: Path) -> None:
    record_demo(tmp_path)
    index, warc = tmp_path / "pywb.cdxj", tmp_path / "web.warc.gz"
    subprocess.run(
        [pywb / "cdx-indexer", "-s", "-j", "-o", index, warc], check=True, capture_output=True
    )
    recorded, web = open_web(str(warc)), open_web(str(index))
    urls = [*recorded.urls()]
    assert web.resolve(urls) == urls
    assert [*map(web.fetch, urls)] == [*map(recorded.fetch, urls)]


def test_keys_are_those_that_pywb_asks_for(pywb: Path) -> None:
    urls = [url for each in ADDRESSES if (url := normalize(each)) is not None]
    assert len(urls) == len(ADDRESSES)
    each = "import surt, sys; [print(surt.surt(url)) for url in sys.argv[1:]]"
    done = subprocess.run(
        [pywb / "python", "-c", each, *urls], check=True, capture_output=True, text=True
    )
    assert [surt(url) for url in urls] == done.stdout.splitlines()
