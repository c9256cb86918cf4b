"""Scrapy settings of the project, for a polite crawl that judges pages and scores links."""

from focuscrawl import __version__

BOT_NAME = "focuscrawl"
SPIDER_MODULES = ["focuscrawl.spiders"]
NEWSPIDER_MODULE = "focuscrawl.spiders"
COMMANDS_MODULE = "focuscrawl.commands"

# Name your crawler, with a page or an address where site owners can reach you.
USER_AGENT = f"focuscrawl/{__version__}"
ROBOTSTXT_OBEY = True
ROBOTSTXT_PARSER = "focuscrawl.downloadermiddlewares.robots.RobotRules"

# One request at a time to a host, at least a second apart; fewer if the host is slow.
CONCURRENT_REQUESTS = 16
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1.0
AUTOTHROTTLE_ENABLED = True
AUTOTHROTTLE_START_DELAY = 1.0
AUTOTHROTTLE_MAX_DELAY = 60.0
AUTOTHROTTLE_TARGET_CONCURRENCY = 1.0

# A page that refreshes to another page within fewer seconds is a redirect. Slide shows refresh
# later; their slides are pages.
METAREFRESH_MAXDELAY = 10

RETRY_GIVE_UP_LOG_LEVEL = "DEBUG"  # the log reports skipped hosts, the summary counts the causes

DOWNLOAD_TIMEOUT = 30
DOWNLOAD_MAXSIZE = 10 * 1024 * 1024
DOWNLOAD_WARNSIZE = 0
COOKIES_ENABLED = False
# Hanging DNS look-ups occupy threads after their requests time out; parsing needs threads, too.
REACTOR_THREADPOOL_MAXSIZE = 32
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False

# HTTP and HTTPS to public addresses; FOCUSCRAWL_PRIVATE_ADDRESSES allows private addresses.
DOWNLOAD_HANDLERS = {
    "http": "focuscrawl.downloadhandlers.live.LiveDownloadHandler",
    "https": "focuscrawl.downloadhandlers.live.LiveDownloadHandler",
    "data": None,
    "file": None,
    "ftp": None,
    "s3": None,
}

# Record live crawls, so that judgements of some pages can be applied to all pages.
FOCUSCRAWL_WARC = "live"

# The frontier orders links. The pipelines judge pages, score links and record fetches.
CONCURRENT_ITEMS = 1  # each page is one item, so more workers would be useless
SCHEDULER = "focuscrawl.scheduler.FrontierScheduler"
DOWNLOADER_MIDDLEWARES = {
    "focuscrawl.downloadermiddlewares.focus.PriorityMiddleware": 40,
    "focuscrawl.downloadermiddlewares.politeness.ThrottleMiddleware": 42,
    "focuscrawl.downloadermiddlewares.bodies.ConditionalMiddleware": 45,
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "focuscrawl.downloadermiddlewares.robots.RobotsMiddleware": 100,
    "focuscrawl.downloadermiddlewares.politeness.BackoffMiddleware": 560,
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,
    "focuscrawl.downloadermiddlewares.bodies.CompressionMiddleware": 590,
    "focuscrawl.downloadermiddlewares.redirect_cookies.RedirectCookiesMiddleware": 595,
    "focuscrawl.downloadermiddlewares.bodies.WarcMiddleware": 950,
}
# Every fetch is an item. Put your own pipelines between these: after the critic, to change the
# relevance before links are scored; at the end, to change items before feeds export them.
ITEM_PIPELINES = {
    "focuscrawl.pipelines.CriticPipeline": 100,
    "focuscrawl.pipelines.LinkPipeline": 500,
    "focuscrawl.pipelines.RecordPipeline": 900,
}
EXTENSIONS = {
    "scrapy.extensions.logstats.LogStats": None,
    "focuscrawl.extensions.run_control.StopReason": 0,
    "focuscrawl.extensions.download_limits.HtmlOnly": 0,
    "focuscrawl.extensions.download_limits.PrivateAddresses": 0,
    "focuscrawl.extensions.alarm.Alarm": 0,
    "focuscrawl.extensions.progress.Progress": 0,
    "focuscrawl.extensions.run_control.RemoteControlExtension": 0,
    "focuscrawl.extensions.run_control.BoundedStop": 0,
    "focuscrawl.extensions.metrics.Metrics": 0,
    "focuscrawl.extensions.progress.JsonLog": -1,  # first, so that the log is complete
}
FEED_EXPORTERS = {
    "csv": "focuscrawl.exporters.PlainCsvItemExporter",
    "xml": "focuscrawl.exporters.PlainXmlItemExporter",
    "parquet": "focuscrawl.exporters.ParquetItemExporter",
}
FEED_STORAGES = dict.fromkeys(("", "file"), "focuscrawl.exporters.WholeFileFeedStorage")
STATS_DUMP = False
LOG_LEVEL = "INFO"
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
LOG_DATEFORMAT = "%Y-%m-%d %H:%M:%S"
