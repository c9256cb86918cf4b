"""Starts jobs that fetch example pages of a topic, and that train and measure its critic."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import (
    open_nofollow,
    read_regular,
    reporting_write_errors,
    write_atomically,
)
from focuscrawl.foundation.model_folder import MANIFEST
from focuscrawl.studio.jobs import JobState
from focuscrawl.studio.topic_folder import count_new_judgements
from focuscrawl.topics import read_definition
from focuscrawl.webs.opening import check_web_from_file

if TYPE_CHECKING:
    from focuscrawl.studio.jobs import Job
    from focuscrawl.studio.page_rendering import StudioContext
    from focuscrawl.studio.topic_folder import TopicFiles
    from focuscrawl.topics import TopicDefinition


TRAIN, MEASURE, FETCH = "train", "measure", "fetch"
RETRAIN_AFTER = 5  #: new judgements before the critic is retrained, which takes some seconds
_N_OTHER_PAGES = 200  # pages to fetch as a sample of other pages
_MAX_FILE = 4 << 20  # bytes


def start_training(context: StudioContext, topic: TopicFiles) -> Job:
    """Start a job that trains a critic from a topic definition, or return the running job.

    Example pages are read from the recording that the topic definition names, or from recordings
    of fetched examples, or from the demo web. Judged pages of crawls are read from the recordings
    of the crawls. Without recordings, the job fetches the example pages, and a sample of other
    pages.
    """
    check_not_of_crawl(topic)
    definition = _read_definition(topic)
    with context.job_lock():
        running = context.jobs.running(TRAIN, topic.name)
        if running is not None:
            return running
        arguments = ["topic", "train", f"./{topic.name}", f"--out={topic.next_critic()}"]
        recordings = topic.recordings() if definition.web is None else [definition.web]
        if not recordings:
            recording = context.folder.recording_of(sorted(definition.judged_urls), "")
            recordings = [] if recording is None else [recording]
        if recordings:
            more = [*recordings, *topic.judged_recordings()]
            arguments += [
                f"--web={each}" for each in dict.fromkeys(more) if each != definition.web
            ]
        else:
            arguments += [f"--others={_N_OTHER_PAGES}", f"--crawl-dir={topic.next_examples()}"]
        return context.jobs.start(TRAIN, topic.name, arguments)


def retrain(context: StudioContext, topic: TopicFiles) -> None:
    """Train a new critic if persons have judged enough pages since the last training."""
    if topic.critics() and count_new_judgements(topic) >= RETRAIN_AFTER:
        start_training(context, topic)


def start_measuring(context: StudioContext, topic: TopicFiles) -> Job:
    """Start a job that measures the quality of the latest critic and of the previous critic."""
    with context.job_lock():
        running = context.jobs.running(MEASURE, topic.name)
        if running is not None:
            return running
        critics = topic.critics()
        if not critics:
            raise UserError(f"{topic.title} has no critic yet: train a critic first")
        critic = critics[-1]
        topic.examples_folder.mkdir(exist_ok=True)
        web = _read_definition(topic).web
        if web is not None:
            check_web_from_file(web, topic.name)
        webs = [*(topic.recordings() if web is None else [web]), *topic.judged_recordings()]
        arguments = [
            *("critic", "quality", topic.argument_of(critic)),
            f"--topic={','.join(topic.marked_classes(critic))}",
            f"--out={topic.argument_of(_quality_file(critic))}",
        ]
        arguments += [f"--web={each}" for each in dict.fromkeys(webs)]
        if len(critics) > 1:
            arguments += [f"--before={topic.argument_of(critics[-2])}"]
        return context.jobs.start(MEASURE, topic.name, arguments)


def start_fetching(
    context: StudioContext, topic: TopicFiles, urls: Sequence[str], web: str | None
) -> Job:
    """Start a job that fetches pages for a person to judge, or finds pages in a recording."""
    check_not_of_crawl(topic)
    with context.job_lock():
        if context.jobs.running(FETCH, topic.name) is not None:
            raise UserError("earlier pages are still being fetched: add further pages afterwards")
        known = topic.fetched()
        new = [url for url in urls if url not in known]
        if not new:
            raise UserError("all of these pages were fetched before: add other pages")
        folder = topic.next_examples()
        file = context.folder.safe_path(f"{folder}/asked.txt")
        with reporting_write_errors(file):
            file.parent.mkdir(parents=True)
            write_atomically(file, "\n".join(new) + "\n")
        arguments = ["topic", "fetch", f"{folder}/asked.txt", f"--crawl-dir={folder}"]
        if web is not None:
            arguments.append(f"--web={web}")
        return context.jobs.start(FETCH, topic.name, arguments)


def delete_topic(context: StudioContext, topic: TopicFiles) -> None:
    """Delete a topic that has no critic, with its example pages.

    A topic with a critic is kept, because crawls may use the critic.
    """
    check_not_of_crawl(topic)
    with context.job_lock():
        if any(job.state is JobState.RUNNING for job in context.jobs.all(subject=topic.name)):
            raise UserError(f"{topic.title} is being trained: stop the training under Activity")
        if topic.critics():
            raise UserError(f"{topic.title} has a critic, which crawls may use")
        shutil.rmtree(topic.examples_folder, ignore_errors=True)
        topic.path.unlink(missing_ok=True)
        context.jobs.remove(topic.name)  # a new topic may get the same name
        if topic.path.parent != context.folder.root:
            with suppress(OSError):  # the folder has other files
                topic.path.parent.rmdir()


def check_not_of_crawl(topic: TopicFiles) -> None:
    """Raise `UserError` if a topic definition belongs to a crawl."""
    if topic.is_of_crawl:
        raise UserError(f"{topic.name} belongs to a crawl: judge pages of the crawl instead")


def _read_definition(topic: TopicFiles) -> TopicDefinition:
    """Read the definition; raise `UserError` if a path in it contains a symbolic link."""
    definition = read_definition(topic.path)
    for named in (definition.critic, definition.web):
        if named is not None and not PurePath(named).is_absolute() and "://" not in named:
            topic.folder.safe_path(named)
    return definition


def read_quality(critic: Path) -> dict[str, Any] | None:
    """Return the measured quality of a critic; None if the quality was not measured."""
    try:
        with open(_quality_file(critic), "rb", opener=open_nofollow) as file:
            found = json.loads(file.read(_MAX_FILE))
    except (OSError, UserError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def training_state(context: StudioContext, topic: TopicFiles) -> dict[str, Any]:
    """Return the latest jobs and the critics of a topic for the JSON API.

    The fields ``training``, ``measuring`` and ``fetching`` contain the latest job of each kind, or
    None. The field ``critics`` contains the names of the critics, and ``quality`` the measured
    quality of the latest critic, or None. The field ``unread`` contains the URLs of judged pages
    that the latest training could not read. The field ``unmeasured`` is True if no job has tried
    to measure the latest critic. The field ``running`` is True if a job is running.
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
        "unread": topic.unread_urls(),
        "unmeasured": bool(critics) and quality is None and not tried,
        "running": running,
    }


def _quality_file(critic: Path) -> Path:
    """Return the path of a critic's measured quality, named by the digest of its manifest."""
    digest = hashlib.sha256(read_regular(critic / MANIFEST)).hexdigest()[:12]
    return critic.parent / ".examples" / f"quality-{digest}.json"
