"""The critic from words alone, on small texts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.critic.phrase_model import ON_TOPIC, PhraseModel, build_phrase_model, word_forms
from focuscrawl.errors import UserError
from focuscrawl.page.words import tokenize

RACE = """The spring classics are the heart of road cycling. Riders cover two hundred kilometres
over cobbles and short climbs, and the winner is often the one who can still sprint after six
hours on the bicycle. Racing teams send their strongest cyclists, and the road is lined with
fans. In bicycle racing the bunch shelters behind each other, so tactics matter as much as legs.
"""
ROADWORKS = """The county will close two roads for resurfacing in June. Drivers on the main road
should expect delays, and the road bridge over the river will carry one lane of traffic. Road
works begin at seven in the morning. The road surface was last renewed twenty years ago.
"""
HORSES = """Horse racing at the old course drew ten thousand people. The favourite won the second
race by a length, and racing went on until dusk. Racing officials said the ground was firm, and
that every horse was walked before its start. The horses leave for the hills tomorrow.
"""
KITCHEN = """Melt the butter in a heavy pan, add the onions and cook them slowly until they are
soft. Stir in the rice and let it take the fat before you pour in the stock.
"""
LETTER = """My brother moved to the coast last year. He found a small flat above a bakery, and he
takes his bicycle to the office when the weather allows. On Sundays we talk about the garden, the
neighbours, and the books we have read. He says the sea is loud at night, that he sleeps well,
and that the bread downstairs is the best he has had. I will visit in spring, when the trains
run more often and the days are longer, and bring him the lamp that he left behind.
"""


def bag(text: str) -> Counter[str]:
    return Counter(tokenize([text])[0])


def relevance(words: str, text: str) -> float:
    model = build_phrase_model(words)
    return float(np.exp(model.log_posteriors([bag(text)]))[0, model.classes.index(ON_TOPIC)])


def test_on_the_topic() -> None:
    assert relevance("road cycling, bicycle racing", RACE) > 0.95
    assert relevance("road cycling, bicycle racing", "Road cycling club: cycling on Sundays") > 0.9


@pytest.mark.parametrize("text", [ROADWORKS, HORSES, KITCHEN, LETTER, "", "Contact us"])
def test_off_the_topic(text: str) -> None:
    assert relevance("road cycling, bicycle racing", text) < 0.06


def test_one_mention_in_passing_is_no_topic() -> None:
    assert relevance("bicycle", LETTER) < 0.1
    assert relevance("bicycle", RACE) > 0.9


def test_a_phrase_needs_all_its_words_and_either_phrase_will_do() -> None:
    assert relevance("horse racing", ROADWORKS + HORSES) > 0.9
    assert relevance("horse cycling", ROADWORKS + HORSES) < 0.1
    assert relevance("horse cycling, horse racing", ROADWORKS + HORSES) > 0.9


def test_plural_and_singular_are_one_word() -> None:
    assert relevance("roads works", ROADWORKS) == relevance("road work", ROADWORKS)
    assert word_forms("glass") == ("glass",)
    assert word_forms("bird") == ("bird", "birds")


def test_a_page_said_twice_is_as_sure_as_once() -> None:
    long = KITCHEN * 20 + RACE * 2
    once, twice = relevance("bicycle racing", long), relevance("bicycle racing", long + long)
    assert 0.0 < once < 1.0
    assert twice == pytest.approx(once, rel=0.2, abs=0.02)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(["road", "cycling", "the", "x"]), st.integers(1, 10**6)))
def test_always_a_distribution(page: dict[str, int]) -> None:
    model = PhraseModel(
        [["road", "cycling"]], {form: 1e-5 for w in ("road", "cycling") for form in word_forms(w)}
    )
    found = model.log_posteriors([page])
    assert found.shape == (1, 2)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0)


@pytest.mark.parametrize("words", ["", " , ", "!?"])
def test_no_words(words: str) -> None:
    with pytest.raises(UserError, match="no words"):
        build_phrase_model(words)


def test_no_pages() -> None:
    assert build_phrase_model("road").log_posteriors([]).shape == (0, 2)
