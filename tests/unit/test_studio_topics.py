"""Topics in the studio: begun, changed by several at once, shown as the texts of strangers."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from integration.typed import focuscrawl

from focuscrawl.critic.focused_critic import WordReason, WordReasons
from focuscrawl.errors import UserError
from focuscrawl.report.templates import load_template
from focuscrawl.studio.page_cards import PageCard
from focuscrawl.studio.page_rendering import FieldErrorsError, text_value
from focuscrawl.studio.served_folder import StudioFolder
from focuscrawl.studio.topic_folder import TopicFiles, class_rows, load_class_tree
from focuscrawl.studio.topic_jobs import delete_topic, training_state
from focuscrawl.studio.topic_routes import Judgement, create_topic, edited_definition
from focuscrawl.testing import TinyWeb
from focuscrawl.topics import TopicDefinition, edit_definition, read_definition, write_definition

from .small_crawl import being_written
from .studio_folders import ask, make_context, write_job

HOSTILE = "<img src=x onerror=alert(1)>\"'"


@pytest.fixture
def folder(tmp_path: Path) -> StudioFolder:
    return StudioFolder(tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "topic.toml"
    write_definition(TopicDefinition(words=("knots",)), found)
    return found


def test_a_phrase_and_pages_make_a_topic(folder: StudioFolder) -> None:
    said = {"name": "knots", "words": "knots, rope work", "urls": "HTTP://A.org\nb.org"}
    with pytest.raises(UserError, match="not an http"):
        create_topic(folder, said)
    assert not (folder.root / "knots").exists()
    made = create_topic(folder, {**said, "urls": "HTTP://A.org\n\n# mine\nhttp://b.org/x"})
    found = read_definition(made)
    assert made == folder.topic("knots/topic.toml")
    assert found.words == ("knots", "rope work")
    assert found.good == found.seeds == ("http://a.org/", "http://b.org/x")


def test_a_topic_of_pages_of_the_demo_web_is_read_from_the_demo_web(folder: StudioFolder) -> None:
    urls = "https://velo-59.demo.example/a.html\nhttps://spokes-6.demo.example/"
    made = create_topic(folder, {"name": "road cycling", "urls": urls})
    assert made == folder.root / "road-cycling" / "topic.toml"
    assert read_definition(made).web == "demo"
    live = {"name": "b", "urls": f"{urls}\nhttps://a.org/"}
    with pytest.raises(FieldErrorsError, match="name the recording that contains") as refused:
        create_topic(folder, live)
    assert {*refused.value.fields} == {"web"}


def test_the_recording_of_a_topic_is_corrected_in_its_definition(folder: StudioFolder) -> None:
    (folder.root / "mine.warc").touch()
    known = TopicDefinition(good=("http://a.example/",))
    with pytest.raises(FieldErrorsError) as refused:
        edited_definition(known, {"web": ""}, folder)
    assert {*refused.value.fields} == {"web"}
    assert edited_definition(known, {"web": "mine.warc"}, folder).web == "./mine.warc"
    outside = replace(known, web="/elsewhere/pages.cdxj")  # named on the command line
    assert (
        edited_definition(outside, {"web": outside.web, "words": "a"}, folder).web == outside.web
    )
    of_demo = {"web": "", "good": "http://peloton-1.demo.example/"}
    assert edited_definition(known, of_demo, folder).web == "demo"


def test_an_untrained_topic_is_deleted_and_a_trained_one_kept(folder: StudioFolder) -> None:
    context = make_context(folder)
    topic = TopicFiles(folder, create_topic(folder, {"name": "knots", "words": "knots"}))
    (folder.root / "knots" / ".examples" / "1").mkdir(parents=True)
    write_job(folder.root, "train", topic.name)
    assert training_state(context, topic)["training"]
    delete_topic(context, topic)
    assert not (folder.root / "knots").exists()
    topic = TopicFiles(folder, create_topic(folder, {"name": "knots", "words": "knots"}))
    assert not training_state(context, topic)["training"]
    shutil.copytree("models/demo", folder.root / "knots" / "critic-1")
    with pytest.raises(UserError, match="has a critic"):
        delete_topic(context, topic)
    assert topic.path.is_file()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"name": "-x", "words": "knots"}, "not a valid name"),
        ({"name": "../x", "words": "knots"}, "not a valid name"),
        ({"name": "x"}, "describe the topic"),
        ({"name": "x", "words": "knots", "classes": "/A"}, "name the critic"),
        ({"name": "x", "words": "knots", "web": "/etc/passwd"}, "no recording"),
        ({"name": "x", "critic": "models/demo", "classes": "/Nowhere"}, "no class /Nowhere"),
        ({"name": "x", "critic": "os:getcwd", "classes": "/A"}, "no critic"),
    ],
)
def test_what_makes_no_sense_leaves_nothing(
    folder: StudioFolder, said: dict[str, Any], why: str
) -> None:
    with pytest.raises(UserError, match=why):
        create_topic(folder, said)
    assert not list(folder.root.iterdir())


def test_errors_of_a_form_are_reported_at_all_of_its_fields(folder: StudioFolder) -> None:
    said = {
        "name": "../x",
        "urls": "no url",
        "bad": "neither",
        "web": "none.warc",
        "classes": "/A",
    }
    with pytest.raises(FieldErrorsError) as refused:
        create_topic(folder, said)
    assert {*refused.value.fields} == {*said}
    (folder.root / "taken").mkdir()
    with pytest.raises(FieldErrorsError) as refused:
        create_topic(folder, {"name": "taken", "words": "knots"})
    assert refused.value.fields == {"name": "taken exists already: choose another name"}


def test_numbers_and_truths_of_json_stand_for_their_texts() -> None:
    posted = {"budget": 50, "least": 0.5, "train": True, "keep": False, "name": " a "}
    assert [text_value(posted, name) for name in posted] == ["50", "0.5", "yes", "", "a"]
    with pytest.raises(UserError, match="words must be a string"):
        text_value({"words": ["owl"]}, "words")


def fetch(path: Path, statuses: list[int]) -> None:
    """Write what a crawl leaves that was to fetch a page for each status; 0: no answer came."""
    path.parent.mkdir(exist_ok=True)
    with being_written(path) as crawl:
        for i, status in enumerate(statuses):
            error = None if status else "DNSLookupError"
            crawl.fetch(f"http://a.example/{i}", status=status, error=error)
    (path / "examples.txt").write_text("\n".join(crawl.urls))
    (path / "pages.warc.gz").touch()


def test_what_could_not_be_had_can_be_asked_for_again(folder: StudioFolder, path: Path) -> None:
    fetch(folder.root / ".examples" / "1", [0, 503])
    topic = TopicFiles(folder, path)
    assert topic.recordings() == []
    assert not topic.fetched()
    fetch(folder.root / ".examples" / "2", [200, 0, 301])
    assert topic.recordings() == ["./.examples/2/pages.warc.gz"]
    assert [*topic.fetched()] == ["http://a.example/0", "http://a.example/2"]


def test_what_another_program_writes_meanwhile_stays(path: Path) -> None:
    others = [replace(read_definition(path), words=("knots", "rope"))]

    def change(known: TopicDefinition) -> TopicDefinition:
        if others:  # an editor saves while we think
            write_definition(others.pop(), path)
        return Judgement(["http://a.example/"], "good").change(known)

    made = edit_definition(path, change)
    assert made == read_definition(path)
    assert (made.words, made.good) == (("knots", "rope"), ("http://a.example/",))


def test_two_persons_edit_a_topic_and_keep_both_changes(folder: StudioFolder) -> None:
    a, b, c = (f"http://a.example/{name}" for name in "abc")
    known = TopicDefinition(words=("knots", "rope"), good=(a, c), description="Ours")
    seen = {"words_was": "knots\nrope", "good_was": a, "description_was": ""}
    said = {"words": "knots\nsplice, sea", "good": b, "description": "", "seeds": f"{a}\n{b}"}
    made = edited_definition(known, said | seen, folder)
    assert made.words == ("knots", "splice, sea")
    assert made.good == (c, b)  # `c` was added meanwhile, and `a` was removed here
    assert made.description == "Ours"
    assert made.seeds == (a, b)
    with pytest.raises(FieldErrorsError) as refused:
        edited_definition(known, {"bad": a, "seeds": "no url"}, folder)
    assert {*refused.value.fields} == {"bad", "seeds"}
    with pytest.raises(FieldErrorsError, match="needs a phrase"):
        edited_definition(known, {"words": "", "good": "", "description": ""}, folder)


def test_classes_are_searched_and_opened_level_by_level(folder: StudioFolder) -> None:
    tree = load_class_tree(folder.critic("models/demo"))
    definition = TopicDefinition(critic="models/demo", topics=("/Sports",))
    found, cut = class_rows(tree, definition, search="cycl")
    assert [(each["path"], each["marked"]) for each in found] == [("/Sports/Cycling", "above")]
    assert not cut
    below, _ = class_rows(tree, None, under="/Sports")
    assert all(each["path"].startswith("/Sports/") for each in below)
    with pytest.raises(UserError, match="no class /Nowhere"):
        class_rows(tree, None, under="/Nowhere")


def test_a_hostile_page_is_shown_as_text() -> None:
    word = [WordReason(HOSTILE, 1.0)]
    card = PageCard(
        "http://a.example/%22",
        HOSTILE,
        [HOSTILE],
        True,
        0.5,
        WordReasons(word, [], 0.0, 0.1),
        HOSTILE,
    )
    cards = load_template("templates/page_card.html.j2", "focuscrawl.studio").module
    shown = "".join(str(getattr(cards, part)(card)) for part in ("shown", "text"))
    shown += str(cards.asked(card, "/x"))  # type: ignore[attr-defined]
    assert "<img" not in shown
    assert "&lt;img" in shown


def test_a_page_that_cannot_be_read_is_named_and_is_no_new_judgement(
    folder: StudioFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.root)
    good, lost = "http://a.example/", "http://a.example/lost"
    TinyWeb({good: "<p>splice knots"}).write(folder.root / "mine.warc.gz")
    said = {"name": "knots", "words": "splice", "urls": lost, "web": "mine.warc.gz"}
    topic = TopicFiles(folder, create_topic(folder, said))
    job = write_job(folder.root, "train", topic.name)

    def train(code: int) -> str:
        """Train a critic as a job does; return the page of the topic."""
        line = ["topic", "train", topic.name, f"--out={topic.next_critic()}"]
        (job / "output.log").write_text(focuscrawl(*line, code=code).output)
        (job / "outcome.json").write_text(json.dumps({"exit_code": code}))
        return " ".join(ask(make_context(folder), f"/topics/{topic.name}/definition")[1].split())

    failed = train(2).partition("The training failed: none of the")[2].partition("</p>")[0]
    assert lost in failed
    assert not topic.critics()
    edit_definition(topic.path, lambda known: known.with_judgements([good], []))
    page = train(0)
    assert f"could not read 1 example page: <bdi>{lost}</bdi>. Correct or remove this URL" in page
    assert "has not learned from" not in page
    edit_definition(topic.path, lambda known: known.without_judgements([lost]))
    assert topic.unread_urls() == []


def test_the_form_of_a_crawl_leads_to_the_training_of_an_untrained_topic(
    folder: StudioFolder,
) -> None:
    create_topic(folder, {"name": "knots", "words": "knots"})
    context = make_context(folder)
    link = 'href="/topics/knots/topic.toml/definition">'
    page = ask(context, "/crawls/new")[1]
    assert f"because it has no critic yet: <a {link}train a critic</a>" in page
    page = ask(context, "/crawls/new?topic=knots/topic.toml")[1]
    assert f'<a class="button main" {link}Train a critic' in page
