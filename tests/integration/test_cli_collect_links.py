"""``focuscrawl collect --links``: the graph of what is taken home."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from focuscrawl.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("trafilatura")
pytest.importorskip("resiliparse")


def test_links_are_between_pages_of_the_collection(folder: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "c.jsonl"
    given = ["collect", str(folder), "--out", str(out), "--processes", "1", "--links"]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 0, result.output
    urls = {json.loads(line)["url"] for line in out.read_text().splitlines()}
    edges = parquet.read_table(tmp_path / "c.links.parquet").to_pylist()
    assert edges
    assert all({edge["source"], edge["target"]} <= urls for edge in edges)
    graph = ET.parse(tmp_path / "c.links.graphml").getroot()[-1]
    names = [child.tag.rpartition("}")[2] for child in graph]
    assert names == ["node"] * len(urls) + ["edge"] * len(edges)
    hosts = parquet.read_table(tmp_path / "c.hosts.parquet").to_pylist()
    assert all(edge["source"] != edge["target"] for edge in hosts)
    assert (tmp_path / "c.hosts.graphml").is_file()
