"""Critics of pages in Chinese, Japanese, Arabic and German, whose charset the pages name."""

# ruff: noqa: RUF001 - letters of other scripts

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from longer import long

from focuscrawl.critic.critic_files import read_critic, save_critic
from focuscrawl.critic.few_shot import fit_few_shot, fit_phrases
from focuscrawl.critic.focused_critic import TrainedCritic
from focuscrawl.critic.languages import (
    ENGLISH,
    detect_languages,
    detect_page_language,
    estimate_word_count,
    generate_pages,
    normalise_word,
    to_terms,
    word_ngrams,
)
from focuscrawl.critic.phrase_model import build_phrase_model, parse_description, parse_phrases
from focuscrawl.critic.training import train_few_shot, train_on_bags
from focuscrawl.errors import UserError
from focuscrawl.page import parse_page
from focuscrawl.page.words import tokenize

from .language_pages import LANGUAGES, TOPICS, LanguagePages
from .shelves import Shelf, at
from .topic_pages import pages_of

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.focused_critic import TopicModel

EACH = pytest.mark.parametrize("language", LANGUAGES)
FIRST = pytest.mark.parametrize("language", [LANGUAGES[0], *long(*LANGUAGES[1:])])


def bags_of(pages: LanguagePages) -> tuple[list[Bag], np.ndarray]:
    bags: list[Bag] = [
        Counter(parse_page(pages.markup(page), page.url).tokens) for page in pages.pages
    ]
    return bags, np.array([page.topic for page in pages.pages])


@lru_cache(maxsize=len(LANGUAGES))
def halves(language: str) -> tuple[list[Bag], np.ndarray, list[Bag], np.ndarray]:
    """Pages to learn from and pages to judge, which share words, but no sentence."""
    learned = LanguagePages(language, half=0, each=16, others=100)
    judged = LanguagePages(language, half=1, each=16, others=60, random_state=1)
    return *bags_of(learned), *bags_of(judged)


def phrase(language: str, topic: str) -> list[list[str]]:
    return parse_phrases(LanguagePages(language, each=0, others=0).phrase(topic))


