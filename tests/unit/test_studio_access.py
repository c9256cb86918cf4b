"""Who may talk to the studio."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from focuscrawl.studio.access import Access

HOST = "127.0.0.1:8222"
COOKIE = ("cookie", "studio-8222=secret")
BEARER = ("authorization", "Bearer secret")
ORIGIN = ("origin", f"http://{HOST}")


def refused(method: str, *headers: tuple[str, str], read_only: bool = False) -> int:
    """Return the status a request is refused with; 0 if it is let through."""
    scope = {
        "type": "http",
        "method": method,
        "path": "/",
        "query_string": b"",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
    }
    access = Access("secret", frozenset({HOST}), "studio-8222", read_only=read_only)
    refusal = access.refusal(Request(scope))
    return 0 if refusal is None else int(refusal[0])


def test_who_has_the_token_is_let_in() -> None:
    assert refused("GET", ("host", HOST), COOKIE) == 0
    assert refused("GET", ("host", HOST), BEARER) == 0
    assert refused("POST", ("host", HOST), COOKIE, ORIGIN) == 0
    assert refused("POST", ("host", HOST), BEARER) == 0


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (421, [COOKIE]),
        (421, [("host", "rebound.example:8222"), COOKIE]),
        (421, [("host", "127.0.0.1:80"), COOKIE]),
        (403, [("host", HOST), COOKIE, ("origin", "http://rebound.example")]),
        (403, [("host", HOST), COOKIE, ("origin", "null")]),
        (403, [("host", HOST), COOKIE, ("origin", f"https://{HOST}")]),
        (401, [("host", HOST), ORIGIN]),
        (401, [("host", HOST), ("cookie", "studio-8222=guess"), ORIGIN]),
        (401, [("host", HOST), ("cookie", "studio-8223=secret"), ORIGIN]),
        (401, [("host", HOST), ("authorization", "Bearer s\xe9cret")]),
        (401, [("host", HOST), ("authorization", "secret")]),
    ],
)
def test_others_are_refused(status: int, headers: list[tuple[str, str]]) -> None:
    assert refused("GET", *headers) == refused("POST", *headers) == status


def test_a_change_by_cookie_says_where_it_comes_from() -> None:
    assert refused("POST", ("host", HOST), COOKIE) == 403


def test_a_read_only_studio_changes_nothing() -> None:
    assert refused("GET", ("host", HOST), COOKIE, read_only=True) == 0
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert refused(method, ("host", HOST), BEARER, ORIGIN, read_only=True) == 403
