"""Training the critic of a topic, and measuring it, as jobs."""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import open_plain, read_regular, write_whole
from focuscrawl.foundation.model_folder import MANIFEST
from focuscrawl.studio.jobs import JobState
from focuscrawl.topics import read_definition
from focuscrawl.webs.opening import check_named

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from focuscrawl.studio.jobs import Job
    from focuscrawl.studio.page_rendering import StudioContext
    from focuscrawl.studio.topic_folder import TopicFiles
    from focuscrawl.topics import TopicDefinition


TRAIN, MEASURE, FETCH = "train", "measure", "fetch"
#: new judgements after which the critic is trained again, which takes some seconds
RETRAIN_AFTER = 5
_N_OTHER_PAGES = 200  # pages fetched beside the examples
_MAX_FILE = 4 << 20  # bytes


def start_training(context: StudioContext, topic: TopicFiles) -> Job:
    """Train a critic from the definition, or return the training that runs.

    Pages are read from the recording that the definition names, or from what was fetched for it.
    If there is neither they are fetched, and others beside them. UserError if a crawl follows
    the definition: it trains its own critics.
    """
    _check_not_of_crawl(topic)
    definition = _read_definition(topic)
    with context.job_lock():
        running = context.jobs.running(TRAIN, topic.name)
        if running is not None:
            return running
        arguments = ["topic", "train", f"./{topic.name}", f"--out={topic.next_critic()}"]
        if definition.web is None:
            recordings = topic.recordings()
            arguments += [f"--web={each}" for each in recordings]
            if not recordings:
                arguments += [f"--others={_N_OTHER_PAGES}", f"--crawl-dir={topic.next_examples()}"]
        return context.jobs.start(TRAIN, topic.name, arguments)


def start_measuring(context: StudioContext, topic: TopicFiles) -> Job:
    """Measure the latest critic, and compare it with the one before."""
    with context.job_lock():
        running = context.jobs.running(MEASURE, topic.name)
        if running is not None:
            return running
        critics = topic.critics()
        if not critics:
            raise UserError(f"{topic.title} has no critic yet: train one first")
        critic = critics[-1]
        topic.examples_folder.mkdir(exist_ok=True)
        web = _read_definition(topic).web
        if web is not None:
            check_named(web, topic.name)
        webs = topic.recordings() if web is None else [web]
        topics, out = (
            ",".join(topic.marked_classes(critic)),
            topic.argument_of(_quality_file(critic)),
        )
        arguments = [
            "critic",
            "quality",
            topic.argument_of(critic),
            f"--topic={topics}",
            f"--out={out}",
        ]
        arguments += [f"--web={each}" for each in webs]
        if len(critics) > 1:
            arguments += [f"--before={topic.argument_of(critics[-2])}"]
        return context.jobs.start(MEASURE, topic.name, arguments)


def start_fetching(
    context: StudioContext, topic: TopicFiles, urls: Sequence[str], web: str | None
) -> Job:
    """Fetch pages to be judged, politely and within a crawl's limits; or read them from `web`.

    UserError if all were fetched before, or if a crawl follows the definition.
    """
    _check_not_of_crawl(topic)
    with context.job_lock():
        if context.jobs.running(FETCH, topic.name) is not None:
            raise UserError("pages are being fetched: name more when these are here")
        known = topic.fetched()
        new = [url for url in urls if url not in known]
        if not new:
            raise UserError("every one of these pages is here already: name others")
        folder = topic.next_examples()
        listed = context.folder.safe_path(f"{folder}/asked.txt")
        try:
            listed.parent.mkdir(parents=True)
            write_whole(listed, "\n".join(new) + "\n")
        except OSError as error:
            raise UserError(f"{listed} cannot be written: {error.strerror}") from None
        arguments = ["topic", "fetch", f"{folder}/asked.txt", f"--crawl-dir={folder}"]
        if web is not None:
            arguments.append(f"--web={web}")
        return context.jobs.start(FETCH, topic.name, arguments)


def _check_not_of_crawl(topic: TopicFiles) -> None:
    if topic.is_of_crawl:
        raise UserError(f"{topic.name} is what a crawl follows: judge pages of the crawl instead")


def _read_definition(topic: TopicFiles) -> TopicDefinition:
    """Read the definition; UserError if a file that it names is behind a link in the folder."""
    definition = read_definition(topic.path)
    for named in (definition.critic, definition.web):
        if named is not None and not PurePath(named).is_absolute() and "://" not in named:
            topic.folder.safe_path(named)
    return definition


def read_quality(critic: Path) -> dict[str, Any] | None:
    """Return what was measured of a critic, see `focuscrawl.critic.assessment`; None: nothing."""
    try:
        with open(_quality_file(critic), "rb", opener=open_plain) as file:
            found = json.loads(file.read(_MAX_FILE))
    except (OSError, UserError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def training_state(context: StudioContext, topic: TopicFiles) -> dict[str, Any]:
    """Return the jobs and critics of a topic.

    Returns
    -------
    ``training``, ``measuring``, ``fetching``: the last jobs, or None; ``critics``: names;
    ``quality`` of the latest; ``unmeasured``: whether it has to be measured, which no job does or
    has failed to do; ``running``: whether a job runs
    """
    critics = topic.critics()
    newest = context.jobs.all(subject=topic.name)
    jobs = {
        kind: next((job for job in newest if job.kind == kind), None)
        for kind in (TRAIN, MEASURE, FETCH)
    }
    quality = read_quality(critics[-1]) if critics else None
    measuring = jobs[MEASURE]
    tried = False
    if critics and measuring is not None:
        tried = f"--out={topic.argument_of(_quality_file(critics[-1]))}" in measuring.arguments
    running = any(job is not None and job.state is JobState.RUNNING for job in jobs.values())
    return {
        "training": jobs[TRAIN],
        "measuring": measuring,
        "fetching": jobs[FETCH],
        "critics": [context.folder.name_of(each) for each in critics],
        "quality": quality,
        "unmeasured": bool(critics) and quality is None and not tried,
        "running": running,
    }


def _quality_file(critic: Path) -> Path:
    """Return the file with the quality of a critic, named by the digest of its manifest."""
    digest = hashlib.sha256(read_regular(critic / MANIFEST)).hexdigest()[:12]
    return critic.parent / ".examples" / f"quality-{digest}.json"
