"""Look for bytes that break what must hold, guided by which lines they reach.

Run: ``make fuzz``, or ``python -m fuzz TARGET SECONDS`` in ``tests``. What is found goes to
``tests/fuzz/found/TARGET`` and is run by the tests from then on; exit code 1.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["focuscrawl"], enable_loader_override=False):
    from . import FOUND
    from .targets import SEEDS, TARGETS

_MAX_BYTES = 4096
_MAX_SECONDS = 10  # an input that takes longer is a find


def main() -> None:
    """Fuzz one target, or all, one after another."""
    name, seconds = sys.argv[1], int(sys.argv[2])
    if name == "all":
        command = [sys.executable, "-m", "fuzz"]
        runs = [subprocess.run([*command, each, str(seconds)], check=False) for each in TARGETS]
        sys.exit(int(any(run.returncode for run in runs)))
    found = FOUND / name
    found.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for i, seed in enumerate(SEEDS[name]):
            (Path(folder) / f"seed-{i}").write_bytes(seed)
        limits = [
            f"-max_total_time={seconds}",
            f"-max_len={_MAX_BYTES}",
            f"-timeout={_MAX_SECONDS}",
        ]
        options = [*limits, f"-artifact_prefix={found}/", "-rss_limit_mb=2048", "-seed=1"]
        # new inputs that reach more go into the first folder, finds to the prefix
        atheris.Setup([sys.argv[0], folder, str(found), *options], TARGETS[name])
        atheris.Fuzz()


if __name__ == "__main__":
    main()
