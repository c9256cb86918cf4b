"""The files of a job's folder."""

from __future__ import annotations

ORDER = "order.json"  #: ``kind``, ``subject``, ``arguments``, ``begun``
PROCESS = "process.json"  #: ``pid`` of who runs it
LOG = "output.log"  #: what the command writes to the terminal
OUTCOME = "outcome.json"  #: ``exit_code``; there when it has ended
LOCK = "lock"  #: held by the job's process, so that the kernel knows whether it lives
