"""What is told of a critic from its own examples, and why it judges a page as it does."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from focuscrawl.critic.assessment import Quality
from focuscrawl.critic.classifiers import LogisticModel, NaiveBayes
from focuscrawl.critic.focused_critic import FocusedCritic, explain_words
from focuscrawl.critic.phrase_model import build_phrase_model
from focuscrawl.critic.training import train_critic, train_few_shot
from focuscrawl.errors import UserError
from focuscrawl.taxonomy import Label

from .shelves import Shelf, at

if TYPE_CHECKING:
    from focuscrawl.critic.focused_critic import TrainedCritic


pytestmark = pytest.mark.usefixtures("own_cache")  # all shelves have one fingerprint


@pytest.fixture
def shelf() -> Shelf:
    shelf = Shelf()
    for i in range(80):
        if i < 21:
            shelf.page(f"/knots{i}", f"knots rope splice hitch number{i} sea")
        shelf.page(f"/tax{i}", f"tax form revenue audit number{i} office")
    return shelf


def little(shelf: Shelf, good: int, bad: int) -> TrainedCritic:
    on = [at(f"/knots{i}") for i in range(good)]
    off = [at(f"/tax{i}") for i in range(bad)]
    return train_few_shot([["knots"]], on, off, [shelf])


def trained(shelf: Shelf, kind: str, each: int = 12) -> TrainedCritic:
    """A critic of two classes; one page of each is labelled as the other."""
    topics = [("/Knots", "knots"), ("/Money/Tax", "tax")]
    labels = [
        Label(at(f"/{name}{i}"), path, "train") for path, name in topics for i in range(each)
    ]
    labels += [
        Label(at("/tax20"), "/Knots", "train"),
        Label(at("/knots20"), "/Money/Tax", "train"),
    ]
    return train_critic(labels, shelf, kind=kind)


def test_a_critic_from_little_is_measured_without_any_web(shelf: Shelf) -> None:
    found = Quality.measure(little(shelf, 12, 6), ["/good"])
    assert (found.on, found.off) == (12, 6)
    assert found.others > 0
    assert found.precision is not None
    assert found.recall is not None
    assert found.precision.value == 1.0
    assert found.recall.value > 0.7
    assert found.precision.low < 1.0  # so few pages prove little
    assert sum(each["pages"] for each in found.bins) == 18
    assert "rope" in found.words_for
    assert any("all good examples are from a.example" in each for each in found.warnings)
    assert json.loads(found.json())["recall"][0] == found.recall.value


def test_without_bad_pages_nothing_is_said_of_precision(shelf: Shelf) -> None:
    found = Quality.measure(little(shelf, 12, 0), ["/good"])
    assert found.precision is None
    assert found.recall is not None
    assert not found.bins


def test_a_few_examples_are_too_few_to_measure_or_to_be_called_mislabelled(shelf: Shelf) -> None:
    shelf.page("/odd", "tax form revenue audit odd office")  # a good page unlike the others
    on = [at("/odd"), at("/knots0"), at("/knots1")]
    critic = train_few_shot([["knots"]], on, [], [shelf])
    found = Quality.measure(critic, ["/good"])
    assert found.why_not == "3 examples on the topic are too few to measure; give 10 or more"
    assert (found.on, found.off) == (3, 0)
    assert found.precision is found.recall is None
    assert not found.doubtful
    assert not found.bins
    assert "knots" in found.words_for  # what the critic goes by is known all the same
    few = Quality.measure(trained(shelf, "flat", 7), ["/Knots"], [shelf])
    assert (few.on, bool(few.why_not), few.doubtful) == (8, True, ())


def test_two_critics_are_compared_on_what_the_first_has_not_learned(shelf: Shelf) -> None:
    before = little(shelf, 3, 0)
    change = Quality.measure(little(shelf, 5, 6), ["/good"], previous=before).change
    assert change is not None
    assert change.pages == 2 + 6
    assert change.right == 8
    assert change.precision == 1.0
    again = Quality.measure(before, ["/good"], previous=before)
    assert again.change is None  # nothing is new


def test_similar_examples_and_changed_verdicts_are_listed(shelf: Shelf) -> None:
    shelf.page("/copy", "knots rope splice hitch number1 sea extra")
    shelf.page("/copy2", "knots rope splice hitch number1 sea")
    on = [at(f"/knots{i}") for i in range(4)]
    before = train_few_shot([["knots"]], on, [at(f"/tax{i}") for i in range(4)], [shelf])
    wrong = train_few_shot(
        [["tax"]], [at(f"/tax{i}") for i in range(4)], [*on, at("/copy"), at("/copy2")], [shelf]
    )
    found = Quality.measure(wrong, ["/good"], previous=before)
    urls = {at("/knots1"), at("/copy"), at("/copy2")}
    assert {each["a"] for each in found.alike} | {each["b"] for each in found.alike} >= urls
    assert found.alike[0]["similarity"] == pytest.approx(1.0)
    changed = {each["url"]: each["before"] > each["now"] for each in found.moved}
    assert changed[at("/knots0")]
    assert changed[at("/copy")]


@pytest.mark.parametrize("kind", ["discriminative", "flat"])
def test_what_is_mislabelled_is_named_and_confused(shelf: Shelf, kind: str) -> None:
    found = Quality.measure(trained(shelf, kind), ["/Money"], [shelf])
    assert {each["url"] for each in found.doubtful} == {at("/tax20"), at("/knots20")}
    assert set(found.confusions) == {("/Knots", "/Money/Tax", 1), ("/Money/Tax", "/Knots", 1)}
    assert found.precision is not None
    assert found.precision.value == pytest.approx(12 / 13)


def test_examples_that_cannot_be_read_are_asked_for(shelf: Shelf) -> None:
    with pytest.raises(UserError, match="--web"):
        Quality.measure(trained(shelf, "flat"), ["/Money"], [Shelf()])


@pytest.mark.parametrize("kind", ["discriminative", "flat"])
def test_the_words_of_a_page_add_up_to_its_odds(shelf: Shelf, kind: str) -> None:
    model = trained(shelf, kind).model
    bag = Counter(["rope", "splice", "splice", "tax", "number3"])
    marked = np.array([path == "/Knots" for path in model.classes])
    found = explain_words(FocusedCritic(model, marked, (), ""), bag)
    assert found.on[0].word in {"rope", "splice"}
    assert "tax" in {each.word for each in found.off}
    assert all(each.weight > 0 for each in found.on)
    assert all(each.weight < 0 for each in found.off)
    everything = FocusedCritic(model, np.ones(2, np.bool_), (), "")
    none = explain_words(everything, bag)
    assert (none.on, none.off) == ([], [])
    log = model.log_posteriors([bag, {}])[0]
    odds = float(log[0] - log[1])  # of /Knots, the first
    weights = sum(each.weight for each in (*found.on, *found.off)) + found.meaning
    if isinstance(model, LogisticModel):
        assert weights == pytest.approx(odds + float(model.linear.intercept[0]), abs=1e-6)
    else:
        assert isinstance(model, NaiveBayes)
        without = model.log_posteriors([{}])[0]
        assert found.empty == pytest.approx(np.exp(float(without[0])))
        assert weights == pytest.approx(odds - float(without[0] - without[1]), abs=1e-6)


def test_function_words_are_no_reasons() -> None:
    critic = FocusedCritic(build_phrase_model("knots"), np.array([False, True]), (), "")
    found = explain_words(critic, {"the": 9, "sailor": 9, "knots": 2})
    assert [each.word for each in [*found.on, *found.off]] == ["knots", "sailor"]
