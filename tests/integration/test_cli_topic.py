"""``focuscrawl topic``: definitions, questions and answers, classes and examples."""

from __future__ import annotations

import csv
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from focuscrawl.crawl.rejudging import REQUEST_FILE, request_topic_change
from focuscrawl.topics import (
    TopicDefinition,
    edit_definition,
    read_definition,
    write_definition,
)
from focuscrawl.webs.synthetic import SyntheticWeb

from .running import TOPIC, Kept, crawl
from .typed import focuscrawl, mistaken

if TYPE_CHECKING:
    from click.testing import Result


def topic(*words: object, code: int = 0, answers: str | None = None) -> Result:
    return focuscrawl("topic", *words, code=code, answers=answers)


def refused(*words: object) -> str:
    return mistaken("topic", *words)


def pages_of(folder: Path) -> list[dict[str, object]]:
    return Kept(folder).rows("SELECT * FROM pages")


def test_questions_are_asked_in_the_terminal(folder: Path) -> None:
    done = topic("suggest", folder, "--n", "4", answers="y\nn\ns\nq\n")
    assert "1/4  uncertain, relevance " in done.output
    kept = read_definition(folder / "topic.toml")
    assert (len(kept.good), len(kept.bad)) == (1, 1)
    nobody = topic("suggest", folder, "--n", "1", code=2, answers="")
    assert "with --out FILE" in nobody.output
    none = topic("suggest", folder, "--n", "1", answers="q\n")
    assert "No page was judged" in none.output
    assert sorted(path.name for path in folder.glob("critic-*")) == ["critic-1"]


def test_a_definition_is_made_added_to_and_applied(folder: Path, tmp_path: Path) -> None:
    path, bookmarks = tmp_path / "mine.toml", tmp_path / "bookmarks.html"
    bookmarks.write_text(
        '<DL><DT><H3>Bikes</H3><DL><DT><A HREF="https://velo-59.demo.example/">v</A></DL></DL>'
    )
    made = topic(
        "new", path, "--critic", "models/demo", "--topic", "/Sports/Running", "--web", "demo",
        "--bookmarks", bookmarks, "--folder", "Bikes",
    )  # fmt: skip
    assert "topics /Sports/Running, 1 good page, 0 bad pages" in made.output
    topic("add", path, "--bad", "https://spokes-25.demo.example/")
    before = sum(float(str(row["relevance"])) for row in pages_of(folder))
    done = topic("apply", folder, path)
    assert "critic-1: topics /Sports/Running" in done.output
    assert sum(float(str(row["relevance"])) for row in pages_of(folder)) < before / 2
    kinds = [kind for (kind,) in Kept(folder).query("SELECT kind FROM events ORDER BY id")]
    assert kinds[-1] == "redefined"
    # judgements and marks are added to what was applied, whatever was left to be followed before
    assert read_definition(folder / "topic.toml") == read_definition(path)
    request_topic_change(folder, "critic-1", TOPIC, None)
    topic("apply", folder, path)
    assert not (folder / REQUEST_FILE).exists()


def test_what_is_judged_while_a_critic_is_trained_stays(folder: Path, tmp_path: Path) -> None:
    path, crawls_own = tmp_path / "mine.toml", folder / "topic.toml"
    known = TopicDefinition("models/demo", "demo", (TOPIC,))
    write_definition(known, path)
    over, said = Event(), list[str]()

    def judge() -> None:
        while not over.wait(0.02):
            said.append(f"https://a.example/{len(said)}")
            edit_definition(
                crawls_own, lambda now: now.with_judgements([], said[-1:]), lambda: known
            )

    judging = Thread(target=judge)
    judging.start()
    topic("apply", folder, path)
    over.set()
    judging.join()
    assert len(said) > 5
    assert read_definition(crawls_own).bad == tuple(said)


def test_what_an_alarm_proposes_is_marked_in_one_step(folder: Path) -> None:
    sum_before = sum(float(str(row["relevance"])) for row in pages_of(folder))
    assert "no class /Sports/Runing. Similar classes: /Sports/Running" in refused(
        "mark", folder, "/Sports/Runing"
    )
    assert f"{TOPIC} is relevant already" in refused("mark", folder, TOPIC)
    assert not (folder / "topic.toml").exists()
    done = topic("mark", folder, "/Sports")
    assert "critic-1: topics /Sports" in done.output
    assert read_definition(folder / "topic.toml").topics == ("/Sports",)
    assert sum(float(str(row["relevance"])) for row in pages_of(folder)) >= sum_before - 1
    ((said,),) = Kept(folder).query("SELECT value FROM meta WHERE key = 'topic'")
    assert said == "/Sports"


