"""Loading a critic by its name or folder, and pointing it at topics."""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.critic.callable_critic import CustomCritic, is_callable_spec, load_custom
from focuscrawl.critic.files import read_critic
from focuscrawl.critic.focused_critic import FocusedCritic
from focuscrawl.critic.trained import is_from_little
from focuscrawl.errors import UserError
from focuscrawl.foundation.model_folder import MANIFEST
from focuscrawl.taxonomy import Taxonomy, read_topics

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.resources.abc import Traversable

    from focuscrawl.critic.trained import TrainedCritic


def load_critic(
    spec: str, topic: str, *, calibrated: bool | None = None
) -> FocusedCritic | CustomCritic:
    """Load a critic and point it at topics.

    Parameters
    ----------
    spec : folder of a trained critic, its name under ``models/``, or ``module:callable``
    topic : topic paths, comma-separated; topics below them are marked too
    calibrated : whether judgements are calibrated; None for what was chosen at training

    Raises
    ------
    UserError
        If there is no such critic, it is damaged, it does not know a topic or has no example
        of it, or has no calibration and is asked for one.
    """
    if is_callable_spec(spec) and not Path(spec).exists():
        if calibrated:
            raise UserError(f"critic {spec}: a callable has no calibration; leave it out")
        return load_custom(spec, _topics(topic))
    return load_trained(spec, topic, calibrated=calibrated)


def load_trained(spec: str, topic: str, *, calibrated: bool | None = None) -> FocusedCritic:
    """As `load_critic`, of a name that may come from a file: it runs nobody's program.

    Parameters
    ----------
    spec : folder of a trained critic, or its name under ``models/``
    """
    topics = _topics(topic)
    folder = find_model(spec)
    trained, digest = read_critic(folder)
    calibrate = trained.calibrated if calibrated is None else calibrated
    if calibrate and trained.calibration is None:
        raise UserError(f"{folder}: a critic from words alone has no calibration; leave it out")
    marked = _marked(folder, trained, topics)
    focus = "\0".join([digest, f"calibrated={calibrate}", *sorted(marked)])
    return FocusedCritic(
        trained.model,
        np.array([path in marked for path in trained.model.classes]),
        tuple(url for url, path in trained.examples if path in marked),
        hashlib.sha256(focus.encode()).hexdigest(),
        trained.calibration if calibrate else None,
        trained.phrases,
        by_main_text=is_from_little(trained),
    )


def refuse_program(name: str, where: str, option: str) -> str:
    """Return the name of a critic that a file has named, unless that is ``module:callable``.

    Parameters
    ----------
    where : it is named, for the message
    option : that a user can name it with

    Raises
    ------
    UserError
        It is: the file may be a stranger's, and only a user says what is run.
    """
    if is_callable_spec(name):
        raise UserError(f"{where}: its critic {name} is a program: run it with {option}{name}")
    return name


def find_model(spec: str) -> Traversable:
    """Return the folder of the trained critic that `spec` names: a path, or a name in `models`.

    It may lie in an archive that the package was imported from.

    Raises
    ------
    UserError
        If there is none; it names those that there are.
    """
    path = Path(spec).expanduser()
    if (path / MANIFEST).is_file():
        return path
    name = spec.removeprefix("models/")
    if name and not Path(name).is_absolute():
        for models in model_folders():
            if (models / name / MANIFEST).is_file():
                return models / name
    known = sorted({name for models in model_folders() for name in _critics(models)})
    there = f"there are {', '.join(known)}" if known else "train one: focuscrawl critic train"
    raise UserError(f"no critic {spec}; {there}")


def model_file(name: str) -> Traversable | None:
    """Return the file ``models/...`` that comes with the package; None if there is none."""
    start, slash, rest = name.partition("models/")
    if slash and not start and ".." not in rest.split("/"):
        for models in model_folders()[1:]:
            if (models / rest).is_file():
                return models / rest
    return None


def model_folders() -> list[Traversable]:
    """Return where models are looked up: here, beside the package, and inside it."""
    package = resources.files("focuscrawl")
    beside = [package.resolve().parent / "models"] if isinstance(package, Path) else []
    return [Path("models"), *beside, package / "models"]


def _topics(topic: str) -> tuple[str, ...]:
    """Return the topic paths in a text, normalised."""
    topics = read_topics(topic)
    if not topics:
        raise UserError("no topic named; give topic paths, comma-separated")
    return topics


def _critics(models: Traversable) -> list[str]:
    """Name the critics in a folder, which need not be there."""
    if not models.is_dir():
        return []
    return [each.name for each in models.iterdir() if (each / MANIFEST).is_file()]


def _marked(folder: Traversable, trained: TrainedCritic, topics: Sequence[str]) -> set[str]:
    """Return the leaves at or below `topics`."""
    # by class, not by example: a critic from words has classes and no examples
    classes = Taxonomy({path: [] for path in trained.model.classes})
    marked: set[str] = set()
    for topic in topics:
        if topic in trained.absent:
            raise UserError(
                f"{folder}: topic {topic} had no example that could be read; train again with "
                "examples that the web has"
            )
        if topic not in classes:
            near = classes.nearest(topic) or list(classes.leaves[:5])
            raise UserError(f"{folder}: unknown topic {topic}; near it: {', '.join(near)}")
        marked.update(classes.leaves_under(topic))
    return marked