def precision(model: TopicModel, topic: str, pages: list[Bag], on: np.ndarray) -> float:
    """Average precision of the order that the critic brings pages into."""
    order = np.argsort(-model.log_posteriors(pages)[:, model.classes.index(topic)], kind="stable")
    hits = on[order]
    return float((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean())


@EACH
def test_the_language_of_pages_is_told(language: str) -> None:
    bags, _, _, _ = halves(language)
    assert detect_languages(bags) == ((language, 1.0),)
    assert detect_languages(bags[:3], bags[3:6]) == ((language, 1.0),)
    for topic in ("cycling", "astronomy"):
        found = detect_languages((), (), phrase(language, topic))
        assert language in dict(found) or (language, topic) == ("de", "astronomy"), topic


def test_the_language_of_pages_in_several() -> None:
    said = ["the", "road", "is", "long", "and", "this", "was", "a", "cat"]
    english: list[Bag] = [dict.fromkeys(said, 9)] * 6
    chinese, german = halves("zh")[0][:3], halves("de")[0][:3]
    assert detect_languages(english) == detect_languages([], []) == ENGLISH
    assert dict(detect_languages([*english, *chinese, *german])) == {
        "en": 0.5,
        "zh": 0.25,
        "de": 0.25,
    }
    assert dict(detect_languages(english, chinese)) == {"en": 0.5, "zh": 0.5}
    assert dict(detect_languages([*english] * 5, (), [["自行车"]])) == {"en": 0.5, "zh": 0.5}
    assert detect_languages([*english] * 5, (), [["fahrrad"]]) == ENGLISH  # a name, perhaps
    assert detect_languages([*english] * 5 + german) == ENGLISH  # one page in ten
    assert detect_languages((), (), [["metaphysics"], ["naive", "bayes"]]) == ENGLISH
    names: Bag = {"xanthe": 3, "qadir": 2, "zhukov": 4}
    assert (
        detect_page_language(names)
        is detect_page_language({"1": 3})
        is detect_page_language({})
        is None
    )
    assert detect_page_language({"한국어와": 2, "영어를": 1}) == "ko"


def test_words_are_read_by_their_pieces() -> None:
    assert word_ngrams("公路自行车") == ("公路", "路自", "自行", "行车")
    assert word_ngrams("车") == ("车",)
    assert word_ngrams("gps导航") == ("gps", "导航")
    assert set(word_ngrams("fahrrad")) & set(word_ngrams("fahrräder")) >= {
        "-_fah",
        "-fahr",
        "-ahrr",
    }
    assert word_ngrams("bei") == ("bei",)
    assert normalise_word("Straße") == "strasse"
    assert normalise_word("ＧＰＳ") == "gps"
    assert normalise_word("ﾊﾟﾝ") == "パン"
    assert normalise_word("أيضًا") == normalise_word("ايضا")
    assert estimate_word_count("自行车") == pytest.approx(3 / 1.6)
    assert estimate_word_count("fahrrad") == 1.0
    assert estimate_word_count("จักรยาน") == pytest.approx(7 / 4)
    bags: list[Bag] = [{"公路": 2, "路自": 1}]
    assert to_terms(bags, ENGLISH) is bags
    assert to_terms([{"公路自": 2, "公路": 1}], (("zh", 1.0),)) == [{"公路": 3, "路自": 2}]


@FIRST
def test_a_phrase_and_three_pages_find_sentences_never_seen(language: str) -> None:
    bags, topics, pages, truth = halves(language)
    for topic in ("cycling", "banking"):
        on = np.flatnonzero(topics == topic)
        good, rest = [bags[i] for i in on[:3]], [b for i, b in enumerate(bags) if i not in on[:3]]
        found = phrase(language, topic)
        model = fit_few_shot(found, good, (), rest, embeddings=True)
        assert precision(model, "/good", pages, truth == topic) > 0.75, topic
        assert model.vectors.dimensions == 0  # embeddings know English
        alone = fit_phrases(found, embeddings=True)
        assert precision(alone, "/good", pages, truth == topic) > 0.5, topic


@FIRST
@pytest.mark.parametrize("kind", ["flat", "discriminative"])
def test_labels_teach_what_holds_for_sentences_never_seen(language: str, kind: str) -> None:
    bags, topics, pages, truth = halves(language)
    usable = [((str(i), f"/{t}"), b) for i, (b, t) in enumerate(zip(bags, topics, strict=True))]
    model = train_on_bags(usable, kind=kind).model
    found = [precision(model, f"/{topic}", pages, truth == topic) for topic in TOPICS]
    assert np.mean(found) > 0.8


@FIRST
def test_a_phrase_alone_is_precise(language: str) -> None:
    _, _, pages, truth = halves(language)
    model = build_phrase_model(LanguagePages(language, each=0, others=0).phrase("cycling"))
    assert language in dict(model.languages)
    yes = model.log_posteriors(pages)[:, 1] > np.log(0.5)
    on = truth == "cycling"
    assert (yes & on).sum() >= 0.7 * yes.sum()
    assert (yes & on).sum() >= 0.3 * on.sum()


@EACH
def test_old_charsets_and_utf8_are_the_same_words(language: str) -> None:
    pages = LanguagePages(language, each=1, others=1)
    for page in pages.pages:
        old = pages.markup(page)
        new = old.decode(pages.charset).replace(pages.charset, "utf-8").encode()
        assert old != new
        assert parse_page(old, page.url).tokens == parse_page(new, page.url).tokens


@pytest.mark.parametrize(
    ("language", "words"),
    [("de", "und"), ("zh", "自行车，我们"), *long(("zh", "的"), ("ja", "こと"), ("ar", "في"))],
)
def test_everyday_words_of_the_language_are_refused(language: str, words: str) -> None:
    with pytest.raises(UserError, match="is on nearly every page; choose words that few"):
        build_phrase_model(words)
    with pytest.raises(UserError, match="is on nearly every page"):
        train_few_shot(parse_phrases(words), [], [], [])


def test_everyday_words_of_the_pages_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path))
    shelf = Shelf()
    for i, bag in enumerate(halves("de")[0][:30]):
        shelf.page(f"/{i}", " ".join(Counter(bag).elements()))
    war = parse_phrases("war")
    assert train_few_shot(war, [], [], []).phrases == (("war",),)
    with pytest.raises(UserError, match="'war' is on nearly every page"):
        train_few_shot(war, [at("/1")], [], [shelf])


