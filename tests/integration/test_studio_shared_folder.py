"""What studios do over HTTP to files that others write, too, and what is refused as a whole."""

from __future__ import annotations

import json
import re
import shutil
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from focuscrawl.studio.access import Access
from focuscrawl.studio.jobs import Jobs
from focuscrawl.studio.page_rendering import Desk
from focuscrawl.studio.served_folder import StudioFolder
from focuscrawl.studio.serving import make_application
from focuscrawl.topics import TopicDefinition, write_definition

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


def test_a_larger_budget_is_spent_whenever_it_is_given(home: Path, address: str) -> None:
    client, at = Client(address), "/crawls/crawls/more"

    client.ask("/crawls", {**NEW_CRAWL, "name": "more", "budget": "30"})
    client.until(at, lambda said: said["fetched"] >= 20)  # near the end of its run
    client.ask(f"{at}/budget", {"budget": "50"})
    ended = client.until(at, lambda said: not said["running"])
    assert (ended["fetched"], ended["state"]) == (50, "the budget of 50 fetches is spent")
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
