"""What crawls would begin with: `focuscrawl plan`, as a process of its own beside a form."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.python_processes import start_python
from focuscrawl.report.outlook import Outlook
from focuscrawl.studio.jobs import OWN_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.studio.crawling.beginning import NewCrawl

_KEPT = 32  # outlooks
_MOST = 20  # start pages
_LONG = 180.0  # seconds
_WAITS = 4.0  # seconds for which a form that has asked is taken to wait: it asks every second
_UNREACHABLE = 3  # exit code of a plan that could fetch no page
#: arguments of a crawl on which the start pages, or what becomes of them, depend
_ARGUMENTS = ("critic=", "topic=", "web=", "DOWNLOAD_DELAY=")


@dataclass
class Foresight:
    """What is known of a crawl's start pages.

    Attributes
    ----------
    outlook : None: not known yet, or not to be had
    error : why it is not to be had, a sentence
    asked : when it was last asked for, on the clock of this process
    """

    outlook: Outlook | None = None
    error: str | None = None
    asked: float = field(default_factory=time.monotonic)

    def is_known(self) -> bool:
        """Tell whether the pages have been judged, or cannot be."""
        return self.outlook is not None or self.error is not None


class Outlooks:
    """Has `focuscrawl plan` judge start pages, of one crawl at a time; for any thread.

    What is known is kept, so pages are fetched once, whatever else of the form is changed. What
    no form asks for any more is given up for the next.

    Parameters
    ----------
    root : folder that the processes work in
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: OrderedDict[tuple[str, ...], Foresight] = OrderedDict()
        self._lock = threading.Lock()
        self._judging: tuple[Foresight, subprocess.Popen[str]] | None = None
        atexit.register(self.end)

    def ask(self, crawl: NewCrawl, *, begin: bool) -> Foresight | None:
        """Return what is known by now; None: nothing, and nobody is to find out.

        Parameters
        ----------
        begin : have the start pages judged if they are not
        """
        given = [each for each in crawl.arguments if each.startswith(_ARGUMENTS)]
        given += [] if crawl.seeds else crawl.seeds_argument
        key = (*given, *crawl.seeds)
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                found.asked = time.monotonic()
            elif begin and self._is_busy():
                found = Foresight()  # whoever asks for it asks again
            elif begin:
                self._give_up()
                found = self._known[key] = Foresight()
                arguments = (found, given, crawl.seeds)
                threading.Thread(target=self._judge, args=arguments, daemon=True).start()
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            return found

    def end(self) -> None:
        """Give up what is being judged, as when the crawl itself begins."""
        with self._lock:
            self._give_up()

    def _is_busy(self) -> bool:
        """Tell whether pages are being judged that somebody waits for."""
        since = time.monotonic() - _WAITS
        return any(not each.is_known() and each.asked > since for each in self._known.values())

    def _judge(self, found: Foresight, given: Sequence[str], seeds: Sequence[str]) -> None:
        with tempfile.TemporaryDirectory(
            prefix="focuscrawl-studio-", ignore_cleanup_errors=True
        ) as name:
            arguments = [*given]
            if seeds:
                listed = Path(name, "seeds.txt")
                listed.write_text("\n".join(seeds), encoding="utf-8")
                arguments.append(f"seeds={listed}")
            command = ["-m", "focuscrawl", "plan", "--json"]
            command += ["--most", str(_MOST)]
            for each in arguments:
                command += ["-s" if each.startswith("DOWNLOAD_DELAY=") else "-a", each]
            with self._lock:
                if found.is_known():  # another form has come first
                    return
                process = start_python(
                    command,
                    variables={**OWN_SETTINGS, "TMPDIR": name},
                    cwd=self._root,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,  # it has processes of its own, which end with it
                )
                self._judging = found, process
            try:
                said, wrong = process.communicate(timeout=_LONG)
            except subprocess.TimeoutExpired:
                _kill(process)
                said, wrong = "", f"they were not there after {_LONG / 60:.0f} minutes"
            with self._lock:
                if found.is_known():
                    return
                self._judging = None
                _tell(found, process.returncode, said, wrong)

    def _give_up(self) -> None:
        """End what judges pages that nobody asks for any more; it is asked anew if need be."""
        for key, each in [*self._known.items()]:
            if not each.is_known():
                each.error = "Others were asked for."
                del self._known[key]
        if self._judging is not None:
            _kill(self._judging[1])
            self._judging = None


def _tell(found: Foresight, code: int, said: str, wrong: str) -> None:
    try:
        if code not in (0, _UNREACHABLE):
            raise UserError(wrong.strip().rpartition("\n")[2] or "nothing was said")
        found.outlook = Outlook.of_plain(json.loads(said.strip().rpartition("\n")[2]))
    except (UserError, ValueError) as error:
        found.error = f"The start pages could not be judged: {error}"


def _kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
