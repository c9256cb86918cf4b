from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.feature_extraction import FeatureExtractor, WordReader
from focuscrawl.apprentice.options import LINK_GROUPS, PAGE_GROUPS, Options
from focuscrawl.crawl.page_source import ReadPage
from focuscrawl.errors import UserError
from focuscrawl.offline.apprentice_training import learn_from, options_of
from focuscrawl.offline.d_max_selection import (
    AROUND,
    FARTHEST,
    FITS,
    FOLDS,
    HIGH,
    Folds,
    Parts,
    WindowReader,
    chosen,
    compare,
    try_windows,
)
from focuscrawl.page import parse_page
from focuscrawl.store import CrawlStore
from focuscrawl.store.schema import FETCHED
from focuscrawl.webs.web_protocol import Answer

from .small_crawl import put
from .toy_crawl import toy_critic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from focuscrawl.apprentice.link_table import PageFacts

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
    critic = toy_critic()
    groups |= {"context"}
    windows = WindowReader(critic, groups, farthest=FARTHEST)
    plain = [
        FeatureExtractor(
            WordReader(critic, ask=False), groups=groups, d_max=d_max, classes=critic.classes
        )
        for d_max in range(FARTHEST + 1)
    ]
    expected: list[list[PageFacts]] = [[] for _ in plain]
    seen = np.zeros(1000, bool)
    for u, leaves in enumerate(bodies):
        body = f"<title>t{u}</title>{'<hr>'.join(leaves)}".encode()
        view = parse_page(body, f"http://h.example/d/{u}.html")
        targets = np.array([100 + sum(map(ord, url)) % 800 for url in view.links.urls], np.int64)
        links, judged = np.arange(len(targets)), np.array([0.7, 0.3])
        for reader, facts in zip(plain, expected, strict=True):
            new = ~seen[targets]
            facts.append(
                reader.read(view, links, targets, new, relevance=0.7, probabilities=judged)
            )
        windows.add(u, ReadPage(view, links, targets, judged), 0.7)
        seen[targets] = True
    for known, facts in zip(windows.known, expected, strict=True):
        rows = known.links.rows(len(known))
        assert rows.indices.tolist() == [i for f in facts for i in f.links.indices.tolist()]
        assert rows.lengths.tolist() == [n for f in facts for n in f.links.lengths.tolist()]
        pages = known.pages.rows(len(known.pages))
        assert pages.indices.tolist() == [i for f in facts for i in f.page_indices.tolist()]
        addresses = known.addresses.rows(len(known.addresses))
        assert addresses.indices.tolist() == [i for f in facts for i in f.urls.indices.tolist()]
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
    numbers = np.array([folds.parts(u[i], v[i : i + 1])[0] for i in range(len(u))])
    parts = Parts.of(np.unique(numbers), folds, relevance)
    urls = parts.number // FOLDS
    assert len(np.unique(urls[parts.tested])) == parts.tested.sum()
    assert np.array_equal(parts.y, relevance[urls])
    shown_by = dict(zip(numbers.tolist(), folds.of_pages[u].tolist(), strict=True))
    assert parts.shown.tolist() == [shown_by[number] for number in parts.number.tolist()]
    high = relevance[linked] > HIGH
    for i in range(FOLDS):
        held_out = folds.of_urls[linked] == i
        assert abs(held_out.sum() - len(linked) / FOLDS) <= 2
        assert abs(high[held_out].sum() - high.sum() / FOLDS) <= 1
    assert np.array_equal(Folds(relevance, linked).of_pages, folds.of_pages)


