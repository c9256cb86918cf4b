"""The process that runs one job, and writes down how it ended."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from filelock import FileLock

from focuscrawl.foundation.files import open_plain, write_whole
from focuscrawl.foundation.processes import start_python

ORDER = "order.json"  #: ``kind``, ``subject``, ``arguments``, ``begun``
PROCESS = "process.json"  #: ``pid`` of who runs it
LOG = "output.log"  #: what the command writes to the terminal
OUTCOME = "outcome.json"  #: ``exit_code``; there when it has ended
LOCK = "lock"  #: held by the job's process, so that the kernel knows whether it lives


def main() -> None:
    """Run ``focuscrawl ARGUMENTS``; the first byte written says: it is begun."""
    folder, arguments = Path(sys.argv[1]), sys.argv[2:]
    with FileLock(folder / LOCK, fallback_to_soft=False):
        write_whole(folder / PROCESS, json.dumps({"pid": os.getpid()}))
        os.write(1, b"!")
        os.close(1)
        command = ["-m", "focuscrawl", *arguments]
        with open(folder / LOG, "wb", opener=open_plain) as log:
            process = start_python(command, stdout=log, stderr=log)

            def pass_on(signum: int, _: object) -> None:
                process.send_signal(signum)

            for each in (signal.SIGINT, signal.SIGTERM):
                signal.signal(each, pass_on)
            code = process.wait()
        write_whole(folder / OUTCOME, json.dumps({"exit_code": code}))


if __name__ == "__main__":
    main()
