"""Three ways of reading a forum."""

import asyncio
import json

import scrapy
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider


class TopicsSpider(CrawlSpider):
    """Reads topics by a rule: ``-a site=http://...``."""

    name = "topics"
    rules = (
        Rule(LinkExtractor(allow=r"/topic-", deny="/members/"), callback="topic", follow=True),
    )

    def __init__(self, site=None, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [f"{site}/"]

    def topic(self, response):
        """Read one."""
        return {"kind": "topic", "url": response.url, "title": response.css("title::text").get()}


class ListsSpider(scrapy.Spider):
    """Goes from list to list, and reads the topics of each with another callback."""

    name = "lists"

    def __init__(self, site=None, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [f"{site}/list/1"]

    def parse(self, response):
        """Read a list."""
        yield self.item(response, "list")
        for href in response.css("a::attr(href)").getall():
            if href.startswith("/list/"):
                yield response.follow(href)
            elif href.startswith("/topic-"):
                yield response.follow(href, callback=self.topic, cb_kwargs={"of": response.url})

    async def topic(self, response, of):
        """Read a topic."""
        yield self.item(response, "topic")

    def item(self, response, kind):
        """Return an item."""
        return {"kind": kind, "url": response.url, "title": response.css("title::text").get()}


class PatientSpider(ListsSpider):
    """Hands on what it was told of a list, and takes a while to be done with it."""

    name = "patient"

    async def parse(self, response):
        """Read a list."""
        for each in super().parse(response):
            if isinstance(each, scrapy.Request):
                each.meta.update(response.meta)
            yield each
        await asyncio.sleep(0.05)


class StumblingSpider(ListsSpider):
    """Fails on its second list, after its first link."""

    name = "stumbling"

    def parse(self, response):
        """Read a list, or fail."""
        for number, each in enumerate(super().parse(response)):
            if "/list/2" in response.url and number == 1:
                raise RuntimeError("stumbled")
            yield each


class MappedSpider(SitemapSpider):
    """Reads what the site map names."""

    name = "mapped"

    def __init__(self, site=None, **kwargs):
        super().__init__(**kwargs)
        self.sitemap_urls = [f"{site}/sitemap.xml"]

    def parse(self, response):
        """Read a page."""
        return {"kind": "page", "url": response.url, "title": response.css("title::text").get()}


class DatedSpider(MappedSpider):
    """Reads another site map, which says when pages were changed."""

    name = "dated"

    def __init__(self, site=None, **kwargs):
        super().__init__(**kwargs)
        self.sitemap_urls = [f"{site}/dated.xml"]


class HandlingSpider(scrapy.Spider):
    """Looks at a redirect itself, and does not go where it leads."""

    name = "handling"

    def __init__(self, site=None, asked="/moved", handled="", meta="[{}, {}]", **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [f"{site}/list/1"]
        self.asked = zip(asked.split(","), json.loads(meta), strict=False)
        if handled:
            self.handle_httpstatus_list = [int(status) for status in handled.split(",")]

    def parse(self, response):
        """Ask for what has moved."""
        for url, meta in self.asked:
            yield response.follow(url, callback=self.answer, meta=meta)

    def answer(self, response):
        """Say what came."""
        return {"kind": "answer", "url": response.url, "title": "moved", "status": response.status}
