"""How well the labels of a path's pages are told: the chain, and each page by itself [C 4]."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

from focuscrawl.paths.training import known_labels, sequences

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from focuscrawl.paths.model import PathModel
    from focuscrawl.paths.training import Corpus


def score_labels(
    model: PathModel, learned: Corpus, held: Corpus, goal: str, site: str
) -> list[dict[str, object]]:
    """Compare the chain with classifiers of single pages on the same features.

    A page has the features of its own and those of the link to it, which the chain has in two
    places. Labels are those of `PathStates`; with distances, pages whose distance no path says
    are left out. The penalty of maximum entropy is that of the chain, and pages weigh as much, 1/m
    of m paths that leave the same pages; also told is what it is if each counts once. Naive Bayes
    counts each feature as 1.

    Returns
    -------
    One row a ``model``, with ``goal`` and ``site``, which was not learned from: ``macro``, mean F1
    of the labels that the site's pages have; ``micro``, share of pages that have the right label;
    ``goal_f1``, F1 of the label ``goal``
    """
    x, y = _pages(model, learned)
    x_held, y_held = _pages(model, held)
    sequence, singly = _chain(model, held)
    seen = y_held >= 0
    weight = page_weights(learned)[y >= 0]
    x, y, x_held = x[y >= 0], y[y >= 0], x_held[seen]
    there, there_held = x.sign(), x_held.sign()

    def entropy(weight: NDArray[np.float64] | None) -> NDArray[np.int64]:
        fitted = LogisticRegression(C=0.5 / model.crf.l2, max_iter=500).fit(x, y, weight)
        told: NDArray[np.int64] = fitted.predict(x_held)
        return told

    names = {
        "CRF, best sequence": sequence[seen],
        "CRF, best label": singly[seen],
        "naive Bayes": MultinomialNB().fit(there, y).predict(there_held),
        "Bernoulli naive Bayes": BernoulliNB().fit(there, y).predict(there_held),
        "maximum entropy": entropy(weight),
        "maximum entropy, unweighed": entropy(None),
    }
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
        for name, predicted in names.items()
    ]


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


def _chain(model: PathModel, corpus: Corpus) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the labels of pages by the most probable sequence, and each most probable one."""
    observed, pages = sequences(corpus, model.vocabulary), _places(corpus)
    singly = model.crf.marginals(observed)[pages, : len(model.states)].argmax(axis=1)
    return model.crf.predict(observed)[pages], singly


def _places(corpus: Corpus) -> NDArray[np.int64]:
    """Return the places of pages: every other one of each path."""
    spans = zip(corpus.bounds[:-1].tolist(), corpus.bounds[1:].tolist(), strict=True)
    return np.concatenate([np.arange(start, end, 2) for start, end in spans])
