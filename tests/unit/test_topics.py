"""Definitions of topics: the file, and what makes no sense in it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.topics import TopicDefinition, read_definition, write_definition

if TYPE_CHECKING:
    from pathlib import Path

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


def test_two_programs_that_judge_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "topic.toml"
    write_definition(TopicDefinition(words=("knots",)), path)
    program = (
        "import sys; from pathlib import Path; from focuscrawl.topics import edit_definition\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for i in range(20):\n"
        "    urls = [f'http://{sys.argv[2]}.example/{i}/{j}' for j in range(25)]\n"
        "    edit_definition(Path(sys.argv[1]), lambda known: known.judging(urls))\n"
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
        ('words = ["x"]\ntopics = ["/A"]', "topics are those of a critic"),
        ('words = ["x"]\n[classes]\n"/A/B" = ["http://a.example/"]', "those of a critic"),
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
    said = f'critic = "x"\ntopics = ["/A"]\n[classes]\n"/A/B" = [{moved}]\n'
    (tmp_path / "topic.toml").write_text(said)
    assert read_definition(tmp_path / "topic.toml").classes["/A/B"] == tuple(urls)
