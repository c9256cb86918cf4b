"""The studies of single findings, each on a web small enough to know what comes out."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from focuscrawl.crawl import CrawlConfig, open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.critic.critic_files import find_model
from focuscrawl.lab.judged_web import JudgedWeb
from focuscrawl.page.words import word_hashes
from focuscrawl.report.figures import png
from focuscrawl.report.measures import load_pages
from focuscrawl.testing import TinyWeb
from focuscrawl.webs.synthetic import SyntheticWeb
from studies import critics, feedback, knowledge_bases
from studies.__main__ import studies
from studies.authorities import study_agreement
from studies.page_figures import agreement_table, draw_agreement
from studies.page_studies import (
    Instances,
    Tokens,
    accuracy_table,
    rate_table,
    rest_table,
    sample_instances,
)
from studies.specificity import study_specificity, without_hosts
from studies.takeover import take_over
from studies.topic_tasks import Task
from studies.whole_crawls import SoftCrawl

from . import departments

TOPIC = "/Sports/Cycling"


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """Forty fetches of the synthetic web, whose pages all have labels."""
    folder = tmp_path_factory.mktemp("studies")
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("url", "topic", "split"), *SyntheticWeb().labels()])
    return Task(
        kind="feedback",
        web="demo",
        recording="demo",
        critic="models/demo",
        topic=TOPIC,
        seeds=tuple(read_seeds(str(find_model("demo") / "seeds.csv"), (TOPIC,))),
        labels=str(folder / "labels.csv"),
        budget=40,
        folder=str(folder / "feedback"),
    )


def test_every_critic_is_measured(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(critics, "DRAWS", 1)
    table = critics.study_critics(task)["critics"]
    assert not table.duplicated(["critic", "from", "draw"]).any()
    ap = {(row["critic"], row["from"]): row["ap"] for row in table.to_dict("records")}
    assert {critic for critic, _ in ap} == set(critics.CRITICS)
    for critic in critics.CRITICS[2:]:
        assert {(critic, of) for of in ("phrase", "3 good", "phrase, 3 good")} <= ap.keys()
        assert ap[critic, "phrase, 20 good"] > 0.8
    assert min(ap[critic, "all labels"] for critic in ("discriminative", "naive Bayes")) > 0.9


def test_crawls_are_judged_by_labels_and_by_a_critic_that_guides_none(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(critics, "STRATEGIES", ("best-first",))
    monkeypatch.setattr(critics, "CRAWL_DRAWS", 1)
    table = critics.study_harvest(replace(task, phrase="road cycling, bicycle"))["harvest"]
    assert table["critic"].tolist() == list(critics.CRAWL_CRITICS)
    assert (table["fetches"] == 40).all()
    assert ((table["on"] + table["off"]) <= 40).all()
    assert (table["judged"] * 40 >= table["on"] * 0.8).all()  # the judge agrees with the labels


def test_judgements_are_the_labels_and_the_halves_are_measured_alike(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback, "DRAWS", 1)
    monkeypatch.setattr(feedback, "STRATEGIES", ("best-first",))
    monkeypatch.setattr(feedback, "JUDGEMENTS", 6)
    (row,) = feedback.study_feedback(task)["feedback"].to_dict("records")
    assert (row["draw"], row["strategy"], row["judged"]) == (0, "best-first", 6)
    measures = ("precision", "recall", "harvest")
    assert all(0 <= row[f"{m}_{when}"] <= 1 for m in measures for when in ("before", "after"))


def test_crawls_from_disjoint_seeds_are_compared(task: Task) -> None:
    tables = study_agreement(task)
    table, shared, promised = (tables[name] for name in ("agreement", "shared", "unvisited"))
    assert set(table["of"]) == {"pages", "hosts"}
    assert table["overlap"].between(0, 1).all()
    assert table["fetched"].between(0, 1).all()
    assert table["pair"].nunique() == 5
    drawn = agreement_table(table.assign(web="demo", topic=TOPIC))
    assert png(draw_agreement(drawn)).startswith(b"\x89PNG")
    last = shared[shared["fetches"] == shared["fetches"].max()]
    assert (last["servers"] >= last["urls"]).all()  # of one host crawls fetch other pages
    assert (promised["cited"] <= promised["waiting"]).all()


def test_each_base_of_the_knowledge_is_tried_alone(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, labels = knowledge_bases.FIRST, ("2: alone", "2: all three")
    tried = [each for each in knowledge_bases.CONTENDERS if each.label in labels]
    monkeypatch.setattr(knowledge_bases, "CONTENDERS", (first, *tried))
    table = knowledge_bases.study_bases(task)["bases"].set_index("label")
    assert (table["fetches"] == task.budget).all()
    assert table["harvest"].between(0, 1).all()
    assert np.isnan(table["new"][first.label])
    assert table["new"].drop(first.label).between(0, 1).all()
    named = table.reset_index().assign(web="demo", topic=TOPIC)
    named = pd.concat([named, named.assign(label="1: words of the name", new=np.nan).iloc[:1]])
    assert knowledge_bases.bases_table(named).set_index("label")["above"]["2: alone"] == 0


def test_the_first_half_is_best_first_and_the_second_is_not(task: Task, tmp_path: Path) -> None:
    found = take_over(replace(task, budget=60))["fetches"]
    (tmp_path / "seeds.txt").write_text("\n".join(task.seeds))
    plan = CrawlConfig(
        topic=TOPIC,
        seeds=str(tmp_path / "seeds.txt"),
        strategy="best-first",
        budget=60,
        web="demo",
        crawl_dir=str(tmp_path / "crawl"),
    )
    replay(open_crawl(plan))
    urls, baseline = found["url"].tolist(), load_pages(str(tmp_path / "crawl"))["url"].tolist()
    assert (len(urls), urls[:30]) == (60, baseline[:30])
    assert urls[30:] != baseline[30:]
    assert found["after_switch"].tolist() == [False] * 30 + [True] * 30


@pytest.mark.long
def test_each_site_is_left_out_and_foraged(tmp_path: Path) -> None:
    web = departments.make(tmp_path)
    rest = ("--against", "breadth-first", "--stop", 0.05, "--budget", 20, "--fails", 3)
    done = _paths(web, web.starts, tmp_path / "results", *rest)
    assert done == (0, done[1]), done[1]
    with (tmp_path / "results" / "forages.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = {(row["strategy"], row["stop"]): 0 for row in rows}
    for row in rows:
        found[row["strategy"], row["stop"]] += len(row["found_at"].split())
    assert found["paths", "0.0"] == found["paths", "0.05"] == 32
    assert found["breadth-first", "0.0"] < 16
    assert (tmp_path / "results" / "recall-professor.png").stat().st_size > 10_000


def test_too_few_sites_are_one_line(tmp_path: Path) -> None:
    web = departments.make(tmp_path)
    (tmp_path / "sites.txt").write_text(web.doors[3])
    code, output = _paths(web, tmp_path / "sites.txt", tmp_path / "o")
    assert (code, "needs three sites" in output) == (2, True)
    assert not (tmp_path / "o").exists()


def _paths(
    web: departments.Departments, starts: Path, out: Path, *more: object
) -> tuple[int, str]:
    """Run ``python -m studies paths``; return its exit code and output."""
    options = ("--labels", web.labels, "--column", "kind", "--site-column", "site")
    given = (web.warc, *options, "--goal", "professor", "--starts", starts, "--out", out, *more)
    done = CliRunner().invoke(studies, ["paths", *map(str, given)])
    return done.exit_code, done.output


def web_of(
    probabilities: Sequence[Sequence[float]],
    links: Sequence[Sequence[int]],
    classes: list[str],
    content: Sequence[int] | None = None,
) -> JudgedWeb:
    """Return a web of these pages and links."""
    n = len(links)
    return JudgedWeb(
        urls=[f"http://h/{i}" for i in range(n)],
        classes=classes,
        probabilities=np.array(probabilities, np.float32),
        content=np.array(range(n) if content is None else content),
        body=np.arange(n),
        bounds=np.cumsum([0, *map(len, links)]),
        targets=np.array([target for each in links for target in each]),
    )


def test_a_crawl_judged_anew_goes_where_the_wider_topic_leads() -> None:
    # page i links to i + 1, and to one that is far from the topic
    on, sibling, n = "/Money/Funds", "/Money/Shares", 320
    kinds = [0] * 120 + [1] * 200 + [2] * n
    links = [[i + 1, n + i] if i + 1 < n else [] for i in range(n)] + [[]] * n
    whole = web_of(np.eye(3)[kinds].tolist(), links, [on, sibling, "/Sport"])
    crawl = SoftCrawl(whole, whole.relevance(on), [0])
    alarm = feedback.first_alarm(crawl, on)
    assert alarm is not None
    assert alarm.proposals[0].topic in (sibling, "/Money")
    wide = whole.relevance("/Money")
    wider = crawl.rejudged(wide)
    assert wider.fetched == crawl.fetched
    marked = [page for page, _ in wider.fetch(50)]
    assert wide[marked].mean() > 0.4
    assert not set(marked) & set(crawl.fetched)


def test_a_wider_class_has_the_pages_of_the_topic_and_more(task: Task) -> None:
    tables = study_specificity(task)
    levels, unfocused = tables["specificity"], tables["unfocused"]
    assert levels["marked"].tolist() == [TOPIC, "/Sports"]
    assert levels["share"].is_monotonic_increasing
    assert levels["harvest"].is_monotonic_increasing
    assert unfocused["without"].tolist() == [0, 1, 3, 10]
    assert (unfocused["harvest"] < levels["harvest"][0]).all()


def test_links_to_the_largest_hosts_are_left_out() -> None:
    whole = web_of([[1.0]] * 4, [[1, 2, 3], [2], [0, 3], []], ["/A"])
    left = without_hosts(whole, np.array([0, 1, 1, 2]), 1)
    assert [left.links(page) for page in range(4)] == [[3], [], [0, 3], []]


#: hub -> a, b, c; a -> hub, c, copy; c -> a; copy has the content of a
PAGES = [
    "<p>good <a href='1'>jazz</a> <a href='2'>junk</a><p>more <a href='3'>jazz</a>",
    "<a href='0'>home</a> <a href='3'>jazz</a>",
    "nothing",
    "<a href='1'>jazz</a>",
    "",
]


@pytest.fixture
def whole() -> JudgedWeb:
    return web_of(
        [[0.6, 0.4], [1, 0], [0, 1], [0.9, 0.1], [1, 0]],
        [[1, 2, 3], [0, 3, 4], [], [1], []],
        ["/Music/Jazz", "/Other"],
        content=[0, 1, 2, 3, 1],
    )


def test_instances_are_links_with_both_ends_fetched(whole: JudgedWeb) -> None:
    web = TinyWeb({f"http://h/{i}": html for i, html in enumerate(PAGES)})
    found = sample_instances(web, whole, "/Music/Jazz", ["http://h/0"], fetches=3)
    pairs = list(zip(found.source.tolist(), found.target.tolist(), strict=True))
    assert pairs == [(0, 1), (0, 3), (1, 0), (1, 3), (3, 1)]  # b was not fetched
    np.testing.assert_allclose(found.relevance, [1, 0.9, 0.6, 0.9, 1], atol=1e-6)
    jazz, first = word_hashes(["jazz"])[0], slice(*found.tokens.indptr[:2])
    at = found.tokens.offsets[first][found.tokens.words[first] == jazz]
    assert at.tolist() == [0, 3]  # its own anchor, and that of c
    # a was fetched before c, and its link is 3 leaves before that of c on the hub
    assert [1, -3, 1] in found.cocited.tolist()
    assert all(row[0] != 0 for row in found.cocited.tolist())  # nothing came before a but the hub


def test_smoothing_tells_a_word_at_an_offset_that_it_has_not_learned(whole: JudgedWeb) -> None:
    high, offsets = np.arange(18) % 2, np.repeat(np.arange(-4, 5), 2)
    none = np.zeros(18, np.int64)
    words = Tokens((7 + high).astype(np.uint64), offsets, np.arange(19))
    instances = Instances(
        source=none,
        target=np.arange(18),
        relevance=high.astype(np.float64),
        left=none,
        right=none,
        tokens=words,
        cocited=np.zeros((0, 3), np.int64),
    )
    table = accuracy_table(instances, whole)
    average = table.set_index(["folds", "features", "d_max"])["average"]
    for folds in ("links", "pages"):  # every pair of word and offset is there once
        assert average[folds, "offsets", 5] < 0.6
        assert average[folds, "offsets + smoothing", 5] > 0.8


def test_the_rates_of_words_at_an_offset_are_those_of_naive_bayes(whole: JudgedWeb) -> None:
    web = TinyWeb({f"http://h/{i}": html for i, html in enumerate(PAGES)})
    found = sample_instances(web, whole, "/Music/Jazz", ["http://h/0"], fetches=3)
    table = rate_table(found).set_index("offset")
    words, offsets = found.tokens.words.tolist(), found.tokens.offsets.tolist()
    at_0 = [word for word, d in zip(words, offsets, strict=True) if d == 0]
    # theta(t, d) = (1 + n(t, d)) / (T + n(d)), summed over the words at d
    rate = sum((1 + at_0.count(word)) / (len(set(words)) + len(at_0)) for word in set(at_0))
    assert table["rate"][0] == pytest.approx(rate)
    assert table["share"][0] == len(at_0) / len(words)
    assert table["share"].sum() == pytest.approx(1)


def test_the_rest_of_a_page_is_at_one_more_offset() -> None:
    far = "<p>x" * 9
    pages = {
        f"http://h/{i}": f"<p>{'good' if i % 2 else 'bad'}{far}<a href='{(i + 2) % 40}'>next</a>"
        for i in range(40)
    }
    pages["http://h/40"] = "".join(f"<a href='{i}'>go</a>" for i in range(40))
    on = [[0.9, 0.1] if i % 2 else [0.1, 0.9] for i in range(40)] + [[0.9, 0.1]]
    links = [[(i + 2) % 40] for i in range(40)] + [[*range(40)]]
    linked = web_of(on, links, ["/Music/Jazz", "/Other"])
    web = TinyWeb(pages)
    instances = sample_instances(web, linked, "/Music/Jazz", ["http://h/40"], fetches=41)
    table = rest_table(web, linked, instances).set_index(["folds", "features"])
    for measure in ("average", "distinct"):
        of = table[measure]
        for folds in ("links", "pages"):
            assert of[folds, "offsets + rest"] > of[folds, "offsets"]


def test_offsets_tell_what_words_alone_do_not(whole: JudgedWeb) -> None:
    """The same two words are on either side of every link; their order says where it leads."""
    high = np.arange(60) % 2
    none = np.zeros(60, np.int64)
    instances = Instances(
        source=none,
        target=np.arange(60),
        relevance=high.astype(np.float64),
        left=none,
        right=none,
        tokens=Tokens(
            np.stack([8 - high, np.full(60, 9), 7 + high], axis=1).ravel().astype(np.uint64),
            np.tile([-1, 0, 1], 60),
            np.arange(0, 181, 3),
        ),
        cocited=np.zeros((0, 3), np.int64),
    )
    table = accuracy_table(instances, whole)
    average = table.set_index(["folds", "features", "d_max"])["average"]
    for folds in ("links", "pages"):
        assert average[folds, "offsets", 1] == 1.0
        assert max(average[folds, "text", 1], average[folds, "offsets", 0]) < 0.7
        assert average[folds, "offsets + constant length", 5] == 1.0  # all are of one length
    more = {"class names", "class prefixes", "co-citation", "smoothing", "constant length"}
    assert set(table["features"]) == {"offsets", "text", *(f"offsets + {name}" for name in more)}
