"""Look for inputs that break what must hold, or cost too much.

Run: ``make fuzz``, or ``python -m fuzz NAME SECONDS`` in ``tests``; a name is that of a target
(bytes that break something), of a target and ``-costs`` (what takes time and memory), ``live``
(answers of servers to a whole crawl), ``folders`` (what a stranger gives away, to commands and to
the studio), or ``all``, one after another. What is found goes to
``tests/fuzz/found`` and is run by the tests from then on; exit code 1. A search goes on where the
last one was (``.fuzz``).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from .targets import COSTS, TARGETS

NAMES = [*TARGETS, *(f"{name}-costs" for name in COSTS), "live", "folders"]


def main() -> None:
    """Run one search, or all of them."""
    name, seconds = sys.argv[1], sys.argv[2]
    if name == "all":
        command = [sys.executable, "-m", "fuzz"]
        codes = [subprocess.run([*command, each, seconds], check=False) for each in NAMES]
        sys.exit(int(any(code.returncode for code in codes)))
    if name in TARGETS:
        sys.exit(_coverage(name, seconds))
    if name == "live":
        from . import live  # noqa: PLC0415 - the others need no crawls

        sys.exit(live.main(float(seconds)))
    if name == "folders":
        from . import folders  # noqa: PLC0415 - nor these

        sys.exit(folders.main(float(seconds)))
    if name.removesuffix("-costs") not in COSTS:
        sys.exit(f"no search {name}; there are {', '.join(NAMES)}, all")
    from .searching import Search  # noqa: PLC0415

    search = Search(name.removesuffix("-costs"), random_state=time.time_ns())
    print(search.run(float(seconds)))  # noqa: T201
    sys.exit(int(bool(search.finds)))


def _coverage(name: str, seconds: str) -> int:
    """Run libFuzzer in a process of its own, which it ends as it likes."""
    command = [sys.executable, "-m", "fuzz.coverage", name, seconds]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    runs = "?"
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, errors="replace", env=environment
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if not line.startswith("INFO: Instrumenting"):
                sys.stderr.write(line)
            if done := re.match(r"(?:Done (\d+) runs|#(\d+)\t)", line):
                runs = done[1] or done[2]
    found = "a find" if process.returncode else "0 finds"
    print(f"{name}: {int(runs) if runs.isdigit() else 0:,} executions; {found}")  # noqa: T201
    return process.returncode


if __name__ == "__main__":
    main()