def test_a_new_crawl_begins_with_a_definition(tmp_path: Path) -> None:
    path, web = tmp_path / "mine.toml", SyntheticWeb()
    cycling, news = web.seeds(TOPIC), web.seeds("/Sports/Running")
    seeds = [part for url in cycling[:2] for part in ("--seeds", url)]
    judged = [part for url in cycling for part in ("--good", url)]
    judged += [part for url in news for part in ("--bad", url)]
    said = ("--words", "bicycle, wheel", "--description", "Touring by bicycle", "--name", "Bikes")
    topic("new", path, *said, *seeds, *judged)
    out = tmp_path / "critic"
    done = topic("train", path, "--web", "demo", "--out", out)
    assert "-a topic=/Bikes" in done.output
    given = {"critic": out, "topic": "/Bikes", "seeds": path, "strategy": "best-first"}
    run = crawl(tmp_path / "crawl", **given, web="demo", budget=10)
    assert run.kept.urls[:2] == cycling[:2]
    again = refused("train", path, "--web", "demo", "--out", out)
    assert "exists already: name another folder" in again


def test_a_class_is_refined_and_its_other_pages_are_off_the_topic(
    folder: Path, tmp_path: Path
) -> None:
    path, moved = tmp_path / "mine.toml", tmp_path / "moved.csv"
    topic("new", path, "--critic", "models/demo", "--topic", TOPIC, "--web", "demo")
    guides = [url for url in SyntheticWeb().urls() if "/cycling-guides/" in url]
    moved.write_text("url,topic\n" + "".join(f"{url},{TOPIC}/Guides\n" for url in guides))
    topic("refine", path, moved, "--mark", f"{TOPIC}/Guides")
    assert read_definition(path).topics == (f"{TOPIC}/Guides",)
    topic("apply", folder, path)
    classes = {row["topic"] for row in pages_of(folder)}
    assert {f"{TOPIC}/Guides", f"{TOPIC}/Other"} <= classes
    of = {str(row["url"]): row["topic"] for row in pages_of(folder)}
    fetched = [url for url in guides if url in of]
    assert sum(of[url] == f"{TOPIC}/Guides" for url in fetched) > 0.8 * len(fetched) > 0
    moved.write_text(f"url,topic\n{guides[0]},/Elsewhere\n{guides[1]},/Sports/Running\n")
    lines = topic("refine", path, moved).output.splitlines()
    assert {"/Elsewhere: 1 page, new class", "/Sports/Running: 1 page"} < {*lines}
    topic("move", path, f"{TOPIC}/Guides", "/Books/")
    assert read_definition(path).topics == ("/Books",)
    assert "cannot be moved to /Books/New" in refused("move", path, "/Books", "/Books/New")


def test_classes_that_fit_pages_are_proposed(tmp_path: Path) -> None:
    web = SyntheticWeb()
    urls = web.seeds(TOPIC)[:3]
    done = topic("classify", *urls, "https://gone.example/", "--critic", "demo", "--web", "demo")
    best = done.output.partition("of 3 pages:")[2].splitlines()
    assert best[2].split()[-1] == TOPIC
    assert "Skipped 1 page missing" in done.output
    assert "not an http(s) URL" in refused("classify", "x", "--critic", "demo", "--web", "demo")
    assert "no pages to classify" in refused("classify", "--critic", "demo", "--web", "demo")


def test_a_taxonomy_is_listed_with_counts_and_examples(tmp_path: Path) -> None:
    listed = topic("tree", "demo", "--under", "/Sports", "--examples", "1")
    head, top, first, example, *_ = listed.output.splitlines()
    assert head == "demo: flat, 2 topics, 75 examples"
    assert (top, first) == ("/Sports  75", "  /Sports/Cycling  42")
    assert example.startswith("      http")
    assert "no class /Sport. Similar: /Sports" in refused("tree", "demo", "--under", "/Sport")
    words = tmp_path / "words"
    focuscrawl("critic", "train", "--words", "road cycling", "--name", "Bikes", "--out", words)
    of_words = topic("tree", words).output
    assert "phrases: road cycling" in of_words
    assert "\n/Bikes\n" in of_words
    assert "has no examples" in of_words


