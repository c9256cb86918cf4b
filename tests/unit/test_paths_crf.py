"""The chain model against all sequences by hand, and against CRFsuite."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pycrfsuite
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array
from scipy.special import logsumexp

from focuscrawl.apprentice.hashing import row_pointers
from focuscrawl.paths import crf as chains
from focuscrawl.paths.crf import ChainCRF, Objective, Sequences, Structure
from focuscrawl.paths.states import printed_rewards, rewards

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RANDOM = st.integers(0, 2**32 - 1)


def _potentials(
    seed: int, *, length: int, states: int, spread: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Random potentials of one chain; about a third of the edges and some nodes impossible."""
    rng = np.random.default_rng(seed)
    nodes = rng.normal(0.0, spread, (1, length, states))
    edges = rng.normal(0.0, spread, (states, states))
    edges[rng.random(edges.shape) < 0.3] = -np.inf
    nodes[rng.random(nodes.shape) < 0.1] = -np.inf
    return nodes, edges


def _all_ways(
    nodes: NDArray[np.float64], edges: NDArray[np.float64]
) -> dict[tuple[int, ...], float]:
    _, length, states = nodes.shape
    return {
        way: float(
            sum(nodes[0, i, y] for i, y in enumerate(way))
            + sum(edges[a, b] for a, b in pairwise(way))
        )
        for way in product(range(states), repeat=length)
    }


@settings(max_examples=60, deadline=None)
@given(_RANDOM, st.integers(1, 5), st.integers(1, 4), st.sampled_from([0.5, 3.0, 400.0]))
def test_recursions_are_sums_over_all_sequences(
    seed: int, length: int, states: int, spread: float
) -> None:
    nodes, edges = _potentials(seed, length=length, states=states, spread=spread)
    ways = _all_ways(nodes, edges)
    z = float(logsumexp(list(ways.values())))
    alpha, beta = chains.forward(nodes, edges), chains.backward(nodes, edges)
    log_z = chains.log_partition(alpha)
    if z == -np.inf:
        assert log_z[0] == -np.inf
        return
    assert log_z[0] == pytest.approx(z, rel=1e-9, abs=1e-9)
    marginals = chains.node_marginals(alpha, beta, log_z)[0]
    expected, pairs = np.zeros((length, states)), np.zeros((states, states))
    for way, score in ways.items():
        p = np.exp(score - z)
        expected[range(length), way] += p
        for a, b in pairwise(way):
            pairs[a, b] += p
    np.testing.assert_allclose(marginals, expected, atol=1e-8)
    found = chains.edge_marginals(nodes, edges, alpha, beta, log_z=log_z, weight=np.ones(1))
    np.testing.assert_allclose(found, pairs, atol=1e-8)
    best = chains.viterbi(nodes, edges)[0]
    assert ways[tuple(best.tolist())] == pytest.approx(max(ways.values()))


def test_products_do_not_lose_what_only_a_far_state_can_reach() -> None:
    # the best state has no way on, and the other is e^-900 of it: 0 as a product of matrices
    left, edges = np.array([[0.0, -900.0]]), np.array([[-np.inf, 0.0], [0.0, -np.inf]])
    np.testing.assert_allclose(chains.log_product(left, edges), [[-900.0, 0.0]])


def _sequences(seed: int, *, chains_: int = 6, features: int = 5) -> Sequences:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, chains_)
    observed = (rng.random((int(lengths.sum()), features)) < 0.4).astype(np.float64)
    return Sequences(csr_array(observed), row_pointers(lengths))


def _ring(states: int) -> Structure:
    """Every state may be followed by itself and the next; begins in the first two; tied pairs."""
    edges = np.eye(states, dtype=np.bool_) | np.roll(np.eye(states, dtype=np.bool_), 1, axis=1)
    groups = np.vstack([np.eye(states, dtype=np.bool_), np.arange(states) < 2])
    return Structure(edges, np.arange(states) < 2, groups)


def _free(states: int) -> Structure:
    """Any state may follow any, and none are tied."""
    edges = np.ones((states, states), np.bool_)
    return Structure(edges, edges[0], np.eye(states, dtype=np.bool_))


def _walks(structure: Structure, sequences: Sequences, seed: int) -> NDArray[np.int64]:
    """Labels that the structure allows."""
    rng = np.random.default_rng(seed)
    labels = []
    for length in np.diff(sequences.bounds).tolist():
        state = int(rng.choice(np.flatnonzero(structure.starts)))
        for _ in range(length):
            labels.append(state)
            state = int(rng.choice(np.flatnonzero(structure.edges[state])))
    return np.array(labels)


@settings(max_examples=15, deadline=None)
@given(_RANDOM)
def test_gradient_is_that_of_the_objective(seed: int) -> None:
    rng = np.random.default_rng(seed)
    structure, sequences = _ring(3), _sequences(seed)
    known = np.eye(3, dtype=np.bool_)[_walks(structure, sequences, seed)]
    # of every third place it is known only that it is not in some state, or nothing at all
    known[::3] |= rng.random(known[::3].shape) < 0.6
    weight = rng.uniform(0.5, 2.0, len(sequences))
    objective = Objective(structure, sequences, known, weight, 0.3)
    at = rng.normal(0.0, 1.0, objective.parameters)
    _, gradient = objective(at)

    def value(weights: NDArray[np.float64]) -> float:
        return objective(weights)[0]

    numeric = approx_fprime(at, value, 1e-6)
    np.testing.assert_allclose(gradient, numeric, atol=2e-4)


