"""A lab that is killed leaves nobody behind who would work on beside the next one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from .running import ROOT

LONG = 600  # seconds after which a process hangs
STUDY = f"""
title = "endless"
budget = 25
[[webs]]
name = "demo"
recording = "demo"
labels = "{ROOT}/models/demo/examples.csv"
seeds = "{ROOT}/models/demo/seeds.csv"
topics = ["/Sports/Cycling"]
critic = "endless:judge"
[[strategies]]
strategy = "best-first"
"""
ENDLESS = """
import time
from pathlib import Path

def judge(page):
    Path("begun").touch()
    time.sleep(3600)

def work(task):
    judge(None)
"""
TOPICS = """
from endless import work
from studies.topic_tasks import Task, do_all

if __name__ == "__main__":
    task = Task("k", "w", "demo", "models/demo", "/a", (), "labels.csv", 1, "task", "")
    list(do_all(work, [task], 1))
"""


def assert_all_end_with_it(folder: Path, *command: str) -> None:
    """Kill a process when those that it has begun are at work, and wait for their end."""
    (folder / "endless.py").write_text(ENDLESS)
    process = subprocess.Popen(
        [sys.executable, *command], cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)}
    )
    while not (folder / "begun").exists():
        assert process.poll() is None
        time.sleep(0.05)
    begun = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    assert begun
    left = psutil.wait_procs(begun, timeout=LONG)[1]
    for each in left:
        each.kill()
    assert not left


def test_crawls_of_a_study_end_with_it(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    run = ("-m", "focuscrawl", "lab", "run", "study.toml", "--out", "out")
    assert_all_end_with_it(tmp_path, *run)


def test_work_on_topics_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "topics.py").write_text(TOPICS)
    assert_all_end_with_it(tmp_path, "topics.py")
