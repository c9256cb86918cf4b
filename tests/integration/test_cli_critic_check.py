"""``focuscrawl critic check`` without labels, as a user runs it on the demo web."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from focuscrawl.webs import open_web

from .recording import record
from .typed import focuscrawl, mistaken


@pytest.fixture(scope="module")
def cycling() -> list[str]:
    """URLs of pages on cycling, of several sites."""
    urls = [url for url in open_web("demo").urls() if "/cycling-" in url]
    return urls[:: len(urls) // 12][:12]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cycling: list[str]) -> Path:
    """A folder with lists of good and bad pages of the demo web, to run commands in."""
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    bad = [url for url in open_web("demo").urls() if "/running-" in url][:4]
    (tmp_path / "good.txt").write_text("\n".join(cycling))
    (tmp_path / "bad.txt").write_text("\n".join(bad))
    return tmp_path


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A critic from words alone."""
    path = tmp_path_factory.mktemp("critic") / "words"
    focuscrawl("critic", "train", "--words", "road cycling", "--out", path)
    return path


def test_a_critic_is_checked_by_its_examples(folder: Path) -> None:
    little = ["--good", "good.txt", "--bad", "bad.txt", "--name", "/Cycling"]
    focuscrawl("critic", "train", *little, "--web", "demo", "--out", "models/mine")
    check = ("critic", "check", "models/mine", "--web", "demo")
    done = focuscrawl(*check, "--csv", "pages.csv")
    lines = done.stdout.splitlines()
    assert re.match(
        r"The critic finds (about \d of 10|nearly all|hardly any) relevant pages \(\d+ to \d+\)\.",
        lines[0],
    )
    assert "with --wrong N." in lines[0]
    assert lines[1] == "Good examples: 12, bad examples: 4"
    called = re.fullmatch(r"(\d+) of 300 other pages judged relevant", lines[2])
    assert called is not None
    assert re.fullmatch(r"\d of 4 bad examples judged relevant when held out", lines[3])
    part = {part.split("\n")[0]: part.split("\n")[1:] for part in done.stdout.split("\n\n")[1:]}
    doubtful, others, words = part.values()
    assert len(doubtful) == 10
    assert len(others) == min(int(called[1]), 20)
    assert "cycling" in words[0].split("  ")[-1].split(", ")
    with (folder / "pages.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["topic"] for row in rows] == ["/Cycling"] * 12 + ["/bad"] * 4 + [""] * 300
    relevant = sum(row["predicted"] == "/Cycling" for row in rows if not row["topic"])
    assert relevant == int(called[1])
    looked = focuscrawl(*check, "--wrong", len(others) // 2).stdout.splitlines()[0]
    assert re.search(r" About 5 of 10 pages judged relevant are off topic \(\d to \d\)\.$", looked)


def test_near_identical_examples_count_once_and_titles_are_made_fit(folder: Path) -> None:
    text = " ".join(f"feather{i} wing{i % 7} beak{i % 5}" for i in range(120))
    pages = [
        (f"http://a.example/{i}", f"<title>\x1b[31mbird\u202e {'wide ' * 400}</title>{text} {end}")
        for i, end in enumerate(["", "once", "twice"])
    ]
    pages += [("http://b.example/short", "<p>a bird")]
    pages += [("http://c.example/short", "<p>a bird")]
    good = [url for url, _ in pages]
    pages += [(f"http://d.example/{i}", f"<p>a ship and {i} sails") for i in range(30)]
    record(folder / "small.warc.gz", pages)
    (folder / "good.txt").write_text("\n".join(good))
    web = ["--web", "small.warc.gz"]
    focuscrawl("critic", "train", "--good", "good.txt", *web, "--out", "models/birds")
    done = focuscrawl("critic", "check", "models/birds", *web)
    assert (
        "Good examples: 2, bad examples: 0; 3 skipped (near-duplicates of another" in done.stdout
    )
    assert "only 2 good examples" in done.stdout
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 300


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["models/demo", "--web", "demo"], "name --labels"),
        (["json:loads", "--web", "demo"], "name --labels"),
        (["nowhere", "--web", "demo"], "critic nowhere not found"),
        (["models/words", "--web", "no.warc"], "no recorded web no.warc"),
        (["models/words", "--web", "demo", "--topic", "/good"], "need --labels"),
        (["models/words", "--web", "demo", "--raw"], "need --labels"),
        (["models/words", "--web", "demo", "--labels", "l.csv", "--wrong", "1"], "leave out one"),
    ],
)
def test_mistakes_end_in_one_line(
    folder: Path, words: Path, arguments: list[str], message: str
) -> None:
    (folder / "models").mkdir()
    (folder / "models" / "words").symlink_to(words)
    assert message in mistaken("critic", "check", *arguments)
