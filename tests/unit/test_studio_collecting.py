"""What is taken home, and what is not."""

from __future__ import annotations

import html
import io
import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from filelock import FileLock

from focuscrawl.collection.corpus_folder import CorpusFolder
from focuscrawl.collection.export_files import write_collection
from focuscrawl.critic.critic_files import load_trained
from focuscrawl.errors import UserError
from focuscrawl.studio.corpora import Corpus, read_steps
from focuscrawl.studio.exports import (
    EXPORTS,
    choose_pages,
    create_export_folder,
    find_datasheet,
    find_export,
    list_exports,
    markdown_sections,
    open_download,
    read_chunks,
    read_preview,
)
from focuscrawl.studio.jobs import JobState
from focuscrawl.studio.page_rendering import FieldErrorsError
from focuscrawl.studio.served_folder import StudioFolder
from focuscrawl.topics import TopicDefinition, write_definition

from .small_crawl import being_written
from .studio_folders import ask, make_context, make_crawl, write_job
from .test_collection import collection
from .test_studio_jobs import ended

IDENTITY = {"topic": "/A"}


def test_files_are_listed_and_folders_are_packed(tmp_path: Path) -> None:
    home = create_export_folder(tmp_path)
    (home / "pages.csv").write_text("url,title\nhttp://a.example/,'=1+1\n")
    (home / "texts").mkdir()
    (home / "texts" / "one.md").write_text("# One\u202e")
    (home / "texts" / "linked.md").symlink_to(tmp_path)
    (home / ".draft").write_text("x")
    assert {(each["name"], each["files"]) for each in list_exports(tmp_path)} == {
        ("pages.csv", None),
        ("texts", 1),
    }
    content, called = open_download(find_export(tmp_path, "texts"))
    assert called == "texts.zip"
    with zipfile.ZipFile(io.BytesIO(b"".join(read_chunks(content)))) as archive:
        assert archive.namelist() == ["texts/one.md"]
    assert read_preview(home / "pages.csv") == {
        "columns": ["url", "title"],
        "rows": [["http://a.example/", "'=1+1"]],
    }
    assert read_preview(home / "texts") == {"text": "# One "}


def test_nothing_leads_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    home = create_export_folder(tmp_path)
    (home / "linked.csv").symlink_to(tmp_path / "secret")
    assert list_exports(tmp_path) == []
    for name in ("linked.csv", "../secret", "..", "", ".", "/etc/passwd", "none.csv", "a\0b"):
        with pytest.raises(UserError):
            find_export(tmp_path, name)
    other = tmp_path / "other"
    other.mkdir()
    (other / "exports").symlink_to(tmp_path)
    assert list_exports(other) == []
    for find in (create_export_folder, lambda crawl: find_export(crawl, "secret")):
        with pytest.raises(UserError, match="is a link"):
            find(other)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.jsonl", b"[1]\n"), ("b.parquet", b"x"), ("c.warc.gz", b"x"), ("d.wacz", b"PK")],
)
def test_a_file_that_is_not_what_it_is_called_is_one_line(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=r"\Z"):
        read_preview(tmp_path / name)


