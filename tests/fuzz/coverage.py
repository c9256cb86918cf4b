"""Looks for bytes that break what must hold, guided by which lines they reach (atheris)."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["focuscrawl"], enable_loader_override=False):
    from . import FOUND, WORK
    from .seeds import SEEDS
    from .targets import TARGETS

_MAX_BYTES = 4096
_MAX_SECONDS = 10  # an input that takes longer is a find


def main() -> None:
    """Fuzz one target; does not return."""
    name, seconds = sys.argv[1], int(sys.argv[2])
    found, folder = FOUND / name, WORK / name
    for each in (found, folder):
        each.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(SEEDS[name]):
        (folder / f"seed-{i}").write_bytes(seed)
    limits = [
        f"-max_total_time={seconds}",
        f"-max_len={_MAX_BYTES}",
        f"-timeout={_MAX_SECONDS}",
    ]
    options = [*limits, f"-artifact_prefix={found}/", "-rss_limit_mb=2048"]
    # new inputs that reach more go into the first folder, finds to the prefix
    atheris.Setup([sys.argv[0], str(folder), str(found), *options], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
