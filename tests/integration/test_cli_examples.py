"""Critics from pages that are fetched for them: real crawls of servers on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from focuscrawl.critic.critic_files import read_critic
from focuscrawl.webs import open_web

from .recording import record
from .running import QUICK, as_options
from .typed import focuscrawl

if TYPE_CHECKING:
    from .conftest import LocalWeb

#: as fast as the servers are: politeness itself is tested elsewhere
LIVE = as_options(QUICK | {"RETRY_TIMES": 0})


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run commands in."""
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_examples_are_fetched_by_a_crawl_that_is_kept(local_web: LocalWeb, here: Path) -> None:
    a, forum = local_web.origins["a"], local_web.origins["forum"]
    good = [f"{forum}/topic-2", f"{forum}/list/1", f"{a}/start"]
    lost = [f"{a}/missing", f"{a}/private/diary"]
    (here / "good.txt").write_text("\n".join([*good, *lost]))
    (here / "bad.txt").write_text(f"{forum}/tax-4\n")
    files = ("--good", "good.txt", "--bad", "bad.txt", "--words", "bicycle")
    train = ("critic", "train", *files, "--name", "Bikes", "--out")
    before = len(local_web.requests())
    done = focuscrawl(*train, "models/bikes", "--others", 7, "--crawl-dir", "fetched", *LIVE)
    assert "Fetching 6 examples and 7 other pages into fetched/pages.warc.gz" in done.stderr
    assert f"2 examples could not be fetched as a page: {', '.join(lost)}" in done.stderr
    critic, digest = read_critic("models/bikes")
    assert dict(critic.examples) == {
        **dict.fromkeys(good, "/Bikes"),  # the redirect leads to a page
        f"{forum}/tax-4": "/bad",
    }
    asked = [request["path"] for request in local_web.requests()[before:]]
    assert "/robots.txt" in asked
    assert "/private/diary" not in asked  # robots.txt forbids it
    assert sum(path != "/robots.txt" for path in asked) <= 6 + 7
    assert len(asked) > 8  # there are others
    focuscrawl(*train, "models/again", "--web", "fetched/pages.warc.gz")
    assert read_critic("models/again")[1] == digest
    assert len(local_web.requests()) == before + len(asked)
    taken = focuscrawl(*train, "models/third", "--crawl-dir", "fetched", *LIVE, code=2)
    assert "--web fetched/pages.warc.gz" in taken.stderr


def test_a_definition_without_a_web_has_its_pages_fetched(local_web: LocalWeb, here: Path) -> None:
    """What its critic was learned from is fetched, too, where it is to learn more."""
    forum = local_web.origins["forum"]
    pages = [(f"{forum}/topic-2", "<p>A bicycle"), (f"{forum}/other", "<p>Something else")]
    web = record(here / "old.warc.gz", pages)
    (here / "good.txt").write_text(f"{forum}/topic-2\n")
    little = ("--words", "bicycle", "--good", "good.txt", "--name", "/Bikes", "--web", web)
    focuscrawl("critic", "train", *little, "--out", "models/old")
    (here / "more.toml").write_text(
        f'critic = "models/old"\ntopics = ["/Bikes"]\nbad = ["{forum}/tax-4"]\n'
    )
    given = ("--out", "models/more", "--others", 1, *LIVE)
    assert (
        "-a critic=models/more -a topic=/Bikes"
        in focuscrawl("topic", "train", "more.toml", *given).output
    )
    (folder,) = (here / "crawls").iterdir()
    assert folder.name.startswith("more-")
    urls = set(open_web(str(folder / "pages.warc.gz")).urls())
    assert len({url for url in urls if not url.endswith("/robots.txt")}) == 3
    critic, _ = read_critic("models/more")
    assert dict(critic.examples) == {f"{forum}/topic-2": "/Bikes", f"{forum}/tax-4": "/bad"}
    assert critic.phrases == (("bicycle",),)


def test_nothing_fetched_is_no_critic(local_web: LocalWeb, here: Path) -> None:
    """Addresses that are not public are not asked."""
    (here / "good.txt").write_text(f"{local_web.origins['forum']}/topic-2\n")
    files = ("--good", "good.txt", "--words", "bicycle", "--out", "models/bikes")
    before = len(local_web.requests())
    done = focuscrawl("critic", "train", *files, "--crawl-dir", "fetched", code=2)
    said = done.stderr.splitlines()[-1]
    assert "none of 1 example could be fetched as a page (PrivateAddressError: 1" in said
    assert "see the log fetched/crawl.log" in done.stderr
    assert len(local_web.requests()) == before
    assert not (here / "models").exists()


def test_what_is_refused_leaves_nothing(here: Path) -> None:
    asked = ("topic", "fetch", "http://a.example/", "--crawl-dir", "ex", "--web", "demo")
    focuscrawl(*asked, "-s", "FOCUSCRAWL_PATIENCE=x", code=2)
    assert not (here / "ex").exists()
