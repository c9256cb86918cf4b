"""Definitions of topics: the file, and what makes no sense in it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.taxonomy import Taxonomy
from focuscrawl.topics import TopicDefinition, read_definition, write_definition
from focuscrawl.topics.definition import count_examples, mark_class, unmark_class

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
    definition = TopicDefinition("models/x", "demo", topics, words, seeds).with_judgements(
        good, bad
    )
    definition = replace(definition, description=" ".join(words) or None)
    write_definition(definition, path)
    assert read_definition(path) == definition
    more = definition.with_judgements(bad).with_moved_examples({"/A/x/y": ["https://n.example/"]})
    write_definition(more, path)  # changed, and shorter by a list
    assert read_definition(path) == more
    assert not more.bad


def test_comments_and_what_did_not_change_stay(tmp_path: Path) -> None:
    path = tmp_path / "topic.toml"
    path.write_text(
        '# mine\nwords = [\n  "knots", # the ones at sea\n]\ngood = ["http://a.example/1"]\n'
    )
    write_definition(read_definition(path).with_judgements(["http://a.example/2"]), path)
    text = path.read_text()
    assert "# mine" in text
    assert "# the ones at sea" in text
    assert read_definition(path).good == ("http://a.example/1", "http://a.example/2")


def test_two_programs_that_judge_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "topic.toml"
    write_definition(TopicDefinition(words=("knots",)), path)
    program = (
        "import sys; from pathlib import Path; from focuscrawl.topics import edit_definition\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for i in range(20):\n"
        "    urls = [f'http://{sys.argv[2]}.example/{i}/{j}' for j in range(25)]\n"
        "    edit_definition(Path(sys.argv[1]), lambda known: known.with_judgements(urls))\n"
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", program, path, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    for each in both:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in both:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in both:
        each.communicate()
    assert [each.returncode for each in both] == [0, 0]
    assert len(read_definition(path).good) == 1000
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_the_latest_judgement_of_a_page_counts() -> None:
    first = TopicDefinition(words=("x",)).with_judgements(["u1", "u2"], ["u3"])
    then = first.with_judgements(["u3"], ["u1"])
    assert (then.good, then.bad) == (("u2", "u3"), ("u1",))
    assert then.judged_urls == {"u1", "u2", "u3"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("words = [", "is no TOML"),
        ('word = ["x"]', "unknown key word. Valid keys: bad, classes"),
        ('words = "x"', "words must be a list of strings"),
        ("critic = 3", "critic must be a non-empty string"),
        ("critic = [1]", "must be a non-empty string"),
        ('critic = "models/x"', "topics is empty: name classes of models/x"),
        ('bad = ["http://a.example/"]', "does not define a topic"),
        ('critic = "m"\ntopics = ["/A"]\nname = "/B"', "name and critic exclude each other"),
        ('words = ["x"]\nseeds = ["ftp://a.example/"]', "'ftp://a.example/' is not an http"),
        ('good = ["http://a.b/", "http://c.d/"]\nbad = ["http://a.b"]', "is both good and bad"),
        (
            'words = ["x"]\n[classes]\n"/A/B" = ["http://a.b/"]\n"/A/C" = ["http://a.b/"]',
            "is in two classes",
        ),
        ('critic = "x"\ntopics = ["/"]', "includes all topics"),
        ('words = ["x"]\ntopics = ["/A"]', "topics needs a critic"),
        ('words = ["x"]\n[classes]\n"/A/B" = ["http://a.b/"]', "classes needs a critic"),
        ("topics = " + "[" * 100_000, "nested too deep"),
        ("topics = " + "{a = " * 100_000, "nested too deep"),
        ("a" + ".a" * 100_000 + " = 1", "more than 64 parts"),
        ("[" + "a . " * 50_000 + "a]", "more than 64 parts"),
        ("critic = " + "9" * 100_000, "is no TOML file"),
        ("words = ['a']\nseeds = ['" + "x" * 100_000 + "']", "not an http(s) URL"),
        ("x" * 100_000 + " = 1", "unknown key"),
    ],
    ids=lambda text: text[:20],
)
def test_what_no_definition_says_is_a_short_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "topic.toml"
    path.write_text(content)
    with pytest.raises(UserError) as error:
        read_definition(path)
    message = str(error.value)
    assert said in message
    assert message.startswith(str(path))
    assert len(message) < 500 + len(str(path))
    assert "\n" not in message


def test_a_definition_in_another_encoding_is_one_line_and_a_mark_of_it_none(
    tmp_path: Path,
) -> None:
    path = tmp_path / "topic.toml"
    path.write_bytes('words = ["café"]'.encode("latin-1"))
    with pytest.raises(UserError, match="not UTF-8 text; save it as UTF-8"):
        read_definition(path)
    path.write_bytes(b"\xef\xbb\xbf" + 'words = ["café"]'.encode())
    known = read_definition(path)
    assert known.words == ("café",)
    write_definition(known, path)
    assert read_definition(path) == known


def test_a_definition_may_be_long(tmp_path: Path) -> None:
    urls = [f"http://a.b.c.d.example/{i}/x.y.z" for i in range(20_000)]
    moved = ", ".join(f'"{url}"' for url in urls)
    said = f'critic = "x"\ntopics = ["/A"]\n[classes]\n"/A/B" = [{moved}]\n'
    (tmp_path / "topic.toml").write_text(said)
    assert read_definition(tmp_path / "topic.toml").classes["/A/B"] == tuple(urls)


TREE = Taxonomy(
    {
        "/A/B/C": ["http://a.example/"],
        "/A/B/D": ["http://b.example/", "http://c.example/"],
        "/A/E": [],
        "/F": ["http://d.example/"],
    }
)


def test_a_class_is_marked_with_all_below_it() -> None:
    known = TopicDefinition(critic="x", topics=("/A/B/C", "/F"))
    assert mark_class(known, "/A/B").topics == ("/F", "/A/B")


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        (("/A/B/C", "/A/B/D", "/F"), "/A", ("/F",)),  # those below are unmarked, too
        (("/A", "/F"), "/A/B/C", ("/A/E", "/A/B/D", "/F")),  # the others below it stay marked
    ],
)
def test_a_mark_is_taken_back(before: tuple[str, ...], path: str, after: tuple[str, ...]) -> None:
    assert unmark_class(TopicDefinition(critic="x", topics=before), path, TREE).topics == after


def test_something_stays_marked() -> None:
    with pytest.raises(UserError, match="mark another"):
        unmark_class(TopicDefinition(critic="x", topics=("/A",)), "/A", TREE)


def test_examples_count_for_the_classes_above() -> None:
    counts = count_examples(TREE)
    assert [counts[path] for path in ("/", "/A", "/A/B", "/A/E", "/F")] == [4, 3, 3, 0, 1]
