"""Topics in a browser: from a phrase and three pages to a critic, examples, classes, judging."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock
from unit.studio_folders import write_job

from focuscrawl.topics import TopicDefinition, edit_definition, read_definition, write_definition
from focuscrawl.webs.synthetic import SyntheticWeb

from . import warm
from .accessibility import assert_accessible
from .running import QUICK, Kept, as_options
from .studio import Client, Watched, crawl, expect, serving, tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from .conftest import LocalWeb

CYCLING = "/Sports/Cycling"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a crawl of thirty pages."""
    path = tmp_path_factory.mktemp("topics")
    crawl(path, "cycling", 30)
    return path


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The address of a studio, with its token; to one crawl, a job seems to apply judgements."""
    with (
        FileLock(write_job(folder, "follow", "crawls/road-cycling") / "lock"),
        serving(folder, options=as_options(QUICK)) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def opened(address: str, browser: Browser) -> Iterator[Watched]:
    """A tab that has opened the studio."""
    with tab(browser) as page:
        yield Watched(page, address)


def judge(tab: Page, verdict: str) -> str:
    """Judge the page that is shown, by a key, and wait until it is gone."""
    url = tab.locator("article").get_attribute("data-url")
    assert url is not None
    tab.keyboard.press(verdict)
    tab.locator(f'article[data-url="{url}"]').wait_for(state="detached")
    return url


def test_classes_are_found_marked_and_split_by_keys(folder: Path, opened: Watched) -> None:
    tab, root = opened.page, opened.root
    tab.goto(f"{root}topics/new?critic=models/demo&classes={CYCLING}")
    tab.fill("#name", "wheels")
    tab.get_by_role("button", name="Create", exact=True).press("Enter")
    tab.get_by_role("link", name="Classes").press("Enter")
    tab.locator("#q").press_sequentially("running")
    expect(tab.locator(".tree tbody tr")).to_have_count(1)
    tab.get_by_role("button", name="Good: /Sports/Running").press("Enter")
    expect(tab.get_by_role("button", name="Good: /Sports/Running")).to_have_text("good ✓")
    path = folder / "wheels" / "topic.toml"
    assert read_definition(path).topics == (CYCLING, "/Sports/Running")
    assert_accessible(tab)
    tab.goto(f"{root}critics/models/demo/classes?topic=wheels/topic.toml&under={CYCLING}")
    first = tab.locator(".pages input").first
    url = first.get_attribute("value")
    first.press("Space")
    tab.fill("#sub", "Mountain")
    tab.locator("#sub").press("Enter")
    expect(tab.get_by_text(f"moved to {CYCLING}/Mountain")).to_be_visible()
    assert read_definition(path).classes == {f"{CYCLING}/Mountain": (url,)}
    first = tab.locator(".pages input").nth(1)
    other = first.get_attribute("value")
    first.press("Space")
    tab.fill("#sub", "/Elsewhere")
    tab.locator("#sub").press("Enter")
    expect(tab.get_by_text("moved to /Elsewhere")).to_be_visible()
    assert read_definition(path).classes["/Elsewhere"] == (other,)
    tab.goto(f"{root}critics/models/demo/classes?topic=wheels/topic.toml&under=/Sports/Running")
    tab.fill("#to", "/Athletics/Running")
    tab.locator("#to").press("Enter")
    expect(tab.get_by_text(re.compile("Pages are moved to: .*/Athletics/Running"))).to_be_visible()
    assert read_definition(path).topics == (CYCLING, "/Athletics/Running")
    assert_accessible(tab)


def test_an_example_is_fetched_judged_and_listed(
    folder: Path, opened: Watched, local_web: LocalWeb
) -> None:
    """An example that no recording has is fetched, and none of its links is."""
    tab, root = opened.page, opened.root
    path = folder / "spokes" / "topic.toml"
    path.parent.mkdir()
    write_definition(TopicDefinition(critic="models/demo", topics=(CYCLING,)), path)
    asked = f"{local_web.origins['forum']}/topic-2"
    before = len(local_web.requests())
    tab.goto(f"{root}topics/spokes/topic.toml/examples")
    tab.fill("#urls", asked)
    tab.get_by_role("button", name="Add pages").press("Enter")
    expect(tab.locator("article")).to_contain_text("bicycle")
    expect(tab.locator("article")).to_have_attribute("data-url", asked)
    tab.locator("h1").click()
    judge(tab, "g")
    assert asked in read_definition(path).good
    listed = tab.locator("#judgements tbody tr")
    expect(listed).to_have_count(1)
    listed.get_by_role("button", name="Good", exact=True).press("Enter")  # once more: no verdict
    expect(tab.locator("#judgements")).to_contain_text("No page has been judged yet")
    expect(tab.locator("article")).to_have_attribute("data-url", asked)
    tab.locator("h1").click()
    tab.keyboard.press("u")
    expect(listed).to_have_count(1)
    fetched = {request["path"] for request in local_web.requests()[before:]}
    assert fetched == {"/robots.txt", "/topic-2"}


def test_a_topic_is_edited_in_its_page(folder: Path, opened: Watched) -> None:
    tab, root = opened.page, opened.root
    path = folder / "knots" / "topic.toml"
    path.parent.mkdir()
    write_definition(TopicDefinition(words=("knots", "rope"), good=("http://a.org/",)), path)
    tab.goto(f"{root}topics/knots/topic.toml/definition")
    words = tab.get_by_label("Phrases that only pages")
    words.fill("knots\nsplice")
    tab.get_by_label("Good pages").fill("http://a.org/\nno url")
    tab.get_by_label("Start pages").fill("neither")
    tab.get_by_role("button", name="Save changes").press("Enter")
    wrong = tab.locator(".field-error")
    expect(wrong).to_have_count(2)
    expect(tab.get_by_label("Good pages")).to_have_attribute("aria-invalid", "true")
    expect(tab.locator("[aria-invalid]:focus")).to_have_count(1)
    expect(words).to_have_value("knots\nsplice")  # what was typed stays
    assert_accessible(tab)
    # another person adds a page meanwhile
    edit_definition(path, lambda known: known.with_judgements([], ["http://b.org/"]))
    tab.get_by_label("Good pages").fill("http://a.org/\nhttp://c.org/")
    tab.get_by_label("Start pages").fill("http://a.org/")
    tab.get_by_role("button", name="Save changes").press("Enter")
    expect(tab.get_by_label("Pages that are not good")).to_have_value("http://b.org/")
    known = read_definition(path)
    assert known.words == ("knots", "splice")
    assert known.good == ("http://a.org/", "http://c.org/")
    assert known.bad == ("http://b.org/",)
    assert known.seeds == ("http://a.org/",)


def test_judgements_of_a_crawl_train_the_critic_of_its_topic(folder: Path, address: str) -> None:
    """From two pages of the demo web, without naming a recording."""
    client = Client(address)
    good = [label.url for label in SyntheticWeb().labels() if label.topic == CYCLING][:2]
    made = client.ask("/topics", {"name": "road cycling", "urls": good})
    assert made["web"] == "demo"
    topic = made["name"]
    assert "no crawl can judge pages for the topic" in client.page(f"/crawls/new?topic={topic}")
    assert "Train a critic" in client.page("/")
    client.ask(f"/topics/{topic}/edit", {"words": ["road cycling", "peloton"], "train": True})
    job = client.ask(f"/topics/{topic}/training")["training"]
    client.ask(f"/jobs/{job['id']}/end", {})
    client.until(f"/topics/{topic}/training", lambda said: not said["running"])
    # the same again where all is imported
    done = warm.run(job["arguments"], cwd=folder, env=os.environ, program="focuscrawl")
    assert done.returncode == 0, done.stderr
    form = client.page(f"/crawls/new?topic={topic}")
    (of,) = re.findall(r'<option value="([^"]*)" selected>road-cycling<', form)
    begun = client.ask("/crawls", {"of": of, "budget": "30", "strategy": "best-first"})
    assert begun["crawl"] == "crawls/road-cycling"
    at = f"/crawls/{begun['crawl']}"
    client.until(at, lambda said: not said["running"] and said["fetched"] == 30)
    pages = [row["url"] for row in client.until(f"{at}/pages", lambda s: "rows" in s)["rows"]]
    judged = [url for url in pages if url not in good][:5]
    for url in judged[:4]:
        client.ask(f"{at}/judge", {"url": url, "verdict": "bad"})
    assert client.ask(f"{at}/judge", {"url": good[0], "verdict": "bad"})["before"] == {
        good[0]: "good"  # in the definition of the topic
    }
    client.ask(f"{at}/judge", {"url": good[0], "verdict": "good"})
    assert {*read_definition(folder / topic).bad} == {*judged[:4]}
    assert "4 judgements that this critic has not learned from" in client.page(
        f"/topics/{topic}/quality"
    )
    client.ask(f"{at}/judge", {"url": judged[4], "verdict": "good"})
    trained = client.until(f"/topics/{topic}/training", lambda said: not said["running"])
    assert trained["critics"][-1] == "road-cycling/critic-2"
    assert f"{at}/judge" in client.page(f"/parts/topics/{topic}/example")
    overview = client.page("/")
    assert "critic-2</bdi>. Examples: 3 good, 4 not good" in " ".join(overview.split())


def test_judging_pages_moves_the_frontier(folder: Path, address: str, opened: Watched) -> None:
    tab, root = opened.page, opened.root
    client, at = Client(address), "/crawls/crawls/cycling"
    waiting = client.until(f"{at}/frontier", lambda said: not said["sorting"])
    scores = {row["url"]: row["score"] for row in waiting["rows"]}
    tab.goto(f"{root}crawls/crawls/cycling/judge")
    expect(tab.get_by_text(re.compile("The critic .* relevance [01][.][0-9]{2}"))).to_be_visible()
    bad = judge(tab, "b")
    judge(tab, "s")
    good = judge(tab, "g")
    worse = judge(tab, "b")
    # what was judged while the crawl followed is followed, too, when nobody looks
    tab.goto(root)
    moved = client.until(f"{at}/moved", lambda said: not said["busy"])
    assert (moved["left"], moved["failed"], moved["judged"]) == (False, "", 3)
    # it is compared with what was before the first judgement
    before = {each["url"]: each["score_before"] for each in moved["moved"]}
    assert before.keys() & scores.keys()
    for url in before.keys() & scores.keys():
        assert before[url] == pytest.approx(scores[url])
    tab.go_back()
    expect(tab.locator("#moved table tbody tr").first).to_be_visible()
    following = tab.get_by_text("Applying your judgements")
    expect(following).to_have_count(0)
    known = read_definition(folder / "crawls" / "cycling" / "topic.toml")
    assert (known.good, known.bad) == ((good,), (bad, worse))
    assert (folder / "crawls" / "cycling" / "critic-1").is_dir()
    asked = client.ask(f"{at}/question")["page"]
    find = f"SELECT relevance FROM pages WHERE url = '{asked['url']}'"
    # by the new critic, although the first critic chose the page
    ((relevance,),) = Kept(folder / "crawls" / "cycling").query(find)
    assert asked["relevance"] == pytest.approx(relevance)
    for row in client.ask(f"{at}/judgements")["rows"]:
        listed = tab.locator("#judgements tr", has_text=row["url"])
        expect(listed).to_contain_text(f"{row['relevance']:.2f}")  # of the new critic
    expect(tab.locator("#moved")).to_contain_text(re.compile("pages? became off-topic"))
    tab.get_by_role("link", name="Continue with a larger budget").press("Enter")
    expect(tab.get_by_label("Budget in fetches")).to_be_visible()
    expect(tab.locator("#changed")).to_contain_text(re.compile("pages? became off-topic"))
