"""``focuscrawl collect``: from a crawl to a corpus, as a table, as an archive, with its links."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen
from xml.etree import ElementTree as ET

import pytest

from focuscrawl.foundation.urls import normalize
from focuscrawl.text.text_store import FILE
from focuscrawl.webs.captures import surt
from focuscrawl.webs.opening import open_web

from .ports import await_listener, free_port
from .running import ROOT
from .typed import focuscrawl

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


def test_a_corpus_is_a_table_an_archive_and_a_graph(folder: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "c.jsonl"
    english = ("--language", "en", "--processes", 1)
    result = focuscrawl("collect", folder, "--out", out, *english, "--links")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) > 10
    assert all(row["relevance"] >= 0.5 and row["language"] == "en" for row in rows)
    assert all(row["text"] and row["markdown"] for row in rows)
    assert f"{len(rows)} pages of" in result.output
    sheet = (tmp_path / "c.jsonl.datasheet.md").read_text()
    assert re.search(r"precision, [^:]*: [01]\.\d\d", sheet)  # it is measured
    assert f"`focuscrawl collect {folder} --out {out} --language en" in sheet

    urls = {row["url"] for row in rows}
    edges = parquet.read_table(tmp_path / "c.links.parquet").to_pylist()
    assert edges
    assert all({edge["source"], edge["target"]} <= urls for edge in edges)
    graph = ET.parse(tmp_path / "c.links.graphml").getroot()[-1]
    names = [child.tag.rpartition("}")[2] for child in graph]
    assert names == ["node"] * len(urls) + ["edge"] * len(edges)
    hosts = parquet.read_table(tmp_path / "c.hosts.parquet").to_pylist()
    assert all(edge["source"] != edge["target"] for edge in hosts)
    assert (tmp_path / "c.hosts.graphml").is_file()

    kept = (folder / FILE).stat().st_mtime_ns
    focuscrawl("collect", folder, "--out", tmp_path / "c.warc.gz", *english)
    assert (folder / FILE).stat().st_mtime_ns == kept  # texts are read, not taken anew
    archive, demo = open_web(str(tmp_path / "c.warc.gz")), open_web("demo")
    assert {*archive.urls()} == urls
    for row in rows[:3]:
        answers = [web.fetch(row["url"]) for web in (archive, demo)]
        assert answers[0] is not None
        assert answers[1] is not None
        assert answers[0].body == answers[1].body

    for name in ("none.csv", "none.warc.gz", "none.wacz", "none"):
        none = ("collect", folder, "--out", tmp_path / name, "--language", "ja")
        assert re.search(
            r"^focuscrawl: nothing to export: all of \d+ pages with relevance ≥ 0\.5 were skipped "
            r"\(\d+ other or unknown language\)$",
            focuscrawl(*none, code=2).output,
            re.MULTILINE,
        )
    assert not [*tmp_path.glob("none*"), *tmp_path.glob(".none*")]


def test_what_cannot_be_collected_is_one_line(folder: Path, tmp_path: Path) -> None:
    for arguments in (
        (folder, "--out", tmp_path / "c.xlsx"),
        (tmp_path / "none", "--out", tmp_path / "c.csv"),
        (folder, "--out", tmp_path / "c.csv", "--language", "english"),
        (folder, "--out", tmp_path / "c.csv", "--language", "en,xx"),
    ):
        assert "Traceback" not in focuscrawl("collect", *arguments, code=2).output
    assert not (folder / FILE).exists()


@pytest.fixture(scope="module")
def pywb() -> Path:
    """Folder of the programs of pywb, a replay that is not ours, in its own environment."""
    if not (PYWB.parent / ".installed").is_file():
        pytest.skip("pywb is not installed: make .venv-pywb/.installed")
    return PYWB


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


def test_pywb_serves_an_archive_by_its_index(pywb: Path, folder: Path, tmp_path: Path) -> None:
    given = ("collect", folder, "--out", tmp_path / "c.warc.gz", "--processes", 1)
    assert "c.cdxj" in focuscrawl(*given).output
    lines = (tmp_path / "c.cdxj").read_text().splitlines()
    assert lines == sorted(lines)
    captures = [
        (at, json.loads(about)["url"]) for _, at, about in (x.split(" ", 2) for x in lines)
    ]
    assert {url for _, url in captures} == {*open_web(str(tmp_path / "c.warc.gz")).urls()}
    demo = open_web("demo")
    with replaying(pywb, tmp_path) as replay:
        for at, url in (captures[0], captures[len(captures) // 2], captures[-1]):
            expected = demo.fetch(url)
            assert expected is not None
            with urlopen(f"{replay}/{at}id_/{url}") as answer:
                assert answer.read() == expected.body
            with urlopen(f"{replay}/{at}mp_/{url}") as answer:  # links lead into it
                assert replay.rpartition(":")[2].encode() in answer.read()


def test_a_wacz_file_is_valid_and_has_the_pages_of_the_warc_file(
    pywb: Path, folder: Path, tmp_path: Path
) -> None:
    if not (pywb / "wacz").is_file():
        pytest.skip("py-wacz is not installed: make .venv-pywb/.installed")
    path = tmp_path / "c.wacz"
    for out in (path, tmp_path / "c.warc.gz"):
        focuscrawl("collect", folder, "--out", out, "--processes", 1)
    validate = [str(pywb / "wacz"), "validate", "-f", str(path)]
    done = subprocess.run(validate, check=False, capture_output=True, text=True)
    assert "Validation succeeded" in done.stdout, done.stdout + done.stderr
    web = open_web(str(path))
    assert web.fingerprint == open_web(str(tmp_path / "c.warc.gz")).fingerprint
    assert f"{len([*web.urls()])} pages" in focuscrawl("web", "info", path).output


def test_keys_are_those_that_pywb_asks_for(pywb: Path) -> None:
    urls = [url for each in ADDRESSES if (url := normalize(each)) is not None]
    assert len(urls) == len(ADDRESSES)
    each = "import surt, sys; [print(surt.surt(url)) for url in sys.argv[1:]]"
    done = subprocess.run(
        [pywb / "python", "-c", each, *urls], check=True, capture_output=True, text=True
    )
    assert [surt(url) for url in urls] == done.stdout.splitlines()