def test_a_description_is_read_in_its_language() -> None:
    said = parse_description(
        "Das ist alles über das Fahrrad, und wie man es mit Werkzeug repariert."
    )
    assert {"fahrrad", "werkzeug", "repariert"} <= set(said)
    assert not {"das", "ist", "und", "mit"} & set(said)


def test_commas_of_other_scripts_part_phrases() -> None:
    assert parse_phrases("自行车，骑行、车架") == [["自行车"], ["骑行"], ["车架"]]
    assert parse_phrases("دراجة، سباق") == [["دراجة"], ["سباق"]]


@pytest.mark.parametrize("kind", ["words", "flat", "discriminative", "little"])
def test_a_critic_keeps_its_languages(tmp_path: Path, kind: str) -> None:
    bags, topics, pages, _ = halves("zh")
    if kind == "words":
        trained = TrainedCritic(model=build_phrase_model("自行车, 车架"))
    elif kind == "little":
        model = fit_few_shot([["自行车"]], unlabelled=bags, embeddings=False)
        trained = TrainedCritic(model=model, phrases=(("自行车",),))
    else:
        pairs = zip(bags, topics, strict=True)
        trained = train_on_bags(
            [((str(i), f"/{t}"), b) for i, (b, t) in enumerate(pairs)], kind=kind
        )
    save_critic(trained, tmp_path / "a")
    again, _ = read_critic(str(tmp_path / "a"))
    expected = trained.model.log_posteriors(pages)
    np.testing.assert_allclose(again.model.log_posteriors(pages), expected, atol=1e-4)
    assert '"zh"' in (tmp_path / "a" / "manifest.json").read_text()


def test_critics_of_english_pages_are_what_they_were(tmp_path: Path) -> None:
    model = fit_few_shot(
        good=pages_of("birds", 3), unlabelled=pages_of("engines", 60), embeddings=False
    )
    assert model.vectors.languages == model.link_model.languages == ENGLISH
    assert not any(word.startswith("-") for word in model.vectors.words)
    save_critic(TrainedCritic(model=model), tmp_path / "a")
    assert "languages" not in (tmp_path / "a" / "manifest.json").read_text()


def test_pages_that_stand_for_others_are_in_the_language() -> None:
    (page, _) = generate_pages(2, 0, (("de", 1.0),))
    assert detect_page_language(page) == "de"
    assert sum(page.values()) == 500


def test_marks_and_long_runs_of_other_scripts() -> None:
    tokens, leaf = tokenize(["العَرَبِيَّة أيضًا كـــتاب", "", "हिन्दी भाषा", "می\u200cخواهم"])
    assert tokens == ["العربية", "أيضا", "كتاب", "हिन्दी", "भाषा", "میخواهم"]
    assert leaf.tolist() == [0, 0, 0, 2, 2, 3]
    long = "東京都は日本の首都です" * 8
    tokens, leaf = tokenize(["𠮷野家", long, "a" * 50])
    assert tokens == ["𠮷野家", long[:40], long[40:80], long[80:]]
    assert leaf.tolist() == [0, 1, 1, 1]