def test_labels_that_cannot_follow_each_other_are_refused() -> None:
    sequences = Sequences(csr_array(np.ones((2, 1))), np.array([0, 2]))
    known = np.eye(3, dtype=np.bool_)[[0, 2]]
    with pytest.raises(ValueError, match="chain 0"):
        ChainCRF(_ring(3)).fit(sequences, known)


def test_agrees_with_crfsuite(tmp_path: Path) -> None:
    states, l2 = 3, 0.2
    sequences = _sequences(5, chains_=30)
    dense, bounds = sequences.observed.toarray(), sequences.bounds
    noise = np.random.default_rng(1).random(len(dense)) < 0.2
    labels = (dense[:, 0] + 2 * dense[:, 1] + noise).astype(int) % states
    known = np.eye(states, dtype=np.bool_)[labels]
    ours = ChainCRF(_free(states), l2=l2, max_iter=2000, tol=1e-13).fit(sequences, known)
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    every = {"feature.possible_states": True, "feature.possible_transitions": True}
    limits = {"max_iterations": 2000, "epsilon": 1e-9, "delta": 1e-12}
    trainer.set_params({"c1": 0.0, "c2": l2, **limits, **every})
    items = [[f"f{j}" for j in np.flatnonzero(row)] for row in dense]
    chains_ = [slice(start, end) for start, end in pairwise(bounds.tolist())]
    names = [str(label) for label in labels]
    for at in chains_:
        trainer.append(items[at], names[at])
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    info, theirs, edges = tagger.info(), np.zeros_like(ours.state_), np.zeros((states, states))
    for (feature, label), value in info.state_features.items():
        theirs[int(feature[1:]), int(label)] = value
    for (before, after), value in info.transitions.items():
        edges[int(before), int(after)] = value
    np.testing.assert_allclose(ours.state_, theirs, atol=2e-3)
    np.testing.assert_allclose(ours.edge_, edges, atol=2e-3)
    marginals, best = ours.marginals(sequences), ours.predict(sequences)
    weights = np.concatenate([ours.shared_.ravel(), ours.edge_.ravel()])
    for c, at in enumerate(chains_):
        tagger.set(items[at])
        assert tagger.tag() == [str(label) for label in best[at]]
        their = [[tagger.marginal(str(y), i) for y in range(states)] for i in range(len(best[at]))]
        np.testing.assert_allclose(marginals[at], their, atol=1e-3)
        alone = Objective(ours.structure, sequences, known, np.eye(len(sequences))[c], 0.0)
        expected = np.log(tagger.probability(names[at]))
        assert -alone(weights)[0] == pytest.approx(expected, abs=5e-3)


def test_tied_states_learn_from_each_other() -> None:
    # the feature was seen in state 0 only; state 1 shares a group with it, state 2 does not
    observed = csr_array(np.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 12))
    sequences = Sequences(observed, np.arange(19))
    labels = np.array([0] * 6 + [1] * 6 + [2] * 6)
    structure = Structure(
        np.ones((3, 3), np.bool_),
        np.ones(3, np.bool_),
        np.vstack([np.eye(3, dtype=np.bool_), [True, True, False]]),
    )
    crf = ChainCRF(structure).fit(sequences, np.eye(3, dtype=np.bool_)[labels])
    assert crf.state_[0, 0] > crf.state_[0, 1] > crf.state_[0, 2]


def test_rewards_are_what_lies_ahead() -> None:
    # 0 goal, 1 fail, 2 on the way: sure of everything, so the values are powers of gamma
    structure = _free(3)
    crf = ChainCRF(structure)
    crf.set_weights(np.eye(3) * 40.0, np.zeros((3, 3)))
    paths = csr_array(np.eye(3)[[2, 2, 0, 2, 1]])
    found = rewards(crf, Sequences(paths, np.array([0, 3, 5])), gamma=0.5)
    # on the way: 1/4 and 1/2 before the goal, 0 before the fail
    np.testing.assert_allclose(found[2], (0.25 + 0.5 + 0.0) / 3, atol=1e-6)
    assert found[1] == pytest.approx(0.0, abs=1e-6)


def test_printed_rewards_are_weights_of_all_ways_on_to_a_goal() -> None:
    rng = np.random.default_rng(3)
    crf = ChainCRF(_free(3))
    crf.set_weights(rng.normal(size=(4, 3)), rng.normal(size=(3, 3)))
    seen = rng.random((7, 4))
    bounds = np.array([0, 4, 7])
    found = printed_rewards(crf, Sequences(csr_array(seen), bounds), gamma=0.5)
    expected = np.zeros(3)
    for start, end in pairwise(bounds.tolist()):
        nodes = seen[start:end] @ crf.state_
        weights = 0.5 ** np.arange(1, end - start)
        for k in range(1, end - start):
            for way in product(range(3), repeat=k):
                if way[-1] == 0:
                    ahead = sum(nodes[end - start - k + i, y] for i, y in enumerate(way))
                    ahead += sum(crf.edge_[a, b] for a, b in pairwise(way))
                    expected += (
                        weights[k - 1] / weights.sum() * np.exp(ahead + crf.edge_[:, way[0]])
                    )
    np.testing.assert_allclose(found, expected / expected.max())
