"""``focuscrawl critic`` as a user runs it."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from unit.language_pages import LanguagePages

from focuscrawl.critic.critic_files import read_critic

from . import warm
from .recording import record
from .running import crawl
from .typed import focuscrawl, mistaken

if TYPE_CHECKING:
    from click.testing import Result

WORDS = {
    "/Science/Birds": ["bird", "wing", "nest", "feather", "egg", "song", "flight", "beak"],
    "/Computers": ["kernel", "code", "compiler", "thread", "cache", "loop", "stack", "heap"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small recorded web and its label table, to run commands in."""
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    rows, pages = ["url,topic,split"], []
    for topic, words in WORDS.items():
        for i in range(12):
            url = f"http://example.com{topic.lower()}/{i}"
            chosen = [words[i % 8], words[(i * 3 + 1) % 8], words[(i * 5 + 2) % 8]]
            pages.append((url, " ".join(["<p>", *chosen, *chosen])))
            rows.append(f"{url},{topic},{'test' if i > 7 else 'train'}")
    record(tmp_path / "small.warc.gz", pages)
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    return tmp_path


def run(*arguments: object, code: int = 0) -> Result:
    return focuscrawl("critic", *arguments, code=code)


def train(*more: str, code: int = 0) -> Result:
    labelled = ("labels.csv", "--web", "small.warc.gz", "--out", "models/mine")
    return run("train", *labelled, *more, code=code)


