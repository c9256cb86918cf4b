"""What `parse_page` makes of pages whose leaves, links and metadata are plain to see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from focuscrawl.page import PageView, parse_page
from focuscrawl.page.metadata import read_header_links

HERE = "http://site.example/dir/page.html"


def parse(html: str) -> PageView:
    return parse_page(html.encode(), HERE)


def by_leaf(page: PageView) -> list[str]:
    words: list[list[str]] = [[] for _ in range(page.n_leaves)]
    for token, leaf in zip(page.tokens, page.token_leaf.tolist(), strict=True):
        words[leaf].append(token)
    return [" ".join(leaf) for leaf in words]


def links(page: PageView) -> Iterator[tuple[str, str, int, int]]:
    found = page.links
    short = [url.removeprefix("http://site.example") for url in found.urls]
    return zip(short, found.anchors, found.left.tolist(), found.right.tolist(), strict=True)


def test_leaves_are_texts_and_empty_elements_in_document_order() -> None:
    page = parse(
        """<html><head><meta name=author content=me><title> My
        page </title><link rel=icon href=i><style>b {}</style></head>
        <body> Intro <b>bold</b> tail<hr>
        <table><tr><td>&nbsp;</td><td>cell</td><td> </td></tr></table>
        <p>one<!-- not a word -->self<br>two<script>var x = "<a href=no>"</script>three</p>
        <template><a href=no>no</a></template><noscript>fallback</noscript></body></html>"""
    )
    assert page.title == "My page"
    assert by_leaf(page) == [
        *("my page", "intro", "bold", "tail", "", "", "cell", ""),
        *("oneself", "", "two", "three", "fallback"),
    ]
    assert len(page.links) == 0


@pytest.mark.parametrize("body", [b"", b" \n ", b"\0", b"<!-- only this -->", b"<html><body>"])
def test_a_page_that_holds_nothing_is_empty(body: bytes) -> None:
    page = parse_page(body, HERE)
    assert (page.n_leaves, page.tokens, page.title, len(page.links)) == (0, [], "", 0)
    assert page.token_leaf.shape == page.links.left.shape == page.links.nofollow.shape == (0,)


@pytest.mark.parametrize(
    ("html", "leaves", "expected"),
    [
        pytest.param(
            "<p>text <a href=x>link</a><title>Late</title><svg><title>Icon</title></svg>",
            ["late", "text", "link", "icon"],
            [("/dir/x", "link", 2, 2)],
            id="the title is leaf 0 wherever it stands",
        ),
        pytest.param(
            "before<a href=1>one <i>two</i><br>three</a>after<a href=2></a><a href=3> </a>"
            "<a name=here></a><a href=4><script>x</script></a>end",
            ["before", "one", "two", "", "three", "after", *[""] * 4, "end"],
            [
                ("/dir/1", "one two three", 1, 4),
                *(("/dir/2", "", 6, 6), ("/dir/3", "", 7, 7), ("/dir/4", "", 9, 9)),
            ],
            id="a link covers the leaves inside it",
        ),
        pytest.param(
            "<a href=1>one<a href=2>two<p>on</a><table><tr><td><a href=3>three<td>rest",
            ["one", "two", "on", "three", "rest"],
            [("/dir/1", "one", 0, 0), ("/dir/2", "two on", 1, 2), ("/dir/3", "three", 3, 3)],
            id="links that are not closed",
        ),
        pytest.param(
            "<a href=1>out<iframe src=2>in</iframe><b>side</b></a>end",
            ["out", "", "side", "end"],
            [("/dir/1", "out side", 0, 2), ("/dir/2", "", 1, 1)],
            id="links in each other",
        ),
        pytest.param(
            "<frameset><frame src=menu><frame src=main title=Main>"
            "<noframes><body>See <a href=plain>the plain page</a></body></noframes></frameset>",
            ["", "", "see", "the plain page"],
            [
                *(("/dir/menu", "", 0, 0), ("/dir/main", "Main", 1, 1)),
                ("/dir/plain", "the plain page", 3, 3),
            ],
            id="frames, and the page for those who see none",
        ),
        pytest.param(
            "<title>T</title><div>a<p>b<i>c</i>d</p><hr></div><a href=x></a>",
            ["t", "a", "b", "c", "d", "", ""],
            [("/dir/x", "", 6, 6)],
            id="elements without text are leaves",
        ),
        pytest.param(
            "a<iframe src=1 title=Map>no <b>frames</b> <a href=2>here</a></iframe>b"
            "<iframe>c</iframe><h2>d<iframe>e</iframe></h2><noembed>f</noembed>",
            ["a", "", "b", "", "d", ""],
            [("/dir/1", "Map", 1, 1)],
            id="the text of iframes is for browsers without frames",
        ),
        pytest.param(
            "<p>bi&shy;cy&#8203;cle <b>re\u0301union</b> <i>wheel\u2060s</i>",
            ["bicycle", "réunion", "wheels"],
            [],
            id="characters that nobody sees",
        ),
        pytest.param(
            "<p>bi<wbr>cy<WBR/>cle <a href=x>some<wbr>where<wbr /></a> data</wbr>base",
            ["bicycle", "somewhere", "database"],
            [("/dir/x", "somewhere", 1, 1)],
            id="where a browser may break a word",
        ),
        pytest.param("a <wbr id=x>" * 3000, ["a " * 2999 + "a"], [], id="many such places"),
        pytest.param(
            "<frameset><noframes><body><p>in</noframes></frameset>", ["in"], [], id="no frames"
        ),
        pytest.param(
            "<html><body><p>before</body></html><p>after <a href=/x>link</a></html>more",
            ["before", "after", "link", "more"],
            [("/x", "link", 2, 2)],
            id="what follows the end of the document",
        ),
        pytest.param(
            "if a < b && c > 0:\n    see http://x.example/\n",
            ["if a b c 0 see http x example"],
            [],
            id="plain text is one leaf",
        ),
    ],
)
def test_leaves_and_links(
    html: str, leaves: list[str], expected: list[tuple[str, str, int, int]]
) -> None:
    page = parse(html)
    assert by_leaf(page) == leaves
    assert list(links(page)) == expected


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<p>x<title>Late</title><svg><title>Icon</title></svg>", "Late"),
        ("<title>First</title><title>Second</title>", "First"),
        ("<svg><g><title>Search icon</title></g></svg><p>x<title>Page</title>", "Page"),
        ("<svg><title>Search icon</title></svg><p>x", ""),
        ("<template><title>Part</title></template><iframe><title>Frame</title></iframe>", ""),
        ("<textarea><title>Typed</title></textarea><title>Page</title>", "Page"),
        ("<body><SVG><title>Icon</title></SVG><svg><title>Icon</title></svg><title>Page", "Page"),
    ],
)
def test_the_first_title_outside_pictures_counts(html: str, title: str) -> None:
    assert parse(html).title == title


def test_the_title_of_a_picture_is_text() -> None:
    page = parse("<p>a</p><svg><title>Search icon</title><path d=x /></svg><title>Page</title>")
    assert by_leaf(page) == ["page", "a", "search icon", ""]


def test_the_text_of_iframes_is_in_no_heading() -> None:
    assert parse("<h2>News <iframe src=x>no frames</iframe> today</h2>").headings == ["News today"]


def test_areas_frames_and_images_are_named_by_their_attributes() -> None:
    page = parse(
        """<map><area href=a alt="An  area"><area href=b title=Titled></map>
        <iframe src=c title=Inner></iframe><iframe src=d>inside</iframe>
        <a href=e title=link><img src=i><img src=j alt="a picture"></a>
        <a href=f title=link><img src=i></a><a href=g title=no>text<img alt=no></a>"""
    )
    assert [(url, anchor) for url, anchor, *_ in links(page)] == [
        ("/dir/a", "An area"),
        ("/dir/b", "Titled"),
        ("/dir/c", "Inner"),
        ("/dir/d", ""),
        ("/dir/e", "a picture"),
        ("/dir/f", "link"),
        ("/dir/g", "text"),
    ]


def test_link_targets() -> None:
    page = parse(
        """<a href="#part">self</a><a href="">self</a><a href=" x?b=1&amp;a=2#f ">x</a>
        <a href="mailto:me@site.example">mail</a><a href="javascript:go()">go</a>
        <a href=x?b=1&a=2>again</a><a href="//other.example">other</a><a>none</a>
        <a href="http://[bad">bad</a><a rel="external NoFollow" href=/shy>shy</a>"""
    )
    assert page.url == HERE
    assert [(url, anchor) for url, anchor, *_ in links(page)] == [
        ("/dir/page.html", "self"),
        ("/dir/page.html", "self"),
        ("/dir/x?b=1&a=2", "x"),
        ("/dir/x?b=1&a=2", "again"),
        ("http://other.example/", "other"),
        ("/shy", "shy"),
    ]
    assert page.links.left.tolist() == [0, 1, 2, 5, 6, 9]
    assert page.links.nofollow.tolist() == [False] * 5 + [True]


@pytest.mark.parametrize(
    ("base", "target"),
    [
        ("<base href=/sub/><base href=/no/>", "/sub/x"),
        ("<base target=_top><base href=http://other.example/y/z>", "http://other.example/y/x"),
        ("<base href='data:text/html,x'>", "/dir/x"),
        ("<base href='http://[bad'>", "/dir/x"),
    ],
)
def test_base(base: str, target: str) -> None:
    page = parse(f"{base}<link rel=canonical href=x><a href=x>x</a>")
    assert [url for url, *_ in links(page)] == [target]
    assert page.canonical == page.links.urls[0]


@pytest.mark.parametrize(
    ("content", "target", "delay"),
    [
        ("0; url=next", "http://site.example/dir/next", 0),
        ("5;URL = 'a b'", "http://site.example/dir/a%20b", 5),
        ("0 http://other.example", "http://other.example/", 0),
        (".5, /up", "http://site.example/up", 0),
        ("2.9 /x", "http://site.example/x", 2),
        (f"{'9' * 5000};/x", "http://site.example/x", float("inf")),
        ("30", None, 0),
        ("0;url=", None, 0),
        ("0;url=javascript:x", None, 0),
        ("", None, 0),
    ],
    ids=range(10),
)
def test_refresh(content: str, target: str | None, delay: float) -> None:
    page = parse(f'<meta http-equiv=Refresh content="{content}"><p>x')
    assert page.refresh == target
    assert page.refresh_delay == delay


@pytest.mark.parametrize("delay", [0, 10, 3600])
def test_a_refresh_is_a_link_too(delay: int) -> None:
    page = parse(f"<meta http-equiv=refresh content='{delay}; url=/next'><p>x<a href=a>y</a>")
    assert [*links(page)] == [("/dir/a", "y", 1, 1), ("/next", "", 2, 2)]
    assert page.n_leaves == 3
    itself = parse(f"<meta http-equiv=refresh content='{delay}; url=page.html#x'><p>x")
    assert (len(itself.links), itself.n_leaves) == (0, 1)


def test_links_of_svg() -> None:
    page = parse(
        """<svg><a xlink:href=one><text>One</text></a><a href=two xlink:href=no>Two</a>
        <image xlink:href=picture /><use xlink:href="#x"/></svg><a name=here>no link</a>"""
    )
    assert [(url, text) for url, text, *_ in links(page)] == [
        ("/dir/one", "One"),
        ("/dir/two", "Two"),
    ]


@pytest.mark.parametrize(
    ("form", "target"),
    [
        ("action=/next><button>Next</button>", "/next"),
        ("action=/next method=GET><input type=submit value=Next>", "/next"),
        ("action=next method=strange>", "/dir/next"),
        ("action='/list?page=2#x'><button>Next</button>", "/list"),
        (
            "action=/list><input type=hidden name=page value=2><button>Next</button>",
            "/list?page=2",
        ),
        (
            "action=/list?old><input type=hidden name='a b' value='x&y=é~'>"
            "<input type=hidden name=c><button name=go value=1>Go</button><button name=no>",
            "/list?a+b=x%26y%3D%C3%A9%7E&c=&go=1",
        ),
        (
            "action=/a><input name=from value=2024><input name=to value=2025>",
            "/a?from=2024&to=2025",
        ),
        ("action=/a><button type=button name=b>x</button><input type=image name=i src=x>", "/a"),
        ("action=/a><input name=q disabled><button>Go</button>", "/a"),
        ("action=/a><button formaction=/b>Go</button><button formaction=/c>", "/b"),
        ("><button formaction=/b>Go</button>", "/b"),
        ("><button>Go</button>", None),
        ("action=''><button>Go</button>", None),
        ("action=/a method=post><button>Go</button>", None),
        ("action=/a method=DIALOG><button>Go</button>", None),
        ("action=/a><button formmethod=post>Go</button>", None),
        ("action=/a><input name=q><button>Go</button>", None),
        ("action=/a><input type=search name=q value=' '>", None),
        ("action=/a><select name=s><option>x</select>", None),
        ("action=/a><textarea name=t>x</textarea>", None),
        ("action=/a><input type=checkbox name=c value=1>", None),
        ("action=/a><input type=Password name=p value=1>", None),
        ("action=mailto:me><button>Go</button>", None),
        ("action=/a>" + "<b>x</b>" * 100, None),
        ("action=/a><input type=hidden name=a value=" + "x" * 3000 + ">", None),
    ],
)
def test_a_form_that_needs_no_input_is_a_link(form: str, target: str | None) -> None:
    page = parse(f"<form {form}</form>")
    assert [url for url, *_ in links(page)] == ([] if target is None else [target])


def test_a_form_has_the_text_inside() -> None:
    page = parse("<p>a<form action=/b>Go <b>on</b> <button>Next</button></form><a href=c>d</a>")
    assert [*links(page)] == [("/b", "Go on Next", 1, 3), ("/dir/c", "d", 4, 4)]


def test_fields_of_a_form_are_in_the_encoding_of_the_page() -> None:
    form = "<meta charset=koi8-r><form action=/a><input type=hidden name=q value='ю я'></form>"
    assert parse_page(form.encode("koi8-r"), HERE).links.urls == [
        "http://site.example/a?q=%C0+%D1"
    ]


def test_a_frame_with_its_content_in_an_attribute_is_part_of_the_page() -> None:
    page = parse(
        """<title>Page</title><base href=/base/><p>one
        <iframe src=old srcdoc="<title>no</title><meta name=robots content=nofollow>
        <link rel=canonical href=/no><p>two <a href='a'>inside</a>"></iframe> three
        <iframe srcdoc="&lt;base href='//b.example/b/'>&lt;a href=c>four&lt;/a>"></iframe>
        <iframe srcdoc=" "></iframe><a href=d>five</a>"""
    )
    assert page.tokens == ["page", "one", "two", "inside", "three", "four", "five"]
    assert page.links.urls == [
        *("http://site.example/base/old", "http://site.example/base/a"),
        *("http://b.example/b/c", "http://site.example/base/d"),
    ]
    assert page.links.anchors == ["", "inside", "four", "five"]
    assert (page.title, page.canonical, page.nofollow) == ("Page", None, False)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("Link", "</next>; rel=next", ["/next"]),
        ("link", '<b>; rel="prev"; title="a, b", <c>;rel=up', ["/dir/b", "/dir/c"]),
        ("Link", '<x>; rel="license index"', ["/dir/x"]),
        ("Link", "<x>; rel=preload, <y>; REL=Prefetch", ["/dir/x", "/dir/y"]),
        ("Link", "<x>; rel=preload; as=script, <y>; rel=stylesheet, <z>; rel=preconnect", []),
        ("Link", "<x>; rel=pingback, <y>; rel='https://api.w.org/', <z>; rel=shortlink", []),
        ("Link", "<x>; rel=alternate; hreflang=de, <y>; rel=alternate; type=image/png", []),
        ("Link", '<x>; rel=alternate; type="text/html"', ["/dir/x"]),
        ("Link", "<x>; rel=next; hreflang=en", ["/dir/x"]),
        ("Link", '<x>; rel=next; anchor="/other", <y>; rel="next nofollow"', []),
        ("Link", "<x>, </y; rel=next, <mailto:me>; rel=author, <page.html#x>; rel=first", []),
        ("Link", "<caf\xe9>; rel=next", ["/dir/caf%E9"]),
        ("Content-Location", "page.en.html", ["/dir/page.en.html"]),
        ("Content-Location", "/dir/page.html", []),
        ("Refresh", "999; url=later", ["/dir/later"]),
        ("Refresh", "999", []),
        ("Location", "/moved", []),
        ("Link", f"</{'a' * 3000}>; rel=next", []),
    ],
)
def test_links_in_header_fields(name: str, value: str, expected: list[str]) -> None:
    found = read_header_links(HERE, [(name, value)]).references
    assert [url.removeprefix("http://site.example") for url in found] == expected
    page = parse_page(b"<base href=/base/><p>x", HERE, references=found)
    assert page.links.urls == [*found]
    assert page.n_leaves == 1 + len(found)


def test_the_variant_of_a_negotiated_page_is_no_link() -> None:
    fields = [("Content-Location", "page.en.html"), ("TCN", "choice")]
    assert read_header_links(HERE, fields).references == ()


def test_links_in_header_fields_are_few_and_distinct() -> None:
    many = ", ".join(f"<x{n % 150}>; rel=next" for n in range(1000))
    assert len(read_header_links(HERE, [("Link", many)]).references) == 100


def test_a_refresh_for_those_without_scripts_is_none() -> None:
    later = "<meta http-equiv=refresh content='9; url=later'>"
    page = parse(f"<noscript><meta http-equiv=refresh content='0; url=x'></noscript>{later}")
    assert page.refresh == "http://site.example/dir/later"


_DATES = [
    "Wed, 03 Dec 2025 15:00:00 GMT",
    "Wednesday, 03-Dec-25 15:00:00 GMT",
    "Wed Dec  3 15:00:00 2025",
    "25 Jun 2030 15:00:00 PST",
    "2030-06-25T15:00:00+02:00",
    "2030-06-25, 15:00:00 UTC",
    "Dec. 3, 2025, 3:00 p.m. CET",
    "June 3, 2025, 3 PM",
]


@pytest.mark.parametrize(
    ("fields", "noindex", "nofollow"),
    [
        (["noindex"], True, False),
        (["NOFOLLOW, noarchive"], False, True),
        (["noarchive", "none"], True, True),
        (["otherbot: noindex, nofollow"], False, False),
        (["otherbot: noindex", "nofollow"], False, True),
        (["nofollow, otherbot: noindex"], False, True),
        (["nofollow; otherbot/2.0: noindex; 360Spider: none"], False, True),
        (["*: noindex"], True, False),
        (["otherbot: noindex, *: nofollow"], False, True),
        (["focuscrawl: noindex"], True, False),
        (["FocusCrawl/1.0 : noindex, nofollow, otherbot: none"], True, True),
        (["otherbot: none, focuscrawl: nofollow"], False, True),
        (["focuscrawl-images: noindex", "focus: noindex", "crawl: noindex"], False, False),
        *(([f"unavailable_after: {date}, noindex"], True, False) for date in _DATES),
        *(([f"nofollow, unavailable_after: {date}"], False, True) for date in _DATES),
        *(([f"otherbot: unavailable_after: {date}, noindex"], False, False) for date in _DATES),
        (["max-snippet: 20, nofollow"], False, True),
        (["max-image-preview: none, max-video-preview:none"], False, False),
        (["max-image-preview:none noindex"], True, False),
        (['"noindex, nofollow"'], True, True),
        ([], False, False),
    ],
)
def test_robots_fields(fields: list[str], noindex: bool, nofollow: bool) -> None:
    page = parse_page(b"<p>x", "http://site.example/", robots=fields)
    assert (page.noindex, page.nofollow) == (noindex, nofollow)


def test_links_that_are_not_to_be_followed() -> None:
    rels = ("nofollow", "noopener UGC", "sponsored", "follow", "nofollower")
    page = parse("".join(f'<a rel="{rel}" href=x>x</a>' for rel in rels))
    assert page.links.nofollow.tolist() == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("head", "noindex", "nofollow"),
    [
        ("<meta name=ROBOTS content='NoIndex,Follow'>", True, False),
        ("<meta name=robots content='index, nofollow'>", False, True),
        ("<meta name=robots content=none>", True, True),
        ("<meta name=robots content=noindex><meta name=robots content=all>", True, False),
        ("<meta name=description content=noindex><meta name=robots>", False, False),
        ("<meta name=robots content='noindex; nofollow'>", True, True),
        ("<meta name=robots content='noindex|nofollow'>", True, True),
        ("<meta name=robots content='max-image-preview: none'>", False, False),
        ("<meta name=FocusCrawl content=noindex>", True, False),
        ("<meta name=otherbot content=noindex>", False, False),
        ("<meta name=robots content=nofollow><meta name=focuscrawl content=noindex>", True, True),
    ],
)
def test_robots(head: str, noindex: bool, nofollow: bool) -> None:
    page = parse(head)
    assert (page.noindex, page.nofollow) == (noindex, nofollow)


def test_robots_rules_may_name_the_crawler() -> None:
    head = b"<meta name=Cycling-Survey content=noindex><meta name=focuscrawl content=none><meta>"
    page = parse_page(head, "http://site.example/", agent="cycling-survey")
    assert (page.noindex, page.nofollow) == (True, False)
    nameless = parse_page(b"<meta content=noindex><meta name content=none>", page.url, agent="")
    assert (nameless.noindex, nameless.nofollow) == (False, False)


def test_canonical() -> None:
    assert parse("<link rel='x Canonical' href=c><link rel=canonical href=d>").canonical == (
        "http://site.example/dir/c"
    )
    assert parse("<link rel=canonical href=ftp://site.example/><link rel=icon>").canonical is None


def test_a_long_anchor_is_cut_but_not_what_it_covers() -> None:
    page = parse("<a href=x>" + "word <i>word</i> " * 1000)
    assert next(links(page))[2:] == (0, 1999)
    assert len(page.links.anchors[0]) < 1000 < len(page.tokens)


def headings(page: PageView) -> list[tuple[str, int]]:
    return list(zip(page.headings, page.heading_leaf.tolist(), strict=True))


def test_headings_are_those_of_all_levels_at_their_first_leaf() -> None:
    page = parse(
        """<title>Name</title>intro<h1>All  about
        <i>sailing</i> <a href=1>boats</a></h1>text<h3><span><b>Knots</b></span></h3>
        <h6></h6><hr><header>no heading</header><h2><img alt=no></h2><h7>none</h7>"""
    )
    assert headings(page) == [("All about sailing boats", 2), ("Knots", 6), ("", 7), ("", 10)]
    assert by_leaf(page)[2:5] == ["all about", "sailing", "boats"]
    assert page.links.left.tolist() == [4]


def test_a_heading_left_open_is_no_longer_than_a_heading() -> None:
    page = parse("<h2>Open " + "<span>some of the <b>rest</b> of the page</span> " * 500)
    (heading, leaf), *others = headings(page)
    assert heading.startswith("Open some of the rest")
    assert len(heading) <= 300
    assert leaf == 0
    assert not others
    one = parse(f"<h2>{'word ' * 500}</h2>")
    assert len(one.headings[0]) == 300


def test_headings_in_each_other_and_without_text() -> None:
    page = parse("<h1>out<div><h2>in</h2></div>side</h1><h3> </h3>")
    assert headings(page) == [("out in side", 0), ("in", 1), ("", 3)]
    assert parse("<p>none").heading_leaf.shape == (0,)
    assert headings(parse("<template><h1>no</h1></template>yes")) == []
    hidden = "<template><b>no</b><template><i>no</i></template></template>"
    assert headings(parse(f"<div>{hidden}</div><h1>yes</h1>")) == [("yes", 0)]


def test_a_program_in_a_heading_is_no_text_of_it() -> None:
    page = parse("<h1>Real<script>var x</script><style>b {}</style> name</h1>")
    assert headings(page) == [("Real name", 0)]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("/list", ["http://a.example/item", "http://a.example/list"]),
        ("http://b.example/x", ["http://a.example/item", "http://b.example/x"]),
        ("?page=2", ["http://a.example/item"]),
        ("#top", ["http://a.example/item"]),
        ("/item", ["http://a.example/item"]),
        ("mailto:a@b.example", ["http://a.example/item"]),
        ("", ["http://a.example/item"]),
    ],
)
def test_the_canonical_url_of_another_page_is_the_last_link(name: str, found: list[str]) -> None:
    markup = f"<link rel=canonical href='{name}'><p>text <a href=/item>item</a>".encode()
    page = parse_page(markup, "http://a.example/list?page=2")
    assert page.links.urls == found
    assert page.tokens == ["text", "item"]
    assert (page.links.right < page.n_leaves).all()
    assert page.links.anchors == ["item", *([""] * (len(found) - 1))]
