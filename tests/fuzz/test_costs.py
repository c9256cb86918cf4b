"""What costs much is measured, what was found stays mended, and the search finds what there is."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from longer import long

from . import CORPUS, FOUND, ROOT
from .costs import Cost, Limit
from .growth import LARGEST, grown
from .seeds import SEEDS, WORDS
from .targets import COSTS

if TYPE_CHECKING:
    from pathlib import Path

_LIMIT = Limit(microseconds=1, memory=100)
_SLOW = """
import sys
from fuzz import costs, searching, targets
from pathlib import Path

def square(data):
    sum(1 for _ in data.split() for _ in data.split())

def hoard(data):
    return b"x" * (20_000 * data.count(b"<p>"))

def hang(data):
    while b"<td><td>" in data:
        pass

searching.COSTS = {"page": (globals()[sys.argv[1]], costs.Limit(5, 500))}
searching.FOUND = searching.WORK = searching.CORPUS = Path(sys.argv[2])
costs.DEADLINE = 1.0
search = searching.Search("page", random_state=0)
while not search.finds:
    search.run(5)
"""


def _python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that has no threads yet, since it forks."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize("name", ["page", *long(*(name for name in COSTS if name != "page"))])
def test_what_cost_the_most_is_within_the_limits(name: str) -> None:
    code = "import sys; from fuzz.searching import check_all; sys.exit(check_all(sys.argv[1]))"
    done = _python(code, name)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("slow", "said"), [("square", " s"), *long(("hoard", "MiB"), ("hang", "not done"))]
)
def test_what_costs_too_much_is_found(slow: str, said: str, tmp_path: Path) -> None:
    done = _python(_SLOW, slow, tmp_path)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert list((tmp_path / "page-costs").glob("*.gz"))


def test_half_a_second_and_64_mebibytes_are_free() -> None:
    assert _LIMIT.excess(b"", Cost(0.5, 64 << 20)) is None
    assert _LIMIT.excess(b"a" * 1_000_000, Cost(1.4, 150 << 20)) is None
    assert _LIMIT.excess(b"a" * 1_000_000, Cost(1.6, 0)) == "1.60 s for 1,000,000 bytes"
    assert _LIMIT.excess(b"a", Cost(0, 65 << 20)) == "65 MiB for 1 bytes"
    assert _LIMIT.excess(b"", Cost(0, 0, "broken")) == "broken"


@pytest.mark.parametrize("name", SEEDS)
def test_inputs_grow_within_bounds(name: str) -> None:
    rng = random.Random(0)
    seeds = SEEDS[name]
    grew = [grown(rng.choice(seeds), seeds, WORDS[name], rng) for _ in range(300)]
    assert max(map(len, grew)) <= LARGEST
    assert sum(len(data) > 10 * max(map(len, seeds)) for data in grew) > 30
    grew = [b""]
    while len(grew) < 50:
        grew.append(grown(grew[-1], [b""], WORDS[name], rng))


def test_the_corpus_is_small() -> None:
    files = [path for folder in (CORPUS, FOUND) for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 200_000
