"""A Scrapyd that the studio was told of: crawls as its jobs, over its JSON API."""

from __future__ import annotations

import json
import os
import secrets
from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

PROJECT, _SPIDER = "focuscrawl", "focused"
NAME, PASSWORD = "SCRAPYD_USERNAME", "SCRAPYD_PASSWORD"  #: variables of the environment
STATES = ("pending", "running", "finished")
_PATIENCE = 10.0  # seconds
_LONGEST = 4 << 20  # bytes of an answer
_SHOWN = 20  # jobs that have ended


@dataclass(frozen=True)
class ScrapydJob:
    """A crawl that Scrapyd was told of.

    Attributes
    ----------
    id : what Scrapyd calls it
    state : one of `STATES`
    begun, ended : as Scrapyd writes them; empty: not yet
    log : address of its log
    """

    id: str
    state: str
    begun: str
    ended: str
    log: str


class Scrapyd:
    """Talks to a Scrapyd, with name and password of the environment if they are there.

    Parameters
    ----------
    url : where it listens

    Raises
    ------
    UserError
        The URL is none, or has a password in it.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError("--scrapyd is where it listens: http://127.0.0.1:6800")
        if parts.username is not None or parts.password is not None:
            raise UserError(
                f"--scrapyd has a name or password: put them into {NAME} and {PASSWORD}, and "
                "leave them out here"
            )
        self.url = url.rstrip("/")
        # what it answers is read from it alone: no proxy, and nobody that it points to
        self._opener = build_opener(ProxyHandler({}), _NoRedirects())

    def schedule(self, name: str, arguments: Sequence[tuple[str, str]]) -> str:
        """Have a crawl begun; return what Scrapyd calls the job.

        Parameters
        ----------
        name : that the job's is to begin with
        arguments : of the web service: the spider's, and ``setting`` for each setting
        """
        job = f"{name}-{secrets.token_hex(4)}"
        about = [("project", PROJECT), ("spider", _SPIDER), ("jobid", job)]
        self._ask("schedule", [*about, *arguments], changes=True)
        return job

    def jobs(self) -> list[ScrapydJob]:
        """Return what waits, what runs and what has ended last, the newest first of each."""
        said = self._ask("listjobs", [("project", PROJECT)])
        found = []
        for state in STATES:
            entries = said.get(state)
            for entry in reversed(entries if isinstance(entries, list) else []):
                job = str(entry["id"])
                log = f"{self.url}/logs/{PROJECT}/{_SPIDER}/{quote(job, safe='')}.log"
                begun, ended = (str(entry.get(f"{what}_time") or "") for what in ("start", "end"))
                found.append(ScrapydJob(job, state, begun, ended, log))
        n_ended = sum(job.state == STATES[-1] for job in found)
        return found[: len(found) - max(0, n_ended - _SHOWN)]

    def cancel(self, job: str) -> None:
        """Have a job ended in order, or not begun."""
        self._ask("cancel", [("project", PROJECT), ("job", job)], changes=True)

    def _ask(
        self, service: str, parameters: Sequence[tuple[str, str]], *, changes: bool = False
    ) -> dict[str, Any]:
        """Call a web service; UserError: it is not there, refuses, or answers something else."""
        query = urlencode(parameters)
        url = f"{self.url}/{service}.json"
        request = Request(url, query.encode()) if changes else Request(f"{url}?{query}")
        name, password = (os.environ.get(each, "") for each in (NAME, PASSWORD))
        if name or password:
            pair = b64encode(f"{name}:{password}".encode()).decode()
            request.add_header("Authorization", f"Basic {pair}")
        try:
            with self._opener.open(request, timeout=_PATIENCE) as answer:
                said = json.loads(answer.read(_LONGEST))
        except HTTPError as error:
            why = f"answers {error.code}"
            if error.code in (401, 403):
                why = f"wants name and password: start the studio with {NAME} and {PASSWORD}"
            raise UserError(f"Scrapyd at {self.url} {why}") from None
        except OSError as error:  # URLError among them
            said_why = error.reason if isinstance(error, URLError) else error
            raise UserError(
                f"Scrapyd at {self.url} does not answer ({said_why}): start it"
            ) from None
        except ValueError:
            raise UserError(f"what listens at {self.url} is no Scrapyd: name its port") from None
        if not isinstance(said, dict) or said.get("status") != "ok":
            why = str(said.get("message", "")) if isinstance(said, dict) else ""
            raise UserError(
                f"Scrapyd at {self.url} refuses ({why:.200}): upload the project with "
                "scrapyd-deploy if that is missing"
            )
        return said


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Take a redirect as an answer that is an error."""
