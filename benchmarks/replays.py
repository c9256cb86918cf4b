"""What the benchmarks crawl: the recorded webs, a critic for each, `scrapy crawl` in a process."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

from focuscrawl.foundation.files import cache_dir

ROOT = Path(__file__).resolve().parents[1]
WEBS = Path(os.environ.get("FOCUSCRAWL_WEBS", ROOT.parent / "shared" / "webs"))
KEPT = cache_dir() / "bench"


def run(command: list[str]) -> None:
    """Run `command` in the project's folder; what it says is shown when it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def available(name: str) -> bool:
    return (WEBS / f"{name}.warc.xz").exists()


def recording(name: str) -> Path:
    """The unpacked web `name`, unpacked when it is not there yet."""
    path = cache_dir() / "recorded" / f"{name}.warc"
    if not path.exists():
        run([sys.executable, str(WEBS / "unpack"), name, str(path.parent)])
    return path


def critic(name: str, kind: str = "discriminative") -> Path:
    """A critic of the web's own labels, trained when it is not there yet."""
    folder = KEPT / "critics" / (name if kind == "discriminative" else f"{name}-{kind}")
    if not folder.exists():
        labels = WEBS / name / "labels.csv"
        web = recording(name)
        arguments = [str(labels), "--web", str(web), "--kind", kind, "--out", str(folder)]
        run([str(Path(sys.executable).with_name("focuscrawl")), "critic", "train", *arguments])
    return folder


def seeds(name: str) -> Path:
    return WEBS / name / "seeds.csv"


def topics(name: str) -> list[str]:
    """The topics that have seeds, in the order of the file."""
    with seeds(name).open(encoding="utf-8", newline="") as file:
        return list(dict.fromkeys(row["topic"] for row in csv.DictReader(file)))


def focused(
    name: str,
    topic: str,
    strategy: str,
    budget: int,
    crawl_dir: Path,
    *,
    kind: str = "discriminative",
) -> list[str]:
    """The command of a focused crawl of the web `name`; `kind` of critic."""
    arguments = {
        "topic": topic,
        "seeds": seeds(name),
        "critic": critic(name, kind),
        "strategy": strategy,
        "budget": budget,
        "web": recording(name),
        "crawl_dir": crawl_dir,
    }
    given = [part for key, value in arguments.items() for part in ("-a", f"{key}={value}")]
    return [sys.executable, "-m", "scrapy", "crawl", "focused", *given, "-L", "WARNING"]