def test_train_and_check(folder: Path) -> None:
    result = train("--kind", "hierarchical", "--calibrate")
    assert ": hierarchical, " in result.output
    assert "Cross-validation on 16 examples, 5 folds" in result.output
    options = ["--labels", "labels.csv", "--web", "small.warc.gz", "--csv", "verdicts.csv"]
    result = run("check", "mine", *options)
    assert "Pages 8, accuracy 1.0000" in result.output
    assert "Probabilities (calibrated)" in result.output
    with (folder / "verdicts.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert all(row["topic"] == row["predicted"] for row in rows)
    assert all(0.5 < float(row["probability"]) < 1.0 for row in rows)


def test_a_dmoz_dump_is_pruned_and_learned_from(folder: Path) -> None:
    with (folder / "labels.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "train"]
    topics = dict.fromkeys(row["topic"] for row in rows)
    links = {t: [row["url"] for row in rows if row["topic"] == t] for t in topics}
    few = "http://example.com/science/birds/9"
    dump = ['<?xml version="1.0" encoding="UTF-8"?>', '<RDF xmlns:r="http://www.w3.org/TR/RDF/">']
    for topic, urls in [*links.items(), ("/Science/Birds/Owls", [few])]:
        dump.append(f'<Topic r:id="Top{topic}">')
        dump += [f'<link r:resource="{url}"/>' for url in urls]
        dump.append("</Topic>")
        dump += [
            f'<ExternalPage about="{url}"><topic>Top{topic}</topic></ExternalPage>' for url in urls
        ]
    (folder / "content.rdf.u8").write_text("\n".join([*dump, "</RDF>"]))
    common = ("--web", "small.warc.gz", "--out", "models/dmoz", "--min-examples", "3")
    result = run("train", "content.rdf.u8", *common)
    assert "Owls" not in result.output  # too few examples: they are its parent's
    assert "9 examples" in result.output


def test_words_and_a_callable_are_checked_by_topic(folder: Path) -> None:
    result = run("train", "--words", "bird, nest, egg, beak, song", "--out", "models/birds")
    common = ("--labels", "labels.csv", "--web", "small.warc.gz", "--topic", "/Science/Birds")
    result = run("check", "birds", "--focus", "/good", *common)
    assert "on topic" in result.output
    (folder / "my_cli_judge.py").write_text(
        "def judge(pages): return [float('kernel' not in p.tokens) for p in pages]"
    )
    result = run("check", "my_cli_judge:judge", *common)
    assert "Pages 8, accuracy" in result.output


def test_a_critic_learns_from_all_that_there_is_of_a_topic(folder: Path) -> None:
    links = [
        f'<DT><A HREF="http://example.com/{topic}/{i}">page</A>'
        for topic, pages in (("science/birds", range(3)), ("computers", range(3)))
        for i in pages
    ]
    (folder / "bookmarks.html").write_text(
        f"<DL><DT><H3>Birds</H3><DL>{links[0]}{links[1]}{links[2]}</DL>{links[3]}</DL>"
    )
    (folder / "birds.txt").write_text("It is about the nest of a bird,\nits wing and its beak.")
    (folder / "bad.txt").write_text("http://example.com/computers/1\nhttp://gone.example/\n")
    result = run(
        "train", "--words", "bird", "--description", "birds.txt", "--bad", "bad.txt",
        "--bookmarks", "bookmarks.html", "--folder", "Birds",
        "--web", "small.warc.gz", "--name", "Birds", "--out", "models/birds",
    )  # fmt: skip
    assert "  /Birds       3 examples\n  /bad         1 examples\n" in result.output
    assert "Skipped examples: 1 unreadable" in result.output
    assert "the page cannot be read: http://gone.example/\n" in result.output
    trained, _ = read_critic(str(folder / "models" / "birds"))
    assert trained.phrases == (("bird",), ("nest", "bird", "wing", "beak"))
    options = ("--labels", "labels.csv", "--web", "small.warc.gz", "--topic", "/Science/Birds")
    result = run("check", "birds", "--focus", "/Birds", *options)
    assert "Pages 8, accuracy" in result.output


def test_kinds_of_old_learn_from_what_they_did(folder: Path) -> None:
    (folder / "good.txt").write_text("http://example.com/science/birds/1\n")
    (folder / "bad.txt").write_text("http://example.com/computers/1\n")
    files = ("--good", "good.txt", "--bad", "bad.txt", "--web", "small.warc.gz")
    result = run("train", *files, "--kind", "flat", "--out", "models/two")
    assert "models/two: flat, " in result.output
    result = run("train", "--words", "bird", "--kind", "words", "--out", "models/words")
    assert "models/words: words, " in result.output


@pytest.mark.usefixtures("folder")
def test_an_existing_critic_needs_force() -> None:
    train()
    (line,) = train(code=2).stderr.splitlines()
    assert "--force" in line
    train("--force")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "nowhere.csv", "--web", "small.warc.gz", "--out", "o"], "nowhere.csv"),
        (["train", "empty.csv", "--web", "small.warc.gz", "--out", "o"], "is empty"),
        (
            ["train", "other.csv", "--web", "small.warc.gz", "--out", "o"],
            "needs the columns url,topic",
        ),
        (["train", "far.csv", "--web", "small.warc.gz", "--out", "o"], "none of the 1 examples"),
        (["train", "labels.csv", "--web", "no.warc", "--out", "o"], "no recorded web no.warc"),
        (["train", "labels.csv", "--out", "o"], "no recorded web to read"),
        (["train", "--out", "o"], "no examples to train on"),
        (["train", "--bad", "labels.csv", "--out", "o"], "labels.csv has rows of 2 topics"),
        (["train", "labels.csv", "--words", "bird", "--out", "o"], "LABELS cannot be combined"),
        (["train", "--words", "", "--out", "o"], "no words"),
        (["train", "--words", "bird", "--name", "/bad", "--out", "o"], "is reserved"),
        (["train", "--description", "topic.txt", "--out", "o"], "topic.txt: no such file"),
        (["train", "--description", "all of that", "--out", "o"], "on nearly every page"),
        (
            ["train", "--words", "bird", "--folder", "Birds", "--out", "o"],
            "--folder needs --bookmarks",
        ),
        (
            ["train", "--good", "far.txt", "--bad", "far.txt", "--out", "o"],
            "both a good and a bad page",
        ),
        (["train", "--good", "none.txt", "--out", "o"], "is not an http(s) URL"),
        (["train", "--good", "far.txt", "--web", "small.warc.gz", "--out", "o"], "can be read"),
        (
            ["train", "--words", "bird", "--kind", "flat", "--out", "o"],
            "give both, leave out the rest",
        ),
        (
            ["train", "--words", "bird", "--kind", "words", "--name", "x", "--out", "o"],
            "--words only",
        ),
        (["train", "--words", "bird", "--kind", "x", "--out", "o"], "unknown kind of critic 'x'"),
        (["train", "labels.csv", "--web", "small.warc.gz", "--out", "o", "--kind", "x"], "kind"),
        (["check", "o", "--labels", "labels.csv", "--web", "small.warc.gz"], "critic o not found"),
        (["check", "json:dumps", "--labels", "labels.csv", "--web", "small.warc.gz"], "--topic"),
    ],
)
def test_mistakes_end_in_one_line(folder: Path, arguments: list[str], message: str) -> None:
    (folder / "empty.csv").write_text("")
    (folder / "other.csv").write_text("page,class\na,b\n")
    (folder / "far.csv").write_text("url,topic\nhttp://elsewhere.example/,/A\n")
    (folder / "far.txt").write_text("http://elsewhere.example/\n")
    (folder / "none.txt").write_text("elsewhere\n")
    assert message in mistaken("critic", *arguments)
    assert not (folder / "o").exists()


def test_a_real_process_writes_a_critic(folder: Path) -> None:
    options = ["labels.csv", "--web", "small.warc.gz", "--out", "models/mine"]
    line = ["critic", "train", *options]
    done = warm.run(line, cwd=folder, env=os.environ, program="focuscrawl")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "Reading: 16 pages\n"  # no terminal, no bar
    assert "models/mine: discriminative, " in done.stdout


def test_a_phrase_and_three_urls_lead_a_crawl_in_another_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    pages = LanguagePages("zh", each=30, others=300)
    # pages say themselves in which charset they are
    web = record(tmp_path / "web.warc.gz", pages.web().items(), "text/html")
    about = {page.url for page in pages.pages if page.topic == "cycling"}
    good, critic = tmp_path / "good.txt", tmp_path / "critic"
    good.write_text("\n".join(sorted(about)[:3]))
    topic = ("--words", pages.phrase("cycling"), "--good", good, "--name", "/Bikes")
    run("train", *topic, "--web", web, "--out", critic)
    done = crawl(tmp_path / "crawl", web=web, critic=critic, topic="/Bikes", seeds=good, budget=60)
    found = {url for (url,) in done.kept.query("SELECT url FROM pages WHERE relevance > 0.5")}
    assert len(found & about) >= 0.7 * len(about)  # of 60 pages drawn at random, four would be
    assert len(found & about) >= 0.9 * len(found)
