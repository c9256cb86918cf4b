"""``focuscrawl corpus``: from keywords to a table of pages, in one folder, again and again."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from focuscrawl.topics import read_definition
from focuscrawl.webs.synthetic import SyntheticWeb
from focuscrawl.webs.web_protocol import read_page

from . import warm
from .running import QUICK, Kept, as_options, environment, waiting
from .search_server import Said, search_server
from .typed import focuscrawl

if TYPE_CHECKING:
    import subprocess

    from .conftest import LocalWeb
    from .search_server import SearchServer

    Corpus = Callable[..., subprocess.CompletedProcess[str]]

KEYWORDS = "road cycling, bicycle, peloton"
GOOD = "https://exploit-20.demo.example/people/112.html"
DEMO = ("--web", "demo", "--out", "cycling.parquet")
SIXTY = (KEYWORDS, GOOD, *DEMO, "--pages", 60)
NO_KEYWORD = "no start page contains a keyword"
LIVE = as_options(QUICK | {"RETRY_TIMES": 0})
GO_ON = "go-on"  # tells a crawl that waits to go on
_EVERY = 5  # page of the demo web is known to the search engine


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run commands in."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


def run_corpus(
    here: Path, *words: object, code: int = 0, server: SearchServer | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``focuscrawl corpus`` in the folder `here`; it has to end with an exit code."""
    known = environment() | {"XDG_CONFIG_HOME": str(here.parent / "config")}
    if server is not None:
        known |= {
            "FOCUSCRAWL_SEARXNG_URL": server.url,
            "FOCUSCRAWL_SEARXNG_PER_MINUTE": "60000",
        }
    line = ["corpus", *map(str, words)]
    done = warm.run(line, cwd=here, env=known, program="focuscrawl")
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def corpus(here: Path) -> Corpus:
    return partial(run_corpus, here)


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a file of somebody else was in the way of a corpus, which is planned."""
    here = tmp_path_factory.mktemp("corpus") / "here"
    here.mkdir()
    notes = here / "cycling.parquet"
    notes.write_text("my thesis")
    refused = run_corpus(here, *SIXTY, code=2)
    assert refused.stderr.count("\n") == 1
    assert "cycling.parquet exists already, and is no export of the corpus in" in refused.stderr
    assert [*here.iterdir()] == [notes]
    assert notes.read_text() == "my thesis"
    notes.unlink()
    said = run_corpus(here, *SIXTY, "--dry-run")
    assert "1 of 1 fetched, 1 relevant" in said.stdout
    assert "Warning: the only start page is on exploit-20.demo.example" in said.stderr
    assert NO_KEYWORD not in said.stderr
    assert "recall 0.9" not in said.stderr
    assert "export       after the crawl, some seconds for each 100" in said.stdout
    assert "--dry-run" not in said.stdout.splitlines()[-1]
    assert not (here / "cycling" / "crawl").exists()
    return here


@pytest.fixture(scope="module")
def created(planned: Path) -> Path:
    """The same folder with a corpus of sixty fetches, for tests that only read."""
    lines = run_corpus(planned, *SIXTY).stdout.partition("\n\n")[2].splitlines()
    assert 15 <= len(lines) <= 22
    assert lines[lines.index("Next:") + 1].endswith(
        "focuscrawl topic suggest cycling/crawl --topic cycling/topic.toml"
    )
    return planned


@pytest.fixture(scope="module")
def demo_pages() -> dict[str, tuple[str, str]]:
    web, pages = SyntheticWeb(), {}
    for url in [*web.urls()][::_EVERY]:
        view = read_page(web, url)
        if view is not None:
            pages[url] = (view.title, " ".join(view.tokens))
    return pages


@pytest.fixture
def server(demo_pages: dict[str, tuple[str, str]]) -> Iterator[SearchServer]:
    with search_server(demo_pages) as started:
        yield started


def table(path: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = (
        pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    )
    return rows


def test_one_command_makes_a_corpus(created: Path) -> None:
    rows = table(created / "cycling.parquet")
    assert len(rows) > 10
    assert all(row["topic"] == "/Road_cycling" and row["text"] for row in rows)
    assert (created / "cycling.parquet.datasheet.md").exists()
    assert len(Kept(created / "cycling" / "crawl").urls) == 60


def test_keywords_that_no_start_page_contains_raise_a_warning(corpus: Corpus) -> None:
    """The crawl finds nothing for them, and ends early by a rule that the user did not name."""
    page = "https://courier-1.demo.example/news-news/mapping-with-trosum-in-cadodros-80.html"
    wrong = corpus("quantum chromodynamics", page, *DEMO)
    assert f"{NO_KEYWORD} (quantum, chromodynamics)" in wrong.stderr
    assert "stopped       by the default rule `next 100 < 0.1`: " in wrong.stdout


def test_a_corpus_goes_on_with_more_pages_and_a_critic_that_was_trained_again(
    created: Path, here: Path, corpus: Corpus
) -> None:
    shutil.copytree(created, here, dirs_exist_ok=True)
    kept = Kept(here / "cycling" / "crawl")
    bad = kept.query("SELECT url FROM pages WHERE relevance < 0.3")[0][0]
    definition = here / "cycling" / "topic.toml"
    focuscrawl("topic", "add", definition, "--bad", bad)
    train = ("topic", "train", definition, "--web", "demo", "--out")
    focuscrawl(*train, here / "cycling" / "critic-2")
    resumed = corpus(*SIXTY[:-1], 80, "--dry-run")
    assert "Topic of cycling/topic.toml, critic cycling/critic-1" in resumed.stdout
    assert "focuscrawl topic apply cycling/crawl cycling/topic.toml" in resumed.stderr
    focuscrawl("topic", "apply", here / "cycling" / "crawl", definition)
    more = corpus(*SIXTY[:-1], 80)  # the same, with more pages, into the same file
    assert f"exported      {len(table(here / 'cycling.parquet'))} pages" in more.stdout
    assert "start pages   1, in cycling/topic.toml" in more.stdout
    assert kept.stop_reasons == ["budget", "budget"]
    assert len(kept.urls) == 80
    fewer = corpus(*SIXTY[:-1], 30)
    assert "stopped       80 fetches exist already, more than --pages 30" in fewer.stdout
    assert "--pages 160 --web demo --stop 'recall 0.95'" in fewer.stdout
    other = corpus("racing bicycles", *SIXTY[1:], code=2)
    assert "cycling has the corpus of another command: KEYWORDS was road cycling, " in other.stderr
    other = corpus(*SIXTY, "--folder", "other", code=2)
    assert "no export of the corpus in other" in other.stderr


def test_a_critic_that_rejects_the_target_pages_raises_a_warning(
    created: Path, here: Path, corpus: Corpus
) -> None:
    judged = Kept(created / "cycling" / "crawl").query(
        "SELECT url, relevance FROM pages WHERE referrer IS NOT NULL ORDER BY relevance"
    )
    rejected = [*(url for url, _ in judged[:12]), f"{GOOD}/not-recorded"]
    relevant = [url for url, _ in judged[-3:]]
    (here / "rejected.txt").write_text("\n".join(rejected))
    (here / "relevant.csv").write_text("\n".join(["url", *relevant]))
    done = corpus(*SIXTY, "--targets", "rejected.txt", "--targets", "relevant.csv")
    assert read_definition(here / "cycling" / "topic.toml").targets == (*rejected, *relevant)
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if " " in line)
    assert lines["targets"].startswith("15 of 15 target pages found (3 judged relevant)")
    assert lines["targets"].endswith("recall at least 81 % with 95 % confidence")
    assert "not counted   1 of 16 target pages, because demo lacks them, or" in done.stdout
    assert "in the export 3 of 15 target pages found; recall at least 5 % with" in done.stdout
    assert "only 3 of the 15 target pages found relevant" in done.stderr
    assert "more pages" not in done.stdout
    command = done.stderr.partition("add examples: ")[2].partition(". Then")[0]
    assert command.startswith("focuscrawl topic add cycling/topic.toml --good FILE && ")


def test_start_pages_are_found_by_search_and_judged(
    here: Path, corpus: Corpus, server: SearchServer
) -> None:
    words = (KEYWORDS, *DEMO, "--pages", 40, "--per-site", 2)
    done = corpus(*words, "--dry-run", server=server)
    assert len(server.queries) == 3 + 4  # phrases; all combinations of three of four words
    with (here / "cycling" / "candidates.csv").open() as file:
        judged = list(csv.DictReader(file))
    seeds = [row["url"] for row in judged if not row["refused"]]
    assert seeds
    assert all(float(row["relevance"]) > 0.5 for row in judged if not row["refused"])
    reasons = {row["refused"] for row in judged}
    assert "off topic" in reasons
    assert any(reason.startswith("more than 2 of ") for reason in reasons)
    for row in judged[:30]:
        if row["refused"] == "off topic":
            assert "(off topic)" in done.stdout
    assert read_definition(here / "cycling" / "topic.toml").seeds == tuple(seeds)
    asked = len(server.asked)
    server.answer = lambda _: Said(b"", 500)  # nothing is asked again
    again = corpus(*words, "--dry-run")
    assert len(server.asked) == asked
    assert f"{len(seeds)} of {len(seeds)} fetched" in again.stdout


def test_an_interrupted_search_is_continued(
    here: Path, corpus: Corpus, server: SearchServer
) -> None:
    words = (KEYWORDS, *DEMO, "--dry-run")
    server.answer = lambda _: Said(b"<p>captcha", 200, {"Content-Type": "text/html"})
    failed = corpus(*words, server=server, code=2)
    assert len(failed.stderr.splitlines()) == 2  # progress, error
    assert "answers with a captcha (200)" in failed.stderr
    server.answer = lambda _: None if len(server.asked) < 4 else Said(b"{}", 403)
    done = corpus(*words, server=server)
    assert "Warning: " in done.stderr
    assert "denies access (403)" in done.stderr
    answers = (here / "cycling" / "search.jsonl").read_text().splitlines()
    assert [json.loads(line)["query"] for line in answers] == ["road cycling", "bicycle"]


def test_candidates_of_the_live_web_are_fetched_politely(
    here: Path, corpus: Corpus, local_web: LocalWeb
) -> None:
    forum, a = local_web.origins["forum"], local_web.origins["a"]
    candidates = [f"{forum}/topic-2", f"{forum}/tax-4", f"{a}/missing", f"{a}/private/diary"]
    (here / "urls.txt").write_text("\n".join([*candidates, "mailto:me@a.example"]))
    words = ("bicycle", "--search", "urls.txt", "--out", "bikes.jsonl", "--pages", 12)
    before = len(local_web.requests())
    done = corpus(*words, "--others", 6, "--per-site", 9, *LIVE)
    with (here / "bikes" / "candidates.csv").open() as file:
        refused = {row["url"]: row["refused"] for row in csv.DictReader(file)}
    assert refused == {
        candidates[0]: "",
        candidates[1]: "off topic",
        candidates[2]: "HTTP 404",
        candidates[3]: "robots.txt",
        "mailto:me@a.example": "not an http(s) URL",
    }
    paths = [request["path"] for request in local_web.requests()[before:]]
    assert "/private/diary" not in paths
    assert paths.count("/missing") == 1
    assert "time         at least" in done.stdout  # the plan is one of a live crawl
    assert (here / "bikes.jsonl").read_text()


def test_the_crawl_searches_again_when_the_harvest_falls(
    here: Path, corpus: Corpus, server: SearchServer
) -> None:
    words = (KEYWORDS, GOOD, *DEMO, "--pages", 105, "--stop", "next 100 < 0.5", "--search-more")
    assert "--search-more needs a source" in corpus(*words, code=2).stderr
    done = corpus(*words, server=server)
    assert "Searching for " in done.stderr
    assert server.queries
    seeds = read_definition(here / "cycling" / "topic.toml").seeds
    assert len(seeds) > 1
    kept = Kept(here / "cycling" / "crawl")
    assert len(kept.stop_reasons) > 1
    assert set(kept.stop_reasons) <= {"harvest_fell", "little_expected", "budget"}
    fetched = {url for (url,) in kept.query("SELECT url FROM pages WHERE referrer IS NULL")}
    assert len(fetched & set(seeds)) > 1


def test_mistakes_are_one_line_and_leave_nothing(here: Path, corpus: Corpus) -> None:
    mistakes = {
        "no start pages: give URLs": (KEYWORDS, *DEMO),
        "'a.b' is neither a file nor an http(s) URL": (KEYWORDS, "a.b", *DEMO),
        "seeds.csv has rows of 14 topics": (KEYWORDS, "models/demo/seeds.csv", *DEMO),
        "'the' is on nearly every page": ("the", GOOD, *DEMO),
        "no words in ','": (",", GOOD, *DEMO),
        f"no keywords before {GOOD}": (GOOD, *DEMO),
        "no recorded web": (KEYWORDS, GOOD, "--web", "deno", "--out", "cycling.parquet"),
        "demo contains none of the given start pages": (KEYWORDS, GOOD + "x", *DEMO),
        "--stop must be rules": (KEYWORDS, GOOD, *DEMO, "--stop", "soon"),
        "is not an export format": (KEYWORDS, GOOD, "--web", "demo", "--out", "cycling.xls"),
        "no source 'gogle'": (KEYWORDS, *DEMO, "--search", "gogle"),
    }
    for words, given in mistakes.items():
        done = corpus(*given, code=2)
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert "--search" in given or not [*here.iterdir()]


def _known_pages(count: int) -> list[str]:
    """Return pages of the demo web on the topic of the keywords."""
    labels = (label.url for label in SyntheticWeb().labels() if label.topic == "/Sports/Cycling")
    return [*dict.fromkeys(labels)][:count]


def test_a_part_of_many_given_pages_certifies_the_recall(
    here: Path, corpus: Corpus, server: SearchServer
) -> None:
    pages = _known_pages(45)
    (here / "known.txt").write_text("\n".join(pages))
    words = (KEYWORDS, "known.txt", *DEMO, "--search", "searxng", "--tuples", 0, "--results", 5)
    done = corpus(*words, "--stop", "targets 0.1", server=server)
    assert "30 of 45 given pages are target pages" in done.stdout
    definition = read_definition(here / "cycling" / "topic.toml")
    assert len(definition.targets) == 30
    assert set(definition.good) == set(pages).difference(definition.targets)
    assert not set(definition.seeds).intersection(definition.targets)
    kept = Kept(here / "cycling" / "crawl")
    assert kept.stop_reasons == ["targets_reached"]
    assert "of 30 target pages found" in done.stdout
    assert '--stop "recall 0.95"' in done.stdout.replace("'", '"')
    refused = (here / "cycling" / "candidates.csv").read_text()
    assert "target page" in refused


def test_few_pages_are_all_examples(here: Path, corpus: Corpus) -> None:
    (here / "some.txt").write_text("\n".join(_known_pages(16)))
    few = corpus(KEYWORDS, "some.txt", *DEMO, "--dry-run")
    assert "No target pages certify the recall: fewer than 17 pages are given" in few.stdout
    assert len(read_definition(here / "cycling" / "topic.toml").seeds) == 16
    wrong = corpus(KEYWORDS, "some.txt", *DEMO, "--stop", "targets 0.8", code=2)
    assert "stop rule `targets 0.8` needs target pages" in wrong.stderr
    both = corpus(KEYWORDS, "some.txt", *DEMO, "--targets", "some.txt", code=2)
    assert "is a start page and a target page" in both.stderr


def _interrupt(line: Sequence[object], here: Path, ready: Callable[[], bool]) -> None:
    """Interrupt a command as a terminal does; the command must say how to resume it."""
    with (
        Path(os.devnull).open("wb") as nowhere,
        warm.WarmProcess(
            ["corpus", *map(str, line)],
            cwd=here,
            env=environment(),
            stdout=nowhere.fileno(),
            program="focuscrawl",
        ) as process,
    ):
        while not ready():
            assert process.poll() is None
            time.sleep(0.1)
        command = psutil.Process(process.pid)
        for each in (*command.children(recursive=True), command):
            each.send_signal(signal.SIGINT)
        (here / GO_ON).touch()  # handlers of signals come before what else a process does
        _, errors = process.communicate(warm.LONG)
    assert process.returncode == 130, errors
    assert errors.splitlines()[-1].startswith("The command was interrupted. To resume it: focus")


def test_an_interrupted_crawl_is_continued(here: Path, corpus: Corpus) -> None:
    given = (KEYWORDS, GOOD, *DEMO, "--stop", "time 1h", "--pages")
    folder = here / "cycling" / "crawl"

    def crawls() -> bool:
        return (folder / "crawl.db").exists() and len(Kept(folder).urls) > 10

    _interrupt((*given, 5000, *as_options(waiting(here / GO_ON, 20))), here, crawls)
    assert not (here / "cycling.parquet").exists()
    kept = Kept(folder)
    assert kept.stop_reasons == ["interrupted"]
    corpus(*given, len(kept.urls) + 20)
    assert (here / "cycling.parquet").exists()


def test_a_failed_command_can_be_corrected_and_an_interrupted_one_continued(
    here: Path, corpus: Corpus, local_web: LocalWeb
) -> None:
    forum = local_web.origins["forum"]
    words = ("--out", "bikes.jsonl", "--pages", 5, "--others", 4, "--dry-run", *LIVE)
    failed = corpus("bicycle", f"{forum}/missing", *words, code=2)
    assert "could be fetched as a page" in failed.stderr
    page = f"{forum}/topic-2"
    before = len(local_web.requests())
    # robots.txt, the page, another page
    _interrupt(
        ("bicycle", page, *words, "-s", "DOWNLOAD_DELAY=2"),
        here,
        lambda: len(local_web.requests()) >= before + 3,
    )
    assert not (here / "bikes" / "topic.toml").exists()
    corpus("bicycle", page, *words)
    assert read_definition(here / "bikes" / "topic.toml").seeds == (page,)
    other = corpus("bicycle", f"{forum}/topic-3", *words, code=2)
    assert f"URL was {page}, not {forum}/topic-3; name another folder" in other.stderr
