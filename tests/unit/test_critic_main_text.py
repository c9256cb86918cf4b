"""A critic from little goes by the main text, and not by what a site has on all of its pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from focuscrawl.critic.critic_files import load_critic, save_critic
from focuscrawl.critic.focused_critic import FocusedCritic, TrainedCritic, count_main_words
from focuscrawl.critic.phrase_model import build_phrase_model
from focuscrawl.critic.training import train_few_shot
from focuscrawl.page import parse_page
from focuscrawl.testing.tiny_web import TinyWeb

from .topic_pages import COMMON, SUBJECTS

if TYPE_CHECKING:
    from focuscrawl.page.view import PageView

MONTHS = ["January", "February", "March", "April", "May", "June"]


def article(subject: str, seed: int) -> str:
    generator = np.random.default_rng([seed, len(subject)])
    own, other = SUBJECTS[subject].split(), COMMON.split()
    sentences = (
        " ".join(generator.choice(own if generator.random() < 0.4 else other) for _ in range(12))
        for _ in range(8)
    )
    return "".join(f"<p>{each}." for each in sentences)


def club(body: str, title: str) -> str:
    """Return a page of a site whose name is a word of the topic, as is half of its menu."""
    menu = "".join(f"<li><a href=/{i}>{i}</a>" for i in ("Cycling", "Race", "Rider", "Contact"))
    foot = "<footer>Copyright 2026 Cycling Club, all rights reserved</footer>"
    head = f"<title>{title} | Cycling Club</title><h1><a href=/>Cycling Club</a></h1>"
    return f"{head}<ul>{menu}</ul>{body}{foot}"


def calendar(month: str, days: int) -> str:
    grid = "".join(f"<td>{day}" for day in range(1, days + 1))
    table = f"<table><tr><td>Mon<td>Tue<td>Wed<td>Thu<td>Fri<td>Sat<td>Sun<tr>{grid}</table>"
    return club(f"<h2>{month} 2026</h2>{table}<p>There were no results found.", month)


WEB = TinyWeb(
    {
        f"http://{subject}-{i % 7}.example/{i}": article(subject, i)
        for subject in ("cycling", "law", "cooking", "music", "money")
        for i in range(5 if subject == "cycling" else 25)
    }
)


@pytest.fixture
def critic(embeddings: bool, own_cache: None, tmp_path: Path) -> FocusedCritic:
    good = [f"http://cycling-{i}.example/{i}" for i in range(3)]
    save_critic(train_few_shot([["cycling"]], good, [], [WEB]), tmp_path / "critic")
    loaded = load_critic(str(tmp_path / "critic"), "/good")
    assert isinstance(loaded, FocusedCritic)
    return loaded


def view(html: str, url: str = "http://cyclingclub.example/2026/") -> PageView:
    return parse_page(html.encode(), url)


@pytest.mark.parametrize("embeddings", [False, True], indirect=True)
def test_empty_calendars_of_a_site_named_after_the_topic_are_not_relevant(
    critic: FocusedCritic,
) -> None:
    pages = [view(calendar(month, 28 + i)) for i, month in enumerate(MONTHS)]
    assert (critic.judge_bags([page.words.bag for page in pages]).relevance > 0.5).all()
    judged = critic.judge(pages)
    assert (judged.relevance < 0.2).all()
    assert judged.probabilities is not None
    assert np.allclose(judged.probabilities[:, critic.classes.index("/good")], judged.relevance)
    alone = critic.judge(pages[:1])  # a page is the same among others
    assert alone.relevance[0] == judged.relevance[0]


def test_pages_of_that_site_with_something_to_say_are_judged_as_ever(
    critic: FocusedCritic,
) -> None:
    page = view(club(article("cycling", 99), "Report"))
    found = critic.judge([page]).relevance
    assert found[0] > 0.5
    assert found[0] == critic.judge_bags([page.words.bag]).relevance[0]


@pytest.mark.parametrize("embeddings", [False], indirect=True)
def test_a_menu_does_not_make_a_page_relevant(critic: FocusedCritic) -> None:
    page = view(club(article("cooking", 99), "Report"))
    assert critic.judge_bags([page.words.bag]).relevance[0] > 0.5
    assert critic.judge([page]).relevance[0] < 0.5


def test_a_page_of_a_title_alone_is_not_relevant(critic: FocusedCritic, tmp_path: Path) -> None:
    slide = view("<title>Cycling race</title><h1>Cycling</h1><a href=2>Next</a>")
    assert critic.judge([slide]).relevance[0] < 0.2
    save_critic(TrainedCritic(model=build_phrase_model("cycling")), tmp_path / "words")
    words = load_critic(str(tmp_path / "words"), "/good")
    page = view(f"<p>{'cycling is good for you ' * 5}")  # the host is named so, too
    assert words.judge([slide, page]).relevance.round().tolist() == [0.0, 1.0]


def test_main_text_is_sentences_with_their_links_in_any_script() -> None:
    text = "That day we all rode <a href=/x>the Stelvio</a> and came home in the <b>dark</b>."
    found = count_main_words(view(club(f"<p>{text}", "May")))
    assert {"rode", "stelvio", "came", "dark"} <= found.keys()
    assert not {"may", "rider", "race", "2026", "cycling", "club"} & found.keys()
    assert found["the"] == 2
    assert count_main_words(view(club("", "May"))) == {}
    assert count_main_words(view("")) == {}
    chinese = count_main_words(view("<p>昨天我们骑自行车翻过了斯泰尔维奥山口然后在黑暗中回家"))
    assert sum(chinese.values()) == 1
    thai = count_main_words(view("<p>การปั่นจักรยานเป็นกิจกรรมที่ดีต่อสุขภาพและช่วยลดมลพิษในเมืองใหญ่"))
    assert sum(thai.values()) == 2
