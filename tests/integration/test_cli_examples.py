"""Critics from pages that are fetched for them: real crawls of servers on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from focuscrawl.cli.main import main
from focuscrawl.critic.critic_files import read_critic
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import LocalWeb

#: as fast as the servers are: politeness itself is tested elsewhere
LIVE = [
    part
    for setting in (
        "FOCUSCRAWL_PRIVATE_ADDRESSES=127.0.0.0/8",
        "DOWNLOAD_DELAY=0",
        "AUTOTHROTTLE_ENABLED=0",
        "RETRY_TIMES=0",
    )
    for part in ("-s", setting)
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run commands in."""
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_examples_are_fetched_by_a_crawl_that_is_kept(local_web: LocalWeb, here: Path) -> None:
    a, forum = local_web.origins["a"], local_web.origins["forum"]
    good = [f"{forum}/topic-2", f"{forum}/list/1", f"{a}/start"]
    lost = [f"{a}/missing", f"{a}/private/diary", "bicycles"]
    (here / "good.txt").write_text("\n".join([*good, *lost]))
    (here / "bad.txt").write_text(f"{forum}/tax-4\n")
    files = ("--good", "good.txt", "--bad", "bad.txt", "--words", "bicycle")
    train = ("critic", "train", *files, "--name", "Bikes", "--out")
    before = len(local_web.requests())
    done = run(*train, "models/bikes", "--others", "7", "--crawl-dir", "fetched", *LIVE)
    assert done.exit_code == 0, done.output
    assert "Fetching 6 examples and 7 other pages into fetched/pages.warc.gz" in done.stderr
    assert f"3 examples could not be fetched as a page: {', '.join(lost)}" in done.stderr
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
    again = run(*train, "models/again", "--web", "fetched/pages.warc.gz")
    assert again.exit_code == 0, again.output
    assert read_critic("models/again")[1] == digest
    assert len(local_web.requests()) == before + len(asked)
    taken = run(*train, "models/third", "--crawl-dir", "fetched", *LIVE)
    assert taken.exit_code == 2
    assert "--web fetched/pages.warc.gz" in taken.stderr


def test_a_definition_without_a_web_has_its_pages_fetched(local_web: LocalWeb, here: Path) -> None:
    forum = local_web.origins["forum"]
    (here / "bikes.toml").write_text(
        f'name = "/Bikes"\ndescription = "All about the bicycle"\ngood = ["{forum}/topic-2"]\n'
    )
    done = run("topic", "train", "bikes.toml", "--out", "models/bikes", "--others", "3", *LIVE)
    assert done.exit_code == 0, done.output
    assert "models/bikes: topics /Bikes" in done.output
    (folder,) = (here / "crawls").iterdir()
    assert folder.name.startswith("bikes-")
    urls = set(open_web(str(folder / "pages.warc.gz")).urls())
    assert len({url for url in urls if not url.endswith("/robots.txt")}) == 4
    # what that critic was learned from is fetched, too, where it is to learn more
    (here / "more.toml").write_text(
        f'critic = "models/bikes"\ntopics = ["/Bikes"]\nbad = ["{forum}/tax-4"]\n'
    )
    done = run("topic", "train", "more.toml", "--out", "models/more", "--others", "1", *LIVE)
    assert done.exit_code == 0, done.output
    critic, _ = read_critic("models/more")
    assert dict(critic.examples) == {f"{forum}/topic-2": "/Bikes", f"{forum}/tax-4": "/bad"}
    assert critic.phrases == (("bicycle",),)


@pytest.mark.long
def test_live_pages_are_classified_and_their_neighbours_proposed(
    local_web: LocalWeb, here: Path
) -> None:
    forum, a = local_web.origins["forum"], local_web.origins["a"]
    (here / "bookmarks.html").write_text(f'<DL><DT><A HREF="{forum}/topic-2">b</A></DL>')
    before = len(local_web.requests())
    marked = ("--bookmarks", "bookmarks.html", "--critic", "demo")
    done = run("topic", "classify", f"{a}/start", *marked, "--crawl-dir", "fetched", *LIVE)
    assert done.exit_code == 0, done.output
    assert "of 2 pages:" in done.output  # one is where it is redirected to
    asked = {request["path"] for request in local_web.requests()[before:]}
    assert asked == {"/robots.txt", "/topic-2", "/start", "/middle", "/end"}  # no link is followed
    (here / "bikes.toml").write_text(f'words = ["bicycle"]\nseeds = ["{forum}/list/1"]\n')
    near = ("--others", "4", "--out", "q.csv", *LIVE)
    done = run("topic", "neighbours", "bikes.toml", *near)
    assert done.exit_code == 0, done.output
    assert (here / "q.csv").read_text().count(f"\n{forum}/") >= 2


@pytest.mark.parametrize("settings", [[], ["-s", "FOCUSCRAWL_PRIVATE_ADDRESSES=nowhere"]])
def test_nothing_fetched_is_no_critic(
    local_web: LocalWeb, here: Path, settings: list[str]
) -> None:
    (here / "good.txt").write_text(f"{local_web.origins['forum']}/topic-2\n")
    files = ("--good", "good.txt", "--words", "bicycle", "--out", "models/bikes")
    before = len(local_web.requests())
    done = run("critic", "train", *files, "--crawl-dir", "fetched", *settings)
    assert done.exit_code == 2, done.output
    if not settings:  # what the crawl itself refuses it says itself, on the same terminal
        said = done.stderr.splitlines()[-1]
        assert "none of 1 example could be fetched as a page (PrivateAddressError: 1" in said
        assert "see fetched/crawl.log" in done.stderr
    assert len(local_web.requests()) == before  # addresses that are not public are not asked
    assert not (here / "models").exists()


def test_what_is_refused_leaves_nothing(here: Path) -> None:
    asked = ["topic", "fetch", "http://a.example/", "--crawl-dir", "ex", "--web", "demo"]
    assert run(*asked, "-s", "FOCUSCRAWL_PATIENCE=x").exit_code == 2
    assert not (here / "ex").exists()
