from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.feature_extraction import FeatureExtractor
from focuscrawl.apprentice.options import LINK_GROUPS, PAGE_GROUPS, Options
from focuscrawl.crawl.page_source import ReadPage
from focuscrawl.errors import UserError
from focuscrawl.offline.apprentice_training import crawl_options, train_apprentice
from focuscrawl.offline.d_max_selection import (
    CONTEXT_GROUP,
    HIGH_RELEVANCE,
    MAX_D_MAX,
    N_FITS,
    N_FOLDS,
    FoldInstances,
    Folds,
    WindowReader,
    compare_predictions,
    cross_validate,
    select_d_max,
)
from focuscrawl.page import parse_page
from focuscrawl.store import CrawlStore
from focuscrawl.testing import KeywordCritic, TinyWeb, new_crawl, step

from .toy_crawl import toy_critic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.link_table import PageFeatures

_WORDS = st.sampled_from(["knots", "tax", "reef", "boats", "of", "year"])
_LEAF = st.one_of(
    _WORDS,
    st.just(""),
    _WORDS.map(lambda word: f"<p>{word} {word} more</p>"),
    _WORDS.map(lambda word: f"<ul><li>{word}<li><a href=/{word}>see {word}</a></ul>"),
    _WORDS.map(lambda word: f"<h2>all {word}</h2><img><a href=x/{word}.html><b>{word}</b> on</a>"),
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(_LEAF, min_size=3, max_size=9), min_size=1, max_size=3),
    st.sets(st.sampled_from([*LINK_GROUPS, *PAGE_GROUPS, "url"])),
)
def test_the_windows_of_every_d_max_are_what_a_page_reader_finds(
    bodies: list[list[str]], groups: set[str]
) -> None:
    critic, options = toy_critic(), Options(groups=("context", *groups))
    windows = WindowReader(critic, options)
    plain = [
        FeatureExtractor(critic, replace(options, d_max=d_max)) for d_max in range(MAX_D_MAX + 1)
    ]
    expected: list[list[PageFeatures]] = [[] for _ in plain]
    seen = np.zeros(1000, bool)
    for u, leaves in enumerate(bodies):
        body = f"<title>t{u}</title>{'<hr>'.join(leaves)}".encode()
        view = parse_page(body, f"http://h.example/d/{u}.html")
        targets = np.array([100 + sum(map(ord, url)) % 800 for url in view.links.urls], np.int64)
        links, judged = np.arange(len(targets)), np.array([0.7, 0.3])
        for reader, features in zip(plain, expected, strict=True):
            new = ~seen[targets]
            features.append(
                reader.extract(view, links, targets, new, relevance=0.7, probabilities=judged)
            )
        windows.add(u, ReadPage(view, links, targets, judged), 0.7)
        seen[targets] = True
    for known, features in zip(windows.tables, expected, strict=True):
        rows = known.links.rows(len(known))
        assert rows.indices.tolist() == [i for f in features for i in f.links.indices.tolist()]
        assert rows.lengths.tolist() == [n for f in features for n in f.links.lengths.tolist()]
        pages = known.pages.rows(len(known.pages))
        assert pages.indices.tolist() == [i for f in features for i in f.page_indices.tolist()]
        addresses = known.url_rows.rows(len(known.url_rows))
        assert addresses.indices.tolist() == [i for f in features for i in f.urls.indices.tolist()]
    assert windows.urls().tolist() == np.flatnonzero(seen).tolist()


