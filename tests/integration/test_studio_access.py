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
from .studio import Client, Watched, serving, tab

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


# the browser sends the header Origin itself
_POST = """async () => {
    const headers = {"Content-Type": "application/json"};
    const sent = {method: "POST", headers, body: "{}"};
    return (await fetch(`${location.pathname}api/v1/crawls`, sent)).status;
}"""


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


@pytest.mark.timeout(120)  # less than the browser waits for what a wrong proxy never sends
@pytest.mark.parametrize(
    ("below", "more"),
    [
        ("/", "proxy_set_header Host $http_host;"),
        ("/", ""),  # the host that nginx asks is what it names
        ("/studio/", "proxy_set_header Host $host;"),
    ],
)
def test_behind_a_proxy_with_tls_everything_works(
    below: str, more: str, tmp_path: Path, browser: Browser
) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    folder, served = tmp_path / "nginx", tmp_path / "served"
    folder.mkdir()
    served.mkdir()
    port, studio = free_port(), free_port()
    public = f"https://localhost:{port}{below.rstrip('/')}"
    options = ["--public-url", public]
    with (
        serving(served, studio, options) as address,
        nginx(folder, port, studio, below=below, more=more),
        tab(browser, insecure=True) as page,
    ):
        assert address.startswith(f"{public}/~")
        answered: list[tuple[int, str]] = []
        page.on("response", lambda answer: answered.append((answer.status, answer.url)))
        await_listener(port)
        watched = Watched(page, address)
        (cookie,) = page.context.cookies()
        assert cookie["secure"]
        assert cookie["httpOnly"]
        assert cookie["path"] == urlsplit(page.url).path.rstrip("/")
        if below == "/":
            page.get_by_role("heading", name="Find web pages on your topic").wait_for()
            assert page.evaluate(_POST) == 400  # the empty request is read, and not refused
            return
        page.get_by_role("link", name="New crawl").click()
        page.goto(f"{page.url}?web=demo")
        page.get_by_label("Budget in fetches").fill("15")
        page.get_by_role("button", name="Start crawl").click()
        page.wait_for_url("**/crawls/Cycling/live")
        expect(page.locator("#fetched")).to_have_text("15")  # by the stream of events
        page.get_by_role("link", name="Pages", exact=True).click()
        with page.expect_download() as found:
            page.get_by_role("link", name="CSV", exact=True).click()
        assert found.value.suggested_filename == "pages.csv"
        assert all(code < 400 for code, _ in answered), answered
        watched.check()
        token = address.partition("?token=")[2]
        script = Client(f"http://127.0.0.1:{studio}/?token={token}")  # on the machine itself
        assert script.ask("/crawls")[0]["fetched"] == 15


@pytest.mark.parametrize(
    ("more", "status"), [("proxy_set_header Host $http_host;", 421), ("", 403)]
)
def test_a_studio_that_does_not_know_its_proxy_refuses_changes(
    more: str, status: int, tmp_path: Path
) -> None:
    folder, served = tmp_path / "nginx", tmp_path / "served"
    folder.mkdir()
    served.mkdir()
    port, studio = free_port(), free_port()
    with (
        serving(served, studio) as address,
        nginx(folder, port, studio, below="/", more=more),
    ):
        await_listener(port)
        token = address.partition("?token=")[2]
        origin = f"https://localhost:{port}"
        said = {"Authorization": f"Bearer {token}", "Origin": origin}
        trusted = ssl.create_default_context()
        trusted.check_hostname, trusted.verify_mode = False, ssl.CERT_NONE
        request = Request(f"{origin}/api/v1/crawls", b"{}", said, method="POST")
        with pytest.raises(HTTPError) as refused:
            urlopen(request, context=trusted)
        refused.value.close()
        assert refused.value.code == status
