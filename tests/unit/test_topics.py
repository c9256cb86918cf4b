"""Definitions of topics: the file, bookmarks, the critic that follows, classes that fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wordfreq import top_n_list, word_frequency

from focuscrawl.critic.corpus import read_bags
from focuscrawl.critic.files import save_critic
from focuscrawl.critic.training import learn_critic, train_critic
from focuscrawl.critic.written import written_pages
from focuscrawl.errors import UserError
from focuscrawl.taxonomy import Label
from focuscrawl.topics import (
    TopicDefinition,
    fit_classes,
    read_bookmarks,
    read_definition,
    train_definition,
    write_definition,
)

from .language_pages import LanguagePages
from .shelves import Shelf, at

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.critic.trained import TrainedCritic
    from focuscrawl.topics import Bookmark

NAMES = st.text("abcdefgh-", min_size=1, max_size=6)
URLS = st.builds("https://{}.example/{}".format, st.sampled_from("abc"), NAMES)
LISTS = st.lists(URLS, unique=True, max_size=5).map(tuple)
PHRASES = st.text(st.characters(blacklist_categories=["C", "Z"]), min_size=1, max_size=12)


@settings(max_examples=50, deadline=None)
@given(
    seeds=LISTS,
    good=LISTS,
    bad=LISTS,
    words=st.lists(PHRASES, unique=True, min_size=1, max_size=3).map(tuple),
    names=st.lists(NAMES.filter(lambda n: n.strip("-")), unique=True, min_size=1, max_size=3),
)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory,
    seeds: tuple[str, ...],
    good: tuple[str, ...],
    bad: tuple[str, ...],
    words: tuple[str, ...],
    names: list[str],
) -> None:
    path = tmp_path_factory.mktemp("topic") / "topic.toml"
    topics = tuple(f"/A/{name}" for name in names)
    definition = TopicDefinition("models/x", "demo", topics, words, seeds).judging(good, bad)
    definition = replace(definition, description=" ".join(words) or None)
    write_definition(definition, path)
    assert read_definition(path) == definition
    more = definition.judging(bad).splitting({"/A/x/y": ["https://n.example/"]})
    write_definition(more, path)  # changed, and shorter by a list
    assert read_definition(path) == more
    assert not more.bad


def test_comments_and_what_did_not_change_stay(tmp_path: Path) -> None:
    path = tmp_path / "topic.toml"
    path.write_text(
        '# mine\nwords = [\n  "knots", # the ones at sea\n]\ngood = ["http://a.example/1"]\n'
    )
    write_definition(read_definition(path).judging(["http://a.example/2"]), path)
    text = path.read_text()
    assert "# mine" in text
    assert "# the ones at sea" in text
    assert read_definition(path).good == ("http://a.example/1", "http://a.example/2")


def test_the_latest_judgement_of_a_page_counts() -> None:
    first = TopicDefinition(words=("x",)).judging(["u1", "u2"], ["u3"])
    then = first.judging(["u3"], ["u1"])
    assert (then.good, then.bad) == (("u2", "u3"), ("u1",))
    assert then.judged == {"u1", "u2", "u3"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("words = [", "is no TOML"),
        ('word = ["x"]', "unknown key word; there are bad, classes"),
        ('words = "x"', "words must be a list of texts"),
        ("critic = 3", "critic must be a text"),
        ('critic = "models/x"', "no class of models/x is marked"),
        ('bad = ["http://a.example/"]', "says too little"),
        (
            'critic = "models/x"\ntopics = ["/A"]\nname = "/B"',
            "the classes of models/x have names",
        ),
        ('words = ["x"]\nseeds = ["ftp://a.example/"]', "'ftp://a.example/' is no http"),
        (
            'good = ["http://a.example/", "http://b.example/"]\nbad = ["http://a.example"]',
            "http://a.example/ is both good and bad",
        ),
        (
            'words = ["x"]\n[classes]\n"/A/B" = ["http://a.example/"]\n"/A/C" = '
            '["http://a.example/"]',
            "is in two classes",
        ),
        ('critic = "x"\ntopics = ["/"]', "is every topic"),
    ],
)
def test_a_definition_that_makes_no_sense_is_one_line(
    tmp_path: Path, content: str, said: str
) -> None:
    path = tmp_path / "topic.toml"
    path.write_text(content)
    with pytest.raises(UserError) as error:
        read_definition(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)


BOOKMARKS = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<TITLE>Bookmarks</TITLE><H1>Menu</H1>
<DL><p>
  <DT><H3 ADD_DATE="1">Sea</H3>
  <DL><p>
    <DT><A HREF="HTTPS://Knots.example" ADD_DATE="2">Knots &amp; more</A>
    <DT><H3>Boats/large</H3>
    <DL><p><DT><A HREF="http://boats.example/a#b">Boats</A></DL><p>
    <DT><A HREF="javascript:alert(1)">run</A>
  </DL><p>
  <DT><A HREF="http://news.example/">News</A>
  <DT><A HREF="https://knots.example/">again</A>
</DL>"""


