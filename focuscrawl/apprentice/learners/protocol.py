"""What every learner can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from focuscrawl.apprentice.learners.instances import Instances


class Learner(Protocol):
    """Learns expected relevance from instances."""

    def partial_fit(
        self,
        X: Instances,  # noqa: N803 - the name scikit-learn's API has
        y: NDArray[np.float64],
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Self:
        """Learn from instances whose relevance `y` (n,), in [0, 1], is known."""
        ...

    def predict(self, X: Instances) -> NDArray[np.float64]:  # noqa: N803
        """Return the relevance to be expected, or its chance to be high: float64 (n,)."""
        ...

    def get_state(self) -> dict[str, NDArray[np.generic]]:
        """Return all that was learned."""
        ...

    def set_state(self, state: Mapping[str, NDArray[np.generic]]) -> Self:
        """Take up what `get_state` returned."""
        ...