def _outcomes(n: int = 200) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Labels, three of four high, and folds."""
    return (np.arange(n) % 4 > 0).astype(np.float64), np.arange(n) * FOLDS // n


def test_the_smallest_within_an_error_of_the_best_is_chosen() -> None:
    y, fold = _outcomes()
    rng = np.random.default_rng(0)
    # one in ten is predicted wrongly, the same at the last three d_max but for a little noise
    told = np.where(rng.random(200) < 0.1, 1.0 - y, y) * 0.6 + 0.2
    noisy = np.clip(told + rng.normal(0.0, 0.01, 200), 0.0, 1.0)
    trials = compare([np.full(200, 0.5), noisy, told, noisy[::-1]], y, fold)
    assert [t.d_max for t in trials] == [0, 1, 2, 3]
    know_nothing, best = trials[0], min(trials, key=lambda t: t.log_loss)
    assert know_nothing.log_loss == pytest.approx(-0.75 * np.log(0.75) - 0.25 * np.log(0.25), 1e-3)
    assert (know_nothing.auc, know_nothing.high, know_nothing.low) == (0.5, 1.0, 0.0)
    assert know_nothing.balanced == 0.5
    assert best.log_loss < 0.4
    assert best.auc > 0.85
    assert best.balanced == pytest.approx(0.9, abs=0.05)
    for trial in trials:
        assert trial.behind == pytest.approx(trial.log_loss - best.log_loss)
    assert best.behind == best.error == 0.0
    assert chosen(trials) == min(t.d_max for t in trials if t.behind <= t.error) in {1, 2}
    as_good = know_nothing._replace(behind=0.02, error=0.03)
    assert chosen([as_good, *trials[1:]]) == 0
    assert chosen([as_good._replace(error=0.01), *trials[1:]]) > 0


def test_how_sure_a_learner_is_of_itself_does_not_count() -> None:
    y, fold = _outcomes()
    margin = y - 0.5 + np.random.default_rng(1).normal(0.0, 0.6, 200)
    timid, bold = (1.0 / (1.0 + np.exp(-scale * margin)) for scale in (0.2, 5.0))
    trials = compare([timid, bold], y, fold)
    assert trials[0].log_loss == pytest.approx(trials[1].log_loss, rel=0.02)
    assert trials[0].auc == trials[1].auc
    assert trials[0].balanced == pytest.approx(trials[1].balanced, abs=0.05)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.0, 1.0), min_size=10, max_size=40), st.integers(0, 9))
def test_trials_are_finite_whatever_was_predicted(predicted: list[float], seed: int) -> None:
    n = len(predicted)
    y: NDArray[np.float64] = (np.arange(n) % 2).astype(np.float64)
    fold = np.random.default_rng(seed).integers(0, FOLDS, n)
    trials = compare([np.array(predicted), np.full(n, 0.5), np.zeros(n)], y, fold)
    assert all(np.isfinite(value) for trial in trials for value in trial)
    assert 0 <= chosen(trials) <= 2


class Hinting:
    """A web of `n` pages, and a crawl of all of it: a word `away` leaves before a link tells.

    Parameters
    ----------
    away : how far; 0: in the anchor
    """

    name, fingerprint = "hinting", "0"

    def __init__(self, away: int, n: int = 120, out: int = 6, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.good: NDArray[np.bool_] = rng.random(n) < 0.5
        self.targets = rng.integers(0, n, (n, out))
        self._urls = [f"http://h.example/p{i}.html" for i in range(n)]
        self._number = {url: i for i, url in enumerate(self._urls)}
        self._bodies = []
        for u in range(n):
            leaves: list[str] = []
            for v in self.targets[u].tolist():
                filler = [f"<p>no{k}</p>" for k in rng.integers(0, 9, 10)]
                word = "knots" if self.good[v] else "tax"
                if away:
                    filler[-away] = f"<p>{word}</p>"
                leaves += filler
                leaves.append(f"<a href=p{v}.html>{'it' if away else word}</a>")
            body = f"<title>n{u}</title>{''.join(leaves)}{'<p>end</p>' * 12}"
            self._bodies.append(body.encode())

    def urls(self) -> Iterator[str]:
        return iter(self._urls)

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        return [url if url in self._number else None for url in urls]

    def fetch(self, url: str) -> Answer | None:
        return Answer(url, 200, [("Content-Type", "text/html")], self._bodies[self._number[url]])

    def crawled(self, path: Path, **identity: str) -> CrawlStore:
        """Return the store of a breadth-first crawl."""
        store = CrawlStore.create(path, {"strategy": "breadth-first", **identity})
        n = len(self._urls)
        ends = [(u, int(v)) for u in range(n) for v in self.targets[u]]
        page = {"status": 200, "fetched_at": "", "size": 1, "links": 6, "dropped": 0}
        link = {"anchor": "", "dom_position": 0, "score": 0.5, "model_version": 0}
        rows: dict[str, list[dict[str, Any]]] = {
            "host": [{"id": 0, "name": "h.example"}],
            "url": [
                {"id": i, "url": self._urls[i], "host": 0, "depth": 0, "state": FETCHED}
                for i in range(n)
            ],
            "page": [
                {
                    **page,
                    "seq": i + 1,
                    "url": i,
                    "relevance": 0.9 if self.good[i] else 0.1,
                    "digest": i.to_bytes(4, "little"),
                }
                for i in range(n)
            ],
            "link": [{**link, "id": i, "source": u, "target": v} for i, (u, v) in enumerate(ends)],
        }
        put(store, rows)
        return store


@pytest.mark.parametrize(
    ("away", "learner"), [(0, "nb"), (1, "logistic"), (3, "regression"), (4, "nb")]
)
def test_a_hint_is_looked_for_as_far_as_it_is(away: int, learner: str, tmp_path: Path) -> None:
    web = Hinting(away)
    options = Options(groups=("context", "url"), learner=learner)
    ticks: list[str] = []
    with closing(web.crawled(tmp_path / "crawl.db")) as store:
        trials = try_windows(
            store,
            options,
            critic=toy_critic(),
            web=web,
            on_page=lambda: ticks.append("page"),
            on_fit=lambda: ticks.append("fit"),
        )
    assert chosen(trials) == away
    assert trials[away].auc > 0.9
    assert all(0.3 < trial.auc < 0.7 for trial in trials[:away])
    assert (ticks.count("page"), ticks.count("fit")) == (120, FITS)


def test_what_only_names_pages_and_urls_tells_nothing(tmp_path: Path) -> None:
    web = Hinting(9)  # too far away for any d_max: titles and addresses are left
    options = Options(groups=("context", "title", "url", "anchor"), evidence="first")
    with closing(web.crawled(tmp_path / "crawl.db")) as store:
        trials = try_windows(store, options, critic=toy_critic(), web=web)
        again = try_windows(store, options, critic=toy_critic(), web=web)
    assert all(0.3 < trial.auc < 0.7 for trial in trials)
    assert trials == again


@pytest.mark.parametrize("others", [("classes",), ("classes", "section", "anchor")])
def test_the_words_around_a_link_go_as_far_as_d_max(
    others: tuple[str, ...], tmp_path: Path
) -> None:
    web = Hinting(2)
    with closing(web.crawled(tmp_path / "crawl.db")) as store:
        trials = try_windows(
            store, Options(groups=(AROUND, *others)), critic=toy_critic(), web=web
        )
    assert chosen(trials) == 2


def test_what_cannot_be_chosen_is_said(tmp_path: Path) -> None:
    web = Hinting(1)
    critic = toy_critic()
    with closing(web.crawled(tmp_path / "crawl.db")) as store:
        with pytest.raises(UserError, match="context"):
            try_windows(store, Options(groups=("url", "title")), critic=critic, web=web)
        with store.connection() as connection:
            connection.execute("UPDATE page SET relevance = 0.9")
        with pytest.raises(UserError, match="10 fetches of irrelevant pages"):
            try_windows(store, Options(), critic=critic, web=web)
        with store.connection() as connection:
            connection.execute("DELETE FROM link")
        with pytest.raises(UserError, match="there are 0"):
            try_windows(store, Options(), critic=critic, web=web)


def test_what_another_strategy_kept_is_not_taken_for_facts(tmp_path: Path) -> None:
    web = Hinting(1)
    kept = {"strategy": "shark-search", "options": '{"d_max": 3, "memory": 7, "learner": "x"}'}
    with closing(web.crawled(tmp_path / "crawl.db", **kept)) as store:
        put(store, {"memo": [{"seq": 1, "data": b"\x01\x02"}]})
        assert options_of(store) is None
        with pytest.raises(UserError, match="--web"):
            learn_from(store)
        learned = learn_from(store, critic=toy_critic(), web=web)
    assert learned.options.d_max == Options().d_max
    assert learned.n_judged > 80


def test_a_crawl_of_the_apprentice_is_learned_from_under_its_own_options(tmp_path: Path) -> None:
    web, critic = Hinting(3), toy_critic()
    given = '{"groups": ["context", "classes", "relevance"], "d_max": 3, "learner": "nb"}'
    with closing(web.crawled(tmp_path / "a.db", strategy="apprentice", options=given)) as store:
        options = options_of(store)
        assert options is not None
        with closing(web.crawled(tmp_path / "b.db")) as other:
            read_again = learn_from(other, options=options, critic=critic, web=web)
        _keep_memos(store, web, options)
        learned = learn_from(store)
        with pytest.raises(UserError, match="--web"):
            learn_from(store, options=Options(d_max=2, groups=options.groups))
        as_before = learn_from(store, options=Options(d_max=3, groups=options.groups))
    assert (learned.options.learner, learned.options.d_max) == ("nb", 3)
    assert as_before.options.learner == "logistic"
    one, other_one = learned.scorer.learner.linear(), read_again.scorer.learner.linear()
    assert all(np.array_equal(a, b) for a, b in zip(one, other_one, strict=True))


def _keep_memos(store: CrawlStore, web: Hinting, options: Options) -> None:
    """Keep what the apprentice would have kept of the pages."""
    critic, apprentice = toy_critic(), Apprentice(options)
    reader = FeatureExtractor(
        WordReader(critic, ask=False),
        groups=options.groups,
        d_max=options.d_max,
        classes=critic.classes,
    )
    memos = []
    for u, url in enumerate(web.urls()):
        answer = web.fetch(url)
        assert answer is not None
        view = parse_page(answer.body, url)
        judged = critic.judge([view]).probabilities
        assert judged is not None
        targets = web.targets[u].astype(np.int64)
        facts = reader.read(
            view,
            np.arange(len(targets)),
            targets,
            apprentice.new(targets),
            relevance=0.9 if web.good[u] else 0.1,
            probabilities=judged[0],
        )
        apprentice.expand(u, facts)
        memos.append({"seq": u + 1, "data": facts.to_bytes()})
    put(store, {"memo": memos})
