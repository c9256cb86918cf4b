"""Scrapy settings of the project, as `scrapy startproject` makes them, and a little more."""

BOT_NAME = "clubs"
SPIDER_MODULES = ["clubs.spiders"]
NEWSPIDER_MODULE = "clubs.spiders"

ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 4
DOWNLOAD_DELAY = 0
DOWNLOAD_TIMEOUT = 20
RETRY_ENABLED = False

SPIDER_MIDDLEWARES = {"clubs.middlewares.Stamp": 543}
DOWNLOADER_MIDDLEWARES = {"clubs.middlewares.Badge": 543}
EXTENSIONS = {"clubs.extensions.Tally": 500}
ITEM_PIPELINES = {"clubs.pipelines.Upper": 300}
FEED_EXPORT_ENCODING = "utf-8"
TELNETCONSOLE_ENABLED = False
