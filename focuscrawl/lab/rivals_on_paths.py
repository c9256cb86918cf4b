"""Rivals that learn from the same paths: Q-values, and context graphs [C 1.1].

Both are put as chains without a chain: what tells the labels of a page or a link is naive Bayes on
its features alone; the forager, and the factor for the domain, are those of the model they are
compared with. Labels are distances to the next goal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.naive_bayes import MultinomialNB

from focuscrawl.paths.crf import ChainCRF
from focuscrawl.paths.model import PathModel
from focuscrawl.paths.states import PathStates
from focuscrawl.paths.training import choose_features, known_labels, sequences, share_away

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.paths.training import Corpus, TrainingOptions

_GAMMA = 0.5  # a click, as Rennie and McCallum have it
_NEVER = -50.0  # log-potential


def q_values(corpus: Corpus, training: TrainingOptions) -> PathModel:
    """Return the value of a link by its own words (Rennie and McCallum 1999).

    Naive Bayes tells how far behind the link the next goal is; the score is the mean of
    ``gamma ** distance``, 0 for a fail. The page a link is on has no say.
    """
    model = _untrained(corpus, training)
    k = len(model.states)
    words, prior = _naive_bayes(corpus, model, links=True)
    state, edge = np.zeros_like(model.crf.shared_), np.zeros_like(model.crf.edge_)
    state[:, k:] = words
    edge[:k, k:] = prior
    model.crf.set_weights(state, edge)
    return model


def context_graphs(corpus: Corpus, training: TrainingOptions) -> PathModel:
    """Return the layer of a page by its own words (Diligenti et al. 2000).

    All links of a page have its layer, and are worth ``gamma ** layer``. What a page is given is
    mixed with the layer of the page before, which naive Bayes on its words outvotes.
    """
    model = _untrained(corpus, training)
    k = len(model.states)
    words, _ = _naive_bayes(corpus, model, links=False)
    state, edge = np.zeros_like(model.crf.shared_), np.zeros_like(model.crf.edge_)
    state[:, :k] = words
    edge[:k, k:] = np.where(np.eye(k, dtype=np.bool_), 0.0, _NEVER)
    model.crf.set_weights(state, edge)
    return model


def _untrained(corpus: Corpus, training: TrainingOptions) -> PathModel:
    vocabulary = choose_features(corpus)
    states = PathStates.supervised([str(i) for i in range(1, training.farthest + 1)])
    crf = ChainCRF(states.structure)
    crf.set_weights(np.zeros((len(vocabulary), 2 * len(states))), np.zeros((2 * len(states),) * 2))
    rewards = np.array([1.0, 0.0, *(_GAMMA**i for i in range(1, training.farthest + 1))])
    return PathModel(states, vocabulary, crf, rewards, share_away(corpus), training.reading)


def _naive_bayes(
    corpus: Corpus, model: PathModel, *, links: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log Pr(feature | label), float64 (features, K), and log Pr(label), float64 (K,).

    Learned from the pages or the links whose distance is known.
    """
    k = len(model.states)
    distances = PathStates.partially_supervised(k - 2)
    known = np.concatenate(known_labels(corpus, distances))
    known = known[:, k:] if links else known[:, :k]
    there = known.sum(axis=1) == 1
    observed = sequences(corpus, model.vocabulary).observed[there]
    fitted = MultinomialNB().fit(observed, known[there].argmax(axis=1))
    words = np.full((observed.shape[1], k), fitted.feature_log_prob_.min())
    words[:, fitted.classes_] = fitted.feature_log_prob_.T
    prior = np.full(k, _NEVER)
    prior[fitted.classes_] = fitted.class_log_prior_
    return words, prior
