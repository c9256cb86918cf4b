"""Tables of crawls in rounds: files that are merged, limits and copies from round to round."""

from __future__ import annotations

import os
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from focuscrawl.apprentice.options import MAX_LINKS
from focuscrawl.crawl import CrawlConfig
from focuscrawl.crawl.traps import Discounts
from focuscrawl.errors import UserError
from focuscrawl.report.measures import load_pages
from focuscrawl.rounds import RoundsPlan, crawl_in_rounds
from focuscrawl.rounds.buckets import BucketUrls, Inlinks, find_urls_to_rescore
from focuscrawl.rounds.context import load_context
from focuscrawl.rounds.driver import choose_urls
from focuscrawl.rounds.folders import write_crawl_folder
from focuscrawl.rounds.tables import CHOSEN, CONTENT, EVIDENCE, URL, Tables
from focuscrawl.rounds.tasks import LocalMaster
from focuscrawl.store.schema import STATES
from focuscrawl.testing import TinyWeb

ROUNDS = 40


def table(*values: int) -> pa.Table:
    return pa.Table.from_pylist([{"content": value} for value in values], CONTENT)


@pytest.mark.parametrize("link", ["names", "names/00003"])
def test_no_link_leads_out_of_a_folder_of_tables(tmp_path: Path, link: str) -> None:
    """It may be a stranger's: nothing is read, written or removed through a link there."""
    outside, tables = tmp_path / "outside", Tables(str(tmp_path / "theirs"))
    mine = outside / "00003" / "mine" if link == "names" else outside / "mine"
    mine.parent.mkdir(parents=True)
    mine.write_text("{}")
    place = tmp_path / "theirs" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(outside)
    for refused in (
        lambda: tables.remove("names/00003"),
        lambda: tables.local_path("names/00003"),
        lambda: tables.files("names/00003"),
        lambda: tables.has("names/00003/mine"),
        lambda: tables.read("names/00003/mine"),
        lambda: tables.read_json("names/00003/mine"),
        lambda: tables.write_json("names/00003/mine", {"a": 1}),
        lambda: tables.write_table("names/00003/other", table(1)),
    ):
        with pytest.raises(UserError, match="is a link to"):
            refused()
    assert [path.name for path in outside.rglob("*") if path.is_file()] == ["mine"]
    assert mine.read_text() == "{}"


def test_nor_a_link_in_place_of_drafts(tmp_path: Path) -> None:
    tables = Tables(str(tmp_path / "theirs"))
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "drafts").symlink_to(tmp_path)
    with pytest.raises(UserError, match="is a link to"):
        tables.write_json("plan.json", {})


def test_a_pipe_among_tables_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plan.json")
    with pytest.raises(UserError, match="is not a regular file"):
        Tables(str(tmp_path)).read_json("plan.json")


def test_the_folder_of_tables_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "named").symlink_to(tmp_path / "mine")
    tables = Tables(str(tmp_path / "named"))
    tables.write_json("plan.json", {"a": 1})
    assert tables.read_json("plan.json") == {"a": 1}


def test_merged_files_say_the_same_and_are_few(tmp_path: Path) -> None:
    tables = Tables(str(tmp_path))
    for number in range(ROUNDS):
        tables.add("contents", 3, number, table(number, number))
        names = tables.bucket_tables("contents", 3, number)
        assert len(names) <= log2(number + 1) + 1
        said = [each for name in names for each in tables.read(name)["content"].to_pylist()]
        assert said == sorted([*range(number + 1)] * 2)
        if number:  # what was merged is there until the round is over
            before = tables.bucket_tables("contents", 3, number - 1)
            assert sum(len(tables.read(name)) for name in before) == 2 * number
        tables.remove_obsolete(4, number, 0)
    files = [*(tmp_path / "contents" / "003").iterdir()]
    assert len(files) == len(tables.bucket_tables("contents", 3, ROUNDS))


