"""Cross-validation of path models by site: train on all sites but one, forage it [C 4, methods 9].

The held-out site is only used for measuring.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_recall_curve
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

from focuscrawl.crawl import CrawlConfig, open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.crawl.scope import can_be_page
from focuscrawl.critic.classifiers import NaiveBayes
from focuscrawl.critic.critic_files import save_critic
from focuscrawl.critic.training import train_critic
from focuscrawl.paths.path_features import PathFeatureReader
from focuscrawl.paths.path_model import save_model
from focuscrawl.paths.path_training import (
    TrainingOptions,
    WebPages,
    allowed_path_states,
    calibrate,
    feature_sequences,
    read_corpus,
    split_by_site,
    train,
    with_rewards,
)
from focuscrawl.paths.training_paths import (
    PageLabels,
    PathSampling,
    extract_paths,
    read_page_labels,
)
from focuscrawl.store import CrawlStore
from focuscrawl.store.history import History
from focuscrawl.taxonomy import Label
from focuscrawl.webs import open_web
from studies.forages import (
    TargetSite,
    best_forage,
    context_graphs,
    foraged,
    q_values,
    reachable,
    same_domain,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.paths.path_model import PathModel
    from focuscrawl.paths.path_training import Corpus
    from studies.forages import Forage


_NONE = 1e-12  # so F1 is 0 if precision and recall are 0


def score_labels(
    chains: Mapping[str, PathModel],
    learned: Corpus,
    held: Corpus,
    *,
    goal: str,
    site: str,
    bars: TrainingOptions | None = None,
) -> list[dict[str, object]]:
    """Compare chain models with classifiers of single pages on the same features.

    The classifiers use the features of a page and of the link to the page. Labels are those of
    `PathStates`; with distances, pages at unknown distance are left out. Maximum entropy has the
    penalty and the page weights of the chain: 1/m for each of m paths that leave the same pages.
    The row "unweighed" has equal weights. Naive Bayes uses binary features.

    Parameters
    ----------
    chains : Mapping[str, PathModel]
        Chain models by the name of their rows; all have the features of the first.
    learned, held : Corpus
        Paths of the training sites and of the held-out site.
    bars : TrainingOptions or None
        Options of the first model. If given, the first model and maximum entropy also predict
        goals by a threshold on Pr(goal), chosen for the best F1 in cross-validation.

    Returns
    -------
    list[dict[str, object]]
        For each ``model``: ``goal``, ``site``, mean F1 of the labels on the site (``macro``),
        accuracy (``micro``), and F1 of the label ``goal`` (``goal_f1``).
    """
    model = next(iter(chains.values()))
    x, y = _pages(model, learned)
    x_held, y_held = _pages(model, held)
    seen = y_held >= 0
    weight = page_weights(learned)[y >= 0]
    x, y, x_held = x[y >= 0], y[y >= 0], x_held[seen]
    there, there_held = x.sign(), x_held.sign()
    told: dict[str, Ints] = {}
    for name, chain in chains.items():
        told[f"{name}, best sequence"] = _best_sequence(chain, held)[seen]
        told[f"{name}, best label"] = _marginals(chain, held)[seen].argmax(axis=1)
    entropy = _entropy(model, x, y, weight)
    told |= {
        "naive Bayes": MultinomialNB().fit(there, y).predict(there_held),
        "Bernoulli naive Bayes": BernoulliNB().fit(there, y).predict(there_held),
        "maximum entropy": entropy.predict(x_held),
        "maximum entropy, unweighed": _entropy(model, x, y, None).predict(x_held),
    }
    chosen = None if bars is None else _bars(learned, bars)
    if chosen is not None:
        of_chain, of_entropy = chosen
        first = next(iter(chains))
        told[f"{first}, goal above a bar"] = _above(_marginals(model, held)[seen], of_chain)
        alone = _probabilities(entropy, x_held, len(model.states))
        told["maximum entropy, goal above a bar"] = _above(alone, of_entropy)
    true = y_held[seen]
    return [
        {
            "goal": goal,
            "site": site,
            "model": name,
            "macro": _f1(true, predicted, sorted(set(true.tolist()))),
            "micro": float((true == predicted).mean()),
            "goal_f1": _f1(true, predicted, [0]),
        }
        for name, predicted in told.items()
    ]


def _entropy(model: PathModel, x: csr_array, y: Ints, weight: Floats | None) -> LogisticRegression:
    return LogisticRegression(C=0.5 / model.crf.l2, max_iter=500).fit(x, y, weight)


def _probabilities(entropy: LogisticRegression, x: csr_array, labels: int) -> Floats:
    """Return Pr(label) of each row; 0 for labels that are not in the training set."""
    said = np.zeros((x.shape[0], labels))
    said[:, entropy.classes_] = entropy.predict_proba(x)
    return said


def _bars(learned: Corpus, training: TrainingOptions) -> tuple[float, float] | None:
    """Return the thresholds on Pr(goal) of the chain and of maximum entropy with the best F1.

    Thresholds are chosen by cross-validation over the training sites; None with too few sites.
    """
    said: list[Floats] = []
    for rest, held in split_by_site(learned):
        model = train(rest, training)
        x, y = _pages(model, rest)
        x_held, y_held = _pages(model, held)
        seen = y_held >= 0
        entropy = _entropy(model, x[y >= 0], y[y >= 0], page_weights(rest)[y >= 0])
        alone = _probabilities(entropy, x_held[seen], len(model.states))[:, 0]
        of_goal = _marginals(model, held)[seen][:, 0]
        said.append(np.stack([of_goal, alone, y_held[seen] == 0], axis=1))
    if not said:
        return None
    chain, alone, true = np.concatenate(said).T
    return _best_bar(chain, true), _best_bar(alone, true)


def _best_bar(said: Floats, true: Floats) -> float:
    precision, recall, bars = precision_recall_curve(true, said)
    f1 = 2 * precision * recall / np.maximum(precision + recall, _NONE)
    return float(bars[f1[:-1].argmax()])


def _above(said: Floats, bar: float) -> Ints:
    """Return labels: goal for probabilities from the threshold, else the best other label."""
    return np.where(said[:, 0] >= bar, 0, 1 + said[:, 1:].argmax(axis=1))


def _f1(true: Ints, predicted: Ints, labels: list[int]) -> float:
    found: Any = f1_score(true, predicted, labels=labels, average="macro", zero_division=0.0)
    return float(found)


def _pages(model: PathModel, corpus: Corpus) -> tuple[csr_array, Ints]:
    """Return the features of each page and the link to it, and its label, -1 if unknown."""
    observed = feature_sequences(corpus, model.vocabulary).observed
    pages = _places(corpus)
    first = np.isin(pages, corpus.bounds[:-1])
    links = observed[np.where(first, pages, pages - 1)].multiply((~first)[:, None])
    known = np.concatenate(allowed_path_states(corpus, model.states))[pages][
        :, : len(model.states)
    ]
    labels = np.where(known.sum(axis=1) == 1, known.argmax(axis=1), -1)
    return (observed[pages] + links).tocsr(), labels


def page_weights(corpus: Corpus) -> Floats:
    """Return the weight of each page: 1 / m for each of m paths that leave the same pages."""
    siblings = Counter(path.pages[:-1] for path in corpus.paths)
    shares = [1.0 / siblings[path.pages[:-1]] for path in corpus.paths]
    return np.repeat(shares, [len(path.pages) for path in corpus.paths])


def _best_sequence(model: PathModel, corpus: Corpus) -> Ints:
    """Return the labels of pages in the most probable sequence."""
    return model.crf.predict(feature_sequences(corpus, model.vocabulary))[_places(corpus)]


def _marginals(model: PathModel, corpus: Corpus) -> Floats:
    """Return Pr(label) of pages, summed over all sequences."""
    said = model.crf.marginals(feature_sequences(corpus, model.vocabulary))
    return said[_places(corpus), : len(model.states)]


def _places(corpus: Corpus) -> Ints:
    """Return the positions of pages in the paths."""
    spans = zip(corpus.bounds[:-1].tolist(), corpus.bounds[1:].tolist(), strict=True)
    return np.concatenate([np.arange(start, end, 2) for start, end in spans])


PATHS = "paths"
#: strategies to compare with; their critic is naive Bayes trained on the same labels
CONTENDERS = ("apprentice", "best-first", "breadth-first")
#: other models trained on the same paths
RIVALS = {"Q-values": q_values, "context graphs": context_graphs}


@dataclass(frozen=True)
class Experiment:
    """Design of a cross-validation by site.

    Attributes
    ----------
    web, labels, column, site_column :
        As in ``focuscrawl paths extract``.
    starts : tuple[str, ...]
        Start pages of the training sites.
    unseen : tuple[str, ...]
        Start pages of sites that are only foraged; their goals are those on the registered domain.
    budget : int
        Fetches on each site.
    stops : tuple[float, ...]
        Expected goals per fetch; the model forages again with each as the stopping rule.
    against : tuple[str, ...]
        Some of `CONTENDERS`.
    bound : float or None
        Share of the goals that an oracle forages, too.
    adapt : bool
        Also forage with scores that adapt to the site.
    domain : bool
        Also forage without the domain as a factor on the score, and with the better of both in a
        cross-validation over the training sites.
    rivals : bool
        Also forage by `RIVALS`.
    printed : bool
        Also forage and predict labels by the paper's equations as printed.
    bars : bool
        Also predict goals by a threshold on Pr(goal), chosen on the training sites.
    labels_only : bool
        Predict labels without foraging.
    evidence : str
        See `focuscrawl.paths.forager.Forager`.
    """

    web: str
    labels: str
    column: str
    site_column: str | None
    starts: tuple[str, ...]
    unseen: tuple[str, ...] = ()
    budget: int = 500
    stops: tuple[float, ...] = ()
    against: tuple[str, ...] = CONTENDERS
    bound: float | None = None
    adapt: bool = False
    domain: bool = False
    rivals: bool = False
    printed: bool = False
    bars: bool = False
    labels_only: bool = False
    sampling: PathSampling = field(default_factory=PathSampling)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    evidence: str = "sum"
    random_state: int = 0


@dataclass(frozen=True)
class Fold:
    """All results of one goal and one held-out site."""

    forages: list[Forage]
    labels: list[dict[str, object]]  # see `score_labels`


def leave_out(experiment: Experiment, goal: str, site: str) -> Fold:
    """Train on the paths to `goal` of all sites except `site`, and forage `site`."""
    bench = _labelled_sites(experiment, goal)
    others = tuple(start for start in experiment.starts if start != site)
    corpus = bench.corpus(others)
    model = bench.model(others)
    scores: list[dict[str, object]] = []
    held_out = site in experiment.starts
    chains = {"CRF": model}
    if experiment.printed and held_out:
        one_state = replace(experiment.training, one_state=True)
        chains["one state a label"] = train(corpus, one_state)
    if held_out:
        held = bench.corpus((site,))
        bars = experiment.training if experiment.bars else None
        scores = score_labels(chains, corpus, held, goal=goal, site=site, bars=bars)
    if experiment.labels_only:
        return Fold([], scores)
    target_site = bench.target_site(site)
    forages = [
        _forage_by(experiment, target_site, model, PATHS, stop=stop)
        for stop in (0.0, *experiment.stops)
    ]
    if experiment.adapt:
        forages += [
            _forage_by(experiment, target_site, model, f"{PATHS}, adapting", stop=stop, adapt=True)
            for stop in (0.0, *experiment.stops)
        ]
    if experiment.bound is not None:
        forages.append(best_forage(target_site, bench.links, experiment.bound))
    if experiment.domain and held_out:
        feature = _forage_by(experiment, target_site, _no_factor(model), f"{PATHS}, no factor")
        chosen = forages[0] if _factor_helps(bench, others) else feature
        forages += [feature, replace(chosen, strategy=f"{PATHS}, chosen")]
    if experiment.rivals and held_out:
        forages += [
            _forage_by(experiment, target_site, rival(corpus, experiment.training), name)
            for name, rival in RIVALS.items()
        ]
    if experiment.printed and held_out:
        letter = with_rewards(model, corpus, replace(experiment.training, printed_rewards=True))
        forages += [
            _forage_by(experiment, target_site, chains["one state a label"], "one state a label"),
            _forage_by(experiment, target_site, letter, "rewards as printed"),
            _forage_by(experiment, target_site, model, "scores as printed", printed=True),
            _forage_by(
                experiment, target_site, letter, "rewards and scores as printed", printed=True
            ),
        ]
    if experiment.against:
        with tempfile.TemporaryDirectory() as scratch:
            critic = Path(scratch, "critic")
            _save_critic(experiment, bench.table, site, critic)
            forages += [
                _forage(experiment, target_site, strategy, critic, topic=f"/{goal.strip('/')}")
                for strategy in experiment.against
            ]
    return Fold(forages, scores)


def _no_factor(model: PathModel) -> PathModel:
    """Return a model that does not use the domain of a link as a factor on its score."""
    return replace(model, off_domain_share=1.0)


def _factor_helps(bench: _LabelledSites, sites: tuple[str, ...]) -> bool:
    """Tell whether the domain as a factor finds more goals in cross-validation over `sites`."""
    shares = np.zeros(2)
    for left in sites:
        learned = bench.corpus(tuple(site for site in sites if site != left))
        model = train(learned, bench.experiment.training)
        target_site = bench.target_site(left)
        for way, each in enumerate((model, _no_factor(model))):
            found = _forage_by(bench.experiment, target_site, each, PATHS).found
            shares[way] += len(found) / max(len(target_site.goals), 1)
    return bool(shares[0] >= shares[1])


@lru_cache(1)
def _pages_of_site(web: str) -> WebPages:
    """Return the pages of a web; each page is parsed once for all goals and sites."""
    return WebPages(open_web(web))


@lru_cache(1)
def _labelled_sites(experiment: Experiment, goal: str) -> _LabelledSites:
    return _LabelledSites(experiment, goal)


class _LabelledSites:
    """Paths and goals of each site for one goal, with the labels of all pages in ``table``."""

    def __init__(self, experiment: Experiment, goal: str) -> None:
        self.experiment = experiment
        self._goal = goal
        self._pages = _pages_of_site(experiment.web)
        web = open_web(experiment.web)
        self._reader = PathFeatureReader(experiment.training.reading, keep_words=True)
        self.table = read_page_labels(
            Path(experiment.labels),
            web.resolve,
            label=experiment.column,
            site=experiment.site_column,
        )
        self.model = lru_cache(1)(self._model)
        self._walks = {
            start: extract_paths(
                start,
                self.links,
                self.table.goals(goal, start),
                self.table.labels,
                sampling=experiment.sampling,
                random_state=experiment.random_state,
            )
            for start in experiment.starts
        }

    def links(self, url: str) -> list[str]:
        """Return the pages that a page links to and that a crawl may fetch."""
        return [to for to in self._pages.links(url) if can_be_page(to)]

    def _model(self, starts: tuple[str, ...]) -> PathModel:
        """Return the model trained on some sites, calibrated if a stopping rule needs it."""
        corpus, training = self.corpus(starts), self.experiment.training
        model = train(corpus, training)
        if self.experiment.stops:
            model = replace(model, calibration=calibrate(corpus, training))
        return model

    def corpus(self, starts: tuple[str, ...]) -> Corpus:
        """Return the corpus of the paths of some sites."""
        paths = [path for start in starts for path in self._walks[start]]
        return read_corpus(paths, self._pages, self._reader)

    def target_site(self, site: str) -> TargetSite:
        """Return the reachable goals and pages of a site."""
        reached = reachable(site, self.links)
        table = self.table
        if site not in self._walks:
            home = same_domain(site, table.labels)
            table = PageLabels({url: table.labels[url] for url in home}, {})
        return TargetSite(self._goal, site, table.goals(self._goal, site) & reached, reached)


def _save_critic(experiment: Experiment, table: PageLabels, site: str, out: Path) -> None:
    """Train naive Bayes on the labelled pages of the other sites, and save it as a critic."""
    others = {table.sites.get(start) for start in experiment.starts if start != site}
    rows = [
        Label(url, f"/{label.strip('/')}", "train")
        for url, label in table.labels.items()
        if table.sites.get(url) in others and label
    ]
    critic = train_critic(
        rows,
        open_web(experiment.web),
        kind=NaiveBayes.kind,
        min_examples=1,
        random_state=experiment.random_state,
    )
    save_critic(critic, out)


def _forage_by(
    experiment: Experiment,
    target_site: TargetSite,
    model: PathModel,
    name: str,
    *,
    stop: float = 0.0,
    printed: bool = False,
    adapt: bool = False,
) -> Forage:
    """Forage a site with a model of paths."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "model")
        save_model(model, folder, {})
        evidence = "sum" if printed else experiment.evidence
        options = {
            "evidence": evidence,
            "stop": stop,
            "printed_scores": printed,
            "adapt": adapt,
        }
        found = _forage(experiment, target_site, PATHS, folder, topic="/goal", options=options)
    return replace(found, strategy=name, stop=stop)


def _forage(
    experiment: Experiment,
    target_site: TargetSite,
    strategy: str,
    critic: Path,
    *,
    topic: str,
    options: dict[str, object] | None = None,
) -> Forage:
    with tempfile.TemporaryDirectory() as scratch:
        crawl = open_crawl(
            CrawlConfig(
                topic=topic,
                seeds=target_site.site,
                critic=str(critic),
                strategy=strategy,
                options=options or {},
                budget=experiment.budget,
                web=experiment.web,
                crawl_dir=str(Path(scratch, "crawl")),
                random_state=experiment.random_state,
            )
        )
        replay(crawl)
        with closing(CrawlStore.open(Path(scratch, "crawl", "crawl.db"), read_only=True)) as store:
            fetches = list(History(store).first_fetches())
    names = {fetch.url: fetch.url_text for fetch in fetches}
    before = {
        fetch.url_text: None if fetch.referrer is None else names.get(fetch.referrer)
        for fetch in fetches
    }
    return foraged(target_site, strategy, before)