def test_pages_around_the_examples_are_proposed(folder: Path, tmp_path: Path) -> None:
    path, questions = tmp_path / "mine.toml", tmp_path / "questions.csv"
    web = SyntheticWeb()
    start = web.seeds(TOPIC)[0]
    topic("new", path, "--critic", "demo", "--topic", TOPIC, "--web", "demo", "--good", start)
    topic("neighbours", path, "--n", "5", "--out", questions)
    with questions.open() as file:
        rows = list(csv.DictReader(file))
    assert len({row["url"] for row in rows} - {start}) == 5
    said = [float(row["relevance"]) for row in rows]
    assert said == sorted(said, reverse=True)
    assert said[0] > 0.5
    questions.write_text(f"url,verdict\n{rows[0]['url']},good\n{rows[1]['url']},bad\n")
    done = topic("neighbours", path, "--answers", questions)
    assert "topics /Sports/Cycling, 2 good pages, 1 bad page" in done.output
    # who links to a page is known by a crawl alone
    kept = Kept(folder).rows("SELECT * FROM links WHERE target IN (SELECT url FROM pages)")
    cited = next(r for r in kept if r["source"] != r["target"])
    path.unlink()
    topic("new", path, "--critic", "demo", "--topic", TOPIC, "--good", cited["target"])
    around = topic("neighbours", path, "--crawl", folder, "--n", "500", answers="q\n")
    assert "neighbour, relevance " in around.output
    more = tmp_path / "more.csv"
    topic("neighbours", path, "--crawl", folder, "--n", "500", "--out", more)
    assert f"\n{cited['source']}," in more.read_text()
    path.write_text('words = ["peloton"]\n')
    assert "topic add --good" in refused("neighbours", path, "--web", "demo")


def test_what_the_user_can_put_right_is_one_line(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    assert "No such file" in refused("apply", folder, path)
    assert "contains no crawl" in refused("suggest", tmp_path / "none")
    assert "does not define a topic" in refused("new", path, "--bad", "http://a.example/")
    assert not path.exists()
    assert "'nothing.txt' is neither a file nor an http(s) URL" in refused(
        "new", path, "--good", "nothing.txt"
    )
    answers = tmp_path / "answers.csv"
    answers.write_text("url,verdict\nhttp://a.example/,maybe\n")
    assert "row 1: verdict 'maybe'" in refused("suggest", folder, "--answers", answers)
    answers.write_text("url\nhttp://a.example/\n")
    assert "needs the columns" in refused("suggest", folder, "--answers", answers)
    both = ("--out", tmp_path / "q.csv", "--answers", answers)
    assert "leave out one of them" in refused("suggest", folder, *both)
    path.write_text('critic = "models/demo"\ntopics = ["/Sports/Cyclng"]\n')
    before = (folder / "crawl.db").read_bytes()
    assert "has no class /Sports/Cyclng. Similar classes: /Sports/Cycling" in refused(
        "apply", folder, path
    )
    assert (folder / "crawl.db").read_bytes() == before
    assert not list(folder.glob("critic-*"))


def test_several_urls_may_stand_in_one_option(tmp_path: Path) -> None:
    path, comma = tmp_path / "mine.toml", "https://a.example/tour,1903"
    topic(
        "new", path, "--words", "peloton", "--good", f"{comma},https://b.example/",
        "--bad", "https://c.example/, https://d.example/", "--seeds", "https://e.example/,http://f.example/",
    )  # fmt: skip
    known = read_definition(path)
    assert known.good == (comma, "https://b.example/")
    assert known.bad == ("https://c.example/", "https://d.example/")
    topic("add", path, "--good", "HTTPS://C.example#top")  # the latest of a page counts
    assert read_definition(path).bad == ("https://d.example/",)
    assert known.seeds == ("https://e.example/", "http://f.example/")


@pytest.mark.parametrize(
    ("marked", "said"),
    [
        (["--critic", "models/demo", "--topic", "/Nope"], "no class /Nope. Similar classes: /"),
        (["--critic", "models/demo", "--topic", "/Sports/Cyclng"], "classes: /Sports/Cycling"),
        (["--critic", "models/nope", "--topic", "/Sports"], "models/nope"),
        (["--words", "peloton", "--topic", "/Sports"], "--critic"),
    ],
)
def test_a_class_that_no_critic_has_is_refused(
    marked: list[str], said: str, tmp_path: Path
) -> None:
    assert said in refused("new", tmp_path / "mine.toml", *marked)
    assert not (tmp_path / "mine.toml").exists()
