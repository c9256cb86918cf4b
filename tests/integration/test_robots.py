"""Where a robots.txt may be redirected to; whom it is for: `tests/unit/test_robots_names.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count, pairwise
from pathlib import Path
from statistics import median

import pytest

from .running import BICYCLES, QUICK, Run, crawl
from .small_site import Answers, Site, serve

DELAY = 0.3
HOSTS = 4  # that are redirected to each of the three others


def go(folder: Path, seeds: list[str]) -> Run:
    given = QUICK | {"DOWNLOAD_DELAY": DELAY, "DOWNLOAD_DELAY_JITTER": 0}
    run = crawl(folder, **given, **BICYCLES, seeds=",".join(seeds), budget=len(seeds))
    assert "Traceback" not in run.stderr
    return run


def pages(robots: str = "") -> Answers:
    page = ("text/html", b"<title>A page</title>a bicycle")
    paths = dict.fromkeys(("/", "/private"), page)
    return paths | ({"/robots.txt": ("text/plain", robots.encode())} if robots else {})


class Moved:
    """A crawl of hosts whose robots.txt is elsewhere.

    Attributes
    ----------
    free, closed, shared : hosts that other hosts' robots.txt are redirected to: to some page,
        where the host forbids that, and to its own robots.txt
    endless, circle : hosts whose robots.txt goes on and on
    run : the crawl
    """

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        addresses = (f"127.0.1.{number}" for number in count(1))  # one host each

        def site(robots: str = "") -> Site:
            return stack.enter_context(serve(lambda _: pages(robots), next(addresses)))

        self.free, self.closed = site(), site("User-agent: *\nDisallow: /")
        self.shared = site("User-agent: *\nDisallow: /private")
        self.endless, self.circle = site(), (site(), site())
        self.moved = [site() for _ in range(3 * HOSTS)]
        for number, each in enumerate(self.moved):
            targets = (
                f"{self.free.origin}/?{number}",
                f"{self.closed.origin}/?{number}",
                f"{self.shared.origin}/robots.txt",
            )
            each.moves["/robots.txt"] = targets[number % 3]
        self.endless.moves["/robots.txt"] = "/1"
        self.endless.moves |= {f"/{n}": f"/{n + 1}" for n in range(1, 50)}
        for each, other in (self.circle, self.circle[::-1]):
            each.moves["/robots.txt"] = f"{other.origin}/robots.txt"
        sites = [*self.moved, self.endless, *self.circle]
        self.run = go(
            folder, [f"{each.origin}{path}" for each in sites for path in ("/", "/private")]
        )


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    with ExitStack() as stack:
        yield Moved(stack, tmp_path_factory.mktemp("moved") / "crawl")


def test_a_redirected_robots_txt_waits_for_the_host_that_it_leads_to(moved: Moved) -> None:
    assert moved.free.asked[0] == "/robots.txt"
    assert len(moved.free.asked) == 1 + HOSTS
    assert median(b - a for a, b in pairwise(moved.free.times)) > 0.9 * DELAY


def test_it_is_held_to_what_that_host_forbids(moved: Moved) -> None:
    assert moved.closed.asked == ["/robots.txt"]


def test_the_robots_txt_of_another_host_is_asked_for_once(moved: Moved) -> None:
    assert moved.shared.asked == ["/robots.txt"]
    for each in moved.moved[2::3]:
        assert each.asked == ["/robots.txt", "/"]  # it is obeyed as if it were its own


def test_five_redirects_are_followed(moved: Moved) -> None:
    assert moved.endless.asked[:6] == ["/robots.txt", "/1", "/2", "/3", "/4", "/5"]
    assert sorted(moved.endless.asked[6:]) == ["/", "/private"]


def test_a_circle_of_hosts_forbids_nothing(moved: Moved) -> None:
    for each in moved.circle:
        assert sorted(set(each.asked)) == ["/", "/private", "/robots.txt"]
        assert each.asked.count("/robots.txt") <= 2
