"""Learners behind one estimator API: ``partial_fit(X, y, sample_weight)`` and ``predict(X)``.

No logic in ``__init__``; what is fitted ends in ``_``; ``get_state`` and ``set_state`` carry it
through a restart as plain arrays.
"""

from focuscrawl.apprentice.learners.base import Learner
from focuscrawl.apprentice.learners.linear import LinearRegressor, LogisticLearner
from focuscrawl.apprentice.learners.matrix import Instances
from focuscrawl.apprentice.learners.naive_bayes import NaiveBayesLearner

__all__ = [
    "Instances",
    "Learner",
    "LinearRegressor",
    "LogisticLearner",
    "NaiveBayesLearner",
]
