"""A trained critic: the model, its calibration, and what it was trained and checked on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from focuscrawl.critic.discriminative import LogisticModel
from focuscrawl.critic.kept_pages import KeptPages
from focuscrawl.critic.phrase_model import OFF_TOPIC, WordsModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.critic.calibration import Calibration
    from focuscrawl.critic.focused_critic import TopicModel


@dataclass(frozen=True, slots=True)
class TrainedCritic:
    """A trained critic, as it is saved under ``models/NAME``.

    Attributes
    ----------
    model : the judge
    examples : (url, topic) of the training pages, by topic, then URL
    training_set : hex digest of the examples and their words
    absent : topics of the label table none of whose examples could be read
    calibration : fitted on held-out training pages; None if there were too few, or none
    calibrated : whether judgements are calibrated unless asked otherwise
    cross_validation : ``folds``, ``accuracy`` and the like, measured on the training pages;
        empty without examples
    skipped : examples that could not be used: ``not in the web``, ``not HTML``
    phrases : words of each phrase that it was learned from, where it was learned from little
    random_state : seed of the other pages that it was learned from then
    pages : words of the pages of `examples`, in that order, and of these others; none where it
        was not learned from little
    """

    model: TopicModel
    examples: tuple[tuple[str, str], ...] = ()
    training_set: str = ""
    absent: tuple[str, ...] = ()
    calibration: Calibration | None = None
    calibrated: bool = False
    cross_validation: Mapping[str, float] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    phrases: tuple[tuple[str, ...], ...] = ()
    random_state: int = 0
    pages: KeptPages = field(default_factory=KeptPages)


def is_from_little(trained: TrainedCritic) -> bool:
    """Tell whether a critic has one topic, learned from words, good or bad pages."""
    model = trained.model
    kinds = (LogisticModel, WordsModel)
    return isinstance(model, kinds) and OFF_TOPIC in model.classes and not trained.training_set
