"""What a request brings along: JSON of a script, or the fields of a page's form."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

_LONGEST = 4 << 20  # bytes
NO_TEXT = "it holds a NUL or half a character, which no text has: leave that out"


def with_values(
    endpoint: Callable[[Request, Mapping[str, Any]], Response],
) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that reads the values posted, and answers from a thread.

    Of a form each value is a text, or a list of texts where a field is there more than once; of
    JSON whatever it says.

    Raises
    ------
    UserError
        What was posted is neither, or holds what no text has.
    """

    async def answer(request: Request) -> Response:
        values = await _values(request)
        for name, value in values.items():
            if not (_is_text(name) and _is_text(value)):
                raise UserError(f"{name!r:.80}: {NO_TEXT}")
        return await run_in_threadpool(endpoint, request, values)

    return answer


def text_of(values: Mapping[str, Any], name: str, default: str = "") -> str:
    """Return a value that has to be a text, without spaces around it; see `with_values`.

    Of JSON a number stands for its text, true for ``yes``, and false for an empty one.
    """
    found = values.get(name, default)
    if isinstance(found, bool):
        found = "yes" if found else ""
    elif isinstance(found, int | float):
        found = str(found)
    if not isinstance(found, str):
        raise UserError(f"{name} has to be a text")
    return found.strip()


def texts_of(values: Mapping[str, Any], name: str) -> list[str]:
    """Return a value of texts: a list, or the lines of a text; empty ones are left out."""
    found = values.get(name, [])
    if isinstance(found, str):
        found = found.splitlines()
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise UserError(f"{name} has to be a list of texts")
    return [each.strip() for each in found if each.strip()]


def _is_text(value: Any) -> bool:
    """Tell whether all texts in a value of JSON can be written and told to commands."""
    if isinstance(value, dict):
        return all(_is_text(name) and _is_text(each) for name, each in value.items())
    if isinstance(value, list):
        return all(map(_is_text, value))
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= each <= "\udfff" for each in value)
    return True


async def _values(request: Request) -> dict[str, Any]:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST:
            raise HTTPException(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"More than {_LONGEST >> 20} MiB at once."
            )
    if "json" in request.headers.get("content-type", ""):
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            raise UserError("what was posted is no JSON") from None
        if not isinstance(found, dict):
            raise UserError("what is posted has to be a JSON object")
        return found
    fields = parse_qs(body.decode(errors="replace"), keep_blank_values=True)
    return {name: found[0] if len(found) == 1 else found for name, found in fields.items()}
