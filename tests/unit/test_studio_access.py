"""Who may talk to the studio."""

from __future__ import annotations

import asyncio
import os
from http.cookies import SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.responses import PlainTextResponse

from focuscrawl.errors import UserError
from focuscrawl.studio.access import Access, AccessMiddleware, PublicUrl, load_token

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

HOST = "127.0.0.1:8222"
BEARER = ("authorization", "Bearer secret")
ORIGIN = ("origin", f"http://{HOST}")
PUBLIC = PublicUrl.parse("https://studio.example.org/here")


class Answer:
    """What a request is answered with."""

    def __init__(self, messages: list[Message]) -> None:
        start, body = messages
        self.status: int = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        self.text: str = body["body"].decode()


def ask(
    access: Access, method: str, path: str, *headers: tuple[str, str], query: str = ""
) -> Answer:
    """Make a request; who is let in is told the path that the pages see."""
    said: list[Message] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(f"in: {scope['path']}")(scope, receive, send)

    async def send(message: Message) -> None:
        said.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
    }
    asyncio.run(AccessMiddleware(inner, access)(scope, receive, send))
    return Answer(said)


def access_of(*, read_only: bool = False, public: PublicUrl | None = None) -> Access:
    return Access("secret", [HOST], "studio-8222", read_only=read_only, public=public)


def cookie_of(access: Access, host: str = HOST) -> SimpleCookie:
    """Return the cookie that an address with the token brings."""
    answer = ask(access, "GET", f"{access.base}/", ("host", host), query="token=secret")
    assert answer.status == 303
    return SimpleCookie(answer.headers["set-cookie"])


def sent(cookie: SimpleCookie) -> tuple[str, str]:
    """Return the header by which a browser sends it back."""
    return "cookie", "; ".join(f"{name}={each.value}" for name, each in cookie.items())


def status(method: str, *headers: tuple[str, str], read_only: bool = False) -> int:
    access = access_of(read_only=read_only)
    return ask(access, method, f"{access.base}/", *headers).status


COOKIE = sent(cookie_of(access_of()))


def test_who_has_the_token_is_let_in() -> None:
    assert status("GET", ("host", HOST), COOKIE) == 200
    assert status("GET", ("host", HOST), BEARER) == 200
    assert status("POST", ("host", HOST), COOKIE, ORIGIN) == 200
    assert status("POST", ("host", HOST), BEARER) == 200


def test_scripts_need_no_path_of_their_own() -> None:
    answer = ask(access_of(), "POST", "/api/v1/crawls", ("host", HOST), BEARER)
    assert (answer.status, answer.text) == (200, "in: /api/v1/crawls")


@pytest.mark.parametrize(
    ("code", "headers"),
    [
        (421, [COOKIE]),
        (421, [("host", "rebound.example:8222"), COOKIE]),
        (421, [("host", "127.0.0.1:80"), COOKIE]),
        (403, [("host", HOST), COOKIE, ("origin", "http://rebound.example")]),
        (403, [("host", HOST), COOKIE, ("origin", "null")]),
        (403, [("host", HOST), COOKIE, ("origin", f"https://{HOST}")]),
        (401, [("host", HOST), ORIGIN]),
        (401, [("host", HOST), ("cookie", "studio-8222=guess"), ORIGIN]),
        (401, [("host", HOST), ("cookie", "studio-8222=secret"), ORIGIN]),
        (401, [("host", HOST), ("cookie", COOKIE[1].replace("8222", "8223")), ORIGIN]),
        (401, [("host", HOST), ("authorization", "Bearer s\xe9cret")]),
        (401, [("host", HOST), ("authorization", "secret")]),
        (401, [("host", HOST), ("authorization", f"Bearer {COOKIE[1].partition('=')[2]}")]),
    ],
)
def test_others_are_refused(code: int, headers: list[tuple[str, str]]) -> None:
    assert status("GET", *headers) == status("POST", *headers) == code


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "path", ["/", "/api/v1/crawls", "/crawls/x/pages", "/parts/crawls", "/assets/studio.js"]
)
def test_a_cookie_that_another_port_was_sent_opens_nothing(method: str, path: str) -> None:
    """A program on another port is not sent it, as its path is; it would be of no use either."""
    access = access_of()
    (cookie,) = cookie_of(access).values()
    assert cookie["path"] == access.base
    assert len(access.base) > 20
    near = (access.base[:-1], access.base + "x", access.base.upper(), "/~", "")
    for base in near:
        answer = ask(access, method, base + path, ("host", HOST), COOKIE, ORIGIN)
        assert answer.status == 401, base
        assert access.base not in answer.text + str(answer.headers)
    assert ask(access, method, access.base + path, ("host", HOST), ORIGIN).status == 401
    assert access.base != Access("other", [HOST], "studio-8222").base


