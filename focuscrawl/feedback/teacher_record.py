"""What a teacher has answered about pages of a crawl, so that no question is paid for twice."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.foundation.plain_files import open_plain

if TYPE_CHECKING:
    from pathlib import Path

#: in the folder of a crawl, JSON lines
RECORD = "teacher.jsonl"

_SAID = {True: "good", False: "bad", None: "unsure"}


class TeacherRecord:
    """The answers in a file, each kept before the next question is asked.

    Parameters
    ----------
    path : of the file; it need not be there

    Attributes
    ----------
    answers : by digests of who was asked and of the page, True for good, False for bad, None for
        unsure
    verdicts : by URL, True for good and False for bad; the latest, whoever was asked

    Raises
    ------
    UserError
        It cannot be read, or is a link.

    Notes
    -----
    A line that is none, as where a disk was full, is an answer that is not there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._whole = True  # the last line has its end
        self._unsure: dict[str, set[str]] = {}
        self.answers: dict[tuple[str, str], bool | None] = {}
        self.verdicts: dict[str, bool] = {}
        try:
            with open(path, encoding="utf-8", errors="replace", opener=open_plain) as file:
                for line in file:
                    self._take(line)
                    self._whole = line.endswith("\n")
        except FileNotFoundError:
            pass
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None

    def unsure_of(self, asked: str) -> set[str]:
        """Return the URLs of the pages that whoever was asked was unsure of."""
        return self._unsure.get(asked, set())

    def keep(self, asked: str, page: str, url: str, verdict: bool | None, **more: Any) -> None:
        """Write an answer down.

        Parameters
        ----------
        asked, page : digests of who was asked, see `digest_of`, and of the page
        more : for people who read the file

        Raises
        ------
        UserError
            It cannot be written.
        """
        at = datetime.now(UTC).isoformat(timespec="seconds")
        row = {"url": url, "verdict": _SAID[verdict], **more, "at": at}
        line = json.dumps({**row, "asked": asked, "page": page}) + "\n"
        try:
            with open(self._path, "a", encoding="utf-8", opener=open_plain) as file:
                file.write(line if self._whole else f"\n{line}")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UserError(f"{self._path} cannot be written: {error.strerror}") from None
        self._whole = True
        self._take(line)

    def _take(self, line: str) -> None:
        try:
            row = json.loads(line)
            asked, page, url = str(row["asked"]), str(row["page"]), str(row["url"])
            verdict = {said: each for each, said in _SAID.items()}[row["verdict"]]
        except (ValueError, RecursionError, TypeError, KeyError):
            return
        self.answers[asked, page] = verdict
        if verdict is None:
            self._unsure.setdefault(asked, set()).add(url)
        else:
            self.verdicts[url] = verdict


def digest_of(endpoint: str, model: str, prompt: str) -> str:
    """Return a digest of who is asked and how.

    Parameters
    ----------
    endpoint : without credentials
    prompt : digest of the question
    """
    return sha256(json.dumps([endpoint, model, prompt]).encode()).hexdigest()
