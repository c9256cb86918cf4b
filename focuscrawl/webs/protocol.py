"""What the rest of the program knows of a web that is not the live one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered.

    Attributes
    ----------
    url : the URL as recorded, normalised
    status : HTTP status
    headers : name and value pairs in the order sent, without hop-by-hop headers and without
        Content-Encoding and Transfer-Encoding when `body` has been decoded
    body : the entity, decoded; empty if it is too large
    too_large : there is more of it than a crawl takes in
    failure : why there is none, where there should be one; the status is 0 then
    """

    url: str
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    too_large: bool = field(default=False, repr=False)
    failure: str = field(default="", repr=False)

    def header(self, name: str) -> str | None:
        """Return the first value of the field `name` (in lower case); None if there is none."""
        return next((value for field, value in self.headers if field.lower() == name), None)


class Source(Protocol):
    """Where pages are: a recorded web, or the live one."""

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Map each normalised URL to the URL it is known by here; None if it is not.

        ``http`` and ``https`` are one: both map to the spelling recorded.
        """
        ...

    def fetch(self, url: str) -> Answer | None:
        """Return the answer for a URL that `resolve` returned; None if there is none."""
        ...


class Web(Source, Protocol):
    """A web that can be asked without a network.

    Attributes
    ----------
    name : short name for people
    fingerprint : hex digest; the same for the same content
    """

    name: str
    fingerprint: str

    def urls(self) -> Iterator[str]:
        """Iterate over every URL of this web, in a fixed order."""
        ...