def test_of_merged_rows_with_one_id_the_last_one_counts(tmp_path: Path) -> None:
    tables = Tables(str(tmp_path))
    for number, (id_, score) in enumerate([(7, 0.1), (8, 0.2), (7, 0.3), (9, 0.4)]):
        row = pa.Table.from_pylist([{"id": id_, "score": score}], URL)
        tables.add("urls", 0, number, row, by_id=True)
    (name,) = tables.bucket_tables("urls", 0, 3)
    found = tables.read(name, ["id", "score"])
    assert found.to_pydict() == {"id": [7, 8, 9], "score": [0.3, 0.2, 0.4]}


def test_large_tables_are_merged_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("focuscrawl.rounds.tables._LARGEST", 100)
    tables = Tables(str(tmp_path))
    for number in range(ROUNDS):
        tables.add("contents", 0, number, table(number))
    names = tables.bucket_tables("contents", 0, ROUNDS)
    assert sum(len(tables.read(name)) for name in names) == ROUNDS
    assert max(tables.read(name).nbytes for name in names) <= 100


@pytest.mark.parametrize("wrong", [[1], None])
def test_a_table_without_a_column_is_one_line(tmp_path: Path, wrong: list[int] | None) -> None:
    """A row has a wrong type of URL, or no URL."""
    row = {"content": [1]} | ({} if wrong is None else {"url": wrong})
    tables = Tables(str(tmp_path))
    tables.write_table("contents/000/00001", pa.table(row))
    message = r"contents/000/00001.parquet has no column url of type string: crawl again"
    for read in (tables.read, tables.read_batches):
        with pytest.raises(UserError, match=message):
            [*read("contents/000/00001")]


@pytest.mark.parametrize("halved", [(), (2,), (0, 1, 2, 3)])
def test_the_best_candidates_of_all_buckets_are_chosen(
    halved: tuple[int, ...], tmp_path: Path
) -> None:
    tables, draw, rows = Tables(str(tmp_path)), np.random.default_rng(0), []
    for bucket, n in enumerate((40, 60, 50, 0)):
        scores = np.sort(draw.integers(0, 20, n) / 10 + bucket)[::-1]  # some are alike
        whose = {"bucket": bucket, "halvings": int(bucket in halved)}
        of_bucket = [
            {"found": 100 * bucket + at, "score": score, **whose}
            for at, score in enumerate(scores.tolist())
        ]
        tables.write(f"candidates/{bucket:03}/00006", CHOSEN, of_bucket)
        rows += of_bucket
    buckets = choose_urls(tables, 4, 7, 50)
    best = sorted(rows, key=lambda row: (-row["score"] / 2 ** row["halvings"], row["found"]))[:50]
    assert tables.read("chosen/00007")["found"].to_pylist() == [row["found"] for row in best]
    assert buckets == sorted({row["bucket"] for row in best})


def test_a_url_is_scored_anew_when_its_links_have_doubled_or_a_better_one_comes(
    tmp_path: Path,
) -> None:
    tables = Tables(str(tmp_path))
    states = {1: "queued", 2: "queued", 3: "fetched", 4: "queued", 5: "unfollowed"}
    rows = [
        {"id": id_, "url": f"http://a.example/{id_}", "score": 0.5, "state": STATES.index(state)}
        for id_, state in states.items()
    ]
    tables.write("urls/000/00001", URL, rows)

    def links(*targets: tuple[int, float]) -> pa.Table:
        row = {"targets": [t for t, _ in targets], "scores": [score for _, score in targets]}
        return pa.Table.from_pylist([row], EVIDENCE)

    tables.add("evidence", 0, 1, links((1, 0.5), (2, 0.5), (2, 0.4), (3, 0.5), (4, 0.5), (4, 0.5)))
    # the second of 1; the third of 2, a worse one; one of 3, which is fetched; a better one of 4
    found = links((1, 0.1), (2, 0.3), (3, 0.9), (4, 0.6), (5, 0.1))
    tables.add("evidence", 0, 2, found)
    urls = BucketUrls(tables, 0, 1)
    assert find_urls_to_rescore(found, Inlinks(tables, 0, 2), urls).tolist() == [1, 4, 5]


