"""What studios do over HTTP to files that others write, too, and what is refused as a whole."""

from __future__ import annotations

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from focuscrawl.studio.access import Access
from focuscrawl.studio.jobs import Jobs
from focuscrawl.studio.page_rendering import Desk
from focuscrawl.studio.served_folder import StudioFolder
from focuscrawl.studio.serving import make_application
from focuscrawl.topics import TopicDefinition, read_definition, write_definition

from .running import TOPIC, Run
from .studio import NEW_CRAWL, Client, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FIELDS = ("url", "verdict", "class", "name", "words", "urls", "seeds", "topic", "critic", "of")


@pytest.fixture(scope="module")
def home(crawled: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a crawl and a topic."""
    path = tmp_path_factory.mktemp("home")
    shutil.copytree(crawled.kept.folder, path / "crawls" / "a")
    (path / "t").mkdir()
    definition = TopicDefinition("models/demo", "demo", (TOPIC,))
    write_definition(definition, path / "t" / "topic.toml")
    return path


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[str]:
    """The address of a studio of the folder."""
    with serving(home) as found:
        yield found


def test_two_studios_of_one_folder_keep_every_judgement(home: Path, address: str) -> None:
    urls = [f"http://h{n}.example/" for n in range(40)]
    with serving(home) as other, ThreadPoolExecutor(8) as several:
        clients = [Client(address), Client(other)]

        def judge(n: int) -> Any:
            said = {"url": urls[n], "verdict": "good" if n % 3 else "bad"}
            return clients[n % 2].ask("/topics/t/topic.toml/judge", said)

        assert len(list(several.map(judge, range(len(urls))))) == len(urls)
    assert read_definition(home / "t" / "topic.toml").judged == set(urls)


def test_what_it_moves_is_compared_with_what_was_before_the_first_judgement(
    home: Path, address: str
) -> None:
    client, at = Client(address), "/crawls/crawls/a"

    def judge(url: str, verdict: str) -> Any:
        client.ask(f"{at}/judge", {"url": url, "verdict": verdict})
        return client.until(f"{at}/moved", lambda said: not said["busy"])

    pages = client.until(f"{at}/pages", lambda said: not said["sorting"])["rows"]
    waiting = client.until(f"{at}/frontier", lambda said: not said["sorting"])["rows"]
    first = {row["url"]: row["score"] for row in waiting}
    for row, verdict in zip(pages[:2], ("bad", "good"), strict=True):
        said = judge(row["url"], verdict)
        assert not said["failed"], said
        before = {each["url"]: each["score_before"] for each in said["moved"]}
        for url in before.keys() & first.keys():
            assert before[url] == pytest.approx(first[url])
    assert read_definition(home / "crawls" / "a" / "topic.toml").judged == {
        row["url"] for row in pages[:2]
    }


def test_a_crawl_that_is_refused_leaves_nothing(home: Path, address: str) -> None:
    before = sorted(home.rglob("*"))
    wrong = {**NEW_CRAWL, "name": "refused", "topic": "/Nowhere"}
    assert "/Nowhere" in Client(address).refused("/crawls", wrong)
    jobs = home / ".studio"
    left = [each for each in home.rglob("*") if not each.is_relative_to(jobs)]
    assert sorted(left) == [each for each in before if not each.is_relative_to(jobs)]


def test_a_larger_budget_is_spent_whenever_it_is_given(home: Path, address: str) -> None:
    client, at = Client(address), "/crawls/crawls/more"

    def has_fetched(least: int, said: dict[str, Any]) -> bool:
        return bool(said["fetched"] >= least)

    client.ask("/crawls", {**NEW_CRAWL, "name": "more", "budget": "30"})
    for budget in (60, 90):  # near the end of the run before
        client.until(at, partial(has_fetched, budget - 40))
        client.ask(f"{at}/budget", {"budget": str(budget)})
    ended = client.until(at, lambda said: not said["running"])
    assert (ended["fetched"], ended["state"]) == (90, "the budget of 90 fetches is spent")
    assert (home / "crawls" / "more" / "seeds.txt").is_file()


def test_nothing_that_no_text_has_is_taken(home: Path, address: str) -> None:
    access = Access("x", frozenset(), "x")
    routes = make_application(Desk(StudioFolder(home), Jobs(home), False), access).routes
    root, _, token = address.partition("/?token=")
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def answer(path: str, body: bytes | None = None) -> int:
        try:
            with urlopen(Request(root + path, body, headers)) as found:
                return int(found.status)
        except HTTPError as error:
            with error:
                return error.code

    names = {"crawls": "crawls/a", "topics": "t/topic.toml", "critics": "models/demo"}
    posts = 0
    for route in routes:
        path, methods = route.path, route.methods  # type: ignore[attr-defined]
        for kind, name in names.items():
            if f"/{kind}/{{" in path:
                path = path.replace("{name:path}", name)
        path = re.sub(r"\{[^}]*\}", "x", path)
        if "POST" not in methods:
            assert answer(f"{path}?q=a%00b") == HTTPStatus.BAD_REQUEST
            continue
        if path.endswith(("/pause", "/resume", "/stop", "/end", "/cancel")):
            continue  # they take no values
        posts += 1
        for hostile in ("a\0b", "\ud800", ["x\udfff"]):
            said = json.dumps(dict.fromkeys(_FIELDS, hostile)).encode()
            assert answer(path, said) == HTTPStatus.BAD_REQUEST, path
    assert posts > 15
    assert answer("/api/v1/crawls/crawls%00a") == HTTPStatus.BAD_REQUEST
