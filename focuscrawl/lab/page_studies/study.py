"""All page studies of one topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.critic import load_critic
from focuscrawl.lab.page_studies.accuracy import accuracy_table
from focuscrawl.lab.page_studies.authorities import authority_table
from focuscrawl.lab.page_studies.instances import sample_instances
from focuscrawl.lab.page_studies.offsets import gain_table, rate_table, tag_table
from focuscrawl.lab.whole_web import whole_web
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    import pandas as pd

    from focuscrawl.lab.topic_tasks import Task


def study_pages(task: Task) -> dict[str, pd.DataFrame]:
    """Return the tables of a topic by name: [A02] figures 6 to 9 and section 3.8, and [F99]."""
    web = open_web(task.recording)
    whole = whole_web(web, load_critic(task.critic, task.topic))
    instances = sample_instances(web, whole, task.topic, task.seeds)
    return {
        "accuracy": accuracy_table(instances, whole),
        "gain": gain_table(instances),
        "rates": rate_table(instances),
        "tags": tag_table(web, whole, instances),
        "authorities": authority_table(whole, task.topic, task.seeds),
    }
