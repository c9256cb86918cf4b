"""How well the labels of a path's pages are told: the chain, and each page by itself [C 4]."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_recall_curve
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

from focuscrawl.paths.left_out_sites import left_out
from focuscrawl.paths.training import known_labels, sequences, train

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from focuscrawl.paths.model import PathModel
    from focuscrawl.paths.training import Corpus, TrainingOptions

_NONE = 1e-12  # where there is neither precision nor recall, F1 is 0


def score_labels(
    chains: Mapping[str, PathModel],
    learned: Corpus,
    held: Corpus,
    *,
    goal: str,
    site: str,
    bars: TrainingOptions | None = None,
) -> list[dict[str, object]]:
    """Compare chains with classifiers of single pages on the same features.

    A page has the features of its own and those of the link to it, which the chain has in two
    places. Labels are those of `PathStates`; with distances, pages whose distance no path says
    are left out. The penalty of maximum entropy is that of the chain, and pages weigh as much, 1/m
    of m paths that leave the same pages; also told is what it is if each counts once. Naive Bayes
    counts each feature as 1.

    Parameters
    ----------
    chains : by the names of their rows; all have the features of the first
    bars : how the first was trained, if it and maximum entropy are also to say goal above the
        probability that has the best F1 on the sites learned from, each left out in turn

    Returns
    -------
    One row a ``model``, with ``goal`` and ``site``, which was not learned from: ``macro``, mean F1
    of the labels that the site's pages have; ``micro``, share of pages that have the right label;
    ``goal_f1``, F1 of the label ``goal``
    """
    model = next(iter(chains.values()))
    x, y = _pages(model, learned)
    x_held, y_held = _pages(model, held)
    seen = y_held >= 0
    weight = page_weights(learned)[y >= 0]
    x, y, x_held = x[y >= 0], y[y >= 0], x_held[seen]
    there, there_held = x.sign(), x_held.sign()
    told: dict[str, NDArray[np.int64]] = {}
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


def _entropy(
    model: PathModel, x: csr_array, y: NDArray[np.int64], weight: NDArray[np.float64] | None
) -> LogisticRegression:
    return LogisticRegression(C=0.5 / model.crf.l2, max_iter=500).fit(x, y, weight)


def _probabilities(entropy: LogisticRegression, x: csr_array, labels: int) -> NDArray[np.float64]:
    """Return Pr(label) of each row, float64 (n, labels); 0 for labels that were not learned."""
    said = np.zeros((x.shape[0], labels))
    said[:, entropy.classes_] = entropy.predict_proba(x)
    return said


def _bars(learned: Corpus, training: TrainingOptions) -> tuple[float, float] | None:
    """Return from which Pr(goal) the chain and maximum entropy are to say goal.

    Those of the best F1 on sites learned from, each left out in turn; None, if there are too few.
    """
    said: list[NDArray[np.float64]] = []
    for rest, held in left_out(learned):
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


def _best_bar(said: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    precision, recall, bars = precision_recall_curve(true, said)
    f1 = 2 * precision * recall / np.maximum(precision + recall, _NONE)
    return float(bars[f1[:-1].argmax()])


def _above(said: NDArray[np.float64], bar: float) -> NDArray[np.int64]:
    """Return labels: goal where it has the probability `bar`, elsewhere the best other one."""
    return np.where(said[:, 0] >= bar, 0, 1 + said[:, 1:].argmax(axis=1))


def _f1(true: NDArray[np.int64], predicted: NDArray[np.int64], labels: list[int]) -> float:
    found: Any = f1_score(true, predicted, labels=labels, average="macro", zero_division=0.0)
    return float(found)


def _pages(model: PathModel, corpus: Corpus) -> tuple[csr_array, NDArray[np.int64]]:
    """Return the features of each page and the link to it, and its label; -1: not known."""
    observed = sequences(corpus, model.vocabulary).observed
    pages = _places(corpus)
    first = np.isin(pages, corpus.bounds[:-1])
    links = observed[np.where(first, pages, pages - 1)].multiply((~first)[:, None])
    known = np.concatenate(known_labels(corpus, model.states))[pages][:, : len(model.states)]
    labels = np.where(known.sum(axis=1) == 1, known.argmax(axis=1), -1)
    return (observed[pages] + links).tocsr(), labels


def page_weights(corpus: Corpus) -> NDArray[np.float64]:
    """Return what each page counts: 1 / m on one of m paths that leave the same pages."""
    siblings = Counter(path.pages[:-1] for path in corpus.paths)
    shares = [1.0 / siblings[path.pages[:-1]] for path in corpus.paths]
    return np.repeat(shares, [len(path.pages) for path in corpus.paths])


def _best_sequence(model: PathModel, corpus: Corpus) -> NDArray[np.int64]:
    """Return the labels of pages by the most probable sequence."""
    return model.crf.predict(sequences(corpus, model.vocabulary))[_places(corpus)]


def _marginals(model: PathModel, corpus: Corpus) -> NDArray[np.float64]:
    """Return Pr(label) of pages by all sequences, float64 (pages, K)."""
    said = model.crf.marginals(sequences(corpus, model.vocabulary))
    return said[_places(corpus), : len(model.states)]


def _places(corpus: Corpus) -> NDArray[np.int64]:
    """Return the places of pages: every other one of each path."""
    spans = zip(corpus.bounds[:-1].tolist(), corpus.bounds[1:].tolist(), strict=True)
    return np.concatenate([np.arange(start, end, 2) for start, end in spans])