def test_the_first_lines_of_a_long_file(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    path.write_text('{"n": 1, "url": "http://a.example/", "text": "%s"}\n' % ("x" * 400_000) * 5)
    shown = read_preview(path)
    assert shown["columns"] == ["url", "text", "n"]
    assert 0 < len(shown["rows"]) < 5


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_preview_of_an_export_is_short_and_has_the_text_early(
    tmp_path: Path, ending: str
) -> None:
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    exported = collection(8)
    exported.pages[2].verdict = "bad"
    exported.pages[0].relevance = 0.123456789
    write_collection(exported, tmp_path / f"c{ending}")
    shown = read_preview(tmp_path / f"c{ending}")
    assert len(shown["rows"]) == 5
    assert shown["columns"][:5] == ["url", "title", "text", "relevance", "verdict"]
    assert not {"description", "chunks", "duplicates"} & {*shown["columns"]}  # they are empty
    first = dict(zip(shown["columns"], shown["rows"][0], strict=True))
    assert (first["relevance"], first["fetched_at"]) == ("0.123", "2024-05-06 07:08")
    assert [row[4] for row in shown["rows"]] == ["", "", "bad", "", ""]


def test_what_is_typed_is_no_option() -> None:
    collect = EXPORTS["collect"].arguments
    given = collect("./-x", IDENTITY, {"format": "jsonl", "least": "0.5", "language": "EN,de"})
    assert given[:3] == ["collect", "./-x", "--out"]
    assert re.fullmatch(r"\./-x/exports/collection-\d{8}-\d{6}\.jsonl", given[3])
    assert given[4:] == ["--min-relevance", "0.5", "--language", "en,de"]
    for wrong in ({"format": "../x"}, {"least": "2"}, {"least": "nan"}, {"language": "--out"}):
        with pytest.raises(UserError):
            collect("./x", IDENTITY, wrong)
    with pytest.raises(UserError, match="no topic"):
        EXPORTS["knowledge"].arguments("./x", {"topic": "--out"}, {})
    with pytest.raises(FieldErrorsError) as refused:
        collect("./x", IDENTITY, {"least": "2", "language": "English"})
    assert [*refused.value.fields] == ["least", "language"]


def test_a_datasheet_is_shown_as_plain_text_by_sections(tmp_path: Path) -> None:
    text = (
        "# Bees: 2 pages\n\nExported by\nfocuscrawl.\n\n## Crawl\n- one\n  - two\n\n"
        "| host | pages |\n|---|--:|\n| a\\|b.example | 2 |\n\n<script>alert(1)</script>\n"
    )
    assert [*markdown_sections(text)] == [
        {
            "title": "Bees: 2 pages",
            "blocks": [{"kind": "paragraph", "text": "Exported by focuscrawl."}],
        },
        {
            "title": "Crawl",
            "blocks": [
                {
                    "kind": "list",
                    "items": [{"depth": 0, "text": "one"}, {"depth": 1, "text": "two"}],
                },
                {"kind": "table", "rows": [["host", "pages"], ["a|b.example", "2"]]},
                {"kind": "paragraph", "text": "<script>alert(1)</script>"},
            ],
        },
    ]
    home = create_export_folder(tmp_path)
    (home / "a.csv").touch()
    assert find_datasheet(home / "a.csv") is None
    (home / "a.csv.datasheet.md").touch()
    assert find_datasheet(home / "a.csv") == home / "a.csv.datasheet.md"
    (home / "texts").mkdir()
    (home / "texts" / "datasheet.md").symlink_to(tmp_path)
    assert find_datasheet(home / "texts") is None


def test_the_pages_of_an_export_are_counted_before(tmp_path: Path) -> None:
    with being_written(tmp_path / "crawl") as crawl:
        crawl.fetch("http://a.example/0", 0.9)
        for n in range(1, 8):
            first = "http://a.example/0" if n == 7 else None
            crawl.fetch(f"http://a.example/{n}", n / 10, duplicate_of=first)
        crawl.fetch("http://a.example/x", 0.8)  # without a text that could be exported
        with crawl.written().connection() as connection:
            connection.execute("UPDATE page SET digest = zeroblob(16) WHERE relevance <> 0.8")
    chosen = choose_pages(tmp_path / "crawl", 0.5)
    assert chosen["count"] == 3  # the page with a relevance of 0.7 is a duplicate
    assert [row["relevance"] for row in chosen["rows"]] == [0.9, 0.6, 0.5]
    found = choose_pages(tmp_path / "crawl", 0.0)
    assert (found["count"], len(found["rows"])) == (7, 5)


def write_corpus(root: Path) -> Path:
    """Write what a corpus leaves whose only page does not exist; return its folder."""
    folder = root / "owls"
    folder.mkdir()
    order = {"keywords": "owls, tawny owl", "urls": ["http://a.example/typo"], "web": None}
    (folder / "corpus.json").write_text(json.dumps(order))
    job = write_job(root, "corpus", "owls", ["corpus", "--pages=120", "--folder=./owls"])
    (job / "output.log").write_text("Training\nfocuscrawl crawl: none of the pages is there\n")
    (job / "outcome.json").write_text('{"exit_code": 2}')
    return folder


def test_a_failed_corpus_names_the_step_and_can_be_corrected(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path)
    shutil.copytree("models/demo", folder / "critic-1")
    context = make_context(StudioFolder(tmp_path))
    _, page = ask(context, "/corpora/owls")
    assert page.count('<span class="unseen">, failed</span>') == 1
    failed = page.partition('<li class="failed">')[2].partition("</li>")[0]
    assert "Topic" in failed
    assert '<p class="wrong">none of the pages is there</p>' in failed
    (form,) = re.findall(r'href="([^"]*)">Correct the keywords', page)
    _, page = ask(context, html.unescape(form))
    assert 'value="owls, tawny owl"' in page
    assert "http://a.example/typo</textarea>" in page
    assert 'value="120"' in page
    assert '<input type="hidden" name="of" value="owls">' in page
    _, page = ask(context, "/")
    card = page.partition('href="/corpora/owls"')[2].partition("</li>")[0]
    assert "failed" in card
    assert "owls, tawny owl" in card


def test_a_corrected_corpus_replaces_the_failed_one(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path)
    shutil.copytree("models/demo", folder / "critic-1")
    files = CorpusFolder(folder)
    write_definition(TopicDefinition(words=("owls",)), files.topic)
    context = make_context(StudioFolder(tmp_path))
    corrected = {"of": "owls", "keywords": "barn owl", "urls": "http://a.example/", "web": "demo"}
    status, said = ask(context, "/api/v1/corpora", corrected)
    assert (status, json.loads(said)["corpus"]) == (202, "owls")
    job = context.jobs.stop(json.loads(said)["job"]["id"])
    assert ended(context.jobs, job.id).state is JobState.FAILED
    assert StudioFolder(tmp_path).corpora() == ["owls"]
    assert Corpus.read(context.folder, "owls").keywords == "barn owl"
    steps = read_steps(context, "owls")
    assert (steps["critic"], steps["topic"]) == (None, None)  # those of the failed corpus
    assert steps["correctable"]  # again
    shutil.rmtree(folder / "crawl")
    with being_written(folder / "crawl") as crawl:
        crawl.fetch("http://a.example/")
    status, said = ask(context, "/api/v1/corpora", corrected)
    assert (status, "cannot be corrected any more" in said) == (400, True)


def test_a_corpus_shows_the_critic_of_its_crawl(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path)
    for number in (1, 2):
        shutil.copytree("models/demo", folder / f"critic-{number}")
    topic = "/Sports/Cycling"
    begun = load_trained(str(folder / "critic-1"), topic).fingerprint
    context = make_context(StudioFolder(tmp_path))
    assert read_steps(context, "owls")["critic"] == "critic-2"
    with being_written(folder / "crawl", topic=topic, critic=begun) as crawl:
        crawl.fetch("http://a.example/", status=404)
        crawl.event("stop", "seeds_unreachable")
    steps = read_steps(context, "owls")
    assert steps["critic"] == "critic-1"
    assert (steps["crawled"], steps["correctable"]) == (False, True)


def test_the_page_says_that_judgements_are_being_applied(tmp_path: Path) -> None:
    with being_written(tmp_path / "owls") as crawl:
        crawl.fetch("http://a.example/", relevance=0.9)
    context = make_context(StudioFolder(tmp_path))
    choice = "/parts/crawls/owls/exports/choice"
    with FileLock(write_job(tmp_path, "follow", "owls") / "lock"):
        assert "is applying your judgements" in ask(context, choice)[1]
    assert "is applying" not in ask(context, choice)[1]


def test_the_pages_of_a_finished_corpus_are_one_link(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path)
    (tmp_path / ".studio" / "jobs" / "1" / "outcome.json").write_text('{"exit_code": 0}')
    home = create_export_folder(make_crawl(folder / "crawl"))
    (home / "corpus.parquet").write_bytes(b"PAR1")
    (home / "corpus.parquet.datasheet.md").write_text("# Owls")
    context = make_context(StudioFolder(tmp_path))
    _, page = ask(context, "/corpora/owls")
    (link,) = re.findall(r'href="([^"]*)" download>Download corpus\.parquet<', page)
    assert ask(context, html.unescape(link)) == (200, "PAR1")
    assert "failed" not in page
    card = ask(context, "/")[1].partition('href="/corpora/owls"')[2].partition("</li>")[0]
    assert "exported" in card
