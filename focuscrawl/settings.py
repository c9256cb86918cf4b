"""Scrapy settings of the project: a crawl that is decent to the sites it visits."""

from focuscrawl import __version__

BOT_NAME = "focuscrawl"
SPIDER_MODULES = ["focuscrawl.spiders"]
NEWSPIDER_MODULE = "focuscrawl.spiders"
COMMANDS_MODULE = "focuscrawl.commands"

# Say who is crawling. Put a page or an address here where people can reach you.
USER_AGENT = f"focuscrawl/{__version__}"
ROBOTSTXT_OBEY = True
ROBOTSTXT_PARSER = "focuscrawl.downloadermiddlewares.robots.RobotRules"

# One request at a time to a host, at least a second apart, slower when the host is slow.
CONCURRENT_REQUESTS = 16
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1.0
AUTOTHROTTLE_ENABLED = True
AUTOTHROTTLE_START_DELAY = 1.0
AUTOTHROTTLE_MAX_DELAY = 60.0
AUTOTHROTTLE_TARGET_CONCURRENCY = 1.0

# A page that leads to another within less than so many seconds is a redirect; one that stays for
# longer, a slide of a show, is a page.
METAREFRESH_MAXDELAY = 10

RETRY_GIVE_UP_LOG_LEVEL = "DEBUG"  # hosts left alone have a line; the summary counts the causes

DOWNLOAD_TIMEOUT = 30
DOWNLOAD_MAXSIZE = 10 * 1024 * 1024
DOWNLOAD_WARNSIZE = 0
COOKIES_ENABLED = False
# A look-up that hangs holds a thread for longer than its request waits; pages are parsed in them.
REACTOR_THREADPOOL_MAXSIZE = 32
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False

# http and https, never into private networks: FOCUSCRAWL_PRIVATE_ADDRESSES names exceptions.
DOWNLOAD_HANDLERS = {
    "http": "focuscrawl.downloadhandlers.live.LiveDownloadHandler",
    "https": "focuscrawl.downloadhandlers.live.LiveDownloadHandler",
    "data": None,
    "file": None,
    "ftp": None,
    "s3": None,
}

# Pages of a live crawl are kept: who judges some of them has the crawl judge the rest anew.
FOCUSCRAWL_WARC = "live"

# The frontier orders, the pipelines judge, score and record; Scrapy downloads.
CONCURRENT_ITEMS = 1  # an item a page: a hundred workers would only be started and stopped
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
    "focuscrawl.downloadermiddlewares.bodies.WarcMiddleware": 950,
}
# Every fetch is an item. Put pipelines of your own between these: after the critic, a second
# opinion on the relevance counts for the links; after the last, items are as feeds get them.
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
    "focuscrawl.extensions.progress.JsonLog": -1,  # before those that have something to say
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
