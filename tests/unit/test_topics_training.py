"""What is learned from a definition of a topic: critics, and classes that fit."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from longer import long
from wordfreq import top_n_list, word_frequency

from focuscrawl.critic.corpus import PackedBags, read_bags
from focuscrawl.critic.critic_files import save_critic
from focuscrawl.critic.languages import generate_pages
from focuscrawl.critic.phrase_model import OFF_TOPIC
from focuscrawl.critic.training import train_critic, train_on_bags
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import cache_dir
from focuscrawl.taxonomy import ROOT, Label
from focuscrawl.topics import TopicDefinition, rank_classes, train_definition
from focuscrawl.topics.definition import move_class, move_examples

from .language_pages import LanguagePages
from .shelves import Shelf, at

if TYPE_CHECKING:
    from focuscrawl.critic.focused_critic import TrainedCritic


pytestmark = pytest.mark.usefixtures("own_cache")  # all shelves have one fingerprint


@pytest.fixture
def shelf() -> Shelf:
    """Pages on knots, reefs and taxes, and some that no class has seen."""
    shelf = Shelf()
    for i in range(6):
        shelf.page(f"/knots{i}", f"knots rope splice hitch number{i} sea")
        shelf.page(f"/reef{i}", f"reef coral fish tide number{i} sea")
        shelf.page(f"/tax{i}", f"tax form revenue audit number{i} office")
        shelf.page(f"/climb{i}", f"rope climb harness cliff number{i}")
    return shelf


def saved(shelf: Shelf, folder: Path, kind: str = "flat") -> str:
    labels = [
        Label(at(f"/{name}{i}"), topic, "train")
        for name, topic in (("knots", "/Sea/Knots"), ("reef", "/Sea/Reefs"), ("tax", "/Money"))
        for i in range(4)
    ]
    save_critic(train_critic(labels, shelf, kind=kind), folder / "base")
    return str(folder / "base")


def test_judged_pages_become_examples_of_the_classes_they_fit(
    shelf: Shelf, tmp_path: Path
) -> None:
    base = saved(shelf, tmp_path)
    definition = TopicDefinition(critic=base, topics=("/Sea",)).with_judgements(
        [at("/reef5")], [at("/climb0"), at("/climb1")]
    )
    trained, marked = train_definition(definition, [shelf])
    examples = dict(trained.examples)
    assert marked == ("/Sea",)
    assert examples[at("/reef5")] == "/Sea/Reefs"
    assert examples[at("/climb0")] == "/Money"  # the only class that is not marked
    assert len(examples) == 12 + 3
    climbing = shelf_bag(shelf, "/climb3")
    before, _ = train_definition(TopicDefinition(critic=base, topics=("/Sea",)), [shelf])
    money = trained.model.classes.index("/Money")
    at_first, now = (t.model.log_posteriors([climbing])[0, money] for t in (before, trained))
    assert now > np.log(0.5) > at_first


def shelf_bag(shelf: Shelf, path: str) -> dict[str, int]:
    answer = shelf.fetch(at(path))
    assert answer is not None
    words = answer.body.decode().partition("<body>")[2].split()
    return {word: 1 for word in words if word.isalnum()}


def test_a_class_is_split_into_what_was_moved_and_other(shelf: Shelf, tmp_path: Path) -> None:
    base = saved(shelf, tmp_path)
    definition = TopicDefinition(critic=base, topics=("/Sea/Knots",)).with_moved_examples(
        {"/Sea/Knots/Hitches": [at("/knots0"), at("/climb2")]}
    )
    trained, marked = train_definition(definition, [shelf])
    assert marked == ("/Sea/Knots",)
    assert trained.model.classes == ("/Money", "/Sea/Knots/Hitches", "/Sea/Knots/Other",
                                     "/Sea/Reefs")  # fmt: skip
    of = dict(trained.examples)
    assert of[at("/knots0")] == of[at("/climb2")] == "/Sea/Knots/Hitches"
    assert of[at("/knots1")] == "/Sea/Knots/Other"


def test_the_tree_is_administered_and_judgements_follow(shelf: Shelf, tmp_path: Path) -> None:
    base = saved(shelf, tmp_path)
    definition = TopicDefinition(critic=base, topics=("/Sea/Knots",), good=(at("/knots2"),))
    # a document goes to another class, one to a new class at the top
    changed = move_examples(
        definition, {"/Sea/Reefs": [at("/knots0")], "/Climbing": [at("/knots1")]}
    )
    # and a class to another place, with its mark
    changed = move_class(changed, "/Sea/Knots", "/Crafts/Knots")
    trained, marked = train_definition(changed, [shelf])
    assert marked == ("/Crafts/Knots",)
    assert trained.model.classes == ("/Climbing", "/Crafts/Knots", "/Money", "/Sea/Reefs")
    of = dict(trained.examples)
    assert (of[at("/knots0")], of[at("/knots1")]) == ("/Sea/Reefs", "/Climbing")
    assert of[at("/knots2")] == "/Crafts/Knots"
    # a tree is moved as a whole, with what was moved into it
    whole = move_class(changed, "/Sea", "/Water")
    assert "/Water/Reefs" in whole.classes
    assert at("/knots0") in whole.classes["/Water/Reefs"]
    with pytest.raises(UserError, match="which is the class or below it"):
        move_class(definition, "/Sea", "/Sea/Deep")
    with pytest.raises(UserError, match=r"no class /Sea/Knot has examples\. Similar: /Sea"):
        move_class(definition, "/Sea/Knot", "/Rope")
    for wrong in (ROOT, OFF_TOPIC):
        with pytest.raises(UserError, match="pages cannot be moved to"):
            move_examples(definition, {wrong: [at("/knots0")]})


def test_a_good_page_of_a_moved_class_goes_with_it(shelf: Shelf, tmp_path: Path) -> None:
    definition = TopicDefinition(
        critic=saved(shelf, tmp_path), topics=("/Sea/Knots",), good=(at("/climb1"),)
    )
    moved = move_class(definition, "/Sea/Knots", "/Rope")
    assert dict(train_definition(moved, [shelf])[0].examples)[at("/climb1")] == "/Rope"


def test_without_a_critic_words_and_pages_are_learned_from_together(shelf: Shelf) -> None:
    """Good pages count without bad ones, and what is called by a name is."""
    words = TopicDefinition(words=("splice",), description="a hitch, and more", name="/Sea/Ropes")
    trained, marked = train_definition(words.with_judgements([at("/reef1")]), [shelf])
    assert marked == ("/Sea/Ropes",)
    assert set(trained.model.classes) == {"/Sea/Ropes", "/bad"}
    assert trained.examples == ((at("/reef1"), "/Sea/Ropes"),)
    assert trained.phrases == (("splice",), ("hitch",))
    knots, reef, climb, tax = relevances(trained, shelf, "/knots3", "/reef3", "/climb3", "/tax3")
    assert min(knots, reef) > tax
    judged = words.with_judgements([at("/reef1"), at("/gone")], [at("/climb1")])
    trained, _ = train_definition(judged, [Shelf(), shelf])
    assert dict(trained.examples) == {at("/reef1"): "/Sea/Ropes", at("/climb1"): "/bad"}
    reef_now, climb_now = relevances(trained, shelf, "/reef3", "/climb3")
    assert climb_now - reef_now < climb - reef
    alone, marked = train_definition(TopicDefinition(words=("splice",)), [])
    assert marked == ("/good",)
    assert alone.examples == ()
    with pytest.raises(UserError, match="none of the good pages can be read"):
        train_definition(TopicDefinition().with_judgements([at("/gone")]), [shelf])


def relevances(trained: TrainedCritic, shelf: Shelf, *paths: str) -> list[float]:
    """Return the log-odds of pages for the class that is not /bad."""
    (on,) = (i for i, path in enumerate(trained.model.classes) if path != "/bad")
    log = trained.model.log_posteriors([shelf_bag(shelf, path) for path in paths])
    return [float(row[on] - row[1 - on]) for row in log]


@pytest.mark.long
def test_a_critic_of_one_topic_is_learned_anew_with_what_it_was_learned_from(
    shelf: Shelf, tmp_path: Path
) -> None:
    first, _ = train_definition(
        TopicDefinition(words=("splice",), name="/Ropes").with_judgements(
            [at("/knots0")], [at("/tax0")]
        ),
        [shelf],
    )
    save_critic(first, tmp_path / "ropes")
    definition = TopicDefinition(critic=str(tmp_path / "ropes"), topics=("/Ropes",))
    same, marked = train_definition(definition, [shelf])
    assert (same.examples, same.phrases, marked) == (first.examples, first.phrases, ("/Ropes",))
    assert relevances(same, shelf, "/knots3") == relevances(first, shelf, "/knots3")
    judged = definition.with_judgements(
        [at("/climb0"), at("/tax0")]
    )  # the latest judgement counts
    more, _ = train_definition(judged, [shelf])
    assert dict(more.examples) == dict.fromkeys(
        [at("/knots0"), at("/tax0"), at("/climb0")], "/Ropes"
    )
    assert more.phrases == first.phrases
    assert relevances(more, shelf, "/climb3") > relevances(first, shelf, "/climb3")
    elsewhere, _ = train_definition(definition, [Shelf()])
    assert relevances(elsewhere, shelf, "/knots3") == relevances(first, shelf, "/knots3")
    save_critic(replace(first, pages=PackedBags()), tmp_path / "ropes", force=True)
    with pytest.raises(UserError, match="only 0 of the 2 examples"):  # as they were before
        train_definition(definition, [Shelf()])


def test_a_taxonomy_is_learned_anew_by_the_kind_of_critic_that_it_is_of(
    shelf: Shelf, tmp_path: Path
) -> None:
    base = saved(shelf, tmp_path, kind="discriminative")
    definition = TopicDefinition(
        critic=base, topics=("/Sea/Knots",), words=("bowline",)
    ).with_judgements([at("/climb0")])
    trained, marked = train_definition(definition, [shelf])
    assert trained.model.kind == "discriminative"
    assert marked == ("/Sea/Knots",)
    assert dict(trained.examples)[at("/climb0")] == "/Sea/Knots"


@pytest.mark.parametrize("language", ["en", "de", *long("ru")])
def test_everyday_words_that_only_good_pages_have_do_not_speak_for_the_topic(
    language: str,
) -> None:
    shelf = Shelf()
    usual = [word for word in top_n_list(language, 300)[150:] if word.isalpha()]
    often = {word: round(3000 * word_frequency(word, language)) for word in usual}
    english = " ".join(f"{word} " * n for word, n in often.items())
    for i in range(8):
        shelf.page(f"/knots{i}", f"{english} {'knots ' * 20} number{i}")
    shelf.page("/tax", "tax revenue office " * 50)
    good, bad = [at(f"/knots{i}") for i in range(8)], [at("/tax")]
    trained, _ = train_definition(TopicDefinition().with_judgements(good, bad), [shelf])
    assert [url for url, _ in trained.examples] == [*good, *bad]  # English is no page
    bags = read_bags(shelf, [*good, *bad])
    pairs = [(url, "/good") for url in good] + [(url, "/bad") for url in bad]
    usable = [(pair, bag) for pair, bag in zip(pairs, bags, strict=True) if bag is not None]
    plain = train_on_bags(usable, uniform_prior=True)

    def said(critic: TrainedCritic, topic: str, *words: str) -> float:
        bag = dict.fromkeys(words, 1)
        return float(critic.model.log_posteriors([bag])[0, critic.model.classes.index(topic)])

    everyday = usual[:20]
    assert said(trained, "/good", "knots") > np.log(0.5)
    off = [-said(critic, "/bad", *everyday) for critic in (plain, trained)]
    assert off[1] < 0.8 * off[0]  # they speak less for it


@pytest.mark.parametrize("language", ["de", "zh"])
def test_everyday_words_are_those_of_the_language(language: str, tmp_path: Path) -> None:
    shelf, pages = Shelf(), LanguagePages(language, each=6, others=0)
    labels = []
    for i, page in enumerate(pages.pages):
        shelf.page(f"/{i}", pages.text(page))
        if page.topic in {"cycling", "banking"}:
            labels.append(Label(at(f"/{i}"), f"/{page.topic}", "train"))
    base = train_critic(labels, shelf, kind="flat")
    save_critic(base, tmp_path / "base")
    definition = TopicDefinition(critic=str(tmp_path / "base"), topics=("/cycling",))
    trained, _ = train_definition(definition, [shelf])
    everyday = generate_pages(1, 0, ((language, 1.0),))
    plain, written = (each.model.log_posteriors(everyday)[0, 1] for each in (base, trained))
    assert written < min(plain, np.log(0.01))  # of two classes, cycling is the second


def test_what_cannot_be_learned_from_is_one_line(shelf: Shelf, tmp_path: Path) -> None:
    base = saved(shelf, tmp_path)
    with pytest.raises(UserError, match=r"has no class /Sea/Knot\. Similar classes: /Sea/Knots"):
        train_definition(TopicDefinition(critic=base, topics=("/Sea/Knot",)), [shelf])
    with pytest.raises(UserError, match="only 0 of the 12 examples"):
        train_definition(TopicDefinition(critic=base, topics=("/Sea",)), [Shelf()])
    everything = TopicDefinition(critic=base, topics=("/Sea", "/Money"))
    with pytest.raises(UserError, match=r"every class of .* is marked"):
        train_definition(everything.with_judgements(bad=[at("/climb0")]), [shelf])


def test_classes_that_fit_are_ranked_by_pages_then_share() -> None:
    classes = ("/A/B/C", "/A/B/D", "/A/E", "/F")
    fits = rank_classes(
        classes,
        np.array([[0.9, 0.1, 0.0, 0.0], [0.2, 0.7, 0.1, 0.0], [0.3, 0.3, 0.4, 0.0]]),
    )
    assert [(fit.topic, fit.pages) for fit in fits] == [
        ("/A", 3), ("/A/B", 2), ("/A/B/C", 1), ("/A/B/D", 1), ("/A/E", 1), ("/F", 0),
    ]  # fmt: skip
    assert fits[0].share == pytest.approx(1.0)
    assert fits[1].share == pytest.approx((1.0 + 0.9 + 0.6) / 3)
    assert rank_classes(classes, np.zeros((0, 4))) == []
    one = rank_classes(("/A/B/C", "/F"), np.array([[0.9, 0.1]]))
    assert [fit.topic for fit in one] == ["/A/B/C", "/F"]  # those above say nothing new


def test_words_are_kept_by_several_processes_that_begin_at_once(shelf: Shelf) -> None:
    urls = [at("/reef5"), at("/climb0")]
    bags = read_bags(shelf, urls)
    (path,) = (cache_dir() / "words").glob("*.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA journal_mode=DELETE")  # as a file is that was made just now
        other.execute("BEGIN IMMEDIATE")
        done = threading.Timer(0.2, other.execute, ["COMMIT"])
        done.start()
        assert read_bags(shelf, urls) == bags
        done.join()