@settings(max_examples=25, deadline=None)
@given(st.integers(40, 90), st.integers(0, 9))
def test_no_page_and_no_url_is_learned_from_that_is_held_out(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    relevance = np.arange(n) % 3 / 2.0
    linked = np.sort(rng.permutation(n)[: n - 3])
    folds = Folds(relevance, linked)
    assert (folds.of_urls >= 0).sum() == len(linked)
    u, v = rng.integers(0, n, 4 * n), rng.choice(linked, 4 * n)
    numbers = np.array([folds.link_groups(u[i], v[i : i + 1])[0] for i in range(len(u))])
    parts = FoldInstances.from_groups(np.unique(numbers), folds, relevance)
    urls = parts.group // N_FOLDS
    assert len(np.unique(urls[parts.held_out])) == parts.held_out.sum()
    assert np.array_equal(parts.y, relevance[urls])
    shown_by = dict(zip(numbers.tolist(), folds.of_pages[u].tolist(), strict=True))
    assert parts.page_fold.tolist() == [shown_by[number] for number in parts.group.tolist()]
    high = relevance[linked] > HIGH_RELEVANCE
    for i in range(N_FOLDS):
        held_out = folds.of_urls[linked] == i
        assert abs(held_out.sum() - len(linked) / N_FOLDS) <= 2
        assert abs(high[held_out].sum() - high.sum() / N_FOLDS) <= 1
    assert np.array_equal(Folds(relevance, linked).of_pages, folds.of_pages)


Y, FOLD = (np.arange(200) % 4 > 0).astype(np.float64), np.arange(200) * N_FOLDS // 200


def test_the_smallest_within_an_error_of_the_best_is_chosen() -> None:
    y, fold = Y, FOLD
    rng = np.random.default_rng(0)
    # one in ten is predicted wrongly, the same at the last three d_max but for a little noise
    told = np.where(rng.random(200) < 0.1, 1.0 - y, y) * 0.6 + 0.2
    noisy = np.clip(told + rng.normal(0.0, 0.01, 200), 0.0, 1.0)
    trials = compare_predictions([np.full(200, 0.5), noisy, told, noisy[::-1]], y, fold)
    assert [t.d_max for t in trials] == [0, 1, 2, 3]
    know_nothing, best = trials[0], min(trials, key=lambda t: t.log_loss)
    assert know_nothing.log_loss == pytest.approx(-0.75 * np.log(0.75) - 0.25 * np.log(0.25), 1e-3)
    assert (know_nothing.auc, know_nothing.high, know_nothing.low) == (0.5, 1.0, 0.0)
    assert know_nothing.balanced == 0.5
    assert best.log_loss < 0.4
    assert best.auc > 0.85
    assert best.balanced == pytest.approx(0.9, abs=0.05)
    assert all(each.excess_loss == pytest.approx(each.log_loss - best.log_loss) for each in trials)
    assert best.excess_loss == best.error == 0.0
    assert (
        select_d_max(trials) == min(t.d_max for t in trials if t.excess_loss <= t.error) in {1, 2}
    )
    assert know_nothing.accuracy == 0.25  # 0.5 is not above the threshold
    assert [t.accuracy for t in trials[1:3]] == pytest.approx([best.accuracy] * 2, abs=0.02)
    as_good = know_nothing._replace(excess_loss=0.02, error=0.03)
    assert select_d_max([as_good, *trials[1:]], by_accuracy=True) > 0
    right = as_good._replace(accuracy=1.0)  # [A02] takes the most accurate
    assert select_d_max([*trials[1:], right, right._replace(d_max=7)], by_accuracy=True) == 0
    assert select_d_max([as_good, *trials[1:]]) == 0
    assert select_d_max([as_good._replace(error=0.01), *trials[1:]]) > 0


def test_how_sure_a_learner_is_of_itself_does_not_count() -> None:
    margin = Y - 0.5 + np.random.default_rng(1).normal(0.0, 0.6, 200)
    timid, bold = (1.0 / (1.0 + np.exp(-scale * margin)) for scale in (0.2, 5.0))
    trials = compare_predictions([timid, bold], Y, FOLD)
    assert trials[0].log_loss == pytest.approx(trials[1].log_loss, rel=0.02)
    assert trials[0].auc == trials[1].auc
    assert trials[0].balanced == pytest.approx(trials[1].balanced, abs=0.05)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.0, 1.0), min_size=10, max_size=40), st.integers(0, 9))
def test_trials_are_finite_whatever_was_predicted(predicted: list[float], seed: int) -> None:
    n = len(predicted)
    y: NDArray[np.float64] = (np.arange(n) % 2).astype(np.float64)
    fold = np.random.default_rng(seed).integers(0, N_FOLDS, n)
    trials = compare_predictions([np.array(predicted), np.full(n, 0.5), np.zeros(n)], y, fold)
    assert all(np.isfinite(value) for trial in trials for value in trial)
    assert 0 <= select_d_max(trials) <= 2


CRITIC = KeywordCritic("jazz", classes=("/Boats", "/Money"))


class Hinting(TinyWeb):
    """A web of `n` pages: a word `away` leaves before a link tells; 0: in the anchor."""

    def __init__(self, away: int, n: int = 120, out: int = 6, seed: int = 0) -> None:
        super().__init__()
        rng = np.random.default_rng(seed)
        good, targets = rng.random(n) < 0.5, rng.integers(0, n, (n, out))
        for u in range(n):
            leaves: list[str] = []
            for v in targets[u].tolist():
                filler = [f"<p>no{k}</p>" for k in rng.integers(0, 9, 10)]
                word = "knots" if good[v] else "tax"
                if away:
                    filler[-away] = f"<p>{word}</p>"
                leaves += filler
                leaves.append(f"<a href=p{v}.html>{'it' if away else word}</a>")
            title = f"<title>{'jazz' if good[u] else 'n'} {u}</title>"
            self.put(f"http://h.example/p{u}.html", f"{title}{''.join(leaves)}{'<p>end</p>' * 12}")

    def crawled(
        self, folder: Path, strategy: str = "breadth-first", options: str = "{}"
    ) -> CrawlStore:
        """Return the store of a crawl of all pages, whose identity has these options."""
        given = json.loads(options) if strategy == "apprentice" else {}
        crawl = new_crawl(
            folder,
            self,
            [*self.urls()],
            critic=CRITIC,
            strategy=strategy,
            options=given,
            budget=120,
            near_duplicates=False,
        )
        while step(crawl) is not None:
            pass
        crawl.close("frontier_empty")
        store = CrawlStore.open(folder / "crawl.db")
        with store.connection() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('options', ?)", (options,))
        return store