def test_the_token_becomes_a_cookie_and_leaves_the_address() -> None:
    access = access_of()
    for path in (f"{access.base}/crawls/a%", "/crawls/a%"):
        answer = ask(access, "GET", path, ("host", HOST), query="x=1&token=secret")
        assert answer.status == 303
        assert answer.headers["location"] == f"{access.base}/crawls/a%25?x=1"
    cookie = cookie_of(access)["studio-8222"]
    assert "secret" not in cookie.value
    assert cookie["httponly"]
    assert cookie["samesite"] == "strict"
    assert not cookie["secure"]
    for path in ("//evil.example", "/\\evil.example"):
        answer = ask(access, "GET", path, ("host", HOST), query="token=secret")
        assert answer.headers["location"].startswith(f"{access.base}/")
    for host, query in (("rebound.example", "token=secret"), (HOST, "token=guess")):
        assert ask(access, "GET", "/", ("host", host), query=query).status in (401, 421)
    assert ask(access, "POST", "/", ("host", HOST), query="token=secret").status == 401


def test_pages_see_paths_without_the_base() -> None:
    access = access_of()
    for path, inner in (("", "/"), ("/", "/"), ("/crawls/new", "/crawls/new")):
        answer = ask(access, "GET", access.base + path, ("host", HOST), COOKIE)
        assert answer.text == f"in: {inner}"


@pytest.mark.parametrize("host", [HOST, "studio.example.org", "studio.example.org:443"])
def test_behind_a_proxy_the_public_address_is_the_studios_own(host: str) -> None:
    """Whether the proxy passes on the host and takes its prefix away, or not."""
    access = access_of(public=PUBLIC)
    cookie = cookie_of(access, host)
    assert cookie["studio-8222"]["secure"]
    assert cookie["studio-8222"]["path"] == access.base
    assert access.base.startswith("/here/~")
    theirs = ("origin", "https://studio.example.org")
    for base in (access.base, access.base.removeprefix("/here")):
        answer = ask(access, "POST", f"{base}/api/v1", ("host", host), sent(cookie), theirs)
        assert (answer.status, answer.text) == (200, "in: /api/v1")
    for origin in ("http://studio.example.org", "https://studio.example.org:444", "https://x"):
        said = ("origin", origin)
        refused = ask(access, "POST", f"{access.base}/", ("host", host), sent(cookie), said)
        assert refused.status == 403
    other = ("host", "other.example.org")
    assert ask(access, "GET", f"{access.base}/", other, sent(cookie)).status == 421


@pytest.mark.parametrize(
    ("said", "origin", "prefix"),
    [
        ("https://Studio.Example.org/", "https://studio.example.org", ""),
        ("https://studio.example.org:443/a/b/", "https://studio.example.org", "/a/b"),
        ("https://127.0.0.1:8443", "https://127.0.0.1:8443", ""),
        ("http://[::1]:80", "http://[::1]", ""),
    ],
)
def test_a_public_address_is_read(said: str, origin: str, prefix: str) -> None:
    found = PublicUrl.parse(said)
    assert (found.origin, found.prefix) == (origin, prefix)
    assert found.is_encrypted is said.startswith("https")


@pytest.mark.parametrize(
    "said",
    [
        *("", "studio.example.org", "ftp://a", "https://", "https://a:b", "https://u@a"),
        *("https://a b", "https://[::1"),
        *("https://a?x=1", "https://a#x", "https://a//b", "https://a/../b", "https://a/b c"),
        *("https://a/%2e", "https://a;b", "https://a/{{", 'https://a/"'),
    ],
)
def test_what_is_no_public_address_is_refused_in_a_line(said: str) -> None:
    with pytest.raises(UserError, match="is invalid: give an address") as refused:
        PublicUrl.parse(said)
    assert "\n" not in str(refused.value)


def test_a_change_by_cookie_says_where_it_comes_from() -> None:
    assert status("POST", ("host", HOST), COOKIE) == 403


def test_a_read_only_studio_changes_nothing() -> None:
    assert status("GET", ("host", HOST), COOKIE, read_only=True) == 200
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert status(method, ("host", HOST), BEARER, ORIGIN, read_only=True) == 403


def test_the_token_is_the_folders_own_and_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    token = load_token(tmp_path)
    assert load_token(tmp_path) == token != load_token(tmp_path / "other")
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    (kept,) = (path for path in files if token in path.read_text())
    assert kept.stat().st_mode & 0o077 == 0
    os.chmod(kept, 0o644)  # noqa: PTH101 - others may have read it
    assert load_token(tmp_path) != token
