"""A crawl stays out of the user's own network: real servers, real crawls, names that change."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from focuscrawl.foundation.urls import normalize

from .networks import Nets, explore, listening
from .typed import focuscrawl

if TYPE_CHECKING:
    from .running import Run

# at port 9 nobody answers: a guard that fails bothers none but our own servers
REFUSED = {
    "http://127.0.0.22:{port}/plain": "loopback",
    "http://2130706454:{port}/decimal": "loopback",
    "http://0x7f.0.0.0x16:{port}/hexadecimal": "loopback",
    "http://0177.0.0.026:{port}/octal": "loopback",
    "http://127.22:{port}/short": "loopback",
    "http://[::1]:{port}/sixth": "loopback",
    "http://[::ffff:127.0.0.22]:{port}/mapped": "loopback",
    "http://[64:ff9b::7f00:16]:{port}/translated": "loopback",
    "http://0.0.0.0:{port}/unspecified": "unspecified",
    "http://169.254.169.254:9/latest/meta-data/": "link-local",
    "http://168.63.129.16:9/machine": "metadata",
    "http://10.0.0.1:9/router": "private",
    "http://[fd00:ec2::254]:9/latest": "private",
    "http://224.0.0.1:9/all": "multicast",
    "http://inner.example:{port}/named": "loopback",
    "http://sixth.example:{port}/named": "loopback",
    "http://mapped.example:{port}/named": "loopback",
    "http://changing.example:{port}/second": "loopback",
    "https://127.0.0.22:{tls}/secure": "loopback",
    "https://inner.example:{tls}/secure": "loopback",
}
ALLOWED = (
    "http://both.example:{port}/both",
    "http://changing.example:{port}/first",
    "http://moved-robots.example:{port}/page",
    "http://somebody:secret@127.0.0.21:{port}/with-a-password",
)
NOT_FOLLOWED = (
    *("file:///etc/passwd", "ftp://127.0.0.22:{port}/f", "data:text/html,bicycle"),
    *("javascript:alert(1)", "gopher://127.0.0.22:{port}/g", "s3://bucket/key"),
)
MOVES = {
    "/away": "http://127.0.0.22:{port}/redirected",
    "/away-by-name": "http://inner.example:{port}/redirected",
    "/to-a-file": "file:///etc/passwd",
    "/to-ftp": "ftp://127.0.0.22:{port}/f",
    "/robots-moved": "http://127.0.0.22:{port}/robots.txt",
}
PATHS = [path for path in MOVES if path != "/robots-moved"]
SITE = {"links": [*ALLOWED, *REFUSED, *NOT_FOLLOWED, *PATHS], "moves": MOVES}
RECORDED = {"FOCUSCRAWL_WARC": 1, "LOG_LEVEL": "DEBUG", "AWS_SECRET_ACCESS_KEY": "hush"}
OUTER = {"FOCUSCRAWL_PRIVATE_ADDRESSES": "127.0.0.21"}
FRONT = "http://127.0.0.21:{port}/"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nets]:
    with listening(tmp_path_factory.mktemp("nets") / "connections", SITE) as nets:
        yield nets


@pytest.fixture
def nets(servers: Nets) -> Nets:
    """The servers, with what they note from now on."""
    return servers.from_now()


def test_only_what_is_named_is_reached(nets: Nets, tmp_path: Path) -> None:
    run = explore(tmp_path / "crawl", nets.url(FRONT), **OUTER)
    assert "Traceback" not in run.stderr
    assert {line.split()[0] for line in nets.noted()} == {"outer"}

    pages = {row["url"]: row for row in run.kept.rows("SELECT * FROM pages")}
    refused = {url for url, row in pages.items() if not row["status"]}
    for pattern, kind in REFUSED.items():
        row = pages[_normalised(nets.url(pattern))]
        assert row["status"] == 0
        assert row["error"].startswith("PrivateAddressError: ")
        assert f"{kind} address; add the address to FOCUSCRAWL_PRIVATE_ADDRESSES" in row["error"]
    redirected = {_normalised(nets.url(MOVES[path])) for path in ("/away", "/away-by-name")}
    assert refused == redirected | {_normalised(nets.url(pattern)) for pattern in REFUSED}
    for pattern in ALLOWED:
        assert pages[_normalised(nets.url(pattern))]["status"] == 200

    # only http and https are followed
    known = run.kept.query("SELECT url FROM pages UNION SELECT url FROM frontier")
    assert all(url.startswith(("http://", "https://")) for (url,) in known)
    moved = [row for url, row in sorted(pages.items()) if "/to-" in url]
    assert [(row["status"], row["links"], row["dropped"]) for row in moved] == [(302, 0, 0)] * 2


def test_a_refusal_is_counted_with_its_cause_and_not_retried(nets: Nets, tmp_path: Path) -> None:
    run = explore(
        tmp_path / "crawl", nets.url("http://inner.example:{port}/"), LOG_LEVEL="DEBUG", code=3
    )
    assert nets.noted() == []
    assert len(run.kept.order) == 1
    said = "errors        PrivateAddressError: 1 (see FOCUSCRAWL_PRIVATE_ADDRESSES)\n"
    assert said in run.stderr
    assert "inner.example is at 127.0.0.22, a loopback address" in run.stderr
    assert "etrying" not in run.stderr
    ((relevance,),) = run.kept.query("SELECT relevance FROM pages")
    assert relevance == 0.0
    url = nets.url("http://inner.example:{port}/")
    why = focuscrawl("why", run.kept.folder, url).output
    assert "inner.example is at 127.0.0.22, a loopback address" in why


@pytest.mark.parametrize("resolver", ["CachingThreadedResolver", "CachingHostnameResolver"])
def test_every_resolver_is_guarded(nets: Nets, tmp_path: Path, resolver: str) -> None:
    seeds = nets.url("http://localhost:{port}/,http://[::1]:{port}/,http://127.22:{port}/")
    named = {"TWISTED_DNS_RESOLVER": f"scrapy.resolver.{resolver}"}
    run = explore(tmp_path / "crawl", seeds, code=3, **named)
    assert nets.noted() == []
    (row,) = run.kept.rows("SELECT count(*) AS n FROM pages WHERE error LIKE 'PrivateAddress%'")
    assert row["n"] == 3


def test_what_is_named_is_crawled(nets: Nets, tmp_path: Path) -> None:
    seeds = [pattern for pattern in REFUSED if "127." in pattern or "example" in pattern]
    seeds += ["http://[::1]:{port}/sixth"]
    opened = {"FOCUSCRAWL_PRIVATE_ADDRESSES": "127.0.0.20/30,::1"}
    run = explore(tmp_path / "crawl", nets.url(",".join(seeds)), **opened)
    statuses = run.kept.query("SELECT status, count(*) FROM pages GROUP BY status")
    assert statuses == [(200, len(seeds))]
    reached = {line.split()[0] for line in nets.noted()}
    assert reached == {"inner", "outer", "sixth", "tls"}


def test_a_slip_in_the_setting_is_one_line(nets: Nets, tmp_path: Path) -> None:
    opened = {"FOCUSCRAWL_PRIVATE_ADDRESSES": "127.0.0.0/8,localhost"}
    run = explore(tmp_path / "crawl", nets.url(FRONT), code=2, **opened)
    (line,) = run.stderr.splitlines()
    assert "FOCUSCRAWL_PRIVATE_ADDRESSES: 'localhost' is neither an address nor a network" in line
    assert not run.kept.folder.exists()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_is_sent_nowhere_private(
    nets: Nets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    for each in ("http", "https"):
        monkeypatch.setenv(f"{each}_proxy", f"http://user:hush@127.0.0.23:{nets.port}")
    hosts = ["public.example", "inner.example", "partly.example", "nowhere.example", "10.0.0.1"]
    seeds = ",".join(f"{scheme}://{host}/" for host in hosts)
    code = 0 if scheme == "http" else 3  # the proxy makes no tunnels
    run = explore(tmp_path / "crawl", seeds, code=code, RETRY_ENABLED=0, **RECORDED)
    asked = [line.split() for line in nets.noted() if "connected" not in line]
    assert {line[0] for line in asked} == {"proxy"}
    assert {line[1 if scheme == "http" else 2] for line in asked} <= {
        "public.example",
        "public.example:443",
    }
    errors = dict(run.kept.query("SELECT url, error FROM pages WHERE error LIKE 'Private%'"))
    assert {url.split("/")[2] for url in errors} == set(hosts[1:])
    assert "has no known address" in errors[f"{scheme}://nowhere.example/"]
    _holds_nowhere(run, "hush")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_may_be_anywhere(
    nets: Nets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    for each in ("http", "https"):
        monkeypatch.setenv(f"{each}_proxy", f"http://proxy.example:{nets.port}")
    code = 0 if scheme == "http" else 3  # the proxy makes no tunnels
    explore(tmp_path / "crawl", f"{scheme}://public.example/", code=code, RETRY_ENABLED=0)
    asked = [line for line in nets.noted() if "connected" not in line]
    assert asked
    assert all("public.example" in line for line in asked)
    direct = nets.url("http://proxy.example:{port}/")
    monkeypatch.delenv("http_proxy")
    run = explore(tmp_path / "direct", direct, code=3)
    assert run.kept.query("SELECT count(*) FROM pages WHERE error LIKE 'PrivateAddress%'") == [
        (1,)
    ]


def test_credentials_are_neither_kept_nor_sent(nets: Nets, tmp_path: Path) -> None:
    seeds = nets.url(FRONT).replace("//", "//user:hush@")
    run = explore(tmp_path / "crawl", seeds, **OUTER, **RECORDED)
    asked = [line for line in nets.noted() if "connected" not in line]
    assert [line for line in asked if "/with-a-password" in line]
    assert all(line.endswith(" None") for line in asked)  # no Authorization
    _holds_nowhere(run, "hush")
    assert "secret" not in run.stderr
    assert b"secret" not in (run.kept.folder / "crawl.db").read_bytes()  # WARC: the page as it was


def test_a_recording_does_not_hold_what_servers_were_told_in_confidence(
    nets: Nets, tmp_path: Path
) -> None:
    told = {"Authorization": "Bearer hush", "Cookie": "session=hush"}
    given = RECORDED | OUTER | {"DEFAULT_REQUEST_HEADERS": json.dumps(told)}
    run = explore(tmp_path / "crawl", nets.url(FRONT), **given)
    asked = [line for line in nets.noted() if "connected" not in line]
    assert any(line.endswith(" Bearer hush") for line in asked)
    _holds_nowhere(run, "hush")


def _holds_nowhere(run: Run, secret: str) -> None:
    assert secret not in run.stderr
    encoded = base64.b64encode(f"user:{secret}".encode())
    files = [path for path in run.kept.folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        assert secret.encode() not in content, path.name
        assert encoded not in content, path.name


def _normalised(url: str) -> str:
    normalised = normalize(url)
    assert normalised is not None
    return normalised