def test_of_a_url_with_many_links_the_best_are_its_evidence(tmp_path: Path) -> None:
    tables, many = Tables(str(tmp_path)), 3 * MAX_LINKS

    def page(number: int, *targets: tuple[int, float]) -> dict[str, object]:
        to, scores = ([*column] for column in zip(*targets, strict=True))
        return {"source": f"http://a.example/{number}", "targets": to, "scores": scores}

    better = {3, 7, many - 1}
    for round_, numbers in enumerate((range(20), range(20, many)), 1):
        rows = [page(n, (1, 0.9 if n in better else 0.5), (n + 10, 0.5)) for n in numbers]
        tables.add("evidence", 0, round_, pa.Table.from_pylist(rows, EVIDENCE), group=7)
    into = Inlinks(tables, 0, 2)
    assert into.count(np.array([1, 15, many + 10])).tolist() == [many, 1, 0]
    kept = sorted({*better, *range(MAX_LINKS - 1)})
    assert _numbers(into.evidence(np.array([1]))) == kept
    assert _numbers(into.evidence(np.array([1, 50]))) == [*kept[:-1], 40, kept[-1]]
    assert _numbers(Inlinks(tables, 0, 0).evidence(np.array([1]))) == []


def _numbers(rows: pa.Table) -> list[int]:
    return [int(source.rpartition("/")[2]) for source in rows["source"].to_pylist()]


def test_discounts_go_on_from_what_was_written_of_them() -> None:
    whole, parts = Discounts(), Discounts()
    draw = np.random.default_rng(0)
    for n in range(600):
        url = f"http://{'abc'[n % 3]}.example/{n // 60}/x{n}"
        told: dict[str, Any] = {"predicted": 0.8, "relevance": draw.random(), "moved": False}
        if n % 50 == 0:
            parts = Discounts.from_rows([*parts.rows()])
        repeats = bool(draw.random() < n % 3 / 2)
        changed = [change for _, change in whole.count(url, None, **told, repeats=repeats)]
        assert [n for _, n in parts.count(url, None, **told, repeats=repeats)] == changed
    assert [*parts.rows()] == [*whole.rows()]
    assert len({row["halvings"] for row in whole.rows()}) > 2


def crawled(tmp_path: Path, pages: dict[str, str], seed: str, size: int) -> dict[str, str | None]:
    """Crawl pages in rounds; return of which page each is a duplicate, in the order fetched."""
    crawl = CrawlConfig(
        topic="/Sports/Cycling",
        seeds=seed,
        web=str(TinyWeb(pages).write(tmp_path / "web.warc.gz")),
        budget=1000,
        strategy="breadth-first",
    )
    load_context.cache_clear()
    crawl_in_rounds(
        RoundsPlan(crawl=crawl, round=size, buckets=3),
        str(tmp_path / "tables"),
        LocalMaster(1),
        lambda _: None,
    )
    write_crawl_folder(str(tmp_path / "tables"), tmp_path / "crawl")
    found = load_pages(str(tmp_path / "crawl"))
    return dict(zip(found["url"], found["duplicate_of"], strict=True))


def linked(*urls: str, more: str = "") -> str:
    return f"<title>{more}</title><p>{more}" + "".join(f"<a href='{url}'>x</a>" for url in urls)


