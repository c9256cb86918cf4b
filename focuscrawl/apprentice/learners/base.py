"""The base of learners: incremental linear estimators of relevance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from focuscrawl.apprentice.learners.matrix import Instances
    from focuscrawl.foundation.arrays import Floats


class Learner(ABC):
    """Learns expected relevance from instances: a linear sum of their features, and what it means.

    Parameters
    ----------
    n_features : size of the hashed space
    prior : weights of the dense inputs, then the intercept, before anything is learned (k + 1,)

    Attributes
    ----------
    unit_length : wants the features of an instance scaled to length 1; else they are ones
    remembers : keeps what it has learned from; else it wants old instances with the new ones
    """

    unit_length: bool
    remembers: bool

    def __init__(self, n_features: int, *, prior: Sequence[float] = (0.0,)) -> None:
        self.n_features = n_features
        self.prior = prior

    @abstractmethod
    def partial_fit(
        self,
        X: Instances,  # noqa: N803 - the name scikit-learn's API has
        y: Floats,
        sample_weight: Floats | None = None,
    ) -> Self:
        """Learn from instances whose relevance `y` (n,), in [0, 1], is known.

        Fitted attributes are replaced, not written to: a shallow copy made before stays as it is.
        """

    def margin(self, X: Instances) -> Floats:  # noqa: N803
        """Return the linear sums of instances, float64 (n,)."""
        weights, dense = self.linear()
        total: Floats = X.dense @ dense[:-1] + dense[-1]
        return total + X.dot(weights)

    def predict(self, X: Instances) -> Floats:  # noqa: N803
        """Return the relevance to be expected, or its chance to be high: float64 (n,)."""
        return self.response(self.margin(X))

    @abstractmethod
    def linear(self) -> tuple[Floats, Floats]:
        """Return the weights of hashed features (n_features,), and of dense inputs and intercept.

        Those of the prior before anything was learned.
        """

    @abstractmethod
    def response(self, margin: Floats) -> Floats:
        """Return what linear sums (n,) mean: expected relevance, in [0, 1]."""

    def believe(self) -> Self:
        """Take what was learned as the prior of what is learned from now on."""
        return self

    @abstractmethod
    def get_state(self) -> dict[str, NDArray[np.generic]]:
        """Return all that was learned."""

    @abstractmethod
    def set_state(self, state: Mapping[str, NDArray[np.generic]]) -> Self:
        """Take up what `get_state` returned."""
