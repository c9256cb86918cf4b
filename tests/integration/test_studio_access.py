"""The studio's session: nothing for neighbours on other ports; whole behind a proxy with TLS."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from server.certificates import Authority

from .ports import await_listener, free_port
from .serving import asked
from .small_site import serve
from .studio import Client, Watched, crawl, expect, serving, tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

#: what has data, or changes something, of every kind of address
DATA = (
    *("", "crawls/new", "api/v1", "api/v1/crawls", "api/v1/jobs", "parts/crawls"),
    *("crawls/x/live", "api/v1/crawls/x/events", "api/v1/crawls/x/exports/file?file=a.csv"),
)
CHANGES = ("api/v1/crawls", "api/v1/topics", "api/v1/jobs/x/end", "parts/estimate")


def test_a_cookie_that_is_replayed_opens_nothing(tmp_path: Path, browser: Browser) -> None:
    with (
        serving(tmp_path) as address,
        serve(lambda _: {}) as neighbour,  # another program of this machine, on another port
        tab(browser) as page,
    ):
        page.goto(address)
        page.get_by_role("heading", name="Find web pages on your topic").wait_for()
        root = page.url
        assert root == address.partition("?")[0]
        paths = ("/", "/api/v1/crawls", "/~", f"{urlsplit(root).path[:-2]}/")
        neighbour.answers = dict.fromkeys(paths, ("text/html", b"<p>a page"))
        for path in paths:
            page.goto(neighbour.origin + path)
        (cookie,) = page.context.cookies(root)  # as if it had been sent all the same
        headers = {"Cookie": f"{cookie['name']}={cookie['value']}"}
        studio = root.partition("/~")[0]
        for path in DATA:
            assert asked(f"{studio}/{path}", None, headers)[0] == 401, path
        for path in CHANGES:
            said = headers | {"Origin": studio, "Content-Type": "application/json"}
            assert asked(f"{studio}/{path}", b"{}", said)[0] == 401, path
        token = {"Authorization": f"Bearer {cookie['value']}"}
        assert asked(f"{root}api/v1/crawls", None, token)[0] == 401
        page.goto(root)  # while the session goes on
        page.get_by_role("heading", name="Find web pages on your topic").wait_for()
    assert len([path for path in neighbour.asked if path != "/favicon.ico"]) == 4
    for headers_of in neighbour.headers:
        assert "cookie" not in headers_of.lower()
        assert urlsplit(root).path.rstrip("/") not in headers_of


# -- behind a proxy -------------------------------------------------------------------------

NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {folder}/server.pem;
    ssl_certificate_key {folder}/server.pem;
    client_max_body_size 5m;
    location {below} {{
      proxy_pass http://127.0.0.1:{studio}{stripped};
      {more}
    }}
  }}
}}
"""


@contextmanager
def nginx(folder: Path, port: int, studio: int, *, below: str, more: str) -> Iterator[None]:
    """Run an nginx before the studio; skips where there is none."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("there is no nginx: apt-get install nginx-light")
    Authority(folder).context("127.0.0.1", signed=False)
    written = folder / "nginx.conf"
    stripped = "/" if below != "/" else ""
    written.write_text(
        NGINX.format(
            folder=folder, port=port, studio=studio, below=below, more=more, stripped=stripped
        )
    )
    command = [program, "-p", str(folder), "-c", str(written), "-e", str(folder / "error.log")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait()


@contextmanager
def behind_proxy(
    folder: Path, below: str, more: str, *, known: bool = True
) -> Iterator[tuple[str, str, str]]:
    """Serve a folder behind an nginx; give the address, its beginning, and that without nginx."""
    beside = folder.with_name("nginx")
    beside.mkdir()
    port, studio = free_port(), free_port()
    public = f"https://localhost:{port}{below.rstrip('/')}"
    options = ["--public-url", public] if known else []
    with (
        serving(folder, studio, options) as address,
        nginx(beside, port, studio, below=below, more=more),
    ):
        await_listener(port)
        token = address.partition("?token=")[2]
        yield address, public, f"http://127.0.0.1:{studio}/?token={token}"


@pytest.fixture
def served(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    return tmp_path / "served"


@pytest.mark.timeout(120)  # less than the browser waits for what a wrong proxy never sends
def test_behind_a_proxy_with_tls_everything_works(served: Path, browser: Browser) -> None:
    crawl(served, "cycling", 15)
    with (
        behind_proxy(served, "/studio/", "proxy_set_header Host $host;") as (address, public, _),
        tab(browser, insecure=True) as page,
    ):
        assert address.startswith(f"{public}/~")
        answered: list[tuple[int, str]] = []
        page.on("response", lambda answer: answered.append((answer.status, answer.url)))
        watched = Watched(page, address)
        (cookie,) = page.context.cookies()
        assert cookie["secure"]
        assert cookie["httpOnly"]
        assert cookie["path"] == urlsplit(page.url).path.rstrip("/")
        page.get_by_role("link", name="New topic").click()
        page.get_by_label("Name").fill("knots")
        page.get_by_label("Phrases").fill("knots")
        page.get_by_role("button", name="Create", exact=True).click()
        page.wait_for_url("**/topics/knots/topic.toml/**")
        page.goto(f"{watched.root}crawls/crawls/cycling/live")
        expect(page.locator("#fetched")).to_have_text("15")
        expect(page.locator("#latest tr")).to_have_count(10)  # by the stream of events
        page.get_by_role("link", name="Pages", exact=True).click()
        with page.expect_download() as found:
            page.get_by_role("link", name="CSV", exact=True).click()
        assert found.value.suggested_filename == "pages.csv"
        assert all(code < 400 for code, _ in answered), answered
        watched.check()


@pytest.mark.parametrize(
    ("known", "more", "status"),
    [
        (True, "proxy_set_header Host $http_host;", 400),  # the empty request is read
        (True, "", 400),  # the host that nginx asks is what it names
        (False, "proxy_set_header Host $http_host;", 421),
        (False, "", 403),
    ],
)
def test_changes_behind_a_proxy_need_a_studio_that_knows_it(
    known: bool, more: str, status: int, served: Path
) -> None:
    with behind_proxy(served, "/", more, known=known) as (_, public, local):
        said = {"Authorization": f"Bearer {local.partition('?token=')[2]}", "Origin": public}
        trusted = ssl.create_default_context()
        trusted.check_hostname, trusted.verify_mode = False, ssl.CERT_NONE
        request = Request(f"{public}/api/v1/crawls", b"{}", said, method="POST")
        with pytest.raises(HTTPError) as refused:
            urlopen(request, context=trusted)
        refused.value.close()
        assert refused.value.code == status
        assert Client(local).ask("/crawls") == []  # a script on the machine itself
