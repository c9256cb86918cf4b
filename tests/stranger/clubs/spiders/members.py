"""Logs in, reads the front page and the sections it leads to, and the service behind them."""

import scrapy


class MembersSpider(scrapy.Spider):
    """``-a site=http://... -a other=http://...``."""

    name = "members"

    def __init__(self, site=None, other=None, **kwargs):
        super().__init__(**kwargs)
        self.site, self.other = site, other

    async def start(self):
        """Log in first."""
        yield scrapy.FormRequest(
            f"{self.site}/login", formdata={"who": "me"}, callback=self.logged_in
        )

    def logged_in(self, response):
        """Begin at the front page."""
        yield self.item(response, "login")
        yield response.follow("/", meta={"note": "front"}, cb_kwargs={"greeting": "hello"})

    def parse(self, response, greeting=None):
        """Read a page of links."""
        yield self.item(response, "parse", greeting=greeting, note=response.meta.get("note"))
        if greeting is None:
            return
        yield response.follow("/start", callback=self.parse_section, meta=response.meta)
        yield response.follow("/missing", callback=self.parse_section, errback=self.gone)
        yield response.follow("/private/diary", callback=self.parse_section, errback=self.gone)
        yield response.follow("/dull", callback=self.parse_section, cb_kwargs={"again": True})
        yield response.follow("/api/clubs.json", callback=self.parse_clubs, priority=5)
        yield scrapy.Request(
            f"{self.other}/section-1", callback=self.parse_section, headers={"X-Club": "guest"}
        )

    def parse_section(self, response, again=False):
        """Read a section; look at one of them twice."""
        yield self.item(response, "section", moved=response.meta.get("redirect_urls"))
        if again:
            yield response.request.replace(dont_filter=True, cb_kwargs={})

    def parse_clubs(self, response):
        """Read what is no page."""
        for name in response.json()["clubs"]:
            yield {"kind": "club", "url": response.url, "title": name}

    def gone(self, failure):
        """Keep what could not be read, too."""
        yield {"kind": "gone", "url": failure.request.url, "title": type(failure.value).__name__}

    def item(self, response, kind, **more):
        """Return an item."""
        title = response.css("title::text").get()
        return {"kind": kind, "url": response.url, "title": title, **more}