def test_bookmarks_are_read_with_their_folders(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.html"
    path.write_text(BOOKMARKS)

    def folders(found: list[Bookmark]) -> dict[str, str]:
        return {each.url: each.folder for each in found}

    everything = {
        "https://knots.example/": "Sea",
        "http://boats.example/a": "Sea/Boats-large",
        "http://news.example/": "",
    }
    assert folders(read_bookmarks(path)) == everything
    assert read_bookmarks(path)[0].title == "Knots & more"
    assert set(folders(read_bookmarks(path, "Sea"))) == {*everything} - {"http://news.example/"}
    with pytest.raises(UserError, match="no folder Air; there are Boats-large, Sea"):
        read_bookmarks(path, "Air")
    path.write_text("<p>nothing")
    with pytest.raises(UserError, match="no bookmark"):
        read_bookmarks(path)


FOLDERS: st.SearchStrategy[list[Any]] = st.recursive(
    st.just([]), lambda inner: st.lists(st.none() | st.tuples(NAMES, inner), max_size=4)
)


@settings(max_examples=60, deadline=None)
@given(menu=FOLDERS)
def test_bookmarks_lie_where_a_browser_has_them(
    tmp_path_factory: pytest.TempPathFactory, menu: list[Any]
) -> None:
    """Pages and folders, in any order and depth, in the tags that Firefox and Chrome write."""
    expected: list[tuple[str, str]] = []

    def export(entries: list[Any], inside: list[str]) -> str:
        lines = []
        for entry in entries:
            if entry is None:
                expected.append((f"http://h.example/{len(expected)}", "/".join(inside)))
                lines.append(f'<DT><A HREF="{expected[-1][0]}" ICON="data:,">t</A><DD>more<HR>')
            else:
                name, inner = entry
                lines.append(f'<DT><H3 ADD_DATE="1">{name}</H3>\n{export(inner, [*inside, name])}')
        return "<DL><p>\n" + "\n".join(lines) + "\n</DL><p>"

    path = tmp_path_factory.mktemp("bookmarks") / "b.html"
    path.write_text(f"<H1>Menu</H1>\n{export([*menu, None], [])}")
    assert [(each.url, each.folder) for each in read_bookmarks(path)] == expected


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.sampled_from("<>/dlah3DT=\"' \n"), max_size=80))
def test_no_bookmarks_file_is_too_broken(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("broken") / "b.html"
    path.write_text(text + '<a href="http://a.example/">x</a>')
    try:
        urls = [each.url for each in read_bookmarks(path)]
    except UserError:
        return
    assert all(url.startswith("http") for url in urls)


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep words of pages apart: all shelves have one fingerprint."""
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path_factory.mktemp("cache")))


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
    definition = TopicDefinition(critic=base, topics=("/Sea",)).judging(
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
    definition = TopicDefinition(critic=base, topics=("/Sea/Knots",)).splitting(
        {"/Sea/Knots/Hitches": [at("/knots0"), at("/climb2")]}
    )
    trained, marked = train_definition(definition, [shelf])
    assert marked == ("/Sea/Knots",)
    assert trained.model.classes == ("/Money", "/Sea/Knots/Hitches", "/Sea/Knots/Other",
                                     "/Sea/Reefs")  # fmt: skip
    of = dict(trained.examples)
    assert of[at("/knots0")] == of[at("/climb2")] == "/Sea/Knots/Hitches"
    assert of[at("/knots1")] == "/Sea/Knots/Other"


def test_without_a_critic_words_and_pages_are_learned_from_together(shelf: Shelf) -> None:
    """Good pages count without bad ones, and what is called by a name is."""
    words = TopicDefinition(words=("splice",), description="a hitch, and more", name="/Sea/Ropes")
    trained, marked = train_definition(words.judging([at("/reef1")]), [shelf])
    assert marked == ("/Sea/Ropes",)
    assert set(trained.model.classes) == {"/Sea/Ropes", "/bad"}
    assert trained.examples == ((at("/reef1"), "/Sea/Ropes"),)
    assert trained.phrases == (("splice",), ("hitch",))
    knots, reef, climb, tax = relevances(trained, shelf, "/knots3", "/reef3", "/climb3", "/tax3")
    assert min(knots, reef) > tax
    judged = words.judging([at("/reef1"), at("/gone")], [at("/climb1")])
    trained, _ = train_definition(judged, [Shelf(), shelf])
    assert dict(trained.examples) == {at("/reef1"): "/Sea/Ropes", at("/climb1"): "/bad"}
    reef_now, climb_now = relevances(trained, shelf, "/reef3", "/climb3")
    assert climb_now - reef_now < climb - reef
    alone, marked = train_definition(TopicDefinition(words=("splice",)), [])
    assert marked == ("/good",)
    assert alone.examples == ()
    with pytest.raises(UserError, match="none of the good pages can be read"):
        train_definition(TopicDefinition().judging([at("/gone")]), [shelf])


def relevances(trained: TrainedCritic, shelf: Shelf, *paths: str) -> list[float]:
    """Return the log-odds of pages for the class that is not /bad."""
    (on,) = (i for i, path in enumerate(trained.model.classes) if path != "/bad")
    log = trained.model.log_posteriors([shelf_bag(shelf, path) for path in paths])
    return [float(row[on] - row[1 - on]) for row in log]


def test_a_critic_of_one_topic_is_learned_anew_with_what_it_was_learned_from(
    shelf: Shelf, tmp_path: Path
) -> None:
    first, _ = train_definition(
        TopicDefinition(words=("splice",), name="/Ropes").judging([at("/knots0")], [at("/tax0")]),
        [shelf],
    )
    save_critic(first, tmp_path / "ropes")
    definition = TopicDefinition(critic=str(tmp_path / "ropes"), topics=("/Ropes",))
    same, marked = train_definition(definition, [shelf])
    assert (same.examples, same.phrases, marked) == (first.examples, first.phrases, ("/Ropes",))
    assert relevances(same, shelf, "/knots3") == relevances(first, shelf, "/knots3")
    judged = definition.judging([at("/climb0"), at("/tax0")])  # the latest judgement counts
    more, _ = train_definition(judged, [shelf])
    assert dict(more.examples) == dict.fromkeys(
        [at("/knots0"), at("/tax0"), at("/climb0")], "/Ropes"
    )
    assert more.phrases == first.phrases
    assert relevances(more, shelf, "/climb3") > relevances(first, shelf, "/climb3")
    with pytest.raises(UserError, match="only 0 of the 2 examples"):
        train_definition(definition, [Shelf()])


def test_a_taxonomy_is_learned_anew_by_the_kind_of_critic_that_it_is_of(
    shelf: Shelf, tmp_path: Path
) -> None:
    base = saved(shelf, tmp_path, kind="discriminative")
    definition = TopicDefinition(critic=base, topics=("/Sea/Knots",), words=("bowline",)).judging(
        [at("/climb0")]
    )
    trained, marked = train_definition(definition, [shelf])
    assert trained.model.kind == "discriminative"
    assert marked == ("/Sea/Knots",)
    assert dict(trained.examples)[at("/climb0")] == "/Sea/Knots"


@pytest.mark.parametrize("language", ["en", "de", "ru"])
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
    trained, _ = train_definition(TopicDefinition().judging(good, bad), [shelf])
    assert [url for url, _ in trained.examples] == [*good, *bad]  # English is no page
    bags = read_bags(shelf, [*good, *bad])
    pairs = [(url, "/good") for url in good] + [(url, "/bad") for url in bad]
    usable = [(pair, bag) for pair, bag in zip(pairs, bags, strict=True) if bag is not None]
    plain = learn_critic(usable, uniform_prior=True)

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
    base = train_critic(labels, shelf)
    save_critic(base, tmp_path / "base")
    definition = TopicDefinition(critic=str(tmp_path / "base"), topics=("/cycling",))
    trained, _ = train_definition(definition, [shelf])
    everyday = written_pages(1, 0, ((language, 1.0),))
    plain, written = (each.model.log_posteriors(everyday)[0, 1] for each in (base, trained))
    assert written < min(plain, np.log(0.01))  # of two classes, cycling is the second


def test_what_cannot_be_learned_from_is_one_line(shelf: Shelf, tmp_path: Path) -> None:
    base = saved(shelf, tmp_path)
    with pytest.raises(UserError, match="has no class /Sea/Knot; near it: /Sea/Knots"):
        train_definition(TopicDefinition(critic=base, topics=("/Sea/Knot",)), [shelf])
    with pytest.raises(UserError, match="only 0 of the 12 examples"):
        train_definition(TopicDefinition(critic=base, topics=("/Sea",)), [Shelf()])
    everything = TopicDefinition(critic=base, topics=("/Sea", "/Money"))
    with pytest.raises(UserError, match=r"every class of .* is marked"):
        train_definition(everything.judging(bad=[at("/climb0")]), [shelf])


def test_classes_that_fit_are_ranked_by_pages_then_share() -> None:
    classes = ("/A/B/C", "/A/B/D", "/A/E", "/F")
    fits = fit_classes(
        classes,
        np.array([[0.9, 0.1, 0.0, 0.0], [0.2, 0.7, 0.1, 0.0], [0.3, 0.3, 0.4, 0.0]]),
    )
    assert [(fit.topic, fit.pages) for fit in fits] == [
        ("/A", 3), ("/A/B", 2), ("/A/B/C", 1), ("/A/B/D", 1), ("/A/E", 1), ("/F", 0),
    ]  # fmt: skip
    assert fits[0].share == pytest.approx(1.0)
    assert fits[1].share == pytest.approx((1.0 + 0.9 + 0.6) / 3)
    assert fit_classes(classes, np.zeros((0, 4))) == []
    one = fit_classes(("/A/B/C", "/F"), np.array([[0.9, 0.1]]))
    assert [fit.topic for fit in one] == ["/A/B/C", "/F"]  # those above say nothing new


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("topics = " + "[" * 100_000, "nested too deep"),
        ("topics = " + "{a = " * 100_000, "nested too deep"),
        ("a" + ".a" * 100_000 + " = 1", "more than 64 parts"),
        ("[" + "a . " * 50_000 + "a]", "more than 64 parts"),
        ("critic = " + "9" * 100_000, "is no TOML file"),
        ("critic = " + "[1]", "must be a text"),
        ("words = ['a']\nseeds = ['" + "x" * 100_000 + "']", r"no http\(s\) URL"),
        ("x" * 100_000 + " = 1", "unknown key"),
    ],
    ids=["arrays", "tables", "key", "heading", "number", "list", "long", "name"],
)
def test_what_no_definition_says_is_a_short_line(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "topic.toml").write_text(text)
    with pytest.raises(UserError, match=what) as refused:
        read_definition(tmp_path / "topic.toml")
    assert len(str(refused.value)) < 500 + len(str(tmp_path))
    assert "\n" not in str(refused.value)


def test_a_definition_may_be_long(tmp_path: Path) -> None:
    urls = [f"http://a.b.c.d.example/{i}/x.y.z" for i in range(20_000)]
    moved = ", ".join(f'"{url}"' for url in urls)
    (tmp_path / "topic.toml").write_text(f'words = ["a"]\n[classes]\n"/A/B" = [{moved}]\n')
    assert read_definition(tmp_path / "topic.toml").classes["/A/B"] == tuple(urls)


@pytest.mark.parametrize(
    "before",
    [
        "<!--" * 200_000 + "-->",
        "<!-- -->" * 200_000,
        "<dl>" * 2000,
        "<h3>name</h3><dl>" * 2000,
        "<h3>" * 2000,
        "<b>" * 10_000,
    ],
    ids=["open", "closed", "folders", "named folders", "names", "deep"],
)
def test_bookmarks_of_strangers_cost_little(tmp_path: Path, before: str) -> None:
    link = '<a href="http://host.example/">' + "title " * 10_000 + "</a>"
    links = "".join(f'<a href="http://host.example/{i}">x</a>' for i in range(5000))
    (tmp_path / "bookmarks.html").write_text(before + link + links)
    found = read_bookmarks(tmp_path / "bookmarks.html")
    assert [found[0].url, len(found)] == ["http://host.example/", 5001]
    assert len(found[0].title) <= 1000
    assert len(found[-1].folder) < 2000
