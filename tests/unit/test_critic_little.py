"""A critic from little: which pages are read, what stands for all others, what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.cli.critic_examples import read_description
from focuscrawl.critic.corpus import find_pages
from focuscrawl.critic.critic_files import read_critic, save_critic
from focuscrawl.critic.few_shot import fit_few_shot
from focuscrawl.critic.phrase_model import parse_description
from focuscrawl.critic.training import parse_topic_name, train_few_shot
from focuscrawl.errors import UserError

from .shelves import Shelf, at

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.classifiers import LogisticModel


pytestmark = pytest.mark.usefixtures("own_cache")  # all shelves have one fingerprint
TRAINING = "focuscrawl.critic.training"


@pytest.fixture
def shelf(embeddings: bool) -> Shelf:
    """Pages on knots and on taxes."""
    shelf = Shelf()
    for i in range(20):
        shelf.page(f"/knots{i}", f"knots rope splice hitch number{i} sea")
        shelf.page(f"/tax{i}", f"tax form revenue audit number{i} office")
    return shelf


def test_a_redirect_is_read_where_it_leads(shelf: Shelf) -> None:
    shelf.put("/moved", "", 301, location="/moving")
    shelf.put("/moving", "", 302, location="/knots1")
    shelf.put("/round", "", 302, location="/round")
    shelf.put("/away", "", 301, location="b.example/x")
    wanted = [at("/moved"), at("/round"), at("/away"), at("/knots2"), "no url"]
    found = find_pages([Shelf(), shelf], wanted)
    assert {url: page.url for url, page in found.items()} == {
        at("/moved"): at("/knots1"),
        at("/knots2"): at("/knots2"),
    }
    trained = train_few_shot([], wanted, [at("/tax1")], [shelf])
    assert [url for url, _ in trained.examples] == [at("/moved"), at("/knots2"), at("/tax1")]
    assert trained.skipped == {"unreadable": 3}


def others(
    monkeypatch: pytest.MonkeyPatch, webs: Sequence[Shelf], relevant: Sequence[str] = ()
) -> list[Bag]:
    """Train, and return the pages that stood for all others, English left out."""
    seen: list[Bag] = []

    def spied(*given: Any, **options: Any) -> LogisticModel:
        seen.extend(given[3])
        return fit_few_shot(*given, **options)

    monkeypatch.setattr(f"{TRAINING}.fit_few_shot", spied)
    train_few_shot([["knots"]], [at("/knots0")], [], webs, relevant=relevant)
    assert len(seen) == 60  # English makes up for what there is not
    return [bag for bag in seen if sum(bag.values()) < 100]


@pytest.mark.parametrize("embeddings", [True, False], indirect=True)
def test_pages_without_a_label_stand_for_all_others(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = others(monkeypatch, [shelf])
    assert len(drawn) == 39
    assert not any(bag.get("number0") and bag.get("knots") for bag in drawn)


def test_of_what_a_crawl_holds_for_relevant_few_stand_for_others(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A focused crawl has fetched little else than its topic: it is not what others are like."""
    drawn = others(monkeypatch, [shelf], [at(f"/knots{i}") for i in range(20)])
    assert sum("knots" in bag for bag in drawn) == 2
    assert sum("tax" in bag for bag in drawn) == 20


def test_what_it_was_learned_from_is_kept(shelf: Shelf, tmp_path: Path) -> None:
    phrases = [["rope", "hitch"], ["splice"]]
    good, bad = [at("/knots1"), at("/knots1")], [at("/tax1")]
    trained = train_few_shot(phrases, good, bad, [shelf], topic=parse_topic_name("Sea/Knots"))
    save_critic(trained, tmp_path / "knots")
    kept, _ = read_critic(str(tmp_path / "knots"))
    assert kept.phrases == (("rope", "hitch"), ("splice",))
    assert kept.examples == ((at("/knots1"), "/Sea/Knots"), (at("/tax1"), "/bad"))
    assert set(kept.model.classes) == {"/Sea/Knots", "/bad"}
    alone = train_few_shot(phrases, [], [], [])
    assert (alone.phrases, alone.examples) == (kept.phrases, ())


def test_a_critic_is_learned_again_without_the_pages_it_was_learned_from(
    shelf: Shelf, tmp_path: Path
) -> None:
    """A live crawl has fetched other pages, few of which are off the topic."""
    trained = train_few_shot([["knots"]], [at("/knots1")], [at("/tax1")], [shelf])
    save_critic(trained, tmp_path / "before")
    before, _ = read_critic(str(tmp_path / "before"))
    crawl = Shelf()
    for i in range(30):
        crawl.page(f"/more{i}", f"knots ropes hitches number{i} " * 9)
    good, bad = [at("/knots1"), at("/more1")], [at("/tax1")]
    again = train_few_shot([["knots"]], good, bad, [crawl], previous=before)
    assert [url for url, _ in again.examples] == [*good, *bad]
    assert again.skipped == {}
    bags = again.pages.bags()
    assert bags[0] == before.pages.bags()[0]  # the crawl does not have it
    assert "hitches" in bags[1]
    assert bags[3:] == before.pages.bags()[2:]  # others are those of before
    assert len(bags) == 3 + 38
    same = train_few_shot([["knots"]], good[:1], bad, [crawl], previous=before)
    page = [{"knots": 3, "rope": 2}, {"tax": 3}]
    assert same.model.log_posteriors(page).tolist() == trained.model.log_posteriors(page).tolist()
    alone = train_few_shot([], good[:1], [], [], previous=before)
    assert [url for url, _ in alone.examples] == good[:1]


def test_what_makes_no_sense_is_one_line(shelf: Shelf) -> None:
    with pytest.raises(UserError, match="is both good and bad"):
        train_few_shot([], [at("/knots1")], ["http://A.example/knots1"], [shelf])
    for good, webs in (([at("/gone")], [shelf]), ([at("/knots1")], [])):
        with pytest.raises(UserError, match="none of the good pages can be read"):
            train_few_shot([], good, [], webs)
    with pytest.raises(ValueError, match="needs a phrase or a good page"):
        fit_few_shot(unlabelled=[{"rope": 1}], embeddings=False)


def test_a_description_is_a_text_or_a_file_of_it(tmp_path: Path) -> None:
    (tmp_path / "topic.txt").write_text("\ufeffKnots, and how a rope is spliced.")
    assert read_description(str(tmp_path / "topic.txt")) == "Knots, and how a rope is spliced."
    assert read_description("knots at sea") == "knots at sea"
    long = "a rope " * 10_000  # too long for the name of a file
    assert read_description(long) == long
    assert parse_description("Knots, and how a rope is spliced. Knots!") == [
        "knots",
        "rope",
        "spliced",
    ]
    with pytest.raises(UserError, match="no such file"):
        read_description("topic.txt")
    (tmp_path / "latin").write_bytes(b"\xff\xfe\xff rope")
    with pytest.raises(UserError, match="save it as UTF-8 text"):
        read_description(str(tmp_path / "latin"))
    with pytest.raises(UserError, match="on nearly every page"):
        parse_description("this and that")