@pytest.mark.parametrize(
    ("away", "learner", "others"),
    [
        (0, "nb", ("url",)),
        (1, "logistic", ("url",)),
        (2, "logistic", ("classes", "section", "anchor")),
        (3, "regression", ("url",)),
        (4, "nb", ("url",)),
    ],
)
def test_a_hint_is_looked_for_as_far_as_it_is(
    away: int, learner: str, others: tuple[str, ...], tmp_path: Path
) -> None:
    web = Hinting(away)
    options = Options(groups=(CONTEXT_GROUP, *others), learner=learner)
    ticks: list[str] = []
    with closing(web.crawled(tmp_path / "crawl")) as store:
        trials = cross_validate(
            store,
            options,
            critic=CRITIC,
            web=web,
            on_page=lambda: ticks.append("page"),
            on_fit=lambda: ticks.append("fit"),
        )
    assert select_d_max(trials) == away
    assert trials[away].auc > 0.9
    assert all(0.3 < trial.auc < 0.7 for trial in trials[:away])
    assert (ticks.count("page"), ticks.count("fit")) == (120, N_FITS)


def test_what_only_names_pages_and_urls_tells_nothing(tmp_path: Path) -> None:
    web = Hinting(9)  # too far away for any d_max: titles and addresses are left
    options = Options(groups=("context", "title", "url", "anchor"), evidence="first")
    with closing(web.crawled(tmp_path / "crawl")) as store:
        trials = cross_validate(store, options, critic=CRITIC, web=web)
        again = cross_validate(store, options, critic=CRITIC, web=web)
    assert all(0.3 < trial.auc < 0.7 for trial in trials)
    assert trials == again


def test_what_cannot_be_chosen_is_said(tmp_path: Path) -> None:
    web, critic = Hinting(1), CRITIC
    with closing(web.crawled(tmp_path / "crawl")) as store:
        with pytest.raises(UserError, match="context"):
            cross_validate(store, Options(groups=("url", "title")), critic=critic, web=web)
        with store.connection() as connection:
            connection.execute("UPDATE page SET relevance = 0.9")
        with pytest.raises(UserError, match="needs 10 irrelevant pages"):
            cross_validate(store, Options(), critic=critic, web=web)
        with store.connection() as connection:
            connection.execute("DELETE FROM link")
        with pytest.raises(UserError, match="the crawl has 0"):
            cross_validate(store, Options(), critic=critic, web=web)


def test_what_another_strategy_kept_is_not_taken_for_facts(tmp_path: Path) -> None:
    web = Hinting(1)
    options = '{"depth": 3, "d_max": 3, "memory": 7, "learner": "x"}'
    with closing(web.crawled(tmp_path / "crawl", "shark-search", options)) as store:
        assert len([*store.rows("SELECT * FROM memo")]) == 120
        assert crawl_options(store) is None
        with pytest.raises(UserError, match="--web"):
            train_apprentice(store)
        learned = train_apprentice(store, critic=CRITIC, web=web)
    assert learned.options.d_max == Options().d_max
    assert learned.n_judged > 80


def test_a_crawl_of_the_apprentice_is_learned_from_under_its_own_options(tmp_path: Path) -> None:
    web = Hinting(3)
    given = '{"groups": ["context", "classes", "relevance"], "d_max": 3, "learner": "nb"}'
    with closing(web.crawled(tmp_path / "crawl", "apprentice", given)) as store:
        options = crawl_options(store)
        assert options is not None
        learned = train_apprentice(store)
        with pytest.raises(UserError, match="--web"):
            train_apprentice(store, options=replace(options, d_max=2))
        other = train_apprentice(store, options=Options(d_max=3, groups=options.groups))
        with store.connection() as connection:  # as if nothing of the pages was kept
            connection.execute("DELETE FROM memo")
            connection.execute("UPDATE meta SET value = 'best-first' WHERE key = 'strategy'")
        read_again = train_apprentice(store, options=options, critic=CRITIC, web=web)
    assert (learned.options.learner, learned.options.d_max) == ("nb", 3)
    assert other.options.learner == "logistic"
    weights = zip(learned.scorer.learner.linear(), read_again.scorer.learner.linear(), strict=True)
    assert all(np.array_equal(one, another) for one, another in weights)
