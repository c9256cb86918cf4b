"""Training and checking on small webs, and on the recorded ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from focuscrawl.critic import load_critic
from focuscrawl.critic.assessment import check_classes, check_relevance
from focuscrawl.critic.classifiers import NaiveBayes
from focuscrawl.critic.critic_files import save_critic
from focuscrawl.critic.training import train_critic
from focuscrawl.errors import UserError
from focuscrawl.taxonomy import Label, read_labels
from focuscrawl.testing.tiny_web import TinyWeb
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.webs import Answer

pytestmark = pytest.mark.usefixtures("own_cache")

WORDS = {
    "/Science/Birds": "bird wing nest feather egg song flight beak",
    "/Science/Fish": "fish fin reef gill shoal tide scale hook",
    "/Computers": "kernel code compiler thread cache loop stack heap",
}


class CountedWeb(TinyWeb):
    """Counts what is fetched."""

    fetched = 0

    def fetch(self, url: str) -> Answer | None:
        self.fetched += 1
        return super().fetch(url)


def url_of(topic: str, number: int) -> str:
    return f"http://example.com{topic.lower()}/{number}"


def labelled(pages: int = 12) -> tuple[CountedWeb, list[Label]]:
    """A web where a page repeats a few words of its topic, and its label table."""
    web = CountedWeb()
    labels = []
    for topic, text in WORDS.items():
        words = text.split()
        for i in range(pages):
            page = " ".join([words[i % 8], words[(i * 3 + 1) % 8], words[(i * 5 + 2) % 8]] * 3)
            web.put(url_of(topic, i), f"<p>the {page}")
            labels.append(Label(url_of(topic, i), topic, "test" if i % 4 == 3 else "train"))
    return web, labels


@pytest.mark.parametrize("kind", ["flat", "hierarchical"])
def test_learns_from_all_but_test_rows(kind: str) -> None:
    web, labels = labelled()
    critic = train_critic(labels, web, kind=kind)
    assert critic.model.classes == tuple(sorted(WORDS))
    learned = {url for url, _ in critic.examples}
    assert learned == {label.url for label in labels if label.split == "train"}
    assert critic.cross_validation["folds"] == 5
    report = check_classes(critic, labels, web)
    assert report.accuracy == 1.0
    assert len(report.predictions) == 9
    assert report.confusions == ()
    assert set(report.reliability) == {"raw", "calibrated"}


def test_the_papers_naive_bayes_keeps_rare_and_common_words() -> None:
    web, labels = labelled(48)
    web.put(url_of("/Tea", 0), "<p>the unique")
    labels[0] = Label(url_of("/Tea", 0), labels[0].topic, "train")
    pruned = train_critic(labels, web, kind="flat").model
    whole = train_critic(labels, web, kind="flat", all_words=True).model
    assert isinstance(pruned, NaiveBayes)
    assert isinstance(whole, NaiveBayes)
    assert {"the", "unique"} <= {*whole.counts.words} - {*pruned.counts.words}
    assert {*pruned.counts.words} < {*whole.counts.words}


def test_pages_are_parsed_once() -> None:
    web, labels = labelled()
    first = train_critic(labels, web)
    fetched = web.fetched
    second = train_critic(labels, web)
    assert web.fetched == fetched
    assert second.training_set == first.training_set
    changed, _ = labelled(13)
    assert train_critic(labels, changed).training_set == first.training_set
    assert changed.fetched == fetched


def test_twice_the_same_bytes_in_any_order_of_rows(tmp_path: Path) -> None:
    web, labels = labelled()
    for name, rows in (("a", labels), ("b", labels[::-1])):
        save_critic(train_critic(rows, web, max_examples=5), tmp_path / name)
    for name in ("manifest.json", "model.npz", "examples.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_examples_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    web, labels = labelled()
    web.put("http://example.com/paper", "bird", content_type="application/pdf")
    web.put("http://example.com/blank", "")
    more = [
        Label("http://example.com/gone", "/Science/Birds", "train"),
        Label("mailto:somebody", "/Science/Birds", "train"),
        Label("http://example.com/paper", "/Science/Moss", "train"),
        Label("http://example.com/blank", "/Science/Fish", "train"),
    ]
    critic = train_critic(labels + more, web)
    assert critic.skipped == {"not in the web": 2, "not HTML": 1, "without words": 1}
    assert critic.untrained_topics == ("/Science/Moss",)
    save_critic(critic, tmp_path / "a")
    with pytest.raises(UserError, match="no example"):
        load_critic(str(tmp_path / "a"), "/Science/Moss")


def test_small_topics_are_merged_only_when_asked() -> None:
    web, labels = labelled()
    rare = Label(url_of("/Computers", 0), "/Science/Fish/Eels", "train")
    assert "/Science/Fish/Eels" in train_critic([*labels, rare], web).model.classes
    merged = train_critic([*labels, rare], web, min_examples=3)
    assert merged.model.classes == tuple(sorted(WORDS))


def test_one_example_a_topic_is_enough() -> None:
    web, labels = labelled()
    first = {label.topic: label for label in reversed(labels) if label.split == "train"}
    critic = train_critic(list(first.values()), web)
    assert len(critic.examples) == 3
    assert critic.calibration is not None


@pytest.mark.parametrize(
    ("keep", "options", "message"),
    [
        (lambda label: label.split == "test", {}, "test rows only"),
        (lambda label: label.topic == "/Computers", {}, "have 1 topics"),
        (lambda label: True, {"kind": "forest"}, "unknown kind of critic 'forest'"),
    ],
)
def test_what_cannot_be_trained(keep: object, options: dict[str, str], message: str) -> None:
    web, labels = labelled()
    with pytest.raises(UserError, match=message):
        train_critic(list(filter(keep, labels)), web, **options)  # type: ignore[call-overload, arg-type]


def test_examples_of_another_web() -> None:
    web, _ = labelled()
    labels = [Label("http://elsewhere.example/", "/A", "train")]
    with pytest.raises(UserError, match="none of the 1 examples is in the web tiny"):
        train_critic(labels, web)


def test_pages_that_all_say_the_same() -> None:
    web = TinyWeb({f"http://e.com/{i}": "hello" for i in range(2)})
    labels = [Label(f"http://e.com/{i}", f"/{i}", "train") for i in range(2)]
    with pytest.raises(UserError, match="do not distinguish"):
        train_critic(labels, web)


def test_check_counts_what_it_leaves_out() -> None:
    web, labels = labelled()
    critic = train_critic(labels, web)
    web.put("http://example.com/paper", "bird", content_type="application/pdf")
    rows = [
        *labels,
        Label("http://example.com/gone", "/Computers", "test"),
        Label("http://example.com/paper", "/Computers", "test"),
        Label(url_of("/Computers", 3), "/Arts", "test"),
        Label(url_of("/Computers", 0), "/Computers", "test"),
        Label(url_of("/Computers", 7), "/Science/Birds", "test"),
    ]
    report = check_classes(critic, rows, web)
    assert report.skipped == {
        "not in the web": 1,
        "not HTML": 1,
        "of a topic the critic has no class for": 1,
        "training examples": 1,
    }
    assert report.confusions == (("/Science/Birds", "/Computers", 1),)
    birds = next(result for result in report.classes if result.topic == "/Science/Birds")
    assert (birds.pages, birds.precision, birds.recall) == (4, 1.0, 0.75)
    with pytest.raises(UserError, match="no labelled page"):
        check_classes(critic, [row for row in labels if row.split == "train"], web)


def test_check_of_relevance(tmp_path: Path) -> None:
    web, labels = labelled()
    save_critic(train_critic(labels, web), tmp_path / "a")
    critic = load_critic(str(tmp_path / "a"), "/Science")
    report = check_relevance(critic, ["/Science"], labels, web)
    assert report.accuracy == 1.0
    assert [result.pages for result in report.classes] == [3, 6]
    mistaken = check_relevance(critic, ["/Computers"], labels, web)
    assert mistaken.accuracy == 0.0
    with pytest.raises(
        UserError, match="none of the 9 labelled pages has a topic in /Sciense; the topics"
    ):
        check_relevance(critic, ["/Sciense"], labels, web)


def test_a_class_of_few_pages_is_not_held_for_rare_with_a_uniform_prior() -> None:
    web, labels = labelled(24)
    few = [label for i, label in enumerate(labels) if label.topic != "/Computers" or i % 6 == 0]
    said = []
    for uniform_prior in (False, True):
        model = train_critic(few, web, uniform_prior=uniform_prior).model
        mixed = {"bird": 1, "kernel": 1, "fish": 1}
        said.append(model.log_posteriors([mixed])[0, model.classes.index("/Computers")])
    assert said[0] < said[1] - 0.5


@pytest.mark.long
@pytest.mark.webs
@pytest.mark.parametrize(
    ("kind", "least"), [("discriminative", 0.88), ("hierarchical", 0.85), ("flat", 0.85)]
)
def test_accuracy_on_a_recorded_web(
    uci_warc: Path, webs_dir: Path, kind: str, least: float
) -> None:
    labels = read_labels(webs_dir / "uci" / "labels.csv")
    train = [label for label in labels if label.split == "train"]
    test = [label for label in labels if label.split == "test"][::20]
    web = open_web(str(uci_warc))
    report = check_classes(train_critic(train, web, kind=kind), test, web)
    assert report.accuracy >= least
    assert report.reliability["calibrated"].ece <= report.reliability["raw"].ece