@pytest.mark.parametrize("size", [1, 4])
def test_a_copy_of_an_earlier_page_is_known_whatever_its_bucket(size: int, tmp_path: Path) -> None:
    hosts = [f"http://h{n}.example/" for n in range(6)]
    # a chain of hosts, so that no two are fetched in one round
    pages = {url: linked(after, more=url) for url, after in pairwise(hosts)}
    pages[hosts[-1]] = linked("http://copy.example/", "http://h0.example/named", more="last")
    pages["http://copy.example/"] = pages[hosts[2]]
    head = "<link rel=canonical href='/'>"
    pages["http://h0.example/named"] = head + pages[hosts[0]]
    twins = crawled(tmp_path, pages, hosts[0], size)
    assert twins.pop("http://copy.example/") == hosts[2]
    assert twins.pop("http://h0.example/named") == hosts[0]
    assert twins == dict.fromkeys(hosts)
    tables = Tables(str(tmp_path / "tables"))
    kept = [
        [
            row
            for name in tables.bucket_tables("contents", bucket, 99)
            for row in tables.read(name).to_pylist()
        ]
        for bucket in range(3)
    ]
    assert sorted(row["url"] for rows in kept for row in rows) == hosts
    assert all(row["content"] % 3 == bucket for bucket, rows in enumerate(kept) for row in rows)


@pytest.mark.parametrize("size", [1, 3])
def test_rounds_find_the_duplicates_of_an_uninterrupted_crawl(size: int, tmp_path: Path) -> None:
    host = "http://a.example"
    lists = [f"{host}/list?page={n}" for n in range(14)]
    copies = [f"{host}/list?page=1&print=1", f"{host}/list?print=1", f"{host}/y/"]
    text = {n: " ".join(f"word{n}x{i}" for i in range(100)) for n in range(15)}
    head = "<link rel=canonical href='/list'>"
    pages = {
        f"{host}/": linked(f"{host}/x/", *lists, f"{host}/list", f"{host}/last", more="start")
    }
    pages |= {url: f"{head}<p>{text[n]}" for n, url in enumerate(lists)}
    pages[f"{host}/list"] = f"{head}<p>{text[14]}"
    pages[f"{host}/last"] = linked(*copies, more="last")
    pages[copies[0]] = f"{head}<p>{text[1]} printed"
    pages[copies[1]] = f"{head}<p>{text[14]} printed"
    pages |= {f"{host}/{folder}/": linked("item", more="index") for folder in "xy"}
    pages |= {f"{host}/{folder}/item": linked(more=folder) for folder in "xy"}
    twins = crawled(tmp_path, pages, f"{host}/", size)
    found = {url: of for url, of in twins.items() if of is not None}
    assert found == dict(zip(copies, (lists[1], f"{host}/list", f"{host}/x/"), strict=True))
    assert twins.keys() == pages.keys()


def test_a_page_that_resembles_one_of_an_earlier_round_is_a_repeat(tmp_path: Path) -> None:
    start, text = "http://a.example/", " ".join(f"word{n}" for n in range(200))
    pages = {f"{start}{n}": f"<p>{text} {n}" for n in range(12)}
    crawled(tmp_path, pages | {start: linked(*pages)}, start, 4)
    tables = Tables(str(tmp_path / "tables"))
    (last,) = [names[-1] for n in range(3) if (names := tables.bucket_tables("discounts", n, 99))]
    repeats = {row["name"]: row["repeated"] for row in tables.read(last).to_pylist()}
    assert repeats["a.example/*"] == pytest.approx(11, abs=0.3)  # the first one says something new


@pytest.mark.long
def test_a_host_that_repeats_itself_is_left_for_the_end(tmp_path: Path) -> None:
    start, trap = "http://start.example/", "http://trap.example/"
    text = " ".join(f"word{n}" for n in range(200))
    many = [f"{trap}{n % 50}/p{n}" for n in range(160)]
    others = [f"http://other{n}.example/" for n in range(40)]
    pages = {start: linked(trap, more="start"), trap: linked(*many, more="trap")}
    pages |= {url: f"<p>{text} {url}" for url in many}
    pages[many[80]] = linked(*others, more="out")
    pages |= {url: linked(more=url) for url in others}
    order = [*crawled(tmp_path, pages, start, 10)]
    assert len(order) == len(pages)
    before = order[: max(order.index(url) for url in others)]
    # breadth-first without discounts all of the trap would come before what it leads to
    assert sum(url.startswith(trap) for url in before) < len(many) - 30
